#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/realtime.h"
#include "daemon/base/threads.h"
#include "daemon/planning/backends_private.h"
#include "daemon/planning/serve_private.h"
#include "daemon/planning/turn_private.h"
#include "physics/base/clock.h"

// The thread says that it is alive at least this often, in seconds.
#define HEARTBEAT 0.25

// It stood still if it did not come round for so many seconds: the process was stopped, or a device took long.
#define PAUSE_TIME 0.5

// Background work is what has no deadline of its own: plans without one, evaluations. When it is overdue while others
// keep the planner busy, it gets one part in so many of the planner's time, all sessions together.
enum { BACKGROUND_PART = 10 };

// What it got while the planner was idle makes it wait for so many seconds at most.
#define BACKGROUND_WAIT 1.0

// Takes over sessions that were opened.
static void take_over(SnScheduler *s) {
  for (SnSession *session = atomic_exchange(&s->arriving, NULL), *next; session; session = next) {
    next = session->next;
    session->next = s->sessions;
    s->sessions = session;
    sn_record_greet(s, session);
  }
}

// Marks the sessions that are to go, new ones among them. This comes before the queue is drained: what was sent to a
// session before it was closed is then in the queue at the latest.
static void update_sessions(SnScheduler *s) {
  take_over(s);
  for (SnSession *p = s->sessions; p; p = p->next) p->leaving = atomic_load(&p->closing) && atomic_load(&p->holds) == 0;
}

static void refuse(SnScheduler *s, SnJob *job, Sinew__V1__Error__Code code, const char *text) {
  if (!job) return;
  job->route.no_session = code == SINEW__V1__ERROR__CODE__NOT_FOUND;  // nothing else is looked for here
  sn_outbox_error(s->outbox, &job->route, code, "%s", text);
  sn_planner_free(job->planner);
  sn_job_free(job);
}

// Refuses a state that was not begun, if no newer one has: then it has been answered.
static void refuse_state(SnScheduler *s, SnSession *session, SnJob *job, Sinew__V1__Error__Code code,
                         const char *text) {
  if (job && sn_session_claim(session, job->number))
    refuse(s, job, code, text);
  else
    sn_job_free(job);
}

// Answers what is left of a session that goes.
static void leave(SnScheduler *s, SnSession *session, Sinew__V1__Error__Code code, const char *text) {
  const bool stops = code == SINEW__V1__ERROR__CODE__SHUTTING_DOWN;
  SnJob *newest = sn_mailbox_pop(&session->states);
  if (sn_job_streams(newest))
    sn_job_free(newest);
  else
    refuse_state(s, session, newest, code, text);
  sn_serve_stream_end(s, session,
                      stops ? SINEW__V1__STREAM_REPLY__END__SHUTTING_DOWN : SINEW__V1__STREAM_REPLY__END__CLOSED);
  if (session->active) sn_serve_finish(s, session);
  refuse_state(s, session, session->waiting, code, text);
  session->waiting = NULL;
  sn_serve_drop_evaluation(session);
  for (SnJob *job = session->evaluations, *next; job; job = next) {
    next = job->next;
    atomic_fetch_sub(&s->evaluations, 1);
    refuse(s, job, code, text);
  }
  session->evaluations = NULL;
  sn_serve_snapshots(s, session);
  sn_record_close(s, session);
  if (stops) sn_serve_keep_warm(s, session, true);
  if (session->on_device)
    sn_session_free(session, s->models);
  else
    sn_reaper_session(&s->reaper, session);
}

static void free_leaving(SnScheduler *s) {
  for (SnSession **link = &s->sessions; *link;) {
    SnSession *session = *link;
    if (!session->leaving) {
      link = &session->next;
      continue;
    }
    *link = session->next;
    leave(s, session, SINEW__V1__ERROR__CODE__NOT_FOUND, "the session was closed");
  }
}

static void run_command(SnScheduler *s, SnJob *job) {
  SnSession *session = job->session;
  if (job->request->body_case == SINEW__V1__REQUEST__BODY_STREAM) {
    sn_serve_stream(s, job);
    return;
  }
  if (job->request->body_case != SINEW__V1__REQUEST__BODY_EVALUATE) {
    sn_serve_command(s, job);
    return;
  }
  if (atomic_load(&s->evaluations) >= s->config->queue) {
    refuse(s, job, SINEW__V1__ERROR__CODE__LIMIT, "too many evaluations are waiting already; try again later");
    return;
  }
  atomic_fetch_add(&s->evaluations, 1);
  job->next = NULL;
  *session->last_evaluation = job;
  session->last_evaluation = &job->next;
}

// Fetches the newest state of each session; the one that it replaces has been answered (replace.c). Such answers are
// sent now, between two slices: who carries them takes less from the slices then.
static void fetch_states(SnScheduler *s) {
  bool replaced = false;
  for (SnSession *p = s->sessions; p; p = p->next) {
    SnJob *newest = sn_mailbox_pop(&p->states);
    if (!newest) continue;
    newest->taken = sn_clock_now();
    replaced = replaced || p->waiting;
    sn_job_free(p->waiting);
    sn_turn_take(p, newest);
  }
  if (replaced) sn_outbox_wake(s->outbox);
}

// After the commands that came before them: states of streams renew their lease, without a stream they are refused;
// and they take the place of older ones whose time is over.
static void update_streams(SnScheduler *s) {
  const double now = sn_clock_now();
  for (SnSession *p = s->sessions; p; p = p->next) {
    if (sn_job_streams(p->waiting) && p->waiting->due == INFINITY) {
      if (p->stream.running) {
        sn_serve_stream_receive(p, p->waiting);
      } else {
        refuse_state(s, p, p->waiting, SINEW__V1__ERROR__CODE__STATE,
                     "this session has no stream; a StreamRequest begins one");
        p->waiting = NULL;
        p->turn_due = INFINITY;
      }
    }
    if (sn_serve_stream_over(p, now)) sn_serve_finish(s, p);
    sn_serve_stream_expire(s, p, now);
  }
}

// A device takes plans of sessions on one model along in the launch that one of them waits for. So plans that have a
// deadline are begun although their turn has not come, and those under way are shown to it. Rolling their states
// forward is the host's work: it may take half of what is left to the plan whose turn it is, the rest of them come
// later.
static void submit_others(SnScheduler *s, const SnSession *turn) {
  if (!turn->on_device || !sn_backends_device_works(&s->backends)) return;
  const double now = sn_clock_now(), until = now + 0.5 * (sn_turn_plan_due(s, turn) - now);
  for (SnSession *p = s->sessions; p && sn_clock_now() < until; p = p->next) {
    if (p == turn || !p->on_device || !sn_serve_has_plan(p)) continue;
    if (!p->active && (isinf(sn_turn_plan_due(s, p)) || !sn_serve_begin(s, p))) continue;
    sn_planner_submit(p->planner);
  }
}

static void slice(SnScheduler *s, SnSession *p, bool answers) {
  if (!p->active && !sn_serve_begin(s, p)) return;
  if (answers) sn_planner_stop(p->planner);
  submit_others(s, p);
  const bool streams = sn_job_streams(p->active);
  double now = sn_clock_now();
  double until = streams ? now + s->config->slice : fmin(now + s->config->slice, p->active_due);
  bool ready = sn_planner_slice(p->planner, until);
  double after = sn_clock_now();
  p->served += after - now;
  p->slices++;
  p->refined = sn_planner_is_refined(p->planner);
  const bool on_device = p->on_device && sn_backends_device_works(&s->backends);
  if (after >= until && !on_device) sn_lateness_note(&s->slices, after - until);
  if (streams)
    sn_serve_stream_update(s, p, ready);
  else if (ready || after >= p->active_due)
    sn_serve_finish(s, p);
}

// A plan that is the first one since its session was restored may be what ends the daemon.
static void plan_slice(SnScheduler *s, SnSession *p, bool answers) {
  const SnKept *restored = p->kept && p->kept->ends > 0 ? p->kept : NULL;
  if (restored) sn_keeper_first_plan(restored->keeper, restored);
  slice(s, p, answers);
  if (restored) sn_keeper_first_plan(restored->keeper, NULL);
}

static void work(SnScheduler *s, SnTurn turn) {
  SnSession *p = turn.session;
  const bool plans = sn_serve_has_plan(p) && !sn_turn_has_deadline(s, p);
  if (turn.background) s->account = p->account;
  if (turn.background && p->evaluations && (!plans || sn_turn_evaluation_urgency(s, p) < sn_turn_plan_urgency(s, p)))
    sn_serve_evaluation(s, p, s->now + s->config->slice);
  else
    plan_slice(s, p, turn.answers);
  const double after = sn_clock_now();
  sn_metrics_served(&p->metrics, after - s->now);
  sn_quota_spend(p->owner, after - s->now);
  if (!turn.background) return;
  p->account += after - s->now;
  s->background = fmin(fmax(s->background, after) + BACKGROUND_PART * (after - s->now), after + BACKGROUND_WAIT);
}

// Other threads wait for the device.
static void wake(void *context) {
  SnScheduler *s = context;
  sn_queue_wake(&s->commands);
}

// Whether something is to be done: with that, and without a turn, the thread would go round for nothing.
static bool has_work(const SnScheduler *s) {
  bool any = false;
  for (const SnSession *p = s->sessions; p; p = p->next) any = any || sn_serve_has_plan(p) || p->evaluations;
  return any;
}

// States of streams that came meanwhile are not read yet: their leases do not end before that.
static void forgive_pause(SnScheduler *s, double seconds) {
  if (seconds < PAUSE_TIME) return;
  for (SnSession *p = s->sessions; p; p = p->next) p->stream.heard += seconds;
}

static void serve(SnScheduler *s) {
  SnTurn turn = {0};
  double late;
  while (!atomic_load(&s->stopping)) {
    double now = sn_clock_now();
    forgive_pause(s, now - atomic_load(&s->alive));
    atomic_store(&s->alive, now);
    sn_backends_update(&s->backends);
    update_sessions(s);
    // States are taken before the queue is emptied: a command that was sent before a state is then done before it.
    SnJob *job = sn_queue_pop_late(&s->commands, turn.session ? 0 : now + HEARTBEAT, &late);
    if (!isnan(late)) sn_histogram_add(&s->wakes, late);
    take_over(s);  // one wake-up may stand for the opening of a session and for its first state
    fetch_states(s);
    for (; job; job = sn_queue_pop(&s->commands, 0)) run_command(s, job);
    free_leaving(s);
    update_streams(s);
    s->now = sn_clock_now();
    turn = sn_turn_choose(s);
    if (turn.session) work(s, turn);
    if (turn.session || !has_work(s)) atomic_fetch_add(&s->progress, 1);
  }
}

// Answers what waits and frees the sessions.
static void end(SnScheduler *s) {
  update_sessions(s);
  for (SnJob *job; (job = sn_queue_pop(&s->commands, 0));)
    refuse(s, job, SINEW__V1__ERROR__CODE__SHUTTING_DOWN, "the daemon stops");
  while (s->sessions) {
    SnSession *session = s->sessions;
    s->sessions = session->next;
    leave(s, session, SINEW__V1__ERROR__CODE__SHUTTING_DOWN, "the daemon stops");
  }
}

static void *scheduler_main(void *argument) {
  SnScheduler *s = argument;
  SnError err = {0};
  sn_thread_name("planner");
  SnCode code = sn_realtime_processors(s->config->planner_processors, &err);
  if (code == SN_OK) code = sn_realtime_priority(s->config->priority, &err);
  // Its threads are as this one, by their name, too.
  if (code == SN_OK) code = sn_backends_open(&s->backends, s->config, s->log, wake, s, &err);
  if (code != SN_OK) s->failed = err;
  sem_post(&s->opened);
  if (code == SN_OK) {
    serve(s);
    end(s);
  }
  sn_reaper_stop(&s->reaper);  // planners need their backends to go
  sn_backends_close(&s->backends);
  return NULL;
}

SnCode sn_scheduler_start(SnScheduler *s, const SnSchedulerDef *def, SnError *err) {
  s->config = def->config;
  s->log = def->log;
  s->outbox = def->outbox;
  s->records = def->records;
  s->models = def->models;
  s->metrics = def->metrics;
  atomic_store(&s->arriving, NULL);
  s->sessions = NULL;
  s->background = s->account = 0;
  s->slices = s->answers = (SnLateness){.n = 0};
  atomic_store(&s->answering, 0);
  atomic_store(&s->evaluations, 0);
  atomic_store(&s->alive, sn_clock_now());
  atomic_store(&s->stopping, false);
  if (!sn_queue_init(&s->commands, s->config->queue)) return sn_fail(err, SN_ERR_MEMORY, "out of memory");

  const SnCode code = sn_reaper_start(&s->reaper, s->models, err);
  if (code != SN_OK) return code;
  sem_init(&s->opened, 0, 0);
  if (pthread_create(&s->thread, NULL, scheduler_main, s) != 0)
    return sn_fail(err, SN_ERR_LIMIT, "cannot start the planner thread");
  s->running = true;
  while (sem_wait(&s->opened) != 0) continue;
  if (s->failed.code != SN_OK) *err = s->failed;
  return s->failed.code;
}

void sn_scheduler_add(SnScheduler *s, SnSession *session) {
  session->next = atomic_load(&s->arriving);
  while (!atomic_compare_exchange_weak(&s->arriving, &session->next, session)) continue;
  sn_queue_wake(&s->commands);
}

void sn_scheduler_sent(SnScheduler *s, double seconds) {
  sn_lateness_note(&s->answers, seconds);
  atomic_store(&s->answering, s->answers.expected);
}

bool sn_scheduler_command(SnScheduler *s, SnJob *job) { return sn_queue_push(&s->commands, job); }

void sn_scheduler_close(SnScheduler *s, SnSession *session) {
  atomic_store(&session->closing, true);
  sn_queue_wake(&s->commands);
}

void sn_scheduler_release(SnScheduler *s, SnSession *session) {
  atomic_fetch_sub(&session->holds, 1);
  sn_queue_wake(&s->commands);
}

void sn_scheduler_stop(SnScheduler *s) {
  if (s->running) {
    atomic_store(&s->stopping, true);
    sn_queue_close(&s->commands);
    pthread_join(s->thread, NULL);
    sem_destroy(&s->opened);
    sn_queue_free(&s->commands);
  }
  s->running = false;
  sn_reaper_stop(&s->reaper);
}
