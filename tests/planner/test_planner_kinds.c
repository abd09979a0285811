// The planners beside sampling and Adam: improvement, determinism for any threads and pauses, the numbers that a plan
// reports, changes while they run, and backends that lack what they need.
#include "tests/planner/adam_fixture.h"
#include "tests/support/slow.h"
#include "tests/support/tolerance.h"

static const int kinds[] = {SN_PLANNER_LBFGS, SN_PLANNER_MPPI, SN_PLANNER_CEM, SN_PLANNER_HYBRID};
enum { KINDS = (int)(sizeof kinds / sizeof *kinds) };

static SnSettings settings_of(int kind) {
  SnSettings s = task->settings;
  s.planner = kind;
  s.candidates = 16;
  s.iterations = kind == SN_PLANNER_HYBRID ? 2 : 5;
  s.cem_elites = 4;
  s.lbfgs_iterations = 20;
  s.lbfgs_first = 0.05;
  s.hybrid_refined = 2;
  s.hybrid_gradients = 4;
  s.adam_rate = 0.05;
  return s;
}

static const char *name_of(int kind) {
  static char text[64];
  return sn_settings_choice_name(sn_settings_find("planner"), kind, text, sizeof text);
}

// What a plan says of its cost is what its controls cost, within their ranges, and never more than the warm start.
static void improves(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; ++i) {
    const SnSettings s = settings_of(kinds[i]);
    Fixture *x = open_fixture(1, false, &s, true);
    for (int k = 0; k < 3; ++k) {
      const SnPlan plan = plan_at(x, 0.05 * k);
      printf("%s: cost before %.4f, after %.4f, %d iterations\n", name_of(kinds[i]), plan.cost_before, plan.cost_after,
             plan.iterations);
      assert_int_equal(plan.status, SN_PLAN_OK);
      assert_true(plan.cost_after <= plan.cost_before);
      if (k == 0) assert_true(plan.cost_after < 0.7 * plan.cost_before && evaluate(x, &plan) == plan.cost_after);
      for (int j = 0; j < plan.nstep * plan.nu; ++j)
        assert_true(plan.ctrl[j] >= (j % 3 ? 0 : -3) && plan.ctrl[j] <= (j % 3 ? 1 : 3));
    }
    free_fixture(x);
  }
}

static void same_plans(const SnPlan *a, const SnPlan *b) {
  assert_true(a->iterations == b->iterations && a->candidates == b->candidates);
  assert_true(a->cost_before == b->cost_before && a->cost_after == b->cost_after);
  assert_memory_equal(&a->gradient_norm, &b->gradient_norm, sizeof a->gradient_norm);
  assert_memory_equal(a->ctrl, b->ctrl, ctrl_bytes(a));
  assert_memory_equal(a->term, b->term, sizeof *a->term * (size_t)a->nterm);
}

// The same plans in slices of any length and with any number of threads.
static void repeats(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; ++i) {
    const SnSettings s = settings_of(kinds[i]);
    Fixture *x = open_fixture(1, false, &s, true);
    for (int threads = 2; threads <= 3; ++threads) {
      Fixture *y = open_fixture(threads, true, &s, true);
      SnError err = {0};
      assert_int_equal(sn_planner_reset(x->p, 3, &err), SN_OK);
      for (int k = 0; k < 3; ++k) {
        const SnPlan a = plan_at(x, 0.05 * k);
        const SnPlanRequest r = initial_request(y, 0.05 * k);
        begin_plan(y->p, &r);
        int n = 0;
        while (!sn_planner_slice(y->p, (double)atomic_load(&y->count.reads) + 60)) ++n;
        SnPlan b;
        sn_planner_finish(y->p, &b);
        assert_true(n > 5);
        same_plans(&a, &b);
      }
      free_fixture(y);
    }
    free_fixture(x);
  }
}

// A plan that its deadline ends anywhere is made again from the iterations and candidates that it reports.
static void reported_numbers(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; ++i) {
    const SnSettings s = settings_of(kinds[i]);
    Fixture *x = open_fixture(2, true, &s, true), *y = open_fixture(1, false, &s, true);
    SnError err = {0};
    int cut = 0, most = 0;
    for (int n = 1; n <= 12; ++n) {
      assert_int_equal(sn_planner_reset(x->p, 3, &err), SN_OK);
      assert_int_equal(sn_planner_reset(y->p, 3, &err), SN_OK);
      SnPlanRequest r = initial_request(x, 0);
      r.deadline = (double)atomic_load(&x->count.reads) + 400.0 * n * n;
      const SnPlan a = plan_now(x, &r);
      if (a.status == SN_PLAN_WARM_START) continue;
      r = initial_request(y, 0);
      r.max_iterations = a.iterations;
      r.max_candidates = a.candidates;
      const SnPlan b = plan_now(y, &r);
      same_plans(&a, &b);
      cut += a.candidates < s.candidates && kinds[i] != SN_PLANNER_LBFGS;
      most = a.iterations > most ? a.iterations : most;
    }
    printf("%s: %d plans of 12 ended within an iteration\n", name_of(kinds[i]), cut);
    assert_true(most > 2 && (cut > 0 || kinds[i] == SN_PLANNER_LBFGS));
    free_fixture(x);
    free_fixture(y);
  }
}

typedef struct Sledge {
  SnOracle o;
  SnTask *task;
  SnPool *pool;
  SnBackend *cpu;
  SnPlanner *p;
} Sledge;

// A sledge and its motor: a control has that effect, and a range of 8 over that.
static void open_sledge(Sledge *x, int kind, double gear) {
  static const char *const text =
      "model: sledge.xml\nsettings: {horizon: 20, knots: 5}\nterms:\n"
      "  - {name: place, residual: {joint_position: all}, target: [0.5], norm: squared, weight: 3, terminal: 9}\n"
      "  - {name: speed, residual: {joint_velocity: all}, norm: squared, weight: 0.2}\n";
  char xml[500];
  SnError err = {0};
  snprintf(
      xml, sizeof xml,
      "<mujoco><option timestep='.02'/><worldbody><body><joint name='rail' type='slide' axis='1 0 0' damping='.3'/>"
      "<geom size='.1' mass='1'/></body></worldbody><actuator><motor joint='rail' gear='%g' ctrlrange='-%g %g' "
      "ctrllimited='true'/></actuator></mujoco>",
      gear, 8 / gear, 8 / gear);
  sn_oracle_load_string(&x->o, xml);
  x->task = sn_task_parse(text, strlen(text), "task.yaml", &err);
  if (!x->task) fail_msg("%s", err.text);
  x->pool = sn_pool_create(1, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = x->cpu;
  def.settings = settings_of(kind);
  def.settings.horizon = 20;
  def.settings.adam_iterations = def.settings.ilqg_iterations = 5;
  def.settings.ilqg_regularization = 1e-3;
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
}

static void close_sledge(Sledge *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  sn_task_free(x->task);
  sn_oracle_free(&x->o);
}

static void plan_sledge(int kind, double gear, double number[3], double *ctrl) {
  Sledge x;
  open_sledge(&x, kind, gear);
  const SnPlanRequest r = request_of(x.p, 0);
  const SnPlan plan = plan_of(x.p, &r);
  assert_true(plan.nstep == 20 && plan.nu == 1);
  number[0] = plan.cost_after;
  number[1] = plan.cost_before;
  number[2] = isnan(plan.gradient_norm) ? 0 : plan.gradient_norm;
  for (int t = 0; t < 20; ++t) ctrl[t] = (double)plan.ctrl[t];
  close_sledge(&x);
}

// Controls are sought in units of their range: of a quarter of the effect over four times the range plans are four
// times as large, and cost the same.
static void units(void **state) {
  (void)state;
  for (int kind = 0; kind < SN_PLANNER_KINDS; ++kind) {
    double a[3], b[3], ctrl[2][20];
    plan_sledge(kind, 4, a, ctrl[0]);
    plan_sledge(kind, 1, b, ctrl[1]);
    printf("%s: %.15g and %.15g\n", name_of(kind), a[0], b[0]);
    assert_true(a[0] < 0.9 * a[1] && fabs(a[0] - b[0]) < SN_TOL(1e-9, 1e-3) * a[0]);
    assert_true(fabs(a[2] - b[2]) <= SN_TOL(1e-7, 1e-2) * a[2]);
    for (int t = 0; t < 20; ++t) assert_true(fabs(4 * ctrl[0][t] - ctrl[1][t]) < SN_TOL(1e-7, 1e-2));
  }
}

// A warm start that diverges, all of it at a limit: lbfgs goes back half the way until it does not, and from there
// finds what it finds without that start.
static void limits_after_a_way_back(void **state) {
  (void)state;
  double cost[2];
  for (int astray = 0; astray < 2; ++astray) {
    Sledge x;
    SnError err = {0};
    SnSettings s = settings_of(SN_PLANNER_LBFGS);
    s.horizon = 20;
    s.lbfgs_iterations = 60;
    open_sledge(&x, SN_PLANNER_LBFGS, 4);
    SnPlanRequest r = request_of(x.p, 0);
    r.qpos = &(sn_real){-10};
    const SnPlan far = plan_of(x.p, &r);
    for (int t = 0; t < 20 && astray; ++t) assert_true(far.ctrl[t] == 2);
    if (!astray) assert_int_equal(sn_planner_reset(x.p, 3, &err), SN_OK);
    s.max_velocity = 1.5;
    if (sn_planner_configure(x.p, &s, &err) != SN_OK) fail_msg("%s", err.text);
    r.qpos = &(sn_real){SN_R(0.3)};
    const SnPlan plan = plan_of(x.p, &r);
    assert_true(astray ? isinf(plan.cost_before) : isfinite(plan.cost_before));
    printf("cost %.9g, controls from %.3f\n", plan.cost_after, (double)plan.ctrl[0]);
    assert_true(plan.ctrl[0] > 0.6);
    cost[astray] = plan.cost_after;
    close_sledge(&x);
  }
  assert_true(fabs(cost[0] - cost[1]) < SN_TOL(1e-4, 1e-3) * cost[0]);
}

// Settings of lbfgs's rule count from the next iteration on.
static void rule_of_lbfgs(void **state) {
  (void)state;
  for (int setting = 0; setting < 4; ++setting) {
    double cost[2];
    for (int changed = 0; changed < 2; ++changed) {
      SnSettings s = settings_of(SN_PLANNER_LBFGS);
      Fixture *x = open_fixture(1, false, &s, true);
      const SnPlanRequest r = initial_request(x, 0);
      begin_plan(x->p, &r);
      for (int n = 0; n < 6; ++n) assert_false(sn_planner_slice(x->p, INFINITY));
      if (changed && setting == 0) s.lbfgs_longest = 1e-3;
      if (changed && setting == 1) s.lbfgs_first = 1e-4;
      if (changed && setting == 2) s.lbfgs_memory = 1;
      if (changed && setting == 3) s.lbfgs_trials = 1;
      configure(x, &s);
      cost[changed] = finish_plan(x->p).cost_after;
      free_fixture(x);
    }
    if (cost[0] == cost[1]) fail_msg("setting %d changes nothing", setting);
  }
}

// Where a deadline falls leaves no trace but the numbers of its plan: the plan after it is that after one that was made
// from these numbers, or after one that had no time at all. Also where knots change in between.
static void after_a_deadline(void **state) {
  (void)state;
  for (int kind = 0; kind < SN_PLANNER_KINDS; ++kind) {
    int cut = 0, none = 0;
    for (int n = 0; n < 24; n += SN_SLOW ? 3 : 1) {
      SnSettings s = settings_of(kind);
      s.adam_moments = SN_MOMENTS_KEPT;
      s.adam_iterations = s.ilqg_iterations = 4;
      s.adam_knots = n % 2 ? 6 : 0;
      s.knots = 9;
      Fixture *x = open_fixture(2, true, &s, true), *y = open_fixture(1, true, &s, true);
      for (int k = 0; k < 2; ++k) {
        const SnPlan a = plan_at(x, 0.05 * k), b = plan_at(y, 0.05 * k);
        same_plans(&a, &b);
      }
      SnPlanRequest r = initial_request(x, 0.12);
      r.deadline = (double)atomic_load(&x->count.reads) + 4.0 * n * n;
      const SnPlan a = plan_now(x, &r);
      SnPlan b;
      r.deadline = (double)INFINITY;
      r.max_iterations = a.iterations;
      r.max_candidates = a.candidates;
      begin_plan(y->p, &r);
      while (a.iterations > 0 && !sn_planner_slice(y->p, INFINITY)) continue;
      sn_planner_finish(y->p, &b);
      none += a.iterations == 0;
      cut += a.iterations > 0;
      if (n % 3 == 0) s.knots = 7;
      if (n % 4 >= 2) s.adam_knots = 9;
      configure(x, &s);
      configure(y, &s);
      const SnPlan c = plan_at(x, 0.15), d = plan_at(y, 0.15);
      same_plans(&c, &d);
      SnPlannerSnapshot snapshot;
      SnError err = {0};
      assert_int_equal(sn_planner_snapshot(x->p, &snapshot, &err), SN_OK);
      assert_in_range(snapshot.phase, 0, s.knots == 7 ? 6 : 4);  // less than the spacing, however long it runs
      free_fixture(x);
      free_fixture(y);
    }
    printf("%s: %d plans without an iteration, %d with some\n", name_of(kind), none, cut);
    assert_true(none > 0 && cut > 2);
  }
}

// Times that the clock is read in a plan of one iteration.
static int reads_of(int kind, int candidates) {
  SnSettings s = settings_of(kind);
  s.candidates = candidates;
  s.iterations = 1;
  Fixture *x = open_fixture(1, true, &s, true);
  SnPlanRequest r = initial_request(x, 0);
  r.deadline = 1e9;
  const int before = (int)atomic_load(&x->count.reads);
  const SnPlan plan = plan_now(x, &r);
  const int reads = (int)atomic_load(&x->count.reads) - before;
  assert_int_equal(plan.candidates, kind == SN_PLANNER_SAMPLING ? candidates : candidates + 1);
  free_fixture(x);
  return reads;
}

// MPPI and CEM read the clock before the mean of each control, too: it is that of all noises. The mean is a rollout
// more than sampling has, which is one of a candidate there.
static void means_pause(void **state) {
  (void)state;
  const int nu = body.m->nu, sampling = reads_of(SN_PLANNER_SAMPLING, 17);
  const int mppi = reads_of(SN_PLANNER_MPPI, 16), cem = reads_of(SN_PLANNER_CEM, 16);
  assert_true(mppi == cem && mppi >= sampling + nu);
}

// From one to another between plans; a plan in progress goes on as it began. Weights that change within a plan count,
// and the best so far is measured anew.
static void live(void **state) {
  (void)state;
  SnSettings s = settings_of(kinds[0]);
  Fixture *x = open_fixture(2, false, &s, true);
  for (int i = 0; i < 4 * KINDS; ++i) {
    const int kind = kinds[i % KINDS], other = kinds[(i + 1 + i / KINDS) % KINDS];
    SnError err = {0};
    s = settings_of(kind);
    configure(x, &s);
    const SnPlanRequest r = initial_request(x, 0.02 * i);
    begin_plan(x->p, &r);
    sn_planner_slice(x->p, INFINITY);
    s = settings_of(other);
    s.noise_scale *= 1.5;
    configure(x, &s);
    const double weight = 1 + 0.1 * i;
    const char *term = sn_cost_name(sn_planner_cost(x->p), 0);
    assert_int_equal(sn_planner_set_weight(x->p, term, weight, weight, &err), SN_OK);
    sn_planner_set_version(x->p, (uint64_t)i + 7);
    const SnPlan plan = finish_plan(x->p);
    assert_int_equal(plan.status, SN_PLAN_OK);
    assert_true(plan.version == (uint64_t)i + 7 && plan.cost_after <= plan.cost_before);
  }
  free_fixture(x);
}

// Planners by gradients are refused by name where there are none; the one in force goes on.
static void refused(void **state) {
  (void)state;
  const SnSettings sampling = settings_of(SN_PLANNER_SAMPLING);
  Fixture *x = open_fixture(1, false, &sampling, false);
  SnBackend *b = &x->differences.table;
  b->reserve_gradients = NULL;
  b->reserve_multistart = NULL;
  for (int i = 0; i < KINDS; ++i) {
    const SnSettings s = settings_of(kinds[i]);
    const bool descends = kinds[i] == SN_PLANNER_LBFGS || kinds[i] == SN_PLANNER_HYBRID;
    SnError err = {0};
    char text[200];
    snprintf(text, sizeof text, "planner: %s needs gradients, and the backend '%s' makes none", name_of(kinds[i]),
             sn_backend_name(b));
    assert_int_equal(sn_planner_configure(x->p, &s, &err), descends ? SN_ERR_UNSUPPORTED : SN_OK);
    if (descends) assert_string_equal(err.text, text);
    assert_int_equal(plan_at(x, 0.01 * i).status, SN_PLAN_OK);
  }
  free_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(improves),
                                     cmocka_unit_test(repeats),
                                     cmocka_unit_test(units),
                                     cmocka_unit_test(limits_after_a_way_back),
                                     cmocka_unit_test(rule_of_lbfgs),
                                     cmocka_unit_test(reported_numbers),
                                     cmocka_unit_test(after_a_deadline),
                                     cmocka_unit_test(means_pause),
                                     cmocka_unit_test(live),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
