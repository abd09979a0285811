// What bounds multistarts on a device: deadlines, sessions that come and grow.
#include "tests/cuda/host/multistart_fixture.h"

// ---- deadlines ----

// A clock on which an iteration takes `step` seconds, whatever else is asked for.
typedef struct StepClock {
  double now, step;
} StepClock;

static double step_now(void *context) { return ((StepClock *)context)->now; }

static StepClock *stepped;
static void step_launch(SnDevice *d, SnDeviceStream *s, SnKernel kernel, const SnLaunchShape *shape,
                        const SnWork *work) {
  if (kernel == SN_KERNEL_ITERATE) stepped->now += stepped->step;
  count.launch(d, s, kernel, shape, work);
}

// Returns a device whose iterations take `time->step`. Close it by close_timed.
static SnBackend *open_timed(StepClock *time) {
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  start_counting(dev);
  stepped = time;
  device_host_of(dev)->device->launch = step_launch;
  return dev;
}

static void close_timed(SnBackend *dev) {
  stop_counting(dev);
  sn_backend_free(dev);
}

static SnPlan plan_until(SnPlanner *p, double time, double deadline) {
  SnPlanRequest r = request_of(p, time);
  r.deadline = deadline;
  return plan_of(p, &r);
}

// Fails the test unless that number of iterations gives the plan on the CPU, too.
static void expect_repeats(SnPlanner *cpu, const SnPlan *plan) {
  SnPlanRequest r = request_of(cpu, 0);
  r.max_iterations = plan->iterations;
  const SnPlan want = plan_of(cpu, &r);
  expect_equal(&want, plan);
}

static void deadlines(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  StepClock time = {0, 1};
  const SnClock clock = {step_now, &time};
  SnBackend *dev = open_timed(&time);
  SnSettings s = settings_of(&x, 16, 0);
  s.adam_starts = 2;
  SnPlanner *p = planner(&x, dev, &s, 1, &clock), *cpu = planner(&x, x.cpu, &s, 1, NULL);
  // The first iteration is tried whatever it takes; from then on it is known.
  SnPlan plan = plan_until(p, 0, 0.5);
  assert_int_equal(plan.iterations, 1);
  assert_false(plan.deadline_met);
  expect_repeats(cpu, &plan);
  for (int n = 1; n < 6; ++n) {
    const double from = time.now;
    plan = plan_until(p, 0, from + n + 0.5);
    assert_int_equal(plan.iterations, n);
    assert_true(plan.deadline_met);
    assert_true(time.now == from + n);
    expect_repeats(cpu, &plan);
  }
  // No time: nothing is begun.
  plan = plan_until(p, 0, time.now);
  assert_int_equal(plan.iterations, 0);
  assert_int_equal(plan.status, SN_PLAN_WARM_START);
  // An iteration that took long once does not stop plans for ever.
  time.step = 100;
  plan = plan_until(p, 0, time.now + 10);
  assert_int_equal(plan.iterations, 10 / 100 + 1);
  time.step = 1;
  int plans = 0;
  do plan = plan_until(p, 0, time.now + 10);
  while (plan.iterations == 0 && ++plans < 100);
  assert_true(plans > 5 && plans < 40);
  assert_int_equal(plan.iterations, 10);
  sn_planner_free(p);
  sn_planner_free(cpu);
  close_timed(dev);
  scene_close(&x);
}

// Another number of starts is expected to take what the latest took.
static void deadline_of_another_number(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  StepClock time = {0, 1};
  const SnClock clock = {step_now, &time};
  SnBackend *dev = open_timed(&time);
  SnSettings s = settings_of(&x, 16, 0);
  s.adam_starts = 3;
  SnPlanner *p = planner(&x, dev, &s, 1, &clock);
  for (int starts = 3; starts > 0; --starts)
    for (int enough = starts == 3; enough < 2; ++enough) {  // what the first takes is not known
      SnPlanRequest r = request_of(p, 0);
      r.max_iterations = 1;
      r.max_candidates = starts;
      r.deadline = time.now + (enough ? 1.5 : 0.5);
      assert_int_equal(plan_of(p, &r).iterations, enough);
    }
  sn_planner_free(p);
  close_timed(dev);
  scene_close(&x);
}

// A plan of another model is taken along where it gains by that, not where it would be late.
static void deadline_of_another(void **state) {
  (void)state;
  Scene x, y;
  assert_true(scene_open(&x, "arm_reach") && scene_open(&y, "billiard"));
  StepClock time = {0, 1};
  const SnClock clock = {step_now, &time};
  SnBackend *dev = open_timed(&time);
  const SnSettings s = settings_of(&x, 16, 0), t = settings_of(&y, 16, 0);
  SnPlanner *p = planner(&x, dev, &s, 1, &clock), *q = planner(&y, dev, &t, 1, &clock);
  plan_until(p, 0, time.now + 2.5);
  plan_until(q, 0, time.now + 2.5);
  for (int enough = 0; enough < 2; ++enough) {
    SnPlan plan;
    SnPlanRequest r = request_of(q, 0);
    r.deadline = time.now + (enough ? 2.5 : 0.5);
    begin_plan(q, &r);
    sn_planner_submit(q);
    const double from = time.now;
    plan_until(p, 0, from + 1.5);
    assert_true(time.now == from + 1 + enough);  // an iteration each
    sn_planner_finish(q, &plan);
    assert_int_equal(plan.iterations, enough);
  }
  sn_planner_free(p);
  sn_planner_free(q);
  close_timed(dev);
  scene_close(&x);
  scene_close(&y);
}

// ---- memory ----

// Sessions come, grow and go while others stay; at the end all is given back. What does not fit is refused, and the
// planner goes on as it was.
static void rooms(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 16, 3);
  SnPlanner *q = planner(&x, x.cpu, &s, 1, NULL), *p = planner(&x, dev, &s, 1, NULL);
  for (int k = 0; k < 6; ++k) {
    s.adam_starts = 1 + k;
    SnPlanner *other = planner(&x, dev, &s, 5, NULL);
    begin_at(p, 0.02 * k);
    begin_at(other, 0);
    sn_planner_submit(p);
    sn_planner_submit(other);
    if (k % 2) {
      finish_plan(other);
      sn_planner_free(other);
    }
    const SnPlan want = plan_at(q, 0.02 * k), got = finish_plan(p);
    expect_equal(&want, &got);
    if (k % 2 == 0) sn_planner_free(other);
    s.adam_starts = 2 + k;
    assert_int_equal(sn_planner_configure(p, &s, NULL), SN_OK);
    assert_int_equal(sn_planner_configure(q, &s, NULL), SN_OK);
  }
  sn_planner_free(p);
  assert_int_equal(memory_used(dev), 0);
  sn_planner_free(q);
  sn_backend_free(dev);
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(deadlines),
      cmocka_unit_test(deadline_of_another),
      cmocka_unit_test(deadline_of_another_number),
      cmocka_unit_test(rooms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
