// sinewd as a black box: sessions beside each other, clients that vanish.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/raw_peer.h"

// Plans with a deadline of 20 ms and a pause of 10 ms after each: their ages, and the rollouts made.
static unsigned plan_in_time(uint64_t id, Sinew__V1__State *initial, double *age, int plans) {
  enum { CANDIDATES = 48 };  // of an iteration, in arm_reach
  unsigned rollouts = 0;
  for (int i = 0; i < plans; i++) {
    Sinew__V1__Reply *r = sn_test_plan(&client, id, initial, 0.02);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    assert_true(r->plan->steps > 0);
    age[i] = r->plan->age;
    rollouts += r->plan->candidates + CANDIDATES * (r->plan->iterations > 1 ? r->plan->iterations - 1 : 0);
    sn_test_done(r);
    usleep(10000);
  }
  return rollouts;
}

// A plan of half a second, long evaluations, one with a gradient, and resets with new seeds: returns the number of
// answers to come.
static int send_long_work(SnTestClient *c, const uint64_t id[2], Sinew__V1__State *initial) {
  enum { EVALUATIONS = 3, RESETS = 2, STEPS = 2000 };
  static double ctrl[6 * STEPS];
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  sn_test_send_plan(c, id[0], initial, 0.5);
  evaluate.session = reset.session = id[1];
  evaluate.state = initial;
  evaluate.ctrl = ctrl;
  evaluate.n_ctrl = 6 * STEPS;
  evaluate.want_states = true;
  request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  request.evaluate = &evaluate;
  for (int i = 0; i < EVALUATIONS; i++) {
    evaluate.want_gradient = i == 0;
    sn_test_send(c, &request);
  }
  request.body_case = SINEW__V1__REQUEST__BODY_RESET;
  request.reset = &reset;
  reset.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
  for (reset.seed = 0; reset.seed < RESETS; reset.seed++) sn_test_send(c, &request);
  return 1 + EVALUATIONS + RESETS;
}

static void receive_long_work(SnTestClient *c, int answers) {
  for (int i = 0; i < answers; i++) {
    Sinew__V1__Reply *r = sn_test_receive(c, 30);
    assert_non_null(r);
    assert_int_not_equal(r->body_case, SINEW__V1__REPLY__BODY_ERROR);
    if (r->body_case == SINEW__V1__REPLY__BODY_EVALUATE) assert_int_equal(r->evaluate->states->n_time, 2001);
    if (r->body_case == SINEW__V1__REPLY__BODY_PLAN && JUDGE_TIME)
      assert_int_equal(r->plan->status, SINEW__V1__PLAN__STATUS__OK);
    sn_test_done(r);
  }
}

// A session with a deadline of 20 ms, in turn alone and beside a client that plans without a pause, evaluates and
// resets: it is answered as soon. In turn, because other programs on the machine are in both figures.
static bool is_answered_beside_long_ones(void *unused) {
  (void)unused;
  enum { ROUNDS = 6, PLANS = 10, ALL = ROUNDS * PLANS };
  SnTestClient slow;
  Sinew__V1__Reply *opened;
  double alone[ALL], beside[ALL];
  unsigned rollouts[2] = {0};
  sn_test_connect(&slow, sinewd.endpoint);
  uint64_t fast_id = sn_test_open(&client, "arm_reach", 1, &opened);
  uint64_t slow_id[] = {sn_test_open(&slow, "arm_reach", 2, NULL), sn_test_open(&slow, "arm_reach", 3, NULL)};
  for (int i = 0; i < ROUNDS; i++) {
    rollouts[0] += plan_in_time(fast_id, opened->open->initial, alone + i * PLANS, PLANS);
    int answers = send_long_work(&slow, slow_id, opened->open->initial);
    rollouts[1] += plan_in_time(fast_id, opened->open->initial, beside + i * PLANS, PLANS);
    receive_long_work(&slow, answers);
  }
  qsort(alone, ALL, sizeof *alone, sn_test_compare_doubles);
  qsort(beside, ALL, sizeof *beside, sn_test_compare_doubles);
  print_message("20 ms alone:        age p50 %.2f ms, p90 %.2f ms, %u rollouts\n", 1e3 * alone[ALL / 2],
                1e3 * alone[ALL * 9 / 10], rollouts[0]);
  print_message("20 ms beside 0.5 s: age p50 %.2f ms, p90 %.2f ms, %u rollouts\n", 1e3 * beside[ALL / 2],
                1e3 * beside[ALL * 9 / 10], rollouts[1]);
  sn_test_done(opened);
  sn_test_disconnect(&slow);
  return beside[ALL / 2] < 2 * fmax(alone[ALL / 2], 0.02);
}

static void test_short_deadline_beside_long_ones(void **state) {
  (void)state;
  sn_test_judge(is_answered_beside_long_ones, NULL);
}

// Evaluations that pile up, overdue, do not keep a session from its deadlines; and they are all answered, also while
// that session keeps the planner busy.
static bool is_answered_beside_overdue_ones(void *unused) {
  (void)unused;
  enum {
    EVALUATIONS = JUDGE_TIME ? 250 : 4,
    PLANS = 70,
    STEPS = 2048
  };  // more work than pauses before they are overdue
  static double ctrl[6 * STEPS], age[PLANS];
  SnTestClient slow;
  Sinew__V1__Reply *opened;
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  sn_test_connect(&slow, sinewd.endpoint);
  uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  evaluate.session = sn_test_open(&slow, "arm_reach", 2, NULL);
  evaluate.state = opened->open->initial;
  evaluate.ctrl = ctrl;
  evaluate.n_ctrl = 6 * STEPS;
  request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  request.evaluate = &evaluate;
  const double began = sn_clock_now();
  for (int i = 0; i < EVALUATIONS; i++) sn_test_send(&slow, &request);
  plan_in_time(id, opened->open->initial, age, PLANS);
  for (int i = 0; i < EVALUATIONS; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&slow, 60);
    assert_non_null(r);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_EVALUATE);
    sn_test_done(r);
  }
  const double all = sn_clock_now() - began;
  qsort(age, PLANS, sizeof *age, sn_test_compare_doubles);
  print_message("20 ms beside overdue evaluations: age p50 %.2f ms, worst %.2f ms; all evaluated after %.2f s\n",
                1e3 * age[PLANS / 2], 1e3 * age[PLANS - 1], all);
  sn_test_done(opened);
  sn_test_disconnect(&slow);
  // Whoever has to wait for those that are overdue waits for a good part of all the time, on whatever machine.
  return age[PLANS - 1] < 0.25 * all;
}

static void test_short_deadline_beside_overdue_evaluations(void **state) {
  (void)state;
  sn_test_judge(is_answered_beside_overdue_ones, NULL);
}

// The limit on what waits holds for evaluations too: more are refused at once, and every one is answered. Refusals come
// in one burst: the client never has so many unanswered that it could be more than the daemon keeps for a client, which
// is between 128 and 256 replies by when libzmq looks.
static void test_endless_evaluations(void **state) {
  (void)state;
  enum { EVALUATIONS = 700, UNANSWERED = 256 + 100, STEPS = JUDGE_TIME ? 2048 : 256 };
  static double ctrl[6 * STEPS];
  SnTestClient slow;
  Sinew__V1__Reply *opened;
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  sn_test_connect(&slow, sinewd.endpoint);
  evaluate.session = sn_test_open(&slow, "arm_reach", 2, &opened);
  evaluate.state = opened->open->initial;
  evaluate.ctrl = ctrl;
  evaluate.n_ctrl = 6 * STEPS;
  request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  request.evaluate = &evaluate;
  int refused = 0;
  for (int sent = 0, answered = 0; answered < EVALUATIONS;) {
    const bool sends = sent < EVALUATIONS && sent - answered < UNANSWERED;
    if (sends) sn_test_send(&slow, &request), sent++;
    Sinew__V1__Reply *r = sn_test_receive(&slow, sends ? 0 : 60);
    if (!r && sends) continue;
    assert_non_null(r);
    answered++;
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) {
      assert_int_equal(r->error->code, SINEW__V1__ERROR__CODE__LIMIT);
      refused++;
    }
    sn_test_done(r);
  }
  print_message("%d of %d evaluations refused\n", refused, EVALUATIONS);
  if (JUDGE_TIME) assert_true(refused > 0);
  Sinew__V1__Reply *r = sn_test_statistics(&client, 0);
  assert_int_equal(r->statistics->queue, 0);
  sn_test_done(r);
  sn_test_done(opened);
  sn_test_disconnect(&slow);
}

// A plan without a deadline is answered also while others, with deadlines, leave the planner no time.
static void test_no_deadline_beside_busy_ones(void **state) {
  (void)state;
  enum { BUSY = 4, PLANS = 100 };
  SnTestClient patient;
  Sinew__V1__Reply *opened, *r = NULL;
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  if (!JUDGE_TIME) skip();
  sn_test_connect(&patient, sinewd.endpoint);
  uint64_t id[BUSY];
  for (int i = 0; i < BUSY; i++) id[i] = sn_test_open(&client, "arm_reach", 1, i ? NULL : &opened);
  plan.session = sn_test_open(&patient, "arm_reach", 3, NULL);
  plan.state = opened->open->initial;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 3;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  sn_test_send(&patient, &request);
  // One after the other, so that some always wait and the planner never idles.
  for (int i = 0; i < BUSY; i++) {
    sn_test_send_plan(&client, id[i], opened->open->initial, 0.2);
    usleep(200000 / BUSY);
  }
  for (int i = 0; i < PLANS && !r; i++) {
    Sinew__V1__Reply *busy = sn_test_receive(&client, 10);
    sn_test_send_plan(&client, busy->plan->session, opened->open->initial, 0.2);
    sn_test_done(busy);
    r = sn_test_receive(&patient, 0.001);
  }
  for (int i = 0; i < BUSY; i++) sn_test_done(sn_test_receive(&client, 10));
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  assert_int_equal(r->plan->iterations, 3);
  print_message("no deadline beside busy ones: %.1f s\n", r->plan->age);
  sn_test_done(r);
  sn_test_done(opened);
  sn_test_disconnect(&patient);
}

// Two sessions with the same deadline, both always busy: neither starves. Where the machine leaves no time for both in
// each round there are more rounds.
static void test_equal_deadlines_share(void **state) {
  (void)state;
  SnTestClient second;
  SnTestClient *clients[] = {&client, &second};
  Sinew__V1__Reply *opened[2];
  uint64_t id[2];
  enum { ENOUGH = 18, ROUNDS = JUDGE_TIME ? 800 : 20 };
  unsigned refined[2] = {0};
  int rounds = 0;
  sn_test_connect(&second, sinewd.endpoint);
  for (int i = 0; i < 2; i++) id[i] = sn_test_open(clients[i], "arm_reach", 1, &opened[i]);
  for (; rounds < 20 || (rounds < ROUNDS && fmin(refined[0], refined[1]) < ENOUGH); rounds++) {
    for (int i = 0; i < 2; i++) sn_test_send_plan(clients[i], id[i], opened[i]->open->initial, 0.05);
    for (int i = 0; i < 2; i++) {
      Sinew__V1__Reply *r = sn_test_receive(clients[i], 30);
      assert_non_null(r);
      refined[i] += r->plan->status == SINEW__V1__PLAN__STATUS__OK;
      sn_test_done(r);
    }
  }
  print_message("of %d plans each, %u and %u were refined\n", rounds, refined[0], refined[1]);
  if (JUDGE_TIME) assert_true(refined[0] >= ENOUGH && refined[1] >= ENOUGH);
  if (JUDGE_TIME) assert_true(refined[0] <= 2 * refined[1] && refined[1] <= 2 * refined[0]);
  for (int i = 0; i < 2; i++) sn_test_done(opened[i]);
  sn_test_disconnect(&second);
}

// States sent faster than plans are made: every one is answered, the newest with a plan, most of the others as
// replaced.
static bool newest_state_wins(void *unused) {
  (void)unused;
  enum { STATES = 40 };
  Sinew__V1__Reply *opened;
  uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  Sinew__V1__State s = *opened->open->initial;
  for (int i = 0; i < STATES; i++) {
    s.time = 0.001 * i;
    sn_test_send_plan(&client, id, &s, 0.2);
  }
  int replaced = 0, planned = 0;
  double newest = -1;
  for (int i = 0; i < STATES; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&client, 30);
    assert_non_null(r);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    if (r->plan->status == SINEW__V1__PLAN__STATUS__REPLACED) {
      assert_int_equal(r->plan->n_ctrl, 0);
      replaced++;
    } else {
      planned++;
      if (r->plan->state_time > newest) newest = r->plan->state_time;
    }
    sn_test_done(r);
  }
  assert_true(newest == 0.001 * (STATES - 1));
  assert_true(planned >= 1 && replaced == STATES - planned);
  Sinew__V1__Reply *r = sn_test_statistics(&client, id);
  assert_int_equal(r->statistics->sessions[0]->replaced, replaced);
  sn_test_done(r);
  sn_test_done(opened);
  return planned <= 5;
}

static void test_newest_state_wins(void **state) {
  (void)state;
  sn_test_judge(newest_state_wins, NULL);
}

// A state that waits behind a plan under way gives way to a newer one: of three that are sent one after the other the
// second is replaced, never the last. Where a pause is not long enough both come at once, and the same is true.
static void test_newest_state_wins_over_one_that_waits(void **state) {
  (void)state;
  enum { STATES = 3 };
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  Sinew__V1__State s = *opened->open->initial;
  for (int i = 0; i < STATES; i++) {
    s.time = 0.001 * i;
    sn_test_send_plan(&client, id, &s, 0.8);
    usleep(50000);
  }
  for (int i = 0; i < STATES; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&client, 10);
    assert_non_null(r);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    const bool replaced = r->plan->status == SINEW__V1__PLAN__STATUS__REPLACED;
    if (replaced && r->plan->state_time == 0.001 * (STATES - 1)) fail_msg("the newest of the states was replaced");
    sn_test_done(r);
  }
  sn_test_done(opened);
}

// A refusal leaves by itself: of states whose plans take a quarter of an hour the one between is refused at once.
static void test_refused_while_another_plan_is_made(void **state) {
  (void)state;
  enum { STATES = 3, DEADLINE = 1000 };
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  Sinew__V1__State s = *opened->open->initial;
  for (int i = 0; i < STATES; i++) {
    s.time = 0.001 * i;
    sn_test_send_plan(&client, id, &s, DEADLINE);
    if (i == 0) usleep(50000);
  }
  const uint64_t latest = client.id;
  Sinew__V1__Reply *r = sn_test_receive(&client, 30);
  assert_non_null(r);
  assert_int_equal(r->plan->status, SINEW__V1__PLAN__STATUS__REPLACED);
  assert_true(r->id == latest - 1 || r->id == latest - 2);  // the first one, if it was not begun yet
  sn_test_done(r);
  Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  close.session = id;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = &close;
  sn_test_send(&client, &request);
  for (int i = 0; i < STATES; i++) {  // of the close, and of the other states
    r = sn_test_receive(&client, 30);
    assert_non_null(r);
    sn_test_done(r);
  }
  sn_test_done(opened);
}

// A client that vanishes in the middle: its session ends with its lease, the others go on.
static void test_client_vanishes(void **state) {
  (void)state;
  SnTestClient ghost;
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  sn_test_connect(&ghost, sinewd.endpoint);
  settings.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  settings.lease = 0.3;
  open.task = "arm_reach";
  open.planner = sn_test_sampling();
  open.session = &settings;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  Sinew__V1__Reply *r = sn_test_request(&ghost, &request);
  uint64_t id = r->open->session;
  sn_test_send_plan(&ghost, id, r->open->initial, 0.2);
  sn_test_done(r);
  usleep(50000);
  sn_test_disconnect(&ghost);

  bool gone = false;
  for (double until = sn_clock_now() + 10; !gone && sn_clock_now() < until; usleep(50000)) {
    r = sn_test_statistics(&client, id);
    gone = r->body_case == SINEW__V1__REPLY__BODY_ERROR;
    sn_test_done(r);
  }
  assert_true(gone);
  assert_true(sn_test_daemon_logged(&sinewd, "lease-expired"));
  uint64_t mine = sn_test_open(&client, "arm_reach", 1, &r);
  sn_test_done(sn_test_plan(&client, mine, r->open->initial, 0.02));
  sn_test_done(r);
}

// Opens a session as soon as the loaders take the request: while very many wait, more are refused.
static uint64_t open_when_taken(Sinew__V1__Reply **opened) {
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  open.task = "arm_reach";
  open.seed = 1;
  open.planner = sn_test_sampling();
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  for (int i = 0; i < 300; i++) {
    *opened = sn_test_request(&client, &request);
    if ((*opened)->body_case == SINEW__V1__REPLY__BODY_OPEN) return (*opened)->open->session;
    sn_test_expect_error(*opened, SINEW__V1__ERROR__CODE__LIMIT, "waiting to be loaded");
    usleep(100000);
  }
  fail_msg("the loaders take nothing");
  return 0;
}

// A client that asks and never reads: one reply is kept for it, the daemon serves others meanwhile.
static void test_client_never_reads(void **state) {
  (void)state;
  enum { REQUESTS = 3000 };
  SnTestClient deaf;
  int two = 2;
  sn_test_connect(&deaf, sinewd.endpoint);
  zmq_setsockopt(deaf.socket, ZMQ_RCVHWM, &two, sizeof two);
  Sinew__V1__ListTasksRequest list = SINEW__V1__LIST_TASKS_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_LIST_TASKS;
  request.list_tasks = &list;
  for (int i = 0; i < REQUESTS; i++) {
    unsigned char bytes[64];
    request.id = (uint64_t)i;
    zmq_send(deaf.socket, bytes, sinew__v1__request__pack(&request, bytes), ZMQ_DONTWAIT);
  }
  Sinew__V1__Reply *opened;
  uint64_t id = open_when_taken(&opened);
  for (int i = 0; i < 10; i++) {
    Sinew__V1__Reply *r = sn_test_plan(&client, id, opened->open->initial, 0.02);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    sn_test_done(r);
  }
  sn_test_done(opened);
  sn_test_disconnect(&deaf);
}

static void test_limits_on_sessions_and_connections(void **state) {
  (void)state;
  SnTestDaemon small = {0};
  sn_test_daemon_start(&small, (const char *const[]){"--sessions=2", "--connections=3", NULL});
  SnTestClient c, extra[8];
  sn_test_connect(&c, small.endpoint);
  Sinew__V1__Reply *opened;
  sn_test_open(&c, "arm_reach", 1, NULL);
  uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  open.task = "arm_reach";
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  sn_test_expect_error(sn_test_request(&c, &request), SINEW__V1__ERROR__CODE__LIMIT, "2 sessions are open");

  for (int i = 0; i < 2; i++) {
    sn_test_connect(&extra[i], small.endpoint);
    assert_true(sn_test_answers(&extra[i], 10));
  }
  usleep(300000);
  assert_false(sn_test_daemon_logged(&small, "at most 3 are allowed"));
  sn_test_connect(&extra[2], small.endpoint);
  for (int i = 0; i < 600 && !sn_test_daemon_logged(&small, "at most 3 are allowed"); i++) usleep(50000);
  assert_true(sn_test_daemon_logged(&small, "at most 3 are allowed"));
  for (int i = 3; i < 8; i++) sn_test_connect(&extra[i], small.endpoint);
  usleep(300000);
  Sinew__V1__Reply *r = sn_test_plan(&c, id, opened->open->initial, 0.05);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  sn_test_done(r);
  sn_test_done(opened);
  for (int i = 0; i < 8; i++) sn_test_disconnect(&extra[i]);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&small, SIGTERM), 0);
  sn_test_daemon_remove(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_short_deadline_beside_long_ones),
      cmocka_unit_test(test_short_deadline_beside_overdue_evaluations),
      cmocka_unit_test(test_no_deadline_beside_busy_ones),
      cmocka_unit_test(test_endless_evaluations),
      cmocka_unit_test(test_equal_deadlines_share),
      cmocka_unit_test(test_newest_state_wins),
      cmocka_unit_test(test_newest_state_wins_over_one_that_waits),
      cmocka_unit_test(test_refused_while_another_plan_is_made),
      cmocka_unit_test(test_client_vanishes),
      cmocka_unit_test(test_client_never_reads),
      cmocka_unit_test(test_limits_on_sessions_and_connections),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
