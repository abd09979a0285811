// Value and gradient of a rollout against the rollout itself, MuJoCo's rollout and MuJoCo's differences.
//
// MuJoCo runs the model under seeded smooth controls, with the model's own options; where it is after 50 steps the
// rollout starts, under the controls that follow. In each round, in turn: our rollout, our gradient, MuJoCo's steps
// under the same controls, and mjd_transitionFD, one-sided, which is its cheapest, at some of MuJoCo's states, scaled
// to all of them. Figures are medians over the rounds, ratios those of each round.
#include <argp.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/base/args.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_backend.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/driven_model_private.h"
#include "clients/bench/gradient_batch_private.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };

typedef struct Settings {
  DrivenArgs driven;
  BenchBackendArgs backend;
  int samples, nitems, items[SN_ARG_LIST];
  bool cfd, profile;
  SnGradientMethod method;
} Settings;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->driven;
      state->child_inputs[1] = &s->backend;
      return 0;
    case 'p':
      s->profile = true;
      return 0;
    case 'i':
      s->nitems = sn_arg_list(state, "items", arg, 65536, s->items, SN_ARG_LIST);
      return 0;
    case 'f':
      s->samples = sn_arg_count(state, "fd-samples", arg, 100000);
      return 0;
    case 'c':
      s->cfd = sn_arg_switch(state, "cfd", arg);
      return 0;
    case 'M':
      s->method = (SnGradientMethod)gradient_method_arg(state, arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

typedef struct Bench {
  DrivenModel driven;
  BenchBackend on;
  SnBackendModel *device;
  SnRolloutRunner *runner;
  SnGradient g;
  sn_real *ctrl_bar;
  mjtNum *now;                    // MuJoCo's state at a sample
  mjtNum *A, *B;                  // of mjd_transitionFD
  bool differences;               // whether it takes the model's integrator
  double spent[4][BENCH_ROUNDS];  // [ms]: rollout, gradient, MuJoCo's rollout, MuJoCo's differences
} Bench;

static SnCode out_of_memory(SnError *err) { return sn_fail(err, SN_ERR_MEMORY, "out of memory"); }

static SnCode open_bench(Bench *b, const Settings *s, SnError *err) {
  SnCode code = driven_model_open(&b->driven, &s->driven, err);
  if (code != SN_OK) return code;
  const SnModel *m = b->driven.o.m;
  const size_t n = 2 * (size_t)m->nv + (size_t)m->na, nu = (size_t)m->nu;
  if ((code = bench_backend_open(&b->on, &s->backend, err)) != SN_OK) return code;
  SnBackend *backend = b->on.backend;
  if (!(b->device = sn_backend_load(backend, m, b->driven.cost, s->driven.steps, err))) return err->code;
  if ((code = sn_backend_reserve_gradients(backend, b->device, 1, err)) != SN_OK) return code;
  if (!(b->runner = sn_rollout_runner_create(m, b->driven.cost, err))) return err->code;
  b->ctrl_bar = calloc((size_t)s->driven.steps * nu + 1, sizeof *b->ctrl_bar);
  b->now = calloc((size_t)mj_stateSize(b->driven.o.mj, DRIVEN_MODEL_STATE), sizeof *b->now);
  b->A = calloc(n * n + 1, sizeof *b->A);
  b->B = calloc(n * nu + 1, sizeof *b->B);
  if (!b->ctrl_bar || !b->now || !b->A || !b->B) return out_of_memory(err);
  b->differences = b->driven.o.mj->opt.integrator != mjINT_RK4;
  b->g = (SnGradient){.state = b->driven.initial,
                      .ctrl = b->driven.ctrl,
                      .target = b->driven.target,
                      .nstep = s->driven.steps,
                      .max_velocity = 1e6,
                      .ctrl_bar = b->ctrl_bar};
  return SN_OK;
}

static void close_bench(Bench *b) {
  sn_rollout_runner_free(b->runner);
  if (b->device) sn_backend_unload(b->on.backend, b->device);
  bench_backend_close(&b->on);
  driven_model_close(&b->driven);
  free(b->ctrl_bar);
  free(b->now);
  free(b->A);
  free(b->B);
}

// Each pass returns what it took [ms].
static double pass_rollout(Bench *b) {
  const SnClock clock = sn_clock_monotonic();
  const double t = sn_now_us();
  sn_rollout_runner_begin(b->runner, &b->g.state, b->driven.ctrl, b->driven.target, b->g.nstep, b->g.max_velocity,
                          NULL);
  sn_rollout_runner_run(b->runner, &clock, INFINITY);
  return 1e-3 * (sn_now_us() - t);
}

// False: the backend stopped.
static bool pass_gradient(Bench *b, const SnGradientSettings *settings, double *ms) {
  const SnClock clock = sn_clock_monotonic();
  SnGradientBatch batch = {.settings = *settings, .item = &b->g, .count = 1};
  b->g.status = SN_GRADIENT_PENDING;
  const double t = sn_now_us();
  const bool done = sn_backend_gradients(b->on.backend, b->device, &batch, &clock, INFINITY);
  *ms = 1e-3 * (sn_now_us() - t);
  return done;
}

// MuJoCo's rollout; on the way, untimed by it, the differences at `samples` of its states, scaled to all.
static void pass_mujoco(Bench *b, int samples, double *rollout, double *differences) {
  SnOracle *o = &b->driven.o;
  const int steps = b->g.nstep;
  int taken = 0;
  *rollout = *differences = 0;
  driven_model_restart(&b->driven);
  for (int k = 0; k < steps; ++k) {
    driven_model_controls(&b->driven, k);
    if (b->differences && k >= taken * steps / samples && taken < samples) {
      mj_getState(o->mj, o->d, b->now, DRIVEN_MODEL_STATE);
      const double t = sn_now_us();
      mjd_transitionFD(o->mj, o->d, 1e-6, 0, b->A, o->m->nu ? b->B : NULL, NULL, NULL);
      *differences += 1e-3 * (sn_now_us() - t);
      mj_setState(o->mj, o->d, b->now, DRIVEN_MODEL_STATE);
      ++taken;
    }
    const double t = sn_now_us();
    mj_step(o->mj, o->d);
    *rollout += 1e-3 * (sn_now_us() - t);
  }
  *differences *= taken ? (double)steps / taken : 0;
}

static SnGradientSettings gradient_settings(const Settings *s) {
  SnGradientSettings settings = sn_default_gradient_settings();
  settings.method = s->method;
  // all pairs, reach 1 m, without friction; impedances and softplus width as DESIGN gives them for a hand
  if (s->cfd)
    settings.cfd = (SnCfdSettings){
        .on = 1, .solimp = {SN_R(0.0), SN_R(0.1), SN_R(1.0), SN_R(1.0), SN_R(4.0)}, .width = SN_R(0.002)};
  return settings;
}

static SnCode measure(Bench *b, const Settings *s, SnError *err) {
  const SnGradientSettings settings = gradient_settings(s);
  double warm;
  pass_rollout(b);
  bool done = pass_gradient(b, &settings, &warm);
  for (int i = 0; i < s->driven.rounds && done; ++i) {
    bench_progress("round %d of %d", i + 1, s->driven.rounds);
    b->spent[0][i] = pass_rollout(b);
    done = pass_gradient(b, &settings, &b->spent[1][i]);
    pass_mujoco(b, s->samples < s->driven.steps ? s->samples : s->driven.steps, &b->spent[2][i], &b->spent[3][i]);
  }
  return done ? SN_OK : bench_backend_stopped(&b->on, err);
}

static const char *status_name(SnGradientStatus status) {
  return status == SN_GRADIENT_DONE ? "done" : status == SN_GRADIENT_DIVERGED ? "diverged" : "unbounded";
}

// Shares of the stages in one gradient; NULL: nobody asked, or the backend does not say.
static SnCode profile(Bench *b, const Settings *s, cJSON **shares, SnError *err) {
  const SnGradientSettings settings = gradient_settings(s);
  double ms;
  if (!s->profile) return SN_OK;
  cJSON_Delete(bench_stage_shares(&b->on, b->device));
  for (int i = 0; i < s->driven.rounds; ++i)
    if (!pass_gradient(b, &settings, &ms)) return bench_backend_stopped(&b->on, err);
  *shares = bench_stage_shares(&b->on, b->device);
  return SN_OK;
}

typedef struct Figures {
  double rollout, gradient, theirs, fd;  // [ms]
  BenchRatio over, times;                // gradient over rollout, differences over gradient
} Figures;

static Figures figures(const Settings *s, Bench *b) {
  const int n = s->driven.rounds;
  Figures f = {.over = bench_ratio(b->spent[1], b->spent[0], n), .times = bench_ratio(b->spent[3], b->spent[1], n)};
  f.rollout = sn_median(b->spent[0], n);
  f.gradient = sn_median(b->spent[1], n);
  f.theirs = sn_median(b->spent[2], n);
  f.fd = sn_median(b->spent[3], n);
  return f;
}

static void print_text(const Settings *s, const Bench *b, const Figures *f, const cJSON *items, const cJSON *shares) {
  printf("%s: %d steps, %d rounds, gradient %s, norm %.3g\n%s\n", s->driven.model, s->driven.steps, s->driven.rounds,
         status_name(b->g.status), b->g.norm, b->on.text);
  printf("rollout %.2f ms, value and gradient %.2f ms: %.2f times (%.2f to %.2f)\n", f->rollout, f->gradient,
         f->over.median, f->over.low, f->over.high);
  printf("MuJoCo's rollout %.2f ms", f->theirs);
  if (b->differences) printf(", its differences %.1f ms: %.1f times the gradient", f->fd, f->times.median);
  printf("\n");
  gradient_batch_print(items);
  if (shares) bench_stage_print(shares);
}

// Takes items and shares over.
static void print_json(const Settings *s, const Bench *b, const Figures *f, cJSON *items, cJSON *shares) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->driven.model);
  cJSON_AddStringToObject(root, "backend", bench_backend_name(&s->backend));
  cJSON_AddStringToObject(root, "device", b->on.text);
  cJSON_AddNumberToObject(root, "steps", s->driven.steps);
  cJSON_AddNumberToObject(root, "rounds", s->driven.rounds);
  cJSON_AddStringToObject(root, "cfd", s->cfd ? "on" : "off");
  cJSON_AddStringToObject(root, "chain", s->backend.chain ? s->backend.chain : "kernel");
  cJSON_AddStringToObject(root, "method", gradient_method_name((int)s->method));
  cJSON_AddNumberToObject(root, "rollout_ms", f->rollout);
  cJSON_AddNumberToObject(root, "gradient_ms", f->gradient);
  cJSON_AddNumberToObject(root, "gradient_over_rollout", f->over.median);
  cJSON_AddNumberToObject(root, "gradient_over_rollout_low", f->over.low);
  cJSON_AddNumberToObject(root, "gradient_over_rollout_high", f->over.high);
  cJSON_AddNumberToObject(root, "mujoco_rollout_ms", f->theirs);
  // cJSON writes NaN as null
  cJSON_AddNumberToObject(root, "mujoco_fd_ms", b->differences ? f->fd : NAN);
  cJSON_AddNumberToObject(root, "fd_over_gradient", b->differences ? f->times.median : NAN);
  cJSON_AddNumberToObject(root, "threads", sn_pool_size(b->on.pool));
  cJSON_AddStringToObject(root, "status", status_name(b->g.status));
  cJSON_AddNumberToObject(root, "norm", b->g.norm);
  if (items) cJSON_AddItemToObject(root, "items", items);
  if (shares) cJSON_AddItemToObject(root, "stage_shares", shares);
  bench_print_json(root, false);
}

int mode_gradient(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"cfd", 'c', "off|on", 0, "contacts from distance: all pairs, within 1 m (default off)", 0},
      {"method", 'M', "METHOD", 0, "how the derivative goes back: sweep (default), products, as the setting `gradient`",
       0},
      {"profile", 'p', NULL, 0, "what the stages of one gradient take, where the backend says it", 0},
      {"items", 'i', "LIST", 0, "also N gradients at once by each method, e.g. 1,4,16,64", 0},
      {"worlds", 0, NULL, OPTION_ALIAS, NULL, 0},
      {"fd-samples", 'f', "N", 0, "states of each round at which MuJoCo's differences are taken (default 8)", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &driven_argp}, {.argp = &bench_backend_argp}, {0}};
  static const char doc[] =
      "Times value and gradient of a rollout against the rollout alone, MuJoCo's rollout and its differences "
      "(mjd_transitionFD, one-sided) in turn.\vExample: sinew-bench gradient --model hand.xml --steps 256 --items "
      "1,4,16,64\n\nExit "
      "status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded or nothing in it moves.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.driven = {.steps = 256, .rounds = 9}, .backend = {.threads = 1}, .samples = 8};
  argp_parse(&argp, argc, argv, 0, NULL, &s);

  SnError err = {0};
  Bench *b = calloc(1, sizeof *b);
  SnCode code = b ? open_bench(b, &s, &err) : out_of_memory(&err);
  if (code == SN_OK) {
    code = measure(b, &s, &err);
    cJSON *items = NULL, *shares = NULL;
    if (code == SN_OK) code = profile(b, &s, &shares, &err);
    if (code == SN_OK && s.nitems > 0) {
      const GradientBatchSizes list = {.item = s.items, .n = s.nitems, .rounds = s.driven.rounds};
      const SnGradientSettings settings = gradient_settings(&s);
      items = gradient_batch_run(&b->driven, &b->on, &settings, &list, &err);
      if (!items) code = err.code;
    }
    bench_progress_end();
    if (code == SN_OK) {
      const Figures f = figures(&s, b);
      if (s.driven.json)
        print_json(&s, b, &f, items, shares);
      else
        print_text(&s, b, &f, items, shares);
    }
    if (code != SN_OK || !s.driven.json) {
      cJSON_Delete(items);
      cJSON_Delete(shares);
    }
  }
  if (code != SN_OK) {
    fprintf(stderr, "sinew-bench: %s: %s\n", s.driven.model, err.text);
  }
  if (b) close_bench(b);
  free(b);
  return code == SN_OK ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
