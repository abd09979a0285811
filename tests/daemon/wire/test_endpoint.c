// Which addresses may be bound, and the lock against a second daemon.
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
#include "daemon/wire/sockets_private.h"

static void test_allowed(void **state) {
  (void)state;
  static const char *const good[] = {"ipc:///run/user/0/sinew/sinewd.sock", "tcp://127.0.0.1:7440",
                                     "tcp://127.8.9.255:1", "tcp://[::1]:65535"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    SnError err = {0};
    if (sn_endpoint_check(good[i], false, &err) != SN_OK) fail_msg("%s: %s", good[i], err.text);
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
      {"tcp://127.0.0.1.5:7440", "reachable from other machines"},
      {"tcp://127.0.0.1.:7440", "reachable from other machines"},
      {"tcp://localhost:7440", "reachable from other machines"},
      {"tcp://[::]:7440", "reachable from other machines"},
      {"tcp://:::7440", "reachable from other machines"},
      {"tcp://::1:7440", "reachable from other machines"},
      {"tcp://[::1%lo]:7440", "reachable from other machines"},
      {"tcp://[::ffff:127.0.0.1]:7440", "reachable from other machines"},
      {"tcp://[::ffff:0.0.0.0]:7440", "reachable from other machines"},
      {"tcp://[fe80::1%eth0]:7440", "reachable from other machines"},
      {"tcp://[0:0:0:0:0:0:0:0]:7440", "reachable from other machines"},
      {"tcp://lo:7440", "reachable from other machines"},
      {"tcp://localhost.localdomain:7440", "reachable from other machines"},
      {"tcp://example.org:7440", "reachable from other machines"},
      {"tcp://0:7440", "reachable from other machines"},
      {"tcp://127.1:7440", "reachable from other machines"},
      {"tcp://2130706433:7440", "reachable from other machines"},
      {"tcp://0x7f.0.0.1:7440", "reachable from other machines"},
      {"tcp://+127.0.0.1:7440", "reachable from other machines"},
      {"tcp:// 127.0.0.1:7440", "reachable from other machines"},
      {"tcp://127.0.0.1;0.0.0.0:7440", "reachable from other machines"},
      {"tcp://127.0.0.1:7440;0.0.0.0:7440", "reachable from other machines"},
      {"tcp://127.0.0.1 0.0.0.0:7440", "reachable from other machines"},
      {"tcp://:7440", "reachable from other machines"},
      {"TCP://127.0.0.1:7440", "no address"},
      {"ws://127.0.0.1:7440", "no address"},
      {"tipc://{1,2,3}", "no address"},
      {"vmci://*:1", "no address"},
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
    assert_int_equal(sn_endpoint_check(bad[i][0], false, &err), SN_ERR_ARGUMENT);
    if (!strstr(err.text, bad[i][1])) fail_msg("%s: '%s' does not say '%s'", bad[i][0], err.text, bad[i][1]);
  }
}

// With keys any tcp address is allowed; the rest is as without.
static void test_with_keys(void **state) {
  (void)state;
  static const char *const good[] = {"tcp://0.0.0.0:7440", "tcp://*:7440", "tcp://eth0:7440", "tcp://[::]:7440",
                                     "tcp://127.0.0.1:1"};
  static const char *const bad[] = {"tcp://:7440", "tcp://eth0:0", "udp://eth0:7440", "ipc://relative.sock"};
  SnError err = {0};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (sn_endpoint_check(good[i], true, &err) != SN_OK) fail_msg("%s: %s", good[i], err.text);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (sn_endpoint_check(bad[i], true, &err) == SN_OK) fail_msg("%s is allowed", bad[i]);
}

// A socket lies where nobody else can put another one in its place.
static void test_folder_of_a_socket(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-folder-XXXXXX", address[64];
  SnError err = {0};
  assert_non_null(mkdtemp(folder));
  snprintf(address, sizeof address, "ipc://%s/x.sock", folder);
  static const struct {
    mode_t mode;
    bool good;
  } modes[] = {{0700, true}, {0755, true}, {01777, true}, {0770, false}, {0777, false}, {0722, false}};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    assert_int_equal(chmod(folder, modes[i].mode), 0);
    const SnCode code = sn_endpoint_check(address, false, &err);
    assert_int_equal(code, modes[i].good ? SN_OK : SN_ERR_STATE);
    if (!modes[i].good) assert_non_null(strstr(err.text, "other users can write its folder"));
  }
  if (geteuid() == 0) {  // only root can give a folder away
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(chown(folder, 12345, 12345), 0);
    assert_int_equal(sn_endpoint_check(address, false, &err), SN_ERR_STATE);
  }
  assert_int_equal(rmdir(folder), 0);
}

static void test_path_length(void **state) {
  (void)state;
  char address[6 + SN_IPC_PATH_MAX + 2] = "ipc:///";
  SnError err = {0};
  memset(address + 7, 'a', SN_IPC_PATH_MAX - 1);
  assert_int_equal(sn_endpoint_check(address, false, &err), SN_OK);
  address[6 + SN_IPC_PATH_MAX] = 'a';
  assert_int_equal(sn_endpoint_check(address, false, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "108 bytes"));
}

// No two of the addresses may be the same; the second one of requests is of tcp.
static void test_addresses(void **state) {
  (void)state;
  static const char *const cases[][5] = {
      {"ipc:///a", "", "ipc:///t", "ipc:///r", NULL},
      {"ipc:///a", "tcp://127.0.0.1:7440", "", "", NULL},
      {"ipc:///a", "", "ipc:///a", "ipc:///r", "telemetry and requests need different addresses"},
      {"ipc:///a", "", "ipc:///t", "ipc:///a", "records and requests need different addresses"},
      {"ipc:///a", "", "ipc:///t", "ipc:///t", "telemetry and records need different addresses"},
      {"ipc:///a", "tcp://127.0.0.1:7440", "tcp://127.0.0.1:7440", "", "telemetry and requests need"},
      {"ipc:///a", "tcp://127.0.0.1:7440", "", "tcp://127.0.0.1:7440", "records and requests need"},
      {"ipc:///a", "ipc:///b", "", "", "it must begin with tcp://"},
      {"ipc:///a", "", "tcp://*:7441", "", "reachable from other machines"},
      {"ipc:///a", "", "", "tcp://*:7442", "reachable from other machines"},
      {"tcp://*:7440", "", "", "", "reachable from other machines"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    static SnConfig config;
    SnError err = {0};
    snprintf(config.endpoint, sizeof config.endpoint, "%s", cases[i][0]);
    snprintf(config.tcp, sizeof config.tcp, "%s", cases[i][1]);
    snprintf(config.telemetry, sizeof config.telemetry, "%s", cases[i][2]);
    snprintf(config.records, sizeof config.records, "%s", cases[i][3]);
    const SnCode code = sn_sockets_check(&config, &err);
    if (!cases[i][4] && code != SN_OK) fail_msg("%s", err.text);
    if (cases[i][4] && (code != SN_ERR_ARGUMENT || !strstr(err.text, cases[i][4])))
      fail_msg("'%s' does not say '%s'", err.text, cases[i][4]);
  }
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_allowed),     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_with_keys),   cmocka_unit_test(test_folder_of_a_socket),
                                     cmocka_unit_test(test_path_length), cmocka_unit_test(test_addresses),
                                     cmocka_unit_test(test_lock)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
