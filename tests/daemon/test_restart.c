// Warm restart: a session that was opened with a name outlasts the daemon, with its settings and where it stood; files
// that cannot be gone on from are refused in words and moved aside.
#include <fcntl.h>
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

#define BODY(NAME) SINEW__V1__REPLY__BODY_##NAME

static SnTestDaemon d;
static SnTestClient c;

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

// ---- helpers ----

static void path_of(char path[256], const char *name) { snprintf(path, 256, "%s/state/%s", d.folder, name); }

static void file_of(char path[256], uint64_t session, const char *ending) {
  char name[64];
  snprintf(name, sizeof name, "%llu.%s", (unsigned long long)session, ending);
  path_of(path, name);
}

static bool there(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0;
}

static Sinew__V1__Reply *plan_of(uint64_t session, Sinew__V1__State *from, int k) {
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  in.session = session;
  in.state = from;
  from->time = 0.01 * k;
  in.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  in.iterations = 3;
  return sn_test_expect_kept(&c, SN_TEST_MESSAGE(plan, PLAN, &in), BODY(PLAN));
}

static bool same_plan(const Sinew__V1__Plan *a, const Sinew__V1__Plan *b) {
  return a->sequence == b->sequence && a->cost_after == b->cost_after && a->n_ctrl == b->n_ctrl &&
         a->config_version == b->config_version && memcmp(a->ctrl, b->ctrl, a->n_ctrl * sizeof *a->ctrl) == 0;
}

static Sinew__V1__Error__Code code_of_open(char *task, char *name) {
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = task;
  in.name = name;
  Sinew__V1__Reply *reply = sn_test_ask_kept(&c, SN_TEST_MESSAGE(open, OPEN, &in));
  assert_int_equal(reply->body_case, BODY(ERROR));
  const Sinew__V1__Error__Code code = reply->error->code;
  sn_test_done(reply);
  return code;
}

static void expect_gone(uint64_t session) {
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  in.session = session;
  sn_test_expect_error(sn_test_ask_kept(&c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &in)),
                       SINEW__V1__ERROR__CODE__NOT_FOUND, "no session");
}

// Waits until lines with that word are there, which other threads write.
static void await_logged(const char *word, int lines) {
  for (int i = 0; i < 3000 && sn_test_count_logged(&d, word) < lines; i++) usleep(10000);
  assert_int_equal(sn_test_count_logged(&d, word), lines);
}

static uint64_t open_named(char *name) {
  Sinew__V1__Reply *reply = sn_test_open_named(&c, name, 7, NULL);
  const uint64_t session = reply->open->session;
  sn_test_done(reply);
  return session;
}

// ---- tests ----

// After SIGTERM a session makes the plans, bit for bit, that its twin made in the daemon before, which had no end.
static void test_goes_on(void **state) {
  (void)state;
  enum { PAST = 3, FUTURE = 7 };
  Sinew__V1__Reply *named = sn_test_open_named(&c, "left arm", 7, NULL), *twin, *plans[FUTURE];
  const uint64_t a = named->open->session;
  assert_false(named->open->resumed);
  assert_int_equal(named->open->restarts, 0);
  assert_string_equal(named->open->config->warning, "");
  const uint64_t b = sn_test_open_by(&c, "arm_reach", 7, NULL, &twin);
  assert_int_equal(sn_test_kept_tune(&c, a, 3), 2);
  assert_int_equal(sn_test_kept_tune(&c, b, 3), 2);
  for (int k = 0; k < FUTURE; k++) plans[k] = plan_of(b, twin->open->initial, k);
  for (int k = 0; k < PAST; k++) sn_test_done(plan_of(a, twin->open->initial, k));
  sn_test_kept_restart(&d, SIGTERM, NULL);
  for (int k = PAST; k < FUTURE; k++) {
    Sinew__V1__Reply *reply = plan_of(a, twin->open->initial, k);
    assert_true(same_plan(reply->plan, plans[k]->plan));
    assert_int_equal(reply->plan->restarts, 1);
    sn_test_done(reply);
  }
  expect_gone(b);
  Sinew__V1__Reply *statistics = sn_test_statistics(&c, a);
  assert_string_equal(statistics->statistics->sessions[0]->name, "left arm");
  assert_int_equal(statistics->statistics->sessions[0]->restarts, 1);
  sn_test_done(statistics);
  for (int k = 0; k < FUTURE; k++) sn_test_done(plans[k]);
  sn_test_done(named);
  sn_test_done(twin);
}

// What was answered before a SIGKILL is there after it: settings, their version, seed; versions of before are not.
static void test_killed(void **state) {
  (void)state;
  const uint64_t a = open_named("a");
  uint64_t version;
  for (int k = 1; k <= 3; k++) {
    sn_test_kept_tune(&c, a, 10 + k);
    sn_test_kept_restart(&d, SIGKILL, NULL);
    assert_true(sn_test_kept_weight(&c, a, &version) == 10 + k);
    assert_int_equal(version, 1 + k);
  }
  Sinew__V1__RevertRequest revert = SINEW__V1__REVERT_REQUEST__INIT;
  revert.session = a;
  revert.version = 1;
  sn_test_expect_error(sn_test_request(&c, SN_TEST_MESSAGE(revert, REVERT, &revert)), SINEW__V1__ERROR__CODE__NOT_FOUND,
                       "versions 4 to 4 are kept");
  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  reset.session = a;
  reset.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
  reset.seed = 99;
  Sinew__V1__Reply *opened = sn_test_expect_kept(&c, SN_TEST_MESSAGE(reset, RESET, &reset), BODY(RESET));
  sn_test_kept_restart(&d, SIGKILL, NULL);
  reset.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED__NOT_SET;
  Sinew__V1__Reply *again = sn_test_expect_kept(&c, SN_TEST_MESSAGE(reset, RESET, &reset), BODY(RESET));
  assert_int_equal(again->reset->seed, 99);
  assert_memory_equal(again->reset->initial->qpos, opened->reset->initial->qpos,
                      again->reset->initial->n_qpos * sizeof(double));
  sn_test_done(opened);
  sn_test_done(again);
}

// A warm start of before a reset is not gone on from.
static void test_reset_forgets(void **state) {
  (void)state;
  Sinew__V1__Reply *opened = sn_test_open_named(&c, "r", 7, NULL);
  const uint64_t a = opened->open->session;
  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  reset.session = a;
  sn_test_done(plan_of(a, opened->open->initial, 0));
  char warm[256];
  file_of(warm, a, "warm");
  for (int i = 0; i < 3000 && !there(warm); i++) usleep(10000);
  assert_true(there(warm));
  sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(reset, RESET, &reset), BODY(RESET)));
  sn_test_kept_restart(&d, SIGKILL, NULL);
  Sinew__V1__Reply *plan = plan_of(a, opened->open->initial, 0);
  assert_int_equal(plan->plan->sequence, 1);
  sn_test_done(plan);
  sn_test_done(opened);
}

// By its name a client that has started again too finds its session, as it is; what is asked for beside is passed over.
static void test_by_name(void **state) {
  (void)state;
  const uint64_t a = open_named("b");
  sn_test_kept_tune(&c, a, 5);
  for (int round = 0; round < 2; round++) {
    Sinew__V1__Reply *reply = sn_test_open_named(&c, "b", 1234, sn_test_sampling());
    assert_int_equal(reply->open->session, a);
    assert_true(reply->open->resumed);
    assert_int_equal(reply->open->restarts, round);
    assert_int_equal(reply->open->config->version, 2);
    assert_string_equal(reply->open->config->planner->planner, "adam");
    sn_test_done(reply);
    if (round == 0) sn_test_kept_restart(&d, SIGKILL, NULL);
  }
  assert_int_equal(code_of_open("cart_pole", "b"), SINEW__V1__ERROR__CODE__STATE);
  assert_true(open_named("c") != a);
}

// One that is closed, or whose lease runs out, is gone for good, and its name is free.
static void test_closed(void **state) {
  (void)state;
  char session[256], warm[256];
  Sinew__V1__Reply *opened = sn_test_open_named(&c, "gone", 7, NULL);
  const uint64_t a = opened->open->session;
  sn_test_done(plan_of(a, opened->open->initial, 0));
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = a;
  sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(close, CLOSE, &in), BODY(CLOSE)));
  file_of(session, a, "session");
  file_of(warm, a, "warm");
  for (int i = 0; i < 3000 && (there(session) || there(warm)); i++) usleep(10000);
  assert_false(there(session) || there(warm));
  assert_true(open_named("gone") != a);
  sn_test_kept_restart(&d, SIGKILL, NULL);
  expect_gone(a);
  sn_test_done(opened);
}

static void test_refused_opening_frees_the_name(void **state) {
  (void)state;
  assert_int_equal(code_of_open("no_such_task", "again"), SINEW__V1__ERROR__CODE__NOT_FOUND);
  assert_true(open_named("again") != 0);
}

// Sets the lease and the latency of a session.
static void set_times(uint64_t session, double lease, double latency) {
  Sinew__V1__SessionSettings times = SINEW__V1__SESSION_SETTINGS__INIT;
  Sinew__V1__SetConfigRequest in = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  times.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  times.lease = lease;
  times.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  times.latency = latency;
  in.session = session;
  in.settings = &times;
  sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(set_config, SET_CONFIG, &in), BODY(SET_CONFIG)));
}

// The session's own times are kept. Nobody is its client after a restart: unless somebody asks, it ends as one that was
// left behind, whatever its lease; and one connection's share of sessions does not count.
static void test_left_alone(void **state) {
  (void)state;
  static const char *const args[] = {"--orphan-seconds=2", "--client-sessions=1", NULL};
  Sinew__V1__Reply *opened = sn_test_open_named(&c, "asked for", 7, NULL);
  const uint64_t a = opened->open->session, b = open_named("left");
  usleep(200000);  // its lease runs from its opening on
  set_times(a, 300, 0.01);
  set_times(b, 300, 0);
  sn_test_kept_restart(&d, SIGTERM, args);
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  in.session = a;
  Sinew__V1__Reply *r = sn_test_expect_kept(&c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &in), BODY(GET_CONFIG));
  assert_true(r->get_config->session->lease == 300 && r->get_config->session->latency == 0.01);
  sn_test_done(r);
  for (double until = sn_clock_now() + 60; sn_clock_now() < until; usleep(100000)) {
    sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &in), BODY(GET_CONFIG)));
    if (sn_test_daemon_logged(&d, "event=lease-expired ")) break;
  }
  assert_int_equal(sn_test_count_logged(&d, "event=restored "), 2);
  assert_int_equal(sn_test_count_logged(&d, "event=lease-expired "), 1);
  expect_gone(b);
  // Who asks now and then keeps it; once its client has asked for a plan, that is there and need not.
  for (int i = 0; i < 25; i++, usleep(100000))
    sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &in), BODY(GET_CONFIG)));
  sn_test_done(plan_of(a, opened->open->initial, 0));
  usleep(3000000);
  sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &in), BODY(GET_CONFIG)));
  sn_test_done(opened);
}

// A name whose opening finds no place is free for the next try.
static void test_full(void **state) {
  (void)state;
  static const char *const args[] = {"--sessions=1", NULL};
  sn_test_kept_restart(&d, SIGTERM, args);
  const uint64_t a = open_named("first");
  for (int i = 0; i < 2; i++) assert_int_equal(code_of_open("arm_reach", "second"), SINEW__V1__ERROR__CODE__LIMIT);
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = a;
  sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(close, CLOSE, &in), BODY(CLOSE)));
  assert_true(open_named("second") != a);
}

// ---- bad files ----

static void write_bytes(const char *path, const void *bytes, size_t size, mode_t mode) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
  assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
  fchmod(fd, mode);
  close(fd);
}

static void read_bytes(const char *path, unsigned char *bytes, size_t *size, size_t most) {
  const int fd = open(path, O_RDONLY);
  const ssize_t n = read(fd, bytes, most);
  assert_true(fd >= 0 && n > 0 && (size_t)n < most);
  *size = (size_t)n;
  close(fd);
}

// Ways to spoil a file that holds `size` good bytes.
static void spoil(const char *path, int way, unsigned char *bytes, size_t size) {
  unlink(path);
  if (way == 0) write_bytes(path, bytes, size / 2, 0600);
  if (way == 1) write_bytes(path, "", 0, 0600);
  if (way == 2) write_bytes(path, "no file of ours, and long enough for its header", 48, 0600);
  if (way == 3) write_bytes(path, bytes, size, 0644);
  if (way == 4) assert_int_equal(mkfifo(path, 0600), 0);
  if (way == 5) assert_int_equal(mkdir(path, 0700), 0);
  if (way == 6) assert_int_equal(symlink("/etc/passwd", path), 0);
  if (way < 7) return;
  bytes[way == 7 ? size - 1 : 33] ^= 0x40;
  write_bytes(path, bytes, size, 0600);
}

// The daemon starts whatever lies there, says so, and moves it aside; the same of a warm start costs that alone.
static void test_bad_files(void **state) {
  (void)state;
  enum { WAYS = 9, MOST = 1 << 20 };
  unsigned char *bytes = malloc(MOST);
  for (int way = 0; way < 2 * WAYS; way++) {
    char name[32], path[256], aside[256];
    size_t size;
    uint64_t version;
    snprintf(name, sizeof name, "bad %d", way);
    Sinew__V1__Reply *opened = sn_test_open_named(&c, name, 7, NULL);
    const uint64_t a = opened->open->session;
    sn_test_done(plan_of(a, opened->open->initial, 0));
    sn_test_kept_tune(&c, a, 4);
    assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
    const bool warm = way >= WAYS;
    file_of(path, a, warm ? "warm" : "session");
    read_bytes(path, bytes, &size, MOST);
    spoil(path, way % WAYS, bytes, size);
    sn_test_kept_start(&d, NULL, NULL);
    if (warm)
      assert_true(sn_test_kept_weight(&c, a, &version) == 4);
    else
      expect_gone(a);
    snprintf(name, sizeof name, "refused/%llu.%s", (unsigned long long)a, warm ? "warm" : "session");
    path_of(aside, name);
    if (!there(aside)) fail_msg("way %d: %s is not there", way, aside);
    if (!warm) assert_false(there(path));
    sn_test_done(opened);
  }
  assert_int_equal(sn_test_count_logged(&d, "event=keep-refused "), 2 * WAYS);
  free(bytes);
}

// A file of another session's name is not that session: its id would be taken, or its name would be there twice.
static void test_copied_file(void **state) {
  (void)state;
  static unsigned char bytes[1 << 16];
  char from[256], to[256];
  size_t size;
  uint64_t version;
  const uint64_t a = open_named("copied"), b = a == 987654321 ? 987654320 : 987654321;
  sn_test_kept_tune(&c, a, 8);
  file_of(from, a, "session");
  file_of(to, b, "session");
  read_bytes(from, bytes, &size, sizeof bytes);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  write_bytes(to, bytes, size, 0600);
  sn_test_kept_start(&d, NULL, NULL);
  assert_true(sn_test_kept_weight(&c, a, &version) == 8);
  expect_gone(b);
  assert_true(sn_test_daemon_logged(&d, "it is of session"));
}

// What the last daemon had begun to write is removed; what is not ours by its name is left alone.
static void test_other_files(void **state) {
  (void)state;
  char unfinished[256], foreign[256], orphan[256];
  path_of(unfinished, "1.session.new");
  path_of(foreign, "notes.txt");
  path_of(orphan, "123456789.warm");
  write_bytes(unfinished, "x", 1, 0600);
  write_bytes(foreign, "x", 1, 0600);
  write_bytes(orphan, "x", 1, 0600);
  sn_test_kept_restart(&d, SIGTERM, NULL);
  assert_false(there(unfinished) || there(orphan));
  assert_true(there(foreign));
}

// ---- what has changed since ----

static void test_other_model(void **state) {
  (void)state;
  static char text[20000];
  size_t size;
  uint64_t version;
  read_bytes(SN_TEST_SOURCE_DIR "/../planner/tasks/arm_reach.yaml", (unsigned char *)text, &size, sizeof text);
  text[size] = '\0';
  sn_test_daemon_write(&d, "tasks/mine.yaml", text);
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "mine";
  in.name = "m";
  Sinew__V1__Reply *opened = sn_test_expect_kept(&c, SN_TEST_MESSAGE(open, OPEN, &in), BODY(OPEN));
  const uint64_t a = opened->open->session;
  sn_test_done(plan_of(a, opened->open->initial, 0));
  sn_test_kept_tune(&c, a, 6);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  char *model = strstr(text, "model: arm_reach.xml");
  assert_non_null(model);
  memcpy(model, "model: cart_pole.xml", 20);
  // A task that does not fit its model cannot be opened; the line of the log says why.
  sn_test_daemon_write(&d, "tasks/mine.yaml", text);
  sn_test_kept_start(&d, NULL, NULL);
  expect_gone(a);
  assert_true(sn_test_daemon_logged(&d, "event=restored-cold "));
  assert_true(sn_test_daemon_logged(&d, "event=keep-refused "));
  sn_test_done(opened);

  // Another time step is another model: the settings are kept, the warm start is not.
  memcpy(model, "model: arm_reach.xml", 20);
  sn_test_daemon_write(&d, "tasks/mine.yaml", text);
  opened = sn_test_expect_kept(&c, SN_TEST_MESSAGE(open, OPEN, &in), BODY(OPEN));
  const uint64_t b = opened->open->session;
  sn_test_done(plan_of(b, opened->open->initial, 0));
  sn_test_kept_tune(&c, b, 6);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  strcpy(text + size, "\noptions: {timestep: 0.004}\n");
  sn_test_daemon_write(&d, "tasks/mine.yaml", text);
  sn_test_kept_start(&d, NULL, NULL);
  assert_true(sn_test_kept_weight(&c, b, &version) == 6);
  Sinew__V1__Reply *plan = plan_of(b, opened->open->initial, 0);
  assert_int_equal(plan->plan->sequence, 1);
  sn_test_done(plan);
  sn_test_done(opened);
}

// Limits of the new daemon hold for what the last one kept.
static void test_limits(void **state) {
  (void)state;
  static const char *const few[] = {"--sessions=2", NULL}, *const short_lease[] = {"--lease-seconds=5", NULL};
  for (int i = 0; i < 4; i++) {
    char name[] = "limit 0";
    name[6] = (char)('0' + i);
    open_named(name);
  }
  sn_test_kept_restart(&d, SIGTERM, few);
  await_logged("event=restored ", 2);
  await_logged("2 sessions are open; more are not allowed", 4);  // both files of each
  sn_test_kept_restart(&d, SIGTERM, short_lease);
  await_logged("event=keep-refused ", 8);
  assert_true(sn_test_daemon_logged(&d, "lease_seconds"));
  Sinew__V1__Reply *opened = sn_test_open_named(&c, "short", 7, NULL);
  assert_true(opened->open->config->session->lease == 5);
  sn_test_done(opened);
}

// What is beyond the disk that sessions may take is in force, and the answer says that it is not kept.
static void test_no_room(void **state) {
  (void)state;
  static const char *const little[] = {"--state-megabytes=1", "--state-seconds=0.01", NULL};
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  settings.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  settings.horizon = 2048;
  sn_test_kept_restart(&d, SIGTERM, little);
  char name[] = "wide 00";
  for (int i = 0; i < 20 && !sn_test_daemon_logged(&d, "event=keep-failed "); i++) {
    name[5] = (char)('0' + i / 10);
    name[6] = (char)('0' + i % 10);
    Sinew__V1__Reply *opened = sn_test_open_named(&c, name, 7, &settings);
    sn_test_done(plan_of(opened->open->session, opened->open->initial, 0));
    usleep(100000);
    sn_test_done(opened);
  }
  for (int i = 0; i < 3000 && !sn_test_daemon_logged(&d, "state_megabytes allows 1048576"); i++) usleep(10000);
  assert_true(sn_test_daemon_logged(&d, "state_megabytes allows 1048576"));
}

// The first import of a model is killed, as where memory ends while a machine starts: each session that waits for it is
// restored all the same.
static void test_import_killed(void **state) {
  (void)state;
  enum { SESSIONS = 5 };
  char cache[128], importer[128], name[8];
  const char *const args[] = {cache, importer, NULL};
  for (int i = 0; i < SESSIONS; i++) {
    snprintf(name, sizeof name, "s%d", i);
    open_named(name);
  }
  snprintf(cache, sizeof cache, "--cache=%s/other", d.folder);
  snprintf(importer, sizeof importer, "--importer=%s/importer", d.folder);
  FILE *f = fopen(importer + strlen("--importer="), "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\nif mkdir %s/tried; then sleep 0.5; kill -9 $$; fi\nexec %s/sinew-import \"$@\"\n", d.folder,
          sn_test_binary_folder());
  fclose(f);
  assert_int_equal(chmod(importer + strlen("--importer="), 0700), 0);
  sn_test_kept_restart(&d, SIGTERM, args);
  await_logged("event=restored ", SESSIONS);
  assert_int_equal(sn_test_count_logged(&d, "event=keep-refused"), 0);
}

// While a session is on its way, here since its model is compiled for long, nobody is told that there is none.
static void test_restoring(void **state) {
  (void)state;
  char cache[128], importer[128];
  const char *const args[] = {cache, importer, NULL};
  const uint64_t session = open_named("late");
  snprintf(cache, sizeof cache, "--cache=%s/other", d.folder);
  snprintf(importer, sizeof importer, "--importer=%s/importer", d.folder);
  FILE *f = fopen(importer + strlen("--importer="), "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\nexec sleep 1000\n");
  fclose(f);
  assert_int_equal(chmod(importer + strlen("--importer="), 0700), 0);
  sn_test_kept_restart(&d, SIGTERM, args);
  Sinew__V1__GetConfigRequest config = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  Sinew__V1__StatisticsRequest statistics = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__TraceRequest trace = SINEW__V1__TRACE_REQUEST__INIT;
  config.session = statistics.session = trace.session = session;
  Sinew__V1__Request *const requests[] = {SN_TEST_MESSAGE(get_config, GET_CONFIG, &config),
                                          SN_TEST_MESSAGE(statistics, STATISTICS, &statistics),
                                          SN_TEST_MESSAGE(trace, TRACE, &trace)};
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
    sn_test_expect_error(sn_test_request(&c, requests[i]), SINEW__V1__ERROR__CODE__RESTORING, "is being restored");
  trace.session++;
  sn_test_expect_error(sn_test_request(&c, requests[2]), SINEW__V1__ERROR__CODE__NOT_FOUND, "no session");
}

// ---- folders ----

static void test_one_daemon_a_folder(void **state) {
  (void)state;
  SnTestDaemon other = {0};
  char folder[128];
  const char *const args[] = {folder, NULL};
  assert_true(sn_test_daemon_logged(&d, "event=folder-made text=\"state: "));
  snprintf(folder, sizeof folder, "--state=%s/state", d.folder);
  sn_test_daemon_spawn(&other, args);
  assert_int_equal(sn_test_daemon_wait(&other), 1);
  assert_true(sn_test_daemon_logged(&other, "another sinewd keeps its sessions in"));
  snprintf(folder, sizeof folder, "--state=%s/open", other.folder);
  assert_int_equal(mkdir(folder + 8, 0700), 0);
  assert_int_equal(chmod(folder + 8, 0777), 0);
  sn_test_daemon_spawn(&other, args);
  assert_int_equal(sn_test_daemon_wait(&other), 1);
  assert_true(sn_test_daemon_logged(&other, "others may write into"));
  sn_test_daemon_remove(&other);
}

static void test_without_a_folder(void **state) {
  (void)state;
  SnTestDaemon other = {0};
  SnTestClient there_too;
  sn_test_begin(&other, &there_too);
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.name = "x";
  sn_test_expect_error(sn_test_request(&there_too, SN_TEST_MESSAGE(open, OPEN, &in)), SINEW__V1__ERROR__CODE__STATE,
                       "`state` names no folder");
  assert_int_equal(sn_test_end(&other, &there_too), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_goes_on),         cmocka_unit_test(test_killed),
      cmocka_unit_test(test_reset_forgets),   cmocka_unit_test(test_by_name),
      cmocka_unit_test(test_closed),          cmocka_unit_test(test_refused_opening_frees_the_name),
      cmocka_unit_test(test_other_files),     cmocka_unit_test(test_one_daemon_a_folder),
      cmocka_unit_test(test_without_a_folder)};
  const struct CMUnitTest changed[] = {cmocka_unit_test_setup_teardown(test_bad_files, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_copied_file, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_left_alone, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_full, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_other_model, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_import_killed, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_restoring, setup, teardown)};
  const int failed = cmocka_run_group_tests(tests, setup, teardown);
  return cmocka_run_group_tests(changed, NULL, NULL) + failed;
}
