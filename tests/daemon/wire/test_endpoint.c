// Which addresses may be bound, the runtime folder, and the lock against a second daemon.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static void test_runtime_folder(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-test-XXXXXX", path[128], expected[64];
  SnError err = {0};
  struct stat st;
  assert_non_null(mkdtemp(folder));
  setenv("XDG_RUNTIME_DIR", folder, 1);
  assert_int_equal(sn_runtime_folder(path, sizeof path, &err), SN_OK);
  snprintf(expected, sizeof expected, "%s/sinew", folder);
  assert_string_equal(path, expected);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);

  chmod(path, 0755);
  assert_int_equal(sn_runtime_folder(path, sizeof path, &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "open to other users"));
  rmdir(path);
  assert_int_equal(symlink("/tmp", path), 0);
  assert_int_equal(sn_runtime_folder(path, sizeof path, &err), SN_ERR_STATE);
  unlink(path);
  rmdir(folder);

  unsetenv("XDG_RUNTIME_DIR");
  snprintf(expected, sizeof expected, "/tmp/sinew-%lu", (unsigned long)getuid());
  assert_int_equal(sn_runtime_folder(path, sizeof path, &err), SN_OK);
  assert_string_equal(path, expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_allowed), cmocka_unit_test(test_refused),        cmocka_unit_test(test_path_length),
      cmocka_unit_test(test_lock),    cmocka_unit_test(test_runtime_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
