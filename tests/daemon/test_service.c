// sinewd as a black box: every request, with the built-in arm.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "clients/base/statistics.h"
#include "tests/support/daemon_group.h"

static void test_hello(void **state) {
  (void)state;
  Sinew__V1__HelloRequest hello = SINEW__V1__HELLO_REQUEST__INIT;
  hello.protocol = 1;
  hello.client = "test";
  Sinew__V1__Reply *r = SN_TEST_REPLY(hello, HELLO, &hello);
  assert_int_equal(r->hello->protocol, 1);
  assert_string_equal(r->hello->version, SN_TEST_VERSION);
  static const char *const planners[] = {"sampling", "adam", "ilqg", "lbfgs", "mppi", "cem", "hybrid"};
  assert_int_equal(r->hello->n_planners, sizeof planners / sizeof *planners);
  for (size_t i = 0; i < r->hello->n_planners; i++) assert_string_equal(r->hello->planners[i], planners[i]);
  assert_string_equal(r->hello->backends[0], "cpu");
  assert_true(r->hello->limits->message_bytes > 0 && r->hello->limits->sessions > 0);
  assert_non_null(strstr(r->hello->telemetry, "ipc://"));
  assert_string_equal(r->hello->records, sinewd.records);
  sn_test_done(r);
}

static void test_models(void **state) {
  (void)state;
  Sinew__V1__ListModelsRequest list = SINEW__V1__LIST_MODELS_REQUEST__INIT;
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  Sinew__V1__UnloadModelRequest unload = SINEW__V1__UNLOAD_MODEL_REQUEST__INIT;
  Sinew__V1__DescribeModelRequest describe = SINEW__V1__DESCRIBE_MODEL_REQUEST__INIT;
  load.model = unload.model = describe.model = "arm_reach";

  Sinew__V1__Reply *r = SN_TEST_REPLY(load_model, LOAD_MODEL, &load);
  assert_string_equal(r->load_model->model, "arm_reach");
  sn_test_done(r);
  r = SN_TEST_REPLY(list_models, LIST_MODELS, &list);
  bool found = false;
  for (size_t i = 0; i < r->list_models->n_models; i++)
    found = found || (!strcmp(r->list_models->models[i]->name, "arm_reach") && r->list_models->models[i]->loaded);
  assert_true(found);
  sn_test_done(r);
  r = SN_TEST_REPLY(describe_model, DESCRIBE_MODEL, &describe);
  const Sinew__V1__ModelDescription *m = r->describe_model;
  assert_int_equal(m->nq, 2);
  assert_int_equal(m->nu, 6);
  assert_int_equal(m->na, 6);
  assert_int_equal(m->n_qpos, 2);
  assert_int_equal(m->n_ctrl, 6);
  assert_string_equal(m->qpos[1]->name, "elbow");
  assert_string_equal(m->qpos[1]->unit, "rad");
  assert_true(m->qpos[1]->limited && m->qpos[1]->min < m->qpos[1]->max);
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(m->ctrl[i]->address, i);
    assert_true(m->ctrl[i]->min == 0 && m->ctrl[i]->max == 1 && m->ctrl[i]->name[0]);
  }
  sn_test_done(r);
  sn_test_done(SN_TEST_REPLY(unload_model, UNLOAD_MODEL, &unload));
  r = sn_test_request(&client, &(Sinew__V1__Request){.base = PROTOBUF_C_MESSAGE_INIT(&sinew__v1__request__descriptor),
                                                     .body_case = SINEW__V1__REQUEST__BODY_UNLOAD_MODEL,
                                                     .unload_model = &unload});
  sn_test_expect_error(r, SINEW__V1__ERROR__CODE__NOT_FOUND, "not loaded");
}

static void test_model_in_use_stays(void **state) {
  (void)state;
  Sinew__V1__UnloadModelRequest unload = SINEW__V1__UNLOAD_MODEL_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  uint64_t session = sn_test_open(&client, "arm_reach", 0, NULL);
  unload.model = "arm_reach.xml";
  request.body_case = SINEW__V1__REQUEST__BODY_UNLOAD_MODEL;
  request.unload_model = &unload;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__STATE, "in use by 1 session");
  Sinew__V1__CloseRequest close_it = SINEW__V1__CLOSE_REQUEST__INIT;
  close_it.session = session;
  sn_test_done(SN_TEST_REPLY(close, CLOSE, &close_it));
}

static void test_tasks(void **state) {
  (void)state;
  Sinew__V1__ListTasksRequest list = SINEW__V1__LIST_TASKS_REQUEST__INIT;
  Sinew__V1__DescribeTaskRequest describe = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
  Sinew__V1__Reply *r = SN_TEST_REPLY(list_tasks, LIST_TASKS, &list);
  bool found = false;
  for (size_t i = 0; i < r->list_tasks->n_tasks; i++) {
    assert_string_equal(r->list_tasks->tasks[i]->error, "");
    found = found || !strcmp(r->list_tasks->tasks[i]->name, "arm_reach");
  }
  assert_true(found);
  sn_test_done(r);
  describe.task = "arm_reach";
  r = SN_TEST_REPLY(describe_task, DESCRIBE_TASK, &describe);
  assert_int_equal(r->describe_task->model->nu, 6);
  assert_int_equal(r->describe_task->initial->n_qpos, 2);
  assert_true(r->describe_task->n_terms >= 1 && r->describe_task->terms[0]->target_size == 3);
  assert_true(r->describe_task->n_measures >= 1);
  assert_true(r->describe_task->measures[0]->below > 0);
  assert_int_equal(r->describe_task->settings->has_horizon_case, SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON);
  sn_test_done(r);
}

static void check_plan(const Sinew__V1__Plan *p, uint64_t session, double time) {
  assert_int_equal(p->session, session);
  assert_int_equal(p->status, SINEW__V1__PLAN__STATUS__OK);
  assert_true(p->state_time == time);
  assert_true(p->step > 0 && p->steps > 0);
  assert_int_equal(p->n_ctrl, p->steps * 6);
  for (size_t i = 0; i < p->n_ctrl; i++) assert_true(p->ctrl[i] >= 0 && p->ctrl[i] <= 1);
  assert_true(p->cost_after <= p->cost_before);
  double sum = 0;
  assert_true(isnan(p->gradient_norm));  // sampling makes none
  for (size_t i = 0; i < p->n_terms; i++) sum += p->terms[i]->cost;
  assert_true(fabs(sum - p->cost_after) <= 1e-6 * (1 + fabs(sum)));
  assert_true(p->time_to_live > 0 && p->age >= 0);
}

// Gains by request: of the rows behind the lead, with states. A planner without them refuses, and its plan stays.
static void test_gains(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  uint64_t session = sn_test_open(&client, "arm_reach", 3, &opened);
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__SetConfigRequest config = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  plan.session = config.session = session;
  plan.state = opened->open->initial;
  plan.deadline = 5;
  plan.has_gain_rows_case = SINEW__V1__PLAN_REQUEST__HAS_GAIN_ROWS_GAIN_ROWS;
  plan.gain_rows = 4;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 1;
  sn_test_expect_error(sn_test_request(&client, SN_TEST_MESSAGE(plan, PLAN, &plan)),
                       SINEW__V1__ERROR__CODE__UNSUPPORTED, "gains: planner 'sampling' makes none, 'ilqg' does");
  settings.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  settings.planner = "ilqg";
  config.planner = &settings;
  sn_test_done(SN_TEST_REPLY(set_config, SET_CONFIG, &config));
  r = SN_TEST_REPLY(plan, PLAN, &plan);
  check_plan(r->plan, session, 0);
  assert_int_equal(r->plan->sequence, 1);
  assert_int_equal(r->plan->gain_rows, 4);
  assert_int_equal(r->plan->n_gain, 4 * 6 * (2 * 2 + 6));
  assert_int_equal(r->plan->states->n_time, r->plan->steps + 1);
  sn_test_done(r);
  sn_test_done(opened);
}

// Plans of a session, states asked for, act given and left out; then the plan's own controls evaluated.
static void test_plan_and_evaluate(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  uint64_t session = sn_test_open(&client, "arm_reach", 3, &opened);
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  plan.session = session;
  plan.state = opened->open->initial;
  plan.deadline = 5;
  plan.want_states = true;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 2;
  r = SN_TEST_REPLY(plan, PLAN, &plan);
  check_plan(r->plan, session, 0);
  assert_int_equal(r->plan->sequence, 1);
  assert_int_equal(r->plan->iterations, 2);
  assert_true(r->plan->deadline_met);
  assert_false(r->plan->act_estimated);
  assert_int_equal(r->plan->states->n_time, r->plan->steps + 1);
  assert_int_equal(r->plan->states->n_qpos, 2 * (r->plan->steps + 1));

  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  evaluate.session = session;
  evaluate.state = opened->open->initial;
  evaluate.ctrl = r->plan->ctrl;
  evaluate.n_ctrl = r->plan->n_ctrl;
  evaluate.want_states = true;
  Sinew__V1__Reply *e = SN_TEST_REPLY(evaluate, EVALUATE, &evaluate);
  assert_false(e->evaluate->diverged);
  assert_true(fabs(e->evaluate->cost - r->plan->cost_after) <= 1e-12 * (1 + r->plan->cost_after));
  assert_int_equal(e->evaluate->states->n_qpos, r->plan->states->n_qpos);
  assert_true(e->evaluate->n_measures >= 1);
  sn_test_done(e);
  evaluate.n_ctrl = 0;
  e = SN_TEST_REPLY(evaluate, EVALUATE, &evaluate);
  assert_true(e->evaluate->cost >= 0);
  sn_test_done(e);

  // The next state, a few steps on, without act.
  Sinew__V1__State next = SINEW__V1__STATE__INIT;
  next.time = r->plan->states->time[4];
  next.qpos = r->plan->states->qpos + 2 * 4;
  next.qvel = r->plan->states->qvel + 2 * 4;
  next.n_qpos = next.n_qvel = 2;
  plan.state = &next;
  Sinew__V1__Reply *second = SN_TEST_REPLY(plan, PLAN, &plan);
  check_plan(second->plan, session, next.time);
  assert_int_equal(second->plan->sequence, 2);
  assert_true(second->plan->act_estimated);
  sn_test_done(second);
  sn_test_done(r);
  sn_test_done(opened);
}

// With an expected latency the plan begins with the rows of the plan in force that fill it; controls that were applied
// instead count for the estimate of act.
static void test_latency_and_applied_controls(void **state) {
  (void)state;
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  settings.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  settings.latency = 0.02;
  settings.has_time_to_live_case = SINEW__V1__SESSION_SETTINGS__HAS_TIME_TO_LIVE_TIME_TO_LIVE;
  settings.time_to_live = 0.25;
  open.task = "arm_reach";
  open.planner = sn_test_sampling();
  open.session = &settings;
  Sinew__V1__Reply *opened = SN_TEST_REPLY(open, OPEN, &open), *r[2];
  assert_true(opened->open->config->session->latency == 0.02);

  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  plan.session = opened->open->session;
  plan.state = opened->open->initial;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 1;
  r[0] = SN_TEST_REPLY(plan, PLAN, &plan);
  assert_int_equal(r[0]->plan->lead, 4);
  assert_true(r[0]->plan->start == r[0]->plan->state_time);
  assert_true(r[0]->plan->time_to_live == 0.25);

  Sinew__V1__State next = *opened->open->initial;
  Sinew__V1__Controls applied = SINEW__V1__CONTROLS__INIT;
  double times[] = {0, 0.02}, ctrl[12] = {1, 1, 1, 1, 1, 1};
  next.time = 0.04;
  next.n_act = 0;
  plan.state = &next;
  r[1] = SN_TEST_REPLY(plan, PLAN, &plan);
  assert_true(r[1]->plan->act_estimated);
  assert_memory_equal(r[1]->plan->ctrl, r[0]->plan->ctrl + 6 * 8, 4 * 6 * sizeof(double));
  applied.time = times;
  applied.ctrl = ctrl;
  applied.n_time = 2;
  applied.n_ctrl = 12;
  plan.applied = &applied;
  next.time = 0.08;
  Sinew__V1__Reply *last = SN_TEST_REPLY(plan, PLAN, &plan);
  assert_true(last->plan->act_estimated);
  sn_test_done(last);
  sn_test_done(r[0]);
  sn_test_done(r[1]);
  sn_test_done(opened);
}

// What a gradient is asked of.
typedef struct Probe {
  Sinew__V1__EvaluateRequest evaluate;
  Sinew__V1__State state;
  double ctrl[8 * 6], qpos[16], qvel[16], act[16];
} Probe;

static void fill_probe(uint64_t session, const Sinew__V1__State *at, Probe *p) {
  *p = (Probe){.evaluate = SINEW__V1__EVALUATE_REQUEST__INIT, .state = *at};
  memcpy(p->qpos, at->qpos, at->n_qpos * sizeof(double));
  for (size_t i = 0; i < at->n_qvel; i++) p->qvel[i] = 0.1 + 0.2 * (double)i;
  for (size_t i = 0; i < at->n_act; i++) p->act[i] = 0.1 + 0.05 * (double)i;
  for (int i = 0; i < 8 * 6; i++) p->ctrl[i] = 0.2 + 0.6 * (i * 7 % 48) / 48.0;
  p->state.qpos = p->qpos;
  p->state.qvel = p->qvel;
  p->state.act = p->act;
  p->evaluate.session = session;
  p->evaluate.state = &p->state;
  p->evaluate.ctrl = p->ctrl;
  p->evaluate.n_ctrl = 8 * 6;
}

static double cost_of(Probe *p) {
  Sinew__V1__Reply *r = SN_TEST_REPLY(evaluate, EVALUATE, &p->evaluate);
  const double cost = r->evaluate->cost;
  assert_null(r->evaluate->gradient);
  sn_test_done(r);
  return cost;
}

// Central difference of the cost by one number of the probe.
static double difference(Probe *p, double *x) {
  const double h = 1e-5, at = *x;
  *x = at + h;
  const double up = cost_of(p);
  *x = at - h;
  const double down = cost_of(p);
  *x = at;
  return (up - down) / (2 * h);
}

static void expect_close(const char *what, size_t i, double given, double wanted, double scale) {
  if (!(fabs(given - wanted) <= 1e-5 * scale)) fail_msg("%s[%zu]: %.9g, differences say %.9g", what, i, given, wanted);
}

static void set_reach(uint64_t session, double *target) {
  Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  Sinew__V1__TermSettings term = SINEW__V1__TERM_SETTINGS__INIT, *terms[] = {&term};
  term.name = "reach";
  term.target = target;
  term.n_target = 3;
  set.session = session;
  set.terms = terms;
  set.n_terms = 1;
  sn_test_done(SN_TEST_REPLY(set_config, SET_CONFIG, &set));
}

static double largest(const double *x, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) most = sn_larger(most, fabs(x[i]));
  return most;
}

// Cost and gradient of controls that the client chose, against differences of the cost that the daemon gives.
static void test_gradient(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  Sinew__V1__HelloRequest hello = SINEW__V1__HELLO_REQUEST__INIT;
  hello.protocol = 1;
  Sinew__V1__Reply *answer = SN_TEST_REPLY(hello, HELLO, &hello);
  const bool exact = !strcmp(answer->hello->number, "double");  // differences of a float say little
  sn_test_done(answer);
  Probe p;
  uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  fill_probe(id, opened->open->initial, &p);
  double target[] = {0.4, 0.1, 1.3};
  set_reach(id, target);
  p.evaluate.want_gradient = true;
  Sinew__V1__Reply *r = SN_TEST_REPLY(evaluate, EVALUATE, &p.evaluate);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_EVALUATE);
  const Sinew__V1__Gradient *g = r->evaluate->gradient;
  assert_non_null(g);
  assert_int_equal(g->status, SINEW__V1__GRADIENT__STATUS__OK);
  assert_true(g->n_ctrl == 48 && g->n_qpos == p.state.n_qvel && g->n_act == p.state.n_act);
  p.evaluate.want_gradient = false;
  assert_true(cost_of(&p) == r->evaluate->cost);
  double scale = largest(g->ctrl, 48), norm = 0;
  assert_true(scale > 0);
  for (size_t i = 0; i < 48; i++) norm += g->ctrl[i] * g->ctrl[i];
  assert_true(fabs(sqrt(norm) - g->norm) < 1e-6 * g->norm);
  if (exact) {
    for (size_t i = 0; i < 48; i += 5) expect_close("ctrl", i, g->ctrl[i], difference(&p, p.ctrl + i), scale);
    for (size_t i = 0; i < g->n_qpos; i++)
      expect_close("qpos", i, g->qpos[i], difference(&p, p.qpos + i), largest(g->qpos, g->n_qpos));
    for (size_t i = 0; i < g->n_qvel; i++)
      expect_close("qvel", i, g->qvel[i], difference(&p, p.qvel + i), largest(g->qvel, g->n_qvel));
    for (size_t i = 0; i < g->n_act; i++)
      expect_close("act", i, g->act[i], difference(&p, p.act + i), largest(g->act, g->n_act));
  }
  // A constant target: the sum over the steps.
  assert_string_equal(g->targets[0]->name, "reach");
  assert_true(g->targets[0]->size == 3 && g->targets[0]->n_target == 3 * 9);
  for (size_t k = 0; k < 3 && exact; k++) {
    double sum = 0, cost[2];
    for (size_t t = 0; t < 9; t++) sum += g->targets[0]->target[3 * t + k];
    for (int i = 0; i < 2; i++) {
      double moved[] = {target[0], target[1], target[2]};
      moved[k] += i ? -1e-5 : 1e-5;
      set_reach(id, moved);
      cost[i] = cost_of(&p);
    }
    expect_close("target", k, sum, (cost[0] - cost[1]) / 2e-5, 1);
  }
  sn_test_done(r);
  p.evaluate.want_gradient = true;
  p.evaluate.n_ctrl = 0;
  Sinew__V1__Request bad = SINEW__V1__REQUEST__INIT;
  bad.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  bad.evaluate = &p.evaluate;
  sn_test_expect_error(sn_test_request(&client, &bad), SINEW__V1__ERROR__CODE__INVALID, "needs ctrl");
  sn_test_done(opened);
}

// The same seed, state and number of iterations give the same plan.
static void test_reproducible(void **state) {
  (void)state;
  Sinew__V1__Reply *opened[2], *r[2];
  for (int i = 0; i < 2; i++) {
    Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
    plan.session = sn_test_open(&client, "arm_reach", 11, &opened[i]);
    plan.state = opened[i]->open->initial;
    plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
    plan.iterations = 2;
    r[i] = SN_TEST_REPLY(plan, PLAN, &plan);
  }
  assert_int_equal(r[0]->plan->n_ctrl, r[1]->plan->n_ctrl);
  assert_memory_equal(r[0]->plan->ctrl, r[1]->plan->ctrl, r[0]->plan->n_ctrl * sizeof(double));
  for (int i = 0; i < 2; i++) {
    sn_test_done(opened[i]);
    sn_test_done(r[i]);
  }
}

static void test_reset_and_close(void **state) {
  (void)state;
  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  Sinew__V1__CloseRequest close_it = SINEW__V1__CLOSE_REQUEST__INIT;
  Sinew__V1__Reply *opened;
  reset.session = close_it.session = sn_test_open(&client, "arm_reach", 5, &opened);
  sn_test_done(sn_test_plan(&client, reset.session, opened->open->initial, 0.02));
  Sinew__V1__Reply *r = SN_TEST_REPLY(reset, RESET, &reset);
  assert_memory_equal(r->reset->initial->qpos, opened->open->initial->qpos, 2 * sizeof(double));
  sn_test_done(r);
  reset.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
  reset.seed = 6;
  r = SN_TEST_REPLY(reset, RESET, &reset);
  assert_memory_not_equal(r->reset->initial->qpos, opened->open->initial->qpos, 2 * sizeof(double));
  sn_test_done(r);
  sn_test_done(SN_TEST_REPLY(close, CLOSE, &close_it));
  sn_test_send_plan(&client, close_it.session, opened->open->initial, 0.02);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__NOT_FOUND, "no session");
  sn_test_done(opened);
}

// Plans without noise get no better: each says for how long, and so do the statistics.
static void test_no_improvement(void **state) {
  (void)state;
  Sinew__V1__PlannerSettings planner = SINEW__V1__PLANNER_SETTINGS__INIT;
  planner.has_patience_case = SINEW__V1__PLANNER_SETTINGS__HAS_PATIENCE_PATIENCE;
  planner.patience = 2;
  planner.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  planner.planner = "sampling";
  planner.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  planner.candidates = 1;
  Sinew__V1__Reply *opened;
  const uint64_t session = sn_test_open_by(&client, "arm_reach", 0, &planner, &opened);
  assert_int_equal(opened->open->config->planner->patience, 2);
  for (uint32_t k = 1; k < 4; k++) {
    Sinew__V1__Reply *r = sn_test_plan(&client, session, opened->open->initial, 0.2);
    assert_int_equal(r->plan->unimproved, k);
    assert_false(r->plan->stuck);
    assert_string_equal(r->plan->remark, k == 1   ? ""
                                         : k == 2 ? "no improvement for 2 plans"
                                                  : "no improvement for 3 plans");
    sn_test_done(r);
    r = sn_test_statistics(&client, session);
    assert_true(r->statistics->sessions[0]->unimproved == k && !r->statistics->sessions[0]->stuck);
    sn_test_done(r);
  }
  sn_test_done(opened);
}

// A session whose rollouts move by chosen steps: its settings come back, plans get better, what it cannot be is
// refused.
static void test_integrator(void **state) {
  (void)state;
  Sinew__V1__PlannerSettings planner = SINEW__V1__PLANNER_SETTINGS__INIT;
  planner.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  planner.planner = "adam";
  planner.has_adam_iterations_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_ITERATIONS_ADAM_ITERATIONS;
  planner.adam_iterations = 3;
  planner.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  planner.horizon = 16;
  planner.has_integrator_case = SINEW__V1__PLANNER_SETTINGS__HAS_INTEGRATOR_INTEGRATOR;
  planner.integrator = "bosh3";
  planner.has_rtol_case = SINEW__V1__PLANNER_SETTINGS__HAS_RTOL_RTOL;
  planner.rtol = 1e-3;
  planner.has_atol_case = SINEW__V1__PLANNER_SETTINGS__HAS_ATOL_ATOL;
  planner.atol = 1e-4;
  planner.has_max_steps_case = SINEW__V1__PLANNER_SETTINGS__HAS_MAX_STEPS_MAX_STEPS;
  planner.max_steps = 5000;
  Sinew__V1__Reply *opened;
  const uint64_t session = sn_test_open_by(&client, "arm_reach", 0, &planner, &opened);
  const Sinew__V1__PlannerSettings *in_force = opened->open->config->planner;
  assert_string_equal(in_force->integrator, "bosh3");
  assert_true(in_force->rtol == 1e-3 && in_force->atol == 1e-4 && in_force->max_steps == 5000);
  Sinew__V1__Reply *r = sn_test_plan(&client, session, opened->open->initial, 30);
  assert_int_equal(r->plan->status, SINEW__V1__PLAN__STATUS__OK);
  assert_true(r->plan->cost_after < r->plan->cost_before);
  sn_test_done(r);
  sn_test_done(opened);
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.planner = &planner;
  planner.planner = "ilqg";
  sn_test_expect_error(sn_test_request(&client, SN_TEST_MESSAGE(open, OPEN, &in)), SINEW__V1__ERROR__CODE__UNSUPPORTED,
                       "integrator: 'bosh3'");
  planner.planner = "adam";
  planner.integrator = "bosh4";
  sn_test_expect_error(sn_test_request(&client, SN_TEST_MESSAGE(open, OPEN, &in)), SINEW__V1__ERROR__CODE__INVALID,
                       "did you mean 'bosh3'?");
}

// While a session lives its integrator stays.
static void test_integrator_is_fixed(void **state) {
  (void)state;
  Sinew__V1__PlannerSettings planner = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  set.session = sn_test_open(&client, "arm_reach", 0, NULL);
  set.planner = &planner;
  planner.has_integrator_case = SINEW__V1__PLANNER_SETTINGS__HAS_INTEGRATOR_INTEGRATOR;
  planner.integrator = "tsit5";
  sn_test_expect_error(sn_test_request(&client, SN_TEST_MESSAGE(set_config, SET_CONFIG, &set)),
                       SINEW__V1__ERROR__CODE__STATE, "integrator: cannot change while the planner runs");
}

static void test_statistics_and_health(void **state) {
  (void)state;
  Sinew__V1__StatisticsRequest statistics = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Reply *opened;
  statistics.session = sn_test_open(&client, "arm_reach", 0, &opened);
  Sinew__V1__Reply *r = SN_TEST_REPLY(statistics, STATISTICS, &statistics);
  assert_true(isnan(r->statistics->sessions[0]->cost));
  sn_test_done(r);
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  plan.session = statistics.session;
  plan.state = opened->open->initial;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 1;
  for (int i = 0; i < 5; i++) sn_test_done(SN_TEST_REPLY(plan, PLAN, &plan));
  r = SN_TEST_REPLY(statistics, STATISTICS, &statistics);
  assert_int_equal(r->statistics->n_sessions, 1);
  const Sinew__V1__SessionStatistics *s = r->statistics->sessions[0];
  assert_int_equal(s->plans, 5);
  assert_string_equal(s->task, "arm_reach");
  assert_true(s->cost > 0);
  assert_true(s->latency_p50 > 0 && s->latency_p50 <= s->latency_p99);
  assert_true(r->statistics->plans >= 5 && r->statistics->requests > 5);
  sn_test_done(r);
  r = SN_TEST_REPLY(health, HEALTH, &health);
  assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__READY);
  assert_true(r->health->sessions >= 1 && r->health->models >= 1 && r->health->memory_bytes > 0);
  sn_test_done(r);
  sn_test_done(opened);
}

static void test_telemetry(void **state) {
  (void)state;
  char endpoint[160];
  unsigned char bytes[65536];
  int wait_ms = 5000;
  snprintf(endpoint, sizeof endpoint, "%s.telemetry", sinewd.endpoint);
  void *sub = zmq_socket(client.context, ZMQ_SUB);
  zmq_setsockopt(sub, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
  zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "", 0);
  assert_int_equal(zmq_connect(sub, endpoint), 0);
  int n = zmq_recv(sub, bytes, sizeof bytes, 0);
  assert_true(n > 0);
  Sinew__V1__Telemetry *t = sinew__v1__telemetry__unpack(NULL, (size_t)n, bytes);
  assert_non_null(t);
  assert_true(t->time > 0 && t->statistics->requests > 0);
  sinew__v1__telemetry__free_unpacked(t, NULL);
  zmq_close(sub);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_hello),
      cmocka_unit_test(test_models),
      cmocka_unit_test(test_model_in_use_stays),
      cmocka_unit_test(test_tasks),
      cmocka_unit_test(test_gains),
      cmocka_unit_test(test_plan_and_evaluate),
      cmocka_unit_test(test_latency_and_applied_controls),
      cmocka_unit_test(test_gradient),
      cmocka_unit_test(test_reproducible),
      cmocka_unit_test(test_reset_and_close),
      cmocka_unit_test(test_no_improvement),
      cmocka_unit_test(test_integrator),
      cmocka_unit_test(test_integrator_is_fixed),
      cmocka_unit_test(test_statistics_and_health),
      cmocka_unit_test(test_telemetry),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
