#include "clients/libsinew/interrupt_private.h"

#include <float.h>
#include <math.h>

static const double period = 0.01;  // [s]

void api_interrupt_begin(ApiInterrupt *interrupt) {
  if (!interrupt->ask) return;
  interrupt->caller = pthread_self();
  interrupt->next = sn_clock_now() + period;
  atomic_store(&interrupt->said, false);
}

// Asks where it is time for that. Returns what the clock shows.
static double look(ApiInterrupt *x, double time) {
  if (atomic_load_explicit(&x->said, memory_order_relaxed)) return (double)INFINITY;
  if (!pthread_equal(pthread_self(), x->caller) || time < x->next) return time;
  atomic_store(&x->said, x->ask(x->user));
  time = sn_clock_now();
  x->next = time + period;
  return atomic_load(&x->said) ? (double)INFINITY : time;
}

static double now(void *context) { return look(context, sn_clock_now()); }

// Reads a clock of the kernel's ticks, a few milliseconds each, which costs a fifth: a step may take 0.3 us.
static double now_coarse(void *context) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return look(context, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
}

SnClock api_interrupt_clock(ApiInterrupt *interrupt, bool exact) {
  if (!interrupt->ask) return sn_clock_monotonic();
  return (SnClock){.now = exact ? now : now_coarse, .context = interrupt};
}

double api_interrupt_until(const ApiInterrupt *interrupt) { return interrupt->ask ? DBL_MAX : (double)INFINITY; }

bool api_interrupt_look(ApiInterrupt *interrupt) { return interrupt->ask && isinf(now(interrupt)); }

SinewStatus api_interrupt_fail(SinewError *err) {
  return api_fail(err, SINEW_ERR_INTERRUPTED, "the call was interrupted by its caller");
}
