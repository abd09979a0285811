// Memory that all sessions of a model share: in parts, whose sizes follow from what the launches need. Sessions come
// and grow; each part is as large as any of them ever asked for, until the last one goes.
#include "cuda/host/gradient_memory_private.h"

// ---- blocks ----

// Bytes of a block's slot.
static size_t slot_bytes(const SnKernelShape *s) { return sn_aligned(s->world.global) + sn_aligned(s->adjoint.global); }

// Slots for a launch over `items` or fewer: one over fewer picks a shape before, of fewer blocks, but each may have a
// larger slot, since what lies in shared memory is chosen anew for every size of it.
static size_t slots_bytes(const SnKernelShapes *shapes, int items) {
  const SnKernelShape *last = sn_shapes_pick(shapes, items);
  size_t most = 0;
  for (const SnKernelShape *s = shapes->shape; s <= last; ++s)
    most = sn_larger(most, (size_t)sn_mini(items, s->resident) * slot_bytes(s));
  return most;
}

SnLaunchShape sn_device_shape(const SnDeviceModel *d, SnKernel kernel, int items) {
  const SnKernelShape *s = sn_shapes_pick(&d->shape[kernel], items);
  return (SnLaunchShape){sn_mini(items, s->resident), s->threads, sn_shape_shared(s)};
}

SnLaunchShape sn_thread_launch(const SnDeviceModel *d, int items, SnWork *work) {
  sn_world_limit(&work->model, &d->thread.limits);
  work->block = (SnSlots){.world = d->thread.world};
  work->marks = NULL;  // of so many blocks nobody keeps the time
  return (SnLaunchShape){sn_mini(items, d->thread.resident), 1, sn_thread_shape_bytes(&d->thread)};
}

void sn_need_launch(const SnDeviceModel *d, SnKernel kernel, int items, int knots, SnNeed *need) {
  need->items[kernel] = items;
  // Lanes share the controls: further ones have no noise to make.
  need->scratch[kernel] = sn_kernel_scratch(&d->cost, knots, sn_mini(d->shape[kernel].shape[0].threads, d->m.nu));
}

SnWork sn_device_work(const SnDeviceModel *d, SnKernel kernel, int items) {
  const SnKernelShape *s = sn_shapes_pick(&d->shape[kernel], items);
  return (SnWork){.model = d->m,
                  .cost = d->cost,
                  .block = {s->world, s->adjoint, (unsigned char *)d->part[SN_MEMORY_SLOTS].p, slot_bytes(s)},
                  .scratch = (sn_real *)(void *)d->part[SN_MEMORY_SCRATCH].p,
                  .scratch_size = d->need.scratch[kernel],
                  .marks = (unsigned long long *)(void *)d->marks.device.p};
}

// ---- parts ----

// What there is a need for already, and `more`.
static SnNeed both(const SnDeviceModel *d, const SnNeed *more) {
  SnNeed n = d->need;
  for (int k = 0; k < SN_NKERNEL; ++k) {
    n.items[k] = sn_maxi(n.items[k], more->items[k]);
    n.scratch[k] = sn_maxi(n.scratch[k], more->scratch[k]);
  }
  n.pool = sn_larger(n.pool, more->pool);
  n.staging = sn_larger(n.staging, more->staging);
  return n;
}

static void part_bytes(const SnDeviceModel *d, const SnNeed *need, size_t bytes[SN_NMEMORY]) {
  size_t slots = 0, scratch = 0;
  for (int k = 0; k < SN_NKERNEL; ++k) {
    int most = sn_device_shape(d, (SnKernel)k, need->items[k]).blocks;
    if (k == SN_KERNEL_ROLLOUT) most = sn_maxi(most, sn_mini(need->items[k], d->thread.resident));
    const size_t blocks = (size_t)most;
    slots = sn_larger(slots, slots_bytes(&d->shape[k], need->items[k]));
    scratch = sn_larger(scratch, blocks * (size_t)need->scratch[k] * sizeof(sn_real));
  }
  bytes[SN_MEMORY_SLOTS] = slots;
  bytes[SN_MEMORY_SCRATCH] = scratch;
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
