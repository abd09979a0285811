// Between the files of libsinew: errors of the engine, and the check that a handle has one thread at a time. See
// clients/base/api.h for errors of the library's own.
#ifndef SINEW_CLIENTS_LIBSINEW_API_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_API_PRIVATE_H_

#include <stdatomic.h>

#include "clients/base/api.h"
#include "clients/include/sinew.h"
#include "physics/base/status.h"

// ---- error.c ----

// Hands an error of the engine on: err gets its text. Returns its status, which is not SINEW_OK.
SinewStatus api_hand_on(SinewError *err, const SnError *from);

// Notices two threads in calls on one handle. It is the first member of every handle that belongs to one thread.
typedef struct ApiGuard {
  atomic_int busy;
} ApiGuard;

// Begins a call on a handle. In debug builds it returns SINEW_ERR_STATE when another thread is in one; in others it
// does nothing. `handle` names the kind for the text. Ends the call, and returns `status`: api_leave.
#ifdef NDEBUG
static inline SinewStatus api_enter(ApiGuard *guard, const char *handle, SinewError *err) {
  (void)guard;
  (void)handle;
  (void)err;
  return SINEW_OK;
}
static inline SinewStatus api_leave(ApiGuard *guard, SinewStatus status) {
  (void)guard;
  return status;
}
#else
SinewStatus api_enter(ApiGuard *guard, const char *handle, SinewError *err);
SinewStatus api_leave(ApiGuard *guard, SinewStatus status);
#endif

// Says what the numbers of "history" have to be.
#define API_HISTORY_RULE                                                                                            \
  "allowed are finite numbers: of each buffer a mark, the place of the newest sample, times that ascend up to it, " \
  "samples; rests of springs that yield, of rotations unit quaternions, of tendons a range"

#endif
