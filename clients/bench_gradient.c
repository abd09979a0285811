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

#include "clients/bench.h"
#include "clients/check_task.h"
#include "clients/drive_args.h"
#include "clients/figures.h"
#include "clients/mujoco_drive.h"
#include "planner/backend.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };
enum { KEPT = mjSTATE_INTEGRATION, LEAD = 50 };

typedef struct Settings {
  SnDriveArgs drive;
  int threads, samples;
  bool soft;
  SnGradientMethod method;
} Settings;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->drive;
      return 0;
    case 't':
      s->threads = sn_arg_count(state, "threads", arg, SN_MAX_THREADS);
      return 0;
    case 'f':
      s->samples = sn_arg_count(state, "fd-samples", arg, 100000);
      return 0;
    case 'c':
      s->soft = sn_arg_switch(state, "cfd", arg);
      return 0;
    case 'M':
      if (strcmp(arg, "sweep") != 0 && strcmp(arg, "products") != 0)
        argp_error(state, "--method %s: sweep or products", arg);
      s->method = strcmp(arg, "sweep") == 0 ? SN_GRADIENT_SWEEP : SN_GRADIENT_PRODUCTS;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

typedef struct Bench {
  SnOracle o;
  SnTask *task;
  SnCost *cost;
  SnPool *pool;
  SnBackend *backend;
  SnBackendModel *device;
  SnRollout *rollout;
  SnGradient g;
  sn_real *ctrl, *target, *ctrl_bar;
  mjtNum *first, *now;               // MuJoCo's state at the start, and at a sample
  mjtNum *A, *B;                     // of mjd_transitionFD
  bool differences;                  // whether it takes the model's integrator
  double spent[4][SN_DRIVE_ROUNDS];  // [ms]: rollout, gradient, MuJoCo's rollout, MuJoCo's differences
  double ratio[2][SN_DRIVE_ROUNDS];
} Bench;

static SnCode out_of_memory(SnError *err) { return sn_fail(err, SN_ERR_MEMORY, "out of memory"); }

// Drives MuJoCo to the start and lists the controls from there on.
static SnCode start(Bench *b, const Settings *s, SnError *err) {
  SnOracle *o = &b->o;
  const SnModel *m = o->m;
  const size_t n = 2 * (size_t)m->nv + (size_t)m->na, nu = (size_t)m->nu, size = (size_t)mj_stateSize(o->mj, KEPT);
  b->ctrl = calloc((size_t)s->drive.steps * nu + 1, sizeof *b->ctrl);
  b->ctrl_bar = calloc((size_t)s->drive.steps * nu + 1, sizeof *b->ctrl_bar);
  b->first = calloc(size, sizeof *b->first);
  b->now = calloc(size, sizeof *b->now);
  b->A = calloc(n * n + 1, sizeof *b->A);
  b->B = calloc(n * nu + 1, sizeof *b->B);
  if (!b->ctrl || !b->ctrl_bar || !b->first || !b->now || !b->A || !b->B) return out_of_memory(err);
  const double h = o->mj->opt.timestep;
  sn_drive_start(o);
  for (int k = 0; k < LEAD; ++k) {
    sn_drive_controls(o, (uint64_t)s->drive.seed, k * h);
    mj_step(o->mj, o->d);
  }
  mj_getState(o->mj, o->d, b->first, KEPT);
  sn_oracle_copy_state(o);
  for (int k = 0; k < s->drive.steps; ++k) {
    sn_drive_controls(o, (uint64_t)s->drive.seed, (LEAD + k) * h);
    for (int i = 0; i < m->nu; ++i) b->ctrl[k * m->nu + i] = (sn_real)o->d->ctrl[i];
  }
  b->differences = o->mj->opt.integrator != mjINT_RK4;
  return SN_OK;
}

static SnCode open_bench(Bench *b, const Settings *s, SnError *err) {
  mjModel *mj = sn_oracle_read_file(s->drive.model, err);
  SnCode code = mj ? sn_oracle_open(&b->o, mj, err) : SN_ERR_FORMAT;
  if (code != SN_OK) return code;
  const SnModel *m = b->o.m;
  char text[1000];
  if (!sn_check_task(m, text, sizeof text)) return sn_fail(err, SN_ERR_ARGUMENT, "nothing in the model moves");
  if ((code = start(b, s, err)) != SN_OK) return code;
  if (!(b->task = sn_task_parse(text, strlen(text), "bench.yaml", err))) return err->code;
  if (!(b->cost = sn_cost_create(b->task, m, err))) return err->code;
  if (!(b->pool = sn_pool_create(s->threads, err))) return err->code;
  if (!(b->backend = sn_backend_cpu(b->pool, err))) return err->code;
  if (!(b->device = b->backend->load(b->backend, m, b->cost, s->drive.steps, err))) return err->code;
  if ((code = b->backend->need_gradients(b->backend, b->device, 1, err)) != SN_OK) return code;
  if (!(b->rollout = sn_rollout_create(m, b->cost, err))) return err->code;
  b->target = calloc((size_t)(s->drive.steps + 1) * (size_t)b->cost->ntarget + 1, sizeof *b->target);
  if (!b->target) return out_of_memory(err);
  const SnWorld *w = &b->o.w;
  b->g = (SnGradient){.start = {.time = (double)w->time[0],
                                .qpos = w->qpos,
                                .qvel = w->qvel,
                                .act = w->act,
                                .mocap_pos = w->mocap_pos,
                                .mocap_quat = w->mocap_quat,
                                .qacc_warmstart = w->qacc_warmstart},
                      .ctrl = b->ctrl,
                      .target = b->target,
                      .nstep = s->drive.steps,
                      .max_velocity = 1e6,
                      .ctrl_bar = b->ctrl_bar};
  sn_cost_schedule(b->cost, b->g.start.time, (double)m->opt.timestep, s->drive.steps + 1, b->target);
  return SN_OK;
}

static void close_bench(Bench *b) {
  sn_rollout_free(b->rollout);
  if (b->device) b->backend->unload(b->backend, b->device);
  sn_backend_free(b->backend);
  sn_pool_free(b->pool);
  sn_cost_free(b->cost);
  sn_task_free(b->task);
  free(b->ctrl);
  free(b->target);
  free(b->ctrl_bar);
  free(b->first);
  free(b->now);
  free(b->A);
  free(b->B);
  sn_oracle_free(&b->o);
}

// Each pass returns what it took [ms].
static double pass_rollout(Bench *b) {
  const SnClock clock = sn_clock_monotonic();
  const double t = sn_now_us();
  sn_rollout_begin(b->rollout, &b->g.start, b->ctrl, b->target, b->g.nstep, b->g.max_velocity, NULL);
  sn_rollout_run(b->rollout, &clock, INFINITY);
  return 1e-3 * (sn_now_us() - t);
}

static double pass_gradient(Bench *b, const SnGradientSettings *settings) {
  const SnClock clock = sn_clock_monotonic();
  SnGradientBatch batch = {.settings = *settings, .item = &b->g, .count = 1};
  b->g.status = SN_GRADIENT_PENDING;
  const double t = sn_now_us();
  b->backend->gradients(b->backend, b->device, &batch, &clock, INFINITY);
  return 1e-3 * (sn_now_us() - t);
}

// MuJoCo's rollout; on the way, untimed by it, the differences at `samples` of its states, scaled to all.
static void pass_mujoco(Bench *b, int samples, double *rollout, double *differences) {
  SnOracle *o = &b->o;
  const int nu = o->m->nu, steps = b->g.nstep;
  int taken = 0;
  *rollout = *differences = 0;
  mj_setState(o->mj, o->d, b->first, KEPT);
  for (int k = 0; k < steps; ++k) {
    for (int i = 0; i < nu; ++i) o->d->ctrl[i] = (double)b->ctrl[k * nu + i];
    if (b->differences && k >= taken * steps / samples && taken < samples) {
      mj_getState(o->mj, o->d, b->now, KEPT);
      const double t = sn_now_us();
      mjd_transitionFD(o->mj, o->d, 1e-6, 0, b->A, nu ? b->B : NULL, NULL, NULL);
      *differences += 1e-3 * (sn_now_us() - t);
      mj_setState(o->mj, o->d, b->now, KEPT);
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
  if (s->soft)
    settings.soft =
        (SnSoft){.on = 1, .solimp = {SN_R(0.0), SN_R(0.1), SN_R(1.0), SN_R(1.0), SN_R(4.0)}, .width = SN_R(0.002)};
  return settings;
}

static void measure(Bench *b, const Settings *s) {
  const SnGradientSettings settings = gradient_settings(s);
  pass_rollout(b);
  pass_gradient(b, &settings);
  for (int i = 0; i < s->drive.rounds; ++i) {
    b->spent[0][i] = pass_rollout(b);
    b->spent[1][i] = pass_gradient(b, &settings);
    pass_mujoco(b, s->samples < s->drive.steps ? s->samples : s->drive.steps, &b->spent[2][i], &b->spent[3][i]);
    b->ratio[0][i] = b->spent[1][i] / b->spent[0][i];
    b->ratio[1][i] = b->spent[3][i] / b->spent[1][i];
  }
}

static const char *status_name(SnGradientStatus status) {
  return status == SN_GRADIENT_DONE ? "done" : status == SN_GRADIENT_DIVERGED ? "diverged" : "unbounded";
}

static void print(const Settings *s, Bench *b) {
  const double rollout = sn_median(b->spent[0], s->drive.rounds), gradient = sn_median(b->spent[1], s->drive.rounds);
  const double theirs = sn_median(b->spent[2], s->drive.rounds), fd = sn_median(b->spent[3], s->drive.rounds);
  const double over = sn_median(b->ratio[0], s->drive.rounds), times = sn_median(b->ratio[1], s->drive.rounds);
  if (!s->drive.json) {
    printf("%s: %d steps, %d rounds, %d threads, gradient %s, norm %.3g\n", s->drive.model, s->drive.steps,
           s->drive.rounds, s->threads, status_name(b->g.status), b->g.norm);
    printf("rollout %.2f ms, value and gradient %.2f ms: %.2f times (%.2f to %.2f)\n", rollout, gradient, over,
           b->ratio[0][0], b->ratio[0][s->drive.rounds - 1]);
    printf("MuJoCo's rollout %.2f ms", theirs);
    if (b->differences) printf(", its differences %.1f ms: %.1f times the gradient", fd, times);
    printf("\n");
    return;
  }
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->drive.model);
  cJSON_AddNumberToObject(root, "steps", s->drive.steps);
  cJSON_AddNumberToObject(root, "rounds", s->drive.rounds);
  cJSON_AddStringToObject(root, "cfd", s->soft ? "on" : "off");
  cJSON_AddStringToObject(root, "method", s->method == SN_GRADIENT_SWEEP ? "sweep" : "products");
  cJSON_AddNumberToObject(root, "rollout_ms", rollout);
  cJSON_AddNumberToObject(root, "gradient_ms", gradient);
  cJSON_AddNumberToObject(root, "gradient_over_rollout", over);
  cJSON_AddNumberToObject(root, "gradient_over_rollout_low", b->ratio[0][0]);
  cJSON_AddNumberToObject(root, "gradient_over_rollout_high", b->ratio[0][s->drive.rounds - 1]);
  cJSON_AddNumberToObject(root, "mujoco_rollout_ms", theirs);
  if (b->differences) {
    cJSON_AddNumberToObject(root, "mujoco_fd_ms", fd);
    cJSON_AddNumberToObject(root, "fd_over_gradient", times);
  } else {
    cJSON_AddNullToObject(root, "mujoco_fd_ms");
    cJSON_AddNullToObject(root, "fd_over_gradient");
  }
  cJSON_AddNumberToObject(root, "threads", s->threads);
  cJSON_AddStringToObject(root, "status", status_name(b->g.status));
  cJSON_AddNumberToObject(root, "norm", b->g.norm);
  char *text = cJSON_Print(root);
  if (text) puts(text);
  cJSON_free(text);
  cJSON_Delete(root);
}

int sn_bench_gradient(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"cfd", 'c', "off|on", 0, "contacts from distance: all pairs, within 1 m (default off)", 0},
      {"method", 'M', "sweep|products", 0, "how the derivative goes back (default sweep)", 0},
      {"threads", 't', "N", 0, "threads of the gradient; all else has one (default 1)", 0},
      {"fd-samples", 'f', "N", 0, "states of each round at which MuJoCo's differences are taken (default 8)", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &sn_drive_argp}, {0}};
  static const char doc[] =
      "Times value and gradient of a rollout against the rollout alone, MuJoCo's rollout and its differences "
      "(mjd_transitionFD, one-sided) in turn.\vExample: sinew-bench gradient --model hand.xml --steps 256\n\nExit "
      "status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded or nothing in it moves.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.drive = {.steps = 256, .rounds = 9}, .threads = 1, .samples = 8};
  argp_parse(&argp, argc, argv, 0, NULL, &s);

  SnError err = {0};
  Bench *b = calloc(1, sizeof *b);
  const SnCode code = b ? open_bench(b, &s, &err) : out_of_memory(&err);
  if (code == SN_OK) {
    measure(b, &s);
    print(&s, b);
  } else {
    fprintf(stderr, "sinew-bench: %s: %s\n", s.drive.model, err.text);
  }
  if (b) close_bench(b);
  free(b);
  return code == SN_OK ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
