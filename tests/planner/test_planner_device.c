// A planner on a device: jobs of several iterations, slices, deadlines, live changes, plans shown ahead of their turn,
// and what is refused. The device is a script (device_backend.h).
#include "tests/planner/device_fixture.h"

// ---- jobs ----

// However many iterations a job has: the same plans, from one to the next.
static void jobs(void **state) {
  (void)state;
  const int lengths[] = {1, 3, 4, 100}, asked[] = {12, 4, 3, 1};
  SnSettings s = adam_settings(12);
  s.adam_moments = SN_MOMENTS_KEPT;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    Fixture *x = make_fixture(lengths[i], &s, false), *y = make_fixture(0, &s, false);
    for (int k = 0; k < 3; ++k) {
      SnPlanRequest r = initial_request(x, 0.05 * k);
      x->d.jobs = 0;
      const SnPlan a = plan_now(x, &r), b = plan_now(y, &r);
      same_plan(&a, &b);
      assert_true(a.iterations == 12 && a.cost_after < a.cost_before && x->d.jobs == asked[i]);
      assert_string_equal(a.backend, "scripted");
      assert_string_equal(b.backend, "cpu");
      assert_true(!a.device_lost && !a.remark[0]);
    }
    // as many as are asked for, the last with fewer candidates
    SnPlanRequest r = initial_request(x, 0.2);
    r.max_iterations = 6;
    r.max_candidates = 1;
    const SnPlan a = plan_now(x, &r), b = plan_now(y, &r);
    same_plan(&a, &b);
    assert_true(a.iterations == 6 && a.candidates == 1);
    free_fixture(x);
    free_fixture(y);
  }
}

// A slice holds as many iterations as fit, at least one; between two slices the best so far can be looked at.
static void slices(void **state) {
  (void)state;
  const double lengths[] = {2.5, 0.25};
  const int wanted[] = {2, 1};
  const SnSettings s = adam_settings(7);
  Fixture *y = make_fixture(0, &s, false);
  const SnPlanRequest r = initial_request(y, 0);
  const SnPlan b = plan_now(y, &r);
  for (int i = 0; i < 2; ++i) {
    Fixture *x = make_fixture(100, &s, false);
    SnPlan plan, peek;
    double last = INFINITY;
    int done = 0;
    x->d.seconds = 1;
    begin(x, &r);
    assert_false(sn_planner_peek(x->p, &peek));
    while (!sn_planner_slice(x->p, x->d.now + lengths[i])) {
      done += wanted[i];
      assert_int_equal(sn_planner_iterations(x->p), done);
      assert_true(sn_planner_peek(x->p, &peek) && peek.iterations == done && peek.cost_after <= last);
      last = peek.cost_after;
    }
    assert_true(done == 6);
    sn_planner_finish(x->p, &plan);
    same_plan(&plan, &b);
    free_fixture(x);
  }
  free_fixture(y);
}

// No iteration is begun that would end after the deadline, nobody waits for it in vain, and the number of iterations
// reproduces the plan.
static void deadline(void **state) {
  (void)state;
  const SnSettings s = adam_settings(0);
  for (int n = 0; n < 5; ++n) {
    Fixture *x = make_fixture(4, &s, false), *y = make_fixture(0, &s, false);
    SnPlanRequest r = initial_request(x, 0);
    SnPlan plan;
    x->d.seconds = 1;
    x->d.now = 50;
    r.deadline = 50 + 2.4 * n;
    begin(x, &r);
    int calls = 0;
    while (!sn_planner_slice(x->p, n % 2 ? INFINITY : x->d.now + 1.5)) ++calls;
    assert_true(calls < 20);
    sn_planner_finish(x->p, &plan);
    assert_true(plan.deadline_met && plan.iterations == (int)(2.4 * n));
    assert_int_equal(plan.status, n == 0 ? SN_PLAN_WARM_START : SN_PLAN_OK);
    if (n > 0) {
      r.deadline = INFINITY;
      r.max_iterations = plan.iterations;
      r.max_candidates = plan.candidates;
      const SnPlan again = plan_now(y, &r);
      same_plan(&plan, &again);
    }
    free_fixture(x);
    free_fixture(y);
  }
}

// Between two slices; not within one.
static void tuned(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings(9);
  Fixture *x = make_fixture(100, &s, false);
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan, peek;
  x->d.seconds = 1;
  begin(x, &r);
  assert_false(sn_planner_slice(x->p, x->d.now + 3));
  assert_true(sn_planner_peek(x->p, &peek) && peek.iterations == 3 && peek.version == 0);
  const double light = peek.cost_after;
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  s.adam_iterations = 11;
  s.adam_starts = 3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  sn_planner_set_version(x->p, 4);
  assert_false(sn_planner_slice(x->p, x->d.now + 3));
  assert_true(sn_planner_peek(x->p, &peek) && peek.iterations == 6 && peek.version == 4 && peek.candidates == 3);
  assert_true(peek.cost_after > 2 * light && peek.cost_after <= peek.cost_before);
  while (!sn_planner_slice(x->p, x->d.now + 3)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 11 && plan.version == 4 && evaluate(x, &plan) == plan.cost_after);
  free_fixture(x);
}

// Shown to the device, with the lead rolled forward, any number of times; a plan that ends before its turn; a change
// that comes too late for the job.
static void submitted(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings(5);
  Fixture *x = make_fixture(100, &s, false), *y = make_fixture(0, &s, false);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  r.latency = 0.05;
  sn_planner_submit(x->p);
  assert_int_equal(x->d.submits, 0);
  begin(x, &r);
  sn_planner_submit(x->p);
  sn_planner_submit(x->p);
  assert_true(x->d.submits == 2 && x->d.job && x->d.job->iterations == 5 && x->d.job->init && x->d.jobs == 0);
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  sn_planner_set_version(x->p, 1);
  assert_true(sn_planner_slice(x->p, INFINITY));
  sn_planner_submit(x->p);
  assert_int_equal(x->d.submits, 2);
  sn_planner_finish(x->p, &plan);
  begin(y, &r);
  sn_planner_submit(y->p);
  while (!sn_planner_slice(y->p, INFINITY)) continue;
  SnPlan other;
  sn_planner_finish(y->p, &other);
  assert_true(plan.version == 0 && plan.iterations == 5 && plan.lead == 5);
  same_plan(&plan, &other);
  // never sliced: the warm start; and the next plan drops what was shown
  begin(x, &r);
  sn_planner_submit(x->p);
  sn_planner_finish(x->p, &plan);
  assert_true(plan.status == SN_PLAN_WARM_START && !x->d.job);
  begin(x, &r);
  sn_planner_submit(x->p);
  begin(x, &r);
  assert_null(x->d.job);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 5 && plan.version == 1);
  // sampling has nothing to show
  s.planner = SN_PLANNER_SAMPLING;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  x->d.submits = 0;
  begin(x, &r);
  sn_planner_submit(x->p);
  assert_int_equal(x->d.submits, 0);
  free_fixture(x);
  free_fixture(y);
}

// Moments are kept from plan to plan; not beyond a job that was shown and dropped, of which nobody knows how far it
// came.
static void dropped(void **state) {
  (void)state;
  SnSettings s = adam_settings(5);
  s.adam_moments = SN_MOMENTS_KEPT;
  Fixture *x = make_fixture(100, &s, false);
  const SnPlanRequest r = initial_request(x, 0);
  plan_now(x, &r);
  begin(x, &r);
  sn_planner_submit(x->p);
  assert_true(x->d.job->init && x->d.job->keep);
  begin(x, &r);
  sn_planner_submit(x->p);
  assert_true(x->d.job->init && !x->d.job->keep);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  begin(x, &r);
  sn_planner_submit(x->p);
  assert_true(x->d.job->keep);
  free_fixture(x);
}

// More capacity is new memory, where nothing is remembered: the next job begins anew, also when as many starts as
// before are wanted.
static void new_capacity(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings(9);
  Fixture *x = make_fixture(100, &s, false);
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  x->d.seconds = 1;
  begin(x, &r);
  assert_false(sn_planner_slice(x->p, x->d.now + 3));
  sn_planner_submit(x->p);
  assert_false(x->d.job->init);
  assert_false(sn_planner_slice(x->p, x->d.now + 3));
  for (int starts = 5; starts >= 2; starts -= 3) {
    s.adam_starts = starts;
    assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  }
  sn_planner_submit(x->p);
  assert_true(x->d.job->init && x->d.job->measured && x->d.job->starts == 2);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 9 && plan.cost_after < plan.cost_before);
  free_fixture(x);
}

// ---- what is refused ----

static void without_gradients(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings adam = adam_settings(4), sampling = task->settings;
  Fixture *x = make_fixture(3, &sampling, false);
  static const char text[] = "planner: adam needs gradients, and the backend 'scripted' makes none";
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  x->d.table.reserve_multistart = NULL;
  assert_int_equal(sn_planner_configure(x->p, &adam, &err), SN_ERR_UNSUPPORTED);
  assert_string_equal(err.text, text);
  begin(x, &r);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_int_equal(sn_planner_configure(x->p, &adam, &err), SN_ERR_UNSUPPORTED);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.status == SN_PLAN_OK && plan.iterations == 2);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = &x->d.table;
  def.settings = adam;
  assert_null(sn_planner_create(&def, &err));
  assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
  assert_string_equal(err.text, text);
  free_fixture(x);
}

// Settings without room: refused at once where nothing is under way; else the plan goes on with the old ones, weights
// and version too, and says so, until something else is set.
static void without_capacity(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings(6);
  Fixture *x = make_fixture(2, &s, false);
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan, peek;
  x->d.most = 3;
  s.adam_starts = 4;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_LIMIT);
  assert_string_equal(err.text, "4 starts do not fit: room for 3");
  assert_int_equal(sn_planner_settings(x->p)->adam_starts, 2);
  begin(x, &r);
  sn_planner_submit(x->p);  // under way
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  sn_planner_set_version(x->p, 5);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek));
  const double before = peek.cost_after;
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.candidates == 2 && plan.version == 0 && plan.cost_after <= before && plan.iterations == 6);
  assert_string_equal(plan.remark, "settings are not in force: 4 starts do not fit: room for 3");
  // the next plan tries again, and the next one has room
  plan = plan_now(x, &r);
  assert_true(plan.candidates == 2 && plan.version == 0 && plan.remark[0]);
  begin(x, &r);
  assert_false(sn_planner_slice(x->p, INFINITY));
  s.adam_starts = 3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  sn_planner_set_version(x->p, 6);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.candidates == 3 && plan.version == 6 && plan.cost_after > 2 * before);
  plan = plan_now(x, &r);
  assert_true(plan.candidates == 3 && plan.version == 6 && !plan.remark[0]);
  free_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(jobs),
                                     cmocka_unit_test(slices),
                                     cmocka_unit_test(deadline),
                                     cmocka_unit_test(tuned),
                                     cmocka_unit_test(submitted),
                                     cmocka_unit_test(dropped),
                                     cmocka_unit_test(new_capacity),
                                     cmocka_unit_test(without_gradients),
                                     cmocka_unit_test(without_capacity)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
