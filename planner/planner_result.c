// What a plan comes to: its description, as it stands or as it ends, and the plan in force from then on.
#include "planner/planner_private.h"

#include <stdio.h>

SnPlanStatus sn_planner_status(const SnPlanner *p) {
  if (p->result.iterations == 0) return SN_PLAN_WARM_START;
  return isfinite(p->result.best_cost) ? SN_PLAN_OK : SN_PLAN_DIVERGED;
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
  const SnPlanStatus status = sn_planner_status(p);
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
  if (p->progress.estimating) sn_planner_end_estimating(p);  // with what there is of it
  if (p->progress.request.trace_each) sn_planner_drop_batch(p);
  sn_planner_end_iteration(p);
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

uint64_t sn_planner_number(const SnPlanner *p) { return p->progress.number; }

bool sn_planner_peek(SnPlanner *p, SnPlan *plan) {
  if (!p->progress.active || p->result.iterations == 0) return false;
  describe_plan(p, plan);
  return true;
}
