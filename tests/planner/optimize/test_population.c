// MPPI and CEM: their weights and deviations against the formulas written out again, and on a quadratic cost within
// limits whose least is known.
#include "planner/optimize/cem.h"
#include "planner/optimize/mppi.h"
#include "planner/optimize/sampling.h"

#include <math.h>
#include <stdio.h>

#include "tests/planner/bench_body.h"

// Controls of the bench body: a motor in [-3, 3], two muscles.
enum { NU = 3, ROWS = 25, MOST = 4096, KNOTS_MOST = ROWS + 2 };

// What errors may be larger by in single precision.
static const double loose = sizeof(sn_real) == sizeof(double) ? 1 : 1e9;

static double cost[MOST], weight[MOST];
static int rank[MOST];
static sn_real ctrl[MOST][ROWS * NU], scratch[3 * KNOTS_MOST];

static SnNoiseSettings noise_of(int colour, int spacing, uint32_t iteration) {
  return (SnNoiseSettings){.seed = 11,
                           .plan = 3,
                           .iteration = iteration,
                           .spacing = spacing,
                           .phase = 1,
                           .knots = sn_noise_knots(ROWS, spacing, 1),
                           .interpolation = SN_SPLINE_LINEAR,
                           .colour = colour,
                           .scale = 0.3};
}

// Ranks are those of a plain sort, with what is not finite behind.
static void ranks(void **state) {
  (void)state;
  for (int n = 1; n < 60; ++n) {
    for (int i = 0; i < n; ++i) cost[i] = (double)((i * 7919 + n * 31) % 23) - 5;  // with many that are equal
    if (n > 5) cost[n / 2] = INFINITY;
    if (n > 9) cost[n / 3] = NAN;
    const int finite = sn_rank_candidates(cost, n, rank);
    assert_int_equal(finite, n - (n > 5) - (n > 9));
    for (int k = 1; k < finite; ++k)
      assert_true(cost[rank[k - 1]] < cost[rank[k]] || (cost[rank[k - 1]] == cost[rank[k]] && rank[k - 1] < rank[k]));
    int sum = 0;
    for (int k = 0; k < n; ++k) sum += rank[k];
    assert_int_equal(sum, n * (n - 1) / 2);
    for (int k = finite; k < n; ++k) assert_false(isfinite(cost[rank[k]]));
  }
}

static void mppi_weights(void **state) {
  (void)state;
  const double costs[] = {3.5, INFINITY, 1.25, 9, 2, 1e300, 4, NAN};
  enum { COUNT = 8 };
  double w[COUNT];
  const int finite = sn_rank_candidates(costs, COUNT, rank);
  assert_int_equal(finite, 6);
  for (int relative = 0; relative < 2; ++relative) {
    const double t = relative ? 0.6 * (4 - 1.25) : 0.6;  // 4 is the fourth of six
    double sum = 0, z = 0;
    sn_mppi_weights(0.6, relative, costs, rank, finite, COUNT, w);
    for (int i = 0; i < COUNT; ++i) z += isfinite(costs[i]) ? exp(-(costs[i] - 1.25) / t) : 0;
    for (int i = 0; i < COUNT; ++i) {
      const double want = isfinite(costs[i]) ? exp(-(costs[i] - 1.25) / t) / z : 0;
      assert_true(fabs(w[i] - want) <= 1e-15);
      sum += w[i];
    }
    assert_true(fabs(sum - 1) < 1e-14);
  }
  sn_mppi_weights(0, false, costs, rank, finite, COUNT, w);
  for (int i = 0; i < COUNT; ++i) assert_true(w[i] == (i == 2));
}

static void all_moments(const SnNoiseSettings *noise, int n, sn_real *mean, sn_real *variance) {
  for (int k = 0; k < NU; ++k)
    sn_noise_moments(noise, k, weight, n, scratch, mean + k * noise->knots, variance + k * noise->knots);
}

// The mean of noises is that of the candidates' controls where no limit acts; its variance, too.
static void moments_of_noises(void **state) {
  (void)state;
  enum { COUNT = 37 };
  const SnNoiseSettings noise = noise_of(SN_NOISE_PINK, 4, 2);
  sn_real base[ROWS * NU], mean[NU * KNOTS_MOST], variance[NU * KNOTS_MOST], made[ROWS * NU];
  for (int i = 0; i < ROWS * NU; ++i) base[i] = i % NU ? SN_R(0.5) : 0;
  SnNoiseSettings small = noise;
  small.scale = 0.01;  // within the limits
  for (int i = 0; i < COUNT; ++i) weight[i] = i % 3 ? (1.0 + i) : 0;
  all_moments(&small, COUNT, mean, variance);
  sn_noise_mean_controls(body.m, &small, mean, base, ROWS, made);
  double total = 0;
  for (int i = 0; i < COUNT; ++i) {
    sn_noise_candidate(body.m, &small, i, base, ROWS, scratch, ctrl[i]);
    total += weight[i];
  }
  for (int k = 0; k < ROWS * NU; ++k) {
    double want = 0;
    for (int i = 0; i < COUNT; ++i) want += weight[i] / total * (double)ctrl[i][k];
    assert_true(fabs(want - (double)made[k]) < 1e-13 * loose);
  }
  // at a knot that a row lies on the variance is that of the row's control
  const int t = 3, j = 1;  // (t + phase) / spacing
  for (int k = 0; k < NU; ++k) {
    double m1 = 0, m2 = 0;
    const double half = (double)sn_ctrl_half_range(body.m, k);
    for (int i = 0; i < COUNT; ++i) m1 += weight[i] / total * (double)ctrl[i][t * NU + k];
    for (int i = 0; i < COUNT; ++i) m2 += weight[i] / total * pow((double)ctrl[i][t * NU + k] - m1, 2);
    assert_true(fabs(m2 / (half * half) - (double)variance[k * noise.knots + j]) < 1e-15 * loose);
  }
}

// Noise has the deviation that it is told, at each knot of each control.
static void deviations_scale_noise(void **state) {
  (void)state;
  const SnNoiseSettings noise = noise_of(SN_NOISE_BROWN, 1, 4);
  sn_real base[ROWS * NU], deviation[NU * KNOTS_MOST];
  for (int i = 0; i < ROWS * NU; ++i) base[i] = i % NU ? SN_R(0.5) : 0;
  for (int i = 0; i < NU * noise.knots; ++i) deviation[i] = SN_R(0.001) * (sn_real)(1 + i % 7);
  SnNoiseSettings told = noise, plain = noise;
  told.deviation = deviation;
  plain.scale = noise.scale * 0.001;
  sn_noise_candidate(body.m, &told, 5, base, ROWS, scratch, ctrl[0]);
  sn_noise_candidate(body.m, &plain, 5, base, ROWS, scratch, ctrl[1]);
  for (int t = 0; t < ROWS; ++t)  // a knot a row: the phase is 0 then
    for (int k = 0; k < NU; ++k) {
      const double a = (double)(ctrl[0][t * NU + k] - base[t * NU + k]);
      const double b = (double)(ctrl[1][t * NU + k] - base[t * NU + k]);
      const int knot = t + noise.phase;
      assert_true(fabs(a - b * (1 + (k * noise.knots + knot) % 7)) < 1e-13 * loose);
    }
}

// Elites that are all of many candidates have the deviation that these were made with, whatever the colour.
static void cem_deviations(void **state) {
  (void)state;
  for (int colour = SN_NOISE_WHITE; colour <= SN_NOISE_BROWN; ++colour) {
    SnNoiseSettings noise = noise_of(colour, 6, 5);
    sn_real mean[NU * KNOTS_MOST], variance[NU * KNOTS_MOST], deviation[NU * KNOTS_MOST], made[NU * KNOTS_MOST];
    for (int i = 0; i < NU * noise.knots; ++i) made[i] = deviation[i] = SN_R(0.2) + SN_R(0.1) * (sn_real)(i % 5);
    noise.deviation = deviation;
    for (int i = 1; i < MOST; ++i) weight[i] = 1;
    weight[0] = 0;
    all_moments(&noise, MOST, mean, variance);
    sn_cem_deviation(&noise, NU, 0, 0.3, variance, scratch, made);
    for (int i = 0; i < NU * noise.knots; ++i) {
      const double want = sn_max((double)deviation[i], 0.3);
      assert_true(fabs((double)made[i] - want) < 0.05 * want);  // 4 deviations of an estimate from 4095 numbers
    }
    // without a variance `keep` of it stays, or the least
    for (int i = 0; i < NU * noise.knots; ++i) variance[i] = 0;
    sn_cem_deviation(&noise, NU, 0.5, 0.15, variance, scratch, deviation);
    for (int i = 0; i < NU * noise.knots; ++i)
      assert_true(fabs((double)deviation[i] - sn_max(0.5 * (0.2 + 0.1 * (i % 5)), 0.15)) < 1e-12 * loose);
  }
}

// ---- a quadratic cost ----

// Mean over rows of squared distances from controls of which some lie beyond the limits: the least is theirs, cut.
static const double goal[NU] = {1.5, 0.3, 1.4};
static const double least_at[NU] = {1.5, 0.3, 1};

static double distance(const sn_real *c) {
  double sum = 0;
  for (int i = 0; i < ROWS * NU; ++i) sum += pow((double)c[i] - goal[i % NU], 2);
  return sum / ROWS;
}

// What the least is missed by after some iterations with n candidates.
static double missed(bool cem, int n) {
  sn_real mean[ROWS * NU], next[ROWS * NU], off[NU * KNOTS_MOST], variance[NU * KNOTS_MOST];
  sn_real deviation[NU * KNOTS_MOST];
  double least = 0;
  for (int i = 0; i < ROWS * NU; ++i) mean[i] = i % NU ? SN_R(0.5) : 0;
  for (int i = 0; i < NU * KNOTS_MOST; ++i) deviation[i] = 1;
  for (int k = 0; k < NU; ++k) least += pow(least_at[k] - goal[k], 2);
  for (uint32_t iteration = 0; iteration < 12; ++iteration) {
    SnNoiseSettings noise = noise_of(SN_NOISE_WHITE, 12, iteration);
    if (cem) noise.deviation = deviation;
    for (int i = 0; i < n; ++i) {
      sn_noise_candidate(body.m, &noise, i, mean, ROWS, scratch, ctrl[i]);
      cost[i] = distance(ctrl[i]);
    }
    const int finite = sn_rank_candidates(cost, n, rank);
    if (cem)
      sn_cem_weights(n / 8, rank, finite, n, weight);
    else
      sn_mppi_weights(0.05, true, cost, rank, finite, n, weight);
    all_moments(&noise, n, off, variance);
    sn_noise_mean_controls(body.m, &noise, off, mean, ROWS, next);
    memcpy(mean, next, sizeof mean);
    if (cem) sn_cem_deviation(&noise, NU, 0, 0.001, variance, scratch, deviation);
  }
  return distance(mean) - least;
}

static void error_shrinks_with_candidates(void **state) {
  (void)state;
  for (int cem = 0; cem < 2; ++cem) {
    const double few = missed(cem, 32), more = missed(cem, 256), most = missed(cem, MOST);
    printf("%s: 32 candidates miss the least by %.2e, 256 by %.2e, %d by %.2e\n", cem ? "cem" : "mppi", few, more, MOST,
           most);
    assert_true(few >= 0 && more < few && most < more && most < 5e-3);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ranks),
                                     cmocka_unit_test(mppi_weights),
                                     cmocka_unit_test(moments_of_noises),
                                     cmocka_unit_test(deviations_scale_noise),
                                     cmocka_unit_test(cem_deviations),
                                     cmocka_unit_test(error_shrinks_with_candidates)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
