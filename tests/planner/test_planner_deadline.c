// Iterations and deadlines, on a clock that counts its readings: how many there are, when they count, when a plan ends.
#include "tests/planner/adam_fixture.h"

static double reads(Fixture *x) { return (double)atomic_load(&x->count.reads); }

// Works on a plan for so many readings of the clock; true when it is done.
static bool slice_of(Fixture *x, double readings) { return sn_planner_slice(x->p, reads(x) + readings); }

// Makes a plan in slices of so many readings of the clock.
static SnPlan plan_in_slices(Fixture *x, const SnPlanRequest *r, double slice) {
  SnError err = {0};
  SnPlan plan;
  assert_int_equal(sn_planner_begin(x->p, r, &err), SN_OK);
  while (!slice_of(x, slice)) continue;
  sn_planner_finish(x->p, &plan);
  return plan;
}

// When a plan of some iterations ends, on a clock that counts its readings: each iteration takes the same time.
static void iteration_ends(SnPlannerKind kind, int n, double slice, double *end) {
  for (int k = 1; k <= n; ++k) {
    SnSettings s = adam_settings();
    s.planner = (int)kind;
    Fixture *x = open_fixture(1, true, &s, true);
    SnPlanRequest r = initial_request(x, 0);
    r.max_iterations = k;
    const double began = reads(x);
    r.deadline = began + 1e6;
    assert_int_equal(plan_in_slices(x, &r, slice).iterations, k);
    end[k] = reads(x) - began;
    free_fixture(x);
  }
}

// When iterations of such a plan count: others than the first of Adam when their rollout is done, before a way back of
// a reading a state and what makes the gradient of it. Those of other planners count when they end.
static void iteration_counts(SnPlannerKind kind, int n, double slice, double *counts) {
  enum { HORIZON = 40, GRADIENT = 5 };
  iteration_ends(kind, n, slice, counts);
  for (int k = 2; kind == SN_PLANNER_ADAM && k <= n; ++k) counts[k] -= HORIZON + 1 + GRADIENT;
}

// An iteration that would count after the deadline only is not begun, where all take the same time: a plan has all
// those that fit, and ends before its deadline. One that has no time for a first iteration tries it, and is there
// nevertheless.
static void iterations_that_fit(void **state) {
  (void)state;
  enum { MOST = 6, MARGIN = 24 };  // readings around an iteration; the first one makes no step, 7 fewer
  static const SnPlannerKind kinds[] = {SN_PLANNER_ADAM, SN_PLANNER_LBFGS, SN_PLANNER_ADAM, SN_PLANNER_LBFGS};
  for (int i = 0; i < 4; ++i) {
    double end[MOST + 1] = {0};
    const double slice = i < 2 ? INFINITY : 9;
    iteration_counts(kinds[i], MOST, slice, end);
    const double one = end[3] - end[2];
    assert_true(one > 3 * MARGIN);
    for (double budget = 0.3 * one; budget < end[MOST]; budget += 0.23 * one) {
      SnSettings s = adam_settings();
      s.planner = (int)kinds[i];
      s.adam_iterations = s.lbfgs_iterations = 0;
      Fixture *x = open_fixture(1, true, &s, true);
      SnPlanRequest r = initial_request(x, 0);
      const double began = reads(x);
      r.deadline = began + budget;
      const SnPlan plan = plan_in_slices(x, &r, slice);
      const double ended = reads(x) - began;
      int fit = 0;
      while (fit < MOST - 1 && end[fit + 1] + MARGIN <= budget) ++fit;
      assert_true(plan.nstep > 0 && plan.iterations >= fit && plan.iterations <= fit + 1);
      if (budget < end[fit + 1] - MARGIN) {
        assert_int_equal(plan.iterations, fit);
        if (fit > 0) assert_true(plan.deadline_met && ended <= end[fit] + MARGIN);
        if (fit == 0) assert_int_equal(plan.status, SN_PLAN_WARM_START);
      }
      free_fixture(x);
    }
  }
}

// A plan of so many iterations.
static SnPlan whole_plan(Fixture *x, int iterations) {
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = iterations;
  return plan_now(x, &r);
}

// Adam's second iteration counts when its rollout is done. A plan that is stopped there is that of two iterations but
// for the norm of the gradient, which is of the first; stopped before, it is that of one.
static void rolled(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings();
  s.adam_iterations = 0;
  for (int iterations = 1; iterations <= 2; ++iterations) {
    Fixture *x = open_fixture(1, true, &s, true), *one = open_fixture(1, true, &s, true),
            *same = open_fixture(1, true, &s, true);
    SnPlanRequest r = initial_request(x, 0);
    SnPlan plan;
    r.deadline = 1e9;
    assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
    while (iterations == 1 ? sn_planner_iterations(x->p) < 1 : !sn_planner_is_refined(x->p))
      assert_false(slice_of(x, 3));
    if (iterations == 1) assert_false(slice_of(x, 20));
    assert_int_equal(sn_planner_is_refined(x->p), iterations == 2);
    assert_int_equal(sn_planner_iterations(x->p), 1);
    sn_planner_stop(x->p);
    sn_planner_finish(x->p, &plan);
    const SnPlan whole = whole_plan(same, iterations);
    assert_true(plan.iterations == iterations && plan.cost_after == whole.cost_after);
    assert_memory_equal(plan.ctrl, whole.ctrl, ctrl_bytes(&plan));
    assert_true(plan.gradient_norm == whole_plan(one, 1).gradient_norm);
    free_fixture(x);
    free_fixture(one);
    free_fixture(same);
  }
}

// Others may work between a rollout and its way back: where that leaves no time for the way back and another rollout,
// the plan ends at once.
static void rolled_late(void **state) {
  (void)state;
  enum { BUDGET = 1000, LEFT = 60 };
  SnError err = {0};
  SnSettings s = adam_settings();
  s.adam_iterations = 0;
  Fixture *x = open_fixture(1, true, &s, true);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  const double began = reads(x);
  r.deadline = began + BUDGET;
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  while (!sn_planner_is_refined(x->p)) slice_of(x, 3);
  atomic_store(&x->count.reads, (long)began + BUDGET - LEFT);
  assert_true(sn_planner_slice(x->p, INFINITY));
  assert_true(reads(x) < began + BUDGET - LEFT + 10);
  sn_planner_finish(x->p, &plan);
  assert_int_equal(plan.iterations, 2);
  free_fixture(x);
}

// Where the next plan begins a step behind the last iterate, an iteration has no use without its gradient: a plan that
// is stopped within a way back, of which each takes half of an iteration, has the iterations before.
static void rolled_last(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings();
  s.adam_iterations = 0;
  s.adam_warm_start = SN_WARM_START_LAST;
  int stopped = 0;
  for (double more = 10; more < 100; more += 10) {
    Fixture *x = open_fixture(1, true, &s, true);
    SnPlanRequest r = initial_request(x, 0);
    SnPlan plan;
    r.deadline = 1e9;
    assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
    while (sn_planner_iterations(x->p) < 1) assert_false(slice_of(x, 3));
    const double until = reads(x) + more;
    while (reads(x) < until) assert_false(sn_planner_slice(x->p, until));
    const int before = sn_planner_iterations(x->p);
    sn_planner_stop(x->p);
    sn_planner_finish(x->p, &plan);
    assert_int_equal(plan.iterations, before);
    stopped += before == 1;
    free_fixture(x);
  }
  assert_true(stopped > 5);
}

// A way back that was begun is not given up before the deadline: a plan that had gone on when its second iteration
// counted has that one's gradient.
static void ways_back(void **state) {
  (void)state;
  int gone_on = 0;
  for (double budget = 310; budget < 370; budget += 2) {
    SnError err = {0};
    SnSettings s = adam_settings();
    s.adam_iterations = 0;
    Fixture *x = open_fixture(1, true, &s, true), *one = open_fixture(1, true, &s, true);
    SnPlanRequest r = initial_request(x, 0);
    SnPlan plan;
    int pauses = 0;  // since that one counted; the way back begins behind the first
    r.deadline = reads(x) + budget;
    assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
    while (!slice_of(x, 9)) pauses = sn_planner_is_refined(x->p) && sn_planner_iterations(x->p) == 1 ? pauses + 1 : 0;
    const bool early = reads(x) < r.deadline;
    sn_planner_finish(x->p, &plan);
    if (pauses > 1 && early)
      assert_true(plan.iterations == 2 && plan.gradient_norm != whole_plan(one, 1).gradient_norm);
    gone_on += plan.iterations > 2 || pauses > 1;
    free_fixture(x);
    free_fixture(one);
  }
  assert_true(gone_on > 3 && gone_on < 27);
}

// A margin ends a plan earlier, but not before it has tried something new: of two iterations the second one has until
// the deadline.
static void margin(void **state) {
  (void)state;
  enum { MOST = 6, AROUND = 8 };  // readings around an iteration
  double end[MOST + 1] = {0};
  int kept = 0;
  iteration_counts(SN_PLANNER_ADAM, MOST, INFINITY, end);
  const double one = end[3] - end[2];
  for (double budget = end[1] + 0.5 * (end[2] - end[1]); budget < end[MOST]; budget += 0.23 * one) {
    SnSettings s = adam_settings();
    s.adam_iterations = 0;
    Fixture *x = open_fixture(1, true, &s, true);
    SnPlanRequest r = initial_request(x, 0);
    r.deadline = reads(x) + budget;
    r.margin = 1.5 * one;
    const int iterations = plan_now(x, &r).iterations;
    int fit = 0, near = 0;
    for (int k = 1; k <= MOST; ++k) {
      const double left = (k <= 2 ? budget : budget - r.margin) - end[k];
      near += fabs(left) <= AROUND;
      fit += left > AROUND;
    }
    if (near == 0) assert_int_equal(iterations, fit);
    kept += near == 0 && fit == 2 && budget - r.margin < end[2];
    free_fixture(x);
  }
  assert_true(kept > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(iterations_that_fit), cmocka_unit_test(rolled),    cmocka_unit_test(rolled_late),
      cmocka_unit_test(rolled_last),         cmocka_unit_test(ways_back), cmocka_unit_test(margin),
  };
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
