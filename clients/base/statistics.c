#include "clients/base/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "physics/base/clock.h"

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double sn_median(double *x, int n) {
  if (n == 0) return NAN;
  qsort(x, (size_t)n, sizeof *x, by_size);
  return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

double sn_now_us(void) { return 1e6 * sn_clock_now(); }
