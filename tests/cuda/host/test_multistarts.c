// Multistarts on a device, the host in its place, through planners, beside what holds of all jobs (test_jobs.c): bit
// for bit those of the CPU's backend in double precision, in as many launches as the longest of them needs.
#include "tests/cuda/host/multistart_fixture.h"

enum { MOST = 8 };

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
    // As many as the longest plan has iterations, not as all of them together. Nobody waits between two of a plan.
    assert_int_equal(count.iterations, n > 3 ? 6 : 2 + n);
    if (n == 1) assert_int_equal(count.copies_in, 1);
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
  check_batched(&x, 1);
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
      cmocka_unit_test(batched),
      cmocka_unit_test(uneven),
      cmocka_unit_test(two_models),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
