// Attack: states that come long after the one before, with as many rows of applied controls as a message holds, again
// and again. A neighbour whose plans have 20 ms must not notice. That such a state pauses within a slice is counted in
// tests/planner/test_planner_state.c.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

// So many rows of six controls and their times fill a message of 4 MiB, the most that is allowed by default.
enum { CONTROLS = 6, ROWS = JUDGE_TIME ? 74000 : 7400, ROUNDS = 3, PLANS_A_ROUND = 40, PLANS = ROUNDS * PLANS_A_ROUND };

typedef struct Attacker {
  SnTestClient client;
  uint64_t session;
  Sinew__V1__Reply *opened;
  Sinew__V1__Controls rows;
  atomic_bool stop;
  int planned;
  double beginning;  // longest time that a plan took to begin [s]
} Attacker;

static void open_attacker(Attacker *a) {
  *a = (Attacker){.rows = SINEW__V1__CONTROLS__INIT};
  sn_test_connect(&a->client, sinewd.endpoint);
  a->session = sn_test_open(&a->client, "arm_reach", 1, &a->opened);
  a->opened->open->initial->n_act = 0;
  a->rows.n_time = ROWS;
  a->rows.n_ctrl = ROWS * CONTROLS;
  a->rows.time = calloc(a->rows.n_time, sizeof *a->rows.time);
  a->rows.ctrl = calloc(a->rows.n_ctrl, sizeof *a->rows.ctrl);
  assert_true(a->rows.time && a->rows.ctrl);
}

static void close_attacker(Attacker *a) {
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = a->session;
  sn_test_done(sn_test_request(&a->client, SN_TEST_MESSAGE(close, CLOSE, &in)));
  sn_test_done(a->opened);
  free(a->rows.time);
  free(a->rows.ctrl);
  sn_test_disconnect(&a->client);
}

// A plan by so many rows, for a state 2 s after the one before.
static Sinew__V1__Reply *plan_with_rows(Attacker *a, size_t rows) {
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  const double gap = 2, before = a->opened->open->initial->time;
  a->rows.n_time = rows;
  a->rows.n_ctrl = rows * CONTROLS;
  for (size_t i = 0; i < rows; i++) a->rows.time[i] = before + gap * (double)i / (double)rows;
  in.session = a->session;
  in.state = a->opened->open->initial;
  in.state->time += gap;
  in.applied = &a->rows;
  in.deadline = JUDGE_TIME ? 0.02 : 5;
  return sn_test_request(&a->client, SN_TEST_MESSAGE(plan, PLAN, &in));
}

static void note_beginning(Attacker *a) {
  Sinew__V1__TraceRequest in = SINEW__V1__TRACE_REQUEST__INIT;
  in.session = a->session;
  Sinew__V1__Reply *r = sn_test_request(&a->client, SN_TEST_MESSAGE(trace, TRACE, &in));
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_TRACE);
  for (size_t i = 0; i < r->trace->n_traces; i++) {
    const double took = r->trace->traces[i]->began - r->trace->traces[i]->turn;
    if (took > a->beginning) a->beginning = took;
  }
  sn_test_done(r);
}

// Such plans are made.
static void test_planned(void **state) {
  (void)state;
  Attacker a;
  open_attacker(&a);
  for (int i = 0; i < 5; i++) {
    Sinew__V1__Reply *r = plan_with_rows(&a, ROWS);
    if (r->body_case != SINEW__V1__REPLY__BODY_PLAN) fail_msg("%s", r->error->text);
    assert_true(r->plan->act_estimated && r->plan->n_ctrl > 0);
    sn_test_done(r);
  }
  note_beginning(&a);
  print_message("%d rows of applied controls: a plan began within %.2f ms\n", ROWS, 1e3 * a.beginning);
  close_attacker(&a);
}

static void *attack(void *argument) {
  Attacker *a = argument;
  for (; !atomic_load(&a->stop); a->planned++) sn_test_done(plan_with_rows(a, ROWS));
  return NULL;
}

// Plans by 20 ms, one after the other: how long each took.
static void measure(uint64_t session, Sinew__V1__State *x, double *took, int *n) {
  for (int i = 0; i < PLANS_A_ROUND; i++) {
    const double begin = sn_clock_now();
    Sinew__V1__Reply *r = sn_test_plan(&client, session, x, 0.02);
    took[(*n)++] = sn_clock_now() - begin;
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    sn_test_done(r);
  }
}

static bool neighbour_is_unhurt(void *unused) {
  (void)unused;
  Attacker a;
  pthread_t thread;
  Sinew__V1__Reply *opened;
  double alone[PLANS], beside[PLANS];
  int nalone = 0, nbeside = 0, planned = 0;
  const uint64_t session = sn_test_open(&client, "arm_reach", 2, &opened);
  open_attacker(&a);
  for (int i = 0; i < ROUNDS; i++) {
    measure(session, opened->open->initial, alone, &nalone);
    atomic_store(&a.stop, false);
    assert_int_equal(pthread_create(&thread, NULL, attack, &a), 0);
    measure(session, opened->open->initial, beside, &nbeside);
    atomic_store(&a.stop, true);
    pthread_join(thread, NULL);
  }
  planned = a.planned;
  close_attacker(&a);
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = session;
  sn_test_done(SN_TEST_REPLY(close, CLOSE, &in));
  sn_test_done(opened);
  qsort(alone, PLANS, sizeof *alone, sn_test_compare_doubles);
  qsort(beside, PLANS, sizeof *beside, sn_test_compare_doubles);
  print_message(
      "a neighbour's 20 ms beside %d plans of %d rows, over what it takes alone: p50 %.2f, p90 %.2f, p99 %.2f\n",
      planned, ROWS, beside[PLANS / 2] / alone[PLANS / 2], beside[PLANS * 9 / 10] / alone[PLANS * 9 / 10],
      beside[PLANS * 99 / 100] / alone[PLANS * 99 / 100]);
  assert_true(planned > 0);
  return beside[PLANS / 2] < 2 * alone[PLANS / 2];
}

static void test_neighbour(void **state) {
  (void)state;
  sn_test_judge(neighbour_is_unhurt, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_planned), cmocka_unit_test(test_neighbour)};
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
