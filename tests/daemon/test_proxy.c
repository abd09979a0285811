// A bad line between clients and daemon: what passes is delayed, comes a byte at a time, is cut in the middle of a
// frame, swallowed, doubled, spoiled. The client library goes on, or says what failed within its timeout; the daemon
// serves others meanwhile.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "clients/include/sinew_client.h"
#include "tests/support/daemon_group.h"
#include "tests/support/proxy.h"
#include "tests/support/raw_peer.h"

static SnProxy proxy;
static SinewError err;

static int setup(void **state) {
  (void)state;
  static const char *const args[] = {"--orphan-seconds=4", "--sessions=64", NULL};
  sn_test_daemon_start(&sinewd, args);
  sn_test_connect(&client, sinewd.endpoint);
  sn_proxy_start(&proxy, sinewd.folder, sinewd.endpoint);
  return 0;
}

static int teardown(void **state) {
  sn_proxy_stop(&proxy);
  return sn_test_group_teardown(state);
}

// A whole conversation over the proxy. Returns the first status that is not SINEW_OK; *seconds is what it took.
static SinewStatus converse(double timeout, double *seconds) {
  const double began = sn_clock_now();
  SinewStatus status = SINEW_OK;
  SinewSessionDef def = sinew_default_session();
  def.task = "arm_reach";
  SinewClient *caller = sinew_client_connect(proxy.endpoint, timeout, 0, &err);
  SinewSession *session = caller ? sinew_session_open(caller, &def, &err) : NULL;
  if (!session) status = err.status;
  for (int k = 0; k < 3 && status == SINEW_OK; k++) {
    SinewState state = sinew_session_info(session)->initial;
    state.time = 0.01 * k;
    status = sinew_session_plan(session, &state, 0.01, &err);
  }
  const SinewError first = err;
  if (session) {
    const SinewStatus closed = sinew_session_close(session, &err);
    status = status == SINEW_OK ? closed : status;
    if (closed == SINEW_OK) err = first;
  }
  sinew_client_disconnect(caller);
  *seconds = sn_clock_now() - began;
  return status;
}

// Somebody else, on a line of his own, is served.
static void expect_served(void) { assert_true(sn_test_answers(&client, 30)); }

static void test_delay(void **state) {
  (void)state;
  double seconds;
  SnProxyRules rules = sn_proxy_pass();
  rules.delay = 0.03;
  sn_proxy_rule(&proxy, &rules);
  if (converse(20, &seconds) != SINEW_OK) fail_msg("%s", err.text);
  assert_true(seconds > 7 * 2 * 0.03);
}

// In single bytes all is understood.
static void test_byte_by_byte(void **state) {
  (void)state;
  SnProxyRules rules = sn_proxy_pass();
  rules.pace = 0.0001;
  sn_proxy_rule(&proxy, &rules);
  SinewClient *caller = sinew_client_connect(proxy.endpoint, 60, 0, &err);
  if (!caller) fail_msg("%s", err.text);
  sinew_client_disconnect(caller);
}

// A byte a second, in both ways: the library gives up in time, the daemon serves others.
static void test_byte_a_second(void **state) {
  (void)state;
  double seconds;
  SnProxyRules rules = sn_proxy_pass();
  rules.pace = 1;
  sn_proxy_rule(&proxy, &rules);
  assert_int_equal(converse(2, &seconds), SINEW_ERR_TIMEOUT);
  assert_true(seconds < 10);
  expect_served();
}

// The first connection ends after any number of bytes, counted in both ways: the request is sent again over the next
// one. Where the answer to a close was cut, the session is closed.
static void test_cut(void **state) {
  (void)state;
  double seconds, longest = 0;
  int cuts = 0;
  for (long at = 0; at < 3000; at += at < 200 ? 3 : 37) {
    SnProxyRules rules = sn_proxy_pass();
    rules.cut = at;
    rules.cuts = 1 + (int)(at % 3);
    sn_proxy_rule(&proxy, &rules);
    if (converse(20, &seconds) != SINEW_OK) fail_msg("cut after %ld bytes: %s", at, err.text);
    longest = seconds > longest ? seconds : longest;
    cuts++;
  }
  print_message("%d conversations whose first connections were cut; the longest took %.2f s\n", cuts, longest);
  expect_served();
}

// Whatever comes out of it, the library says it within its timeouts, and nobody crashes.
static void test_spoiled(void **state) {
  (void)state;
  int ways[SINEW_ERR_ENDED + 20] = {0}, n = 0, good = 0;
  const unsigned seed = (unsigned)time(NULL);
  print_message("seed %u\n", seed);
  for (double until = sn_clock_now() + 5; sn_clock_now() < until; n++) {
    double seconds;
    SnProxyRules rules = sn_proxy_pass();
    rules.seed = seed + (unsigned)n;
    rules.drop = n % 3 == 0 ? 0.15 : 0;
    rules.duplicate = n % 3 == 1 ? 0.15 : 0;
    rules.spoil = n % 3 == 2 ? 0.15 : 0;
    sn_proxy_rule(&proxy, &rules);
    const SinewStatus status = converse(0.15, &seconds);
    assert_true(status >= 0 && (size_t)status < sizeof ways / sizeof *ways);
    ways[status]++;
    good += status == SINEW_OK;
    // Connect, open (two requests), three plans, close: each has its timeout.
    if (JUDGE_TIME && seconds > 8) fail_msg("status %d took %.1f s", (int)status, seconds);
    assert_true(sn_test_daemon_runs(&sinewd));
  }
  print_message("%d conversations, %d of them whole; others:", n, good);
  for (size_t i = 1; i < sizeof ways / sizeof *ways; i++)
    if (ways[i]) print_message(" %d with status %zu", ways[i], i);
  print_message("\n");
  expect_served();
}

// What broken conversations have opened ends soon.
static void test_nothing_is_left(void **state) {
  (void)state;
  size_t n = 1;
  for (double until = sn_clock_now() + 20; n > 0 && sn_clock_now() < until; usleep(50000)) {
    Sinew__V1__Reply *reply = sn_test_statistics(&client, 0);
    n = reply->statistics->n_sessions;
    sn_test_done(reply);
  }
  assert_int_equal(n, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_delay),         cmocka_unit_test(test_byte_by_byte),
                                     cmocka_unit_test(test_byte_a_second), cmocka_unit_test(test_cut),
                                     cmocka_unit_test(test_spoiled),       cmocka_unit_test(test_nothing_is_left)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
