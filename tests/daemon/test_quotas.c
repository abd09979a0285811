// Quotas of keys: what is beyond is refused with LIMIT and nothing is lost; and what the others notice of a greedy one.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_keys.h"
#include "tests/support/raw_peer.h"
#include "tests/support/slow.h"

enum { GOOD, SESSIONS, REQUESTS, BYTES, PLANNING, FREE, GREEDY, ONE_SESSION, FEW_BYTES, NKEYS };

static SnTestKeyed keyed;
static SnTestKey key[NKEYS];

static int setup(void **state) {
  (void)state;
  static const char *const quota[NKEYS] = {
      "",           "sessions=2",  "requests=20", "bytes=2000", "planning=0.1", "", "requests=30 planning=0.05",
      "sessions=1", "bytes=200000"};
  char text[2000];
  int n = 0;
  sn_test_keyed_prepare(&keyed);
  for (int i = 0; i < NKEYS; i++) {
    sn_test_key(&key[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "%s tune name=key-%d %s\n", key[i].public, i, quota[i]);
  }
  sn_test_write_mode(keyed.allow, text, 0600);
  sn_test_keyed_start(&keyed);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sn_test_keyed_stop(&keyed);
  return 0;
}

static void close_session(SnTestClient *c, uint64_t session) {
  Sinew__V1__CloseRequest end = SINEW__V1__CLOSE_REQUEST__INIT;
  end.session = session;
  sn_test_done(sn_test_request(c, SN_TEST_MESSAGE(close, CLOSE, &end)));
}

// A place is free again when a session is closed, and when one could not be opened.
static void test_sessions(void **state) {
  (void)state;
  SnTestClient c;
  sn_test_connect_key(&c, &keyed, &key[SESSIONS]);
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  open.task = "no_such_task";
  for (int i = 0; i < 5; i++)
    sn_test_expect_error(sn_test_request(&c, SN_TEST_MESSAGE(open, OPEN, &open)), SINEW__V1__ERROR__CODE__NOT_FOUND,
                         "");
  const uint64_t first = sn_test_open(&c, "arm_reach", 1, NULL), second = sn_test_open(&c, "arm_reach", 2, NULL);
  open.task = "arm_reach";
  sn_test_expect_error(sn_test_request(&c, SN_TEST_MESSAGE(open, OPEN, &open)), SINEW__V1__ERROR__CODE__LIMIT,
                       "this key has 2 sessions");
  close_session(&c, first);
  const uint64_t third = sn_test_open(&c, "arm_reach", 3, NULL);
  close_session(&c, second);
  close_session(&c, third);
  sn_test_disconnect(&c);
}

// Sends so many requests at once and counts the answers by whether they were refused. Each is answered.
static void burst(const SnTestKey *with, size_t padding, int times, int *served, int *refused) {
  SnTestClient c;
  char name[200];
  Sinew__V1__HelloRequest hello = SINEW__V1__HELLO_REQUEST__INIT;
  memset(name, 'x', sizeof name);
  name[padding] = '\0';
  hello.protocol = 1;
  hello.client = name;
  *served = *refused = 0;
  sn_test_connect_key(&c, &keyed, with);
  for (int i = 0; i < times; i++) sn_test_send(&c, SN_TEST_MESSAGE(hello, HELLO, &hello));
  uint64_t ids = 0;
  for (int i = 0; i < times; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&c, 10);
    assert_non_null(r);
    ids += r->id;
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) {
      assert_int_equal(r->error->code, SINEW__V1__ERROR__CODE__LIMIT);
      assert_non_null(strstr(r->error->text, "a second; try again later"));
    }
    r->body_case == SINEW__V1__REPLY__BODY_ERROR ? ++*refused : ++*served;
    sn_test_done(r);
  }
  assert_int_equal(ids, (uint64_t)times * (uint64_t)(times + 1) / 2);
  sn_test_disconnect(&c);
}

// A burst of 200 may have what is allowed in a second, and in the time that it takes.
static void test_requests(void **state) {
  (void)state;
  int served, refused;
  const double begin = sn_clock_now();
  burst(&key[REQUESTS], 0, 200, &served, &refused);
  assert_in_range(served, 19, 20 + (int)(20 * (sn_clock_now() - begin)) + 1);
  const int logged = sn_test_count_logged(&keyed.daemon, "requests of key-2");
  assert_int_equal(logged, 1);
  burst(&key[GOOD], 0, 200, &served, &refused);
  assert_int_equal(refused, 0);
  usleep(1200000);
  burst(&key[REQUESTS], 0, 20, &served, &refused);
  assert_int_equal(refused, 0);
}

static void test_bytes(void **state) {
  (void)state;
  int served, refused;
  const double begin = sn_clock_now();
  burst(&key[BYTES], 180, 100, &served, &refused);
  const double allowed = 2000 * (1 + sn_clock_now() - begin);
  assert_in_range(served, 9, (int)(allowed / 180) + 1);
}

// What else the planner works for is refused, too; the rest is not.
static void expect_no_planning(SnTestClient *c, uint64_t id, Sinew__V1__State *initial) {
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  Sinew__V1__StreamState fed = SINEW__V1__STREAM_STATE__INIT;
  evaluate.session = fed.session = id;
  evaluate.state = fed.state = initial;
  sn_test_expect_error(sn_test_request(c, SN_TEST_MESSAGE(evaluate, EVALUATE, &evaluate)),
                       SINEW__V1__ERROR__CODE__LIMIT, "0.1 s a second; try again in");
  sn_test_expect_error(sn_test_request(c, SN_TEST_MESSAGE(stream_state, STREAM_STATE, &fed)),
                       SINEW__V1__ERROR__CODE__LIMIT, "0.1 s a second; try again in");
  sn_test_done(sn_test_statistics(c, id));
}

// Asks until the plan is made, for so long as it takes to forgive what was used; the caller frees the reply.
static Sinew__V1__Reply *plan_when_forgiven(SnTestClient *c, Sinew__V1__PlanRequest *plan) {
  const double until = sn_clock_now() + 60;
  Sinew__V1__Reply *r = sn_test_request(c, SN_TEST_MESSAGE(plan, PLAN, plan));
  for (; r->body_case == SINEW__V1__REPLY__BODY_ERROR && sn_clock_now() < until; usleep(50000)) {
    sn_test_done(r);
    r = sn_test_request(c, SN_TEST_MESSAGE(plan, PLAN, plan));
  }
  if (r->body_case != SINEW__V1__REPLY__BODY_PLAN) fail_msg("%s", r->error->text);
  return r;
}

// What a plan did not take of the time until its deadline is free again once it is answered.
static void expect_charge_to_end(SnTestClient *c, uint64_t id, Sinew__V1__State *initial) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  plan.session = id;
  plan.state = initial;
  plan.deadline = 600;  // longer than is waited for
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 1;
  for (int i = 0; i < 2; i++) {
    Sinew__V1__Reply *r = plan_when_forgiven(c, &plan);
    assert_int_equal(r->plan->iterations, 1);
    sn_test_done(r);
  }
}

// A key that asks for plans all the time gets its part of the planner's time, and a second's worth at once: what a plan
// may take is charged before it begins.
static void test_planning(void **state) {
  (void)state;
  SnTestClient c;
  Sinew__V1__Reply *opened;
  sn_test_connect_key(&c, &keyed, &key[PLANNING]);
  const uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  const double begin = sn_clock_now();
  int plans = 0, refused = 0;
  while (sn_clock_now() < begin + 3) {
    Sinew__V1__Reply *r = sn_test_plan(&c, id, opened->open->initial, 0.07);
    plans += r->body_case == SINEW__V1__REPLY__BODY_PLAN;
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) {
      refused++;
      assert_int_equal(r->error->code, SINEW__V1__ERROR__CODE__LIMIT);
      assert_non_null(strstr(r->error->text, "0.1 s a second; try again in"));
      usleep(5000);
    }
    sn_test_done(r);
  }
  print_message("%d plans of 0.07 s and %d refusals in %.1f s with planning=0.1\n", plans, refused,
                sn_clock_now() - begin);
  assert_true(plans >= 2 && refused > 10);
  // Whatever plans took, another one begins when there is room for it beside them.
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  plan.session = id;
  plan.state = opened->open->initial;
  plan.deadline = 0.07;
  Sinew__V1__Reply *r = sn_test_statistics(&c, id);
  const double served = r->statistics->sessions[0]->served;
  sn_test_done(r);
  sn_test_done(plan_when_forgiven(&c, &plan));
  const double had = sn_clock_now() - begin;
  print_message("%.3f s of planning for a key that may have %.3f s\n", served + plan.deadline, 0.1 * (1 + had));
  assert_true(served + plan.deadline < 0.1 * (1 + had) + 0.005);
  // One that is longer than a second's worth comes when nothing is used, and is paid for afterwards.
  expect_charge_to_end(&c, id, opened->open->initial);
  plan.deadline = 1;
  sn_test_done(plan_when_forgiven(&c, &plan));
  expect_no_planning(&c, id, opened->open->initial);
  sn_test_done(opened);
  close_session(&c, id);
  sn_test_disconnect(&c);
}

// ---- a greedy key ----

enum { SESSIONS_MOST = 18 };

// What it wants: sessions to plan on, other requests, the longest of all requests.
typedef struct Greed {
  int sessions, others, bulky;
  double deadline;  // of its plans [s]
  const SnTestKey *bounded;
  const char *quota;
  double share;  // of the iterations that they have alone, which others have beside it with that quota at least
} Greed;

typedef struct Greedy {
  Greed greed;
  const SnTestKey *key;
  atomic_bool stop;
  SnTestClient client;
  Sinew__V1__Reply *opened[SESSIONS_MOST];
  int sessions, served, refused;  // sessions that it got
} Greedy;

static void open_sessions(Greedy *g) {
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.seed = 10;
  in.planner = sn_test_sampling();
  for (int i = 0; i < g->greed.sessions; i++) {
    Sinew__V1__Reply *r = sn_test_request(&g->client, SN_TEST_MESSAGE(open, OPEN, &in));
    if (r->body_case == SINEW__V1__REPLY__BODY_OPEN)
      g->opened[g->sessions++] = r;
    else
      sn_test_done(r);
  }
}

// A plan of a session that is not there, with so many rows of applied controls that it is just short enough.
static uint8_t *longest_request(size_t *size) {
  enum { ROWS = 74000, CONTROLS = 6 };
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__State x = SINEW__V1__STATE__INIT;
  Sinew__V1__Controls rows = SINEW__V1__CONTROLS__INIT;
  rows.n_time = ROWS;
  rows.n_ctrl = ROWS * CONTROLS;
  rows.time = calloc(rows.n_time, sizeof *rows.time);
  rows.ctrl = calloc(rows.n_ctrl, sizeof *rows.ctrl);
  assert_true(rows.time && rows.ctrl);
  plan.session = 1;
  plan.state = &x;
  plan.applied = &rows;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  *size = sinew__v1__request__get_packed_size(&request);
  uint8_t *bytes = malloc(*size);
  assert_non_null(bytes);
  sinew__v1__request__pack(&request, bytes);
  free(rows.time);
  free(rows.ctrl);
  return bytes;
}

// Asks for plans on its sessions and for some things more, all at once, and again as soon as all is answered.
static void *be_greedy(void *argument) {
  Greedy *g = argument;
  Sinew__V1__ListTasksRequest list = SINEW__V1__LIST_TASKS_REQUEST__INIT;
  Sinew__V1__StatisticsRequest all = SINEW__V1__STATISTICS_REQUEST__INIT;
  size_t size;
  uint8_t *bytes = longest_request(&size);
  SnTestClient *c = &g->client;
  sn_test_connect_key(c, &keyed, g->key);
  open_sessions(g);
  for (; !atomic_load(&g->stop); usleep(1000)) {  // the way there and back
    for (int i = 0; i < g->sessions; i++)
      sn_test_send_plan(c, g->opened[i]->open->session, g->opened[i]->open->initial, g->greed.deadline);
    for (int i = 0; i < g->greed.others; i++)
      sn_test_send(
          c, i % 3 ? SN_TEST_MESSAGE(statistics, STATISTICS, &all) : SN_TEST_MESSAGE(list_tasks, LIST_TASKS, &list));
    for (int i = 0; i < g->greed.bulky; i++) sn_test_send_bytes(c, bytes, size);
    for (int i = 0; i < g->sessions + g->greed.others + g->greed.bulky; i++) {
      Sinew__V1__Reply *r = sn_test_receive(c, 10);
      if (!r) break;
      const bool error = r->body_case == SINEW__V1__REPLY__BODY_ERROR;
      error && r->error->code == SINEW__V1__ERROR__CODE__LIMIT ? g->refused++ : g->served++;
      sn_test_done(r);
    }
  }
  free(bytes);
  return NULL;
}

static void end_greedy(Greedy *g) {
  for (int i = 0; i < g->sessions; i++) {
    SnTestClient admin;
    sn_test_connect(&admin, keyed.daemon.endpoint);
    close_session(&admin, g->opened[i]->open->session);
    sn_test_disconnect(&admin);
    sn_test_done(g->opened[i]);
  }
  sn_test_disconnect(&g->client);
}

// Plans by 20 ms, one after the other: what they took, and how many iterations they had; and how long the answer to a
// request took after each, which is made at once.
enum { ROUNDS = SN_SLOW ? 2 : 3, PLANS_A_ROUND = 40, PLANS = ROUNDS * PLANS_A_ROUND };

typedef struct Figures {
  double took[PLANS], asked[PLANS], iterations;
  int plans, sessions, served, refused;  // the latter of who is greedy beside
} Figures;

static void measure(SnTestClient *c, uint64_t id, Sinew__V1__State *x, Figures *f) {
  for (int i = 0; i < PLANS_A_ROUND; i++) {
    const double begin = sn_clock_now();
    Sinew__V1__Reply *r = sn_test_plan(c, id, x, 0.02);
    const double end = sn_clock_now();
    f->took[f->plans] = end - begin;
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    f->iterations += r->plan->iterations;
    sn_test_done(r);
    Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
    sn_test_done(sn_test_request(c, SN_TEST_MESSAGE(health, HEALTH, &health)));
    f->asked[f->plans++] = sn_clock_now() - end;
  }
}

static void beside(SnTestClient *c, uint64_t id, Sinew__V1__State *x, Greed greed, const SnTestKey *with, Figures *f) {
  Greedy g = {.greed = greed, .key = with};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, be_greedy, &g), 0);
  usleep(1200000);  // it has opened its sessions, and used up what it may at once
  measure(c, id, x, f);
  atomic_store(&g.stop, true);
  pthread_join(thread, NULL);
  f->sessions = g.sessions;
  f->served += g.served;
  f->refused += g.refused;
  end_greedy(&g);
}

typedef struct Strange {
  SnTestKey key;
  atomic_bool stop;
  int times;
} Strange;

// Tries to come in by a key that is not on the list, again and again.
static void *be_strange(void *argument) {
  Strange *s = argument;
  sn_test_key(&s->key);
  for (; !atomic_load(&s->stop); s->times++) {
    SnTestClient c;
    sn_test_connect_key(&c, &keyed, &s->key);
    sn_test_receive(&c, 0.005);
    sn_test_disconnect(&c);
  }
  return NULL;
}

static double median(const Figures *f) { return f->took[f->plans / 2]; }
static double iterations(const Figures *f) { return f->iterations / f->plans; }

static void print_figures(const char *name, Figures *f, const Figures *alone) {
  const size_t n = (size_t)f->plans;
  qsort(f->took, n, sizeof *f->took, sn_test_compare_doubles);
  qsort(f->asked, n, sizeof *f->asked, sn_test_compare_doubles);
  print_message("%-23s p50 %5.1f ms, p99 %5.1f ms, %5.2f iterations a plan: %.2f of alone; health p50 %.2f, p99 %.2f\n",
                name, 1e3 * median(f), 1e3 * f->took[n * 99 / 100], iterations(f), iterations(f) / iterations(alone),
                1e3 * f->asked[n / 2], 1e3 * f->asked[n * 99 / 100]);
  if (f->served + f->refused > 0)
    print_message("  who had %d sessions, %d requests served, %d refused\n", f->sessions, f->served, f->refused);
}

static bool strangers_are_not_noticed(void *unused) {
  (void)unused;
  SnTestClient c;
  Sinew__V1__Reply *opened;
  Figures alone = {.plans = 0}, beside_it = {.plans = 0};
  int times = 0;
  sn_test_connect_key(&c, &keyed, &key[GOOD]);
  const uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  for (int i = 0; i < ROUNDS; i++) {
    Strange s = {.times = 0};
    pthread_t thread;
    measure(&c, id, opened->open->initial, &alone);
    assert_int_equal(pthread_create(&thread, NULL, be_strange, &s), 0);
    measure(&c, id, opened->open->initial, &beside_it);
    atomic_store(&s.stop, true);
    pthread_join(thread, NULL);
    times += s.times;
  }
  print_figures("alone", &alone, &alone);
  print_figures("beside a stranger", &beside_it, &alone);
  print_message("  who tried to come in %d times\n", times);
  sn_test_done(opened);
  close_session(&c, id);
  sn_test_disconnect(&c);
  assert_true(times > ROUNDS);
  return iterations(&beside_it) > 0.5 * iterations(&alone);
}

static void test_strangers_are_not_noticed(void **state) {
  (void)state;
  sn_test_judge(strangers_are_not_noticed, NULL);
}

// In turn, since other programs of the machine take their part, too. Without a quota once, to be looked at.
static bool others_do_not_notice(void *context) {
  const Greed *greed = context;
  SnTestClient c;
  Sinew__V1__Reply *opened;
  Figures alone = {.plans = 0}, bounded = {.plans = 0}, unbounded = {.plans = 0};
  sn_test_connect_key(&c, &keyed, &key[GOOD]);
  const uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  Sinew__V1__State *x = opened->open->initial;
  for (int i = 0; i < ROUNDS; i++) {
    measure(&c, id, x, &alone);
    beside(&c, id, x, *greed, greed->bounded, &bounded);
    if (i == 0) beside(&c, id, x, *greed, &key[FREE], &unbounded);
  }
  print_figures("alone", &alone, &alone);
  print_message("beside a greedy key, with %s:\n", greed->quota);
  print_figures("with that quota", &bounded, &alone);
  print_figures("without", &unbounded, &alone);
  sn_test_done(opened);
  close_session(&c, id);
  sn_test_disconnect(&c);
  return median(&bounded) < 1.5 * median(&alone) && iterations(&bounded) > greed->share * iterations(&alone);
}

static void test_others_do_not_notice(void **state) {
  (void)state;
  Greed greed = {.sessions = 6,
                 .others = 9,
                 .deadline = 0.004,  // before those of others
                 .bounded = &key[GREEDY],
                 .quota = "requests=30 planning=0.05",
                 .share = 0.5};
  sn_test_judge(others_do_not_notice, &greed);
}

// With one session it has what every session has, and no more.
static void test_sessions_are_not_noticed(void **state) {
  (void)state;
  Greed greed = {
      .sessions = SESSIONS_MOST, .deadline = 0.02, .bounded = &key[ONE_SESSION], .quota = "sessions=1", .share = 0.25};
  sn_test_judge(others_do_not_notice, &greed);
}

static void test_bytes_are_not_noticed(void **state) {
  (void)state;
  Greed greed = {.bulky = 3, .bounded = &key[FEW_BYTES], .quota = "bytes=200000", .share = 0.25};
  sn_test_judge(others_do_not_notice, &greed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sessions),
      cmocka_unit_test(test_requests),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_planning),
      cmocka_unit_test(test_others_do_not_notice),
      cmocka_unit_test(test_sessions_are_not_noticed),
      cmocka_unit_test(test_bytes_are_not_noticed),
      cmocka_unit_test(test_strangers_are_not_noticed),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
