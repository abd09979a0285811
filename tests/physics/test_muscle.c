// Muscle curves against MuJoCo's, and their properties.
#include <stdio.h>

#include "physics/muscle.h"
#include "tests/harness/oracle.h"
#include "tests/harness/tolerance.h"

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

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(curves), cmocka_unit_test(activation),
                                     cmocka_unit_test(properties)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
