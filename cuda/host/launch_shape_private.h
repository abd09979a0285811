// How the kernels of a model are launched: threads of a block, what a block has to itself, how many run at once. No
// number of blocks touches a result.
#ifndef SINEW_CUDA_HOST_LAUNCH_SHAPE_PRIVATE_H_
#define SINEW_CUDA_HOST_LAUNCH_SHAPE_PRIVATE_H_

#include "cuda/device/device.h"

// Gives the threads of a world where there are more of them than the device runs at once with a warp each. Four worlds
// share a warp then: most phases of a step have work for few lanes (cuda/MEASURED.md).
enum { SN_PART_OF_WARP = 8 };

// Describes how a kernel is launched.
typedef struct SnKernelShape {
  int threads;   // threads of a block; 0: there is no such launch
  int resident;  // blocks that the whole device runs at once
  SnSlots slot;  // layouts and bytes (stride) of a block's slot; no memory yet
} SnKernelShape;

// Describes rollouts whose worlds have a thread each.
typedef struct SnThreadShape {
  int resident;         // worlds that the whole device runs at once; 0: there are no such rollouts
  SnSlots own;          // layout of the world, which lies in the thread's own memory
  SnWorldLimit limits;  // a world that has more is computed again, by a warp
} SnThreadShape;

// Chooses the shape of a kernel for a model, with so many threads a block, by what the device says it can run at once.
// Returns SN_ERR_LIMIT when the device cannot run the kernel.
SnCode sn_shape_choose(SnDevice *device, const SnModel *m, SnKernel kernel, int threads, SnKernelShape *shape,
                       SnError *err);
// Chooses the shape of rollouts whose worlds have a thread each. `size` and `nnz` are src_size and src_nnz of the
// model, as the host has them. Returns SN_ERR_LIMIT, with both numbers, where a world is too large for a thread. So it
// does where the device has no room for the memory of its threads.
SnCode sn_thread_shape_choose(SnDevice *device, const SnModel *m, const int *size, const int *nnz, SnThreadShape *shape,
                              SnError *err);

// Returns how many numbers of scratch a block takes (SnWork.scratch). They hold residuals and norms of costs, and noise
// on at most `knots` knots (0: none) of controls that `threads` lanes share.
int sn_kernel_scratch(const SnCost *cost, int knots, int threads);

#endif
