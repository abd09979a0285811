// A CUDA runtime and cuBLAS of the test's own: as much of them as device_cuda.c calls. Calls are done at once. It
// counts calls and what is left over, and fails where it is told. With SN_FAKE_BODIES (libsinew_fake_cuda.so) launches
// run the kernels' bodies, on one lane.
#ifndef SINEW_TESTS_CUDA_DEVICE_FAKE_CUDA_H_
#define SINEW_TESTS_CUDA_DEVICE_FAKE_CUDA_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "cuda/kernels/kernels.h"

typedef struct Fake {
  // Pretended.
  int devices, driver, major, minor;  // driver as of cudaDriverGetVersion; 0: there is none
  size_t memory, stack;               // free; of each kernel
  cudaError_t code;                   // result of the call that fails
  int fail;                           // number of the call that fails, counted from 1; 0: none
  int busy;                           // how often cudaStreamQuery says that there is work
  // Counted.
  int calls;
  const char *failed;  // name of the call
  int left;            // allocations, streams, graphs, handles that are not freed
  int warmed;          // launches on nothing
  int launches, runs;
  int dynamic;          // kernels that were allowed shared memory
  bool capture_broken;  // a call was made that ends a capture
} Fake;
extern Fake fake;
Fake fake_default(void);

#endif
