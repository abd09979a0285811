// How a plan is made: a state is taken, rolled forward by the latency, the warm start shifted in time; then iterations
// improve it (SnOptimizer: sampling or Adam) until there are enough or the deadline comes; then states are predicted.
//
// The best controls so far are dense rows on the model's time step, kept from plan to plan.
#include "physics/step/step.h"
#include "planner/planner_private.h"

#include <limits.h>
#include <stdio.h>

// Steps that the latency takes.
static int lead_steps(const SnPlanner *p, double latency) { return (int)ceil(latency / p->h - 1e-6); }

static SnCode check_request(const SnPlanner *p, const SnPlanRequest *r, SnError *err) {
  const double longest = sn_planner_length(p);
  if (!(r->latency >= 0 && r->latency <= longest))
    return sn_fail(err, SN_ERR_ARGUMENT, "latency: %g s, allowed is 0 to the length of a plan, %g s", r->latency,
                   longest);
  if (r->max_iterations < 0 || r->max_candidates < 0)
    return sn_fail(err, SN_ERR_ARGUMENT, "iterations and candidates must not be negative");
  if (isnan(r->deadline)) return sn_fail(err, SN_ERR_ARGUMENT, "deadline: not a number");
  if (sn_planner_optimizer(&p->pending)->iterations(&p->pending) == 0 && r->max_iterations == 0 &&
      r->deadline == INFINITY)
    return sn_fail(err, SN_ERR_ARGUMENT, "iterations: as many as the deadline allows, but there is no deadline");
  return SN_OK;
}

// The first rows of the result: those of the plan in force while this one is made.
static void take_lead(SnPlanner *p) {
  const size_t nu = (size_t)p->m->nu;
  for (int k = 0; k < p->lead; ++k)
    sn_planner_copy(p->plan_ctrl + (size_t)k * nu, sn_planner_force_row(p, p->state.time + k * p->h), nu);
  p->rolled_state.time = p->state.time + p->lead * p->h;
}

// Moves the warm start to the new plan's start.
static void shift_nominal(SnPlanner *p) {
  const double since = (p->rolled_state.time - p->nominal_time) / p->h;
  int k = p->settings.shift;
  if (k == 0) k = since > p->horizon ? p->horizon : (since > 0 ? (int)lround(since) : 0);
  if (!p->has_nominal) k = 0;
  sn_controls_shift(p->nominal, p->horizon, p->m->nu, k, (SnTail)p->settings.tail, p->initial_ctrl);
  p->phase += k;
  sn_planner_adam_shift(p, k);
  p->nominal_time = p->rolled_state.time;
  p->has_nominal = true;
}

// Cost of the state that is answered, whose stages are run anew.
static void evaluate_first_state(SnPlanner *p) {
  sn_planner_prepare(p, &p->state);
  sn_cost_schedule(p->cost, p->state.time, p->h, 1, p->target);
  p->state_cost = sn_rollout_runner_evaluate(p->runner, p->target, NULL, NULL);
}

// Weights and targets that were set live.
static void take_cost(SnPlanner *p) {
  sn_cost_copy_live(p->cost, p->wanted);
  sn_backend_update(p->backend, p->device);
  p->retuned = false;
}

// The settings come into force. Costs that were measured in rollouts of another kind no longer count.
static void take_pending(SnPlanner *p) {
  const SnCfd before = p->forward;
  p->settings = p->pending;
  p->forward = sn_cfd_settings(&p->settings, p->cfd_pair, sn_cfd_forward(&p->settings));
  p->backward = sn_cfd_settings(&p->settings, p->cfd_pair, sn_cfd_backward(&p->settings));
  if (!sn_cfd_equal(&before, &p->forward)) p->measured = false;
}

SnCode sn_planner_take_settings(SnPlanner *p, SnError *err) {
  const SnOptimizer *optimizer = sn_planner_optimizer(&p->pending);
  const SnCode code = optimizer->reserve(p, &p->pending, err);
  if (code != SN_OK) return code;
  p->optimizer = optimizer;
  take_pending(p);
  p->taken = p->version;
  return SN_OK;
}

// Settings that there is no room for are refused together with the weights and targets that were set with them: the
// version says so.
static bool refuse(SnPlanner *p, const SnError *err) {
  p->refused = true;
  snprintf(p->remark, sizeof p->remark, "settings are not in force: %.200s", err->text);
  return false;
}

// What was tuned since the plan before.
static bool take_tuned(SnPlanner *p) {
  SnError err = {0};
  if (p->refused || sn_planner_take_settings(p, &err) != SN_OK) return p->refused ? false : refuse(p, &err);
  take_cost(p);
  return true;
}

// What was tuned since the iteration before, all of it at once.
static void take_changes(SnPlanner *p) {
  SnError err = {0};
  if (!p->refused && p->optimizer->reserve(p, &p->pending, &err) != SN_OK) refuse(p, &err);
  if (!p->refused) {
    take_pending(p);
    p->taken = p->version;
  }
  p->trying = p->taken;
  if (!p->retuned || p->refused) return;
  take_cost(p);
  evaluate_first_state(p);
  sn_cost_schedule(p->cost, p->rolled_state.time, p->h, p->horizon + 1, p->target);
  p->measured = false;
}

double sn_planner_iteration_deadline(const SnPlanner *p) {
  return p->request.want_states ? p->request.deadline - 1.5 * p->rollout_seconds : p->request.deadline;
}

// Iterations that the plan shall have; 0: as many as the deadline allows.
static int iteration_limit(const SnPlanner *p) {
  if (p->request.max_iterations > 0) return p->request.max_iterations;
  return p->optimizer->iterations(p->refused ? &p->settings : &p->pending);
}

// Settings and request of the iterations that come next. The last one may have fewer candidates, and then comes alone.
static void begin_iteration(SnPlanner *p) {
  take_changes(p);
  const int limit = iteration_limit(p), few = p->request.max_iterations > 0 ? p->request.max_candidates : 0;
  int left = limit > 0 ? limit - p->iteration : (p->request.deadline < INFINITY ? INT_MAX : 1);
  const bool last = left <= 1 && limit > 0;
  if (few > 0 && left > 1) --left;
  p->optimizer->begin(p, last && few > 0 ? few : INT_MAX, left > 1 ? left : 1);
  p->batch_active = true;
}

// Takes what counts of the iterations under way.
static void end_iteration(SnPlanner *p) {
  if (!p->batch_active) return;
  p->optimizer->end(p);
  p->batch_active = false;
}

// The state is rolled forward in the tracer's world, which is free until the iterations are done.
static void begin_rolling(SnPlanner *p) {
  const SnState view = sn_planner_rollout_state(p, &p->state);
  sn_world_set_state(p->m, sn_rollout_runner_world(p->tracer), &view);
  p->rolled = 0;
  p->rolling = true;
}

// The state rolled forward is where the optimised part starts.
static void end_rolling(SnPlanner *p) {
  sn_planner_store_world(p, sn_rollout_runner_world(p->tracer), &p->rolled_state);
  if (p->lead > 0)
    sn_planner_prepare(p, &p->rolled_state);
  else
    sn_planner_copy(p->rolled_state.qacc_warmstart, p->state.qacc_warmstart, (size_t)p->m->nv);
  p->rolling = false;
}

SnCode sn_planner_begin(SnPlanner *p, const SnPlanRequest *request, SnError *err) {
  bool act_estimated = false;
  SnCode code = check_request(p, request, err);
  if (code == SN_OK) code = sn_planner_take_state(p, request, &p->state, &act_estimated, err);
  if (code != SN_OK) return code;
  sn_planner_drop_batch(p);
  p->has_act = true;
  p->act_estimated = act_estimated;
  p->request = *request;
  p->began = sn_planner_now(p);
  p->refused = false;
  p->remark[0] = '\0';
  sn_planner_watch(p);
  take_tuned(p);
  ++p->number;

  evaluate_first_state(p);
  p->cost_now = p->state_cost;
  p->lead = lead_steps(p, request->latency);
  take_lead(p);
  shift_nominal(p);
  sn_cost_schedule(p->cost, p->rolled_state.time, p->h, p->horizon + 1, p->target);

  p->iteration = p->iterations = p->candidates = 0;
  p->measured = false;
  p->trying = p->used = p->taken;
  p->warn = 0;
  p->cost_before = p->best_cost = p->gradient_norm = NAN;
  for (int i = 0; i < p->cost->nterm; ++i) p->best_term[i] = NAN;
  p->active = true;
  p->finished = p->optimized = p->tracing = p->traced = false;
  begin_rolling(p);
  if (p->lead == 0) end_rolling(p);
  return SN_OK;
}

// ---- working on it ----

// Steps of the lead until `until`; false when there are more.
static bool roll_forward(SnPlanner *p, double until) {
  const SnModel *m = p->m;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu;
  SnWorld *w = sn_rollout_runner_world(p->tracer);
  const double stop = until < p->request.deadline ? until : p->request.deadline;
  for (; p->rolled < p->lead; ++p->rolled) {
    const size_t t = (size_t)p->rolled;
    if (stop < INFINITY && sn_planner_now(p) >= stop) return false;
    sn_planner_copy(p->plan_qpos + t * nq, w->qpos, nq);
    sn_planner_copy(p->plan_qvel + t * nv, w->qvel, nv);
    sn_planner_copy(p->plan_act + t * na, w->act, na);
    sn_planner_copy(w->ctrl, p->plan_ctrl + t * nu, nu);
    sn_step(m, w, sn_rollout_runner_lane(p->tracer));
  }
  end_rolling(p);
  return true;
}

// Iterates until `until`; p->optimized when there is no more to be done.
static void optimize(SnPlanner *p, double until) {
  const double deadline = sn_planner_iteration_deadline(p), stop = until < deadline ? until : deadline;
  if (!p->batch_active) begin_iteration(p);
  const int before = p->iteration;
  const SnWorked worked = p->optimizer->work(p, stop);
  if (worked != SN_WORKED_ALL && (!sn_planner_watch(p) || !p->batch_active)) {
    p->optimized =
        p->stranded || sn_planner_now(p) >= deadline;  // the device is lost: at the fallback, with what is left
    return;
  }
  const bool late = sn_planner_now(p) >= deadline;
  if (worked == SN_WORKED_PAUSED) {
    p->optimized = late || stop == INFINITY;  // the latter: a backend that cannot go on
    if (p->optimized) end_iteration(p);
    return;
  }
  end_iteration(p);
  const int limit = iteration_limit(p);
  const bool endless = limit == 0 && deadline == INFINITY;  // tuned so meanwhile: what there is must do
  const bool full = worked == SN_WORKED_PART && (p->iteration == before || stop >= deadline);  // no more fit
  p->optimized = (limit > 0 && p->iteration >= limit) || endless || full || late;
}

static SnPlanStatus plan_status(const SnPlanner *p) {
  if (p->iterations == 0) return SN_PLAN_WARM_START;
  return isfinite(p->best_cost) ? SN_PLAN_OK : SN_PLAN_DIVERGED;
}

// States along the optimised rows, behind those of the lead. True when there is no more to be done.
static bool trace(SnPlanner *p, double until) {
  const SnModel *m = p->m;
  const size_t lead = (size_t)p->lead;
  if (!p->tracing) {
    const SnTrajectory out = {.qpos = p->plan_qpos + lead * (size_t)m->nq,
                              .qvel = p->plan_qvel + lead * (size_t)m->nv,
                              .act = p->plan_act + lead * (size_t)m->na};
    const SnState state = sn_planner_rollout_state(p, &p->rolled_state);
    sn_rollout_runner_begin(p->tracer, &state, p->nominal, p->target, p->horizon, p->settings.max_velocity, &out);
    p->tracing = true;
    p->trace_seconds = 0;
  }
  const double from = sn_planner_now(p), stop = until < p->request.deadline ? until : p->request.deadline;
  const SnRolloutStatus status = sn_rollout_runner_run(p->tracer, &p->def.clock, stop);
  p->trace_seconds += sn_planner_now(p) - from;
  p->traced = status == SN_ROLLOUT_DONE;
  if (p->traced) p->rollout_seconds = p->trace_seconds;
  return status != SN_ROLLOUT_UNDER_WAY || sn_planner_now(p) >= p->request.deadline;
}

bool sn_planner_slice(SnPlanner *p, double until) {
  if (!p->active || p->finished) return true;
  if (!p->optimized) sn_planner_watch(p);
  if (p->rolling && !roll_forward(p, until)) {
    p->finished = sn_planner_now(p) >= p->request.deadline;
    return p->finished;
  }
  p->optimized = p->optimized || p->stranded;
  if (!p->optimized) {
    optimize(p, until);
    if (!p->optimized) return false;
  }
  const bool wanted = p->request.want_states && plan_status(p) != SN_PLAN_DIVERGED;
  p->finished = !wanted || trace(p, until);
  return p->finished;
}

// Whether the backend wants to know what comes next.
static bool takes_along(const SnPlanner *p) {
  const bool adam = p->optimizer == &sn_optimizer_adam;
  return sn_backend_has(p->backend, adam ? SN_BACKEND_MULTISTART_SUBMIT : SN_BACKEND_ROLLOUTS_SUBMIT);
}

void sn_planner_submit(SnPlanner *p) {
  if (!p->active || p->finished || p->optimized || !sn_planner_watch(p) || !takes_along(p)) return;
  if (p->rolling && !roll_forward(p, INFINITY)) return;
  if (!p->batch_active) begin_iteration(p);
  p->optimizer->submit(p);
}

// ---- ending it ----

// The plan that was made is in force from now on.
static void put_in_force(SnPlanner *p, int rows) {
  sn_planner_copy(p->force, p->plan_ctrl, (size_t)rows * (size_t)p->m->nu);
  p->force_time = p->state.time;
  p->force_rows = rows;
}

// The plan as it stands, the lead first. traced: with the predicted states. Between two slices the nominal is the best
// so far.
static void describe_plan(SnPlanner *p, bool traced, SnPlan *plan) {
  const SnModel *m = p->m;
  const SnPlanStatus status = plan_status(p);
  const int rows = status == SN_PLAN_DIVERGED ? 0 : p->lead + p->horizon;
  if (rows > 0)
    sn_planner_copy(p->plan_ctrl + (size_t)p->lead * (size_t)m->nu, p->nominal, (size_t)p->horizon * (size_t)m->nu);
  const bool states = rows > 0 && traced;
  const double end = sn_planner_now(p);
  *plan = (SnPlan){.status = status,
                   .number = p->number,
                   .stamp = p->state.time,
                   .start = p->state.time,
                   .step = p->h,
                   .lead = rows > 0 ? p->lead : 0,
                   .nstep = rows,
                   .nu = m->nu,
                   .nq = m->nq,
                   .nv = m->nv,
                   .na = m->na,
                   .nterm = p->cost->nterm,
                   .ctrl = rows > 0 ? p->plan_ctrl : NULL,
                   .qpos = states ? p->plan_qpos : NULL,
                   .qvel = states ? p->plan_qvel : NULL,
                   .act = states ? p->plan_act : NULL,
                   .version = p->used,
                   .cost_before = p->cost_before,
                   .cost_after = p->best_cost,
                   .term = p->best_term,
                   .cost_now = p->cost_now,
                   .iterations = p->iterations,
                   .candidates = p->candidates,
                   .gradient_norm = p->gradient_norm,
                   .deadline_met = end <= p->request.deadline,
                   .act_estimated = p->act_estimated,
                   .backend = sn_backend_name(p->backend),
                   .device_lost = p->device_lost,
                   .warn = p->warn,
                   .remark = p->remark,
                   .seconds = end - p->began};
}

void sn_planner_finish(SnPlanner *p, SnPlan *plan) {
  memset(plan, 0, sizeof *plan);
  if (!p->active) {
    plan->status = SN_PLAN_DIVERGED;
    return;
  }
  end_iteration(p);
  p->active = false;
  describe_plan(p, p->traced, plan);
  if (plan->nstep > 0)
    put_in_force(p, plan->nstep);
  else
    sn_planner_reset_nominal(p);
}

int sn_planner_iterations(const SnPlanner *p) { return p->active ? p->iterations : 0; }

bool sn_planner_peek(SnPlanner *p, SnPlan *plan) {
  if (!p->active || p->iterations == 0) return false;
  describe_plan(p, false, plan);
  return true;
}

SnCode sn_planner_plan(SnPlanner *p, const SnPlanRequest *request, SnPlan *plan, SnError *err) {
  const SnCode code = sn_planner_begin(p, request, err);
  if (code != SN_OK) return code;
  while (!sn_planner_slice(p, INFINITY)) continue;
  sn_planner_finish(p, plan);
  return SN_OK;
}
