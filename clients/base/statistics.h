// Time, medians and largest errors, for the checker, the benchmark, the plant and the tests.
#ifndef SINEW_CLIENTS_BASE_STATISTICS_H_
#define SINEW_CLIENTS_BASE_STATISTICS_H_

#include <math.h>

// The larger of two numbers, NaN if one of them is: fmax() drops a NaN, and what it is the error of seems to agree.
// (A largest error has to be judged by !(error <= allowed) for the same reason.)
static inline double sn_larger(double a, double b) { return a >= b || isnan(a) ? a : b; }

// Median of x[0..n), NaN for n = 0; sorts x.
double sn_median(double *x, int n);
// Monotonic time [us].
double sn_now_us(void);

#endif
