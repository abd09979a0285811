#include "tests/support/daemon_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

int sn_test_compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
