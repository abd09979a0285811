// Candidates of planners by sampling: a plan, and copies of it with noise; the best of them, their ranks, and means of
// their noises. Runs on the host only.
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

// Writes the indices of n candidates in the order of their costs into rank (n), at equal cost in the order of their
// indices. Returns how many of them have a finite cost; they come first.
int sn_rank_candidates(const double *cost, int n, int *rank);

// Computes mean and variance of the noises of n candidates for one control, weighted, at the knots, into mean and
// variance (knots). Weights are not negative, and one is above 0. Noises are computed anew from the random numbers,
// with scratch (3 * knots).
void sn_noise_moments(const SnNoiseSettings *noise, int control, const double *weight, int n, sn_real *scratch,
                      sn_real *mean, sn_real *variance);

// Computes the controls of a base with such means (nu, knots), clamped to the ranges.
void sn_noise_mean_controls(const SnModel *m, const SnNoiseSettings *noise, const sn_real *mean, const sn_real *base,
                            int nstep, sn_real *ctrl);

#endif
