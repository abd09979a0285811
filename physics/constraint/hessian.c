// The Hessian of the constraint solver, H = M + J' C J, and its factor L' D L. Under the integrator `discrete` M + B
// stands for M (dynamics/metric.c).
//
// C is D on quadratic rows, 0 on satisfied rows and saturated friction loss, and a dense symmetric block on an
// elliptic contact in its cone: with U, N, T, Dm of solver_private.h, t = U_1.. / T and S = diag(mu, mu_1, ..),
//   C = Dm S [ 1, -mu t' ; -mu t, mu^2 t t' + (mu^2 - mu N / T) (I - t t') ] S.
//
// H is built in a dense array, of which only the pattern of the factor (hessian_factor.c) is in use.
#include "physics/base/vec.h"
#include "physics/constraint/constraint_private.h"
#include "physics/constraint/solver_private.h"
#include "physics/dynamics/dynamics.h"

// Rows of a block whose cost is curved, and their curvature: H += sum_ij J_row(i)' C_ij J_row(j).
typedef struct BlockCurve {
  int num;
  int row[SN_MAXBLOCK];         // offsets in the block, when cone is false
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
  const sn_real T = sn_sqrt(TT), curvature = mu * mu - mu * mu * x[0] / T;
  for (int j = 1; j < dim; ++j) t[j] /= T;
  c->cone = true;
  c->num = dim;
  for (int i = 0; i < dim; ++i) {
    for (int j = 0; j < dim; ++j) {
      sn_real e;
      if (i == 0 || j == 0)
        e = i == j ? 1 : -mu * t[i + j];
      else
        e = (mu * mu - curvature) * t[i] * t[j] + (i == j ? curvature : 0);
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

// r = C x of the rows of a part of a block.
SN_LOCAL void mul_part(const SnWorld *w, SnBlock part, sn_bar *r, const sn_bar *x) {
  BlockCurve c;
  block_curve(w, part, &c);
  for (int i = 0; i < part.num; ++i) r[part.row + i] = sn_bar_of(0);
  for (int i = 0; i < c.num; ++i) {
    if (c.cone)
      r[part.row + i] = sn_dot(c.C + i * c.num, x + part.row, c.num);
    else
      r[part.row + c.row[i]] = c.weight[i] * x[part.row + c.row[i]];
  }
}

SN_FUNC void sn_mul_curvature(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *r, const sn_bar *x) {
  (void)m;
  SN_FOR(b, w->nblock[0]) {
    const SnBlock block = sn_block(w, b);
    for (int start = 0; start < block.num; start += SN_MAXBLOCK) mul_part(w, sn_block_part(block, start), r, x);
  }
  SN_SYNC(lane);
}

// Four rows of J of a block, from the one that `first` says.
SN_INLINE SnFourRows four_rows(const SnWorld *w, SnBlock block, const BlockCurve *c, int first) {
  SnFourRows four;
  for (int i = 0; i < 4; ++i) {
    const int k = sn_mini(first + i, c->num - 1);
    four.row[i] = w->efc_J + block.adr + c->row[k] * block.nnz;
    four.weight[i] = first + i < c->num ? c->weight[k] : 0;
  }
  return four;
}

#if defined(SN_SERIAL)
// Adds J' C J of one block to H, C diagonal. Rows go four at a time.
SN_LOCAL void add_block(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, const BlockCurve *c) {
  const int *col = w->efc_J_colind + block.adr, n = block.nnz;
  (void)lane;
  if (c->num == 1) {
    const sn_real *J = w->efc_J + block.adr + c->row[0] * n, weight = c->weight[0];
    for (int p = 0; p < n; ++p) {
      sn_real *SN_RESTRICT out = w->hessian + col[p] * m->nv;
      const sn_real t = weight * J[p];
      for (int q = 0; q <= p; ++q) out[col[q]] += t * J[q];
    }
    return;
  }
  for (int first = 0; first < c->num; first += 4) {
    const SnFourRows f = four_rows(w, block, c, first);
    for (int p = 0; p < n; ++p) {
      const sn_real t[4] = {f.weight[0] * f.row[0][p], f.weight[1] * f.row[1][p], f.weight[2] * f.row[2][p],
                            f.weight[3] * f.row[3][p]};
      sn_add_rows(w->hessian + col[p] * m->nv, col, f.row, t, p + 1);
    }
  }
}
#else
// What four rows add to the entry of their columns p and q; one alone adds its term only.
SN_INLINE sn_real four_entry(const SnFourRows *f, bool one, int p, int q) {
  const sn_real first = f->weight[0] * f->row[0][p] * f->row[0][q];
  if (one) return first;
  return (first + f->weight[1] * f->row[1][p] * f->row[1][q]) +
         (f->weight[2] * f->row[2][p] * f->row[2][q] + f->weight[3] * f->row[3][p] * f->row[3][q]);
}

// Adds J' C J of one block to H, C diagonal, where several lanes share the entries. Rows p and n - 1 - p of the
// triangle have n + 1 entries together, the longer one first.
SN_LOCAL void add_block(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, const BlockCurve *c) {
  const int *col = w->efc_J_colind + block.adr, n = block.nnz, lanes = sn_lane_count(lane);
  for (int first = 0; first < c->num; first += 4) {
    const SnFourRows f = four_rows(w, block, c, first);
    if (sn_can_shuffle(lane) && !sn_is_warp(lane)) {
      sn_part_add_products(m, w, lane, n, col, f, c->num == 1);
      continue;
    }
    for (int pair = 0, at = sn_lane_id(lane); pair < (n + 1) / 2; at += lanes) {
      for (; at > n; at -= n + 1) ++pair;
      const int longer = n - pair, p = at < longer ? longer - 1 : pair, q = at < longer ? at : at - longer;
      if (pair >= (n + 1) / 2 || (at >= longer && longer - 1 == pair)) continue;  // the middle is its own partner
      w->hessian[col[p] * m->nv + col[q]] += four_entry(&f, c->num == 1, p, q);
    }
  }
}
#endif

// The same for the dense C of an elliptic contact in its cone.
SN_LOCAL void add_cone(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, const BlockCurve *c) {
  const int *col = w->efc_J_colind + block.adr, n = block.nnz;
  const sn_real *J = w->efc_J + block.adr;
  (void)lane;
  SN_FOR(p, n) {
    sn_real *out = w->hessian + col[p] * m->nv;
    for (int i = 0; i < c->num; ++i) {
      sn_real t = 0;
      for (int j = 0; j < c->num; ++j) t += c->C[i * c->num + j] * J[j * n + p];
      for (int q = 0; q <= p; ++q) out[col[q]] += t * J[i * n + q];
    }
  }
}

// Adds a scalar row of one column, on the lane that has the column.
SN_LOCAL void add_single(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block) {
  const sn_real *J = w->efc_J + block.adr;
  const int col = w->efc_J_colind[block.adr];
  if (!sn_is_mine(lane, col)) return;
  sn_real sum = 0;
  for (int r = 0; r < block.num; ++r)
    if (w->efc_state[block.row + r] == SN_CSTATE_QUADRATIC) sum += w->efc_D[block.row + r] * J[r] * J[r];
  w->hessian[col * (m->nv + 1)] += sum;
}

// Adds the terms of the effective inertia beside M.
SN_LOCAL void add_metric(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool fluid = sn_in_fluid(m);
  SN_FOR(i, m->nv) {
    sn_real *row = w->hessian + i * m->nv;
    row[i] += w->efm_diag[i];
    for (int k = m->M_rowadr[i]; fluid && k < m->M_rowadr[i] + m->M_rownnz[i]; ++k)
      row[m->M_colind[k]] += w->efm_fluid[k];
  }
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int k = 0; k < m->ntendon + m->nout; ++k) {
      SnRow row;
      const sn_real s = sn_metric_term(m, w, k, &row);
      for (int p = 0; s != 0 && p < row.n; ++p)
        for (int q = 0; q <= p; ++q) w->hessian[row.col[p] * m->nv + row.col[q]] += s * row.J[p] * row.J[q];
    }
  }
  SN_SYNC(lane);
}

// H = M + J' C J.
SN_LOCAL void assemble_hessian(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_factor_clear(m, w, lane);
  SN_FOR(i, m->nv) {
    sn_real *row = w->hessian + i * m->nv;
    for (int k = m->M_rowadr[i]; k < m->M_rowadr[i] + m->M_rownnz[i]; ++k) row[m->M_colind[k]] = w->M[k];
  }
  SN_SYNC(lane);
  if (sn_has_metric(m)) add_metric(m, w, lane);
  bool waits = false;  // the lane has added what others have not seen
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock block = sn_block(w, b);
    if (block.nnz == 1 && w->efc_type[block.row] != SN_CNSTR_CONTACT_ELLIPTIC) {
      add_single(m, w, lane, block);
      waits = true;
      continue;
    }
    if (waits) SN_SYNC(lane);
    waits = false;
    for (int start = 0; start < block.num; start += SN_MAXBLOCK) {
      const SnBlock part = sn_block_part(block, start);
      BlockCurve c;
      block_curve(w, part, &c);
      if (c.num == 0) continue;
      if (c.cone)
        add_cone(m, w, lane, part, &c);
      else
        add_block(m, w, lane, part, &c);
      SN_SYNC(lane);
    }
  }
  SN_SYNC(lane);
}

#if !defined(SN_PACK)
SN_FUNC void sn_hessian_factor(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int status = w->hessian_status[0];
  if (status == SN_HESSIAN_EXACT) return;
  if (status == SN_HESSIAN_NONE) sn_factor_pattern(m, w, lane);
  assemble_hessian(m, w, lane);
  sn_factor_eliminate(m, w, lane);
  SN_FOR(i, w->nefc[0]) w->hessian_state[i] = w->efc_state[i];
  SN_ONE(lane) w->hessian_status[0] = SN_HESSIAN_EXACT;
  SN_SYNC(lane);
}
#endif

// Updates the factor for each row that became quadratic or ceased to be. False where that failed.
SN_LOCAL bool update_factor(const SnModel *m, SnWorld *w, SnLane *lane) {
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock block = sn_block(w, b);
    for (int r = block.row; r < block.row + block.num; ++r) {
      const int was = w->hessian_state[r] == SN_CSTATE_QUADRATIC, is = w->efc_state[r] == SN_CSTATE_QUADRATIC;
      if (was != is && !sn_factor_update(m, w, lane, block, r, (sn_real)(is - was) * w->efc_D[r])) return false;
    }
  }
  return true;
}

#if !defined(SN_PACK)
SN_FUNC void sn_hessian_refresh(const SnModel *m, SnWorld *w, SnLane *lane, int changed, int cones) {
  const int status = w->hessian_status[0];
  const bool made = status == SN_HESSIAN_UPDATED || status == SN_HESSIAN_EXACT;
  if (made && changed == 0 && cones == 0) return;
  const bool updated = made && cones == 0 && changed <= SN_MAXUPDATE && update_factor(m, w, lane);
  SN_SYNC(lane);
  if (updated) {
    SN_FOR(i, w->nefc[0]) w->hessian_state[i] = w->efc_state[i];
    SN_ONE(lane) w->hessian_status[0] = SN_HESSIAN_UPDATED;
  } else if (made) {
    SN_ONE(lane) w->hessian_status[0] = SN_HESSIAN_PATTERN;
  }
  SN_SYNC(lane);
  if (!updated) sn_hessian_factor(m, w, lane);
}
#endif
