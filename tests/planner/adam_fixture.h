// A planner of the bench body that follows gradients: by differences, or the CPU backend's own.
#ifndef SINEW_TESTS_PLANNER_ADAM_FIXTURE_H_
#define SINEW_TESTS_PLANNER_ADAM_FIXTURE_H_

#include "tests/planner/bench_body.h"
#include "tests/planner/backend/difference_backend.h"
#include "tests/planner/plans.h"

typedef struct Rig {
  SnPool *pool;
  SnBackend *cpu;
  DifferenceBackend differences;
  SnPlanner *p;
  CountingClock count;
} Rig;

static inline SnSettings adam_settings(void) {
  SnSettings s = task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.adam_iterations = 8;
  s.adam_rate = 0.05;
  return s;
}

// exact: with the CPU backend's own gradients.
static inline Rig *open_rig(int threads, bool counting, const SnSettings *settings, bool exact) {
  SnError err = {0};
  Rig *x = calloc(1, sizeof *x);
  x->pool = sn_pool_create(threads, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = exact ? x->cpu : difference_backend(&x->differences, x->cpu);
  def.settings = *settings;
  def.seed = 3;
  if (counting) def.clock = counting_clock(&x->count);
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
  return x;
}

static inline Rig *make_rig(int threads, bool counting, const SnSettings *settings) {
  return open_rig(threads, counting, settings, false);
}

static inline void free_rig(Rig *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  free(x);
}

static inline SnPlanRequest initial_request(const Rig *x, double time) { return request_of(x->p, time); }

static inline SnPlan plan_now(Rig *x, const SnPlanRequest *r) { return plan_of(x->p, r); }

static inline SnPlan plan_at(Rig *x, double time) {
  const SnPlanRequest r = initial_request(x, time);
  return plan_now(x, &r);
}

static inline void configure(Rig *x, const SnSettings *s) {
  SnError err = {0};
  if (sn_planner_configure(x->p, s, &err) != SN_OK) fail_msg("%s", err.text);
}

static inline double evaluate(Rig *x, const SnPlan *plan) { return cost_of(x->p, plan); }

#endif
