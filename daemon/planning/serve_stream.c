// Continuous mode: the newest state of the stream is refined without end, and every better plan goes out at once.
//
// A plan goes out when it is the first for its state, when it costs less than the last one that went out for it, or
// when the configuration has changed since, so that costs do not compare. A client that says what it has read never
// has more than a window of plans on its way: what is better meanwhile waits in the planner, where the newest wins.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "daemon/planning/serve_private.h"
#include "physics/base/clock.h"
#include "physics/base/number_text.h"
#include "proto/validate.h"

enum { WINDOW = 32, ITERATIONS_MAX = 1000000 };

bool sn_job_streams(const SnJob *job) {
  return job && job->request->body_case == SINEW__V1__REQUEST__BODY_STREAM_STATE;
}

bool sn_serve_has_plan(const SnSession *session) {
  return session->active || (session->waiting && (!sn_job_streams(session->waiting) || session->stream.running));
}

int sn_stream_iterations(const SnSession *session) {
  return session->stream.iterations > 0 ? session->stream.iterations : ITERATIONS_MAX;
}

static void send_reply(SnScheduler *s, const SnSession *session, const SnRoute *route,
                       Sinew__V1__StreamReply__End end) {
  const SnStream *st = &session->stream;
  Sinew__V1__StreamReply out = SINEW__V1__STREAM_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  out.session = session->id;
  out.end = end;
  out.lease = st->lease;
  out.states = st->states;
  out.plans = st->sent;
  out.misses = st->misses;
  if (end == SINEW__V1__STREAM_REPLY__END__RUNNING)
    out.warning = (char *)(uintptr_t)sn_stream_remark(&session->settings);
  reply.body_case = SINEW__V1__REPLY__BODY_STREAM;
  reply.stream = &out;
  sn_outbox_reply(s->outbox, route, &reply);
}

// Forgets what is in work for the stream.
static void stop(SnScheduler *s, SnSession *session) {
  session->stream.running = false;
  atomic_store(&session->streaming, false);
  if (sn_job_streams(session->active)) sn_serve_finish(s, session);
  if (!sn_job_streams(session->waiting)) return;
  sn_session_claim(session, session->waiting->number);
  sn_job_free(session->waiting);
  session->waiting = NULL;
  session->turn_due = INFINITY;
}

void sn_serve_stream_end(SnScheduler *s, SnSession *session, Sinew__V1__StreamReply__End end) {
  if (!session->stream.running) return;
  stop(s, session);
  send_reply(s, session, &session->stream.route, end);
}

void sn_serve_stream_expire(SnScheduler *s, SnSession *session, double now) {
  const SnStream *st = &session->stream;
  if (!st->running || now - st->heard <= st->lease) return;
  sn_log_about(s->log, SN_LOG_WARNING, (SnLogIds){.session = session->id, .request = st->route.id},
               "stream-expired: no state for %.2f s", now - st->heard);
  sn_serve_stream_end(s, session, SINEW__V1__STREAM_REPLY__END__LEASE);
}

static void begin(const SnScheduler *s, SnSession *session) {
  const char *remark = sn_stream_remark(&session->settings);
  session->stream = (SnStream){.running = true};
  if (*remark) sn_log_about(s->log, SN_LOG_WARNING, (SnLogIds){.session = session->id}, "stream: %s", remark);
}

void sn_serve_stream(SnScheduler *s, SnJob *job) {
  SnSession *session = job->session;
  SnStream *st = &session->stream;
  const Sinew__V1__StreamRequest *in = job->request->stream;
  SnError err;
  if (in->stop) {
    if (st->running) stop(s, session);
    send_reply(s, session, &job->route, SINEW__V1__STREAM_REPLY__END__STOPPED);
  } else if (!(in->lease >= SN_WIRE_LEASE && in->lease <= SN_WIRE_WAIT)) {
    sn_outbox_error(s->outbox, &job->route, SINEW__V1__ERROR__CODE__INVALID,
                    "StreamRequest.lease: %s is out of bounds, allowed is %g to %g", sn_number_text(in->lease).text,
                    SN_WIRE_LEASE, SN_WIRE_WAIT);
  } else if (in->gain_rows > 0 && sn_planner_check_gains(session->planner, &err) != SN_OK) {
    sn_outbox_error(s->outbox, &job->route, sn_wire_code(err.code), "%s", err.text);
  } else {
    if (!st->running) begin(s, session);
    st->route = job->route;
    st->heard = job->route.arrived;
    st->lease = in->lease;
    st->deadline = in->deadline > 0 ? in->deadline : in->lease;
    st->period = in->period;
    st->iterations = (int)in->iterations;
    st->want_states = in->want_states;
    st->gain_rows = (int)in->gain_rows;
    atomic_store(&session->streaming, true);
    send_reply(s, session, &job->route, SINEW__V1__STREAM_REPLY__END__RUNNING);
  }
  sn_job_free(job);
}

void sn_serve_stream_receive(SnSession *session, SnJob *job) {
  const Sinew__V1__StreamState *in = job->request->stream_state;
  SnStream *st = &session->stream;
  job->due = job->route.arrived + st->deadline;
  st->heard = fmax(st->heard, job->route.arrived);
  // A client that has connected anew goes on where it was.
  st->route.size = job->route.size;
  memcpy(st->route.identity, job->route.identity, job->route.size);
  if (!in->has_seen_case) return;
  st->says_seen = true;
  if (in->seen > st->seen && in->seen <= st->sent) st->seen = in->seen;
}

void sn_serve_stream_begin(SnSession *session) {
  SnStream *st = &session->stream;
  st->states++;
  st->made = st->answered = st->in_time = false;
  st->looked_at = st->counted = 0;
  st->ended = sn_clock_now();
  st->took = 0;
  st->cost = INFINITY;
}

// The first plan for a state: was it in time?
static void count_first_plan(SnScheduler *s, SnSession *session, SnTiming timing) {
  SnStream *st = &session->stream;
  if (st->made) return;
  st->made = true;
  st->in_time = timing.in_time;
  st->misses += !st->in_time;
  sn_serve_count_answer(s, session, timing);
}

// Whether so many plans are on their way to the client that it has to read on first.
static bool window_is_full(const SnStream *st) { return st->says_seen && st->sent - st->seen >= WINDOW; }

// False when the plan waits for the client to read on, or for memory.
static bool offer(SnScheduler *s, SnSession *session, const SnJob *job, const SnPlan *plan) {
  SnStream *st = &session->stream;
  if (!st->running || plan->status == SN_PLAN_WARM_START) return true;
  const double now = sn_clock_now();
  const SnTiming timing = sn_job_timing(job, now);
  const bool first = !st->answered;
  count_first_plan(s, session, timing);
  if (st->answered && plan->version == st->version && !(plan->cost_after < st->cost)) return true;
  if (window_is_full(st)) return false;
  SnScratch scratch = {0};
  Sinew__V1__Plan out = SINEW__V1__PLAN__INIT;
  sn_serve_pack_plan(&scratch, session, plan, &out);
  out.age = timing.age;
  out.deadline_met = st->in_time;
  out.stream_sequence = st->sent + 1;
  out.stream_misses = st->misses;
  const bool packed = !scratch.failed;
  if (packed) {
    st->answered = true;
    st->version = plan->version;
    st->cost = plan->cost_after;
    st->sent++;
    sn_serve_send_plan(s, session, &st->route, job, &out, now, first);
    sn_metrics_streamed(&session->metrics);
    sn_metrics_streamed(s->metrics);
    sn_serve_count_plan(s, session, &out, now);
  }
  sn_scratch_free(&scratch);
  return packed;
}

void sn_serve_stream_offer(SnScheduler *s, SnSession *session, const SnJob *job, const SnPlan *plan) {
  if (!offer(s, session, job, plan) && !session->stream.answered && !window_is_full(&session->stream))
    sn_outbox_error(s->outbox, &job->route, SINEW__V1__ERROR__CODE__LIMIT, "out of memory");
  sn_metrics_iterations(&session->metrics, plan->iterations - session->stream.looked_at);
}

// Notes when iterations of the state in work end.
static void note_iterations(SnSession *session) {
  SnStream *st = &session->stream;
  const int done = sn_planner_iterations(session->planner);
  if (done == st->counted) return;
  const double now = sn_clock_now();
  st->took = (now - st->ended) / (done - st->counted);
  st->ended = now;
  st->counted = done;
}

// Whether the state in work has had its period: no further iteration ends within it, if that takes as long as the last.
// An iteration that was begun is given up only where it takes far longer.
static bool had_period(const SnSession *session, double now) {
  const SnStream *st = &session->stream;
  return st->ended + st->took > session->began + st->period || now > session->began + st->period + st->took;
}

bool sn_serve_stream_over(const SnSession *session, double now) {
  const SnJob *next = session->waiting;
  if (!sn_job_streams(session->active) || !next) return false;
  const bool refined = sn_planner_is_refined(session->planner) && !sn_planner_is_tracing(session->planner);
  if (sn_job_streams(next)) return refined && had_period(session, now);
  return refined || now >= next->route.arrived + 0.5 * (next->due - next->route.arrived);
}

void sn_serve_stream_update(SnScheduler *s, SnSession *session, bool ready) {
  SnStream *st = &session->stream;
  note_iterations(session);
  if (ready || sn_serve_stream_over(session, sn_clock_now())) {
    sn_serve_finish(s, session);
    return;
  }
  SnPlan plan;
  const int done = sn_planner_iterations(session->planner);
  if (done == st->looked_at || sn_planner_is_tracing(session->planner)) return;
  if (!sn_planner_peek(session->planner, &plan)) return;
  if (!offer(s, session, session->active, &plan)) return;
  sn_metrics_iterations(&session->metrics, done - st->looked_at);
  st->looked_at = done;
}
