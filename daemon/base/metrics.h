// What is counted about plans: totals, and the latencies of the latest ones. Any thread.
#ifndef SINEW_DAEMON_BASE_METRICS_H_
#define SINEW_DAEMON_BASE_METRICS_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SN_METRICS_WINDOW = 1024 };

typedef struct SnMetrics {
  pthread_mutex_t mutex;
  uint64_t plans, misses, replaced;
  uint64_t iterations;                // of all plans
  uint64_t sent;                      // plans sent in continuous mode
  uint64_t overflows;                 // plans whose rollouts had no room for all contacts or rows
  double cost, gradient_norm;         // of the latest plan
  double best_cost;                   // lowest of a plan since the latest sn_metrics_reset_best; INFINITY: none
  double planned;                     // when the latest plan was sent, on sn_clock_now(); 0: none yet
  double latency[SN_METRICS_WINDOW];  // [s] of the latest plans, arrival to reply; a ring
} SnMetrics;

// The same at one instant.
typedef struct SnMetricsView {
  uint64_t plans, misses, replaced, iterations, sent, overflows;
  double cost, gradient_norm, best_cost;
  double p50, p99;  // NaN before the first plan
  double planned;
} SnMetricsView;

void sn_metrics_init(SnMetrics *metrics);
void sn_metrics_free(SnMetrics *metrics);

// A plan was sent: at `now`, its cost and gradient norm, whether contacts or rows were dropped in it.
void sn_metrics_sent(SnMetrics *metrics, double now, double cost, double gradient_norm, bool overflow);

// So many iterations were made.
void sn_metrics_iterations(SnMetrics *metrics, int iterations);

// A state was answered for the first time, after `latency` seconds.
void sn_metrics_answered(SnMetrics *metrics, double latency, int missed);

// A plan was sent in continuous mode.
void sn_metrics_streamed(SnMetrics *metrics);

// Costs before do not compare with those to come.
void sn_metrics_reset_best(SnMetrics *metrics);

// A state was replaced by a newer one before its turn.
void sn_metrics_replaced(SnMetrics *metrics);

SnMetricsView sn_metrics_view(SnMetrics *metrics);

#endif
