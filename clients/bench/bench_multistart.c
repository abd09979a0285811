#include "clients/bench/bench_multistart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/rollout/cfd.h"

// A knot a step.
static SnAdamGrid grid_of(int steps) {
  return (SnAdamGrid){
      .nstep = steps, .knots = sn_noise_knots(steps, 1, 0), .spacing = 1, .interpolation = SN_SPLINE_ZERO};
}

static SnNoiseSettings noise_of(const SnSettings *s, uint64_t seed, int steps) {
  SnNoiseSettings noise = {.seed = seed, .spacing = (steps + s->knots - 2) / (s->knots - 1)};
  noise.interpolation = s->interpolation;
  noise.colour = s->noise;
  noise.scale = (sn_real)s->noise_scale;
  noise.knots = sn_noise_knots(steps, noise.spacing, noise.phase);
  return noise;
}

static SnCode make_arrays(BenchMultistart *x, SnError *err) {
  const size_t nu = (size_t)x->task->m->nu, rows = (size_t)x->task->steps * nu;
  x->first = calloc(rows + 1, sizeof *x->first);
  x->ctrl = calloc(rows + 1, sizeof *x->ctrl);
  x->initial = calloc(nu + 1, sizeof *x->initial);
  x->term = calloc((size_t)x->task->cost->nterm + 1, sizeof *x->term);
  if (!x->first || !x->ctrl || !x->initial || !x->term) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  x->pair = sn_cfd_pairs(x->task->task, x->task->m, err);
  return x->pair ? SN_OK : err->code;
}

static SnCode first_controls(BenchMultistart *x, int number, SnError *err) {
  const BenchTask *t = x->task;
  const SnNoiseSettings noise = noise_of(&t->task->settings, 1, t->steps);
  sn_real *scratch = calloc(3 * (size_t)noise.knots, sizeof *scratch);
  if (!scratch) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  sn_noise_candidate(t->m, &noise, number, t->ctrl, t->steps, scratch, x->first);
  free(scratch);
  return SN_OK;
}

SnCode bench_multistart_open(BenchMultistart *x, const BenchTask *task, SnBackend *backend, int number, int starts,
                             SnError *err) {
  const SnSettings *s = &task->task->settings;
  *x = (BenchMultistart){.task = task, .backend = backend};
  SnCode code = make_arrays(x, err);
  if (code == SN_OK) code = first_controls(x, number, err);
  if (code != SN_OK) return code;
  if (!(x->device = sn_backend_load_as(backend, task->m, task->cost, task->steps, s, err))) return err->code;
  if ((code = sn_backend_reserve_multistart(backend, x->device, starts, err)) != SN_OK) return code;
  sn_task_initial_plan(task->task, task->m, 0, x->initial);
  x->job = (SnMultistartJob){
      .state = bench_task_state(task),
      .target = task->target,
      .nstep = task->steps,
      .max_velocity = s->max_velocity,
      .settings = {.method = (SnGradientMethod)s->gradient, .cfd = sn_cfd_settings(s, x->pair, sn_cfd_backward(s))},
      .grid = grid_of(task->steps),
      .rule = sn_adam_settings(s),
      .noise = noise_of(s, 2 + (uint64_t)number, task->steps),
      .initial_ctrl = x->initial,
      .starts = starts,
      .count = starts,
      .deadline = INFINITY,
      .ctrl = x->ctrl,
      .best_term = x->term};
  return SN_OK;
}

void bench_multistart_close(BenchMultistart *x) {
  if (x->device) sn_backend_unload(x->backend, x->device);
  free(x->first);
  free(x->ctrl);
  free(x->initial);
  free(x->term);
  free(x->pair);
}

static void begin(BenchMultistart *x) {
  memcpy(x->ctrl, x->first, sizeof *x->ctrl * (size_t)x->task->steps * (size_t)x->task->m->nu);
  x->job.init = true;
  x->job.measured = false;
  x->job.best_cost = INFINITY;
  x->job.gradient_norm = NAN;
}

SnCode bench_multistarts_run(BenchMultistart *x, int n, int iterations, SnError *err) {
  const SnClock clock = sn_clock_monotonic();
  for (int i = 0; i < n; ++i) begin(x + i);
  for (int left = iterations; left > 0;) {
    const int most = sn_backend_job_iterations(x->backend), now = left < most ? left : most;
    for (int i = 0; i < n; ++i) {
      x[i].job.iterations = now;
      x[i].job.done = 0;
      sn_backend_multistart_submit(x->backend, x[i].device, &x[i].job);
    }
    bool done = true;
    for (int i = 0; i < n; ++i) {
      done = done && sn_backend_multistart(x->backend, x[i].device, &x[i].job, &clock, INFINITY);
      sn_backend_multistart_end(x->backend, x[i].device, &x[i].job);
      x[i].job.init = false;
      x[i].job.measured = true;
    }
    if (!done) return sn_fail(err, SN_ERR_LIMIT, "the backend stopped");
    left -= now;
  }
  return SN_OK;
}
