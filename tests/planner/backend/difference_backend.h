// A backend whose gradients are central differences of the CPU backend's own rollouts: an oracle for planners that
// follow gradients. One model at a time.
#ifndef SINEW_TESTS_PLANNER_BACKEND_DIFFERENCE_BACKEND_H_
#define SINEW_TESTS_PLANNER_BACKEND_DIFFERENCE_BACKEND_H_

#include <math.h>
#include <stdlib.h>

#include "planner/backend/backend_impl.h"
#include "planner/backend/cpu_multistart_private.h"

typedef struct DifferenceBackend {
  SnBackend table;  // first
  SnBackend *cpu;
  const SnModel *m;
  SnRolloutRunner *runner;
  SnCpuMultistart *multistart;
  sn_real *ctrl;  // (max_step, nu)
  int max_step;
  int item, entry;  // position in an interrupted batch; entry -1: the value
  int capacity;
  double costs[4096];  // items' costs in the order in which they were done
  int ncost;
} DifferenceBackend;

static void difference_update(SnBackend *b, SnBackendModel *x) {
  SnBackend *cpu = ((DifferenceBackend *)b)->cpu;
  sn_backend_update(cpu, x);
}

static bool difference_rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock,
                                double until) {
  SnBackend *cpu = ((DifferenceBackend *)b)->cpu;
  return sn_backend_rollouts(cpu, x, batch, clock, until);
}

static SnBackendModel *difference_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  DifferenceBackend *d = (DifferenceBackend *)b;
  d->m = m;
  d->max_step = max_step;
  d->runner = sn_rollout_runner_create(m, cost, err);
  d->multistart = sn_cpu_multistart_create(m, cost, max_step, err);
  d->ctrl = calloc((size_t)max_step * (size_t)m->nu + 1, sizeof *d->ctrl);
  d->entry = -1;
  return d->runner && d->multistart && d->ctrl ? sn_backend_load(d->cpu, m, cost, max_step, err) : NULL;
}

static void difference_unload(SnBackend *b, SnBackendModel *x) {
  DifferenceBackend *d = (DifferenceBackend *)b;
  sn_rollout_runner_free(d->runner);
  sn_cpu_multistart_free(d->multistart);
  free(d->ctrl);
  sn_backend_unload(d->cpu, x);
}

static SnCode difference_reserve(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  (void)x;
  (void)err;
  ((DifferenceBackend *)b)->capacity = count;
  return SN_OK;
}

static double difference_cost(DifferenceBackend *d, const SnGradient *g, const sn_real *ctrl, double *term) {
  sn_rollout_runner_begin(d->runner, &g->state, ctrl, g->target, g->nstep, g->max_velocity, NULL);
  sn_rollout_runner_run(d->runner, NULL, INFINITY);
  return sn_rollout_runner_cost(d->runner, term);
}

// Computes one entry of the gradient of an item.
static void difference_entry(DifferenceBackend *d, SnGradient *g, int k) {
  const sn_real h = sizeof h == sizeof(float) ? SN_R(2e-3) : SN_R(1e-6);  // costs are sums in sn_real
  memcpy(d->ctrl, g->ctrl, sizeof *d->ctrl * (size_t)(g->nstep * d->m->nu));
  d->ctrl[k] = g->ctrl[k] + h;
  const double up = difference_cost(d, g, d->ctrl, NULL);
  d->ctrl[k] = g->ctrl[k] - h;
  const double down = difference_cost(d, g, d->ctrl, NULL), slope = (up - down) / (2 * (double)h);
  g->ctrl_bar[k] = isfinite(slope) ? (sn_real)slope : 0;
}

static bool difference_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock,
                                 double until) {
  (void)x;
  DifferenceBackend *d = (DifferenceBackend *)b;
  assert_true(batch->count <= d->capacity);
  for (; d->item < batch->count; ++d->item) {
    SnGradient *g = &batch->item[d->item];
    const int n = g->nstep * d->m->nu;
    if (g->status != SN_GRADIENT_PENDING) continue;
    for (; d->entry < n; ++d->entry) {
      if (until < INFINITY && clock->now(clock->context) >= until) return false;
      if (d->entry < 0)
        g->cost = difference_cost(d, g, g->ctrl, g->term);
      else
        difference_entry(d, g, d->entry);
      if (!isfinite(g->cost)) break;
    }
    g->status = isfinite(g->cost) ? SN_GRADIENT_DONE : SN_GRADIENT_DIVERGED;
    if (!isfinite(g->cost)) memset(g->ctrl_bar, 0, sizeof *g->ctrl_bar * (size_t)n);
    if (d->ncost < 4096) d->costs[d->ncost++] = g->cost;
    d->entry = -1;
  }
  d->item = 0;
  return true;
}

static SnCode difference_reserve_multistart(SnBackend *b, SnBackendModel *x, int starts, SnError *err) {
  difference_reserve(b, x, starts, err);
  return sn_cpu_multistart_reserve(((DifferenceBackend *)b)->multistart, starts, err);
}

static bool difference_run(void *context, SnGradientBatch *batch, const SnClock *clock, double until) {
  return difference_gradients(context, NULL, batch, clock, until);
}

static bool difference_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock,
                                  double until) {
  (void)x;
  return sn_cpu_multistart_run(((DifferenceBackend *)b)->multistart, job, difference_run, b, clock, until);
}

static void difference_multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  DifferenceBackend *d = (DifferenceBackend *)b;
  (void)x;
  sn_cpu_multistart_end(d->multistart, job);
  d->item = 0;
  d->entry = -1;
}

static void difference_abandon(SnBackend *b, SnBackendModel *x) {
  DifferenceBackend *d = (DifferenceBackend *)b;
  sn_cpu_multistart_abandon(d->multistart);
  d->item = 0;
  d->entry = -1;
  sn_backend_abandon(d->cpu, x);
}

// Makes d a backend on top of cpu, which must outlive it.
static inline SnBackend *difference_backend(DifferenceBackend *d, SnBackend *cpu) {
  memset(d, 0, sizeof *d);
  d->cpu = cpu;
  d->table = (SnBackend){.name = "differences",
                         .job_iterations = 1,
                         .load = difference_load,
                         .unload = difference_unload,
                         .update = difference_update,
                         .rollouts = difference_rollouts,
                         .reserve_gradients = difference_reserve,
                         .gradients = difference_gradients,
                         .reserve_multistart = difference_reserve_multistart,
                         .multistart = difference_multistart,
                         .multistart_end = difference_multistart_end,
                         .abandon = difference_abandon};
  return &d->table;
}

#endif
