// A backend against the cpu, through the table alone: steps and their adjoints on every kind of element, batches from
// different states with gradients of a cost of their states, rollouts, gradients and multistarts of the tasks that come
// with sinew; and that a repetition gives the same bits.
//
//   cuda_test_agree BACKEND FOLDER [REAL [OUT [THREADS]]]
//
// FOLDER: of libsinew_BACKEND.so. REAL: how many models of MyoSuite, in the order of tests/support (default 1). OUT:
// file that gets a line of JSON a comparison. THREADS: of a world (1: in rollouts a thread has one alone). Exit status
// 77, with the reason, where BACKEND is of CUDA and there is no device, or is of fused products and the processor has
// none.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/bench/bench_multistart.h"
#include "physics/sensor/sensor.h"
#include "tests/cuda/agree_case.h"
#include "tests/cuda/agree_table.h"
#include "tests/cuda/check_task.h"

enum { STEPS = 32, CANDIDATES = 8 };

static const char *name = "", *out;
static int real = 1;
static AgreeTolerance tolerance;
static SnBackend *cpu, *other;

static void must(bool ok, const char *what, const SnError *err) {
  if (!ok) fail_msg("%s: %s", what, err->text);
}

// A model on one of the two backends, with room.
static SnBackendModel *load(SnBackend *b, const SnModel *m, const SnCost *cost, int steps, int gradients) {
  SnError err = {0};
  SnBackendModel *x = sn_backend_load(b, m, cost, steps, &err);
  must(x != NULL, sn_backend_name(b), &err);
  must(gradients == 0 || sn_backend_reserve_gradients(b, x, gradients, &err) == SN_OK, sn_backend_name(b), &err);
  return x;
}

static int methods(void) {
  char text[64];
  const int setting = sn_settings_find("gradient");
  int n = 0;
  while (sn_settings_choice_name(setting, n, text, sizeof text)[0]) ++n;
  return n;
}

// ---- comparisons ----

// Adds what a backend makes of something to a result.
typedef void Run(SnBackend *b, const void *of, AgreeResult *r);

// The other backend, twice, beside the CPU. Errors up to `allowed` count as none.
static void compare(Run *run, const void *of, const char *where, double allowed) {
  AgreeResult r[3] = {{0}};
  for (int k = 0; k < 3; ++k) run(k ? other : cpu, of, &r[k]);
  if (!agree_same_bits(&r[1], &r[2])) fail_msg("%s: a repetition gives other bits", where);
  agree_compare(&r[1], &r[0], allowed);
  for (int k = 0; k < 3; ++k) agree_free(&r[k]);
}

// Gradients of a batch, of the cost or (bars) of a caller's own.
typedef struct Gradients {
  AgreeRow row;
  const char *name;
  const SnModel *m;
  const SnCost *cost;
  const SnState *state;        // (n)
  const sn_real *const *ctrl;  // (n)
  const sn_real *target;
  const SnTrajectoryBar *bars;
  int n, steps;
  SnGradientSettings settings;
} Gradients;

static void run_gradients(SnBackend *b, const void *of, AgreeResult *r) {
  const Gradients *in = of;
  const SnClock clock = sn_clock_monotonic();
  SnGradient *item = check_array((size_t)in->n, sizeof *item);
  SnGradientBatch batch = {.settings = in->settings, .item = item, .count = in->n};
  const SnModel *m = in->m;
  const struct {
    const char *name;
    int n;
  } bar[] = {{"qpos", m->nv},
             {"qvel", m->nv},
             {"act", m->na},
             {"ctrl", in->steps * m->nu},
             {"target", in->bars ? 0 : (in->steps + 1) * in->cost->ntarget}};
  char method[64];
  sn_settings_choice_name(sn_settings_find("gradient"), in->settings.method, method, sizeof method);
  for (int i = 0; i < in->n; ++i) {
    double *to[5];
    for (int k = 0; k < 5; ++k)
      to[k] = agree_vector(r, in->row, NULL, bar[k].n, "%s, state %d, %s: %s_bar", in->name, i, method, bar[k].name);
    item[i] = (SnGradient){.state = in->state[i],
                           .ctrl = in->ctrl[i],
                           .target = in->target,
                           .nstep = in->steps,
                           .max_velocity = 1e6,
                           .status = SN_GRADIENT_PENDING,
                           .term = agree_vector(r, AGREE_NROW, NULL, in->cost->nterm, "terms"),
                           .bar = in->bars,
                           .qpos_bar = to[0],
                           .qvel_bar = to[1],
                           .act_bar = to[2],
                           .ctrl_bar = to[3],
                           .target_bar = in->bars ? NULL : to[4]};
  }
  SnBackendModel *x = load(b, m, in->cost, in->steps, in->n);
  check_ended(sn_backend_gradients(b, x, &batch, &clock, INFINITY), b, in->name);
  sn_backend_unload(b, x);
  for (int i = 0; i < in->n; ++i) agree_vector(r, AGREE_NROW, &item[i].cost, 1, "cost");
  free(item);
}

// ---- one step ----

static sn_real *targets(const SnCost *cost, const SnModel *m, int steps) {
  sn_real *target = check_array((size_t)(steps + 1) * (size_t)cost->ntarget, sizeof *target);
  sn_cost_schedule(cost, 0, (double)m->opt.timestep, steps + 1, target);
  return target;
}

// Terms of one kind are a vector: their errors are relative to the largest of the kind.
static void add_terms(const AgreeCase *c, const double *term, int state, AgreeResult *r) {
  for (int kind = 0; kind < AGREE_NKIND; ++kind) {
    double some[AGREE_TERMS];
    int n = 0;
    for (int i = 0; i < c->all.cost->nterm; ++i)
      if (c->all.kind[i] == (AgreeKind)kind) some[n++] = term[i];
    agree_vector(r, AGREE_ROW_STEP, some, n, "%s, state %d: %s", c->name, state, agree_kind_name[kind]);
  }
}

// Rollouts of one step from every state of a case.
static void run_steps(SnBackend *b, const void *of, AgreeResult *r) {
  const AgreeCase *c = of;
  const SnClock clock = sn_clock_monotonic();
  sn_real *target = targets(c->all.cost, c->o.m, 1);
  SnBackendModel *x = load(b, c->o.m, c->all.cost, 1, 0);
  for (int i = 0; i < c->count; ++i) {
    unsigned char done = 0;
    double cost = NAN, term[AGREE_TERMS];
    const SnBatch batch = {.state = &c->state[i],
                           .nstate = 1,
                           .ctrl = c->ctrl[i],
                           .nctrl = 1,
                           .target = target,
                           .ntable = 1,
                           .nstep = 1,
                           .count = 1,
                           .max_velocity = 1e6,
                           .cost = &cost,
                           .term = term,
                           .done = &done};
    check_ended(sn_backend_rollouts(b, x, &batch, &clock, INFINITY), b, c->name);
    assert_true(done && (b != cpu || isfinite(cost)));
    add_terms(c, term, i, r);
    sn_backend_abandon(b, x);
  }
  sn_backend_unload(b, x);
  free(target);
}

static void check_step(const AgreeCase *c) { compare(run_steps, c, c->name, 0); }

static void check_adjoint(const AgreeCase *c, AgreeRow row, const SnCfdSettings *cfd) {
  const SnModel *m = c->o.m;
  const SnCost *cost = c->smooth.cost;
  sn_real *target = targets(cost, m, 1);
  for (int k = 0; k < methods(); ++k) {
    const Gradients in = {.row = row,
                          .name = c->name,
                          .m = m,
                          .cost = cost,
                          .state = c->state,
                          .ctrl = (const sn_real *const *)c->ctrl,
                          .target = target,
                          .n = c->count,
                          .steps = 1,
                          .settings = {.method = (SnGradientMethod)k, .cfd = *cfd}};
    // The CPU's packs of columns evaluate the stages of RK4 anew, whose solver and searches end elsewhere by rounding.
    const bool packs = k == SN_GRADIENT_PRODUCTS && m->opt.integrator == SN_INT_RK4;
    compare(run_gradients, &in, c->name, packs ? 1e-12 : 0);
  }
  free(target);
}

// Over all cases.
static int over_cases(void (*check)(const AgreeCase *c)) {
  int n = 0;
  for (int i = 0;; ++i) {
    AgreeCase c;
    const bool more = agree_case_open(&c, i, real);
    if (more && c.count > 0) {
      check(&c);
      ++n;
    }
    agree_case_close(&c);
    if (!more) return n;
  }
}

static void plain_adjoint(const AgreeCase *c) {
  const SnCfdSettings none = {0};
  check_adjoint(c, AGREE_ROW_ADJOINT, &none);
}

// All pairs within 0.2 m, with their friction.
static void cfd_adjoint(const AgreeCase *c) {
  const SnCfdSettings cfd = {
      .on = 1, .friction = 1, .solimp = {SN_R(0.0), SN_R(0.1), SN_R(0.2), SN_R(1.0), SN_R(4.0)}, .width = SN_R(0.002)};
  check_adjoint(c, AGREE_ROW_CFD, &cfd);
}

static void holds(AgreeRow row) { assert_true(agree_row_holds(row, name, tolerance, out)); }

static void steps(void **state) {
  (void)state;
  printf("%d models\n", over_cases(check_step));
  holds(AGREE_ROW_STEP);
}

static void adjoints(void **state) {
  (void)state;
  over_cases(plain_adjoint);
  holds(AGREE_ROW_ADJOINT);
}

static void cfd_adjoints(void **state) {
  (void)state;
  over_cases(cfd_adjoint);
  holds(AGREE_ROW_CFD);
}

// ---- batches of a caller's own ----

enum { OWN_STEPS = 4, OWN_ROWS = OWN_STEPS + 1 };

// What a backend is given of a case: each state's controls, and a linear cost of everything that has a derivative.
typedef struct Own {
  const AgreeCase *c;
  const sn_real *ctrls[AGREE_STATES];
  double *ctrl, *target, *bar;
  SnTrajectoryBar bars;
} Own;

static Own make_own(const AgreeCase *c) {
  const SnModel *m = c->o.m;
  const int nu = m->nu, ns = m->nsensordata, row = 2 * m->nv + m->na + ns, nbar = OWN_ROWS * row + OWN_STEPS * nu;
  Own own = {.c = c,
             .ctrl = check_array((size_t)(c->count * OWN_STEPS * nu), sizeof(double)),
             .target = targets(c->smooth.cost, m, OWN_STEPS),
             .bar = check_array((size_t)nbar, sizeof(double))};
  for (int i = 0; i < c->count; ++i) own.ctrls[i] = own.ctrl + i * OWN_STEPS * nu;
  for (int i = 0; i < c->count * OWN_STEPS; ++i)
    for (int k = 0; k < nu; ++k) own.ctrl[i * nu + k] = c->ctrl[i / OWN_STEPS][k];
  for (int i = 0; i < nbar; ++i) own.bar[i] = sin(1.7 * i);
  double *sensor = own.bar + OWN_ROWS * (row - ns);
  for (int i = 0; i < m->nsensor; ++i)
    for (int k = 0; k < OWN_ROWS * m->sensor_dim[i] && !sn_sensor_differentiable(m, i); ++k)
      sensor[(k / m->sensor_dim[i]) * ns + m->sensor_adr[i] + k % m->sensor_dim[i]] = 0;
  own.bars = (SnTrajectoryBar){.cost = 0.5,
                               .qpos = own.bar,
                               .qvel = own.bar + OWN_ROWS * m->nv,
                               .act = own.bar + OWN_ROWS * 2 * m->nv,
                               .sensordata = sensor,
                               .ctrl = own.bar + OWN_ROWS * row};
  return own;
}

// All states and sensors of rollouts from different states under different controls.
static void run_batch(SnBackend *b, const void *of, AgreeResult *r) {
  const Own *own = of;
  const AgreeCase *c = own->c;
  const SnModel *m = c->o.m;
  const SnClock clock = sn_clock_monotonic();
  SnError err = {0};
  unsigned char done[AGREE_STATES] = {0};
  double cost[AGREE_STATES];
  SnTrajectory states[AGREE_STATES];
  const struct {
    const char *name;
    int n;
  } array[] = {{"qpos", m->nq}, {"qvel", m->nv}, {"act", m->na},
               {"cost", 1},     {"qacc", m->nv}, {"sensordata", m->nsensordata}};
  for (int i = 0; i < c->count; ++i) {
    double *to[6];
    for (int k = 0; k < 6; ++k)
      to[k] =
          agree_vector(r, AGREE_ROW_BATCH, NULL, OWN_ROWS * array[k].n, "%s, state %d: %s", c->name, i, array[k].name);
    states[i] =
        (SnTrajectory){.qpos = to[0], .qvel = to[1], .act = to[2], .cost = to[3], .qacc = to[4], .sensordata = to[5]};
  }
  const SnBatch batch = {.state = c->state,
                         .nstate = c->count,
                         .ctrl = own->ctrl,
                         .nctrl = c->count,
                         .target = own->target,
                         .ntable = 1,
                         .nstep = OWN_STEPS,
                         .count = c->count,
                         .max_velocity = 1e6,
                         .cost = cost,
                         .done = done,
                         .out = states};
  SnBackendModel *x = load(b, m, c->smooth.cost, OWN_STEPS, 0);
  must(sn_backend_reserve_batches(b, x, c->count, &err) == SN_OK, c->name, &err);
  check_ended(sn_backend_rollouts(b, x, &batch, &clock, INFINITY), b, c->name);
  sn_backend_unload(b, x);
}

static void check_batch(const AgreeCase *c) {
  Own own = make_own(c);
  const Gradients in = {.row = AGREE_ROW_BARS,
                        .name = c->name,
                        .m = c->o.m,
                        .cost = c->smooth.cost,
                        .state = c->state,
                        .ctrl = own.ctrls,
                        .target = own.target,
                        .bars = &own.bars,
                        .n = c->count,
                        .steps = OWN_STEPS,
                        .settings = sn_default_gradient_settings()};
  compare(run_batch, &own, c->name, 0);
  compare(run_gradients, &in, c->name, 0);
  free(own.ctrl);
  free(own.target);
  free(own.bar);
}

static void batches(void **state) {
  (void)state;
  if (!sn_backend_has(other, SN_BACKEND_BATCHES)) fail_msg("%s makes no batches", name);
  over_cases(check_batch);
  holds(AGREE_ROW_BATCH);
  holds(AGREE_ROW_BARS);
}

// ---- tasks ----

static const char *const tasks[] = {"arm_reach", "billiard", "hand_pose", "hand_balls", "ball_catch"};
enum { TASKS = sizeof tasks / sizeof *tasks };

// The time grid of the steps, and over how many of the tasks.
static SnGrid grid;
static int ntask = TASKS;

// Over the tasks whose models are there.
static void over_tasks(void (*check)(const BenchTask *t)) {
  for (int i = 0; i < ntask; ++i) {
    SnError err = {0};
    BenchTask t;
    if (check_task_open(&t, tasks[i], STEPS, &err))
      check(&t);
    else
      printf("%s: skipped: %s\n", tasks[i], err.text);
    bench_task_close(&t);
  }
}

static SnState grid_state(const BenchTask *t) {
  SnState s = bench_task_state(t);
  s.grid = &grid;
  return s;
}

static void run_rollouts(SnBackend *b, const void *of, AgreeResult *r) {
  const BenchTask *t = of;
  const SnClock clock = sn_clock_monotonic();
  const SnNoiseSettings noise = {.seed = 7,
                                 .spacing = 4,
                                 .knots = sn_noise_knots(sn_grid_begin(&grid, STEPS), 4, 0),
                                 .interpolation = SN_SPLINE_CUBIC,
                                 .colour = SN_NOISE_PINK,
                                 .scale = SN_R(0.1),
                                 .grid = grid};
  unsigned char done[CANDIDATES] = {0};
  const SnState initial = grid_state(t);
  const int nterm = t->cost->nterm;
  double cost[CANDIDATES], *term = check_array((size_t)(CANDIDATES * nterm), sizeof *term);
  const SnBatch batch = {.state = &initial,
                         .nstate = 1,
                         .ctrl = t->ctrl,
                         .nctrl = 1,
                         .target = t->target,
                         .ntable = 1,
                         .noise = &noise,
                         .nstep = STEPS,
                         .count = CANDIDATES,
                         .max_velocity = 1e3,
                         .cost = cost,
                         .term = term,
                         .done = done};
  SnBackendModel *x = load(b, t->m, t->cost, STEPS, 0);
  check_ended(sn_backend_rollouts(b, x, &batch, &clock, INFINITY), b, t->task->name);
  for (int i = 0; i < CANDIDATES; ++i) {
    assert_true(done[i]);
    agree_vector(r, AGREE_ROW_ROLLOUT, &cost[i], 1, "%s, candidate %d", t->task->name, i);
    agree_vector(r, AGREE_ROW_ROLLOUT, term + i * nterm, nterm, "%s, terms of candidate %d", t->task->name, i);
  }
  free(term);
  sn_backend_unload(b, x);
}

static void check_rollouts(const BenchTask *t) { compare(run_rollouts, t, t->task->name, 0); }

static void rollouts(void **state) {
  (void)state;
  over_tasks(check_rollouts);
  holds(AGREE_ROW_ROLLOUT);
}

// A multistart by one method.
typedef struct Multistart {
  const BenchTask *t;
  SnGradientMethod method;
} Multistart;

static int better;  // how many of the CPU's have found something better than they began with

// By the planner's own jobs: settings, noise and contacts from distance as the task has them.
static void run_multistart(SnBackend *b, const void *of, AgreeResult *r) {
  SnError err = {0};
  const Multistart *in = of;
  const BenchTask *t = in->t;
  const char *task = t->task->name;
  BenchMultistart x;
  must(bench_multistart_open(&x, t, b, 1, 2, &err) == SN_OK, task, &err);
  x.job.settings.method = in->method;
  x.job.state.grid = &grid;
  if (grid.parts > 0) {  // knots that stand in time
    const int knots = sn_noise_knots(sn_grid_begin(&grid, STEPS), 6, 2);
    x.job.grid = (SnAdamGrid){STEPS, knots, 6, 2, SN_SPLINE_LINEAR, grid};
    x.job.noise.grid = grid;
    x.job.noise.knots = sn_noise_knots(sn_grid_begin(&grid, STEPS), x.job.noise.spacing, x.job.noise.phase);
  }
  check_ended(bench_multistarts_run(&x, 1, 4, &err) == SN_OK, b, task);
  better += b == cpu && x.job.best_cost < x.job.cost_before;
  agree_vector(r, AGREE_ROW_MULTISTART, &x.job.cost_before, 1, "%s: cost before, method %d", task, in->method);
  agree_vector(r, AGREE_ROW_MULTISTART, &x.job.best_cost, 1, "%s: cost, method %d", task, in->method);
  agree_vector(r, AGREE_ROW_MULTISTART, x.ctrl, STEPS * t->m->nu, "%s: controls, method %d", task, in->method);
  bench_multistart_close(&x);
}

// The task's controls with white noise: constant ones may lead activations to where the control is, to the last bit,
// and there the time constant of a muscle jumps. (arm_reach: its step is half of a resting muscle's time constant.)
static sn_real *lively_controls(const BenchTask *t) {
  const SnNoiseSettings noise = {.seed = 3,
                                 .spacing = 1,
                                 .knots = sn_noise_knots(STEPS, 1, 0),
                                 .interpolation = SN_SPLINE_ZERO,
                                 .colour = SN_NOISE_WHITE,
                                 .scale = SN_R(0.05)};
  sn_real *ctrl = check_array((size_t)(STEPS * t->m->nu), sizeof *ctrl),
          *scratch = check_array(3 * (STEPS + 2), sizeof *scratch);
  sn_noise_candidate(t->m, &noise, 1, t->ctrl, STEPS, scratch, ctrl);
  free(scratch);
  return ctrl;
}

static void check_gradients(const BenchTask *t) {
  const SnState initial = grid_state(t);
  sn_real *noisy = lively_controls(t);
  const sn_real *ctrl = noisy;
  for (int k = 0; k < methods(); ++k) {
    const Gradients in = {.row = AGREE_ROW_GRADIENT,
                          .name = t->task->name,
                          .m = t->m,
                          .cost = t->cost,
                          .state = &initial,
                          .ctrl = &ctrl,
                          .target = t->target,
                          .n = 1,
                          .steps = STEPS,
                          .settings = {.method = (SnGradientMethod)k}};
    compare(run_gradients, &in, t->task->name, 0);
  }
  free(noisy);
}

static void gradients(void **state) {
  (void)state;
  over_tasks(check_gradients);
  holds(AGREE_ROW_GRADIENT);
}

static void check_multistarts(const BenchTask *t) {
  for (int k = 0; k < methods(); ++k) compare(run_multistart, &(Multistart){t, (SnGradientMethod)k}, t->task->name, 0);
}

static void multistarts(void **state) {
  (void)state;
  better = 0;
  over_tasks(check_multistarts);
  assert_true(better >= methods());  // there is something to agree on
  holds(AGREE_ROW_MULTISTART);
}

// All of that where the later steps are longer.
static void time_grids(void **state) {
  SnError err = {0};
  must(sn_grid_parse("12x1,16x2,4x3", 56, &grid, &err) == SN_OK, "grid", &err);
  assert_int_equal(sn_grid_steps(&grid, 56), STEPS);
  ntask = 3;
  rollouts(state);
  gradients(state);
  multistarts(state);
  grid = (SnGrid){0};
  ntask = TASKS;
}

// ---- the program ----

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s BACKEND FOLDER [REAL [OUT [THREADS]]]\n", argv[0]);
    return 2;
  }
  name = argv[1];
  if (argc > 3) real = atoi(argv[3]);
  if (argc > 4 && *argv[4]) out = argv[4];
  CheckBackends b;
  const int status = check_backends_open(&b, name, argv[2], argc > 5 ? atoi(argv[5]) : 0);
  cpu = b.cpu;
  other = b.other;
  tolerance = strstr(b.text, "float") ? AGREE_FLOAT : strcmp(name, "emulator_double") == 0 ? AGREE_BITS : AGREE_DOUBLE;
  const struct CMUnitTest list[] = {cmocka_unit_test(steps),        cmocka_unit_test(adjoints),
                                    cmocka_unit_test(cfd_adjoints), cmocka_unit_test(batches),
                                    cmocka_unit_test(rollouts),     cmocka_unit_test(gradients),
                                    cmocka_unit_test(multistarts),  cmocka_unit_test(time_grids)};
  const int failed = status ? status : cmocka_run_group_tests(list, NULL, NULL);
  check_backends_close(&b);
  return failed;
}
