// The order of launches for value and gradient of all items of a launch, which is that of every gradient on a device:
//
//   ITERATE                 where there are multistarts: starts begin or step; a block an item
//   FORWARD                 the rollout, all states of it kept; a block an item
//   MAKE, SWEEP             chunks of states from the last to the first: the worlds of a chunk, a block a state and a
//                           item, then back through them, a block an item
//   JACOBIAN, products, COLLECT   for items whose method is that of products, some items after others: the Jacobians of
//                           all their states, a block a state; products that chain them, one for each time over all
//                           items; what each state makes of its controls, a block a state
//   EVALUATE                the end of each gradient; a block an item
//   SELECT                  where there are multistarts: the best of each one's starts
//
// Rollouts alone end after FORWARD.
//
// A chunk is as many states, or as many items, as the pool has room for. It never touches a result: the world of a
// state depends on the rollout alone, and the way back takes state after state whatever the chunks are.
//
// The products are p_t = c_t + A_t' p_{t+1}, a vector times a matrix for each item, which all items do together: as few
// operations as there can be. (By a tree over time there would be fewer calls one after another, and n / 2 times the
// operations: 75 times for a hand.)
#include "cuda/host/gradient_memory_private.h"

// Chunks of at most `most` of the states, all of about the same length.
static int chunk_length(int states, size_t most) {
  if (most >= (size_t)states) return states;
  const int count = (states + (int)most - 1) / (int)(most > 0 ? most : 1);
  return (states + count - 1) / count;
}

static int chunks(int states, int length) { return (states + length - 1) / length; }

void sn_gradient_launches_plan(const SnDeviceModel *d, SnGradientLaunches *p) {
  const SnDeviceBuffer *pool = &d->part[SN_MEMORY_POOL];
  const size_t n = (size_t)p->ngradient, states = (size_t)p->states;
  p->sweep_chunk = chunk_length(p->states, pool->bytes / (n * d->state.bytes));
  p->product_items = chunk_length(p->ngradient, pool->bytes / sn_product_cut(d, states, NULL, &p->memory));
  sn_product_cut(d, (size_t)p->product_items * states, pool->p, &p->memory);
}

SnRolloutVjpState *sn_gradient_launches_states(const SnDeviceModel *d, const SnGradientLaunches *p, int r,
                                               const SnGradientMemory *memory, int method, SnStaging *staging) {
  const int rows = method == SN_GRADIENT_PRODUCTS ? p->states : 1;
  const size_t n = (size_t)sn_tangent_size(&d->m), nu = (size_t)d->m.nu;
  SnRolloutVjpState *there = NULL;
  SnRolloutVjpState *state = sn_staging_put(staging, (size_t)rows * sizeof *state, (void *)&there);
  for (int t = 0; state && t < rows; ++t) {
    if (method != SN_GRADIENT_PRODUCTS) {
      state[t] = (SnRolloutVjpState){.target_bar = memory->target_bar};
      continue;
    }
    const size_t k = (size_t)(r % p->product_items) * (size_t)p->states + (size_t)t;
    state[t] = (SnRolloutVjpState){.A = p->memory.A + k * n * n,
                                   .B = p->memory.B + k * n * nu,
                                   .state_bar = p->memory.state_bar + k * n,
                                   .ctrl_bar = p->memory.ctrl_bar + k * nu,
                                   .before_bar = p->memory.before_bar + k * nu,
                                   .target_bar = p->memory.target_bar + k * (size_t)d->cost.ntarget};
  }
  return there;
}

static void launch(SnDeviceModel *d, const SnGradientLaunches *p, SnKernel kernel, int items, int from, int to) {
  SnDevice *device = d->host->device;
  const SnLaunchShape shape = sn_device_shape(d, kernel, items);
  SnWork work = sn_device_work(d, kernel);
  work.gradient = p->gradient;
  work.ngradient = p->ngradient;
  work.multistart = p->multistart;
  work.nmultistart = p->nmultistart;
  work.from = from;
  work.to = to;
  work.state.world = d->state;
  work.state.memory = (unsigned char *)d->part[SN_MEMORY_POOL].p;
  work.state.stride = d->state.bytes;
  device->launch(device, d->stream, kernel, &shape, &work);
}

int sn_gradient_launches_count(const SnGradientLaunches *p) {
  int count = 2;
  if (p->forward) return 1;
  if (p->sweep) count += chunks(p->states, p->sweep_chunk);
  if (p->products) count += chunks(p->ngradient, p->product_items);
  return count;
}

static void launch_sweep(SnDeviceModel *d, const SnGradientLaunches *p, int chunk) {
  const int to = p->states - chunk * p->sweep_chunk, from = to > p->sweep_chunk ? to - p->sweep_chunk : 0;
  launch(d, p, SN_KERNEL_MAKE, p->ngradient * (to - from), from, to);
  launch(d, p, SN_KERNEL_SWEEP, p->ngradient, from, to);
}

// Chains the Jacobians of the first `count` items in the pool.
static void multiply(SnDeviceModel *d, const SnGradientLaunches *p, int count) {
  SnDevice *device = d->host->device;
  const size_t n = (size_t)sn_tangent_size(&d->m);
  for (int t = p->states - 2; n > 0 && t >= 0; --t) {
    sn_real *y = p->memory.state_bar + (size_t)t * n;
    const SnProducts products = {.n = (int)n,
                                 .count = count,
                                 .a = p->memory.A + (size_t)t * n * n,
                                 .x = y + n,
                                 .y = y,
                                 .stride_a = (size_t)p->states * n * n,
                                 .stride = (size_t)p->states * n};
    device->multiply(device, d->stream, &products);
  }
}

static void launch_products(SnDeviceModel *d, const SnGradientLaunches *p, int chunk) {
  const int first = chunk * p->product_items;
  SnGradientLaunches some = *p;
  some.gradient = p->gradient + first;
  some.ngradient = sn_mini(p->product_items, p->ngradient - first);
  launch(d, &some, SN_KERNEL_JACOBIAN, some.ngradient * p->states, 0, p->states);
  multiply(d, p, some.ngradient);
  launch(d, &some, SN_KERNEL_COLLECT, some.ngradient * p->states, 0, p->states);
}

void sn_gradient_launches_put(SnDeviceModel *d, const SnGradientLaunches *p, int group) {
  const int sweeps = p->sweep ? chunks(p->states, p->sweep_chunk) : 0;
  if (group == 0) {
    if (p->nmultistart > 0) launch(d, p, SN_KERNEL_ITERATE, p->ngradient, 0, 0);
    launch(d, p, SN_KERNEL_FORWARD, p->ngradient, 0, p->states);
  } else if (group <= sweeps) {
    launch_sweep(d, p, group - 1);
  } else if (group < sn_gradient_launches_count(p) - 1) {
    launch_products(d, p, group - 1 - sweeps);
  } else {
    launch(d, p, SN_KERNEL_EVALUATE, p->ngradient, 0, p->states);
    if (p->nmultistart > 0) launch(d, p, SN_KERNEL_SELECT, p->nmultistart, 0, 0);
  }
}
