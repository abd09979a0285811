// Settings that keep other programs and paging away from the threads that plan: what they do to the process, and what
// is said where they cannot be had.
#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/realtime.h"
#include "tests/support/daemon_process.h"
#include "tests/support/slow.h"

// Returns the first processor that this process may run on.
static int first_processor(void) {
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  int i = 0;
  while (!CPU_ISSET(i, &set)) ++i;
  return i;
}

// Runs a check in a process of its own, since what it does to itself cannot be undone. Returns its status.
static int apart(bool (*check)(void)) {
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) _exit(check() ? 0 : 1);
  int status = -1;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return status;
}

static void test_lists(void **state) {
  (void)state;
  static const char *const wrong[] = {"x",  "1-",  "-1", "2-1",  "1,",
                                      ",1", "1 2", "+1", "1024", "0-99999999999999999999"};
  SnError err;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    err = (SnError){0};
    assert_int_equal(sn_realtime_processors(wrong[i], &err), SN_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, wrong[i]));
    assert_non_null(strstr(err.text, "from 0 to 1023"));
  }
  assert_int_equal(sn_realtime_processors("1020-1023", &err), SN_ERR_LIMIT);
  assert_int_equal(sn_realtime_processors("", &err), SN_OK);
  assert_int_equal(sn_realtime_priority(0, &err), SN_OK);
}

static bool takes_one_processor(void) {
  char list[32];
  SnError err;
  cpu_set_t set;
  const int processor = first_processor();
  snprintf(list, sizeof list, "%d,%d-%d", processor, processor, processor);
  if (sn_realtime_processors(list, &err) != SN_OK || sched_getaffinity(0, sizeof set, &set) != 0) return false;
  return CPU_COUNT(&set) == 1 && CPU_ISSET(processor, &set) && sn_realtime_count() == 1;
}

// Of a user who may neither: root becomes one.
static bool is_refused(void) {
  const struct rlimit none = {0, 0}, some = {65536, 65536};
  SnError err = {0};
  if (setrlimit(RLIMIT_RTPRIO, &none) != 0 || setrlimit(RLIMIT_MEMLOCK, &some) != 0) return false;
  if (geteuid() == 0 && setuid(65534) != 0) return false;
  if (sn_realtime_priority(7, &err) != SN_ERR_LIMIT || !strstr(err.text, "LimitRTPRIO=7")) return false;
  return sn_realtime_lock_memory(&err) == SN_ERR_LIMIT && strstr(err.text, "may lock 65536 bytes") != NULL;
}

static void test_process(void **state) {
  (void)state;
  assert_int_equal(apart(takes_one_processor), 0);
  assert_int_equal(apart(is_refused), 0);
}

// Reads "NAME: value" of a file of /proc into value[size]. Returns false where there is none.
static bool read_status(const char *path, const char *name, char *value, size_t size) {
  FILE *f = fopen(path, "r");
  char line[512];
  bool found = false;
  while (f && !found && fgets(line, sizeof line, f)) {
    const size_t n = strlen(name);
    if (strncmp(line, name, n) != 0 || line[n] != ':') continue;
    const char *p = line + n + 1;
    while (isspace((unsigned char)*p)) ++p;
    snprintf(value, size, "%.*s", (int)strcspn(p, "\n"), p);
    found = true;
  }
  if (f) fclose(f);
  return found;
}

// Counts the daemon's threads that may run on one processor alone, and those with the priority.
static void count_threads(const SnTestDaemon *d, const char *processor, int priority, int *bound, int *prior) {
  char path[600], value[256];
  snprintf(path, sizeof path, "/proc/%d/task", (int)d->pid);
  DIR *folder = opendir(path);
  assert_non_null(folder);
  *bound = *prior = 0;
  for (struct dirent *e; (e = readdir(folder));) {
    if (!isdigit((unsigned char)e->d_name[0])) continue;
    snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)d->pid, e->d_name);
    if (read_status(path, "Cpus_allowed_list", value, sizeof value)) *bound += strcmp(value, processor) == 0;
    struct sched_param param;
    const pid_t thread = (pid_t)atoi(e->d_name);
    if (sched_getparam(thread, &param) == 0 && sched_getscheduler(thread) == SCHED_FIFO)
      *prior += param.sched_priority == priority;
  }
  closedir(folder);
}

// Whether this user may have a priority and locked memory; root of a container need not.
static bool may_have_all(void) {
  SnError err;
  return sn_realtime_priority(6, &err) == SN_OK && sn_realtime_lock_memory(&err) == SN_OK;
}

// The planner thread and the two that it shares rollouts with, and no other one; above them those that receive and
// send.
static void test_threads_that_plan(void **state) {
  (void)state;
  char processors[64], number[16];
  snprintf(number, sizeof number, "%d", first_processor());
  snprintf(processors, sizeof processors, "--planner-processors=%s", number);
  const bool all_allowed = apart(may_have_all) == 0 && sn_realtime_count() > 1;
  const char *const plain[] = {processors, "--threads=3", NULL};
  const char *const all[] = {processors, "--threads=3", "--priority=5", "--lock-memory=on", NULL};
  SnTestDaemon d = {0};
  if (sn_realtime_count() == 1) print_message("skipped: one processor alone, all threads are on it\n");
  if (!all_allowed) print_message("skipped: priority and locked memory, which this user may not have\n");
  sn_test_daemon_start(&d, all_allowed ? all : plain);
  int bound, prior, more;
  count_threads(&d, number, 6, &bound, &more);
  count_threads(&d, number, 5, &bound, &prior);
  if (sn_realtime_count() > 1) assert_int_equal(bound, 3);
  if (all_allowed) {
    char path[64], value[64];
    assert_int_equal(prior, 3);
    assert_true(more >= 2);  // the event loop, and what libzmq starts
    snprintf(path, sizeof path, "/proc/%d/status", (int)d.pid);
    assert_true(read_status(path, "VmLck", value, sizeof value));
    if (SN_SLOW)
      print_message("skipped: locked memory, which sanitizers leave unlocked\n");
    else
      assert_true(atoi(value) > 1000);  // [kB]
  }
  SnTestClient client;
  sn_test_connect(&client, d.endpoint);
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  Sinew__V1__Reply *plan = sn_test_plan(&client, id, opened->open->initial, 0.2);
  assert_int_equal(plan->body_case, SINEW__V1__REPLY__BODY_PLAN);
  sn_test_done(plan);
  sn_test_done(opened);
  sn_test_disconnect(&client);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

static void test_bad_starts(void **state) {
  (void)state;
  static const char *const wrong[][3] = {{"--planner-processors=1-", "planner_processors is '1-'"},
                                         {"--planner-processors=1023", "this process can have none of them"},
                                         {"--priority=99", "priority"},
                                         {"--lock-memory=maybe", "off|on"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    SnTestDaemon d = {0};
    sn_test_daemon_spawn(&d, (const char *const[]){wrong[i][0], NULL});
    assert_int_equal(sn_test_daemon_wait(&d), 1);
    assert_true(sn_test_daemon_logged(&d, wrong[i][1]));
    sn_test_daemon_remove(&d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_process),
                                     cmocka_unit_test(test_threads_that_plan), cmocka_unit_test(test_bad_starts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
