// sinewd as a black box: daemons that start or refuse to, where they listen, what they tell systemd, how they stop.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_keys.h"

static void test_second_daemon_is_refused(void **state) {
  (void)state;
  SnTestDaemon second = sinewd;
  snprintf(second.log, sizeof second.log, "%s/second", sinewd.folder);
  sn_test_daemon_spawn(&second, NULL);
  assert_int_equal(sn_test_daemon_wait(&second), 1);
  char word[64];
  snprintf(word, sizeof word, "process %d serves", (int)sinewd.pid);
  assert_true(sn_test_daemon_logged(&second, word));
  Sinew__V1__Reply *opened;
  uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  sn_test_done(sn_test_plan(&client, id, opened->open->initial, 0.02));
  sn_test_done(opened);
}

static void expect_no_start(const char *option, const char *word) {
  SnTestDaemon d = {0};
  sn_test_daemon_spawn(&d, (const char *const[]){option, NULL});
  assert_int_equal(sn_test_daemon_wait(&d), 1);
  if (!sn_test_daemon_logged(&d, word)) fail_msg("%s: the log does not say '%s'", option, word);
  sn_test_daemon_remove(&d);
}

static void test_bad_starts(void **state) {
  (void)state;
  expect_no_start("--tcp=tcp://0.0.0.0:7440", "reachable from other machines");
  expect_no_start("--endpoint=tcp://192.168.0.1:7440", "reachable from other machines");
  expect_no_start("--telemetry=tcp://*:7441", "reachable from other machines");
  expect_no_start("--records=tcp://*:7442", "reachable from other machines");
  expect_no_start("--endpoint=udp://127.0.0.1:1", "no address");
  expect_no_start("--sessions=0", "sessions is '0'");
  expect_no_start("--config=/nonexistent.yaml", "/nonexistent.yaml");
  expect_no_start("--importer=/nonexistent", "/nonexistent");
  expect_no_start("--importer=/", "the program / cannot be run: Permission denied");
}

static void test_tcp_on_the_loopback(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  char option[96], address[64];
  snprintf(address, sizeof address, "tcp://127.0.0.1:%d", sn_test_free_port());
  snprintf(option, sizeof option, "--tcp=%s", address);
  sn_test_daemon_start(&d, (const char *const[]){option, NULL});
  SnTestClient c;
  sn_test_connect(&c, address);
  Sinew__V1__Reply *opened;
  uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  sn_test_done(sn_test_plan(&c, id, opened->open->initial, 0.02));
  sn_test_done(opened);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGINT), 0);
  sn_test_daemon_remove(&d);
}

// SIGTERM in the middle of a long plan: it is answered at once, with what has been found so far; the daemon ends well
// and leaves nothing behind.
static void test_stop_while_planning(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  char path[160];
  sn_test_daemon_start(&d, NULL);
  SnTestClient c;
  sn_test_connect(&c, d.endpoint);
  Sinew__V1__Reply *opened;
  uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  sn_test_send_plan(&c, id, opened->open->initial, 3600);
  assert_true(sn_test_await_planning(&c, id, 60));
  usleep(500000);  // and has found something
  double began = sn_clock_now();
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  print_message("stopped after %.0f ms\n", 1e3 * (sn_clock_now() - began));
  Sinew__V1__Reply *r = sn_test_receive(&c, 30);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  assert_int_equal(r->plan->status, SINEW__V1__PLAN__STATUS__OK);
  sn_test_done(r);
  sn_test_done(opened);
  sn_test_disconnect(&c);
  static const char *const left[] = {
      "socket", "socket.lock", "socket.telemetry", "socket.telemetry.lock", "socket.records", "socket.records.lock"};
  for (int i = 0; i < 6; i++) {
    snprintf(path, sizeof path, "%s/%s", d.folder, left[i]);
    assert_int_not_equal(access(path, F_OK), 0);
  }
  sn_test_daemon_remove(&d);
}

// A model whose import hangs: others load and plan meanwhile, and the daemon does not wait for it when it is told to
// stop.
static void test_hanging_import(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  char path[128], option[160];
  SnTestClient hanging, other;
  sn_test_daemon_prepare(&d);
  snprintf(path, sizeof path, "%s/models/hang.xml", d.folder);
  close(open(path, O_CREAT | O_WRONLY, 0600));
  snprintf(path, sizeof path, "%s/importer", d.folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\ncase \"$*\" in *hang.xml*) : >%s/hangs; exec sleep 1000;; esac\nexec %s/sinew-import \"$@\"\n",
          d.folder, sn_test_binary_folder());
  fclose(f);
  chmod(path, 0700);
  snprintf(option, sizeof option, "--importer=%s", path);
  sn_test_daemon_start(&d, (const char *const[]){option, NULL});
  sn_test_connect(&hanging, d.endpoint);
  sn_test_connect(&other, d.endpoint);
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  load.model = "hang";
  request.body_case = SINEW__V1__REQUEST__BODY_LOAD_MODEL;
  request.load_model = &load;
  sn_test_send(&hanging, &request);
  Sinew__V1__Reply *opened;
  uint64_t id = sn_test_open(&other, "arm_reach", 1, &opened);
  sn_test_done(sn_test_plan(&other, id, opened->open->initial, 0.05));
  sn_test_done(opened);
  snprintf(path, sizeof path, "%s/hangs", d.folder);
  for (int i = 0; i < 6000 && access(path, F_OK) != 0; i++) usleep(10000);
  assert_int_equal(access(path, F_OK), 0);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_expect_error(sn_test_receive(&hanging, 30), SINEW__V1__ERROR__CODE__SHUTTING_DOWN, "cancelled");
  sn_test_disconnect(&hanging);
  sn_test_disconnect(&other);
  sn_test_daemon_remove(&d);
}

// A body that takes long to settle, minutes here: the daemon does not wait for it when it is told to stop.
static void test_settling_body(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  SnTestClient c;
  sn_test_daemon_prepare(&d);
  sn_test_daemon_write(&d, "tasks/slow.yaml",
                       "model: gripper.xml\noptions: {timestep: 0.00001}\ninitial: {settle: 60}\n"
                       "terms: [{name: effort, residual: {control: all}}]\n");
  sn_test_daemon_start(&d, NULL);
  sn_test_connect(&c, d.endpoint);
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  load.model = "gripper";
  request.body_case = SINEW__V1__REQUEST__BODY_LOAD_MODEL;
  request.load_model = &load;
  sn_test_done(sn_test_request(&c, &request));
  open.task = "slow";
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  sn_test_send(&c, &request);
  assert_null(sn_test_receive(&c, 0.5));
  const double began = sn_clock_now();
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  assert_true(sn_clock_now() - began < 10);
  sn_test_expect_error(sn_test_receive(&c, 30), SINEW__V1__ERROR__CODE__SHUTTING_DOWN, "has not settled");
  sn_test_disconnect(&c);
  sn_test_daemon_remove(&d);
}

// What systemd is told.
static void test_notifications(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  char path[108], text[256];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  sn_test_daemon_prepare(&d);
  snprintf(path, sizeof path, "%s/notify", d.folder);
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
  struct timeval patience = {20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setenv("NOTIFY_SOCKET", path, 1);
  setenv("WATCHDOG_USEC", "200000", 1);
  sn_test_daemon_spawn(&d, NULL);
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  static const char *const expected[] = {"READY=1\nSTATUS=ready", "WATCHDOG=1", "WATCHDOG=1"};
  for (int i = 0; i < 3; i++) {
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    assert_string_equal(text, expected[i]);
  }
  kill(d.pid, SIGTERM);
  do {
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
  } while (!strcmp(text, "WATCHDOG=1"));
  assert_string_equal(text, "STOPPING=1");
  assert_int_equal(sn_test_daemon_wait(&d), 0);
  close(fd);
  sn_test_daemon_remove(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_second_daemon_is_refused),
      cmocka_unit_test(test_bad_starts),
      cmocka_unit_test(test_tcp_on_the_loopback),
      cmocka_unit_test(test_stop_while_planning),
      cmocka_unit_test(test_hanging_import),
      cmocka_unit_test(test_settling_body),
      cmocka_unit_test(test_notifications),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
