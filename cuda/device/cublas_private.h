// cuBLAS behind device_cuda.c. The library is hundreds of megabytes, which most uses of a device do without. So it is
// opened when a product is first asked for, and a device works without it until then.
#ifndef SINEW_CUDA_DEVICE_CUBLAS_PRIVATE_H_
#define SINEW_CUDA_DEVICE_CUBLAS_PRIVATE_H_

#include <cuda_runtime_api.h>

#include "cuda/device/device.h"

// Holds an open library, with a handle for the device that is current.
typedef struct SnCublas SnCublas;

// Says how much memory of the device the products of a stream work in [bytes].
enum { SN_CUBLAS_WORKSPACE = 4 << 20 };

// Opens the library and makes a handle for the current device. Returns NULL on failure, and why in text[size].
SnCublas *sn_cublas_open(char *text, size_t size);
// Closes the handle; the library stays. NULL is allowed.
void sn_cublas_close(SnCublas *c);
// Puts products into a stream, which has a workspace of its own. Returns false on failure, and why in text[size].
bool sn_cublas_multiply(SnCublas *c, cudaStream_t stream, void *workspace, const SnProducts *p, char *text,
                        size_t size);

#endif
