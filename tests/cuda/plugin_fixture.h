// A task on the CPU's backend and on that of a library, side by side.
#ifndef SINEW_TESTS_CUDA_PLUGIN_FIXTURE_H_
#define SINEW_TESTS_CUDA_PLUGIN_FIXTURE_H_

#include <stdio.h>
#include <stdlib.h>

#include "planner/planner.h"
#include "planner/rollout/cfd.h"
#include "tests/planner/counting_clock.h"
#include "tests/support/oracle.h"

// Holds a body and a task, with the planner that knows its initial state and plan; not on any device.
typedef struct Scene {
  SnOracle o;
  SnTask *task;
  SnPool *pool;
  SnBackend *cpu;
  SnPlanner *p;
  const SnModel *m;  // with the task's overrides
  SnCost *cost;      // a cost of its own, captured at the start
} Scene;

static inline void scene_start(Scene *x) {
  SnError err = {0};
  SnPlannerDef def = sn_default_planner_def();
  x->pool = sn_pool_create(1, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  def.model = x->o.m;
  def.task = x->task;
  def.backend = x->cpu;
  def.settings = x->task->settings;
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
  x->m = sn_planner_model(x->p);
  x->cost = sn_cost_create(x->task, x->m, &err);
  if (!x->cost) fail_msg("%s", err.text);
  // Captured as the planner's own, from the initial state.
  SnRolloutRunner *r = sn_rollout_runner_create(x->m, x->cost, &err);
  sn_world_set_state(x->m, sn_rollout_runner_world(r), sn_planner_initial(x->p));
  sn_cost_capture(x->cost, x->m, sn_rollout_runner_world(r), sn_rollout_runner_lane(r));
  sn_rollout_runner_free(r);
}

// Opens a task of planner/tasks. Returns false, having said so, when its model is not there.
static inline bool scene_open(Scene *x, const char *name) {
  SnError err = {0};
  char path[4096];
  memset(x, 0, sizeof *x);
  snprintf(path, sizeof path, "%s/../planner/tasks/%s.yaml", SN_TEST_SOURCE_DIR, name);
  x->task = sn_task_load(path, &err);
  if (!x->task) fail_msg("%s", err.text);
  if (!sn_oracle_find_model(x->task->model, path)) {
    sn_task_free(x->task);
    return false;
  }
  sn_oracle_load_file(&x->o, path);
  scene_start(x);
  return true;
}

static inline void scene_close(Scene *x) {
  sn_cost_free(x->cost);
  sn_planner_free(x->p);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  sn_task_free(x->task);
  sn_oracle_free(&x->o);
}

// Open and close the scene of a group of tests, `*state` of each.
static inline int open_arm(void **state) {
  *state = calloc(1, sizeof(Scene));
  return scene_open(*state, "arm_reach") ? 0 : -1;
}
static inline int close_arm(void **state) {
  scene_close(*state);
  free(*state);
  return 0;
}

// Opens a body and a task given as text.
static inline void scene_parse(Scene *x, const char *xml, const char *text) {
  SnError err = {0};
  memset(x, 0, sizeof *x);
  sn_oracle_load_string(&x->o, xml);
  x->task = sn_task_parse(text, strlen(text), "task.yaml", &err);
  if (!x->task) fail_msg("%s", err.text);
  scene_start(x);
}

// Returns the backend of a library that lies beside the test, with these options but their folder. Fails the test when
// it cannot.
static inline SnBackend *open_with(const char *name, SnBackendOptions options) {
  SnError err = {0};
  options.folder = SN_TEST_LIBRARIES;
#if defined(SN_TEST_FAKE_CUDA)
  if (strcmp(name, "cuda") == 0) options.folder = SN_TEST_FAKE_CUDA;
#endif
  SnBackend *b = sn_backend_open(name, NULL, &options, &err);
  if (!b) fail_msg("%s", err.text);
  return b;
}

// Returns such a backend with a budget of memory [bytes] (0: what there is).
static inline SnBackend *open_library(const char *name, double memory, const char *fault) {
  return open_with(name, (SnBackendOptions){.memory = memory, .fault = fault});
}

// Returns such a backend with so many threads a world (0: as the library thinks).
static inline SnBackend *open_threads(const char *name, int threads, const char *fault) {
  return open_with(name, (SnBackendOptions){.block_threads = threads, .fault = fault});
}

// Returns noise of candidates of so many steps.
static inline SnNoiseSettings noise_of(int nstep) {
  return (SnNoiseSettings){.seed = 11,
                           .plan = 2,
                           .iteration = 3,
                           .spacing = 8,
                           .phase = 3,
                           .knots = sn_noise_knots(nstep, 8, 3),
                           .interpolation = SN_SPLINE_CUBIC,
                           .colour = SN_NOISE_PINK,
                           .scale = SN_R(0.2)};
}

// Holds a batch of rollouts from a scene's initial state, with everything it needs.
typedef struct Rollouts {
  SnBatch batch;
  SnNoiseSettings *noise;  // used where candidates have any
  double *ctrl;            // (nstep, nu), before the batch's other numbers
  size_t results;          // numbers of the batch from `cost` on
} Rollouts;

static inline void rollouts_clear(Rollouts *r) {
  memset(r->batch.cost, 0, r->results * sizeof(double));
  memset(r->batch.done, 0, (size_t)r->batch.count);
  memset(r->batch.warn, 0, (size_t)r->batch.count * sizeof(int));
}

static inline Rollouts rollouts_make(const Scene *x, int nstep, int count, bool noisy) {
  const size_t nu = (size_t)x->m->nu, n = (size_t)count;
  const size_t nctrl = (size_t)nstep * nu, ntarget = (size_t)(nstep + 1) * (size_t)x->cost->ntarget;
  Rollouts r = {.results = n * (1 + (size_t)x->cost->nterm), .noise = malloc(sizeof *r.noise)};
  double *const ctrl = r.ctrl = calloc(nctrl + ntarget + r.results, sizeof *ctrl);
  sn_task_initial_plan(x->task, x->m, 0, ctrl);
  for (size_t i = nu; i < nctrl; ++i) ctrl[i] = ctrl[i - nu];
  sn_cost_schedule(x->cost, 0, (double)x->m->opt.timestep, nstep + 1, ctrl + nctrl);
  *r.noise = noise_of(nstep);
  r.batch = (SnBatch){.state = sn_planner_initial(x->p),
                      .nstate = 1,
                      .ctrl = ctrl,
                      .nctrl = 1,
                      .target = ctrl + nctrl,
                      .ntable = 1,
                      .noise = noisy ? r.noise : NULL,
                      .nstep = nstep,
                      .count = count,
                      .max_velocity = 1e3,
                      .cost = ctrl + nctrl + ntarget,
                      .term = ctrl + nctrl + ntarget + n,
                      .done = calloc(n, 1),
                      .warn = calloc(n, sizeof(int))};
  return r;
}

static inline void rollouts_free(Rollouts *r) {
  free(r->noise);
  free(r->ctrl);
  free(r->batch.done);
  free(r->batch.warn);
}

// Runs all of it, without a deadline, on a model that is loaded for it alone; with `batches` set as a batch of
// sn_backend_reserve_batches.
static inline void rollouts_run_as(const Scene *x, SnBackend *b, Rollouts *r, bool batches) {
  SnError err = {0};
  const SnClock clock = sn_clock_monotonic();
  SnBackendModel *d = sn_backend_load(b, x->m, x->cost, r->batch.nstep, &err);
  if (!d) fail_msg("%s", err.text);
  if (batches && sn_backend_reserve_batches(b, d, r->batch.count, &err) != SN_OK) fail_msg("%s", err.text);
  rollouts_clear(r);
  assert_true(sn_backend_rollouts(b, d, &r->batch, &clock, INFINITY));
  for (int i = 0; i < r->batch.count; ++i) assert_int_equal(r->batch.done[i], 1);
  sn_backend_unload(b, d);
}

static inline void rollouts_run(const Scene *x, SnBackend *b, Rollouts *r) { rollouts_run_as(x, b, r, false); }

static inline void rollouts_equal(const Rollouts *a, const Rollouts *b) {
  assert_memory_equal(a->batch.cost, b->batch.cost, a->results * sizeof(double));
}

static inline const SnClock *steady_clock(void) {
  static SnClock clock;
  clock = sn_clock_monotonic();
  return &clock;
}

static inline SnBackendModel *scene_load(SnBackend *b, const Scene *x, int nstep) {
  SnError err = {0};
  SnBackendModel *d = sn_backend_load(b, x->m, x->cost, nstep, &err);
  if (!d) fail_msg("%s", err.text);
  return d;
}

static inline bool rollouts_until(SnBackend *b, SnBackendModel *d, Rollouts *r, CountingClock *count, double more) {
  const SnClock clock = counting_clock(count);
  return sn_backend_rollouts(b, d, &r->batch, &clock, (double)atomic_load(&count->reads) + more);
}

// Returns the bytes that a backend takes of its device.
static inline size_t memory_used(SnBackend *b) { return sn_backend_memory(b).used; }

#endif
