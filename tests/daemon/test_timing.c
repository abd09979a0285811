// What sinewd says of time, against the client's own clock, which is the same on one machine: whatever else runs there,
// nothing took longer than the client waited, and what had to wait for a deadline waited for it.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_stream.h"

// Deadlines that nobody meets, and that everybody does.
static const double HOPELESS = 1e-9, GENEROUS = 3600;

// More iterations than fit before any deadline here.
enum { ENDLESS = 1000000 };

static void send_plan(SnTestClient *c, uint64_t session, Sinew__V1__State *state, double deadline,
                      unsigned iterations) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  plan.session = session;
  plan.state = state;
  plan.deadline = deadline;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = iterations;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  sn_test_send(c, &request);
}

static Sinew__V1__Reply *receive_plan(SnTestClient *c) {
  Sinew__V1__Reply *r = sn_test_receive(c, 60);
  assert_non_null(r);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  return r;
}

// A plan, and how long the client waited for it.
static Sinew__V1__Plan plan_of(uint64_t session, Sinew__V1__State *state, double deadline, unsigned iterations,
                               double *waited) {
  const double began = sn_clock_now();
  send_plan(&client, session, state, deadline, iterations);
  Sinew__V1__Reply *r = receive_plan(&client);
  *waited = sn_clock_now() - began;
  const Sinew__V1__Plan plan = *r->plan;
  assert_int_equal(plan.session, session);
  sn_test_done(r);
  return plan;
}

static Sinew__V1__SessionStatistics statistics_of(uint64_t session) {
  Sinew__V1__Reply *r = sn_test_statistics(&client, session);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STATISTICS);
  const Sinew__V1__SessionStatistics out = *r->statistics->sessions[0];
  sn_test_done(r);
  return out;
}

// Late plans say so and are counted, those in time are not.
static void test_deadlines_met_and_missed(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  double waited;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  Sinew__V1__State *initial = opened->open->initial;
  Sinew__V1__Reply *r = sn_test_statistics(&client, 0);
  const uint64_t plans = r->statistics->plans, misses = r->statistics->misses;
  sn_test_done(r);
  assert_true(plan_of(id, initial, GENEROUS, 1, &waited).deadline_met);
  assert_false(plan_of(id, initial, HOPELESS, 1, &waited).deadline_met);
  assert_false(plan_of(id, initial, HOPELESS, 1, &waited).deadline_met);
  assert_true(plan_of(id, initial, 0, 1, &waited).deadline_met);  // none is never missed
  assert_true(plan_of(id, initial, GENEROUS, 1, &waited).deadline_met);
  const Sinew__V1__SessionStatistics s = statistics_of(id);
  assert_true(s.plans == 5 && s.misses == 2);
  r = sn_test_statistics(&client, 0);
  assert_true(r->statistics->plans == plans + 5 && r->statistics->misses == misses + 2);
  sn_test_done(r);
  sn_test_done(opened);
}

// The share of late plans that is told is that of the clock: a plan is late if it is older than its deadline, and
// statistics count these.
static void test_share_of_late_plans(void **state) {
  (void)state;
  enum { PLANS = 40 };
  Sinew__V1__Reply *opened;
  double waited;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  unsigned late = 0;
  for (int i = 0; i < PLANS; i++) {
    const double deadline = i % 4 == 0 ? HOPELESS : 0.002 * (1 + i % 7);
    const Sinew__V1__Plan p = plan_of(id, opened->open->initial, deadline, ENDLESS, &waited);
    assert_true(p.status == SINEW__V1__PLAN__STATUS__OK || p.status == SINEW__V1__PLAN__STATUS__WARM_START);
    if (fabs(p.age - deadline) > 1e-9) assert_int_equal(p.deadline_met, p.age < deadline);
    late += !p.deadline_met;
  }
  print_message("%u of %d plans are late, %d of them could not be in time\n", late, PLANS, PLANS / 4);
  const Sinew__V1__SessionStatistics s = statistics_of(id);
  assert_true(s.plans == PLANS && s.misses == late && late >= PLANS / 4);
  sn_test_done(opened);
}

// A plan that has the time for many iterations uses most of it, and is not older than the client waited; the statistics
// of a session that made one plan are that plan's.
static void test_age_of_a_plan(void **state) {
  (void)state;
  static const double deadlines[] = {0.4, 0.1};
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  double age[2], waited;
  for (int i = 0; i < 2; i++) {
    const Sinew__V1__Plan p = plan_of(id, opened->open->initial, deadlines[i], ENDLESS, &waited);
    print_message("deadline %g s: age %.4f s, computing %.4f s, waited %.4f s\n", deadlines[i], p.age, p.computing,
                  waited);
    assert_true(p.age >= 0.5 * deadlines[i] && p.age <= waited);
    assert_true(p.computing > 0 && p.computing <= p.age);
    age[i] = p.age;
    if (i > 0) continue;
    const Sinew__V1__SessionStatistics s = statistics_of(id);
    assert_true(s.latency_p50 == age[0] && s.latency_p99 == age[0]);
  }
  const Sinew__V1__SessionStatistics s = statistics_of(id);
  assert_true(s.latency_p50 == fmin(age[0], age[1]) && s.latency_p99 == fmax(age[0], age[1]));
  sn_test_done(opened);
}

// A state wakes a planner that has nothing to do: of some plans one is made at once, on whatever machine.
static void test_state_wakes_the_planner(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  double soonest = INFINITY, waited;
  for (int i = 0; i < 10; i++) {
    usleep(20000);
    const Sinew__V1__Plan p = plan_of(id, opened->open->initial, 0, 1, &waited);
    soonest = fmin(soonest, p.age - p.computing);
  }
  print_message("soonest begin after %.2f ms\n", 1e3 * soonest);
  assert_true(soonest < 0.1);
  sn_test_done(opened);
}

// How long ago the latest request and the latest plan were; asking for statistics is none.
static void test_idle_and_plan_age(void **state) {
  (void)state;
  enum { PAUSE_MS = 200 };
  Sinew__V1__Reply *opened;
  double waited;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  assert_true(isnan(statistics_of(id).plan_age));
  const double before = sn_clock_now();
  plan_of(id, opened->open->initial, 0, 1, &waited);
  const double after = sn_clock_now();
  usleep(1000 * PAUSE_MS / 2);
  statistics_of(id);
  usleep(1000 * PAUSE_MS / 2);
  const double asked = sn_clock_now();
  const Sinew__V1__SessionStatistics s = statistics_of(id);
  const double answered = sn_clock_now();
  assert_true(s.idle >= asked - after && s.idle <= answered - before);
  assert_true(s.plan_age >= asked - after && s.plan_age <= answered - before);
  sn_test_done(opened);
}

// A state whose place a newer one takes says how long it had waited.
static void test_age_of_what_is_replaced(void **state) {
  (void)state;
  enum { STATES = 30 };
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  Sinew__V1__State s = *opened->open->initial;
  double sent[STATES];
  int replaced = 0;
  for (int i = 0; i < STATES; i++) {
    s.time = i;
    sent[i] = sn_clock_now();
    send_plan(&client, id, &s, GENEROUS, 2);
  }
  for (int i = 0; i < STATES; i++) {
    Sinew__V1__Reply *r = receive_plan(&client);
    const int which = (int)r->plan->state_time;
    assert_true(which >= 0 && which < STATES && r->plan->session == id);
    assert_true(r->plan->age >= 0 && r->plan->age <= sn_clock_now() - sent[which]);
    replaced += r->plan->status == SINEW__V1__PLAN__STATUS__REPLACED;
    sn_test_done(r);
  }
  assert_int_equal(statistics_of(id).replaced, replaced);
  assert_int_equal(statistics_of(id).plans, STATES - replaced);
  sn_test_done(opened);
}

static int in_time, late;
static uint64_t misses_said;
static void note_timing(const Sinew__V1__Plan *plan) {
  in_time += plan->deadline_met;
  late += !plan->deadline_met;
  misses_said = plan->stream_misses;
}

// Continuous mode: a state whose first plan is late stays a miss, however many better plans follow; and no plan is
// older than its state.
static void test_misses_of_a_stream(void **state) {
  (void)state;
  enum { STATES = 3 };
  for (int hopeless = 0; hopeless < 2; hopeless++) {
    Sinew__V1__Reply *opened;
    SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
    s = sn_test_stream_start(&client, s.session, 60, hopeless ? HOPELESS : GENEROUS);
    s.check = note_timing;
    in_time = late = 0;
    Sinew__V1__State x = *opened->open->initial;
    for (int i = 0; i < STATES; i++) {
      x.time = i;
      sn_test_stream_state(&s, &x, (int64_t)s.sequence);
      sn_test_stream_await(&s, i);
    }
    assert_true(hopeless ? in_time == 0 && late >= STATES : late == 0 && in_time >= STATES);
    assert_int_equal(misses_said, hopeless ? STATES : 0);
    sn_test_stream_request(&s, true, 0, 0);
    Sinew__V1__Reply *r = sn_test_stream_read(&s, 10);
    assert_non_null(r);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STREAM);
    assert_true(r->stream->states == STATES && r->stream->misses == (hopeless ? STATES : 0));
    assert_int_equal(r->stream->plans, s.plans);
    sn_test_done(r);
    const Sinew__V1__SessionStatistics t = statistics_of(s.session);
    assert_true(t.plans == STATES && t.misses == (hopeless ? STATES : 0) && (int)t.sent == s.plans);
    sn_test_done(opened);
  }
}

// The age of a stream's plan is that since its state arrived: a state that is refined for long gets old plans.
static double sent_at, oldest;
static void note_age(const Sinew__V1__Plan *plan) {
  assert_true(plan->age >= 0 && plan->age <= sn_clock_now() - sent_at);
  oldest = plan->age;
}

static void test_age_in_a_stream(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = sn_test_stream_start(&client, s.session, 60, GENEROUS);
  s.check = note_age;
  sent_at = sn_clock_now();
  sn_test_stream_state(&s, opened->open->initial, -1);
  sn_test_stream_await(&s, opened->open->initial->time);
  const double first = oldest;
  for (const double until = sn_clock_now() + 30; oldest < first + 0.1 && sn_clock_now() < until;)
    assert_null(sn_test_stream_read(&s, 0.05));
  assert_true(oldest >= first + 0.1);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

// A plan that is due later than the lease ends keeps its session until then; a lease later it is closed. The lease is
// shortened while the plan is made, so that nothing but the plan holds it from the start.
static void test_lease_lasts_until_a_plan_is_due(void **state) {
  (void)state;
  static const double lease = 0.1, deadline = 0.8;
  SnTestClient owner;
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  sn_test_connect(&owner, sinewd.endpoint);
  settings.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  settings.lease = 3600;
  open.task = "arm_reach";
  open.planner = sn_test_sampling();
  open.session = &settings;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  Sinew__V1__Reply *opened = sn_test_request(&owner, &request);
  const uint64_t id = opened->open->session;
  Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  settings.lease = lease;
  set.session = id;
  set.settings = &settings;
  request.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  request.set_config = &set;
  const double sent = sn_clock_now();
  send_plan(&owner, id, opened->open->initial, deadline, ENDLESS);
  sn_test_send(&owner, &request);
  bool gone = false;
  for (const double until = sent + 30; !gone && sn_clock_now() < until; usleep(20000)) {
    Sinew__V1__Reply *r = sn_test_statistics(&client, id);
    gone = r->body_case == SINEW__V1__REPLY__BODY_ERROR;
    sn_test_done(r);
    if (gone && sn_clock_now() - sent < deadline + lease)
      fail_msg("the session was closed after %g s, its plan was due at %g s", sn_clock_now() - sent, deadline);
  }
  assert_true(gone);
  int plans = 0;
  for (int i = 0; i < 2; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&owner, 10);
    assert_non_null(r);
    if (r->body_case == SINEW__V1__REPLY__BODY_PLAN) {
      // of its time the daemon keeps back what slices and answers were late lately, half of it at most
      assert_true(r->plan->age >= 0.5 * deadline && r->plan->iterations > 0);
      plans++;
    } else {
      assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_SET_CONFIG);
    }
    sn_test_done(r);
  }
  assert_int_equal(plans, 1);
  sn_test_done(opened);
  sn_test_disconnect(&owner);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_deadlines_met_and_missed),
      cmocka_unit_test(test_share_of_late_plans),
      cmocka_unit_test(test_age_of_a_plan),
      cmocka_unit_test(test_state_wakes_the_planner),
      cmocka_unit_test(test_idle_and_plan_age),
      cmocka_unit_test(test_age_of_what_is_replaced),
      cmocka_unit_test(test_misses_of_a_stream),
      cmocka_unit_test(test_age_in_a_stream),
      cmocka_unit_test(test_lease_lasts_until_a_plan_is_due),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
