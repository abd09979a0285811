// sinewd is killed at random moments, while it starts, restores sessions, plans, changes settings, opens, closes and
// imports; and started again at once. It must be there again soon, with every setting that was answered, and nothing of
// the last daemon may stand in its way.
//
//   daemon_test_kills [KILLS [SEED]]      the long form; kills.sh runs it
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "clients/libsinew_client/wire.h"
#include "tests/support/daemon_group.h"
#include "tests/support/daemon_keys.h"
#include "tests/support/daemon_kept.h"
#include "tests/support/daemon_tuning.h"

enum { NAMED = 3, SHORT_FORM = 10 };

static int kills = SHORT_FORM;
static unsigned long seed;

static SnTestDaemon d;
static uint64_t session[NAMED];
static atomic_long asked[NAMED], answered[NAMED];  // weights of its term "reach"
static atomic_long plans, changes, opened;
static atomic_bool stop;

static double draw(double most) { return most * (double)rand() / RAND_MAX; }

static void nap(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&t, NULL);
}

// ---- load: threads whose client library goes on by itself ----

static SinewClient *connect_load(void) {
  SinewClient *caller = NULL;
  while (!caller && !atomic_load(&stop)) caller = sinew_client_connect(d.endpoint, 60, 0, NULL);
  return caller;
}

// Sends a request; whether it was answered by that body.
static bool ask(SinewClient *caller, Sinew__V1__Request *request, Sinew__V1__Reply **reply) {
  Sinew__V1__Reply *got = NULL;
  const bool ok = sn_request(caller, request, &got, NULL) == SINEW_OK;
  if (reply && ok)
    *reply = got;
  else
    sn_free_reply(got);
  return ok;
}

// Raises the weights of the named sessions one by one.
static void *tune(void *unused) {
  (void)unused;
  SinewClient *caller = connect_load();
  for (int i = 0; !atomic_load(&stop); i = (i + 1) % NAMED) {
    SnTestChange change;
    const long next = atomic_load(&answered[i]) + 1;
    sn_test_change_begin(&change, session[i]);
    sn_test_change_weight(&change, 0, "reach", (double)next);
    Sinew__V1__Request request = sn_test_change_request(&change);
    atomic_store(&asked[i], next);
    if (ask(caller, &request, NULL)) {
      atomic_store(&answered[i], next);
      atomic_fetch_add(&changes, 1);
    }
    nap(0.001);
  }
  sinew_client_disconnect(caller);
  return NULL;
}

static void *plan(void *initial) {
  SinewClient *caller = connect_load();
  for (int i = 0; !atomic_load(&stop); i = (i + 1) % NAMED) {
    Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
    in.session = session[i];
    in.state = initial;
    in.deadline = 0.005;
    if (ask(caller, SN_TEST_MESSAGE(plan, PLAN, &in), NULL)) atomic_fetch_add(&plans, 1);
  }
  sinew_client_disconnect(caller);
  return NULL;
}

// Opens and closes, with a name and without.
static void *churn(void *unused) {
  (void)unused;
  SinewClient *caller = connect_load();
  for (int i = 0; !atomic_load(&stop); i++) {
    Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
    Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
    Sinew__V1__Reply *reply = NULL;
    in.task = "arm_reach";
    if (i % 2) in.name = "comes and goes";
    if (!ask(caller, SN_TEST_MESSAGE(open, OPEN, &in), &reply)) continue;
    close.session = reply->open->session;
    sn_free_reply(reply);
    ask(caller, SN_TEST_MESSAGE(close, CLOSE, &close), NULL);
    atomic_fetch_add(&opened, 1);
  }
  sinew_client_disconnect(caller);
  return NULL;
}

// ---- the daemon ----

static void spawn(void) {
  char state[100], config[100];
  const char *const args[] = {state, config, "--state-seconds=0.01", "--lease-seconds=3600", NULL};
  snprintf(state, sizeof state, "--state=%s/state", d.folder);
  snprintf(config, sizeof config, "--config=%s/sinewd.yaml", d.folder);
  sn_test_daemon_spawn(&d, args);
}

static void kill_daemon(void) {
  int status;
  kill(d.pid, SIGKILL);
  assert_int_equal(waitpid(d.pid, &status, 0), d.pid);
  if (!WIFSIGNALED(status)) fail_msg("sinewd had ended by itself, with status %d", WEXITSTATUS(status));
}

// Waits for the first answer; returns the seconds since `began`.
static double await_ready(SnTestClient *c, double began) {
  Sinew__V1__HealthRequest in = SINEW__V1__HEALTH_REQUEST__INIT;
  for (double until = sn_clock_now() + 60; sn_clock_now() < until;) {
    sn_test_send(c, SN_TEST_MESSAGE(health, HEALTH, &in));
    Sinew__V1__Reply *reply = sn_test_receive(c, 0.02);
    if (!reply && waitpid(d.pid, NULL, WNOHANG) == d.pid) fail_msg("sinewd did not start; see %s", d.log);
    if (!reply) continue;
    const bool ready = reply->health->state == SINEW__V1__HEALTH__STATE__READY;
    sn_test_done(reply);
    assert_true(ready);
    return sn_clock_now() - began;
  }
  fail_msg("no answer within a minute");
  return 0;
}

// Each named session has the latest weight that was answered, or one that was asked for since.
static void check_sessions(void) {
  SnTestClient c;
  sn_test_connect(&c, d.endpoint);
  for (int i = 0; i < NAMED; i++) {
    uint64_t version;
    const long least = atomic_load(&answered[i]);
    const double weight = sn_test_kept_weight(&c, session[i], &version);
    const long most = atomic_load(&asked[i]);
    if (!(weight >= (double)least && weight <= (double)most))
      fail_msg("session %d has the weight %g; %ld was answered, %ld asked for", i, weight, least, most);
    assert_true(version >= (uint64_t)least + 1);
  }
  sn_test_disconnect(&c);
}

static void drop_cache(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s/cache/*", d.folder);
  assert_int_equal(system(command), 0);
}

static int compare(const void *a, const void *b) { return sn_test_compare_doubles(a, b); }

static void report(double *ready, int n) {
  qsort(ready, (size_t)n, sizeof *ready, compare);
  print_message(
      "%d kills, %d of them while it started; ready again after %.3f s (median), %.3f s (99 of 100), %.3f s "
      "(longest); meanwhile %ld plans, %ld changes, %ld sessions opened and closed\n",
      kills, kills - n, ready[n / 2], ready[n * 99 / 100], ready[n - 1], atomic_load(&plans), atomic_load(&changes),
      atomic_load(&opened));
}

static void begin(SnTestClient *c, Sinew__V1__Reply **initial) {
  sn_test_daemon_prepare(&d);
  sn_test_daemon_write(&d, "sinewd.yaml", "loaders: 2\nsessions: 16\n");
  spawn();
  sn_test_connect(c, d.endpoint);
  for (int i = 0; i < NAMED; i++) {
    char name[] = "named 0";
    name[6] = (char)('0' + i);
    Sinew__V1__Reply *reply = sn_test_open_named(c, name, (uint64_t)i, NULL);
    session[i] = reply->open->session;
    if (i == 0)
      *initial = reply;
    else
      sn_test_done(reply);
    sn_test_kept_tune(c, session[i], 1);
    atomic_store(&answered[i], 1);
    atomic_store(&asked[i], 1);
  }
  sn_test_disconnect(c);
}

static void expect_nothing_lost(void) {
  char path[128], text[64] = "";
  struct stat st;
  snprintf(path, sizeof path, "%s/state/refused", d.folder);
  assert_int_not_equal(stat(path, &st), 0);
  assert_false(sn_test_daemon_logged(&d, "keep-refused") || sn_test_daemon_logged(&d, "keep-failed"));
  assert_false(sn_test_daemon_logged(&d, "restored-cold"));
  snprintf(path, sizeof path, "%s/sinewd.yaml", d.folder);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_true(fread(text, 1, sizeof text - 1, f) > 0);
  fclose(f);
  assert_string_equal(text, "loaders: 2\nsessions: 16\n");
}

static void test_kills(void **state) {
  (void)state;
  SnTestClient c;
  Sinew__V1__Reply *initial = NULL;
  pthread_t thread[3];
  double *ready = calloc((size_t)kills + 1, sizeof *ready);
  int n = 0;
  print_message("seed %lu\n", seed);
  srand((unsigned)seed);
  begin(&c, &initial);
  pthread_create(&thread[0], NULL, tune, NULL);
  pthread_create(&thread[1], NULL, plan, initial->open->initial);
  pthread_create(&thread[2], NULL, churn, NULL);
  nap(0.2);
  for (int k = 0; k < kills; k++) {
    kill_daemon();
    if (rand() % 4 == 0) drop_cache();
    const double began = sn_clock_now();
    spawn();
    // Every third one is killed again before it has come up.
    if (k % 3 == 2 && k < kills - 1) {
      nap(draw(0.05));
      continue;
    }
    sn_test_connect(&c, d.endpoint);
    ready[n++] = await_ready(&c, began);
    sn_test_disconnect(&c);
    check_sessions();
    nap(draw(0.15));
  }
  for (double until = sn_clock_now() + 60; sn_clock_now() < until && !(plans > 0 && changes > 0 && opened > 0);)
    nap(0.01);
  atomic_store(&stop, true);
  for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
  check_sessions();
  report(ready, n);
  expect_nothing_lost();
  assert_true(atomic_load(&plans) > 0 && atomic_load(&changes) > 0 && atomic_load(&opened) > 0);
  if (JUDGE_TIME && ready[n / 2] > 5) fail_msg("ready again only after %.1f s", ready[n / 2]);
  sn_test_done(initial);
  free(ready);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

int main(int argc, char **argv) {
  kills = argc > 1 ? atoi(argv[1]) : SHORT_FORM;
  seed = argc > 2 ? strtoul(argv[2], NULL, 10) : (unsigned long)time(NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kills)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
