// Rollouts, gradients of rollouts and plans, by backend: the CPU with one and with two threads, and the emulator.
#include "clients/reference/probe_task.h"
#include "tests/cuda/plugin_fixture.h"
#include "tests/golden/golden.h"
#include "tests/support/small_models.h"
#include "tests/support/step_fixture.h"
#include "tests/planner/plans.h"

enum { STEPS = 20, CANDIDATES = 5, PLANS = 2 };

// Backends in the order of their lines. The second has no lines of its own: it repeats those of the first.
enum { CPU, CPU_THREADS, EMULATOR, EMULATOR_DOUBLE, BACKENDS };
static const char *const backend_name[BACKENDS] = {"cpu", "cpu", "emulator", "emulator_double"};
static SnBackend *backends[BACKENDS];
static SnPool *pools[2];

static void open_backends(void) {
  SnError err = {0};
  for (int i = 0; i < 2; ++i) {
    pools[i] = sn_pool_create(1 + i, &err);
    if (!pools[i] || !(backends[i] = sn_backend_cpu(pools[i], &err))) fail_msg("%s", err.text);
  }
  for (int i = EMULATOR; i < BACKENDS; ++i) backends[i] = open_library(backend_name[i], 0, NULL);
}

static void close_backends(void) {
  for (int i = 0; i < BACKENDS; ++i) sn_backend_free(backends[i]);
  for (int i = 0; i < 2; ++i) sn_pool_free(pools[i]);
}

static void rollouts(const Scene *x, const char *name, int b) {
  Rollouts r = rollouts_make(x, STEPS, CANDIDATES, true);
  rollouts_run(x, backends[b], &r);
  Hash *h = hash_new();
  hash_doubles(h, r.batch.cost, r.results);
  hash_ints(h, r.batch.warn, CANDIDATES);
  rollouts_free(&r);
  golden_line(hash_end(h), "rollouts/%s/%s", name, backend_name[b]);
}

// Random controls about those of the initial plan.
static void stir(const SnModel *m, sn_real *ctrl) {
  SnOracle draw = {.rng = 5};
  for (int t = 0; t < STEPS; ++t)
    for (int i = 0; i < m->nu; ++i) {
      sn_real *u = ctrl + t * m->nu + i;
      *u = sn_ctrl_clip(m, i, *u + 0.3 * sn_ctrl_half_range(m, i) * sn_oracle_uniform(&draw));
    }
}

static void add_gradient(Hash *h, SnBackend *b, SnBackendModel *d, const Scene *x, const SnGradientSettings *settings,
                         const Rollouts *r) {
  const SnModel *m = x->m;
  const size_t nu = STEPS * (size_t)m->nu, nv = (size_t)m->nv, na = (size_t)m->na;
  const size_t nt = (STEPS + 1) * (size_t)x->cost->ntarget, nterm = (size_t)x->cost->nterm;
  sn_real *bar = calloc(nu + 2 * nv + na + nt + nterm + 1, sizeof *bar);
  SnGradient g = {
      .state = *r->batch.state, .ctrl = r->batch.ctrl, .target = r->batch.target, .nstep = STEPS, .max_velocity = 1e3};
  g.ctrl_bar = bar;
  g.qpos_bar = bar + nu;
  g.qvel_bar = g.qpos_bar + nv;
  g.act_bar = g.qvel_bar + nv;
  g.target_bar = g.act_bar + na;
  g.term = g.target_bar + nt;
  SnGradientBatch batch = {.settings = *settings, .item = &g, .count = 1};
  assert_true(sn_backend_gradients(b, d, &batch, steady_clock(), INFINITY));
  const int status = (int)g.status;
  hash_ints(h, &status, 1);
  hash_doubles(h, &g.cost, 1);
  hash_doubles(h, &g.norm, 1);
  hash_doubles(h, bar, nu + 2 * nv + na + nt + nterm);
  free(bar);
}

// By both methods, contacts as they are, carried rigidly, and from distance.
static void gradients(const Scene *x, const char *name, int b) {
  SnError err = {0};
  Rollouts r = rollouts_make(x, STEPS, 1, false);
  stir(x->m, r.ctrl);
  SnBackendModel *d = scene_load(backends[b], x, STEPS);
  if (sn_backend_reserve_gradients(backends[b], d, 1, &err) != SN_OK) fail_msg("%s", err.text);
  unsigned char *pair = sn_cfd_pairs(x->task, x->m, &err);
  if (!pair) fail_msg("%s", err.text);
  Hash *h = hash_new();
  for (int k = 0; k < 5; ++k) {
    SnGradientSettings settings = sn_default_gradient_settings();
    settings.method = k % 2 ? SN_GRADIENT_PRODUCTS : SN_GRADIENT_SWEEP;
    settings.cfd = sn_cfd_settings(&x->task->settings, pair, k >= 2);
    settings.cfd.surrogate = k == 4;
    add_gradient(h, backends[b], d, x, &settings, &r);
  }
  free(pair);
  sn_backend_unload(backends[b], d);
  rollouts_free(&r);
  golden_line(hash_end(h), "rollout_gradients/%s/%s", name, backend_name[b]);
}

static void add_plan(Hash *h, const SnPlan *p) {
  const int whole[] = {(int)p->status, p->lead, p->nstep, p->iterations, p->candidates, p->warn};
  const double value[] = {p->cost_before, p->cost_after, p->cost_now, p->gradient_norm, p->start};
  const size_t rows = (size_t)p->nstep;
  hash_ints(h, whole, sizeof whole / sizeof *whole);
  hash_doubles(h, value, sizeof value / sizeof *value);
  hash_doubles(h, p->term, (size_t)p->nterm);
  hash_doubles(h, p->ctrl, rows * (size_t)p->nu);
  assert_non_null(p->qpos);
  hash_doubles(h, p->qpos, (rows + 1) * (size_t)p->nq);
  hash_doubles(h, p->qvel, (rows + 1) * (size_t)p->nv);
  hash_doubles(h, p->act, (rows + 1) * (size_t)p->na);
}

// Plans one from the other, the second from a state that is rolled forward first, without deadlines.
static void plans(const Scene *x, const char *name, const char *kind, int b, const SnSettings *s) {
  SnError err = {0};
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = backends[b];
  def.settings = *s;
  def.seed = 3;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s: %s", name, err.text);
  Hash *h = hash_new();
  for (int k = 0; k < PLANS; ++k) {
    SnPlanRequest r = request_of(p, 3 * k * (double)x->m->opt.timestep);
    r.latency = k ? 2 * (double)x->m->opt.timestep : 0;
    r.deadline = INFINITY;
    r.want_states = true;
    begin_plan(p, &r);
    const SnPlan plan = finish_plan(p);
    add_plan(h, &plan);
  }
  sn_planner_free(p);
  golden_line(hash_end(h), "plans/%s/%s/%s", name, kind, backend_name[b]);
}

static SnSettings short_settings(const Scene *x, int planner) {
  SnSettings s = x->task->settings;
  s.planner = planner;
  s.horizon = STEPS;
  s.knots = 5;
  s.candidates = 6;
  s.iterations = 2;
  s.adam_iterations = 3;
  s.adam_rate = 0.03;
  s.adam_starts = 2;
  return s;
}

static void all_plans(const Scene *x, const char *name, int b) {
  SnSettings s = short_settings(x, SN_PLANNER_SAMPLING);
  plans(x, name, "sampling", b, &s);
  s = short_settings(x, SN_PLANNER_ADAM);
  plans(x, name, "adam", b, &s);
  s.adam_knots = 6;
  s.adam_interpolation = SN_SPLINE_CUBIC;
  s.adam_moments = SN_MOMENTS_KEPT;
  s.adam_clip = SN_CLIP_STEP;
  s.gradient = SN_GRADIENT_PRODUCTS;
  s.cfd = SN_CFD_BACKWARD;
  plans(x, name, "adam_knots_cfd", b, &s);
  if (strcmp(name, "task_arm_reach") != 0 && strcmp(name, "task_hand_balls") != 0) return;
  s = short_settings(x, SN_PLANNER_ADAM);
  s.adam_moments = SN_MOMENTS_KEPT;
  snprintf(s.grid, sizeof s.grid, "8x1,6x2");  // over STEPS
  plans(x, name, "adam_grid", b, &s);
  s.planner = SN_PLANNER_SAMPLING;
  plans(x, name, "sampling_grid", b, &s);
}

// Takes the scene.
static void scene_lines(Scene *x, const char *name) {
  if (golden_model(name, &x->o))
    for (int b = 0; b < BACKENDS; ++b) {
      rollouts(x, name, b);
      gradients(x, name, b);
      if (x->m->nu > 0) all_plans(x, name, b);
    }
  scene_close(x);
}

static void tasks(void) {
  static const char *const names[] = {"arm_reach", "billiard", "hand_pose", "hand_balls", "ball_catch"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    Scene x;
    char name[64];
    snprintf(name, sizeof name, "task_%s", names[i]);
#ifdef SN_TEST_SLOW
    if (i >= 2) {
      golden_skip(name, "takes too long in this build");
      continue;
    }
#endif
    if (scene_open(&x, names[i]))
      scene_lines(&x, name);
    else
      golden_skip(name, "its model is not here");
  }
}

// A task that looks at every sensor.
static void sensor_task(char *text, size_t size) {
  size_t at = (size_t)snprintf(text, size, "model: sensors\nterms:\n");
  for (int i = 0; i < GOLDEN_SENSORS; ++i)
    at += (size_t)snprintf(text + at, size - at,
                           "  - {name: t%d, residual: {sensor: s%d}, norm: smooth_abs, width: 0.1, weight: 1}\n", i, i);
}

// Models without a task of their own: one for all that moves.
static void models(void) {
  for (int i = 0; i < SN_SMALL_MODELS + 2; ++i) {
    Scene x;
    SnError err = {0};
    char name[64], text[4000];
    memset(&x, 0, sizeof x);
    if (i < SN_SMALL_MODELS)
      sn_step_model(&x.o, i);
    else
      sn_oracle_load_string(&x.o, i == SN_SMALL_MODELS ? sn_branching_model() : golden_sensors);
    if (i > SN_SMALL_MODELS)
      sensor_task(text, sizeof text);
    else if (!sn_probe_task(x.o.m, text, sizeof text))
      fail_msg("small model %d: nothing moves", i);
    x.task = sn_task_parse(text, strlen(text), "small.yaml", &err);
    if (!x.task) fail_msg("%s", err.text);
    scene_start(&x);
    snprintf(name, sizeof name, "task_small%d", i);
    scene_lines(&x, name);
  }
}

void golden_plans(void **state) {
  (void)state;
  const int before = golden_failures();
  open_backends();
  models();
  tasks();
  close_backends();
  assert_int_equal(golden_failures() - before, 0);
}
