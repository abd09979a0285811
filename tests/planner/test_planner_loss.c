// A planner whose device is lost: in a plan, in an evaluation, before; with and without a fallback. The device is a
// script (device_backend.h).
#include "tests/planner/device_fixture.h"

// In the third job: the plan goes on at the CPU with the iterations that are left, from the best so far.
static void lost(void **state) {
  (void)state;
  const SnSettings s = adam_settings(12);
  Fixture *x = make_fixture(3, &s, true), *y = make_fixture(0, &s, false);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  r.max_iterations = 6;
  const double best = plan_now(y, &r).cost_after;
  r.max_iterations = 0;
  x->d.lose_at = 3;
  plan = plan_now(x, &r);
  assert_true(plan.status == SN_PLAN_OK && plan.iterations == 12 && plan.candidates == 2 && plan.device_lost);
  assert_string_equal(plan.backend, "cpu");
  assert_string_equal(plan.remark, "scripted is lost: call 3 failed; cpu goes on");
  assert_true(plan.cost_before == best && plan.cost_after < best && evaluate(x, &plan) == plan.cost_after);
  assert_true(x->d.models == 0 && x->d.calls == 3);
  // the next plans are made there from their beginning
  const double after = plan.cost_after;
  plan = plan_now(x, &r);
  assert_true(plan.cost_before == after && plan.iterations == 12 && plan.device_lost && !plan.remark[0]);
  free_fixture(x);
  free_fixture(y);
}

// At any call of a plan, by any kind of planner: with a fallback the plan is there with all its iterations, as good as
// the warm start at least; without one there is what the device had come to.
static void lost_anywhere(void **state) {
  (void)state;
  static const int kinds[] = {SN_PLANNER_ADAM, SN_PLANNER_SAMPLING, SN_PLANNER_MPPI, SN_PLANNER_HYBRID,
                              SN_PLANNER_LBFGS};
  SnSettings s = adam_settings(6);
  s.iterations = 3;
  s.lbfgs_iterations = 6;
  s.hybrid_gradients = 3;
  for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; ++i) {
    const bool fallback = i % 2;
    s.planner = kinds[i / 2];
    int at = 1;
    for (bool lost = true; lost; ++at) {
      Fixture *x = make_fixture(2, &s, fallback);
      SnPlanRequest r = initial_request(x, 0);
      r.want_states = true;
      x->d.lose_at = at;
      const SnPlan plan = plan_now(x, &r);
      lost = plan.device_lost;
      assert_int_equal(plan.nstep, 40);
      if (fallback || !lost) {
        assert_true(plan.status == SN_PLAN_OK && plan.iterations == sn_settings_iterations(&s) && plan.qpos);
        assert_true(plan.cost_after <= plan.cost_before);
        assert_true(lost == (strcmp(plan.backend, "cpu") == 0));
      } else {
        assert_true((plan.status == SN_PLAN_WARM_START) == (plan.iterations == 0));
      }
      if (fallback) assert_true(evaluate(x, &plan) == plan.cost_after);
      free_fixture(x);
      assert_true(at < 100);
    }
    assert_true(at > 4);
  }
}

// Without another backend: what there is, at once, deadline or not.
static void lost_alone(void **state) {
  (void)state;
  const SnSettings s = adam_settings(12);
  Fixture *x = make_fixture(3, &s, false);
  SnPlanRequest r = initial_request(x, 0);
  sn_real before[40 * 3];
  SnPlan plan = plan_now(x, &r);
  memcpy(before, plan.ctrl, sizeof before);
  x->d.lose_at = x->d.calls + 3;
  plan = plan_now(x, &r);
  assert_true(plan.status == SN_PLAN_OK && plan.iterations == 6 && plan.device_lost);
  assert_string_equal(plan.backend, "scripted");
  assert_non_null(strstr(plan.remark, "scripted is lost: call "));
  assert_non_null(strstr(plan.remark, "no fallback"));
  memcpy(before, plan.ctrl, sizeof before);
  for (int k = 1; k <= 2; ++k) {
    r.time = 0.05 * k;
    r.latency = 0.02;
    r.want_states = true;
    plan = plan_now(x, &r);
    assert_true(plan.status == SN_PLAN_WARM_START && plan.iterations == 0 && plan.device_lost && plan.nstep == 42);
    assert_true(isnan(plan.cost_before) && plan.qpos);
    for (int t = 0; t < 20; ++t)  // what was in force there
      for (int j = 0; j < 3; ++j) assert_true(plan.ctrl[3 * t + j] == before[3 * (t + 5 * k) + j]);
  }
  assert_int_equal(x->d.models, 1);
  free_fixture(x);
}

// Before a planner is made, and where there is no other backend then.
static void lost_before(void **state) {
  (void)state;
  SnError err = {0};
  const SnSettings s = adam_settings(4);
  Fixture *x = make_fixture(3, &s, true);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = &x->d.table;
  def.fallback = x->cpu;
  def.settings = s;
  x->d.lost = true;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  SnPlan plan;
  const SnPlanRequest r = initial_request(x, 0);
  assert_int_equal(sn_planner_plan(p, &r, &plan, &err), SN_OK);
  assert_true(plan.device_lost && plan.iterations == 4);
  assert_string_equal(plan.backend, "cpu");
  sn_planner_free(p);
  def.fallback = NULL;
  assert_null(sn_planner_create(&def, &err));
  assert_string_equal(err.text, "the device is lost");
  free_fixture(x);
}

// Gradients of evaluations: the same at the fallback; without one there is none.
static void lost_evaluating(void **state) {
  (void)state;
  SnError err = {0};
  const SnSettings s = adam_settings(4);
  sn_real ctrl[20 * 3], bar[20 * 3];
  for (int k = 0; k < 60; ++k) ctrl[k] = SN_R(0.1);
  for (int fallback = 0; fallback < 2; ++fallback) {
    Fixture *x = make_fixture(3, &s, fallback);
    const SnState *at = sn_planner_initial(x->p);
    const SnEvaluateRequest q = {
        .qpos = at->qpos, .qvel = at->qvel, .act = at->act, .nstep = 20, .ctrl = ctrl, .gradient = true};
    SnEvaluation e;
    assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
    assert_true(e.gradient && e.gradient->status == SN_GRADIENT_DONE && !e.device_lost);
    memcpy(bar, e.gradient->ctrl_bar, sizeof bar);
    const double cost = e.cost;
    x->d.lose_at = x->d.calls + 1;
    assert_int_equal(sn_planner_evaluate_begin(x->p, &q, &err), SN_OK);
    int n = 0;
    while (!sn_planner_evaluate_slice(x->p, INFINITY)) assert_true(++n < 5);
    sn_planner_evaluate_finish(x->p, &e);
    assert_true(x->d.lost && e.cost == cost && e.device_lost == !fallback);
    if (fallback) {
      assert_true(e.gradient && e.gradient->status == SN_GRADIENT_DONE);
      assert_memory_equal(bar, e.gradient->ctrl_bar, sizeof bar);
    } else {
      assert_null(e.gradient);
      assert_int_equal(sn_planner_evaluate_begin(x->p, &q, &err), SN_ERR_STATE);
      assert_non_null(strstr(err.text, "scripted is lost"));
    }
    // costs alone need no device
    SnEvaluateRequest plain = q;
    plain.gradient = false;
    assert_int_equal(sn_planner_evaluate(x->p, &plain, INFINITY, &e, &err), SN_OK);
    assert_true(e.cost == cost);
    free_fixture(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lost), cmocka_unit_test(lost_anywhere),
                                     cmocka_unit_test(lost_alone), cmocka_unit_test(lost_before),
                                     cmocka_unit_test(lost_evaluating)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
