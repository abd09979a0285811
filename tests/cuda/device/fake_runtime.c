// The calls of the CUDA runtime that device_cuda.c makes, on the host, so that this file runs without a device: kernels
// run at once, one lane a world. As on a device, an error of a kernel stays: once the file that SINEW_LOSE_DEVICE names
// is there, every call fails until the process ends, and nothing is freed any more.
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "cuda/kernels/kernels.h"

enum { MULTIPROCESSORS = 4, RESIDENT = 2048, ALIGNED = 256 };
static const size_t memory = (size_t)4 << 30;

// ---- errors ----

static _Atomic cudaError_t broken = cudaSuccess;

// What a call that needs the device comes to.
static cudaError_t state(void) {
  const char *file = getenv("SINEW_LOSE_DEVICE");
  if (file && access(file, F_OK) == 0) atomic_store(&broken, cudaErrorLaunchFailure);
  return atomic_load(&broken);
}

const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess                 ? "no error"
         : error == cudaErrorLaunchFailure    ? "unspecified launch failure"
         : error == cudaErrorMemoryAllocation ? "out of memory"
                                              : "another error";
}

cudaError_t cudaGetLastError(void) { return atomic_load(&broken); }

// ---- memory ----

// What stands before a piece of memory. Those that a broken device keeps can still be found.
typedef struct Piece {
  alignas(ALIGNED) struct Piece *next;
  struct Piece **link;  // what points here
} Piece;
static Piece *pieces;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// Takes memory that a device would not clear.
static cudaError_t take(void **p, size_t bytes) {
  if (state() != cudaSuccess) return state();
  const size_t whole = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
  Piece *new = whole <= memory ? aligned_alloc(ALIGNED, sizeof *new + whole) : NULL;
  if (!new) return cudaErrorMemoryAllocation;
  pthread_mutex_lock(&mutex);
  *new = (Piece){pieces, &pieces};
  if (pieces) pieces->link = &new->next;
  pieces = new;
  pthread_mutex_unlock(&mutex);
  *p = memset(new + 1, 0xff, whole);
  return cudaSuccess;
}

static cudaError_t give(void *p) {
  if (state() != cudaSuccess) return state();
  Piece *old = (Piece *)p - 1;
  pthread_mutex_lock(&mutex);
  *old->link = old->next;
  if (old->next) old->next->link = old->link;
  pthread_mutex_unlock(&mutex);
  free(old);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes) { return take(p, bytes); }
cudaError_t cudaFree(void *p) { return give(p); }
cudaError_t cudaFreeHost(void *p) { return give(p); }

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned int flags) {
  (void)flags;
  return take(p, bytes);
}

cudaError_t cudaMemset(void *p, int value, size_t bytes) {
  if (state() == cudaSuccess) memset(p, value, bytes);
  return state();
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
  *left = *total = memory;
  return state();
}

// ---- streams ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
  (void)flags;
  return take((void **)stream, 1);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return give(stream); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  (void)stream;
  return state();
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind;
  (void)stream;
  if (state() == cudaSuccess) memcpy(to, from, bytes);
  return state();
}

// ---- kernels ----

// Those with a warp for a world; that of ROLLOUT with a part of one; those whose threads have a world alone.
enum { PART = SN_NKERNEL, ALONE };
static const char kernels[ALONE + SN_NTHREADKERNEL];

#define KERNEL_FUNCTION(name, body, text) \
  const void *body##_32(void) { return &kernels[SN_KERNEL_##name]; }
SN_KERNELS(KERNEL_FUNCTION)
#undef KERNEL_FUNCTION
const void *sn_kernel_rollout_8(void) { return &kernels[PART]; }
const void *sn_thread_kernel_function(int i) { return &kernels[ALONE + i]; }

// Whether the threads of a block are those that the text of kernel k counts on: how many lanes a world has is a
// constant there, and blocks of such kernels have a row for each world.
static bool has_its_threads(int k, dim3 block) {
  const unsigned lanes = k == PART ? SN_PART_OF_WARP : SN_WARP;
  return block.x * block.y <= SN_KERNEL_BLOCK && block.z == 1 && (k >= ALONE ? block.y == 1 : block.x == lanes);
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t bytes,
                             cudaStream_t stream) {
  const SnWork *work = arguments[0];
  const int k = (int)((const char *)kernel - kernels);
  const bool alone = k >= ALONE;
  const size_t most = alone ? sn_thread_kernel_bytes(k - ALONE) : work->block.stride;
  SnLaneShared shared;
  SnLane lane = {.id = 0, .n = 1, .shared = &shared};
  (void)stream;
  if (state() != cudaSuccess) return state();
  if (bytes > 0 || !has_its_threads(k, block) || grid.x * (alone ? block.x : block.y) < (unsigned)work->blocks)
    return cudaErrorInvalidConfiguration;
  void *own = alone ? aligned_alloc(64, most) : NULL;
  if (alone && !own) return cudaErrorMemoryAllocation;
  for (int i = 0; i < work->blocks && work->model.nbody > 0; ++i) {
    void *mine = alone ? own : sn_kernel_slot(work, i);
    memset(mine, 0xff, most);
    memset(&shared, 0xff, sizeof shared);
    sn_kernel_body(k >= PART ? SN_KERNEL_ROLLOUT : (SnKernel)k, work, i, work->blocks, &lane, mine);
  }
  free(own);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
  (void)kernel;
  *attributes = (struct cudaFuncAttributes){.maxThreadsPerBlock = 1024};
  return state();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads, size_t bytes) {
  (void)kernel;
  *blocks = bytes > 0 ? 0 : RESIDENT / threads;
  return state();
}

// ---- the device: what can be asked of one that is broken, too ----

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *about, int device) {
  (void)device;
  *about = (struct cudaDeviceProp){.name = "the host as a fake"};
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  (void)device;
  switch ((int)attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = MULTIPROCESSORS;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = RESIDENT;
      break;
    default:
      *value = 0;
  }
  return cudaSuccess;
}
