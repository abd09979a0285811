// The factor L' D L in M's pattern and its solves on the lanes of one warp (inertia.c has them for others). Each entry
// gets the terms that it gets there, in the same order, so the bits are the same.
//
// A solve keeps the rows of x in registers, row i on lane i % SN_WARP. One known number after the other is passed to
// all lanes, and each of them adds it to its own rows: no level waits for memory.
//
// The factor is made level by level. An entry sums over the dofs below its own, whose columns are copied to lie side by
// side (SnFour): w->hessian, which is free outside of sn_hessian_factor, has column j of L in its row j, and D behind
// its last row.
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

#if !defined(SN_SERIAL) && !defined(SN_PACK)
// The sum of a row of a solve: that of inertia_minus_below and inertia_minus_row, term by term.
typedef struct WarpSum {
  sn_real s, s1, s2;
} WarpSum;

// Subtracts term k of n. Before the last they come in threes, one for each sum; what remains of them is for s.
SN_INLINE void warp_subtract(WarpSum *sum, int k, int n, sn_real term) {
  const int place = k < (n - 1) / 3 * 3 ? k % 3 : 0;
  if (k == n - 1)
    sum->s = sum->s - (sum->s1 + sum->s2) - term;
  else if (place == 0)
    sum->s -= term;
  else if (place == 1)
    sum->s1 += term;
  else
    sum->s2 += term;
}

// x <- L^-T x for the rows in sum, from the leaves.
SN_INLINE void warp_solve_leaves(const SnModel *m, SnLane *lane, const sn_real *LD, WarpSum *sum, const int rows) {
  const int nv = m->nv, id = sn_lane_id(lane), *rowadr = m->M_rowadr;
  int last[SN_WARP_ROWS], depth[SN_WARP_ROWS];
  SN_UNROLL for (int r = 0; r < rows; ++r) {
    const int i = id + SN_WARP * r;
    last[r] = i < nv ? m->dof_last[i] : -1;
    depth[r] = i < nv ? m->M_rownnz[i] - 1 : 0;
  }
  SN_UNROLL for (int slot = rows - 1; slot >= 0; --slot) {
    for (int b = sn_mini(nv, SN_WARP * (slot + 1)) - 1; b >= SN_WARP * slot; --b) {
      const sn_real *row = LD + rowadr[b], x = sn_shuffle(lane, sum[slot].s, b % SN_WARP);
      SN_UNROLL for (int r = 0; r <= slot; ++r) {
        const int i = id + SN_WARP * r;
        if (i < b && b <= last[r]) warp_subtract(sum + r, last[r] - b, last[r] - i, row[depth[r]] * x);
      }
    }
  }
}

// x <- L^-1 x for the rows in sum, from the roots. A row waits for its next column.
SN_INLINE void warp_solve_roots(const SnModel *m, SnLane *lane, const sn_real *LD, WarpSum *sum, const int rows) {
  const int nv = m->nv, id = sn_lane_id(lane), *colind = m->M_colind;
  int adr[SN_WARP_ROWS], next[SN_WARP_ROWS], done[SN_WARP_ROWS], n[SN_WARP_ROWS];
  SN_UNROLL for (int r = 0; r < rows; ++r) {
    const int i = id + SN_WARP * r;
    adr[r] = i < nv ? m->M_rowadr[i] : 0;
    n[r] = i < nv ? m->M_rownnz[i] - 1 : 0;
    next[r] = n[r] > 0 ? colind[adr[r]] : -1;
    done[r] = 0;
  }
  SN_UNROLL for (int slot = 0; slot < rows; ++slot) {
    const int end = sn_mini(nv, SN_WARP * (slot + 1));
    for (int b = SN_WARP * slot; b < end; ++b) {
      const sn_real x = sn_shuffle(lane, sum[slot].s, b % SN_WARP);
      SN_UNROLL for (int r = slot; r < rows; ++r) {
        if (b != next[r]) continue;
        const int k = done[r]++;
        warp_subtract(sum + r, k, n[r], LD[adr[r] + k] * x);
        next[r] = k + 1 < n[r] ? colind[adr[r] + k + 1] : -1;
      }
    }
  }
}

// Both, with `rows` rows a lane: a constant where it is called, so that they stay in registers.
SN_INLINE void warp_solve(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_real *x,
                          const int rows) {
  const int nv = m->nv, id = sn_lane_id(lane);
  WarpSum sum[SN_WARP_ROWS];
  SN_UNROLL for (int r = 0; r < rows; ++r) {
    const int i = id + SN_WARP * r;
    const WarpSum begin = {i < nv ? x[i] : 0, 0, 0};
    sum[r] = begin;
  }
  warp_solve_leaves(m, lane, LD, sum, rows);
  SN_UNROLL for (int r = 0; r < rows; ++r) {
    const int i = id + SN_WARP * r;
    const WarpSum begin = {i < nv ? sum[r].s * diag_inv[i] : 0, 0, 0};
    sum[r] = begin;
  }
  warp_solve_roots(m, lane, LD, sum, rows);
  SN_UNROLL for (int r = 0; r < rows; ++r) if (id + SN_WARP * r < nv) x[id + SN_WARP * r] = sum[r].s;
  SN_SYNC(lane);
}

SN_FUNC void sn_warp_solve_LD(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_real *x) {
  if (m->nv <= SN_WARP)
    warp_solve(m, lane, LD, diag_inv, x, 1);
  else if (m->nv <= 2 * SN_WARP)
    warp_solve(m, lane, LD, diag_inv, x, 2);
  else
    warp_solve(m, lane, LD, diag_inv, x, SN_WARP_ROWS);
}

// Four numbers that are loaded at once.
typedef struct SnFour {
#if defined(__CUDACC__)
  sn_real x[4];
#else
  sn_real x __attribute__((vector_size(4 * sizeof(sn_real)), aligned(16)));
#endif
} __attribute__((aligned(16))) SnFour;

// Where the factor is, read once for all levels; width: numbers from column to column.
typedef struct WarpInertia {
  int width;
  const int *rowadr, *colind, *last, *dof;
  sn_real *columns, *pivots;
} WarpInertia;

// Entry c of row i, which has n; deeper rows are done. Stores L(i, c) in the row, or D(i) in D.
SN_INLINE void warp_factor_entry(const WarpInertia *f, sn_real *mat, sn_real *D, int i, int c, int n) {
  const int adr = f->rowadr[i], last = f->last[i], j = c < n - 1 ? f->colind[adr + c] : i;
  const sn_real *of_i = f->columns + i * f->width, *of_j = f->columns + j * f->width, *pivots = f->pivots;
  sn_real entry = mat[adr + c], diag = mat[adr + n - 1];
  for (int first = (i + 1) / 4 * 4; first <= last; first += 4) {
    const SnFour a = *(const SnFour *)(of_i + first), b = *(const SnFour *)(of_j + first);
    const SnFour d = *(const SnFour *)(pivots + first);
    SN_UNROLL for (int q = 0; q < 4; ++q) {
      if (first + q <= i || first + q > last) continue;
      const sn_real L = a.x[q], DL = d.x[q] * L;
      entry -= DL * b.x[q];
      diag -= DL * L;
    }
  }
  if (!(diag >= SN_MINVAL)) diag = SN_MINVAL;
  if (j != i)
    mat[adr + c] = entry * (SN_R(1.0) / diag);
  else
    D[i] = diag;
}

SN_FUNC void sn_warp_factor(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *mat, sn_real *D) {
  const int width = (m->nv + 3) / 4 * 4, *leveladr = m->doflevel_adr;
  const WarpInertia f = {
      width, m->M_rowadr, m->M_colind, m->dof_last, m->doflevel_dof, w->hessian, w->hessian + m->nv * width};
  for (int level = m->ndoflevel - 1; level >= 0; --level) {
    const int *dof = f.dof + leveladr[level], n = level + 1, entries = n * (leveladr[level + 1] - leveladr[level]);
    SN_FOR(e, entries) warp_factor_entry(&f, mat, D, dof[e / n], e % n, n);
    SN_SYNC(lane);  // a lane reads more of a column than belongs to its row
    SN_FOR(e, entries) {
      const int i = dof[e / n], c = e % n;
      if (c < level)
        f.columns[f.colind[f.rowadr[i] + c] * width + i] = mat[f.rowadr[i] + c];
      else
        f.pivots[i] = D[i];
    }
    SN_SYNC(lane);
  }
}
#endif
