// What a machine may do to sinewd: stop it or its clients for a while, take its disk, its log, its files, its memory,
// or set the clock. Whoever asks gets an error in words, who does not need what is missing goes on, and so do all when
// it is there again.
//
//   daemon_test_hardships [SECONDS]      how long processes are stopped (2; the long form of tests/README.md: 10)
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clients/include/sinew_client.h"
#include "tests/support/daemon_group.h"
#include "tests/support/daemon_kept.h"
#include "tests/support/daemon_tuning.h"
#include "tests/support/raw_peer.h"

static double stopped = 2;
static SnTestDaemon d;
static SnTestClient c;
static SinewError err;

static int setup(void **state) {
  (void)state;
  d = (SnTestDaemon){0};
  sn_test_kept_start(&d, &c, NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  return sn_test_end(&d, &c);
}

static void expect_plan(uint64_t session, Sinew__V1__State *from) {
  Sinew__V1__Reply *reply = sn_test_plan(&c, session, from, 0.02);
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("error: %s", reply->error->text);
  assert_true(reply->plan->status == SINEW__V1__PLAN__STATUS__OK ||
              reply->plan->status == SINEW__V1__PLAN__STATUS__WARM_START);
  sn_test_done(reply);
}

// Changes a weight; returns whether the answer warns that it is not kept.
static bool tune_warns(uint64_t session, double x) {
  SnTestChange change;
  sn_test_change_begin(&change, session);
  sn_test_change_weight(&change, 0, "reach", x);
  Sinew__V1__Request request = sn_test_change_request(&change);
  Sinew__V1__Reply *reply = sn_test_expect_kept(&c, &request, SINEW__V1__REPLY__BODY_SET_CONFIG);
  const bool warns = strstr(reply->set_config->warning, "a restart of the daemon loses it") != NULL;
  sn_test_done(reply);
  return warns;
}

static void limit_daemon(int what, rlim_t to) {
  struct rlimit limit;
  assert_int_equal(prlimit(d.pid, (__rlimit_resource_t)what, NULL, &limit), 0);
  limit.rlim_cur = to < limit.rlim_max ? to : limit.rlim_max;
  assert_int_equal(prlimit(d.pid, (__rlimit_resource_t)what, &limit, NULL), 0);
}

// ---- stopped processes ----

// A session that asks for nothing until it is looked for.
static SinewSession *open_quiet(SinewClient **quiet) {
  SinewSessionDef def = sinew_default_session();
  def.task = "arm_reach";
  def.lease = 0.95 * stopped;
  *quiet = sinew_client_connect(d.endpoint, 60, 0, &err);
  SinewSession *session = sinew_session_open(*quiet, &def, &err);
  assert_non_null(session);
  return session;
}

static void expect_quiet(SinewClient *quiet, SinewSession *session) {
  SinewState now = sinew_session_info(session)->initial;
  if (sinew_session_plan(session, &now, 0.02, &err) != SINEW_OK) fail_msg("the quiet session: %s", err.text);
  assert_int_equal(sinew_session_close(session, &err), SINEW_OK);
  sinew_client_disconnect(quiet);
}

// The daemon stands still for longer than any lease. What was sent meanwhile counts: session and stream are there. So
// is a session of which nothing was heard.
static void test_stopped_daemon(void **state) {
  (void)state;
  SinewSessionDef def = sinew_default_session();
  SinewStreamDef stream = sinew_default_stream();
  def.task = "arm_reach";
  def.lease = 1;
  SinewClient *caller = sinew_client_connect(d.endpoint, 60, 0, &err);
  SinewSession *session = sinew_session_open(caller, &def, &err);
  assert_non_null(session);
  assert_int_equal(sinew_session_stream_start(session, &stream, &err), SINEW_OK);
  SinewState now = sinew_session_info(session)->initial;
  const double began = sn_clock_now();
  bool stops = false;
  SinewClient *quiet = NULL;
  SinewSession *unheard = NULL;
  for (double t; (t = sn_clock_now() - began) < 1 + stopped + 1; usleep(20000)) {
    if (t > 1 && !stops) {
      unheard = open_quiet(&quiet);
      stops = kill(d.pid, SIGSTOP) == 0;
    }
    if (t > 1 + stopped) kill(d.pid, SIGCONT);
    now.time += 0.02;
    assert_int_equal(sinew_session_stream_send(session, &now, &err), SINEW_OK);
    const SinewStatus status = sinew_session_stream_receive(session, 0, &err);
    if (status != SINEW_OK && status != SINEW_ERR_TIMEOUT) fail_msg("after %.2f s: %s", t, err.text);
  }
  kill(d.pid, SIGCONT);
  expect_quiet(quiet, unheard);
  for (const double until = sn_clock_now() + 60; sinew_session_current_plan(session)->state_time < now.time;) {
    const SinewStatus status = sinew_session_stream_receive(session, 0.1, &err);
    if (status != SINEW_OK && status != SINEW_ERR_TIMEOUT) fail_msg("%s", err.text);
    assert_true(sn_clock_now() < until);
  }
  assert_int_equal(sinew_session_plan(session, &now, 0.02, &err), SINEW_OK);
  assert_int_equal(sinew_session_close(session, &err), SINEW_OK);
  sinew_client_disconnect(caller);
}

// A client that plans until its parent has closed the pipe. Returns the status of the process.
static int plan_until_closed(int pipe_end) {
  SinewSessionDef def = sinew_default_session();
  def.task = "arm_reach";
  def.lease = 60;
  SinewClient *caller = sinew_client_connect(d.endpoint, 20, 0, &err);
  SinewSession *session = caller ? sinew_session_open(caller, &def, &err) : NULL;
  char byte;
  fcntl(pipe_end, F_SETFL, O_NONBLOCK);
  for (int k = 0; session; k++) {
    SinewState now = sinew_session_info(session)->initial;
    now.time = 0.01 * k;
    if (sinew_session_plan(session, &now, 0.01, &err) != SINEW_OK) return 2;
    if (read(pipe_end, &byte, 1) == 0) return sinew_session_close(session, &err) == SINEW_OK ? 0 : 3;
  }
  return 1;
}

static void test_stopped_client(void **state) {
  (void)state;
  int ends[2], status;
  Sinew__V1__Reply *opened;
  const uint64_t own = sn_test_open(&c, "arm_reach", 1, &opened);
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[1]);
    _exit(plan_until_closed(ends[0]));
  }
  close(ends[0]);
  usleep(300000);
  assert_int_equal(kill(child, SIGSTOP), 0);
  for (double until = sn_clock_now() + stopped; sn_clock_now() < until;) expect_plan(own, opened->open->initial);
  assert_int_equal(kill(child, SIGCONT), 0);
  usleep(300000);
  close(ends[1]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  sn_test_done(opened);
}

// ---- disk ----

// Nothing can be written any more, as on a full disk: changes are in force and say that they are not kept, plans are
// made. When there is room again all is kept again, of itself.
static void test_full_disk(void **state) {
  (void)state;
  uint64_t version;
  Sinew__V1__Reply *opened = sn_test_open_named(&c, "full", 1, NULL);
  const uint64_t a = opened->open->session;
  assert_false(tune_warns(a, 2));
  limit_daemon(RLIMIT_FSIZE, 100);
  assert_true(tune_warns(a, 3));
  for (int k = 0; k < 5; k++) expect_plan(a, opened->open->initial);
  assert_true(sn_test_kept_weight(&c, a, &version) == 3);
  // A model that is not in the cache cannot be imported; the answer says why, and others go on.
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  load.model = "cart_pole";
  Sinew__V1__Reply *reply = sn_test_request(&c, SN_TEST_MESSAGE(load_model, LOAD_MODEL, &load));
  assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_ERROR);
  assert_int_equal(reply->error->code, SINEW__V1__ERROR__CODE__LIMIT);
  sn_test_done(reply);
  expect_plan(a, opened->open->initial);
  limit_daemon(RLIMIT_FSIZE, RLIM_INFINITY);
  for (int i = 0; i < 3000 && !sn_test_daemon_logged(&d, "is kept again"); i++) usleep(10000);
  assert_true(sn_test_daemon_logged(&d, "is kept again"));
  sn_test_kept_restart(&d, SIGKILL, NULL);
  assert_true(sn_test_kept_weight(&c, a, &version) == 3);
  sn_test_done(sn_test_request(&c, SN_TEST_MESSAGE(load_model, LOAD_MODEL, &load)));
  sn_test_done(opened);
}

// Likewise where the folder is a file system of its own that is full. It is this test's alone, with all that it starts:
// so it is the last one.
static void test_full_file_system(void **state) {
  (void)state;
  SnTestDaemon other = {0};
  char folder[128], filler[160], block[4096] = "";
  sn_test_daemon_prepare(&other);
  snprintf(folder, sizeof folder, "%s/state", other.folder);
  assert_int_equal(mkdir(folder, 0700), 0);
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("none", folder, "tmpfs", 0, "size=256k,mode=0700") != 0) {
    print_message("skipped: no file system can be mounted here: %s\n", strerror(errno));
    sn_test_daemon_remove(&other);
    skip();
  }
  sn_test_kept_start(&other, &c, NULL);
  Sinew__V1__Reply *opened = sn_test_open_named(&c, "full", 1, NULL);
  const uint64_t session = opened->open->session;
  uint64_t version;
  assert_false(tune_warns(session, 2));
  snprintf(filler, sizeof filler, "%s/filler", folder);
  const int fd = open(filler, O_WRONLY | O_CREAT, 0600);
  assert_true(fd >= 0);
  while (write(fd, block, sizeof block) > 0) continue;
  assert_int_equal(errno, ENOSPC);
  close(fd);
  assert_true(tune_warns(session, 3));
  for (int k = 0; k < 5; k++) expect_plan(session, opened->open->initial);
  assert_true(sn_test_kept_weight(&c, session, &version) == 3);
  // A kill leaves what could be written; with room again all is kept again.
  sn_test_kept_restart(&other, SIGKILL, NULL);
  assert_true(sn_test_kept_weight(&c, session, &version) == 2);
  assert_true(tune_warns(session, 4));
  assert_int_equal(unlink(filler), 0);
  for (int i = 0; i < 3000 && !sn_test_daemon_logged(&other, "is kept again"); i++) usleep(10000);
  sn_test_kept_restart(&other, SIGKILL, NULL);
  assert_true(sn_test_kept_weight(&c, session, &version) == 4);
  sn_test_done(opened);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&other, SIGTERM), 0);
  assert_int_equal(umount(folder), 0);
  sn_test_daemon_remove(&other);
}

// The folder of sessions is taken away.
static void test_lost_folder(void **state) {
  (void)state;
  char command[100];
  Sinew__V1__Reply *opened = sn_test_open_named(&c, "lost", 1, NULL);
  snprintf(command, sizeof command, "rm -rf %s/state", d.folder);
  assert_int_equal(system(command), 0);
  assert_true(tune_warns(opened->open->session, 2));
  expect_plan(opened->open->session, opened->open->initial);
  Sinew__V1__Reply *other = sn_test_open_named(&c, "other", 1, NULL);
  assert_non_null(strstr(other->open->config->warning, "a restart of the daemon loses it"));
  sn_test_done(other);
  sn_test_done(opened);
}

// A folder that cannot be written keeps the daemon from starting, and it says so. For root every folder can be: there a
// file stands in its place.
static void test_read_only_folder(void **state) {
  (void)state;
  SnTestDaemon other = {0};
  char folder[128];
  const char *const args[] = {folder, NULL};
  sn_test_daemon_prepare(&other);
  snprintf(folder, sizeof folder, "--state=%s/fixed", other.folder);
  if (geteuid() == 0)
    sn_test_daemon_write(&other, "fixed", "no folder");
  else
    assert_int_equal(mkdir(folder + 8, 0500), 0);
  sn_test_daemon_spawn(&other, args);
  assert_int_equal(sn_test_daemon_wait(&other), 1);
  assert_true(sn_test_daemon_logged(&other, "event=failed text=\"state: "));
  chmod(folder + 8, 0700);
  sn_test_daemon_remove(&other);
}

// ---- log, files, memory ----

// Whoever reads the log ends.
static void test_broken_log(void **state) {
  (void)state;
  SnTestDaemon other = {0};
  SnTestClient there;
  sn_test_daemon_prepare(&other);
  assert_int_equal(mkfifo(other.log, 0600), 0);
  const int reader = open(other.log, O_RDONLY | O_NONBLOCK);
  assert_true(reader >= 0);
  sn_test_daemon_start(&other, NULL);
  close(reader);
  sn_test_connect(&there, other.endpoint);
  for (int i = 0; i < 5; i++) {
    Sinew__V1__Reply *opened;
    const uint64_t session = sn_test_open(&there, "arm_reach", 1, &opened);
    sn_test_done(sn_test_plan(&there, session, opened->open->initial, 0.01));
    sn_test_done(opened);
  }
  sn_test_disconnect(&there);
  assert_int_equal(sn_test_daemon_stop(&other, SIGTERM), 0);
  sn_test_daemon_remove(&other);
}

// There is no file more: a load and a newcomer fail, who is there goes on; and all is well afterwards.
static void test_no_files(void **state) {
  (void)state;
  Sinew__V1__Reply *opened = sn_test_open_named(&c, "files", 1, NULL);
  const uint64_t a = opened->open->session;
  sn_test_daemon_rest(&d);
  const int files = sn_test_daemon_files(&d);
  limit_daemon(RLIMIT_NOFILE, (rlim_t)files - 1);  // it was one more while we counted
  assert_true(tune_warns(a, 2));
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  load.model = "acrobot";
  Sinew__V1__Reply *reply = sn_test_request(&c, SN_TEST_MESSAGE(load_model, LOAD_MODEL, &load));
  assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_ERROR);
  assert_int_equal(reply->error->code, SINEW__V1__ERROR__CODE__LIMIT);
  sn_test_done(reply);
  expect_plan(a, opened->open->initial);
  assert_true(sn_test_daemon_runs(&d));
  limit_daemon(RLIMIT_NOFILE, RLIM_INFINITY);
  sn_test_done(sn_test_request(&c, SN_TEST_MESSAGE(load_model, LOAD_MODEL, &load)));
  assert_false(tune_warns(a, 3));
  SnTestClient late;
  sn_test_connect(&late, d.endpoint);
  assert_true(sn_test_answers(&late, 10));
  sn_test_disconnect(&late);
  sn_test_done(opened);
}

// What the daemon has of its own [bytes]: what RLIMIT_DATA counts.
static rlim_t data_size(void) {
  char path[64], line[256];
  unsigned long kilobytes = 0;
  snprintf(path, sizeof path, "/proc/%d/status", (int)d.pid);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  while (kilobytes == 0 && fgets(line, sizeof line, f))
    kilobytes = strncmp(line, "VmData:", 7) ? 0 : strtoul(line + 7, NULL, 10);
  fclose(f);
  assert_true(kilobytes > 0);
  return (rlim_t)kilobytes << 10;
}

// Memory ends: a session that wants much is refused with LIMIT, or a limit's own words; others go on.
static void test_no_memory(void **state) {
  (void)state;
  if (SN_SLOW) skip();  // sanitizers have memory of their own
  Sinew__V1__Reply *opened;
  const uint64_t a = sn_test_open(&c, "arm_reach", 1, &opened);
  expect_plan(a, opened->open->initial);
  limit_daemon(RLIMIT_DATA, data_size() + (4 << 20));
  Sinew__V1__PlannerSettings large = SINEW__V1__PLANNER_SETTINGS__INIT;
  large.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  large.planner = "adam";
  large.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  large.horizon = 2048;
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.planner = &large;
  int refused = 0;
  for (int i = 0; i < 8; i++) {
    Sinew__V1__Reply *reply = sn_test_request(&c, SN_TEST_MESSAGE(open, OPEN, &in));
    if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) {
      assert_int_equal(reply->error->code, SINEW__V1__ERROR__CODE__LIMIT);
      refused++;
    }
    sn_test_done(reply);
    expect_plan(a, opened->open->initial);
  }
  assert_true(refused > 0);
  limit_daemon(RLIMIT_DATA, RLIM_INFINITY);
  sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(open, OPEN, &in), SINEW__V1__REPLY__BODY_OPEN));
  sn_test_done(opened);
}

// The control group for memory that this process is in, as a folder; "" where that cannot be told.
static void find_group(char *folder, size_t size, const char **limit) {
  char line[256];
  FILE *f = fopen("/proc/self/cgroup", "r");
  *folder = '\0';
  while (f && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = '\0';
    char *one = strstr(line, ":memory:"), *all = !strncmp(line, "0::", 3) ? line + 3 : NULL;
    if (one) snprintf(folder, size, "/sys/fs/cgroup/memory%s", one + strlen(":memory:"));
    if (all && !*folder) snprintf(folder, size, "/sys/fs/cgroup%s", all);
    *limit = one ? "memory.limit_in_bytes" : *limit;
  }
  if (f) fclose(f);
}

static bool write_group(const char *folder, const char *name, const char *text) {
  char path[400];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  if (!f) return false;
  const bool written = fputs(text, f) >= 0;
  return fclose(f) == 0 && written;
}

// In a control group of 300 MB sinewd bounds itself by that, whatever the machine has: sessions beyond are refused in
// words, and the system need not kill it.
static void test_memory_of_a_group(void **state) {
  (void)state;
  SnTestDaemon other = {0};
  char above[256], group[300];
  const char *limit = "memory.max";
  if (SN_SLOW) skip();
  find_group(above, sizeof above, &limit);
  snprintf(group, sizeof group, "%s/sinew-test-%d", above, (int)getpid());
  if (!*above || mkdir(group, 0755) != 0 || !write_group(group, limit, "314572800") ||
      !write_group(group, "cgroup.procs", "0")) {
    print_message("skipped: no control group for memory can be made here: %s\n", strerror(errno));
    rmdir(group);
    skip();
  }
  sn_test_daemon_start(&other, NULL);
  const bool back = write_group(above, "cgroup.procs", "0");
  sn_test_connect(&c, other.endpoint);
  Sinew__V1__PlannerSettings large = SINEW__V1__PLANNER_SETTINGS__INIT;

  large.has_adam_starts_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_STARTS_ADAM_STARTS;
  large.adam_starts = 16;
  large.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  large.horizon = 1024;
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.planner = &large;
  int refused = 0, opened = 0;
  for (int i = 0; i < 20; i++) {
    Sinew__V1__Reply *reply = sn_test_request(&c, SN_TEST_MESSAGE(open, OPEN, &in));
    opened += reply->body_case == SINEW__V1__REPLY__BODY_OPEN;
    refused += reply->body_case == SINEW__V1__REPLY__BODY_ERROR && reply->error->code == SINEW__V1__ERROR__CODE__LIMIT;
    sn_test_done(reply);
  }
  print_message("%d large sessions were opened, %d refused; %.0f MB resident\n", opened, refused,
                sn_test_daemon_megabytes(&other));
  assert_true(sn_test_daemon_runs(&other));
  assert_int_equal(opened + refused, 20);
  assert_true(refused > 0);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&other, SIGTERM), 0);
  sn_test_daemon_remove(&other);
  assert_true(back);
  assert_int_equal(rmdir(group), 0);
}

// ---- the clock ----

// The wall clock jumps by an hour, forth and back, while plans are made under a short lease: nothing is late, and
// nothing ends.
static void test_clock_jumps(void **state) {
  (void)state;
  if (SN_SLOW) skip();  // sanitizers want to be the first library
  SnTestDaemon other = {0};
  SnTestClient there;
  char file[128];
  long ahead = 0;
  sn_test_daemon_prepare(&other);
  snprintf(file, sizeof file, "%s/clock", other.folder);
  const int fd = open(file, O_RDWR | O_CREAT, 0600);
  assert_true(fd >= 0 && write(fd, &ahead, sizeof ahead) == (ssize_t)sizeof ahead);
  setenv("SN_TEST_CLOCK", file, 1);
  setenv("LD_PRELOAD", SN_TEST_CLOCK_LIBRARY, 1);
  sn_test_daemon_start(&other, NULL);
  unsetenv("LD_PRELOAD");
  unsetenv("SN_TEST_CLOCK");
  sn_test_connect(&there, other.endpoint);
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  settings.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  settings.lease = 5;
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.planner = sn_test_sampling();
  in.session = &settings;
  Sinew__V1__Reply *opened = sn_test_expect_kept(&there, SN_TEST_MESSAGE(open, OPEN, &in), SINEW__V1__REPLY__BODY_OPEN);
  for (int k = 0; k < 30; k++) {
    ahead = k % 3 == 0 ? 0 : k % 3 == 1 ? 3600 : -3600;
    assert_int_equal(pwrite(fd, &ahead, sizeof ahead, 0), sizeof ahead);
    Sinew__V1__Reply *reply = sn_test_plan(&there, opened->open->session, opened->open->initial, 0.02);
    assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_PLAN);
    assert_true(reply->plan->age >= 0 && reply->plan->age < 60);
    sn_test_done(reply);
  }
  // The log shows that the clock did jump.
  ahead = 3600 * 24 * 365 * 30L;
  assert_int_equal(pwrite(fd, &ahead, sizeof ahead, 0), sizeof ahead);
  sn_test_done(sn_test_expect_kept(&there, SN_TEST_MESSAGE(open, OPEN, &in), SINEW__V1__REPLY__BODY_OPEN));
  assert_true(sn_test_daemon_logged(&other, "205") || sn_test_daemon_logged(&other, "206"));
  close(fd);
  sn_test_done(opened);
  assert_int_equal(sn_test_end(&other, &there), 0);
}

int main(int argc, char **argv) {
  if (argc > 1) stopped = atof(argv[1]);
#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
  const struct CMUnitTest tests[] = {EACH(test_stopped_daemon),
                                     EACH(test_stopped_client),
                                     EACH(test_full_disk),
                                     EACH(test_lost_folder),
                                     EACH(test_no_files),
                                     EACH(test_no_memory),
                                     cmocka_unit_test(test_memory_of_a_group),
                                     cmocka_unit_test(test_clock_jumps),
                                     cmocka_unit_test(test_read_only_folder),
                                     cmocka_unit_test(test_broken_log),
                                     cmocka_unit_test(test_full_file_system)};
#undef EACH
  return cmocka_run_group_tests(tests, NULL, NULL);
}
