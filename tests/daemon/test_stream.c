// Continuous mode and live tuning of sinewd, as a black box.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/harness/daemon_process.h"

// Set by the build where sanitizers slow everything down; then deadlines are not judged.
#ifdef SN_TEST_SLOW
enum { JUDGE_TIME = 0 };
#else
enum { JUDGE_TIME = 1 };
#endif

static SnTestDaemon sinewd;
static SnTestClient client;

static int setup(void **state) {
  (void)state;
  sn_test_begin(&sinewd, &client);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  return sn_test_end(&sinewd, &client);
}

// What is known of a stream while its plans are read.
typedef struct Stream {
  SnTestClient *c;
  uint64_t session;
  uint64_t id, before;  // of the latest StreamRequest, and of the one before: plans may still come under it
  uint64_t sequence;    // of the latest plan
  double stamp, cost;
  uint64_t version, number;
  int plans, improved;
  void (*check)(const Sinew__V1__Plan *plan);  // more to be checked, or NULL
} Stream;

static void take_plan(Stream *s, const Sinew__V1__Reply *r) {
  const Sinew__V1__Plan *p = r->plan;
  assert_int_equal(p->session, s->session);
  assert_int_equal(p->status, SINEW__V1__PLAN__STATUS__OK);
  assert_int_equal(p->stream_sequence, s->sequence + 1);
  assert_true(p->n_ctrl == (size_t)p->steps * 6 && p->steps > 0 && p->iterations > 0 && p->age >= 0);
  assert_true(p->state_time >= s->stamp && p->sequence >= s->number);
  assert_true(p->cost_after <= p->cost_before);
  if (p->sequence == s->number && p->config_version == s->version) {
    assert_true(p->cost_after < s->cost && p->state_time == s->stamp);
    s->improved++;
  }
  s->sequence = p->stream_sequence;
  s->stamp = p->state_time;
  s->cost = p->cost_after;
  s->version = p->config_version;
  s->number = p->sequence;
  s->plans++;
  if (s->check) s->check(p);
}

// Reads what comes for so many seconds, until a reply that is no plan of the stream, which is returned.
static Sinew__V1__Reply *read_stream(Stream *s, double seconds) {
  for (double until = sn_test_now() + seconds; sn_test_now() < until;) {
    Sinew__V1__Reply *r = sn_test_receive(s->c, fmax(0, until - sn_test_now()));
    if (!r) continue;
    if (r->body_case != SINEW__V1__REPLY__BODY_PLAN || r->plan->stream_sequence == 0) return r;
    assert_true(r->id == s->id || r->id == s->before);
    take_plan(s, r);
    sn_test_done(r);
  }
  return NULL;
}

// Reads until a plan answers that stamp, whatever the speed of the machine.
static void await_stamp(Stream *s, double stamp) {
  for (double until = sn_test_now() + 60; s->stamp != stamp;) {
    assert_true(sn_test_now() < until);
    assert_null(read_stream(s, 0.01));
  }
}

// Sends a request on the stream's connection and returns its answer.
static Sinew__V1__Reply *ask(Stream *s, Sinew__V1__Request *request) {
  sn_test_send(s->c, request);
  Sinew__V1__Reply *r = read_stream(s, 30);
  assert_non_null(r);
  assert_int_equal(r->id, s->c->id);
  return r;
}

static void send_stream(Stream *s, bool stop, double lease, double deadline) {
  Sinew__V1__StreamRequest in = SINEW__V1__STREAM_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  in.stop = stop;
  in.lease = lease;
  in.deadline = deadline;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM;
  request.stream = &in;
  sn_test_send(s->c, &request);
  s->before = s->id;
  s->id = s->c->id;
}

static Stream start(SnTestClient *c, uint64_t session, double lease, double deadline) {
  Stream s = {.c = c, .session = session, .stamp = -1};
  send_stream(&s, false, lease, deadline);
  Sinew__V1__Reply *r = read_stream(&s, 10);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STREAM);
  assert_int_equal(r->stream->end, SINEW__V1__STREAM_REPLY__END__RUNNING);
  assert_true(r->id == s.id && r->stream->lease == lease);
  sn_test_done(r);
  return s;
}

// The end of a stream, by its own request or unasked: checked and counted.
static void expect_end(Stream *s, Sinew__V1__StreamReply__End end, double seconds) {
  Sinew__V1__Reply *r = read_stream(s, seconds);
  assert_non_null(r);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STREAM);
  assert_int_equal(r->id, s->id);
  assert_int_equal(r->stream->end, end);
  assert_int_equal(r->stream->plans, s->plans);
  sn_test_done(r);
}

static void send_state(Stream *s, Sinew__V1__State *x, int64_t seen) {
  Sinew__V1__StreamState in = SINEW__V1__STREAM_STATE__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  in.state = x;
  if (seen >= 0) {
    in.has_seen_case = SINEW__V1__STREAM_STATE__HAS_SEEN_SEEN;
    in.seen = (uint64_t)seen;
  }
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM_STATE;
  request.stream_state = &in;
  sn_test_send(s->c, &request);
}

// Nothing more comes for a while.
static void expect_silence(SnTestClient *c) {
  Sinew__V1__Reply *r = sn_test_receive(c, 0.2);
  if (r) fail_msg("an answer of kind %d that nobody asked for", (int)r->body_case);
}

// Of the stream's session; plans that come meanwhile are taken.
static Sinew__V1__SessionStatistics session_statistics(Stream *s) {
  Sinew__V1__StatisticsRequest in = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  request.body_case = SINEW__V1__REQUEST__BODY_STATISTICS;
  request.statistics = &in;
  Sinew__V1__Reply *r = ask(s, &request);
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
  Stream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = start(&client, s.session, 5, 0.2);
  Sinew__V1__State x = *opened->open->initial;
  for (int i = 0; i < STATES; i++) {
    x.time = 0.02 * i;
    send_state(&s, &x, (int64_t)s.sequence);
    assert_null(read_stream(&s, 0.02));
  }
  // The last state is refined on and on, long after its plan was due.
  await_stamp(&s, 0.02 * (STATES - 1));
  for (double until = sn_test_now() + 60; s.improved == 0 && sn_test_now() < until;) assert_null(read_stream(&s, 0.1));
  assert_null(read_stream(&s, 0.5));
  print_message("%d states, %d plans, %d of them better ones for the same state\n", STATES, s.plans, s.improved);
  assert_true(s.improved > 0 && s.plans > s.improved);
  send_stream(&s, true, 0, 0);
  expect_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
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
  Stream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  const double lease = JUDGE_TIME ? 0.8 : 3;
  s = start(&client, s.session, lease, 0.1);
  send_state(&s, opened->open->initial, -1);
  for (int i = 0; i < 4; i++) {
    assert_null(read_stream(&s, 0.15));
    send_stream(&s, false, lease, 0.1);
    Sinew__V1__Reply *r = read_stream(&s, 10);
    assert_int_equal(r->stream->end, SINEW__V1__STREAM_REPLY__END__RUNNING);
    sn_test_done(r);
  }
  assert_true(session_statistics(&s).streaming || !JUDGE_TIME);
  const double silent = sn_test_now();
  expect_end(&s, SINEW__V1__STREAM_REPLY__END__LEASE, 10);
  if (JUDGE_TIME) assert_true(sn_test_now() - silent > lease - 0.2 && sn_test_now() - silent < lease + 1);
  assert_true(sn_test_daemon_logged(&sinewd, "stream-expired"));
  assert_false(session_statistics(&s).streaming);
  send_state(&s, opened->open->initial, -1);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__STATE, "no stream");
  expect_silence(&client);
  sn_test_done(opened);
}

static void test_close_ends_stream(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  Stream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = start(&client, s.session, 5, 0.1);
  send_state(&s, opened->open->initial, -1);
  assert_null(read_stream(&s, 0.1));
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s.session;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = &in;
  Sinew__V1__Reply *r = ask(&s, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_CLOSE);
  sn_test_done(r);
  expect_end(&s, SINEW__V1__STREAM_REPLY__END__CLOSED, 10);
  expect_silence(&client);
  sn_test_done(opened);
}

// Bad states and requests are answered; the stream goes on. A plan request in between is answered too.
static void test_stream_goes_on(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  Stream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  Sinew__V1__State x = *opened->open->initial;
  send_state(&s, &x, -1);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__STATE, "no stream");
  send_stream(&s, false, 0.01, 0.1);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__INVALID, "lease is 0.01");
  send_stream(&s, true, 0, 0);  // stopping what does not run is no mistake
  r = sn_test_receive(&client, 10);
  assert_int_equal(r->stream->end, SINEW__V1__STREAM_REPLY__END__STOPPED);
  sn_test_done(r);
  s = start(&client, s.session, 5, 0.1);
  x.n_qpos--;
  send_state(&s, &x, -1);
  sn_test_expect_error(read_stream(&s, 10), SINEW__V1__ERROR__CODE__INVALID, "state.qpos");
  x.n_qpos++;
  send_state(&s, &x, -1);
  await_stamp(&s, x.time);
  sn_test_send_plan(&client, s.session, &x, 0.05);
  r = read_stream(&s, 10);
  assert_true(r->body_case == SINEW__V1__REPLY__BODY_PLAN && r->id == client.id && r->plan->stream_sequence == 0);
  s.number = r->plan->sequence;
  sn_test_done(r);
  s.version = 0;  // what the answer found makes the next state's plans no improvement on the last
  x.time = 1;
  send_state(&s, &x, -1);
  await_stamp(&s, 1);
  send_stream(&s, true, 0, 0);
  expect_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

// A client that says what it has read never has more than 32 plans on their way.
static void test_plans_wait_for_a_slow_client(void **state) {
  (void)state;
  enum { WINDOW = 32 };
  Sinew__V1__Reply *opened;
  Stream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = start(&client, s.session, 20, 1);
  Sinew__V1__State x = *opened->open->initial;
  for (int i = 0; i < 3 * WINDOW; i++) {
    x.time = 0.001 * i;
    send_state(&s, &x, 0);
    usleep(20000);
  }
  assert_null(read_stream(&s, 0.3));
  assert_true(s.sequence <= WINDOW);
  if (JUDGE_TIME) assert_int_equal(s.sequence, WINDOW);
  const uint64_t held = s.sequence;
  x.time = 1;
  send_state(&s, &x, (int64_t)held);
  await_stamp(&s, 1);
  assert_true(s.sequence > held);
  send_stream(&s, true, 0, 0);
  expect_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Two streams and a session with deadlines of 20 ms: that one is answered in time, and both streams go on.
static void test_stream_beside_deadlines(void **state) {
  (void)state;
  enum { PLANS = 40, STREAMS = 2 };
  SnTestClient other[STREAMS];
  Stream s[STREAMS];
  Sinew__V1__Reply *opened;
  double age[PLANS];
  int before[STREAMS];
  uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  for (int i = 0; i < STREAMS; i++) {
    sn_test_connect(&other[i], sinewd.endpoint);
    s[i] = start(&other[i], sn_test_open(&other[i], "arm_reach", 2, NULL), 20, 0.04);
  }
  Sinew__V1__State x = *opened->open->initial;
  for (int k = 0; k < PLANS; k++) {
    x.time = 0.02 * k;
    for (int i = 0; i < STREAMS; i++) send_state(&s[i], &x, (int64_t)s[i].sequence);
    Sinew__V1__Reply *r = sn_test_plan(&client, id, &x, 0.02);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    age[k] = r->plan->age;
    sn_test_done(r);
    for (int i = 0; i < STREAMS; i++) {
      if (k == PLANS / 2) before[i] = s[i].plans;
      assert_null(read_stream(&s[i], 0.005));
    }
  }
  qsort(age, PLANS, sizeof *age, compare_doubles);
  print_message("20 ms beside two streams: age p50 %.2f ms, worst %.2f ms; %d and %d plans streamed\n",
                1e3 * age[PLANS / 2], 1e3 * age[PLANS - 1], s[0].plans, s[1].plans);
  if (JUDGE_TIME) assert_true(age[PLANS / 2] < 0.03);
  for (int i = 0; i < STREAMS; i++) {
    if (JUDGE_TIME) assert_true(s[i].plans > before[i] && before[i] > 0);
    await_stamp(&s[i], x.time);
    send_stream(&s[i], true, 0, 0);
    expect_end(&s[i], SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
    sn_test_disconnect(&other[i]);
  }
  sn_test_done(opened);
}

// ---- live tuning ----

// A change of the configuration, and its answer.
typedef struct Change {
  Sinew__V1__SetConfigRequest in;
  Sinew__V1__PlannerSettings planner;
  Sinew__V1__SessionSettings session;
  Sinew__V1__TermSettings term[2], *terms[2];
  double target[3];
} Change;

static void begin_change(Change *c, uint64_t session) {
  *c = (Change){.in = SINEW__V1__SET_CONFIG_REQUEST__INIT,
                .planner = SINEW__V1__PLANNER_SETTINGS__INIT,
                .session = SINEW__V1__SESSION_SETTINGS__INIT,
                .term = {SINEW__V1__TERM_SETTINGS__INIT, SINEW__V1__TERM_SETTINGS__INIT}};
  c->in.session = session;
  c->in.planner = &c->planner;
  c->in.settings = &c->session;
  c->in.terms = c->terms;
  for (int i = 0; i < 2; i++) c->terms[i] = &c->term[i];
}

static void set_candidates(Change *c, unsigned n) {
  c->planner.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  c->planner.candidates = n;
}
static void set_noise_scale(Change *c, double x) {
  c->planner.has_noise_scale_case = SINEW__V1__PLANNER_SETTINGS__HAS_NOISE_SCALE_NOISE_SCALE;
  c->planner.noise_scale = x;
}
static void set_time_to_live(Change *c, double x) {
  c->session.has_time_to_live_case = SINEW__V1__SESSION_SETTINGS__HAS_TIME_TO_LIVE_TIME_TO_LIVE;
  c->session.time_to_live = x;
}
static void set_weight(Change *c, int i, char *term, double x) {
  c->term[i].name = term;
  c->term[i].has_weight_case = SINEW__V1__TERM_SETTINGS__HAS_WEIGHT_WEIGHT;
  c->term[i].weight = x;
  c->term[i].has_terminal_weight_case = SINEW__V1__TERM_SETTINGS__HAS_TERMINAL_WEIGHT_TERMINAL_WEIGHT;
  c->term[i].terminal_weight = x;
  if (c->in.n_terms < (size_t)i + 1) c->in.n_terms = (size_t)i + 1;
}
static void set_target(Change *c, int i, size_t n, double x) {
  for (size_t k = 0; k < 3; k++) c->target[k] = x;
  c->term[i].target = c->target;
  c->term[i].n_target = n;
}

// Version v has these values, all of them functions of one number.
enum { NUMBERS = 40 };
static int number_of(uint64_t version) { return (int)(version * 7 % NUMBERS); }
static unsigned candidates_of(int number) { return 4 + (unsigned)number; }
static double noise_of(int number) { return 0.05 + 0.001 * number; }
static double weight_of(int number) { return ldexp(1, number % 8); }
static double life_of(int number) { return 1 + 0.01 * number; }

static void fill_change(Change *c, uint64_t session, int number) {
  begin_change(c, session);
  set_candidates(c, candidates_of(number));
  set_noise_scale(c, noise_of(number));
  set_time_to_live(c, life_of(number));
  set_weight(c, 0, "reach", weight_of(number));
}

static Sinew__V1__Request change_request(Change *c) {
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  request.set_config = &c->in;
  return request;
}

static void expect_values(const Sinew__V1__Config *config, uint64_t version, int number) {
  assert_int_equal(config->version, version);
  assert_int_equal(config->planner->candidates, candidates_of(number));
  assert_true(config->planner->noise_scale == noise_of(number));
  assert_true(config->session->time_to_live == life_of(number));
  assert_true(config->terms[0]->weight == weight_of(number) && config->terms[0]->terminal_weight == weight_of(number));
}

// A valid change of something else, spoilt by one thing: nothing of it may take effect.
enum { SPOILT = 12 };
static const char *spoil(Change *c, int kind) {
  set_candidates(c, 3);
  set_noise_scale(c, 9);
  set_weight(c, 0, "reach", 1000);
  switch (kind % SPOILT) {
    case 0:
      set_candidates(c, 1u << 14);
      return "candidates";
    case 1:
      set_candidates(c, 0);
      return "candidates";
    case 2:
      set_noise_scale(c, 500);
      return "noise_scale";
    case 3:
      set_noise_scale(c, NAN);
      return "noise_scale";
    case 4:
      set_weight(c, 1, "nosuch", 1);
      return "no term 'nosuch'";
    case 5:
      set_weight(c, 0, "reach", -1);
      return "weight";
    case 6:
      set_target(c, 0, 2, 0);
      return "2 numbers";
    case 7:
      set_target(c, 0, 3, INFINITY);
      return "target[0]";
    case 8:
      set_target(c, 0, 3, 1);
      c->term[0].has_own_target_case = SINEW__V1__TERM_SETTINGS__HAS_OWN_TARGET_OWN_TARGET;
      c->term[0].own_target = true;
      return "exclude each other";
    case 9:
      c->planner.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
      c->planner.horizon = 20;
      return "horizon";
    case 10:
      c->planner.has_noise_case = SINEW__V1__PLANNER_SETTINGS__HAS_NOISE_NOISE;
      c->planner.noise = "mauve";
      return "mauve";
    default:
      c->session.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
      c->session.latency = 5;
      return "latency";
  }
}

// Plans while tuning goes on: all that a plan says must be of one version. The state is always the same and `reach` the
// only term, so its cost is a constant times a power of two: exact.
static double reach_now;
static uint64_t tuned_from;  // versions from here on have the values above
static void check_untorn(const Sinew__V1__Plan *plan) {
  if (plan->config_version < tuned_from) return;
  const int number = number_of(plan->config_version);
  assert_true(plan->candidates <= candidates_of(number));
  assert_true(plan->time_to_live == life_of(number));
  if (reach_now == 0) reach_now = plan->cost_now / weight_of(number);
  if (plan->cost_now != reach_now * weight_of(number))
    fail_msg("version %d: cost %g, wanted %g", (int)plan->config_version, plan->cost_now,
             reach_now * weight_of(number));
}

static Sinew__V1__Reply *get_config(Stream *s, uint64_t version) {
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  in.version = version;
  request.body_case = SINEW__V1__REQUEST__BODY_GET_CONFIG;
  request.get_config = &in;
  return ask(s, &request);
}

// Waits for a plan that was made with at least that version.
static void await_version(Stream *s, uint64_t version) {
  for (double until = sn_test_now() + 60; s->version < version;) {
    assert_true(sn_test_now() < until);
    assert_null(read_stream(s, 0.001));
  }
}

static void test_tuning_storm(void **state) {
  (void)state;
  enum { MESSAGES = 1000, EACH = 20 };  // so many changes until a plan that was made with one of them is waited for
  Change c;
  Sinew__V1__Reply *opened, *r;
  Stream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  // Version 2: one term alone has weight.
  begin_change(&c, s.session);
  set_weight(&c, 0, "speed", 0);
  set_weight(&c, 1, "effort", 0);
  c.term[1].has_terminal_weight_case = c.term[0].has_terminal_weight_case = 0;
  Sinew__V1__Request request = change_request(&c);
  r = ask(&s, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_SET_CONFIG);
  sn_test_done(r);
  uint64_t version = 2;
  tuned_from = 3;
  s = start(&client, s.session, 30, 0.2);
  s.check = check_untorn;
  send_state(&s, opened->open->initial, -1);
  for (int i = 0; i < MESSAGES; i++) {
    if (i % EACH == 0) {
      send_state(&s, opened->open->initial, (int64_t)s.sequence);
      if (i > 0) await_version(&s, version - EACH);
    }
    // Invalid, on the values in force.
    begin_change(&c, s.session);
    const char *word = spoil(&c, i);
    request = change_request(&c);
    sn_test_expect_error(ask(&s, &request),
                         word[0] == 'n' && word[1] == 'o' && word[2] == ' ' ? SINEW__V1__ERROR__CODE__NOT_FOUND
                         : i % SPOILT == 0                                  ? SINEW__V1__ERROR__CODE__LIMIT
                         : i % SPOILT == 9                                  ? SINEW__V1__ERROR__CODE__STATE
                                                                            : SINEW__V1__ERROR__CODE__INVALID,
                         word);
    // Valid.
    version++;
    fill_change(&c, s.session, number_of(version));
    request = change_request(&c);
    r = ask(&s, &request);
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_SET_CONFIG);
    expect_values(r->set_config, version, number_of(version));
    sn_test_done(r);
    if (i % 10) continue;
    r = get_config(&s, 0);
    expect_values(r->get_config, version, number_of(version));
    sn_test_done(r);
  }
  await_version(&s, version);
  print_message("%d valid and %d invalid changes, %d plans streamed meanwhile\n", MESSAGES, MESSAGES, s.plans);
  assert_true(s.version == version && s.plans > MESSAGES / EACH / 2 && reach_now > 0);
  send_stream(&s, true, 0, 0);
  expect_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

static void choose_planner(Stream *s, char *planner) {
  Change c;
  begin_change(&c, s->session);
  c.planner.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  c.planner.planner = planner;
  Sinew__V1__Request request = change_request(&c);
  Sinew__V1__Reply *r = ask(s, &request);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  assert_string_equal(r->set_config->planner->planner, planner);
  sn_test_done(r);
}

static double latest_norm;
static void note_norm(const Sinew__V1__Plan *plan) { latest_norm = plan->gradient_norm; }

// The planner changes while the stream goes on: from sampling to gradients, and back.
static void test_planner_changes_live(void **state) {
  (void)state;
  static char *const planner[] = {"adam", "sampling", "adam"};
  Sinew__V1__Reply *opened;
  Stream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = start(&client, s.session, 30, 0.2);
  s.check = note_norm;
  Sinew__V1__State x = *opened->open->initial;
  for (int i = 0; i < 3; i++) {
    choose_planner(&s, planner[i]);
    const bool gradients = !strcmp(planner[i], "adam");
    latest_norm = gradients ? NAN : 1;
    for (double until = sn_test_now() + 30; isfinite(latest_norm) != gradients;) {
      assert_true(sn_test_now() < until);
      x.time += 0.01;
      send_state(&s, &x, (int64_t)s.sequence);
      assert_null(read_stream(&s, 0.02));
    }
  }
  assert_true(latest_norm > 0);
  send_stream(&s, true, 0, 0);
  expect_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

static Sinew__V1__Reply *revert(Stream *s, uint64_t version) {
  Sinew__V1__RevertRequest in = SINEW__V1__REVERT_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  in.version = version;
  request.body_case = SINEW__V1__REQUEST__BODY_REVERT;
  request.revert = &in;
  return ask(s, &request);
}

static void test_revert(void **state) {
  (void)state;
  enum { KEPT = 1024 };
  Change c;
  Sinew__V1__Reply *opened, *r;
  Stream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  for (uint64_t v = 2; v <= 5; v++) {
    fill_change(&c, s.session, number_of(v));
    if (v == 3) set_target(&c, 0, 3, 0.25);
    if (v == 5) {
      c.term[0].has_own_target_case = SINEW__V1__TERM_SETTINGS__HAS_OWN_TARGET_OWN_TARGET;
      c.term[0].own_target = true;
    }
    Sinew__V1__Request request = change_request(&c);
    sn_test_done(ask(&s, &request));
  }
  r = get_config(&s, 3);
  expect_values(r->get_config, 3, number_of(3));
  assert_true(r->get_config->terms[0]->n_target == 3 && r->get_config->terms[0]->target[1] == 0.25);
  sn_test_done(r);
  r = get_config(&s, 5);
  assert_true(r->get_config->terms[0]->own_target && r->get_config->terms[0]->n_target == 0);
  sn_test_done(r);

  // Back to version 3: a new version, with its target too; and from there to the very first one.
  r = revert(&s, 3);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_REVERT);
  expect_values(r->revert, 6, number_of(3));
  assert_int_equal(r->revert->reverted_to, 3);
  assert_true(r->revert->terms[0]->n_target == 3 && r->revert->terms[0]->target[2] == 0.25);
  sn_test_done(r);
  r = sn_test_plan(&client, s.session, opened->open->initial, 0.05);
  assert_true(r->plan->config_version == 6 && r->plan->time_to_live == life_of(number_of(3)));
  sn_test_done(r);
  r = revert(&s, 1);
  const Sinew__V1__Config *first = opened->open->config;
  assert_true(r->revert->version == 7 && r->revert->reverted_to == 1 && r->revert->terms[0]->own_target);
  assert_int_equal(r->revert->planner->candidates, first->planner->candidates);
  assert_true(r->revert->terms[0]->weight == first->terms[0]->weight);
  assert_true(r->revert->session->time_to_live == first->session->time_to_live);
  sn_test_done(r);
  sn_test_expect_error(revert(&s, 8), SINEW__V1__ERROR__CODE__NOT_FOUND, "versions 1 to 7 are kept");
  sn_test_expect_error(get_config(&s, 999), SINEW__V1__ERROR__CODE__NOT_FOUND, "no version 999");
  sn_test_expect_error(revert(&s, 0), SINEW__V1__ERROR__CODE__INVALID, "version");

  // The history is bounded.
  for (uint64_t v = 8; v <= KEPT + 3; v++) {
    fill_change(&c, s.session, number_of(v));
    Sinew__V1__Request request = change_request(&c);
    sn_test_done(ask(&s, &request));
  }
  sn_test_expect_error(revert(&s, 3), SINEW__V1__ERROR__CODE__NOT_FOUND, "versions 4 to 1027 are kept");
  r = revert(&s, 5);
  expect_values(r->revert, KEPT + 4, number_of(5));
  assert_int_equal(r->revert->oldest, 5);
  sn_test_done(r);
  sn_test_done(opened);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stream),
      cmocka_unit_test(test_lease_ends),
      cmocka_unit_test(test_close_ends_stream),
      cmocka_unit_test(test_stream_goes_on),
      cmocka_unit_test(test_plans_wait_for_a_slow_client),
      cmocka_unit_test(test_stream_beside_deadlines),
      cmocka_unit_test(test_tuning_storm),
      cmocka_unit_test(test_planner_changes_live),
      cmocka_unit_test(test_revert),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
