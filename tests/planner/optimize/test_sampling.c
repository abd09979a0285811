// Candidates: noise in the range of the controls that depends on its counters alone, and the winner.
#include "planner/optimize/sampling.h"
#include "tests/support/oracle.h"

static const char *xml =
    "<mujoco><worldbody><body><joint name='j' axis='0 1 0'/><geom size='.1'/></body></worldbody><actuator>"
    "<motor joint='j' ctrllimited='true' ctrlrange='-2 6'/><motor joint='j' ctrllimited='true' ctrlrange='0 1'/>"
    "<motor joint='j'/></actuator></mujoco>";

static void candidates(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  enum { STEPS = 40 };
  sn_real base[STEPS * 3], scratch[3 * (STEPS + 2)], a[STEPS * 3], b[STEPS * 3];
  for (int i = 0; i < STEPS * 3; ++i) base[i] = SN_R(0.1) * (sn_real)(i % 3);
  SnNoiseSettings noise = {.seed = 9,
                           .plan = 4,
                           .iteration = 1,
                           .spacing = 8,
                           .phase = 3,
                           .interpolation = SN_SPLINE_LINEAR,
                           .colour = SN_NOISE_PINK,
                           .scale = 1};
  noise.knots = sn_noise_knots(STEPS, 8, 3);
  assert_true((STEPS - 1 + 3) / 8 + 1 < noise.knots);
  sn_noise_candidate(o.m, &noise, 0, base, STEPS, scratch, a);
  assert_memory_equal(a, base, sizeof base);
  sn_noise_candidate(o.m, &noise, 17, base, STEPS, scratch, a);
  sn_noise_candidate(o.m, &noise, 18, base, STEPS, scratch, b);
  assert_memory_not_equal(a, b, sizeof a);
  sn_noise_candidate(o.m, &noise, 17, base, STEPS, scratch, b);
  assert_memory_equal(a, b, sizeof a);
  for (int t = 0; t < STEPS; ++t) {
    assert_true(a[3 * t] >= -2 && a[3 * t] <= 6 && a[3 * t + 1] >= 0 && a[3 * t + 1] <= 1);
    // Between knots, which lie where t + phase is a multiple of the spacing, the unlimited control is a line.
    if (t > 0 && t + 1 < STEPS && (t + 3) % 8 != 0) {
      const double bend = (double)(a[3 * t + 5] - 2 * a[3 * t + 2] + a[3 * t - 1]);
      assert_true(fabs(bend) < 1e-5);
    }
  }
  noise.plan = 5;
  sn_noise_candidate(o.m, &noise, 17, base, STEPS, scratch, b);
  assert_memory_not_equal(a, b, sizeof a);
  sn_oracle_free(&o);
}

// The noise is one function of time: a row of a time grid has its mean over the base steps of the row.
static void noise_on_a_grid(void **state) {
  (void)state;
  SnOracle o;
  SnError err = {0};
  sn_oracle_load_string(&o, xml);
  enum { BASE = 40, ROWS = 16 };
  static const sn_real base[BASE * 3] = {0};
  sn_real scratch[3 * (BASE + 2)], fine[BASE * 3], rows[BASE * 3];
  for (int kind = SN_SPLINE_ZERO; kind <= SN_SPLINE_CUBIC; ++kind) {
    SnNoiseSettings noise = {.seed = 9,
                             .plan = 4,
                             .spacing = 7,
                             .phase = 3,
                             .knots = sn_noise_knots(BASE, 7, 3),
                             .interpolation = kind,
                             .colour = SN_NOISE_BROWN,
                             .scale = 1};
    sn_noise_candidate(o.m, &noise, 17, base, BASE, scratch, fine);
    if (sn_grid_parse("8x1,4x2,4x6", BASE, &noise.grid, &err) != SN_OK) fail_msg("%s", err.text);
    sn_noise_candidate(o.m, &noise, 17, base, ROWS, scratch, rows);
    sn_grid_gather(&noise.grid, BASE, 3, fine, fine);
    double largest = 0;
    for (int t = 0; t < ROWS; ++t) {  // of the control without a range, which nothing cuts
      assert_true(fabs((double)(rows[3 * t + 2] - fine[3 * t + 2])) < 1e-5);
      largest = sn_larger(largest, fabs((double)rows[3 * t + 2]));
    }
    assert_true(largest > 0.1);
  }
  sn_oracle_free(&o);
}

static void best(void **state) {
  (void)state;
  const double cost[] = {3, 2, (double)INFINITY, 1, 1, 0};
  const unsigned char done[] = {1, 1, 1, 1, 1, 0}, hole[] = {1, 1, 0, 1, 1, 1}, none[] = {0, 1, 1, 1, 1, 1};
  int used;
  assert_int_equal(sn_best_candidate(cost, done, 6, &used), 3);  // of equal costs the first
  assert_int_equal(used, 5);
  assert_int_equal(sn_best_candidate(cost, hole, 6, &used), 1);
  assert_int_equal(used, 2);
  assert_int_equal(sn_best_candidate(cost, none, 6, &used), -1);
  assert_int_equal(used, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(candidates), cmocka_unit_test(noise_on_a_grid),
                                     cmocka_unit_test(best)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
