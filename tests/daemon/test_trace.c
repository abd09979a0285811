// Traces of plans: the stages of each come one after the other, and add up to what its client sees.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_stream.h"

static Sinew__V1__Reply *ask(uint64_t session, uint64_t after) {
  Sinew__V1__TraceRequest in = SINEW__V1__TRACE_REQUEST__INIT;
  in.session = session;
  in.after = after;
  return sn_test_request(&client, SN_TEST_MESSAGE(trace, TRACE, &in));
}

// Enough for all iterations of a plan, however slow the machine [s].
#define DUE 10.0

// Each stage is there, none before the one before it.
static void check_order(const Sinew__V1__PlanTrace *t) {
  const double at[] = {0, t->taken, t->turn, t->began, t->ended, t->packed, t->sent};
  for (size_t i = 1; i < sizeof at / sizeof *at; i++)
    if (!(at[i] >= at[i - 1])) fail_msg("plan %d: stage %d at %g after %g", (int)t->sequence, (int)i, at[i], at[i - 1]);
  assert_true(t->served <= t->ended - t->began + 1e-6);
  if (t->status == SINEW__V1__PLAN__STATUS__OK) assert_true(t->served > 0 && t->slices > 0);
}

static void test_plans(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  Sinew__V1__PlannerSettings planner = *sn_test_sampling();
  planner.has_iterations_case = SINEW__V1__PLANNER_SETTINGS__HAS_ITERATIONS_ITERATIONS;
  planner.iterations = 3;
  const uint64_t id = sn_test_open_by(&client, "arm_reach", 1, &planner, &opened);
  r = ask(id, 0);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_TRACE);
  assert_true(r->trace->n_traces == 0 && r->trace->newest == 0);
  sn_test_done(r);
  enum { PLANS = 3 };
  double began[PLANS], took[PLANS], age[PLANS];
  uint64_t request[PLANS];
  for (int i = 0; i < PLANS; i++) {
    opened->open->initial->time = 0.5 * i;
    began[i] = sn_clock_now();
    r = sn_test_plan(&client, id, opened->open->initial, DUE);
    took[i] = sn_clock_now() - began[i];
    age[i] = r->plan->age;
    request[i] = client.id;
    sn_test_done(r);
  }
  r = ask(id, 1);
  assert_true(r->trace->n_traces == PLANS - 1 && r->trace->newest == PLANS);
  for (int i = 1; i < PLANS; i++) {
    const Sinew__V1__PlanTrace *t = r->trace->traces[i - 1];
    check_order(t);
    assert_true(t->number == (uint64_t)i + 1 && t->sequence == (uint64_t)i + 1 && t->request == request[i]);
    assert_true(t->state_time == 0.5 * i && t->status == SINEW__V1__PLAN__STATUS__OK && t->iterations == 3);
    assert_true(t->first && !t->streamed && fabs(t->due - DUE) < 1e-9);
    assert_int_equal(t->deadline_met, age[i] <= DUE);
    // The client may have the plan before the daemon's clock says when it was sent.
    assert_true(t->ended <= age[i] && age[i] <= t->sent && t->packed <= took[i]);
  }
  sn_test_done(r);
  sn_test_done(opened);
}

// A plan that was replaced has no turn; one without a deadline is never due.
static void test_replaced(void **state) {
  (void)state;
  enum { STATES = 6 };
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  for (int i = 0; i < STATES; i++) sn_test_send_plan(&client, id, opened->open->initial, 0.2);
  int replaced = 0;
  for (int i = 0; i < STATES; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&client, 20);
    assert_non_null(r);
    replaced += r->plan->status == SINEW__V1__PLAN__STATUS__REPLACED;
    sn_test_done(r);
  }
  assert_true(replaced > 0);
  Sinew__V1__Reply *r = ask(id, 0);
  assert_int_equal(r->trace->n_traces, STATES);
  for (int i = 0; i < STATES; i++) {
    const Sinew__V1__PlanTrace *t = r->trace->traces[i];
    if (t->status != SINEW__V1__PLAN__STATUS__REPLACED) {
      check_order(t);
      continue;
    }
    replaced--;
    assert_true(isnan(t->turn) && isnan(t->began) && isnan(t->ended) && t->sent > 0 && !t->first);
  }
  assert_int_equal(replaced, 0);
  sn_test_done(r);
  sn_test_done(opened);
}

// In continuous mode each plan that is sent has a trace; the first of each state says so.
static void test_stream(void **state) {
  (void)state;
  enum { STATES = 4 };
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  SnTestStream s = sn_test_stream_start(&client, id, 20, 5);
  for (int i = 0; i < STATES; i++) {
    opened->open->initial->time = 0.1 * i;
    sn_test_stream_state(&s, opened->open->initial, -1);
    sn_test_stream_await(&s, 0.1 * i);
  }
  const uint64_t stream = s.id;
  sn_test_stream_request(&s, true, 20, 5);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 20);
  Sinew__V1__Reply *r = ask(id, 0);
  assert_int_equal(r->trace->newest, s.plans);
  int first = 0;
  for (size_t i = 0; i < r->trace->n_traces; i++) {
    const Sinew__V1__PlanTrace *t = r->trace->traces[i];
    check_order(t);
    assert_true(t->streamed && t->request == stream);
    first += t->first;
  }
  if (s.plans <= 32) assert_int_equal(first, STATES);
  sn_test_done(r);
  sn_test_done(opened);
}

// Nobody else is told; asking is no sign of life.
static void test_refusals(void **state) {
  (void)state;
  sn_test_expect_error(ask(5, 0), SINEW__V1__ERROR__CODE__NOT_FOUND, "no session 5");
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  in.task = "arm_reach";
  in.session = &settings;
  settings.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  settings.lease = 0.5;
  Sinew__V1__Reply *opened = SN_TEST_REPLY(open, OPEN, &in);
  bool ended = false;
  for (const double until = sn_clock_now() + 20; !ended && sn_clock_now() < until; usleep(50000)) {
    Sinew__V1__Reply *r = ask(opened->open->session, 0);
    ended = r->body_case == SINEW__V1__REPLY__BODY_ERROR;
    sn_test_done(r);
  }
  assert_true(ended);
  sn_test_done(opened);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plans),
      cmocka_unit_test(test_replaced),
      cmocka_unit_test(test_stream),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
