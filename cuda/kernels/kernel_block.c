#include "cuda/kernels/kernel_block_private.h"

SN_FUNC SnKernelBlock sn_block_enter(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b;
  sn_real *scratch = work->scratch + (size_t)block * (size_t)work->scratch_size;
  b.work = work;
  b.m = &work->model;
  b.cost = &work->cost;
  b.block = block;
  b.blocks = blocks;
  b.lane = lane;
  b.head = (SnKernelHead *)memory;
  b.memory = (unsigned char *)memory + SN_KERNEL_HEAD;
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

SN_FUNC void sn_block_world(const SnKernelBlock *b) {
  SN_ONE(b->lane) sn_world_bind(&b->work->block.world, &b->head->world, b->memory, NULL);
  SN_SYNC(b->lane);
  sn_world_begin(b->m, &b->head->world, b->lane);
}

SN_FUNC void sn_block_state(const SnKernelBlock *b, size_t slot, bool begin) {
  const SnSlots *slots = &b->work->state;
  SN_ONE(b->lane) sn_world_bind(&slots->world, &b->head->world, slots->memory + slot * slots->stride, NULL);
  SN_SYNC(b->lane);
  if (begin) sn_world_begin(b->m, &b->head->world, b->lane);
}

SN_FUNC void sn_block_adjoint(const SnKernelBlock *b) {
  const SnSlots *slots = &b->work->block;
  SN_ONE(b->lane) sn_adjoint_bind(&slots->adjoint, &b->head->adjoint, b->memory + slots->world.bytes);
  SN_SYNC(b->lane);
  sn_adjoint_begin(b->m, &b->head->adjoint, b->lane);
}

SN_FUNC bool sn_gradient_item_pending(const SnGradientItem *x) { return x->active && x->status == SN_GRADIENT_PENDING; }

SN_FUNC void sn_gradient_item_fail(const SnKernelBlock *b, SnGradientItem *x, int status) {
  const int nstep = x->rollout.nstep;
  sn_lane_zero(b->lane, x->vjp.state_bar, sn_tangent_size(b->m));
  sn_lane_zero(b->lane, x->vjp.ctrl_bar, nstep * b->m->nu);
  if (x->vjp.target_bar) sn_lane_zero(b->lane, x->vjp.target_bar, (nstep + 1) * b->cost->ntarget);
  SN_ONE(b->lane) {
    x->status = status;
    x->norm = 0;
  }
  SN_SYNC(b->lane);
}
