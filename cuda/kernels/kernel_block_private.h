// The bodies of kernels share this: a block's memory, and the end of an item that failed.
#ifndef SINEW_CUDA_KERNELS_KERNEL_BLOCK_PRIVATE_H_
#define SINEW_CUDA_KERNELS_KERNEL_BLOCK_PRIVATE_H_

#include "cuda/kernels/kernels.h"

// Describes a block of a launch, as one of its lanes sees it.
typedef struct SnKernelBlock {
  const SnWork *work;
  const SnCost *cost;
  int block, blocks;  // this one, of so many
  SnLane *lane;
  SnKernelHead *head;
  unsigned char *memory;  // behind the head: the world, then the adjoint
  SnWorld *world;
  SnAdjoint *adjoint;
  SnRolloutScratch scratch;
  sn_real *noise;  // scratch of candidates' controls
} SnKernelBlock;

// Returns the model. On a device its header stands in shared memory, at a place that the compiler knows.
SN_INLINE const SnModel *sn_block_model(const SnKernelBlock *b) {
#if defined(__CUDACC__)
  (void)b;
  return &sn_shared_model;
#else
  return &b->work->model;
#endif
}

// Enters block `block` of `blocks`, on all lanes: call it first in a kernel. `memory` is the block's own.
SN_FUNC SnKernelBlock sn_block_enter(const SnWork *work, int block, int blocks, SnLane *lane, void *memory);
// Leaves the block, and adds the time of its stages to work->marks: call it last in a kernel. Ends with a sync.
SN_FUNC void sn_block_leave(const SnKernelBlock *b);

// Makes the world in the block's own memory the block's, and begins it. Ends with a sync.
SN_FUNC void sn_block_world(SnKernelBlock *b);
// Makes the world in slot `slot` of the states the block's. Set `begin` where that memory holds anything yet: then the
// world is begun there. Ends with a sync.
SN_FUNC void sn_block_state(SnKernelBlock *b, size_t slot, bool begin);
// Makes the adjoint in the block's own memory the block's, and begins it. Ends with a sync.
SN_FUNC void sn_block_adjoint(SnKernelBlock *b);

// Returns whether the item takes part in what comes after FORWARD. All lanes get the same.
SN_FUNC bool sn_gradient_item_pending(const SnGradientItem *x);
// Ends an item that has no gradient: sets its status, and zeros its derivatives and norm. Ends with a sync.
SN_FUNC void sn_gradient_item_fail(const SnKernelBlock *b, SnGradientItem *x, int status);

#endif
