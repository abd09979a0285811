// Splines: knots are met, known shapes, linearity in the knots.
#include "planner/optimize/spline_private.h"
#include "tests/support/oracle.h"

static const sn_real knots[] = {SN_R(1.0), SN_R(-2.0), SN_R(0.5), SN_R(4.0)};

static void close_to(sn_real a, double b) {
  if (!(fabs((double)a - b) < 1e-5 * (1 + fabs(b)) * (sizeof(sn_real) == 4 ? 1 : 1e-8)))
    fail_msg("%.17g, wanted %.17g", (double)a, b);
}

static void meets_knots(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; ++kind) {
    for (int k = 0; k < 4; ++k) close_to(sn_spline(kind, knots, 4, 1, (sn_real)k), (double)knots[k]);
    close_to(sn_spline(kind, knots, 4, 1, SN_R(-3.0)), 1.0);
    close_to(sn_spline(kind, knots, 4, 1, SN_R(9.0)), 4.0);
    close_to(sn_spline(kind, knots, 1, 1, SN_R(0.7)), 1.0);
  }
}

static void between_knots(void **state) {
  (void)state;
  close_to(sn_spline(SN_SPLINE_ZERO, knots, 4, 1, SN_R(1.75)), -2.0);
  close_to(sn_spline(SN_SPLINE_LINEAR, knots, 4, 1, SN_R(1.75)), -2.0 + 0.75 * 2.5);
  // By hand at the middle: (a + b) / 2 + (slope_a - slope_b) / 8, slopes -0.25 and 3.
  close_to(sn_spline(SN_SPLINE_CUBIC, knots, 4, 1, SN_R(1.5)), -0.75 + (-0.25 - 3.0) / 8);
  // Linear and quadratic functions away from the ends come out exactly.
  sn_real line[6], square[6];
  for (int k = 0; k < 6; ++k) {
    line[k] = 2 * (sn_real)k - 1;
    square[k] = (sn_real)(k * k);
  }
  close_to(sn_spline(SN_SPLINE_CUBIC, line, 6, 1, SN_R(0.3)), -0.4);
  close_to(sn_spline(SN_SPLINE_CUBIC, square, 6, 1, SN_R(2.25)), 5.0625);
}

static void linear_in_knots(void **state) {
  (void)state;
  sn_real other[4] = {SN_R(0.3), SN_R(0.7), SN_R(-1.1), SN_R(2.0)}, sum[4];
  for (int k = 0; k < 4; ++k) sum[k] = 2 * knots[k] + other[k];
  for (int kind = 0; kind < 3; ++kind)
    for (int i = 0; i <= 30; ++i) {
      const sn_real x = SN_R(0.1) * (sn_real)i;
      close_to(sn_spline(kind, sum, 4, 1, x),
               2 * (double)sn_spline(kind, knots, 4, 1, x) + (double)sn_spline(kind, other, 4, 1, x));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(meets_knots), cmocka_unit_test(between_knots),
                                     cmocka_unit_test(linear_in_knots)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
