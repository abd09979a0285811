// The matrix A = M - h D of the integrator `implicit`, and solutions with it and with its transpose.
//
// D = d(passive + actuator - bias forces)/dv is not symmetric. It has entries where one dof is on the other's path to
// the root, and there alone: the rows of a path of ancestors, as M has them, and those of simple bodies whose M is
// diagonal. Row i keeps A_ij of its ancestors j and its diagonal in lu_low, A_ji in lu_up at the same place; the row of
// an ancestor is the beginning of the row. Elimination from the leaves to the roots, without exchanges, as MuJoCo does
// it,
//   A_ij -= A_ik A_kj / A_kk    for ancestors i, j of k,
// stays inside these entries. Trees are eliminated side by side.
#include "physics/dynamics/dynamics.h"
#include "physics/step/integrate_private.h"

// Ancestors of dof i, in its own path.
SN_INLINE int implicit_depth(const SnModel *m, int i) { return m->lu_adr[i + 1] - m->lu_adr[i] - 1; }
// Ancestor number r of dof i; number `depth` is i itself.
SN_INLINE int implicit_ancestor(const SnModel *m, int i, int r) {
  return m->dof_simplenum[i] > 0 ? m->body_dofadr[m->dof_bodyid[i]] + r : m->M_colind[m->M_rowadr[i] + r];
}

#if !defined(SN_PACK)
// Row i and column i of A, without rows J'J.
SN_LOCAL void implicit_row(const SnModel *m, SnWorld *w, int i, bool damped) {
  const int adr = m->lu_adr[i], depth = implicit_depth(m, i), row = m->M_rowadr[i];
  const sn_real h = sn_timestep(m, w);
  for (int r = 0; r <= depth; ++r) {
    const int j = implicit_ancestor(m, i, r);
    sn_real M = 0;
    if (m->dof_simplenum[i] == 0) M = w->M[row + r];
    if (r == depth) M = w->M[row + m->M_rownnz[i] - 1];
    w->lu_low[adr + r] = M - h * sn_velocity_slope(m, w, i, j);
    w->lu_up[adr + r] = M - h * sn_velocity_slope(m, w, j, i);
  }
  if (damped) w->lu_low[adr + depth] += h * sn_damping_slope(m->dof_damp + (1 + SN_NPOLY) * i, w->qvel[i]);
}

// A += b J'J within its pattern. Ends with a sync.
SN_LOCAL void implicit_add_JtJ(const SnModel *m, SnWorld *w, SnLane *lane, const SnRow *row, sn_real b) {
  SN_FOR(p, row->n) {
    const int i = row->col[p], adr = m->lu_adr[i], depth = implicit_depth(m, i);
    for (int q = 0; q <= p; ++q) {
      const int rank = implicit_depth(m, row->col[q]);
      if (rank > depth || implicit_ancestor(m, i, rank) != row->col[q]) continue;
      w->lu_low[adr + rank] += b * row->J[p] * row->J[q];
      w->lu_up[adr + rank] += b * row->J[p] * row->J[q];
    }
  }
  SN_SYNC(lane);
}

// Eliminates the dofs of tree t, the last one first.
SN_LOCAL void implicit_factor_tree(const SnModel *m, SnWorld *w, int t) {
  const int first = m->tree_dofadr[t];
  for (int k = first + m->tree_dofnum[t] - 1; k >= first; --k) {
    const int adr = m->lu_adr[k], depth = implicit_depth(m, k);
    const sn_real *low = w->lu_low + adr, *up = w->lu_up + adr, per = 1 / low[depth];
    for (int r = 0; r < depth; ++r) {
      const int i = m->lu_adr[implicit_ancestor(m, k, r)];
      const sn_real down = up[r] * per, across = low[r] * per;  // A_ik / A_kk, A_ki / A_kk
      for (int c = 0; c <= r; ++c) w->lu_low[i + c] -= down * low[c];
      for (int c = 0; c < r; ++c) w->lu_up[i + c] -= across * up[c];
    }
  }
}

SN_FUNC void sn_implicit_factor(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool damped = !(m->opt.disableflags & SN_DSBL_DAMPER);
  const sn_real h = sn_timestep(m, w);
  sn_velocity_slopes(m, w, lane);
  SN_FOR(i, m->nv) implicit_row(m, w, i, damped);
  SN_SYNC(lane);
  for (int t = 0; t < m->ntendon; ++t) {
    const SnRow row = sn_tendon_row(m, w, t);
    if (w->ten_slope[t] != 0) implicit_add_JtJ(m, w, lane, &row, h * w->ten_slope[t]);
  }
  for (int out = 0; out < m->nout; ++out) {
    const SnRow row = sn_output_row(m, w, out);
    if (w->act_slope[out] != 0) implicit_add_JtJ(m, w, lane, &row, h * w->act_slope[out]);
  }
  SN_FOR(t, m->ntree) implicit_factor_tree(m, w, t);
  SN_SYNC(lane);
}
#endif

SN_FUNC void sn_implicit_solve(const SnModel *m, const SnWorld *w, SnLane *lane, bool transposed, sn_bar *x) {
  const sn_real *below = transposed ? w->lu_low : w->lu_up, *above = transposed ? w->lu_up : w->lu_low;
  (void)lane;
  SN_FOR(t, m->ntree) {
    const int first = m->tree_dofadr[t], end = first + m->tree_dofnum[t];
    for (int k = end - 1; k >= first; --k) {
      const int adr = m->lu_adr[k], depth = implicit_depth(m, k);
      const sn_bar scaled = x[k] / w->lu_low[adr + depth];
      for (int r = 0; r < depth; ++r) x[implicit_ancestor(m, k, r)] -= below[adr + r] * scaled;
    }
    for (int k = first; k < end; ++k) {
      const int adr = m->lu_adr[k], depth = implicit_depth(m, k);
      sn_bar sum = x[k];
      for (int r = 0; r < depth; ++r) sum -= above[adr + r] * x[implicit_ancestor(m, k, r)];
      x[k] = sum / w->lu_low[adr + depth];
    }
  }
  SN_SYNC(lane);
}
