// Adam as a planner, on gradients by differences: improvement, determinism, divergence, starts, knots,
// live changes.
#include "tests/planner/adam_fixture.h"

static void improves(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_iterations = 25;
  Fixture *x = make_fixture(1, false, &s);
  const SnPlan plan = plan_at(x, 0);
  printf("cost before %.4f, after %.4f, gradient %.4f\n", plan.cost_before, plan.cost_after, plan.gradient_norm);
  assert_int_equal(plan.status, SN_PLAN_OK);
  assert_true(plan.cost_after < 0.6 * plan.cost_before && plan.cost_before == x->differences.costs[0]);
  assert_true(plan.iterations == 25 && plan.candidates == 1 && x->differences.ncost == 25);
  assert_true(plan.gradient_norm > 0 && isfinite(plan.gradient_norm));
  double best = INFINITY;
  for (int i = 0; i < 25; ++i) best = fmin(best, x->differences.costs[i]);
  assert_true(plan.cost_after == best && evaluate(x, &plan) == best);
  for (int k = 0; k < plan.nstep * plan.nu; ++k)
    assert_true(plan.ctrl[k] >= (k % 3 ? 0 : -3) && plan.ctrl[k] <= (k % 3 ? 1 : 3));
  // the next plan begins with what is left of this one
  const SnPlan next = plan_at(x, 0);
  assert_true(next.cost_before == best && next.cost_after <= best);
  free_fixture(x);
}

// The best iterate is kept, also when the rate is far too large; one iteration measures the warm start alone.
static void never_worse(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_rate = 10;
  s.adam_iterations = 6;
  Fixture *x = make_fixture(1, false, &s);
  for (int k = 0; k < 4; ++k) {
    const SnPlan plan = plan_at(x, 0.05 * k);
    assert_true(plan.cost_after <= plan.cost_before);
  }
  SnError err = {0};
  assert_int_equal(sn_planner_reset(x->p, 3, &err), SN_OK);
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = 1;
  const SnPlan plan = plan_now(x, &r);
  assert_true(plan.cost_after == plan.cost_before && plan.iterations == 1 && plan.status == SN_PLAN_OK);
  free_fixture(x);
}

// The same plans in slices of any length and with any number of threads; the numbers that a plan reports reproduce it.
static void repeats(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_iterations = 4;
  s.adam_starts = 3;
  Fixture *x = make_fixture(1, false, &s), *y = make_fixture(4, true, &s);
  SnError err = {0};
  for (int k = 0; k < 3; ++k) {
    const SnPlan a = plan_at(x, 0.05 * k);
    SnPlanRequest r = initial_request(y, 0.05 * k);
    assert_int_equal(sn_planner_begin(y->p, &r, &err), SN_OK);
    int n = 0;
    while (!sn_planner_slice(y->p, (double)atomic_load(&y->count.reads) + 40)) ++n;
    SnPlan b;
    sn_planner_finish(y->p, &b);
    assert_true(n > 20 && a.candidates == 3 && b.candidates == 3);
    assert_true(a.cost_after == b.cost_after && a.gradient_norm == b.gradient_norm);
    assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  }
  free_fixture(x);
  free_fixture(y);
}

// The same with the engine's gradients, which lead where differences do.
static void exact_gradients(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_starts = 2;
  Fixture *differences = make_fixture(1, false, &s), *x = open_fixture(1, false, &s, true),
          *y = open_fixture(4, true, &s, true);
  SnError err = {0};
  for (int k = 0; k < 3; ++k) {
    const SnPlan about = plan_at(differences, 0.05 * k), a = plan_at(x, 0.05 * k);
    assert_true(a.cost_after < a.cost_before && a.candidates == 2 && a.gradient_norm > 0);
    // in single precision differences are rounding
    if (k == 0 && sizeof(sn_real) == 8) assert_true(fabs(a.cost_after - about.cost_after) < 0.02 * about.cost_after);
    if (k == 0) assert_true(evaluate(x, &a) == a.cost_after);
    SnPlanRequest r = initial_request(y, 0.05 * k);
    assert_int_equal(sn_planner_begin(y->p, &r, &err), SN_OK);
    int n = 0;
    while (!sn_planner_slice(y->p, (double)atomic_load(&y->count.reads) + 40)) ++n;
    SnPlan b;
    sn_planner_finish(y->p, &b);
    assert_true(n > 20 && b.candidates == 2);
    assert_true(a.cost_after == b.cost_after && a.gradient_norm == b.gradient_norm);
    assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  }
  free_fixture(differences);
  free_fixture(x);
  free_fixture(y);
}

static void deadline(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_iterations = 0;
  s.adam_starts = 2;
  int partial = 0, none = 0;
  for (int budget = 10; budget < 1000; budget += 97) {
    Fixture *x = make_fixture(1, true, &s), *y = make_fixture(1, false, &s);
    SnPlanRequest r = initial_request(x, 0);
    r.deadline = (double)atomic_load(&x->count.reads) + budget;
    const SnPlan a = plan_now(x, &r);
    assert_true((double)atomic_load(&x->count.reads) <= r.deadline + 9);
    none += a.iterations == 0;
    if (a.iterations == 0) {
      assert_int_equal(a.status, SN_PLAN_WARM_START);
    } else {
      partial += a.candidates == 1;
      r = initial_request(y, 0);
      r.max_iterations = a.iterations;
      r.max_candidates = a.candidates;
      const SnPlan b = plan_now(y, &r);
      assert_true(b.iterations == a.iterations && b.candidates == a.candidates && b.cost_after == a.cost_after);
      assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
    }
    free_fixture(x);
    free_fixture(y);
  }
  assert_true(partial > 3 && none > 0 && none < 5);
}

// Iterates that diverge cost infinity, are left by halves of the way, and never are the plan.
static void diverging(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_rate = 1.5;
  s.adam_iterations = 12;
  s.max_velocity = 7;
  Fixture *x = make_fixture(1, false, &s);
  const SnPlan plan = plan_at(x, 0);
  int lost = 0, back = 0;
  for (int i = 1; i < x->differences.ncost; ++i) {
    lost += isinf(x->differences.costs[i]);
    back += isinf(x->differences.costs[i - 1]) && isfinite(x->differences.costs[i]);
  }
  printf("%d of %d iterates diverged, %d times back; cost %.4f to %.4f\n", lost, x->differences.ncost, back,
         plan.cost_before, plan.cost_after);
  assert_true(lost > 0 && back > 0);
  assert_int_equal(plan.status, SN_PLAN_OK);
  assert_true(isfinite(plan.cost_after) && plan.cost_after < plan.cost_before);
  // all of them: a status, no controls, and the next plan is as good as ever
  SnSettings slow = s;
  slow.max_velocity = 1e-3;
  configure(x, &slow);
  assert_int_equal(plan_at(x, 0.05).status, SN_PLAN_DIVERGED);
  configure(x, &s);
  assert_int_equal(plan_at(x, 0.1).status, SN_PLAN_OK);
  free_fixture(x);
}

// A warm start that diverges finds back to controls that do not.
static void diverging_warm_start(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_rate = 0.5;
  s.adam_iterations = 10;
  Fixture *x = make_fixture(1, false, &s);
  plan_at(x, 0);
  SnSettings strict = s;
  strict.max_velocity = 2.5;
  configure(x, &strict);
  const SnPlan plan = plan_at(x, 0);
  assert_true(isinf(plan.cost_before) && isfinite(plan.cost_after));
  assert_int_equal(plan.status, SN_PLAN_OK);
  free_fixture(x);
}

static void starts(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_starts = 4;
  s.adam_iterations = 3;
  Fixture *x = make_fixture(2, false, &s);
  const SnPlan plan = plan_at(x, 0);
  assert_true(plan.candidates == 4 && x->differences.ncost == 12);
  assert_true(plan.cost_before == x->differences.costs[0]);
  for (int i = 1; i < 4; ++i) assert_true(x->differences.costs[i] != x->differences.costs[0]);
  double best = INFINITY;
  for (int i = 0; i < 12; ++i) best = fmin(best, x->differences.costs[i]);
  assert_true(plan.cost_after == best && evaluate(x, &plan) == best);
  free_fixture(x);
}

// With knots the change to the warm start is a spline.
static void few_knots(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_knots = 5;
  s.adam_interpolation = SN_SPLINE_ZERO;
  Fixture *x = make_fixture(1, false, &s);
  const SnPlan plan = plan_at(x, 0);
  assert_true(plan.cost_after < plan.cost_before);
  int changes = 0;
  for (int t = 1; t < 40; ++t) changes += plan.ctrl[3 * t] != plan.ctrl[3 * t - 3];
  assert_true(changes > 1 && changes <= 4);
  // the grid moves with the plan: after 3 steps the knots are where they were
  int at[4], n = 0, moved = 0;
  for (int t = 1; t < 40; ++t)
    if (plan.ctrl[3 * t] != plan.ctrl[3 * t - 3] && n < 4) at[n++] = t;
  const SnPlan next = plan_at(x, 0.03);
  for (int t = 1; t < 37; ++t)
    if (next.ctrl[3 * t] != next.ctrl[3 * t - 3]) {
      bool known = false;
      for (int i = 0; i < n; ++i) known |= at[i] == t + 3;
      moved += !known;
    }
  assert_int_equal(moved, 0);
  free_fixture(x);
}

// Kept moments change the plans after the first, and only these.
static void moments_kept(void **state) {
  (void)state;
  SnSettings fresh = adam_settings(), kept = fresh;
  kept.adam_moments = SN_MOMENTS_KEPT;
  Fixture *x = make_fixture(1, false, &fresh), *y = make_fixture(1, false, &kept);
  for (int k = 0; k < 3; ++k) {
    const SnPlan a = plan_at(x, 0.05 * k), b = plan_at(y, 0.05 * k);
    assert_true(b.cost_after <= b.cost_before);
    if (k == 0)
      assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
    else
      assert_memory_not_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  }
  // a reset forgets them
  SnError err = {0};
  assert_int_equal(sn_planner_reset(x->p, 3, &err), SN_OK);
  assert_int_equal(sn_planner_reset(y->p, 3, &err), SN_OK);
  const SnPlan a = plan_at(x, 0), b = plan_at(y, 0);
  assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  free_fixture(x);
  free_fixture(y);
}

// With kept moments and the last iterate as warm start, plans of a few iterations from one state take the way of one
// plan of them all: what plan k measures first is iterate k times as many.
static void last_iterate(void **state) {
  (void)state;
  enum { ITERATIONS = 6 };
  const double rounding = sizeof(sn_real) == sizeof(double) ? 1e-6 : 1e-3;
  SnSettings s = adam_settings();
  s.adam_iterations = ITERATIONS;
  Fixture *whole = make_fixture(1, false, &s);
  const SnPlan plan = plan_at(whole, 0);
  assert_true(plan.iterations == ITERATIONS && plan.cost_after < plan.cost_before);
  s.adam_moments = SN_MOMENTS_KEPT;
  for (int few = 1; few <= 2; ++few) {
    s.adam_iterations = few;
    s.adam_warm_start = SN_WARM_START_LAST;
    Fixture *each = make_fixture(1, false, &s);
    for (int k = 0; k < ITERATIONS; k += few) {
      const double cost = plan_at(each, 0).cost_before;
      if (!(fabs(cost - whole->differences.costs[k]) <= rounding * cost))
        fail_msg("by %d iterations the plan at iterate %d costs %g, there one plan %g", few, k, cost,
                 whole->differences.costs[k]);
    }
    // without it plans of one iteration measure the same each time
    s.adam_warm_start = SN_WARM_START_BEST;
    configure(each, &s);
    const double before = plan_at(each, 0).cost_after;
    assert_true(plan_at(each, 0).cost_before == before);
    free_fixture(each);
  }
  free_fixture(whole);
}

// An iterate that diverges where the next plan measures it gives way to the plan in force.
static void last_iterate_diverges(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_iterations = 1;
  s.adam_warm_start = SN_WARM_START_LAST;
  s.adam_rate = 1.9;
  s.max_velocity = 7;
  Fixture *x = make_fixture(1, false, &s);
  SnPlan plan = plan_at(x, 0);
  sn_real row[3];
  memcpy(row, plan.ctrl + 3 * 5, sizeof row);
  const double cost = plan.cost_after;
  assert_true(plan.status == SN_PLAN_OK && isfinite(cost));
  s.adam_iterations = 2;
  configure(x, &s);
  plan = plan_at(x, 0);
  assert_true(!isfinite(x->differences.costs[1]));  // else there is nothing to see here
  assert_true(plan.status == SN_PLAN_OK && plan.cost_after == cost);
  assert_memory_equal(plan.ctrl + 3 * 5, row, sizeof row);
  free_fixture(x);
}

// From sampling to Adam and back between plans; a plan in progress goes on as it began.
static void live(void **state) {
  (void)state;
  SnSettings sampling = task->settings, adam = adam_settings();
  Fixture *x = make_fixture(1, false, &sampling);
  SnError err = {0};
  SnPlan plan = plan_at(x, 0);
  assert_true(isnan(plan.gradient_norm) && plan.candidates == 12);
  SnPlanRequest r = initial_request(x, 0);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  configure(x, &adam);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(isnan(plan.gradient_norm) && plan.iterations == 2);
  const double before = plan.cost_after;
  plan = plan_at(x, 0);
  assert_true(plan.cost_before == before && plan.cost_after < before && plan.iterations == 8 && plan.gradient_norm > 0);
  configure(x, &sampling);
  plan = plan_at(x, 0);
  assert_true(isnan(plan.gradient_norm) && plan.iterations == 2 && plan.candidates == 12);
  free_fixture(x);
}

// Weights, starts and the rate change while a plan is made: the best so far is measured anew.
static void tuned_in_flight(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  Fixture *x = make_fixture(1, false, &s);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  SnPlan peek, plan;
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek) && peek.gradient_norm > 0);
  const double light = peek.cost_after;
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  sn_planner_set_version(x->p, 7);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek) && peek.version == 7 && peek.cost_after > 2 * light);
  s.adam_starts = 3;
  s.adam_rate = 0.02;
  configure(x, &s);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.candidates == 3 && plan.iterations == 8 && plan.cost_after < peek.cost_after);
  assert_true(evaluate(x, &plan) == plan.cost_after);
  free_fixture(x);
}

static void refused(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings();
  Fixture *x = make_fixture(1, false, &s);
  s.adam_knots = 1;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "adam_knots: 1, allowed is 0, or 2 to the 40 steps of the horizon");
  s.adam_knots = 41;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_ARGUMENT);
  s = adam_settings();
  s.adam_iterations = 0;
  configure(x, &s);
  const SnPlanRequest r = initial_request(x, 0);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_ERR_ARGUMENT);
  free_fixture(x);
}

// The tip reaches the goal and stays there, a plan every 5 steps.
static void closed_loop(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings();
  s.adam_iterations = 24;
  s.adam_rate = 0.1;
  Fixture *x = make_fixture(1, false, &s);
  assert_int_equal(sn_planner_set_weight(x->p, "elbow", 0, 0, &err), SN_OK);
  SnPlanRequest r = initial_request(x, 0);
  r.want_states = true;
  sn_real qpos[2], qvel[2], act[2];
  double distance = 0;
  for (int k = 0; k < 30; ++k) {
    const SnPlan plan = plan_now(x, &r);
    assert_true(plan.cost_after <= plan.cost_before);
    memcpy(qpos, plan.qpos + 5 * 2, sizeof qpos);
    memcpy(qvel, plan.qvel + 5 * 2, sizeof qvel);
    memcpy(act, plan.act + 5 * 2, sizeof act);
    r.qpos = qpos;
    r.qvel = qvel;
    r.act = act;
    r.time += 5 * 0.01;
    const SnEvaluateRequest q = {.time = r.time, .qpos = qpos, .qvel = qvel, .act = act};
    SnEvaluation e;
    assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
    distance = e.measure[0];
    if (k >= 12 && !(distance < 0.1)) fail_msg("plan %d: %g m from the goal", k, distance);
  }
  printf("closed loop: %.4f m from the goal at the end\n", distance);
  free_fixture(x);
}

// A cost that no control reaches has no gradient: the plan says so. One that gets better says nothing.
static void no_progress(void **state) {
  (void)state;
  static const char still[] = "model: x\nterms:\n  - {name: a, residual: {position: {site: base}}}\n";
  SnError err = {0};
  SnTask *const whole = task, *const fixed = sn_task_parse(still, strlen(still), "still.yaml", &err);
  if (!fixed) fail_msg("%s", err.text);
  const SnSettings s = adam_settings();
  for (int k = 0; k < 2; ++k) {
    task = k ? whole : fixed;
    Fixture *x = make_fixture(1, false, &s);
    const SnPlan plan = plan_at(x, 0);
    assert_string_equal(plan.remark, k ? "" : "no progress: gradient norm 0");
    assert_true(plan.stuck == (k == 0) && plan.unimproved == (k == 0));
    assert_true(plan.iterations == 8 && (plan.cost_after < plan.cost_before) == (k == 1));
    free_fixture(x);
  }
  sn_task_free(fixed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(improves),
                                     cmocka_unit_test(never_worse),
                                     cmocka_unit_test(repeats),
                                     cmocka_unit_test(exact_gradients),
                                     cmocka_unit_test(deadline),
                                     cmocka_unit_test(diverging),
                                     cmocka_unit_test(diverging_warm_start),
                                     cmocka_unit_test(starts),
                                     cmocka_unit_test(few_knots),
                                     cmocka_unit_test(moments_kept),
                                     cmocka_unit_test(last_iterate),
                                     cmocka_unit_test(last_iterate_diverges),
                                     cmocka_unit_test(live),
                                     cmocka_unit_test(tuned_in_flight),
                                     cmocka_unit_test(refused),
                                     cmocka_unit_test(no_progress),
                                     cmocka_unit_test(closed_loop)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
