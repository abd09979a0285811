// Attack: all places are taken and kept, those of connections by clients that say nothing any more, those of sessions
// by leases of a day. Others get in all the same, and who works is not disturbed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/raw_peer.h"

enum { CONNECTIONS = 8, SESSIONS = 7, OWN_SESSIONS = 4 };

// The first connection of all, and never idle. libzmq would connect again and hide its end.
static int busy = -1;

static Sinew__V1__Reply *open_with_lease(SnTestClient *c, double lease) {
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  settings.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  settings.lease = lease;
  open.task = "arm_reach";
  open.planner = sn_test_sampling();
  open.session = &settings;
  return sn_test_request(c, SN_TEST_MESSAGE(open, OPEN, &open));
}

static void send_health(SnTestClient *c) {
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  sn_test_send(c, SN_TEST_MESSAGE(health, HEALTH, &health));
}

// The connections are held by clients that have asked once. A newcomer gets in as soon as one of them has been idle for
// long enough; a client that plans goes on, without one answer lost.
static void test_idle_connections(void **state) {
  (void)state;
  SnTestClient idle[CONNECTIONS - 2], newcomer;
  Sinew__V1__Reply *opened, *r = NULL;
  unsigned char bytes[64];
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  for (int i = 0; i < CONNECTIONS - 2; i++) {
    sn_test_connect(&idle[i], sinewd.endpoint);
    send_health(&idle[i]);
    assert_non_null(r = sn_test_receive(&idle[i], 10));
    sn_test_done(r);
  }
  assert_true(sn_raw_frame(busy, 0, bytes, sn_raw_health(1, bytes, sizeof bytes)));
  const double began = sn_clock_now();
  sn_test_connect(&newcomer, sinewd.endpoint);
  int plans = 0;
  for (r = NULL; !r && sn_clock_now() < began + 30; plans++) {
    Sinew__V1__Reply *plan = sn_test_plan(&client, id, opened->open->initial, 0.02);
    assert_int_equal(plan->body_case, SINEW__V1__REPLY__BODY_PLAN);
    sn_test_done(plan);
    assert_true(sn_raw_frame(busy, 0, bytes, sn_raw_health(plans + 1, bytes, sizeof bytes)));
    assert_false(sn_raw_ended(busy, 0.02));
    send_health(&newcomer);
    r = sn_test_receive(&newcomer, 0.2);
  }
  assert_non_null(r);
  assert_false(sn_raw_ended(busy, 0.3));
  print_message("with all %d places taken a newcomer was served after %.2f s; %d plans of another, none lost\n",
                CONNECTIONS, sn_clock_now() - began, plans);
  for (int i = 0; i < 1000 && !sn_test_daemon_logged(&sinewd, "event=evicted "); i++) usleep(20000);
  assert_true(sn_test_daemon_logged(&sinewd, "event=evicted "));
  sn_test_done(r);
  sn_test_done(opened);
  sn_test_disconnect(&newcomer);
  for (int i = 0; i < CONNECTIONS - 2; i++) sn_test_disconnect(&idle[i]);
  close(busy);
}

// The same with subscribers to telemetry, which need not say anything.
static void test_idle_subscribers(void **state) {
  (void)state;
  void *context = zmq_ctx_new(), *held[2 * CONNECTIONS], *newcomer;
  for (int i = 0; i < 2 * CONNECTIONS; i++) {
    held[i] = zmq_socket(context, ZMQ_SUB);
    zmq_connect(held[i], sinewd.telemetry);
  }
  usleep(200000);
  newcomer = zmq_socket(context, ZMQ_SUB);
  zmq_setsockopt(newcomer, ZMQ_SUBSCRIBE, "", 0);
  zmq_connect(newcomer, sinewd.telemetry);
  zmq_pollitem_t item = {newcomer, 0, ZMQ_POLLIN, 0};
  assert_int_equal(zmq_poll(&item, 1, 20000), 1);
  for (int i = 0; i < 2 * CONNECTIONS; i++) {
    const int none = 0;
    zmq_setsockopt(held[i], ZMQ_LINGER, &none, sizeof none);
    zmq_close(held[i]);
  }
  zmq_close(newcomer);
  zmq_ctx_term(context);
}

// A lease beyond what is allowed is refused by name; so are more sessions than one connection may have. Those that it
// leaves behind end soon, whatever their lease, and those of a client that stays do not.
static void test_long_leases(void **state) {
  (void)state;
  SnTestClient greedy;
  sn_test_connect(&greedy, sinewd.endpoint);
  sn_test_expect_error(open_with_lease(&client, 86400), SINEW__V1__ERROR__CODE__INVALID, "lease_seconds");
  Sinew__V1__Reply *mine = open_with_lease(&client, 3000), *r;
  assert_int_equal(mine->body_case, SINEW__V1__REPLY__BODY_OPEN);
  for (int i = 0; i < OWN_SESSIONS; i++) {
    r = open_with_lease(&greedy, 3000);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_OPEN);
    sn_test_send_plan(&greedy, r->open->session, r->open->initial, 1000);  // due in a quarter of an hour
    sn_test_done(r);
  }
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  open.task = "arm_reach";
  sn_test_send(&greedy, SN_TEST_MESSAGE(open, OPEN, &open));
  sn_test_expect_error(sn_test_receive(&greedy, 10), SINEW__V1__ERROR__CODE__LIMIT, "of this connection");
  sn_test_disconnect(&greedy);
  const double left = sn_clock_now();
  int sessions = SESSIONS;
  while (sessions > 2 && sn_clock_now() < left + 30) {
    usleep(50000);
    r = sn_test_statistics(&client, 0);
    sessions = (int)r->statistics->n_sessions;
    sn_test_done(r);
  }
  print_message("%d sessions with leases of 3,000 s were gone %.2f s after their client\n", OWN_SESSIONS,
                sn_clock_now() - left);
  assert_true(sessions <= 2);
  r = sn_test_plan(&client, mine->open->session, mine->open->initial, 0.02);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  sn_test_done(r);
  sn_test_done(mine);
}

static int setup(void **state) {
  (void)state;
  sn_test_daemon_start(&sinewd, (const char *const[]){"--connections=8", "--idle-seconds=4", "--sessions=7",
                                                      "--client-sessions=4", "--orphan-seconds=0.5", NULL});
  busy = sn_raw_connect(sinewd.endpoint, "DEALER", NULL, 0);
  assert_true(busy >= 0);
  sn_test_connect(&client, sinewd.endpoint);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_idle_connections), cmocka_unit_test(test_idle_subscribers),
                                     cmocka_unit_test(test_long_leases)};
  return cmocka_run_group_tests(tests, setup, sn_test_group_teardown);
}
