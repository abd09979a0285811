// Changes of a session that runs, as they go out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "tests/clients/libsinew_client/fake_daemon.h"

// Returns the change that the daemon has got, in a pause of its.
static const Sinew__V1__SetConfigRequest *got(void) {
  stop_thread();
  assert_non_null(fake.change);
  assert_int_equal(fake.change->set_config->session, 42);
  start_thread();
  return fake.change->set_config;
}

// A setting goes to the planner or, where it is one of the session's, to that; the other is absent.
static void test_settings(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  expect_status(sinew_session_set(session, "adam_rate=0.25", &err), SINEW_OK);
  const Sinew__V1__SetConfigRequest *in = got();
  assert_true(in->planner->has_adam_rate_case && in->planner->adam_rate == 0.25);
  assert_true(!in->settings && in->n_terms == 0);
  expect_status(sinew_session_set(session, "planner=lbfgs", &err), SINEW_OK);
  in = got();
  assert_string_equal(in->planner->planner, "lbfgs");
  expect_status(sinew_session_set(session, "latency=0.5", &err), SINEW_OK);
  in = got();
  assert_true(!in->planner && in->settings->has_latency_case && in->settings->latency == 0.5);
  stop_thread();
  const int requests = fake.requests;
  start_thread();
  expect_status(sinew_session_set(session, "adam_rat=1", &err), SINEW_ERR_ARGUMENT);
  expect_text("unknown setting 'adam_rat'; there are");
  expect_text("latency");
  expect_text("did you mean 'adam_rate'?");
  expect_status(sinew_session_set(session, "adam_rate=fast", &err), SINEW_ERR_ARGUMENT);
  expect_text("setting: adam_rate: expected a number");
  expect_status(sinew_session_set(session, "latency", &err), SINEW_ERR_ARGUMENT);
  expect_status(sinew_session_set(session, "", &err), SINEW_ERR_ARGUMENT);
  stop_thread();
  assert_int_equal(fake.requests, requests);  // none of these went out
  start_thread();
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

static void test_terms(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  expect_status(sinew_session_set_weight(session, "reach", 2, 30, &err), SINEW_OK);
  const Sinew__V1__SetConfigRequest *in = got();
  assert_int_equal(in->n_terms, 1);
  assert_string_equal(in->terms[0]->name, "reach");
  assert_true(in->terms[0]->has_weight_case && in->terms[0]->weight == 2);
  assert_true(in->terms[0]->has_terminal_weight_case && in->terms[0]->terminal_weight == 30);
  assert_true(in->terms[0]->n_target == 0 && !in->terms[0]->has_own_target_case);
  const double target[3] = {1, -2, 3};
  expect_status(sinew_session_set_target(session, "speed", target, 3, &err), SINEW_OK);
  in = got();
  assert_string_equal(in->terms[0]->name, "speed");
  assert_true(in->terms[0]->n_target == 3 && !memcmp(in->terms[0]->target, target, sizeof target));
  assert_true(!in->terms[0]->has_weight_case && !in->terms[0]->has_terminal_weight_case);
  assert_true(!in->terms[0]->has_own_target_case);
  expect_status(sinew_session_set_target(session, "speed", NULL, 0, &err), SINEW_OK);
  in = got();
  assert_true(in->terms[0]->n_target == 0 && in->terms[0]->own_target);
  fake.refuse = true;
  expect_status(sinew_session_set_weight(session, "reach", 2, 30, &err), SINEW_ERR_REFUSED);
  expect_text("qpos[1] is nan");
  fake.refuse = false;
  fake.wrong_kind = true;
  expect_status(sinew_session_set_weight(session, "reach", 2, 30, &err), SINEW_ERR_PROTOCOL);
  fake.wrong_kind = false;
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// Plans of a stream that come while a change waits for its answer are not lost, the newest of them; but those of a
// stream that has ended are.
static void test_streams_go_on(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewStreamDef def = sinew_default_stream();
  fake.better = 3;
  expect_status(sinew_session_stream_start(session, &def, &err), SINEW_OK);
  for (int tick = 1; tick <= 20; ++tick) {
    const SinewState at = state_at(tick);
    const double target[1] = {tick};
    expect_status(sinew_session_stream_send(session, &at, &err), SINEW_OK);
    expect_status(sinew_session_set_target(session, "reach", target, 1, &err), SINEW_OK);
    expect_status(sinew_session_stream_receive(session, 0, &err), SINEW_OK);
    assert_int_equal(sinew_session_current_plan(session)->stream_number, 3 * tick);
    assert_true(sinew_session_current_plan(session)->state_time == tick);
    expect_status(sinew_session_stream_receive(session, 0, &err), SINEW_ERR_TIMEOUT);
  }
  const SinewState late = state_at(21), next = state_at(22);
  expect_status(sinew_session_stream_send(session, &late, &err), SINEW_OK);
  expect_status(sinew_session_stream_stop(session, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 0, &err), SINEW_ERR_TIMEOUT);
  expect_status(sinew_session_stream_start(session, &def, &err), SINEW_OK);
  expect_status(sinew_session_stream_send(session, &next, &err), SINEW_OK);
  expect_status(sinew_session_stream_receive(session, 5, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->state_time == 22);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// So it is with the plan of a state that was sent without waiting.
static void test_sent_states_go_on(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewState at = state_at(7);
  expect_status(sinew_session_send(session, &at, 0.02, &err), SINEW_OK);
  expect_status(sinew_session_set(session, "adam_rate=0.25", &err), SINEW_OK);
  expect_status(sinew_session_receive(session, 0, &err), SINEW_OK);
  assert_true(sinew_session_current_plan(session)->state_time == 7);
  expect_status(sinew_session_send(session, &at, 0.02, &err), SINEW_OK);
  expect_status(sinew_session_set(session, "adam_rate=0.5", &err), SINEW_OK);  // its plan is freed with the client
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_settings, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_terms, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_streams_go_on, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_sent_states_go_on, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
