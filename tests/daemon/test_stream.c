// Continuous mode of sinewd, as a black box.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_stream.h"

// Nothing more comes for a while.
static void expect_silence(SnTestClient *c) {
  Sinew__V1__Reply *r = sn_test_receive(c, 0.2);
  if (r) fail_msg("an answer of kind %d that nobody asked for", (int)r->body_case);
}

// Of the stream's session; plans that come meanwhile are taken.
static Sinew__V1__SessionStatistics session_statistics(SnTestStream *s) {
  Sinew__V1__StatisticsRequest in = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  request.body_case = SINEW__V1__REQUEST__BODY_STATISTICS;
  request.statistics = &in;
  Sinew__V1__Reply *r = sn_test_stream_ask(s, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STATISTICS);
  Sinew__V1__SessionStatistics out = *r->statistics->sessions[0];
  sn_test_done(r);
  return out;
}

// States come, every better plan goes out, until the client says stop; then plans are answers again.
static void test_stream(void **state) {
  (void)state;
  enum { STATES = 25 };
  Sinew__V1__Reply *opened;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = sn_test_stream_start(&client, s.session, 5, 0.2);
  Sinew__V1__State x = *opened->open->initial;
  for (int i = 0; i < STATES; i++) {
    x.time = 0.02 * i;
    sn_test_stream_state(&s, &x, (int64_t)s.sequence);
    assert_null(sn_test_stream_read(&s, 0.02));
  }
  // The last state is refined on and on, long after its plan was due.
  sn_test_stream_await(&s, 0.02 * (STATES - 1));
  for (double until = sn_clock_now() + 60; s.improved == 0 && sn_clock_now() < until;)
    assert_null(sn_test_stream_read(&s, 0.1));
  assert_null(sn_test_stream_read(&s, 0.5));
  print_message("%d states, %d plans, %d of them better ones for the same state\n", STATES, s.plans, s.improved);
  assert_true(s.improved > 0 && s.plans > s.improved);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  expect_silence(&client);
  const Sinew__V1__SessionStatistics t = session_statistics(&s);
  assert_true(!t.streaming && (int)t.sent == s.plans && t.iterations > 0 && t.best_cost <= s.cost && t.plan_age > 0);
  Sinew__V1__Reply *r = sn_test_plan(&client, s.session, &x, 0.05);
  assert_true(r->plan->stream_sequence == 0 && r->plan->sequence > s.number);
  sn_test_done(r);
  sn_test_done(opened);
}

// A stream ends with its lease, and says so; a state after that is refused. A lease that is renewed goes on.
static void test_lease_ends(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  const double lease = JUDGE_TIME ? 2 : 3;
  s = sn_test_stream_start(&client, s.session, lease, 0.1);
  sn_test_stream_state(&s, opened->open->initial, -1);
  for (int i = 0; i < 4; i++) {  // for longer than a lease
    assert_null(sn_test_stream_read(&s, 0.6));
    sn_test_stream_request(&s, false, lease, 0.1);
    Sinew__V1__Reply *r = sn_test_stream_read(&s, 10);
    assert_int_equal(r->stream->end, SINEW__V1__STREAM_REPLY__END__RUNNING);
    sn_test_done(r);
  }
  assert_true(session_statistics(&s).streaming || !JUDGE_TIME);
  double latest = 0;
  for (int i = 0; i < 8; i++) {  // so do states
    latest = sn_clock_now();
    sn_test_stream_state(&s, opened->open->initial, -1);
    assert_null(sn_test_stream_read(&s, 0.3));
  }
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__LEASE, 60);
  assert_true(sn_clock_now() - latest >= lease);
  assert_true(sn_test_daemon_logged(&sinewd, "stream-expired"));
  assert_false(session_statistics(&s).streaming);
  sn_test_stream_state(&s, opened->open->initial, -1);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__STATE, "no stream");
  expect_silence(&client);
  sn_test_done(opened);
}

// A stream that is asked for anew has the new terms. Without a deadline a state is in time as long as the lease lasts.
static void test_terms_of_a_stream(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = sn_test_stream_start(&client, s.session, 20, 0);
  sn_test_stream_state(&s, opened->open->initial, -1);
  sn_test_stream_await(&s, opened->open->initial->time);
  sn_test_stream_request(&s, false, 30, 0);
  r = sn_test_stream_read(&s, 10);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STREAM);
  assert_true(r->stream->lease == 30 && r->stream->states == 1 && r->stream->misses == 0);
  sn_test_done(r);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

static void test_close_ends_stream(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = sn_test_stream_start(&client, s.session, 5, 0.1);
  sn_test_stream_state(&s, opened->open->initial, -1);
  assert_null(sn_test_stream_read(&s, 0.1));
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s.session;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = &in;
  Sinew__V1__Reply *r = sn_test_stream_ask(&s, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_CLOSE);
  sn_test_done(r);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__CLOSED, 10);
  expect_silence(&client);
  sn_test_done(opened);
}

// Bad states and requests are answered; the stream goes on. A plan request in between is answered too.
static void test_stream_goes_on(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  Sinew__V1__State x = *opened->open->initial;
  sn_test_stream_state(&s, &x, -1);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__STATE, "no stream");
  sn_test_stream_request(&s, false, 0.01, 0.1);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__INVALID, "lease: 0.01 is out of bounds");
  sn_test_stream_request(&s, true, 0, 0);  // stopping what does not run is no mistake
  r = sn_test_receive(&client, 10);
  assert_int_equal(r->stream->end, SINEW__V1__STREAM_REPLY__END__STOPPED);
  sn_test_done(r);
  s = sn_test_stream_start(&client, s.session, 5, 0.1);
  x.n_qpos--;
  sn_test_stream_state(&s, &x, -1);
  sn_test_expect_error(sn_test_stream_read(&s, 10), SINEW__V1__ERROR__CODE__INVALID, "state.qpos");
  x.n_qpos++;
  sn_test_stream_state(&s, &x, -1);
  sn_test_stream_await(&s, x.time);
  sn_test_send_plan(&client, s.session, &x, 0.05);
  r = sn_test_stream_read(&s, 10);
  assert_true(r->body_case == SINEW__V1__REPLY__BODY_PLAN && r->id == client.id && r->plan->stream_sequence == 0);
  s.number = r->plan->sequence;
  sn_test_done(r);
  s.version = 0;  // what the answer found makes the next state's plans no improvement on the last
  x.time = 1;
  sn_test_stream_state(&s, &x, -1);
  sn_test_stream_await(&s, 1);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

// A client that says what it has read never has more than 32 plans on their way.
static void test_plans_wait_for_a_slow_client(void **state) {
  (void)state;
  enum { WINDOW = 32 };
  Sinew__V1__Reply *opened;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = sn_test_stream_start(&client, s.session, 20, 1);
  Sinew__V1__State x = *opened->open->initial;
  int sent = 0;
  for (const double until = sn_clock_now() + 60; s.sequence < WINDOW && sn_clock_now() < until;) {
    x.time = 0.001 * sent++;
    sn_test_stream_state(&s, &x, 0);
    assert_null(sn_test_stream_read(&s, 0.02));
  }
  for (int i = 0; i < WINDOW; i++) {
    x.time = 0.001 * sent++;
    sn_test_stream_state(&s, &x, 0);
    assert_null(sn_test_stream_read(&s, 0.02));
  }
  assert_null(sn_test_stream_read(&s, 0.3));
  assert_true(s.sequence == WINDOW || (s.sequence < WINDOW && !JUDGE_TIME));
  const uint64_t held = s.sequence;
  x.time = 10;
  sn_test_stream_state(&s, &x, (int64_t)held);
  sn_test_stream_await(&s, 10);
  assert_true(s.sequence > held);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

// Two streams and a session with deadlines of 20 ms: that one is answered in time, and both streams go on.
static bool deadlines_and_streams_go_on(void *unused) {
  (void)unused;
  enum { PLANS = 40, STREAMS = 2 };
  SnTestClient other[STREAMS];
  SnTestStream s[STREAMS];
  Sinew__V1__Reply *opened;
  double age[PLANS];
  int before[STREAMS];
  uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  for (int i = 0; i < STREAMS; i++) {
    sn_test_connect(&other[i], sinewd.endpoint);
    s[i] = sn_test_stream_start(&other[i], sn_test_open(&other[i], "arm_reach", 2, NULL), 20, 0.04);
  }
  Sinew__V1__State x = *opened->open->initial;
  for (int k = 0; k < PLANS; k++) {
    x.time = 0.02 * k;
    for (int i = 0; i < STREAMS; i++) sn_test_stream_state(&s[i], &x, (int64_t)s[i].sequence);
    Sinew__V1__Reply *r = sn_test_plan(&client, id, &x, 0.02);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    age[k] = r->plan->age;
    sn_test_done(r);
    for (int i = 0; i < STREAMS; i++) {
      if (k == PLANS / 2) before[i] = s[i].plans;
      assert_null(sn_test_stream_read(&s[i], 0.005));
    }
  }
  qsort(age, PLANS, sizeof *age, sn_test_compare_doubles);
  print_message("20 ms beside two streams: age p50 %.2f ms, worst %.2f ms; %d and %d plans streamed\n",
                1e3 * age[PLANS / 2], 1e3 * age[PLANS - 1], s[0].plans, s[1].plans);
  bool hold = age[PLANS / 2] < 0.1;
  for (int i = 0; i < STREAMS; i++) {
    hold = hold && s[i].plans > before[i] && before[i] > 0;
    sn_test_stream_await(&s[i], x.time);
    sn_test_stream_request(&s[i], true, 0, 0);
    sn_test_stream_end(&s[i], SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
    sn_test_disconnect(&other[i]);
  }
  sn_test_done(opened);
  return hold;
}

static void test_stream_beside_deadlines(void **state) {
  (void)state;
  sn_test_judge(deadlines_and_streams_go_on, NULL);
}

// The warning of the answer to the next StreamRequest, which is sent here; of a configuration, after setting the
// latency where that is not negative.
static bool stream_warns(SnTestStream *s, bool stop) {
  sn_test_stream_request(s, stop, 5, 0.2);
  Sinew__V1__Reply *r = sn_test_stream_read(s, 10);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STREAM);
  const bool warns = strstr(r->stream->warning, "latency is 0 in continuous mode") != NULL;
  assert_true(warns || !*r->stream->warning);
  sn_test_done(r);
  return warns;
}

static bool config_warns(SnTestStream *s, double latency) {
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  Sinew__V1__GetConfigRequest get = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  settings.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  settings.latency = latency;
  set.session = get.session = s->session;
  set.settings = &settings;
  request.body_case = latency < 0 ? SINEW__V1__REQUEST__BODY_GET_CONFIG : SINEW__V1__REQUEST__BODY_SET_CONFIG;
  if (latency < 0)
    request.get_config = &get;
  else
    request.set_config = &set;
  Sinew__V1__Reply *r = sn_test_stream_ask(s, &request);
  assert_true(r->body_case == SINEW__V1__REPLY__BODY_GET_CONFIG || r->body_case == SINEW__V1__REPLY__BODY_SET_CONFIG);
  const Sinew__V1__Config *c = latency < 0 ? r->get_config : r->set_config;
  const bool warns = strstr(c->warning, "latency is 0 in continuous mode") != NULL;
  assert_true(warns || !*c->warning);
  sn_test_done(r);
  return warns;
}

// A latency of 0, which is the default, is right in lockstep alone.
static int answered;
static double answered_stamp;
static void count_states(const Sinew__V1__Plan *plan) {
  answered += plan->state_time != answered_stamp;
  answered_stamp = plan->state_time;
}

// A state has its period before a newer one takes its place, however many come meanwhile; the last of its iterations
// may end early, by the time of one.
static void test_a_state_has_its_period(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened), .stamp = -1};
  Sinew__V1__State x = *opened->open->initial;
  s.period = 0.4;
  s.check = count_states;
  sn_test_stream_request(&s, false, 60, 0.2);
  r = sn_test_stream_read(&s, 10);
  assert_true(r && r->body_case == SINEW__V1__REPLY__BODY_STREAM);
  sn_test_done(r);
  answered = 0;
  answered_stamp = -1;
  const double began = sn_clock_now();
  for (double until = began + 60; answered < 4 && sn_clock_now() < until;) {
    x.time += 0.01;
    sn_test_stream_state(&s, &x, (int64_t)s.sequence);
    assert_null(sn_test_stream_read(&s, 0.01));
  }
  const double took = sn_clock_now() - began;
  print_message("%d states answered in %.2f s, with a period of %g s\n", answered, took, s.period);
  assert_int_equal(answered, 4);
  assert_true(took > 3 * 0.5 * s.period);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

static void test_a_latency_of_zero_is_warned_of(void **state) {
  (void)state;
  char line[100];
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, NULL), .stamp = -1};
  snprintf(line, sizeof line, "event=stream session=%llu text=\"latency is 0", (unsigned long long)s.session);
  assert_false(config_warns(&s, -1) || sn_test_daemon_logged(&sinewd, line));
  assert_true(stream_warns(&s, false) && config_warns(&s, -1) && sn_test_daemon_logged(&sinewd, line));
  assert_false(config_warns(&s, 0.02) || config_warns(&s, -1) || stream_warns(&s, false));
  assert_true(config_warns(&s, 0) && stream_warns(&s, false));
  assert_false(stream_warns(&s, true) || config_warns(&s, -1));
  assert_false(config_warns(&s, 0.02) || stream_warns(&s, false) || stream_warns(&s, true));
}

// What a stream refines after its plan was due is for idle time: plans of a session with deadlines have nearly as many
// iterations beside it as alone, in turn, because other programs on the machine are in both figures.
static bool refining_leaves_time(void *unused) {
  (void)unused;
  enum { ROUNDS = 5 };
  static const double deadline = 0.2;
  SnTestClient other;
  Sinew__V1__Reply *opened;
  unsigned iterations[2] = {0};
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  sn_test_connect(&other, sinewd.endpoint);
  const uint64_t streaming = sn_test_open(&other, "arm_reach", 2, NULL);
  for (int k = 0; k < ROUNDS; k++)
    for (int beside = 0; beside < 2; beside++) {
      SnTestStream s = {.c = NULL};
      if (beside) {
        s = sn_test_stream_start(&other, streaming, 30, 0.02);
        sn_test_stream_state(&s, opened->open->initial, 0);
        sn_test_stream_await(&s, opened->open->initial->time);
        assert_null(sn_test_stream_read(&s, 0.1));  // it is late by now
      }
      Sinew__V1__Reply *r = sn_test_plan(&client, id, opened->open->initial, deadline);
      assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
      iterations[beside] += r->plan->iterations;
      sn_test_done(r);
      if (!beside) continue;
      sn_test_stream_request(&s, true, 0, 0);
      sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
    }
  print_message("iterations alone %u, beside a stream that refines %u\n", iterations[0], iterations[1]);
  sn_test_done(opened);
  sn_test_disconnect(&other);
  return 2 * iterations[1] > iterations[0];
}

static void test_refining_is_for_idle_time(void **state) {
  (void)state;
  sn_test_judge(refining_leaves_time, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stream),
      cmocka_unit_test(test_lease_ends),
      cmocka_unit_test(test_terms_of_a_stream),
      cmocka_unit_test(test_close_ends_stream),
      cmocka_unit_test(test_stream_goes_on),
      cmocka_unit_test(test_plans_wait_for_a_slow_client),
      cmocka_unit_test(test_stream_beside_deadlines),
      cmocka_unit_test(test_refining_is_for_idle_time),
      cmocka_unit_test(test_a_latency_of_zero_is_warned_of),
      cmocka_unit_test(test_a_state_has_its_period),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
