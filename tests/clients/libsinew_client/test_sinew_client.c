// The client library against a daemon of the test's own that answers by the book, late, twice, with another kind of
// message, or never.
#include "clients/include/sinew_client.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "clients/libsinew_client/wire.h"
#include "tests/clients/libsinew_client/fake_daemon.h"

static void test_connect_refuses(void **state) {
  (void)state;
  assert_null(sinew_client_connect(fake.endpoint, 0, 0, &err));
  expect_error(SINEW_ERR_ARGUMENT, "timeout must be");
  assert_null(sinew_client_connect(fake.endpoint, NAN, 0, &err));
  expect_error(SINEW_ERR_ARGUMENT, "got nan and 0");
  assert_null(sinew_client_connect("nonsense", 1, 0, &err));
  expect_error(SINEW_ERR_ARGUMENT,
               "cannot connect to 'nonsense': expected ipc://PATH or tcp://HOST:PORT with a port from 1 to 65535");
  assert_null(sinew_client_connect("ipc:///nowhere/at/all", 0.1, 1, &err));
  expect_error(SINEW_ERR_TIMEOUT, "no answer from ipc:///nowhere/at/all within 0.1 s");
  assert_null(sinew_client_connect("ipc:///nowhere/at/all", 0.1, 0, NULL));
}

static void test_connect_by_refuses(void **state) {
  (void)state;
  SinewClientDef def = sinew_default_client();
  assert_null(sinew_client_connect_by(NULL, &err));
  expect_error(SINEW_ERR_ARGUMENT, "SinewClientDef");
  def.size = 3;
  assert_null(sinew_client_connect_by(&def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "sinew_default_client");
  def = sinew_default_client();
  def.endpoint = "tcp://127.0.0.1:1";
  def.timeout = -1;
  assert_null(sinew_client_connect_by(&def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "timeout must be");
  def.timeout = 0.1;
  def.server_key = "0123456789abcdefghijklmnopqrstuvwxyzABCD";
  assert_null(sinew_client_connect_by(&def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "key_file is missing");
  def.key_file = "/dev/null";
  assert_null(sinew_client_connect_by(&def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "/dev/null is no file of a key");
  def.server_key = "/nowhere/key";
  assert_null(sinew_client_connect_by(&def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "server_key: /nowhere/key: No such file");
  def.server_key = NULL;
  assert_null(sinew_client_connect_by(&def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "server_key and key_file go together");
}

static void test_connect_by(void **state) {
  (void)state;
  SinewClientDef def = sinew_default_client();
  def.endpoint = fake.endpoint;
  SinewClient *client = sinew_client_connect_by(&def, &err);
  assert_non_null(client);
  sinew_client_disconnect(client);
}

static void test_open(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewSessionInfo *info = sinew_session_info(session);
  assert_int_equal(info->id, 42);
  assert_true(info->nq == NQ && info->nv == NV && info->nu == NU && info->na == 0);
  assert_true(info->ctrl_range[0] == -1 && info->ctrl_range[1] == 5 && info->ctrl_range[2] < -1e300);
  assert_null(sinew_session_current_plan(session));
  expect_status(sinew_session_close(session, &err), SINEW_OK);
  sinew_client_disconnect(client);
}

static void speak_protocol_2(Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_HELLO) reply->hello->protocol = 2;
}

// Neither an older nor a newer daemon is talked to.
static void test_other_protocol(void **state) {
  (void)state;
  fake.lie = speak_protocol_2;
  assert_null(sinew_client_connect(fake.endpoint, 5, 0, &err));
  expect_error(SINEW_ERR_PROTOCOL, "the daemon speaks protocol 2, this library 1");
}

// What a controller asks for reaches the daemon; what it leaves open is left to it.
static void test_what_is_asked_for(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  const char *const settings[] = {"candidates=12", "adam_iterations=3", NULL};
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  SinewSession *session = sinew_session_open(client, &def, &err);
  assert_non_null(session);
  expect_error(SINEW_OK, "");
  stop_thread();
  assert_true(fake.seed == 0 && fake.latency == -1 && fake.lease == -1 && fake.plans_live == -1);
  assert_true(fake.candidates == -1 && fake.adam_iterations == -1);
  start_thread();
  sinew_session_close(session, NULL);
  def.seed = 9;
  def.settings = settings;
  def.latency = 0;
  def.lease = 7;
  def.time_to_live = 0.25;
  session = sinew_session_open(client, &def, &err);
  assert_non_null(session);
  SinewStreamDef stream = sinew_default_stream();
  stream.lease = 1.5;
  stream.deadline = 0.02;
  stream.period = 0.1;
  stream.iterations = 4;
  expect_status(sinew_session_stream_start(session, &stream, &err), SINEW_OK);
  stop_thread();
  assert_true(fake.seed == 9 && fake.latency == 0 && fake.lease == 7 && fake.plans_live == 0.25);
  assert_true(fake.candidates == 12 && fake.adam_iterations == 3);
  assert_true(fake.stream_lease == 1.5 && fake.stream_deadline == 0.02);
  assert_true(fake.stream_period == 0.1 && fake.stream_iterations == 4);
  start_thread();
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// A session that cannot be used is closed at the daemon, and the text says why. One with a name may be another
// program's: it stays.
static void test_open_fails_half_way(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  fake.no_model = true;
  SinewSessionDef def = sinew_default_session();
  assert_null(sinew_session_open(client, &def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "task is NULL");
  def.task = "fake";
  assert_null(sinew_session_open(client, &def, &err));
  expect_error(SINEW_ERR_PROTOCOL, "incomplete");
  def.name = "robot";
  assert_null(sinew_session_open(client, &def, &err));
  expect_error(SINEW_ERR_PROTOCOL, "incomplete");
  const char *const settings[] = {"candidats=3", NULL};
  def.settings = settings;
  assert_null(sinew_session_open(client, &def, &err));
  expect_error(SINEW_ERR_ARGUMENT, "; did you mean 'candidates'?");
  stop_thread();
  assert_int_equal(fake.opens, 2);
  assert_int_equal(fake.closes, 1);
  start_thread();
  sinew_client_disconnect(client);
}

static void test_expiry_and_fallback(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, sinew_session_fallback_hold);
  double ctrl[NU] = {9, 9};
  expect_status(sinew_session_control(session, 1, ctrl, &err), SINEW_ERR_NO_PLAN);
  assert_true(ctrl[0] == 0 && ctrl[1] == 0);
  const SinewState now = state_at(1);
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  const double at[] = {0.9, 1, 1.05, 1.1, 1.3, 1.45, 1.5}, row[] = {0, 0, 0, 1, 3, 3, 3};
  for (size_t i = 0; i < sizeof at / sizeof *at; ++i) {
    expect_status(sinew_session_control(session, at[i], ctrl, &err), SINEW_OK);
    assert_true(ctrl[0] == 1 + row[i] && ctrl[1] == ctrl[0]);
  }
  ctrl[0] = 0;
  expect_status(sinew_session_control(session, 1.51, ctrl, &err), SINEW_ERR_EXPIRED);
  assert_true(ctrl[0] == 4);  // held
  sinew_session_close(session, NULL);
  session = open_on(client, NULL);
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  expect_status(sinew_session_control(session, 2, ctrl, &err), SINEW_ERR_EXPIRED);
  assert_true(ctrl[0] == 0 && ctrl[1] == 0);  // relaxed
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// What is no plan leaves the plan in force as it is.
static void test_refused_and_diverged(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  SinewState now = state_at(1);
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  now = state_at(1.2);
  fake.no_plan = true;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_NO_PLAN);
  fake.no_plan = false;
  fake.refuse = true;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_REFUSED);
  assert_string_equal(err.text, "qpos[1] is nan");
  fake.refuse = false;
  fake.wrong_kind = true;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_PROTOCOL);
  fake.wrong_kind = false;
  fake.garbage = true;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_PROTOCOL);
  fake.garbage = false;
  assert_true(sinew_session_current_plan(session)->state_time == 1);
  now.qpos = NULL;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_send(session, &now, 0.1, &err), SINEW_ERR_ARGUMENT);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

static void test_retry(void **state) {
  (void)state;
  SinewClient *client = connect_with(1, 2);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  fake.silent = 2;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  fake.silent = 3;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_TIMEOUT);
  assert_non_null(strstr(err.text, "within 1 s"));
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  stop_thread();
  assert_true(fake.requests >= 3 + 3 + 3 + 1);  // more where the machine is slow
  start_thread();
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// A late answer is neither that of the next request nor a plan that sinew_session_receive takes.
static void test_late_answer(void **state) {
  (void)state;
  SinewClient *client = connect_with(1, 0);
  SinewSession *session = open_on(client, NULL);
  SinewState now = state_at(1);
  fake.keep = true;
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_ERR_TIMEOUT);
  stop_thread();
  fake.keep = false;
  reply_plan(&kept[0].sender, kept[0].id, kept[0].time, SINEW__V1__PLAN__STATUS__OK);
  expect_status(sinew_session_receive(session, 0.2, &err), SINEW_ERR_TIMEOUT);
  assert_null(sinew_session_current_plan(session));
  reply_plan(&kept[0].sender, kept[0].id, kept[0].time, SINEW__V1__PLAN__STATUS__OK);
  start_thread();
  now = state_at(2);
  expect_status(sinew_session_plan(session, &now, 0.1, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->state_time == 2);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// Once a plan has been waited for, the answer to a state that was sent before, without waiting, is of no use.
static void test_earlier_state(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState first = state_at(1), second = state_at(2);
  fake.keep = true;
  expect_status(sinew_session_send(session, &first, 0.1, &err), SINEW_OK);
  stop_thread();
  assert_int_equal(nkept, 1);
  fake.keep = false;
  start_thread();
  expect_status(sinew_session_plan(session, &second, 0.1, &err), SINEW_OK);
  stop_thread();
  reply_plan(&kept[0].sender, kept[0].id, kept[0].time, SINEW__V1__PLAN__STATUS__OK);
  expect_status(sinew_session_receive(session, 0.2, &err), SINEW_ERR_TIMEOUT);
  assert_true(sinew_session_current_plan(session)->state_time == 2);
  start_thread();
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// A clock that is set back, as at a new episode: a plan that was on its way answers a later state than the latest one
// sent, and is of no use. That is no lie of the daemon.
static void test_clock_is_set_back(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState late = state_at(3), early = state_at(1);
  fake.keep = true;
  expect_status(sinew_session_send(session, &late, 0.1, &err), SINEW_OK);
  expect_status(sinew_session_send(session, &early, 0.1, &err), SINEW_OK);
  stop_thread();
  assert_int_equal(nkept, 2);
  fake.keep = false;
  for (int i = 0; i < 2; i++) reply_plan(&kept[i].sender, kept[i].id, kept[i].time, SINEW__V1__PLAN__STATUS__OK);
  start_thread();
  expect_status(sinew_session_receive(session, 5, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->state_time == 1);

  const SinewStreamDef def = sinew_default_stream();
  expect_status(sinew_session_stream_start(session, &def, &err), SINEW_OK);
  fake.better = 2;
  expect_status(sinew_session_stream_send(session, &late, &err), SINEW_OK);
  stop_thread();  // once its plans are on their way
  fake.better = 0;
  start_thread();
  expect_status(sinew_session_stream_send(session, &early, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 0.2, &err), SINEW_ERR_TIMEOUT);
  assert_true(sinew_session_current_plan(session)->state_time == 1);
  stop_thread();
  fake.better = 1;
  start_thread();
  expect_status(sinew_session_stream_send(session, &early, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->stream_number == 3);
  stop_thread();
  assert_int_equal(fake.seen, 2);  // what is of no use was read, too: a daemon sends on for what was read
  start_thread();
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// Continuous mode: all that has come is read, the newest plan is in force, and the daemon is told what was read.
static void test_stream(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewStreamDef def = sinew_default_stream();
  expect_status(sinew_session_stream_start(session, &def, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 0, &err), SINEW_ERR_TIMEOUT);
  SinewState now = state_at(1);
  fake.better = 3;
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  for (int i = 0;
       i < 50 && (!sinew_session_current_plan(session) || sinew_session_current_plan(session)->stream_number < 3); ++i)
    sinew_session_stream_receive(session, 0.1, &err);
  assert_true(sinew_session_current_plan(session)->stream_number == 3 &&
              sinew_session_current_plan(session)->state_time == 1);
  now = state_at(2);
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->state_time == 2);
  stop_thread();
  assert_int_equal(fake.seen, 3);
  start_thread();

  // Diverged candidates leave the plan in force; so does a state that is refused.
  while (sinew_session_stream_receive(session, 0.1, &err) == SINEW_OK) continue;
  fake.better = 1;
  fake.no_plan = true;
  now = state_at(3);
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_ERR_NO_PLAN);
  assert_true(sinew_session_current_plan(session)->state_time == 2);
  fake.no_plan = false;
  fake.refuse = true;
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_ERR_REFUSED);
  assert_string_equal(err.text, "qpos[1] is nan");
  fake.refuse = false;
  now.qvel = NULL;
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_ERR_ARGUMENT);

  // The daemon ends it; a new one counts from 1.
  fake.better = 0;
  fake.ends = true;
  now = state_at(4);
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_ERR_ENDED);
  assert_non_null(strstr(err.text, "lease"));
  fake.ends = false;
  fake.better = 1;
  expect_status(sinew_session_stream_start(session, &def, &err), SINEW_OK);
  now = state_at(5);
  expect_status(sinew_session_stream_send(session, &now, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->stream_number == 1 &&
              sinew_session_current_plan(session)->state_time == 5);
  expect_status(sinew_session_stream_stop(session, &err), SINEW_OK);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

static void test_evaluate(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  SinewState now = state_at(1);
  const double ctrl[2 * NU] = {1, 2, 3, 4};
  double cost = 0, gradient[2 * NU] = {0};
  expect_status(sinew_session_evaluate(session, &now, ctrl, 2, &cost, NULL, &err), SINEW_OK);
  assert_true(cost == 10 && gradient[0] == 0);
  expect_status(sinew_session_evaluate(session, &now, ctrl, 2, &cost, gradient, &err), SINEW_OK);
  assert_true(gradient[0] == 4 && gradient[3] == 4);
  expect_status(sinew_session_evaluate(session, &now, ctrl, 0, &cost, gradient, &err), SINEW_ERR_ARGUMENT);
  fake.no_plan = true;
  expect_status(sinew_session_evaluate(session, &now, ctrl, 2, &cost, gradient, &err), SINEW_ERR_PROTOCOL);
  fake.no_plan = false;
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// Of states sent without waiting the newest plan wins, in whatever order the answers come.
static void test_newest_wins(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  expect_status(sinew_session_receive(session, 0, &err), SINEW_ERR_TIMEOUT);
  fake.keep = true;
  for (int i = 1; i <= 3; ++i) {
    const SinewState now = state_at(i);
    expect_status(sinew_session_send(session, &now, 0.1, &err), SINEW_OK);
  }
  stop_thread();
  assert_int_equal(nkept, 3);
  reply_plan(&kept[0].sender, kept[0].id, kept[0].time, SINEW__V1__PLAN__STATUS__REPLACED);
  reply_plan(&kept[2].sender, kept[2].id, kept[2].time, SINEW__V1__PLAN__STATUS__OK);
  reply_plan(&kept[1].sender, kept[1].id, kept[1].time, SINEW__V1__PLAN__STATUS__OK);
  expect_status(sinew_session_receive(session, 5, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->state_time == 3);
  expect_status(sinew_session_receive(session, 0.2, &err), SINEW_ERR_TIMEOUT);
  assert_true(sinew_session_current_plan(session)->state_time == 3);
  start_thread();
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_connect_refuses),
      TEST(test_connect_by_refuses),
      TEST(test_connect_by),
      TEST(test_open),
      TEST(test_other_protocol),
      TEST(test_what_is_asked_for),
      TEST(test_open_fails_half_way),
      TEST(test_expiry_and_fallback),
      TEST(test_refused_and_diverged),
      TEST(test_retry),
      TEST(test_late_answer),
      TEST(test_earlier_state),
      TEST(test_clock_is_set_back),
      TEST(test_stream),
      TEST(test_evaluate),
      TEST(test_newest_wins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
