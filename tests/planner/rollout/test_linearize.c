// Jacobians of steps and models of the cost along a rollout: chained, their slopes are the gradient of the cost; any
// threads and pauses give the same bits; rollouts that the caller has made serve as well.
#include <stdio.h>

#include "planner/backend/backend.h"
#include "planner/rollout/gradient.h"
#include "tests/planner/counting_clock.h"
#include "tests/planner/sensing_body.h"
#include "tests/support/tolerance.h"

enum { STEPS = SENSING_STEPS, ROWS = STEPS + 1, NQ = SENSING_NQ, NV = SENSING_NV, NA = SENSING_NA, NU = SENSING_NU };
enum { N = 2 * NV + NA, ITEMS = 2 };

typedef struct Jacobians {
  sn_real A[ITEMS * STEPS * N * N], B[ITEMS * STEPS * N * NU];
  sn_real lx[ITEMS * ROWS * N], lxx[ITEMS * ROWS * N * N];
  sn_real before_lu[ITEMS * STEPS * NU], before_luu[ITEMS * STEPS * NU];
  sn_real lu[ITEMS * STEPS * NU], lux[ITEMS * STEPS * NU * N], luu[ITEMS * STEPS * NU * NU];
} Jacobians;

typedef struct Fixture {
  SensingBody *body;
  SnPool *pool;
  SnGradientWork *work;
  SensingInput input[ITEMS];
  SnGradient item[ITEMS];
  sn_real ctrl_bar[ITEMS][STEPS * NU], qpos_bar[ITEMS][NV], qvel_bar[ITEMS][NV], act_bar[ITEMS][NA];
  Jacobians j;
} Fixture;

// A task with a term on rates of controls in place of that on controls.
static void look_at_rates(SensingBody *b) {
  SnError err = {0};
  char text[2000];
  const char *at = strstr(sensing_task, "{control: all}");
  snprintf(text, sizeof text, "%.*s{control_rate: all}%s", (int)(at - sensing_task), sensing_task,
           at + strlen("{control: all}"));
  sn_cost_free(b->cost);
  sn_task_free(b->task);
  b->task = sn_task_parse(text, strlen(text), "sensing.yaml", &err);
  if (!b->task) fail_msg("%s", err.text);
  b->cost = sn_cost_create(b->task, b->m, &err);
  if (!b->cost) fail_msg("%s", err.text);
}

static Fixture *open_fixture(int threads) {
  SnError err = {0};
  Fixture *x = calloc(1, sizeof *x);
  x->body = sensing_open();
  look_at_rates(x->body);
  x->pool = sn_pool_create(threads, &err);
  x->work = sn_gradient_create(x->body->m, x->body->cost, STEPS, ITEMS, SN_GRADIENT_KEEP, x->pool, &err);
  if (!x->work) fail_msg("%s", err.text);
  for (int k = 0; k < ITEMS; ++k) {
    SnState state = sensing_input(x->body, &x->input[k], k);
    if (k == 0) state.before = x->input[1].ctrl;  // not known of the others
    x->item[k] = (SnGradient){.state = state,
                              .ctrl = x->input[k].ctrl,
                              .target = x->input[k].target,
                              .nstep = STEPS,
                              .max_velocity = 1e3,
                              .ctrl_bar = x->ctrl_bar[k],
                              .qpos_bar = x->qpos_bar[k],
                              .qvel_bar = x->qvel_bar[k],
                              .act_bar = x->act_bar[k]};
  }
  return x;
}

static void close_fixture(Fixture *x) {
  sn_gradient_free(x->work);
  sn_pool_free(x->pool);
  sensing_close(x->body);
  free(x);
}

static void run(Fixture *x, bool forward) {
  SnGradientBatch batch = {
      .settings = sn_default_gradient_settings(), .item = x->item, .count = ITEMS, .forward = forward};
  CountingClock counting = {0};
  const SnClock clock = counting_clock(&counting);
  assert_true(sn_gradient_run(x->work, &batch, &clock, (double)INFINITY));
}

// All Jacobians of the rollouts that were made, `slice` readings of the clock at a time (0: at once).
static int linearize(Fixture *x, int slice) {
  Jacobians *j = &x->j;
  const SnExpansion cost = {j->lx, j->lxx, j->lu, j->lux, j->luu, j->before_lu, j->before_luu};
  SnGradientStatus status[ITEMS];
  const SnLinearization l = {.count = ITEMS, .nstep = STEPS, .A = j->A, .B = j->B, .cost = &cost, .status = status};
  CountingClock counting = {0};
  const SnClock clock = counting_clock(&counting);
  double until = slice > 0 ? slice : (double)INFINITY;
  int slices = 1;
  for (; !sn_gradient_linearize(x->work, &l, &clock, until); until += slice) ++slices;
  for (int k = 0; k < ITEMS; ++k) assert_int_equal(status[k], SN_GRADIENT_DONE);
  return slices;
}

static void assert_near(double a, double b, double size, const char *what, int k, int t) {
  if (!(fabs(a - b) <= SN_TOL(1e-9, 1e-3) * size)) fail_msg("%s of rollout %d, step %d: %g, not %g", what, k, t, a, b);
}

static double largest(const sn_real *x, int n) {
  double most = 0;
  for (int i = 0; i < n; ++i) most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
  return most;
}

// p_H = lx_H, p_t = lx_t + A'p; the gradient with respect to the controls is lu + B'p, to the state p_0.
static void check_chain(Fixture *x, int k) {
  const Jacobians *j = &x->j;
  double p[N], before[N];
  const double size = largest(x->ctrl_bar[k], STEPS * NU), most = largest(x->qpos_bar[k], NV);
  for (int i = 0; i < N; ++i) p[i] = (double)j->lx[(k * ROWS + STEPS) * N + i];
  for (int t = STEPS - 1; t >= 0; --t) {
    const sn_real *A = j->A + (k * STEPS + t) * N * N, *B = j->B + (k * STEPS + t) * N * NU;
    for (int i = 0; i < NU; ++i) {
      double sum = (double)j->lu[(k * STEPS + t) * NU + i];
      for (int r = 0; r < N; ++r) sum += (double)B[r * NU + i] * p[r];
      assert_near(sum, (double)x->ctrl_bar[k][t * NU + i], size, "slope of a control", k, t);
    }
    for (int i = 0; i < N; ++i) {
      before[i] = (double)j->lx[(k * ROWS + t) * N + i];
      for (int r = 0; r < N; ++r) before[i] += (double)A[r * N + i] * p[r];
    }
    memcpy(p, before, sizeof p);
  }
  for (int i = 0; i < NV; ++i) assert_near(p[i], (double)x->qpos_bar[k][i], most, "slope of a position", k, i);
  for (int i = 0; i < NV; ++i) assert_near(p[NV + i], (double)x->qvel_bar[k][i], most, "slope of a velocity", k, i);
  for (int i = 0; i < NA; ++i) assert_near(p[2 * NV + i], (double)x->act_bar[k][i], most, "slope of an act", k, i);
}

static void chain(void **state) {
  (void)state;
  Fixture *x = open_fixture(1);
  run(x, false);
  for (int k = 0; k < ITEMS; ++k) {
    assert_int_equal(x->item[k].status, SN_GRADIENT_DONE);
    x->item[k].status = SN_GRADIENT_PENDING;
  }
  run(x, true);
  linearize(x, 0);
  for (int k = 0; k < ITEMS; ++k) check_chain(x, k);
  close_fixture(x);
}

static void pauses_and_threads(void **state) {
  (void)state;
  Fixture *x = open_fixture(1);
  run(x, true);
  linearize(x, 0);
  Jacobians *once = malloc(sizeof *once);
  *once = x->j;
  close_fixture(x);
  for (int threads = 1; threads <= 3; ++threads) {
    x = open_fixture(threads);
    run(x, true);
    assert_true(linearize(x, 5) > 1);
    assert_memory_equal(once, &x->j, sizeof *once);
    // left alone half way, and begun anew
    SnGradientStatus status[ITEMS];
    const SnLinearization other = {.count = ITEMS, .nstep = STEPS, .A = x->j.A, .status = status};
    CountingClock counting = {0};
    const SnClock clock = counting_clock(&counting);
    assert_false(sn_gradient_linearize(x->work, &other, &clock, 3));
    sn_gradient_abandon(x->work);
    memset(&x->j, 0, sizeof x->j);
    linearize(x, 0);
    assert_memory_equal(once, &x->j, sizeof *once);
    close_fixture(x);
  }
  free(once);
}

// Rollouts of the caller's give the same.
static void rolled(void **state) {
  (void)state;
  Fixture *x = open_fixture(1);
  run(x, true);
  linearize(x, 0);
  Jacobians *own = malloc(sizeof *own);
  *own = x->j;
  SnRollout made[ITEMS];
  SnRolloutRunner *runner[ITEMS];
  static sn_real time[ITEMS][ROWS], qpos[ITEMS][ROWS * NQ], qvel[ITEMS][ROWS * NV], act[ITEMS][ROWS * NA],
      qacc[ITEMS][ROWS * NV];
  const SnClock clock = sn_clock_monotonic();
  for (int k = 0; k < ITEMS; ++k) {
    const SnTrajectory out = {.time = time[k], .qpos = qpos[k], .qvel = qvel[k], .act = act[k], .qacc = qacc[k]};
    runner[k] = sn_rollout_runner_create(x->body->m, x->body->cost, NULL);
    sn_rollout_runner_begin(runner[k], &x->item[k].state, x->item[k].ctrl, x->item[k].target, STEPS, 1e3, &out);
    assert_int_equal(sn_rollout_runner_run(runner[k], &clock, (double)INFINITY), SN_ROLLOUT_DONE);
    made[k] = *sn_rollout_runner_rollout(runner[k]);
    x->item[k].rolled = &made[k];
    x->item[k].status = SN_GRADIENT_PENDING;
  }
  memset(&x->j, 0, sizeof x->j);
  run(x, true);
  linearize(x, 0);
  assert_memory_equal(own, &x->j, sizeof *own);
  for (int k = 0; k < ITEMS; ++k) sn_rollout_runner_free(runner[k]);
  free(own);
  close_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chain), cmocka_unit_test(pauses_and_threads),
                                     cmocka_unit_test(rolled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
