// Value and gradient of a rollout against the rollout itself, MuJoCo's rollout and MuJoCo's differences. Both are a
// user's: sinew_batch_rollout, and sinew_batch_vjp behind it. What a user cannot ask for is in gradient_inside.c.
//
// MuJoCo runs the model under seeded smooth controls, with the model's own options; where it is after 50 steps the
// rollout starts, under the controls that follow. In each round, in turn: our rollout, our gradient, MuJoCo's steps
// under the same controls, and mjd_transitionFD, one-sided, which is its cheapest, at some of MuJoCo's states, scaled
// to all of them. Figures are medians over the rounds, ratios those of each round.
#include <argp.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/base/args.h"
#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/bench_user_private.h"
#include "clients/bench/gradient_inside_private.h"
#include "clients/reference/mirror.h"
#include "clients/reference/mujoco_drive.h"
#include "clients/reference/probe_task.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };
enum { STATE = mjSTATE_INTEGRATION };

typedef struct Settings {
  GradientInsideArgs of;
  int samples, nitems, items[SN_ARG_LIST];
  bool profile;
} Settings;

// Returns the setting of planners whose choices are the methods.
static const SinewSetting *methods(void) {
  const SinewSetting *s;
  for (int i = 0; (s = sinew_setting(i)) && strcmp(s->name, "gradient") != 0;) ++i;
  return s;
}

// Writes the name of a method, one of the choices "a|b|c", into text[64].
static const char *method_name(int method, char text[64]) {
  const char *at = methods()->choices;
  for (int i = 0; i < method && *at; ++i) at += strcspn(at, "|") + 1;
  snprintf(text, 64, "%.*s", (int)strcspn(at, "|"), at);
  return text;
}

static int method_arg(const struct argp_state *state, const char *arg) {
  char text[64];
  for (int i = 0; i <= (int)methods()->highest; ++i)
    if (strcmp(arg, method_name(i, text)) == 0) return i;
  argp_error(state, "--method %s: one of %s", arg, methods()->choices);
  return 0;
}

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->of.driven;
      state->child_inputs[1] = &s->of.backend;
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
      s->of.cfd = sn_arg_switch(state, "cfd", arg);
      return 0;
    case 'M':
      s->of.method = method_arg(state, arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// Holds both engines, driven to the start.
typedef struct Bench {
  mjModel *mj;
  mjData *d;
  mjtNum *start, *now;      // MuJoCo's states: at the start, at a sample
  mjtNum *A, *B;            // of mjd_transitionFD
  bool differences;         // whether it takes the model's integrator
  double *ctrl, *ctrl_bar;  // (steps, nu)

  SinewModel *model;
  SinewData *data;  // at the start
  SinewTask *task;
  SinewBackend *backend;
  SinewBatch *plain, *kept;  // the latter with gradients
  SinewState state;
  GradientInside *inside;  // NULL: nobody asked for it

  double spent[4][BENCH_ROUNDS];  // [ms]: rollout, gradient, MuJoCo's rollout, MuJoCo's differences
  GradientOutcome outcome;
} Bench;

static SinewTask *probe_task(const mjModel *m, SinewError *err) {
  char text[1000];
  SnProbeSizes sizes = {.nv = (int)m->nv, .na = (int)m->na, .nu = (int)m->nu, .ntendon = (int)m->ntendon};
  for (int j = 0; j < m->njnt; ++j) sizes.joints += m->jnt_type[j] != mjJNT_FREE;
  if (sn_probe_text(&sizes, text, sizeof text)) return sinew_task_parse(text, strlen(text), "bench.yaml", err);
  api_fail(err, SINEW_ERR_ARGUMENT, "nothing in the model moves");
  return NULL;
}

static SinewBatch *make_batch(const Bench *b, const Settings *s, bool gradients, SinewError *err) {
  SinewBatchDef def = sinew_default_batch();
  SinewCfd cfd = sinew_default_cfd();  // all pairs, reach 1 m, without friction
  cfd.use = SINEW_CFD_BACKWARD;
  def.model = b->model;
  def.task = b->task;
  def.backend = b->backend;
  def.capacity = 1;
  def.steps = s->of.driven.steps;
  def.gradients = gradients;
  def.max_velocity = 1e6;
  def.cfd = s->of.cfd ? &cfd : NULL;
  return sinew_batch_create(&def, err);
}

static SinewStatus make_arrays(Bench *b, const Settings *s, SinewError *err) {
  const size_t n = 2 * (size_t)b->mj->nv + (size_t)b->mj->na, nu = (size_t)b->mj->nu;
  const size_t state = (size_t)mj_stateSize(b->mj, STATE);
  b->start = calloc(state, sizeof *b->start);
  b->now = calloc(state, sizeof *b->now);
  b->A = calloc(n * n + 1, sizeof *b->A);
  b->B = calloc(n * nu + 1, sizeof *b->B);
  b->ctrl = calloc((size_t)s->of.driven.steps * nu + 1, sizeof *b->ctrl);
  b->ctrl_bar = calloc((size_t)s->of.driven.steps * nu + 1, sizeof *b->ctrl_bar);
  return b->start && b->now && b->A && b->B && b->ctrl && b->ctrl_bar
             ? SINEW_OK
             : api_fail(err, SINEW_ERR_MEMORY, "out of memory");
}

// Drives MuJoCo to the start and lists the controls from there on.
static void drive(Bench *b, const Settings *s) {
  const uint64_t seed = (uint64_t)s->of.driven.seed;
  const double h = b->mj->opt.timestep;
  sn_mujoco_start(b->mj, b->d);
  for (int k = 0; k < DRIVEN_LEAD; ++k) {
    sn_mujoco_controls(b->mj, b->d, seed, k * h, NULL);
    mj_step(b->mj, b->d);
  }
  mj_getState(b->mj, b->d, b->start, STATE);
  sn_mirror_state(b->data, b->mj, b->d);
  b->state = sinew_data_state(b->data);
  for (int k = 0; k < s->of.driven.steps; ++k) {
    sn_mujoco_controls(b->mj, b->d, seed, (DRIVEN_LEAD + k) * h, NULL);
    mju_copy(b->ctrl + k * b->mj->nu, b->d->ctrl, (int)b->mj->nu);
  }
}

static SinewStatus open_bench(Bench *b, const Settings *s, SinewError *err) {
  SnError why = {0};
  if (!(b->mj = sn_oracle_read_file(s->of.driven.model, &why))) return api_fail(err, SINEW_ERR_FORMAT, "%s", why.text);
  if (!(b->d = mj_makeData(b->mj))) return api_fail(err, SINEW_ERR_MEMORY, "out of memory");
  if (!(b->model = sn_mirror_model(b->mj, err)) || !(b->data = sinew_data_create(b->model, err)) ||
      !(b->task = probe_task(b->mj, err)) || !(b->backend = bench_user_backend(&s->of.backend, err)) ||
      !(b->plain = make_batch(b, s, false, err)) || !(b->kept = make_batch(b, s, true, err)) ||
      make_arrays(b, s, err) != SINEW_OK)
    return err->status;
  b->differences = b->mj->opt.integrator != mjINT_RK4;
  drive(b, s);
  if ((s->of.method > 0 || s->profile || s->nitems > 0) && !(b->inside = gradient_inside_open(&s->of, err)))
    return err->status;
  return SINEW_OK;
}

static void close_bench(Bench *b) {
  double *const arrays[] = {b->start, b->now, b->A, b->B, b->ctrl, b->ctrl_bar};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free(arrays[i]);
  gradient_inside_close(b->inside);
  sinew_batch_free(b->kept);
  sinew_batch_free(b->plain);
  sinew_backend_close(b->backend);
  sinew_task_free(b->task);
  sinew_data_free(b->data);
  sinew_model_free(b->model);
  if (b->d) mj_deleteData(b->d);
  if (b->mj) mj_deleteModel(b->mj);
}

// Makes the rollout, and the way back where the batch keeps it. *ms: what both took.
static SinewStatus pass_ours(Bench *b, const Settings *s, SinewBatch *batch, double *ms, SinewError *err) {
  const bool back = batch == b->kept;
  int rolled = 0, differentiated = 0;
  double cost;
  SinewRollouts r = sinew_default_rollouts();
  SinewGradients g = sinew_default_gradients();
  r.count = 1;
  r.steps = s->of.driven.steps;
  r.time = &b->state.time;
  r.qpos = b->state.qpos;
  r.qvel = b->state.qvel;
  r.act = b->state.act;
  r.mocap = b->state.mocap;
  r.ctrl = b->ctrl;
  r.cost = &cost;
  r.status = &rolled;
  g.ctrl = b->ctrl_bar;
  g.status = &differentiated;
  const double t = sn_now_us();
  SinewStatus status = sinew_batch_rollout(batch, &r, err);
  if (status == SINEW_OK && back) status = sinew_batch_vjp(batch, NULL, &g, err);
  *ms = 1e-3 * (sn_now_us() - t);
  if (back)
    b->outcome = (GradientOutcome){.status = rolled           ? "diverged"
                                             : differentiated ? "unbounded"
                                                              : "done",
                                   .norm = mju_norm(b->ctrl_bar, r.steps * (int)b->mj->nu)};
  return status;
}

// A gradient by the method; the sweep is a user's.
static SinewStatus pass_gradient(Bench *b, const Settings *s, double *ms, SinewError *err) {
  if (s->of.method == 0) return pass_ours(b, s, b->kept, ms, err);
  const SinewStatus status = gradient_inside_pass(b->inside, &b->outcome, err);
  *ms = b->outcome.ms;
  return status;
}

// MuJoCo's rollout; on the way, untimed by it, the differences at `samples` of its states, scaled to all.
static void pass_mujoco(Bench *b, const Settings *s, double *rollout, double *differences) {
  const mjModel *m = b->mj;
  mjData *d = b->d;
  const int steps = s->of.driven.steps, samples = s->samples < steps ? s->samples : steps;
  int taken = 0;
  *rollout = *differences = 0;
  mj_setState(m, d, b->start, STATE);
  for (int k = 0; k < steps; ++k) {
    mju_copy(d->ctrl, b->ctrl + k * m->nu, (int)m->nu);
    if (b->differences && k >= taken * steps / samples && taken < samples) {
      mj_getState(m, d, b->now, STATE);
      const double t = sn_now_us();
      mjd_transitionFD(m, d, 1e-6, 0, b->A, m->nu ? b->B : NULL, NULL, NULL);
      *differences += 1e-3 * (sn_now_us() - t);
      mj_setState(m, d, b->now, STATE);
      ++taken;
    }
    const double t = sn_now_us();
    mj_step(m, d);
    *rollout += 1e-3 * (sn_now_us() - t);
  }
  *differences *= taken ? (double)steps / taken : 0;
}

static SinewStatus measure(Bench *b, const Settings *s, SinewError *err) {
  double warm[2];
  SinewStatus status = pass_ours(b, s, b->plain, warm, err);
  if (status == SINEW_OK) status = pass_gradient(b, s, warm, err);
  if (status == SINEW_OK) pass_mujoco(b, s, warm, warm + 1);
  for (int i = 0; i < s->of.driven.rounds && status == SINEW_OK; ++i) {
    sn_progress("round %d of %d", i + 1, s->of.driven.rounds);
    status = pass_ours(b, s, b->plain, &b->spent[0][i], err);
    if (status == SINEW_OK) status = pass_gradient(b, s, &b->spent[1][i], err);
    pass_mujoco(b, s, &b->spent[2][i], &b->spent[3][i]);
  }
  return status;
}

// ---- report ----

typedef struct Figures {
  double rollout, gradient, theirs, fd;  // [ms]
  BenchRatio over, times;                // gradient over rollout, differences over gradient
} Figures;

static Figures figures(const Settings *s, Bench *b) {
  const int n = s->of.driven.rounds;
  Figures f = {.over = bench_ratio(b->spent[1], b->spent[0], n), .times = bench_ratio(b->spent[3], b->spent[1], n)};
  f.rollout = sn_median(b->spent[0], n);
  f.gradient = sn_median(b->spent[1], n);
  f.theirs = sn_median(b->spent[2], n);
  f.fd = sn_median(b->spent[3], n);
  return f;
}

static double number(const cJSON *o, const char *name) {
  const cJSON *x = cJSON_GetObjectItem(o, name);
  return cJSON_IsNumber(x) ? x->valuedouble : NAN;
}

static void print_items(const cJSON *rows) {
  if (!rows) return;
  printf("\n%-10s %6s %10s %12s %14s\n", "method", "items", "ms", "ms an item", "times that of 1");
  const cJSON *row;
  char over[24];
  cJSON_ArrayForEach(row, rows)
      printf("%-10s %6.0f %10.2f %12.3f %14s\n", cJSON_GetObjectItem(row, "method")->valuestring, number(row, "items"),
             number(row, "ms"), number(row, "ms_an_item"), bench_number(number(row, "over_one"), 2, over));
}

static void print_text(const Settings *s, const Bench *b, const Figures *f, const cJSON *items, const cJSON *shares) {
  printf("%s: %d steps, %d rounds, gradient %s, norm %.3g\n%s\n", s->of.driven.model, s->of.driven.steps,
         s->of.driven.rounds, b->outcome.status, b->outcome.norm, sinew_backend_description(b->backend));
  printf("rollout %.2f ms, value and gradient %.2f ms: %.2f times (%.2f to %.2f)\n", f->rollout, f->gradient,
         f->over.median, f->over.low, f->over.high);
  printf("MuJoCo's rollout %.2f ms", f->theirs);
  if (b->differences) printf(", its differences %.1f ms: %.1f times the gradient", f->fd, f->times.median);
  printf("\n");
  bench_solver_print(sn_mujoco_solver(b->mj));
  print_items(items);
  if (shares) bench_stage_print(shares);
}

// Takes items and shares over.
static void print_json(const Settings *s, const Bench *b, const Figures *f, cJSON *items, cJSON *shares) {
  char text[64];
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->of.driven.model);
  cJSON_AddStringToObject(root, "backend", bench_backend_name(&s->of.backend));
  cJSON_AddStringToObject(root, "device", sinew_backend_description(b->backend));
  cJSON_AddNumberToObject(root, "steps", s->of.driven.steps);
  cJSON_AddNumberToObject(root, "rounds", s->of.driven.rounds);
  cJSON_AddStringToObject(root, "cfd", s->of.cfd ? "on" : "off");
  cJSON_AddStringToObject(root, "method", method_name(s->of.method, text));
  cJSON_AddNumberToObject(root, "rollout_ms", f->rollout);
  cJSON_AddNumberToObject(root, "gradient_ms", f->gradient);
  cJSON_AddNumberToObject(root, "gradient_over_rollout", f->over.median);
  cJSON_AddNumberToObject(root, "gradient_over_rollout_low", f->over.low);
  cJSON_AddNumberToObject(root, "gradient_over_rollout_high", f->over.high);
  cJSON_AddStringToObject(root, "mujoco_solver", sn_mujoco_solver(b->mj));
  cJSON_AddNumberToObject(root, "mujoco_rollout_ms", f->theirs);
  // cJSON writes NaN as null
  cJSON_AddNumberToObject(root, "mujoco_fd_ms", b->differences ? f->fd : NAN);
  cJSON_AddNumberToObject(root, "fd_over_gradient", b->differences ? f->times.median : NAN);
  cJSON_AddNumberToObject(root, "threads", bench_backend_threads(&s->of.backend));
  cJSON_AddStringToObject(root, "status", b->outcome.status);
  cJSON_AddNumberToObject(root, "norm", b->outcome.norm);
  if (items) cJSON_AddItemToObject(root, "items", items);
  if (shares) cJSON_AddItemToObject(root, "stage_shares", shares);
  bench_print_json(root, false);
}

static SinewStatus run(Bench *b, const Settings *s, SinewError *err) {
  const int rounds = s->of.driven.rounds;
  cJSON *items = NULL, *shares = NULL;
  SinewStatus status = open_bench(b, s, err);
  if (status == SINEW_OK) status = measure(b, s, err);
  if (status == SINEW_OK && s->profile) status = gradient_inside_shares(b->inside, rounds, &shares, err);
  if (status == SINEW_OK && s->nitems > 0 &&
      !(items = gradient_inside_items(b->inside, s->items, s->nitems, rounds, err)))
    status = err->status;
  sn_progress_end();
  if (status == SINEW_OK) {
    const Figures f = figures(s, b);
    if (s->of.driven.json) {
      print_json(s, b, &f, items, shares);
      return SINEW_OK;
    }
    print_text(s, b, &f, items, shares);
  }
  cJSON_Delete(items);
  cJSON_Delete(shares);
  return status;
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
  Settings s = {.of = {.driven = {.steps = 256, .rounds = 9}, .backend = {.threads = 1}}, .samples = 8};
  argp_parse(&argp, argc, argv, 0, NULL, &s);

  SinewError err = {0};
  Bench *b = calloc(1, sizeof *b);
  const SinewStatus status = b ? run(b, &s, &err) : api_fail(&err, SINEW_ERR_MEMORY, "out of memory");
  if (status != SINEW_OK) bench_report_failure(s.of.driven.model, err.text);
  if (b) close_bench(b);
  free(b);
  return status == SINEW_OK ? EXIT_MEASURED : status == SINEW_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
