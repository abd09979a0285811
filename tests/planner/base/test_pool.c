// The pool: every thread runs once a job, many jobs in a row, any number of threads.
#include <stdatomic.h>

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

static void bounds(void **state) {
  (void)state;
  SnError err = {0};
  assert_null(sn_pool_create(0, &err));
  assert_string_equal(err.text, "threads: 0 is out of bounds, allowed is 1 to 256");
  assert_null(sn_pool_create(257, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_thread_once), cmocka_unit_test(bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
