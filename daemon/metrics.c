#include "daemon/metrics.h"

#include <stdlib.h>
#include <string.h>

void sn_metrics_init(SnMetrics *metrics) {
  memset(metrics, 0, sizeof *metrics);
  pthread_mutex_init(&metrics->mutex, NULL);
}

void sn_metrics_free(SnMetrics *metrics) { pthread_mutex_destroy(&metrics->mutex); }

void sn_metrics_plan(SnMetrics *metrics, double latency, int missed, double cost) {
  pthread_mutex_lock(&metrics->mutex);
  metrics->latency[metrics->plans++ % SN_METRICS_WINDOW] = latency;
  metrics->misses += missed != 0;
  metrics->cost = cost;
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
  SnMetricsView view = {metrics->plans, metrics->misses, metrics->replaced, metrics->cost, 0, 0};
  size_t n = metrics->plans < SN_METRICS_WINDOW ? (size_t)metrics->plans : SN_METRICS_WINDOW;
  memcpy(sorted, metrics->latency, n * sizeof *sorted);
  pthread_mutex_unlock(&metrics->mutex);
  if (n == 0) return view;
  qsort(sorted, n, sizeof *sorted, compare_doubles);
  view.p50 = sorted[(n - 1) / 2];
  view.p99 = sorted[(size_t)(0.99 * (double)(n - 1) + 0.5)];
  return view;
}
