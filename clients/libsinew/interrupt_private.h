// Calls that their caller may interrupt. The engine ends work at an instant of a clock, so a clock stands for him. It
// shows the time, and an infinite one once he has interrupted.
#ifndef SINEW_CLIENTS_LIBSINEW_INTERRUPT_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_INTERRUPT_PRIVATE_H_

#include <pthread.h>

#include "clients/libsinew/api_private.h"
#include "planner/base/clock.h"

// Says whom to ask. It stays where it is while a clock of it is in use.
typedef struct ApiInterrupt {
  SinewInterrupt ask;  // NULL: nobody
  void *user;
  pthread_t caller;  // makes the call under way, and is asked alone
  double next;       // time of the next question [s]
  atomic_bool said;  // the call under way is interrupted
} ApiInterrupt;

// Begins a call, by the thread that is to be asked.
void api_interrupt_begin(ApiInterrupt *interrupt);
// Returns the clock. Whoever reads it on the caller's thread asks, 10 ms after the time before. Exact: for deadlines,
// too; else its time is good to some milliseconds.
SnClock api_interrupt_clock(ApiInterrupt *interrupt, bool exact);
// Returns when work has to end on that clock: at the end of all times. It is infinite, and the clock not read, where
// there is nobody to ask.
double api_interrupt_until(const ApiInterrupt *interrupt);
// Asks the caller where it is time for that. Returns whether the call under way is interrupted. Work that has come to
// its end is looked at, too: others may have done the rest while he said so.
bool api_interrupt_look(ApiInterrupt *interrupt);
// Tells that a call was interrupted. Returns SINEW_ERR_INTERRUPTED.
SinewStatus api_interrupt_fail(SinewError *err);

#endif
