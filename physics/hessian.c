// The Hessian of the constraint solver, H = M + J' C J, and its factor L' D L.
//
// C is D on quadratic rows, 0 on satisfied rows and saturated friction loss, and a dense symmetric block on an
// elliptic contact in its cone: with U, N, T, Dm of solver.h, t = U_1.. / T and S = diag(mu, mu_1, ..),
//   C = Dm S [ 1, -mu t' ; -mu t, mu^2 t t' + (mu^2 - mu N / T) (I - t t') ] S.
//
// As for M, elimination runs from the last dof to the first: the leaves of the kinematic tree come first, which
// makes no fill in M itself. Rows of the factor are lists of columns in a dense array. Their pattern: a block of
// J couples all its columns, which is the same as entering the block's columns in the row of its largest one;
// after that, eliminating row k adds its columns to the row of its largest column, its parent, and nowhere else
// that this does not reach in turn (elimination tree). So the pattern costs one pass over bits. It is that of all
// rows, whatever their state, and holds for a whole solve.
//
// When few rows change between 0 and D, the factor is updated for each (Gill, Golub, Murray, Saunders 1974, method
// C1): H + s v v' with v a row of J changes only the rows on the path from its largest column to the root. For j
// along the path, p = v_j, D_j' = D_j + s p^2, and over the columns i of row j
//   v_i' = v_i - p L_ji,   D_j' L_ji' = (D_j' / D_j) D_j L_ji + s p v_i',   then s' = s D_j / D_j'.
#include "physics/solver.h"

SN_INLINE int lowest_bit(uint64_t x) {
#if defined(__CUDACC__)
  return __ffsll((long long)x) - 1;
#else
  return __builtin_ctzll(x);
#endif
}

SN_INLINE int highest_bit(uint64_t x) {
#if defined(__CUDACC__)
  return 63 - __clzll((long long)x);
#else
  return 63 - __builtin_clzll(x);
#endif
}

// Rows of a block whose cost is curved, and their curvature: H += sum_ij J_row(i)' C_ij J_row(j).
typedef struct BlockCurve {
  int num;
  int row[SN_MAXBLOCK];         // offsets in the block
  sn_real weight[SN_MAXBLOCK];  // diagonal C, when cone is false
  bool cone;
  sn_real C[36];  // dense C of an elliptic contact, (num, num)
} BlockCurve;

SN_LOCAL void cone_curve(const SnWorld *w, int row, BlockCurve *c) {
  const SnContact *con = w->contact + w->efc_id[row];
  const sn_real mu = con->mu, Dm = w->efc_D[row] / (mu * mu * (1 + mu * mu)), *x = w->efc_jar + row;
  const int dim = con->dim;
  sn_real S[6], t[6], TT = 0;
  S[0] = mu;
  for (int j = 1; j < dim; ++j) {
    S[j] = con->friction[j - 1];
    t[j] = S[j] * x[j];
    TT += t[j] * t[j];
  }
  const sn_real T = sn_sqrt(TT), bend = mu * mu - mu * mu * x[0] / T;
  for (int j = 1; j < dim; ++j) t[j] /= T;
  c->cone = true;
  c->num = dim;
  for (int i = 0; i < dim; ++i) {
    c->row[i] = i;
    for (int j = 0; j < dim; ++j) {
      sn_real e;
      if (i == 0 || j == 0)
        e = i == j ? 1 : -mu * t[i + j];
      else
        e = (mu * mu - bend) * t[i] * t[j] + (i == j ? bend : 0);
      c->C[i * dim + j] = Dm * S[i] * S[j] * e;
    }
  }
}

SN_LOCAL void block_curve(const SnWorld *w, SnBlock block, BlockCurve *c) {
  c->num = 0;
  c->cone = false;
  if (w->efc_state[block.row] == SN_CSTATE_CONE) {
    cone_curve(w, block.row, c);
    return;
  }
  for (int r = 0; r < block.num; ++r) {
    if (w->efc_state[block.row + r] != SN_CSTATE_QUADRATIC) continue;
    c->row[c->num] = r;
    c->weight[c->num] = w->efc_D[block.row + r];
    ++c->num;
  }
}

// Pattern of the factor below the diagonal, as bits.
SN_LOCAL void pattern_bits(const SnModel *m, SnWorld *w) {
  const int nword = m->nword;
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock block = sn_block(w, b);
    const int *col = w->efc_J_colind + block.adr;
    uint64_t *bits = w->hessian_bits + col[block.nnz - 1] * nword;
    for (int k = 0; k < block.nnz - 1; ++k) bits[col[k] / 64] |= (uint64_t)1 << (col[k] % 64);
  }
  for (int k = m->nv - 1; k >= 0; --k) {
    const uint64_t *bits = w->hessian_bits + k * nword;
    int word = nword - 1;
    while (word >= 0 && bits[word] == 0) --word;
    if (word < 0) continue;
    const int parent = 64 * word + highest_bit(bits[word]);
    uint64_t *up = w->hessian_bits + parent * nword;
    for (int j = 0; j <= word; ++j) up[j] |= bits[j];
    up[parent / 64] &= ~((uint64_t)1 << (parent % 64));
  }
}

// The pattern of the factor as lists, hessian_num and hessian_col.
SN_LOCAL void make_pattern(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv * m->nword) w->hessian_bits[i] = m->M_bits[i];
  SN_SYNC(lane);
  SN_ONE(lane) pattern_bits(m, w);
  SN_SYNC(lane);
  SN_FOR(i, m->nv) {
    int *col = w->hessian_col + i * m->nv, n = 0;
    for (int j = 0; j < m->nword; ++j)
      for (uint64_t bits = w->hessian_bits[i * m->nword + j]; bits; bits &= bits - 1)
        col[n++] = 64 * j + lowest_bit(bits);
    w->hessian_num[i] = n;
    w->hessian_update[i] = 0;
  }
  SN_SYNC(lane);
}

// H = M, on the pattern.
SN_LOCAL void start_hessian(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) {
    const int *col = w->hessian_col + i * m->nv;
    sn_real *row = w->hessian + i * m->nv;
    for (int k = 0; k < w->hessian_num[i]; ++k) row[col[k]] = 0;
    for (int k = m->M_rowadr[i]; k < m->M_rowadr[i] + m->M_rownnz[i]; ++k) row[m->M_colind[k]] = w->M[k];
  }
  SN_SYNC(lane);
}

// out[col[q]] += t[0] J[0][q] + .. + t[3] J[3][q] for q in [0, n), rows of J in `row`.
SN_INLINE void add_rows(sn_real *SN_RESTRICT out, const int *SN_RESTRICT col, const sn_real *const row[4],
                        const sn_real t[4], int n) {
  const sn_real *SN_RESTRICT a = row[0], *SN_RESTRICT b = row[1], *SN_RESTRICT c = row[2], *SN_RESTRICT d = row[3];
  int q = 0;
  for (; q + 4 <= n; q += 4) {
    sn_real s[4];
    for (int k = 0; k < 4; ++k) s[k] = t[0] * a[q + k] + t[1] * b[q + k] + t[2] * c[q + k] + t[3] * d[q + k];
    for (int k = 0; k < 4; ++k) out[col[q + k]] += s[k];
  }
  for (; q < n; ++q) out[col[q]] += t[0] * a[q] + t[1] * b[q] + t[2] * c[q] + t[3] * d[q];
}

// Adds J' C J of one block to H; lanes share its columns. Rows go four at a time, the last of them with weight 0
// where the block has fewer.
SN_LOCAL void add_block(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, const BlockCurve *c) {
  const int *col = w->efc_J_colind + block.adr, n = block.nnz;
  const sn_real *J = w->efc_J + block.adr;
  (void)lane;
  SN_FOR(p, n) {
    for (int first = 0; first < c->num; first += 4) {
      const sn_real *row[4];
      sn_real t[4];
      for (int i = 0; i < 4; ++i) {
        const int k = sn_mini(first + i, c->num - 1);
        row[i] = J + c->row[k] * n;
        t[i] = 0;
        if (first + i >= c->num) continue;
        if (c->cone)
          for (int j = 0; j < c->num; ++j) t[i] += c->C[k * c->num + j] * J[c->row[j] * n + p];
        else
          t[i] = c->weight[k] * row[i][p];
      }
      add_rows(w->hessian + col[p] * m->nv, col, row, t, p + 1);
    }
  }
}

// Adds all rows. A scalar row of one column needs no block.
SN_LOCAL void add_rows_of_all(const SnModel *m, SnWorld *w, SnLane *lane) {
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock block = sn_block(w, b);
    if (block.nnz == 1 && w->efc_type[block.row] != SN_CNSTR_CONTACT_ELLIPTIC) {
      const sn_real *J = w->efc_J + block.adr;
      const int k = w->efc_J_colind[block.adr] * (m->nv + 1);
      for (int r = 0; r < block.num; ++r) SN_ONE(lane)
      if (w->efc_state[block.row + r] == SN_CSTATE_QUADRATIC) w->hessian[k] += w->efc_D[block.row + r] * J[r] * J[r];
      SN_SYNC(lane);
      continue;
    }
    BlockCurve c;
    block_curve(w, block, &c);
    if (c.num == 0) continue;
    add_block(m, w, lane, block, &c);
    SN_SYNC(lane);
  }
}

// Rows that end at k and are eliminated together: each has the columns of the one before and that one itself.
SN_LOCAL int supernode_size(const SnModel *m, const SnWorld *w, int k) {
  int size = 1;
  while (size < SN_MAXSUPER && k - size >= 0) {
    const int i = k - size, n = w->hessian_num[i + 1];
    if (w->hessian_num[i] != n - 1 || w->hessian_col[(i + 1) * m->nv + n - 1] != i) break;
    ++size;
  }
  return size;
}

// Eliminates rows b..b+size-1 among themselves. `pack` gets the values of each at the n columns that all of them
// have, row after row.
SN_LOCAL void eliminate_within(const SnModel *m, SnWorld *w, SnLane *lane, int b, int size, sn_real *pack) {
  const int *col = w->hessian_col + b * m->nv, n = w->hessian_num[b];
  SN_FOR(r, size) {
    const sn_real *row = w->hessian + (b + r) * m->nv;
    for (int q = 0; q < n; ++q) pack[r * n + q] = row[col[q]];
  }
  SN_SYNC(lane);
  for (int j = size - 1; j >= 0; --j) {
    const sn_real *pivot = w->hessian + (b + j) * m->nv + b, *SN_RESTRICT from = pack + j * n;
    const sn_real inv = 1 / sn_max(SN_MINVAL, pivot[j]);
    SN_ONE(lane) w->hessian_inv[b + j] = inv;
    SN_FOR(i, j) {
      sn_real *row = w->hessian + (b + i) * m->nv + b, *SN_RESTRICT to = pack + i * n;
      const sn_real a = pivot[i] * inv;
      for (int q = 0; q < n; ++q) to[q] -= a * from[q];
      for (int q = 0; q <= i; ++q) row[q] -= a * pivot[q];
    }
    SN_SYNC(lane);
  }
}

// Eliminates from the last row to the first, a supernode at a time. Row k keeps D_k L_k; hessian_inv has 1 / D_k.
SN_LOCAL void eliminate(const SnModel *m, SnWorld *w, SnLane *lane) {
  for (int k = m->nv - 1; k >= 0;) {
    const int size = supernode_size(m, w, k), b = k - size + 1, n = w->hessian_num[b];
    const int *col = w->hessian_col + b * m->nv;
    sn_real *pack = w->hessian_pack;
    eliminate_within(m, w, lane, b, size, pack);
    SN_FOR(p, n) {
      sn_real *out = w->hessian + col[p] * m->nv;
      for (int first = 0; first < size; first += 4) {
        const sn_real *row[4];
        sn_real t[4];
        for (int i = 0; i < 4; ++i) {
          const int r = sn_mini(first + i, size - 1);
          row[i] = pack + r * n;
          t[i] = first + i < size ? -row[i][p] * w->hessian_inv[b + r] : 0;
        }
        add_rows(out, col, row, t, p + 1);
      }
    }
    SN_FOR(r, size) {
      sn_real *row = w->hessian + (b + r) * m->nv;
      for (int q = 0; q < n; ++q) row[col[q]] = pack[r * n + q];
    }
    SN_SYNC(lane);
    k = b - 1;
  }
}

SN_FUNC void sn_hessian_factor(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int status = w->hessian_status[0];
  if (status == SN_HESSIAN_EXACT) return;
  if (status == SN_HESSIAN_NONE) make_pattern(m, w, lane);
  start_hessian(m, w, lane);
  add_rows_of_all(m, w, lane);
  eliminate(m, w, lane);
  SN_FOR(i, w->nefc[0]) w->hessian_state[i] = w->efc_state[i];
  SN_ONE(lane) w->hessian_status[0] = SN_HESSIAN_EXACT;
  SN_SYNC(lane);
}

// Changes the factor to that of H + s v v', v row `row` of J, in `block`. False, with the factor spoilt, where a
// pivot would lose most of its digits.
SN_LOCAL bool update_row(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, int row, sn_real s) {
  const int *rowcol = w->efc_J_colind + block.adr;
  const sn_real *J = w->efc_J + block.adr + (row - block.row) * block.nnz;
  sn_real *v = w->hessian_update;
  SN_FOR(k, block.nnz) v[rowcol[k]] = J[k];
  SN_SYNC(lane);
  bool good = true;
  for (int j = rowcol[block.nnz - 1]; j >= 0 && good;) {
    sn_real *out = w->hessian + j * m->nv;
    const int *col = w->hessian_col + j * m->nv, n = w->hessian_num[j];
    const sn_real p = v[j], d = out[j], inv = w->hessian_inv[j], pivot = d + s * p * p, ratio = pivot * inv, sp = s * p;
    good = ratio > SN_R(1e-3);
    SN_FOR(k, n) {
      const int i = col[k];
      v[i] -= p * (out[i] * inv);
      out[i] = ratio * out[i] + sp * v[i];
    }
    SN_SYNC(lane);
    SN_ONE(lane) {
      v[j] = 0;
      out[j] = pivot;
      w->hessian_inv[j] = 1 / pivot;
    }
    s /= ratio;
    j = n ? col[n - 1] : -1;
  }
  if (!good) SN_FOR(i, m->nv) v[i] = 0;
  SN_SYNC(lane);
  return good;
}

SN_FUNC void sn_hessian_refresh(const SnModel *m, SnWorld *w, SnLane *lane, int changed, int cones) {
  const int status = w->hessian_status[0];
  const bool made = status == SN_HESSIAN_UPDATED || status == SN_HESSIAN_EXACT;
  if (made && changed == 0 && cones == 0) return;
  bool good = made && cones == 0 && changed <= SN_MAXUPDATE;
  for (int b = 0; b < w->nblock[0] && good; ++b) {
    const SnBlock block = sn_block(w, b);
    for (int r = block.row; r < block.row + block.num && good; ++r) {
      const int was = w->hessian_state[r] == SN_CSTATE_QUADRATIC, is = w->efc_state[r] == SN_CSTATE_QUADRATIC;
      if (was != is) good = update_row(m, w, lane, block, r, (sn_real)(is - was) * w->efc_D[r]);
    }
  }
  SN_SYNC(lane);
  if (good) {
    SN_FOR(i, w->nefc[0]) w->hessian_state[i] = w->efc_state[i];
    SN_ONE(lane) w->hessian_status[0] = SN_HESSIAN_UPDATED;
    SN_SYNC(lane);
    return;
  }
  SN_ONE(lane)
  if (made) w->hessian_status[0] = SN_HESSIAN_PATTERN;
  SN_SYNC(lane);
  sn_hessian_factor(m, w, lane);
}

// x <- L^-1 x for several lanes: each row takes what column k gives it, in the order in which a single
// lane sums the row.
SN_LOCAL void solve_lower(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x) {
  for (int k = 0; k < m->nv; ++k) {
    SN_ONE(lane) {
      const int *col = w->hessian_col + k * m->nv;
      const sn_real *row = w->hessian + k * m->nv;
      sn_real s = 0;
      for (int q = 0; q < w->hessian_num[k]; ++q) s += row[col[q]] * x[col[q]];
      x[k] -= w->hessian_inv[k] * s;
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x) {
  for (int k = m->nv - 1; k >= 0; --k) {
    const sn_real *row = w->hessian + k * m->nv;
    const int *col = w->hessian_col + k * m->nv;
    const sn_real s = x[k] * w->hessian_inv[k];
    SN_FOR(q, w->hessian_num[k]) x[col[q]] -= row[col[q]] * s;
    SN_SYNC(lane);
  }
  SN_FOR(k, m->nv) x[k] *= w->hessian_inv[k];
  SN_SYNC(lane);
  solve_lower(m, w, lane, x);
}
