// What is freed and read on a thread of its own.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/memory.h"
#include "daemon/planning/planning.h"

enum { BLOCK = 100000 };  // below what malloc maps for itself

static void rest(void) { usleep(10000); }

// Asks until the heap that was read is at least so large, 10 s at most; returns what was read.
static uint64_t wait_for_heap(SnReaper *r, uint64_t least) {
  uint64_t heap = 0;
  for (int i = 0; i < 1000 && (heap = sn_reaper_heap(r)) < least; ++i) rest();
  return heap;
}

// The heap is read when the thread starts, and again after a question; once it has ended the last answer stays. A
// sanitizer's heap does not tell how much is allocated.
static void test_heap(void **state) {
  (void)state;
  const uint64_t before = sn_heap_memory();
  SnReaper r;
  SnError err = {0};
  assert_int_equal(sn_reaper_start(&r, NULL, &err), SN_OK);
  for (int i = 0; i < 1000 && atomic_load(&r.heap) < before; ++i) rest();
  assert_true(atomic_load(&r.heap) >= before);
  void *block = malloc(BLOCK);
  assert_non_null(block);
  const uint64_t with = wait_for_heap(&r, before > 0 ? before + BLOCK : 0);
  assert_true(before == 0 || (with >= before + BLOCK && with < before + 2 * BLOCK));
  free(block);
  sn_reaper_stop(&r);
  const uint64_t last = sn_reaper_heap(&r);
  assert_true((last > 0) == (before > 0) && last == sn_reaper_heap(&r));
  sn_reaper_stop(&r);
}

// How often free memory was given back, and whether the event loop's thread ever did it, which here is the test's.
static atomic_int trims;
static atomic_bool trimmed_here;
static pthread_t here;

// Takes the place of the C library's for the code under test.
int __wrap_malloc_trim(size_t pad);
int __wrap_malloc_trim(size_t pad) {
  (void)pad;
  if (pthread_equal(here, pthread_self())) atomic_store(&trimmed_here, true);
  atomic_fetch_add(&trims, 1);
  return 1;
}

// Free memory is given back by the reaper's thread, once for each time that somebody asks, or for several at once.
static void test_trim(void **state) {
  (void)state;
  SnReaper r;
  SnError err = {0};
  here = pthread_self();
  assert_int_equal(sn_reaper_start(&r, NULL, &err), SN_OK);
  for (int i = 1; i <= 3; ++i) {
    sn_reaper_trim(&r);
    for (int k = 0; k < 1000 && atomic_load(&trims) < i; ++k) rest();
    rest();
    assert_int_equal(atomic_load(&trims), i);
  }
  assert_false(atomic_load(&trimmed_here));
  sn_reaper_stop(&r);
  assert_int_equal(atomic_load(&trims), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_heap), cmocka_unit_test(test_trim)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
