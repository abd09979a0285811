// Snapshots: a session that goes on from one, in the same daemon or in another, makes the same plans bit for bit; and
// so does one that is restored from a recorded snapshot and gets what the records after it say.
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
#include "tests/support/daemon_records.h"
#include "tests/support/daemon_tuning.h"
#include "tests/support/slow.h"

#define KIND(NAME) SINEW__V1__RECORD__BODY_##NAME
#define SET(message, FIELD, field, value) \
  ((message).has_##field##_case = SINEW__V1__PLANNER_SETTINGS__HAS_##FIELD##_##FIELD, (message).field = (value))

// ---- requests ----

static Sinew__V1__Reply *ask(SnTestClient *c, Sinew__V1__Request *request, Sinew__V1__Reply__BodyCase body) {
  Sinew__V1__Reply *reply = sn_test_request(c, request);
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("error: %s", reply->error->text);
  assert_int_equal(reply->body_case, body);
  return reply;
}

static Sinew__V1__Reply *take_snapshot(SnTestClient *c, uint64_t session) {
  Sinew__V1__SnapshotRequest in = SINEW__V1__SNAPSHOT_REQUEST__INIT;
  in.session = session;
  return ask(c, SN_TEST_MESSAGE(snapshot, SNAPSHOT, &in), SINEW__V1__REPLY__BODY_SNAPSHOT);
}

static Sinew__V1__Reply *open_from(SnTestClient *c, Sinew__V1__Snapshot *snapshot) {
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.snapshot = snapshot;
  return sn_test_request(c, SN_TEST_MESSAGE(open, OPEN, &in));
}

static uint64_t restored(SnTestClient *c, Sinew__V1__Snapshot *snapshot) {
  Sinew__V1__Reply *reply = open_from(c, snapshot);
  if (reply->body_case != SINEW__V1__REPLY__BODY_OPEN) fail_msg("error: %s", reply->error->text);
  const uint64_t session = reply->open->session;
  sn_test_done(reply);
  return session;
}

static Sinew__V1__Reply *reset_to(SnTestClient *c, uint64_t session, Sinew__V1__Snapshot *snapshot) {
  Sinew__V1__ResetRequest in = SINEW__V1__RESET_REQUEST__INIT;
  in.session = session;
  in.snapshot = snapshot;
  return sn_test_request(c, SN_TEST_MESSAGE(reset, RESET, &in));
}

// Plan k of a run: from a state of its own, every second one without activations. With `as` it has the iterations and
// candidates of that plan, else three iterations.
static Sinew__V1__Reply *plan_at(SnTestClient *c, uint64_t session, const Sinew__V1__State *from, int k,
                                 const Sinew__V1__Plan *as) {
  double qpos[8], qvel[8];
  Sinew__V1__State state = *from;
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  for (size_t i = 0; i < from->n_qpos; i++) qpos[i] = from->qpos[i] + 0.01 * k * (double)(i + 1);
  for (size_t i = 0; i < from->n_qvel; i++) qvel[i] = 0.1 * k;
  state.time = 0.012 * k;
  state.qpos = qpos;
  state.qvel = qvel;
  if (k % 2) state.n_act = 0;
  in.session = session;
  in.state = &state;
  in.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  in.iterations = as ? as->iterations : 3;
  if (as) in.has_candidates_case = SINEW__V1__PLAN_REQUEST__HAS_CANDIDATES_CANDIDATES;
  if (as) in.candidates = as->candidates;
  return ask(c, SN_TEST_MESSAGE(plan, PLAN, &in), SINEW__V1__REPLY__BODY_PLAN);
}

static bool same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

// Whether plans are the same, but for the norm of the gradient: a deadline may leave no time for the last one.
static bool same_controls(const Sinew__V1__Plan *a, const Sinew__V1__Plan *b) {
  return a->sequence == b->sequence && a->status == b->status && a->iterations == b->iterations &&
         a->candidates == b->candidates && a->lead == b->lead && a->act_estimated == b->act_estimated &&
         same(a->start, b->start) && same(a->cost_now, b->cost_now) && same(a->cost_before, b->cost_before) &&
         same(a->cost_after, b->cost_after) && a->n_ctrl == b->n_ctrl &&
         memcmp(a->ctrl, b->ctrl, a->n_ctrl * sizeof *a->ctrl) == 0;
}

static bool same_plan(const Sinew__V1__Plan *a, const Sinew__V1__Plan *b) {
  return same_controls(a, b) && same(a->gradient_norm, b->gradient_norm);
}

static void set_latency(SnTestClient *c, uint64_t session, double latency) {
  SnTestChange change;
  sn_test_change_begin(&change, session);
  change.session.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  change.session.latency = latency;
  sn_test_change_weight(&change, 0, "speed", 0.003);
  sn_test_change_weight(&change, 1, "reach", 2);
  sn_test_change_target(&change, 1, 3, 0.7);
  Sinew__V1__Request request = sn_test_change_request(&change);
  sn_test_done(ask(c, &request, SINEW__V1__REPLY__BODY_SET_CONFIG));
}

static Sinew__V1__PlannerSettings settings_of(int way) {
  Sinew__V1__PlannerSettings s = SINEW__V1__PLANNER_SETTINGS__INIT;
  SET(s, PLANNER, planner, way == 0 ? "sampling" : "adam");
  SET(s, ADAM_MOMENTS, adam_moments, way == 1 ? "fresh" : "kept");
  SET(s, ADAM_STARTS, adam_starts, way == 3 ? 3 : 1);
  SET(s, GRID, grid, way == 3 ? "16x1,16x2" : "");
  return s;
}

// ---- tests ----

// A session with a past, and two that go on from its snapshot: here and at a daemon of their own.
static void test_goes_on(void **state) {
  (void)state;
  enum { PAST = 4, FUTURE = 9 };
  SnTestDaemon other = {0};
  SnTestClient there;
  sn_test_begin(&other, &there);
  for (int way = 0; way < 4; way++) {
    Sinew__V1__PlannerSettings settings = settings_of(way);
    Sinew__V1__Reply *opened;
    const uint64_t a = sn_test_open_by(&client, "arm_reach", 40 + (uint64_t)way, &settings, &opened);
    set_latency(&client, a, way % 2 ? 0.02 : 0);
    for (int k = 0; k < PAST; k++) sn_test_done(plan_at(&client, a, opened->open->initial, k, NULL));
    Sinew__V1__Reply *taken = take_snapshot(&client, a);
    assert_int_equal(taken->snapshot->plan, PAST);
    assert_int_equal(taken->snapshot->seed, 40 + way);
    const uint64_t b = restored(&client, taken->snapshot), c = restored(&there, taken->snapshot);
    for (int k = PAST; k < FUTURE; k++) {
      Sinew__V1__Reply *x = plan_at(&client, a, opened->open->initial, k, NULL);
      Sinew__V1__Reply *y = plan_at(&client, b, opened->open->initial, k, NULL);
      Sinew__V1__Reply *z = plan_at(&there, c, opened->open->initial, k, NULL);
      assert_int_equal(x->plan->sequence, k + 1);
      assert_true(same_plan(x->plan, y->plan) && same_plan(x->plan, z->plan));
      sn_test_done(x);
      sn_test_done(y);
      sn_test_done(z);
    }
    sn_test_done(taken);
    sn_test_done(opened);
  }
  assert_int_equal(sn_test_end(&other, &there), 0);
}

// A session that goes back in time makes the same plans again, though it has had another seed and settings since.
static void test_goes_back(void **state) {
  (void)state;
  Sinew__V1__PlannerSettings settings = settings_of(2);
  Sinew__V1__Reply *opened, *plans[3];
  const uint64_t session = sn_test_open_by(&client, "arm_reach", 3, &settings, &opened);
  for (int k = 0; k < 3; k++) sn_test_done(plan_at(&client, session, opened->open->initial, k, NULL));
  Sinew__V1__Reply *taken = take_snapshot(&client, session);
  for (int k = 0; k < 3; k++) plans[k] = plan_at(&client, session, opened->open->initial, 3 + k, NULL);
  Sinew__V1__ResetRequest in = SINEW__V1__RESET_REQUEST__INIT;
  in.session = session;
  in.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
  in.seed = 8;
  sn_test_done(SN_TEST_REPLY(reset, RESET, &in));
  set_latency(&client, session, 0.01);
  Sinew__V1__Reply *reply = reset_to(&client, session, taken->snapshot);
  assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_RESET);
  assert_int_equal(reply->reset->seed, 3);
  assert_int_equal(reply->reset->config->version, 3);
  assert_true(reply->reset->config->session->latency == 0);
  assert_true(reply->reset->config->terms[0]->own_target);
  sn_test_done(reply);
  for (int k = 0; k < 3; k++) {
    reply = plan_at(&client, session, opened->open->initial, 3 + k, NULL);
    assert_true(same_plan(reply->plan, plans[k]->plan));
    assert_int_equal(reply->plan->config_version, 3);
    sn_test_done(reply);
    sn_test_done(plans[k]);
  }
  sn_test_done(taken);
  sn_test_done(opened);
}

// A snapshot that is asked for during a plan is that after it.
static void test_waits_for_the_plan(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  Sinew__V1__SnapshotRequest in = SINEW__V1__SNAPSHOT_REQUEST__INIT;
  in.session = sn_test_open(&client, "arm_reach", 1, &opened);
  sn_test_done(sn_test_plan(&client, in.session, opened->open->initial, 0.01));
  sn_test_send_plan(&client, in.session, opened->open->initial, 8);
  assert_true(sn_test_await_planning(&client, in.session, 6));
  for (int i = 0; i < 20; i++) sn_test_send(&client, SN_TEST_MESSAGE(snapshot, SNAPSHOT, &in));
  int refused = 0, taken = 0, planned = 0;
  for (int i = 0; i < 21; i++) {
    Sinew__V1__Reply *reply = sn_test_receive(&client, 30);
    assert_non_null(reply);
    planned += reply->body_case == SINEW__V1__REPLY__BODY_PLAN;
    if (reply->body_case == SINEW__V1__REPLY__BODY_SNAPSHOT) {
      taken++;
      assert_int_equal(planned, 1);
      assert_int_equal(reply->snapshot->plan, 2);
    }
    if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) {
      refused++;
      assert_non_null(strstr(reply->error->text, "wait for a snapshot"));
    }
    sn_test_done(reply);
  }
  assert_true(planned == 1 && taken == 16 && refused == 4);
  sn_test_done(opened);
}

// ---- replay ----

enum { RECORDS = 400 };

typedef struct Recording {
  Sinew__V1__Record *record[RECORDS];
  int n;
} Recording;

// Waits until the daemon has heard of the subscription: asks for plans until there is a record, which is kept.
static void record_first(SnTestSubscriber *s, Recording *r, uint64_t session, Sinew__V1__State *state) {
  r->n = 0;
  for (int i = 0; i < 600 && r->n == 0; i++) {
    sn_test_done(sn_test_plan(&client, session, state, 0.02));
    r->record[0] = sn_test_record(s, 0.05);
    r->n = r->record[0] != NULL;
  }
  assert_int_equal(r->n, 1);
  assert_int_equal(r->record[0]->number, 1);
}

// Reads the records behind the first until a session's last one.
static void record_all(SnTestSubscriber *s, Recording *r) {
  while (r->n < RECORDS) {
    Sinew__V1__Record *record = sn_test_record(s, 30);
    assert_non_null(record);
    assert_int_equal(record->number, r->n + 1);
    r->record[r->n++] = record;
    if (record->body_case == KIND(CLOSE)) return;
  }
  fail_msg("more than %d records", RECORDS);
}

// What records say of the configuration: all of it, as a change.
static void replay_config(SnTestClient *c, uint64_t session, const Sinew__V1__Config *config) {
  Sinew__V1__SetConfigRequest in = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  in.session = session;
  in.planner = config->planner;
  in.settings = config->session;
  in.terms = config->terms;
  in.n_terms = config->n_terms;
  sn_test_done(ask(c, SN_TEST_MESSAGE(set_config, SET_CONFIG, &in), SINEW__V1__REPLY__BODY_SET_CONFIG));
}

static Sinew__V1__Reply *replay_plan(SnTestClient *c, uint64_t session, const Sinew__V1__PlanBegin *begin,
                                     const Sinew__V1__Plan *plan) {
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  in.session = session;
  in.state = begin->state;
  in.applied = begin->applied;
  in.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  in.iterations = plan->iterations;
  in.has_candidates_case = SINEW__V1__PLAN_REQUEST__HAS_CANDIDATES_CANDIDATES;
  in.candidates = plan->candidates;
  return ask(c, SN_TEST_MESSAGE(plan, PLAN, &in), SINEW__V1__REPLY__BODY_PLAN);
}

// Does again what is on record, and compares the plans. Returns how many were the same; those that cannot be made
// again, since no iteration or a change went into them, are followed by a snapshot.
static int replay(SnTestClient *c, const Recording *r) {
  uint64_t session = 0;
  int plans = 0;
  bool changed = false;
  int first = 0;  // what comes before the session makes itself known is passed over
  while (r->record[first]->body_case != KIND(OPEN)) first++;
  for (int i = first; i < r->n; i++) {
    const Sinew__V1__Record *x = r->record[i], *next = i + 1 < r->n ? r->record[i + 1] : x;
    switch (x->body_case) {
      case KIND(OPEN):
        assert_int_equal(next->body_case, KIND(SNAPSHOT));
        break;
      case KIND(SNAPSHOT):
        if (session) sn_test_done(reset_to(c, session, x->snapshot));
        if (!session) session = restored(c, x->snapshot);
        break;
      case KIND(CONFIG):
        if (x->config->plan == 0) replay_config(c, session, x->config->config);
        changed = changed || x->config->plan > 0;
        break;
      case KIND(PLAN): {
        int begin = i;
        while (r->record[begin]->body_case != KIND(BEGIN)) begin--;
        assert_int_equal(r->record[begin]->begin->sequence, x->plan->sequence);
        if (changed || x->plan->iterations == 0) {
          int after = i + 1;
          while (r->record[after]->body_case == KIND(CONFIG)) after++;
          next = r->record[after];
          assert_true(next->body_case == KIND(SNAPSHOT) || next->body_case == KIND(CLOSE));
        } else {
          Sinew__V1__Reply *reply = replay_plan(c, session, r->record[begin]->begin, x->plan);
          if (!same_controls(reply->plan, x->plan)) fail_msg("plan %d: another one", (int)x->plan->sequence);
          sn_test_done(reply);
          plans++;
        }
        changed = false;
        break;
      }
      default:
        break;
    }
  }
  return plans;
}

// Plans by deadlines, changes between and during them.
static void perform_plans(uint64_t session, const Sinew__V1__State *initial) {
  SnTestChange change;
  for (int k = 0; k < 12; k++) {
    Sinew__V1__State state = *initial;
    state.time = 0.01 * k;
    if (k % 2) state.n_act = 0;
    sn_test_send_plan(&client, session, &state, k % 4 == 3 ? 0.00001 : 0.02 + 0.002 * k);
    if (k % 5 == 2) {
      sn_test_change_begin(&change, session);
      sn_test_change_weight(&change, 0, "reach", 1 + 0.1 * k);
      Sinew__V1__Request request = sn_test_change_request(&change);
      sn_test_send(&client, &request);
      sn_test_done(sn_test_receive(&client, 30));
    }
    sn_test_done(sn_test_receive(&client, 30));
    if (k == 6) set_latency(&client, session, 0.02);
  }
}

// A stream, whose states get as many iterations as fit.
static void perform_stream(uint64_t session, const Sinew__V1__State *initial) {
  SnTestStream stream = sn_test_stream_start(&client, session, 5, 0.02);
  for (int k = 0; k < 12; k++) {
    Sinew__V1__State state = *initial;
    state.time = 1 + 0.01 * k;
    if (k % 2) state.n_act = 0;
    sn_test_stream_state(&stream, &state, -1);
    if (k % 3) sn_test_stream_await(&stream, state.time);
  }
  sn_test_stream_request(&stream, true, 5, 0.02);
  sn_test_stream_end(&stream, SINEW__V1__STREAM_REPLY__END__STOPPED, 30);
}

static void test_replay(void **state) {
  (void)state;
  static Recording recording;
  SnTestDaemon other = {0};
  SnTestClient there;
  sn_test_begin(&other, &there);
  for (int way = 0; way < 4; way++) {
    Sinew__V1__PlannerSettings settings = settings_of(way);
    SnTestSubscriber subscriber;
    Sinew__V1__Reply *opened;
    SET(settings, ITERATIONS, iterations, 0);
    SET(settings, ADAM_ITERATIONS, adam_iterations, 0);
    const uint64_t session = sn_test_open_by(&client, "arm_reach", 5, &settings, &opened);
    sn_test_subscribe(&subscriber, sinewd.records, session, 0);
    record_first(&subscriber, &recording, session, opened->open->initial);
    perform_plans(session, opened->open->initial);
    perform_stream(session, opened->open->initial);
    Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
    close.session = session;
    sn_test_done(SN_TEST_REPLY(close, CLOSE, &close));
    record_all(&subscriber, &recording);
    const int plans = replay(&there, &recording);
    print_message("way %d: %d records, %d plans the same\n", way, recording.n, plans);
    // Plans for which a deadline left no iteration are not repeated: the slower the machine, the more of them.
    assert_true(plans >= (SN_SLOW ? 3 : 6));
    for (int i = 0; i < recording.n; i++) sn_test_record_done(recording.record[i]);
    sn_test_unsubscribe(&subscriber);
    sn_test_done(opened);
  }
  assert_int_equal(sn_test_end(&other, &there), 0);
}

// ---- bad input ----

static void expect_refused(Sinew__V1__Snapshot *snapshot, uint64_t session, const char *word) {
  sn_test_expect_error(open_from(&client, snapshot), SINEW__V1__ERROR__CODE__INVALID, word);
  sn_test_expect_error(reset_to(&client, session, snapshot), SINEW__V1__ERROR__CODE__INVALID, word);
}

// Snapshots that are no good, each said in words; sessions go on as they were.
static void test_refused(void **state) {
  (void)state;
  Sinew__V1__PlannerSettings settings = settings_of(2);
  Sinew__V1__Reply *opened;
  const uint64_t a = sn_test_open_by(&client, "arm_reach", 3, &settings, &opened),
                 b = sn_test_open_by(&client, "arm_reach", 3, &settings, NULL);
  for (int k = 0; k < 2; k++) {
    sn_test_done(plan_at(&client, a, opened->open->initial, k, NULL));
    sn_test_done(plan_at(&client, b, opened->open->initial, k, NULL));
  }
  Sinew__V1__Reply *taken = take_snapshot(&client, a);
  Sinew__V1__Snapshot *s = taken->snapshot;
  const Sinew__V1__Snapshot good = *s;
  char *const term = s->terms[0]->name;
  s->version = 2;
  expect_refused(s, a, "version 2; this daemon reads version 1");
  *s = good, s->task = "hand_pose";
  expect_refused(s, a, "of the task 'hand_pose'");
  *s = good, s->checksum = "0123456789abcdef";
  expect_refused(s, a, "checksum 0123456789abcdef");
  *s = good, s->number = "float";
  expect_refused(s, a, "computes in float");
  *s = good, s->state = NULL;
  expect_refused(s, a, "Snapshot.state is missing");
  *s = good, s->state->n_qpos--;
  expect_refused(s, a, "state.qpos has");
  *s = good, s->state->n_qpos++;
  s->warm_start->n_ctrl--;
  expect_refused(s, a, "warm_start.ctrl has 287 numbers; this session needs 288");
  s->warm_start->n_ctrl++, s->active_plan->n_ctrl--;
  expect_refused(s, a, "active_plan.ctrl has 287");
  s->active_plan->n_ctrl++, s->adam->n_first = 0;
  expect_refused(s, a, "adam.first has 0");
  s->adam->n_first = s->adam->n_second, s->adam->second[3] = -1;
  expect_refused(s, a, "AdamMemory.second[3]: -1 is out of bounds");
  s->adam->second[3] = 0, s->terms[0]->name = "nothing";
  sn_test_expect_error(open_from(&client, s), SINEW__V1__ERROR__CODE__NOT_FOUND, "no term 'nothing'");
  s->terms[0]->name = term;
  s->planner->horizon = 50;
  sn_test_expect_error(reset_to(&client, a, s), SINEW__V1__ERROR__CODE__INVALID, "horizon is 50");
  s->planner->horizon = 48;
  char *const integrator = s->planner->integrator;
  s->planner->integrator = (char[]){"tsit5"};
  sn_test_expect_error(reset_to(&client, a, s), SINEW__V1__ERROR__CODE__STATE, "integrator: cannot change");
  s->planner->integrator = integrator, s->adam->capacity = 1000;
  expect_refused(s, a, "capacity is 1000");
  for (int k = 2; k < 5; k++) {
    Sinew__V1__Reply *x = plan_at(&client, a, opened->open->initial, k, NULL);
    Sinew__V1__Reply *y = plan_at(&client, b, opened->open->initial, k, NULL);
    assert_true(same_plan(x->plan, y->plan));
    sn_test_done(x);
    sn_test_done(y);
  }
  *s = good;
  sn_test_done(taken);
  sn_test_done(opened);
}

// Bytes of a good request with a snapshot, cut off anywhere or with a bit turned: answered, and the daemon goes on.
static void test_damaged(void **state) {
  (void)state;
  static unsigned char bytes[1 << 16];
  Sinew__V1__Reply *opened;
  const uint64_t session = sn_test_open(&client, "arm_reach", 3, &opened);
  Sinew__V1__Reply *taken = take_snapshot(&client, session);
  Sinew__V1__ResetRequest in = SINEW__V1__RESET_REQUEST__INIT;
  in.session = session;
  in.snapshot = taken->snapshot;
  Sinew__V1__Request *request = SN_TEST_MESSAGE(reset, RESET, &in);
  const size_t n = sinew__v1__request__get_packed_size(request);
  assert_in_range(n, 1, sizeof bytes);
  unsigned seed = 1;
  for (int i = 0; i < 400; i++) {
    sinew__v1__request__pack(request, bytes);
    seed = seed * 1664525u + 1013904223u;
    const size_t at = seed % n;
    if (i % 2) bytes[at] ^= (unsigned char)(1u << (seed >> 29));
    sn_test_send_bytes(&client, bytes, i % 2 ? n : at);
    Sinew__V1__Reply *reply = sn_test_receive(&client, 30);
    assert_non_null(reply);
    assert_true(reply->body_case == SINEW__V1__REPLY__BODY_ERROR || reply->body_case == SINEW__V1__REPLY__BODY_RESET);
    sn_test_done(reply);
  }
  sn_test_done(sn_test_plan(&client, session, opened->open->initial, 0.01));
  sn_test_done(taken);
  sn_test_done(opened);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_goes_on), cmocka_unit_test(test_goes_back), cmocka_unit_test(test_waits_for_the_plan),
      cmocka_unit_test(test_replay),  cmocka_unit_test(test_refused),   cmocka_unit_test(test_damaged),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
