// How the kernels of a model are launched: threads of a block, and what of a block's world lies in shared memory. Few
// blocks on a multiprocessor may have much of that memory, many share it. So a kernel has several shapes, and the
// number of worlds that a launch has to do picks one. No shape touches a result.
#ifndef SINEW_CUDA_HOST_LAUNCH_SHAPE_PRIVATE_H_
#define SINEW_CUDA_HOST_LAUNCH_SHAPE_PRIVATE_H_

#include "cuda/device/device.h"

// Describes one way to launch a kernel.
typedef struct SnKernelShape {
  int threads;
  int resident;             // blocks that the whole device runs at once
  SnLayout world, adjoint;  // layouts of a block's memory; shared and global 0: none
} SnKernelShape;

// Lists the shapes of a kernel, from fewest blocks at once, with most shared memory each, to most.
enum { SN_KERNEL_SHAPES = 6 };
typedef struct SnKernelShapes {
  int count;
  SnKernelShape shape[SN_KERNEL_SHAPES];
} SnKernelShapes;

// Describes rollouts whose worlds have a thread each.
typedef struct SnThreadShape {
  int resident;         // worlds that the whole device runs at once; 0: there are no such rollouts
  SnLayout world;       // all of it in the thread's own memory, which takes the place of shared memory
  SnWorldLimit limits;  // a world that has more is computed again, by a warp
} SnThreadShape;

// Holds what somebody who measures asks for instead.
typedef struct SnShapeRule {
  int threads;    // threads of every block; 0: as the body asks for; 1: rollouts by SnThreadShape, all else as by 0
  size_t shared;  // most bytes of shared memory for a block's world and adjoint; 0: as much as there is
} SnShapeRule;

// Chooses the shapes of a kernel for a model, by what the device says it can run at once. `rule` may be NULL (none).
// Returns SN_ERR_LIMIT when the device cannot run the kernel.
SnCode sn_shapes_choose(SnDevice *device, const SnModel *m, SnKernel kernel, const SnShapeRule *rule,
                        SnKernelShapes *shapes, SnError *err);
// Chooses the shape of rollouts whose worlds have a thread each. `size` and `nnz` are src_size and src_nnz of the
// model, as the host has them. Returns SN_ERR_LIMIT, with both numbers, where a world is too large for a thread. So it
// does where the device has no room for the memory of its threads.
SnCode sn_thread_shape_choose(SnDevice *device, const SnModel *m, const int *size, const int *nnz, SnThreadShape *shape,
                              SnError *err);
// Returns the bytes of a thread's memory with that shape.
size_t sn_thread_shape_bytes(const SnThreadShape *shape);
// Returns the shape for a launch over `items` worlds: the first that runs all of them at once, else the last.
const SnKernelShape *sn_shapes_pick(const SnKernelShapes *shapes, int items);
// Returns the bytes of shared memory that a block takes with that shape.
size_t sn_shape_shared(const SnKernelShape *shape);

// Returns how many numbers of scratch a block takes (SnWork.scratch). They hold residuals and norms of costs, and noise
// on at most `knots` knots (0: none) of controls that `threads` lanes share.
int sn_kernel_scratch(const SnCost *cost, int knots, int threads);

#endif
