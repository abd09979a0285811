// Sessions of the last daemon: each is opened again by a loader thread, under its id, while requests are served.
// Whoever asks for one that is on its way is told so.
//
// One that ends the daemon must not do so at each start. Those that were being restored when the daemon ended are
// restored one after the other, so that the mark of each counts its own faults; the third attempt goes without the warm
// start, and what has ended three daemons in a row is moved aside. A crash by the first plan after that counts as well.
#include <limits.h>
#include <string.h>
#include <time.h>

#include "daemon/requests/loader_private.h"
#include "physics/base/clock.h"

// Attempts, and those of them that are made with the warm start.
enum { ATTEMPTS = 4, COLD = 2, PAUSE_NS = 50000000 };

// Daemons that a session may have ended: from so many on it goes without its warm start, or is moved aside.
enum { TRIES_WARM = 2, TRIES = 3 };

// Loader threads take these jobs for those of one client: there is a thread left for others.
static const char route_name[] = "\0restored";

// The next one of those that are restored one by one has its turn.
static void next_suspect(SnDaemon *d) {
  pthread_mutex_lock(&d->loader.mutex);
  SnJob *job = d->loader.suspects;
  if (job && sn_queue_push(&d->loader.jobs, job)) d->loader.suspects = job->next;
  pthread_mutex_unlock(&d->loader.mutex);
}

void sn_restore_failed(SnDaemon *d, const SnJob *job, const SnError *err) {
  const bool suspect = job->kept->tries > 1;
  sn_sessions_unreserve(&d->sessions, &job->route);
  // That the daemon stops is not the session's fault.
  if (!sn_queue_closed(&d->loader.jobs)) sn_keeper_refuse(job->kept, err->text);
  sn_keeper_release(job->kept);
  if (suspect) next_suspect(d);
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

// One attempt, with the warm start or without. NULL and err, or *parked.
static SnSession *try_once(SnDaemon *d, SnJob *job, bool *cold, bool *parked, SnError *err) {
  const Sinew__V1__KeptSession *from = job->kept->from;
  Sinew__V1__KeptWarmStart *warm = *cold ? NULL : sn_keeper_warm_start(job->kept);
  Sinew__V1__OpenRequest in = opening(from, warm);
  *cold = !warm;
  SnSession *session = sn_loader_create(d, job, &in, from, parked, err);
  if (warm) protobuf_c_message_free_unpacked(&warm->base, NULL);
  return session;
}

// What keeps a model from being loaded may pass, whoever has tried it.
bool sn_restore_again(SnJob *job) { return job->restores && ++job->failed < ATTEMPTS; }

static void wait_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL); }

bool sn_restore_session(SnDaemon *d, SnJob *job) {
  const Sinew__V1__KeptSession *from = job->kept->from;
  if (job->failed > 0) wait_a_little();
  const double began = sn_clock_now();
  sn_keeper_mark(job->kept);
  const bool suspect = job->kept->tries > 1;
  bool parked = false, cold = job->kept->tries > TRIES_WARM;
  SnError err = {0};
  if (cold)
    sn_log_about(&d->log, SN_LOG_WARNING, (SnLogIds){.session = from->session},
                 "restored-cold: '%s', goes on without its warm start: %d sinewds ended while they restored it or made "
                 "its first plan",
                 from->name, job->kept->tries - 1);
  SnSession *session = try_once(d, job, &cold, &parked, &err);
  // A lack of memory or files passes. What does not may be the warm start's fault: the model is another one since.
  for (int k = 1; k < ATTEMPTS && !session && !parked && !sn_queue_closed(&d->loader.jobs); k++) {
    wait_a_little();
    if (k == COLD && !cold) {
      cold = true;
      sn_log_about(&d->log, SN_LOG_WARNING, (SnLogIds){.session = from->session},
                   "restored-cold: '%s', goes on without its warm start: %s", from->name, err.text);
    }
    err = (SnError){0};
    session = try_once(d, job, &cold, &parked, &err);
  }
  if (session) {
    sn_log_about(&d->log, SN_LOG_INFO, (SnLogIds){.session = session->id},
                 "restored: '%s', task %s, %s a warm start, in %.3f s", from->name, from->task,
                 cold ? "without" : "with", sn_clock_now() - began);
    job->kept->ends = job->kept->tries;  // from now on the planner thread's
    sn_loader_admit(d, job, session, NULL);
    if (suspect) next_suspect(d);
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

// Lines a session up to be restored, or moves it aside. Returns false when memory ends.
static bool begin_one(SnDaemon *d, SnKept *kept) {
  SnError err = {0};
  SnJob *job = make_job(kept);
  if (!job) return false;
  const bool suspect = kept->tries > 0;
  SnCode code = kept->tries < TRIES
                    ? SN_OK
                    : sn_fail(&err, SN_ERR_STATE,
                              "%d sinewds in a row ended while they restored it or made its first plan", kept->tries);
  if (code == SN_OK) code = sn_sessions_reserve(&d->sessions, &job->route, INT_MAX, &err);
  if (code == SN_OK && suspect) {
    pthread_mutex_lock(&d->loader.mutex);
    job->next = d->loader.suspects;
    d->loader.suspects = job;
    pthread_mutex_unlock(&d->loader.mutex);
    return true;
  }
  if (code == SN_OK && sn_queue_push(&d->loader.jobs, job)) return true;
  if (code == SN_OK) sn_sessions_unreserve(&d->sessions, &job->route);
  if (code == SN_OK) sn_fail(&err, SN_ERR_LIMIT, "too many requests wait for the loader threads");
  sn_keeper_refuse(kept, err.text);
  sn_keeper_release(kept);
  sn_job_free(job);
  return true;
}

SnCode sn_restore_sessions(SnDaemon *d, SnError *failure) {
  if (!d->keeper.running) return SN_OK;
  for (SnKept *kept = d->keeper.first, *next; kept; kept = next) {
    next = kept->next;  // one that is refused goes
    if (!begin_one(d, kept)) return sn_fail(failure, SN_ERR_MEMORY, "out of memory");
  }
  next_suspect(d);
  return SN_OK;
}
