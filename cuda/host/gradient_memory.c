// Memory of gradient items. A session's items have buffers of their own, which hold what is kept from iteration to
// iteration. Worlds and Jacobians of states are needed from one launch to the next only: they lie in a pool that all
// sessions of a model share, as large as it takes to keep the device busy, or as the budget allows.
#include <stdlib.h>

#include "cuda/host/gradient_memory_private.h"

static sn_real *reals(char *p, size_t *used, size_t n) { return (sn_real *)sn_cut(p, used, n * sizeof(sn_real)); }

void sn_gradient_memory_cut(const SnDeviceModel *d, int max_step, char *p, size_t *used, SnGradientMemory *memory) {
  const SnModel *m = &d->m;
  const size_t rows = (size_t)max_step + 1, nv = (size_t)m->nv, nterm = (size_t)d->cost.nterm;
  const size_t n = (size_t)sn_tangent_size(m);
  memory->time = reals(p, used, rows);
  memory->qpos = reals(p, used, rows * (size_t)m->nq);
  memory->qvel = reals(p, used, rows * nv);
  memory->act = reals(p, used, rows * (size_t)m->na);
  memory->qacc = reals(p, used, rows * nv);
  memory->cfd_qacc = reals(p, used, rows * nv);
  memory->sum = reals(p, used, nterm);
  memory->running = reals(p, used, nterm);
  memory->terminal = reals(p, used, nterm);
  memory->state_bar = reals(p, used, n);
  memory->scratch = reals(p, used, n);
  memory->target_bar = reals(p, used, (size_t)d->cost.ntarget);
  memory->cfd_steps = (int *)sn_cut(p, used, sizeof(int));
}

SnGradientItem sn_gradient_item_make(int method, int nstep) {
  return (SnGradientItem){
      .rollout = {.nstep = nstep}, .method = method, .active = 1, .status = SN_GRADIENT_PENDING, .multistart = -1};
}

void sn_gradient_item_use(SnGradientItem *x, const SnGradientMemory *memory) {
  x->rollout.out_time = memory->time;
  x->rollout.out_qpos = memory->qpos;
  x->rollout.out_qvel = memory->qvel;
  x->rollout.out_act = memory->act;
  x->rollout.out_qacc = memory->qacc;
  x->rollout.sum = memory->sum;
  x->vjp.cfd_qacc = memory->cfd_qacc;
  x->vjp.running = memory->running;
  x->vjp.terminal = memory->terminal;
  x->vjp.state_bar = memory->state_bar;
  x->vjp.scratch = memory->scratch;
  x->cfd_steps = memory->cfd_steps;
}

size_t sn_product_cut(const SnDeviceModel *d, size_t states, char *p, SnProductMemory *memory) {
  const size_t n = (size_t)sn_tangent_size(&d->m), nu = (size_t)d->m.nu;
  size_t used = 0;
  *memory = (SnProductMemory){0};
  memory->A = reals(p, &used, states * n * n);
  memory->B = reals(p, &used, states * n * nu);
  memory->state_bar = reals(p, &used, states * n);
  memory->ctrl_bar = reals(p, &used, states * nu);
  memory->before_bar = reals(p, &used, states * nu);
  memory->target_bar = reals(p, &used, states * (size_t)d->cost.ntarget);
  return used;
}

// ---- the pool ----

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Bytes of worlds of so many states, or of Jacobians of so many others.
static size_t pool_bytes(const SnDeviceModel *d, size_t worlds, size_t jacobians) {
  SnProductMemory memory;
  return larger(worlds * d->gradients->world.global, sn_product_cut(d, jacobians, NULL, &memory));
}

// Less than this a launch cannot do with: the world of a state of each item, or Jacobians of all states of one.
static size_t pool_least(const SnDeviceModel *d, int gradients, int max_step) {
  return pool_bytes(d, (size_t)gradients, (size_t)max_step + 1);
}

// More than this would not make it faster: some states for each block that runs at once, or all that there are.
static size_t pool_most(const SnDeviceModel *d, int gradients, int max_step) {
  const SnDevice *device = d->host->device;
  const SnLaunchShape shape = sn_device_shape(d, SN_KERNEL_MAKE, gradients);
  const int resident = device->resident(d->host->device, SN_KERNEL_MAKE, shape.threads, shape.shared);
  const size_t all = (size_t)gradients * ((size_t)max_step + 1);
  const size_t busy = 4 * (size_t)device->multiprocessors * (size_t)(resident > 0 ? resident : 1);
  const size_t some = smaller(all, larger(busy, (size_t)gradients));
  return pool_bytes(d, some, larger(some, (size_t)max_step + 1));
}

static SnCode shared_create(SnBackendModel *x, SnError *err) {
  SnDeviceModel *d = x->model;
  if (d->gradients) return SN_OK;
  SnModelGradients *s = calloc(1, sizeof *s);
  if (!s) return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", x->host->device->name);
  const SnCode code = sn_world_place(&d->m, 0, &s->world, err);
  if (code != SN_OK) {
    free(s);
    return code;
  }
  d->gradients = s;
  return SN_OK;
}

// Kernels that use memory of blocks, with as many items as they may have, and knots of their starts' noise.
typedef struct BlockNeed {
  SnKernel kernel;
  int items, knots;
} BlockNeed;
enum { BLOCK_NEEDS = 5 };

static void block_needs(int gradients, int max_step, BlockNeed need[BLOCK_NEEDS]) {
  const int states = gradients * (max_step + 1);
  const BlockNeed all[BLOCK_NEEDS] = {{SN_KERNEL_ITERATE, gradients, sn_multistart_knots(max_step)},
                                      {SN_KERNEL_FORWARD, gradients, 0},
                                      {SN_KERNEL_MAKE, states, 0},
                                      {SN_KERNEL_JACOBIAN, states, 0},
                                      {SN_KERNEL_SWEEP, gradients, 0}};
  memcpy(need, all, sizeof all);
}

// What the memory of blocks must grow by for launches of that many items.
static size_t block_growth(const SnDeviceModel *d, int gradients, int max_step) {
  BlockNeed need[BLOCK_NEEDS];
  size_t most = 0;
  block_needs(gradients, max_step, need);
  for (int i = 0; i < BLOCK_NEEDS; ++i) {
    const int scratch = sn_device_scratch_size(d, need[i].kernel, need[i].knots);
    most = larger(most, sn_device_block_growth(d, need[i].kernel, need[i].items, scratch));
  }
  return most;
}

static bool block_reserve(SnDeviceModel *d, int gradients, int max_step) {
  BlockNeed need[BLOCK_NEEDS];
  bool ok = true;
  block_needs(gradients, max_step, need);
  for (int i = 0; ok && i < BLOCK_NEEDS; ++i)
    ok = sn_device_block_reserve(d, need[i].kernel, need[i].items,
                                 sn_device_scratch_size(d, need[i].kernel, need[i].knots));
  return ok;
}

static bool grow_pool(SnDeviceModel *d, size_t bytes) {
  SnModelGradients *s = d->gradients;
  if (bytes <= s->pool.bytes) return true;
  SnDeviceBuffer buffer = sn_device_buffer_alloc(d->host, bytes);
  if (!buffer.p) return false;
  sn_device_buffer_free(d->host, &s->pool);
  s->pool = buffer;
  ++s->generation;
  return true;
}

static bool grow_staging(SnDeviceModel *d, size_t bytes) {
  SnModelGradients *s = d->gradients;
  SnStaging staging;
  if (bytes <= s->staging.capacity) return true;
  if (!sn_staging_create(d->host, &staging, bytes)) return false;
  sn_staging_free(d->host, &s->staging);
  s->staging = staging;
  return true;
}

SnCode sn_model_gradients_reserve(SnBackendModel *x, int gradients, size_t staging, size_t own, size_t freed,
                                  const char *what, SnError *err) {
  SnDeviceModel *d = x->model;
  const SnCode code = shared_create(x, err);
  if (code != SN_OK) return code;
  SnModelGradients *s = d->gradients;
  const size_t rest = own + (staging > s->staging.capacity ? staging : 0) + block_growth(d, gradients, x->max_step);
  const size_t gone = freed + (staging > s->staging.capacity ? s->staging.device.bytes : 0);
  size_t pool = pool_most(d, gradients, x->max_step);
  const size_t least = pool_least(d, gradients, x->max_step);
  // The pool that there is counts as given back where it is replaced.
  size_t more = pool > s->pool.bytes ? pool : 0, less = more ? s->pool.bytes : 0;
  if (more && sn_host_admit(x, rest + more, gone + less, what, NULL) != SN_OK) {
    pool = least;
    more = pool > s->pool.bytes ? pool : 0;
    less = more ? s->pool.bytes : 0;
  }
  const SnCode admitted = sn_host_admit(x, rest + more, gone + less, what, err);
  if (admitted != SN_OK) return admitted;
  if (s->iterations) sn_multistart_iterations_change(d);
  bool ok = grow_pool(d, pool) || grow_pool(d, least);
  ok = ok && block_reserve(d, gradients, x->max_step) && grow_staging(d, staging);
  return ok ? SN_OK : sn_host_refuse(x, rest + least, what, err);
}

void sn_gradients_forget(SnDeviceModel *d) {
  SnModelGradients *s = d->gradients;
  if (!s) return;
  if (s->iterations) sn_multistart_iterations_free(d);
  sn_staging_free(d->host, &s->staging);
  sn_device_buffer_free(d->host, &s->pool);
  free(s);
  d->gradients = NULL;
}
