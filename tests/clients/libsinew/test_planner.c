// Planners of libsinew: the plans are those of planner/planner.h; what can be tuned; what is refused.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clients/libsinew/planner_private.h"
#include "clients/libsinew/task_private.h"
#include "tests/clients/libsinew/body_fixture.h"

static SinewModel *model;
static SinewTask *task;
static SinewBackend *cpu;

static int setup(void **state) {
  (void)state;
  model = test_model_of_text(body_xml);
  task = test_task(body_task);
  cpu = test_cpu(2);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sinew_backend_close(cpu);
  sinew_task_free(task);
  sinew_model_free(model);
  return 0;
}

static SinewPlannerDef definition(const char *const *settings, uint64_t seed) {
  SinewPlannerDef def = sinew_default_planner();
  def.model = model;
  def.task = task;
  def.backend = cpu;
  def.settings = settings;
  def.seed = seed;
  return def;
}

static SinewPlanner *make(const char *const *settings, uint64_t seed) {
  SinewError err;
  const SinewPlannerDef def = definition(settings, seed);
  SinewPlanner *p = sinew_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  return p;
}

static SinewPlanRequest request_at_start(const SinewPlanner *p) {
  SinewPlanRequest r = sinew_default_plan_request();
  r.state = sinew_planner_initial(p);
  return r;
}

static const SinewPlan *plan_now(SinewPlanner *p, const SinewPlanRequest *r) {
  SinewError err;
  const SinewPlan *plan;
  test_accepted(sinew_planner_plan(p, r, &plan, &err), &err);
  assert_non_null(plan);
  return plan;
}

static void assert_same(const double *a, const double *b, size_t n) { assert_memory_equal(a, b, n * sizeof *a); }

// ---- plans ----

// Compares a plan with what the inner planner makes of the same request.
static void compare_plans(const SinewPlan *ours, const SnPlan *inner) {
  const size_t rows = (size_t)inner->nstep;
  assert_int_equal(ours->steps, inner->nstep);
  assert_int_equal(ours->lead, inner->lead);
  assert_true(ours->start == inner->start && ours->step == inner->step);
  assert_true(ours->number == inner->number && ours->iterations == inner->iterations);
  assert_true(ours->candidates == inner->candidates && ours->terms == inner->nterm);
  assert_true(ours->refined && ours->deadline_met && !ours->device_lost);
  assert_string_equal(ours->backend, "cpu");
  assert_same(ours->ctrl, inner->ctrl, rows * (size_t)inner->nu);
  assert_same(ours->qpos, inner->qpos, (rows + 1) * (size_t)inner->nq);
  assert_same(ours->qvel, inner->qvel, (rows + 1) * (size_t)inner->nv);
  assert_same(ours->act, inner->act, (rows + 1) * (size_t)inner->na);
  assert_same(&ours->cost_before, &inner->cost_before, 1);
  assert_same(&ours->cost_after, &inner->cost_after, 1);
  assert_same(ours->term, inner->term, (size_t)inner->nterm);
  assert_true(ours->gradient_norm == inner->gradient_norm || isnan(inner->gradient_norm));
  assert_true(ours->stuck == inner->stuck && ours->unimproved == inner->unimproved);
  assert_string_equal(ours->remark, inner->remark);
}

static SnPlanner *make_inner(const char *const *settings, uint64_t seed) {
  SnError err = {0};
  SnPlannerDef def = sn_default_planner_def();
  def.model = model->model;
  def.task = task->task;
  def.backend = cpu->backend;
  def.settings = task->task->settings;
  def.seed = seed;
  for (int i = 0; settings[i]; ++i) assert_int_equal(sn_settings_assign(&def.settings, settings[i], &err), SN_OK);
  SnPlanner *p = sn_planner_create(&def, &err);
  assert_non_null(p);
  return p;
}

// Plans from states along the plans before, with a mocap body that moves and with a latency.
static void check_same_plans(const char *const *settings) {
  enum { PLANS = 4, EXECUTE = 5 };
  SinewPlanner *p = make(settings, 7);
  SnPlanner *inner = make_inner(settings, 7);
  SinewPlanRequest r = request_at_start(p);
  double qpos[5], qvel[4], act[2], mocap[7] = {0.1, 0, 0.2, 1, 0, 0, 0};
  r.want_states = true;
  r.latency = 0.012;
  for (int i = 0; i < PLANS; ++i) {
    SnPlanRequest q = sn_default_plan_request();
    SnPlan theirs;
    SnError err = {0};
    mocap[0] = 0.1 + 0.05 * i;
    r.state.mocap = mocap;
    if (i == 2) r.state.act = NULL;
    q.time = r.state.time;
    q.qpos = r.state.qpos;
    q.qvel = r.state.qvel;
    q.act = r.state.act;
    q.mocap_pos = mocap;
    q.mocap_quat = mocap + 3;
    q.latency = r.latency;
    q.want_states = true;
    assert_int_equal(sn_planner_plan(inner, &q, &theirs, &err), SN_OK);
    const SinewPlan *ours = plan_now(p, &r);
    compare_plans(ours, &theirs);
    assert_true(ours->act_estimated == (i == 2));
    memcpy(qpos, ours->qpos + 5 * EXECUTE, sizeof qpos);
    memcpy(qvel, ours->qvel + 4 * EXECUTE, sizeof qvel);
    memcpy(act, ours->act + 2 * EXECUTE, sizeof act);
    r.state = (SinewState){ours->start + EXECUTE * ours->step, qpos, qvel, act, NULL};
  }
  sn_planner_free(inner);
  sinew_planner_free(p);
}

static void test_plans_are_the_planners(void **state) {
  (void)state;
  check_same_plans((const char *const[]){"planner=sampling", "candidates=8", NULL});
  check_same_plans((const char *const[]){"planner=adam", "adam_iterations=3", "cfd=cfd", NULL});
  check_same_plans((const char *const[]){"planner=sampling", "candidates=1", "patience=2", NULL});
  check_same_plans((const char *const[]){"planner=adam", "adam_iterations=2", "integrator=tsit5", "rtol=1e-4", NULL});
}

// Plans that get no better say for how long, and a cost without a slope that it has none.
static void test_no_progress(void **state) {
  (void)state;
  SinewError err;
  SinewPlanner *p = make((const char *const[]){"planner=sampling", "candidates=1", "patience=2", NULL}, 1);
  SinewPlanRequest r = request_at_start(p);
  for (int k = 1; k < 4; ++k) {
    const SinewPlan *plan = plan_now(p, &r);
    assert_true(plan->unimproved == k && !plan->stuck);
    assert_true((plan->remark[0] != '\0') == (k >= 2));
  }
  sinew_planner_free(p);
  SinewTask *still = test_task("model: x\nterms:\n  - {name: a, residual: {position: {site: base}}}\n");
  SinewPlannerDef def = definition((const char *const[]){"planner=adam", NULL}, 1);
  def.task = still;
  if (!(p = sinew_planner_create(&def, &err))) fail_msg("%s", err.text);
  r = request_at_start(p);
  const SinewPlan *plan = plan_now(p, &r);
  assert_true(plan->stuck && plan->unimproved == 1);
  assert_string_equal(plan->remark, "no progress: gradient norm 0");
  sinew_planner_free(p);
  sinew_task_free(still);
}

// A plan is asked for from a measured state, which nobody forgets unnoticed; a cost may begin at qpos0, at rest.
static void test_state_of_nothing(void **state) {
  (void)state;
  static const double zero[4], ctrl[3];
  SinewPlanner *p = make(NULL, 0);
  SinewPlanRequest r = request_at_start(p);
  const SinewPlan *plan;
  SinewError err;
  for (int i = 0; i < 3; ++i) {
    r.state = sinew_planner_initial(p);
    if (i != 1) r.state.qpos = NULL;
    if (i != 0) r.state.qvel = NULL;
    test_refused(sinew_planner_plan(p, &r, &plan, &err), &err, SINEW_ERR_ARGUMENT, "qpos and qvel are needed");
    assert_null(plan);
  }
  double cost[2];
  const SinewState nothing = {0}, all = {0, model->model->qpos0, zero, NULL, NULL};
  test_accepted(sinew_planner_evaluate(p, &nothing, ctrl, 1, &cost[0], NULL, &err), &err);
  test_accepted(sinew_planner_evaluate(p, &all, ctrl, 1, &cost[1], NULL, &err), &err);
  assert_true(cost[0] == cost[1] && cost[0] > 0);
  sinew_planner_free(p);
}

static void test_control_is_the_row(void **state) {
  (void)state;
  SinewError err;
  SinewPlanner *p = make(NULL, 1);
  double ctrl[3];
  test_refused(sinew_planner_control(p, 0, ctrl, &err), &err, SINEW_ERR_NO_PLAN, "no plan yet");
  SinewPlanRequest r = request_at_start(p);
  r.state.time = 2;
  const SinewPlan *plan = plan_now(p, &r);
  static const struct {
    double time;
    int row;
  } cases[] = {{0, 0}, {2, 0}, {2.0049, 0}, {2.005, 1}, {2.0549, 10}, {2 + 19 * 0.005, 19}, {9, 19}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    test_accepted(sinew_planner_control(p, cases[i].time, ctrl, &err), &err);
    assert_same(ctrl, plan->ctrl + 3 * cases[i].row, 3);
  }
  test_accepted(sinew_planner_reset(p, 1, &err), &err);
  test_refused(sinew_planner_control(p, 2, ctrl, &err), &err, SINEW_ERR_NO_PLAN, "no plan yet");
  sinew_planner_free(p);
}

static void test_reset(void **state) {
  (void)state;
  SinewError err;
  SinewPlanner *p = make(NULL, 3);
  double first[5], plan[60];
  SinewState s = sinew_planner_initial(p);
  memcpy(first, s.qpos, sizeof first);
  assert_true(s.time == 0 && s.mocap[0] == 0.3 && s.mocap[2] == 0.2 && s.mocap[3] == 1);
  SinewPlanRequest r = request_at_start(p);
  memcpy(plan, plan_now(p, &r)->ctrl, sizeof plan);
  test_accepted(sinew_planner_reset(p, 4, &err), &err);
  assert_memory_not_equal(sinew_planner_initial(p).qpos, first, sizeof first);
  test_accepted(sinew_planner_reset(p, 3, &err), &err);
  assert_same(sinew_planner_initial(p).qpos, first, 5);
  r = request_at_start(p);
  assert_same(plan_now(p, &r)->ctrl, plan, 60);
  sinew_planner_free(p);
}

static void test_budget(void **state) {
  (void)state;
  SinewPlanner *p = make((const char *const[]){"iterations=0", NULL}, 1);
  SinewError err;
  SinewPlanRequest r = request_at_start(p);
  test_refused(sinew_planner_plan(p, &r, NULL, &err), &err, SINEW_ERR_ARGUMENT, "iterations");
  r.budget = 1e-9;
  const SinewPlan *plan = plan_now(p, &r);
  assert_true(!plan->refined && !plan->deadline_met && isnan(plan->cost_before));
  r.budget = 0;
  r.max_iterations = 2;
  plan = plan_now(p, &r);
  assert_true(plan->refined && plan->deadline_met && plan->iterations == 2);
  sinew_planner_free(p);
}

static void test_divergence(void **state) {
  (void)state;
  SinewPlanner *p = make((const char *const[]){"max_velocity=0.001", NULL}, 1);
  SinewError err;
  SinewPlanRequest r = request_at_start(p);
  const SinewPlan *plan = (const SinewPlan *)&r;
  double cost = 0, gradient[3] = {1, 1, 1};
  test_refused(sinew_planner_plan(p, &r, &plan, &err), &err, SINEW_ERR_DIVERGED, "there is no plan");
  assert_null(plan);
  test_accepted(sinew_planner_evaluate(p, &r.state, (double[3]){1, 1, 1}, 1, &cost, gradient, &err), &err);
  assert_true(isinf(cost) && gradient[0] == 0 && gradient[2] == 0);
  sinew_planner_free(p);
}

// ---- evaluation ----

static double cost_of(SinewPlanner *p, const double *ctrl, int steps) {
  SinewError err;
  double cost;
  const SinewState s = sinew_planner_initial(p);
  test_accepted(sinew_planner_evaluate(p, &s, ctrl, steps, &cost, NULL, &err), &err);
  return cost;
}

// The gradient is that of differences; weights and targets count from then on.
static void test_evaluate(void **state) {
  (void)state;
  enum { STEPS = 12, N = 3 * STEPS };
  SinewPlanner *p = make(NULL, 1);
  SinewError err;
  double ctrl[N], gradient[N], cost;
  uint64_t random = 11;
  for (int i = 0; i < N; ++i) ctrl[i] = 0.5 + 0.4 * test_random(&random);
  const SinewState s = sinew_planner_initial(p);
  test_accepted(sinew_planner_evaluate(p, &s, ctrl, STEPS, &cost, gradient, &err), &err);
  assert_true(cost == cost_of(p, ctrl, STEPS));
  for (int i = 0; i < N; i += 5) {
    const double h = 1e-6, at = ctrl[i];
    ctrl[i] = at + h;
    const double up = cost_of(p, ctrl, STEPS);
    ctrl[i] = at - h;
    const double difference = (up - cost_of(p, ctrl, STEPS)) / (2 * h);
    ctrl[i] = at;
    if (!(fabs(difference - gradient[i]) <= 1e-6 * (1e-3 + fabs(difference))))
      fail_msg("ctrl %d: gradient %.10g, difference %.10g", i, gradient[i], difference);
  }
  const double before = cost, zero = cost_of(p, NULL, 0);
  test_accepted(sinew_planner_set_weight(p, "reach", 3, 6, &err), &err);
  assert_true(cost_of(p, ctrl, STEPS) > 1.5 * before && cost_of(p, NULL, 0) > 1.5 * zero);
  test_accepted(sinew_planner_set_weight(p, "reach", 1, 2, &err), &err);
  double there, near;
  test_accepted(sinew_planner_measure(p, &s, &near, 1, &err), &err);
  test_accepted(sinew_planner_set_target(p, "reach", (double[3]){9, 9, 9}, 3, &err), &err);
  assert_true(cost_of(p, ctrl, STEPS) > 10);
  test_accepted(sinew_planner_measure(p, &s, &there, 1, &err), &err);
  assert_true(there == near && near > 0 && near < 5);  // the target of a measure is its own
  test_accepted(sinew_planner_set_target(p, "there", (double[3]){9, 9, 9}, 3, &err), &err);
  test_accepted(sinew_planner_measure(p, &s, &there, 1, &err), &err);
  assert_true(there > 10);
  test_accepted(sinew_planner_set_target(p, "reach", NULL, 0, &err), &err);
  assert_true(cost_of(p, ctrl, STEPS) == before);
  sinew_planner_free(p);
}

// ---- settings ----

// Targets that the task gives as numbers: that of `elbow`, a sinusoid, as set live; `reach` follows a site.
static void test_targets(void **state) {
  (void)state;
  SinewPlanner *p = make(NULL, 1);
  SinewError err;
  double x[2], time[2] = {0, 0.25};
  int count = 0;
  test_accepted(sinew_planner_targets(p, NULL, 0, NULL, &count, &err), &err);
  assert_int_equal(count, 1);
  test_accepted(sinew_planner_targets(p, time, 2, x, &count, &err), &err);
  assert_true(fabs(x[0] + 0.3) < 1e-6 && fabs(x[1] + 0.1) < 1e-6);
  test_accepted(sinew_planner_set_target(p, "elbow", (double[1]){0.7}, 1, &err), &err);
  test_accepted(sinew_planner_targets(p, time, 1, x, &count, &err), &err);
  assert_true(fabs(x[0] - 0.7) < 1e-6);
  time[1] = (double)INFINITY;
  test_refused(sinew_planner_targets(p, time, 2, x, &count, &err), &err, SINEW_ERR_ARGUMENT, "time[1]: not finite");
  test_refused(sinew_planner_targets(p, NULL, 2, x, &count, &err), &err, SINEW_ERR_ARGUMENT, "time is NULL");
  test_refused(sinew_planner_targets(p, time, -1, x, &count, &err), &err, SINEW_ERR_ARGUMENT, "negative");
  test_refused(sinew_planner_targets(p, time, 1, x, NULL, &err), &err, SINEW_ERR_ARGUMENT, "count is NULL");
  sinew_planner_free(p);
}

static void test_settings(void **state) {
  (void)state;
  SinewPlanner *p = make((const char *const[]){"adam_rate=0.5", "noise=brown", NULL}, 1);
  SinewError err;
  char text[64], assignment[160];
  int n = 0;
  for (const SinewSetting *s; (s = sinew_setting(n)); ++n) {
    test_accepted(sinew_planner_get(p, s->name, text, sizeof text, &err), &err);
    snprintf(assignment, sizeof assignment, "%s=%s", s->name, text);
    test_accepted(sinew_planner_set(p, assignment, &err), &err);
    assert_true(s->doc[0] && s->value >= s->lowest && s->value <= s->highest);
    if (s->choices) assert_true(strstr(s->choices, text) && s->lowest == 0 && s->highest >= 1);
  }
  assert_int_equal(n, sn_settings_count());
  assert_null(sinew_setting(-1));
  test_accepted(sinew_planner_get(p, "adam_rate", text, 4, &err), &err);
  assert_string_equal(text, "0.5");
  test_accepted(sinew_planner_get(p, "noise", text, sizeof text, &err), &err);
  assert_string_equal(text, "brown");
  test_accepted(sinew_planner_get(p, "horizon", text, sizeof text, &err), &err);
  assert_string_equal(text, "20");
  test_accepted(sinew_planner_set(p, "planner=adam", &err), &err);
  SinewPlanRequest r = request_at_start(p);
  assert_true(isfinite(plan_now(p, &r)->gradient_norm));
  sinew_planner_free(p);
}

static void test_settings_refused(void **state) {
  (void)state;
  static const struct {
    const char *assignment;
    SinewStatus status;
    const char *word;
  } wrong[] = {{NULL, SINEW_ERR_ARGUMENT, "assignment is NULL"},
               {"adam_rate", SINEW_ERR_ARGUMENT, "name=value"},
               {"nothing=1", SINEW_ERR_NOT_FOUND, "there is no setting 'nothing'"},
               {"adam_rat=1", SINEW_ERR_NOT_FOUND, "there is no setting 'adam_rat'; did you mean 'adam_rate'"},
               {"adam_rate=-1", SINEW_ERR_ARGUMENT, "adam_rate: -1"},
               {"adam_rate=nan", SINEW_ERR_ARGUMENT, "adam_rate"},
               {"noise=blue", SINEW_ERR_ARGUMENT, "white|pink|brown"},
               {"horizon=30", SINEW_ERR_STATE, "horizon"}};
  SinewPlanner *p = make(NULL, 1);
  SinewError err;
  char text[64];
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
    test_refused(sinew_planner_set(p, wrong[i].assignment, &err), &err, wrong[i].status, wrong[i].word);
  test_refused(sinew_planner_get(p, "nois", text, sizeof text, &err), &err, SINEW_ERR_NOT_FOUND,
               "there is no setting 'nois'; did you mean 'noise'");
  test_refused(sinew_planner_get(p, "noise", text, 4, &err), &err, SINEW_ERR_ARGUMENT, "size: 4");
  test_refused(sinew_planner_get(p, NULL, text, 4, &err), &err, SINEW_ERR_ARGUMENT, "name is NULL");
  test_refused(sinew_planner_get(p, "noise", NULL, 4, &err), &err, SINEW_ERR_ARGUMENT, "text is NULL");
  test_refused(sinew_planner_set_weight(p, "reech", 1, 1, &err), &err, SINEW_ERR_NOT_FOUND, "did you mean 'reach'?");
  test_refused(sinew_planner_set_weight(p, "reach", (double)NAN, 1, &err), &err, SINEW_ERR_ARGUMENT, "reach");
  test_refused(sinew_planner_set_weight(p, NULL, 1, 1, &err), &err, SINEW_ERR_ARGUMENT, "term is NULL");
  test_refused(sinew_planner_set_target(p, NULL, NULL, 0, &err), &err, SINEW_ERR_ARGUMENT, "term is NULL");
  test_refused(sinew_planner_set_target(p, "reach", NULL, 3, &err), &err, SINEW_ERR_ARGUMENT, "value is NULL");
  test_refused(sinew_planner_set_target(p, "reach", NULL, -1, &err), &err, SINEW_ERR_ARGUMENT, "negative");
  test_refused(sinew_planner_set_target(p, "reach", (double[2]){0}, 2, &err), &err, SINEW_ERR_ARGUMENT, "allowed is 3");
  sinew_planner_free(p);
}

// ---- misuse ----

static void test_definitions_refused(void **state) {
  (void)state;
  static const char bad_term[] =
      "model: body.xml\nterms: [{name: a, residual: {position: {site: nose}}, norm: squared, weight: 1}]\n";
  SinewError err;
  SinewTask *strange = test_task(bad_term);
  const SinewPlannerDef good = definition(NULL, 0);
  SinewPlannerDef def[7];
  for (int i = 0; i < 7; ++i) def[i] = good;
  def[0].size = 0;
  def[1].model = NULL;
  def[2].task = NULL;
  def[3].backend = NULL;
  def[4].fallback = cpu;
  def[5].settings = (const char *const[]){"horizon=1", NULL};
  def[6].settings = (const char *const[]){"nothing=1", NULL};
  static const char *const word[] = {"size",     "model is NULL", "task is NULL", "backend is NULL",
                                     "fallback", "horizon: 1"};
  for (int i = 0; i < 6; ++i) {
    assert_null(sinew_planner_create(&def[i], &err));
    test_refused(err.status, &err, SINEW_ERR_ARGUMENT, word[i]);
  }
  assert_null(sinew_planner_create(&def[6], &err));
  test_refused(err.status, &err, SINEW_ERR_NOT_FOUND, "nothing");
  def[6] = good;
  def[6].task = strange;
  assert_null(sinew_planner_create(&def[6], &err));
  test_refused(err.status, &err, SINEW_ERR_NOT_FOUND, "body.yaml:2");
  assert_null(sinew_planner_create(NULL, &err));
  test_refused(err.status, &err, SINEW_ERR_ARGUMENT, "NULL");
  assert_null(sinew_planner_create(NULL, NULL));
  sinew_task_free(strange);
}

static void test_requests_refused(void **state) {
  (void)state;
  SinewPlanner *p = make(NULL, 1);
  SinewError err;
  double bad[5] = {1, 0, 0, 0, (double)NAN}, ctrl[3] = {0, (double)INFINITY, 0}, cost;
  const SinewPlanRequest good = request_at_start(p);
  SinewPlanRequest r[8];
  for (int i = 0; i < 8; ++i) r[i] = good;
  r[0].size = 3;
  r[1].state.qpos = bad;
  r[2].state.qvel = bad + 1;
  r[3].state.time = (double)NAN;
  r[4].latency = -1;
  r[5].latency = 1;
  r[6].budget = (double)NAN;
  r[7].max_iterations = -1;
  static const char *const word[] = {"size",    "qpos[4]: nan", "qvel[3]", "time",
                                     "latency", "latency: 1 s", "budget",  "iterations"};
  for (int i = 0; i < 8; ++i) test_refused(sinew_planner_plan(p, &r[i], NULL, &err), &err, SINEW_ERR_ARGUMENT, word[i]);
  test_refused(sinew_planner_plan(p, NULL, NULL, &err), &err, SINEW_ERR_ARGUMENT, "NULL");
  assert_int_equal(plan_now(p, &good)->number, 1);  // what was refused did not count
  r[0] = good;
  r[0].size = offsetof(SinewPlanRequest, gain_rows);  // a program from before there were gains
  r[0].gain_rows = -1;
  assert_int_equal(plan_now(p, &r[0])->number, 2);
  test_refused(sinew_planner_control(p, (double)NAN, ctrl, &err), &err, SINEW_ERR_ARGUMENT, "time");
  test_refused(sinew_planner_control(p, 0, NULL, &err), &err, SINEW_ERR_ARGUMENT, "ctrl is NULL");
  test_refused(sinew_planner_evaluate(p, NULL, ctrl, 1, &cost, NULL, &err), &err, SINEW_ERR_ARGUMENT, "state is NULL");
  test_refused(sinew_planner_evaluate(p, &good.state, NULL, 1, &cost, NULL, &err), &err, SINEW_ERR_ARGUMENT, "ctrl");
  test_refused(sinew_planner_evaluate(p, &good.state, ctrl, 1, &cost, NULL, &err), &err, SINEW_ERR_ARGUMENT, "ctrl[1]");
  test_refused(sinew_planner_evaluate(p, &good.state, ctrl, -1, &cost, NULL, &err), &err, SINEW_ERR_ARGUMENT, "steps");
  test_refused(sinew_planner_evaluate(p, &good.state, ctrl, 0, &cost, ctrl, &err), &err, SINEW_ERR_ARGUMENT,
               "gradient");
  test_refused(sinew_planner_measure(p, NULL, ctrl, 1, &err), &err, SINEW_ERR_ARGUMENT, "state is NULL");
  test_refused(sinew_planner_measure(p, &good.state, NULL, 1, &err), &err, SINEW_ERR_ARGUMENT, "value is NULL");
  test_refused(sinew_planner_measure(p, &good.state, ctrl, 2, &err), &err, SINEW_ERR_ARGUMENT, "1 measures");
  sinew_planner_free(p);
}

static void test_null_handles(void **state) {
  (void)state;
  SinewError err;
  double x[1];
  char text[8];
  int count;
  const SinewPlanRequest r = sinew_default_plan_request();
  const SinewStatus status[] = {sinew_planner_plan(NULL, &r, NULL, &err),
                                sinew_planner_reset(NULL, 0, &err),
                                sinew_planner_set(NULL, "a=1", &err),
                                sinew_planner_get(NULL, "a", text, sizeof text, &err),
                                sinew_planner_set_weight(NULL, "a", 1, 1, &err),
                                sinew_planner_set_target(NULL, "a", x, 1, &err),
                                sinew_planner_control(NULL, 0, x, NULL),
                                sinew_planner_targets(NULL, x, 1, x, &count, &err),
                                sinew_planner_measure(NULL, &r.state, x, 1, &err),
                                sinew_planner_evaluate(NULL, &r.state, x, 1, x, NULL, &err)};
  for (size_t i = 0; i < sizeof status / sizeof status[0]; ++i) assert_int_equal(status[i], SINEW_ERR_ARGUMENT);
  test_refused(status[0], &err, SINEW_ERR_ARGUMENT, "planner is NULL");
  assert_null(sinew_planner_model(NULL));
  assert_null(sinew_planner_initial(NULL).qpos);
  sinew_planner_free(NULL);
}

// Debug builds notice two threads on a planner, or on planners of one backend.
static void test_two_threads(void **state) {
  (void)state;
  SinewPlanner *p = make(NULL, 1);
  SinewError err;
  ApiGuard *const guards[] = {&p->guard, &cpu->guard};
  for (int i = 0; i < 2; ++i) {
    atomic_store(&guards[i]->busy, 1);  // as a thread in a call leaves it
    const SinewStatus status = sinew_planner_reset(p, 1, &err);
#ifdef NDEBUG
    test_accepted(status, &err);
#else
    test_refused(status, &err, SINEW_ERR_STATE, "another thread");
#endif
    atomic_store(&guards[i]->busy, 0);
    test_accepted(sinew_planner_reset(p, 1, &err), &err);
  }
  assert_int_equal(sinew_model_sizes(sinew_planner_model(p))->nu, 3);
  sinew_planner_free(p);
}

// ---- feedback ----

// The law, by MuJoCo's difference of positions; rows without gains are as planned.
static void feedback(void **state) {
  (void)state;
  const char *const settings[] = {"planner=ilqg", "ilqg_iterations=2", NULL};
  SinewError err;
  SinewPlanner *p = make(settings, 3);
  const SinewSizes *m = sinew_model_sizes(model);
  SinewPlanRequest r = request_at_start(p);
  double ctrl[16], plain[16], qpos[32], qvel[32], act[32];
  bool corrected = true;
  r.gain_rows = 3;
  test_refused(sinew_planner_feedback(p, &r.state, ctrl, &corrected, &err), &err, SINEW_ERR_NO_PLAN, "no plan");
  const SinewPlan *plan = plan_now(p, &r);
  assert_true(plan->gain && plan->gain_rows == 3 && plan->qpos && m->nu <= 16 && m->nq <= 32);
  for (int row = 0; row < 5; ++row) {
    SinewState s = {.time = plan->start + row * plan->step, .qpos = qpos, .qvel = qvel, .act = act};
    const int n = 2 * m->nv + m->na;
    double difference[96], turned[32];
    for (int k = 0; k < m->nv; ++k) turned[k] = 0.01 * (k + 1);
    test_accepted(sinew_model_integrate(model, plan->qpos + row * m->nq, turned, 1, qpos, &err), &err);
    for (int k = 0; k < m->nv; ++k) qvel[k] = plan->qvel[row * m->nv + k] - 0.02 * k;
    for (int k = 0; k < m->na; ++k) act[k] = plan->act[row * m->na + k] + 0.03;
    for (int k = 0; k < m->nv; ++k) difference[k] = turned[k], difference[m->nv + k] = -0.02 * k;
    for (int k = 0; k < m->na; ++k) difference[2 * m->nv + k] = 0.03;
    test_accepted(sinew_planner_feedback(p, &s, ctrl, &corrected, &err), &err);
    test_accepted(sinew_planner_control(p, s.time, plain, &err), &err);
    assert_true(corrected == (row < 3));
    for (int i = 0; i < m->nu; ++i) {
      double u = plain[i];
      for (int k = 0; corrected && k < n; ++k) u += plan->gain[(row * m->nu + i) * n + k] * difference[k];
      const double lo = sn_planner_model(p->planner)->ctrl_range[2 * i],
                   hi = sn_planner_model(p->planner)->ctrl_range[2 * i + 1];
      if (sn_planner_model(p->planner)->ctrl_limited[i]) u = fmin(fmax(u, lo), hi);
      assert_true(fabs(u - ctrl[i]) < 1e-12);
    }
  }
  SinewState bad = {.time = plan->start, .qpos = qpos, .qvel = qvel};
  test_refused(sinew_planner_feedback(p, &bad, ctrl, NULL, &err), &err, SINEW_ERR_ARGUMENT, "act is NULL");
  bad.act = act;
  ctrl[0] = 7;
  double *const number[] = {qpos + 1, qvel + 2, act};
  static const char *const named[] = {"qpos[1] is nan", "qvel[2] is nan", "act[0] is nan"};
  for (int i = 0; i < 3; ++i) {
    const double kept = *number[i];
    *number[i] = (double)NAN;
    test_refused(sinew_planner_feedback(p, &bad, ctrl, NULL, &err), &err, SINEW_ERR_ARGUMENT, named[i]);
    *number[i] = kept;
  }
  assert_true(ctrl[0] == 7);
  test_accepted(sinew_planner_feedback(p, &bad, ctrl, &corrected, &err), &err);
  assert_true(corrected);
  test_accepted(sinew_planner_set(p, "planner=adam", &err), &err);
  test_refused(sinew_planner_plan(p, &r, NULL, &err), &err, SINEW_ERR_UNSUPPORTED, "gains: planner 'adam' makes none");
  test_accepted(sinew_planner_control(p, plan->start, plain, &err), &err);
  sinew_planner_free(p);
}

static bool is_set(void *user) { return *(const bool *)user; }

// The plan before stays in force where one is interrupted. Its gains do not: they lie where plans are made.
static void no_feedback_after_an_interruption(void **state) {
  (void)state;
  const char *const settings[] = {"planner=ilqg", "ilqg_iterations=2", "adam_iterations=10000", NULL};
  SinewError err;
  bool enough = false;
  SinewPlannerDef def = definition(settings, 3);
  def.interrupt = is_set;
  def.interrupt_user = &enough;
  SinewPlanner *p = sinew_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  SinewPlanRequest r = request_at_start(p);
  double ctrl[16], plain[16];
  bool corrected = false;
  r.gain_rows = 3;
  plan_now(p, &r);
  test_accepted(sinew_planner_feedback(p, &r.state, ctrl, &corrected, &err), &err);
  assert_true(corrected);
  enough = true;
  r.gain_rows = 0;
  test_accepted(sinew_planner_set(p, "planner=adam", &err), &err);
  test_refused(sinew_planner_plan(p, &r, NULL, &err), &err, SINEW_ERR_INTERRUPTED, "interrupted");
  test_accepted(sinew_planner_feedback(p, &r.state, ctrl, &corrected, &err), &err);
  test_accepted(sinew_planner_control(p, r.state.time, plain, &err), &err);
  assert_false(corrected);
  assert_same(ctrl, plain, (size_t)sinew_model_sizes(model)->nu);
  sinew_planner_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans_are_the_planners),
                                     cmocka_unit_test(test_no_progress),
                                     cmocka_unit_test(test_state_of_nothing),
                                     cmocka_unit_test(test_control_is_the_row),
                                     cmocka_unit_test(test_reset),
                                     cmocka_unit_test(test_budget),
                                     cmocka_unit_test(test_divergence),
                                     cmocka_unit_test(test_evaluate),
                                     cmocka_unit_test(test_targets),
                                     cmocka_unit_test(test_settings),
                                     cmocka_unit_test(test_settings_refused),
                                     cmocka_unit_test(test_definitions_refused),
                                     cmocka_unit_test(test_requests_refused),
                                     cmocka_unit_test(test_null_handles),
                                     cmocka_unit_test(feedback),
                                     cmocka_unit_test(no_feedback_after_an_interruption),
                                     cmocka_unit_test(test_two_threads)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
