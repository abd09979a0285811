// Fuzz target: requests in a row, and subscriptions to records among them, at a sinewd in this process that lacks its
// sockets alone. Every input is a row of requests that the schema allows (message_maker.h), most of them at sessions
// that are open. What must hold: each request gets exactly one reply (of continuous mode: at least one begins it, any
// number follow), every reply and record can be read, and once all sessions are closed none is left.
//
// Sessions go on for a life of some inputs, since to open one costs as much as a row of requests. What ends the process
// leaves the life's inputs behind, as files of a folder that the first line of standard error names: `--only FOLDER`
// runs them again.
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/requests/requests.h"
#include "physics/base/clock.h"
#include "tests/fuzz/daemon_bounds.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message_maker.h"

enum { REQUESTS = 32, MESSAGE_BYTES = 1 << 16, SESSIONS = 4, RESTORE = 255, SUBSCRIBE = 254, NOTHING = 0 };

// Inputs of a life, how often an opening is tried, and what is asked in a life at most: each input ends streams, and to
// close sessions takes a few more.
enum { LIFE = 16, TRIES = 16, ASKED = LIFE * (REQUESTS + SESSIONS + TRIES) + 64 };

#define PATIENCE 60.0  // [s] until a reply that has not come is taken for lost, on a machine that does other things too

// A request that was sent.
typedef struct Asked {
  unsigned kind;
  int replies;
} Asked;

static SnDaemon *d;
static Asked asked[ASKED + 1];         // by id less base
static unsigned latest, answered;      // how many this life has asked, and of how many from the first all are answered
static uint64_t base;                  // id of the latest request of the lives before
static int lived;                      // inputs of this life
static char inputs[48];                // the folder of their files
static uint64_t opened[REQUESTS + 2];  // ids of sessions
static size_t nopened;
static Sinew__V1__Snapshot *snapshot;  // the latest that came, or NULL
static SnRoute route = {.size = 5};
static bool reached[256];  // kinds of replies that came, by their number in the schema
static bool recorded;      // a record came
static char refusal[256];  // text of the latest error

// Makes the folder of a life's inputs. Folders that nobody has touched for a day are of runs that have been killed.
static void make_folder(char *folder) {
  const char *clean = "find /dev/shm /tmp -maxdepth 1 -name 'fuzz-sequence.*' -mtime +0 -exec rm -rf {} + 2>/dev/null";
  if (system(clean) == -1 || (!mkdtemp(folder) && !mkdtemp(strcpy(folder, "/tmp/fuzz-sequence.XXXXXX"))))
    fuzz_fail("no folder");
  snprintf(inputs, sizeof inputs, "%s/inputs", folder);
  if (mkdir(inputs, 0700) != 0) fuzz_fail("%s cannot be made", inputs);
  fuzz_inputs = inputs;
  fprintf(stderr, "fuzz: inputs in %s\n", inputs);
}

// Writes the file of the present input of a life. Its first one takes the place of the life before.
static void keep(const uint8_t *data, size_t size) {
  char path[64];
  for (int i = 0; lived == 0 && i < LIFE; ++i) {
    snprintf(path, sizeof path, "%s/%02d", inputs, i);
    if (unlink(path) != 0) break;
  }
  if (lived == 0) utimensat(AT_FDCWD, d->config.cache, NULL, 0);  // in use: make_folder of other runs looks at it
  snprintf(path, sizeof path, "%s/%02d", inputs, lived);
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0) fuzz_fail("%s cannot be written", path);
}

static void start(void) {
  SnError err = {0};
  char folder[32] = "/dev/shm/fuzz-sequence.XXXXXX";  // in memory: settings are brought to the disk before an answer
  d = calloc(1, sizeof *d);
  if (!d) fuzz_fail("no memory");
  make_folder(folder);
  asked[0].kind = SINEW__V1__REQUEST__BODY_STREAM;
  d->log.fd = -1;
  d->started = sn_clock_now();
  SnConfig *c = &d->config;
  sn_config_default(c);
  strcpy(c->backend, "cpu");
  strcpy(c->importer, SN_TEST_BINARY_DIR "/sinew-import");
  strcpy(c->cache, folder);
  snprintf(c->state, sizeof c->state, "%s/state", folder);
  strcpy(c->models.item[0], SN_TEST_SOURCE_DIR "/fuzz/live");
  strcpy(c->tasks.item[0], SN_TEST_SOURCE_DIR "/fuzz/live");
  c->models.n = c->tasks.n = c->threads = c->loaders = 1;
  c->sessions = c->client_sessions = SESSIONS;
  c->message_bytes = MESSAGE_BYTES;
  c->horizon = c->candidates = 16;
  c->queue = 16;
  sn_metrics_init(&d->metrics);
  sn_budget_init(&d->budget, 16 << 20, 48 << 20);
  const SnSchedulerDef def = {c, &d->log, &d->outbox, &d->records, &d->models, &d->metrics};
  if (sn_access_init(&d->access, "", &err) != SN_OK || !sn_outbox_init(&d->outbox) ||
      !sn_records_init(&d->records, &d->outbox) || !sn_sessions_init(&d->sessions, c->sessions) ||
      !sn_wire_arena_init(&d->arena, sn_wire_arena_budget(MESSAGE_BYTES)) ||
      sn_models_init(&d->models, c, &err) != SN_OK ||
      sn_keeper_start(&d->keeper, c, &d->log, &d->outbox, &d->access, &err) != SN_OK ||
      sn_scheduler_start(&d->scheduler, &def, &err) != SN_OK || sn_loader_start(d, &err) != SN_OK)
    fuzz_fail("sinewd does not start: %s", err.text);
}

static bool streams(unsigned kind) {
  return kind == SINEW__V1__REQUEST__BODY_STREAM || kind == SINEW__V1__REQUEST__BODY_STREAM_STATE;
}

// Whether a reply may come in a later life than its request: the end of a stream, a refusal of its states; a plan of
// it, which the planner thread was at when the session was closed.
static bool may_be_late(const Sinew__V1__Reply *reply) {
  return reply->body_case == SINEW__V1__REPLY__BODY_STREAM || reply->body_case == SINEW__V1__REPLY__BODY_ERROR ||
         (reply->body_case == SINEW__V1__REPLY__BODY_PLAN && reply->plan->stream_sequence > 0);
}

// Fails for a reply to a request of an earlier life, and tells of it and of the sessions that the planner thread has.
static void fail_late(const Sinew__V1__Reply *reply) {
  const Sinew__V1__Plan *plan = reply->body_case == SINEW__V1__REPLY__BODY_PLAN ? reply->plan : NULL;
  for (const SnSession *p = d->scheduler.sessions; p; p = p->next)
    fprintf(stderr, "fuzz: session %llu, held by %d, closing %d, streams %d\n", (unsigned long long)p->id,
            atomic_load(&p->holds), atomic_load(&p->closing), p->stream.running);
  if (plan)
    fprintf(stderr, "fuzz: plan %llu of session %llu, status %u, of a stream %llu, age %g s\n",
            (unsigned long long)plan->sequence, (unsigned long long)plan->session, (unsigned)plan->status,
            (unsigned long long)plan->stream_sequence, plan->age);
  fuzz_fail("request %llu of an earlier life, %llu before this one, has a reply of kind %u",
            (unsigned long long)reply->id, (unsigned long long)(base - reply->id), (unsigned)reply->body_case);
}

static void take_reply(const SnReply *p) {
  Sinew__V1__Reply *reply = sinew__v1__reply__unpack(NULL, p->size, p->bytes);
  if (!reply || reply->id != p->route.id || reply->id == 0 || reply->id > base + latest)
    fuzz_fail("a reply that is none");
  const bool ended = reply->id <= base;
  if (ended && !may_be_late(reply)) fail_late(reply);
  Asked *a = &asked[ended ? 0 : reply->id - base];
  if (a->replies++ > 0 && !streams(a->kind))
    fuzz_fail("request %u of kind %u has two replies", (unsigned)(reply->id - base), a->kind);
  reached[reply->body_case] = true;
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) snprintf(refusal, sizeof refusal, "%s", reply->error->text);
  if (reply->body_case == SINEW__V1__REPLY__BODY_OPEN && nopened < REQUESTS + 2)
    opened[nopened++] = reply->open->session;
  if (reply->body_case == SINEW__V1__REPLY__BODY_SNAPSHOT) {
    if (snapshot) sinew__v1__snapshot__free_unpacked(snapshot, NULL);
    snapshot = reply->snapshot;
    reply->snapshot = NULL;
  }
  sinew__v1__reply__free_unpacked(reply, NULL);
}

static void take_replies(void) {
  for (SnReply *p = sn_outbox_pop_all(&d->outbox), *next; p; p = next) {
    next = p->next;
    SnSession *session = p->route.session ? sn_sessions_find(&d->sessions, p->route.session) : NULL;
    sn_counters_reply(&d->counters, session ? &session->outcomes : NULL, p, sn_clock_now());
    if (session) sn_traces_add(&session->traces, p, sn_clock_now());
    take_reply(p);
    free(p);
  }
  for (SnRecordMessage *p = sn_records_pop_all(&d->records), *next; p; p = next) {
    next = p->next;
    Sinew__V1__Record *record = sinew__v1__record__unpack(NULL, p->size, p->bytes);
    if (!record) fuzz_fail("a record that is none");
    recorded = true;
    sinew__v1__record__free_unpacked(record, NULL);
    free(p);
  }
}

// Waits until there are replies or records, or a moment has passed.
static void wait_for_replies(void) { poll(&(struct pollfd){.fd = d->outbox.wake, .events = POLLIN}, 1, 100); }

// Waits for the reply to a request. A state of the stream has one when it is refused, a plan has the number of the
// stream's request.
static void await(unsigned id) {
  const double until = sn_clock_now() + PATIENCE;
  for (take_replies(); asked[id].replies == 0; take_replies()) {
    if (asked[id].kind == SINEW__V1__REQUEST__BODY_STREAM_STATE) return;
    if (sn_clock_now() > until) fuzz_fail("request %u of kind %u has no reply", id, asked[id].kind);
    wait_for_replies();
  }
}

static void await_all(void) {
  while (answered < latest) await(++answered);
}

// Names that there are: of the task, its model, its terms, choices of a setting; or any of some.
static const char *text_of(const ProtobufCMessageDescriptor *message, const char *field, unsigned byte) {
  static const char *const other[] = {"small", "small.xml", "reach", "adam", "8x1", "4x1,2x2", "no_such", "double"};
  static const char *const term[] = {"reach", "pose", "effort"};
  static char choice[64];
  if (byte % 16 == 15) return other[byte / 16 % (sizeof other / sizeof *other)];
  if (!strcmp(field, "task")) return "small";
  if (!strcmp(message->short_name, "OpenRequest")) return byte % 8 == 7 ? "kept" : "";  // its name: mostly none
  if (!strcmp(field, "model")) return "small.xml";
  if (!strcmp(message->short_name, "TermSettings")) return term[byte % 3];
  const int i = sn_settings_find(field);
  if (i >= 0 && sn_settings_info(i)->choices && !strcmp(message->short_name, "PlannerSettings"))
    for (int value = (int)byte % 8; value >= 0; --value)
      if (*sn_settings_choice_name(i, value, choice, sizeof choice)) return choice;
  return other[byte % (sizeof other / sizeof *other)];
}

// Sizes of the model, or any of some. A plan of few rows and one of many.
static unsigned length_of(const char *field, unsigned byte) {
  enum { NQ = 5, NV = 4, NA = 1, NU = 2, POSE = 7, HORIZON = 8 };
  static const unsigned other[] = {0, 1, 3, 16, 128, 4000};
  if (byte >= 128) return other[byte % (sizeof other / sizeof *other)];
  if (!strcmp(field, "qpos")) return NQ;
  if (!strcmp(field, "qvel")) return NV;
  if (!strcmp(field, "act")) return NA;
  if (!strcmp(field, "mocap")) return byte % 2 ? POSE : 0;
  if (!strcmp(field, "target")) return byte % 4;
  if (!strcmp(field, "history")) return 0;
  if (!strcmp(field, "time")) return byte % HORIZON;
  return NU * (byte % 4 ? HORIZON : byte % HORIZON);
}

static void handle(unsigned kind, const uint8_t *frame, size_t size) {
  asked[++latest] = (Asked){.kind = kind};
  route.arrived = sn_clock_now();
  sn_handle_frame(d, &route, frame, size);
  take_replies();
}

static void send(unsigned kind, FuzzBytes *input) {
  static uint8_t frame[MESSAGE_BYTES];
  const FuzzHints hints = {text_of, length_of, opened, nopened, true, fuzz_daemon_bounds};
  const size_t size =
      fuzz_message(input, &hints, &sinew__v1__request__descriptor, kind, base + latest + 1, frame, sizeof frame);
  handle(kind, frame, size);
}

// Whether a request that was changed still has its number: a tag that was changed can be that of a second one, which
// then counts.
static bool keeps_number(const uint8_t *frame, size_t size, uint64_t id) {
  Sinew__V1__Request *changed = sinew__v1__request__unpack(NULL, size, frame);
  const bool keeps = !changed || changed->id == id;
  sinew__v1__request__free_unpacked(changed, NULL);
  return keeps;
}

// Begins a session again from the latest snapshot, with some of its bytes changed.
static void restore(FuzzBytes *input) {
  static uint8_t frame[MESSAGE_BYTES];
  const unsigned changes = fuzz_byte(input) % 4;
  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  reset.session = opened[nopened - 1];
  reset.snapshot = snapshot;
  request.id = base + latest + 1;
  const size_t head = sinew__v1__request__get_packed_size(&request);  // the id, which must stay
  request.body_case = SINEW__V1__REQUEST__BODY_RESET;
  request.reset = &reset;
  const size_t size = sinew__v1__request__get_packed_size(&request);
  if (!snapshot || size > sizeof frame) return;
  sinew__v1__request__pack(&request, frame);
  for (unsigned k = 0; k < changes; ++k) {
    const size_t at = fuzz_byte(input) << 8;
    frame[head + (at | fuzz_byte(input)) % (size - head)] ^= (uint8_t)fuzz_byte(input);
  }
  if (keeps_number(frame, size, request.id)) handle(SINEW__V1__REQUEST__BODY_RESET, frame, size);
}

// What a subscriber to records sends.
static void subscribe(FuzzBytes *input) {
  const size_t left = (size_t)(input->end - input->at), n = fuzz_byte(input) % (SN_TOPIC + 8);
  sn_records_subscribe(&d->records, input->at, n < left ? n : left - 1);
  input->at += n < left ? n : left - 1;
}

// Ends a life: closes what is open, until nothing is. The files of its inputs stay until the next one begins, so that
// those who find this too slow have them.
static void end_life(void) {
  await_all();
  SnSession *const *all;
  for (int i = 0, n; (all = sn_sessions_all(&d->sessions, &n)), n > 0; ++i) {
    if (i == SESSIONS) fuzz_fail("a session stays");
    opened[0] = all[0]->id;
    nopened = 1;
    send(SINEW__V1__REQUEST__BODY_CLOSE, &(FuzzBytes){NULL, NULL});
    await_all();
  }
  if (snapshot) sinew__v1__snapshot__free_unpacked(snapshot, NULL);
  snapshot = NULL;
  base += latest;
  latest = answered = 0;
  lived = 0;
}

static void stop(void) {
  char clean[600];
  if (!d) return;
  snprintf(clean, sizeof clean, "rm -rf %s", d->config.cache);
  end_life();
  sn_loader_stop(d);
  sn_scheduler_stop(&d->scheduler);
  sn_keeper_stop(&d->keeper);
  sn_models_free(&d->models);
  sn_wire_arena_free(&d->arena);
  sn_sessions_free(&d->sessions);
  sn_records_free(&d->records);
  sn_outbox_free(&d->outbox);
  free(d->metrics_text.text);
  sn_budget_free(&d->budget);
  sn_access_free(&d->access);
  free(d);
  d = NULL;
  base = 0;
  if (system(clean) != 0) abort();
}

// Begins a life, or goes on with it: there is a session, to which most of an input is sent. An opening may be refused
// for a while, since what belongs to closed sessions is freed later: it is tried for a minute.
static void live(const uint8_t *data, size_t size) {
  keep(data, size);
  if (lived++ == 0) {
    sn_records_forget(&d->records);
    sn_records_subscribe(&d->records, "\1", 1);
  }
  for (int i = 0; sn_sessions_count(&d->sessions) == 0; ++i) {
    if (i == TRIES) fuzz_fail("a usual opening is refused: %s", refusal);
    if (i > 0) poll(NULL, 0, 1 << i);
    send(SINEW__V1__REQUEST__BODY_OPEN, &(FuzzBytes){NULL, NULL});
    await_all();
  }
  int n;
  SnSession *const *all = sn_sessions_all(&d->sessions, &n);
  for (nopened = 0; nopened < (size_t)n; nopened++) opened[nopened] = all[nopened]->id;
}

// Ends the streams that an input leaves behind: they would take the processor for good.
static void end_streams(void) {
  int n;
  await_all();
  SnSession *const *all = sn_sessions_all(&d->sessions, &n);
  for (int i = 0; i < n; ++i) {
    const SnSession *session = all[i];
    if (!atomic_load(&session->streaming)) continue;
    static uint8_t frame[64];
    Sinew__V1__StreamRequest stream = SINEW__V1__STREAM_REQUEST__INIT;
    Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
    stream.session = session->id;
    stream.stop = true;
    request.id = base + latest + 1;
    request.body_case = SINEW__V1__REQUEST__BODY_STREAM;
    request.stream = &stream;
    handle(SINEW__V1__REQUEST__BODY_STREAM, frame, sinew__v1__request__pack(&request, frame));
  }
  await_all();
}

// Whether a kind of request reads a task or a model, or makes what plans for it. Of such an input has one of a kind,
// whatever it names, since it costs as much as several others.
static bool is_dear(unsigned kind) {
  return kind == SINEW__V1__REQUEST__BODY_LIST_MODELS || kind == SINEW__V1__REQUEST__BODY_LIST_TASKS ||
         kind == SINEW__V1__REQUEST__BODY_DESCRIBE_MODEL || kind == SINEW__V1__REQUEST__BODY_DESCRIBE_TASK ||
         kind == SINEW__V1__REQUEST__BODY_LOAD_MODEL;
}

// The kind of the next request, and whether its reply is awaited before the one after it is sent.
static unsigned next_kind(FuzzBytes *input, bool *wait) {
  const ProtobufCMessageDescriptor *r = &sinew__v1__request__descriptor;
  const unsigned c = fuzz_byte(input), kinds = r->n_fields - 1;
  *wait = c / kinds % 2;
  return r->fields[1 + c % kinds].id;
}

void fuzz_one(const uint8_t *data, size_t size) {
  FuzzBytes input = {data, data + size};
  if (!d) {
    start();
    if (!fuzz_anew) atexit(stop);
    fuzz_anew = stop;
  }
  bool dear[256] = {false};  // kinds of this input
  route.peer = &d->access.local;
  live(data, size);
  for (const unsigned first = latest; input.at < input.end && latest - first < REQUESTS;) {
    bool wait;
    const unsigned next = *input.at;
    if (next >= SUBSCRIBE || next == NOTHING) {
      fuzz_byte(&input);
      if (next == RESTORE) restore(&input);
      if (next == SUBSCRIBE && input.at < input.end) subscribe(&input);
      continue;
    }
    const unsigned kind = next_kind(&input, &wait);
    if (dear[kind]) continue;
    dear[kind] = is_dear(kind);
    send(kind, &input);
    if (wait || kind == SINEW__V1__REQUEST__BODY_OPEN) await(latest);
  }
  end_streams();
  if (lived == LIFE) end_life();
}

const char *fuzz_missing(void) {
  const ProtobufCMessageDescriptor *r = &sinew__v1__reply__descriptor;
  // The first field is the id. There is no flight recorder, and a model is in use until its sessions have been freed.
  for (unsigned i = 1; i < r->n_fields; ++i)
    if (!reached[r->fields[i].id] && r->fields[i].id != SINEW__V1__REPLY__BODY_FLIGHT &&
        r->fields[i].id != SINEW__V1__REPLY__BODY_UNLOAD_MODEL)
      return r->fields[i].name;
  return recorded ? NULL : "a record";
}

// Rows of each kind of request, short and long, and rows by chance.
size_t fuzz_seed(int i, uint8_t *bytes) {
  enum { CHANCE = 12, LENGTH = 160 };
  const int kinds = (int)sinew__v1__request__descriptor.n_fields - 1;
  if (i >= 2 * kinds + CHANCE) return 0;
  memset(bytes, 0, LENGTH);
  if (i < 2 * kinds) {  // one kind, whose replies are awaited; the rest of each message is usual
    for (int k = 3; k < LENGTH; k += 13) bytes[k] = (uint8_t)(i + kinds);
    return i < kinds ? 40 : LENGTH;
  }
  if (i == 2 * kinds) {
    memcpy(bytes + 3, "\x1d\0\0\x28\0\0\xff\1\1\2\3\xff\3\0\x90\x10\0\xa0\x40", 19);
    return 22;
  }
  uint64_t x = 88172645463325252ull + (uint64_t)i;
  for (size_t k = 4; k < LENGTH; ++k) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    bytes[k] = (uint8_t)(x % 3 ? x >> 20 & 0x3f : x >> 20);
  }
  return LENGTH;
}
