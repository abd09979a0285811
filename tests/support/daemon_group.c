#include "tests/support/daemon_group.h"

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
