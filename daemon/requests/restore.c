// Sessions of the last daemon: each is opened again by a loader thread, under its id, while requests are served.
// Whoever asks for one that is on its way is told so.
#include <limits.h>
#include <string.h>
#include <time.h>

#include "daemon/requests/loader_private.h"
#include "physics/base/clock.h"

enum { ATTEMPTS = 4, PAUSE_NS = 100000000 };

// Loader threads take these jobs for those of one client: there is a thread left for others.
static const char route_name[] = "\0restored";

void sn_restore_failed(SnDaemon *d, const SnJob *job, const SnError *err) {
  sn_sessions_unreserve(&d->sessions, &job->route);
  sn_keeper_refuse(job->kept, err->text);
  sn_keeper_release(job->kept);
}

// The opening that leads to where the session was: its settings, and its warm start, if there is one.
static Sinew__V1__OpenRequest opening(const Sinew__V1__KeptSession *from, Sinew__V1__KeptWarmStart *warm) {
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = from->task;
  in.seed = from->seed;
  in.planner = from->planner;
  in.session = from->settings;
  in.snapshot = warm ? warm->snapshot : NULL;
  return in;
}

// One attempt. NULL and err, or *parked. *cold says that it goes on without its warm start.
static SnSession *try_once(SnDaemon *d, SnJob *job, bool *parked, bool *cold, SnError *err) {
  const Sinew__V1__KeptSession *from = job->kept->from;
  Sinew__V1__KeptWarmStart *warm = sn_keeper_warm_start(job->kept);
  Sinew__V1__OpenRequest in = opening(from, warm);
  SnSession *session = sn_loader_create(d, job, &in, from, parked, err);
  if (!session && !*parked && warm && err->code != SN_ERR_MEMORY) {
    // The model may be another one since, or the daemon.
    sn_log_event(&d->log, SN_LOG_WARNING, "restored-cold: session %llu, '%s', goes on without its warm start: %s",
                 (unsigned long long)from->session, from->name, err->text);
    *err = (SnError){0};
    in.snapshot = NULL;
    session = sn_loader_create(d, job, &in, from, parked, err);
  }
  *cold = !in.snapshot;
  if (warm) protobuf_c_message_free_unpacked(&warm->base, NULL);
  return session;
}

bool sn_restore_session(SnDaemon *d, SnJob *job) {
  const Sinew__V1__KeptSession *from = job->kept->from;
  const double began = sn_clock_now();
  bool parked = false, cold = true;
  SnError err = {0};
  SnSession *session = NULL;
  // A lack of memory passes.
  for (int k = 0; k < ATTEMPTS && !session && !parked && (k == 0 || err.code == SN_ERR_MEMORY); k++) {
    if (k > 0) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    err = (SnError){0};
    session = try_once(d, job, &parked, &cold, &err);
  }
  if (session) {
    sn_log_event(&d->log, SN_LOG_INFO, "restored: session %llu, '%s', task %s, %s a warm start, in %.3f s",
                 (unsigned long long)session->id, from->name, from->task, cold ? "without" : "with",
                 sn_clock_now() - began);
    sn_loader_admit(d, job, session, NULL);
  } else if (!parked) {
    sn_restore_failed(d, job, &err);
  }
  return !parked;
}

// A job as a client's, but for the client.
static SnJob *make_job(SnKept *kept) {
  unsigned char bytes[SN_WIRE_NAME + 64];
  SnRoute route = {.peer = kept->owner, .arrived = sn_clock_now(), .size = sizeof route_name};
  memcpy(route.identity, route_name, sizeof route_name);
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.task = kept->from->task;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &in;
  SnJob *job = sn_job_create(&route, bytes, sinew__v1__request__pack(&request, bytes));
  if (!job) return NULL;
  job->kept = kept;
  job->restores = true;
  return job;
}

void sn_restore_sessions(SnDaemon *d) {
  if (!d->keeper.running) return;
  for (SnKept *kept = d->keeper.first, *next; kept; kept = next) {
    next = kept->next;  // one that is refused goes
    SnError err = {0};
    SnJob *job = make_job(kept);
    SnCode code = job ? sn_sessions_reserve(&d->sessions, &job->route, INT_MAX, &err)
                      : sn_fail(&err, SN_ERR_MEMORY, "out of memory");
    if (code == SN_OK && sn_queue_push(&d->loader.jobs, job)) continue;
    if (code == SN_OK) sn_sessions_unreserve(&d->sessions, &job->route);
    if (code == SN_OK) sn_fail(&err, SN_ERR_LIMIT, "too many requests wait for the loader threads");
    sn_keeper_refuse(kept, err.text);
    sn_keeper_release(kept);
    sn_job_free(job);
  }
}
