// Attacks on files: what lies where a file is expected, what is deleted, what cannot be written, what a kill leaves.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

// Opens a session and closes its client.
static void serves(void) {
  SnTestClient c;
  sn_test_connect(&c, sinewd.endpoint);
  sn_test_open(&c, "arm_reach", 1, NULL);
  sn_test_disconnect(&c);
}

static void unload(const char *model) {
  Sinew__V1__UnloadModelRequest in = SINEW__V1__UNLOAD_MODEL_REQUEST__INIT;
  in.model = (char *)(uintptr_t)model;
  sn_test_done(sn_test_request(&client, SN_TEST_MESSAGE(unload_model, UNLOAD_MODEL, &in)));
}

static Sinew__V1__Reply *load(const char *model) {
  Sinew__V1__LoadModelRequest in = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  in.model = (char *)(uintptr_t)model;
  return sn_test_request(&client, SN_TEST_MESSAGE(load_model, LOAD_MODEL, &in));
}

static void expect_loaded(const char *model) {
  Sinew__V1__Reply *r = load(model);
  if (r->body_case != SINEW__V1__REPLY__BODY_LOAD_MODEL) fail_msg("%s", r->error->text);
  sn_test_done(r);
  unload(model);
}

// Runs a command of the shell on the daemon's folder, $1; returns its output, a line.
static const char *run(const char *command) {
  static char line[400];
  char text[900];
  snprintf(text, sizeof text, "set -- '%s'; %s", sinewd.folder, command);
  FILE *f = popen(text, "r");
  assert_non_null(f);
  if (!fgets(line, sizeof line, f)) *line = '\0';
  pclose(f);
  line[strcspn(line, "\n")] = '\0';
  return line;
}

// Named pipes in the place of the entries of the cache: they are not waited for, the model is imported again.
static void test_pipes_in_the_cache(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    static const char *const ending[] = {"sinew", "files"};
    char command[200];
    expect_loaded("cart_pole");
    snprintf(command, sizeof command, "for f in $1/cache/*.%s; do rm $f; mkfifo $f; done; ls $1/cache | wc -l",
             ending[i]);
    assert_true(atoi(run(command)) >= 2);
    expect_loaded("cart_pole");
  }
}

// The socket is deleted: clients that are connected go on, new ones are served after it has been made again.
static void test_deleted_sockets(void **state) {
  (void)state;
  const double began = sn_clock_now();
  run("rm $1/socket $1/socket.telemetry $1/socket.records");
  sn_test_done(sn_test_statistics(&client, 0));
  for (int i = 0; i < 400 && atoi(run("ls $1/socket $1/socket.telemetry $1/socket.records 2>/dev/null | wc -l")) < 3;
       i++)
    usleep(20000);
  print_message("three sockets that were deleted were there again after %.2f s\n", sn_clock_now() - began);
  serves();
  sn_test_done(sn_test_statistics(&client, 0));
  assert_true(sn_test_daemon_logged(&sinewd, "socket-lost"));
  assert_string_equal(run("stat -c %a $1/socket"), "700");
}

// A cache that cannot be written any more costs time and nothing else.
static void test_cache_that_cannot_be_written(void **state) {
  (void)state;
  run("mv $1/cache $1/kept; touch $1/cache");  // also for root, whom no mode of a folder keeps out
  expect_loaded("billiard");
  run("rm $1/cache; mv $1/kept $1/cache");
  expect_loaded("billiard");
  assert_string_equal(run("ls -d ${TMPDIR:-/tmp}/sinew-import.* 2>/dev/null"), "");
}

// A daemon that is killed while it imports leaves no importer behind, and the next one removes what it has written.
static void test_killed_while_importing(void **state) {
  (void)state;
  SnTestDaemon killed = {0};
  SnTestClient c;
  char option[200], path[160];
  sn_test_daemon_prepare(&killed);
  snprintf(path, sizeof path, "%s/importer", killed.folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  // The importer waits for somebody to write into a pipe.
  fprintf(f,
          "#!/bin/sh\nmkfifo %s/pipe\necho $$ > %s/importer.pid\nexec %s/sinew-import --folder /tmp "
          "%s/pipe\n",
          killed.folder, killed.folder, sn_test_binary_folder(), killed.folder);
  fclose(f);
  chmod(path, 0700);
  snprintf(option, sizeof option, "--importer=%s", path);
  sn_test_daemon_start(&killed, (const char *const[]){option, NULL});
  sn_test_connect(&c, killed.endpoint);
  Sinew__V1__LoadModelRequest in = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  in.model = "arm_reach";
  sn_test_send(&c, SN_TEST_MESSAGE(load_model, LOAD_MODEL, &in));
  pid_t importer = 0;
  snprintf(path, sizeof path, "%s/importer.pid", killed.folder);
  for (int i = 0; i < 500 && importer == 0; i++, usleep(20000)) {
    f = fopen(path, "r");
    if (f && fscanf(f, "%d", &importer) != 1) importer = 0;
    if (f) fclose(f);
  }
  assert_true(importer > 1);
  usleep(500000);  // the importer has set itself up
  assert_int_equal(kill(importer, 0), 0);
  kill(killed.pid, SIGKILL);
  waitpid(killed.pid, NULL, 0);
  bool alive = true;
  for (int i = 0; i < 200 && alive; i++, usleep(20000)) {
    char text[64], status = 'Z';
    snprintf(text, sizeof text, "/proc/%d/stat", importer);
    FILE *proc = fopen(text, "r");
    alive = proc && fscanf(proc, "%*d (%*[^)]) %c", &status) == 1 && status != 'Z';
    if (proc) fclose(proc);
  }
  assert_false(alive);
  sn_test_disconnect(&c);

  snprintf(path, sizeof path, "ls -d %s/cache/import.* | wc -l", killed.folder);
  assert_int_equal(atoi(run(path)), 1);
  snprintf(path, sizeof path, "touch -d '1 minute ago' %s/cache/import.*", killed.folder);
  run(path);
  sn_test_daemon_start(&killed, NULL);
  snprintf(path, sizeof path, "ls -d %s/cache/import.* 2>/dev/null | wc -l", killed.folder);
  assert_int_equal(atoi(run(path)), 0);
  assert_int_equal(sn_test_daemon_stop(&killed, SIGTERM), 0);
  sn_test_daemon_remove(&killed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pipes_in_the_cache), cmocka_unit_test(test_deleted_sockets),
                                     cmocka_unit_test(test_cache_that_cannot_be_written),
                                     cmocka_unit_test(test_killed_while_importing)};
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
