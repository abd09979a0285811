// Counts what a program takes from the heap. A test that includes this is linked with --wrap for the four functions
// below, and counts itself alone: one file of it includes this.
#ifndef SINEW_TESTS_SUPPORT_ALLOCATIONS_H_
#define SINEW_TESTS_SUPPORT_ALLOCATIONS_H_

#include <stdatomic.h>
#include <stddef.h>

static atomic_long allocations;
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __real_malloc(size);
}
void *__wrap_calloc(size_t n, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __real_realloc(p, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __real_aligned_alloc(alignment, size);
}

// Returns how many there were so far, of all threads.
static inline long sn_allocations(void) { return atomic_load(&allocations); }

#endif
