// Reductions: values, and the same bits from any number of lanes.
#include "tests/harness/oracle.h"

static void sums_and_scans(void **state) {
  (void)state;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  sn_real x[100];
  int count[100];
  for (int i = 0; i < 100; ++i) {
    x[i] = (sn_real)(i - 30);
    count[i] = i % 3;
  }
  assert_true(sn_sum(&lane, x, 100) == (sn_real)1950);
  assert_true(sn_minimum(&lane, x, 100) == (sn_real)-30);
  assert_true(sn_sum(&lane, x, 0) == 0);
  assert_int_equal(sn_compact(&lane, count, 100), 99);
  assert_int_equal(count[0], 0);
  assert_int_equal(count[3], 3);
  assert_int_equal(count[99], 99);
  assert_int_equal(sn_compact(&lane, count, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_and_scans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
