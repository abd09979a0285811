// What the bodies of kernels share: a block's memory, and the end of an item that failed.
#ifndef SINEW_CUDA_KERNELS_KERNEL_BLOCK_PRIVATE_H_
#define SINEW_CUDA_KERNELS_KERNEL_BLOCK_PRIVATE_H_

#include "cuda/kernels/kernels.h"

// A block of a launch, seen by one of its lanes.
typedef struct SnKernelBlock {
  const SnWork *work;
  const SnModel *m;
  const SnCost *cost;
  int block, blocks;
  SnLane *lane;
  SnKernelHead *head;
  unsigned char *shared;  // behind the head
  SnRolloutScratch scratch;
  sn_real *noise;  // scratch of candidates' controls
} SnKernelBlock;

// First and last in a kernel; the latter ends with a sync.
SN_FUNC SnKernelBlock sn_block_enter(const SnWork *work, int block, int blocks, SnLane *lane, void *shared);
SN_FUNC void sn_block_leave(const SnKernelBlock *b);

// Binds the world of the head to the block's own memory, or to slot `slot` of the states; and the adjoint. These end
// with a sync. `begin`: the memory holds anything yet.
SN_FUNC void sn_block_world(const SnKernelBlock *b);
SN_FUNC void sn_block_state(const SnKernelBlock *b, size_t slot, bool begin);
SN_FUNC void sn_block_adjoint(const SnKernelBlock *b);

// Whether the item takes part in what comes after FORWARD: the same on all lanes.
SN_FUNC bool sn_gradient_item_pending(const SnGradientItem *x);
// The item has no gradient: status, and zeros. Ends with a sync.
SN_FUNC void sn_gradient_item_fail(const SnKernelBlock *b, SnGradientItem *x, int status);

#endif
