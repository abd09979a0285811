#include "tests/support/daemon_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
// cmocka needs what stands above.
#include <cmocka.h>

SnTestDaemon sinewd;
SnTestClient client;

int sn_test_group_setup(void **state) {
  (void)state;
  sn_test_begin(&sinewd, &client);
  return 0;
}

int sn_test_group_teardown(void **state) {
  (void)state;
  return sn_test_end(&sinewd, &client);
}

void sn_test_judge(bool (*holds)(void *context), void *context) {
  enum { TRIES = JUDGE_TIME ? 6 : 1 };
  bool held = false;
  for (int i = 0; i < TRIES && !held; i++) held = holds(context);
  assert_true(held || !JUDGE_TIME);
}

Sinew__V1__Reply *sn_test_reply(Sinew__V1__Request *request, Sinew__V1__Reply__BodyCase body) {
  Sinew__V1__Reply *reply = sn_test_request(&client, request);
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR && body != SINEW__V1__REPLY__BODY_ERROR)
    fail_msg("error: %s", reply->error->text);
  assert_int_equal(reply->body_case, body);
  return reply;
}

Sinew__V1__Reply *sn_test_statistics(SnTestClient *c, uint64_t session) {
  Sinew__V1__StatisticsRequest in = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = session;
  request.body_case = SINEW__V1__REQUEST__BODY_STATISTICS;
  request.statistics = &in;
  return sn_test_request(c, &request);
}

// Time that the planner has worked for a session [s].
static double served(SnTestClient *c, uint64_t session) {
  Sinew__V1__Reply *r = sn_test_statistics(c, session);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STATISTICS);
  const double seconds = r->statistics->sessions[0]->served;
  sn_test_done(r);
  return seconds;
}

// The time grows after each slice, once perhaps for a plan that was answered just before that.
bool sn_test_await_planning(SnTestClient *c, uint64_t session, double seconds) {
  const double until = sn_clock_now() + seconds;
  double before = served(c, session);
  int grown = 0;
  for (; grown < 2 && sn_clock_now() < until; usleep(5000)) {
    const double now = served(c, session);
    grown += now > before;
    before = now;
  }
  return grown == 2;
}

int sn_test_compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
