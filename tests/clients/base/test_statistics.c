// The figures that checker, benchmark and tests judge by: a largest error that keeps NaN, the median, quantiles.
#include "clients/base/statistics.h"

#include "tests/support/oracle.h"

static double largest_error(const double *a, const double *b, int n) {
  double worst = 0;
  for (int i = 0; i < n; ++i) worst = sn_larger(worst, fabs(a[i] - b[i]));
  return worst;
}

static void larger(void **state) {
  (void)state;
  assert_true(sn_larger(1, 2) == 2 && sn_larger(2, 1) == 2 && sn_larger(-2, -1) == -1 && sn_larger(3, 3) == 3);
  assert_true(sn_larger(1, INFINITY) == INFINITY && sn_larger(INFINITY, 1) == INFINITY);
  assert_true(sn_larger(1, -INFINITY) == 1 && sn_larger(-INFINITY, 1) == 1);
  static const double other[] = {0, 1, -1, INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < sizeof other / sizeof *other; ++i)
    assert_true(isnan(sn_larger(NAN, other[i])) && isnan(sn_larger(other[i], NAN)));
}

// NaN or an infinity at any place, in what is judged or in what it is judged by, is an error that no bound allows.
static void no_bound_allows(void **state) {
  (void)state;
  enum { N = 4 };
  static const double strange[] = {NAN, INFINITY, -INFINITY};
  const double good[N] = {1, -2, 3, 0};
  assert_true(largest_error(good, good, N) == 0);
  for (int k = 0; k < 3; ++k)
    for (int i = 0; i < N; ++i) {
      double bad[N];
      memcpy(bad, good, sizeof bad);
      bad[i] = strange[k];
      assert_false(largest_error(bad, good, N) <= 1e300 || largest_error(good, bad, N) <= 1e300);
    }
  // also where both have the same
  assert_false(largest_error(strange, strange, 3) <= 1e300);
}

static void median(void **state) {
  (void)state;
  double odd[] = {3, -1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};
  assert_true(sn_median(odd, 3) == 2 && sn_median(even, 4) == 2.5 && sn_median(one, 1) == 7);
  assert_true(isnan(sn_median(one, 0)));
}

// Of a hundred numbers 99 are at most their quantile 0.99, which is the 99th and not the largest.
static void quantiles(void **state) {
  (void)state;
  double x[100];
  for (int i = 0; i < 100; ++i) x[i] = i + 1;
  for (int k = 0; k <= 100; ++k) assert_true(sn_quantile(x, 100, 0.01 * k) == (k ? k : 1));
  assert_true(sn_quantile(x, 3, 0.5) == 2 && sn_quantile(x, 2, 0.5) == 1 && sn_quantile(x, 3, 0.99) == 3);
  assert_true(sn_quantile(x, 1, 0) == 1 && sn_quantile(x, 1, 1) == 1 && isnan(sn_quantile(x, 0, 0.5)));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(larger), cmocka_unit_test(no_bound_allows),
                                     cmocka_unit_test(median), cmocka_unit_test(quantiles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
