// Rollouts by chosen steps: they are one integration over the horizon whose controls are held, forward and back, on any
// time grid, with contacts from distance and within a limit on steps; gradients are those of costs.
#include <stdio.h>

#include "planner/backend/backend.h"
#include "tests/support/oracle.h"

enum { STEPS = 20, HORIZON = 50, MOST = 16, ROWS = STEPS + 1, NU = 2 };

// A tossed cube that a force pushes, and a muscle that bends a pendulum.
static const char *const xml =
    "<mujoco><option timestep='0.004' cone='pyramidal'><flag refsafe='disable'/></option>"
    "<default><geom solimp='0 0.95 0.001 0.5 2' solref='0.005 1'/></default><worldbody>"
    "<geom type='plane' size='20 20 .1'/><body name='cube' pos='0 0 .1'><freejoint name='free'/>"
    "<geom type='box' size='.05 .05 .05' density='100' euler='60 0 0'/></body>"
    "<body pos='1 0 1'><joint axis='0 1 0' damping='.1'/><geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03'/>"
    "<site name='b' pos='.04 0 -.1'/></body><site name='a' pos='1.05 0 1.1'/></worldbody>"
    "<tendon><spatial name='t'><site site='a'/><site site='b'/></spatial></tendon>"
    "<actuator><motor joint='free' gear='0 1 0 0 0 0'/><muscle tendon='t' lengthrange='.1 .4' force='40'/></actuator>"
    "</mujoco>";

static const char *const terms =
    "model: body.xml\n"
    "settings: {horizon: 50}\n"
    "terms:\n"
    "  - {name: cube, residual: {position: {body: cube}}, target: [0.1, 0.05, 0.2], weight: 1, terminal: 2}\n"
    "  - {name: speed, residual: {joint_velocity: all}, weight: 0.01}\n"
    "  - {name: effort, residual: {control: all}, weight: 0.01}\n"
    "  - {name: rate, residual: {control_rate: all}, weight: 0.0001}\n";

typedef struct Fixture {
  SnOracle o;
  SnTask *task;
  SnCost *cost;
  SnPool *pool;
  SnBackend *cpu;
  SnBackendModel *model;
  SnHorizonSettings settings;
  SnGrid grid;
  sn_real qpos[MOST], qvel[MOST], act[MOST], ctrl[STEPS * NU], target[ROWS * MOST];
  sn_real bar_qpos[ROWS * MOST], bar_qvel[ROWS * MOST], bar_act[ROWS * MOST];
  SnGradient item;
  SnTrajectory out;
  sn_real out_qpos[ROWS * MOST], out_qvel[ROWS * MOST], out_act[ROWS * MOST];
  sn_real ctrl_bar[STEPS * NU], qpos_bar[MOST], qvel_bar[MOST], act_bar[MOST];
  unsigned char pair[MOST];
} Fixture;

static double tight(void) { return sizeof(sn_real) == sizeof(double) ? 1e-10 : 1e-4; }

static void open_fixture(Fixture *x, double tolerance, const char *grid) {
  SnError err = {0};
  memset(x, 0, sizeof *x);
  sn_oracle_load_string(&x->o, xml);
  const SnModel *m = x->o.m;
  assert_true(m->nq <= MOST && m->nu == NU && m->na == 1);
  if (!(x->task = sn_task_parse(terms, strlen(terms), "body.yaml", &err))) fail_msg("%s", err.text);
  x->cost = sn_cost_create(x->task, m, &err);
  assert_true(x->cost->ntarget <= MOST);
  x->pool = sn_pool_create(1, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  x->model = sn_backend_load(x->cpu, m, x->cost, STEPS, &err);
  x->settings = sn_horizon_defaults();
  x->settings.rtol = x->settings.atol = (sn_real)tolerance;
  if (sn_backend_choose(x->cpu, x->model, &x->settings, &err) != SN_OK) fail_msg("%s", err.text);
  if (sn_backend_reserve_gradients(x->cpu, x->model, 1, &err) != SN_OK) fail_msg("%s", err.text);
  if (sn_grid_parse(grid, HORIZON, &x->grid, &err) != SN_OK) fail_msg("%s", err.text);
  assert_int_equal(sn_grid_steps(&x->grid, HORIZON), STEPS);
  for (int i = 0; i < m->nq; ++i) x->qpos[i] = (sn_real)x->o.d->qpos[i];
  x->qpos[2] = SN_R(0.2);
  for (int i = 0; i < m->nv; ++i) x->qvel[i] = (sn_real)(0.5 * sin(1.7 * i));
  x->qvel[2] = -2;
  x->act[0] = SN_R(0.3);
  for (int i = 0; i < STEPS * m->nu; ++i) x->ctrl[i] = (sn_real)(0.3 + 0.2 * sin(0.6 * i));
  for (int i = 0; i < ROWS * m->nv; ++i) x->bar_qpos[i] = (sn_real)sin(0.9 * i);
  for (int i = 0; i < ROWS * m->nv; ++i) x->bar_qvel[i] = (sn_real)(0.1 * sin(0.7 * i));
  for (int i = 0; i < ROWS * m->na; ++i) x->bar_act[i] = (sn_real)sin(1.1 * i);
  for (int i = 0; i < ROWS * x->cost->ntarget; ++i) x->target[i] = SN_R(0.1);
  x->out = (SnTrajectory){.qpos = x->out_qpos, .qvel = x->out_qvel, .act = x->out_act};
  memset(x->pair, 1, sizeof x->pair);
}

static void close_fixture(Fixture *x) {
  sn_backend_unload(x->cpu, x->model);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  sn_cost_free(x->cost);
  sn_task_free(x->task);
  sn_oracle_free(&x->o);
}

// A rollout and the derivative of its cost, or of what `bar` says.
static void run(Fixture *x, const SnTrajectoryBar *bar, const SnCfdSettings *forward, const SnCfdSettings *backward) {
  const SnClock clock = sn_clock_monotonic();
  x->item = (SnGradient){.state = {.qpos = x->qpos, .qvel = x->qvel, .act = x->act, .grid = &x->grid, .cfd = forward},
                         .ctrl = x->ctrl,
                         .target = x->target,
                         .nstep = STEPS,
                         .max_velocity = 1e3,
                         .bar = bar,
                         .out = &x->out,
                         .ctrl_bar = x->ctrl_bar,
                         .qpos_bar = x->qpos_bar,
                         .qvel_bar = x->qvel_bar,
                         .act_bar = x->act_bar};
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = &x->item, .count = 1};
  if (backward) batch.settings.cfd = *backward;
  assert_true(sn_backend_gradients(x->cpu, x->model, &batch, &clock, INFINITY));
  assert_int_equal(x->item.status, SN_GRADIENT_DONE);
}

static void expect_near(const char *what, const sn_real *a, const sn_real *b, int n, double tolerance) {
  double most = 0, size = 0;
  for (int i = 0; i < n; ++i) {
    most = sn_larger(most, fabs((double)(a[i] - b[i])));
    size = sn_larger(size, fabs((double)b[i]));
  }
  if (!(most <= tolerance * size) || size == 0) fail_msg("%s: off by %g of %g", what, most, size);
}

// What one run over the horizon makes of it, whose knots are the times of the grid.
static void compare_with_one(const Fixture *x, const SnCfdSettings *forward, const SnCfdSettings *backward,
                             double tolerance) {
  const SnModel *m = x->o.m;
  SnError err = {0};
  SnHorizonStatus status;
  SnHorizonSettings s = x->settings;
  s.keep = 20000;
  SnHorizon *h = sn_horizon_create(m, &s, &err);
  sn_real time[ROWS], qpos[ROWS * MOST], qvel[ROWS * MOST], act[ROWS * MOST];
  sn_real ctrl_bar[STEPS * NU], qpos_bar[MOST], qvel_bar[MOST], act_bar[MOST];
  for (int t = 0; t < ROWS; ++t) time[t] = (sn_real)sn_grid_begin(&x->grid, t) * m->opt.timestep;
  const SnHorizonInput in = {time[STEPS], STEPS, time, x->ctrl, ROWS, time};
  const SnHorizonOutput out = {qpos, qvel, act};
  const SnHorizonBars bars = {.out_qpos = x->bar_qpos,
                              .out_qvel = x->bar_qvel,
                              .out_act = x->bar_act,
                              .qpos = qpos_bar,
                              .qvel = qvel_bar,
                              .act = act_bar,
                              .knot = ctrl_bar};
  const SnCfd back = sn_cfd(backward);
  sn_world_set_state(m, &h->world, &x->item.state);
  assert_int_equal(h->world.cfd->on, forward ? forward->on : 0);
  if (sn_horizon_run(h, &in, &out, &status, &err) != SN_OK || status != SN_HORIZON_DONE) fail_msg("%s", err.text);
  if (sn_horizon_vjp(h, &in, &back, &bars, &err) != SN_OK) fail_msg("%s", err.text);
  sn_horizon_free(h);
  expect_near("qpos", x->out_qpos, qpos, ROWS * m->nq, 1e3 * tight());
  expect_near("qvel", x->out_qvel, qvel, ROWS * m->nv, 1e4 * tight());
  expect_near("act", x->out_act, act, ROWS * m->na, 1e4 * tight());
  if (sizeof(sn_real) < sizeof(double)) return;  // in float a slope over touches has no digit that is sure
  expect_near("bar of ctrl", x->ctrl_bar, ctrl_bar, STEPS * m->nu, tolerance);
  expect_near("bar of qpos", x->qpos_bar, qpos_bar, m->nv, tolerance);
  expect_near("bar of qvel", x->qvel_bar, qvel_bar, m->nv, tolerance);
  expect_near("bar of act", x->act_bar, act_bar, m->na, tolerance);
}

static void they_are_one_integration(void **state) {
  (void)state;
  static const char *const grids[] = {"10x1,10x4", "15x2,5x4"};
  static Fixture x;
  for (int k = 0; k < 2; ++k) {
    open_fixture(&x, tight(), grids[k]);
    const SnTrajectoryBar bar = {.qpos = x.bar_qpos, .qvel = x.bar_qvel, .act = x.bar_act};
    run(&x, &bar, NULL, NULL);
    assert_true(x.out_qpos[STEPS * x.o.m->nq + 2] < SN_R(0.15));  // it has touched the floor
    compare_with_one(&x, NULL, NULL, 1e-4);
    close_fixture(&x);
  }
}

// Contacts from distance, on the way back or in the rollout, too, are those of a run over the horizon. Nothing touches.
// On the way back alone they act along steps whose error did not know of them: two ways of steps agree to some percent.
static void contacts_from_distance(void **state) {
  (void)state;
  static Fixture x;
  open_fixture(&x, tight(), "10x1,10x4");
  const SnTrajectoryBar bar = {.qpos = x.bar_qpos, .qvel = x.bar_qvel, .act = x.bar_act};
  const SnCfdSettings cfd = {.on = 1, .solimp = {0, 0.01, 0.5, 1, 4}, .width = 0.002, .pair = x.pair};
  x.qpos[2] = SN_R(0.5);
  run(&x, &bar, NULL, NULL);
  sn_real states[ROWS * MOST];
  const sn_real plain = x.qvel_bar[2];
  memcpy(states, x.out_qpos, sizeof states);
  run(&x, &bar, NULL, &cfd);
  assert_memory_equal(states, x.out_qpos, sizeof states);
  assert_true(fabs((double)(plain - x.qvel_bar[2])) > 0.1 * fabs((double)plain));
  compare_with_one(&x, NULL, &cfd, 0.06);
  run(&x, &bar, &cfd, &cfd);
  assert_memory_not_equal(states, x.out_qpos, sizeof states);
  compare_with_one(&x, &cfd, &cfd, 1e-4);
  close_fixture(&x);
}

// A way back that has the runs of all steps at hand has the bits of one that makes them again.
static void kept_runs_have_the_same_bits(void **state) {
  (void)state;
  static Fixture x;
  SnError err = {0};
  sn_real first[STEPS * NU];
  open_fixture(&x, 1e-4, "15x2,5x4");
  run(&x, NULL, NULL, NULL);
  memcpy(first, x.ctrl_bar, sizeof first);
  SnGradientWork *g = sn_gradient_create(x.o.m, x.cost, STEPS, 1, 0, x.pool, &err);
  if (!g || sn_gradient_choose(g, &x.settings, &err) != SN_OK) fail_msg("%s", err.text);
  const SnClock clock = sn_clock_monotonic();
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = &x.item, .count = 1};
  memset(x.ctrl_bar, 0, sizeof x.ctrl_bar);
  x.item.status = SN_GRADIENT_PENDING;
  assert_true(sn_gradient_run(g, &batch, &clock, INFINITY));
  assert_memory_equal(first, x.ctrl_bar, sizeof first);
  sn_gradient_free(g);
  close_fixture(&x);
}

// Moves velocities and controls by eps times a direction that `k` numbers; returns what it weighs of the gradient.
static double move(Fixture *x, int k, double eps) {
  const int nv = x->o.m->nv;
  double sum = 0;
  for (int i = 0; i < nv; ++i) {
    x->qvel[i] += (sn_real)(eps * cos(1.3 * i + k));
    sum += (double)x->qvel_bar[i] * cos(1.3 * i + k);
  }
  for (int i = 0; i < STEPS * NU; ++i) {
    x->ctrl[i] += (sn_real)(eps * sin(0.7 * i + 2.1 * k));
    sum += (double)x->ctrl_bar[i] * sin(0.7 * i + 2.1 * k);
  }
  return sum;
}

// On the grid: costs at its states, their gradients against differences.
static void gradients_of_costs(void **state) {
  (void)state;
  const double eps = 1e-5;
  static Fixture x;
  if (sizeof(sn_real) < sizeof(double)) skip();
  open_fixture(&x, tight(), "10x1,10x4");
  for (int k = 0; k < 4; ++k) {
    run(&x, NULL, NULL, NULL);
    const double slope = move(&x, k, eps);
    run(&x, NULL, NULL, NULL);
    const double above = x.item.cost;
    move(&x, k, -2 * eps);
    run(&x, NULL, NULL, NULL);
    const double difference = (above - x.item.cost) / (2 * eps);
    move(&x, k, eps);
    if (!(fabs(slope - difference) <= 1e-4 * fabs(difference) + 1e-6))
      fail_msg("direction %d: %.9g, by differences %.9g", k, slope, difference);
  }
  close_fixture(&x);
}

// As many steps as a rollout takes suffice; with one less it has diverged, with an infinite cost.
static void steps_are_limited(void **state) {
  (void)state;
  SnError err = {0};
  static Fixture x;
  double first = 0;
  open_fixture(&x, 1e-3, "15x2,5x4");
  SnRolloutRunner *r = sn_rollout_runner_create(x.o.m, x.cost, &err);
  const SnState from = {.qpos = x.qpos, .qvel = x.qvel, .act = x.act, .grid = &x.grid};
  const SnClock clock = sn_clock_monotonic();
  SnHorizonSettings s = x.settings;
  int tried = 0;
  for (int k = 0; k < 3; ++k) {
    if (k > 0) s.max_steps = tried + 1 - k;
    if (sn_rollout_runner_choose(r, &s, false, &err) != SN_OK) fail_msg("%s", err.text);
    sn_rollout_runner_begin(r, &from, x.ctrl, x.target, STEPS, 1e3, NULL);
    const SnRolloutStatus status = sn_rollout_runner_run(r, &clock, INFINITY);
    const double cost = sn_rollout_runner_cost(r, NULL);
    if (k == 0) tried = sn_rollout_runner_rollout(r)->chosen - 1;
    if (k == 0) first = cost;
    assert_int_equal(status, k < 2 ? SN_ROLLOUT_DONE : SN_ROLLOUT_DIVERGED);
    assert_true(k < 2 ? cost == first : cost == (double)INFINITY);
    assert_int_equal(sn_rollout_runner_rollout(r)->t, k < 2 ? STEPS : STEPS - 1);
  }
  assert_true(tried > STEPS);
  sn_rollout_runner_free(r);
  close_fixture(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(they_are_one_integration),
      cmocka_unit_test(contacts_from_distance),
      cmocka_unit_test(kept_runs_have_the_same_bits),
      cmocka_unit_test(gradients_of_costs),
      cmocka_unit_test(steps_are_limited),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
