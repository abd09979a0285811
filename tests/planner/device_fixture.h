// A planner of the bench body on a device by a script, or on the CPU.
#ifndef SINEW_TESTS_PLANNER_DEVICE_FIXTURE_H_
#define SINEW_TESTS_PLANNER_DEVICE_FIXTURE_H_

#include "tests/planner/backend/device_backend.h"
#include "tests/planner/plans.h"

typedef struct Fixture {
  SnPool *pool;
  SnBackend *cpu;
  DeviceBackend d;
  SnPlanner *p;
} Fixture;

static inline SnSettings adam_settings(int iterations) {
  SnSettings s = task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.adam_iterations = iterations;
  s.adam_rate = 0.05;
  s.adam_starts = 2;
  return s;
}

// Makes a planner on the device with jobs of that many iterations (0: on the CPU itself), with the CPU as fallback or
// without one.
static inline Fixture *make_fixture(int job_iterations, const SnSettings *settings, bool fallback) {
  SnError err = {0};
  Fixture *x = calloc(1, sizeof *x);
  x->pool = sn_pool_create(1, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = device_backend(&x->d, x->cpu, job_iterations > 0 ? job_iterations : 1);
  if (job_iterations == 0) def.backend = x->cpu;
  def.fallback = fallback ? x->cpu : NULL;
  def.settings = *settings;
  def.seed = 3;
  def.clock = device_clock(&x->d);
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
  return x;
}

static inline void free_fixture(Fixture *x) {
  sn_planner_free(x->p);
  assert_int_equal(x->d.models, 0);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  free(x);
}

static inline SnPlanRequest initial_request(const Fixture *x, double time) { return request_of(x->p, time); }

static inline void begin(Fixture *x, const SnPlanRequest *r) { begin_plan(x->p, r); }

static inline SnPlan plan_now(Fixture *x, const SnPlanRequest *r) {
  begin_plan(x->p, r);
  return finish_plan(x->p);
}

static inline double evaluate(Fixture *x, const SnPlan *plan) { return cost_of(x->p, plan); }

static inline void same_plan(const SnPlan *a, const SnPlan *b) {
  assert_true(a->status == b->status && a->iterations == b->iterations && a->candidates == b->candidates);
  assert_true(a->cost_before == b->cost_before && a->cost_after == b->cost_after && a->nstep == b->nstep);
  assert_memory_equal(&a->gradient_norm, &b->gradient_norm, sizeof a->gradient_norm);
  assert_memory_equal(a->ctrl, b->ctrl, sizeof(sn_real) * (size_t)a->nstep * (size_t)a->nu);
  for (int i = 0; i < a->nterm; ++i) assert_true(a->term[i] == b->term[i]);
}

#endif
