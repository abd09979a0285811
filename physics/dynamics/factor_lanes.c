// The factor L' D L in M's pattern and its solves on several lanes (inertia.c has them for one). Each entry gets the
// terms that it gets there, in the same order, so the bits are the same.
//
// A solve keeps the rows of x in registers, row i on lane i % n of n lanes. One known number after the other is passed
// to all lanes, and each of them adds it to its own rows: no level waits for memory.
//
// The factor is made level by level. An entry sums over the dofs below its own, whose columns are copied to lie side by
// side (SnFour): w->hessian, which is free outside of sn_hessian_factor, has column j of L in its row j, and D behind
// its last row. A lane makes one entry of a row, or two or four where there are more of them than lanes: these share
// what they read of the row.
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

#if !defined(SN_SERIAL) && !defined(SN_PACK)
enum {
  MOST_ROWS = 8,    // of x that a lane keeps
  FACTOR_WIDTH = 4  // entries of a row that a lane makes at once
};

// The sum of a row of a solve: that of inertia_minus_below and inertia_minus_row, term by term. Before the last term
// they come in threes, one for each part; what remains of them is for the first. The part whose turn it is stands
// first.
typedef struct RowSum {
  sn_real part[3];
  int left, rest;  // terms before the last one that are to come; those of them that make no three
} RowSum;

// Begins the sum x - ... of n terms.
SN_INLINE RowSum row_sum(sn_real x, int n) {
  const RowSum sum = {{x, 0, 0}, n - 1, (n - 1) % 3};
  return sum;
}

// Subtracts the next term.
SN_INLINE void row_subtract(RowSum *sum, sn_real term) {
  sn_real *part = sum->part;
  if (sum->left == 0) {
    // the others are minus the sums there, but for the sign of a zero
    part[0] = part[0] - (0 - (part[1] + part[2])) - term;
    return;
  }
  const sn_real done = part[0] - term;
  const bool turns = sum->left-- > sum->rest;
  part[0] = turns ? part[1] : done;
  part[1] = turns ? part[2] : part[1];
  part[2] = turns ? done : part[2];
}

// x <- L^-T x for the rows of a lane, from the leaves.
SN_INLINE void lanes_solve_leaves(const SnModel *m, SnLane *lane, const sn_real *LD, sn_real *x, const int rows) {
  const int nv = m->nv, id = sn_lane_id(lane), lanes = sn_lane_count(lane), *rowadr = m->M_rowadr;
  int last[MOST_ROWS], depth[MOST_ROWS];
  RowSum sum[MOST_ROWS];
  SN_UNROLL for (int r = 0; r < rows; ++r) {
    const int i = id + lanes * r;
    last[r] = i < nv ? m->dof_last[i] : -1;
    depth[r] = i < nv ? m->M_rownnz[i] - 1 : 0;
    sum[r] = row_sum(x[r], last[r] - i);
  }
  SN_UNROLL for (int slot = rows - 1; slot >= 0; --slot) {
    for (int b = sn_mini(nv, lanes * (slot + 1)) - 1; b >= lanes * slot; --b) {
      const sn_real *row = LD + rowadr[b], xb = sn_shuffle(lane, sum[slot].part[0], b - lanes * slot);
      SN_UNROLL for (int r = 0; r <= slot; ++r) {
        if (id + lanes * r < b && b <= last[r]) row_subtract(sum + r, row[depth[r]] * xb);
      }
    }
  }
  SN_UNROLL for (int r = 0; r < rows; ++r) x[r] = sum[r].part[0];
}

// x <- L^-1 x for the rows of a lane, from the roots. A row waits for its next column.
SN_INLINE void lanes_solve_roots(const SnModel *m, SnLane *lane, const sn_real *LD, sn_real *x, const int rows) {
  const int nv = m->nv, id = sn_lane_id(lane), lanes = sn_lane_count(lane), *colind = m->M_colind;
  int at[MOST_ROWS], next[MOST_ROWS];
  RowSum sum[MOST_ROWS];
  SN_UNROLL for (int r = 0; r < rows; ++r) {
    const int i = id + lanes * r, n = i < nv ? m->M_rownnz[i] - 1 : 0;
    at[r] = i < nv ? m->M_rowadr[i] : 0;
    next[r] = n > 0 ? colind[at[r]] : -1;
    sum[r] = row_sum(x[r], n);
  }
  SN_UNROLL for (int slot = 0; slot < rows; ++slot) {
    const int end = sn_mini(nv, lanes * (slot + 1));
    for (int b = lanes * slot; b < end; ++b) {
      const sn_real xb = sn_shuffle(lane, sum[slot].part[0], b - lanes * slot);
      SN_UNROLL for (int r = slot; r < rows; ++r) {
        if (b != next[r]) continue;
        const bool more = sum[r].left > 0;
        row_subtract(sum + r, LD[at[r]++] * xb);
        next[r] = more ? colind[at[r]] : -1;
      }
    }
  }
  SN_UNROLL for (int r = 0; r < rows; ++r) x[r] = sum[r].part[0];
}

// Both, with `rows` rows a lane: a constant where it is called, so that they stay in registers.
SN_INLINE void lanes_solve(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_real *x,
                           const int rows) {
  const int id = sn_lane_id(lane), lanes = sn_lane_count(lane);
  sn_real mine[MOST_ROWS];
  SN_UNROLL for (int r = 0; r < rows; ++r) mine[r] = id + lanes * r < m->nv ? x[id + lanes * r] : 0;
  lanes_solve_leaves(m, lane, LD, mine, rows);
  SN_UNROLL for (int r = 0; r < rows; ++r) if (id + lanes * r < m->nv) mine[r] *= diag_inv[id + lanes * r];
  lanes_solve_roots(m, lane, LD, mine, rows);
  SN_UNROLL for (int r = 0; r < rows; ++r) if (id + lanes * r < m->nv) x[id + lanes * r] = mine[r];
  SN_SYNC(lane);
}

SN_FUNC bool sn_lanes_solve_LD(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_real *x) {
  const int rows = (m->nv + sn_lane_count(lane) - 1) / sn_lane_count(lane);
  if (!sn_can_shuffle(lane) || rows > (sn_is_warp(lane) ? SN_WARP_ROWS : MOST_ROWS)) return false;
  if (rows <= 1)
    lanes_solve(m, lane, LD, diag_inv, x, 1);
  else if (rows == 2)
    lanes_solve(m, lane, LD, diag_inv, x, 2);
  else if (rows <= 4)
    lanes_solve(m, lane, LD, diag_inv, x, 4);
  else if (!sn_is_warp(lane) && rows <= 6)
    lanes_solve(m, lane, LD, diag_inv, x, 6);
  else if (!sn_is_warp(lane))
    lanes_solve(m, lane, LD, diag_inv, x, 8);
  return true;
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
typedef struct LanesInertia {
  int width;
  const int *rowadr, *colind, *last, *leveladr, *dof;
  sn_real *columns, *pivots;
} LanesInertia;

// `width` entries of row i from c on, of n; deeper rows are done. Stores L(i, c) in the row, or D(i) in D. width: a
// constant where it is called.
SN_INLINE void lanes_factor_entries(const LanesInertia *f, sn_real *mat, sn_real *D, int i, int c, int n,
                                    const int width) {
  const int last = f->last[i], *col = f->colind + f->rowadr[i];
  sn_real *row = mat + f->rowadr[i], entry[FACTOR_WIDTH], diag = row[n - 1];
  const sn_real *of_i = f->columns + i * f->width, *of[FACTOR_WIDTH];
  SN_UNROLL for (int e = 0; e < width; ++e) {
    const int at = sn_mini(c + e, n - 1);
    of[e] = at < n - 1 ? f->columns + col[at] * f->width : of_i;
    entry[e] = row[at];
  }
  for (int first = (i + 1) / 4 * 4; first <= last; first += 4) {
    const SnFour a = *(const SnFour *)(of_i + first), d = *(const SnFour *)(f->pivots + first);
    SnFour b[FACTOR_WIDTH];
    SN_UNROLL for (int e = 0; e < width; ++e) b[e] = *(const SnFour *)(of[e] + first);
    SN_UNROLL for (int q = 0; q < 4; ++q) {
      if (first + q <= i || first + q > last) continue;
      const sn_real L = a.x[q], DL = d.x[q] * L;
      SN_UNROLL for (int e = 0; e < width; ++e) entry[e] -= DL * b[e].x[q];
      diag -= DL * L;
    }
  }
  if (!(diag >= SN_MINVAL)) diag = SN_MINVAL;
  const sn_real inv = SN_R(1.0) / diag;
  SN_UNROLL for (int e = 0; e < width; ++e) if (c + e < n - 1) row[c + e] = entry[e] * inv;
  if (c + width >= n) D[i] = diag;
}

// The rows of a level, in pieces of `width` entries.
SN_INLINE void lanes_factor_level(const LanesInertia *f, SnLane *lane, sn_real *mat, sn_real *D, int level,
                                  const int width) {
  const int *dof = f->dof + f->leveladr[level], rows = f->leveladr[level + 1] - f->leveladr[level];
  const int pieces = level / width + 1;
  for (int k = 0, piece = sn_lane_id(lane); k < rows; piece += sn_lane_count(lane)) {
    for (; piece >= pieces && k < rows; ++k) piece -= pieces;
    if (k < rows) lanes_factor_entries(f, mat, D, dof[k], piece * width, level + 1, width);
  }
}

SN_FUNC void sn_lanes_factor(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *mat, sn_real *D) {
  const int width = (m->nv + 3) / 4 * 4, lanes = sn_lane_count(lane);
  const LanesInertia f = {width,           m->M_rowadr,     m->M_colind, m->dof_last,
                          m->doflevel_adr, m->doflevel_dof, w->hessian,  w->hessian + m->nv * width};
  for (int level = m->ndoflevel - 1; level >= 0; --level) {
    const int *dof = f.dof + f.leveladr[level], n = level + 1, rows = f.leveladr[level + 1] - f.leveladr[level];
    if (n * rows <= lanes)
      lanes_factor_level(&f, lane, mat, D, level, 1);
    else if (n * rows <= 2 * lanes)
      lanes_factor_level(&f, lane, mat, D, level, 2);
    else
      lanes_factor_level(&f, lane, mat, D, level, FACTOR_WIDTH);
    SN_SYNC(lane);             // a lane reads more of a column than belongs to its row
    if (level == 0) continue;  // nobody reads these columns
    for (int k = 0, c = sn_lane_id(lane); k < rows; c += lanes) {
      for (; c >= n && k < rows; ++k) c -= n;
      if (k == rows) break;
      const int i = dof[k];
      if (c < level)
        f.columns[f.colind[f.rowadr[i] + c] * width + i] = mat[f.rowadr[i] + c];
      else
        f.pivots[i] = D[i];
    }
    SN_SYNC(lane);
  }
}
#endif
