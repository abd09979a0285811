// Predicted states of plans in the making, and the weights and targets that a plan's costs belong to.
#include "tests/planner/planner_fixture.h"

static const SnSettings *with_adam(Fixture *x, SnSettings *s) {
  SnError err = {0};
  *s = *sn_planner_settings(x->p);
  s->planner = SN_PLANNER_ADAM;
  assert_int_equal(sn_planner_configure(x->p, s, &err), SN_OK);
  return s;
}

static SnPlanRequest traced_request(const Fixture *x, int iterations) {
  SnPlanRequest r = initial_request(x, 0.5);
  r.max_iterations = iterations;
  r.want_states = r.trace_each = true;
  r.latency = 0.03;
  return r;
}

static void expect_same(const SnPlan *a, const SnPlan *b) {
  const size_t rows = (size_t)a->nstep + 1;
  assert_true(a->iterations == b->iterations && a->nstep == b->nstep && a->cost_after == b->cost_after);
  assert_memory_equal(a->ctrl, b->ctrl, ctrl_bytes(a));
  assert_non_null(a->qpos);
  assert_memory_equal(a->qpos, b->qpos, sizeof(sn_real) * rows * (size_t)a->nq);
  assert_memory_equal(a->qvel, b->qvel, sizeof(sn_real) * rows * (size_t)a->nv);
  assert_memory_equal(a->act, b->act, sizeof(sn_real) * rows * (size_t)a->na);
}

// After each iteration a peek has the states that a plan of so many iterations has at its end, however small slices
// are.
static void peeks_have_states(bool adam) {
  enum { ITERATIONS = 4 };
  Fixture *x = make_fixture(2, true, 3);
  SnError err = {0};
  SnSettings s;
  SnPlan peek, plan;
  if (adam) with_adam(x, &s);
  const SnPlanRequest r = traced_request(x, ITERATIONS);
  int seen = 0, slices = 0;
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  for (bool ready = false; !ready; ++slices) {
    ready = sn_planner_slice(x->p, (double)atomic_load(&x->count.reads) + 20);
    if (sn_planner_is_tracing(x->p) || sn_planner_iterations(x->p) == seen || !sn_planner_peek(x->p, &peek)) continue;
    assert_int_equal(peek.iterations, ++seen);
    Fixture *y = make_fixture(1, false, 3);
    if (adam) with_adam(y, &s);
    const SnPlanRequest q = traced_request(y, seen);
    plan = plan_now(y, &q);
    expect_same(&peek, &plan);
    free_fixture(y);
  }
  assert_true(seen == ITERATIONS && slices > 2 * ITERATIONS);
  sn_planner_finish(x->p, &plan);
  expect_same(&plan, &peek);
  free_fixture(x);
}

static void peeks_of_sampling(void **state) {
  (void)state;
  peeks_have_states(false);
}

static void peeks_of_adam(void **state) {
  (void)state;
  peeks_have_states(true);
}

// A plan that is finished while an iteration is under way has the states of the ones before it.
static void finished_within(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, true, 3);
  SnError err = {0};
  SnPlan peek, plan;
  const SnPlanRequest r = traced_request(x, 9);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  while (sn_planner_iterations(x->p) < 2 || sn_planner_is_tracing(x->p)) assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek));
  const double cost = peek.cost_after;
  assert_false(sn_planner_slice(x->p, (double)atomic_load(&x->count.reads) + 20));
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 2 && plan.cost_after == cost && plan.qpos);
  free_fixture(x);
}

static double elbow_target(const SnPlan *plan) {
  double value;
  sn_cost_target(plan->cost, sn_cost_find(plan->cost, "elbow"), 0, &value);
  return value;
}

// A target that is set while a plan is made is the plan's as soon as an iteration under it was used, not before.
static void targets_of_the_version(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, true, 3);
  SnError err = {0};
  SnPlan plan;
  const double own = -0.3, given = 0.7;
  SnPlanRequest r = traced_request(x, 9);
  r.trace_each = false;
  for (int used = 0; used < 2; ++used) {
    assert_int_equal(sn_planner_set_target(x->p, "elbow", NULL, 0, &err), SN_OK);
    sn_planner_set_version(x->p, 1);
    assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
    while (sn_planner_iterations(x->p) < 1) assert_false(sn_planner_slice(x->p, INFINITY));
    assert_int_equal(sn_planner_set_target(x->p, "elbow", &given, 1, &err), SN_OK);
    sn_planner_set_version(x->p, 2);
    // One iteration under the new target, or one that is begun and has no candidate complete.
    assert_false(sn_planner_slice(x->p, used ? (double)INFINITY : (double)atomic_load(&x->count.reads)));
    sn_planner_finish(x->p, &plan);
    assert_int_equal(plan.iterations, 1 + used);
    assert_int_equal(plan.version, 1 + used);
    assert_true(fabs(elbow_target(&plan) - (used ? given : own)) < 1e-12);
    assert_int_equal(sn_cost_target_is_set(plan.cost, sn_cost_find(plan.cost, "elbow")), used);
  }
  free_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(peeks_of_sampling), cmocka_unit_test(peeks_of_adam),
                                     cmocka_unit_test(finished_within), cmocka_unit_test(targets_of_the_version)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
