#include "clients/bench/rollout_batch_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench_backend.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/driven_model_private.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };

typedef struct RolloutBatch {
  const RolloutBatchArgs *args;
  DrivenModel driven;
  BenchBackend on;
  SnBackendModel *device;
  SnNoiseSettings noise;
  double *cost, *term;  // (most), (most, nterm)
  unsigned char *done;  // (most)
  int most;
} RolloutBatch;

// Figures of a batch of n worlds.
typedef struct Row {
  int worlds, diverged;
  double seconds, steps_per_s, low, high;  // median, and least and largest of the rounds
  double mujoco_steps_per_s;
  BenchRatio ratio;  // of the speeds, in each round
} Row;

static SnCode open_batch(RolloutBatch *x, SnError *err) {
  const RolloutBatchArgs *a = x->args;
  for (int i = 0; i < a->n; ++i)
    if (a->size[i] > x->most) x->most = a->size[i];
  SnCode code = driven_model_open(&x->driven, &a->driven, err);
  if (code == SN_OK) code = bench_backend_open(&x->on, &a->backend, err);
  if (code != SN_OK) return code;
  SnBackend *b = x->on.backend;
  if (!(x->device = sn_backend_load(b, x->driven.o.m, x->driven.cost, a->driven.steps, err))) return err->code;
  // As batches of the library, whose worlds may have a part of a warp each. That takes memory for states, too, which
  // these do not give.
  if (sn_backend_reserve_batches(b, x->device, x->most, err) != SN_OK) return err->code;
  const size_t most = (size_t)x->most;
  x->cost = calloc(most, sizeof *x->cost);
  x->term = calloc(most * (size_t)x->driven.cost->nterm + 1, sizeof *x->term);
  x->done = calloc(most, sizeof *x->done);
  if (!x->cost || !x->term || !x->done) return sn_fail(err, SN_ERR_MEMORY, "no memory for %d worlds", x->most);
  const int steps = a->driven.steps;
  x->noise = (SnNoiseSettings){.seed = (uint64_t)a->driven.seed,
                               .spacing = (steps + 14) / 15,
                               .interpolation = SN_SPLINE_LINEAR,
                               .colour = SN_NOISE_PINK,
                               .scale = SN_R(0.1)};
  x->noise.knots = sn_noise_knots(steps, x->noise.spacing, x->noise.phase);
  return SN_OK;
}

static void close_batch(RolloutBatch *x) {
  if (x->device) sn_backend_unload(x->on.backend, x->device);
  bench_backend_close(&x->on);
  driven_model_close(&x->driven);
  free(x->cost);
  free(x->term);
  free(x->done);
}

// A whole horizon of n worlds [s]; negative when the backend stopped.
static double pass(RolloutBatch *x, int n) {
  const SnClock clock = sn_clock_monotonic();
  const SnBatch batch = {.state = &x->driven.initial,
                         .nstate = 1,
                         .ctrl = x->driven.ctrl,
                         .nctrl = 1,
                         .target = x->driven.target,
                         .ntable = 1,
                         .noise = &x->noise,
                         .nstep = x->driven.steps,
                         .count = n,
                         .max_velocity = 1e6,
                         .cost = x->cost,
                         .term = x->term,
                         .done = x->done};
  memset(x->done, 0, (size_t)n);
  const double t = sn_now_us();
  if (!sn_backend_rollouts(x->on.backend, x->device, &batch, &clock, INFINITY)) return -1;
  return 1e-6 * (sn_now_us() - t);
}

// Steps of worlds that diverged are not counted: nobody knows how many they were.
static SnCode measure(RolloutBatch *x, int n, Row *row, SnError *err) {
  const int rounds = x->args->driven.rounds, steps = x->driven.steps;
  double ours[BENCH_ROUNDS], theirs[BENCH_ROUNDS], seconds[BENCH_ROUNDS];
  double taken = pass(x, n);
  driven_model_mujoco(&x->driven);  // what is touched for the first time does not count for either
  *row = (Row){.worlds = n};
  for (int i = 0; i < n; ++i) row->diverged += !isfinite(x->cost[i]);
  for (int r = 0; r < rounds && taken >= 0; ++r) {
    sn_progress("%d worlds, round %d of %d", n, r + 1, rounds);
    theirs[r] = 1e3 * steps / driven_model_mujoco(&x->driven);
    seconds[r] = taken = pass(x, n);
    ours[r] = (double)(n - row->diverged) * steps / taken;
  }
  if (taken < 0) return bench_backend_stopped(&x->on, err);
  row->ratio = bench_ratio(ours, theirs, rounds);
  row->seconds = sn_median(seconds, rounds);
  row->steps_per_s = sn_median(ours, rounds);
  row->low = ours[0];
  row->high = ours[rounds - 1];
  row->mujoco_steps_per_s = sn_median(theirs, rounds);
  return SN_OK;
}

// Shares of the stages in rollouts of as many worlds as were asked for at most; NULL: nobody asked, or the backend does
// not say.
static SnCode profile(RolloutBatch *x, cJSON **shares, SnError *err) {
  if (!x->args->profile) return SN_OK;
  cJSON_Delete(bench_stage_shares(&x->on, x->device));
  sn_progress("%d worlds, what the stages take", x->most);
  if (pass(x, x->most) < 0) return bench_backend_stopped(&x->on, err);
  *shares = bench_stage_shares(&x->on, x->device);
  return SN_OK;
}

static cJSON *row_json(const Row *r, int steps) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "worlds", r->worlds);
  cJSON_AddNumberToObject(o, "diverged", r->diverged);
  cJSON_AddNumberToObject(o, "seconds", r->seconds);
  cJSON_AddNumberToObject(o, "us_a_step", 1e6 * r->seconds / steps);
  cJSON_AddNumberToObject(o, "steps_per_s", r->steps_per_s);
  cJSON_AddNumberToObject(o, "steps_per_s_low", r->low);
  cJSON_AddNumberToObject(o, "steps_per_s_high", r->high);
  cJSON_AddNumberToObject(o, "mujoco_steps_per_s", r->mujoco_steps_per_s);
  cJSON_AddNumberToObject(o, "ratio", r->ratio.median);
  cJSON_AddNumberToObject(o, "ratio_low", r->ratio.low);
  cJSON_AddNumberToObject(o, "ratio_high", r->ratio.high);
  return o;
}

// Takes the shares over.
static void print_json(const RolloutBatch *x, const Row *row, cJSON *shares) {
  cJSON *root = cJSON_CreateObject(), *rows = NULL;
  cJSON_AddStringToObject(root, "model", x->args->driven.model);
  cJSON_AddStringToObject(root, "backend", bench_backend_name(&x->args->backend));
  cJSON_AddStringToObject(root, "device", x->on.text);
  cJSON_AddNumberToObject(root, "steps", x->driven.steps);
  cJSON_AddNumberToObject(root, "rounds", x->args->driven.rounds);
  cJSON_AddStringToObject(root, "mujoco_solver", sn_mujoco_solver(x->driven.o.mj));
  rows = cJSON_AddArrayToObject(root, "rows");
  for (int i = 0; i < x->args->n; ++i) cJSON_AddItemToArray(rows, row_json(row + i, x->driven.steps));
  if (shares) cJSON_AddItemToObject(root, "stage_shares", shares);
  bench_print_json(root, false);
}

static void print_text(const RolloutBatch *x, const Row *row, const cJSON *shares) {
  printf("%s: rollouts of %d steps, %d rounds\n%s\n", x->args->driven.model, x->driven.steps, x->args->driven.rounds,
         x->on.text);
  bench_solver_print(sn_mujoco_solver(x->driven.o.mj));
  printf("\n");
  printf("%8s %12s %14s %20s %9s\n", "worlds", "us a step", "steps/s", "MuJoCo, one thread", "ratio");
  for (int i = 0; i < x->args->n; ++i) {
    const Row *r = row + i;
    printf("%8d %12.2f %14.0f %20.0f %9.2f", r->worlds, 1e6 * r->seconds / x->driven.steps, r->steps_per_s,
           r->mujoco_steps_per_s, r->ratio.median);
    if (r->diverged) printf("  (%d diverged)", r->diverged);
    printf("\n");
  }
  if (shares) bench_stage_print(shares);
  if (x->args->profile && !shares)
    printf("\nthis backend does not say what its stages take; without --worlds, those of the cpu\n");
}

int rollout_batch_run(const RolloutBatchArgs *args) {
  SnError err = {0};
  RolloutBatch x = {.args = args};
  Row row[SN_ARG_LIST];
  cJSON *shares = NULL;
  SnCode code = open_batch(&x, &err);
  for (int i = 0; i < args->n && code == SN_OK; ++i) code = measure(&x, args->size[i], row + i, &err);
  if (code == SN_OK) code = profile(&x, &shares, &err);
  sn_progress_end();
  if (code != SN_OK)
    bench_report_failure(args->driven.model, err.text);
  else if (args->driven.json)
    print_json(&x, row, shares);
  else
    print_text(&x, row, shares);
  if (code != SN_OK || !args->driven.json) cJSON_Delete(shares);
  close_batch(&x);
  return code == SN_OK ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
