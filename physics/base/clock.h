// The monotonic clock: seconds since an arbitrary instant, never set back. It needs no library, so that programs
// without the engine use it too.
#ifndef SINEW_PHYSICS_BASE_CLOCK_H_
#define SINEW_PHYSICS_BASE_CLOCK_H_

#include <time.h>

// Returns the time in whole nanoseconds.
static inline unsigned long long sn_clock_nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000ull * (unsigned long long)t.tv_sec + (unsigned long long)t.tv_nsec;
}

// Returns the time [s].
static inline double sn_clock_now(void) { return 1e-9 * (double)sn_clock_nanoseconds(); }

// Converts seconds, an instant of sn_clock_now() or a duration, for the system's calls. A condition variable that waits
// until such an instant must use CLOCK_MONOTONIC.
static inline struct timespec sn_clock_timespec(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds};
  t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
  return t;
}

#endif
