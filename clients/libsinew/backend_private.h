// A backend as libsinew holds it.
#ifndef SINEW_CLIENTS_LIBSINEW_BACKEND_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_BACKEND_PRIVATE_H_

#include <sys/types.h>

#include "clients/libsinew/api_private.h"
#include "planner/backend/backend.h"

struct SinewBackend {
  ApiGuard guard;
  pid_t process;  // id of the one that has opened it: threads and devices do not come along in fork()
  SnPool *pool;   // threads of the CPU; NULL for a device
  SnBackend *backend;
  char description[256];
};

// Begins a call on a backend that `user` ("batch") needs: one thread at a time, none after fork(). After SINEW_OK comes
// api_leave.
SinewStatus api_enter_backend(SinewBackend *backend, const char *user, SinewError *err);
// Begins a call on a handle and on its backend (NULL: none): both have one thread at a time. After SINEW_OK
// comes api_leave_pair.
SinewStatus api_enter_pair(ApiGuard *guard, const char *handle, SinewBackend *backend, SinewError *err);
// Ends a call on a handle and its backend. Returns `status`.
SinewStatus api_leave_pair(ApiGuard *guard, SinewBackend *backend, SinewStatus status);
// Tells that the device of a backend is lost. Returns SINEW_ERR_DEVICE.
SinewStatus api_device_lost(const SinewBackend *backend, SinewError *err);

#endif
