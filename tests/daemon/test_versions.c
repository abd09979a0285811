// Two versions side by side: clients of the releases before talk to this daemon. Each release leaves a file in
// tests/daemon/versions with its schema, the requests that a client of it sends, and the replies that it got, as bytes:
//
//   field MESSAGE.NAME NUMBER TYPE LABEL      of the schema, as protobuf-c numbers types and labels
//   exchange KIND REQUEST REPLY               both in hexadecimal digits
//
// `daemon_test_versions --write FILE` writes that of this build; it is done once, for a release.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

// The id of a session in the files. It takes five bytes on the wire; any other id is put there in as many.
#define SESSION 999999999u
enum { ID_BYTES = 5, LONGEST = 1 << 20, MESSAGES = 256 };

typedef const ProtobufCMessageDescriptor Type;

// ---- the schema ----

static Type *types[MESSAGES];
static int ntypes;

static void collect(Type *type) {
  for (int i = 0; i < ntypes; i++)
    if (types[i] == type) return;
  assert_true(ntypes < MESSAGES);
  types[ntypes++] = type;
  for (unsigned i = 0; i < type->n_fields; i++)
    if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE) collect(type->fields[i].descriptor);
}

static void collect_all(void) {
  collect(&sinew__v1__request__descriptor);
  collect(&sinew__v1__reply__descriptor);
  collect(&sinew__v1__telemetry__descriptor);
  collect(&sinew__v1__record__descriptor);
}

// A field of then has today the number, the name and the type that it had.
static void check_field(const char *name, unsigned number, int kind, int label) {
  const char *dot = strchr(name, '.');
  assert_non_null(dot);
  for (int i = 0; i < ntypes; i++) {
    if (strncmp(types[i]->short_name, name, (size_t)(dot - name)) || types[i]->short_name[dot - name]) continue;
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(types[i], number);
    if (!f || strcmp(f->name, dot + 1) || (int)f->type != kind || (int)f->label != label)
      fail_msg("%s, number %u, is %s", name, number, f ? "another field now" : "gone");
    return;
  }
  fail_msg("the message of %s is gone", name);
}

// ---- bytes ----

static void put_id(unsigned char at[ID_BYTES], uint64_t id) {
  for (int i = 0; i < ID_BYTES; i++, id >>= 7) at[i] = (unsigned char)((id & 0x7f) | (i + 1 < ID_BYTES ? 0x80 : 0));
}

// Puts the id of a session in the place of SESSION.
static void set_session(unsigned char *bytes, size_t size, uint64_t id) {
  unsigned char then[ID_BYTES];
  put_id(then, SESSION);
  for (size_t i = 0; i + ID_BYTES <= size; i++)
    if (!memcmp(bytes + i, then, ID_BYTES)) put_id(bytes + i, id);
}

static size_t read_hex(const char *text, unsigned char *bytes) {
  size_t n = 0;
  for (unsigned x; text[2 * n] && sscanf(text + 2 * n, "%2x", &x) == 1; n++) bytes[n] = (unsigned char)x;
  assert_int_equal(text[2 * n], '\0');
  return n;
}

static bool is_set(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f) {
  const char *at = (const char *)m + f->offset;
  if (f->label == PROTOBUF_C_LABEL_REPEATED)
    return *(const size_t *)(const void *)((const char *)m + f->quantifier_offset) > 0;
  if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
    return *(const unsigned *)(const void *)((const char *)m + f->quantifier_offset) == f->id;
  if (f->type == PROTOBUF_C_TYPE_MESSAGE) return *(void *const *)(const void *)at != NULL;
  if (f->type == PROTOBUF_C_TYPE_STRING) return **(char *const *)(const void *)at != '\0';
  return false;  // a number may be 0 today
}

// What a reply of then had, that of today has: a client of then finds what it reads.
static void check_reply(const ProtobufCMessage *then, const ProtobufCMessage *now, const char *kind) {
  assert_int_equal(then->n_unknown_fields, 0);
  for (unsigned i = 0; i < then->descriptor->n_fields; i++) {
    const ProtobufCFieldDescriptor *f = &then->descriptor->fields[i];
    if (!is_set(then, f)) continue;
    if (!is_set(now, f))
      fail_msg("reply to %s: %s.%s is not there any more", kind, then->descriptor->short_name, f->name);
    if (f->type != PROTOBUF_C_TYPE_MESSAGE || f->label == PROTOBUF_C_LABEL_REPEATED) continue;
    check_reply(*(ProtobufCMessage *const *)(const void *)((const char *)then + f->offset),
                *(ProtobufCMessage *const *)(const void *)((const char *)now + f->offset), kind);
  }
}

// ---- conversations ----

// Sends the bytes of a request of then; the reply of today.
static Sinew__V1__Reply *ask_then(SnTestClient *c, unsigned char *bytes, size_t size, uint64_t session) {
  set_session(bytes, size, session);
  sn_test_send_bytes(c, bytes, size);
  Sinew__V1__Reply *r = sn_test_receive(c, 60);
  assert_non_null(r);
  return r;
}

static void check_exchange(const char *kind, const char *request_hex, const char *reply_hex, uint64_t *session) {
  static unsigned char request[LONGEST], reply[LONGEST];
  const size_t size = read_hex(request_hex, request), reply_size = read_hex(reply_hex, reply);
  Sinew__V1__Reply *then = sinew__v1__reply__unpack(NULL, reply_size, reply);
  assert_non_null(then);
  Sinew__V1__Reply *now = ask_then(&client, request, size, *session);
  if (now->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s is refused: %s", kind, now->error->text);
  assert_int_equal(now->body_case, then->body_case);
  assert_int_equal(now->id, then->id);
  check_reply(&then->base, &now->base, kind);
  if (now->body_case == SINEW__V1__REPLY__BODY_OPEN) *session = now->open->session;
  if (now->body_case == SINEW__V1__REPLY__BODY_PLAN) assert_int_equal(now->plan->n_ctrl, then->plan->n_ctrl);
  sn_test_done(now);
  sinew__v1__reply__free_unpacked(then, NULL);
}

static int check_version(const char *path) {
  static char line[3 * LONGEST], kind[64], request[LONGEST], reply[2 * LONGEST];
  uint64_t session = 0;
  int exchanges = 0, fields = 0;
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    unsigned number;
    int type, label;
    if (sscanf(line, "field %63s %u %d %d", kind, &number, &type, &label) == 4) {
      check_field(kind, number, type, label);
      fields++;
    } else if (sscanf(line, "exchange %63s %1048575s %2097151s", kind, request, reply) == 3) {
      check_exchange(kind, request, reply, &session);
      exchanges++;
    } else {
      assert_int_equal(line[0], '#');
    }
  }
  fclose(f);
  print_message("%s: %d fields, %d exchanges\n", strrchr(path, '/') + 1, fields, exchanges);
  assert_true(fields > 300 && exchanges > 15);
  return exchanges;
}

static void test_versions(void **state) {
  (void)state;
  int files = 0;
  collect_all();
  DIR *folder = opendir(SN_TEST_SOURCE_DIR "/daemon/versions");
  assert_non_null(folder);
  for (struct dirent *e; (e = readdir(folder));) {
    char path[600];
    if (!strstr(e->d_name, ".txt")) continue;
    snprintf(path, sizeof path, "%s/daemon/versions/%s", SN_TEST_SOURCE_DIR, e->d_name);
    files += check_version(path) > 0;
  }
  closedir(folder);
  assert_true(files > 0);
}

// ---- the file of this build ----

static void write_hex(FILE *f, const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) fprintf(f, "%02x", bytes[i]);
}

static void write_exchange(FILE *f, const char *kind, Sinew__V1__Request *request, uint64_t *session) {
  static unsigned char bytes[LONGEST], reply[LONGEST];
  request->id = ++client.id;
  const size_t size = sinew__v1__request__pack(request, bytes);
  fprintf(f, "exchange %s ", kind);
  write_hex(f, bytes, size);
  Sinew__V1__Reply *r = ask_then(&client, bytes, size, *session);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s: %s", kind, r->error->text);
  if (r->body_case == SINEW__V1__REPLY__BODY_OPEN) {
    *session = r->open->session;
    r->open->session = SESSION;
  }
  fputc(' ', f);
  write_hex(f, reply, sinew__v1__reply__pack(r, reply));
  fputc('\n', f);
  sn_test_done(r);
}

// Makes a request of a kind whose body has a session, or none.
#define ASK(kind, KIND, ...)                                                                                         \
  do {                                                                                                               \
    __typeof__(*((Sinew__V1__Request *)0)->kind) body;                                                               \
    protobuf_c_message_init(                                                                                         \
        protobuf_c_message_descriptor_get_field_by_name(&sinew__v1__request__descriptor, #kind)->descriptor, &body); \
    __VA_ARGS__;                                                                                                     \
    write_exchange(f, #kind, SN_TEST_MESSAGE(kind, KIND, &body), &session);                                          \
  } while (0)

static void write_exchanges(FILE *f) {
  uint64_t session = 0;
  double qpos[] = {0.35, 1.3}, qvel[] = {0, 0}, ctrl[12] = {0.5};
  Sinew__V1__State state = SINEW__V1__STATE__INIT;
  state.n_qpos = state.n_qvel = 2;
  state.qpos = qpos;
  state.qvel = qvel;
  Sinew__V1__PlannerSettings planner = SINEW__V1__PLANNER_SETTINGS__INIT;
  planner.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  planner.candidates = 16;
  Sinew__V1__PlannerSettings short_plans = planner;
  short_plans.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  short_plans.horizon = 8;
  char task[] = "arm_reach", model[] = "arm_reach", who[] = "a client of then";
  ASK(hello, HELLO, body.protocol = 1; body.client = who);
  ASK(health, HEALTH, );
  ASK(list_models, LIST_MODELS, );
  ASK(list_tasks, LIST_TASKS, );
  ASK(load_model, LOAD_MODEL, body.model = model);
  ASK(describe_model, DESCRIBE_MODEL, body.model = model);
  ASK(describe_task, DESCRIBE_TASK, body.task = task);
  ASK(open, OPEN, body.task = task; body.seed = 3; body.planner = &short_plans);
  ASK(plan, PLAN, body.session = SESSION; body.state = &state; body.deadline = 1; body.want_states = true);
  ASK(evaluate, EVALUATE, body.session = SESSION; body.state = &state; body.ctrl = ctrl; body.n_ctrl = 12;
      body.want_gradient = true);
  ASK(get_config, GET_CONFIG, body.session = SESSION);
  ASK(set_config, SET_CONFIG, body.session = SESSION; body.planner = &planner);
  ASK(revert, REVERT, body.session = SESSION; body.version = 1);
  ASK(snapshot, SNAPSHOT, body.session = SESSION);
  ASK(stream, STREAM, body.session = SESSION; body.lease = 20; body.deadline = 1);
  ASK(stream, STREAM, body.session = SESSION; body.stop = true);
  ASK(statistics, STATISTICS, body.session = SESSION);
  ASK(metrics, METRICS, );
  ASK(trace, TRACE, body.session = SESSION);
  ASK(reset, RESET, body.session = SESSION);
  ASK(close, CLOSE, body.session = SESSION);
}

static const char *file_to_write;

static void test_write(void **state) {
  (void)state;
  FILE *f = fopen(file_to_write, "w");
  assert_non_null(f);
  fprintf(f, "# What a client and sinewd %s say to each other. tests/daemon/test_versions.c reads it.\n",
          SN_TEST_VERSION);
  collect_all();
  for (int i = 0; i < ntypes; i++)
    for (unsigned k = 0; k < types[i]->n_fields; k++)
      fprintf(f, "field %s.%s %u %d %d\n", types[i]->short_name, types[i]->fields[k].name, types[i]->fields[k].id,
              (int)types[i]->fields[k].type, (int)types[i]->fields[k].label);
  write_exchanges(f);
  assert_int_equal(fclose(f), 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest check[] = {cmocka_unit_test(test_versions)};
  const struct CMUnitTest write[] = {cmocka_unit_test(test_write)};
  file_to_write = argc == 3 && !strcmp(argv[1], "--write") ? argv[2] : NULL;
  return file_to_write ? cmocka_run_group_tests(write, sn_test_group_setup, sn_test_group_teardown)
                       : cmocka_run_group_tests(check, sn_test_group_setup, sn_test_group_teardown);
}
