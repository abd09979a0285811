// The pool: every thread runs once a job, many jobs in a row, any number of threads.
#include <stdatomic.h>

#include "planner/base/clock.h"
#include "planner/base/pool.h"
#include "tests/support/oracle.h"

typedef struct Count {
  atomic_int total;
  int of[SN_MAX_THREADS];  // each written by its own thread
} Count;

static void work(void *argument, int thread) {
  Count *c = argument;
  ++c->of[thread];
  atomic_fetch_add(&c->total, 1);
}

static void every_thread_once(void **state) {
  (void)state;
  SnError err = {0};
  for (int n = 1; n <= 9; n += 4) {
    SnPool *pool = sn_pool_create(n, &err);
    assert_non_null(pool);
    assert_int_equal(sn_pool_size(pool), n);
    Count c = {0};
    for (int job = 0; job < 300; ++job) sn_pool_run(pool, work, &c);
    assert_int_equal(atomic_load(&c.total), 300 * n);
    for (int i = 0; i < n; ++i) assert_int_equal(c.of[i], 300);
    sn_pool_free(pool);
  }
  sn_pool_free(NULL);
}

// Ends the other thread's part once the caller, who waits for it, has been called.
static void wait_for_watch(void *argument, int thread) {
  Count *c = argument;
  const double end = sn_clock_now() + 60;
  while (thread == 1 && atomic_load(&c->total) < 3 && sn_clock_now() < end) continue;
}

static void watch(void *argument) { atomic_fetch_add(&((Count *)argument)->total, 1); }

static void caller_watches(void **state) {
  (void)state;
  SnError err = {0};
  SnPool *pool = sn_pool_create(2, &err);
  assert_non_null(pool);
  Count c = {0};
  sn_pool_run_watched(pool, wait_for_watch, watch, &c);
  assert_true(atomic_load(&c.total) >= 3);
  atomic_store(&c.total, 3);
  sn_pool_run(pool, wait_for_watch, &c);
  assert_int_equal(atomic_load(&c.total), 3);
  sn_pool_free(pool);
}

static void bounds(void **state) {
  (void)state;
  SnError err = {0};
  assert_null(sn_pool_create(0, &err));
  assert_string_equal(err.text, "threads: 0 is out of bounds, allowed is 1 to 256");
  assert_null(sn_pool_create(257, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_thread_once), cmocka_unit_test(caller_watches),
                                     cmocka_unit_test(bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
