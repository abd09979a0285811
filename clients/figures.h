// Time and medians, for the checker and the benchmark.
#ifndef SINEW_CLIENTS_FIGURES_H_
#define SINEW_CLIENTS_FIGURES_H_

// Median of x[0..n), NaN for n = 0; sorts x.
double sn_median(double *x, int n);
// Monotonic time [us].
double sn_now_us(void);

#endif
