// Kernels of a multistart around its gradients, and the table of all kernels.
#include "cuda/kernels/kernel_block_private.h"

SN_LOCAL void iterate_item(const SnKernelBlock *b, const SnGradientItem *x) {
  const SnMultistart *r = b->work->multistart[x->multistart].data;
  if (x->init)
    sn_multistart_init(sn_block_model(b), b->lane, r, x->index, x->start, b->noise);
  else
    sn_multistart_step(sn_block_model(b), b->lane, r, x->start);
  sn_multistart_controls(sn_block_model(b), b->lane, r, x->start);
}

SN_FUNC void sn_kernel_iterate(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
  for (int i = block; i < work->ngradient; i += blocks) {
    const SnGradientItem *x = work->gradient + i;
    if (x->active && x->start) iterate_item(&b, x);
  }
  sn_block_leave(&b);
}

// The end of a gradient: its norm and status. SWEEP has found what is not finite, products have not.
SN_LOCAL int end_gradient(const SnKernelBlock *b, SnGradientItem *x) {
  const int status = x->status;
  if (status != SN_GRADIENT_PENDING) return status;
  if (x->method == SN_GRADIENT_PRODUCTS && !sn_rollout_vjp_finite(sn_block_model(b), b->lane, &x->vjp)) {
    sn_gradient_item_fail(b, x, SN_GRADIENT_UNBOUNDED);
    return SN_GRADIENT_UNBOUNDED;
  }
  const sn_real norm = sn_norm(b->lane, x->vjp.ctrl_bar, x->rollout.nstep * sn_block_model(b)->nu);
  SN_ONE(b->lane) {
    x->norm = norm;
    x->status = SN_GRADIENT_DONE;
    if (x->vjp.cfd.on) *x->cfd_steps = x->rollout.nstep;
  }
  SN_SYNC(b->lane);
  return SN_GRADIENT_DONE;
}

SN_FUNC void sn_kernel_evaluate(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
  for (int i = block; i < work->ngradient; i += blocks) {
    SnGradientItem *x = work->gradient + i;
    if (!x->active) continue;
    const int status = end_gradient(&b, x);
    if (x->start)
      sn_multistart_evaluate(sn_block_model(&b), lane, work->multistart[x->multistart].data, x->start, status,
                             x->rollout.total);
  }
  sn_block_leave(&b);
}

SN_LOCAL void select_best(const SnKernelBlock *b, SnMultistartTurn *r) {
  SnGradientItem *gradient = b->work->gradient + r->first;
  sn_multistart_select_best(sn_block_model(b), b->cost->nterm, b->lane, r->data, gradient->start, r->count);
  sn_multistart_advance(sn_block_model(b), b->lane, r->data, gradient->start);
  SN_ONE(b->lane) {
    const int left = --r->todo > 0;
    r->active = left;
    for (int i = 0; i < r->count; ++i) {
      r->warn |= gradient[i].rollout.warn;
      gradient[i].init = 0;
      gradient[i].active = left;
    }
  }
  SN_SYNC(b->lane);
}

SN_FUNC void sn_kernel_select(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
  for (int i = block; i < work->nmultistart; i += blocks)
    if (work->multistart[i].active) select_best(&b, work->multistart + i);
  sn_block_leave(&b);
}

SN_FUNC void sn_kernel_body(SnKernel kernel, const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  switch (kernel) {
#define SN_KERNEL_CASE(name, body, text)     \
  case SN_KERNEL_##name:                     \
    body(work, block, blocks, lane, memory); \
    return;
    SN_KERNELS(SN_KERNEL_CASE)
#undef SN_KERNEL_CASE
    default:
      return;
  }
}
