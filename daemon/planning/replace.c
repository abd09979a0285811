// A newer state takes the place of the one before it. The event loop says so to whoever sent that one, however busy the
// planner thread is: that keeps what it plans for, and all else that it has fetched may be refused under its hands. So
// each state is claimed once, by who begins it or by who refuses it.
#include "daemon/planning/serve_private.h"
#include "physics/base/clock.h"

// Answers the state before the newest one, unless the planner thread has begun it.
static void refuse_older(SnScheduler *s, SnSession *session) {
  const SnLatest *old = &session->latest;
  if (!sn_session_claim(session, old->number)) return;
  sn_metrics_replaced(&session->metrics);
  sn_metrics_replaced(s->metrics);
  if (old->streams) return;
  const double now = sn_clock_now();
  Sinew__V1__Plan out = SINEW__V1__PLAN__INIT;
  out.session = session->id;
  out.status = SINEW__V1__PLAN__STATUS__REPLACED;
  out.state_time = old->time;
  out.age = now - old->route.arrived;
  const SnStages stages = {.arrived = old->route.arrived,
                           .due = old->due,
                           .state_time = out.state_time,
                           .status = (int)out.status,
                           .packed = now};
  sn_outbox_hold_plan(s->outbox, &old->route, &out, &stages);
}

// The older one is claimed before the planner thread can see the newer one, whose claim would stand for both.
void sn_scheduler_state(SnScheduler *s, SnJob *job) {
  SnSession *session = job->session;
  const Sinew__V1__Request *r = job->request;
  const bool streams = sn_job_streams(job);
  refuse_older(s, session);
  job->number = session->latest.number + 1;
  session->latest = (SnLatest){.number = job->number,
                               .route = job->route,
                               .streams = streams,
                               .time = streams ? r->stream_state->state->time : r->plan->state->time,
                               .due = job->due};
  sn_job_free(sn_mailbox_push(&session->states, job));
  sn_queue_wake(&s->commands);
}
