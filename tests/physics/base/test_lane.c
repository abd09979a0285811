// Reductions: values, and the same bits from any number of lanes.
#include "tests/support/oracle.h"

static sn_real sum(SnLane *lane, const sn_real *x, int n) {
  sn_real part[SN_VLANES] = {0};
  SN_FOR_PARTS(k, i, n) part[k] += x[i];
  return sn_sum_parts(lane, part);
}

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
  assert_true(sum(&lane, x, 100) == (sn_real)1950);
  assert_true(sum(&lane, x, 0) == 0);
  assert_int_equal(sn_count(&lane, 7), 7);
  assert_int_equal(sn_compact(&lane, count, 100), 99);
  assert_int_equal(count[0], 0);
  assert_int_equal(count[3], 3);
  assert_int_equal(count[99], 99);
  assert_int_equal(sn_compact(&lane, count, 0), 0);
}

// Also where squares leave the range of numbers on either side, and where no number is the answer.
static void norms(void **state) {
  (void)state;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  const bool single = sizeof(sn_real) == 4;
  const double tolerance = single ? 1e-6 : 1e-15, scales[] = {1, single ? 1e30 : 1e300, single ? 1e-30 : 1e-300};
  sn_real x[100];
  for (int k = 0; k < 3; ++k) {
    double sum = 0;
    for (int i = 0; i < 100; ++i) {
      const double y = 0.01 * (i - 30) * (i % 7);
      sum += y * y;
      x[i] = (sn_real)(y * scales[k]);
    }
    const double norm = (double)sn_norm(&lane, x, 100) / scales[k];
    if (!(fabs(norm / sqrt(sum) - 1) < tolerance)) fail_msg("scale %g: %.17g, not %.17g", scales[k], norm, sqrt(sum));
  }
  assert_true(sn_norm(&lane, x, 0) == 0);
  x[40] = (sn_real)NAN;
  assert_true(isinf((double)sn_norm(&lane, x, 100)));
  x[40] = -(sn_real)INFINITY;
  assert_true(isinf((double)sn_norm(&lane, x, 100)));
  assert_true(isfinite((double)sn_norm(&lane, x, 40)));
  for (int i = 0; i < 100; ++i) x[i] = 0;
  assert_true(sn_norm(&lane, x, 100) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_and_scans), cmocka_unit_test(norms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
