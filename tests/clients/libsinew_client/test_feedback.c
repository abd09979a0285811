// Feedback gains at a client: asked for, judged, applied to the state of a ball joint.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "tests/clients/libsinew_client/fake_daemon.h"

enum { BALL_NQ = 4, BALL_NV = 3, WIDTH = 2 * BALL_NV, GAIN_ROWS = 2, LEAD = 1 };

// The product of two quaternions.
static void product(const double *a, const double *b, double *to) {
  to[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  to[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  to[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  to[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

// The quaternion of a rotation vector.
static void rotation(const double *turn, double *q) {
  const double angle = sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]);
  q[0] = cos(angle / 2);
  for (int k = 0; k < 3; ++k) q[1 + k] = angle > 0 ? sin(angle / 2) * turn[k] / angle : 0;
}

static double qpos[(ROWS + 1) * BALL_NQ], qvel[(ROWS + 1) * BALL_NV], gain[GAIN_ROWS * NU * WIDTH];
static Sinew__V1__Trajectory states;
static Sinew__V1__Quantity ball, *described = &ball;

static void make_plan(void) {
  for (int i = 0; i <= ROWS; ++i) {
    const double turn[] = {0.4 * i, -0.3, 0.2 + i};
    rotation(turn, qpos + BALL_NQ * i);
    for (int k = 0; k < BALL_NV; ++k) qvel[BALL_NV * i + k] = 0.5 * i - k;
  }
  for (int i = 0; i < GAIN_ROWS * NU * WIDTH; ++i) gain[i] = 0.1 * ((7 * i) % 11) - 0.5;
  sinew__v1__trajectory__init(&states);
  states.qpos = qpos, states.n_qpos = sizeof qpos / sizeof *qpos;
  states.qvel = qvel, states.n_qvel = sizeof qvel / sizeof *qvel;
  sinew__v1__quantity__init(&ball);
  ball.size = BALL_NQ;
}

// The fake daemon's model is a ball joint, and its plans have gains.
static void tell(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_OPEN) {
    reply->open->initial->n_qpos = BALL_NQ, reply->open->initial->n_qvel = BALL_NV;
    reply->open->initial->qpos = qpos, reply->open->initial->qvel = qvel;
  } else if (reply->body_case == SINEW__V1__REPLY__BODY_DESCRIBE_TASK) {
    Sinew__V1__ModelDescription *m = reply->describe_task->model;
    m->nq = BALL_NQ, m->nv = BALL_NV;
    m->qpos = &described, m->n_qpos = 1;
  } else if (reply->body_case == SINEW__V1__REPLY__BODY_PLAN) {
    Sinew__V1__Plan *p = reply->plan;
    p->lead = LEAD, p->gain_rows = GAIN_ROWS;
    p->stuck = true, p->unimproved = 7;
    p->gain = gain, p->n_gain = sizeof gain / sizeof *gain;
    p->states = &states;
  }
}

static SinewSession *open_with_gains(SinewClient *client) {
  SinewSessionDef def = sinew_default_session();
  make_plan();
  fake.lie = tell;
  def.task = "fake";
  def.gain_rows = GAIN_ROWS;
  SinewSession *session = sinew_session_open(client, &def, &err);
  if (!session) fail_msg("%s", err.text);
  return session;
}

static const double rest[BALL_NQ] = {1}, still[BALL_NV];

// The row's controls as planned, and with its gains at a state that is `turn` and `faster` away from the predicted one.
static void expect_row(SinewSession *session, int row, const double *turn, const double *faster) {
  double moved[BALL_NQ], small[BALL_NQ], velocity[BALL_NV], ctrl[NU], plain[NU];
  bool corrected = false;
  const SinewSessionPlan *plan = sinew_session_current_plan(session);
  rotation(turn, small);
  product(qpos + BALL_NQ * row, small, moved);
  for (int k = 0; k < BALL_NQ; ++k) moved[k] *= 3;  // of any length
  for (int k = 0; k < BALL_NV; ++k) velocity[k] = qvel[BALL_NV * row + k] + faster[k];
  const SinewState state = {.time = plan->start + row * plan->step, .qpos = moved, .qvel = velocity};
  expect_status(sinew_session_control(session, state.time, plain, &err), SINEW_OK);
  expect_status(sinew_session_feedback(session, &state, ctrl, &corrected, &err), SINEW_OK);
  assert_true(corrected == (row >= LEAD && row < LEAD + GAIN_ROWS));
  for (int i = 0; i < NU; ++i) {
    double wanted = plain[i];
    for (int k = 0; corrected && k < BALL_NV; ++k) {
      const double *g = gain + ((row - LEAD) * NU + i) * WIDTH;
      wanted += g[k] * turn[k] + g[BALL_NV + k] * faster[k];
    }
    if (i == 0) wanted = fmin(fmax(wanted, -1), 5);  // its range
    assert_true(fabs(ctrl[i] - wanted) < 1e-12);
  }
}

static void test_law(void **state) {
  (void)state;
  static const double turn[] = {0.3, -0.2, 0.5}, faster[] = {0.1, 0.2, -0.4}, far[] = {300, -200, 100}, none[3];
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_with_gains(client);
  const SinewState now = {.time = 1, .qpos = rest, .qvel = still};
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  const SinewSessionPlan *plan = sinew_session_current_plan(session);
  assert_true(plan->lead == LEAD && plan->gain_rows == GAIN_ROWS);
  assert_true(plan->stuck && plan->unimproved == 7);
  assert_memory_equal(plan->gain, gain, sizeof gain);
  for (int row = 0; row < ROWS; ++row) {
    expect_row(session, row, turn, faster);
    expect_row(session, row, none, far);
    expect_row(session, row, none, none);
  }
  double ctrl[NU] = {7, 7};
  double broken[BALL_NQ] = {1, (double)NAN};
  SinewState bad = {.time = 1.1, .qpos = broken, .qvel = still};
  expect_status(sinew_session_feedback(session, &bad, ctrl, NULL, &err), SINEW_ERR_ARGUMENT);
  assert_true(ctrl[0] == 7);
  bad = (SinewState){.time = 1.6, .qpos = rest, .qvel = still};  // plans live 0.5 s
  bool corrected = true;
  expect_status(sinew_session_feedback(session, &bad, ctrl, &corrected, &err), SINEW_ERR_EXPIRED);
  assert_true(!corrected && ctrl[0] == 0 && ctrl[1] == 0);
  expect_status(sinew_session_stream_start(session, NULL, &err), SINEW_OK);
  stop_thread();
  assert_true(fake.gain_rows == GAIN_ROWS && fake.stream_gain_rows == GAIN_ROWS);
  start_thread();
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// What gains and a state far away come to may be no number: then the row acts as it was planned.
static void test_no_number(void **state) {
  (void)state;
  static const double sums[][2] = {{1e308, -1e308}, {1e308, 1e308}, {1e6, 0}};
  double far[BALL_NV] = {1e10, 1e10, 0}, ctrl[NU], plain[NU];
  bool corrected;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_with_gains(client);
  for (size_t i = 0; i < sizeof sums / sizeof *sums; ++i) {
    const double time = 1 + 0.1 * (double)i;
    const SinewState now = {.time = time, .qpos = rest, .qvel = still};
    make_plan();
    for (int k = 0; k < GAIN_ROWS * NU; ++k) memcpy(gain + k * WIDTH + BALL_NV, sums[i], sizeof sums[i]);
    expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
    const SinewSessionPlan *plan = sinew_session_current_plan(session);
    const SinewState there = {.time = plan->start + LEAD * plan->step, .qpos = rest, .qvel = far};
    expect_status(sinew_session_control(session, there.time, plain, &err), SINEW_OK);
    corrected = true;
    expect_status(sinew_session_feedback(session, &there, ctrl, &corrected, &err), SINEW_OK);
    assert_false(corrected);
    assert_memory_equal(ctrl, plain, sizeof ctrl);
  }
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

#define LIE(name, ...)                                           \
  static void name(Sinew__V1__Reply *reply) {                    \
    tell(reply);                                                 \
    if (reply->body_case != SINEW__V1__REPLY__BODY_PLAN) return; \
    Sinew__V1__Plan *p = reply->plan;                            \
    __VA_ARGS__                                                  \
  }
static double nan_gain[GAIN_ROWS * NU * WIDTH], nan_qvel[(ROWS + 1) * BALL_NV];
LIE(short_gain, p->n_gain -= 1;)
LIE(no_gain, p->n_gain = 0;)
LIE(long_gain, p->gain_rows = ROWS; p->n_gain = 0;)
LIE(no_rows, p->gain_rows = 0;)
LIE(no_states, p->states = NULL;)
LIE(short_states, p->states->n_qvel -= 1;)
LIE(gain_nan, p->gain = nan_gain;)
LIE(state_nan, p->states->qvel = nan_qvel;)

static void test_lies(void **state) {
  (void)state;
  static const struct {
    void (*lie)(Sinew__V1__Reply *reply);
    const char *said;
  } lies[] = {{short_gain, "its gains have the wrong size"},
              {no_gain, "its gains have the wrong size"},
              {long_gain, "its gains have the wrong size"},
              {no_rows, "its gains have the wrong size"},
              {no_states, "its gains come without the states"},
              {short_states, "its gains come without the states"},
              {gain_nan, "or the states that they refer to, are not finite"},
              {state_nan, "or the states that they refer to, are not finite"}};
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_with_gains(client);
  const SinewState first = {.time = 1, .qpos = rest, .qvel = still},
                   second = {.time = 1.2, .qpos = rest, .qvel = still};
  nan_gain[3] = nan_qvel[4] = (double)NAN;
  for (size_t i = 0; i < sizeof lies / sizeof *lies; ++i) {
    make_plan();
    fake.lie = tell;
    expect_status(sinew_session_plan(session, &first, 0.1, &err), SINEW_OK);
    fake.lie = lies[i].lie;
    expect_status(sinew_session_plan(session, &second, 0.1, &err), SINEW_ERR_BAD_PLAN);
    expect_text(lies[i].said);
    assert_true(sinew_session_current_plan(session)->state_time == 1);
  }
  sinew_session_close(session, NULL);
  make_plan();
  fake.lie = tell;
  ball.size = 3;  // no joint has it
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  session = sinew_session_open(client, &def, &err);
  assert_non_null(session);
  expect_status(sinew_session_plan(session, &first, 0.1, &err), SINEW_ERR_BAD_PLAN);
  expect_text("its gains are for a model whose positions are not described");
  fake.lie = NULL;
  sinew_session_close(session, NULL);
  def.gain_rows = -1;
  assert_null(sinew_session_open(client, &def, &err));
  expect_text("gain_rows is -1; allowed is at least 0");
  sinew_client_disconnect(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_law, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_no_number, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_lies, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
