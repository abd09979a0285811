// The Hessian of the constraint solver, H = M + J' C J, and its factor L' D L.
//
// C is D on quadratic rows, 0 on satisfied rows and saturated friction loss, and a dense symmetric block on an
// elliptic contact in its cone: with U, N, T, Dm of solver.h, t = U_1.. / T and S = diag(mu, mu_1, ..),
//   C = Dm S [ 1, -mu t' ; -mu t, mu^2 t t' + (mu^2 - mu N / T) (I - t t') ] S.
//
// As for M, elimination runs from the last dof to the first: the leaves of the kinematic tree come first, which
// makes no fill in M itself. Rows of the factor are lists of columns in a dense array. Their pattern: a block of
// J couples all its columns, which is the same as entering the block's columns in the row of its largest one;
// after that, eliminating row k adds its columns to the row of its largest column and nowhere else that this
// does not reach in turn (elimination tree). So the pattern costs one pass over bits.
#include "physics/solver.h"

SN_INLINE int lowest_bit(uint64_t x) {
#if defined(__CUDACC__)
  return __ffsll((long long)x) - 1;
#else
  return __builtin_ctzll(x);
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

SN_LOCAL BlockCurve block_curve(const SnWorld *w, SnBlock block) {
  BlockCurve c;
  c.num = 0;
  c.cone = false;
  if (w->efc_state[block.row] == SN_CSTATE_CONE) {
    cone_curve(w, block.row, &c);
    return c;
  }
  for (int r = 0; r < block.num; ++r) {
    if (w->efc_state[block.row + r] != SN_CSTATE_QUADRATIC) continue;
    c.row[c.num] = r;
    c.weight[c.num] = w->efc_D[block.row + r];
    ++c.num;
  }
  return c;
}

SN_LOCAL bool is_curved(const SnWorld *w, SnBlock block) {
  for (int r = block.row; r < block.row + block.num; ++r)
    if (w->efc_state[r] == SN_CSTATE_QUADRATIC || w->efc_state[r] == SN_CSTATE_CONE) return true;
  return false;
}

// hessian_bits: pattern of the factor below the diagonal.
SN_LOCAL void factor_pattern(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int nword = m->nword;
  SN_FOR(i, m->nv * nword) w->hessian_bits[i] = m->M_bits[i];
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int b = 0; b < w->nblock[0]; ++b) {
      const SnBlock block = sn_block(w, b);
      if (block.nnz < 2 || !is_curved(w, block)) continue;
      const int *col = w->efc_J_colind + block.adr;
      uint64_t *bits = w->hessian_bits + col[block.nnz - 1] * nword;
      for (int k = 0; k < block.nnz - 1; ++k) bits[col[k] / 64] |= (uint64_t)1 << (col[k] % 64);
    }
    for (int k = m->nv - 1; k >= 0; --k) {
      const uint64_t *bits = w->hessian_bits + k * nword;
      int word = nword - 1;
      while (word >= 0 && bits[word] == 0) --word;
      if (word < 0) continue;
      int parent = 64 * word + 63;
      while (!(bits[word] >> (parent % 64) & 1)) --parent;
      uint64_t *up = w->hessian_bits + parent * nword;
      for (int j = 0; j <= word; ++j) up[j] |= bits[j];
      up[parent / 64] &= ~((uint64_t)1 << (parent % 64));
    }
  }
  SN_SYNC(lane);
}

// Column lists from the bits, and H = M.
SN_LOCAL void start_hessian(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) {
    int *col = w->hessian_col + i * m->nv, n = 0;
    sn_real *row = w->hessian + i * m->nv;
    for (int j = 0; j < m->nword; ++j)
      for (uint64_t bits = w->hessian_bits[i * m->nword + j]; bits; bits &= bits - 1) {
        col[n] = 64 * j + lowest_bit(bits);
        row[col[n++]] = 0;
      }
    w->hessian_num[i] = n;
    for (int k = m->M_rowadr[i]; k < m->M_rowadr[i] + m->M_rownnz[i]; ++k) row[m->M_colind[k]] = w->M[k];
  }
  SN_SYNC(lane);
}

// Adds J' C J of one block to H; lanes share its columns.
SN_LOCAL void add_block(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, const BlockCurve *c) {
  const int *col = w->efc_J_colind + block.adr, n = block.nnz;
  const sn_real *J = w->efc_J + block.adr;
  (void)lane;
  SN_FOR(p, n) {
    sn_real *row = w->hessian + col[p] * m->nv;
    for (int i = 0; i < c->num; ++i) {
      sn_real t = 0;
      if (c->cone)
        for (int j = 0; j < c->num; ++j) t += c->C[i * c->num + j] * J[c->row[j] * n + p];
      else
        t = c->weight[i] * J[c->row[i] * n + p];
      const sn_real *Ji = J + c->row[i] * n;
      for (int q = 0; q <= p; ++q) row[col[q]] += t * Ji[q];
    }
  }
}

// Eliminates from the last row to the first. Row k keeps D_k L_k; hessian_inv has 1 / D_k.
SN_LOCAL void eliminate(const SnModel *m, SnWorld *w, SnLane *lane) {
  for (int k = m->nv - 1; k >= 0; --k) {
    const sn_real *row = w->hessian + k * m->nv;
    const int *col = w->hessian_col + k * m->nv, n = w->hessian_num[k];
    const sn_real inv = 1 / sn_max(SN_MINVAL, row[k]);
    SN_ONE(lane) w->hessian_inv[k] = inv;
    SN_FOR(p, n) {
      sn_real *out = w->hessian + col[p] * m->nv;
      const sn_real a = row[col[p]] * inv;
      for (int q = 0; q <= p; ++q) out[col[q]] -= a * row[col[q]];
    }
    SN_SYNC(lane);
  }
}

SN_FUNC void sn_hessian_factor(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (w->hessian_valid[0]) return;
  factor_pattern(m, w, lane);
  start_hessian(m, w, lane);
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock block = sn_block(w, b);
    const BlockCurve c = block_curve(w, block);
    if (c.num == 0) continue;
    add_block(m, w, lane, block, &c);
    SN_SYNC(lane);
  }
  eliminate(m, w, lane);
  SN_ONE(lane) w->hessian_valid[0] = 1;
  SN_SYNC(lane);
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
