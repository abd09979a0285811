// A backend that belongs to one thread. A device's state is partly its thread's own (CUDA's current device), and a
// device that two threads share is a device on which every order of calls would have to be right. So the planner thread
// alone opens, uses and closes it. Loader threads make planners, which need room on the device: what they ask of the
// table is handed to the owner, who carries it out between two slices, and they wait for it.
#ifndef SINEW_DAEMON_PLANNING_DEVICE_PROXY_PRIVATE_H_
#define SINEW_DAEMON_PLANNING_DEVICE_PROXY_PRIVATE_H_

#include "planner/backend/backend.h"

// The table of `inner`, which the calling thread has opened and owns from now on; it goes with the new one. From any
// thread: load, unload, update, reserve_gradients, reserve_multistart, abandon, lost. The owner's alone, as it stands:
// all others. `wake` (with `context`) is called when a call waits for the owner. NULL and err when out of memory: inner
// is then closed.
SnBackend *sn_device_proxy_create(SnBackend *inner, void (*wake)(void *context), void *context, SnError *err);

// Carries out the calls that wait. True when there were any. The owner's.
bool sn_device_proxy_serve(SnBackend *owned);

#endif
