// The costate by a scan over time, with batched products of matrices.
//
// With x_{t+1} = step(x_t, u_t), A_t, B_t its Jacobians, c_t and d_t the derivatives of the cost of state t alone with
// respect to x_t and u_t, the derivative p_t of the whole cost with respect to x_t is
//
//   p_t = A_t' p_{t+1} + c_t,     d cost / d u_t = B_t' p_{t+1} + d_t.
//
// States are cut into blocks of K = 16, s the first of one. A block is an affine map of the costate behind it,
// p_s = G' p_{s+K} + q_s with G = A_{s+K-1} ... A_{s+1} A_s. All blocks of all items at once:
//
//   1. q: the costates as if nothing came behind the block: q_t = A_t' q_{t+1} + c_t, K - 1 steps, in place of c_t
//   2. G by a tree, log2(K) levels of half as many products each
//   3. over the blocks from the last to the first, all items at once: p_s = q_s + G' p_{s+K}, in place
//   4. delta: what comes from behind: delta_t = A_t' delta_{t+1} with delta_{s+K} = p_{s+K}, K - 1 steps; p_t = q_t +
//      delta_t is never formed, but in the first state of a block
//   5. derivatives with respect to controls: d_t + B_t' q_{t+1}, and B_t' delta_{t+1}
//
// So about 2 K + T / K products follow one another, not T. Blocks also bound how far rounding grows: a product of 16
// Jacobians and not of 256 is formed. Where there is no step A and B are 0 (kernel JACOBIAN): nothing comes from
// behind.
//
// The sums are others than those of CHAIN: the same derivative but for rounding. A library of products may sum in
// another order for another number of them: bits are repeatable for the same launch only. CHAIN's are for any.
#include "cuda/host/gradient_memory_private.h"

int sn_jacobian_scan_rows(int states) {
  return (states + SN_JACOBIAN_SCAN_BLOCK - 1) / SN_JACOBIAN_SCAN_BLOCK * SN_JACOBIAN_SCAN_BLOCK;
}

// Blocks of one time lie together, item after item: so the block behind block i is block i + ngradient.
size_t sn_jacobian_scan_place(int ngradient, int r, int t) {
  const size_t block = (size_t)(t / SN_JACOBIAN_SCAN_BLOCK) * (size_t)ngradient + (size_t)r;
  return block * SN_JACOBIAN_SCAN_BLOCK + (size_t)(t % SN_JACOBIAN_SCAN_BLOCK);
}

typedef struct Scan {
  SnDeviceModel *d;
  const SnProductMemory *memory;
  size_t n, nu;
  int ngradient, blocks;  // blocks: of all items
} Scan;

// A matrix or a vector of each block: where that of block 0 lies, and how many numbers further that of the next one.
typedef struct Strided {
  sn_real *at;
  size_t stride;
} Strided;

// c += a' b or c = a' b for one state of each of `count` blocks: a (n, rows), b (n) at state i of block 0, c (rows).
static void apply(const Scan *s, Strided a, int rows, const sn_real *b, Strided c, int count, int add) {
  const SnProducts products = {.m = rows,
                               .n = 1,
                               .k = (int)s->n,
                               .count = count,
                               .transpose_a = 1,
                               .add = add,
                               .a = a.at,
                               .b = b,
                               .c = c.at,
                               .stride_a = a.stride,
                               .stride_b = SN_JACOBIAN_SCAN_BLOCK * s->n,
                               .stride_c = c.stride};
  SnDevice *device = s->d->host->device;
  if (count > 0 && rows > 0 && s->n > 0) device->multiply(device, s->d->stream, &products);
}

// From state i + 1 of each block to state i, of costates at x: x_i = A_i' x_{i+1} (+ x_i).
static void step_back(const Scan *s, int i, sn_real *x, int add) {
  const size_t n = s->n, k = (size_t)i;
  const Strided A = {s->memory->A + k * n * n, SN_JACOBIAN_SCAN_BLOCK * n * n};
  const Strided to = {x + k * n, SN_JACOBIAN_SCAN_BLOCK * n};
  apply(s, A, (int)n, x + (k + 1) * n, to, s->blocks, add);
}

// One level of the tree: c_i = a_{2 i + 1} a_{2 i}.
static void pair_up(const Scan *s, const sn_real *a, sn_real *c, int count) {
  const size_t nn = s->n * s->n;
  const SnProducts products = {.m = (int)s->n,
                               .n = (int)s->n,
                               .k = (int)s->n,
                               .count = count,
                               .transpose_a = 0,
                               .add = 0,
                               .a = a + nn,
                               .b = a,
                               .c = c,
                               .stride_a = 2 * nn,
                               .stride_b = 2 * nn,
                               .stride_c = nn};
  SnDevice *device = s->d->host->device;
  if (s->n > 0) device->multiply(device, s->d->stream, &products);
}

// The product of each block's Jacobians; returns where they are.
static sn_real *multiply_blocks(const Scan *s) {
  sn_real *from = s->memory->A;
  for (int level = 0, width = SN_JACOBIAN_SCAN_BLOCK / 2; width >= 1; ++level, width /= 2) {
    pair_up(s, from, s->memory->power[level % 2], s->blocks * width);
    from = s->memory->power[level % 2];
  }
  return from;
}

// Costates of the first states of blocks.
static void join_blocks(const Scan *s, sn_real *G) {
  const size_t n = s->n, block = SN_JACOBIAN_SCAN_BLOCK * n;
  for (int first = s->blocks - 2 * s->ngradient; first >= 0; first -= s->ngradient) {
    sn_real *x = s->memory->state_bar + (size_t)first * block;
    const Strided product = {G + (size_t)first * n * n, n * n}, to = {x, block};
    apply(s, product, (int)n, x + (size_t)s->ngradient * block, to, s->ngradient, 1);
  }
}

// delta of the last state of each block, from the costate of the block behind. Items' last blocks have none: A is 0
// there, whatever it is multiplied with.
static void step_from_behind(const Scan *s, int before) {
  const size_t n = s->n, block = SN_JACOBIAN_SCAN_BLOCK * n;
  const size_t last = (SN_JACOBIAN_SCAN_BLOCK - 1) * n, end = (size_t)before * block;
  const sn_real *q = s->memory->state_bar;
  Strided A = {s->memory->A + last * n, block * n}, delta = {s->memory->delta + last, block};
  apply(s, A, (int)n, q + (size_t)s->ngradient * block, delta, before, 0);
  A.at += end * n;
  delta.at += end;
  apply(s, A, (int)n, q + end + last, delta, s->ngradient, 0);
}

// Derivatives with respect to the controls of state i of the first `count` blocks, from what x is in state i + 1.
static void add_controls(const Scan *s, int i, const sn_real *x, int count) {
  const size_t n = s->n, nu = s->nu, k = (size_t)i;
  const Strided B = {s->memory->B + k * n * nu, SN_JACOBIAN_SCAN_BLOCK * n * nu};
  const Strided to = {s->memory->ctrl_bar + k * nu, SN_JACOBIAN_SCAN_BLOCK * nu};
  apply(s, B, (int)nu, x, to, count, 1);
}

void sn_jacobian_scan_launch(SnDeviceModel *d, int ngradient, int rows, const SnProductMemory *memory) {
  const size_t n = (size_t)sn_tangent_size(&d->m), block = SN_JACOBIAN_SCAN_BLOCK * n;
  const Scan s = {d, memory, n, (size_t)d->m.nu, ngradient, ngradient * (rows / SN_JACOBIAN_SCAN_BLOCK)};
  const int last = SN_JACOBIAN_SCAN_BLOCK - 1;
  const int before = s.blocks - ngradient;  // blocks that have one behind them
  const sn_real *behind = memory->state_bar + (size_t)ngradient * block;
  sn_real *q = memory->state_bar, *delta = memory->delta;
  for (int i = last - 1; i >= 0; --i) step_back(&s, i, q, 1);
  join_blocks(&s, multiply_blocks(&s));
  step_from_behind(&s, before);
  for (int i = last - 1; i >= 1; --i) step_back(&s, i, delta, 0);
  for (int i = 0; i < last; ++i) add_controls(&s, i, q + (size_t)(i + 1) * n, s.blocks);
  for (int i = 0; i < last; ++i) add_controls(&s, i, delta + (size_t)(i + 1) * n, s.blocks);
  add_controls(&s, last, behind, before);
}
