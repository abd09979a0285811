// The factor of the constraint solver's Hessian where lanes pass numbers by shuffles: parts of a warp, and a warp with
// more dofs than hessian_warp.c holds (hessian_factor.c has it for others). Each number gets the terms that it gets
// there, in the same order, so the bits are the same.
//
// Each of at most SN_MAXSUPER rows of a supernode can have a lane, or each of its own columns. These stay in registers
// while the supernode is eliminated; what other columns need of them goes by shuffles.
#include "physics/base/bits.h"
#include "physics/base/vec.h"
#include "physics/constraint/constraint_private.h"
#include "physics/constraint/solver_private.h"

#if !defined(SN_SERIAL) && !defined(SN_PACK)
SN_FUNC void sn_part_enter_blocks(SnWorld *w, SnLane *lane) {
  const int nblock = w->nblock[0], id = sn_lane_id(lane), lanes = sn_lane_count(lane);
  for (int first = 0; first < nblock; first += lanes) {
    uint64_t word = 0;
    int last = -1;
    if (first + id < nblock) {
      const SnBlock block = sn_block(w, first + id);
      const int *col = w->efc_J_colind + block.adr;
      for (int k = 0; k < block.nnz - 1; ++k) sn_bit_set(&word, col[k]);
      if (block.nnz > 1) last = col[block.nnz - 1];
    }
    for (int b = 0; b < sn_mini(lanes, nblock - first); ++b) {
      const int to = sn_shuffle_int(lane, last, b);
      const uint64_t bits = sn_shuffle_word(lane, word, b);
      if (to >= 0 && sn_is_mine(lane, to)) w->hessian_bits[to] |= bits;
    }
  }
  SN_SYNC(lane);
}

// Each of as many columns as there are lanes is on one of them. For each of as many rows of H, the lane that has its
// column passes what the four rows have there.
SN_FUNC void sn_part_add_products(const SnModel *m, SnWorld *w, SnLane *lane, int n, const int *col, SnFourRows four,
                                  bool one) {
  const int id = sn_lane_id(lane), lanes = sn_lane_count(lane), nv = m->nv;
  sn_real *H = w->hessian;
  for (int first = 0; first < n; first += lanes) {
    const int mine = first + id, own = mine < n ? col[mine] : 0;
    sn_real t[4], x[4];
    SN_UNROLL for (int i = 0; i < 4; ++i) t[i] = mine < n ? four.weight[i] * four.row[i][mine] : 0;
    for (int before = 0; before <= first; before += lanes) {
      const int q = before + id, to = q < n ? col[q] : 0;
      SN_UNROLL for (int i = 0; i < 4; ++i) x[i] = q < n ? four.row[i][q] : 0;
      for (int k = 0; k < sn_mini(lanes, n - first); ++k) {
        sn_real tk[4];
        SN_UNROLL for (int i = 0; i < 4; ++i) tk[i] = one && i > 0 ? 0 : sn_shuffle(lane, t[i], k);
        sn_real *entry = H + sn_shuffle_int(lane, own, k) * nv + to;
        if (q > first + k) continue;
        *entry += one ? tk[0] * x[0] : (tk[0] * x[0] + tk[1] * x[1]) + (tk[2] * x[2] + tk[3] * x[3]);
      }
    }
  }
}

// Takes from the numbers x of a column in the rows of a supernode what the elimination of row j takes; own: the lane's
// own column of the supernode, inv: the inverse of the pivot.
SN_INLINE void part_eliminate_row(SnLane *lane, const int j, const sn_real *own, sn_real inv, sn_real *x) {
  SN_UNROLL for (int i = 0; i < j; ++i) x[i] -= sn_shuffle(lane, own[j], i) * inv * x[j];
}

SN_FUNC void sn_part_within(const SnModel *m, SnWorld *w, SnLane *lane, SnSuper u) {
  const int id = sn_lane_id(lane), lanes = sn_lane_count(lane), size = u.size;
  const sn_real *from = w->hessian + u.row * m->nv;
  sn_real own[SN_MAXSUPER], inv[SN_MAXSUPER];
  SN_UNROLL for (int i = 0; i < SN_MAXSUPER; ++i) own[i] = i < size && id <= i ? from[i * m->nv + u.row + id] : 0;
  SN_UNROLL for (int j = SN_MAXSUPER - 1; j >= 0; --j) {
    inv[j] = 0;
    if (j >= size) continue;
    inv[j] = 1 / sn_max(SN_MINVAL, sn_shuffle(lane, own[j], j));
    part_eliminate_row(lane, j, own, inv[j], own);  // nobody reads what a lane has above its diagonal
  }
  SN_UNROLL for (int i = 0; i < SN_MAXSUPER; ++i) {
    if (i < size && id <= i) u.value[i * u.ld + u.n + id] = own[i];
    if (i < size && id == i) w->hessian_inv[u.row + i] = inv[i];
  }
  for (int first = 0; first < u.n; first += lanes) {
    const int q = first + id, col = q < u.n ? u.col[q] : 0;
    sn_real x[SN_MAXSUPER];
    SN_UNROLL for (int i = 0; i < SN_MAXSUPER; ++i) x[i] = i < size && q < u.n ? from[i * m->nv + col] : 0;
    SN_UNROLL for (int j = SN_MAXSUPER - 1; j > 0; --j) if (j < size) part_eliminate_row(lane, j, own, inv[j], x);
    SN_UNROLL for (int i = 0; i < SN_MAXSUPER; ++i) if (i < size && q < u.n) u.value[i * u.ld + q] = x[i];
  }
  SN_SYNC(lane);
}

// x <- D^-1 L'^-1 x with a lane for each row of a supernode, to the same bits.
SN_LOCAL void part_upper(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x) {
  const int id = sn_lane_id(lane);
  for (int s = w->hessian_nsuper[0] - 1; s >= 0; --s) {
    const SnSuper u = sn_super(m, w, s);
    sn_real mine = id < u.size ? x[u.row + id] : 0;
    for (int r = u.size - 1; r >= 0; --r) {
      if (id == r) mine = mine * w->hessian_inv[u.row + r];
      const sn_real y = sn_shuffle(lane, mine, r);
      if (id < r) mine -= u.value[r * u.ld + u.n + id] * y;
    }
    if (id < u.size) x[u.row + id] = mine;
    for (int first = 0; first < u.size; first += 4) {
      const sn_real *row[4];
      sn_real y[4];
      for (int i = 0; i < 4; ++i) {
        const int at = sn_mini(first + i, u.size - 1);
        row[i] = u.value + at * u.ld;
        y[i] = sn_shuffle(lane, mine, at);
        if (first + i > at) y[i] = 0;
      }
      SN_FOR(q, u.n)
      x[u.col[q]] -= (row[0][q] * y[0] + row[1][q] * y[1]) + (row[2][q] * y[2] + row[3][q] * y[3]);
    }
    SN_SYNC(lane);
  }
}

// x <- L^-1 x likewise.
SN_LOCAL void part_lower(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x) {
  const int id = sn_lane_id(lane);
  for (int s = 0; s < w->hessian_nsuper[0]; ++s) {
    const SnSuper u = sn_super(m, w, s);
    const sn_real *row = u.value + sn_mini(id, u.size - 1) * u.ld;
    sn_real sum = 0, mine = 0;
    for (int q = 0; q < u.n && id < u.size; ++q) sum += row[q] * x[u.col[q]];
    for (int r = 0; r < u.size; ++r) {
      if (id == r) mine = x[u.row + r] - w->hessian_inv[u.row + r] * sum;
      const sn_real done = sn_shuffle(lane, mine, r);
      if (id > r && id < u.size) sum += row[u.n + r] * done;
    }
    if (id < u.size) x[u.row + id] = mine;
    SN_SYNC(lane);
  }
}

SN_FUNC void sn_part_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x) {
  part_upper(m, w, lane, x);
  part_lower(m, w, lane, x);
}
#endif
