// Memory of gradient items. A session's items have memory of their own, which holds what is kept from iteration to
// iteration. Worlds and Jacobians of states are needed from one launch to the next only: they lie in a pool that all
// sessions of a model share, as large as it takes to keep the device busy, or as the budget allows.
#include "cuda/host/gradient_memory_private.h"

// What is kept of an item: X(its place there, numbers).
#define ITEM_MEMORY(X)          \
  X(rollout.out_time, rows)     \
  X(rollout.out_qpos, rows *nq) \
  X(rollout.out_qvel, rows *nv) \
  X(rollout.out_act, rows *na)  \
  X(rollout.out_qacc, rows *nv) \
  X(rollout.sum, nterm)         \
  X(vjp.cfd_qacc, rows *nv)     \
  X(vjp.running, nterm)         \
  X(vjp.terminal, nterm)        \
  X(vjp.state_bar, n)           \
  X(vjp.scratch, n)             \
  X(cfd_steps, 1)

// What products take for a number of states.
#define PRODUCT_MEMORY(X)   \
  X(A, states *n *n)        \
  X(B, states *n *nu)       \
  X(state_bar, states *n)   \
  X(ctrl_bar, states *nu)   \
  X(before_bar, states *nu) \
  X(target_bar, states *ntarget)

#define CUT(place, count) to->place = sn_cut(p, used, (size_t)(count) * sizeof *to->place);

void sn_gradient_memory_cut(const SnDeviceModel *d, int max_step, char *p, size_t *used, SnGradientMemory *memory) {
  const size_t rows = (size_t)max_step + 1, nterm = (size_t)d->cost.nterm, ntarget = (size_t)d->cost.ntarget;
  const size_t nq = (size_t)d->m.nq, nv = (size_t)d->m.nv, na = (size_t)d->m.na, n = (size_t)sn_tangent_size(&d->m);
  SnGradientItem *to = &memory->item;
  ITEM_MEMORY(CUT)
  memory->target_bar = sn_cut(p, used, ntarget * sizeof *memory->target_bar);
}

void sn_gradient_item_use(SnGradientItem *x, const SnGradientMemory *memory) {
#define USE(place, count) x->place = memory->item.place;
  ITEM_MEMORY(USE)
#undef USE
}

size_t sn_product_cut(const SnDeviceModel *d, size_t states, char *p, SnProductMemory *to) {
  const size_t n = (size_t)sn_tangent_size(&d->m), nu = (size_t)d->m.nu, ntarget = (size_t)d->cost.ntarget;
  size_t all = 0, *const used = &all;
  PRODUCT_MEMORY(CUT)
  return all;
}

SnGradientItem sn_gradient_item_put(const SnDeviceModel *d, SnStaging *staging, const SnState *state,
                                    const double *target, int nstep) {
  SnGradientItem x = {.rollout = {.nstep = nstep}, .active = 1, .status = SN_GRADIENT_PENDING, .multistart = -1};
  sn_staging_state(staging, d, state, &x.rollout);
  x.rollout.target = sn_staging_reals(staging, target, ((size_t)nstep + 1) * (size_t)d->cost.ntarget);
  return x;
}

// ---- what launches need ----

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Bytes of worlds of so many states, or of Jacobians of so many others.
static size_t pool_bytes(const SnDeviceModel *d, size_t worlds, size_t jacobians) {
  SnProductMemory memory;
  return sn_larger(worlds * d->state.bytes, sn_product_cut(d, jacobians, NULL, &memory));
}

// More states than this would not make it faster: some for each block that runs at once, or all that there are.
static size_t busy_states(const SnDeviceModel *d, size_t gradients, size_t states) {
  const size_t busy = 4 * (size_t)d->shape[SN_KERNEL_MAKE].resident;
  return smaller(states, sn_larger(busy, gradients));
}

void sn_gradient_need(const SnDeviceModel *d, int gradients, int max_step, SnMemoryRequest *request) {
  const int states = gradients * (max_step + 1);
  const size_t n = (size_t)gradients, rows = (size_t)max_step + 1, busy = busy_states(d, n, n * rows);
  SnNeed *need = &request->most;
  sn_need_launch(d, SN_KERNEL_ITERATE, gradients, sn_multistart_knots(max_step), need);
  sn_need_launch(d, SN_KERNEL_FORWARD, gradients, 0, need);
  sn_need_launch(d, SN_KERNEL_SWEEP, gradients, 0, need);
  sn_need_launch(d, SN_KERNEL_MAKE, states, 0, need);
  sn_need_launch(d, SN_KERNEL_JACOBIAN, states, 0, need);
  sn_need_launch(d, SN_KERNEL_COLLECT, states, 0, need);
  sn_need_launch(d, SN_KERNEL_EVALUATE, gradients, 0, need);
  sn_need_launch(d, SN_KERNEL_SELECT, gradients, 0, need);
  request->least = *need;
  need->pool = pool_bytes(d, busy, sn_larger(busy, rows));
  // A launch cannot do with less: the world of a state of each item, or Jacobians of all states of one.
  request->least.pool = pool_bytes(d, n, rows);
}
