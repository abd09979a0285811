// The cross-entropy method: elites among candidates, and how far the next ones shall deviate. Runs on the host only.
#ifndef SINEW_PLANNER_OPTIMIZE_CEM_H_
#define SINEW_PLANNER_OPTIMIZE_CEM_H_

#include "planner/optimize/noise.h"

// Writes the weights of n candidates: equal for the best `elites` of those that are finite, 0 for others. `rank` (n)
// and `finite` are those of sn_rank_candidates; one at least is finite.
void sn_cem_weights(int elites, const int *rank, int finite, int n, double *weight);

// Takes the variance (nu, knots) of the elites' noises into the deviation (nu, knots) that they were made with: `keep`
// of it stays. No factor falls below `least`. Uses scratch h (knots).
void sn_cem_deviation(const SnNoiseSettings *noise, int nu, double keep, double least, const sn_real *variance,
                      sn_real *h, sn_real *deviation);

#endif
