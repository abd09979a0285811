// Planning: determinism, anytime behaviour, warm start, live tuning, bad requests, memory.
#include "tests/planner/planner_fixture.h"
#include "tests/support/allocations.h"

static void improves(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 1);
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = 8;
  const SnPlan plan = plan_now(x, &r);
  printf("cost before %.4f, after %.4f, now %.4f\n", plan.cost_before, plan.cost_after, plan.cost_now);
  assert_int_equal(plan.status, SN_PLAN_OK);
  assert_true(plan.cost_after < 0.8 * plan.cost_before);
  assert_true(plan.number == 1 && plan.nstep == 40 && plan.lead == 0 && plan.iterations == 8 && plan.candidates == 12);
  assert_true(plan.start == 0 && fabs(plan.step - 0.01) < 1e-9 && plan.deadline_met && isnan(plan.gradient_norm));
  double sum = 0;
  for (int i = 0; i < plan.nterm; ++i) sum += plan.term[i];
  assert_true(fabs(sum - plan.cost_after) < 1e-6 * sum);
  for (int k = 0; k < plan.nstep * plan.nu; ++k)
    assert_true(plan.ctrl[k] >= (k % 3 ? 0 : -3) && plan.ctrl[k] <= (k % 3 ? 1 : 3));
  free_fixture(x);
}

// Three plans in a row, whatever the number of threads.
static void threads(void **state) {
  (void)state;
  sn_real first[3][40 * 3];
  double cost[3];
  for (int n = 1; n <= 8; ++n) {
    Fixture *x = make_fixture(n, false, 7);
    for (int k = 0; k < 3; ++k) {
      SnPlanRequest r = initial_request(x, 0.05 * k);
      const SnPlan plan = plan_now(x, &r);
      assert_int_equal(ctrl_bytes(&plan), sizeof first[k]);
      if (n == 1) {
        memcpy(first[k], plan.ctrl, sizeof first[k]);
        cost[k] = plan.cost_after;
      }
      assert_memory_equal(first[k], plan.ctrl, sizeof first[k]);
      assert_true(cost[k] == plan.cost_after);
    }
    free_fixture(x);
  }
  assert_memory_not_equal(first[0], first[1], sizeof first[0]);
}

static void seeds(void **state) {
  (void)state;
  Fixture *a = make_fixture(1, false, 0), *b = make_fixture(1, false, 11), *c = make_fixture(1, false, 11);
  const sn_real *qa = sn_planner_initial(a->p)->qpos, *qb = sn_planner_initial(b->p)->qpos,
                *qc = sn_planner_initial(c->p)->qpos;
  assert_true(qa[0] == SN_R(0.2) && qa[1] == SN_R(0.1));
  assert_true(qb[0] != qa[0] && fabs((double)(qb[0] - qa[0])) <= 0.1 && fabs((double)(qb[1] - qa[1])) <= 0.1);
  assert_memory_equal(qb, qc, 2 * sizeof *qb);
  assert_true(sn_planner_initial(a->p)->act[0] == SN_R(0.05));
  SnError err = {0};
  assert_int_equal(sn_planner_reset(b->p, 0, &err), SN_OK);
  assert_memory_equal(qa, sn_planner_initial(b->p)->qpos, 2 * sizeof *qa);
  free_fixture(a);
  free_fixture(b);
  free_fixture(c);
}

// The deadline is read at every step of a rollout: hardly anything happens after it.
static void deadline(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n += 3) {
    for (int budget = 20; budget < 2500; budget += 171) {
      Fixture *x = make_fixture(n, true, 5);
      SnPlanRequest r = initial_request(x, 0);
      r.max_iterations = 1000;
      r.deadline = (double)atomic_load(&x->count.reads) + budget;
      const SnPlan plan = plan_now(x, &r);
      // Each thread reads the clock once more to see that time is up, and the planner a few times.
      assert_true((double)atomic_load(&x->count.reads) <= r.deadline + 3 * n + 6);
      assert_true(plan.deadline_met == false || plan.iterations > 0);
      if (budget < 35) assert_int_equal(plan.status, SN_PLAN_WARM_START);
      if (budget > 400) assert_int_equal(plan.status, SN_PLAN_OK);
      free_fixture(x);
    }
  }
}

// The numbers that a plan reports reproduce it bit for bit, without a clock.
static void reproduced(void **state) {
  (void)state;
  int partial = 0;
  for (int budget = 60; budget < 2500; budget += 173) {
    Fixture *x = make_fixture(3, true, 5), *y = make_fixture(2, false, 5);
    SnPlanRequest r = initial_request(x, 0);
    r.max_iterations = 1000;
    r.deadline = (double)atomic_load(&x->count.reads) + budget;
    const SnPlan a = plan_now(x, &r);
    if (a.iterations > 0) {
      partial += a.candidates < 12;
      SnPlanRequest s = initial_request(y, 0);
      s.max_iterations = a.iterations;
      s.max_candidates = a.candidates;
      const SnPlan b = plan_now(y, &s);
      assert_true(b.iterations == a.iterations && b.candidates == a.candidates && b.cost_after == a.cost_after);
      assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
    }
    free_fixture(x);
    free_fixture(y);
  }
  assert_true(partial > 3);
}

static void slices(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 5), *y = make_fixture(2, true, 5);
  SnPlanRequest r = initial_request(x, 0);
  const SnPlan a = plan_now(x, &r);
  SnError err = {0};
  SnPlanRequest s = initial_request(y, 0);
  assert_int_equal(sn_planner_begin(y->p, &s, &err), SN_OK);
  int n = 1;
  while (!sn_planner_slice(y->p, (double)atomic_load(&y->count.reads) + 50)) {
    ++n;
    // An evaluation in between does not touch the plan.
    SnEvaluation e;
    const SnEvaluateRequest q = {.time = 0, .qpos = s.qpos, .qvel = s.qvel, .act = s.act};
    assert_int_equal(sn_planner_evaluate(y->p, &q, INFINITY, &e, &err), SN_OK);
  }
  SnPlan b;
  sn_planner_finish(y->p, &b);
  assert_true(n > 10);
  assert_true(a.cost_after == b.cost_after);
  assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  // Without a plan in progress there is nothing to finish.
  sn_planner_finish(y->p, &b);
  assert_int_equal(b.nstep, 0);
  free_fixture(x);
  free_fixture(y);
}

// With one candidate there is no noise: plans are the initial plan, shifted.
static void warm_start(void **state) {
  (void)state;
  Fixture *x = make_fixture(1, false, 3);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan = plan_now(x, &r);
  sn_real first[40 * 3];
  memcpy(first, plan.ctrl, sizeof first);
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.candidates = 1;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  r.time = 0.0701;
  plan = plan_now(x, &r);
  for (int t = 0; t < 40; ++t)
    for (int i = 0; i < 3; ++i) assert_true(plan.ctrl[3 * t + i] == first[3 * (t + 7 < 40 ? t + 7 : 39) + i]);
  assert_true(plan.start == 0.0701);
  // Back in time: as it is.
  r.time = 0;
  const SnPlan again = plan_now(x, &r);
  assert_true(again.ctrl[0] == first[3 * 7]);
  free_fixture(x);
}

static void deadline_before_all(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, true, 3);
  SnPlanRequest r = initial_request(x, 0);
  r.deadline = 0;
  const SnPlan plan = plan_now(x, &r);
  assert_int_equal(plan.status, SN_PLAN_WARM_START);
  assert_true(plan.nstep == 40 && plan.iterations == 0 && isnan(plan.cost_after) && !plan.deadline_met);
  assert_true(isfinite(plan.cost_now));
  free_fixture(x);
}

static void diverged(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 3);
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.max_velocity = 1e-3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  SnPlanRequest r = initial_request(x, 0);
  // An evaluation does not wait for a plan to take the settings over.
  const sn_real still[5 * 3] = {0};
  const SnEvaluateRequest q = {.qpos = r.qpos, .qvel = r.qvel, .act = r.act, .nstep = 5, .ctrl = still};
  SnEvaluation e;
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
  assert_true(e.diverged);
  SnPlan plan = plan_now(x, &r);
  assert_int_equal(plan.status, SN_PLAN_DIVERGED);
  assert_true(plan.nstep == 0 && plan.ctrl == NULL && isinf(plan.cost_after));
  s.max_velocity = 1e3;
  sn_planner_configure(x->p, &s, &err);
  plan = plan_now(x, &r);
  assert_int_equal(plan.status, SN_PLAN_OK);
  free_fixture(x);
}

static void live_tuning(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 3);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  const double now = plan_now(x, &r).cost_now;
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 3, 2, &err), SN_OK);
  const double heavier = plan_now(x, &r).cost_now;
  assert_true(heavier > 2 * now);
  const double goal[3] = {0, 0, 0};
  assert_int_equal(sn_planner_set_target(x->p, "reach", goal, 3, &err), SN_OK);
  assert_true(plan_now(x, &r).cost_now != heavier);
  assert_int_equal(sn_planner_set_target(x->p, "reach", NULL, 0, &err), SN_OK);
  assert_true(plan_now(x, &r).cost_now == heavier);
  assert_int_equal(sn_planner_set_weight(x->p, "nothing", 1, 1, &err), SN_ERR_NOT_FOUND);
  assert_int_equal(sn_planner_set_weight(x->p, "effort", 1, 1, &err), SN_ERR_ARGUMENT);
  SnSettings s = *sn_planner_settings(x->p);
  s.horizon = 41;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_STATE);
  s.horizon = 40;
  s.candidates = 200;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(plan_now(x, &r).candidates, 200);
  free_fixture(x);
}

// Between two iterations of one plan.
static void configured_in_flight(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 3);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  SnSettings s = *sn_planner_settings(x->p);
  s.candidates = 30;
  s.iterations = 3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_slice(x->p, INFINITY));
  SnPlan plan;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 3 && plan.candidates == 30);
  free_fixture(x);
}

// Weights, settings and version change together at the begin of an iteration, not within one, and the plan says which
// of them its costs belong to: equal to what an evaluation under these weights says.
static void retuned_in_flight(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, true, 3);
  SnError err = {0};
  SnPlan plan, peek;
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = 4;
  assert_false(sn_planner_peek(x->p, &peek));
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_peek(x->p, &peek));
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_false(sn_planner_slice(x->p, (double)atomic_load(&x->count.reads) + 40));  // the second is under way
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  sn_planner_set_version(x->p, 7);
  assert_true(sn_planner_peek(x->p, &peek));
  assert_true(peek.version == 0 && peek.iterations == 1 && peek.nstep == 40 && !peek.qpos);
  const double light = peek.cost_after, now = peek.cost_now;
  assert_false(sn_planner_slice(x->p, INFINITY));  // begun before the change: old weights
  assert_true(sn_planner_peek(x->p, &peek));
  assert_true(peek.version == 0 && peek.iterations == 2 && peek.cost_after <= light && peek.cost_now == now);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek));
  assert_true(peek.version == 7 && peek.iterations == 3 && peek.cost_after <= peek.cost_before);
  assert_true(peek.cost_after > 2 * light && peek.cost_now > 2 * now);
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 3, 2, &err), SN_OK);  // none is under way
  sn_planner_set_version(x->p, 8);
  assert_true(sn_planner_slice(x->p, INFINITY));
  sn_planner_finish(x->p, &plan);
  assert_true(plan.version == 8 && plan.iterations == 4 && plan.cost_after < peek.cost_after);
  const SnEvaluateRequest q = {.qpos = r.qpos, .qvel = r.qvel, .act = r.act, .nstep = plan.nstep, .ctrl = plan.ctrl};
  SnEvaluation e;
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
  assert_true(e.cost == plan.cost_after);
  assert_false(sn_planner_peek(x->p, &peek));
  free_fixture(x);
}

static void bad_requests(void **state) {
  (void)state;
  Fixture *x = make_fixture(1, false, 3);
  SnError err = {0};
  SnPlan plan;
  SnPlanRequest r = initial_request(x, 0);
  const sn_real bad[2] = {0, (sn_real)NAN};
  r.qvel = bad;
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "qvel[1]: nan"));
  r = initial_request(x, (double)INFINITY);
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_ERR_ARGUMENT);
  r = initial_request(x, 0);
  const sn_real quat[4] = {0, 0, 0, 0};
  r.mocap_quat = quat;
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "mocap_quat[0]: a quaternion of length 0"));
  r = initial_request(x, 0);
  SnSettings s = *sn_planner_settings(x->p);
  s.iterations = 0;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "there is no deadline"));
  // The planner is as before.
  r.max_iterations = 1;
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_OK);
  assert_true(plan.number == 1);
  const SnEvaluateRequest q = {.time = 0, .qpos = r.qpos, .qvel = bad, .act = r.act};
  SnEvaluation e;
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_ERR_ARGUMENT);
  free_fixture(x);
}

// Planning takes no memory from the heap, whichever planner it is.
static void no_allocation(void **state) {
  (void)state;
  SnError err = {0};
  Fixture *x = make_fixture(2, false, 3);
  SnPlanRequest r = initial_request(x, 0);
  r.want_states = true;
  for (int planner = SN_PLANNER_SAMPLING; planner <= SN_PLANNER_ADAM; ++planner) {
    SnSettings s = *sn_planner_settings(x->p);
    s.planner = planner;
    s.adam_iterations = 3;
    s.adam_starts = 2;
    assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
    plan_now(x, &r);
    const long before = sn_allocations();
    for (int k = 1; k < 4; ++k) {
      r.time += 0.05;
      r.latency = 0.02;
      const SnPlan plan = plan_now(x, &r);
      assert_true(isnan(plan.gradient_norm) == (planner == SN_PLANNER_SAMPLING));
    }
    assert_int_equal(sn_allocations(), before);
    assert_true(before > 0);
  }
  free_fixture(x);
}

// Our own engine as the body: the tip comes close to its goal and stays there.
static void closed_loop(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 1);
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.candidates = 32;
  s.iterations = 4;
  sn_planner_configure(x->p, &s, &err);
  sn_planner_set_weight(x->p, "elbow", 0, 0, &err);
  SnPlanRequest r = initial_request(x, 0);
  r.want_states = true;
  sn_real qpos[2], qvel[2], act[2];
  double distance = 0;
  for (int k = 0; k < 30; ++k) {
    const SnPlan plan = plan_now(x, &r);
    assert_int_equal(plan.status, SN_PLAN_OK);
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
    if (k >= 10) assert_true(distance < 0.1);
  }
  printf("closed loop: %.4f m from the goal at the end\n", distance);
  free_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(improves),
                                     cmocka_unit_test(threads),
                                     cmocka_unit_test(seeds),
                                     cmocka_unit_test(deadline),
                                     cmocka_unit_test(reproduced),
                                     cmocka_unit_test(slices),
                                     cmocka_unit_test(warm_start),
                                     cmocka_unit_test(deadline_before_all),
                                     cmocka_unit_test(diverged),
                                     cmocka_unit_test(live_tuning),
                                     cmocka_unit_test(configured_in_flight),
                                     cmocka_unit_test(retuned_in_flight),
                                     cmocka_unit_test(bad_requests),
                                     cmocka_unit_test(no_allocation),
                                     cmocka_unit_test(closed_loop)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
