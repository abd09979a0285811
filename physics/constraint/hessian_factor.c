// The factor L' D L of the constraint solver's Hessian H = M + J' C J, its updates and solves.
//
// As for M, elimination runs from the last dof to the first: the leaves of the kinematic tree come first, which
// makes no fill in M itself. Pattern: a block of J couples all its columns, which is the same as entering the
// block's columns in the row of its largest one; after that, eliminating row k adds its columns to the row of its
// largest column, its parent, and nowhere else that this does not reach in turn (elimination tree). So the pattern
// costs one pass over bits. It is that of all rows, whatever their state, and holds for a whole solve.
//
// Supernodes: consecutive rows of which each has the columns of the one before and that one itself (the dofs of a
// finger, of a free body). Their values are one dense block: row r has the n columns that all have, then those of
// the supernode up to its own diagonal. The row of dof k holds D_k L_k, its diagonal D_k.
//
// Where many free bodies hang together, common columns come in runs of six and more. Then rows of H are added to run by
// run, two at a time: the same sums, in the same order, by vector instructions.
//
// When few rows of J change between 0 and D, the factor is updated for each (Gill, Golub, Murray, Saunders 1974,
// method C1): H + s v v' with v a row of J changes only the rows on the path from its largest column to the root.
// For j along the path, p = v_j, D_j' = D_j + s p^2, and over the columns i of row j
//   v_i' = v_i - p L_ji,   D_j' L_ji' = (D_j' / D_j) D_j L_ji + s p v_i',   then s' = s D_j / D_j'.
#include "physics/base/bits.h"
#include "physics/constraint/constraint_private.h"
#include "physics/constraint/solver_private.h"
#include "physics/dynamics/dynamics.h"

#if !defined(SN_SERIAL) && !defined(SN_PACK)
// True where hessian_warp.c does what is asked for.
SN_INLINE bool is_for_warp(const SnModel *m, const SnLane *lane) {
  return sn_is_warp(lane) && m->nv <= SN_WARP_ROWS * SN_WARP;
}
#endif

// Enters the columns of each block, as bits, in the row of its largest one.
SN_LOCAL void enter_blocks(const SnModel *m, SnWorld *w) {
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock block = sn_block(w, b);
    const int *col = w->efc_J_colind + block.adr;
    uint64_t *bits = w->hessian_bits + col[block.nnz - 1] * m->nword;
    for (int k = 0; k < block.nnz - 1; ++k) sn_bit_set(bits, col[k]);
  }
}

// Pattern of the factor below the diagonal, once blocks are entered.
SN_LOCAL void factor_bits(const SnModel *m, SnWorld *w) {
  const int nword = m->nword;
  for (int k = 0; sn_has_metric(m) && k < m->ntendon + m->nout; ++k) {
    SnRow row;
    if (sn_metric_term(m, w, k, &row) == 0) continue;
    uint64_t *bits = w->hessian_bits + row.col[row.n - 1] * nword;
    for (int q = 0; q < row.n - 1; ++q) sn_bit_set(bits, row.col[q]);
  }
  for (int k = m->nv - 1; k >= 0; --k) {
    const uint64_t *bits = w->hessian_bits + k * nword;
    int word = nword - 1;
    while (word >= 0 && bits[word] == 0) --word;
    if (word < 0) continue;
    const int parent = 64 * word + sn_bit_highest(bits[word]);
    uint64_t *up = w->hessian_bits + parent * nword;
    for (int j = 0; j <= word; ++j) up[j] |= bits[j];
    up[parent / 64] &= ~((uint64_t)1 << (parent % 64));
  }
}

// True where row i has the columns of row i - 1 and that one, nothing else.
SN_LOCAL bool super_continues(const SnModel *m, const SnWorld *w, int i) {
  const uint64_t *row = w->hessian_bits + i * m->nword, *before = row - m->nword;
  for (int j = 0; j < m->nword; ++j) {
    const uint64_t own = j == (i - 1) / 64 ? (uint64_t)1 << ((i - 1) % 64) : 0;
    if (row[j] != (before[j] | own)) return false;
  }
  return true;
}

// First row and size of every supernode from the bits, hessian_nsuper, hessian_rowsuper.
SN_LOCAL void find_supers(const SnModel *m, SnWorld *w) {
  int nsuper = 0;
  for (int i = 0; i < m->nv; ++nsuper) {
    int size = 1;
    while (size < SN_MAXSUPER && i + size < m->nv && super_continues(m, w, i + size)) ++size;
    w->hessian_super[4 * nsuper] = i;
    w->hessian_super[4 * nsuper + 1] = size;
    for (int r = 0; r < size; ++r) w->hessian_rowsuper[i + r] = nsuper;
    i += size;
  }
  w->hessian_nsuper[0] = nsuper;
}

#if !defined(SN_PACK)
// hessian_bits and the rows of every supernode.
SN_LOCAL void find_pattern(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv * m->nword) w->hessian_bits[i] = m->M_bits[i];
  bool entered = false;
#if !defined(SN_SERIAL)
  entered = sn_can_shuffle(lane) && m->nword == 1;
  if (entered)
    sn_part_enter_blocks(w, lane);
  else
    SN_SYNC(lane);
#endif
  SN_ONE(lane) {
    if (!entered) enter_blocks(m, w);
    factor_bits(m, w);
    find_supers(m, w);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_factor_pattern(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) w->hessian_update[i] = 0;
#if !defined(SN_SERIAL)
  if (is_for_warp(m, lane))
    sn_warp_pattern(m, w, lane);
  else
#endif
    find_pattern(m, w, lane);
  SN_FOR(s, w->hessian_nsuper[0]) {
    const uint64_t *words = w->hessian_bits + w->hessian_super[4 * s] * m->nword;
    int *col = w->hessian_col + s * m->nv, n = 0;
    for (int j = 0; j < m->nword; ++j)
      for (uint64_t bits = words[j]; bits; bits &= bits - 1) col[n++] = 64 * j + sn_bit_lowest(bits);
    w->hessian_super[4 * s + 2] = n;
    w->hessian_run[s] = w->hessian_super[4 * s + 1] * (w->hessian_super[4 * s + 1] + n);
  }
  SN_SYNC(lane);
  sn_compact(lane, w->hessian_run, w->hessian_nsuper[0]);
  SN_FOR(s, w->hessian_nsuper[0]) w->hessian_super[4 * s + 3] = w->hessian_run[s];
  SN_SYNC(lane);
}
#endif

#if !defined(SN_PACK)
SN_FUNC void sn_factor_clear(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(s, w->hessian_nsuper[0]) {
    const SnSuper u = sn_super(m, w, s);
    for (int r = 0; r < u.size; ++r) {
      sn_real *out = w->hessian + (u.row + r) * m->nv;
      for (int q = 0; q < u.n; ++q) out[u.col[q]] = 0;
      for (int q = 0; q <= r; ++q) out[u.row + q] = 0;
    }
  }
  SN_SYNC(lane);
}
#endif

// Copies the rows of a supernode from the dense H and eliminates them among themselves.
SN_LOCAL void eliminate_within(const SnModel *m, SnWorld *w, SnLane *lane, const SnSuper *u) {
  SN_FOR(r, u->size) {
    const sn_real *from = w->hessian + (u->row + r) * m->nv;
    sn_real *to = u->value + r * u->ld;
    for (int q = 0; q < u->n; ++q) to[q] = from[u->col[q]];
    for (int q = 0; q <= r; ++q) to[u->n + q] = from[u->row + q];
  }
  SN_SYNC(lane);
  for (int j = u->size - 1; j >= 0; --j) {
    const sn_real *SN_RESTRICT from = u->value + j * u->ld;
    const sn_real inv = 1 / sn_max(SN_MINVAL, from[u->n + j]);
    SN_ONE(lane) w->hessian_inv[u->row + j] = inv;
    SN_FOR(i, j) {
      sn_real *SN_RESTRICT to = u->value + i * u->ld;
      const sn_real a = from[u->n + i] * inv;
      for (int q = 0; q <= u->n + i; ++q) to[q] -= a * from[q];
    }
    SN_SYNC(lane);
  }
}

// Finds the ends of runs of consecutive numbers among the common columns, in hessian_run. Returns false where they are
// short.
SN_LOCAL bool find_runs(SnWorld *w, SnLane *lane, const SnSuper *u) {
  enum { SHORTEST = 6 };  // on average
  int num = 0;
  for (int q = 1; q <= u->n; ++q) num += q == u->n || u->col[q] != u->col[q - 1] + 1;
  if (num == 0 || SHORTEST * num > u->n) return false;
  SN_ONE(lane) {
    for (int q = 1, k = 0; q <= u->n; ++q)
      if (q == u->n || u->col[q] != u->col[q - 1] + 1) w->hessian_run[k++] = q;
  }
  SN_SYNC(lane);
  return true;
}

// Six rows of a free body, and by what of them the elimination changes two rows of H.
typedef struct SixRows {
  const sn_real *row[6];
  sn_real s[6], t[6];
} SixRows;

// Adds them to n numbers of both: x[k] += s[0] row[0][q + k] + .., and y with t. The sums are those of two passes, of
// four rows and of two.
SN_INLINE void add_six(const SixRows *r, int q, int n, sn_real *SN_RESTRICT x, sn_real *SN_RESTRICT y) {
  const sn_real *SN_RESTRICT a = r->row[0] + q, *SN_RESTRICT b = r->row[1] + q, *SN_RESTRICT c = r->row[2] + q;
  const sn_real *SN_RESTRICT d = r->row[3] + q, *SN_RESTRICT e = r->row[4] + q, *SN_RESTRICT f = r->row[5] + q;
  const sn_real *SN_RESTRICT s = r->s, *SN_RESTRICT t = r->t;
  const sn_real s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], s4 = s[4], s5 = s[5];
  const sn_real t0 = t[0], t1 = t[1], t2 = t[2], t3 = t[3], t4 = t[4], t5 = t[5];
  for (int k = 0; k < n; ++k) {
    x[k] = (x[k] + ((s0 * a[k] + s1 * b[k]) + (s2 * c[k] + s3 * d[k]))) + (s4 * e[k] + s5 * f[k]);
    y[k] = (y[k] + ((t0 * a[k] + t1 * b[k]) + (t2 * c[k] + t3 * d[k]))) + (t4 * e[k] + t5 * f[k]);
  }
}

// The same by vectors of 256 bits where the processor has them: element by element it is the same arithmetic.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__)
__attribute__((target("avx2"))) SN_LOCAL void add_six_wide(const SixRows *r, int q, int n, sn_real *SN_RESTRICT x,
                                                           sn_real *SN_RESTRICT y) {
  add_six(r, q, n, x, y);
}
SN_INLINE bool has_wide(void) { return __builtin_cpu_supports("avx2") != 0; }
#else
#define add_six_wide add_six
SN_INLINE bool has_wide(void) { return false; }
#endif

SN_LOCAL void add_run(const SixRows *r, int q, int n, sn_real *x, sn_real *y) {
  if (has_wide())
    add_six_wide(r, q, n, x, y);
  else
    add_six(r, q, n, x, y);
}

// Takes what the elimination of a free body takes from the rows of H of common columns p and p + 1, run by run.
SN_LOCAL void eliminate_pair(const SnModel *m, SnWorld *w, const SnSuper *u, int p) {
  sn_real *x = w->hessian + u->col[p] * m->nv, *y = w->hessian + u->col[p + 1] * m->nv;
  SixRows six;
  for (int i = 0; i < 6; ++i) {
    six.row[i] = u->value + i * u->ld;
    six.s[i] = -w->hessian_inv[u->row + i] * six.row[i][p];
    six.t[i] = -w->hessian_inv[u->row + i] * six.row[i][p + 1];
  }
  for (int k = 0, start = 0; start <= p; ++k) {
    const int end = sn_mini(w->hessian_run[k], p + 1), at = u->col[start];
    add_run(&six, start, end - start, x + at, y + at);
    start = end;
  }
  sn_real other = 0;
  add_run(&six, p + 1, 1, &other, y + u->col[p + 1]);
}

// Takes from the dense H what the elimination of a supernode takes from the rows of its common columns from column
// `from` on, four rows of the supernode at a time.
SN_LOCAL void eliminate_columns(const SnModel *m, SnWorld *w, SnLane *lane, const SnSuper *u, int from) {
  (void)lane;
  for (int first = 0; first < u->size; first += 4) {
    SnFourRows four;
    for (int i = 0; i < 4; ++i) {
      const int r = sn_mini(first + i, u->size - 1);
      four.row[i] = u->value + r * u->ld;
      four.weight[i] = first + i < u->size ? -w->hessian_inv[u->row + r] : 0;
    }
#if !defined(SN_SERIAL) && !defined(SN_PACK)
    if (sn_has_lane_for_row(lane)) {
      sn_part_add_products(m, w, lane, u->n, u->col, four, false);
      continue;
    }
#endif
    SN_FOR(k, u->n - from) {
      const int p = from + k;
      const sn_real t[4] = {four.weight[0] * four.row[0][p], four.weight[1] * four.row[1][p],
                            four.weight[2] * four.row[2][p], four.weight[3] * four.row[3][p]};
      sn_add_rows(w->hessian + u->col[p] * m->nv, u->col, four.row, t, p + 1);
    }
  }
}

// The same from all of them.
SN_LOCAL void eliminate_below(const SnModel *m, SnWorld *w, SnLane *lane, const SnSuper *u) {
  const bool by_pairs = u->size == 6 && !sn_has_lane_for_row(lane) && find_runs(w, lane, u);
  const int pairs = by_pairs ? u->n / 2 : 0;
  SN_FOR(k, pairs) eliminate_pair(m, w, u, 2 * k);
  eliminate_columns(m, w, lane, u, 2 * pairs);
}

#if !defined(SN_PACK)
SN_FUNC void sn_factor_eliminate(const SnModel *m, SnWorld *w, SnLane *lane) {
#if !defined(SN_SERIAL)
  if (is_for_warp(m, lane)) {
    sn_warp_eliminate(m, w, lane);
    return;
  }
#endif
  for (int s = w->hessian_nsuper[0] - 1; s >= 0; --s) {
    const SnSuper u = sn_super(m, w, s);
#if !defined(SN_SERIAL)
    if (sn_has_lane_for_row(lane))
      sn_part_within(m, w, lane, u);
    else
#endif
      eliminate_within(m, w, lane, &u);
    eliminate_below(m, w, lane, &u);
    SN_SYNC(lane);
  }
}
#endif

// Updates the rows r, r - 1, .. 0 of a supernode; g: the values of v at its columns. False where a pivot would lose
// most of its digits.
SN_LOCAL bool update_super(SnWorld *w, SnLane *lane, const SnSuper *u, int r, sn_real *SN_RESTRICT g, sn_real *s) {
  for (; r >= 0; --r) {
    sn_real *SN_RESTRICT row = u->value + r * u->ld;
    const int n = u->n + r;
    const sn_real p = g[n], inv = w->hessian_inv[u->row + r], pivot = row[n] + *s * p * p, ratio = pivot * inv;
    const sn_real pinv = p * inv, sp = *s * p;
    if (!(ratio > SN_R(1e-3))) return false;
    SN_FOR(k, n) {
      g[k] -= pinv * row[k];
      row[k] = ratio * row[k] + sp * g[k];
    }
    SN_SYNC(lane);
    SN_ONE(lane) {
      row[n] = pivot;
      w->hessian_inv[u->row + r] = 1 / pivot;
    }
    *s /= ratio;
  }
  return true;
}

#if !defined(SN_PACK)
SN_FUNC bool sn_factor_update(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, int row, sn_real s) {
  const int *rowcol = w->efc_J_colind + block.adr;
  const sn_real *J = w->efc_J + block.adr + (row - block.row) * block.nnz;
  sn_real *v = w->hessian_update, *g = w->hessian_pack;
  SN_FOR(k, block.nnz) v[rowcol[k]] = J[k];
  SN_SYNC(lane);
  bool good = true;
  for (int j = rowcol[block.nnz - 1]; j >= 0 && good;) {
    const SnSuper u = sn_super(m, w, w->hessian_rowsuper[j]);
    const int r = j - u.row;
    SN_FOR(k, u.n) g[k] = v[u.col[k]];
    SN_FOR(k, r + 1) {
      g[u.n + k] = v[u.row + k];
      v[u.row + k] = 0;
    }
    SN_SYNC(lane);
    good = update_super(w, lane, &u, r, g, &s);
    SN_SYNC(lane);
    SN_FOR(k, u.n) v[u.col[k]] = g[k];
    SN_SYNC(lane);
    j = u.n ? u.col[u.n - 1] : -1;
  }
  if (!good) SN_FOR(i, m->nv) v[i] = 0;
  SN_SYNC(lane);
  return good;
}
#endif

// x <- D^-1 L'^-1 x, from the last row. Every lane solves the rows of a supernode for itself. They are stored when no
// lane reads them any more, a phase later: one phase a supernode.
SN_LOCAL void solve_upper(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *SN_RESTRICT x) {
  sn_bar y[SN_MAXSUPER + 3] = {0};  // behind the last row: zeros for groups of four
  int size = 0, first_row = 0;      // of the supernode that is not stored yet
  for (int s = w->hessian_nsuper[0] - 1; s >= 0; --s) {
    const SnSuper u = sn_super(m, w, s);
    SN_ONE(lane) for (int r = 0; r < size; ++r) x[first_row + r] = y[r];
    size = u.size, first_row = u.row;
    for (int r = 0; r < size; ++r) y[r] = x[u.row + r];
    for (int r = size; r < size + 3; ++r) y[r] = sn_bar_of(0);
    for (int r = size - 1; r >= 0; --r) {
      const sn_real *row = u.value + r * u.ld + u.n;
      y[r] = y[r] * w->hessian_inv[u.row + r];
      for (int i = 0; i < r; ++i) y[i] -= row[i] * y[r];
    }
    for (int first = 0; first < size; first += 4) {
      const sn_real *row[4];
      for (int i = 0; i < 4; ++i) row[i] = u.value + sn_mini(first + i, size - 1) * u.ld;
      SN_FOR(q, u.n)
      x[u.col[q]] -=
          (row[0][q] * y[first] + row[1][q] * y[first + 1]) + (row[2][q] * y[first + 2] + row[3][q] * y[first + 3]);
    }
    SN_SYNC(lane);
  }
  SN_ONE(lane) for (int r = 0; r < size; ++r) x[first_row + r] = y[r];
  SN_SYNC(lane);
}

// The rows of a supernode of x <- L^-1 x; those before it are done.
SN_LOCAL void solve_super(const SnWorld *w, const SnSuper *u, sn_bar *SN_RESTRICT x) {
  sn_bar dot[SN_MAXSUPER + 3];
  for (int first = 0; first < u->size; first += 4) {
    const int last = u->size - 1;
    const sn_real *a = u->value + first * u->ld, *b = u->value + sn_mini(first + 1, last) * u->ld;
    const sn_real *c = u->value + sn_mini(first + 2, last) * u->ld, *d = u->value + sn_mini(first + 3, last) * u->ld;
    sn_bar sum[4] = {0};
    for (int q = 0; q < u->n; ++q) {
      const sn_bar xq = x[u->col[q]];
      sum[0] += a[q] * xq;
      sum[1] += b[q] * xq;
      sum[2] += c[q] * xq;
      sum[3] += d[q] * xq;
    }
    for (int i = 0; i < 4; ++i) dot[first + i] = sum[i];
  }
  for (int r = 0; r < u->size; ++r) {
    const sn_real *row = u->value + r * u->ld + u->n;
    sn_bar t = dot[r];
    for (int i = 0; i < r; ++i) t += row[i] * x[u->row + i];
    x[u->row + r] -= w->hessian_inv[u->row + r] * t;
  }
}

// x <- L^-1 x, from the first row.
SN_LOCAL void solve_lower(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *SN_RESTRICT x) {
  for (int s = 0; s < w->hessian_nsuper[0]; ++s) {
    const SnSuper u = sn_super(m, w, s);
    SN_ONE(lane) solve_super(w, &u, x);
    SN_SYNC(lane);
  }
}

SN_FUNC void sn_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *x) {
#if !defined(SN_SERIAL) && !defined(SN_PACK)
  if (is_for_warp(m, lane)) {
    sn_warp_hessian_solve(m, w, lane, x);
    return;
  }
  if (sn_has_lane_for_row(lane)) {
    sn_part_hessian_solve(m, w, lane, x);
    return;
  }
#endif
  solve_upper(m, w, lane, x);
  solve_lower(m, w, lane, x);
}
