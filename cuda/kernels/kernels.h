// The body of each kernel, for block `block` of `blocks`, on all of its lanes; `memory` is what the block has to itself
// (sn_kernel_bytes, 64-byte aligned). kernels.cu makes kernels of them, the emulator calls them as they are.
#ifndef SINEW_CUDA_KERNELS_KERNELS_H_
#define SINEW_CUDA_KERNELS_KERNELS_H_

#include "cuda/kernels/work.h"

// Stands first in the memory of a block, before its world and its adjoint: structures that all lanes look at. On a
// device world and adjoint take a byte a field here, on the host more: a slot has room for either.
typedef struct SnKernelHead {
  SnWorld world;
  SnAdjoint adjoint;
  SnRollout rollout;
  SnMarks marks;
  SnLaneShared lanes;
} SnKernelHead;

// Gives the bytes that the head takes, rounded up to 64.
enum { SN_KERNEL_HEAD = ((int)sizeof(SnKernelHead) + 63) / 64 * 64 };

#if !defined(__CUDACC__)
// Returns the name of a kernel in SN_KERNELS, for texts, or "?" for any other number.
static inline const char *sn_kernel_name(SnKernel kernel) {
  switch ((int)kernel) {
#define SN_KERNEL_NAME(name, body, text) \
  case SN_KERNEL_##name:                 \
    return #name;
    SN_KERNELS(SN_KERNEL_NAME)
#undef SN_KERNEL_NAME
  }
  return "?";
}
#endif

enum { SN_KERNEL_BLOCK = 512 };  // most threads of a thread block, which worlds share

// Lists the kernels of ROLLOUT in which a thread has a world alone (kernels_thread.cu), by the KiB of its own memory
// for it. A device keeps room for the memory of all threads that it could run at once. So a small world should not take
// that of a large one.
#define SN_THREAD_KERNELS(X) X(24) X(64) X(104) X(144) X(184) X(224)
enum {
#define SN_THREAD_KERNEL(kilobytes) SN_THREAD_KERNEL_##kilobytes,
  SN_THREAD_KERNELS(SN_THREAD_KERNEL)
#undef SN_THREAD_KERNEL
      SN_NTHREADKERNEL
};
enum { SN_THREAD_BLOCK = 128 };  // most threads of a thread block, a world each

// Returns the bytes of a thread's memory in kernel i of the list.
SN_INLINE size_t sn_thread_kernel_bytes(int i) {
  static const size_t bytes[] = {
#define SN_THREAD_KERNEL(kilobytes) (size_t)(kilobytes) << 10,
      SN_THREAD_KERNELS(SN_THREAD_KERNEL)
#undef SN_THREAD_KERNEL
  };
  return bytes[i];
}
// Returns the first kernel of the list whose threads have so many bytes; SN_NTHREADKERNEL: none has.
SN_INLINE int sn_thread_kernel(size_t bytes) {
  int i = 0;
  while (i < SN_NTHREADKERNEL && sn_thread_kernel_bytes(i) < bytes) ++i;
  return i;
}

// Returns the bytes that a block has to itself.
SN_INLINE size_t sn_kernel_bytes(const SnSlots *block) {
  return SN_KERNEL_HEAD + block->world.bytes + block->adjoint.bytes;
}
// Returns where they are, of a block that has a slot. Worlds that have a thread each lie in its own memory.
SN_INLINE void *sn_kernel_slot(const SnWork *work, int block) {
  return work->block.memory + (size_t)block * work->block.stride;
}

#if defined(__cplusplus)
#define SN_KERNEL_C extern "C"
#else
#define SN_KERNEL_C
#endif
// Return the kernel around a body by which device_cuda.c launches (kernels.cu). The name ends with the threads of a
// world. The kernel's one parameter is the work, by value (const __grid_constant__ SnWork).
// A work whose model has no bodies returns at once. So a device loads each kernel when it is opened, not in the middle
// of a plan.
#define SN_KERNEL_FUNCTION(name, body, text) SN_KERNEL_C const void *body##_32(void);
SN_KERNELS(SN_KERNEL_FUNCTION)
#undef SN_KERNEL_FUNCTION
SN_KERNEL_C const void *sn_kernel_rollout_8(void);
// Returns kernel i of SN_THREAD_KERNELS, likewise.
SN_KERNEL_C const void *sn_thread_kernel_function(int i);

// Runs the body of a kernel, picked by its number.
SN_FUNC void sn_kernel_body(SnKernel kernel, const SnWork *work, int block, int blocks, SnLane *lane, void *memory);

// Run the body of one kernel each; SN_KERNELS says what it does.
#define SN_KERNEL_BODY(name, body, text) \
  SN_FUNC void body(const SnWork *work, int block, int blocks, SnLane *lane, void *memory);
SN_KERNELS(SN_KERNEL_BODY)
#undef SN_KERNEL_BODY

#endif
