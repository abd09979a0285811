// Multistarts on a device, the host in its place, through planners, beside what holds of all jobs (test_jobs.c): bit
// for bit those of the CPU's backend in double precision, with other sessions, while jobs come and go.
#include "tests/cuda/host/multistart_fixture.h"

enum { MOST = 8 };

// Without a deadline nobody waits between two iterations of a plan: one copy in.
static void copies(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 20, 9);
  s.adam_starts = 2;
  SnPlanner *p = planner(&x, dev, &s, 3, NULL);
  plan_at(p, 0);
  start_counting(dev);
  for (int k = 0; k < 5; ++k) plan_at(p, 0.01 * k);
  assert_int_equal(count.iterations, 5 * 9);
  assert_int_equal(count.copies_in, 5);
  stop_counting(dev);
  sn_planner_free(p);
  sn_backend_free(dev);
  scene_close(&x);
}

// A gradient of the same session between the slices of a plan.
static void evaluated_between(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 16, 5);
  SnPlanner *p[2] = {planner(&x, x.cpu, &s, 3, NULL), planner(&x, dev, &s, 3, NULL)};
  const int nu = x.m->nu;
  sn_real *ctrl = calloc((size_t)(9 * nu), sizeof *ctrl);
  double cost[2], norm[2];
  SnPlan plan[2];
  for (int i = 0; i < 9 * nu; ++i) ctrl[i] = SN_R(0.01) * (sn_real)(i % 17);
  for (int k = 0; k < 2; ++k) {
    const SnState *from = sn_planner_initial(p[k]);
    const SnEvaluateRequest r = {
        .qpos = from->qpos, .qvel = from->qvel, .act = from->act, .nstep = 9, .ctrl = ctrl, .gradient = true};
    SnEvaluation e;
    begin_at(p[k], 0);
    for (int i = 0; i < 3; ++i) sn_planner_slice(p[k], k == 0 ? INFINITY : -1);
    assert_int_equal(sn_planner_evaluate(p[k], &r, INFINITY, &e, NULL), SN_OK);
    cost[k] = e.cost;
    norm[k] = e.gradient->norm;
    plan[k] = finish_plan(p[k]);
  }
  expect_equal(&plan[0], &plan[1]);
  assert_true(cost[0] == cost[1] && norm[0] == norm[1] && norm[0] > 0);
  free(ctrl);
  sn_planner_free(p[0]);
  sn_planner_free(p[1]);
  sn_backend_free(dev);
  scene_close(&x);
}

// Sessions with their own seeds, weights, numbers of starts and iterations share launches; each plan is that which its
// session makes alone.
static void check_batched(const Scene *x, int n) {
  SnBackend *dev = open_library("emulator_double", 0, NULL), *alone = open_library("emulator_double", 0, NULL);
  SnPlanner *p[MOST], *q[MOST];
  for (int k = 0; k < n; ++k) {
    SnSettings s = settings_of(x, 12 + 3 * (k % 3), 3 + k % 4);
    s.adam_starts = 1 + k % 3;
    if (k % 4 == 3) s.gradient = SN_GRADIENT_PRODUCTS;
    p[k] = planner(x, dev, &s, (uint64_t)(k + 1), NULL);
    q[k] = planner(x, alone, &s, (uint64_t)(k + 1), NULL);
    assert_int_equal(sn_planner_set_weight(p[k], "effort", 0.01 * k, 0, NULL), SN_OK);
    assert_int_equal(sn_planner_set_weight(q[k], "effort", 0.01 * k, 0, NULL), SN_OK);
  }
  for (int round = 0; round < 2; ++round) {
    SnPlan want[MOST];
    for (int k = 0; k < n; ++k) want[k] = plan_at(q[k], 0.02 * round);
    start_counting(dev);
    for (int k = 0; k < n; ++k) begin_at(p[k], 0.02 * round);
    for (int k = 0; k < n; ++k) sn_planner_submit(p[k]);
    for (int k = 0; k < n; ++k) {
      const SnPlan got = finish_plan(p[k]);
      expect_equal(&want[k], &got);
    }
    // As many as the longest plan has iterations, not as all of them together.
    assert_int_equal(count.iterations, n > 3 ? 6 : 2 + n);
    stop_counting(dev);
  }
  for (int k = 0; k < n; ++k) {
    sn_planner_free(p[k]);
    sn_planner_free(q[k]);
  }
  sn_backend_free(dev);
  sn_backend_free(alone);
}

static void batched(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  check_batched(&x, 2);
  check_batched(&x, 8);
  scene_close(&x);
}

// A short plan of many starts beside a long one of one: what the launch needs for each follows the longest. Whichever
// is opened first; in the last two both have fewer states than the device runs at once.
static void uneven(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  for (int order = 0; order < 4; ++order) {
    SnBackend *dev = open_library("emulator_double", 0, NULL);
    SnPlanner *p[2], *q[2];
    for (int i = 0; i < 2; ++i) {
      const int k = order % 2 ? 1 - i : i, *step = order < 2 ? (const int[]){7, 150} : (const int[]){2, 20};
      SnSettings s = settings_of(&x, step[k], 2);
      s.adam_starts = order > 1 ? 3 : k ? 1 : 16;
      s.gradient = SN_GRADIENT_PRODUCTS;
      p[k] = planner(&x, dev, &s, 2, NULL);
      q[k] = planner(&x, x.cpu, &s, 2, NULL);
    }
    for (int k = 0; k < 2; ++k) begin_at(p[k], 0);
    sn_planner_submit(p[1]);
    for (int k = 0; k < 2; ++k) {
      const SnPlan want = plan_at(q[k], 0), got = finish_plan(p[k]);
      expect_equal(&want, &got);
      sn_planner_free(q[k]);
    }
    for (int k = 0; k < 2; ++k) sn_planner_free(p[k]);
    sn_backend_free(dev);
  }
  scene_close(&x);
}

// Jobs that come and go while another goes on, one iteration a slice.
static void come_and_go(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 16, 8);
  SnPlanner *p[3], *q[3];
  for (int k = 0; k < 3; ++k) {
    p[k] = planner(&x, dev, &s, (uint64_t)(k + 1), NULL);
    q[k] = planner(&x, x.cpu, &s, (uint64_t)(k + 1), NULL);
    begin_at(p[k], 0);
  }
  sn_planner_slice(p[0], -1);
  sn_planner_submit(p[1]);
  sn_planner_slice(p[0], -1);
  sn_planner_submit(p[2]);
  sn_planner_slice(p[1], -1);
  SnPlan dropped;
  sn_planner_finish(p[2], &dropped);  // what the others' launches did for it counts
  assert_true(dropped.iterations >= 1 && dropped.iterations < 8);
  for (int k = 0; k < 2; ++k) {
    const SnPlan want = plan_at(q[k], 0), got = finish_plan(p[k]);
    expect_equal(&want, &got);
  }
  SnPlanRequest r = request_of(q[2], 0);
  r.max_iterations = dropped.iterations;
  const SnPlan want = plan_of(q[2], &r);
  expect_equal(&want, &dropped);
  for (int k = 0; k < 3; ++k) {
    sn_planner_free(p[k]);
    sn_planner_free(q[k]);
  }
  sn_backend_free(dev);
  scene_close(&x);
}

// Two models: each in its own stream, one iteration of the other for each of ours.
static void two_models(void **state) {
  (void)state;
  Scene x[2];
  for (int k = 0; k < 2; ++k) assert_true(scene_open(&x[k], "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnPlanner *p[2], *q[2];
  x[1].task->options.timestep = 2 * (double)x[0].m->opt.timestep;
  x[1].task->options.has_timestep = true;
  for (int k = 0; k < 2; ++k) {
    SnSettings s = settings_of(&x[k], 16, 4);
    p[k] = planner(&x[k], dev, &s, 1, NULL);
    q[k] = planner(&x[k], x[k].cpu, &s, 1, NULL);
    begin_at(p[k], 0);
  }
  start_counting(dev);
  sn_planner_submit(p[1]);
  for (int k = 0; k < 2; ++k) {
    const SnPlan want = plan_at(q[k], 0), got = finish_plan(p[k]);
    expect_equal(&want, &got);
  }
  assert_int_equal(count.iterations, 8);
  int first = 0;
  for (int i = 0; i < 8; ++i) first += count.stream[i] == count.stream[0];
  assert_int_equal(first, 4);
  assert_ptr_not_equal(count.stream[0], count.stream[1]);
  stop_counting(dev);
  for (int k = 0; k < 2; ++k) {
    sn_planner_free(p[k]);
    sn_planner_free(q[k]);
  }
  sn_backend_free(dev);
  for (int k = 0; k < 2; ++k) scene_close(&x[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies), cmocka_unit_test(evaluated_between), cmocka_unit_test(batched),
      cmocka_unit_test(uneven), cmocka_unit_test(come_and_go),       cmocka_unit_test(two_models),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
