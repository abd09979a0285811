// Rollouts and gradients on a time grid: against MuJoCo whose time step changes from step to step, and differences of
// it; candidates with noise on a grid.
#include "physics/step/step.h"
#include "planner/backend/backend.h"
#include "tests/planner/bench_body.h"

enum { BASE = 20, STEPS = 9, NU = 3, NV = 2, NA = 2, TERMS = 4, TARGETS = 16 };

static const char *const text = "4x1,3x2,2x5";

typedef struct Fixture {
  SnPool *pool;
  SnBackend *backend;
  SnModel *m;
  SnCost *cost;
  SnBackendModel *model;
  SnGrid grid;
  SnState state;
  sn_real qpos[NV], qvel[NV], act[NA], ctrl[STEPS * NU], target[(BASE + 1) * TARGETS];
} Fixture;

static sn_real wave(int i) { return sn_sin((sn_real)(i * 7) * SN_R(0.37)); }

static void make_fixture(Fixture *x, int threads) {
  SnError err = {0};
  memset(x, 0, sizeof *x);
  x->pool = sn_pool_create(threads, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  x->m = sn_task_model(task, body.m, &err);
  x->cost = sn_cost_create(task, x->m, &err);
  assert_true(x->m->nq == NV && x->m->nu == NU && x->m->na == NA && x->cost->nterm == TERMS);
  assert_true(x->cost->ntarget <= TARGETS);
  x->model = sn_backend_load(x->backend, x->m, x->cost, BASE, &err);
  assert_int_equal(sn_grid_parse(text, BASE, &x->grid, &err), SN_OK);
  assert_int_equal(sn_grid_steps(&x->grid, BASE), STEPS);
  for (int i = 0; i < NV; ++i) {
    x->qpos[i] = SN_R(0.3) + SN_R(0.2) * wave(i);
    x->qvel[i] = wave(i + 3);
    x->act[i] = SN_R(0.4) + SN_R(0.2) * wave(i + 5);
  }
  for (int i = 0; i < STEPS * NU; ++i) x->ctrl[i] = SN_R(0.5) + SN_R(0.4) * wave(i + 11);
  x->state = (SnState){.time = 0.1, .qpos = x->qpos, .qvel = x->qvel, .act = x->act, .grid = &x->grid};
  sn_cost_schedule(x->cost, x->state.time, (double)x->m->opt.timestep, BASE + 1, x->target);
  sn_grid_pick(&x->grid, BASE, x->cost->ntarget, x->target, x->target);
}

static void free_fixture(Fixture *x) {
  sn_backend_unload(x->backend, x->model);
  sn_cost_free(x->cost);
  sn_model_free(x->m);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
}

// A rollout of MuJoCo, and its cost by our norms in MuJoCo's states.
typedef struct Reference {
  mjData *d;
  SnRolloutRunner *runner;
  double qpos[STEPS + 1][NV], qvel[STEPS + 1][NV], act[STEPS + 1][NA], time[STEPS + 1], cost[STEPS + 1];
  double total;
} Reference;

// The cost of state t of MuJoCo: weights of the running terms, at the end of the terminal ones.
static double state_cost(const Fixture *x, Reference *r, int t) {
  const bool end = t == STEPS;
  double value[TERMS + 1], sum = 0;
  SnWorld *w = sn_rollout_runner_world(r->runner);
  const SnState s = {.time = r->time[t], .qpos = r->qpos[t], .qvel = r->qvel[t], .act = r->act[t]};
  sn_world_set_state(x->m, w, &s);
  memcpy(w->ctrl, x->ctrl + (end ? t - 1 : t) * NU, sizeof *w->ctrl * NU);
  sn_forward(x->m, w, sn_rollout_runner_lane(r->runner));
  sn_rollout_runner_evaluate(r->runner, x->target + t * x->cost->ntarget, NULL, value);
  for (int i = 0; i < TERMS; ++i) sum += (double)(end ? x->cost->terminal[i] : x->cost->weight[i]) * value[i];
  return sum;
}

static void note_state(const Fixture *x, Reference *r, int t) {
  mju_copy(r->qpos[t], r->d->qpos, NV);
  mju_copy(r->qvel[t], r->d->qvel, NV);
  mju_copy(r->act[t], r->d->act, NA);
  r->time[t] = r->d->time;
  r->cost[t] = state_cost(x, r, t);
}

static void run_mujoco(const Fixture *x, Reference *r) {
  const double h = body.mj->opt.timestep;
  mj_resetData(body.mj, r->d);
  r->d->time = x->state.time;
  mju_copy(r->d->qpos, x->qpos, NV);
  mju_copy(r->d->qvel, x->qvel, NV);
  mju_copy(r->d->act, x->act, NA);
  r->total = 0;
  for (int t = 0; t < STEPS; ++t) {
    const int k = sn_grid_length(&x->grid, t);
    note_state(x, r, t);
    r->total += r->cost[t] * k / BASE;
    mju_copy(r->d->ctrl, x->ctrl + t * NU, NU);
    body.mj->opt.timestep = k * h;
    mj_step(body.mj, r->d);
  }
  body.mj->opt.timestep = h;
  note_state(x, r, STEPS);
  r->total += r->cost[STEPS];
}

static void open_reference(const Fixture *x, Reference *r) {
  SnError err = {0};
  r->d = mj_makeData(body.mj);
  r->runner = sn_rollout_runner_create(x->m, x->cost, &err);
  if (!r->d || !r->runner) fail_msg("out of memory");
}

static void free_reference(Reference *r) {
  mj_deleteData(r->d);
  sn_rollout_runner_free(r->runner);
}

static double worst_of(const sn_real *ours, const double *ref, int n) {
  double worst = 0;
  for (int i = 0; i < n; ++i) worst = sn_larger(worst, fabs((double)ours[i] - ref[i]));
  return worst;
}

static void rollout_against_mujoco(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  Fixture x;
  Reference r;
  const SnClock clock = sn_clock_monotonic();
  static sn_real time[STEPS + 1], qpos[(STEPS + 1) * NV], qvel[(STEPS + 1) * NV], act[(STEPS + 1) * NA],
      cost[STEPS + 1];
  const SnTrajectory out = {.time = time, .qpos = qpos, .qvel = qvel, .act = act, .cost = cost};
  make_fixture(&x, 1);
  open_reference(&x, &r);
  run_mujoco(&x, &r);
  sn_rollout_runner_begin(r.runner, &x.state, x.ctrl, x.target, STEPS, 1e3, &out);
  assert_int_equal(sn_rollout_runner_run(r.runner, &clock, INFINITY), SN_ROLLOUT_DONE);
  double worst = sn_larger(worst_of(time, r.time, STEPS + 1), worst_of(qpos, r.qpos[0], (STEPS + 1) * NV));
  worst = sn_larger(worst, worst_of(qvel, r.qvel[0], (STEPS + 1) * NV) / 10);
  worst = sn_larger(worst, worst_of(act, r.act[0], (STEPS + 1) * NA));
  worst = sn_larger(worst, worst_of(cost, r.cost, STEPS + 1));
  print_message("largest difference of states and costs %.2g\n", worst);
  assert_true(worst < 1e-9);
  assert_true(fabs(time[STEPS] - (x.state.time + BASE * 0.01)) < 1e-12);
  assert_true(fabs(sn_rollout_runner_cost(r.runner, NULL) - r.total) < 1e-9 * r.total);
  free_reference(&r);
  free_fixture(&x);
}

// The gradient of the fixture's rollout, on `threads`.
static double compute(int threads, SnGradientMethod method, SnGradient *g) {
  Fixture x;
  SnError err = {0};
  const SnClock clock = sn_clock_monotonic();
  make_fixture(&x, threads);
  assert_int_equal(sn_backend_reserve_gradients(x.backend, x.model, 1, &err), SN_OK);
  g->state = x.state;
  g->ctrl = x.ctrl;
  g->target = x.target;
  g->nstep = STEPS;
  g->max_velocity = 1e3;
  g->status = SN_GRADIENT_PENDING;
  SnGradientBatch batch = {.settings = {.method = method}, .item = g, .count = 1};
  assert_true(sn_backend_gradients(x.backend, x.model, &batch, &clock, INFINITY));
  assert_int_equal(g->status, SN_GRADIENT_DONE);
  free_fixture(&x);
  return g->cost;
}

static void gradient_against_differences_of_mujoco(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  Fixture x;
  Reference r;
  sn_real bar[STEPS * NU], qvel_bar[NV];
  SnGradient g = {.ctrl_bar = bar, .qvel_bar = qvel_bar};
  const double cost = compute(1, SN_GRADIENT_SWEEP, &g), step = 1e-6;
  make_fixture(&x, 1);
  open_reference(&x, &r);
  run_mujoco(&x, &r);
  assert_true(fabs(cost - r.total) < 1e-9 * cost);
  double worst = 0, scale = 0;
  for (int i = 0; i < STEPS * NU + NV; ++i) {
    sn_real *at = i < STEPS * NU ? &x.ctrl[i] : &x.qvel[i - STEPS * NU];
    const double ours = i < STEPS * NU ? bar[i] : qvel_bar[i - STEPS * NU], kept = *at;
    *at = kept + step;
    run_mujoco(&x, &r);
    const double up = r.total;
    *at = kept - step;
    run_mujoco(&x, &r);
    *at = kept;
    worst = sn_larger(worst, fabs((up - r.total) / (2 * step) - ours));
    scale = sn_larger(scale, fabs(ours));
  }
  print_message("largest error %.2g of %.2g\n", worst, scale);
  assert_true(worst < 1e-6 * scale);
  free_reference(&r);
  free_fixture(&x);
}

static void methods_and_threads(void **state) {
  (void)state;
  sn_real bar[2][STEPS * NU], target[2][(STEPS + 1) * TARGETS];
  SnGradient one = {.ctrl_bar = bar[0], .target_bar = target[0]}, more = {.ctrl_bar = bar[1], .target_bar = target[1]};
  memset(target, 0, sizeof target);
  const double cost = compute(1, SN_GRADIENT_SWEEP, &one);
  for (int threads = 2; threads <= 3; ++threads) {
    assert_true(compute(threads, SN_GRADIENT_SWEEP, &more) == cost);
    assert_memory_equal(bar[0], bar[1], sizeof bar[0]);
    assert_memory_equal(target[0], target[1], sizeof target[0]);
  }
  compute(1, SN_GRADIENT_PRODUCTS, &more);
  for (int i = 0; i < STEPS * NU; ++i)
    assert_true(fabs((double)(bar[0][i] - bar[1][i])) < (sizeof(sn_real) == 4 ? 1e-3 : 1e-10) * one.norm);
}

// A rollout that pauses at every step goes on with the right durations.
static void pauses(void **state) {
  (void)state;
  Fixture x;
  SnError err = {0};
  make_fixture(&x, 1);
  double cost[2];
  for (int k = 0; k < 2; ++k) {
    CountingClock count = {0};
    const SnClock clock = counting_clock(&count);
    unsigned char done = 0;
    const SnBatch batch = {.state = &x.state,
                           .nstate = 1,
                           .ctrl = x.ctrl,
                           .nctrl = 1,
                           .target = x.target,
                           .ntable = 1,
                           .nstep = STEPS,
                           .count = 1,
                           .max_velocity = 1e3,
                           .cost = &cost[k],
                           .done = &done};
    assert_int_equal(sn_backend_reserve_rollouts(x.backend, x.model, 1, &err), SN_OK);
    while (!sn_backend_rollouts(x.backend, x.model, &batch, &clock,
                                k ? (double)atomic_load(&count.reads) + 3 : (double)INFINITY))
      continue;
  }
  assert_true(cost[0] == cost[1] && cost[0] == compute(1, SN_GRADIENT_SWEEP, &(SnGradient){.ctrl_bar = x.ctrl}));
  free_fixture(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rollout_against_mujoco),
                                     cmocka_unit_test(gradient_against_differences_of_mujoco),
                                     cmocka_unit_test(methods_and_threads), cmocka_unit_test(pauses)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
