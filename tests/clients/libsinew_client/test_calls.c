// The conventions of sinew.h in the client library: NULL pointers, sizes of structures, numbers that are not finite,
// errors that nobody wants to see, and what a call in a control loop costs.
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "tests/clients/libsinew_client/fake_daemon.h"
#include "tests/support/allocations.h"

static void test_null(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewSessionDef def = sinew_default_session();
  const SinewState now = state_at(1);
  double ctrl[2 * NU] = {0}, cost;
  assert_null(sinew_session_open(NULL, &def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "client is NULL");
  assert_null(sinew_session_open(client, NULL, &err));
  expect_error(SINEW_ERR_ARGUMENT, "SinewSessionDef is NULL: start from sinew_default_session()");
  assert_null(sinew_session_info(NULL));
  assert_null(sinew_session_current_plan(NULL));
  expect_status(sinew_session_plan(NULL, &now, 0.1, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_plan(session, NULL, 0.1, &err), SINEW_ERR_ARGUMENT);
  expect_text("state is NULL");
  expect_status(sinew_session_send(NULL, &now, 0.1, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_send(session, NULL, 0.1, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_receive(NULL, 0, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_control(NULL, 0, ctrl, &err), SINEW_ERR_ARGUMENT);
  expect_text("session is NULL");
  expect_status(sinew_session_control(session, 0, NULL, &err), SINEW_ERR_ARGUMENT);
  expect_text("ctrl is NULL");
  expect_status(sinew_session_evaluate(NULL, &now, ctrl, 1, &cost, NULL, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_evaluate(session, NULL, ctrl, 1, &cost, NULL, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_evaluate(session, &now, NULL, 1, &cost, NULL, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_evaluate(session, &now, ctrl, 1, NULL, NULL, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_set(NULL, "adam_rate=1", &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_set(session, NULL, &err), SINEW_ERR_ARGUMENT);
  expect_text("assignment is NULL");
  expect_status(sinew_session_set_weight(NULL, "reach", 1, 1, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_set_weight(session, NULL, 1, 1, &err), SINEW_ERR_ARGUMENT);
  expect_text("term is NULL");
  expect_status(sinew_session_set_target(NULL, "reach", ctrl, 1, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_set_target(session, "reach", NULL, 1, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_set_target(session, "reach", ctrl, -1, &err), SINEW_ERR_ARGUMENT);
  expect_text("n, -1, is negative");
  expect_status(sinew_session_stream_start(NULL, NULL, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_stream_send(NULL, &now, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_stream_send(session, NULL, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_stream_receive(NULL, 0, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_stream_stop(NULL, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_close(NULL, &err), SINEW_OK);
  sinew_client_disconnect(NULL);
  // A definition of continuous mode may be NULL: the defaults.
  expect_status(sinew_session_stream_start(session, NULL, &err), SINEW_OK);
  stop_thread();
  assert_true(fake.stream_lease == 0.5 && fake.stream_deadline == 0.04 && fake.stream_iterations == 0);
  start_thread();
  expect_status(sinew_session_close(session, &err), SINEW_OK);
  sinew_client_disconnect(client);
}

// A definition with a size that is none is refused; that of a caller with a newer header is taken as long as nothing
// is set that this library does not have.
static void test_sizes(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  struct {
    SinewSessionDef def;
    double later;
  } newer = {sinew_default_session(), 0};
  newer.def.task = "fake";
  const size_t bad[] = {0, sizeof(size_t), offsetof(SinewSessionDef, fallback_user), 100000};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    newer.def.size = bad[i];
    assert_null(sinew_session_open(client, &newer.def, &err));
    expect_error(SINEW_ERR_ARGUMENT, "SinewSessionDef.size is");
  }
  newer.def.size = offsetof(SinewSessionDef, gain_rows);  // a program from before there were gains
  newer.def.gain_rows = -1;
  SinewSession *session = sinew_session_open(client, &newer.def, &err);
  if (!session) fail_msg("%s", err.text);
  sinew_session_close(session, NULL);
  newer.def.gain_rows = 0;
  newer.def.size = sizeof newer;
  session = sinew_session_open(client, &newer.def, &err);
  assert_non_null(session);
  newer.later = 1;
  assert_null(sinew_session_open(client, &newer.def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "is not zero");
  SinewStreamDef stream = sinew_default_stream();
  stream.size = 0;
  expect_status(sinew_session_stream_start(session, &stream, &err), SINEW_ERR_ARGUMENT);
  expect_text("SinewStreamDef.size is 0");
  sinew_session_close(session, NULL);
  stop_thread();
  assert_int_equal(fake.opens, 2);
  start_thread();
  sinew_client_disconnect(client);
}

// No state with a number that is none leaves the library, and the next good one is as good as before.
static void test_not_finite(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const double good[NQ] = {0}, bad[NQ] = {0, INFINITY, 0}, worse[NQ] = {NAN, 0, 0}, ctrl[NU] = {0};
  const struct {
    SinewState state;
    const char *said;
  } states[] = {{{NAN, good, good, NULL, NULL}, "time = nan s; allowed"},
                {{1, bad, good, NULL, NULL}, "qpos[1] = inf; allowed are finite numbers"},
                {{1, good, worse, NULL, NULL}, "qvel[0] = nan"},
                {{1, NULL, good, NULL, NULL}, "qpos is NULL"},
                {{1, good, NULL, NULL, NULL}, "qvel is NULL"}};
  stop_thread();
  const int requests = fake.requests;
  start_thread();
  for (size_t i = 0; i < sizeof states / sizeof *states; ++i) {
    double cost = 7;
    expect_status(sinew_session_plan(session, &states[i].state, 0.1, &err), SINEW_ERR_ARGUMENT);
    expect_text(states[i].said);
    expect_status(sinew_session_send(session, &states[i].state, 0.1, &err), SINEW_ERR_ARGUMENT);
    expect_text(states[i].said);
    expect_status(sinew_session_stream_send(session, &states[i].state, &err), SINEW_ERR_ARGUMENT);
    expect_text(states[i].said);
    expect_status(sinew_session_evaluate(session, &states[i].state, ctrl, 1, &cost, NULL, &err), SINEW_ERR_ARGUMENT);
    expect_text(states[i].said);
    assert_true(cost == 7);
  }
  stop_thread();
  assert_int_equal(fake.requests, requests);
  start_thread();
  const SinewState now = state_at(1);
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  sinew_session_close(session, NULL);
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  def.lease = NAN;
  assert_null(sinew_session_open(client, &def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "lease");
  sinew_client_disconnect(client);
}

// In a loop of 1 kHz a control takes nothing from the heap and writes two words of the error; so do a look for plans
// and what the fallback gives, but for a short text.
static void test_control_is_cheap(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  double ctrl[NU];
  expect_status(sinew_session_control(session, 1, ctrl, &err), SINEW_ERR_NO_PLAN);
  expect_text("no plan has come yet");
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  SinewError before;
  memset(&err, 0x5a, sizeof err);
  memcpy(&before, &err, sizeof err);
  const long taken = sn_allocations();
  for (int i = 0; i < 100; ++i) assert_int_equal(sinew_session_control(session, 1 + 0.001 * i, ctrl, &err), SINEW_OK);
  assert_int_equal(sn_allocations(), taken);
  assert_int_equal(err.status, SINEW_OK);
  assert_int_equal(err.text[0], 0);
  assert_memory_equal(err.text + 1, before.text + 1, sizeof err.text - 1);
  expect_status(sinew_session_control(session, 2, ctrl, &err), SINEW_ERR_EXPIRED);
  expect_text("at 2 s the plan of the state at 1 s must not be used, it lives 0.5 s");
  expect_status(sinew_session_receive(session, 0, &err), SINEW_ERR_TIMEOUT);
  expect_text("no plan has come within 0 s");
  assert_memory_equal(err.text + 200, before.text + 200, sizeof err.text - 200);
  assert_int_equal(sn_allocations(), taken);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// Who does not want the text gets the status all the same.
static void test_without_error(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  double ctrl[NU], cost;
  assert_int_equal(sinew_session_receive(session, 0, NULL), SINEW_ERR_TIMEOUT);
  assert_int_equal(sinew_session_plan(session, &now, 0.1, NULL), SINEW_OK);
  assert_int_equal(sinew_session_control(session, 1, ctrl, NULL), SINEW_OK);
  assert_int_equal(sinew_session_control(session, 9, ctrl, NULL), SINEW_ERR_EXPIRED);
  fake.refuse = true;
  assert_int_equal(sinew_session_plan(session, &now, 0.1, NULL), SINEW_ERR_REFUSED);
  assert_int_equal(sinew_session_evaluate(session, &now, ctrl, 1, &cost, NULL, NULL), SINEW_ERR_REFUSED);
  assert_int_equal(sinew_session_stream_start(session, NULL, NULL), SINEW_ERR_REFUSED);
  assert_int_equal(sinew_session_stream_send(session, &now, NULL), SINEW_OK);
  assert_int_equal(sinew_session_stream_receive(session, 5, NULL), SINEW_ERR_REFUSED);
  assert_int_equal(sinew_session_close(session, NULL), SINEW_ERR_REFUSED);
  fake.refuse = false;
  assert_null(sinew_session_open(client, NULL, NULL));
  sinew_client_disconnect(client);
}

// A request that the daemon would not read is not sent: words once it has said again what it reads, and the session
// goes on.
static void test_too_long(void **state) {
  (void)state;
  enum { LONGEST = 2000, STEPS = 1000 };
  static double ctrl[STEPS * NU];
  fake.longest = LONGEST;
  SinewClient *client = connect_with(5, 3);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  double cost;
  stop_thread();
  const int before = fake.requests;
  start_thread();
  expect_status(sinew_session_evaluate(session, &now, ctrl, STEPS, &cost, NULL, &err), SINEW_ERR_LIMIT);
  expect_text("bytes; the daemon takes at most 2000");
  stop_thread();
  assert_int_equal(fake.requests, before + 1);  // the greeting: it may be another daemon
  start_thread();
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// Puts another daemon in the place of the one before.
static void restart(void) {
  stop_thread();
  zmq_close(fake.router);
  fake.router = zmq_socket(fake.context, ZMQ_ROUTER);
  assert_int_equal(zmq_bind(fake.router, fake.endpoint), 0);
  start_thread();
}

static void speak_protocol_2(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_HELLO) reply->hello->protocol = 2;
}

// A daemon that has come in the place of the one before is greeted, in the time of the request, until it has said that
// it speaks our protocol.
static void test_greeted_again(void **state) {
  (void)state;
  SinewClient *client = connect_with(0.3, 0);
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  restart();
  fake.silent = INT_MAX;
  assert_null(sinew_session_open(client, &def, &err));
  expect_error(SINEW_ERR_TIMEOUT, "within 0.3 s");
  sinew_client_disconnect(client);
  fake.silent = 0;
  client = connect_with(5, 0);
  restart();
  fake.lie = speak_protocol_2;
  for (int i = 0; i < 2; ++i) {
    assert_null(sinew_session_open(client, &def, &err));
    expect_error(SINEW_ERR_PROTOCOL, "the daemon speaks protocol 2");
  }
  fake.lie = NULL;
  sinew_session_close(open_on(client, NULL), NULL);
  sinew_client_disconnect(client);
}

static void say_not_found(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) reply->error->code = SINEW__V1__ERROR__CODE__NOT_FOUND;
}

// Daemons that are older than Error.no_session say that something is missing, which is the session unless the request
// looks for more.
static void test_session_of_older_daemons(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  fake.lie = say_not_found;
  fake.refuse = true;
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  assert_null(sinew_session_open(client, &def, &err));
  expect_error(SINEW_ERR_REFUSED, "");
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_NO_SESSION);
  expect_status(sinew_session_send(session, &now, 0.1, &err), SINEW_OK);
  expect_status(sinew_session_receive(session, 5, &err), SINEW_ERR_NO_SESSION);
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_ERR_NO_SESSION);
  expect_status(sinew_session_close(session, &err), SINEW_OK);
  fake.refuse = false;
  sinew_client_disconnect(client);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_null),          TEST(test_sizes),    TEST(test_not_finite),    TEST(test_control_is_cheap),
      TEST(test_without_error), TEST(test_too_long), TEST(test_greeted_again), TEST(test_session_of_older_daemons)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
