// Model predictive path integral control: weights of candidates by their costs. Runs on the host only.
#ifndef SINEW_PLANNER_OPTIMIZE_MPPI_H_
#define SINEW_PLANNER_OPTIMIZE_MPPI_H_

#include <stdbool.h>

// Writes the weights of n candidates, which sum to 1. `rank` (n) and `finite` are those of sn_rank_candidates; one at
// least is finite. The temperature is that of costs, or, `relative`, counts in what the median is above the least.
void sn_mppi_weights(double temperature, bool relative, const double *cost, const int *rank, int finite, int n,
                     double *weight);

#endif
