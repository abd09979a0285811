// Connections are files, and files are limited: sinewd takes as many connections as fit, or says that too few do; more
// of them than there are files do not end it.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/harness/raw_peer.h"

static void test_too_few_files(void **state) {
  (void)state;
  static const int files[] = {24, 32, 64, 128};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    SnTestDaemon d = {.files = files[i]};
    char text[64];
    sn_test_daemon_spawn(&d, NULL);
    assert_int_equal(sn_test_daemon_wait(&d), 1);
    snprintf(text, sizeof text, "only %d files may be open", files[i]);
    assert_true(sn_test_daemon_logged(&d, text));
    sn_test_daemon_remove(&d);
  }
}

// Connects without a word, as fast as it goes.
static void connect_many(const char *endpoint, int *fd, int n) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", endpoint + strlen("ipc://"));
  for (int i = 0; i < n; i++) {
    fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd[i] >= 0);
    if (connect(fd[i], (const struct sockaddr *)&address, sizeof address) != 0) usleep(100);
  }
}

static void test_more_connections_than_files(void **state) {
  (void)state;
  enum { FILES = 200, MANY = 400 };
  SnTestDaemon d = {.files = FILES};
  SnTestClient c, fresh;
  int fd[MANY];
  sn_test_daemon_start(&d, NULL);
  assert_true(sn_test_daemon_logged(&d, "instead of 256, since only 200 files may be open"));
  sn_test_connect(&c, d.endpoint);
  assert_true(sn_test_answers(&c, 20));
  const char *const endpoints[] = {d.telemetry, d.endpoint};
  for (int i = 0; i < 2; i++) {
    connect_many(endpoints[i], fd, MANY);
    assert_true(sn_test_answers(&c, 20));
    assert_in_range(sn_test_daemon_files(&d), 1, FILES);
    for (int k = 0; k < MANY; k++) close(fd[k]);
  }
  sn_test_connect(&fresh, d.endpoint);
  assert_true(sn_test_answers(&fresh, 20));
  sn_test_disconnect(&fresh);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

// `connections` is a limit of telemetry as it is one of requests.
static void test_limit_of_connections(void **state) {
  (void)state;
  enum { MOST = 8, MANY = 40 };
  SnTestDaemon d = {0};
  int fd[MANY];
  sn_test_daemon_start(&d, (const char *const[]){"--connections=8", NULL});
  const int before = sn_test_daemon_files(&d);
  connect_many(d.telemetry, fd, MANY);
  int files = MANY + before;
  for (double until = sn_test_now() + 20; files > before + MOST && sn_test_now() < until; usleep(10000))
    files = sn_test_daemon_files(&d);
  assert_in_range(files, before, before + MOST);
  bool logged = false;
  for (double until = sn_test_now() + 20; !logged && sn_test_now() < until; usleep(10000))
    logged = sn_test_daemon_logged(&d, "connections for telemetry; at most 8 are allowed");
  assert_true(logged);
  for (int k = 0; k < MANY; k++) close(fd[k]);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_too_few_files),
      cmocka_unit_test(test_more_connections_than_files),
      cmocka_unit_test(test_limit_of_connections),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
