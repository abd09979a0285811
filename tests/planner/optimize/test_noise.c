// Noise: known random numbers, distribution, colour, scale.
#include <stdio.h>

#include "planner/optimize/noise.h"
#include "planner/base/random.h"
#include "tests/support/oracle.h"

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

// Frequencies at which the power is taken: indices 4, 6, ..., 32.
enum { FREQUENCIES = 15, NOISES = 4000 };
static int frequency(int i) { return 4 + 2 * i; }

// Mean power of many noises at each frequency.
static void spectrum(int colour, double power[FREQUENCIES]) {
  SnNoise noise = {.seed = 3, .plan = 1, .spacing = 1, .knots = KNOTS, .colour = colour, .scale = 1};
  sn_real h[KNOTS], white[KNOTS], z[KNOTS];
  static double re[FREQUENCIES][KNOTS], im[FREQUENCIES][KNOTS];
  for (int i = 0; i < FREQUENCIES; ++i)
    for (int k = 0; k < KNOTS; ++k) {
      // A Hann window keeps the drift of brown noise out of the high frequencies.
      const double angle = 2 * (double)SN_PI * k / KNOTS, w = 0.5 - 0.5 * cos(angle);
      re[i][k] = w * cos(frequency(i) * angle);
      im[i][k] = w * sin(frequency(i) * angle);
    }
  for (int i = 0; i < FREQUENCIES; ++i) power[i] = 0;
  sn_noise_filter(colour, KNOTS, h);
  for (int c = 1; c <= NOISES; ++c) {
    sn_noise_column(&noise, c, 0, h, white, z);
    for (int i = 0; i < FREQUENCIES; ++i) {
      double x = 0, y = 0;
      for (int k = 0; k < KNOTS; ++k) {
        x += re[i][k] * (double)z[k];
        y += im[i][k] * (double)z[k];
      }
      power[i] += (x * x + y * y) / NOISES;
    }
  }
}

// Slope of log power over log frequency, by least squares.
static double spectral_slope(int colour) {
  double power[FREQUENCIES], sx = 0, sy = 0, sxx = 0, sxy = 0;
  const int n = FREQUENCIES;
  spectrum(colour, power);
  for (int i = 0; i < n; ++i) {
    const double x = log(frequency(i)), y = log(power[i]);
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

// The power of 4000 noises is known to 1.6 percent, the slope through 15 of them to 0.007: the bound is four times
// that, and an exponent that is 0.1 off is far outside.
static void colours(void **state) {
  (void)state;
  for (int colour = 0; colour < 3; ++colour) {
    const double slope = spectral_slope(colour);
    printf("noise %d: spectral slope %.3f\n", colour, slope);
    assert_true(fabs(slope + colour) < 0.03);
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
