// One step, ours (sinew_step) and mj_step. MuJoCo first runs the model under seeded smooth controls with the model's
// own options, and every state is kept. Then, in turn, each engine takes one step from each of these states with the
// same controls and the same warm start; only the step itself is timed. A round is one pass of both; medians over the
// rounds.
#include <argp.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/base/api.h"
#include "clients/base/args.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/rollout_batch_private.h"
#include "clients/bench/step_profile_private.h"
#include "clients/include/sinew.h"
#include "clients/reference/mirror.h"
#include "clients/reference/mujoco_drive.h"

enum { KEY_JACOBIANS = 256 };
enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };

typedef struct Settings {
  DrivenArgs driven;
  RolloutBatchArgs batch;  // n 0: one world beside MuJoCo's
  bool profile, jacobians;
} Settings;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->driven;
      state->child_inputs[1] = &s->batch.backend;
      return 0;
    case 'w':
      s->batch.n = sn_arg_list(state, "worlds", arg, 1000000, s->batch.size, SN_ARG_LIST);
      return 0;
    case ARGP_KEY_END:
      if ((s->batch.backend.name || s->batch.backend.threads) && s->batch.n == 0)
        argp_error(state, "--%s needs --worlds", s->batch.backend.name ? "backend" : "threads");
      if (s->jacobians && s->batch.n > 0) argp_error(state, "--jacobians is of one world, without --worlds");
      if (s->driven.rounds == 0) s->driven.rounds = s->batch.n > 0 ? 3 : 9;
      return 0;
    case 'p':
      s->profile = true;
      return 0;
    case KEY_JACOBIANS:
      s->jacobians = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// Both engines, and the states of a run with their controls: count x size numbers.
typedef struct Run {
  mjModel *mj;
  mjData *d;
  SinewModel *model;
  SinewData *data;
  mjtNum *state;
  int size, count;
} Run;

enum { KEPT = mjSTATE_INTEGRATION };

static SinewStatus open_run(Run *r, const Settings *s, SinewError *err) {
  SnError why = {0};
  if (!(r->mj = sn_oracle_read_file(s->driven.model, &why))) return api_fail(err, SINEW_ERR_FORMAT, "%s", why.text);
  if (!(r->model = sn_mirror_model(r->mj, err)) || !(r->data = sinew_data_create(r->model, err))) return err->status;
  r->d = mj_makeData(r->mj);
  r->size = (int)mj_stateSize(r->mj, KEPT);
  r->count = s->driven.steps;
  r->state = malloc(sizeof *r->state * (size_t)r->size * (size_t)r->count);
  return r->d && r->state ? SINEW_OK : api_fail(err, SINEW_ERR_MEMORY, "no memory for the states of the run");
}

static void close_run(Run *r) {
  free(r->state);
  sinew_data_free(r->data);
  sinew_model_free(r->model);
  if (r->d) mj_deleteData(r->d);
  if (r->mj) mj_deleteModel(r->mj);
}

static void record(Run *r, const Settings *s) {
  sn_mujoco_start(r->mj, r->d);
  for (int k = 0; k < r->count; ++k) {
    sn_mujoco_controls(r->mj, r->d, (uint64_t)s->driven.seed, k * r->mj->opt.timestep, NULL);
    mj_getState(r->mj, r->d, r->state + (size_t)k * (size_t)r->size, KEPT);
    mj_step(r->mj, r->d);
  }
}

// Puts MuJoCo into state k.
static void restore(Run *r, int k) { mj_setState(r->mj, r->d, r->state + (size_t)k * (size_t)r->size, KEPT); }

// Mean time of a step over all states [us].
static double pass_ours(Run *r) {
  double total = 0;
  for (int k = 0; k < r->count; ++k) {
    restore(r, k);
    sn_mirror_state(r->data, r->mj, r->d);
    const double t = sn_now_us();
    sinew_step(r->data, 1, NULL);
    total += sn_now_us() - t;
  }
  return total / r->count;
}

static double pass_mujoco(Run *r) {
  double total = 0;
  for (int k = 0; k < r->count; ++k) {
    restore(r, k);
    const double t = sn_now_us();
    mj_step(r->mj, r->d);
    total += sn_now_us() - t;
  }
  return total / r->count;
}

// Mean time of A and B over all states, of which nothing but the derivative is timed [us]. Negative: failed.
static double pass_jacobians(Run *r, double *A, double *B, SinewError *err) {
  double total = 0;
  for (int k = 0; k < r->count; ++k) {
    restore(r, k);
    sn_mirror_state(r->data, r->mj, r->d);
    sinew_forward(r->data, NULL);
    const double t = sn_now_us();
    if (sinew_step_jacobian(r->data, A, B, NULL, NULL, err) != SINEW_OK) return -1;
    total += sn_now_us() - t;
  }
  return total / r->count;
}

typedef struct Figures {
  double sinew_us, mujoco_us, ratio, ratio_low, ratio_high;
  double jacobian_us, jacobian_steps;  // 0: not asked for
  const char *solver;                  // MuJoCo's
} Figures;

// A and B beside a step, in turn.
static SinewStatus measure_jacobians(Run *r, int rounds, Figures *f, SinewError *err) {
  double time[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
  const size_t n = 2 * (size_t)r->mj->nv + (size_t)r->mj->na, nA = n * n;
  double *A = malloc(sizeof *A * (nA + n * (size_t)r->mj->nu + 1));
  if (!A) return api_fail(err, SINEW_ERR_MEMORY, "no memory for the Jacobians of a step");
  err->status = SINEW_OK;
  for (int i = 0; i < rounds && err->status == SINEW_OK; ++i) {
    time[i] = pass_jacobians(r, A, A + nA, err);
    ratio[i] = time[i] / pass_ours(r);
  }
  free(A);
  f->jacobian_us = sn_median(time, rounds);
  f->jacobian_steps = sn_median(ratio, rounds);
  return err->status;
}

static Figures measure(Run *r, int rounds) {
  double ours[BENCH_ROUNDS], theirs[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
  pass_ours(r);
  pass_mujoco(r);
  for (int i = 0; i < rounds; ++i) {
    ours[i] = pass_ours(r);
    theirs[i] = pass_mujoco(r);
    ratio[i] = ours[i] / theirs[i];
  }
  Figures f = {.sinew_us = sn_median(ours, rounds),
               .mujoco_us = sn_median(theirs, rounds),
               .ratio = sn_median(ratio, rounds),
               .solver = sn_mujoco_solver(r->mj)};
  f.ratio_low = ratio[0];
  f.ratio_high = ratio[rounds - 1];
  return f;
}

static void print_json(const Settings *s, const Figures *f, const StepProfile *p) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->driven.model);
  cJSON_AddNumberToObject(root, "steps", s->driven.steps);
  cJSON_AddNumberToObject(root, "rounds", s->driven.rounds);
  cJSON_AddStringToObject(root, "mujoco_solver", f->solver);
  cJSON_AddNumberToObject(root, "sinew_us", f->sinew_us);
  cJSON_AddNumberToObject(root, "mujoco_us", f->mujoco_us);
  cJSON_AddNumberToObject(root, "ratio", f->ratio);
  cJSON_AddNumberToObject(root, "ratio_low", f->ratio_low);
  cJSON_AddNumberToObject(root, "ratio_high", f->ratio_high);
  if (f->jacobian_us > 0) cJSON_AddNumberToObject(root, "jacobian_us", f->jacobian_us);
  if (f->jacobian_us > 0) cJSON_AddNumberToObject(root, "jacobian_steps", f->jacobian_steps);
  if (p) step_profile_add(root, p);
  bench_print_json(root, false);
}

static void print_text(const Settings *s, const Figures *f, const StepProfile *p) {
  printf("%s: %d states, %d rounds, one thread\n", s->driven.model, s->driven.steps, s->driven.rounds);
  printf("sinew %.1f us, MuJoCo %.1f us, ratio %.3f (%.3f to %.3f)\n", f->sinew_us, f->mujoco_us, f->ratio,
         f->ratio_low, f->ratio_high);
  bench_solver_print(f->solver);
  if (f->jacobian_us > 0) printf("A and B of a step: %.1f us, %.2f steps\n", f->jacobian_us, f->jacobian_steps);
  if (p) step_profile_print(p);
}

int mode_step(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"worlds", 'w', "LIST", 0, "rollouts of N worlds at once on a backend, e.g. 1,16,256,1024,8192,16384", 0},
      {"profile", 'p', NULL, 0, "time every stage too", 0},
      {"jacobians", KEY_JACOBIANS, NULL, 0, "time the Jacobians A, B of a step too, in steps", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &driven_argp}, {.argp = &bench_backend_argp}, {0}};
  static const char doc[] =
      "Times one step of the world, ours and mj_step in turn, from the same states with the same controls, on one "
      "thread; or, with --worlds, rollouts of many worlds at once on a backend.\vExamples:\n"
      "  sinew-bench step --model hand.xml --steps 256 --profile\n"
      "  sinew-bench step --model hand.xml --backend cuda --worlds 1,16,256,1024,8192,16384\n\n"
      "Exit status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded, or there is no such "
      "backend.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.driven = {.steps = 256}};
  argp_parse(&argp, argc, argv, 0, NULL, &s);

  if (s.batch.n > 0) {
    s.batch.driven = s.driven;
    s.batch.profile = s.profile;
    return rollout_batch_run(&s.batch);
  }
  SinewError err = {0};
  Run r = {.state = NULL};
  StepProfile *p = NULL;
  SinewStatus status = open_run(&r, &s, &err);
  if (status == SINEW_OK) {
    record(&r, &s);
    Figures f = measure(&r, s.driven.rounds);
    if (s.jacobians) status = measure_jacobians(&r, s.driven.rounds, &f, &err);
    if (status != SINEW_OK)
      ;
    else if (s.profile && !(p = step_profile_create(r.mj, r.state, r.count)))
      status = api_fail(&err, SINEW_ERR_MEMORY, "no memory for a profile");
    else if (s.driven.json)
      print_json(&s, &f, p);
    else
      print_text(&s, &f, p);
  }
  if (status != SINEW_OK) bench_report_failure(s.driven.model, err.text);
  step_profile_free(p);
  close_run(&r);
  return status == SINEW_OK ? EXIT_MEASURED : status == SINEW_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
