// The cross-entropy method (R. Rubinstein, "The cross-entropy method for combinatorial and continuous optimization",
// 1999; for control C. Pinneri et al., "Sample-efficient cross-entropy method for real-time planning", 2020): mean and
// standard deviation of the elites make the next candidates, each smoothed: keep old + (1 - keep) new.
//
// Noise at knot j of a control is scale d_j s_j n_j with n_j of unit variance, the deviation d_j and, for coloured
// noise that starts at the first knot, s_j^2 = sum_{k <= j} h_k^2 (noise.c). So the elites' standard deviation over
// scale s_j is the next d_j: one that keeps all candidates leaves d as it is, whatever the colour.
#include "planner/optimize/cem.h"

#include <math.h>

void sn_cem_weights(int elites, const int *rank, int finite, int n, double *weight) {
  const int count = elites < finite ? elites : finite;
  for (int i = 0; i < n; ++i) weight[i] = 0;
  for (int k = 0; k < count; ++k) weight[rank[k]] = 1.0 / count;
}

void sn_cem_deviation(const SnNoiseSettings *noise, int nu, double keep, double least, const sn_real *variance,
                      sn_real *h, sn_real *deviation) {
  const int knots = noise->knots;
  double power = 0;
  if (!(noise->scale > 0)) return;
  sn_noise_filter(noise->colour, knots, h);
  for (int j = 0; j < knots; ++j) {
    power += (double)(h[j] * h[j]);
    for (int k = 0; k < nu; ++k) {
      sn_real *d = deviation + k * knots + j;
      const double now = sqrt((double)variance[k * knots + j] / power) / noise->scale;
      *d = (sn_real)fmax(keep * (double)*d + (1 - keep) * now, least);
    }
  }
}
