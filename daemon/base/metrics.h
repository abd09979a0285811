// Counts of plans: totals, and the latencies of the latest ones. Any thread may use them, and none waits: the planner
// thread writes them, but for `replaced`, which any thread may count.
#ifndef SINEW_DAEMON_BASE_METRICS_H_
#define SINEW_DAEMON_BASE_METRICS_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SN_METRICS_WINDOW = 1024 };

typedef struct SnMetrics {
  atomic_uint_least64_t plans, misses, replaced;
  atomic_uint_least64_t iterations;    // made for all plans
  atomic_uint_least64_t sent;          // plans sent in continuous mode
  _Atomic double served;               // time of the planner thread [s]
  atomic_uint_least64_t overflows;     // plans whose rollouts had no room for all contacts or rows
  _Atomic double cost, gradient_norm;  // the latest plan's
  atomic_int unimproved;               // plans in a row, up to it, whose cost did not fall
  atomic_bool stuck;                   // it is no better than its warm start, and its gradient next to nothing
  _Atomic double best_cost;            // lowest of a plan since the latest sn_metrics_reset_best; INFINITY: none
  _Atomic double planned;              // when the latest plan was sent, on sn_clock_now(); 0: none yet
  _Atomic double p50, p99;             // percentiles of `latency` [s]; NaN before the first plan
  double latency[SN_METRICS_WINDOW];   // [s] of the latest plans, arrival to reply; a ring, the planner thread's alone
  double sorted[SN_METRICS_WINDOW];    // `latency` in ascending order
} SnMetrics;

// Shows the counts of about one instant.
typedef struct SnMetricsView {
  uint64_t plans, misses, replaced, iterations, sent, overflows;
  double cost, gradient_norm, best_cost;
  int unimproved;
  bool stuck;
  double served;
  double p50, p99;  // [s], NaN before the first plan
  double planned;
} SnMetricsView;

void sn_metrics_init(SnMetrics *metrics);

// Counts a plan that was sent at `now`: its cost and gradient norm, whether contacts or rows were dropped in it.
void sn_metrics_sent(SnMetrics *metrics, double now, double cost, double gradient_norm, bool overflow);

// Notes what the latest plan says of its progress.
void sn_metrics_progress(SnMetrics *metrics, int unimproved, bool stuck);

// Adds iterations that were made.
void sn_metrics_iterations(SnMetrics *metrics, int iterations);

// Counts a state that was answered for the first time, after `latency` seconds, and keeps the percentiles up to date.
// A reader that sorted them would hold up the event loop: 64 sessions took it 4 ms.
void sn_metrics_answered(SnMetrics *metrics, double latency, int missed);

// Counts a plan that was sent in continuous mode.
void sn_metrics_streamed(SnMetrics *metrics);

// Adds time of the planner thread.
void sn_metrics_served(SnMetrics *metrics, double seconds);

// Forgets the best cost: costs before do not compare with those to come.
void sn_metrics_reset_best(SnMetrics *metrics);

// Counts a state that was replaced by a newer one before its turn.
void sn_metrics_replaced(SnMetrics *metrics);

SnMetricsView sn_metrics_view(const SnMetrics *metrics);

#endif
