// Memory that all sessions of a model share: in parts, whose sizes follow from what the launches need. Sessions come
// and grow; each part is as large as any of them ever asked for, until the last one goes.
#include "cuda/host/gradient_memory_private.h"

// ---- blocks ----

SnLaunchShape sn_device_shape(const SnDeviceModel *d, SnKernel kernel, int items) {
  const SnKernelShape *s = &d->shape[kernel];
  return (SnLaunchShape){sn_mini(items, s->resident), s->threads};
}

void sn_need_launch(const SnDeviceModel *d, SnKernel kernel, int items, int knots, SnNeed *need) {
  need->items[kernel] = items;
  // Lanes share the controls: further ones have no noise to make.
  need->scratch[kernel] = sn_kernel_scratch(&d->cost, knots, sn_mini(d->shape[kernel].threads, d->m.nu));
}

// The work of a launch whose blocks are of that shape.
static SnWork shape_work(const SnDeviceModel *d, SnKernel kernel, const SnKernelShape *s) {
  SnWork work = {.model = d->m,
                 .cost = d->cost,
                 .block = s->slot,
                 .scratch = (sn_real *)(void *)d->part[SN_MEMORY_SCRATCH].p,
                 .scratch_size = d->need.scratch[kernel],
                 .marks = (unsigned long long *)(void *)d->marks.device.p};
  work.block.memory = (unsigned char *)d->part[SN_MEMORY_SLOTS].p;
  return work;
}

SnWork sn_device_work(const SnDeviceModel *d, SnKernel kernel) { return shape_work(d, kernel, &d->shape[kernel]); }

SnRolloutWay sn_rollout_way(const SnDeviceModel *d, int count, bool batches) {
  if (d->thread.resident > 0) return SN_ROLLOUT_THREADS;
  return batches && d->many.threads && count > d->shape[SN_KERNEL_ROLLOUT].resident ? SN_ROLLOUT_PARTS
                                                                                    : SN_ROLLOUT_WARPS;
}

// Slots of warps are as large as those of parts at least, so parts may have them.
int sn_rollout_resident(const SnDeviceModel *d, SnRolloutWay way) {
  const int warps = d->shape[SN_KERNEL_ROLLOUT].resident;
  if (way == SN_ROLLOUT_THREADS) return d->thread.resident;
  if (way == SN_ROLLOUT_WARPS) return warps;
  return sn_mini(d->many.resident, sn_maxi(d->need.many, sn_mini(d->need.items[SN_KERNEL_ROLLOUT], warps)));
}

SnLaunchShape sn_rollout_launch(const SnDeviceModel *d, SnRolloutWay way, int items, SnWork *work) {
  const SnKernelShape *s = way == SN_ROLLOUT_PARTS ? &d->many : &d->shape[SN_KERNEL_ROLLOUT];
  const int blocks = sn_mini(items, sn_rollout_resident(d, way));
  *work = shape_work(d, SN_KERNEL_ROLLOUT, s);
  if (way == SN_ROLLOUT_PARTS) sn_world_limit(&work->model, &d->limits);
  if (way != SN_ROLLOUT_THREADS) return (SnLaunchShape){blocks, s->threads};
  sn_world_limit(&work->model, &d->thread.limits);
  work->block = d->thread.own;
  work->marks = NULL;  // of so many blocks nobody keeps the time
  return (SnLaunchShape){blocks, 1};
}

// ---- parts ----

// What there is a need for already, and `more`.
static SnNeed both(const SnDeviceModel *d, const SnNeed *more) {
  SnNeed n = d->need;
  for (int k = 0; k < SN_NKERNEL; ++k) {
    n.items[k] = sn_maxi(n.items[k], more->items[k]);
    n.scratch[k] = sn_maxi(n.scratch[k], more->scratch[k]);
  }
  n.many = sn_maxi(n.many, more->many);
  n.pool = sn_larger(n.pool, more->pool);
  n.staging = sn_larger(n.staging, more->staging);
  return n;
}

// Adds slots and scratch of a launch of that shape over `items` or fewer.
static void add_blocks(const SnKernelShape *s, int items, int scratch, size_t bytes[SN_NMEMORY]) {
  const size_t blocks = (size_t)sn_mini(items, s->resident);
  bytes[SN_MEMORY_SLOTS] = sn_larger(bytes[SN_MEMORY_SLOTS], blocks * s->slot.stride);
  bytes[SN_MEMORY_SCRATCH] = sn_larger(bytes[SN_MEMORY_SCRATCH], blocks * (size_t)scratch * sizeof(sn_real));
}

static void part_bytes(const SnDeviceModel *d, const SnNeed *need, size_t bytes[SN_NMEMORY]) {
  const SnKernelShape threads = {.resident = d->thread.resident};  // with no slots
  memset(bytes, 0, SN_NMEMORY * sizeof *bytes);
  for (int k = 0; k < SN_NKERNEL; ++k) add_blocks(&d->shape[k], need->items[k], need->scratch[k], bytes);
  const int rollouts = need->items[SN_KERNEL_ROLLOUT], scratch = need->scratch[SN_KERNEL_ROLLOUT];
  add_blocks(&d->many, need->many, scratch, bytes);
  add_blocks(&threads, rollouts, scratch, bytes);
  bytes[SN_MEMORY_POOL] = need->pool;
}

// Checks the budget for what the request takes where the model gets that need. What is replaced counts as given back.
static SnCode admit(const SnBackendModel *x, const SnMemoryRequest *r, const SnNeed *more, SnError *err) {
  const SnDeviceModel *d = x->model;
  const SnNeed need = both(d, more);
  size_t bytes[SN_NMEMORY], taken = sn_buffer_size(r->kept) + sn_buffer_size(r->staging);
  size_t freed = r->old ? r->old->kept.bytes + r->old->staging.device.bytes : 0;
  part_bytes(d, &need, bytes);
  for (int k = 0; k < SN_NMEMORY; ++k)
    if (bytes[k] > d->part[k].bytes) {
      taken += sn_buffer_size(bytes[k]);
      freed += d->part[k].bytes;
    }
  if (need.staging > d->iterations.staging.capacity) {
    taken += sn_buffer_size(need.staging);
    freed += d->iterations.staging.device.bytes;
  }
  return sn_host_admit(x, taken, freed, r->what, err);
}

// Makes the parts large enough. False: there is no memory, and all is as before.
static bool grow(SnDeviceModel *d, const SnNeed *more) {
  SnDeviceHost *host = d->host;
  const SnNeed need = both(d, more);
  size_t bytes[SN_NMEMORY];
  SnDeviceBuffer part[SN_NMEMORY] = {{0}};
  SnStaging staging = {0};
  bool ok = true;
  part_bytes(d, &need, bytes);
  for (int k = 0; ok && k < SN_NMEMORY; ++k)
    if (bytes[k] > d->part[k].bytes) ok = (part[k] = sn_device_buffer_alloc(host, bytes[k])).p;
  if (ok && need.staging > d->iterations.staging.capacity) ok = sn_staging_create(host, &staging, need.staging);
  if (ok) sn_multistart_iterations_change(d);  // their pointers go
  for (int k = 0; k < SN_NMEMORY; ++k) {
    if (!part[k].p) continue;
    sn_device_buffer_free(host, ok ? &d->part[k] : &part[k]);
    if (ok) d->part[k] = part[k];
    if (ok && k == SN_MEMORY_POOL) ++d->generation;
  }
  if (staging.host) {
    sn_staging_free(host, &d->iterations.staging);
    d->iterations.staging = staging;
  }
  if (ok) d->need = need;
  return ok;
}

static bool take_own(SnDeviceHost *host, const SnMemoryRequest *r, SnOwnMemory *own) {
  *own = (SnOwnMemory){0};
  return (!r->kept || (own->kept = sn_device_buffer_alloc(host, r->kept)).p) &&
         (!r->staging || sn_staging_create(host, &own->staging, r->staging));
}

SnCode sn_model_reserve(SnBackendModel *x, const SnMemoryRequest *r, SnOwnMemory *own, SnError *err) {
  const bool most = admit(x, r, &r->most, NULL) == SN_OK;
  const SnCode code = most ? SN_OK : admit(x, r, &r->least, err);
  if (code != SN_OK) return code;
  const bool less = !most || memcmp(&r->most, &r->least, sizeof r->most) != 0;
  if (take_own(x->host, r, own) && ((most && grow(x->model, &r->most)) || (less && grow(x->model, &r->least))))
    return SN_OK;
  sn_own_memory_free(x->host, own);
  return sn_host_refuse(x, r->kept + r->staging + r->least.pool, r->what, err);
}

void sn_own_memory_free(SnDeviceHost *host, SnOwnMemory *own) {
  sn_device_buffer_free(host, &own->kept);
  sn_staging_free(host, &own->staging);
}

void sn_model_memory_free(SnDeviceModel *d) {
  for (int k = 0; k < SN_NMEMORY; ++k) sn_device_buffer_free(d->host, &d->part[k]);
  sn_staging_free(d->host, &d->iterations.staging);
}
