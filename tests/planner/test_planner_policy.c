// Plans that begin with the rollout of a policy.
#include <unistd.h>

#include "physics/step/step.h"
#include "tests/planner/planner_fixture.h"
#include "tests/planner/policy/onnx_maker.h"

// Of the task's targets, (12) with measures, one is a number: that of `elbow`, behind the three of `reach`.
enum { NQ = 2, NV = 2, NA = 2, NU = 3, NTARGET = 12, AT = 3, INPUTS = NQ + NV + NA + 1 };

// u = K (qpos, qvel, act, targets) + b.
static float K[NU * INPUTS], b[NU];
static char folder[] = "/tmp/sinew-policy-XXXXXX", task_file[64], policy_file[64];
static SnTask *with_policy;

static void write_policy(float factor) {
  for (int i = 0; i < NU * INPUTS; ++i) K[i] = factor * (float)((i * 7) % 11 - 5) / 5;
  for (int i = 0; i < NU; ++i) b[i] = 0.1F * (float)(i + 1);
  assert_true(onnx_write_linear(policy_file, INPUTS, NU, K, b));
}

static int setup(void **state) {
  char text[2048];
  SnError err = {0};
  if (body_setup(state) != 0 || !mkdtemp(folder)) return 1;
  snprintf(task_file, sizeof task_file, "%s/body.yaml", folder);
  snprintf(policy_file, sizeof policy_file, "%s/net.onnx", folder);
  const int n = snprintf(text, sizeof text, "policy: net.onnx\n%s", body_task);
  with_policy = sn_task_parse(text, (size_t)n, task_file, &err);
  if (!with_policy) fail_msg("%s", err.text);
  return 0;
}

static int teardown(void **state) {
  sn_task_free(with_policy);
  unlink(policy_file);
  rmdir(folder);
  return body_teardown(state);
}

static void begin_by(Fixture *x, SnBegin begin) {
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.warm_start = (int)begin;
  if (sn_planner_configure(x->p, &s, &err) != SN_OK) fail_msg("%s", err.text);
}

// A plan of its warm start alone, which one candidate without noise measures.
static SnPlan plan_of_start(Fixture *x, double time) {
  SnPlanRequest r = initial_request(x, time);
  r.max_iterations = r.max_candidates = 1;
  return plan_now(x, &r);
}

// The controls of the policy along its own motion, by steps of the engine.
static void follow(Fixture *x, double time, sn_real *ctrl, int nstep) {
  const SnModel *m = sn_planner_model(x->p);
  SnError err = {0};
  SnRolloutRunner *runner = sn_rollout_runner_create(m, NULL, &err);
  SnWorld *w = sn_rollout_runner_world(runner);
  SnState s = *sn_planner_initial(x->p);
  s.time = time;
  sn_world_set_state(m, w, &s);
  for (int t = 0; t < nstep; ++t) {
    sn_real target[NTARGET];
    sn_cost_schedule(sn_planner_cost(x->p), time + t * (double)m->opt.timestep, 0.01, 1, target);
    for (int i = 0; i < NU; ++i) {
      double u = (double)b[i];
      for (int k = 0; k < INPUTS; ++k) {
        const sn_real in = k < NQ             ? w->qpos[k]
                           : k < NQ + NV      ? w->qvel[k - NQ]
                           : k < NQ + NV + NA ? w->act[k - NQ - NV]
                                              : target[AT];
        u += (double)K[i * INPUTS + k] * (double)in;
      }
      ctrl[t * NU + i] = w->ctrl[i] = sn_ctrl_clip(m, i, (sn_real)u);
    }
    sn_step(m, w, sn_rollout_runner_lane(runner));
  }
  sn_rollout_runner_free(runner);
}

static void begins_with_its_rollout(void **state) {
  (void)state;
  write_policy(1);
  Fixture *x = make_fixture_of(with_policy, 1, false, 3);
  assert_int_equal(sn_planner_cost(x->p)->ntarget, NTARGET);
  const double h = (double)sn_planner_model(x->p)->opt.timestep;
  begin_by(x, SN_BEGIN_POLICY);
  for (int k = 0; k < 2; ++k) {  // whatever the plan before was
    const SnPlan plan = plan_of_start(x, 7 * h * k);
    static sn_real expected[64 * NU];
    follow(x, 7 * h * k, expected, plan.nstep);
    assert_true(plan.from_policy && plan.status == SN_PLAN_OK);
    for (int i = 0; i < plan.nstep * NU; ++i)
      if (!(fabs((double)(plan.ctrl[i] - expected[i])) < 2e-4))
        fail_msg("plan %d, control %d: %g for %g", k, i, (double)plan.ctrl[i], (double)expected[i]);
  }
  free_fixture(x);
}

// What costs less is taken: the rollout of a policy, or the shifted plan.
static void better_of_both(void **state) {
  (void)state;
  for (int worse = 0; worse < 2; ++worse) {
    write_policy(0.1F);
    Fixture *x = make_fixture_of(with_policy, 1, false, 3);
    begin_by(x, SN_BEGIN_POLICY);
    const double policy = plan_of_start(x, 0).cost_before;
    SnError err = {0};
    assert_int_equal(sn_planner_reset(x->p, 3, &err), SN_OK);
    begin_by(x, SN_BEGIN_SHIFTED);
    if (worse) {  // a plan that has been improved for long
      SnPlanRequest r = initial_request(x, 0);
      r.max_iterations = 60;
      plan_now(x, &r);
    }
    SnPlan plan = plan_of_start(x, 0);
    const double shifted = plan.cost_before;
    assert_false(plan.from_policy);
    begin_by(x, SN_BEGIN_BETTER);
    plan = plan_of_start(x, 0);
    assert_true(plan.from_policy == (policy < shifted));
    assert_true(plan.cost_before == (policy < shifted ? policy : shifted));
    print_message("policy %g, shifted plan %g\n", policy, shifted);
    if (worse) assert_true(shifted < policy);
    free_fixture(x);
  }
}

// However often it pauses.
static void pauses_change_nothing(void **state) {
  (void)state;
  static sn_real first[64 * NU];
  write_policy(1);
  for (int pauses = 0; pauses < 2; ++pauses) {
    Fixture *x = make_fixture_of(with_policy, 1, true, 3);
    begin_by(x, SN_BEGIN_BETTER);
    SnPlanRequest r = initial_request(x, 0);
    r.latency = 0.05;
    SnPlan plan;
    begin_plan(x->p, &r);
    int slices = 1;
    for (; !sn_planner_slice(x->p, pauses ? (double)atomic_load(&x->count.reads) + 3 : (double)INFINITY);) ++slices;
    sn_planner_finish(x->p, &plan);
    assert_true(plan.status == SN_PLAN_OK && (!pauses || slices > 40));
    if (!pauses) memcpy(first, plan.ctrl, ctrl_bytes(&plan));
    assert_memory_equal(first, plan.ctrl, ctrl_bytes(&plan));
    free_fixture(x);
  }
}

// A rollout that the deadline cuts counts for nothing; so does one that diverges.
static void without_a_rollout(void **state) {
  (void)state;
  write_policy(1);
  Fixture *x = make_fixture_of(with_policy, 1, true, 3);
  begin_by(x, SN_BEGIN_POLICY);
  SnPlanRequest r = initial_request(x, 0);
  r.deadline = (double)atomic_load(&x->count.reads) + 20;
  SnPlan plan = plan_now(x, &r);
  assert_true(!plan.from_policy && plan.status == SN_PLAN_WARM_START);
  for (int t = 0; t < plan.nstep; ++t) assert_memory_equal(plan.ctrl + t * NU, plan.ctrl, sizeof(sn_real) * NU);
  SnSettings s = *sn_planner_settings(x->p);
  SnError err = {0};
  s.max_velocity = 1e-3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  plan = plan_of_start(x, 0);
  assert_true(!plan.from_policy && plan.status == SN_PLAN_DIVERGED);
  free_fixture(x);
  write_policy(INFINITY);
}

static void refused(void **state) {
  (void)state;
  SnError err = {0};
  write_policy(1);
  Fixture *x = make_fixture(1, false, 3);
  SnSettings s = *sn_planner_settings(x->p);
  s.warm_start = SN_BEGIN_POLICY;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "warm_start: 'policy' wants a policy, and task 'body' names none"));
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = with_policy;
  def.backend = x->backend;
  def.settings = with_policy->settings;
  assert_true(onnx_write_linear(policy_file, INPUTS + 1, NU, (float[NU * (INPUTS + 1)]){0}, b));
  assert_null(sn_planner_create(&def, &err));
  if (!strstr(err.text, "/body.yaml:1:9: policy '") ||
      !strstr(err.text, "8 inputs, this task has 7: 2 of qpos, 2 of qvel, 2 of act, 1 of targets"))
    fail_msg("%s", err.text);
  assert_true(onnx_write_linear(policy_file, INPUTS, 2, K, b));
  assert_null(sn_planner_create(&def, &err));
  if (!strstr(err.text, "2 outputs, the model has 3 controls")) fail_msg("%s", err.text);
  unlink(policy_file);
  assert_null(sn_planner_create(&def, &err));
  if (!strstr(err.text, "/body.yaml:1:9: policy ") || !strstr(err.text, "No such file")) fail_msg("%s", err.text);
  free_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(begins_with_its_rollout),
      cmocka_unit_test(better_of_both),
      cmocka_unit_test(pauses_change_nothing),
      cmocka_unit_test(without_a_rollout),
      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
