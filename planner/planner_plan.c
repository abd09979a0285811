// How a plan is made: a state is taken, rolled forward by the latency, the warm start shifted in time
// (planner_begin.c), and perhaps replaced by the rollout of a policy (planner_policy.c); then iterations improve it
// (SnOptimizer, one for each planner) until there are enough or the deadline comes; then states are predicted. What the
// plan says is in planner_result.c.
//
// The best controls so far are dense rows on the model's time step, kept from plan to plan. Iterations may have them on
// a coarser time grid (planner_grid.c). Predicted states are those of a rollout of the plan as it is served, on the
// base step: what a body of this time step does under it, not what was made up for where steps are long.
#include "planner/planner_private.h"

#include <limits.h>

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
  sn_planner_take_changes(p);
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

// Takes what counts of the iterations under way. States that were predicted stay unless something better was found, or
// costs are those of other settings now.
void sn_planner_end_iteration(SnPlanner *p) {
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

// ---- working on it ----

// The end of a slice that ends at `until`.
static double slice_end(const SnPlanner *p, double until) {
  return until < p->progress.request.deadline ? until : p->progress.request.deadline;
}

// Iterates until `until`; p->progress.optimized when there is no more to be done.
static void optimize(SnPlanner *p, double until) {
  const double deadline = sn_planner_iteration_deadline(p), stop = until < deadline ? until : deadline;
  if (in_vain(p)) {
    sn_planner_end_iteration(p);
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
    if (p->progress.optimized) sn_planner_end_iteration(p);
    return;
  }
  sn_planner_end_iteration(p);
  const int limit = iteration_limit(p);
  const bool endless = limit == 0 && deadline == INFINITY;  // tuned so meanwhile: what there is must do
  const bool full = worked == SN_WORKED_PART && (p->iterations.next == before || stop >= deadline);  // no more fit
  p->progress.optimized = (limit > 0 && p->iterations.next >= limit) || endless || full || late || in_vain(p);
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
  return p->progress.active && p->progress.request.trace_each && sn_planner_status(p) == SN_PLAN_OK &&
         (p->progress.trace == SN_TRACE_NONE || p->progress.trace == SN_TRACE_UNDER_WAY);
}

bool sn_planner_slice(SnPlanner *p, double until) {
  if (!p->progress.active || p->progress.finished) return true;
  if (!p->progress.optimized) sn_planner_watch(p);
  if (!sn_planner_reach_start(p, slice_end(p, until))) {
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
  const bool wanted = p->progress.request.want_states && sn_planner_status(p) != SN_PLAN_DIVERGED;
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
  if (!sn_planner_reach_start(p, slice_end(p, INFINITY))) return;
  if (!sn_planner_policy_choose(p, INFINITY)) return;
  if (!p->iterations.begun) begin_iteration(p);
  p->iterations.optimizer->submit(p);
}

// ---- ending it ----

void sn_planner_stop(SnPlanner *p) {
  if (!p->progress.active || p->progress.optimized) return;
  sn_planner_end_iteration(p);
  p->progress.optimized = true;
}

int sn_planner_iterations(const SnPlanner *p) { return p->progress.active ? p->result.iterations : 0; }

bool sn_planner_is_refined(const SnPlanner *p) {
  if (!p->progress.active) return false;
  const int least = sn_planner_least_iterations_of(p->iterations.optimizer, &p->in_force.settings);
  const int limit = iteration_limit(p);
  return counted(p) >= (limit > 0 && limit < least ? limit : least);
}

SnCode sn_planner_plan(SnPlanner *p, const SnPlanRequest *request, SnPlan *plan, SnError *err) {
  const SnCode code = sn_planner_begin(p, request, err);
  if (code != SN_OK) return code;
  while (!sn_planner_slice(p, INFINITY)) continue;
  sn_planner_finish(p, plan);
  return SN_OK;
}
