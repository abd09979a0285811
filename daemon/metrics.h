// What is counted about plans: totals, and the latencies of the latest ones. Any thread.
#ifndef SINEW_DAEMON_METRICS_H_
#define SINEW_DAEMON_METRICS_H_

#include <pthread.h>
#include <stdint.h>

enum { SN_METRICS_WINDOW = 1024 };

typedef struct SnMetrics {
  pthread_mutex_t mutex;
  uint64_t plans, misses, replaced;
  double cost;                        // of the latest plan
  double latency[SN_METRICS_WINDOW];  // [s] of the latest plans, arrival to reply; a ring
} SnMetrics;

// The same at one instant.
typedef struct SnMetricsView {
  uint64_t plans, misses, replaced;
  double cost, p50, p99;  // 0 before the first plan
} SnMetricsView;

void sn_metrics_init(SnMetrics *metrics);
void sn_metrics_free(SnMetrics *metrics);

// A plan was answered after `latency` seconds.
void sn_metrics_plan(SnMetrics *metrics, double latency, int missed, double cost);

// A state was replaced by a newer one before its turn.
void sn_metrics_replaced(SnMetrics *metrics);

SnMetricsView sn_metrics_view(SnMetrics *metrics);

#endif
