// Time, medians, quantiles and largest errors.
#ifndef SINEW_CLIENTS_BASE_STATISTICS_H_
#define SINEW_CLIENTS_BASE_STATISTICS_H_

#include <math.h>

// Returns the larger of two numbers, NaN if one of them is. fmax() drops a NaN, and what it is the error of seems to
// agree. (For the same reason a largest error has to be judged by !(error <= allowed).)
static inline double sn_larger(double a, double b) { return a >= b || isnan(a) ? a : b; }

// Returns the quantile q of x[0..n), which is sorted: the least of them that a share q does not exceed; NaN for n = 0.
static inline double sn_quantile(const double *x, int n, double q) {
  return n > 0 ? x[(int)fmax(0, ceil(q * n - 1e-9) - 1)] : (double)NAN;
}

// Returns the median of x[0..n), NaN for n = 0; sorts x.
double sn_median(double *x, int n);
// Returns monotonic time [us].
double sn_now_us(void);

#endif
