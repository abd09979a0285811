// Noise: known random numbers, distribution, colour, scale.
#include <stdio.h>

#include "planner/noise.h"
#include "planner/random.h"
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(philox), cmocka_unit_test(normal_moments),
                                     cmocka_unit_test(colours), cmocka_unit_test(scale)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
