// Errors of the public functions, and the check for two threads on one handle.
#include "clients/libsinew/api_private.h"

// The engine's codes are the first of the public ones.
_Static_assert((int)SINEW_ERR_ARGUMENT == (int)SN_ERR_ARGUMENT && (int)SINEW_ERR_MEMORY == (int)SN_ERR_MEMORY &&
                   (int)SINEW_ERR_IO == (int)SN_ERR_IO && (int)SINEW_ERR_FORMAT == (int)SN_ERR_FORMAT &&
                   (int)SINEW_ERR_UNSUPPORTED == (int)SN_ERR_UNSUPPORTED && (int)SINEW_ERR_LIMIT == (int)SN_ERR_LIMIT &&
                   (int)SINEW_ERR_NOT_FOUND == (int)SN_ERR_NOT_FOUND && (int)SINEW_ERR_TIMEOUT == (int)SN_ERR_TIMEOUT &&
                   (int)SINEW_ERR_STATE == (int)SN_ERR_STATE,
               "codes of the engine and statuses of the library differ");

SinewStatus api_hand_on(SinewError *err, const SnError *from) {
  return api_fail(err, (SinewStatus)from->code, "%s", from->text);
}

const char *sinew_version(void) { return SN_VERSION; }

#ifndef NDEBUG
SinewStatus api_enter(ApiGuard *guard, const char *handle, SinewError *err) {
  if (atomic_exchange(&guard->busy, 1))
    return api_fail(err, SINEW_ERR_STATE, "another thread is in a call on this %s", handle);
  return SINEW_OK;
}

SinewStatus api_leave(ApiGuard *guard, SinewStatus status) {
  atomic_store(&guard->busy, 0);
  return status;
}
#endif
