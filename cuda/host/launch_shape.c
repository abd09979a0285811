#include "cuda/host/launch_shape_private.h"

#include "cuda/kernels/kernels.h"

// What a block of a kernel has of its own. The others work on worlds of states, or on none.
static bool has_world(SnKernel k) {
  return k == SN_KERNEL_ROLLOUT || k == SN_KERNEL_FORWARD || k == SN_KERNEL_JACOBIAN;
}
static bool has_adjoint(SnKernel k) { return k == SN_KERNEL_JACOBIAN || k == SN_KERNEL_SWEEP; }

size_t sn_shape_shared(const SnKernelShape *s) { return SN_KERNEL_HEAD + s->world.shared + s->adjoint.shared; }

// A shape whose block takes at most `shared` bytes of shared memory. Where there is a world, too, the adjoint has a
// third at most: it is that much smaller, and a Jacobian goes through it many times. A block is one warp unless the
// rule says otherwise: more lanes hardly shorten the path of a world (cuda/README.md), and take the room of other
// worlds.
static SnCode make_shape(SnDevice *device, const SnModel *m, SnKernel kernel, const SnShapeRule *rule, size_t shared,
                         SnKernelShape *s, SnError *err) {
  SnCode code = SN_OK;
  *s = (SnKernelShape){.threads = rule && rule->threads > 1 ? rule->threads : SN_WARP};
  size_t capacity = shared > SN_KERNEL_HEAD ? (shared - SN_KERNEL_HEAD) / 64 * 64 : 0;
  if (rule && rule->shared && capacity > rule->shared) capacity = rule->shared;
  if (has_adjoint(kernel)) code = sn_adjoint_place(m, has_world(kernel) ? capacity / 3 : capacity, &s->adjoint, err);
  if (code == SN_OK && has_world(kernel)) code = sn_world_place(m, capacity - s->adjoint.shared, &s->world, err);
  if (code == SN_OK)
    s->resident = device->multiprocessors * device->resident(device, kernel, s->threads, sn_shape_shared(s));
  return code;
}

SnCode sn_shapes_choose(SnDevice *device, const SnModel *m, SnKernel kernel, const SnShapeRule *rule,
                        SnKernelShapes *shapes, SnError *err) {
  SnKernelShape next;
  shapes->count = 0;
  // Each time twice as many blocks share the memory of a multiprocessor, until that brings no more of them.
  size_t shared = device->shared;
  const size_t overhead = device->shared_total - device->shared;  // of each block
  for (int blocks = 1; shapes->count < SN_KERNEL_SHAPES; blocks *= 2) {
    const size_t share = device->shared_total / (size_t)blocks;
    if (shapes->count && share < overhead + SN_KERNEL_HEAD) break;
    if (share < overhead + shared) shared = share - overhead;
    const SnCode code = make_shape(device, m, kernel, rule, shared, &next, err);
    if (code != SN_OK) return code;
    const int most = shapes->count ? shapes->shape[shapes->count - 1].resident : 0;
    if (next.resident > most) shapes->shape[shapes->count++] = next;
    if (blocks * device->multiprocessors > 4 * sn_maxi(next.resident, device->multiprocessors)) break;
  }
  if (shapes->count) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "%s: kernel %s does not run on this device with %d threads and %zu bytes of memory",
                 device->name, sn_kernel_name(kernel), next.threads, sn_shape_shared(&next));
}

// What models of MyoSuite have under random controls (step/growing_world.h) fits: at most 29 contacts, 121 rows beside
// those that are always there, 1177 entries. Memory of a thread is dear.
static const SnWorldLimit thread_limit = {.contacts = 40, .rows = 160, .entries = 2048, .pairs = 4};

size_t sn_thread_shape_bytes(const SnThreadShape *s) { return SN_KERNEL_HEAD + s->world.shared; }

SnCode sn_thread_shape_choose(SnDevice *device, const SnModel *m, const int *size, const int *nnz, SnThreadShape *s,
                              SnError *err) {
  const size_t most = sn_thread_kernel_bytes(SN_NTHREADKERNEL - 1);
  SnModel limited = *m;
  *s = (SnThreadShape){.limits = thread_limit};
  sn_world_limit_add(m, size, nnz, &s->limits);
  sn_world_limit(&limited, &s->limits);
  const SnCode code = sn_world_place(&limited, SIZE_MAX / 2, &s->world, err);
  if (code != SN_OK) return code;
  const size_t bytes = sn_thread_shape_bytes(s);
  if (bytes > most)
    return sn_fail(err, SN_ERR_LIMIT, "%s: block threads: 1: a world takes %zu bytes, a thread has at most %zu",
                   device->name, bytes, most);
  s->resident = device->multiprocessors * device->resident(device, SN_KERNEL_ROLLOUT, 1, bytes);
  if (s->resident > 0) return SN_OK;
  return sn_fail(
      err, SN_ERR_LIMIT,
      "%s: block threads: 1: no room for all threads that the device could run at once, each with %zu bytes for a "
      "world; of the budget %zu bytes are left, of the device %zu",
      device->name, bytes, device->thread_room, device->memory_free(device));
}

const SnKernelShape *sn_shapes_pick(const SnKernelShapes *shapes, int items) {
  int i = 0;
  while (i + 1 < shapes->count && shapes->shape[i].resident < items) ++i;
  return &shapes->shape[i];
}

int sn_kernel_scratch(const SnCost *cost, int knots, int threads) {
  return cost->nres + cost->nall + (knots ? sn_candidate_scratch(knots, threads) : 0);
}
