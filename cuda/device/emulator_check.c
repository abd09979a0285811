// What no tool for a GPU finds: blocks of a launch, which run at the same time, that write to the same global memory.
// (Of pointers of the host and of ends of allocations emulator_memory.c and compute-sanitizer know.)
#include "cuda/device/emulator_private.h"

#include <stdio.h>

// The same memory, where there is any.
static bool same(const void *a, const void *b, int n) { return a && a == b && n > 0; }

// What two rollouts both write to; NULL: nothing.
static const char *rollouts_meet(const SnModel *m, const SnRollout *x, const SnRollout *y) {
  return same(x->out_qpos, y->out_qpos, m->nq) || same(x->out_time, y->out_time, 1) ? "states" : NULL;
}

// The same of two gradient items. States of the way back are written by kernels of it alone, which items go through in
// groups.
static const char *items_meet(const SnWork *w, bool back, const SnGradientItem *x, const SnGradientItem *y) {
  if (!x->active || !y->active) return NULL;
  if (same(x->rollout.sum, y->rollout.sum, w->cost.nterm)) return "terms";
  if (same(x->vjp.state_bar, y->vjp.state_bar, 1) || same(x->vjp.scratch, y->vjp.scratch, 1)) return "derivatives";
  if (same(x->vjp.ctrl_bar, y->vjp.ctrl_bar, w->model.nu)) return "derivatives of controls";
  if (back && same(x->state, y->state, 1)) return "states of the way back";
  if (back && x->state && y->state && same(x->state->target_bar, y->state->target_bar, w->cost.ntarget))
    return "targets";
  return rollouts_meet(&w->model, &x->rollout, &y->rollout);
}

bool sn_work_check(SnKernel kernel, const SnWork *w, char *text, size_t size) {
  const bool back = kernel == SN_KERNEL_SWEEP || kernel == SN_KERNEL_JACOBIAN || kernel == SN_KERNEL_COLLECT;
  const char *what = NULL;
  for (int k = 0; k < w->nturn; ++k) {
    const SnSample *s = w->turn[k].sample;
    for (int i = 1; s->own && i < s->count && !what; ++i)
      if ((what = rollouts_meet(&w->model, &s->rollout[i - 1], &s->rollout[i])))
        snprintf(text, size, "candidates %d and %d of sample %d have the same memory for their %s", i - 1, i, k, what);
  }
  for (int i = 0; i < w->ngradient; ++i)
    for (int j = 0; j < i && !what; ++j)
      if ((what = items_meet(w, back, &w->gradient[i], &w->gradient[j])))
        snprintf(text, size, "gradients %d and %d have the same memory for their %s", j, i, what);
  return !what;
}
