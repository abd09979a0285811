// How the kernels of a model are launched: threads of a block, and what of a block's world lies in shared memory. Few
// blocks on a multiprocessor may have much of it, many share it; so there are several shapes of a kernel, and the
// number of worlds that a launch has to do picks one. No shape touches a result.
#ifndef SINEW_CUDA_HOST_LAUNCH_SHAPE_PRIVATE_H_
#define SINEW_CUDA_HOST_LAUNCH_SHAPE_PRIVATE_H_

#include "cuda/device/device.h"

typedef struct SnKernelShape {
  int threads;
  int resident;             // blocks that the whole device runs at once
  SnLayout world, adjoint;  // what a block has, and where; shared and global 0: none
} SnKernelShape;

// From fewest blocks at once, with most shared memory, to most.
enum { SN_KERNEL_SHAPES = 6 };
typedef struct SnKernelShapes {
  int count;
  SnKernelShape shape[SN_KERNEL_SHAPES];
} SnKernelShapes;

// What somebody who measures asks for instead.
typedef struct SnShapeRule {
  int threads;    // of every block; 0: as the body asks for
  size_t shared;  // most bytes of shared memory for a block's world and adjoint; 0: as much as there is
} SnShapeRule;

// The shapes of a kernel for a model, by what the device says it can run at once. rule NULL: none. SN_ERR_LIMIT when it
// cannot run it.
SnCode sn_shapes_choose(SnDevice *device, const SnModel *m, SnKernel kernel, const SnShapeRule *rule,
                        SnKernelShapes *shapes, SnError *err);
// The one for a launch over that many worlds: the first that runs all of them at once, else the last.
const SnKernelShape *sn_shapes_pick(const SnKernelShapes *shapes, int items);
// Bytes of shared memory that a launch with it takes.
size_t sn_shape_shared(const SnKernelShape *shape);

// Numbers of scratch that a block takes (SnWork.scratch): residuals and norms of costs, and noise on at most `knots`
// knots (0: none).
int sn_kernel_scratch(const SnCost *cost, int knots, int threads);

#endif
