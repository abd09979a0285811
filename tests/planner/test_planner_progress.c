// What plans say of a cost that does not fall.
#include "tests/planner/planner_fixture.h"

static void set_patience(Fixture *x, int patience) {
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.patience = patience;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
}

// Makes a plan without noise, which is its warm start.
static SnPlan plan_in_vain(Fixture *x) {
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = r.max_candidates = 1;
  const SnPlan plan = plan_now(x, &r);
  assert_true(plan.cost_after == plan.cost_before && plan.iterations == 1 && !plan.stuck);
  return plan;
}

static void expect_said(const SnPlan *plan, int unimproved, const char *remark) {
  assert_int_equal(plan->unimproved, unimproved);
  assert_string_equal(plan->remark, remark);
}

// Plans that are no better than their warm starts are counted, and from the third one on it is said. One that is
// better, a reset, and a snapshot that is restored begin anew.
static void counted(void **state) {
  (void)state;
  Fixture *x = make_fixture(1, false, 3);
  SnError err = {0};
  char text[64];
  set_patience(x, 3);
  for (int round = 0; round < 3; ++round) {
    for (int k = 1; k <= 5; ++k) {
      snprintf(text, sizeof text, k < 3 ? "" : "no improvement for %d plans", k);
      const SnPlan plan = plan_in_vain(x);
      expect_said(&plan, k, text);
    }
    SnPlannerSnapshot snapshot;
    if (round == 1) assert_int_equal(sn_planner_reset(x->p, 3, &err), SN_OK);
    if (round == 2) {
      assert_int_equal(sn_planner_snapshot(x->p, &snapshot, &err), SN_OK);
      assert_int_equal(sn_planner_restore(x->p, &snapshot, &err), SN_OK);
    }
    if (round > 0) continue;
    const SnPlanRequest r = initial_request(x, 0);
    const SnPlan better = plan_now(x, &r);
    assert_true(better.cost_after < 0.999 * better.cost_before);
    expect_said(&better, 0, "");
  }
  const SnPlan plan = plan_in_vain(x);
  expect_said(&plan, 1, "");
  free_fixture(x);
}

// With the patience of 0 it is counted and not said. The settings may change meanwhile.
static void never_said(void **state) {
  (void)state;
  Fixture *x = make_fixture(1, false, 3);
  set_patience(x, 0);
  for (int k = 1; k < 20; ++k) {
    const SnPlan plan = plan_in_vain(x);
    expect_said(&plan, k, "");
  }
  set_patience(x, 20);
  const SnPlan plan = plan_in_vain(x);
  expect_said(&plan, 20, "no improvement for 20 plans");
  free_fixture(x);
}

// A look at a plan in progress counts it, and does not count it twice.
static void looked_at(void **state) {
  (void)state;
  Fixture *x = make_fixture(1, false, 3);
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = r.max_candidates = 1;
  for (int k = 1; k < 4; ++k) {
    SnPlan peek;
    begin_plan(x->p, &r);
    while (!sn_planner_slice(x->p, INFINITY)) continue;
    for (int again = 0; again < 2; ++again) {
      assert_true(sn_planner_peek(x->p, &peek));
      expect_said(&peek, k, "");
    }
    const SnPlan plan = finish_plan(x->p);
    expect_said(&plan, k, "");
  }
  free_fixture(x);
}

// Plans that have tried nothing tell nothing: for want of time, or because Adam's only iteration measures the warm
// start.
static void nothing_tried(void **state) {
  (void)state;
  Fixture *x = make_fixture(1, false, 3);
  SnError err = {0};
  SnPlan plan = plan_in_vain(x);
  expect_said(&plan, 1, "");
  SnPlanRequest r = initial_request(x, 0);
  r.deadline = 0;
  plan = plan_now(x, &r);
  assert_true(plan.status == SN_PLAN_WARM_START);
  expect_said(&plan, 1, "");
  SnSettings s = *sn_planner_settings(x->p);
  s.planner = SN_PLANNER_ADAM;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  r.deadline = INFINITY;
  r.max_iterations = 1;
  plan = plan_now(x, &r);
  assert_true(plan.iterations == 1 && plan.cost_after == plan.cost_before);
  expect_said(&plan, 1, "");
  r.max_iterations = 8;
  plan = plan_now(x, &r);
  assert_true(plan.cost_after < 0.999 * plan.cost_before);
  expect_said(&plan, 0, "");
  free_fixture(x);
}

#define REACH "  - {name: reach, residual: {position: {site: tip}}, target: {position: {site: goal}}}\n"

// Less than a thousandth of the cost is no fall; of a cost of 0 nothing is wanted.
static void small_falls(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int unimproved;
  } cases[] = {
      {"model: x\nterms:\n" REACH "  - {name: far, residual: {position: {body: world}}, target: [100, 0, 0]}\n", 1},
      {"model: x\nterms:\n" REACH, 0},
      {"model: x\nterms:\n  - {name: none, residual: {position: {body: world}}}\n", 0}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    SnError err = {0};
    SnTask *of = sn_task_parse(cases[k].text, strlen(cases[k].text), "task.yaml", &err);
    if (!of) fail_msg("%s", err.text);
    Fixture *x = make_fixture_of(of, 1, false, 3);
    const SnPlanRequest r = initial_request(x, 0);
    const SnPlan plan = plan_now(x, &r);
    assert_true((plan.cost_after < plan.cost_before) == (k < 2));
    assert_int_equal(plan.unimproved, cases[k].unimproved);
    free_fixture(x);
    sn_task_free(of);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(counted), cmocka_unit_test(never_said),
                                     cmocka_unit_test(looked_at), cmocka_unit_test(nothing_tried),
                                     cmocka_unit_test(small_falls)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
