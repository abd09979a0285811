// Planners whose plans a device optimizes, and what they ask of it, counted.
#ifndef SINEW_TESTS_CUDA_HOST_MULTISTART_FIXTURE_H_
#define SINEW_TESTS_CUDA_HOST_MULTISTART_FIXTURE_H_

#include "tests/cuda/host/device_behind.h"
#include "tests/cuda/plugin_fixture.h"
#include "tests/planner/plans.h"

// Counts what goes through a device: iterations, which begin with ITERATE, and copies in. Ends with the device.
static struct {
  int iterations, copies_in;
  void (*launch)(SnDevice *, SnDeviceStream *, SnKernel, const SnLaunchShape *, const SnWork *);
  void (*copy_in)(SnDevice *, SnDeviceStream *, void *, const void *, size_t);
  SnDeviceStream *stream[16];  // one for each iteration
} count;

static inline void count_launch(SnDevice *d, SnDeviceStream *s, SnKernel kernel, const SnLaunchShape *shape,
                                const SnWork *work) {
  if (kernel == SN_KERNEL_ITERATE) {
    if (count.iterations < 16) count.stream[count.iterations] = s;
    ++count.iterations;
  }
  count.launch(d, s, kernel, shape, work);
}

static inline void count_copy_in(SnDevice *d, SnDeviceStream *s, void *to, const void *from, size_t bytes) {
  ++count.copies_in;
  count.copy_in(d, s, to, from, bytes);
}

static inline void start_counting(SnBackend *b) {
  SnDevice *d = device_behind(b);
  memset(&count, 0, sizeof count);
  count.launch = d->launch;
  count.copy_in = d->copy_in;
  d->launch = count_launch;
  d->copy_in = count_copy_in;
}

// ---- planners ----

static inline SnSettings settings_of(const Scene *x, int horizon, int iterations) {
  SnSettings s = x->task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.horizon = horizon;
  s.knots = s.knots < horizon ? s.knots : horizon;
  s.adam_iterations = iterations;
  s.adam_rate = 0.03;
  return s;
}

static inline SnPlanner *planner(const Scene *x, SnBackend *b, const SnSettings *s, uint64_t seed,
                                 const SnClock *clock) {
  SnError err = {0};
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = b;
  def.settings = *s;
  def.seed = seed;
  if (clock) def.clock = *clock;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  return p;
}

static inline void begin_at(SnPlanner *p, double time) {
  const SnPlanRequest r = request_of(p, time);
  begin_plan(p, &r);
}

static inline void expect_equal(const SnPlan *a, const SnPlan *b) {
  assert_int_equal(a->status, b->status);
  assert_int_equal(a->iterations, b->iterations);
  assert_int_equal(a->candidates, b->candidates);
  assert_int_equal(a->nstep, b->nstep);
  assert_memory_equal(&a->cost_before, &b->cost_before, sizeof(double));
  assert_memory_equal(&a->cost_after, &b->cost_after, sizeof(double));
  assert_memory_equal(&a->gradient_norm, &b->gradient_norm, sizeof(double));
  assert_memory_equal(a->term, b->term, sizeof(double) * (size_t)a->nterm);
  assert_memory_equal(a->ctrl, b->ctrl, sizeof(sn_real) * (size_t)a->nstep * (size_t)a->nu);
  assert_int_equal(!a->qpos, !b->qpos);
  if (a->qpos) assert_memory_equal(a->qpos, b->qpos, sizeof(sn_real) * (size_t)(a->nstep + 1) * (size_t)a->nq);
}

// ---- the same planner on a device, and where its plans are known ----

typedef struct Pair {
  SnPlanner *dev, *ref;
} Pair;

static inline Pair pair_make(const Scene *x, SnBackend *dev, SnBackend *ref, const SnSettings *s, uint64_t seed) {
  return (Pair){planner(x, dev, s, seed, NULL), planner(x, ref, s, seed, NULL)};
}

static inline void pair_free(Pair *p) {
  sn_planner_free(p->dev);
  sn_planner_free(p->ref);
}

static inline void pair_configure(const Pair *p, const SnSettings *s) {
  assert_int_equal(sn_planner_configure(p->dev, s, NULL), SN_OK);
  assert_int_equal(sn_planner_configure(p->ref, s, NULL), SN_OK);
}

// Ends the plan that has begun on the device, and makes the same one where it is known. Returns the device's.
static inline SnPlan pair_finish(const Pair *p, const SnPlanRequest *r) {
  const SnPlan got = finish_plan(p->dev);
  begin_plan(p->ref, r);
  const SnPlan want = finish_plan(p->ref);
  expect_equal(&want, &got);
  return got;
}

static inline void pair_finish_at(const Pair *p, double time) {
  const SnPlanRequest r = request_of(p->dev, time);
  pair_finish(p, &r);
}

#endif
