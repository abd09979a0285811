// Fuzz target: one frame from a client, from its bytes to the queue of the thread that would carry it out. The daemon
// is put together without threads and sockets; one session is open, so that checks against a model are reached too.
#include <stdlib.h>
#include <string.h>

#include "daemon/requests/requests.h"
#include "tests/fuzz/daemon_bounds.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message_maker.h"

enum { SESSION = 123456789, MESSAGE_BYTES = 1 << 20, KINDS = 256 };

static bool reached[KINDS];  // kinds of requests of which one was carried out, or handed on to who does

static SnDaemon *make_daemon(void) {
  SnDaemon *d = calloc(1, sizeof *d);
  if (!d) abort();
  sn_config_default(&d->config);
  d->log.fd = -1;
  if (sn_access_init(&d->access, "", NULL) != SN_OK) abort();
  sn_metrics_init(&d->metrics);
  d->scheduler.config = d->models.config = &d->config;
  pthread_mutex_init(&d->models.mutex, NULL);
  bool ok = sn_outbox_init(&d->outbox) && sn_sessions_init(&d->sessions, d->config.sessions) &&
            sn_wire_arena_init(&d->arena, sn_wire_arena_budget(MESSAGE_BYTES)) &&
            sn_queue_init(&d->scheduler.commands, 4) && sn_queue_init(&d->loader.jobs, 4);
  d->scheduler.outbox = &d->outbox;
  d->scheduler.metrics = &d->metrics;
  if (!ok) abort();
  return d;
}

static void make_session(SnSession *session, SnTask *task) {
  static char name[] = "fuzz";
  static SnLoadedModel loaded = {.name = name};
  *session =
      (SnSession){.id = SESSION, .task = task, .loaded = &loaded, .nq = 2, .nv = 2, .na = 6, .nu = 6, .nmocap = 1};
  sn_metrics_init(&session->metrics);
  atomic_store(&session->lease, 30);
}

static void hand_on(SnJob *job) {
  if (job) reached[job->route.kind] = true;
  sn_job_free(job);
}

// What the threads would have done.
static void drain(SnDaemon *d, SnSession *session) {
  for (SnJob *job; (job = sn_queue_pop(&d->scheduler.commands, 0));) hand_on(job);
  for (SnJob *job; (job = sn_queue_pop(&d->loader.jobs, 0));) {
    if (job->request->body_case == SINEW__V1__REQUEST__BODY_OPEN) sn_sessions_unreserve(&d->sessions, &job->route);
    if (job->session) atomic_fetch_sub(&job->session->holds, 1);
    hand_on(job);
  }
  hand_on(sn_mailbox_pop(&session->states));
  for (SnReply *p = sn_outbox_pop_all(&d->outbox), *next; p; p = next) {
    next = p->next;
    Sinew__V1__Reply *reply = sinew__v1__reply__unpack(NULL, p->size, p->bytes);
    if (!reply || reply->id != p->route.id) abort();
    if (!p->error) reached[p->route.kind] = true;
    sinew__v1__reply__free_unpacked(reply, NULL);
    free(p);
  }
}

void fuzz_one(const uint8_t *data, size_t size) {
  static SnDaemon *d;
  static SnSession session;
  static SnTask task = {.name = "fuzz"};
  static SnRoute route = {.size = 5};
  if (!d) d = make_daemon();
  SnPeer *peer = route.peer = &d->access.local;
  if (size > MESSAGE_BYTES) return;
  if (!sn_sessions_find(&d->sessions, SESSION) && sn_sessions_reserve(&d->sessions, &route, 1, NULL) == SN_OK) {
    make_session(&session, &task);
    session.owner = peer;
    sn_sessions_add(&d->sessions, &session);
  }
  sn_handle_frame(d, &route, data, size);
  drain(d, &session);
}

const char *fuzz_missing(void) {
  const ProtobufCMessageDescriptor *d = &sinew__v1__request__descriptor;
  for (unsigned i = 1; i < d->n_fields; ++i)  // the first field is the id; there is no flight recorder
    if (!reached[d->fields[i].id] && d->fields[i].id != SINEW__V1__REQUEST__BODY_FLIGHT) return d->fields[i].name;
  return fuzz_daemon_unbounded();
}

static const char *text_of(const ProtobufCMessageDescriptor *message, const char *field, unsigned byte) {
  static const char *const text[] = {"arm_reach", "adam", "cubic", "64x1"};
  if (!strcmp(message->short_name, "OpenRequest") && !strcmp(field, "name")) return "";  // no session is kept
  return text[byte % (sizeof text / sizeof *text)];
}

// Sizes of the session that is open.
static unsigned length_of(const char *field, unsigned byte) {
  static const unsigned other[] = {12, 1, 0};
  const unsigned usual = !strcmp(field, "act") || !strcmp(field, "ctrl") ? 6
                         : !strcmp(field, "mocap")                       ? 7
                         : !strcmp(field, "history")                     ? 0
                                                                         : 2;
  return byte < 128 ? usual : other[byte % 3];
}

// A request of every kind, in several variants.
size_t fuzz_seed(int i, uint8_t *bytes) {
  enum { VARIANTS = 4, LENGTH = 64 };
  static const uint64_t id[] = {SESSION};
  const FuzzHints hints = {text_of, length_of, id, 1, i % 2 == 0, fuzz_daemon_bounds};
  const ProtobufCMessageDescriptor *d = &sinew__v1__request__descriptor;
  const unsigned kind = (unsigned)i / VARIANTS + 1;  // the first field is the id
  uint8_t chosen[LENGTH] = {0};
  if (kind >= d->n_fields) return 0;
  for (size_t k = 0; i % VARIANTS > 1 && k < LENGTH; ++k) chosen[k] = (uint8_t)((unsigned)i * 37 + k * k * 11);
  return fuzz_message(&(FuzzBytes){chosen, chosen + LENGTH}, &hints, d, d->fields[kind].id, 1, bytes, FUZZ_SEED_BYTES);
}
