#include "daemon/base/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sn_metrics_init(SnMetrics *metrics) {
  memset(metrics, 0, sizeof *metrics);
  metrics->best_cost = INFINITY;
  metrics->cost = metrics->gradient_norm = NAN;
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

void sn_metrics_answered(SnMetrics *metrics, double latency, int missed) {
  metrics->latency[metrics->plans % SN_METRICS_WINDOW] = latency;
  metrics->misses += missed != 0;
  metrics->plans++;  // who reads it finds the latency written
}

void sn_metrics_replaced(SnMetrics *metrics) { metrics->replaced++; }

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

SnMetricsView sn_metrics_counts(const SnMetrics *metrics) {
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
                         .p50 = (double)NAN,
                         .p99 = (double)NAN,
                         .planned = metrics->planned};
}

SnMetricsView sn_metrics_view(const SnMetrics *metrics) {
  double sorted[SN_METRICS_WINDOW];
  SnMetricsView view = sn_metrics_counts(metrics);
  size_t n = view.plans < SN_METRICS_WINDOW ? (size_t)view.plans : SN_METRICS_WINDOW;
  for (size_t i = 0; i < n; i++) sorted[i] = metrics->latency[i];
  if (n == 0) return view;
  qsort(sorted, n, sizeof *sorted, compare_doubles);
  view.p50 = sorted[(n - 1) / 2];
  view.p99 = sorted[(size_t)(0.99 * (double)(n - 1) + 0.5)];
  return view;
}
