#include <math.h>
#include <stdlib.h>

#include "daemon/planning/serve_private.h"
#include "daemon/planning/turn_private.h"
#include "physics/base/clock.h"

// What plan requests and states of a stream have in common; arrays are the scratch's.
static void fill_state(SnScratch *scratch, const Sinew__V1__State *state, const Sinew__V1__Controls *controls,
                       SnApplied *applied, SnPlanRequest *request) {
  request->time = state->time;
  request->qpos = sn_unpack_reals(scratch, state->qpos, state->n_qpos);
  request->qvel = sn_unpack_reals(scratch, state->qvel, state->n_qvel);
  request->act = sn_unpack_reals(scratch, state->act, state->n_act);
  request->past = sn_unpack_reals(scratch, state->history, state->n_history);
  sn_unpack_mocap(scratch, state, &request->mocap_pos, &request->mocap_quat);
  if (!controls || controls->n_time == 0) return;
  applied->n = (int)controls->n_time;
  applied->time = controls->time;
  applied->ctrl = controls->ctrl;  // the job's, which stays until the plan has ended
  request->applied = applied;
}

static void fill_request(SnScratch *scratch, const SnSession *session, const SnJob *job, SnApplied *applied,
                         SnPlanRequest *request) {
  *request = sn_default_plan_request();
  request->latency = session->settings.latency;
  if (sn_job_streams(job)) {
    const Sinew__V1__StreamState *in = job->request->stream_state;
    fill_state(scratch, in->state, in->applied, applied, request);
    request->max_iterations = sn_stream_iterations(session);
    request->gain_rows = sn_planner_check_gains(session->planner, NULL) == SN_OK ? session->stream.gain_rows : 0;
    request->want_states = request->trace_each = session->stream.want_states || request->gain_rows > 0;
    return;
  }
  const Sinew__V1__PlanRequest *in = job->request->plan;
  fill_state(scratch, in->state, in->applied, applied, request);
  request->want_states = in->want_states;
  if (in->has_iterations_case) request->max_iterations = (int)in->iterations;
  if (in->has_candidates_case) request->max_candidates = (int)in->candidates;
  if (in->has_gain_rows_case) request->gain_rows = (int)in->gain_rows;
}

// Records that come first show the planner as it was.
static SnCode begin_planning(SnScheduler *s, SnSession *session, const SnPlanRequest *request, SnError *err) {
  sn_record_greet(s, session);
  return sn_planner_begin(session->planner, request, err);
}

bool sn_serve_begin(SnScheduler *s, SnSession *session) {
  SnJob *job = session->waiting;
  const bool streams = sn_job_streams(job);
  session->waiting = NULL;
  if (!sn_session_claim(session, job->number)) {
    sn_job_free(job);
    return false;
  }
  session->turn = sn_clock_now();
  SnScratch scratch = {0};
  SnApplied applied = {0};
  SnPlanRequest request;
  fill_request(&scratch, session, job, &applied, &request);
  const double due = streams ? job->due : sn_turn_deadline(s, job);
  if (!streams) {
    request.deadline = due;
    request.margin = sn_turn_margin(s, job);
  }

  SnError err = {0};
  SnCode code;
  if (scratch.failed)
    code = sn_fail(&err, SN_ERR_MEMORY, "out of memory");
  else if (isinf(job->due) && request.max_iterations == 0 &&
           sn_settings_iterations(sn_planner_settings(session->planner)) == 0)
    code = sn_fail(&err, SN_ERR_ARGUMENT, "a plan needs a deadline, or a number of iterations, or both");
  else
    code = begin_planning(s, session, &request, &err);
  sn_scratch_free(&scratch);
  if (code != SN_OK) {
    session->turn_due = INFINITY;
    sn_outbox_error(s->outbox, &job->route, sn_wire_code(code), "%s", err.text);
    sn_job_free(job);
    return false;
  }
  session->active = job;
  session->active_due = due;
  session->began = sn_clock_now();
  session->rest = sn_planner_rest(session->planner);
  sn_turn_begin(session);
  if (streams) sn_serve_stream_begin(session);
  sn_record_begin(s, session);
  return true;
}

static Sinew__V1__Plan__Status wire_status(SnPlanStatus status) {
  switch (status) {
    case SN_PLAN_OK:
      return SINEW__V1__PLAN__STATUS__OK;
    case SN_PLAN_WARM_START:
      return SINEW__V1__PLAN__STATUS__WARM_START;
    case SN_PLAN_DIVERGED:
      return SINEW__V1__PLAN__STATUS__DIVERGED;
  }
  return SINEW__V1__PLAN__STATUS__UNSPECIFIED;
}

Sinew__V1__Trajectory *sn_serve_trajectory(SnScratch *scratch, const SnSession *session, const SnTrajectory *states,
                                           double start, double step, size_t rows) {
  Sinew__V1__Trajectory *out = sn_scratch_alloc(scratch, sizeof *out);
  double *time = sn_scratch_alloc(scratch, rows * sizeof *time);
  if (!out || !time) return NULL;
  sinew__v1__trajectory__init(out);
  for (size_t i = 0; i < rows; i++) time[i] = start + (double)i * step;
  out->time = time;
  out->n_time = rows;
  out->qpos = sn_pack_reals(scratch, states->qpos, rows * (size_t)session->nq, &out->n_qpos);
  out->qvel = sn_pack_reals(scratch, states->qvel, rows * (size_t)session->nv, &out->n_qvel);
  out->act = sn_pack_reals(scratch, states->act, rows * (size_t)session->na, &out->n_act);
  return out;
}

// Packs the states along a plan, with the targets that it was made with. Rows after the lead have the times that the
// planner gave them, to the last bit.
static Sinew__V1__Trajectory *pack_states(SnScratch *scratch, const SnSession *session, const SnPlan *plan) {
  const SnCost *cost = plan->cost;
  const SnTrajectory states = {
      .qpos = (sn_real *)plan->qpos, .qvel = (sn_real *)plan->qvel, .act = (sn_real *)plan->act};
  const size_t rows = (size_t)plan->nstep + 1, width = (size_t)cost->ntarget;
  Sinew__V1__Trajectory *out = sn_serve_trajectory(scratch, session, &states, plan->start, plan->step, rows);
  sn_real *table = sn_scratch_alloc(scratch, rows * width * sizeof *table);
  if (!out || !table) return NULL;
  sn_cost_schedule(cost, plan->start, plan->step, plan->lead, table);
  sn_cost_schedule(cost, plan->start + plan->lead * plan->step, plan->step, plan->nstep + 1 - plan->lead,
                   table + (size_t)plan->lead * width);
  sn_pack_targets(scratch, cost, table, rows, out);
  return out;
}

void sn_serve_pack_plan(SnScratch *scratch, const SnSession *session, const SnPlan *plan, Sinew__V1__Plan *out) {
  const SnVersion *version = sn_history_find(&session->history, plan->version);
  out->session = session->id;
  out->sequence = plan->number;
  out->status = wire_status(plan->status);
  out->state_time = plan->stamp;
  out->time_to_live = version ? version->session.time_to_live : session->settings.time_to_live;
  out->start = plan->start;
  out->step = plan->step;
  out->steps = (uint32_t)plan->nstep;
  out->lead = (uint32_t)plan->lead;
  out->ctrl = sn_pack_reals(scratch, plan->ctrl, (size_t)plan->nstep * (size_t)plan->nu, &out->n_ctrl);
  if (plan->qpos && plan->nstep > 0) out->states = pack_states(scratch, session, plan);
  const size_t width = (size_t)plan->nu * (size_t)(2 * session->nv + session->na);
  if (plan->gain) out->gain = sn_pack_reals(scratch, plan->gain, (size_t)plan->gain_rows * width, &out->n_gain);
  out->gain_rows = (uint32_t)plan->gain_rows;
  out->cost_now = plan->cost_now;
  out->cost_before = plan->cost_before;
  out->cost_after = plan->cost_after;
  out->terms = sn_pack_terms(scratch, sn_planner_cost(session->planner), plan->term, &out->n_terms);
  out->iterations = (uint32_t)plan->iterations;
  out->candidates = (uint32_t)plan->candidates;
  out->act_estimated = plan->act_estimated;
  out->config_version = plan->version;
  out->computing = plan->seconds;
  out->gradient_norm = plan->gradient_norm;
  out->backend = (char *)(uintptr_t)plan->backend;
  out->device_lost = plan->device_lost;
  out->remark = (char *)(uintptr_t)plan->remark;
  out->gates = sn_pack_gates(scratch, plan, &out->n_gates);
  out->from_policy = plan->from_policy;
  out->stuck = plan->stuck;
  out->unimproved = (uint32_t)plan->unimproved;
  if (session->kept) out->restarts = session->kept->restarts;
  out->overflow = (plan->warn & (SN_WARN_CONTACT_FULL | SN_WARN_EFC_FULL)) != 0;
}

void sn_serve_count_answer(const SnScheduler *s, SnSession *session, SnTiming timing) {
  sn_metrics_answered(&session->metrics, timing.age, !timing.in_time);
  sn_metrics_answered(s->metrics, timing.age, !timing.in_time);
}

void sn_serve_count_plan(const SnScheduler *s, SnSession *session, const Sinew__V1__Plan *plan, double now) {
  sn_metrics_sent(&session->metrics, now, plan->cost_after, plan->gradient_norm, plan->overflow);
  sn_metrics_progress(&session->metrics, (int)plan->unimproved, plan->stuck);
  if (plan->overflow && sn_metrics_view(&session->metrics).overflows == 1)
    sn_log_about(s->log, SN_LOG_WARNING, (SnLogIds){.session = session->id, .plan = plan->sequence},
                 "overflow: model %s has no room for all its contacts or constraint rows, the last ones were dropped; "
                 "statistics count such plans from now on",
                 session->loaded->name);
}

void sn_serve_send_plan(SnScheduler *s, const SnSession *session, const SnRoute *route, const SnJob *job,
                        Sinew__V1__Plan *plan, double ended, bool first) {
  const SnStages stages = {.arrived = job->route.arrived,
                           .taken = job->taken,
                           .turn = session->turn,
                           .began = session->began,
                           .ended = ended,
                           .packed = sn_clock_now(),
                           .due = job->due,
                           .served = session->served,
                           .state_time = plan->state_time,
                           .plan = plan->sequence,
                           .slices = session->slices,
                           .iterations = (int)plan->iterations,
                           .status = (int)plan->status,
                           .first = first,
                           .in_time = plan->deadline_met,
                           .streamed = sn_job_streams(job)};
  sn_outbox_plan(s->outbox, route, plan, &stages);
}

// Answers a plan request, whose last slice has ended at `ended`.
static void answer(SnScheduler *s, SnSession *session, const SnJob *job, const SnPlan *plan, double ended) {
  SnScratch scratch = {0};
  Sinew__V1__Plan out = SINEW__V1__PLAN__INIT;
  sn_serve_pack_plan(&scratch, session, plan, &out);
  const double now = sn_clock_now();
  const SnTiming timing = sn_job_timing(job, now);
  out.age = timing.age;
  out.deadline_met = timing.in_time;
  sn_serve_count_answer(s, session, timing);
  sn_serve_count_plan(s, session, &out, now);
  sn_metrics_iterations(&session->metrics, plan->iterations);
  if (scratch.failed)
    sn_outbox_error(s->outbox, &job->route, SINEW__V1__ERROR__CODE__LIMIT, "out of memory");
  else
    sn_serve_send_plan(s, session, &job->route, job, &out, ended, true);
  if (!scratch.failed) sn_record_plan(s, session, &out);
  sn_scratch_free(&scratch);
}

void sn_serve_finish(SnScheduler *s, SnSession *session) {
  const double ended = sn_clock_now();
  SnJob *job = session->active;
  SnPlan plan;
  session->active = NULL;
  sn_planner_finish(session->planner, &plan);
  if (sn_job_streams(job)) {
    sn_serve_stream_offer(s, session, job, &plan);
    sn_record_streamed(s, session, &plan, sn_job_timing(job, sn_clock_now()));
  } else {
    answer(s, session, job, &plan, ended);
  }
  if (session->kept) session->kept->ends = 0;
  sn_turn_end(session, job);
  if (plan.iterations == 0 || plan.device_lost) session->audience.out_of_order = true;
  sn_job_free(job);
  sn_serve_snapshots(s, session);
  sn_serve_keep_warm(s, session, false);
}
