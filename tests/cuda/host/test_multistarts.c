// Multistarts on a device, the host in its place, through planners, beside what holds of all jobs (test_job*.c): bit
// for bit those of the CPU's backend in double precision, in as many launches as the longest of
// them needs; deadlines; sessions that come and grow.
#include "tests/cuda/host/multistart_fixture.h"

enum { MOST = 8 };

// Sessions with their own seeds, weights, numbers of starts and iterations share launches; each plan is that which its
// session makes alone.
static void check_batched(const Scene *x, int n) {
  SnBackend *dev = open_library("emulator_double", 0, NULL), *alone = open_library("emulator_double", 0, NULL);
  Pair p[MOST];
  for (int k = 0; k < n; ++k) {
    SnSettings s = settings_of(x, 12 + 3 * (k % 3), 3 + k % 4);
    s.adam_starts = 1 + k % 3;
    if (k % 4 == 3) s.gradient = SN_GRADIENT_PRODUCTS;
    p[k] = pair_make(x, dev, alone, &s, (uint64_t)(k + 1));
    assert_int_equal(sn_planner_set_weight(p[k].dev, "effort", 0.01 * k, 0, NULL), SN_OK);
    assert_int_equal(sn_planner_set_weight(p[k].ref, "effort", 0.01 * k, 0, NULL), SN_OK);
  }
  start_counting(dev);
  for (int round = 0; round < 2; ++round) {
    count.iterations = count.copies_in = 0;
    for (int k = 0; k < n; ++k) begin_at(p[k].dev, 0.02 * round);
    for (int k = 0; k < n; ++k) sn_planner_submit(p[k].dev);
    for (int k = 0; k < n; ++k) pair_finish_at(&p[k], 0.02 * round);
    // As many as the longest plan has iterations, not as all of them together. Nobody waits between two of a plan.
    assert_int_equal(count.iterations, n > 3 ? 6 : 2 + n);
    if (n == 1) assert_int_equal(count.copies_in, 1);
  }
  for (int k = 0; k < n; ++k) pair_free(&p[k]);
  sn_backend_free(dev);
  sn_backend_free(alone);
}

static void batched(void **state) {
  const Scene *x = *state;
  check_batched(x, 1);
  check_batched(x, 2);
  check_batched(x, 8);
}

// A short plan of many starts beside a long one of one: what the launch needs for each follows the longest. Whichever
// is opened first; in the last two both have fewer states than the device runs at once.
static void uneven(void **state) {
  const Scene *x = *state;
  for (int order = 0; order < 4; ++order) {
    SnBackend *dev = open_library("emulator_double", 0, NULL);
    Pair p[2];
    for (int i = 0; i < 2; ++i) {
      const int k = order % 2 ? 1 - i : i, *step = order < 2 ? (const int[]){7, 150} : (const int[]){2, 20};
      SnSettings s = settings_of(x, step[k], 2);
      s.adam_starts = order > 1 ? 3 : k ? 1 : 16;
      s.gradient = SN_GRADIENT_PRODUCTS;
      p[k] = pair_make(x, dev, x->cpu, &s, 2);
    }
    for (int k = 0; k < 2; ++k) begin_at(p[k].dev, 0);
    sn_planner_submit(p[1].dev);
    for (int k = 0; k < 2; ++k) pair_finish_at(&p[k], 0);
    for (int k = 0; k < 2; ++k) pair_free(&p[k]);
    sn_backend_free(dev);
  }
}

// Two models: each in its own stream, one iteration of the other for each of ours.
static void two_models(void **state) {
  (void)state;
  Scene x[2];
  for (int k = 0; k < 2; ++k) assert_true(scene_open(&x[k], "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  Pair p[2];
  x[1].task->options.timestep = 2 * (double)x[0].m->opt.timestep;
  x[1].task->options.has_timestep = true;
  for (int k = 0; k < 2; ++k) {
    SnSettings s = settings_of(&x[k], 16, 4);
    p[k] = pair_make(&x[k], dev, x[k].cpu, &s, 1);
    begin_at(p[k].dev, 0);
  }
  start_counting(dev);
  sn_planner_submit(p[1].dev);
  for (int k = 0; k < 2; ++k) pair_finish_at(&p[k], 0);
  assert_int_equal(count.iterations, 8);
  int first = 0;
  for (int i = 0; i < 8; ++i) first += count.stream[i] == count.stream[0];
  assert_int_equal(first, 4);
  assert_ptr_not_equal(count.stream[0], count.stream[1]);
  for (int k = 0; k < 2; ++k) pair_free(&p[k]);
  sn_backend_free(dev);
  for (int k = 0; k < 2; ++k) scene_close(&x[k]);
}

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

// Returns a device whose iterations take `time->step`.
static SnBackend *open_timed(StepClock *time) {
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  start_counting(dev);
  stepped = time;
  device_behind(dev)->launch = step_launch;
  return dev;
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
  const Scene *x = *state;
  StepClock time = {0, 1};
  const SnClock clock = {step_now, &time};
  SnBackend *dev = open_timed(&time);
  SnSettings s = settings_of(x, 16, 0);
  s.adam_starts = 2;
  SnPlanner *p = planner(x, dev, &s, 1, &clock), *cpu = planner(x, x->cpu, &s, 1, NULL);
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
  sn_backend_free(dev);
}

// Another number of starts is expected to take what the latest took.
static void deadline_of_another_number(void **state) {
  const Scene *x = *state;
  StepClock time = {0, 1};
  const SnClock clock = {step_now, &time};
  SnBackend *dev = open_timed(&time);
  SnSettings s = settings_of(x, 16, 0);
  s.adam_starts = 3;
  SnPlanner *p = planner(x, dev, &s, 1, &clock);
  for (int starts = 3; starts > 0; --starts)
    for (int enough = starts == 3; enough < 2; ++enough) {  // what the first takes is not known
      SnPlanRequest r = request_of(p, 0);
      r.max_iterations = 1;
      r.max_candidates = starts;
      r.deadline = time.now + (enough ? 1.5 : 0.5);
      assert_int_equal(plan_of(p, &r).iterations, enough);
    }
  sn_planner_free(p);
  sn_backend_free(dev);
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
  sn_backend_free(dev);
  scene_close(&x);
  scene_close(&y);
}

// ---- memory ----

// Sessions come, grow and go while others stay; at the end all is given back. What does not fit is refused, and the
// planner goes on as it was.
static void rooms(void **state) {
  const Scene *x = *state;
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(x, 16, 3);
  Pair p = pair_make(x, dev, x->cpu, &s, 1);
  for (int k = 0; k < 6; ++k) {
    s.adam_starts = 1 + k;
    SnPlanner *other = planner(x, dev, &s, 5, NULL);
    begin_at(p.dev, 0.02 * k);
    begin_at(other, 0);
    sn_planner_submit(p.dev);
    sn_planner_submit(other);
    if (k % 2) {
      finish_plan(other);
      sn_planner_free(other);
    }
    pair_finish_at(&p, 0.02 * k);
    if (k % 2 == 0) sn_planner_free(other);
    s.adam_starts = 2 + k;
    pair_configure(&p, &s);
  }
  pair_free(&p);
  assert_int_equal(memory_used(dev), 0);
  sn_backend_free(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batched),
      cmocka_unit_test(uneven),
      cmocka_unit_test(two_models),
      cmocka_unit_test(deadlines),
      cmocka_unit_test(deadline_of_another),
      cmocka_unit_test(deadline_of_another_number),
      cmocka_unit_test(rooms),
  };
  return cmocka_run_group_tests(tests, open_arm, close_arm);
}
