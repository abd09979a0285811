// Rolls a model out 64 times for 256 steps under random controls, and prints the throughput. With THREADS 0, or without
// it, on all processors that this process may use.
//   batch MODEL [THREADS]
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <sinew.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT = 64, STEPS = 256, ROUNDS = 3 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const SinewError *err) {
  fprintf(stderr, "batch: %s: %s\n", sinew_status_name(err->status), err->text);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: batch MODEL [THREADS]\n"), 2;
  SinewError err;
  SinewModel *model = sinew_model_load(argv[1], &err);
  if (!model) return fail(&err);
  SinewBackendOptions options = sinew_default_backend();
  options.threads = argc > 2 ? atoi(argv[2]) : 0;
  SinewBackend *backend = sinew_backend_open("cpu", &options, &err);
  if (!backend) return fail(&err);

  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.backend = backend;
  def.capacity = COUNT;
  def.steps = STEPS;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  if (!batch) return fail(&err);

  // All begin at qpos0, each has controls of its own, which change every 16 steps.
  const SinewSizes *size = sinew_model_sizes(model);
  const double *range = sinew_model_ctrl_range(model);
  const size_t nu = (size_t)size->nu, nq = (size_t)size->nq;
  double *ctrl = malloc((COUNT * STEPS * nu + 1) * sizeof *ctrl);
  double *qpos = malloc((COUNT * (STEPS + 1) * nq + 1) * sizeof *qpos);
  int status[COUNT], diverged = 0;
  if (!ctrl || !qpos) return 1;
  for (size_t i = 0; i < COUNT * STEPS; ++i)
    for (size_t k = 0; k < nu; ++k) {
      const double low = isfinite(range[2 * k]) ? range[2 * k] : -1;
      const double high = isfinite(range[2 * k + 1]) ? range[2 * k + 1] : 1;
      ctrl[i * nu + k] = i % 16 ? ctrl[(i - 1) * nu + k] : low + (high - low) * rand() / RAND_MAX;
    }

  SinewRollouts rollouts = sinew_default_rollouts();
  rollouts.count = COUNT;
  rollouts.steps = STEPS;
  rollouts.one_state = true;
  rollouts.ctrl = ctrl;
  rollouts.out_qpos = qpos;
  rollouts.status = status;
  double best = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    const double begin = now();
    if (sinew_batch_rollout(batch, &rollouts, &err) != SINEW_OK) return fail(&err);
    const double rate = COUNT * STEPS / (now() - begin);
    if (rate > best) best = rate;
  }
  for (int i = 0; i < COUNT; ++i) diverged += status[i] != SINEW_OK;
  printf("%s: %d rollouts of %d steps: %.0f steps/s, %d diverged\n", sinew_backend_description(backend), COUNT, STEPS,
         best, diverged);

  free(qpos);
  free(ctrl);
  sinew_batch_free(batch);
  sinew_backend_close(backend);
  sinew_model_free(model);
  return 0;
}
