// Attack on clients: a server whose every text commands a terminal. What sinewctl, sinew-plant and sinew-load print of
// it is text, in words and as JSON.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <zmq.h>

#include <cmocka.h>

#include "proto/sinew.pb-c.h"
#include "tests/support/daemon_process.h"

enum { SESSION = 7, DEEP = 6, LONG = 1000000 };

// Names a window, clears the screen; DEL; U+009B, which begins a command as ESC [ does; goes back to the line's begin.
static const char hostile[] =
    "\x1b]0;t\x07\x1b[2J\x7f\xc2\x9b"
    "2J\r";

typedef struct Server {
  void *context, *router;
  char folder[64], endpoint[80];
  pthread_t thread;
  atomic_bool stop;
  atomic_int served;
  char *error;  // answers with this text; NULL: with what was asked for, each of its texts the hostile one
} Server;

static Server server;

static void fill(ProtobufCMessage *message, int depth);

static void *new_message(const ProtobufCMessageDescriptor *type, int depth) {
  ProtobufCMessage *m = malloc(type->sizeof_message);
  assert_non_null(m);
  protobuf_c_message_init(type, m);
  fill(m, depth);
  return m;
}

// Texts and messages alone, one of each list; whatever else says that it is of the session asked for.
static void fill_field(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, int depth) {
  char *at = (char *)m + f->offset;
  const bool message = f->type == PROTOBUF_C_TYPE_MESSAGE, list = f->label == PROTOBUF_C_LABEL_REPEATED;
  if (f->type == PROTOBUF_C_TYPE_UINT64 && !list && !strcmp(f->name, "session")) *(uint64_t *)(void *)at = SESSION;
  if (!message && f->type != PROTOBUF_C_TYPE_STRING) return;
  if (message && depth >= DEEP) return;
  void *value = message ? new_message(f->descriptor, depth + 1) : (void *)strdup(hostile);
  if (list) {
    void **items = malloc(sizeof *items);
    assert_non_null(items);
    *items = value;
    *(void ***)(void *)at = items;
    *(size_t *)(void *)((char *)m + f->quantifier_offset) = 1;
    return;
  }
  *(void **)(void *)at = value;
  if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) *(uint32_t *)(void *)((char *)m + f->quantifier_offset) = f->id;
}

static void fill(ProtobufCMessage *m, int depth) {
  for (unsigned i = 0; i < m->descriptor->n_fields; i++) fill_field(m, m->descriptor->fields + i, depth);
}

// The reply of the same name as the request, or an error.
static Sinew__V1__Reply *make_reply(const Sinew__V1__Request *request) {
  Sinew__V1__Reply *reply = malloc(sizeof *reply);
  assert_non_null(reply);
  sinew__v1__reply__init(reply);
  const ProtobufCFieldDescriptor *asked =
      protobuf_c_message_descriptor_get_field(request->base.descriptor, (unsigned)request->body_case);
  const ProtobufCFieldDescriptor *field =
      asked ? protobuf_c_message_descriptor_get_field_by_name(reply->base.descriptor, asked->name) : NULL;
  if (server.error || !field) field = protobuf_c_message_descriptor_get_field_by_name(reply->base.descriptor, "error");
  fill_field(&reply->base, field, 0);
  if (reply->body_case == SINEW__V1__REPLY__BODY_HELLO) reply->hello->protocol = 1;
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR && server.error) {
    free(reply->error->text);
    reply->error->text = strdup(server.error);
  }
  reply->id = request->id;
  return reply;
}

static void answer(zmq_msg_t *sender, zmq_msg_t *in) {
  Sinew__V1__Request *request = sinew__v1__request__unpack(NULL, zmq_msg_size(in), zmq_msg_data(in));
  assert_non_null(request);
  Sinew__V1__Reply *reply = make_reply(request);
  const size_t size = sinew__v1__reply__get_packed_size(reply);
  uint8_t *bytes = malloc(size);
  assert_non_null(bytes);
  sinew__v1__reply__pack(reply, bytes);
  zmq_msg_send(sender, server.router, ZMQ_SNDMORE);
  zmq_send(server.router, bytes, size, 0);
  free(bytes);
  sinew__v1__reply__free_unpacked(reply, NULL);
  sinew__v1__request__free_unpacked(request, NULL);
  atomic_fetch_add(&server.served, 1);
}

static void *serve(void *unused) {
  while (!atomic_load(&server.stop)) {
    zmq_msg_t sender, in;
    zmq_msg_init(&sender);
    zmq_msg_init(&in);
    if (zmq_msg_recv(&sender, server.router, 0) >= 0 && zmq_msg_recv(&in, server.router, 0) >= 0) answer(&sender, &in);
    zmq_msg_close(&sender);
    zmq_msg_close(&in);
  }
  return unused;
}

static int setup(void **state) {
  (void)state;
  const int wait = 50, none = 0;
  strcpy(server.folder, "/tmp/sinew-text-XXXXXX");
  assert_non_null(mkdtemp(server.folder));
  snprintf(server.endpoint, sizeof server.endpoint, "ipc://%s/socket", server.folder);
  server.context = zmq_ctx_new();
  server.router = zmq_socket(server.context, ZMQ_ROUTER);
  zmq_setsockopt(server.router, ZMQ_RCVTIMEO, &wait, sizeof wait);
  zmq_setsockopt(server.router, ZMQ_LINGER, &none, sizeof none);
  assert_int_equal(zmq_bind(server.router, server.endpoint), 0);
  return pthread_create(&server.thread, NULL, serve, NULL);
}

static int teardown(void **state) {
  (void)state;
  atomic_store(&server.stop, true);
  pthread_join(server.thread, NULL);
  zmq_close(server.router);
  zmq_ctx_term(server.context);
  free(server.error);
  char command[100];
  snprintf(command, sizeof command, "rm -r '%s'", server.folder);
  return system(command);
}

// A program's output, both streams of it, and how it ended; the caller frees it.
static char *output_of(const char *program, const char *arguments, int *status, size_t *size) {
  char command[700];
  snprintf(command, sizeof command, "echo '{}' | timeout 20 '%s/%s' --endpoint '%s' %s 2>&1", sn_test_binary_folder(),
           program, server.endpoint, arguments);
  FILE *f = popen(command, "r");
  assert_non_null(f);
  char *text = NULL;
  FILE *out = open_memstream(&text, size);
  for (int c; (c = fgetc(f)) != EOF;) fputc(c, out);
  *status = pclose(f);
  fclose(out);
  return text;
}

// Whether what is printed holds no command: ends of lines are all that is no character.
static bool is_text(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    if ((*c < 0x20 && *c != '\n') || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)) return false;
  return true;
}

static const char *const calls[] = {"hello",
                                    "health",
                                    "stats 7",
                                    "metrics",
                                    "models",
                                    "model m",
                                    "load m",
                                    "unload m",
                                    "tasks",
                                    "task t",
                                    "open t",
                                    "plan 7",
                                    "evaluate 7",
                                    "config 7",
                                    "tune 7 horizon=8",
                                    "revert 7 1",
                                    "reset 7",
                                    "close 7",
                                    "flight",
                                    "watch 7 --count 2 --interval 0.01",
                                    "trace 7 --seconds 0.1"};
enum { CALLS = sizeof calls / sizeof *calls };

// Returns the bytes printed. *escaped counts outputs that show an escape.
static size_t expect_text(const char *program, const char *arguments, int *escaped) {
  int status;
  size_t size;
  char *text = output_of(program, arguments, &status, &size);
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 2) fail_msg("%s %s: status %d", program, arguments, status);
  if (!is_text(text)) {
    for (char *c = text; *c; c++)
      if (*c == '\x1b') *c = '#';
    fail_msg("%s %s prints commands: %.300s", program, arguments, text);
  }
  *escaped += strstr(text, "\\x1b") || strstr(text, "\\u001b");
  free(text);
  return size;
}

static int call_all(void) {
  int escaped = 0;
  for (int i = 0; i < 2 * CALLS; i++) {
    char arguments[100];
    snprintf(arguments, sizeof arguments, "%s%s", i < CALLS ? "" : "--json ", calls[i % CALLS]);
    expect_text("sinewctl", arguments, &escaped);
  }
  expect_text("sinew-plant", "--task t --seconds 0.1", &escaped);
  expect_text("sinew-load", "--task t --seconds 0.1", &escaped);
  return escaped;
}

static void test_replies(void **state) {
  (void)state;
  const int escaped = call_all();
  print_message("%d answers, of %d outputs %d show escapes\n", atomic_load(&server.served), 2 * CALLS + 2, escaped);
  assert_true(escaped >= CALLS);
}

static void test_errors(void **state) {
  (void)state;
  server.error = strdup(hostile);
  const int escaped = call_all();
  print_message("%d answers, of %d outputs %d show escapes\n", atomic_load(&server.served), 2 * CALLS + 2, escaped);
  assert_true(escaped >= 2 * CALLS);
}

// A text of a megabyte is cut.
static void test_long_error(void **state) {
  (void)state;
  int escaped = 0;
  free(server.error);
  server.error = malloc(LONG + 1);
  assert_non_null(server.error);
  for (int i = 0; i < LONG; i++) server.error[i] = i % 2 ? '\x1b' : 'x';
  server.error[LONG] = '\0';
  assert_in_range(expect_text("sinewctl", "health", &escaped), 20, 4096);
  assert_in_range(expect_text("sinew-plant", "--task t --seconds 0.1", &escaped), 20, 4096);
  assert_int_equal(escaped, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_replies), cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_long_error)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
