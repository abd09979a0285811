// Candidates of predictive sampling: the best plan so far, and copies of it with noise.
#ifndef SINEW_PLANNER_OPTIMIZE_SAMPLING_H_
#define SINEW_PLANNER_OPTIMIZE_SAMPLING_H_

#include "planner/optimize/noise.h"

// Knots that nstep rows need: one after the last row included.
int sn_noise_knots(int nstep, int spacing, int phase);

// sn_candidate_controls by one thread. scratch: (3 * knots). Any number of threads.
void sn_noise_candidate(const SnModel *m, const SnNoiseSettings *noise, int candidate, const sn_real *base, int nstep,
                        sn_real *scratch, sn_real *ctrl);

// Index of the best candidate: among those before the first that is not done, the lowest cost, at equal cost the lowest
// index. -1 when the first is not done. *used: how many were looked at.
int sn_best_candidate(const double *cost, const unsigned char *done, int n, int *used);

#endif
