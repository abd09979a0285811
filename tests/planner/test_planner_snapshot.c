// Snapshots of a planner: another one that is restored from one makes the same plans, bit for bit; and so does one that
// gets the same requests with the iterations and candidates that plans report, whenever a deadline cut them off.
#include "tests/planner/planner_fixture.h"

enum { PLANS = 9, TAKEN = 4 };  // plans of a run, and those before the snapshot

// Describes a run.
typedef struct Run {
  SnSettings settings;
  bool act;        // activations are given, else estimated
  bool applied;    // what was applied is told
  double latency;  // [s]
  double budget;   // readings of the clock that a plan gets; 0: as many as it wants
} Run;

static Fixture *open_run(const Run *run, int threads) {
  SnError err = {0};
  Fixture *x = make_fixture(threads, run->budget > 0, 5);
  if (sn_planner_configure(x->p, &run->settings, &err) != SN_OK) fail_msg("%s", err.text);
  return x;
}

// Plan k of a run, from a state of its own. With `as` it gets as many iterations and candidates as that plan had.
static SnPlan plan_at(Fixture *x, const Run *run, int k, const SnPlan *as) {
  static sn_real qpos[2], qvel[2], act[2], mocap[3], quat[4] = {1};
  static double time[2], ctrl[6];
  SnPlanRequest r = initial_request(x, 0.013 * k);
  SnApplied applied = {.n = 2, .time = time, .ctrl = ctrl};
  for (int i = 0; i < 2; ++i) {
    qpos[i] = r.qpos[i] + (sn_real)(0.02 * k * (i + 1));
    qvel[i] = (sn_real)(0.3 * sin(k + i));
    act[i] = (sn_real)(0.1 + 0.05 * ((k + i) % 5));
    time[i] = r.time - 0.01 * (2 - i);
    for (int j = 0; j < 3; ++j) ctrl[3 * i + j] = 0.1 * (i + j);
  }
  for (int i = 0; i < 3; ++i) mocap[i] = (sn_real)(0.2 + 0.01 * k * i);
  r.qpos = qpos;
  r.qvel = qvel;
  r.act = run->act ? act : NULL;
  r.mocap_pos = k % 3 == 0 ? mocap : NULL;  // else it is that of the plan before
  r.mocap_quat = k % 3 == 0 ? quat : NULL;
  r.applied = run->applied ? &applied : NULL;
  r.latency = run->latency;
  if (as) {
    r.max_iterations = as->iterations;
    r.max_candidates = as->candidates;
  } else if (run->budget > 0) {
    r.deadline = (double)atomic_load(&x->count.reads) + run->budget + 7 * k;
  }
  return plan_now(x, &r);
}

static void restore(Fixture *to, const Fixture *from) {
  SnError err = {0};
  SnPlannerSnapshot s;
  assert_int_equal(sn_planner_snapshot(from->p, &s, &err), SN_OK);
  if (sn_planner_restore(to->p, &s, &err) != SN_OK) fail_msg("%s", err.text);
}

// Whether plans are the same, but for the norm of the gradient: a deadline may leave no time for the last one.
static bool same_controls(const SnPlan *a, const SnPlan *b) {
  return a->status == b->status && a->number == b->number && a->nstep == b->nstep && a->lead == b->lead &&
         a->iterations == b->iterations && a->candidates == b->candidates &&
         memcmp(&a->cost_before, &b->cost_before, sizeof a->cost_before) == 0 &&
         memcmp(&a->cost_after, &b->cost_after, sizeof a->cost_after) == 0 &&
         memcmp(&a->cost_now, &b->cost_now, sizeof a->cost_now) == 0 && a->act_estimated == b->act_estimated &&
         memcmp(a->ctrl, b->ctrl, ctrl_bytes(a)) == 0;
}

static bool same(const SnPlan *a, const SnPlan *b) {
  return same_controls(a, b) && memcmp(&a->gradient_norm, &b->gradient_norm, sizeof a->gradient_norm) == 0;
}

// A planner that is restored in the middle makes the plans of the one that goes on; one that is not makes others.
static void expect_restored(const Run *run) {
  Fixture *x = open_run(run, 2), *y = open_run(run, 1), *fresh = open_run(run, 1);
  for (int k = 0; k < TAKEN; ++k) plan_at(x, run, k, NULL);
  if (TAKEN > 0) plan_at(y, run, TAKEN + 1, NULL);  // it has a past of its own
  restore(y, x);
  for (int k = TAKEN; k < PLANS; ++k) {
    const SnPlan a = plan_at(x, run, k, NULL), b = plan_at(y, run, k, NULL), c = plan_at(fresh, run, k, NULL);
    assert_true(same(&a, &b));
    assert_false(same(&a, &c));
  }
  free_fixture(x);
  free_fixture(y);
  free_fixture(fresh);
}

static Run sampling_run(int noise) {
  Run run = {.settings = task->settings, .act = true};
  run.settings.noise = noise;
  return run;
}

static Run adam_run(int moments) {
  Run run = {.settings = task->settings, .act = true};
  run.settings.planner = SN_PLANNER_ADAM;
  run.settings.adam_iterations = 5;
  run.settings.adam_rate = 0.05;
  run.settings.adam_moments = moments;
  return run;
}

static void sampling(void **state) {
  (void)state;
  for (int noise = SN_NOISE_WHITE; noise <= SN_NOISE_BROWN; ++noise) {
    Run run = sampling_run(noise);
    run.settings.interpolation = noise % 3;
    run.latency = noise == SN_NOISE_PINK ? 0.035 : 0;
    expect_restored(&run);
  }
}

static void adam(void **state) {
  (void)state;
  for (int i = 0; i < 8; ++i) {
    Run run = adam_run(i % 2 ? SN_MOMENTS_KEPT : SN_MOMENTS_FRESH);
    run.settings.adam_starts = i & 2 ? 3 : 1;
    run.settings.adam_knots = i & 4 ? 6 : 0;
    run.latency = i & 4 ? 0.022 : 0;
    expect_restored(&run);
  }
}

static void others(void **state) {
  (void)state;
  static const int kinds[] = {SN_PLANNER_LBFGS, SN_PLANNER_ILQG, SN_PLANNER_MPPI, SN_PLANNER_CEM, SN_PLANNER_HYBRID};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    Run run = sampling_run(SN_NOISE_WHITE);
    run.settings.planner = kinds[i];
    run.settings.lbfgs_iterations = run.settings.ilqg_iterations = 4;
    run.settings.ilqg_regularization = 100;
    expect_restored(&run);
  }
}

// Activations are estimated from the controls of the plans before, or from those that were applied.
static void estimates(void **state) {
  (void)state;
  for (int i = 0; i < 4; ++i) {
    Run run = i % 2 ? adam_run(SN_MOMENTS_KEPT) : sampling_run(SN_NOISE_PINK);
    run.act = false;
    run.applied = i & 2;
    run.latency = 0.015;
    expect_restored(&run);
  }
}

// Before the first plan, and while the first states come.
static void early(void **state) {
  (void)state;
  Run run = adam_run(SN_MOMENTS_KEPT);
  run.act = false;
  for (int taken = 0; taken < 2; ++taken) {
    Fixture *x = open_run(&run, 1), *y = open_run(&run, 1);
    for (int k = 0; k < taken; ++k) plan_at(x, &run, k, NULL);
    for (int k = 0; k < 3; ++k) plan_at(y, &run, 7 - k, NULL);
    restore(y, x);
    for (int k = taken; k < 4; ++k) {
      const SnPlan a = plan_at(x, &run, k, NULL), b = plan_at(y, &run, k, NULL);
      assert_true(same(&a, &b));
    }
    free_fixture(x);
    free_fixture(y);
  }
}

// Planners that change their ways: what Adam remembers outlives plans by sampling.
static void changes(void **state) {
  (void)state;
  const Run ways[] = {adam_run(SN_MOMENTS_KEPT), sampling_run(SN_NOISE_PINK)};
  SnError err = {0};
  Fixture *x = open_run(&ways[0], 1), *y = open_run(&ways[1], 1);
  for (int k = 0; k < 3; ++k) plan_at(x, &ways[0], k, NULL);
  sn_planner_configure(x->p, &ways[1].settings, &err);
  for (int k = 3; k < 5; ++k) plan_at(x, &ways[1], k, NULL);
  restore(y, x);
  for (int k = 5; k < 9; ++k) {
    const Run *run = &ways[k < 7];
    assert_int_equal(sn_planner_configure(x->p, &run->settings, &err), SN_OK);
    assert_int_equal(sn_planner_configure(y->p, &run->settings, &err), SN_OK);
    const SnPlan a = plan_at(x, run, k, NULL), b = plan_at(y, run, k, NULL);
    assert_true(same(&a, &b));
  }
  free_fixture(x);
  free_fixture(y);
}

// Deadlines cut plans off anywhere; iterations and candidates make them again, and those after them. Where a plan had
// no iteration at all only a snapshot goes on.
static void cut_off(void **state) {
  (void)state;
  int partial = 0, none = 0, rolled = 0;
  for (int i = 0; i < 5; ++i)
    for (int budget = 30; budget < 600; budget += 83) {
      Run run = i != 3 ? adam_run(i > 0 ? SN_MOMENTS_KEPT : SN_MOMENTS_FRESH) : sampling_run(SN_NOISE_PINK);
      run.settings.adam_iterations = run.settings.iterations = 0;
      run.settings.adam_starts = i == 2 ? 2 : 1;
      if (i == 4) run.settings.adam_warm_start = SN_WARM_START_LAST;
      run.budget = budget;
      Fixture *x = open_run(&run, 1), *y = open_run(&run, 1);
      for (int k = 0; k < PLANS; ++k) {
        const SnPlan a = plan_at(x, &run, k, NULL);
        none += a.iterations == 0;
        partial += a.iterations > 0 && a.candidates < (i == 3 ? run.settings.candidates : run.settings.adam_starts);
        if (a.iterations == 0) {
          restore(y, x);
          continue;
        }
        const SnPlan b = plan_at(y, &run, k, &a);
        rolled += !same(&a, &b);
        if (!same_controls(&a, &b)) fail_msg("case %d, budget %d, plan %d: another plan", i, budget, k);
      }
      free_fixture(x);
      free_fixture(y);
    }
  printf("%d plans with a partial iteration, %d without any, %d that end with a rollout\n", partial, none, rolled);
  assert_true(partial > 10 && none > 0 && rolled > 10);
}

static void expect_refused(Fixture *x, const SnPlannerSnapshot *s, const char *word) {
  SnError err = {0};
  assert_int_equal(sn_planner_restore(x->p, s, &err), SN_ERR_ARGUMENT);
  if (!strstr(err.text, word)) fail_msg("'%s' names no %s", err.text, word);
}

// What is refused changes nothing.
static void refused(void **state) {
  (void)state;
  const Run run = adam_run(SN_MOMENTS_KEPT);
  Fixture *x = open_run(&run, 1), *y = open_run(&run, 1);
  SnError err = {0};
  SnPlannerSnapshot good, s;
  sn_real bad[200] = {0};
  for (int k = 0; k < 2; ++k) {
    plan_at(x, &run, k, NULL);
    plan_at(y, &run, k, NULL);
  }
  SnPlanRequest r = initial_request(x, 1);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_int_equal(sn_planner_snapshot(x->p, &s, &err), SN_ERR_STATE);
  sn_planner_drop(x->p);
  restore(x, y);
  assert_int_equal(sn_planner_snapshot(y->p, &good, &err), SN_OK);
  bad[2] = (sn_real)NAN;
  expect_refused(x, (s = good, s.phase = -1, &s), "phase");
  expect_refused(x, (s = good, s.active_rows = 81, &s), "81 rows");
  expect_refused(x, (s = good, s.warm_time = NAN, &s), "time");
  expect_refused(x, (s = good, s.active_time = INFINITY, &s), "time");
  expect_refused(x, (s = good, s.warm_ctrl = bad, &s), "warm start[2]");
  expect_refused(x, (s = good, s.active_ctrl = bad, &s), "active plan[2]");
  expect_refused(x, (s = good, s.state.time = NAN, &s), "time");
  expect_refused(x, (s = good, s.state.qpos = bad + 2, &s), "qpos[0]");
  expect_refused(x, (s = good, s.state.mocap_quat = bad + 10, &s), "mocap_quat");
  expect_refused(x, (s = good, s.adam.moved = -1, &s), "moved");
  expect_refused(x, (s = good, s.adam.capacity = 1 << 30, &s), "capacity");
  expect_refused(x, (s = good, s.adam.moments.first = bad, &s), "moments[2]");
  bad[2] = -1;
  expect_refused(x, (s = good, s.adam.moments.second = bad, &s), "moments[2]");
  expect_refused(x, (s = good, s.adam.moments.power2 = 2, &s), "powers");
  for (int k = 2; k < 4; ++k) {
    const SnPlan a = plan_at(x, &run, k, NULL), b = plan_at(y, &run, k, NULL);
    assert_true(same(&a, &b));
  }
  free_fixture(x);
  free_fixture(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sampling), cmocka_unit_test(adam),    cmocka_unit_test(others),  cmocka_unit_test(estimates),
      cmocka_unit_test(early),    cmocka_unit_test(changes), cmocka_unit_test(cut_off), cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
