// Kernels of the way back: what is parallel over states (MAKE, JACOBIAN), and the costate's way through them.
#include "cuda/kernels/kernel_block_private.h"

// Whether an item goes back by a method in this launch, which others of another method may share.
SN_LOCAL bool back_by(const SnGradientItem *x, SnGradientMethod method) {
  return sn_gradient_item_pending(x) && x->method == (int)method;
}

// The gradient item that k of a launch over states belongs to, and its state in *t.
SN_LOCAL SnGradientItem *back_item(const SnWork *work, int k, int *t) {
  const int states = work->to - work->from;
  *t = work->from + k % states;
  return work->gradient + k / states;
}

SN_FUNC void sn_kernel_make(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
  for (int k = block; k < work->ngradient * (work->to - work->from); k += blocks) {
    int t;
    const SnGradientItem *x = back_item(work, k, &t);
    if (!back_by(x, SN_GRADIENT_SWEEP) || t > x->rollout.nstep) continue;
    sn_block_state(&b, (size_t)k, true);
    sn_rollout_vjp_recompute(sn_block_model(&b), lane, &x->vjp, t, b.world);
  }
  sn_block_leave(&b);
}

// What a batched product over states reads where there is no step, or no state.
SN_LOCAL void back_empty(const SnKernelBlock *b, const SnRolloutVjpState *state, bool bars) {
  const int n = sn_tangent_size(sn_block_model(b)), nu = sn_block_model(b)->nu;
  sn_lane_zero(b->lane, state->A, n * n);
  sn_lane_zero(b->lane, state->B, n * nu);
  if (bars) {
    sn_lane_zero(b->lane, state->state_bar, n);
    sn_lane_zero(b->lane, state->ctrl_bar, nu);
    sn_lane_zero(b->lane, state->before_bar, nu);
    sn_lane_zero(b->lane, state->target_bar, b->cost->ntarget);
  }
  SN_SYNC(b->lane);
}

SN_LOCAL void back_jacobian(const SnKernelBlock *b, const SnGradientItem *x, int t) {
  SnWorld *w = b->world;
  const SnRolloutVjpScratch at = {w, b->adjoint, b->scratch.res};
  const SnRolloutVjpState *state = x->state + t;
  if (t >= x->rollout.nstep) back_empty(b, state, t > x->rollout.nstep);
  if (t > x->rollout.nstep) return;
  sn_rollout_vjp_recompute(sn_block_model(b), b->lane, &x->vjp, t, w);
  sn_rollout_vjp_jacobian(sn_block_model(b), b->cost, b->lane, &x->vjp, t, at, state);
}

SN_FUNC void sn_kernel_jacobian(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
  sn_block_world(&b);
  sn_block_adjoint(&b);
  for (int k = block; k < work->ngradient * (work->to - work->from); k += blocks) {
    int t;
    const SnGradientItem *x = back_item(work, k, &t);
    if (back_by(x, SN_GRADIENT_PRODUCTS)) back_jacobian(&b, x, t);
  }
  sn_block_leave(&b);
}

// States of an item from the last to the first, by their worlds.
SN_LOCAL void back_sweep(SnKernelBlock *b, int i) {
  const SnWork *work = b->work;
  SnGradientItem *x = work->gradient + i;
  const int states = work->to - work->from;
  for (int t = sn_mini(work->to, x->rollout.nstep + 1) - 1; t >= work->from; --t) {
    sn_block_state(b, (size_t)i * (size_t)states + (size_t)(t - work->from), false);
    const SnRolloutVjpScratch at = {b->world, b->adjoint, b->scratch.res};
    if (sn_rollout_vjp_sweep(sn_block_model(b), b->cost, b->lane, &x->vjp, t, at, x->state)) continue;
    sn_gradient_item_fail(b, x, SN_GRADIENT_UNBOUNDED);
    return;
  }
}

SN_FUNC void sn_kernel_sweep(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
  sn_block_adjoint(&b);
  for (int i = block; i < work->ngradient; i += blocks)
    if (back_by(work->gradient + i, SN_GRADIENT_SWEEP)) back_sweep(&b, i);
  sn_block_leave(&b);
}

// The same by Jacobians, once products have chained them: states are independent then.
SN_FUNC void sn_kernel_collect(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
  for (int k = block; k < work->ngradient * (work->to - work->from); k += blocks) {
    int t;
    const SnGradientItem *x = back_item(work, k, &t);
    if (back_by(x, SN_GRADIENT_PRODUCTS) && t <= x->rollout.nstep)
      sn_rollout_vjp_collect(sn_block_model(&b), b.cost, lane, &x->vjp, t, x->state + t);
  }
  sn_block_leave(&b);
}
