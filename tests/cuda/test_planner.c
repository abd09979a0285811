// Planners on a device (the emulator, in double): their plans are the CPU's, bit for bit, also where several share it
// and where settings change meanwhile.
#include "tests/cuda/host/multistart_fixture.h"
#include "tests/planner/bench_body.h"

static Scene scene;

static int setup(void **state) {
  (void)state;
  scene_parse(&scene, body_xml, body_task);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  scene_close(&scene);
  return 0;
}

static SnSettings adam_settings(int iterations) {
  SnSettings s = scene.task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.adam_iterations = iterations;
  s.adam_rate = 0.05;
  s.adam_starts = 2;
  return s;
}

// Four plans, one from the other, with a lead and predicted states.
static void same_plans(SnBackend *device, const SnSettings *s) {
  Pair p = pair_make(&scene, device, scene.cpu, s, 3);
  for (int k = 0; k < 4; ++k) {
    SnPlanRequest r = request_of(p.dev, 0.05 * k);
    r.latency = k == 2 ? 0.04 : 0;
    r.want_states = true;
    begin_plan(p.dev, &r);
    const SnPlan a = pair_finish(&p, &r);
    assert_string_equal(a.backend, "emulator_double");
    assert_true(a.cost_after <= a.cost_before && !a.device_lost && a.qpos);
  }
  pair_free(&p);
}

static void plans(void **state) {
  (void)state;
  SnBackend *device = open_library("emulator_double", 0, NULL);
  SnSettings s = adam_settings(7);
  same_plans(device, &s);
  s.adam_moments = SN_MOMENTS_KEPT;
  same_plans(device, &s);
  s.adam_knots = 6;
  s.adam_interpolation = SN_SPLINE_CUBIC;
  s.adam_clip = SN_CLIP_STEP;
  s.adam_starts = 3;
  same_plans(device, &s);
  s.adam_warm_start = SN_WARM_START_LAST;
  same_plans(device, &s);
  s.cfd = SN_CFD_BACKWARD;
  s.gradient = SN_GRADIENT_PRODUCTS;
  same_plans(device, &s);
  s.max_velocity = 7;  // iterates diverge
  s.adam_rate = 1.5;
  s.adam_knots = 0;
  same_plans(device, &s);
  s = scene.task->settings;
  same_plans(device, &s);
  sn_backend_free(device);
}

// Planners by other rules over candidates and gradients are the CPU's on a device, too: noise with a deviation of each
// knot, starts at candidates, and gradients that a rule on the host asks for.
static void other_rules(void **state) {
  (void)state;
  static const int kinds[] = {SN_PLANNER_LBFGS, SN_PLANNER_MPPI, SN_PLANNER_CEM, SN_PLANNER_HYBRID};
  SnBackend *device = open_library("emulator_double", 0, "");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    SnSettings s = adam_settings(3);
    s.planner = kinds[i];
    s.candidates = 12;
    s.iterations = kinds[i] == SN_PLANNER_HYBRID ? 2 : 3;
    s.cem_elites = 3;
    s.lbfgs_iterations = 8;
    s.hybrid_refined = 2;
    s.hybrid_gradients = 3;
    Pair p = pair_make(&scene, device, scene.cpu, &s, 4);
    for (int k = 0; k < 3; ++k) {
      const SnPlanRequest r = request_of(p.dev, 0.05 * k);
      begin_plan(p.dev, &r);
      for (bool done = false; !done; done = sn_planner_slice(p.dev, INFINITY)) sn_planner_submit(p.dev);
      const SnPlan a = pair_finish(&p, &r);
      assert_true(a.cost_after < a.cost_before);
    }
    pair_free(&p);
  }
  sn_backend_free(device);
}

// Room for more starts, asked for between two iterations of a round and not used: at a device what the round had come
// to is gone, so it begins anew there as on the CPU.
static void more_room_within_a_round(void **state) {
  (void)state;
  CountingClock clock = {0};
  const SnClock counting = counting_clock(&clock);
  SnBackend *device = open_library("emulator_double", 0, NULL);
  SnSettings s = adam_settings(3), more = adam_settings(3);
  s.planner = SN_PLANNER_HYBRID;
  s.candidates = 12;
  s.iterations = 2;
  s.hybrid_refined = 2;
  s.hybrid_gradients = 20;
  more.adam_starts = 9;
  SnPlanner *const x = planner(&scene, device, &s, 4, &counting), *const y = planner(&scene, scene.cpu, &s, 4, NULL);
  const SnPlanRequest r = request_of(x, 0);
  begin_plan(x, &r);
  begin_plan(y, &r);
  while (sn_planner_iterations(x) < 3) assert_false(sn_planner_slice(x, (double)atomic_load(&clock.reads) + 12));
  const int done = sn_planner_iterations(x);
  assert_true(done < 20);
  while (sn_planner_iterations(y) < done) assert_false(sn_planner_slice(y, INFINITY));
  Pair both = {x, y};
  pair_configure(&both, &more);
  pair_configure(&both, &s);
  const SnPlan a = finish_plan(x), b = finish_plan(y);
  expect_equal(&a, &b);
  pair_free(&both);
  sn_backend_free(device);
}

// Rates of controls are counted from the one in force before the plan: from nothing in the first, from the plan before,
// from the lead.
static void rates_of_controls(void **state) {
  (void)state;
  char text[3000];
  SnError err = {0};
  SnTask *const plain = scene.task;
  const char *const rest = strstr(body_task, "success:");
  snprintf(text, sizeof text, "%.*s  - {name: rate, residual: {control_rate: all}, weight: 1e-4}\n%s",
           (int)(rest - body_task), body_task, rest);
  scene.task = sn_task_parse(text, strlen(text), "rates.yaml", &err);
  if (!scene.task) fail_msg("%s", err.text);
  SnBackend *device = open_library("emulator_double", 0, NULL);
  SnSettings s = adam_settings(5);
  same_plans(device, &s);
  s.gradient = SN_GRADIENT_PRODUCTS;
  same_plans(device, &s);
  s.planner = SN_PLANNER_CEM;
  same_plans(device, &s);
  sn_backend_free(device);
  sn_task_free(scene.task);
  scene.task = plain;
}

// The same by sampling, turn by turn: an iteration of all of them is one launch. The device is lost at the first launch
// that is too many.
static void sampled_together(void **state) {
  (void)state;
  enum { PLANNERS = 3, PLANS = 2, ITERATIONS = 3 };
  char fault[40];
  snprintf(fault, sizeof fault, "launch:%d", PLANS * ITERATIONS + 1);
  SnBackend *device = open_library("emulator_double", 0, fault);
  Pair p[PLANNERS];
  for (int i = 0; i < PLANNERS; ++i) {
    SnSettings s = scene.task->settings;
    s.planner = SN_PLANNER_SAMPLING;
    s.iterations = ITERATIONS;
    s.candidates = 8 + i;
    s.noise_scale *= 1 + 0.5 * i;
    p[i] = pair_make(&scene, device, scene.cpu, &s, (uint64_t)i);
  }
  for (int k = 0; k < PLANS; ++k) {
    SnPlanRequest r = request_of(p[0].dev, 0.05 * k);
    r.latency = k ? 0.04 : 0;
    for (int i = 0; i < PLANNERS; ++i) begin_plan(p[i].dev, &r);
    for (int n = 0; n < ITERATIONS; ++n) {
      for (int i = 0; i < PLANNERS; ++i) sn_planner_submit(p[i].dev);
      for (int i = 0; i < PLANNERS; ++i) assert_true(sn_planner_slice(p[i].dev, INFINITY) == (n + 1 == ITERATIONS));
    }
    for (int i = 0; i < PLANNERS; ++i) {
      const SnPlan a = pair_finish(&p[i], &r);
      assert_false(a.device_lost);
      assert_int_equal(a.iterations, ITERATIONS);
    }
  }
  // Submitted, and not sliced before the plan ends, or the next one begins.
  SnPlan plan;
  SnPlanner *const x = p[0].dev;
  const SnPlanRequest r = request_of(x, 0.05 * PLANS);
  begin_plan(x, &r);
  sn_planner_submit(x);
  sn_planner_finish(x, &plan);
  assert_int_equal(plan.status, SN_PLAN_WARM_START);
  begin_plan(x, &r);
  sn_planner_submit(x);
  begin_plan(x, &r);
  assert_false(finish_plan(x).status == SN_PLAN_OK);  // one launch too many
  for (int i = 0; i < PLANNERS; ++i) pair_free(&p[i]);
  sn_backend_free(device);
}

// In slices of a few iterations, with what changes between them: as on the CPU at the same iteration.
static void tuned(void **state) {
  (void)state;
  SnError err = {0};
  CountingClock clock = {0};
  const SnClock counting = counting_clock(&clock);
  SnBackend *device = open_library("emulator_double", 0, NULL);
  SnSettings s = adam_settings(14);
  SnPlanner *x = planner(&scene, device, &s, 3, &counting), *y = planner(&scene, scene.cpu, &s, 3, NULL);
  const SnPlanRequest r = request_of(x, 0);
  begin_plan(x, &r);
  begin_plan(y, &r);
  int changes = 0;
  while (!sn_planner_slice(x, (double)atomic_load(&clock.reads) + 12)) {
    const int done = sn_planner_iterations(x);
    while (sn_planner_iterations(y) < done) assert_false(sn_planner_slice(y, INFINITY));
    SnPlan a, b;
    assert_true(sn_planner_peek(x, &a) && sn_planner_peek(y, &b));
    expect_equal(&a, &b);
    if (++changes > 4) continue;
    s.adam_rate *= 0.8;
    if (changes == 2) s.adam_starts = 4;
    if (changes == 3) s.adam_knots = 8;
    SnPlanner *const both[] = {x, y};
    for (int i = 0; i < 2; ++i) {
      const double goal[3] = {0.1 * changes, 0, 0.1};
      assert_int_equal(sn_planner_configure(both[i], &s, &err), SN_OK);
      assert_int_equal(sn_planner_set_weight(both[i], "speed", 0.01 * changes, 0, &err), SN_OK);
      // the target follows a body until then, and again later
      assert_int_equal(sn_planner_set_target(both[i], "reach", goal, changes % 2 ? 3 : 0, &err), SN_OK);
    }
  }
  assert_true(changes >= 3);
  SnPlan a;
  sn_planner_finish(x, &a);
  const SnPlan b = finish_plan(y);
  expect_equal(&a, &b);
  assert_int_equal(a.iterations, 14);
  sn_planner_free(x);
  sn_planner_free(y);
  sn_backend_free(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans),
                                     cmocka_unit_test(other_rules),
                                     cmocka_unit_test(more_room_within_a_round),
                                     cmocka_unit_test(rates_of_controls),
                                     cmocka_unit_test(sampled_together),
                                     cmocka_unit_test(tuned)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
