// The daemon's clock: seconds since an arbitrary start, never set back.
#ifndef SINEW_DAEMON_BASE_CLOCK_H_
#define SINEW_DAEMON_BASE_CLOCK_H_

#include <time.h>

static inline double sn_clock_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The same instant for pthread_cond_timedwait on a condition that uses CLOCK_MONOTONIC.
static inline struct timespec sn_clock_timespec(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds};
  t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
  return t;
}

#endif
