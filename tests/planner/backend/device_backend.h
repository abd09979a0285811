// A device by a script, on top of the CPU backend. It works in whole iterations that take a time of the script's clock,
// and is lost at the call that the script says.
#ifndef SINEW_TESTS_PLANNER_BACKEND_DEVICE_BACKEND_H_
#define SINEW_TESTS_PLANNER_BACKEND_DEVICE_BACKEND_H_

#include <math.h>

#include "planner/backend/backend_impl.h"
#include "tests/planner/bench_body.h"

typedef struct DeviceBackend {
  SnBackend table;  // first
  SnBackend *cpu;
  double now;      // time of the clock, which is the planner's too
  double seconds;  // duration of an iteration
  int most;        // starts that there is room for
  // The loss: at call `lose_at` (1: the first) of rollouts, gradients and multistart together; 0: never.
  int lose_at;
  bool lost;
  // Counts of calls.
  int calls, jobs, submits, updates, models;
  SnMultistartJob *job;  // under way
} DeviceBackend;

static inline double device_now(void *context) { return ((DeviceBackend *)context)->now; }
static inline SnClock device_clock(DeviceBackend *d) { return (SnClock){device_now, d}; }

// Counts a call; true when the device is lost, or is in this one.
static inline bool device_fails(DeviceBackend *d) {
  d->lost = d->lost || ++d->calls == d->lose_at;
  return d->lost;
}

static SnBackendModel *device_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  DeviceBackend *d = (DeviceBackend *)b;
  if (d->lost) {
    sn_fail(err, SN_ERR_STATE, "the device is lost");
    return NULL;
  }
  ++d->models;
  return sn_backend_load(d->cpu, m, cost, max_step, err);
}

static void device_unload(SnBackend *b, SnBackendModel *x) {
  DeviceBackend *d = (DeviceBackend *)b;
  --d->models;
  sn_backend_unload(d->cpu, x);
}

static void device_update(SnBackend *b, SnBackendModel *x) {
  (void)x;
  ++((DeviceBackend *)b)->updates;
}

static bool device_rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  DeviceBackend *d = (DeviceBackend *)b;
  return !device_fails(d) && sn_backend_rollouts(d->cpu, x, batch, clock, until);
}

static SnCode device_reserve_gradients(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  DeviceBackend *d = (DeviceBackend *)b;
  return sn_backend_reserve_gradients(d->cpu, x, count, err);
}

static bool device_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock,
                             double until) {
  DeviceBackend *d = (DeviceBackend *)b;
  return !device_fails(d) && sn_backend_gradients(d->cpu, x, batch, clock, until);
}

static SnCode device_reserve_multistart(SnBackend *b, SnBackendModel *x, int starts, SnError *err) {
  DeviceBackend *d = (DeviceBackend *)b;
  assert_null(d->job);
  if (starts > d->most) return sn_fail(err, SN_ERR_LIMIT, "%d starts do not fit: room for %d", starts, d->most);
  return sn_backend_reserve_multistart(d->cpu, x, starts, err);
}

// Runs iterations one by one: the first of a call by the plan's deadline, the others by the end of the call, too.
static bool device_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock,
                              double until) {
  DeviceBackend *d = (DeviceBackend *)b;
  const int all = job->iterations;
  assert_true(all >= 1 && all <= b->job_iterations && until <= job->deadline);
  assert_true(!d->job || d->job == job);
  d->job = job;
  d->jobs += job->done == 0;
  if (device_fails(d)) return false;
  for (bool first = true; job->done < all; first = false) {
    const double latest = first ? job->deadline : until;
    if (d->now + d->seconds > latest) return false;
    job->iterations = job->done + 1;
    assert_true(sn_backend_multistart(d->cpu, x, job, clock, INFINITY));
    job->iterations = all;
    d->now += d->seconds;
  }
  return true;
}

static void device_multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  DeviceBackend *d = (DeviceBackend *)b;
  assert_true(d->job == job);
  sn_backend_multistart_end(d->cpu, x, job);
  d->job = NULL;
}

static void device_multistart_submit(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  DeviceBackend *d = (DeviceBackend *)b;
  (void)x;
  assert_true(!d->job || d->job == job);
  d->job = job;
  ++d->submits;
}

static bool device_lost(const SnBackend *b, char *text, int size) {
  const DeviceBackend *d = (const DeviceBackend *)b;
  if (d->lost) snprintf(text, (size_t)size, "call %d failed", d->lose_at);
  return d->lost;
}

static void device_abandon(SnBackend *b, SnBackendModel *x) {
  DeviceBackend *d = (DeviceBackend *)b;
  d->job = NULL;
  sn_backend_abandon(d->cpu, x);
}

// Makes d a backend on top of cpu, which must outlive it.
static inline SnBackend *device_backend(DeviceBackend *d, SnBackend *cpu, int job_iterations) {
  *d = (DeviceBackend){.cpu = cpu, .most = 64};
  d->table = (SnBackend){.name = "scripted",
                         .job_iterations = job_iterations,
                         .load = device_load,
                         .unload = device_unload,
                         .update = device_update,
                         .rollouts = device_rollouts,
                         .reserve_gradients = device_reserve_gradients,
                         .gradients = device_gradients,
                         .reserve_multistart = device_reserve_multistart,
                         .multistart = device_multistart,
                         .multistart_end = device_multistart_end,
                         .multistart_submit = device_multistart_submit,
                         .lost = device_lost,
                         .abandon = device_abandon};
  return &d->table;
}

#endif
