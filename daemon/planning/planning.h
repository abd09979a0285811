// The planner thread of a device: it owns the planners and decides whose turn it is.
//
// Every session has at most one plan in the making. The next slice (at most one iteration, at most config->slice
// seconds) goes to the one whose deadline plus the time it has already been served is nearest: earliest deadline first,
// where several with the same deadline share. A newer state ends a plan in the making early, at the latest when half of
// its own time has gone.
#ifndef SINEW_DAEMON_PLANNING_PLANNING_H_
#define SINEW_DAEMON_PLANNING_PLANNING_H_

#include <semaphore.h>

#include "daemon/planning/backends_private.h"
#include "daemon/base/queue.h"
#include "daemon/session/session.h"

typedef struct SnScheduler {
  const SnConfig *config;
  const SnLog *log;
  SnOutbox *outbox;
  SnModels *models;
  SnMetrics *metrics;   // of the whole daemon
  SnBackends backends;  // opened and closed by the thread; for others sn_backends_view and sn_backends_choose

  SnQueue commands;        // SnJob of anything but plans; a poke announces a state, a session or the end
  _Atomic double alive;    // when the thread last came round, on sn_clock_now()
  atomic_int evaluations;  // that wait or are under way, over all sessions; the thread's, others read
  atomic_bool stopping;
  pthread_mutex_t mutex;  // of arriving
  SnSession *arriving;    // opened, not yet taken over
  SnSession *sessions;    // this and what follows: the thread's
  double now;             // when it last chose
  double background;      // background work is not urgent before this time; it grows with what it was given

  pthread_t thread;
  bool running;
  sem_t opened;    // posted when the thread has opened the backends, or could not:
  SnError failed;  // why
} SnScheduler;

// Starts the thread, which opens the backends; returns when they are open. err on failure.
SnCode sn_scheduler_start(SnScheduler *scheduler, const SnConfig *config, const SnLog *log, SnOutbox *outbox,
                          SnModels *models, SnMetrics *metrics, SnError *err);

// Takes a session over. Any thread.
void sn_scheduler_add(SnScheduler *scheduler, SnSession *session);

// Hands a plan request over; the one that it replaces is answered. The event loop's.
void sn_scheduler_state(SnScheduler *scheduler, SnJob *job);

// Hands a command over; false when the queue is full, and the caller keeps the job. The event loop's, or that of a
// loader thread that holds the session.
bool sn_scheduler_command(SnScheduler *scheduler, SnJob *job);

// The session will be freed by the planner thread: the event loop, which has removed it from its table, must not touch
// it any more.
void sn_scheduler_close(SnScheduler *scheduler, SnSession *session);

// Lets go of a session that a loader thread held.
void sn_scheduler_release(SnScheduler *scheduler, SnSession *session);

// Ends the running slice, answers what waits, frees the sessions, joins the thread. A second call does nothing.
void sn_scheduler_stop(SnScheduler *scheduler);

#endif
