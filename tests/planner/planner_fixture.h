// A planner of the bench body and its task on the CPU backend.
#ifndef SINEW_TESTS_PLANNER_PLANNER_FIXTURE_H_
#define SINEW_TESTS_PLANNER_PLANNER_FIXTURE_H_

#include "tests/planner/bench_body.h"
#include "tests/planner/plans.h"

typedef struct Fixture {
  SnPool *pool;
  SnBackend *backend;
  SnPlanner *p;
  CountingClock count;
} Fixture;

static inline Fixture *make_fixture_of(const SnTask *of, int threads, bool counting, uint64_t seed) {
  SnError err = {0};
  Fixture *x = calloc(1, sizeof *x);
  x->pool = sn_pool_create(threads, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = of;
  def.backend = x->backend;
  def.settings = of->settings;
  def.seed = seed;
  if (counting) def.clock = counting_clock(&x->count);
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
  return x;
}

static inline Fixture *make_fixture(int threads, bool counting, uint64_t seed) {
  return make_fixture_of(task, threads, counting, seed);
}

static inline void free_fixture(Fixture *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
  free(x);
}

// Returns a request from the initial state, at a time [s].
static inline SnPlanRequest initial_request(const Fixture *x, double time) { return request_of(x->p, time); }

static inline SnPlan plan_now(Fixture *x, const SnPlanRequest *r) { return plan_of(x->p, r); }

#endif
