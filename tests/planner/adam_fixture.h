// A planner of the bench body that follows gradients: by differences, or the CPU backend's own.
#ifndef SINEW_TESTS_PLANNER_ADAM_FIXTURE_H_
#define SINEW_TESTS_PLANNER_ADAM_FIXTURE_H_

#include "tests/planner/bench_body.h"
#include "tests/planner/backend/difference_backend.h"
#include "tests/planner/plans.h"

typedef struct Fixture {
  SnPool *pool;
  SnBackend *cpu;
  DifferenceBackend differences;
  SnPlanner *p;
  CountingClock count;
} Fixture;

static inline SnSettings adam_settings(void) {
  SnSettings s = task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.adam_iterations = 8;
  s.adam_rate = 0.05;
  return s;
}

// Makes a planner; `exact`: with the CPU backend's own gradients, else by differences. `counting`: its clock counts.
static inline Fixture *open_fixture(int threads, bool counting, const SnSettings *settings, bool exact) {
  SnError err = {0};
  Fixture *x = calloc(1, sizeof *x);
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

static inline Fixture *make_fixture(int threads, bool counting, const SnSettings *settings) {
  return open_fixture(threads, counting, settings, false);
}

static inline void free_fixture(Fixture *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  free(x);
}

static inline SnPlanRequest initial_request(const Fixture *x, double time) { return request_of(x->p, time); }

static inline SnPlan plan_now(Fixture *x, const SnPlanRequest *r) { return plan_of(x->p, r); }

static inline SnPlan plan_at(Fixture *x, double time) {
  const SnPlanRequest r = initial_request(x, time);
  return plan_now(x, &r);
}

static inline void configure(Fixture *x, const SnSettings *s) {
  SnError err = {0};
  if (sn_planner_configure(x->p, s, &err) != SN_OK) fail_msg("%s", err.text);
}

static inline double evaluate(Fixture *x, const SnPlan *plan) { return cost_of(x->p, plan); }

#endif
