// What the calls of an emulated device do, when their turn comes.
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "cuda/device/emulator_private.h"
#include "cuda/kernels/kernels.h"

#ifdef SN_LANES
// Several host threads as the lanes of a block (tests/support/lanes.c).
void sn_lanes_run(int n, void (*body)(SnLane *lane, void *arg), void *arg);
#endif

void sn_emulator_lose(SnEmulator *e, const char *format, ...) {
  if (e->device.lost) return;
  va_list args;
  va_start(args, format);
  const int n = snprintf(e->device.reason, sizeof e->device.reason, "emulator: ");
  vsnprintf(e->device.reason + n, sizeof e->device.reason - (size_t)n, format, args);
  va_end(args);
  e->device.lost = true;
  for (SnDeviceStream *s = e->stream; s; s = s->next) s->calls.count = 0;
}

// Both ends of a copy lie in memory that is there.
bool sn_copy_check(SnEmulator *e, const SnCall *c) {
  const bool in = c->kind == SN_CALL_IN;
  const char *call = in ? "copy_in" : "copy_out";
  const void *device = in ? c->to : c->from, *host = in ? c->from : c->to;
  if (!sn_regions_hold(&e->regions, device, c->bytes, SN_REGION_DEVICE))
    sn_emulator_lose(e, "%s: %zu bytes at %p are not in one piece of the device's memory", call, c->bytes, device);
  else if (!sn_regions_hold(&e->regions, host, c->bytes, SN_REGION_HOST))
    sn_emulator_lose(e, "%s: %zu bytes at %p are not in one piece of host memory for copies", call, c->bytes, host);
  return !e->device.lost;
}

uint64_t sn_copy_content(const SnCall *c) {
  const unsigned char *x = c->from;
  uint64_t sum = 14695981039346656037u;  // FNV-1a
  for (size_t i = 0; i < c->bytes; ++i) sum = (sum ^ x[i]) * 1099511628211u;
  return sum;
}

typedef struct SnBlocks {
  const SnCall *call;
  void *own;        // memory of a block
  int first, step;  // blocks first, first + step ...
  bool backward;
  int lanes;
} SnBlocks;

// A block finds NaN in what it has to itself. Here that ends where a page does, and not in its slot: so a write beyond
// it is found. Nothing of it is kept from launch to launch.
static void run_on_lane(SnLane *lane, void *arg) {
  const SnBlocks *b = arg;
  const SnCall *c = b->call;
  const size_t bytes = sn_kernel_bytes(&c->work.block);
  for (int i = b->first; i < c->shape.blocks; i += b->step) {
    const int block = b->backward ? c->shape.blocks - 1 - i : i;
    SN_ONE(lane) {
      memset(b->own, 0xff, bytes);
      memset(lane->shared, 0xff, sizeof *lane->shared);
    }
    SN_SYNC(lane);
    sn_kernel_body(c->kernel, &c->work, block, c->shape.blocks, lane, b->own);
    SN_SYNC(lane);
  }
}

static void *run_blocks(void *arg) {
  SnBlocks *b = arg;
#ifdef SN_LANES
  if (b->lanes > 1) {
    sn_lanes_run(b->lanes, run_on_lane, b);
    return NULL;
  }
#endif
  SnLaneShared shared;
  SnLane lane = {.id = 0, .n = 1, .shared = &shared};
  run_on_lane(&lane, b);
  return NULL;
}

void sn_launch_check(SnEmulator *e, SnKernel kernel, const SnLaunchShape *shape, const SnWork *work) {
  const size_t needed = sn_kernel_bytes(&work->block), stride = work->block.stride;
  const size_t most = shape->threads == 1 ? sn_thread_kernel_bytes(SN_NTHREADKERNEL - 1) : stride;
  if (most < needed)
    sn_emulator_lose(e, "launch of kernel %s: a block needs %zu bytes, it has %zu", sn_kernel_name(kernel), needed,
                     most);
  if (shape->threads > 1 &&
      !sn_regions_hold(&e->regions, work->block.memory, (size_t)shape->blocks * stride, SN_REGION_DEVICE))
    sn_emulator_lose(e, "launch of kernel %s: no memory of the device has slots for %d blocks", sn_kernel_name(kernel),
                     shape->blocks);
}

// Makes room for blocks of so many bytes.
static bool grow_own(SnEmulator *e, size_t bytes) {
  if (bytes <= e->own_bytes) return true;
  e->own_bytes = sn_region_size(bytes);
  for (int i = 0; i < e->workers; ++i) {
    if (e->own[i]) sn_regions_release(&e->regions, e->own[i], SN_REGION_BLOCK);
    e->own[i] = sn_regions_alloc(&e->regions, e->own_bytes, SN_REGION_BLOCK);
    if (!e->own[i]) return false;
  }
  return true;
}

static void do_launch(SnEmulator *e, const SnCall *c) {
  const size_t bytes = sn_kernel_bytes(&c->work.block);
  char text[200];
  if (!sn_work_check(c->kernel, &c->work, text, sizeof text)) {
    sn_emulator_lose(e, "launch of kernel %s: %s", sn_kernel_name(c->kernel), text);
    return;
  }
  sn_launch_check(e, c->kernel, &c->shape, &c->work);  // slots may have gone while it waited
  if (!grow_own(e, bytes)) sn_emulator_lose(e, "out of memory");
  if (e->device.lost) return;
  e->launches += 1;
  if (e->fault.slow > 0) {
    const double whole = floor(e->fault.slow);
    nanosleep(&(struct timespec){(time_t)whole, (long)(1e9 * (e->fault.slow - whole))}, NULL);
  }
  pthread_t thread[SN_MAX_WORKERS];
  SnBlocks blocks[SN_MAX_WORKERS];
  bool started[SN_MAX_WORKERS] = {false};
  for (int i = 0; i < e->workers; ++i) {
    const bool alone = c->shape.threads == 1;
    void *own = (unsigned char *)e->own[i] + e->own_bytes - bytes;
    blocks[i] = (SnBlocks){c, own, i, e->workers, fmod(e->launches, 2) == 0, alone ? 1 : e->lanes};
    if (i > 0) started[i] = pthread_create(&thread[i], NULL, run_blocks, &blocks[i]) == 0;
  }
  for (int i = 0; i < e->workers; ++i)
    if (!started[i]) run_blocks(&blocks[i]);
  for (int i = 1; i < e->workers; ++i)
    if (started[i]) pthread_join(thread[i], NULL);
}

// The sums of sn_rollout_vjp_product, in its order.
static void do_multiply(const SnProducts *p) {
  const size_t n = (size_t)p->n;
  for (int i = 0; i < p->count; ++i) {
    const sn_real *a = p->a + (size_t)i * p->stride_a, *x = p->x + (size_t)i * p->stride;
    sn_real *y = p->y + (size_t)i * p->stride;
    for (size_t j = 0; j < n; ++j)
      for (size_t k = 0; k < n; ++k) y[j] += a[k * n + j] * x[k];
  }
}

void sn_call_do(SnEmulator *e, const SnCall *c) {
  if (c->fails) sn_emulator_lose(e, "the fault asked for: launch number %.0f", e->fault.launch);
  if (e->device.lost) return;
  sn_regions_open(&e->regions,
                  c->kind == SN_CALL_LAUNCH || c->kind == SN_CALL_MULTIPLY ? SN_USER_KERNEL : SN_USER_COPY);
  switch (c->kind) {
    case SN_CALL_IN:
      if (!sn_copy_check(e, c)) break;
      if (c->content != sn_copy_content(c))
        sn_emulator_lose(e, "copy_in: the %zu bytes at %p were written to while the copy waited", c->bytes, c->from);
      memcpy(c->to, c->from, c->bytes);
      break;
    case SN_CALL_OUT:
      if (sn_copy_check(e, c)) memcpy(c->to, c->from, c->bytes);
      break;
    case SN_CALL_LAUNCH:
      do_launch(e, c);
      break;
    case SN_CALL_MULTIPLY:
      do_multiply(&c->products);
      break;
  }
}
