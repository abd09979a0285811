#include "cuda/host/launch_shape_private.h"

#include "cuda/kernels/kernels.h"

// What a block of a kernel has of its own. The others work on worlds of states, or on none.
static bool has_world(SnKernel k) {
  return k == SN_KERNEL_ROLLOUT || k == SN_KERNEL_FORWARD || k == SN_KERNEL_JACOBIAN;
}
static bool has_adjoint(SnKernel k) { return k == SN_KERNEL_JACOBIAN || k == SN_KERNEL_SWEEP; }

SnCode sn_shape_choose(SnDevice *device, const SnModel *m, SnKernel kernel, int threads, SnKernelShape *s,
                       SnError *err) {
  SnCode code = SN_OK;
  *s = (SnKernelShape){.threads = threads};
  if (has_world(kernel)) code = sn_world_place(m, SN_LAYOUT_LINE, &s->slot.world, err);
  if (code == SN_OK && has_adjoint(kernel)) code = sn_adjoint_place(m, &s->slot.adjoint, err);
  if (code != SN_OK) return code;
  s->slot.stride = sn_kernel_bytes(&s->slot);
  s->resident = device->multiprocessors * device->resident(device, kernel, threads);
  if (s->resident > 0) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "%s: kernel %s does not run on this device with %d threads", device->name,
                 sn_kernel_name(kernel), threads);
}

// What models of MyoSuite have under random controls (step/growing_world.h) fits: at most 29 contacts, 121 rows beside
// those that are always there, 1177 entries. Memory of a thread is dear; that of thousands of worlds lies closer
// together.
static const SnWorldLimit thread_limit = {.contacts = 40, .rows = 160, .entries = 2048, .pairs = 4};
static const SnWorldLimit part_limit = {.contacts = 64, .rows = 256, .entries = 4096, .pairs = 32};

// The header of a model whose worlds have no more room than that, and for what is always there.
static SnModel limited_model(const SnModel *m, const int *size, const int *nnz, SnWorldLimit *limits) {
  SnModel limited = *m;
  sn_world_limit_add(m, size, nnz, limits);
  sn_world_limit(&limited, limits);
  return limited;
}

SnCode sn_part_shape_choose(SnDevice *device, const SnModel *m, const int *size, const int *nnz, SnKernelShape *s,
                            SnWorldLimit *limits, SnError *err) {
  *limits = part_limit;
  const SnModel limited = limited_model(m, size, nnz, limits);
  return sn_shape_choose(device, &limited, SN_KERNEL_ROLLOUT, SN_PART_OF_WARP, s, err);
}

SnCode sn_thread_shape_choose(SnDevice *device, const SnModel *m, const int *size, const int *nnz, SnThreadShape *s,
                              SnError *err) {
  const size_t most = sn_thread_kernel_bytes(SN_NTHREADKERNEL - 1);
  *s = (SnThreadShape){.limits = thread_limit};
  const SnModel limited = limited_model(m, size, nnz, &s->limits);
  const SnCode code = sn_world_place(&limited, SN_LAYOUT_DENSE, &s->own.world, err);
  if (code != SN_OK) return code;
  const size_t bytes = sn_kernel_bytes(&s->own);
  if (bytes > most)
    return sn_fail(err, SN_ERR_LIMIT, "%s: block threads: 1: a world takes %zu bytes, a thread has at most %zu",
                   device->name, bytes, most);
  s->resident = device->multiprocessors * device->resident_threads(device, bytes);
  if (s->resident > 0) return SN_OK;
  return sn_fail(
      err, SN_ERR_LIMIT,
      "%s: block threads: 1: no room for all threads that the device could run at once, each with %zu bytes for a "
      "world; of the budget %zu bytes are left, of the device %zu",
      device->name, bytes, device->thread_room, device->memory_free(device));
}

int sn_kernel_scratch(const SnCost *cost, int knots, int threads) {
  return cost->nres + cost->nall + (knots ? sn_candidate_scratch(knots, threads) : 0);
}
