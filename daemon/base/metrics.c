#include "daemon/base/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sn_metrics_init(SnMetrics *metrics) {
  memset(metrics, 0, sizeof *metrics);
  metrics->best_cost = INFINITY;
  metrics->cost = metrics->gradient_norm = NAN;
  pthread_mutex_init(&metrics->mutex, NULL);
}

void sn_metrics_free(SnMetrics *metrics) { pthread_mutex_destroy(&metrics->mutex); }

void sn_metrics_sent(SnMetrics *metrics, double now, double cost, double gradient_norm, bool overflow) {
  pthread_mutex_lock(&metrics->mutex);
  metrics->cost = cost;
  metrics->gradient_norm = gradient_norm;
  metrics->best_cost = fmin(metrics->best_cost, cost);  // a plan that was not evaluated has none: NaN
  metrics->planned = now;
  metrics->overflows += overflow;
  pthread_mutex_unlock(&metrics->mutex);
}

void sn_metrics_progress(SnMetrics *metrics, int unimproved, bool stuck) {
  pthread_mutex_lock(&metrics->mutex);
  metrics->unimproved = unimproved;
  metrics->stuck = stuck;
  pthread_mutex_unlock(&metrics->mutex);
}

void sn_metrics_iterations(SnMetrics *metrics, int iterations) {
  pthread_mutex_lock(&metrics->mutex);
  if (iterations > 0) metrics->iterations += (uint64_t)iterations;
  pthread_mutex_unlock(&metrics->mutex);
}

void sn_metrics_served(SnMetrics *metrics, double seconds) {
  pthread_mutex_lock(&metrics->mutex);
  metrics->served += seconds;
  pthread_mutex_unlock(&metrics->mutex);
}

void sn_metrics_streamed(SnMetrics *metrics) {
  pthread_mutex_lock(&metrics->mutex);
  metrics->sent++;
  pthread_mutex_unlock(&metrics->mutex);
}

void sn_metrics_reset_best(SnMetrics *metrics) {
  pthread_mutex_lock(&metrics->mutex);
  metrics->best_cost = INFINITY;
  pthread_mutex_unlock(&metrics->mutex);
}

void sn_metrics_answered(SnMetrics *metrics, double latency, int missed) {
  pthread_mutex_lock(&metrics->mutex);
  metrics->latency[metrics->plans++ % SN_METRICS_WINDOW] = latency;
  metrics->misses += missed != 0;
  pthread_mutex_unlock(&metrics->mutex);
}

void sn_metrics_replaced(SnMetrics *metrics) {
  pthread_mutex_lock(&metrics->mutex);
  metrics->replaced++;
  pthread_mutex_unlock(&metrics->mutex);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

SnMetricsView sn_metrics_view(SnMetrics *metrics) {
  double sorted[SN_METRICS_WINDOW];
  pthread_mutex_lock(&metrics->mutex);
  SnMetricsView view = {.plans = metrics->plans,
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
  size_t n = metrics->plans < SN_METRICS_WINDOW ? (size_t)metrics->plans : SN_METRICS_WINDOW;
  memcpy(sorted, metrics->latency, n * sizeof *sorted);
  pthread_mutex_unlock(&metrics->mutex);
  if (n == 0) return view;
  qsort(sorted, n, sizeof *sorted, compare_doubles);
  view.p50 = sorted[(n - 1) / 2];
  view.p99 = sorted[(size_t)(0.99 * (double)(n - 1) + 0.5)];
  return view;
}
