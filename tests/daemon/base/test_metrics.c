// What is counted about plans, from samples that are known: numbers in, numbers out, no clock.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/metrics.h"
#include "daemon/session/session.h"

// The numbers 1 ... n in another order, as latencies; 7919 is a prime and shares no factor with n.
static SnMetricsView of_ramp(int n) {
  SnMetrics m;
  sn_metrics_init(&m);
  for (int i = 0; i < n; i++) sn_metrics_answered(&m, 1 + (i + 1) * 7919 % n, 0);
  const SnMetricsView view = sn_metrics_view(&m);
  return view;
}

// Of n samples in order, the median is number (n + 1) / 2, the lower one of two; p99 the nearest to 99 of 100.
static void test_percentiles(void **state) {
  (void)state;
  static const struct {
    int n;
    double p50, p99;
  } cases[] = {{1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {10, 5, 10}, {100, 50, 99}, {101, 51, 100}, {1000, 500, 990}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const SnMetricsView view = of_ramp(cases[i].n);
    if (view.p50 != cases[i].p50 || view.p99 != cases[i].p99)
      fail_msg("1 ... %d: p50 %g, p99 %g; wanted %g and %g", cases[i].n, view.p50, view.p99, cases[i].p50,
               cases[i].p99);
    assert_int_equal(view.plans, cases[i].n);
  }
}

// The latest plans count, the ones before them are forgotten, except in the totals.
static void test_window(void **state) {
  (void)state;
  SnMetrics m;
  sn_metrics_init(&m);
  assert_true(isnan(sn_metrics_view(&m).p50) && isnan(sn_metrics_view(&m).p99));
  for (int i = 0; i < 3000; i++) sn_metrics_answered(&m, 1000, i % 3 == 0);
  for (int i = 0; i < SN_METRICS_WINDOW - 1; i++) sn_metrics_answered(&m, 2, 0);
  SnMetricsView view = sn_metrics_view(&m);
  assert_true(view.p50 == 2 && view.p99 == 2);
  assert_int_equal(view.plans, 3000 + SN_METRICS_WINDOW - 1);
  assert_int_equal(view.misses, 1000);
  // One more than a hundredth of the window: p99 is among them, the median is not.
  for (int i = 0; i < SN_METRICS_WINDOW / 100 + 2; i++) sn_metrics_answered(&m, 7, 0);
  view = sn_metrics_view(&m);
  assert_true(view.p50 == 2 && view.p99 == 7);
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// After each of many random latencies, equal ones among them, percentiles are those of the latest, sorted anew.
static void test_random_latencies(void **state) {
  (void)state;
  enum { SEED = 20261126, COUNT = 3 * SN_METRICS_WINDOW };
  static double latency[COUNT], sorted[SN_METRICS_WINDOW];
  unsigned short seed[3] = {SEED & 0xffff, SEED >> 16, 0};
  printf("seed %d\n", SEED);
  SnMetrics m;
  sn_metrics_init(&m);
  for (int i = 0; i < COUNT; i++) {
    latency[i] = i % 2 ? erand48(seed) : 0.125 * (double)(nrand48(seed) % 9);
    sn_metrics_answered(&m, latency[i], 0);
    const int n = i < SN_METRICS_WINDOW ? i + 1 : SN_METRICS_WINDOW;
    memcpy(sorted, &latency[i + 1 - n], sizeof *sorted * (size_t)n);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    const SnMetricsView view = sn_metrics_view(&m);
    assert_true(view.p50 == sorted[(n - 1) / 2]);
    assert_true(view.p99 == sorted[lround(0.99 * (n - 1))]);
  }
}

// Each counter counts its own event and no other.
static void test_counters(void **state) {
  (void)state;
  SnMetrics m;
  sn_metrics_init(&m);
  SnMetricsView v = sn_metrics_view(&m);
  assert_true(isnan(v.cost) && isnan(v.gradient_norm) && v.best_cost == (double)INFINITY && v.planned == 0);
  for (int i = 0; i < 2; i++) sn_metrics_answered(&m, 0.5, 0);
  for (int i = 0; i < 3; i++) sn_metrics_answered(&m, 0.5, 1);
  for (int i = 0; i < 7; i++) sn_metrics_replaced(&m);
  for (int i = 0; i < 11; i++) sn_metrics_streamed(&m);
  sn_metrics_iterations(&m, 13);
  sn_metrics_iterations(&m, 4);
  sn_metrics_iterations(&m, 0);
  sn_metrics_iterations(&m, -5);
  v = sn_metrics_view(&m);
  assert_true(v.plans == 5 && v.misses == 3 && v.replaced == 7 && v.sent == 11 && v.iterations == 17);
  assert_true(v.overflows == 0 && v.planned == 0 && isnan(v.cost));
}

// Cost and gradient of the latest plan, the best cost since the configuration changed.
static void test_costs(void **state) {
  (void)state;
  SnMetrics m;
  sn_metrics_init(&m);
  sn_metrics_sent(&m, 10, 5, 0.25, false);
  sn_metrics_sent(&m, 11, 3, 0.5, true);
  sn_metrics_sent(&m, 12, 4, 0.75, true);
  assert_true(sn_metrics_view(&m).unimproved == 0 && !sn_metrics_view(&m).stuck);
  sn_metrics_progress(&m, 7, true);
  SnMetricsView v = sn_metrics_view(&m);
  assert_true(v.unimproved == 7 && v.stuck);
  sn_metrics_progress(&m, 0, false);
  assert_true(sn_metrics_view(&m).unimproved == 0 && !sn_metrics_view(&m).stuck);
  assert_true(v.cost == 4 && v.gradient_norm == 0.75 && v.best_cost == 3 && v.planned == 12 && v.overflows == 2);
  assert_true(v.plans == 0 && v.sent == 0);
  sn_metrics_sent(&m, 13, (double)NAN, (double)NAN, false);  // a warm start was not evaluated: no cost
  v = sn_metrics_view(&m);
  assert_true(isnan(v.cost) && v.best_cost == 3 && v.planned == 13);
  sn_metrics_reset_best(&m);
  v = sn_metrics_view(&m);
  assert_true(v.best_cost == (double)INFINITY && v.planned == 13 && v.overflows == 2);
  sn_metrics_sent(&m, 14, 9, 1, false);
  assert_true(sn_metrics_view(&m).best_cost == 9);
}

// How a job stands at an instant: its age from the arrival of its request, and whether it is still in time.
static void test_timing(void **state) {
  (void)state;
  SnJob job = {.route = {.arrived = 100}, .due = 100.25};
  SnTiming t = sn_job_timing(&job, 100);
  assert_true(t.age == 0 && t.in_time);
  t = sn_job_timing(&job, 100.125);
  assert_true(t.age == 0.125 && t.in_time);
  t = sn_job_timing(&job, 100.25);  // the deadline itself is in time
  assert_true(t.age == 0.25 && t.in_time);
  t = sn_job_timing(&job, nextafter(100.25, 101));
  assert_true(t.age > 0.25 && !t.in_time);
  t = sn_job_timing(&job, 104);
  assert_true(t.age == 4 && !t.in_time);
  job.due = (double)INFINITY;  // no deadline is never missed
  t = sn_job_timing(&job, 1e9);
  assert_true(t.age == 1e9 - 100 && t.in_time);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_percentiles), cmocka_unit_test(test_window), cmocka_unit_test(test_random_latencies),
      cmocka_unit_test(test_counters),    cmocka_unit_test(test_costs),  cmocka_unit_test(test_timing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
