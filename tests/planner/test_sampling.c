// Noise: known random numbers, distribution, colour, scale, range, and that it depends on its counters alone.
#include <stdio.h>

#include "planner/random.h"
#include "planner/sampling.h"
#include "tests/harness/oracle.h"

enum { KNOTS = 256 };

// Published vectors of Philox4x32-10 (Random123's kat_vectors).
static void philox(void **state) {
  (void)state;
  const SnRandom4 zero = sn_random(0, 0, 0, 0, 0);
  assert_true(zero.word[0] == 0x6627e8d5 && zero.word[1] == 0xe169c58d && zero.word[2] == 0xbc57ac4c &&
              zero.word[3] == 0x9b00dbd8);
  const SnRandom4 pi = sn_random(0x299f31d0a4093822u, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344);
  assert_true(pi.word[0] == 0xd16cfe09 && pi.word[1] == 0x94fdcceb && pi.word[2] == 0x5001e420 &&
              pi.word[3] == 0x24126ea1);
}

static void normal_moments(void **state) {
  (void)state;
  const int n = 200000;
  double m1 = 0, m2 = 0, m4 = 0;
  for (int i = 0; i < n; ++i) {
    const SnRandom4 r = sn_random(7, (uint32_t)i, 0, 0, 0);
    const double x = (double)sn_random_normal(r.word[0], r.word[1]);
    assert_true(isfinite(x));
    m1 += x / n;
    m2 += x * x / n;
    m4 += x * x * x * x / n;
  }
  printf("normal: mean %.4f, variance %.4f, fourth moment %.3f\n", m1, m2, m4);
  assert_true(fabs(m1) < 0.01 && fabs(m2 - 1) < 0.02 && fabs(m4 - 3) < 0.15);
  // The ends of the integers stay finite.
  assert_true(isfinite((double)sn_random_normal(0, 0)) && isfinite((double)sn_random_normal(UINT32_MAX, UINT32_MAX)));
}

// Mean power at frequency index f of many noises.
static double power_at(int colour, int f) {
  SnNoise noise = {.seed = 3, .plan = 1, .spacing = 1, .knots = KNOTS, .colour = colour, .scale = 1};
  sn_real h[KNOTS], white[KNOTS], z[KNOTS];
  sn_noise_filter(colour, KNOTS, h);
  double power = 0;
  for (int c = 1; c <= 400; ++c) {
    sn_noise_column(&noise, c, 0, h, white, z);
    double re = 0, im = 0;
    for (int k = 0; k < KNOTS; ++k) {
      // A Hann window keeps the drift of brown noise out of the high frequencies.
      const double w = 0.5 - 0.5 * cos(2 * (double)SN_PI * k / KNOTS), phase = 2 * (double)SN_PI * f * k / KNOTS;
      re += w * (double)z[k] * cos(phase);
      im += w * (double)z[k] * sin(phase);
    }
    power += (re * re + im * im) / 400;
  }
  return power;
}

// Slope of log power over log frequency, by least squares.
static double spectral_slope(int colour) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  int n = 0;
  for (int f = 4; f <= 32; f += 2, ++n) {
    const double x = log(f), y = log(power_at(colour, f));
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

static void colours(void **state) {
  (void)state;
  for (int colour = 0; colour < 3; ++colour) {
    const double slope = spectral_slope(colour);
    printf("noise %d: spectral slope %.3f\n", colour, slope);
    assert_true(fabs(slope + colour) < 0.15);
  }
}

// Every colour has the same root mean square over the knots.
static void scale(void **state) {
  (void)state;
  for (int colour = 0; colour < 3; ++colour) {
    SnNoise noise = {.seed = 5, .plan = 2, .spacing = 1, .knots = 32, .colour = colour, .scale = SN_R(0.5)};
    sn_real h[32], white[32], z[32];
    sn_noise_filter(colour, 32, h);
    double sum = 0;
    for (int c = 1; c <= 2000; ++c) {
      sn_noise_column(&noise, c, 3, h, white, z);
      for (int k = 0; k < 32; ++k) sum += (double)(z[k] * z[k]) / (2000 * 32);
    }
    printf("noise %d: root mean square %.4f\n", colour, sqrt(sum));
    assert_true(fabs(sqrt(sum) - 0.5) < 0.03);
  }
}

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
  SnNoise noise = {.seed = 9,
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(philox),     cmocka_unit_test(normal_moments),
                                     cmocka_unit_test(colours),    cmocka_unit_test(scale),
                                     cmocka_unit_test(candidates), cmocka_unit_test(best)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
