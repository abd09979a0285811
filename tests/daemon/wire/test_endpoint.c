// Which addresses may be bound, and the lock against a second daemon.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/wire/endpoint_private.h"

static void test_allowed(void **state) {
  (void)state;
  static const char *const good[] = {"ipc:///run/user/0/sinew/sinewd.sock", "tcp://127.0.0.1:7440",
                                     "tcp://127.8.9.255:1", "tcp://[::1]:65535"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    SnError err = {0};
    if (sn_endpoint_check(good[i], &err) != SN_OK) fail_msg("%s: %s", good[i], err.text);
  }
}

static void test_refused(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"tcp://0.0.0.0:7440", "reachable from other machines"},
      {"tcp://*:7440", "reachable from other machines"},
      {"tcp://192.168.1.2:7440", "reachable from other machines"},
      {"tcp://eth0:7440", "reachable from other machines"},
      {"tcp://127.0.0.1.evil.org:7440", "reachable from other machines"},
      {"tcp://127.0.0.256:7440", "reachable from other machines"},
      {"tcp://localhost:7440", "reachable from other machines"},
      {"tcp://[::]:7440", "reachable from other machines"},
      {"tcp://127.0.0.1:0", "port"},
      {"tcp://127.0.0.1:*", "port"},
      {"tcp://127.0.0.1:65536", "port"},
      {"tcp://127.0.0.1:80x", "port"},
      {"tcp://127.0.0.1", "port"},
      {"ipc://relative.sock", "absolute path"},
      {"ipc://*", "absolute path"},
      {"ipc://@abstract", "absolute path"},
      {"pgm://eth0;239.192.1.1:3055", "no address"},
      {"inproc://x", "no address"},
      {"udp://127.0.0.1:5", "no address"},
      {"", "no address"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    SnError err = {0};
    assert_int_equal(sn_endpoint_check(bad[i][0], &err), SN_ERR_ARGUMENT);
    if (!strstr(err.text, bad[i][1])) fail_msg("%s: '%s' does not say '%s'", bad[i][0], err.text, bad[i][1]);
  }
}

static void test_path_length(void **state) {
  (void)state;
  char address[6 + SN_IPC_PATH_MAX + 2] = "ipc:///";
  SnError err = {0};
  memset(address + 7, 'a', SN_IPC_PATH_MAX - 1);
  assert_int_equal(sn_endpoint_check(address, &err), SN_OK);
  address[6 + SN_IPC_PATH_MAX] = 'a';
  assert_int_equal(sn_endpoint_check(address, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "108 bytes"));
}

static void test_lock(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-test-XXXXXX", address[64], path[64], mine[32];
  SnError err = {0};
  int first, second;
  assert_non_null(mkdtemp(folder));
  snprintf(address, sizeof address, "ipc://%s/s", folder);
  assert_int_equal(sn_endpoint_lock(address, &first, &err), SN_OK);
  assert_int_equal(sn_endpoint_lock(address, &second, &err), SN_ERR_STATE);
  assert_int_equal(second, -1);
  snprintf(mine, sizeof mine, "process %ld", (long)getpid());
  assert_non_null(strstr(err.text, mine));
  sn_endpoint_unlock(address, first);
  snprintf(path, sizeof path, "%s/s.lock", folder);
  assert_int_not_equal(access(path, F_OK), 0);

  // A lock file that a dead daemon has left is no obstacle.
  close(open(path, O_CREAT | O_WRONLY, 0600));
  assert_int_equal(sn_endpoint_lock(address, &first, &err), SN_OK);
  sn_endpoint_unlock(address, first);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_allowed), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_path_length), cmocka_unit_test(test_lock)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
