// How a plan is made: a state is taken, rolled forward by the latency, the warm start shifted in time, and perhaps
// replaced by the rollout of a policy (planner_policy.c); then iterations
// improve it (SnOptimizer, one for each planner) until there are enough or the deadline comes; then states are
// predicted.
//
// The best controls so far are dense rows on the model's time step, kept from plan to plan. Iterations may have them on
// a coarser time grid (planner_grid.c). Predicted states are those of a rollout of the plan as it is served, on the
// base step: what a body of this time step does under it, not what was made up for where steps are long.
#include "planner/planner_private.h"

#include <limits.h>
#include <stdio.h>

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
    return sn_fail(err, SN_ERR_ARGUMENT, "latency: %g s, allowed is 0 to the length of a plan, %g s", r->latency,
                   longest);
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

// What was tuned since the iteration before, all of it at once.
static void take_changes(SnPlanner *p) {
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

// Iterations that count if they end now.
static int counted(const SnPlanner *p) {
  const bool rolled = p->iterations.rolled && !p->progress.request.trace_each;  // sn_planner_finish drops that one
  return p->iterations.next + rolled;
}

// Part of an iteration is something new where part of it counts.
static bool tried_something(const SnPlanner *p) {
  const SnOptimizer *optimizer = p->iterations.optimizer;
  const int least = sn_planner_least_iterations_of(optimizer, &p->in_force.settings);
  const bool anew = p->active_plan.rows == 0;  // no plan before: the first iteration measures what is known
  return counted(p) >= (anew ? optimizer->least : least) || !optimizer->whole || !optimizer->whole(p);
}

double sn_planner_rest(const SnPlanner *p) {
  return p->progress.request.want_states ? 1.5 * p->progress.rollout_seconds : 0;
}

double sn_planner_iteration_deadline(const SnPlanner *p) {
  const SnPlanRequest *r = &p->progress.request;
  return r->deadline - sn_planner_rest(p) - (tried_something(p) ? r->margin : 0);
}

// Iterations that the plan shall have; 0: as many as the deadline allows. A plan goes on by the planner that it began
// with, whatever the settings name meanwhile.
static int iteration_limit(const SnPlanner *p) {
  if (p->progress.request.max_iterations > 0) return p->progress.request.max_iterations;
  SnSettings s = p->pending_refused ? p->in_force.settings : p->pending.settings;
  s.planner = (int)p->iterations.optimizer->kind;
  return sn_settings_iterations(&s);
}

// Whether the deadline would cut the next iteration before it counts, if that takes as long as the shortest one of this
// plan. One that is under way must end before that: it is looked at while its cost is known and its way back not begun.
// A first iteration is always tried.
static bool in_vain(const SnPlanner *p) {
  const SnIterations *x = &p->iterations;
  const bool known = x->rolling > 0 && x->measured && !p->cost_changed;  // else it counts when it ends
  const double deadline = sn_planner_iteration_deadline(p), counts = known ? x->rolling : x->shortest;
  if (x->begun && (!x->rolled || x->back)) return false;
  if (x->next == 0 || !(deadline < INFINITY) || !x->optimizer->whole || !x->optimizer->whole(p)) return false;
  return sn_planner_now(p) + (x->begun ? x->shortest : counts) > deadline;
}

// Notes the shortest time of an iteration, or of what it takes until its cost is known: `done` since they were begun.
static void note_time(const SnPlanner *p, double *shortest, int done) {
  const double took = (sn_planner_now(p) - p->iterations.since) / done;
  if (*shortest == 0 || took < *shortest) *shortest = took;
}

// Settings and request of the iterations that come next. The last one may have fewer candidates, and then comes alone.
static void begin_iteration(SnPlanner *p) {
  take_changes(p);
  const int limit = iteration_limit(p),
            few = p->progress.request.max_iterations > 0 ? p->progress.request.max_candidates : 0;
  int left = limit > 0 ? limit - p->iterations.next : (p->progress.request.deadline < INFINITY ? INT_MAX : 1);
  const bool last = left <= 1 && limit > 0;
  if (few > 0 && left > 1) --left;
  sn_planner_grid_gather(p);
  p->iterations.optimizer->begin(p, last && few > 0 ? few : INT_MAX, left > 1 ? left : 1);
  p->iterations.since = sn_planner_now(p);
  p->iterations.begun = true;
}

void sn_planner_mark_version(SnPlanner *p) {
  p->result.version = p->iterations.version;
  sn_cost_copy_live(p->result.cost, p->in_force.cost);
}

// Takes what counts of the iterations under way. States that were predicted stay unless something better was found, or
// costs are those of other settings now.
static void end_iteration(SnPlanner *p) {
  if (!p->iterations.begun) return;
  const double cost = p->result.best_cost;
  const uint64_t version = p->result.version;
  const int before = p->iterations.next;
  p->iterations.optimizer->end(p);
  if (p->iterations.next > before) note_time(p, &p->iterations.shortest, p->iterations.next - before);
  if (p->iterations.measured) sn_planner_grid_keep(p);
  p->iterations.begun = p->iterations.rolled = false;
  if (p->result.best_cost != cost || p->result.version != version) p->progress.trace = SN_TRACE_NONE;
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

// The state of the request, all of which is known by now, is the latest one: the plan goes on from there.
static void end_estimating(SnPlanner *p) {
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
  if (sn_planner_estimate(p, &p->progress.estimate, -INFINITY)) end_estimating(p);
  return SN_OK;
}

// ---- working on it ----

// The end of a slice that ends at `until`.
static double slice_end(const SnPlanner *p, double until) {
  return until < p->progress.request.deadline ? until : p->progress.request.deadline;
}

// Estimates until `until` what the state came without; false when there is more.
static bool estimate_state(SnPlanner *p, double until) {
  if (!sn_planner_estimate(p, &p->progress.estimate, slice_end(p, until))) return false;
  end_estimating(p);
  return true;
}

// Steps of the lead until `until`; false when there are more.
static bool roll_forward(SnPlanner *p, double until) {
  const SnModel *m = p->m;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu;
  SnWorld *w = sn_rollout_runner_world(p->runners.tracer);
  const double stop = slice_end(p, until);
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

// Iterates until `until`; p->progress.optimized when there is no more to be done.
static void optimize(SnPlanner *p, double until) {
  const double deadline = sn_planner_iteration_deadline(p), stop = until < deadline ? until : deadline;
  if (in_vain(p)) {
    end_iteration(p);
    p->progress.optimized = true;
    return;
  }
  if (!p->iterations.begun) begin_iteration(p);
  p->iterations.back = p->iterations.rolled;
  const int before = p->iterations.next;
  const SnWorked worked = p->iterations.optimizer->work(p, stop);
  if (worked != SN_WORKED_ALL && (!sn_planner_watch(p) || !p->iterations.begun)) {
    p->progress.optimized =
        p->device.stranded || sn_planner_now(p) >= deadline;  // the device is lost: at the fallback, with what is left
    return;
  }
  const bool late = sn_planner_now(p) >= deadline;
  if (worked == SN_WORKED_ROLLED) {
    note_time(p, &p->iterations.rolling, 1);
    p->iterations.rolled = p->iterations.measured;
  }
  if (worked == SN_WORKED_PAUSED || worked == SN_WORKED_ROLLED) {
    const bool stays = worked == SN_WORKED_PAUSED && stop == INFINITY;  // a backend that cannot go on
    p->progress.optimized = stays || late || in_vain(p);
    if (p->progress.optimized) end_iteration(p);
    return;
  }
  end_iteration(p);
  const int limit = iteration_limit(p);
  const bool endless = limit == 0 && deadline == INFINITY;  // tuned so meanwhile: what there is must do
  const bool full = worked == SN_WORKED_PART && (p->iterations.next == before || stop >= deadline);  // no more fit
  p->progress.optimized = (limit > 0 && p->iterations.next >= limit) || endless || full || late || in_vain(p);
}

static SnPlanStatus plan_status(const SnPlanner *p) {
  if (p->result.iterations == 0) return SN_PLAN_WARM_START;
  return isfinite(p->result.best_cost) ? SN_PLAN_OK : SN_PLAN_DIVERGED;
}

// States along the optimised rows, behind those of the lead. True when there is no more to be done.
static bool trace(SnPlanner *p, double until) {
  const SnModel *m = p->m;
  const size_t lead = (size_t)p->progress.lead;
  if (p->progress.trace == SN_TRACE_DONE || p->progress.trace == SN_TRACE_FAILED) return true;
  if (p->progress.trace == SN_TRACE_NONE) {
    const SnTrajectory out = {.qpos = p->result.qpos + lead * (size_t)m->nq,
                              .qvel = p->result.qvel + lead * (size_t)m->nv,
                              .act = p->result.act + lead * (size_t)m->na};
    const bool base = p->grid.grid.parts == 0;  // else the optimizer has states of the grid
    const SnTrajectory *known = base && p->iterations.optimizer->states ? p->iterations.optimizer->states(p) : NULL;
    if (known) {
      sn_trajectory_copy(m, &out, known, p->horizon + 1);
      p->progress.trace = SN_TRACE_DONE;
      return true;
    }
    const SnState state = sn_planner_rollout_state(p, &p->progress.start);
    sn_rollout_runner_begin(p->runners.tracer, &state, p->warm_start.ctrl, p->progress.target, p->horizon,
                            p->in_force.settings.max_velocity, &out);
    p->progress.trace = SN_TRACE_UNDER_WAY;
    p->progress.trace_seconds = 0;
  }
  const double from = sn_planner_now(p), stop = slice_end(p, until);
  const SnRolloutStatus status = sn_rollout_runner_run(p->runners.tracer, &p->def.clock, stop);
  p->progress.trace_seconds += sn_planner_now(p) - from;
  if (status != SN_ROLLOUT_UNDER_WAY) p->progress.trace = status == SN_ROLLOUT_DONE ? SN_TRACE_DONE : SN_TRACE_FAILED;
  // An infinite time, which ends work, measures nothing.
  if (status == SN_ROLLOUT_DONE && isfinite(p->progress.trace_seconds))
    p->progress.rollout_seconds = p->progress.trace_seconds;
  return status != SN_ROLLOUT_UNDER_WAY || sn_planner_now(p) >= p->progress.request.deadline;
}

bool sn_planner_is_tracing(const SnPlanner *p) {
  return p->progress.active && p->progress.request.trace_each && plan_status(p) == SN_PLAN_OK &&
         (p->progress.trace == SN_TRACE_NONE || p->progress.trace == SN_TRACE_UNDER_WAY);
}

bool sn_planner_slice(SnPlanner *p, double until) {
  if (!p->progress.active || p->progress.finished) return true;
  if (!p->progress.optimized) sn_planner_watch(p);
  const bool ready =
      (!p->progress.estimating || estimate_state(p, until)) && (!p->progress.rolling || roll_forward(p, until));
  if (!ready) {
    p->progress.finished = sn_planner_now(p) >= p->progress.request.deadline;
    return p->progress.finished;
  }
  if (!sn_planner_policy_choose(p, until)) return false;
  p->progress.optimized = p->progress.optimized || p->device.stranded;
  if (sn_planner_is_tracing(p)) {  // then the caller may look
    trace(p, until);
    if (sn_planner_now(p) < p->progress.request.deadline) return false;
  }
  if (!p->progress.optimized) {
    optimize(p, until);
    if (!p->progress.optimized) return false;
  }
  const bool wanted = p->progress.request.want_states && plan_status(p) != SN_PLAN_DIVERGED;
  p->progress.finished = !wanted || trace(p, until);
  return p->progress.finished;
}

// Whether the backend wants to know what comes next.
static bool takes_along(const SnPlanner *p) {
  const SnOptimizer *optimizer = p->iterations.optimizer;
  return optimizer->submit && sn_backend_has(p->device.backend, optimizer->announces);
}

void sn_planner_submit(SnPlanner *p) {
  if (!p->progress.active || p->progress.finished || p->progress.optimized || !sn_planner_watch(p) || !takes_along(p))
    return;
  if (p->progress.estimating && !estimate_state(p, INFINITY)) return;
  if (p->progress.rolling && !roll_forward(p, INFINITY)) return;
  if (!sn_planner_policy_choose(p, INFINITY)) return;
  if (!p->iterations.begun) begin_iteration(p);
  p->iterations.optimizer->submit(p);
}

// ---- ending it ----

void sn_planner_stop(SnPlanner *p) {
  if (!p->progress.active || p->progress.optimized) return;
  end_iteration(p);
  p->progress.optimized = true;
}

// The plan that was made is in force from now on.
static void put_in_force(SnPlanner *p, int rows) {
  sn_planner_copy(p->active_plan.ctrl, p->result.ctrl, (size_t)rows * (size_t)p->m->nu);
  p->active_plan.time = p->latest.state.time;
  p->active_plan.rows = rows;
}

// Gains of the optimised rows that were asked for; NULL where there are none, with a remark of this description alone.
static const sn_number *plan_gain(const SnPlanner *p, bool states, const char **remark) {
  const SnOptimizer *optimizer = p->iterations.optimizer;
  if (p->progress.request.gain_rows == 0) return NULL;
  const sn_number *gain = optimizer->gain ? optimizer->gain(p) : NULL;
  if (gain && states) return gain;
  if (**remark == '\0')
    *remark = gain ? "no gains: the deadline left no time for predicted states" : "no gains: no iteration has made any";
  return NULL;
}

// ---- whether the cost still falls ----

// What a cost falls by at least, as a part of it: less is what rounding, or a term of little weight, makes of plans
// that go nowhere.
static const double least_fall = 1e-3;

// Counts the plans in a row whose iterations have found nothing better than their warm starts, the plan as it stands
// included. One that has tried nothing beside its warm start, which takes Adam's only iteration, tells nothing.
static int count_unimproved(const SnPlanner *p) {
  const SnPlanResult *r = &p->result;
  if (r->iterations < p->iterations.optimizer->least || !isfinite(r->best_cost)) return p->unimproved;
  return r->best_cost > (1 - least_fall) * r->cost_before ? p->unimproved + 1 : 0;
}

// Whether a plan is no better than its warm start, and its gradient next to nothing: as at a start that is symmetric,
// or where no control reaches what the cost looks at.
static bool is_stuck(const SnPlanner *p) {
  const double cost = p->result.best_cost, norm = p->result.gradient_norm;
  return p->result.iterations > 0 && cost > 0 && cost >= p->result.cost_before && norm <= 1e-9 * cost;
}

// Says so of such a plan, and of one before which the cost has not fallen for as long as the settings say.
static const char *halt_remark(SnPlanner *p, const SnPlan *plan) {
  const int patience = p->in_force.settings.patience;
  char *text = p->result.halt;
  text[0] = '\0';
  if (plan->stuck)
    snprintf(text, sizeof p->result.halt, "no progress: gradient norm %.2g", plan->gradient_norm);
  else if (patience > 0 && plan->unimproved >= patience)
    snprintf(text, sizeof p->result.halt, "no improvement for %d plans", plan->unimproved);
  return text;
}

// The plan as it stands, the lead first. Between two slices the nominal is the best so far.
static void describe_plan(SnPlanner *p, SnPlan *plan) {
  const SnModel *m = p->m;
  const SnPlanStatus status = plan_status(p);
  const int rows = status == SN_PLAN_DIVERGED ? 0 : p->progress.lead + p->horizon;
  if (rows > 0)
    sn_planner_copy(p->result.ctrl + (size_t)p->progress.lead * (size_t)m->nu, p->warm_start.ctrl,
                    (size_t)p->horizon * (size_t)m->nu);
  const bool states = rows > 0 && p->progress.trace == SN_TRACE_DONE;
  const char *remark = p->result.remark;
  const sn_number *gain = plan_gain(p, states, &remark);
  const int wanted = p->progress.request.gain_rows;
  const double end = sn_planner_now(p);
  *plan = (SnPlan){.status = status,
                   .number = p->progress.number,
                   .stamp = p->latest.state.time,
                   .start = p->latest.state.time,
                   .step = p->h,
                   .lead = rows > 0 ? p->progress.lead : 0,
                   .nstep = rows,
                   .nu = m->nu,
                   .nq = m->nq,
                   .nv = m->nv,
                   .na = m->na,
                   .nterm = p->in_force.cost->nterm,
                   .ctrl = rows > 0 ? p->result.ctrl : NULL,
                   .qpos = states ? p->result.qpos : NULL,
                   .qvel = states ? p->result.qvel : NULL,
                   .act = states ? p->result.act : NULL,
                   .gain = gain,
                   .gain_rows = gain ? (wanted < p->horizon ? wanted : p->horizon) : 0,
                   .cost = p->result.cost,
                   .version = p->result.version,
                   .cost_before = p->result.cost_before,
                   .cost_after = p->result.best_cost,
                   .term = p->result.best_term,
                   .cost_now = p->result.cost_now,
                   .iterations = p->result.iterations,
                   .candidates = p->result.candidates,
                   .gradient_norm = p->result.gradient_norm,
                   .deadline_met = end <= p->progress.request.deadline,
                   .act_estimated = p->result.act_estimated,
                   .backend = sn_backend_name(p->device.backend),
                   .device_lost = p->device.lost,
                   .warn = p->result.warn,
                   .seconds = end - p->progress.began,
                   .from_policy = p->policy.taken,
                   .stuck = is_stuck(p),
                   .unimproved = count_unimproved(p),
                   .ngate = p->in_force.cost->ngate,
                   .gate_number = p->result.gate_number,
                   .gate_factor = p->result.gate_factor};
  plan->remark = *remark ? remark : halt_remark(p, plan);
}

void sn_planner_finish(SnPlanner *p, SnPlan *plan) {
  memset(plan, 0, sizeof *plan);
  if (!p->progress.active) {
    plan->status = SN_PLAN_DIVERGED;
    return;
  }
  if (p->progress.estimating) end_estimating(p);  // with what there is of it
  if (p->progress.request.trace_each) sn_planner_drop_batch(p);
  end_iteration(p);
  p->progress.active = false;
  describe_plan(p, plan);
  p->unimproved = plan->unimproved;
  if (plan->nstep > 0) {
    put_in_force(p, plan->nstep);
    if (p->iterations.optimizer->advance) p->iterations.optimizer->advance(p);
  } else {
    sn_planner_reset_nominal(p);
  }
}

void sn_planner_drop(SnPlanner *p) {
  sn_planner_drop_batch(p);
  p->progress.active = false;
}

int sn_planner_iterations(const SnPlanner *p) { return p->progress.active ? p->result.iterations : 0; }

bool sn_planner_is_refined(const SnPlanner *p) {
  if (!p->progress.active) return false;
  const int least = sn_planner_least_iterations_of(p->iterations.optimizer, &p->in_force.settings);
  const int limit = iteration_limit(p);
  return counted(p) >= (limit > 0 && limit < least ? limit : least);
}

uint64_t sn_planner_number(const SnPlanner *p) { return p->progress.number; }

bool sn_planner_peek(SnPlanner *p, SnPlan *plan) {
  if (!p->progress.active || p->result.iterations == 0) return false;
  describe_plan(p, plan);
  return true;
}

SnCode sn_planner_plan(SnPlanner *p, const SnPlanRequest *request, SnPlan *plan, SnError *err) {
  const SnCode code = sn_planner_begin(p, request, err);
  if (code != SN_OK) return code;
  while (!sn_planner_slice(p, INFINITY)) continue;
  sn_planner_finish(p, plan);
  return SN_OK;
}
