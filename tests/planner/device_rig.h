// A planner of the bench body on a device by a script, or on the CPU.
#ifndef SINEW_TESTS_PLANNER_DEVICE_RIG_H_
#define SINEW_TESTS_PLANNER_DEVICE_RIG_H_

#include "tests/planner/device_backend.h"

typedef struct Rig {
  SnPool *pool;
  SnBackend *cpu;
  DeviceBackend d;
  SnPlanner *p;
} Rig;

static inline SnSettings adam_settings(int iterations) {
  SnSettings s = task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.adam_iterations = iterations;
  s.adam_rate = 0.05;
  s.adam_starts = 2;
  return s;
}

// On the device with jobs of that many iterations (0: on the CPU itself), with the CPU as fallback or without one.
static inline Rig *make_rig(int job_iterations, const SnSettings *settings, bool fallback) {
  SnError err = {0};
  Rig *x = calloc(1, sizeof *x);
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

static inline void free_rig(Rig *x) {
  sn_planner_free(x->p);
  assert_int_equal(x->d.models, 0);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  free(x);
}

static inline SnPlanRequest initial_request(const Rig *x, double time) {
  const SnStart *s = sn_planner_initial(x->p);
  SnPlanRequest r = sn_default_plan_request();
  r.time = time;
  r.qpos = s->qpos;
  r.qvel = s->qvel;
  r.act = s->act;
  return r;
}

static inline void begin(Rig *x, const SnPlanRequest *r) {
  SnError err = {0};
  if (sn_planner_begin(x->p, r, &err) != SN_OK) fail_msg("%s", err.text);
}

static inline SnPlan plan_now(Rig *x, const SnPlanRequest *r) {
  SnPlan plan;
  begin(x, r);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  return plan;
}

static inline double evaluate(Rig *x, const SnPlan *plan) {
  SnError err = {0};
  const SnStart *s = sn_planner_initial(x->p);
  const SnEvaluateRequest q = {
      .time = plan->start, .qpos = s->qpos, .qvel = s->qvel, .act = s->act, .nstep = plan->nstep, .ctrl = plan->ctrl};
  SnEvaluation e;
  if (sn_planner_evaluate(x->p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  return e.cost;
}

static inline void same_plan(const SnPlan *a, const SnPlan *b) {
  assert_true(a->status == b->status && a->iterations == b->iterations && a->candidates == b->candidates);
  assert_true(a->cost_before == b->cost_before && a->cost_after == b->cost_after && a->nstep == b->nstep);
  assert_memory_equal(&a->gradient_norm, &b->gradient_norm, sizeof a->gradient_norm);
  assert_memory_equal(a->ctrl, b->ctrl, sizeof(sn_real) * (size_t)a->nstep * (size_t)a->nu);
  for (int i = 0; i < a->nterm; ++i) assert_true(a->term[i] == b->term[i]);
}

#endif
