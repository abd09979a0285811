// The clock that work is measured against. It is given by the caller, so that tests can own the time.
#ifndef SINEW_PLANNER_BASE_CLOCK_H_
#define SINEW_PLANNER_BASE_CLOCK_H_

#include "physics/base/clock.h"

// Reads a time [s] that never goes back; any thread may read it. Work that has an end is ended by an infinite time,
// too.
typedef struct SnClock {
  double (*now)(void *context);
  void *context;
} SnClock;

// Says how often threads that wait for others read the clock of work that has an end [s].
static const double sn_clock_patience = 0.01;

static inline double sn_clock_read_monotonic(void *context) {
  (void)context;
  return sn_clock_now();
}

// Returns the monotonic clock of the system.
static inline SnClock sn_clock_monotonic(void) { return (SnClock){.now = sn_clock_read_monotonic}; }

#endif
