// Noise of predictive sampling (Howell et al., "Predictive Sampling", arXiv 2212.00541), coloured over knots.
//
// White noise w_j, standard normal, one number a knot and control, is integrated fractionally (Kasdin, 1995):
//
//   z_j = sum_{k <= j} h_k w_{j-k},   h_0 = 1,  h_k = h_{k-1} (k - 1 + alpha/2) / k
//
// whose power falls as f^-alpha: alpha 0 is white, 1 pink, 2 brown (a random walk: h_k = 1). The sum starts with
// the first knot, so coloured noise grows from there. It is divided by its own root mean square over the knots,
// sqrt(1/K sum_j sum_{k <= j} h_k^2), so that one scale means the same excursion for every colour.
//
// Counter of the random numbers: (plan, iteration * 65536 + candidate, knot, control), key: the seed.
#include "planner/optimize/noise.h"

#include "planner/base/random.h"
#include "planner/optimize/spline_private.h"

// Coefficients h_k of the integration, over their root mean square, into h (knots).
SN_FUNC void sn_noise_filter(int colour, int knots, sn_real *h) {
  const sn_real half_alpha = SN_R(0.5) * (sn_real)colour;
  sn_real power = 0;
  h[0] = 1;
  for (int k = 1; k < knots; ++k) h[k] = h[k - 1] * ((sn_real)(k - 1) + half_alpha) / (sn_real)k;
  for (int k = 0; k < knots; ++k) power += h[k] * h[k] * (sn_real)(knots - k);  // knots j >= k contain h_k
  const sn_real scale = SN_R(1.0) / sn_sqrt(power / (sn_real)knots);
  for (int k = 0; k < knots; ++k) h[k] *= scale;
}

SN_FUNC void sn_noise_column(const SnNoise *noise, int candidate, int control, const sn_real *h, sn_real *white,
                             sn_real *out) {
  for (int j = 0; j < noise->knots; ++j) {
    const SnRandom4 r = sn_random(noise->seed, noise->plan, (noise->iteration << 16) + (uint32_t)candidate, (uint32_t)j,
                                  (uint32_t)control | (uint32_t)SN_RANDOM_NOISE << 24);
    white[j] = sn_random_normal(r.word[0], r.word[1]);
  }
  for (int j = 0; j < noise->knots; ++j) {
    sn_real z = 0;
    for (int k = 0; k <= j; ++k) z += h[k] * white[j - k];
    out[j] = noise->scale * z;
    if (noise->deviation) out[j] *= noise->deviation[control * noise->knots + j];
  }
}

SN_FUNC void sn_noise_add(const SnModel *m, const SnNoise *noise, int control, const sn_real *knot, const sn_real *base,
                          int nstep, sn_real *ctrl) {
  const sn_real half = sn_ctrl_half_range(m, control);
  for (int t = 0; t < nstep; ++t) {
    const SnSplineRow row = sn_spline_row(&noise->grid, t, noise->spacing, noise->phase);
    const sn_real u =
        base[t * m->nu + control] + half * sn_spline_mean(noise->interpolation, knot, noise->knots, 1, row);
    ctrl[t * m->nu + control] = sn_ctrl_clip(m, control, u);
  }
}

SN_FUNC void sn_candidate_controls(const SnModel *m, const SnNoise *noise, int candidate, SnLane *lane,
                                   const sn_real *base, int nstep, sn_real *scratch, sn_real *ctrl) {
  const int nu = m->nu, knots = noise->knots;
  sn_real *h = scratch, *white = h + knots * (1 + 2 * sn_lane_id(lane)), *knot = white + knots;
  if (candidate == 0) {
    SN_FOR(i, nstep * nu) ctrl[i] = base[i];
    SN_SYNC(lane);
    return;
  }
  SN_ONE(lane) sn_noise_filter(noise->colour, knots, h);
  SN_SYNC(lane);
  SN_FOR(k, nu) {
    sn_noise_column(noise, candidate, k, h, white, knot);
    sn_noise_add(m, noise, k, knot, base, nstep, ctrl);
  }
  SN_SYNC(lane);
}
