#include "cuda/kernels/kernel_block_private.h"

SN_FUNC SnKernelBlock sn_block_enter(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b;
  sn_real *scratch = work->scratch + (size_t)block * (size_t)work->scratch_size;
  b.work = work;
  b.cost = &work->cost;
  b.block = block;
  b.blocks = blocks;
  b.lane = lane;
  b.head = (SnKernelHead *)memory;
  b.memory = (unsigned char *)memory + SN_KERNEL_HEAD;
  b.world = NULL;
  b.adjoint = NULL;
  b.scratch.res = scratch;
  b.scratch.value = scratch + work->cost.nres;
  b.noise = b.scratch.value + work->cost.nall;
  lane->marks = NULL;
  if (work->marks) sn_marks_begin(lane, &b.head->marks);
  return b;
}

SN_FUNC void sn_block_leave(const SnKernelBlock *b) {
  unsigned long long *sum = b->work->marks;
  SN_MARK(b->lane, OTHER);
  b->lane->marks = NULL;
  SN_ONE(b->lane) {
    for (int k = 0; sum && k < SN_NMARK; ++k) sum[(size_t)b->block * SN_NMARK + (size_t)k] += b->head->marks.ticks[k];
  }
  SN_SYNC(b->lane);
}

// The world in that memory: on a device the memory itself, on the host a table of pointers to it, which the head has.
SN_LOCAL SnWorld *block_world_at(const SnKernelBlock *b, const SnLayout *layout, unsigned char *memory) {
#if defined(__CUDACC__)
  (void)layout;
  SN_SYNC(b->lane);
  return (SnWorld *)memory;
#else
  SN_ONE(b->lane) sn_world_bind(layout, &b->head->world, memory, NULL);
  SN_SYNC(b->lane);
  return &b->head->world;
#endif
}

SN_FUNC void sn_block_world(SnKernelBlock *b) {
  b->world = block_world_at(b, &b->work->block.world, b->memory);
  sn_world_begin(sn_block_model(b), b->world, b->lane);
}

SN_FUNC void sn_block_state(SnKernelBlock *b, size_t slot, bool begin) {
  const SnSlots *slots = &b->work->state;
  b->world = block_world_at(b, &slots->world, slots->memory + slot * slots->stride);
  if (begin) sn_world_begin(sn_block_model(b), b->world, b->lane);
}

SN_FUNC void sn_block_adjoint(SnKernelBlock *b) {
  const SnSlots *slots = &b->work->block;
  unsigned char *memory = b->memory + slots->world.bytes;
#if defined(__CUDACC__)
  b->adjoint = (SnAdjoint *)memory;
#else
  SN_ONE(b->lane) sn_adjoint_bind(&slots->adjoint, &b->head->adjoint, memory);
  SN_SYNC(b->lane);
  b->adjoint = &b->head->adjoint;
#endif
  sn_adjoint_begin(sn_block_model(b), b->adjoint, b->lane);
}

SN_FUNC bool sn_gradient_item_pending(const SnGradientItem *x) { return x->active && x->status == SN_GRADIENT_PENDING; }

SN_FUNC void sn_gradient_item_fail(const SnKernelBlock *b, SnGradientItem *x, int status) {
  const int nstep = x->rollout.nstep;
  sn_lane_zero(b->lane, x->vjp.state_bar, sn_tangent_size(sn_block_model(b)));
  sn_lane_zero(b->lane, x->vjp.ctrl_bar, nstep * sn_block_model(b)->nu);
  if (x->vjp.target_bar) sn_lane_zero(b->lane, x->vjp.target_bar, (nstep + 1) * b->cost->ntarget);
  SN_ONE(b->lane) {
    x->status = status;
    x->norm = 0;
  }
  SN_SYNC(b->lane);
}
