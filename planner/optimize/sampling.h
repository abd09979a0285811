// Candidates of predictive sampling: the best plan so far, and copies of it with noise.
#ifndef SINEW_PLANNER_OPTIMIZE_SAMPLING_H_
#define SINEW_PLANNER_OPTIMIZE_SAMPLING_H_

#include "planner/optimize/noise.h"

// Returns the knots that nstep rows need: one after the last row included.
int sn_noise_knots(int nstep, int spacing, int phase);

// Computes sn_candidate_controls by one thread, with scratch (3 * knots). Any number of threads may call it at once.
void sn_noise_candidate(const SnModel *m, const SnNoiseSettings *noise, int candidate, const sn_real *base, int nstep,
                        sn_real *scratch, sn_real *ctrl);

// Returns the index of the best candidate among those before the first that is not done: the lowest cost, at equal cost
// the lowest index. Returns -1 when the first is not done. Writes into *used how many were looked at.
int sn_best_candidate(const double *cost, const unsigned char *done, int n, int *used);

#endif
