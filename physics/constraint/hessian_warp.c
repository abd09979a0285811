// The factor of the constraint solver's Hessian on the lanes of one warp (hessian_factor.c has it for others): its
// pattern, its values, its solves. Each number gets the terms that it gets there, in the same order, so the bits are
// the same.
//
// Lane i has the dofs i, i + SN_WARP, ..: of the pattern their rows, as bits; of the dense H and of the factor their
// columns; of a solve their numbers. All of these stay in registers, or in memory that no other lane reads before the
// end. What other lanes need of them goes by shuffles, so that each of the three is one phase.
//
// The pattern is that of M and J: the terms of the integrator `discrete` (dynamics/metric.c), which no device has, are
// not in it.
#include "physics/base/bits.h"
#include "physics/base/vec.h"
#include "physics/constraint/constraint_private.h"
#include "physics/constraint/solver_private.h"
#include "physics/dynamics/dynamics.h"

#if !defined(SN_SERIAL) && !defined(SN_PACK)
// How many dofs a lane has is a constant in all of it, so that arrays of them stay in registers.
#define WARP_INLINE __attribute__((always_inline)) SN_INLINE

enum { WARP_WORDS = SN_WARP_ROWS * SN_WARP / 64 };  // of bits, one for each dof

// Where the factor is, read once: numbers that are stored may be any of these, for all that a compiler knows.
typedef struct WarpFactor {
  int nv, nword, nsuper;
  const int *super, *rowsuper;
  const uint64_t *bits;
  sn_real *hessian, *value, *inv;
} WarpFactor;

WARP_INLINE WarpFactor warp_factor_of(const SnModel *m, const SnWorld *w) {
  const WarpFactor f = {m->nv,           m->nword,   w->hessian_nsuper[0], w->hessian_super, w->hessian_rowsuper,
                        w->hessian_bits, w->hessian, w->hessian_factor,    w->hessian_inv};
  return f;
}

// A supernode, and its common columns as bits.
typedef struct WarpSuper {
  int row, size, n, ld;
  sn_real *value;
  uint64_t bits[WARP_WORDS];
} WarpSuper;

WARP_INLINE WarpSuper warp_super(const WarpFactor *f, int s, const int words) {
  const int *d = f->super + 4 * s, row = d[0];
  WarpSuper u = {row, d[1], d[2], d[1] + d[2], f->value + d[3], {0}};
  SN_UNROLL for (int k = 0; k < words; ++k) if (k < f->nword) u.bits[k] = f->bits[row * f->nword + k];
  return u;
}

WARP_INLINE bool warp_has(uint64_t word, int bit) { return (word >> (bit % 64) & 1) != 0; }

// Where in a row of the supernode column c stands, a dof of the lane in place r; -1 where no row has it.
WARP_INLINE int warp_place(const WarpSuper *u, int c, const int r) {
  if (c >= u->row) return c < u->row + u->size ? u->n + c - u->row : -1;
  const uint64_t word = u->bits[r / 2];
  if (!warp_has(word, c)) return -1;
  int place = sn_bit_count(word & (((uint64_t)1 << (c % 64)) - 1));
  SN_UNROLL for (int k = 0; k < r / 2; ++k) place += sn_bit_count(u->bits[k]);
  return place;
}

// Passes the number of dof i to all lanes; x: those of a lane's own dofs, `step` numbers apart.
WARP_INLINE sn_real warp_pass(SnLane *lane, const sn_real *x, const int step, const int rows, int i) {
  sn_real mine = x[0];
  SN_UNROLL for (int r = 1; r < rows; ++r) if (i / SN_WARP == r) mine = x[r * step];
  return sn_shuffle(lane, mine, i % SN_WARP);
}

// ---- pattern

// Rows of the pattern of a lane's dofs.
typedef struct WarpRows {
  uint64_t bits[SN_WARP_ROWS][WARP_WORDS];
} WarpRows;

// Enters the columns of each block in the row of its largest one. A lane looks through a block, all hear of it.
WARP_INLINE void warp_enter_blocks(const SnWorld *w, SnLane *lane, WarpRows *own, const int rows) {
  const int nblock = w->nblock[0], words = (rows + 1) / 2;
  for (int first = 0; first < nblock; first += SN_WARP) {
    uint64_t word[WARP_WORDS] = {0};
    int last = -1;
    if (first + sn_lane_id(lane) < nblock) {
      const SnBlock block = sn_block(w, first + sn_lane_id(lane));
      const int *col = w->efc_J_colind + block.adr;
      for (int q = 0; q < block.nnz - 1; ++q) {
        const int c = col[q];
        SN_UNROLL for (int k = 0; k < words; ++k) if (c / 64 == k) word[k] |= (uint64_t)1 << (c % 64);
      }
      if (block.nnz > 1) last = col[block.nnz - 1];
    }
    for (int b = 0; b < sn_mini(SN_WARP, nblock - first); ++b) {
      const int to = sn_shuffle_int(lane, last, b);
      if (to < 0) continue;
      SN_UNROLL for (int k = 0; k < words; ++k) {
        const uint64_t part = sn_shuffle_word(lane, word[k], b);
        SN_UNROLL for (int r = 0; r < rows; ++r) if (sn_lane_id(lane) + SN_WARP * r == to) own->bits[r][k] |= part;
      }
    }
  }
}

// Enters the columns of each row in that of its parent. In `continues` get their bit the rows that have the columns of
// the row before and that one itself, nothing else.
WARP_INLINE void warp_fill(const SnModel *m, SnLane *lane, WarpRows *own, uint64_t *continues, const int rows) {
  const int words = (rows + 1) / 2;
  uint64_t after[WARP_WORDS] = {0};
  for (int j = m->nv - 1; j >= 0; --j) {
    uint64_t row[WARP_WORDS] = {0};
    int parent = -1;
    bool same = true;
    SN_UNROLL for (int k = 0; k < words; ++k) {
      uint64_t mine = own->bits[0][k];
      SN_UNROLL for (int r = 1; r < rows; ++r) if (j / SN_WARP == r) mine = own->bits[r][k];
      row[k] = sn_shuffle_word(lane, mine, j % SN_WARP);
      if (row[k] != 0) parent = 64 * k + sn_bit_highest(row[k]);
      same = same && after[k] == (row[k] | (j / 64 == k ? (uint64_t)1 << (j % 64) : 0));
    }
    SN_UNROLL for (int k = 0; k < words; ++k) {
      SN_UNROLL for (int r = 0; r < rows; ++r) if (sn_lane_id(lane) + SN_WARP * r == parent) own->bits[r][k] |=
          row[k] & ~(parent / 64 == k ? (uint64_t)1 << (parent % 64) : 0);
      if (same && (j + 1) / 64 == k) continues[k] |= (uint64_t)1 << ((j + 1) % 64);
      after[k] = row[k];
    }
  }
}

WARP_INLINE bool warp_continues(const uint64_t *continues, int i) {
  uint64_t word = continues[0];
  SN_UNROLL for (int k = 1; k < WARP_WORDS; ++k) if (i / 64 == k) word = continues[k];
  return warp_has(word, i);
}

WARP_INLINE void warp_pattern(const SnModel *m, SnWorld *w, SnLane *lane, const int rows) {
  const int nv = m->nv, id = sn_lane_id(lane);
  WarpRows own = {0};
  uint64_t continues[WARP_WORDS] = {0};
  SN_UNROLL for (int r = 0; r < rows; ++r) SN_UNROLL for (int k = 0; k <= r / 2; ++k) if (id + SN_WARP * r < nv)
      own.bits[r][k] = m->M_bits[(id + SN_WARP * r) * m->nword + k];
  warp_enter_blocks(w, lane, &own, rows);
  warp_fill(m, lane, &own, continues, rows);
  SN_UNROLL for (int r = 0; r < rows; ++r)
      SN_UNROLL for (int k = 0; k < (rows + 1) / 2; ++k) if (id + SN_WARP * r < nv && k < m->nword)
          w->hessian_bits[(id + SN_WARP * r) * m->nword + k] = own.bits[r][k];
  int nsuper = 0;
  for (int i = 0; i < nv; ++nsuper) {
    int size = 1;
    while (size < SN_MAXSUPER && i + size < nv && warp_continues(continues, i + size)) ++size;
    if (nsuper % SN_WARP == id) {
      w->hessian_super[4 * nsuper] = i;
      w->hessian_super[4 * nsuper + 1] = size;
    }
    for (int j = i; j < i + size; ++j)
      if (j % SN_WARP == id) w->hessian_rowsuper[j] = nsuper;
    i += size;
  }
  SN_ONE(lane) w->hessian_nsuper[0] = nsuper;
}

// ---- factor

// The columns of a lane in a supernode: value[r][i] is that of dof id + SN_WARP r in row i.
typedef struct WarpColumns {
  int place[SN_WARP_ROWS];
  sn_real value[SN_WARP_ROWS][SN_MAXSUPER];
} WarpColumns;

// Repeats the last row of the supernode up to the end, as groups of four rows want it.
WARP_INLINE void warp_repeat_last(const WarpSuper *u, WarpColumns *own, const int rows) {
  SN_UNROLL for (int r = 0; r < rows; ++r) SN_UNROLL for (int i = 1; i < SN_MAXSUPER; ++i) if (i >= u->size)
      own->value[r][i] = own->value[r][i - 1];
}

// Eliminates the rows of a supernode among themselves; scale: minus the inverses of their pivots, 0 behind the last.
WARP_INLINE void warp_within(SnLane *lane, const WarpSuper *u, WarpColumns *own, sn_real *scale, const int rows) {
  SN_UNROLL for (int j = SN_MAXSUPER - 1; j >= 0; --j) {
    scale[j] = 0;
    if (j >= u->size) continue;
    const sn_real *from = &own->value[0][j];
    const sn_real inv = 1 / sn_max(SN_MINVAL, warp_pass(lane, from, SN_MAXSUPER, rows, u->row + j));
    scale[j] = -inv;
    SN_UNROLL for (int i = 0; i < j; ++i) {
      const sn_real a = warp_pass(lane, from, SN_MAXSUPER, rows, u->row + i) * inv;
      SN_UNROLL for (int r = 0; r < rows; ++r) if (sn_lane_id(lane) + SN_WARP * r <= u->row + i) own->value[r][i] -=
          a * own->value[r][j];
    }
  }
}

// Takes from row p of H, a common column, what the elimination of the supernode takes.
WARP_INLINE void warp_below(const WarpFactor *f, SnLane *lane, const WarpSuper *u, const WarpColumns *own,
                            const sn_real *scale, int p, const int rows) {
  sn_real t[SN_MAXSUPER], last = 0;
  SN_UNROLL for (int i = 0; i < SN_MAXSUPER; ++i) {
    if (i < u->size) last = warp_pass(lane, &own->value[0][i], SN_MAXSUPER, rows, p);
    t[i] = scale[i] * last;
  }
  SN_UNROLL for (int r = 0; r < rows; ++r) {
    const int c = sn_lane_id(lane) + SN_WARP * r;
    if (own->place[r] < 0 || c > p) continue;
    const sn_real *x = own->value[r];
    sn_real h = f->hessian[p * f->nv + c];
    SN_UNROLL for (int i = 0; i < SN_MAXSUPER; i += 4) if (i < u->size) h +=
        (t[i] * x[i] + t[i + 1] * x[i + 1]) + (t[i + 2] * x[i + 2] + t[i + 3] * x[i + 3]);
    f->hessian[p * f->nv + c] = h;
  }
}

WARP_INLINE void warp_eliminate(const SnModel *m, SnWorld *w, SnLane *lane, const int rows) {
  const WarpFactor f = warp_factor_of(m, w);
  for (int s = f.nsuper - 1; s >= 0; --s) {
    const WarpSuper u = warp_super(&f, s, (rows + 1) / 2);
    WarpColumns own;
    sn_real scale[SN_MAXSUPER];
    SN_UNROLL for (int r = 0; r < rows; ++r) {
      const int c = sn_lane_id(lane) + SN_WARP * r;
      own.place[r] = warp_place(&u, c, r);
      SN_UNROLL for (int i = 0; i < SN_MAXSUPER; ++i) {
        const bool has = i < u.size && own.place[r] >= 0 && c <= u.row + i;
        own.value[r][i] = has ? f.hessian[(u.row + i) * f.nv + c] : 0;
      }
    }
    warp_within(lane, &u, &own, scale, rows);
    SN_UNROLL for (int r = 0; r < rows; ++r) {
      const int c = sn_lane_id(lane) + SN_WARP * r;
      SN_UNROLL for (int i = 0; i < SN_MAXSUPER; ++i) {
        if (i >= u.size) continue;
        if (own.place[r] >= 0 && c <= u.row + i) u.value[i * u.ld + own.place[r]] = own.value[r][i];
        if (c == u.row + i) f.inv[c] = -scale[i];
      }
    }
    warp_repeat_last(&u, &own, rows);
    SN_UNROLL for (int k = 0; k < (rows + 1) / 2; ++k) for (uint64_t bits = u.bits[k]; bits; bits &= bits - 1)
        warp_below(&f, lane, &u, &own, scale, 64 * k + sn_bit_lowest(bits), rows);
  }
}

// ---- solves

// x <- D^-1 L'^-1 x for the numbers of a lane, from the last supernode.
WARP_INLINE void warp_upper(const WarpFactor *f, SnLane *lane, const sn_real *inv, sn_real *x, const int rows) {
  for (int s = f->nsuper - 1; s >= 0; --s) {
    const WarpSuper u = warp_super(f, s, (rows + 1) / 2);
    WarpColumns own;
    sn_real y[SN_MAXSUPER];
    SN_UNROLL for (int r = 0; r < rows; ++r) {
      const int c = sn_lane_id(lane) + SN_WARP * r, place = warp_place(&u, c, r);
      own.place[r] = place;
      SN_UNROLL for (int i = 0; i < SN_MAXSUPER; ++i) own.value[r][i] =
          i < u.size && place >= 0 && c < u.row + i ? u.value[i * u.ld + place] : 0;
    }
    warp_repeat_last(&u, &own, rows);
    SN_UNROLL for (int i = SN_MAXSUPER - 1; i >= 0; --i) {
      y[i] = 0;
      if (i >= u.size) continue;
      sn_real scaled[SN_WARP_ROWS];
      SN_UNROLL for (int r = 0; r < rows; ++r) scaled[r] = x[r] * inv[r];
      y[i] = warp_pass(lane, scaled, 1, rows, u.row + i);
      SN_UNROLL for (int r = 0; r < rows; ++r) {
        const int c = sn_lane_id(lane) + SN_WARP * r;
        if (c == u.row + i)
          x[r] = y[i];
        else if (c >= u.row && c < u.row + i)
          x[r] -= own.value[r][i] * y[i];
      }
    }
    SN_UNROLL for (int r = 0; r < rows; ++r) {
      if (own.place[r] < 0 || sn_lane_id(lane) + SN_WARP * r >= u.row) continue;
      const sn_real *v = own.value[r];
      SN_UNROLL for (int i = 0; i < SN_MAXSUPER; i += 4) if (i < u.size) x[r] -=
          (v[i] * y[i] + v[i + 1] * y[i + 1]) + (v[i + 2] * y[i + 2] + v[i + 3] * y[i + 3]);
    }
  }
}

// A row of the factor on its way: its columns as bits, how many of them are done, the number of the next.
typedef struct WarpRow {
  uint64_t bits[WARP_WORDS];
  const sn_real *value;
  int n, done;
  sn_real next, sum;
} WarpRow;

WARP_INLINE WarpRow warp_row(const WarpFactor *f, int i, const int words) {
  WarpRow row = {{0}, NULL, 0, 0, 0, 0};
  if (i >= f->nv) return row;
  const int *d = f->super + 4 * f->rowsuper[i], above = i - d[0];
  SN_UNROLL for (int k = 0; k < words; ++k) row.bits[k] = f->bits[i * f->nword + k];
  row.value = f->value + d[3] + above * (d[1] + d[2]);
  row.n = d[2] + above;
  if (row.n > 0) row.next = row.value[0];
  return row;
}

// x <- L^-1 x for the numbers of a lane, from the first row. A row waits for its next column.
WARP_INLINE void warp_lower(const WarpFactor *f, SnLane *lane, const sn_real *inv, sn_real *x, const int rows) {
  WarpRow row[SN_WARP_ROWS];
  SN_UNROLL for (int r = 0; r < rows; ++r) row[r] = warp_row(f, sn_lane_id(lane) + SN_WARP * r, r / 2 + 1);
  SN_UNROLL for (int slot = 0; slot < rows; ++slot) {
    const int end = sn_mini(f->nv, SN_WARP * (slot + 1));
    for (int b = SN_WARP * slot; b < end; ++b) {
      const sn_real xb = sn_shuffle(lane, x[slot] - inv[slot] * row[slot].sum, b % SN_WARP);
      SN_UNROLL for (int r = slot; r < rows; ++r) {
        if (!warp_has(row[r].bits[slot / 2], b)) continue;
        row[r].sum += row[r].next * xb;
        if (++row[r].done < row[r].n) row[r].next = row[r].value[row[r].done];
      }
    }
    x[slot] -= inv[slot] * row[slot].sum;
  }
}

WARP_INLINE void warp_solve_hessian(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x, const int rows) {
  const WarpFactor f = warp_factor_of(m, w);
  sn_real mine[SN_WARP_ROWS], inv[SN_WARP_ROWS];
  SN_UNROLL for (int r = 0; r < rows; ++r) {
    const int i = sn_lane_id(lane) + SN_WARP * r;
    mine[r] = i < f.nv ? x[i] : 0;
    inv[r] = i < f.nv ? f.inv[i] : 0;
  }
  warp_upper(&f, lane, inv, mine, rows);
  warp_lower(&f, lane, inv, mine, rows);
  SN_UNROLL for (int r = 0; r < rows; ++r) if (sn_lane_id(lane) + SN_WARP * r < f.nv)
      x[sn_lane_id(lane) + SN_WARP * r] = mine[r];
}

// ---- each with a constant number of dofs a lane, so that they stay in registers

SN_FUNC void sn_warp_pattern(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (m->nv <= 2 * SN_WARP)
    warp_pattern(m, w, lane, 2);
  else
    warp_pattern(m, w, lane, SN_WARP_ROWS);
  SN_SYNC(lane);
}

SN_FUNC void sn_warp_eliminate(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (m->nv <= 2 * SN_WARP)
    warp_eliminate(m, w, lane, 2);
  else
    warp_eliminate(m, w, lane, SN_WARP_ROWS);
  SN_SYNC(lane);
}

SN_FUNC void sn_warp_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x) {
  if (m->nv <= 2 * SN_WARP)
    warp_solve_hessian(m, w, lane, x, 2);
  else
    warp_solve_hessian(m, w, lane, x, SN_WARP_ROWS);
  SN_SYNC(lane);
}
#endif
