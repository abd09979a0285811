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

static double now(void *context) {
  ApiInterrupt *x = context;
  double time = sn_clock_now();
  if (atomic_load_explicit(&x->said, memory_order_relaxed)) return (double)INFINITY;
  if (!pthread_equal(pthread_self(), x->caller) || time < x->next) return time;
  atomic_store(&x->said, x->ask(x->user));
  time = sn_clock_now();
  x->next = time + period;
  return atomic_load(&x->said) ? (double)INFINITY : time;
}

SnClock api_interrupt_clock(ApiInterrupt *interrupt) {
  return interrupt->ask ? (SnClock){.now = now, .context = interrupt} : sn_clock_monotonic();
}

double api_interrupt_until(const ApiInterrupt *interrupt) { return interrupt->ask ? DBL_MAX : (double)INFINITY; }

bool api_interrupt_look(ApiInterrupt *interrupt) { return interrupt->ask && isinf(now(interrupt)); }

SinewStatus api_interrupt_fail(SinewError *err) {
  return api_fail(err, SINEW_ERR_INTERRUPTED, "the call was interrupted by its caller");
}
