// Muscle curves against MuJoCo's, and their properties.
#include <stdio.h>

#include "physics/base/muscle_curves.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

static double uniform(SnOracle *o, double lo, double hi) { return lo + (hi - lo) * 0.5 * (1 + sn_oracle_uniform(o)); }

static void close_to(double ours, double ref, double scale) {
  assert_true(fabs(ours - ref) <= SN_TOL(1e-12, 2e-5) * scale);
}

static void curves(void **state) {
  (void)state;
  SnOracle o = {.rng = 1};
  for (int k = 0; k < 20000; ++k) {
    // range, force, scale, lmin, lmax, vmax, fpmax, fvmax
    double prm[9] = {uniform(&o, 0.4, 0.9), uniform(&o, 1, 1.2),   k % 3 ? -1 : uniform(&o, 1, 500),
                     uniform(&o, 100, 300), uniform(&o, 0.2, 0.7), uniform(&o, 1.3, 1.9),
                     uniform(&o, 0.5, 3),   uniform(&o, 0.5, 2),   uniform(&o, 1.05, 1.6)};
    if (k % 50 == 0) prm[8] = 1;
    double range[2] = {uniform(&o, 0.1, 0.2), uniform(&o, 0.25, 0.4)}, acc0 = k % 40 == 0 ? 0 : uniform(&o, 0.1, 2);
    if (k % 40 == 0) prm[2] = 10;
    const double length = uniform(&o, 0.05, 0.5), velocity = uniform(&o, -1, 1);
    sn_real p[9], r[2];
    for (int i = 0; i < 9; ++i) prm[i] = (double)(p[i] = (sn_real)prm[i]);
    for (int i = 0; i < 2; ++i) range[i] = (double)(r[i] = (sn_real)range[i]);
    const double force = prm[2] < 0 ? prm[3] / acc0 : prm[2];
    sn_real table[SN_NMUSCLE];
    sn_muscle_table(table, p, r, (sn_real)acc0);
    close_to((double)sn_muscle_gain(table, (sn_real)length, (sn_real)velocity),
             mju_muscleGain((double)(sn_real)length, (double)(sn_real)velocity, range, (double)(sn_real)acc0, prm),
             10 * force);
    close_to((double)sn_muscle_bias(table, (sn_real)length),
             mju_muscleBias((double)(sn_real)length, range, (double)(sn_real)acc0, prm), 100 * force);
  }
}

static void activation(void **state) {
  (void)state;
  SnOracle o = {.rng = 1};
  for (int k = 0; k < 20000; ++k) {
    const sn_real prm[3] = {(sn_real)uniform(&o, 0.005, 0.02), (sn_real)uniform(&o, 0.02, 0.08),
                            k % 2 ? 0 : (sn_real)uniform(&o, 0.01, 0.5)};
    const double ref_prm[3] = {(double)prm[0], (double)prm[1], (double)prm[2]};
    const sn_real ctrl = (sn_real)uniform(&o, -0.3, 1.3), act = (sn_real)uniform(&o, -0.1, 1.1);
    close_to((double)sn_muscle_rate(ctrl, act, prm), mju_muscleDynamics((double)ctrl, (double)act, ref_prm), 300);
  }
}

static void properties(void **state) {
  (void)state;
  const sn_real prm[9] = {SN_R(0.75), SN_R(1.05), 100, 0, SN_R(0.5), SN_R(1.6), SN_R(1.5), SN_R(1.3), SN_R(1.2)};
  const sn_real range[2] = {SN_R(0.75), SN_R(1.05)};  // so that L is the length itself
  const sn_real dyn[3] = {SN_R(0.01), SN_R(0.04), 0};
  sn_real t[SN_NMUSCLE];
  sn_muscle_table(t, prm, range, 1);
  assert_true(fabs((double)sn_muscle_gain(t, 1, 0) + 100) < 1e-3);  // isometric peak
  assert_true(sn_muscle_gain(t, 1, SN_R(-1.6)) == 0);               // faster than vmax
  assert_true(fabs((double)sn_muscle_gain(t, 1, 5) + 120) < 1e-3);  // fvmax
  assert_true(sn_muscle_gain(t, SN_R(0.4), 0) == 0);
  assert_true(sn_muscle_bias(t, SN_R(0.9)) == 0);                       // slack below the optimum
  assert_true(fabs((double)sn_muscle_bias(t, SN_R(1.3)) + 65) < 1e-3);  // half of fpmax at b
  assert_true(sn_muscle_bias(t, SN_R(1.5)) < sn_muscle_bias(t, SN_R(1.3)));
  assert_true(sn_muscle_rate(1, 1, dyn) == 0 && sn_muscle_rate(0, 0, dyn) == 0);
  assert_true(sn_muscle_rate(1, SN_R(0.5), dyn) > 0 && sn_muscle_rate(0, SN_R(0.5), dyn) < 0);
  assert_true(sn_muscle_rate(2, 0, dyn) == sn_muscle_rate(1, 0, dyn));  // ctrl is clamped
}

// Derivatives: central differences, off the kinks by more than the step.
static double by_differences(double up, double down, double h) { return (up - down) / (2 * h); }

static void slopes(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  SnOracle o = {.rng = 2};
  const sn_real prm[9] = {SN_R(0.75), SN_R(1.05), 100, 0, SN_R(0.5), SN_R(1.6), SN_R(1.5), SN_R(1.3), SN_R(1.2)};
  const sn_real range[2] = {SN_R(0.2), SN_R(0.4)};
  sn_real t[SN_NMUSCLE];
  sn_muscle_table(t, prm, range, 1);
  int zero = 0;
  for (int k = 0; k < 20000; ++k) {
    const double h = 1e-7, length = uniform(&o, 0.0, 0.9), velocity = uniform(&o, -1.5, 1.5);
    sn_real d[5] = {0};
    sn_muscle_gain_vjp(t, length, velocity, 2, d, d + 1);
    sn_muscle_gain_slope_vjp(t, length, velocity, 2, d + 2, d + 3);
    sn_muscle_bias_vjp(t, length, 2, d + 4);
    const double L = t[SN_MUSCLE_OFFSET] + length * t[SN_MUSCLE_PER_LENGTH], V = velocity * t[SN_MUSCLE_PER_VELOCITY];
    const double kinks[] = {L - 0.5, L - 0.75, L - 1, L - 1.3, L - 1.6, V + 1, V, V - 0.2};
    bool smooth = true;
    for (size_t i = 0; i < sizeof kinks / sizeof *kinks; ++i) smooth = smooth && fabs(kinks[i]) > 2e-6;
    if (!smooth) continue;
    const double e[5] = {
        by_differences(sn_muscle_gain(t, length + h, velocity), sn_muscle_gain(t, length - h, velocity), h),
        by_differences(sn_muscle_gain(t, length, velocity + h), sn_muscle_gain(t, length, velocity - h), h),
        by_differences(sn_muscle_gain_slope(t, length + h, velocity), sn_muscle_gain_slope(t, length - h, velocity), h),
        by_differences(sn_muscle_gain_slope(t, length, velocity + h), sn_muscle_gain_slope(t, length, velocity - h), h),
        by_differences(sn_muscle_bias(t, length + h), sn_muscle_bias(t, length - h), h)};
    for (int i = 0; i < 5; ++i) {
      if (!(fabs(d[i] - 2 * e[i]) <= 1e-5 * (100 + fabs(d[i]))))
        fail_msg("derivative %d at L = %g, V = %g: %.12g, difference %.12g", i, L, V, d[i], 2 * e[i]);
      zero += d[i] == 0;
    }
  }
  assert_in_range(zero, 1000, 90000);
}

static void activation_slopes(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  SnOracle o = {.rng = 3};
  for (int k = 0; k < 20000; ++k) {
    const sn_real prm[3] = {uniform(&o, 0.005, 0.02), uniform(&o, 0.02, 0.08), k % 2 ? 0 : uniform(&o, 0.05, 0.5)};
    const double h = 1e-7, ctrl = uniform(&o, -0.3, 1.3), act = uniform(&o, -0.1, 1.1);
    const double kinks[] = {ctrl, ctrl - 1, act, act - 1, ctrl - act, act};
    bool smooth = true;
    for (size_t i = 0; i < sizeof kinks / sizeof *kinks; ++i) smooth = smooth && fabs(kinks[i]) > 1e-6;
    if (!smooth) continue;
    sn_real d[2] = {0};
    sn_muscle_rate_vjp(ctrl, act, prm, 2, d, d + 1);
    const double e[2] = {by_differences(sn_muscle_rate(ctrl + h, act, prm), sn_muscle_rate(ctrl - h, act, prm), h),
                         by_differences(sn_muscle_rate(ctrl, act + h, prm), sn_muscle_rate(ctrl, act - h, prm), h)};
    for (int i = 0; i < 2; ++i)
      if (!(fabs(d[i] - 2 * e[i]) <= 1e-5 * (10 + fabs(d[i]))))
        fail_msg("derivative %d at ctrl %g, act %g: %.12g, difference %.12g", i, ctrl, act, d[i], 2 * e[i]);
  }
}

// At every kink the derivative is finite and the one that muscle_curves.h promises.
static void kinks(void **state) {
  (void)state;
  const sn_real prm[9] = {SN_R(0.75), SN_R(1.05), 100, 0, SN_R(0.5), SN_R(1.6), SN_R(1.5), SN_R(1.3), SN_R(1.2)};
  const sn_real range[2] = {SN_R(0.75), SN_R(1.05)};  // so that L is the length itself
  const sn_real lengths[] = {0, SN_R(0.5), SN_R(0.75), 1, SN_R(1.3), SN_R(1.6), 5};
  const sn_real velocities[] = {-5, SN_R(-1.5), 0, SN_R(0.3), 5};
  for (int flat = 0; flat < 2; ++flat)
    for (int i = 0; i < 7; ++i)
      for (int j = 0; j < 5; ++j) {
        sn_real p[9], t[SN_NMUSCLE], d[5] = {0};
        memcpy(p, prm, sizeof p);
        if (flat) p[4] = p[5] = p[8] = 1;  // curves without width
        sn_muscle_table(t, p, range, 1);
        sn_muscle_gain_vjp(t, lengths[i], velocities[j], 1, d, d + 1);
        sn_muscle_gain_slope_vjp(t, lengths[i], velocities[j], 1, d + 2, d + 3);
        sn_muscle_bias_vjp(t, lengths[i], 1, d + 4);
        for (int k = 0; k < 5; ++k) assert_true(isfinite((double)d[k]));
      }
  const sn_real dyn[2][3] = {{SN_R(0.01), SN_R(0.04), 0}, {SN_R(0.01), SN_R(0.04), SN_R(0.2)}};
  const sn_real at[4] = {0, SN_R(0.3), 1, SN_R(1.2)};
  for (int smooth = 0; smooth < 2; ++smooth)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        sn_real d[2] = {0};
        sn_muscle_rate_vjp(at[i], at[j], dyn[smooth], 1, d, d + 1);
        assert_true(isfinite((double)d[0]) && isfinite((double)d[1]) && d[1] < 0);
        assert_true(i == 3 ? d[0] == 0 : d[0] > 0);  // at the bounds a control can come back
      }
  sn_real rest[2] = {0}, full[2] = {0};
  sn_muscle_rate_vjp(0, 0, dyn[0], 1, rest, rest + 1);
  sn_muscle_rate_vjp(1, 1, dyn[0], 1, full, full + 1);
  assert_true(fabs((double)rest[0] - 1 / 0.005) < 1e-3);  // from rest it can only activate
  assert_true(fabs((double)full[0] - 2 / 0.04) < 1e-3);   // from full it can only deactivate
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(curves), cmocka_unit_test(activation),        cmocka_unit_test(properties),
      cmocka_unit_test(slopes), cmocka_unit_test(activation_slopes), cmocka_unit_test(kinks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
