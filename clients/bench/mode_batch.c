// Many rollouts through the public header, on one thread and on several, and MuJoCo's on as many. All begin in states
// of their own, to which MuJoCo has driven the model by controls of a seed each, and go on under these controls. States
// and sensors of every step are written. A round is one pass of all; medians over the rounds, ratios within a round.
#include <argp.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/args.h"
#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/driven_args_private.h"
#include "clients/bench/mujoco_rollout_private.h"
#include "clients/include/sinew.h"
#include "clients/reference/mujoco_drive.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };

typedef struct Settings {
  DrivenArgs driven;
  int count, threads;
  bool gradient;
} Settings;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->driven;
      return 0;
    case 'c':
      s->count = sn_arg_count(state, "count", arg, 100000);
      return 0;
    case 't':
      s->threads = sn_arg_count(state, "threads", arg, SN_MAX_THREADS);
      return 0;
    case 'g':
      s->gradient = true;
      return 0;
    case ARGP_KEY_END:
      if (s->driven.rounds == 0) s->driven.rounds = 9;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// ---- inputs: where MuJoCo drives the model to ----

// Holds what both engines begin with, and where MuJoCo puts results.
typedef struct Inputs {
  mjModel *mj;
  SnPool *pool;
  mjData *d[SN_MAX_THREADS];  // one a thread; the first is also driven
  MujocoRollout mujoco;
  double *time, *qpos, *qvel, *act, *ctrl, *mocap;
} Inputs;

static void *numbers(size_t n, bool *ok) {
  void *x = calloc(n + 1, sizeof(double));
  *ok = *ok && x;
  return x;
}

static bool make_inputs(Inputs *in, const Settings *s) {
  const mjModel *m = in->mj;
  const size_t n = (size_t)s->count, steps = (size_t)s->driven.steps;
  bool ok = true;
  in->mujoco = (MujocoRollout){.m = m,
                               .d = in->d,
                               .count = s->count,
                               .steps = s->driven.steps,
                               .size = (int)mj_stateSize(m, mjSTATE_FULLPHYSICS)};
  const size_t size = (size_t)in->mujoco.size;
  in->time = numbers(n, &ok);
  in->qpos = numbers(n * (size_t)m->nq, &ok);
  in->qvel = numbers(n * (size_t)m->nv, &ok);
  in->act = numbers(n * (size_t)m->na, &ok);
  in->mocap = numbers(7 * n * (size_t)m->nmocap, &ok);
  in->ctrl = numbers(n * steps * (size_t)m->nu, &ok);
  in->mujoco.state0 = numbers(n * size, &ok);
  in->mujoco.state = numbers(n * steps * size, &ok);
  in->mujoco.sensordata = numbers(n * steps * (size_t)m->nsensordata, &ok);
  in->mujoco.ctrl = in->ctrl;
  for (int i = 0; i < s->threads; ++i) ok = (in->d[i] = mj_makeData(m)) && ok;
  return ok;
}

// State and controls of rollout k.
static void drive(Inputs *in, const Settings *s, size_t k) {
  const mjModel *m = in->mj;
  mjData *d = in->d[0];
  const uint64_t seed = (uint64_t)s->driven.seed * 1000003u + k;
  const double h = m->opt.timestep;
  sn_mujoco_start(m, d);
  for (int t = 0; t < DRIVEN_LEAD; ++t) {
    sn_mujoco_controls(m, d, seed, t * h, NULL);
    mj_step(m, d);
  }
  in->time[k] = d->time;
  mju_copy(in->qpos + k * (size_t)m->nq, d->qpos, m->nq);
  mju_copy(in->qvel + k * (size_t)m->nv, d->qvel, m->nv);
  mju_copy(in->act + k * (size_t)m->na, d->act, m->na);
  for (size_t i = 0; i < (size_t)m->nmocap; ++i) {
    mju_copy(in->mocap + 7 * (k * (size_t)m->nmocap + i), d->mocap_pos + 3 * i, 3);
    mju_copy(in->mocap + 7 * (k * (size_t)m->nmocap + i) + 3, d->mocap_quat + 4 * i, 4);
  }
  mj_getState(m, d, (mjtNum *)(uintptr_t)in->mujoco.state0 + k * (size_t)in->mujoco.size, mjSTATE_FULLPHYSICS);
  for (int t = 0; t < s->driven.steps; ++t) {
    sn_mujoco_controls(m, d, seed, (DRIVEN_LEAD + t) * h, NULL);
    mju_copy(in->ctrl + (k * (size_t)s->driven.steps + (size_t)t) * (size_t)m->nu, d->ctrl, m->nu);
  }
}

static SnCode open_inputs(Inputs *in, const Settings *s, SnError *err) {
  if (!(in->mj = sn_oracle_read_file(s->driven.model, err))) return err->code;
  if (!(in->pool = sn_pool_create(s->threads, err))) return err->code;
  if (!make_inputs(in, s)) return sn_fail(err, SN_ERR_MEMORY, "no memory for %d rollouts", s->count);
  for (int k = 0; k < s->count; ++k) drive(in, s, (size_t)k);
  return SN_OK;
}

static void close_inputs(Inputs *in) {
  double *const arrays[] = {in->time,
                            in->qpos,
                            in->qvel,
                            in->act,
                            in->mocap,
                            in->ctrl,
                            (double *)(uintptr_t)in->mujoco.state0,
                            in->mujoco.state,
                            in->mujoco.sensordata};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; ++i) free(arrays[i]);
  for (int i = 0; i < SN_MAX_THREADS && in->d[i]; ++i) mj_deleteData(in->d[i]);
  sn_pool_free(in->pool);
  if (in->mj) mj_deleteModel(in->mj);
}

// ---- ours ----

// Holds a batch on so many threads.
typedef struct Ours {
  SinewBackend *backend;
  SinewBatch *batch, *kept;  // the latter with gradients; or NULL
} Ours;

// Holds where our results go.
typedef struct Results {
  double *time, *qpos, *qvel, *act, *sensordata, *ctrl_bar;
  int *status;
} Results;

static SinewBatch *make_batch(const SinewModel *model, const Settings *s, SinewBackend *backend, bool gradients,
                              SinewError *err) {
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.backend = backend;
  def.capacity = s->count;
  def.steps = s->driven.steps;
  def.gradients = gradients;
  return sinew_batch_create(&def, err);
}

static bool open_ours(Ours *x, const SinewModel *model, const Settings *s, int threads, SinewError *err) {
  SinewBackendOptions options = sinew_default_backend();
  options.threads = threads;
  x->backend = sinew_backend_open("cpu", &options, err);
  x->batch = x->backend ? make_batch(model, s, x->backend, false, err) : NULL;
  if (x->batch && s->gradient) x->kept = make_batch(model, s, x->backend, true, err);
  return x->batch && (x->kept || !s->gradient);
}

static void close_ours(Ours *x) {
  sinew_batch_free(x->kept);
  sinew_batch_free(x->batch);
  sinew_backend_close(x->backend);
}

static bool make_results(Results *x, const Settings *s, const SinewSizes *m) {
  const size_t n = (size_t)s->count, rows = n * ((size_t)s->driven.steps + 1);
  bool ok = true;
  x->time = numbers(rows, &ok);
  x->qpos = numbers(rows * (size_t)m->nq, &ok);
  x->qvel = numbers(rows * (size_t)m->nv, &ok);
  x->act = numbers(rows * (size_t)m->na, &ok);
  x->sensordata = numbers(rows * (size_t)m->nsensordata, &ok);
  x->ctrl_bar = numbers(rows * (size_t)m->nu, &ok);
  x->status = numbers(n, &ok);
  return ok;
}

static void free_results(Results *x) {
  void *const arrays[] = {x->time, x->qpos, x->qvel, x->act, x->sensordata, x->ctrl_bar, x->status};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; ++i) free(arrays[i]);
}

static SinewRollouts rollouts_of(const Inputs *in, const Settings *s, const Results *out) {
  SinewRollouts r = sinew_default_rollouts();
  r.count = s->count;
  r.steps = s->driven.steps;
  r.time = in->time;
  r.qpos = in->qpos;
  r.qvel = in->qvel;
  r.act = in->act;
  r.mocap = in->mocap;
  r.ctrl = in->ctrl;
  r.out_time = out->time;
  r.out_qpos = out->qpos;
  r.out_qvel = out->qvel;
  r.out_act = out->act;
  r.out_sensordata = out->sensordata;
  r.status = out->status;
  return r;
}

// ---- measurement ----

// Holds the times of a round [ms].
typedef struct Times {
  double one[BENCH_ROUNDS], ours[BENCH_ROUNDS], mujoco[BENCH_ROUNDS], forward[BENCH_ROUNDS], back[BENCH_ROUNDS];
  int diverged;
} Times;

static double pass(SinewBatch *batch, const SinewRollouts *r, SinewError *err) {
  const double t = sn_now_us();
  if (sinew_batch_rollout(batch, r, err) != SINEW_OK) return -1;
  return 1e-3 * (sn_now_us() - t);
}

// The way back of a cost that is half the sum of the squares of all velocities and activations.
static double pass_back(SinewBatch *batch, const Results *out, SinewError *err) {
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients gradients = sinew_default_gradients();
  bars.qvel = out->qvel;
  bars.act = out->act;
  gradients.ctrl = out->ctrl_bar;
  const double t = sn_now_us();
  if (sinew_batch_vjp(batch, &bars, &gradients, err) != SINEW_OK) return -1;
  return 1e-3 * (sn_now_us() - t);
}

// Holds all that a run works with.
typedef struct Run {
  const Settings *s;
  const Inputs *in;
  Ours one, ours;  // on one thread, and on all
  Results out;
  Times *times;
} Run;

static bool measure_round(Run *x, const SinewRollouts *r, int k, SinewError *err) {
  Times *times = x->times;
  times->one[k] = pass(x->one.batch, r, err);
  times->ours[k] = pass(x->ours.batch, r, err);
  const double t = sn_now_us();
  mujoco_rollout_run(&x->in->mujoco, x->in->pool);
  times->mujoco[k] = 1e-3 * (sn_now_us() - t);
  if (times->one[k] < 0 || times->ours[k] < 0) return false;
  if (!x->s->gradient) return true;
  times->forward[k] = pass(x->ours.kept, r, err);
  times->back[k] = times->forward[k] < 0 ? -1 : pass_back(x->ours.kept, &x->out, err);
  return times->back[k] >= 0;
}

static bool measure(Run *x, SinewError *err) {
  const SinewRollouts r = rollouts_of(x->in, x->s, &x->out);
  const int rounds = x->s->driven.rounds;
  if (!measure_round(x, &r, 0, err)) return false;  // does not count: memory is touched for the first time
  for (int k = 0; k < rounds; ++k) {
    sn_progress("round %d of %d", k + 1, rounds);
    if (!measure_round(x, &r, k, err)) return false;
  }
  sn_progress_end();
  for (int i = 0; i < x->s->count; ++i) x->times->diverged += x->out.status[i] != SINEW_OK;
  return true;
}

// ---- report ----

// Holds the figures of a run: medians [ms], ratios within a round.
typedef struct Figures {
  double one, ours, mujoco, forward, back;
  BenchRatio speedup, to_mujoco, back_to_forward;
  const char *solver;  // MuJoCo's
} Figures;

static Figures figures_of(Times *t, int rounds) {
  Figures f = {.speedup = bench_ratio(t->one, t->ours, rounds),
               .to_mujoco = bench_ratio(t->ours, t->mujoco, rounds),
               .back_to_forward = bench_ratio(t->back, t->forward, rounds)};
  f.one = sn_median(t->one, rounds);
  f.ours = sn_median(t->ours, rounds);
  f.mujoco = sn_median(t->mujoco, rounds);
  f.forward = sn_median(t->forward, rounds);
  f.back = sn_median(t->back, rounds);
  return f;
}

static void add_ratio(cJSON *o, const char *name, BenchRatio r) {
  const double range[] = {r.low, r.high};
  char text[64];
  cJSON_AddNumberToObject(o, name, r.median);
  snprintf(text, sizeof text, "%s_range", name);
  cJSON_AddItemToObject(o, text, cJSON_CreateDoubleArray(range, 2));
}

static void print_json(const Settings *s, const Figures *f, int diverged) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "model", s->driven.model);
  cJSON_AddNumberToObject(o, "count", s->count);
  cJSON_AddNumberToObject(o, "steps", s->driven.steps);
  cJSON_AddNumberToObject(o, "threads", s->threads);
  cJSON_AddNumberToObject(o, "rounds", s->driven.rounds);
  cJSON_AddNumberToObject(o, "diverged", diverged);
  cJSON_AddStringToObject(o, "mujoco_solver", f->solver);
  cJSON_AddNumberToObject(o, "one_thread_ms", f->one);
  cJSON_AddNumberToObject(o, "sinew_ms", f->ours);
  cJSON_AddNumberToObject(o, "mujoco_ms", f->mujoco);
  add_ratio(o, "speedup", f->speedup);
  add_ratio(o, "ratio", f->to_mujoco);
  if (s->gradient) {
    cJSON_AddNumberToObject(o, "kept_ms", f->forward);
    cJSON_AddNumberToObject(o, "vjp_ms", f->back);
    add_ratio(o, "vjp_ratio", f->back_to_forward);
  }
  bench_print_json(o, false);
}

static void print_text(const Settings *s, const Figures *f, int diverged) {
  const double steps = (double)s->count * s->driven.steps;
  printf("%s: %d rollouts of %d steps, %d rounds, %d diverged\n", s->driven.model, s->count, s->driven.steps,
         s->driven.rounds, diverged);
  printf("1 thread %.1f ms, %d threads %.1f ms (%.0f steps/s): %.2f times as fast (%.2f to %.2f)\n", f->one, s->threads,
         f->ours, 1e3 * steps / f->ours, f->speedup.median, f->speedup.low, f->speedup.high);
  printf("MuJoCo's rollout on %d threads %.1f ms: ratio %.3f (%.3f to %.3f)\n", s->threads, f->mujoco,
         f->to_mujoco.median, f->to_mujoco.low, f->to_mujoco.high);
  bench_solver_print(f->solver);
  if (s->gradient)
    printf("rollouts that are kept %.1f ms, the way back %.1f ms: %.2f times (%.2f to %.2f)\n", f->forward, f->back,
           f->back_to_forward.median, f->back_to_forward.low, f->back_to_forward.high);
}

// ---- the mode ----

static int fail(const Settings *s, const char *text, bool unsupported) {
  bench_report_failure(s->driven.model, text);
  return unsupported ? EXIT_UNSUPPORTED : EXIT_ERROR;
}

static int run(const Settings *s, const Inputs *in, const SinewModel *model) {
  SinewError err = {0};
  Run x = {.s = s, .in = in, .times = calloc(1, sizeof *x.times)};
  const bool room = x.times && make_results(&x.out, s, sinew_model_sizes(model));
  const bool ok = room && open_ours(&x.one, model, s, 1, &err) && open_ours(&x.ours, model, s, s->threads, &err) &&
                  measure(&x, &err);
  if (ok) {
    Figures f = figures_of(x.times, s->driven.rounds);
    f.solver = sn_mujoco_solver(in->mj);
    if (s->driven.json)
      print_json(s, &f, x.times->diverged);
    else
      print_text(s, &f, x.times->diverged);
  }
  close_ours(&x.one);
  close_ours(&x.ours);
  free_results(&x.out);
  free(x.times);
  return ok ? EXIT_MEASURED : fail(s, room ? err.text : "out of memory", err.status == SINEW_ERR_UNSUPPORTED);
}

int mode_batch(int argc, char **argv) {
  static const struct argp_option options[] = {{"count", 'c', "N", 0, "rollouts (default 64)", 0},
                                               {"threads", 't', "N", 0, "threads of both engines (default 2)", 0},
                                               {"gradient", 'g', NULL, 0, "time the way back, too", 0},
                                               {0}};
  static const struct argp_child children[] = {{.argp = &driven_argp}, {0}};
  static const char doc[] =
      "Times many rollouts from different states under different controls, on one thread and on several, and MuJoCo's "
      "on as many. Uses the public header, sinew.h.\vExample:\n"
      "  sinew-bench batch --model hand.xml --count 64 --steps 256 --threads 2\n\n"
      "Exit status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.driven = {.steps = 256}, .count = 64, .threads = 2};
  argp_parse(&argp, argc, argv, 0, NULL, &s);

  SnError why = {0};
  SinewError err = {0};
  Inputs in = {.pool = NULL};
  const SnCode code = open_inputs(&in, &s, &why);
  SinewModel *model = code == SN_OK ? sinew_model_load(s.driven.model, &err) : NULL;
  int status;
  if (code != SN_OK)
    status = fail(&s, why.text, false);
  else if (!model)
    status = fail(&s, err.text, err.status == SINEW_ERR_UNSUPPORTED);
  else
    status = run(&s, &in, model);
  sinew_model_free(model);
  close_inputs(&in);
  return status;
}
