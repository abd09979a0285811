// Counts of plans: totals, and the latencies of the latest ones. Any thread may use them.
#ifndef SINEW_DAEMON_BASE_METRICS_H_
#define SINEW_DAEMON_BASE_METRICS_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SN_METRICS_WINDOW = 1024 };

typedef struct SnMetrics {
  pthread_mutex_t mutex;
  uint64_t plans, misses, replaced;
  uint64_t iterations;                // made for all plans
  uint64_t sent;                      // plans sent in continuous mode
  double served;                      // time of the planner thread [s]
  uint64_t overflows;                 // plans whose rollouts had no room for all contacts or rows
  double cost, gradient_norm;         // the latest plan's
  int unimproved;                     // plans in a row, up to it, whose cost did not fall
  bool stuck;                         // it is no better than its warm start, and its gradient next to nothing
  double best_cost;                   // lowest of a plan since the latest sn_metrics_reset_best; INFINITY: none
  double planned;                     // when the latest plan was sent, on sn_clock_now(); 0: none yet
  double latency[SN_METRICS_WINDOW];  // [s] of the latest plans, arrival to reply; a ring
} SnMetrics;

// Shows the counts at one instant.
typedef struct SnMetricsView {
  uint64_t plans, misses, replaced, iterations, sent, overflows;
  double cost, gradient_norm, best_cost;
  int unimproved;
  bool stuck;
  double served;
  double p50, p99;  // NaN before the first plan
  double planned;
} SnMetricsView;

void sn_metrics_init(SnMetrics *metrics);
void sn_metrics_free(SnMetrics *metrics);

// Counts a plan that was sent at `now`: its cost and gradient norm, whether contacts or rows were dropped in it.
void sn_metrics_sent(SnMetrics *metrics, double now, double cost, double gradient_norm, bool overflow);

// Notes what the latest plan says of its progress.
void sn_metrics_progress(SnMetrics *metrics, int unimproved, bool stuck);

// Adds iterations that were made.
void sn_metrics_iterations(SnMetrics *metrics, int iterations);

// Counts a state that was answered for the first time, after `latency` seconds.
void sn_metrics_answered(SnMetrics *metrics, double latency, int missed);

// Counts a plan that was sent in continuous mode.
void sn_metrics_streamed(SnMetrics *metrics);

// Adds time of the planner thread.
void sn_metrics_served(SnMetrics *metrics, double seconds);

// Forgets the best cost: costs before do not compare with those to come.
void sn_metrics_reset_best(SnMetrics *metrics);

// Counts a state that was replaced by a newer one before its turn.
void sn_metrics_replaced(SnMetrics *metrics);

SnMetricsView sn_metrics_view(SnMetrics *metrics);

#endif
