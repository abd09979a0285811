// The client library and a daemon that is killed, or told to stop, and started again: a session with a name goes on by
// itself, and its plans tell of the gap.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clients/include/sinew_client.h"
#include "tests/support/daemon_kept.h"

static SnTestDaemon d;
static SinewError err;
static char state_option[100];
static const char *const options[] = {state_option, NULL};

static int setup(void **state) {
  (void)state;
  d = (SnTestDaemon){0};
  sn_test_daemon_prepare(&d);
  snprintf(state_option, sizeof state_option, "--state=%s/state", d.folder);
  sn_test_daemon_start(&d, options);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  const int status = sn_test_daemon_stop(&d, SIGTERM);
  sn_test_daemon_remove(&d);
  return status;
}

static void kill_daemon(void) {
  kill(d.pid, SIGKILL);
  waitpid(d.pid, NULL, 0);
}

// Tells it to end, as a restart of a service does: it says good-bye to those who wait and to streams.
static void stop_daemon(void) {
  kill(d.pid, SIGTERM);
  waitpid(d.pid, NULL, 0);
}

static SinewSession *open_named(SinewClient **client, const char *name) {
  *client = sinew_client_connect(d.endpoint, 20, 0, &err);
  if (!*client) fail_msg("%s", err.text);
  static const char *const settings[] = {"planner=sampling", "iterations=0", NULL};  // until the deadline
  SinewSessionDef def = sinew_default_session();
  def.settings = settings;
  def.task = "arm_reach";
  def.name = name;
  SinewSession *session = sinew_session_open(*client, &def, &err);
  if (!session) fail_msg("%s", err.text);
  return session;
}

// A call that waits: for a plan that takes longer than the daemon lives.
typedef struct Call {
  SinewSession *session;
  double deadline;
  SinewStatus status;
} Call;

static void *plan(void *argument) {
  Call *call = argument;
  const SinewState state = sinew_session_info(call->session)->initial;
  call->status = sinew_session_plan(call->session, &state, call->deadline, &err);
  return NULL;
}

// Between two requests, and while one waits for its answer: the next plan comes, and says that there was a gap.
static void test_plans_go_on(void **state) {
  (void)state;
  SinewClient *client;
  SinewSession *session = open_named(&client, "arm");
  assert_int_equal(sinew_session_info(session)->restarts, 0);
  Call call = {session, 0.01, SINEW_OK};
  for (int k = 0; k < 3; k++) {
    pthread_t thread;
    plan(&call);
    if (call.status != SINEW_OK) fail_msg("%s", err.text);
    assert_int_equal(sinew_session_current_plan(session)->restarts, k);
    call.deadline = k == 2 ? 4 : 0.01;
    if (k == 2) pthread_create(&thread, NULL, plan, &call);
    usleep(200000);
    kill_daemon();
    usleep(100000);
    sn_test_daemon_spawn(&d, options);
    if (k == 2) pthread_join(thread, NULL);
  }
  if (call.status != SINEW_OK) fail_msg("%s", err.text);
  assert_int_equal(sinew_session_current_plan(session)->restarts, 3);
  sinew_session_leave(session);
  sinew_client_disconnect(client);

  // A program that was started again finds it by its name, and closes it.
  session = open_named(&client, "arm");
  assert_true(sinew_session_info(session)->resumed);
  assert_int_equal(sinew_session_info(session)->restarts, 3);
  assert_int_equal(sinew_session_close(session, &err), SINEW_OK);
  sinew_client_disconnect(client);
  session = open_named(&client, "arm");
  assert_false(sinew_session_info(session)->resumed);
  assert_int_equal(sinew_session_close(session, &err), SINEW_OK);
  sinew_client_disconnect(client);
}

// Streams states and takes plans until there is one of that many restarts; fails on any error.
static void stream_until(SinewSession *session, uint64_t restarts) {
  SinewState state = sinew_session_info(session)->initial;
  for (double until = sn_clock_now() + 20; sn_clock_now() < until; usleep(5000)) {
    state.time += 0.005;
    assert_int_equal(sinew_session_stream_send(session, &state, &err), SINEW_OK);
    const SinewStatus status = sinew_session_stream_receive(session, 0, &err);
    if (status != SINEW_OK && status != SINEW_ERR_TIMEOUT) fail_msg("%s", err.text);
    if (status == SINEW_OK && sinew_session_current_plan(session)->restarts == restarts) return;
  }
  fail_msg("no plan after %d restarts", (int)restarts);
}

static void go_on_streaming(const char *name, void (*end)(void)) {
  SinewClient *client;
  SinewSession *session = open_named(&client, name);
  SinewStreamDef def = sinew_default_stream();
  def.lease = 10;
  assert_int_equal(sinew_session_stream_start(session, &def, &err), SINEW_OK);
  for (uint64_t k = 0; k < 3; k++) {
    stream_until(session, k);
    end();
    sn_test_daemon_spawn(&d, options);
  }
  stream_until(session, 3);
  assert_int_equal(sinew_session_stream_stop(session, &err), SINEW_OK);
  assert_int_equal(sinew_session_close(session, &err), SINEW_OK);
  sinew_client_disconnect(client);
}

static void test_stream_goes_on(void **state) {
  (void)state;
  go_on_streaming("streaming", kill_daemon);
}

static void test_stream_outlasts_an_orderly_end(void **state) {
  (void)state;
  go_on_streaming("in order", stop_daemon);
}

enum { ROWS = 2048 };  // as many as the daemon takes, so that it is nearly always in the middle of them

// Asks for one evaluation after the other in a thread of its own, until one fails or `enough` of them came.
typedef struct Loop {
  SinewSession *session;
  const double *ctrl;  // (ROWS, nu)
  double *gradient;    // likewise
  _Atomic SinewStatus status;
  atomic_int answers;
  atomic_bool enough;
} Loop;

static void *evaluate_on(void *argument) {
  Loop *loop = argument;
  const SinewState state = sinew_session_info(loop->session)->initial;
  double cost;
  for (; !loop->enough && loop->status == SINEW_OK; loop->answers++)
    loop->status = sinew_session_evaluate(loop->session, &state, loop->ctrl, ROWS, &cost, loop->gradient, &err);
  return NULL;
}

// What waits while the daemon stops is refused by it. Who asked is answered by the next one.
static void test_requests_outlast_an_orderly_end(void **state) {
  (void)state;
  SinewClient *client;
  SinewSession *session = open_named(&client, "asking");
  const size_t n = (size_t)ROWS * (size_t)sinew_session_info(session)->nu;
  double *ctrl = calloc(n, sizeof *ctrl), *gradient = calloc(n, sizeof *gradient);
  assert_true(ctrl && gradient);
  Loop loop = {session, ctrl, gradient, SINEW_OK, 0, false};
  pthread_t thread;
  pthread_create(&thread, NULL, evaluate_on, &loop);
  for (int k = 0; k < 5; k++) {
    // Not before this daemon has the session: one that ends earlier is no restart of it.
    for (const int before = loop.answers; loop.answers < before + 2 && loop.status == SINEW_OK;) usleep(1000);
    stop_daemon();
    sn_test_daemon_spawn(&d, options);
  }
  loop.enough = true;
  pthread_join(thread, NULL);
  if (loop.status != SINEW_OK) fail_msg("%s", err.text);
  Call call = {session, 0.005, SINEW_OK};
  plan(&call);
  assert_int_equal(call.status, SINEW_OK);
  assert_int_equal(sinew_session_current_plan(session)->restarts, 5);
  assert_int_equal(sinew_session_close(session, &err), SINEW_OK);
  sinew_client_disconnect(client);
  free(gradient);
  free(ctrl);
}

// The stream of a session without a name is over when its daemon stops, and says why.
static void test_stream_without_a_name(void **state) {
  (void)state;
  SinewClient *client;
  SinewSession *session = open_named(&client, NULL);
  SinewStreamDef stream = sinew_default_stream();
  stream.lease = 10;
  assert_int_equal(sinew_session_stream_start(session, &stream, &err), SINEW_OK);
  stream_until(session, 0);
  stop_daemon();
  SinewStatus status = SINEW_OK;
  while (status == SINEW_OK || status == SINEW_ERR_REFUSED)  // a state may have been on its way
    status = sinew_session_stream_receive(session, 5, &err);
  assert_int_equal(status, SINEW_ERR_ENDED);
  assert_string_equal(err.text, "continuous mode has ended: the daemon stops");
  sn_test_daemon_spawn(&d, options);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// One without a name is gone with its daemon, and is told so at once, not by a time-out.
static void test_without_a_name(void **state) {
  (void)state;
  SinewClient *client;
  SinewSession *session = open_named(&client, NULL);
  kill_daemon();
  sn_test_daemon_spawn(&d, options);
  Call call = {session, 0.01, SINEW_OK};
  const double began = sn_clock_now();
  plan(&call);
  assert_int_equal(call.status, SINEW_ERR_NO_SESSION);
  assert_non_null(strstr(err.text, "no session"));
  print_message("a session without a name was refused %.2f s after its daemon was started again\n",
                sn_clock_now() - began);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

// How much a daemon reads is what the one says that is there now.
static void test_another_limit(void **state) {
  (void)state;
  enum { STEPS = 200, NU = 6 };
  static double ctrl[STEPS * NU];
  static const char *const shorter[] = {state_option, "--message-bytes=4000", NULL};
  SinewClient *client;
  SinewSession *session = open_named(&client, "limits");
  const SinewState start = sinew_session_info(session)->initial;
  double cost;
  assert_int_equal(sinew_session_evaluate(session, &start, ctrl, STEPS, &cost, NULL, &err), SINEW_OK);
  kill_daemon();
  sn_test_daemon_spawn(&d, shorter);
  assert_int_equal(sinew_session_evaluate(session, &start, ctrl, STEPS, &cost, NULL, &err), SINEW_ERR_LIMIT);
  assert_non_null(strstr(err.text, "the daemon takes at most 4000"));
  kill_daemon();
  sn_test_daemon_spawn(&d, options);
  const SinewStatus status = sinew_session_evaluate(session, &start, ctrl, STEPS, &cost, NULL, &err);
  if (status != SINEW_OK) fail_msg("%s", err.text);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

static double cost_of(SinewSession *session, const SinewState *start, uint64_t version) {
  if (sinew_session_plan(session, start, 0.02, &err) != SINEW_OK) fail_msg("%s", err.text);
  const SinewSessionPlan *plan = sinew_session_current_plan(session);
  assert_int_equal(plan->config_version, version);
  double cost;
  if (sinew_session_evaluate(session, start, plan->ctrl, plan->steps, &cost, NULL, &err) != SINEW_OK)
    fail_msg("%s", err.text);
  return cost;
}

static void change(SinewStatus status, SinewStatus wanted, const char *said) {
  if (status != wanted) fail_msg("status %d: %s", (int)status, err.text);
  if (said && !strstr(err.text, said)) fail_msg("'%s' does not say '%s'", err.text, said);
}

// What a controller changes counts from the next plan on, and is there again after a restart.
static void test_changes_go_on(void **state) {
  (void)state;
  SinewClient *client;
  SinewSession *session = open_named(&client, "tuned");
  const SinewState start = sinew_session_info(session)->initial;
  const double far[3] = {5, 0, 5};
  const double first = cost_of(session, &start, 1);
  change(sinew_session_set_target(session, "reach", far, 3, &err), SINEW_OK, NULL);
  const double away = cost_of(session, &start, 2);
  assert_true(away > 10 * first);
  change(sinew_session_set_weight(session, "reach", 0, 0, &err), SINEW_OK, NULL);
  kill_daemon();
  sn_test_daemon_spawn(&d, options);
  assert_true(cost_of(session, &start, 3) < 0.1 * away);
  change(sinew_session_set(session, "noise_scale=0.3", &err), SINEW_OK, NULL);
  change(sinew_session_set(session, "latency=0.02", &err), SINEW_OK, NULL);
  cost_of(session, &start, 5);
  assert_int_equal(sinew_session_current_plan(session)->lead, 4);
  change(sinew_session_set(session, "horizon=9", &err), SINEW_ERR_REFUSED, "horizon");
  change(sinew_session_set(session, "noise_scale=-1", &err), SINEW_ERR_REFUSED, "noise_scale");
  change(sinew_session_set_weight(session, "reech", 1, 1, &err), SINEW_ERR_REFUSED, "did you mean 'reach'?");
  change(sinew_session_set_target(session, "reach", far, 2, &err), SINEW_ERR_REFUSED, "2 numbers, allowed is 3");
  change(sinew_session_set_target(session, "reach", NULL, 0, &err), SINEW_OK, NULL);
  cost_of(session, &start, 6);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_another_limit),
                                     cmocka_unit_test(test_changes_go_on),
                                     cmocka_unit_test(test_plans_go_on),
                                     cmocka_unit_test(test_stream_goes_on),
                                     cmocka_unit_test(test_stream_outlasts_an_orderly_end),
                                     cmocka_unit_test(test_requests_outlast_an_orderly_end),
                                     cmocka_unit_test(test_stream_without_a_name),
                                     cmocka_unit_test(test_without_a_name)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
