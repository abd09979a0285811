// How a plan begins: the request is checked, settings come into force, the state is taken and what it came without
// estimated; then it is rolled forward by the latency, and the warm start shifted to where that ends.
#include "planner/planner_private.h"

#include <stdio.h>

#include "physics/base/number_text.h"

// Steps that the latency takes.
static int lead_steps(const SnPlanner *p, double latency) { return (int)ceil(latency / p->h - 1e-6); }

SnCode sn_planner_check_gains(const SnPlanner *p, SnError *err) {
  char name[32];
  if (sn_planner_optimizer(&p->pending.settings)->gain) return SN_OK;
  const int row = sn_settings_find("planner");
  sn_settings_choice_name(row, p->pending.settings.planner, name, sizeof name);
  return sn_fail(err, SN_ERR_UNSUPPORTED, "gains: planner '%s' makes none, 'ilqg' does", name);
}

static SnCode check_request(const SnPlanner *p, const SnPlanRequest *r, SnError *err) {
  const double longest = sn_planner_length(p);
  if (!(r->latency >= 0 && r->latency <= longest))
    return sn_fail(err, SN_ERR_ARGUMENT, "latency: %s s, allowed is 0 to the length of a plan, %g s",
                   sn_number_text(r->latency).text, longest);
  if (r->max_iterations < 0 || r->max_candidates < 0)
    return sn_fail(err, SN_ERR_ARGUMENT, "iterations and candidates must not be negative");
  if (r->gain_rows < 0) return sn_fail(err, SN_ERR_ARGUMENT, "gains: of %d rows", r->gain_rows);
  if (r->gain_rows > 0 && sn_planner_check_gains(p, err) != SN_OK) return SN_ERR_UNSUPPORTED;
  if (isnan(r->deadline)) return sn_fail(err, SN_ERR_ARGUMENT, "deadline: not a number");
  if (sn_settings_iterations(&p->pending.settings) == 0 && r->max_iterations == 0 && r->deadline == INFINITY)
    return sn_fail(err, SN_ERR_ARGUMENT, "iterations: as many as the deadline allows, but there is no deadline");
  return SN_OK;
}

// The controls in force before the optimised rows: the last one of the lead; without a lead what the body has applied
// last, or the plan in force said. Before the first plan they are not known.
static void take_before(SnPlanner *p) {
  const SnApplied *applied = &p->progress.estimate.applied;
  const double time = p->progress.start.time;
  const int reported = sn_planner_applied_until(applied, nextafter(time - 1e-9, -INFINITY));
  const sn_real *row = sn_planner_control(p, time - p->h);
  if (p->progress.lead > 0) row = p->result.ctrl + (size_t)(p->progress.lead - 1) * (size_t)p->m->nu;
  for (int i = 0; i < p->m->nu; ++i) p->progress.before[i] = row ? row[i] : (sn_real)NAN;
  if (p->progress.lead == 0 && reported >= 0) sn_planner_copy_applied(p, applied, reported, p->progress.before);
}

// The first rows of the result: those of the plan in force while this one is made.
static void take_lead(SnPlanner *p) {
  const size_t nu = (size_t)p->m->nu;
  for (int k = 0; k < p->progress.lead; ++k)
    sn_planner_copy(p->result.ctrl + (size_t)k * nu, sn_planner_force_row(p, p->latest.state.time + k * p->h), nu);
  p->progress.start.time = p->latest.state.time + p->progress.lead * p->h;
  take_before(p);
}

// Moves the warm start to the new plan's start.
static void shift_nominal(SnPlanner *p) {
  const double since = (p->progress.start.time - p->warm_start.time) / p->h;
  int k = p->in_force.settings.shift;
  if (k == 0) k = since > p->horizon ? p->horizon : (since > 0 ? (int)lround(since) : 0);
  if (!p->warm_start.exists) k = 0;
  sn_controls_shift(p->warm_start.ctrl, p->horizon, p->m->nu, k, (SnTail)p->in_force.settings.tail, p->initial.ctrl);
  p->warm_start.phase = (p->warm_start.phase + k) % sn_planner_noise_spacing(p);
  sn_planner_shift_optimizers(p, k);
  p->warm_start.time = p->progress.start.time;
  p->warm_start.exists = true;
}

// Cost of the state that is answered, whose stages are run anew.
static void evaluate_first_state(SnPlanner *p) {
  sn_planner_prepare(p, &p->latest.state);
  sn_cost_schedule(p->in_force.cost, p->latest.state.time, p->h, 1, p->progress.target);
  p->iterations.state_cost = sn_rollout_runner_evaluate(p->runners.scratch, p->progress.target, NULL, NULL);
  sn_rollout_runner_gates(p->runners.scratch, p->result.gate_number, p->result.gate_factor);
}

// Weights and targets that were set live.
static void take_cost(SnPlanner *p) {
  sn_cost_copy_live(p->in_force.cost, p->pending.cost);
  sn_backend_update(p->device.backend, p->device.model);
  p->cost_changed = false;
}

// The settings come into force. Costs that were measured in rollouts of another kind no longer count.
static void take_pending(SnPlanner *p) {
  const SnCfdSettings before = p->cfd.forward;
  p->in_force.settings = p->pending.settings;
  p->cfd.forward = sn_cfd_settings(&p->in_force.settings, p->cfd.pair, sn_cfd_forward(&p->in_force.settings));
  p->cfd.backward = sn_cfd_settings(&p->in_force.settings, p->cfd.pair, sn_cfd_backward(&p->in_force.settings));
  if (!sn_cfd_equal(&before, &p->cfd.forward)) p->iterations.measured = false;
  if (sn_planner_grid_take(p)) p->iterations.measured = false;
}

SnCode sn_planner_take_settings(SnPlanner *p, SnError *err) {
  const SnOptimizer *optimizer = sn_planner_optimizer(&p->pending.settings);
  const SnCode code = sn_planner_reserve(p, optimizer, &p->pending.settings, err);
  if (code != SN_OK) return code;
  p->iterations.optimizer = optimizer;
  take_pending(p);
  p->in_force.version = p->pending.version;
  return SN_OK;
}

void sn_planner_mark_version(SnPlanner *p) {
  p->result.version = p->iterations.version;
  sn_cost_copy_live(p->result.cost, p->in_force.cost);
}

// Settings that there is no room for are refused together with the weights and targets that were set with them: the
// version says so.
static bool refuse(SnPlanner *p, const SnError *err) {
  p->pending_refused = true;
  snprintf(p->result.remark, sizeof p->result.remark, "settings are not in force: %.200s", err->text);
  return false;
}

// What was tuned since the plan before.
static bool take_tuned(SnPlanner *p) {
  SnError err = {0};
  if (p->pending_refused || sn_planner_take_settings(p, &err) != SN_OK)
    return p->pending_refused ? false : refuse(p, &err);
  take_cost(p);
  return true;
}

void sn_planner_take_changes(SnPlanner *p) {
  SnError err = {0};
  if (!p->pending_refused && sn_planner_reserve(p, p->iterations.optimizer, &p->pending.settings, &err) != SN_OK)
    refuse(p, &err);
  if (!p->pending_refused) {
    take_pending(p);
    p->in_force.version = p->pending.version;
  }
  p->iterations.version = p->in_force.version;
  if (!p->cost_changed || p->pending_refused) return;
  take_cost(p);
  evaluate_first_state(p);
  sn_planner_grid_schedule(p);
  p->iterations.measured = false;
}

// The state is rolled forward in the tracer's world, which is free until the iterations are done.
static void begin_rolling(SnPlanner *p) {
  const SnState view = sn_planner_rollout_state(p, &p->latest.state);
  sn_world_set_state(p->m, sn_rollout_runner_world(p->runners.tracer), &view);
  p->progress.rolled = 0;
  p->progress.rolling = true;
}

// The state rolled forward is where the optimised part starts.
static void end_rolling(SnPlanner *p) {
  sn_planner_store_world(p, sn_rollout_runner_world(p->runners.tracer), &p->progress.start);
  if (p->progress.lead > 0)
    sn_planner_prepare(p, &p->progress.start);
  else
    sn_planner_copy(p->progress.start.qacc_warmstart, p->latest.state.qacc_warmstart, (size_t)p->m->nv);
  p->progress.rolling = false;
}

// The state of the request is the latest one from now on: the plan goes on from there.
void sn_planner_end_estimating(SnPlanner *p) {
  const SnStateBuffer before = p->latest.state;
  sn_planner_take_estimate(p, &p->progress.estimate);
  p->latest.state = p->progress.start;
  p->progress.start = before;
  p->latest.has_act = true;
  p->progress.estimating = false;
  evaluate_first_state(p);
  p->result.cost_now = p->iterations.state_cost;
  take_lead(p);
  shift_nominal(p);
  sn_planner_grid_schedule(p);
  sn_planner_policy_begin(p);
  begin_rolling(p);
  if (p->progress.lead == 0) end_rolling(p);
}

// Steps of the lead until `stop`; false when there are more.
static bool roll_forward(SnPlanner *p, double stop) {
  const SnModel *m = p->m;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu;
  SnWorld *w = sn_rollout_runner_world(p->runners.tracer);
  for (; p->progress.rolled < p->progress.lead; ++p->progress.rolled) {
    const size_t t = (size_t)p->progress.rolled;
    if (stop < INFINITY && sn_planner_now(p) >= stop) return false;
    sn_planner_copy(p->result.qpos + t * nq, w->qpos, nq);
    sn_planner_copy(p->result.qvel + t * nv, w->qvel, nv);
    sn_planner_copy(p->result.act + t * na, w->act, na);
    sn_planner_copy(w->ctrl, p->result.ctrl + t * nu, nu);
    sn_rollout_runner_move(p->runners.tracer);
  }
  end_rolling(p);
  return true;
}

bool sn_planner_reach_start(SnPlanner *p, double stop) {
  if (p->progress.estimating) {
    if (!sn_planner_estimate(p, &p->progress.estimate, stop)) return false;
    sn_planner_end_estimating(p);
  }
  return !p->progress.rolling || roll_forward(p, stop);
}

SnCode sn_planner_begin(SnPlanner *p, const SnPlanRequest *request, SnError *err) {
  SnCode code = check_request(p, request, err);
  if (code != SN_OK) return code;
  SnEstimate estimate;
  code = sn_planner_take_state(p, request, &p->progress.start, p->runners.tracer, &estimate, err);
  if (code != SN_OK) return code;
  sn_planner_drop_batch(p);
  p->progress.estimate = estimate;
  p->result.act_estimated = estimate.act;
  p->progress.request = *request;
  p->progress.request.want_states = request->want_states || request->gain_rows > 0;
  p->progress.began = sn_planner_now(p);
  p->pending_refused = false;
  p->result.remark[0] = '\0';
  sn_planner_watch(p);
  take_tuned(p);
  ++p->progress.number;

  p->progress.lead = lead_steps(p, request->latency);
  p->iterations.next = p->result.iterations = p->result.candidates = 0;
  p->iterations.shortest = p->iterations.rolling = 0;
  p->iterations.measured = false;
  p->iterations.version = p->in_force.version;
  sn_planner_mark_version(p);
  p->result.warn = 0;
  p->result.cost_before = p->result.best_cost = p->result.gradient_norm = NAN;
  for (int i = 0; i < p->in_force.cost->nterm; ++i) p->result.best_term[i] = NAN;
  p->progress.active = true;
  p->progress.finished = p->progress.optimized = false;
  p->progress.trace = SN_TRACE_NONE;
  p->progress.estimating = true;
  if (sn_planner_estimate(p, &p->progress.estimate, -INFINITY)) sn_planner_end_estimating(p);
  return SN_OK;
}
