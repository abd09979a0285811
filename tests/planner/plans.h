// Requests of a planner, whatever it runs on.
#ifndef SINEW_TESTS_PLANNER_PLANS_H_
#define SINEW_TESTS_PLANNER_PLANS_H_

#include "planner/planner.h"
#include "tests/support/oracle.h"

// Returns a request from the initial state, at a time [s].
static inline SnPlanRequest request_of(const SnPlanner *p, double time) {
  const SnState *s = sn_planner_initial(p);
  SnPlanRequest r = sn_default_plan_request();
  r.time = time;
  r.qpos = s->qpos;
  r.qvel = s->qvel;
  r.act = s->act;
  return r;
}

static inline SnPlan plan_of(SnPlanner *p, const SnPlanRequest *r) {
  SnError err = {0};
  SnPlan plan;
  if (sn_planner_plan(p, r, &plan, &err) != SN_OK) fail_msg("%s", err.text);
  return plan;
}

// Run the parts of a plan: begin; then slices to the end, and finish.
static inline void begin_plan(SnPlanner *p, const SnPlanRequest *r) {
  SnError err = {0};
  if (sn_planner_begin(p, r, &err) != SN_OK) fail_msg("%s", err.text);
}
static inline SnPlan finish_plan(SnPlanner *p) {
  SnPlan plan;
  while (!sn_planner_slice(p, INFINITY)) continue;
  sn_planner_finish(p, &plan);
  return plan;
}

// Returns the cost of a plan's controls from the initial state.
static inline double cost_of(SnPlanner *p, const SnPlan *plan) {
  SnError err = {0};
  const SnState *s = sn_planner_initial(p);
  const SnEvaluateRequest q = {
      .time = plan->start, .qpos = s->qpos, .qvel = s->qvel, .act = s->act, .nstep = plan->nstep, .ctrl = plan->ctrl};
  SnEvaluation e;
  if (sn_planner_evaluate(p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  return e.cost;
}

static inline size_t ctrl_bytes(const SnPlan *plan) { return sizeof(sn_real) * (size_t)plan->nstep * (size_t)plan->nu; }

#endif
