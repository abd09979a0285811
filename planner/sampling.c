// Candidates of predictive sampling (Howell et al., "Predictive Sampling", arXiv 2212.00541): the best plan so far, and
// copies of it with noise that is interpolated between knots.
#include "planner/sampling.h"

#include "planner/spline.h"

int sn_noise_knots(int nstep, int spacing, int phase) { return (nstep - 1 + phase) / spacing + 2; }

void sn_noise_candidate(const SnModel *m, const SnNoise *noise, int candidate, const sn_real *base, int nstep,
                        sn_real *scratch, sn_real *ctrl) {
  const int nu = m->nu, knots = noise->knots;
  sn_real *h = scratch, *white = h + knots, *knot = white + knots;
  memcpy(ctrl, base, sizeof *ctrl * (size_t)nstep * (size_t)nu);
  if (candidate == 0) return;
  sn_noise_filter(noise->colour, knots, h);
  for (int i = 0; i < nu; ++i) {
    const sn_real half = sn_ctrl_half_range(m, i);
    sn_noise_column(noise, candidate, i, h, white, knot);
    for (int t = 0; t < nstep; ++t) {
      const sn_real x = (sn_real)(t + noise->phase) / (sn_real)noise->spacing;
      ctrl[t * nu + i] += half * sn_spline(noise->interpolation, knot, knots, 1, x);
    }
  }
  sn_ctrl_clamp(m, ctrl, nstep);
}

int sn_best_candidate(const double *cost, const unsigned char *done, int n, int *used) {
  int best = -1, i = 0;
  for (; i < n && done[i]; ++i)
    if (best < 0 || cost[i] < cost[best]) best = i;
  *used = i;
  return best;
}
