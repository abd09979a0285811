// Planners on a time grid: the plan comes on the base step; a grid of equal steps is a planner of that time step, bit
// for bit; grids and planners change while a plan is made; grids that are refused.
#include "physics/step/step.h"
#include "tests/planner/adam_fixture.h"

static const int kinds[] = {SN_PLANNER_SAMPLING, SN_PLANNER_ADAM, SN_PLANNER_LBFGS, SN_PLANNER_ILQG,
                            SN_PLANNER_MPPI,     SN_PLANNER_CEM,  SN_PLANNER_HYBRID};
enum { KINDS = (int)(sizeof kinds / sizeof *kinds) };

static SnSettings grid_settings(int planner, const char *grid) {
  SnSettings s = adam_settings();
  s.planner = planner;
  s.iterations = 6;
  s.adam_iterations = s.lbfgs_iterations = 6;
  snprintf(s.grid, sizeof s.grid, "%s", grid);
  return s;
}

static Fixture *open_grid(int planner, const char *grid) {
  const SnSettings s = grid_settings(planner, grid);
  return open_fixture(1, false, &s, true);
}

// True where every row of the plan behind its lead is that of the step before it which it belongs to.
static bool holds_over_steps(const SnPlan *plan, const char *text) {
  SnError err = {0};
  SnGrid g;
  const int n = plan->nstep - plan->lead;
  const sn_real *ctrl = plan->ctrl + (size_t)(plan->lead * plan->nu);
  if (sn_grid_parse(text, n, &g, &err) != SN_OK) fail_msg("%s", err.text);
  for (int t = 0; t < n; ++t)
    if (memcmp(ctrl + t * plan->nu, ctrl + sn_grid_begin(&g, sn_grid_step(&g, t)) * plan->nu,
               sizeof *ctrl * (size_t)plan->nu))
      return false;
  return true;
}

static void plans_on_the_base_step(void **state) {
  (void)state;
  const char *const grid = "8x1,16x2";
  for (int i = 0; i < KINDS; ++i) {
    Fixture *x = open_grid(kinds[i], grid);
    for (int k = 0; k < 3; ++k) {
      SnPlanRequest r = initial_request(x, 0.03 * k);
      r.latency = 0.02;
      r.want_states = true;
      const SnPlan plan = plan_now(x, &r);
      assert_int_equal(plan.status, SN_PLAN_OK);
      assert_true(plan.nstep == 42 && plan.lead == 2 && plan.step == (double)SN_R(0.01) &&
                  plan.cost_after <= plan.cost_before);
      assert_true(holds_over_steps(&plan, grid));
      // the states are those that a body of the base step comes to under these controls
      SnWorld w;
      SnLane lane = {.n = 1};
      void *memory = aligned_alloc(64, (sn_world_size(body.m) + 63) / 64 * 64);
      sn_world_init(body.m, &w, memory);
      const SnState *s = sn_planner_initial(x->p);
      sn_world_set_state(body.m, &w, &(SnState){.qpos = s->qpos, .qvel = s->qvel, .act = s->act});
      for (int t = 0; t < plan.nstep; ++t) {
        for (int j = 0; j < plan.nq; ++j) assert_true(fabs((double)(plan.qpos[t * plan.nq + j] - w.qpos[j])) < 1e-5);
        memcpy(w.ctrl, plan.ctrl + t * plan.nu, sizeof *w.ctrl * (size_t)plan.nu);
        sn_step(body.m, &w, &lane);
      }
      free(memory);
    }
    free_fixture(x);
  }
}

// 20 steps of 2 x 10 ms are 20 steps of 20 ms: costs, norms, controls and gains have the same bits, from plan to plan.
static void check_equal_steps(int planner) {
  SnError err = {0};
  Fixture *x = open_grid(planner, "20x2");
  const size_t gains = planner == SN_PLANNER_ILQG ? 3 * 6 : 0;  // of a row
  SnPlannerDef def = sn_default_planner_def();
  SnTask other = *task;
  other.options.has_timestep = true;
  other.options.timestep = 0.02;
  def.model = body.m;
  def.task = &other;
  def.backend = x->cpu;
  def.settings = grid_settings(planner, "");
  def.settings.horizon = 20;
  def.seed = 3;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  for (int k = 0; k < 3; ++k) {
    SnPlanRequest r = initial_request(x, 0.04 * k);
    if (gains) r.gain_rows = 40;
    const SnPlan a = plan_now(x, &r);
    r = request_of(p, 0.04 * k);
    if (gains) r.gain_rows = 20;
    const SnPlan b = plan_of(p, &r);
    assert_true(a.nstep == 40 && b.nstep == 20 && a.iterations == b.iterations && a.iterations > 3);
    assert_true(a.cost_before == b.cost_before && a.cost_after == b.cost_after);
    assert_memory_equal(&a.gradient_norm, &b.gradient_norm, sizeof a.gradient_norm);
    assert_true(a.cost_after < a.cost_before && (gains > 0) == (a.gain != NULL));
    for (int t = 0; t < 40; ++t) {
      assert_memory_equal(a.ctrl + t * a.nu, b.ctrl + t / 2 * a.nu, sizeof *a.ctrl * (size_t)a.nu);
      if (gains)
        assert_memory_equal(a.gain + gains * (size_t)t, b.gain + gains * (size_t)(t / 2), gains * sizeof *a.gain);
    }
  }
  sn_planner_free(p);
  free_fixture(x);
}

static void equal_steps_are_another_time_step(void **state) {
  (void)state;
  check_equal_steps(SN_PLANNER_ADAM);
  check_equal_steps(SN_PLANNER_LBFGS);
  check_equal_steps(SN_PLANNER_ILQG);
}

// What a plan costs on a grid, by a planner that makes one iteration with it and has no other choice.
static double cost_on(const SnPlan *plan, const char *grid, double time) {
  SnSettings s = grid_settings(SN_PLANNER_ADAM, grid);
  s.adam_iterations = 1;
  Fixture *x = open_fixture(1, false, &s, true);
  SnPlannerSnapshot snapshot;
  SnError err = {0};
  sn_planner_snapshot(x->p, &snapshot, &err);
  snapshot.begun = true;
  snapshot.warm_time = time;
  snapshot.warm_ctrl = plan->ctrl;
  assert_int_equal(sn_planner_restore(x->p, &snapshot, &err), SN_OK);
  const SnPlan again = plan_at(x, time);
  const double cost = again.cost_before;
  free_fixture(x);
  return cost;
}

// Planners, grids and planners' knots change between the iterations of one plan, in slices of every length. What comes
// is the cost of the plan that is served, on the grid that is in force.
static void changes_under_way(void **state) {
  (void)state;
  static const char *const grids[] = {"", "20x2", "8x1,16x2", "10x1,10x3", "4x1,4x2,4x3,4x4"};
  enum { GRIDS = (int)(sizeof grids / sizeof *grids) };
  SnSettings s = grid_settings(SN_PLANNER_ADAM, "");
  s.adam_iterations = s.iterations = s.lbfgs_iterations = 12;
  s.adam_starts = 2;
  s.adam_moments = SN_MOMENTS_KEPT;
  Fixture *x = open_fixture(2, true, &s, true);
  int changes = 0;
  for (int k = 0; k < KINDS; ++k) {
    const SnPlanRequest r = initial_request(x, 0.03 * k);
    begin_plan(x->p, &r);
    while (!sn_planner_slice(x->p, (double)atomic_load(&x->count.reads) + 37 + 11 * k)) {
      s.planner = kinds[changes % KINDS];
      s.adam_knots = changes % 4 == 3 ? 7 : 0;
      snprintf(s.grid, sizeof s.grid, "%s", grids[changes % GRIDS]);
      configure(x, &s);
      sn_planner_set_version(x->p, (uint64_t)++changes);
    }
    SnPlan plan;
    sn_planner_finish(x->p, &plan);
    assert_int_equal(plan.status, SN_PLAN_OK);
    assert_true(plan.nstep == 40);
    const char *grid = plan.version == 0 ? "" : grids[(plan.version - 1) % GRIDS];  // that it was measured with
    assert_true(holds_over_steps(&plan, grid));
    const double cost = cost_on(&plan, grid, 0.03 * k);
    if (!(fabs(cost - plan.cost_after) < 1e-9 * cost))
      fail_msg("plan %d: cost %.17g, on the grid '%s' it is %.17g", k, plan.cost_after, grid, cost);
  }
  assert_true(changes > 30);
  free_fixture(x);
}

// A grid that comes into force with an iteration which does not count finds the last iterate on the grid of before.
static void last_iterate(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = grid_settings(SN_PLANNER_ADAM, "");
  s.adam_warm_start = SN_WARM_START_LAST;
  Fixture *x = open_fixture(1, true, &s, true);
  const SnPlanRequest r = initial_request(x, 0);
  begin_plan(x->p, &r);
  while (sn_planner_iterations(x->p) < 3) sn_planner_slice(x->p, INFINITY);
  snprintf(s.grid, sizeof s.grid, "20x2");
  configure(x, &s);
  sn_planner_slice(x->p, (double)atomic_load(&x->count.reads) + 5);
  SnPlan plan;
  SnPlannerSnapshot snapshot;
  sn_planner_finish(x->p, &plan);
  assert_int_equal(plan.iterations, 3);
  assert_int_equal(sn_planner_snapshot(x->p, &snapshot, &err), SN_OK);
  assert_memory_equal(snapshot.warm_ctrl, plan.ctrl, ctrl_bytes(&plan));
  free_fixture(x);
}

// Moments that are kept are resampled: the same bits after a snapshot, and another grid forgets them.
static void restored(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = grid_settings(SN_PLANNER_ADAM, "8x1,16x2");
  s.adam_moments = SN_MOMENTS_KEPT;
  Fixture *x = open_fixture(1, false, &s, true), *y = open_fixture(1, false, &s, true);
  Fixture *z = open_fixture(1, false, &s, true);
  SnPlannerSnapshot snapshot;
  for (int k = 0; k < 3; ++k) plan_at(x, 0.03 * k);
  assert_int_equal(sn_planner_snapshot(x->p, &snapshot, &err), SN_OK);
  assert_int_equal(snapshot.adam.grid.parts, 2);
  if (sn_planner_restore(y->p, &snapshot, &err) != SN_OK) fail_msg("%s", err.text);
  snapshot.adam.grid = (SnGrid){0};
  if (sn_planner_restore(z->p, &snapshot, &err) != SN_OK) fail_msg("%s", err.text);
  const SnPlan a = plan_at(x, 0.09), b = plan_at(y, 0.09), c = plan_at(z, 0.09);
  assert_true(a.cost_after == b.cost_after && a.cost_after < a.cost_before);
  assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  assert_true(c.cost_before == b.cost_before && c.cost_after != b.cost_after);  // moments of another grid are forgotten
  free_fixture(x);
  free_fixture(y);
  free_fixture(z);
}

static void expect_refused(Fixture *x, const char *grid, const char *const words[]) {
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  snprintf(s.grid, sizeof s.grid, "%s", grid);
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_ARGUMENT);
  for (int i = 0; words[i]; ++i)
    if (!strstr(err.text, words[i])) fail_msg("'%s' is not in: %s", words[i], err.text);
  assert_string_equal(sn_planner_settings(x->p)->grid, "8x1,16x2");
}

static void refused(void **state) {
  (void)state;
  Fixture *x = open_grid(SN_PLANNER_ADAM, "8x1,16x2");
  expect_refused(x, "8x1,15x2", (const char *const[]){"grid: '8x1,15x2' lasts 38 base steps", "the horizon, 40", NULL});
  expect_refused(x, "many", (const char *const[]){"grid: 'many' is no grid", "64x1, 32x2", NULL});
  expect_refused(x, "4x1,6x6",
                 (const char *const[]){"grid: '4x1,6x6'", "a step of 6 x 0.01 s = 0.06 s", "half of the smallest",
                                       "0.1 s of limit of joint 'shoulder'", NULL});
  const SnPlan plan = plan_at(x, 0);
  assert_true(plan.status == SN_PLAN_OK && holds_over_steps(&plan, "8x1,16x2"));
  // and a planner is not made with such a grid
  SnError err = {0};
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = x->cpu;
  def.settings = grid_settings(SN_PLANNER_ADAM, "4x1,6x6");
  assert_null(sn_planner_create(&def, &err));
  assert_non_null(strstr(err.text, "limit of joint 'shoulder'"));
  free_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_on_the_base_step),
                                     cmocka_unit_test(equal_steps_are_another_time_step),
                                     cmocka_unit_test(changes_under_way),
                                     cmocka_unit_test(last_iterate),
                                     cmocka_unit_test(restored),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
