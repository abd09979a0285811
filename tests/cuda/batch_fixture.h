// Rollouts of different states, controls and targets, with room for all that they write, for any backend. It also tells
// how far the results of two are apart.
#ifndef SINEW_TESTS_CUDA_BATCH_FIXTURE_H_
#define SINEW_TESTS_CUDA_BATCH_FIXTURE_H_

#include "clients/base/statistics.h"
#include "tests/cuda/plugin_fixture.h"
#include "tests/planner/sensing_body.h"

enum { MANY_ROWS = SENSING_STEPS + 1, MANY_TERMS = 5, MANY_MOST = 40 };

// Holds the inputs of such rollouts.
typedef struct Many {
  SensingBody *body;
  SnPool *pool;
  SnBackend *cpu;
  int count;
  SensingInput input[MANY_MOST];
  SnState state[MANY_MOST];
  double *ctrl, *target;  // (count, ...)
} Many;

// Holds what they give: `number` has all that is computed, so that two are compared at once.
typedef struct Written {
  SnTrajectory out[MANY_MOST];
  double cost[MANY_MOST], term[MANY_MOST * MANY_TERMS];
  unsigned char done[MANY_MOST];
  int warn[MANY_MOST], steps[MANY_MOST];
  double *number;
  int size;  // numbers of a trajectory
} Written;

static inline Many *many_open(int count) {
  SnError err = {0};
  Many *x = calloc(1, sizeof *x);
  assert_true(count <= MANY_MOST);
  x->body = sensing_open();
  x->pool = sn_pool_create(1, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  x->count = count;
  x->ctrl = calloc((size_t)count * SENSING_STEPS * SENSING_NU, sizeof *x->ctrl);
  x->target = calloc((size_t)count * MANY_ROWS * SENSING_TARGETS, sizeof *x->target);
  for (int k = 0; k < count; ++k) {
    x->state[k] = sensing_input(x->body, &x->input[k], k);
    memcpy(x->ctrl + k * SENSING_STEPS * SENSING_NU, x->input[k].ctrl, sizeof x->input[k].ctrl);
    memcpy(x->target + k * MANY_ROWS * SENSING_TARGETS, x->input[k].target, sizeof x->input[k].target);
  }
  return x;
}

static inline void many_close(Many *x) {
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  sensing_close(x->body);
  free(x->ctrl);
  free(x->target);
  free(x);
}

static inline Written *written_make(const Many *x) {
  Written *w = calloc(1, sizeof *w);
  const SnModel *m = x->body->m;
  const int part[] = {1, m->nq, m->nv, m->na, m->nv, 1, m->nsensordata};
  for (int i = 0; i < 7; ++i) w->size += MANY_ROWS * part[i];
  w->number = calloc((size_t)(x->count * w->size), sizeof *w->number);
  for (int k = 0; k < x->count; ++k) {
    double *p = w->number + k * w->size, *at[7];
    for (int i = 0; i < 7; p += MANY_ROWS * part[i++]) at[i] = p;
    w->out[k] = (SnTrajectory){
        .time = at[0], .qpos = at[1], .qvel = at[2], .act = at[3], .qacc = at[4], .cost = at[5], .sensordata = at[6]};
  }
  return w;
}

static inline void written_free(Written *w) {
  free(w->number);
  free(w);
}

static inline void written_clear(Written *w, int count) {
  memset(w->number, 0x55, sizeof *w->number * (size_t)(count * w->size));
  memset(w->done, 0, sizeof w->done);
  memset(w->cost, 0, sizeof w->cost);
  memset(w->term, 0, sizeof w->term);
  memset(w->warn, 0x55, sizeof w->warn);
  memset(w->steps, 0x55, sizeof w->steps);
}

// Returns the batch of all rollouts, with a cost or without.
static inline SnBatch many_batch(const Many *x, Written *w, bool with_cost) {
  return (SnBatch){.state = x->state,
                   .nstate = x->count,
                   .ctrl = x->ctrl,
                   .nctrl = x->count,
                   .target = with_cost ? x->target : NULL,
                   .ntable = with_cost ? x->count : 1,
                   .nstep = SENSING_STEPS,
                   .count = x->count,
                   .max_velocity = 1e3,
                   .cost = w->cost,
                   .term = w->term,
                   .done = w->done,
                   .warn = w->warn,
                   .steps = w->steps,
                   .out = w->out};
}

static inline SnBackendModel *many_load(const Many *x, SnBackend *b, bool with_cost) {
  SnError err = {0};
  SnBackendModel *d = sn_backend_load(b, x->body->m, with_cost ? x->body->cost : NULL, SENSING_STEPS, &err);
  if (!d) fail_msg("%s", err.text);
  return d;
}

// Runs a batch on a backend, on a model that is loaded for it alone.
static inline void many_run(const Many *x, SnBackend *b, const SnBatch *batch, Written *w) {
  SnError err = {0};
  SnBackendModel *d = many_load(x, b, batch->target != NULL);
  if (sn_backend_reserve_batches(b, d, batch->count, &err) != SN_OK) fail_msg("%s", err.text);
  written_clear(w, x->count);
  assert_true(sn_backend_rollouts(b, d, batch, steady_clock(), INFINITY));
  for (int i = 0; i < batch->count; ++i) assert_int_equal(w->done[i], 1);
  sn_backend_unload(b, d);
}

// Fails the test unless both have the same bits.
static inline void written_same(const Written *a, const Written *b, int count) {
  assert_memory_equal(a->number, b->number, sizeof *a->number * (size_t)(count * a->size));
  assert_memory_equal(a->cost, b->cost, sizeof a->cost);
  assert_memory_equal(a->term, b->term, sizeof a->term);
  assert_memory_equal(a->warn, b->warn, sizeof *a->warn * (size_t)count);
  assert_memory_equal(a->steps, b->steps, sizeof *a->steps * (size_t)count);
}

// Returns max|a - b| / max|b|. Fails the test where one of them is NaN alone.
static inline double numbers_error(const double *a, const double *b, int n) {
  double error = 0, scale = 1e-12;
  for (int i = 0; i < n; ++i) {
    assert_int_equal(isnan(a[i]) != 0, isnan(b[i]) != 0);
    if (isnan(b[i])) continue;
    error = sn_larger(error, fabs(a[i] - b[i]));
    scale = sn_larger(scale, fabs(b[i]));
  }
  return error / scale;
}

#endif
