// Other users of this machine at an ipc address: let in by the setting `users` alone. To be somebody else takes root.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_keys.h"
#include "tests/support/raw_peer.h"

enum { FRIEND = 54321, STRANGER = 54322 };

// Whether a process of another user gets an answer.
static bool answers_to(const SnTestDaemon *d, uid_t user) {
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    unsigned char bytes[256];
    const size_t size = sn_raw_health(1, bytes, sizeof bytes);
    alarm(60);
    if (setgid(user) != 0 || setuid(user) != 0) _exit(3);
    const int fd = sn_raw_connect(d->endpoint, "DEALER", NULL, 0);
    if (fd < 0) _exit(1);
    _exit(sn_raw_frame(fd, 0, bytes, size) && sn_raw_receive(fd, 30, bytes, sizeof bytes) > 0 ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
  return WEXITSTATUS(status) == 0;
}

// Whether one who is let in is: he asks again, for a connection that is not heard soon after others have ended may be
// ended with them.
static bool answers_at_last(const SnTestDaemon *d, uid_t user) {
  for (int i = 0; i < 20; i++)
    if (answers_to(d, user)) return true;
  return false;
}

static void start(SnTestDaemon *d, const char *option) {
  sn_test_daemon_prepare(d);
  assert_int_equal(chmod(d->folder, 0755), 0);
  sn_test_daemon_start(d, (const char *const[]){option, NULL});
}

static void stop(SnTestDaemon *d) {
  assert_int_equal(sn_test_daemon_stop(d, SIGTERM), 0);
  sn_test_daemon_remove(d);
}

static void test_nobody_else(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  struct stat st;
  start(&d, NULL);
  assert_int_equal(stat(d.endpoint + strlen("ipc://"), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
  if (geteuid() == 0) assert_false(answers_to(&d, FRIEND));
  stop(&d);
}

static void test_users(void **state) {
  (void)state;
  enum { TIMES = 100 };
  SnTestDaemon d = {0};
  start(&d, "--users=12345,54321");
  SnTestClient c;
  sn_test_connect(&c, d.endpoint);
  assert_true(sn_test_answers(&c, 10));
  if (geteuid() == 0) {
    const double began = sn_clock_now();
    assert_true(answers_at_last(&d, FRIEND));
    assert_false(answers_to(&d, STRANGER));
    const int files = sn_test_daemon_files(&d);
    for (int i = 0; i < TIMES; i++) assert_false(answers_to(&d, STRANGER));
    assert_in_range(sn_test_daemon_files(&d), 1, files + 1);
    assert_true(answers_at_last(&d, FRIEND));
    assert_true(sn_test_answers(&c, 10));
    for (double until = sn_clock_now() + 60; sn_clock_now() < until && !sn_test_daemon_logged(&d, "user 54322");)
      usleep(10000);
    // one line, and one a minute
    assert_in_range(sn_test_count_logged(&d, "user 54322"), 1, 1 + (int)((sn_clock_now() - began) / 60));
  }
  sn_test_disconnect(&c);
  stop(&d);
}

static void test_bad_lists(void **state) {
  (void)state;
  static const char *const bad[] = {"--users=root", "--users=1,", "--users=,1",
                                    "--users=1 2",  "--users=-1", "--users=4294967295"};
  enum { SHORT = sizeof bad / sizeof *bad, MOST = 64 };
  char many[32 + 5 * MOST] = "--users=1000";
  for (int i = 0; i < MOST; i++) sprintf(many + strlen(many), ",%d", 1001 + i);
  for (size_t i = 0; i <= SHORT; i++) {
    SnTestDaemon d = {0};
    sn_test_daemon_spawn(&d, (const char *const[]){i < SHORT ? bad[i] : many, NULL});
    assert_int_equal(sn_test_daemon_wait(&d), 1);
    assert_true(sn_test_daemon_logged(&d, "numbers of users with commas between"));
    sn_test_daemon_remove(&d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nobody_else),
      cmocka_unit_test(test_users),
      cmocka_unit_test(test_bad_lists),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
