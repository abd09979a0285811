// A clock that tests own.
#ifndef SINEW_TESTS_PLANNER_COUNTING_CLOCK_H_
#define SINEW_TESTS_PLANNER_COUNTING_CLOCK_H_

#include <math.h>
#include <stdatomic.h>

#include "planner/rollout/rollout_runner.h"

// Advances by one second each time it is read, from any thread.
typedef struct CountingClock {
  atomic_long reads;
  long end;  // it shows an infinite time from this reading on; 0: never
} CountingClock;

static inline double counting_now(void *context) {
  CountingClock *c = context;
  const long time = atomic_fetch_add(&c->reads, 1);
  return c->end > 0 && time >= c->end ? (double)INFINITY : (double)time;
}

static inline SnClock counting_clock(CountingClock *c) { return (SnClock){counting_now, c}; }

#endif
