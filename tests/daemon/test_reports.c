// What sinewd reports of itself, by value: its limits, whose statistics they are, totals, what is loaded, whether its
// planner lives.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

// A request with that body, and its reply.
#define REQUEST(kind, KIND, message) sn_test_request(&client, SN_TEST_MESSAGE(kind, KIND, message))

static Sinew__V1__Reply *plan_now(uint64_t session, Sinew__V1__State *state) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  plan.session = session;
  plan.state = state;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 1;
  Sinew__V1__Reply *r = REQUEST(plan, PLAN, &plan);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  return r;
}

static void close_session(uint64_t session) {
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = session;
  sn_test_done(REQUEST(close, CLOSE, &in));
}

// Limits are those of the configuration, each its own.
static void test_limits(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  SnTestClient c;
  sn_test_daemon_start(&d, (const char *const[]){"--sessions=5", "--horizon=333", "--loaded=7", "--loaders=2",
                                                 "--queue=11", "--message-bytes=54321", "--candidates=99", NULL});
  sn_test_connect(&c, d.endpoint);
  Sinew__V1__HelloRequest hello = SINEW__V1__HELLO_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  hello.protocol = 1;
  request.body_case = SINEW__V1__REQUEST__BODY_HELLO;
  request.hello = &hello;
  Sinew__V1__Reply *r = sn_test_request(&c, &request);
  const Sinew__V1__Limits *limits = r->hello->limits;
  assert_int_equal(limits->message_bytes, 54321);
  assert_int_equal(limits->sessions, 5);
  assert_int_equal(limits->horizon, 333);
  assert_int_equal(limits->models, 7);
  assert_int_equal(limits->queue, 11);
  sn_test_done(r);

  // The longest plan is also the longest evaluation, and more candidates than allowed are refused.
  static double ctrl[6 * 334];
  Sinew__V1__Reply *opened;
  Sinew__V1__PlannerSettings small = SINEW__V1__PLANNER_SETTINGS__INIT;
  small.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  small.horizon = 333;
  small.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  small.candidates = 99;
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  evaluate.session = sn_test_open_by(&c, "arm_reach", 1, &small, &opened);
  evaluate.state = opened->open->initial;
  evaluate.ctrl = ctrl;
  request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  request.evaluate = &evaluate;
  evaluate.n_ctrl = 6 * 333;
  r = sn_test_request(&c, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_EVALUATE);
  sn_test_done(r);
  evaluate.n_ctrl = 6 * 334;
  sn_test_expect_error(sn_test_request(&c, &request), SINEW__V1__ERROR__CODE__INVALID, "at most 333 rows");
  evaluate.n_ctrl = 6 * 3 + 1;
  sn_test_expect_error(sn_test_request(&c, &request), SINEW__V1__ERROR__CODE__INVALID, "rows of 6");
  Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  set.session = evaluate.session;
  set.planner = &small;
  request.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  request.set_config = &set;
  small.candidates = 100;
  sn_test_expect_error(sn_test_request(&c, &request), SINEW__V1__ERROR__CODE__LIMIT,
                       "candidates: 100 is out of bounds");
  sn_test_done(opened);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

// Three sessions with numbers of their own: each has its own statistics, alone and among all, and the totals are sums.
static void test_whose_statistics(void **state) {
  (void)state;
  enum { SESSIONS = 3 };
  Sinew__V1__Reply *opened[SESSIONS], *all = sn_test_statistics(&client, 0);
  uint64_t id[SESSIONS], plans = all->statistics->plans;
  double cost[SESSIONS];
  sn_test_done(all);
  for (int i = 0; i < SESSIONS; i++) {
    id[i] = sn_test_open(&client, i == 1 ? "billiard" : "arm_reach", (uint64_t)i, &opened[i]);
    for (int k = 0; k <= i; k++) {
      Sinew__V1__Reply *r = plan_now(id[i], opened[i]->open->initial);
      cost[i] = r->plan->cost_after;
      sn_test_done(r);
    }
  }
  all = sn_test_statistics(&client, 0);
  assert_int_equal(all->statistics->plans, plans + 1 + 2 + 3);
  for (int i = 0; i < SESSIONS; i++) {
    Sinew__V1__Reply *one = sn_test_statistics(&client, id[i]);
    assert_int_equal(one->statistics->n_sessions, 1);
    int found = 0;
    for (size_t k = 0; k <= all->statistics->n_sessions; k++) {
      const bool alone = k == all->statistics->n_sessions;
      const Sinew__V1__SessionStatistics *s = alone ? one->statistics->sessions[0] : all->statistics->sessions[k];
      if (s->session != id[i]) continue;
      found++;
      assert_int_equal(s->plans, i + 1);
      assert_int_equal(s->iterations, i + 1);
      assert_true(s->misses == 0 && s->replaced == 0 && s->sent == 0 && !s->streaming && s->config_version == 1);
      assert_true(s->cost == cost[i] && s->best_cost <= cost[i]);
      assert_string_equal(s->task, i == 1 ? "billiard" : "arm_reach");
      assert_string_equal(s->backend, "cpu");
    }
    assert_int_equal(found, 2);
    sn_test_done(one);
  }
  sn_test_done(all);
  for (int i = 0; i < SESSIONS; i++) {
    close_session(id[i]);
    sn_test_done(opened[i]);
  }
}

// Requests, errors and messages that were none: each request counts once, by what became of it.
static void test_totals(void **state) {
  (void)state;
  Sinew__V1__Reply *before = sn_test_statistics(&client, 0);
  for (int i = 0; i < 3; i++) {
    Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
    in.session = 7;
    sn_test_expect_error(REQUEST(close, CLOSE, &in), SINEW__V1__ERROR__CODE__NOT_FOUND, "no session 7");
  }
  for (int i = 0; i < 2; i++) {
    sn_test_send_bytes(&client, "\xff\xff\xff", 3);
    sn_test_expect_error(sn_test_receive(&client, 30), SINEW__V1__ERROR__CODE__MALFORMED, "no sinew.v1.Request");
  }
  Sinew__V1__Reply *after = sn_test_statistics(&client, 0);
  const Sinew__V1__Statistics *a = before->statistics, *b = after->statistics;
  assert_int_equal(b->requests - a->requests, 3 + 2 + 1);
  assert_int_equal(b->errors - a->errors, 3 + 2);
  assert_int_equal(b->malformed - a->malformed, 2);
  assert_true(b->uptime > a->uptime);
  sn_test_done(before);
  sn_test_done(after);
}

// States that were replaced, of the session and of the daemon.
static void test_replaced_in_total(void **state) {
  (void)state;
  enum { STATES = 20 };
  Sinew__V1__Reply *opened, *before = sn_test_statistics(&client, 0);
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  for (int i = 0; i < STATES; i++) sn_test_send_plan(&client, id, opened->open->initial, 0.2);
  uint64_t replaced = 0;
  for (int i = 0; i < STATES; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&client, 30);
    assert_non_null(r);
    replaced += r->plan->status == SINEW__V1__PLAN__STATUS__REPLACED;
    sn_test_done(r);
  }
  Sinew__V1__Reply *after = sn_test_statistics(&client, 0);
  assert_true(replaced > 0);
  assert_int_equal(after->statistics->replaced - before->statistics->replaced, replaced);
  assert_int_equal(after->statistics->plans - before->statistics->plans, STATES - replaced);
  close_session(id);
  sn_test_done(before);
  sn_test_done(after);
  sn_test_done(opened);
}

// The best cost is that since the opening, a change or a reset: costs before do not compare with those after.
static void test_best_cost_begins_anew(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  for (int i = 0; i < 3; i++) {
    Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
    Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
    reset.session = set.session = id;
    if (i == 1) sn_test_done(REQUEST(reset, RESET, &reset));
    if (i == 2) sn_test_done(REQUEST(set_config, SET_CONFIG, &set));
    r = sn_test_statistics(&client, id);
    assert_true(r->statistics->sessions[0]->best_cost == (double)INFINITY);
    assert_int_equal(r->statistics->sessions[0]->config_version, i == 2 ? 2 : 1);
    sn_test_done(r);
    Sinew__V1__Reply *plan = plan_now(id, opened->open->initial);
    r = sn_test_statistics(&client, id);
    assert_true(r->statistics->sessions[0]->best_cost == plan->plan->cost_after);
    sn_test_done(plan);
    sn_test_done(r);
  }
  close_session(id);
  sn_test_done(opened);
}

// How the model stands in the list: -1 not loaded, else its sessions.
static int users_of(const char *model) {
  Sinew__V1__ListModelsRequest list = SINEW__V1__LIST_MODELS_REQUEST__INIT;
  Sinew__V1__Reply *r = REQUEST(list_models, LIST_MODELS, &list);
  int users = -2;
  for (size_t i = 0; i < r->list_models->n_models; i++) {
    const Sinew__V1__ModelSummary *m = r->list_models->models[i];
    if (!strcmp(m->name, model)) users = m->loaded ? (int)m->sessions : -1;
  }
  sn_test_done(r);
  return users;
}

// Waits until sessions that were closed have let a model go: the planner thread frees them when it comes to it.
static void expect_unused(const char *model) {
  for (const double until = sn_clock_now() + 30; users_of(model) > 0 && sn_clock_now() < until;) usleep(10000);
  assert_true(users_of(model) <= 0);
}

static Sinew__V1__Health health_of(SnTestClient *c) {
  Sinew__V1__HealthRequest in = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_HEALTH;
  request.health = &in;
  Sinew__V1__Reply *r = sn_test_request(c, &request);
  const Sinew__V1__Health out = *r->health;
  sn_test_done(r);
  return out;
}

// Models and sessions as they come and go: a model stays loaded when its last session has gone, until it is unloaded.
static void test_what_is_loaded(void **state) {
  (void)state;
  Sinew__V1__UnloadModelRequest unload = SINEW__V1__UNLOAD_MODEL_REQUEST__INIT;
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  expect_unused("arm_reach");
  expect_unused("billiard");
  const Sinew__V1__Health begin = health_of(&client);
  const unsigned models = begin.models - (users_of("arm_reach") >= 0) - (users_of("billiard") >= 0);
  uint64_t id[3];
  for (int i = 0; i < 3; i++) {
    id[i] = sn_test_open(&client, i == 2 ? "billiard" : "arm_reach", 0, NULL);
    assert_int_equal(users_of("arm_reach"), i == 0 ? 1 : 2);
  }
  assert_int_equal(users_of("billiard"), 1);
  const Sinew__V1__Health full = health_of(&client);
  assert_int_equal(full.sessions, begin.sessions + 3);
  assert_int_equal(full.models, models + 2);
  for (int i = 0; i < 3; i++) close_session(id[i]);
  assert_int_equal(health_of(&client).sessions, begin.sessions);
  expect_unused("arm_reach");
  assert_int_equal(users_of("arm_reach"), 0);
  assert_int_equal(health_of(&client).models, models + 2);
  unload.model = load.model = "arm_reach";
  Sinew__V1__Reply *r = REQUEST(unload_model, UNLOAD_MODEL, &unload);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_UNLOAD_MODEL);
  sn_test_done(r);
  assert_int_equal(users_of("arm_reach"), -1);
  assert_int_equal(health_of(&client).models, models + 1);
  sn_test_done(REQUEST(load_model, LOAD_MODEL, &load));
  assert_int_equal(users_of("arm_reach"), 0);
}

// Names, addresses and sizes as they follow from the model, in order; each entry of the vector belongs to one of them.
static void expect_quantities(const char *what, Sinew__V1__Quantity **list, size_t n, const char *names,
                              unsigned size) {
  char text[256] = "";
  unsigned next = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s:%u", i ? " " : "", list[i]->name, list[i]->size);
    if (list[i]->address != next) fail_msg("%s: '%s' is at %u, wanted %u", what, list[i]->name, list[i]->address, next);
    next += list[i]->size;
  }
  assert_string_equal(text, names);
  assert_int_equal(next, size);
}

// A model with joints of every kind: a quaternion has four numbers and three velocities.
static void test_description(void **state) {
  (void)state;
  sn_test_daemon_write(
      &sinewd, "models/kinds.xml",
      "<mujoco><option timestep='0.004'/><worldbody><body name='hand' mocap='true'/>"
      "<body name='aim' mocap='true'/><body><freejoint name='free'/><geom size='.1'/>"
      "<body><joint name='ball' type='ball'/><geom size='.1'/>"
      "<body><joint name='hinge' range='-1 2' limited='true'/><geom size='.1'/>"
      "<body><joint name='slide' type='slide'/><geom size='.1'/></body></body></body></body></worldbody>"
      "<actuator><motor name='push' joint='slide'/><general name='lag' joint='hinge' dyntype='filter' "
      "dynprm='.1' ctrlrange='-3 4' ctrllimited='true'/></actuator></mujoco>");
  Sinew__V1__DescribeModelRequest describe = SINEW__V1__DESCRIBE_MODEL_REQUEST__INIT;
  describe.model = "kinds";
  Sinew__V1__Reply *r = REQUEST(describe_model, DESCRIBE_MODEL, &describe);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  const Sinew__V1__ModelDescription *m = r->describe_model;
  assert_true(m->nq == 13 && m->nv == 11 && m->na == 1 && m->nu == 2 && m->nmocap == 2);
  assert_true(fabs(m->timestep - 0.004) < 1e-9);
  expect_quantities("qpos", m->qpos, m->n_qpos, "free:7 ball:4 hinge:1 slide:1", m->nq);
  expect_quantities("qvel", m->qvel, m->n_qvel, "free:6 ball:3 hinge:1 slide:1", m->nv);
  expect_quantities("act", m->act, m->n_act, "lag:1", m->na);
  expect_quantities("ctrl", m->ctrl, m->n_ctrl, "push:1 lag:1", m->nu);
  expect_quantities("mocap", m->mocap, m->n_mocap, "hand:7 aim:7", 7 * m->nmocap);
  assert_true(!m->qpos[0]->limited && !m->qpos[1]->limited && m->qpos[2]->limited && !m->qpos[3]->limited);
  assert_true(!m->ctrl[0]->limited && m->ctrl[1]->limited && m->ctrl[1]->min == -3 && m->ctrl[1]->max == 4);
  static const char *const units[] = {"m, quaternion", "quaternion", "rad", "m"}, *const rates[] = {"m/s, rad/s",
                                                                                                    "rad/s", "rad/s",
                                                                                                    "m/s"};
  for (int i = 0; i < 4; i++) {
    assert_string_equal(m->qpos[i]->unit, units[i]);
    assert_string_equal(m->qvel[i]->unit, rates[i]);
  }
  sn_test_done(r);
}

// Controls that wait in a buffer count for a plan; without buffers those are known that the daemon has served: none
// yet.
static void test_history(void **state) {
  (void)state;
  sn_test_daemon_write(
      &sinewd, "models/late.xml",
      "<mujoco><option timestep='0.01'/><worldbody><body><joint name='a'/><geom size='.1' pos='.2 0 0'/>"
      "</body></worldbody><actuator><motor name='late' joint='a' delay='.05' nsample='5'/></actuator>"
      "</mujoco>");
  sn_test_daemon_write(&sinewd, "tasks/late.yaml",
                       "model: late.xml\nterms:\n  - {name: speed, residual: {joint_velocity: a}, weight: 1}\n");
  enum { N = 2 + 5 + 5 };
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "late", 0, &opened);
  Sinew__V1__State *s = opened->open->initial;
  assert_int_equal(s->n_history, N);
  double waiting[N], cost[3];
  memcpy(waiting, s->history, sizeof waiting);
  for (int i = 7; i < N; i++) waiting[i] = 2;
  double *const given[3] = {s->history, NULL, waiting}, *const own = s->history;
  for (int k = 0; k < 3; k++) {
    s->history = given[k];
    s->n_history = given[k] ? N : 0;
    Sinew__V1__Reply *r = sn_test_plan(&client, id, s, 5);
    if (r->body_case != SINEW__V1__REPLY__BODY_PLAN) fail_msg("no plan");
    cost[k] = r->plan->cost_after;
    sn_test_done(r);
    s->time += 0.01;
    for (int i = 2; i < 7; i++) own[i] = waiting[i] = s->time - 0.01 * (7 - i);
  }
  assert_true(cost[2] > 1.5 * cost[0]);
  s->n_history = 3;
  sn_test_expect_error(sn_test_plan(&client, id, s, 5), SINEW__V1__ERROR__CODE__INVALID,
                       "state.history has 3 numbers; this session needs 12, or none");
  s->history = own;
  s->n_history = N;
  own[1] = 9;
  sn_test_expect_error(sn_test_plan(&client, id, s, 5), SINEW__V1__ERROR__CODE__INVALID, "past[1]: 9");
  s->n_history = 0;
  sn_test_done(opened);
}

// The rest of a spring that yields is state of a request: the spring pulls to where it says.
static void test_rests(void **state) {
  (void)state;
  sn_test_daemon_write(
      &sinewd, "models/clay.xml",
      "<mujoco><option timestep='0.01' gravity='0 0 0'/><worldbody><body><joint name='a' "
      "stiffness='20' springyield='2'/><geom size='.1' pos='.2 0 0'/></body></worldbody>"
      "<actuator><motor joint='a' gear='.01' ctrlrange='-1 1' ctrllimited='true'/></actuator></mujoco>");
  sn_test_daemon_write(&sinewd, "tasks/clay.yaml",
                       "model: clay.xml\nterms:\n  - {name: speed, residual: {joint_velocity: a}, weight: 1}\n");
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "clay", 0, &opened);
  Sinew__V1__State *s = opened->open->initial;
  assert_int_equal(s->n_history, 1);
  double cost[2];
  for (int k = 0; k < 2; k++) {
    assert_true(s->history[0] == 0.5 * k);
    Sinew__V1__Reply *r = sn_test_plan(&client, id, s, 2);
    if (r->body_case != SINEW__V1__REPLY__BODY_PLAN) fail_msg("no plan");
    cost[k] = r->plan->cost_after;
    sn_test_done(r);
    s->history[0] += 0.5;
    s->time += 0.01;
  }
  if (!(cost[1] > 10 * cost[0] + 1e-3)) fail_msg("costs %g and %g", cost[0], cost[1]);
  sn_test_done(opened);
}

// The only measure of a state with these joint angles: it is met where its value is at most its bound.
static double measure_at(Sinew__V1__EvaluateRequest *in, const Sinew__V1__MeasureDescription *d, double x, double y,
                         int met[2]) {
  in->state->qpos[0] = x;
  in->state->qpos[1] = y;
  Sinew__V1__Reply *r = REQUEST(evaluate, EVALUATE, in);
  assert_int_equal(r->evaluate->n_measures, 1);
  const Sinew__V1__MeasureValue m = *r->evaluate->measures[0];
  assert_string_equal(m.name, d->name);
  assert_true(m.met == (m.value <= d->below));
  met[m.met != 0]++;
  sn_test_done(r);
  return m.value;
}

// From afar to the target, by steps that halve where none is better.
static void test_measures(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  Sinew__V1__DescribeTaskRequest describe = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
  describe.task = "arm_reach";
  Sinew__V1__Reply *task = REQUEST(describe_task, DESCRIBE_TASK, &describe);
  assert_int_equal(task->describe_task->n_measures, 1);
  const Sinew__V1__MeasureDescription *d = task->describe_task->measures[0];
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  evaluate.session = sn_test_open(&client, "arm_reach", 1, &opened);
  evaluate.state = opened->open->initial;
  int met[2] = {0};
  double at[2] = {evaluate.state->qpos[0], evaluate.state->qpos[1]};
  double best = measure_at(&evaluate, d, at[0], at[1], met);
  for (double step = 0.2; step > 1e-4;) {
    bool better = false;
    for (int i = 0; i < 4; i++) {
      const double x = at[0] + step * (i == 0) - step * (i == 1), y = at[1] + step * (i == 2) - step * (i == 3);
      const double value = measure_at(&evaluate, d, x, y, met);
      if (!(value < best)) continue;
      best = value, at[0] = x, at[1] = y, better = true;
    }
    if (!better) step *= 0.5;
  }
  print_message("%g m from the target; met in %d states, missed in %d\n", best, met[1], met[0]);
  assert_true(met[0] > 0 && met[1] > 0);
  close_session(evaluate.session);
  sn_test_done(task);
  sn_test_done(opened);
}

// What systemd hears for so many seconds: how often the watchdog was fed.
static int watchdogs(int fd, double seconds) {
  char text[256];
  int n = 0;
  for (const double until = sn_clock_now() + seconds; sn_clock_now() < until;) {
    const ssize_t got = recv(fd, text, sizeof text - 1, 0);
    if (got <= 0) continue;
    text[got] = '\0';
    n += strcmp(text, "WATCHDOG=1") == 0;
  }
  return n;
}

static void await_ready(SnTestClient *c) {
  for (const double until = sn_clock_now() + 30; health_of(c).state != SINEW__V1__HEALTH__STATE__READY;)
    assert_true(sn_clock_now() < until);
}

// Slices as long as the daemon may call the planner stalled: health says so, and the watchdog is not fed, until the
// planner comes round.
static void test_stalled_planner(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  SnTestClient c;
  char path[108], text[256];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct timeval patience = {0, 20000};
  sn_test_daemon_prepare(&d);
  snprintf(path, sizeof path, "%s/notify", d.folder);
  strcpy(address.sun_path, path);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setenv("NOTIFY_SOCKET", path, 1);
  setenv("WATCHDOG_USEC", "100000", 1);
  sn_test_daemon_start(&d, (const char *const[]){"--slice=1", "--stall=0.5", NULL});
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  sn_test_connect(&c, d.endpoint);
  await_ready(&c);
  for (const double until = sn_clock_now() + 30; watchdogs(fd, 0.1) == 0;) assert_true(sn_clock_now() < until);

  // An iteration that takes longer than a slice.
  Sinew__V1__Reply *opened;
  Sinew__V1__PlannerSettings large = *sn_test_sampling();
  large.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  large.candidates = 8192;
  large.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  large.horizon = 2048;
  const uint64_t id = sn_test_open_by(&c, "arm_reach", 1, &large, &opened);
  sn_test_send_plan(&c, id, opened->open->initial, 4);
  SnTestClient looker;
  sn_test_connect(&looker, d.endpoint);
  int stalled = 0, late = 0;
  Sinew__V1__Reply *r = NULL;
  while (!(r = sn_test_receive(&c, 0.02))) {
    const double looked = sn_clock_now();
    const Sinew__V1__Health h = health_of(&looker);
    const bool says = h.state == SINEW__V1__HEALTH__STATE__STALLED;
    assert_true(says == (h.planner_age > 0.5));
    stalled += says;
    if (!says) continue;
    // Behind what was sent before there is nothing more as long as the planner has not come round since that look.
    while (recv(fd, text, sizeof text, MSG_DONTWAIT) > 0) continue;
    const int fed = watchdogs(fd, 0.1);
    const double age = health_of(&looker).planner_age;
    late += fed > 0 && age > sn_clock_now() - looked;
  }
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  assert_true(stalled > 0 && late == 0);
  print_message("stalled %d times\n", stalled);
  sn_test_done(r);
  await_ready(&c);
  sn_test_done(opened);
  sn_test_disconnect(&looker);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  close(fd);
  sn_test_daemon_remove(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_whose_statistics),
      cmocka_unit_test(test_totals),
      cmocka_unit_test(test_replaced_in_total),
      cmocka_unit_test(test_best_cost_begins_anew),
      cmocka_unit_test(test_what_is_loaded),
      cmocka_unit_test(test_description),
      cmocka_unit_test(test_history),
      cmocka_unit_test(test_rests),
      cmocka_unit_test(test_measures),
      cmocka_unit_test(test_stalled_planner),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
