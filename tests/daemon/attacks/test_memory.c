// Attack: sessions that need as much memory as settings allow, as many as there may be. What they need is computed
// before it is allocated, and one that does not fit is refused with the bytes asked for and allowed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

enum { EACH = 48, ALL = 100, OPENED_MOST = 16 };

static Sinew__V1__PlannerSettings of_starts(uint32_t starts) {
  Sinew__V1__PlannerSettings s = SINEW__V1__PLANNER_SETTINGS__INIT;
  s.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  s.planner = "adam";
  s.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  s.horizon = 1024;
  s.has_adam_starts_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_STARTS_ADAM_STARTS;
  s.adam_starts = starts;
  return s;
}

static Sinew__V1__Reply *open_of(uint32_t starts) {
  Sinew__V1__PlannerSettings settings = of_starts(starts);
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  open.task = "arm_reach";
  open.planner = &settings;
  return sn_test_request(&client, SN_TEST_MESSAGE(open, OPEN, &open));
}

static void close_session(uint64_t session) {
  Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
  close.session = session;
  sn_test_done(SN_TEST_REPLY(close, CLOSE, &close));
}

static uint64_t resident(void) {
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Reply *r = SN_TEST_REPLY(health, HEALTH, &health);
  const uint64_t bytes = r->health->memory_bytes;
  sn_test_done(r);
  return bytes;
}

// One that is too large itself, at the opening and by settings that change while it runs: it goes on as it was.
static void test_one_session(void **state) {
  (void)state;
  sn_test_expect_error(open_of(64), SINEW__V1__ERROR__CODE__LIMIT, "bytes (");
  Sinew__V1__Reply *opened = open_of(1);
  assert_int_equal(opened->body_case, SINEW__V1__REPLY__BODY_OPEN);
  Sinew__V1__PlannerSettings settings = of_starts(64);
  Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  set.session = opened->open->session;
  set.planner = &settings;
  sn_test_expect_error(sn_test_request(&client, SN_TEST_MESSAGE(set_config, SET_CONFIG, &set)),
                       SINEW__V1__ERROR__CODE__LIMIT, "allowed are 50331648 (48.0 MB)");
  Sinew__V1__Reply *r = sn_test_plan(&client, opened->open->session, opened->open->initial, 0.5);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  sn_test_done(r);
  close_session(opened->open->session);
  sn_test_done(opened);
}

// As many as there may be: the last ones are refused, memory stays within the budget while all plan, and one that is
// closed makes room.
static void test_all_sessions(void **state) {
  (void)state;
  uint64_t id[OPENED_MOST];
  int n = 0;
  Sinew__V1__Reply *initial = NULL, *r = NULL;
  const uint64_t before = resident();
  for (; n < OPENED_MOST && (r = open_of(6))->body_case == SINEW__V1__REPLY__BODY_OPEN; n++) {
    id[n] = r->open->session;
    sn_test_done(initial);
    initial = r;
  }
  if (n == 0) fail_msg("%s", r->error->text);
  assert_true(n < OPENED_MOST);
  print_message("%d sessions were opened, then: %s\n", n, r->error->text);
  sn_test_expect_error(r, SINEW__V1__ERROR__CODE__LIMIT, "for all planners");
  for (int i = 0; i < n; i++) sn_test_send_plan(&client, id[i], initial->open->initial, 1);
  for (int i = 0; i < n; i++) sn_test_done(sn_test_receive(&client, 60));
  const double grown = (double)(resident() - before) / (1 << 20);
  print_message("%.1f MB more are resident after a plan of each, %d MB are allowed\n", grown, ALL);
  if (JUDGE_TIME) assert_true(grown < 1.1 * ALL);

  for (int i = 0; i < n; i++) close_session(id[i]);
  r = open_of(6);
  for (int i = 0; i < 200 && r->body_case == SINEW__V1__REPLY__BODY_ERROR; i++) {  // memory is freed a little later
    sn_test_done(r);
    usleep(20000);
    r = open_of(6);
  }
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_OPEN);
  sn_test_done(r);
  sn_test_done(initial);
}

static int setup(void **state) {
  (void)state;
  sn_test_daemon_start(&sinewd, (const char *const[]){"--planner-megabytes=48", "--planners-megabytes=100", NULL});
  sn_test_connect(&client, sinewd.endpoint);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_session), cmocka_unit_test(test_all_sessions)};
  return cmocka_run_group_tests(tests, setup, sn_test_group_teardown);
}
