// The body of each kernel, for block `block` of `blocks`, on all of its lanes; `shared` is the block's shared memory
// (sn_kernel_shared bytes, 64-byte aligned). kernels.cu makes kernels of them, the emulator calls them as they are.
#ifndef SINEW_CUDA_KERNELS_KERNELS_H_
#define SINEW_CUDA_KERNELS_KERNELS_H_

#include "cuda/kernels/work.h"

// Stands first in the shared memory of a block: structures that all lanes look at.
typedef struct SnKernelHead {
  SnWorld world;
  SnAdjoint adjoint;
  SnRollout rollout;
  SnMarks marks;
} SnKernelHead;

// Gives the bytes that the head takes, rounded up to 64.
enum { SN_KERNEL_HEAD = ((int)sizeof(SnKernelHead) + 63) / 64 * 64 };

#if !defined(__CUDACC__)
// Returns the name of a kernel in SN_KERNELS, for texts, or "?" for any other number.
static inline const char *sn_kernel_name(SnKernel kernel) {
  switch ((int)kernel) {
#define SN_KERNEL_NAME(name, text) \
  case SN_KERNEL_##name:           \
    return #name;
    SN_KERNELS(SN_KERNEL_NAME)
#undef SN_KERNEL_NAME
  }
  return "?";
}
#endif

enum { SN_KERNEL_THREADS = 256 };  // most threads of a world
enum { SN_KERNEL_WORLDS = 16 };    // most worlds of a thread block, where each has a warp

// Returns the bytes of shared memory that a block of a launch takes (SnLaunchShape.shared).
SN_INLINE size_t sn_kernel_shared(const SnWork *work) {
  return SN_KERNEL_HEAD + work->block.world.shared + work->block.adjoint.shared;
}

// Returns the kernel by which device_cuda.c launches (kernels.cu, C linkage); NULL: there is none. The kernel's one
// parameter is the work, by value (const __grid_constant__ SnWork). The body's `shared` is dynamic shared memory.
// A work whose model has no bodies returns at once. So a device loads each kernel when it is opened, not in the middle
// of a plan.
#if defined(__cplusplus)
extern "C" const void *sn_kernel_function(SnKernel kernel);
#else
const void *sn_kernel_function(SnKernel kernel);
#endif

// Runs the body of a kernel, picked by its number.
SN_FUNC void sn_kernel_body(SnKernel kernel, const SnWork *work, int block, int blocks, SnLane *lane, void *shared);

// Run the body of one kernel each; SN_KERNELS says what it does.
SN_FUNC void sn_kernel_rollout(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_kernel_iterate(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_kernel_forward(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_kernel_make(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_kernel_jacobian(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_kernel_sweep(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_kernel_collect(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_kernel_evaluate(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_kernel_select(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);

#endif
