// A clock that tests own.
#ifndef SINEW_TESTS_PLANNER_COUNTING_CLOCK_H_
#define SINEW_TESTS_PLANNER_COUNTING_CLOCK_H_

#include <stdatomic.h>

#include "planner/rollout/rollout_runner.h"

// Advances by one second each time it is read, from any thread.
typedef struct CountingClock {
  atomic_long reads;
} CountingClock;

static inline double counting_now(void *context) {
  return (double)atomic_fetch_add(&((CountingClock *)context)->reads, 1);
}

static inline SnClock counting_clock(CountingClock *c) { return (SnClock){counting_now, c}; }

#endif
