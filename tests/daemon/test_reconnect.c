// The client library and a daemon that is killed and started again: a session with a name goes on by itself, and its
// plans tell of the gap.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static void test_stream_goes_on(void **state) {
  (void)state;
  SinewClient *client;
  SinewSession *session = open_named(&client, "streaming");
  SinewStreamDef def = sinew_default_stream();
  def.lease = 10;
  assert_int_equal(sinew_session_stream_start(session, &def, &err), SINEW_OK);
  for (uint64_t k = 0; k < 3; k++) {
    stream_until(session, k);
    kill_daemon();
    sn_test_daemon_spawn(&d, options);
  }
  stream_until(session, 3);
  assert_int_equal(sinew_session_stream_stop(session, &err), SINEW_OK);
  assert_int_equal(sinew_session_close(session, &err), SINEW_OK);
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
  assert_int_equal(call.status, SINEW_ERR_REFUSED);
  assert_non_null(strstr(err.text, "no session"));
  print_message("a session without a name was refused %.2f s after its daemon was started again\n",
                sn_clock_now() - began);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans_go_on), cmocka_unit_test(test_stream_goes_on),
                                     cmocka_unit_test(test_without_a_name)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
