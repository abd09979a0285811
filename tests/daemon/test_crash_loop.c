// A kept session that ends the daemon while it is restored, or by the first plan after that, does not do so at each
// start: after three such ends in a row it is moved aside. Others are restored all the same, and neither kills nor an
// orderly end count against them.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_keys.h"
#include "tests/support/daemon_kept.h"

enum { GOOD = 4 };

static SnTestDaemon d;
static SnTestClient c;
static uint64_t good[GOOD], bad;
static Sinew__V1__Reply *initial;  // of an opening: all have the same state

static bool there(uint64_t session, const char *folder, const char *ending) {
  char path[256];
  struct stat st;
  snprintf(path, sizeof path, "%s/state/%s%llu.%s", d.folder, folder, (unsigned long long)session, ending);
  return lstat(path, &st) == 0;
}

static uint64_t open_named(char *task, char *name) {
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = task;
  in.name = name;
  Sinew__V1__Reply *reply = sn_test_expect_kept(&c, SN_TEST_MESSAGE(open, OPEN, &in), SINEW__V1__REPLY__BODY_OPEN);
  const uint64_t session = reply->open->session;
  sn_test_done(sn_test_plan(&c, session, reply->open->initial, 0.05));
  sn_test_done(initial);
  initial = reply;
  sn_test_kept_tune(&c, session, 3);
  return session;
}

// A daemon with sessions of which one has a task of its own, which is then stopped.
static int setup(void **state) {
  (void)state;
  static char text[20000];
  FILE *f = fopen(SN_TEST_SOURCE_DIR "/../planner/tasks/arm_reach.yaml", "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  d = (SnTestDaemon){0};
  sn_test_daemon_prepare(&d);
  sn_test_daemon_write(&d, "tasks/poison.yaml", text);
  sn_test_kept_start(&d, &c, NULL);
  for (int i = 0; i < GOOD; i++) {
    char name[] = "good 0";
    name[5] = (char)('0' + i);
    good[i] = open_named("arm_reach", name);
    if (i == 1) bad = open_named("poison", "bad");
  }
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  return sn_test_end(&d, &c);
}

static void expect_good(void) {
  uint64_t version;
  for (int i = 0; i < GOOD; i++) {
    assert_true(sn_test_kept_weight(&c, good[i], &version) == 3);
    assert_int_equal(version, 2);
  }
}

static void poison(bool on) {
  if (on) {
    setenv("SN_TEST_CRASH", "poison.yaml", 1);
    setenv("SN_TEST_SLOW", "arm_reach.yaml", 1);  // so that another one is being restored at that moment
    setenv("LD_PRELOAD", SN_TEST_CRASH_LIBRARY, 1);
  } else {
    unsetenv("SN_TEST_CRASH");
    unsetenv("SN_TEST_SLOW");
    unsetenv("LD_PRELOAD");
  }
}

// Starts a daemon that ends by the session.
static void crash(void) {
  char folder[128];
  const char *const args[] = {folder, NULL};
  snprintf(folder, sizeof folder, "--state=%s/state", d.folder);
  poison(true);
  sn_test_daemon_spawn(&d, args);
  poison(false);
  assert_int_equal(sn_test_daemon_wait(&d), -1);
  assert_true(there(bad, "", "session"));
}

// Starts a daemon that crashes when it plans, and asks for a plan.
static void crash_by_a_plan(uint64_t session) {
  setenv("SN_TEST_CRASH_THREAD", "planner", 1);
  setenv("LD_PRELOAD", SN_TEST_CRASH_LIBRARY, 1);
  sn_test_kept_start(&d, NULL, NULL);
  unsetenv("SN_TEST_CRASH_THREAD");
  unsetenv("LD_PRELOAD");
  uint64_t version;
  sn_test_kept_weight(&c, session, &version);  // it is restored
  for (int i = 0; i < GOOD; i++) sn_test_kept_weight(&c, good[i], &version);
  assert_false(there(session, "", "restoring"));
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  in.session = session;
  in.state = initial->open->initial;
  in.deadline = 1;
  sn_test_send(&c, SN_TEST_MESSAGE(plan, PLAN, &in));
  assert_int_equal(sn_test_daemon_wait(&d), -1);
}

static void expect_no_marks(void) {
  assert_false(there(bad, "", "restoring"));
  for (int i = 0; i < GOOD; i++) assert_false(there(good[i], "", "restoring"));
}

static void test_moved_aside(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) crash();
  assert_true(sn_test_daemon_logged(&d, "goes on without its warm start: 2 sinewds ended while they restored it"));
  assert_true(there(bad, "", "restoring"));
  poison(true);
  sn_test_kept_start(&d, NULL, NULL);
  poison(false);
  expect_good();
  assert_true(sn_test_daemon_logged(&d, "3 sinewds in a row ended while they restored it"));
  assert_true(there(bad, "refused/", "session"));
  assert_true(there(bad, "refused/", "warm"));
  for (int i = 0; i < GOOD; i++) assert_true(there(good[i], "", "session"));
  expect_no_marks();
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  in.session = bad;
  sn_test_expect_error(sn_test_ask_kept(&c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &in)),
                       SINEW__V1__ERROR__CODE__NOT_FOUND, "it could not be restored after a restart of the daemon");
  assert_true(open_named("arm_reach", "bad") != bad);  // its name is free
}

// Fewer ends than that cost nothing, or the warm start.
static void test_not_its_fault(void **state) {
  (void)state;
  uint64_t version;
  for (int i = 0; i < 2; i++) crash();
  sn_test_kept_start(&d, NULL, NULL);
  expect_good();
  assert_true(sn_test_kept_weight(&c, bad, &version) == 3);
  expect_no_marks();
  assert_false(sn_test_daemon_logged(&d, "keep-refused"));
  // They do not count any more.
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  for (int i = 0; i < 2; i++) crash();
  sn_test_kept_start(&d, NULL, NULL);
  assert_true(sn_test_kept_weight(&c, bad, &version) == 3);
}

// Three that crash by the first plan after it was restored; a plan that is answered begins the count anew.
static void test_first_plan(void **state) {
  (void)state;
  uint64_t version;
  for (int i = 0; i < 2; i++) crash_by_a_plan(bad);
  assert_true(there(bad, "", "session") && !sn_test_daemon_logged(&d, "keep-refused"));
  sn_test_kept_start(&d, NULL, NULL);
  expect_good();
  assert_true(sn_test_kept_weight(&c, bad, &version) == 3);
  assert_true(sn_test_daemon_logged(&d, "2 sinewds ended while they restored it or made its first plan"));
  sn_test_done(sn_test_plan(&c, bad, initial->open->initial, 0.05));
  expect_no_marks();
  // The count begins anew.
  kill(d.pid, SIGKILL);
  assert_int_equal(sn_test_daemon_wait(&d), -1);
  for (int i = 0; i < 3; i++) crash_by_a_plan(bad);
  sn_test_kept_start(&d, NULL, NULL);
  expect_good();
  assert_true(there(bad, "refused/", "session"));
  for (int i = 0; i < GOOD; i++) assert_true(there(good[i], "", "session"));
  char path[128];
  snprintf(path, sizeof path, "%s/state/crashed", d.folder);
  assert_int_not_equal(access(path, F_OK), 0);
}

// A daemon that is told to stop while it restores leaves all as it was.
static void test_stopped_meanwhile(void **state) {
  (void)state;
  char folder[128], command[128];
  const char *const args[] = {folder, NULL};
  snprintf(folder, sizeof folder, "--state=%s/state", d.folder);
  snprintf(command, sizeof command, "rm -rf %s/cache/*", d.folder);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(system(command), 0);  // so that it has to import
    sn_test_daemon_spawn(&d, args);
    for (int k = 0; k < 1000 && sn_test_count_logged(&d, "event=ready ") < 2 + i; k++) usleep(5000);
    usleep(20000 * (unsigned)i);
    assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
    expect_no_marks();
  }
  sn_test_kept_start(&d, NULL, NULL);
  expect_good();
  assert_false(sn_test_daemon_logged(&d, "keep-refused"));
}

// Each restart is counted, although the disk is slow and the daemon is killed as soon as the session has answered.
static void test_counted(void **state) {
  (void)state;
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  in.session = good[0];
  in.state = initial->open->initial;
  in.deadline = 1;
  setenv("SN_TEST_SLOW_DISK", "1", 1);
  setenv("LD_PRELOAD", SN_TEST_CRASH_LIBRARY, 1);
  for (uint64_t k = 1; k <= 3; k++) {
    sn_test_kept_restart(&d, SIGKILL, NULL);
    Sinew__V1__Reply *plan = sn_test_expect_kept(&c, SN_TEST_MESSAGE(plan, PLAN, &in), SINEW__V1__REPLY__BODY_PLAN);
    assert_int_equal(plan->plan->restarts, k);
    sn_test_done(plan);
  }
  unsetenv("SN_TEST_SLOW_DISK");
  unsetenv("LD_PRELOAD");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_moved_aside, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_not_its_fault, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_first_plan, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_counted, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_stopped_meanwhile, setup, teardown)};
  const struct CMUnitTest without_crashes[] = {
      cmocka_unit_test_setup_teardown(test_stopped_meanwhile, setup, teardown)};
  if (SN_SLOW) print_message("skipped: crashes; sanitizers want to be the first library\n");
  return SN_SLOW ? cmocka_run_group_tests(without_crashes, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
