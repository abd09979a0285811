// The order of launches for value and gradient of all items of a launch, which is that of every gradient on a device:
//
//   ITERATE                 where there are multistarts: starts begin or step; a block an item
//   FORWARD                 the rollout, all states of it kept; a block an item
//   MAKE, SWEEP             chunks of states from the last to the first: the worlds of a chunk, a block a state and a
//                           item, then back through them, a block an item
//   JACOBIAN, CHAIN         the same by Jacobians of the steps, for items whose method is that of products;
//   JACOBIAN, scan, COLLECT or all of them at once, chained by a scan over time (jacobian_scan.c)
//   EVALUATE                the end of each gradient; a block an item
//   SELECT                  where there are multistarts: the best of each one's starts
//
// Rollouts alone end after FORWARD.
//
// A chunk is as many states as the pool has room for. It never touches a result: the world of a state depends on the
// rollout alone, and the way back takes state after state whatever the chunks are.
#include "cuda/host/gradient_memory_private.h"

// Chunks of at most `most` of the states, all of about the same length.
static int chunk_length(int states, size_t most) {
  if (most >= (size_t)states) return states;
  const int count = (states + (int)most - 1) / (int)(most > 0 ? most : 1);
  return (states + count - 1) / count;
}

static int chunks(int states, int length) { return (states + length - 1) / length; }

void sn_gradient_launches_plan(const SnDeviceModel *d, SnGradientLaunches *p) {
  const SnModelGradients *s = d->gradients;
  const size_t n = (size_t)p->ngradient, rows = (size_t)sn_jacobian_scan_rows(p->states);
  p->sweep_chunk = chunk_length(p->states, s->pool.bytes / (n * s->world.global));
  p->scan = d->host->scan && sn_product_cut(d, n * rows, true, NULL, &p->memory) <= s->pool.bytes;
  p->product_chunk =
      p->scan ? (int)rows : chunk_length(p->states, s->pool.bytes / sn_product_cut(d, n, false, NULL, &p->memory));
  sn_product_cut(d, n * (size_t)p->product_chunk, p->scan, s->pool.p, &p->memory);
}

int sn_gradient_launches_rows(const SnGradientLaunches *p, int method) {
  if (method != SN_GRADIENT_PRODUCTS) return 1;
  return p->scan ? p->product_chunk : p->states;
}

// Where the Jacobians of state t of item r lie: chunks are counted from the last state.
static size_t product_place(const SnGradientLaunches *p, int r, int t) {
  if (p->scan) return sn_jacobian_scan_place(p->ngradient, r, t);
  const int later = (p->states - 1 - t) / p->product_chunk;  // chunks behind that of t
  const int from = p->states - (later + 1) * p->product_chunk;
  return (size_t)r * (size_t)p->product_chunk + (size_t)(t - (from > 0 ? from : 0));
}

SnRolloutVjpState *sn_gradient_launches_states(const SnDeviceModel *d, const SnGradientLaunches *p, int r,
                                               const SnGradientMemory *memory, int method, SnStaging *staging) {
  const int rows = sn_gradient_launches_rows(p, method);
  const size_t n = (size_t)sn_tangent_size(&d->m), nu = (size_t)d->m.nu;
  SnRolloutVjpState *there = NULL;
  SnRolloutVjpState *state = sn_staging_put(staging, (size_t)rows * sizeof *state, (void *)&there);
  for (int t = 0; state && t < rows; ++t) {
    if (method != SN_GRADIENT_PRODUCTS) {
      state[t] = (SnRolloutVjpState){.target_bar = memory->target_bar};
      continue;
    }
    const size_t k = product_place(p, r, t);
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
  SnWork work = sn_device_work(d, kernel, items);
  work.gradient = p->gradient;
  work.ngradient = p->ngradient;
  work.multistart = p->multistart;
  work.nmultistart = p->nmultistart;
  work.from = from;
  work.to = to;
  work.state.world = d->gradients->world;
  work.state.global = (unsigned char *)d->gradients->pool.p;
  work.state.stride = d->gradients->world.global;
  device->launch(device, d->stream, kernel, &shape, &work);
}

int sn_gradient_launches_count(const SnGradientLaunches *p) {
  int count = 2;
  if (p->forward) return 1;
  if (p->sweep) count += chunks(p->states, p->sweep_chunk);
  if (p->products) count += p->scan ? 1 : chunks(p->states, p->product_chunk);
  return count;
}

static void launch_sweep(SnDeviceModel *d, const SnGradientLaunches *p, int chunk) {
  const int to = p->states - chunk * p->sweep_chunk, from = to > p->sweep_chunk ? to - p->sweep_chunk : 0;
  launch(d, p, SN_KERNEL_MAKE, p->ngradient * (to - from), from, to);
  launch(d, p, SN_KERNEL_SWEEP, p->ngradient, from, to);
}

static void launch_products(SnDeviceModel *d, const SnGradientLaunches *p, int chunk) {
  const int to = p->states - chunk * p->product_chunk, from = to > p->product_chunk ? to - p->product_chunk : 0;
  launch(d, p, SN_KERNEL_JACOBIAN, p->ngradient * (to - from), from, to);
  launch(d, p, SN_KERNEL_CHAIN, p->ngradient, from, to);
}

static void launch_scan(SnDeviceModel *d, const SnGradientLaunches *p) {
  const int rows = p->product_chunk;
  launch(d, p, SN_KERNEL_JACOBIAN, p->ngradient * rows, 0, rows);
  sn_jacobian_scan_launch(d, p->ngradient, rows, &p->memory);
  launch(d, p, SN_KERNEL_COLLECT, p->ngradient, 0, p->states);
}

void sn_gradient_launches_put(SnDeviceModel *d, const SnGradientLaunches *p, int group) {
  const int sweeps = p->sweep ? chunks(p->states, p->sweep_chunk) : 0;
  if (group == 0) {
    if (p->nmultistart > 0) launch(d, p, SN_KERNEL_ITERATE, p->ngradient, 0, 0);
    launch(d, p, SN_KERNEL_FORWARD, p->ngradient, 0, p->states);
  } else if (group <= sweeps) {
    launch_sweep(d, p, group - 1);
  } else if (group < sn_gradient_launches_count(p) - 1) {
    if (p->scan)
      launch_scan(d, p);
    else
      launch_products(d, p, group - 1 - sweeps);
  } else {
    launch(d, p, SN_KERNEL_EVALUATE, p->ngradient, 0, p->states);
    if (p->nmultistart > 0) launch(d, p, SN_KERNEL_SELECT, p->nmultistart, 0, 0);
  }
}
