#ifndef SINEW_TESTS_CUDA_HOST_DEVICE_BEHIND_H_
#define SINEW_TESTS_CUDA_HOST_DEVICE_BEHIND_H_

#include "cuda/host/host.h"

// Returns the device of a backend in a library, which begins with its table.
static inline SnDevice *device_behind(SnBackend *b) { return ((SnDeviceHost *)b)->device; }

#endif
