// The information-weighted mean (G. Williams et al., "Information theoretic MPC for model-based reinforcement
// learning", 2017; the cost of noise itself, their gamma, is left out, as judo and hydrax do): of candidates with costs
// J_i,
//
//   w_i = exp(-(J_i - min J) / T) / sum_j exp(-(J_j - min J) / T)
//
// A candidate that diverged has no weight. Costs of tasks differ by orders of magnitude, so T may count in a spread of
// the costs at hand: what the median of those that are finite lies above the least. The median does not mind the few
// candidates whose cost is enormous. T = 0 leaves those of the least cost.
#include "planner/optimize/mppi.h"

#include <math.h>

void sn_mppi_weights(double temperature, bool relative, const double *cost, const int *rank, int finite, int n,
                     double *weight) {
  const double least = cost[rank[0]], spread = cost[rank[finite / 2]] - least;
  const double t = relative ? temperature * spread : temperature;
  double sum = 0;
  for (int i = 0; i < n; ++i) weight[i] = 0;
  for (int k = 0; k < finite; ++k) {
    const double above = cost[rank[k]] - least;
    const double w = above > 0 ? (t > 0 ? exp(-above / t) : 0) : 1;
    weight[rank[k]] = w;
    sum += w;
  }
  for (int i = 0; i < n; ++i) weight[i] /= sum;
}
