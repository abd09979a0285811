// What a daemon says wrongly: each lie is refused by name, and the plan before it stays in force.
#include "clients/libsinew_client/accept_private.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "tests/clients/libsinew_client/fake_daemon.h"

//--------------------------------------------------------------------------------------------- plans

#define PLAN_LIE(name, ...)                                \
  static void name(Sinew__V1__Reply *reply) {              \
    Sinew__V1__Plan *p = reply->plan;                      \
    if (reply->body_case == SINEW__V1__REPLY__BODY_PLAN) { \
      __VA_ARGS__                                          \
    }                                                      \
  }
PLAN_LIE(start_nan, p->start = NAN;)
PLAN_LIE(start_inf, p->start = INFINITY;)
PLAN_LIE(start_late, p->start = 1e308;)
PLAN_LIE(start_early, p->start = -1e308;)
PLAN_LIE(step_nan, p->step = NAN;)
PLAN_LIE(step_inf, p->step = INFINITY;)
PLAN_LIE(step_zero, p->step = 0;)
PLAN_LIE(step_tiny, p->step = 5e-324;)
PLAN_LIE(step_absurd, p->step = 1e300;)
PLAN_LIE(step_negative, p->step = -0.1;)
PLAN_LIE(stamp_nan, p->state_time = NAN;)
PLAN_LIE(stamp_future, p->state_time += 0.001;)
PLAN_LIE(live_inf, p->time_to_live = INFINITY;)
PLAN_LIE(live_nan, p->time_to_live = NAN;)
PLAN_LIE(live_zero, p->time_to_live = 0;)
PLAN_LIE(live_absurd, p->time_to_live = 86401;)
PLAN_LIE(other_session, p->session = 41;)
PLAN_LIE(strange_status, p->status = (Sinew__V1__Plan__Status)77;)
PLAN_LIE(no_status, p->status = SINEW__V1__PLAN__STATUS__UNSPECIFIED;)
PLAN_LIE(no_rows, p->steps = 0; p->n_ctrl = 0;)
PLAN_LIE(many_rows, p->steps = UINT32_MAX;)
PLAN_LIE(long_lead, p->lead = p->steps + 1;)
PLAN_LIE(short_ctrl, p->n_ctrl -= 1;)
PLAN_LIE(long_step, p->steps = 2;)
PLAN_LIE(ctrl_nan, p->ctrl[5] = NAN;)
PLAN_LIE(ctrl_inf, p->ctrl[5] = -INFINITY;)
PLAN_LIE(ctrl_huge, p->ctrl[5] = 1e300;)
// Diverged, and of another session: that one's business, not ours.
PLAN_LIE(other_diverged, p->session = 41; p->status = SINEW__V1__PLAN__STATUS__DIVERGED;)

static const struct {
  void (*lie)(Sinew__V1__Reply *reply);
  const char *said;
} PLANS[] = {
    {start_nan, "from nan s on"},
    {start_inf, "from inf s on"},
    {start_late, "from 1e+308 s on"},
    {start_early, "from -1e+308 s on"},
    {step_nan, "time step is nan s"},
    {step_inf, "time step is inf s"},
    {step_zero, "time step is 0 s; allowed is 1e-09 to 86400 s"},
    {step_tiny, "time step is 4.94066e-324 s"},
    {step_absurd, "time step is 1e+300 s"},
    {step_negative, "time step is -0.1 s"},
    {stamp_nan, "a state of nan s, the latest one sent is of 1.2 s"},
    {stamp_future, "a state of 1.201 s, the latest one sent is of 1.2 s"},
    {live_inf, "time to live is inf s; allowed is more than 0, at most 86400 s"},
    {live_nan, "time to live is nan s"},
    {live_zero, "time to live is 0 s"},
    {live_absurd, "time to live is 86401 s"},
    {other_session, "it is of session 41, this is session 42"},
    {strange_status, "its status is 77"},
    {no_status, "its status is 0"},
    {no_rows, "it has 0 rows; allowed are 1 to 65536"},
    {many_rows, "it has 4294967295 rows"},
    {long_lead, "rows are those of the plan before"},
    {short_ctrl, "it has the wrong size: 7 controls, not 4 rows of 2"},
    {long_step, "it has the wrong size: 8 controls, not 2 rows of 2"},
    {ctrl_nan, "control 1 of row 2 is nan"},
    {ctrl_inf, "control 1 of row 2 is -inf"},
    {ctrl_huge, "control 1 of row 2 is 1e+300"},
    {other_diverged, "it is of session 41"},
};
enum { NPLAN = sizeof PLANS / sizeof *PLANS };

// The plan of the state at 1 s is in force and gives its first row.
static void expect_first_plan(SinewSession *session) {
  double ctrl[NU] = {9, 9};
  assert_true(sinew_session_current_plan(session) && sinew_session_current_plan(session)->state_time == 1);
  expect_status(sinew_session_control(session, 1.05, ctrl, &err), SINEW_OK);
  assert_true(ctrl[0] == 1 && ctrl[1] == 1);
}

static void test_plans(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState first = state_at(1), second = state_at(1.2);
  for (int i = 0; i < NPLAN; ++i) {
    fake.lie = NULL;
    expect_status(sinew_session_plan(session, &first, 0.1, &err), SINEW_OK);
    fake.lie = PLANS[i].lie;
    expect_status(sinew_session_plan(session, &second, 0.1, &err), SINEW_ERR_BAD_PLAN);
    expect_text("a plan of the daemon is refused");
    expect_text(PLANS[i].said);
    expect_first_plan(session);
  }
  assert_string_equal(sinew_status_name(SINEW_ERR_BAD_PLAN), "bad plan");
  fake.lie = NULL;
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// A lie as the very first plan: the fallback acts.
static void test_first_plan(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1.2);
  for (int i = 0; i < NPLAN; ++i) {
    double ctrl[NU] = {9, 9};
    fake.lie = PLANS[i].lie;
    expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_BAD_PLAN);
    assert_null(sinew_session_current_plan(session));
    expect_status(sinew_session_control(session, 1.2, ctrl, &err), SINEW_ERR_NO_PLAN);
    assert_true(ctrl[0] == 0 && ctrl[1] == 0);
  }
  fake.lie = NULL;
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// The same without waiting. A plan of another session is none of ours there: sessions of a client share a connection.
static void test_receive(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState first = state_at(1), second = state_at(1.2);
  expect_status(sinew_session_plan(session, &first, 0.1, &err), SINEW_OK);
  for (int i = 0; i < NPLAN; ++i) {
    const bool ours = PLANS[i].lie != other_session && PLANS[i].lie != other_diverged;
    fake.lie = PLANS[i].lie;
    expect_status(sinew_session_send(session, &second, 0.1, &err), SINEW_OK);
    expect_status(sinew_session_receive(session, ours ? 5 : 0.1, &err), ours ? SINEW_ERR_BAD_PLAN : SINEW_ERR_TIMEOUT);
    expect_first_plan(session);
  }
  fake.lie = NULL;
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

PLAN_LIE(sequence_and_nan, p->stream_sequence = UINT64_MAX; p->ctrl[0] = NAN;)

// Continuous mode: the next good plan counts again, and no number of a refused one is believed.
static void test_stream(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewStreamDef def = sinew_default_stream();
  SinewState now = state_at(1);
  expect_status(sinew_session_stream_start(session, &def, &err), SINEW_OK);
  fake.better = 1;
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_OK);
  now = state_at(1.2);
  fake.lie = sequence_and_nan;
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_ERR_BAD_PLAN);
  expect_text("control 0 of row 0 is nan");
  expect_first_plan(session);
  fake.lie = NULL;
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->state_time == 1.2);
  expect_status(sinew_session_stream_stop(session, &err), SINEW_OK);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

//------------------------------------------------------------------------------------------ controls

PLAN_LIE(out_of_range, for (int i = 0; i < ROWS; ++i) p->ctrl[NU * i] = i % 2 ? 1e9 : -1e9;)

static void fall_outside(void *user, double now, const double *last, double *ctrl, int nu) {
  assert_true(now >= 0 && last && nu == NU);
  ctrl[0] = ctrl[1] = *(const double *)user;
}

// Control 0 is limited to [-1, 5], control 1 is not: of plans and of the fallback.
static void test_controls_stay_in_range(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  double outside = 100, ctrl[NU] = {0};
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  def.fallback = fall_outside;
  def.fallback_user = &outside;
  SinewSession *session = sinew_session_open(client, &def, &err);
  assert_non_null(session);
  expect_status(sinew_session_control(session, 0, ctrl, &err), SINEW_ERR_NO_PLAN);
  assert_true(ctrl[0] == 5 && ctrl[1] == 100);
  outside = -100;
  expect_status(sinew_session_control(session, 0, ctrl, &err), SINEW_ERR_NO_PLAN);
  assert_true(ctrl[0] == -1 && ctrl[1] == -100);
  const SinewState now = state_at(1);
  fake.lie = out_of_range;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  expect_status(sinew_session_control(session, 1, ctrl, &err), SINEW_OK);
  assert_true(ctrl[0] == -1 && ctrl[1] == 1);
  expect_status(sinew_session_control(session, 1.1, ctrl, &err), SINEW_OK);
  assert_true(ctrl[0] == 5 && ctrl[1] == 2);
  fake.lie = NULL;
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// No row for a moment that is none, or for one long before the plan's state: the clock was set back.
static void test_moments(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  const double none[] = {NAN, INFINITY, -INFINITY, 0.4, -1e300, 1e300};
  for (size_t i = 0; i < sizeof none / sizeof *none; ++i) {
    double ctrl[NU] = {9, 9};
    expect_status(sinew_session_control(session, none[i], ctrl, &err), SINEW_ERR_EXPIRED);
    assert_true(ctrl[0] == 0 && ctrl[1] == 0);
  }
  expect_first_plan(session);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

//-------------------------------------------------------------------------------------- other answers

#define MODEL_LIE(name, ...)                                              \
  static void name(Sinew__V1__Reply *reply) {                             \
    if (reply->body_case != SINEW__V1__REPLY__BODY_DESCRIBE_TASK) return; \
    Sinew__V1__ModelDescription *m = reply->describe_task->model;         \
    __VA_ARGS__                                                           \
  }
MODEL_LIE(step_of_zero, m->timestep = 0;)
MODEL_LIE(step_of_nan, m->timestep = NAN;)
MODEL_LIE(nq_wrong, m->nq = 4;)
MODEL_LIE(nq_huge, m->nq = UINT32_MAX - 1;)
MODEL_LIE(nmocap_huge, m->nmocap = 1u << 31;)
MODEL_LIE(nu_huge, m->nu = 300000000;)
MODEL_LIE(nu_more, m->nu = NU + 1;)
MODEL_LIE(ctrl_missing, m->n_ctrl = 1;)
MODEL_LIE(ctrl_twice, m->ctrl[1]->address = 0;)
MODEL_LIE(ctrl_wide, m->ctrl[1]->size = 2;)
MODEL_LIE(range_nan, m->ctrl[0]->min = NAN;)
MODEL_LIE(range_empty, m->ctrl[0]->min = 6;)

static void initial_nan(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_OPEN) reply->open->initial->qvel[1] = NAN;
}
static void initial_long(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_OPEN) reply->open->initial->n_qvel = NQ;
}
static void initial_missing(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_OPEN) reply->open->initial = NULL;
}

static void test_open(void **state) {
  (void)state;
  const struct {
    void (*lie)(Sinew__V1__Reply *reply);
    const char *said;
  } lies[] = {
      {step_of_zero, "a time step of 0 s"},
      {step_of_nan, "a time step of nan s"},
      {nq_wrong, "3 numbers of qpos, the model has 4"},
      {nq_huge, "4294967294 entries; at most 1048576"},
      {nmocap_huge, "2147483648 entries"},
      {nu_huge, "300000000 entries"},
      {nu_more, "has 3 controls and describes 2"},
      {ctrl_missing, "has 2 controls and describes 1"},
      {ctrl_twice, "control 1 is described as 1 entries from 0 on"},
      {ctrl_wide, "control 1 is described as 2 entries from 1 on"},
      {range_nan, "control 0 ranges from nan to 5"},
      {range_empty, "control 0 ranges from 6 to 5"},
      {initial_nan, "the initial state has qpos[1] = nan"},  // the fake's qpos and qvel are one array
      {initial_long, "3 numbers of qvel, the model has 2"},
      {initial_missing, "incomplete answer to open"},
  };
  SinewClient *client = connect_with(5, 0);
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  for (size_t i = 0; i < sizeof lies / sizeof *lies; ++i) {
    fake.lie = lies[i].lie;
    assert_null(sinew_session_open(client, &def, &err));
    expect_error(SINEW_ERR_PROTOCOL, lies[i].said);
  }
  fake.lie = NULL;
  sinew_client_disconnect(client);
}

static void cost_nan(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_EVALUATE) reply->evaluate->cost = NAN;
}
static void cost_infinite(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_EVALUATE) reply->evaluate->cost = INFINITY;
}
static void gradient_nan(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_EVALUATE && reply->evaluate->gradient)
    reply->evaluate->gradient->ctrl[3] = NAN;
}

// A refused evaluation leaves the caller's numbers alone; an infinite cost is one that diverged.
static void test_evaluate(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  const double ctrl[2 * NU] = {1, 2, 3, 4};
  double cost = 7, gradient[2 * NU] = {7, 7, 7, 7};
  fake.lie = cost_nan;
  expect_status(sinew_session_evaluate(session, &now, ctrl, 2, &cost, gradient, &err), SINEW_ERR_PROTOCOL);
  expect_text("the cost is nan");
  fake.lie = gradient_nan;
  expect_status(sinew_session_evaluate(session, &now, ctrl, 2, &cost, gradient, &err), SINEW_ERR_PROTOCOL);
  expect_text("gradient[3] is nan");
  assert_true(cost == 7 && gradient[0] == 7 && gradient[3] == 7);
  expect_status(sinew_session_evaluate(session, &now, ctrl, 2, &cost, NULL, &err), SINEW_OK);
  fake.lie = cost_infinite;
  expect_status(sinew_session_evaluate(session, &now, ctrl, 2, &cost, gradient, &err), SINEW_OK);
  assert_true(isinf(cost) && gradient[3] == 4);
  fake.lie = NULL;
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

static void steering(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) reply->error->text = (char *)"\x1b[2Jqpos\x07:\n%n";
}

// The text of an error does not steer the caller's terminal.
static void test_error_text(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  fake.refuse = true;
  fake.lie = steering;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_REFUSED);
  assert_string_equal(err.text, "\\x1b[2Jqpos\\x07:\n%n");
  fake.refuse = false;
  fake.lie = NULL;
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_plans),  TEST(test_first_plan), TEST(test_receive),
      TEST(test_stream), TEST(test_moments),    TEST(test_controls_stay_in_range),
      TEST(test_open),   TEST(test_evaluate),   TEST(test_error_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
