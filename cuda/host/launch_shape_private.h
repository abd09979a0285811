// How the kernels of a model are launched: threads of a block, what a block has to itself, how many run at once. No
// number of blocks touches a result.
#ifndef SINEW_CUDA_HOST_LAUNCH_SHAPE_PRIVATE_H_
#define SINEW_CUDA_HOST_LAUNCH_SHAPE_PRIVATE_H_

#include "cuda/device/device.h"

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
// Does so for rollouts of which parts of a warp have one each. Gives limits of their worlds: one that has more is
// computed again, by a warp. `size` and `nnz` are src_size and src_nnz of the model, as the host has them.
SnCode sn_part_shape_choose(SnDevice *device, const SnModel *m, const int *size, const int *nnz, SnKernelShape *shape,
                            SnWorldLimit *limits, SnError *err);
// Chooses the shape of rollouts whose worlds have a thread each. `size` and `nnz` are src_size and src_nnz of the
// model, as the host has them. Returns SN_ERR_LIMIT, with both numbers, where a world is too large for a thread. So it
// does where the device has no room for the memory of its threads.
SnCode sn_thread_shape_choose(SnDevice *device, const SnModel *m, const int *size, const int *nnz, SnThreadShape *shape,
                              SnError *err);

// Returns how many numbers of scratch a block takes (SnWork.scratch). They hold residuals and norms of costs, and noise
// on at most `knots` knots (0: none) of controls that `threads` lanes share.
int sn_kernel_scratch(const SnCost *cost, int knots, int threads);

#endif
