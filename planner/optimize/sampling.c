// Candidates of predictive sampling (Howell et al., "Predictive Sampling", arXiv 2212.00541): the best plan so far, and
// copies of it with noise that is interpolated between knots.
#include "planner/optimize/sampling.h"

int sn_noise_knots(int nstep, int spacing, int phase) { return (nstep - 1 + phase) / spacing + 2; }

void sn_noise_candidate(const SnModel *m, const SnNoiseSettings *noise, int candidate, const sn_real *base, int nstep,
                        sn_real *scratch, sn_real *ctrl) {
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  const SnNoise own = sn_noise(noise);
  sn_candidate_controls(m, &own, candidate, &lane, base, nstep, scratch, ctrl);
}

int sn_best_candidate(const double *cost, const unsigned char *done, int n, int *used) {
  int best = -1, i = 0;
  for (; i < n && done[i]; ++i)
    if (best < 0 || cost[i] < cost[best]) best = i;
  *used = i;
  return best;
}
