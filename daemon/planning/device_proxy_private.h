// A backend that belongs to one thread, and hands it the calls of all others.
//
// A device's state is partly its thread's own (CUDA's current device). If two threads shared a device, every order of
// their calls would have to be right. So the planner thread alone opens, uses and closes it. Loader threads make
// planners, which need memory of the device. Such calls of the table are handed to the owning thread, which carries
// them out between two slices; they wait for it.
#ifndef SINEW_DAEMON_PLANNING_DEVICE_PROXY_PRIVATE_H_
#define SINEW_DAEMON_PLANNING_DEVICE_PROXY_PRIVATE_H_

#include "planner/backend/backend.h"

// Wraps `inner`, which the calling thread has opened and owns from now on; it is closed with the result. Any thread may
// call load, unload, update, reserve_*, abandon and lost; the owning thread alone all others. wake(context) is called
// when a call waits for the owning thread. Returns NULL and err when out of memory: inner is then closed.
SnBackend *sn_device_proxy_create(SnBackend *inner, void (*wake)(void *context), void *context, SnError *err);

// Carries out the calls that wait. Returns whether there were any. The owning thread calls it.
bool sn_device_proxy_serve(SnBackend *proxy);

#endif
