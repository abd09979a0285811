// Records of sessions: what they say and in which order, to whom, and what becomes of subscribers that do not read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_records.h"
#include "tests/support/daemon_tuning.h"
#include "tests/support/raw_peer.h"

#define KIND(NAME) SINEW__V1__RECORD__BODY_##NAME

// Starts a daemon whose every session has a subscriber, and waits until it has heard of it.
static void subscribe_to_all(SnTestSubscriber *all) {
  Sinew__V1__Reply *opened;
  sn_test_subscribe(all, sinewd.records, 0, 0);
  const uint64_t session = sn_test_open(&client, "arm_reach", 0, &opened);
  sn_test_await_records(all, &client, session, opened->open->initial);
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = session;
  sn_test_done(opened);
  sn_test_done(SN_TEST_REPLY(close, CLOSE, &in));
  sn_test_record_done(sn_test_expect_record(all, KIND(CLOSE)));
}

static void expect_numbers(const double *a, size_t n, const double *b, size_t m) {
  assert_int_equal(n, m);
  if (n > 0) assert_memory_equal(a, b, n * sizeof *a);
}

static void expect_state(const Sinew__V1__State *a, const Sinew__V1__State *b) {
  assert_memory_equal(&a->time, &b->time, sizeof a->time);
  expect_numbers(a->qpos, a->n_qpos, b->qpos, b->n_qpos);
  expect_numbers(a->qvel, a->n_qvel, b->qvel, b->n_qvel);
  expect_numbers(a->act, a->n_act, b->act, b->n_act);
  expect_numbers(a->mocap, a->n_mocap, b->mocap, b->n_mocap);
}

// All bytes of two plans are the same.
static void expect_plan(const Sinew__V1__Plan *a, const Sinew__V1__Plan *b) {
  static unsigned char x[1 << 18], y[1 << 18];
  const size_t n = sinew__v1__plan__get_packed_size(a);
  assert_in_range(n, 1, sizeof x);
  assert_int_equal(sinew__v1__plan__get_packed_size(b), n);
  sinew__v1__plan__pack(a, x);
  sinew__v1__plan__pack(b, y);
  assert_memory_equal(x, y, n);
}

// A session that opens says what it is, and where it stands.
static void expect_open(SnTestSubscriber *all, uint64_t session) {
  Sinew__V1__Record *r = sn_test_expect_record(all, KIND(OPEN));
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  assert_int_equal(r->session, session);
  assert_int_equal(r->number, 1);
  assert_true(r->time <= (double)now.tv_sec + 1 && r->time > (double)now.tv_sec - 60);
  assert_string_equal(r->open->task, "arm_reach");
  assert_non_null(strstr(r->open->task_text, "sinusoid: {center: [0.45, 0, 1.35]"));
  assert_string_equal(r->open->model, "arm_reach");
  assert_non_null(strstr(r->open->model_file, "arm_reach.xml"));
  assert_int_equal(strlen(r->open->checksum), 16);
  assert_int_equal(r->open->seed, 7);
  assert_string_equal(r->open->version, SN_TEST_VERSION);
  assert_string_equal(r->open->backend, "cpu");
  assert_int_equal(r->open->description->model->nu, 6);
  assert_int_equal(r->open->config->version, 1);
  assert_string_equal(r->open->config->planner->planner, "sampling");
  char checksum[17];
  strcpy(checksum, r->open->checksum);
  sn_test_record_done(r);
  r = sn_test_expect_record(all, KIND(SNAPSHOT));
  assert_int_equal(r->number, 2);
  assert_string_equal(r->snapshot->checksum, checksum);
  assert_int_equal(r->snapshot->seed, 7);
  assert_int_equal(r->snapshot->plan, 0);
  assert_false(r->snapshot->warm_start->exists);
  sn_test_record_done(r);
}

// A plan with states and controls, by iterations: its two records say what was asked for, and what came.
static void plan_on_record(SnTestSubscriber *all, uint64_t session, Sinew__V1__State *state, uint64_t number) {
  double time[] = {0, 0.01}, ctrl[12] = {0.1, 0.2};
  Sinew__V1__Controls applied = SINEW__V1__CONTROLS__INIT;
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  applied.time = time;
  applied.n_time = 2;
  applied.ctrl = ctrl;
  applied.n_ctrl = 12;
  in.session = session;
  in.state = state;
  in.applied = &applied;
  in.want_states = true;
  in.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  in.iterations = 3;
  Sinew__V1__Reply *reply = SN_TEST_REPLY(plan, PLAN, &in);
  Sinew__V1__Record *r = sn_test_expect_record(all, KIND(BEGIN));
  assert_int_equal(r->number, number);
  assert_int_equal(r->begin->sequence, reply->plan->sequence);
  expect_state(r->begin->state, state);
  expect_numbers(r->begin->applied->time, 2, time, 2);
  expect_numbers(r->begin->applied->ctrl, r->begin->applied->n_ctrl, ctrl, 12);
  assert_int_equal(r->begin->iterations, 3);
  assert_int_equal(r->begin->candidates, 0);
  assert_true(r->begin->want_states && !r->begin->streamed);
  sn_test_record_done(r);
  r = sn_test_expect_record(all, KIND(PLAN));
  assert_int_equal(r->number, number + 1);
  assert_int_equal(r->plan->iterations, 3);
  expect_plan(r->plan, reply->plan);
  sn_test_record_done(r);
  sn_test_done(reply);
}

// A life: open, plan, a change of the configuration, its revert, reset with another seed, close.
static void test_life_of_a_session(void **state) {
  (void)state;
  SnTestSubscriber all;
  SnTestChange change;
  Sinew__V1__Reply *opened, *reply;
  subscribe_to_all(&all);
  const uint64_t session = sn_test_open(&client, "arm_reach", 7, &opened);
  expect_open(&all, session);
  plan_on_record(&all, session, opened->open->initial, 3);

  sn_test_change_begin(&change, session);
  sn_test_change_weight(&change, 0, "reach", 4);
  Sinew__V1__Request request = sn_test_change_request(&change);
  reply = sn_test_reply(&request, SINEW__V1__REPLY__BODY_SET_CONFIG);
  Sinew__V1__Record *r = sn_test_expect_record(&all, KIND(CONFIG));
  assert_int_equal(r->config->config->version, 2);
  assert_true(r->config->config->terms[0]->weight == 4);
  assert_int_equal(r->config->config->n_terms, reply->set_config->n_terms);
  assert_int_equal(r->config->plan, 0);
  sn_test_record_done(r);
  sn_test_done(reply);

  Sinew__V1__RevertRequest revert = SINEW__V1__REVERT_REQUEST__INIT;
  revert.session = session;
  revert.version = 1;
  sn_test_done(SN_TEST_REPLY(revert, REVERT, &revert));
  r = sn_test_expect_record(&all, KIND(CONFIG));
  assert_int_equal(r->config->config->reverted_to, 1);
  sn_test_record_done(r);

  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  reset.session = session;
  reset.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
  reset.seed = 11;
  reply = SN_TEST_REPLY(reset, RESET, &reset);
  r = sn_test_expect_record(&all, KIND(RESET));
  assert_int_equal(r->reset->seed, 11);
  assert_int_equal(reply->reset->seed, 11);
  expect_state(r->reset->initial, reply->reset->initial);
  const uint64_t number = r->number;
  sn_test_record_done(r);
  plan_on_record(&all, session, reply->reset->initial, number + 1);
  sn_test_done(reply);

  Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
  close.session = session;
  sn_test_done(SN_TEST_REPLY(close, CLOSE, &close));
  r = sn_test_expect_record(&all, KIND(CLOSE));
  assert_int_equal(r->session, session);
  assert_int_equal(r->number, number + 3);
  sn_test_record_done(r);
  sn_test_done(opened);
  sn_test_unsubscribe(&all);
}

// A plan of a stream says its deadline; a change while a plan is made says of which.
static void test_under_way(void **state) {
  (void)state;
  SnTestSubscriber all;
  SnTestChange change;
  Sinew__V1__Reply *opened;
  subscribe_to_all(&all);
  const uint64_t session = sn_test_open(&client, "arm_reach", 7, &opened);
  expect_open(&all, session);
  SnTestStream s = sn_test_stream_start(&client, session, 60, 0.05);
  sn_test_stream_state(&s, opened->open->initial, -1);
  Sinew__V1__Record *r = sn_test_expect_record(&all, KIND(BEGIN));
  assert_true(r->begin->streamed && r->begin->deadline == 0.05);
  sn_test_record_done(r);
  sn_test_stream_await(&s, opened->open->initial->time);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);

  sn_test_send_plan(&client, session, opened->open->initial, 60);  // until the session is closed
  while ((r = sn_test_record(&all, 10)) && r->body_case == KIND(PLAN)) sn_test_record_done(r);
  assert_true(r && r->body_case == KIND(BEGIN));
  const uint64_t sequence = r->begin->sequence;
  assert_true(sequence > 0 && r->begin->deadline == 60);
  sn_test_record_done(r);
  sn_test_change_begin(&change, session);
  sn_test_change_weight(&change, 0, "reach", 4);
  Sinew__V1__Request request = sn_test_change_request(&change);
  sn_test_send(&client, &request);
  r = sn_test_expect_record(&all, KIND(CONFIG));
  assert_int_equal(r->config->plan, sequence);
  sn_test_record_done(r);
  Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
  close.session = session;
  request = (Sinew__V1__Request)SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = &close;
  sn_test_send(&client, &request);
  for (int k = 0; k < 3; ++k) sn_test_done(sn_test_receive(&client, 10));
  sn_test_done(opened);
  sn_test_unsubscribe(&all);
}

// What is refused leaves no record.
static void test_refused(void **state) {
  (void)state;
  SnTestSubscriber all;
  SnTestChange change;
  Sinew__V1__Reply *opened;
  subscribe_to_all(&all);
  const uint64_t session = sn_test_open(&client, "arm_reach", 7, &opened);
  expect_open(&all, session);
  sn_test_change_begin(&change, session);
  sn_test_change_weight(&change, 0, "no such term", 4);
  Sinew__V1__Request request = sn_test_change_request(&change);
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__NOT_FOUND, "no such term");
  sn_test_expect_error(sn_test_plan(&client, session, opened->open->initial, 0), SINEW__V1__ERROR__CODE__INVALID,
                       "deadline");
  plan_on_record(&all, session, opened->open->initial, 3);
  sn_test_done(opened);
  sn_test_unsubscribe(&all);
}

// Each subscriber that comes later gets to know the session by its next plan; those of another session get nothing.
static void test_late_subscribers(void **state) {
  (void)state;
  SnTestSubscriber first, second, other;
  Sinew__V1__Reply *opened;
  const uint64_t session = sn_test_open(&client, "arm_reach", 7, &opened);
  const uint64_t another = sn_test_open(&client, "arm_reach", 7, NULL);
  sn_test_done(sn_test_plan(&client, session, opened->open->initial, 0.01));
  sn_test_subscribe(&first, sinewd.records, session, 0);
  sn_test_await_records(&first, &client, session, opened->open->initial);
  sn_test_subscribe(&other, sinewd.records, another, 0);
  sn_test_subscribe(&second, sinewd.records, session, 0);
  sn_test_await_records(&second, &client, session, opened->open->initial);
  int greetings = 0;
  for (Sinew__V1__Record *r = sn_test_record(&first, 1); r; r = sn_test_record(&first, 0.2)) {
    assert_int_equal(r->session, session);
    greetings += r->body_case == KIND(OPEN);
    sn_test_record_done(r);
  }
  assert_int_equal(greetings, 1);
  assert_null(sn_test_record(&other, 0.2));
  sn_test_done(opened);
  sn_test_unsubscribe(&first);
  sn_test_unsubscribe(&second);
  sn_test_unsubscribe(&other);
}

// Reads all that has come; returns how many numbers were left out since *number, which it moves on.
static uint64_t read_on(SnTestSubscriber *s, double seconds, uint64_t *number) {
  uint64_t gaps = 0;
  for (Sinew__V1__Record *r = sn_test_record(s, seconds); r; r = sn_test_record(s, seconds)) {
    assert_true(r->number > *number);
    if (*number > 0) gaps += r->number - *number - 1;
    *number = r->number;
    sn_test_record_done(r);
  }
  return gaps;
}

// A subscriber that does not read loses records, and sees that by a gap; one that does gets them all, and the daemon
// goes on with the memory that it had.
static void test_slow_subscriber(void **state) {
  (void)state;
  enum { PLANS = 6000, MEGABYTES = 64 };
  SnTestSubscriber slow, fast;
  Sinew__V1__Reply *opened;
  Sinew__V1__PlannerSettings settings = *sn_test_sampling();
  uint64_t number = 0, late = 0;
  settings.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  settings.candidates = 1;
  settings.has_iterations_case = SINEW__V1__PLANNER_SETTINGS__HAS_ITERATIONS_ITERATIONS;
  settings.iterations = 1;
  const uint64_t session = sn_test_open_by(&client, "arm_reach", 0, &settings, &opened);
  sn_test_subscribe(&slow, sinewd.records, session, 1);
  sn_test_await_records(&slow, &client, session, opened->open->initial);
  sn_test_subscribe(&fast, sinewd.records, session, 0);
  sn_test_await_records(&fast, &client, session, opened->open->initial);
  const double before = sn_test_daemon_megabytes(&sinewd);
  for (int i = 0; i < PLANS; i++) {
    sn_test_done(sn_test_plan(&client, session, opened->open->initial, 1));
    if (i % 100 == 99) assert_int_equal(read_on(&fast, 0.02, &number), 0);
  }
  assert_int_equal(read_on(&fast, 1, &number), 0);
  const double after = sn_test_daemon_megabytes(&sinewd);
  const uint64_t lost = read_on(&slow, 0.5, &late);
  print_message("%d records, %d lost by who did not read; memory %.0f MB, then %.0f\n", (int)number, (int)lost, before,
                after);
  assert_true(lost > 0 || late < number);
  if (JUDGE_TIME) assert_true(after < before + MEGABYTES);
  sn_test_done(sn_test_plan(&client, session, opened->open->initial, 1));
  assert_true(read_on(&slow, 1, &late) > 0 || lost > 0);
  assert_int_equal(read_on(&fast, 1, &number), 0);
  assert_int_equal(late, number);
  sn_test_done(opened);
  sn_test_unsubscribe(&slow);
  sn_test_unsubscribe(&fast);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_life_of_a_session), cmocka_unit_test(test_under_way),       cmocka_unit_test(test_refused),
      cmocka_unit_test(test_late_subscribers),  cmocka_unit_test(test_slow_subscriber),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
