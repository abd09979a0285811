#include "daemon/base/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sn_metrics_init(SnMetrics *metrics) {
  memset(metrics, 0, sizeof *metrics);
  metrics->best_cost = INFINITY;
  metrics->cost = metrics->gradient_norm = metrics->p50 = metrics->p99 = NAN;
}

void sn_metrics_sent(SnMetrics *metrics, double now, double cost, double gradient_norm, bool overflow) {
  metrics->cost = cost;
  metrics->gradient_norm = gradient_norm;
  metrics->best_cost = fmin(metrics->best_cost, cost);  // a plan that was not evaluated has none: NaN
  metrics->planned = now;
  metrics->overflows += overflow;
}

void sn_metrics_progress(SnMetrics *metrics, int unimproved, bool stuck) {
  metrics->unimproved = unimproved;
  metrics->stuck = stuck;
}

void sn_metrics_iterations(SnMetrics *metrics, int iterations) {
  if (iterations > 0) metrics->iterations += (uint64_t)iterations;
}

void sn_metrics_served(SnMetrics *metrics, double seconds) { metrics->served = metrics->served + seconds; }

void sn_metrics_streamed(SnMetrics *metrics) { metrics->sent++; }

void sn_metrics_reset_best(SnMetrics *metrics) { metrics->best_cost = INFINITY; }

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Puts `added` in the place of x[i] and moves it to where it belongs: x[0..n) but for x[i] ascends, and does so after.
static void replace_sorted(double *x, size_t n, size_t i, double added) {
  for (; i + 1 < n && x[i + 1] < added; i++) x[i] = x[i + 1];
  for (; i > 0 && x[i - 1] > added; i--) x[i] = x[i - 1];
  x[i] = added;
}

void sn_metrics_answered(SnMetrics *metrics, double latency, int missed) {
  const uint64_t plans = metrics->plans;
  const size_t n = plans < SN_METRICS_WINDOW ? (size_t)plans : SN_METRICS_WINDOW, count = n + (n < SN_METRICS_WINDOW);
  double *sorted = metrics->sorted, *place = &metrics->latency[plans % SN_METRICS_WINDOW];
  const double *forgotten = n == count ? bsearch(place, sorted, n, sizeof *sorted, compare_doubles) : &sorted[n];
  replace_sorted(sorted, count, (size_t)(forgotten - sorted), latency);
  *place = latency;
  metrics->p50 = sorted[(count - 1) / 2];
  metrics->p99 = sorted[(size_t)(0.99 * (double)(count - 1) + 0.5)];
  metrics->misses += missed != 0;
  metrics->plans++;  // who reads it finds the percentiles written
}

void sn_metrics_replaced(SnMetrics *metrics) { metrics->replaced++; }

SnMetricsView sn_metrics_view(const SnMetrics *metrics) {
  return (SnMetricsView){.plans = metrics->plans,
                         .misses = metrics->misses,
                         .replaced = metrics->replaced,
                         .iterations = metrics->iterations,
                         .sent = metrics->sent,
                         .overflows = metrics->overflows,
                         .cost = metrics->cost,
                         .gradient_norm = metrics->gradient_norm,
                         .best_cost = metrics->best_cost,
                         .unimproved = metrics->unimproved,
                         .stuck = metrics->stuck,
                         .served = metrics->served,
                         .p50 = metrics->p50,
                         .p99 = metrics->p99,
                         .planned = metrics->planned};
}
