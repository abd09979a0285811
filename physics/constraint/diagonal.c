// The exact diagonal of J M^-1 J', where the model asks for it (flag diagexact): with A_i = J_i M^-1 J_i' impedance.c
// makes R of a row, of all rows of a contact with the A of their first.
//
// Adjoint. The force of a given residual is proportional to D = d / ((1 - d) A), so the derivative of G (adjoint.h) by
// A_i is -(J lambda)_i f_i / A_i, summed over the rows that share A_i; none where a friction loss is saturated or a
// bound holds R. With B_i = M^-1 J_i' held fixed
//
//   dA_i = 2 dJ_i B_i - B_i' dM B_i,
//
// for each row a rate and the term y' M (a - a+) of motions of its own: a pass as those of noslip_vjp.c.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"

#if !defined(SN_PACK)
SN_FUNC sn_real sn_inverse_row(const SnModel *m, const SnWorld *w, int adr, int nnz, sn_real *x) {
  sn_zero(x, m->nv);
  for (int q = adr; q < adr + nnz; ++q) x[w->efc_J_colind[q]] = w->efc_J[q];
  for (int i = m->nv - 1; i >= 0; --i) {
    const int first = m->M_rowadr[i], n = m->M_rownnz[i] - 1;
    if (x[i] != 0)
      for (int k = first; k < first + n; ++k) x[m->M_colind[k]] -= w->qLD[k] * x[i];
  }
  for (int i = 0; i < m->nv; ++i) {
    const int first = m->M_rowadr[i], n = m->M_rownnz[i] - 1;
    sn_real sum = x[i] * w->qLDiagInv[i];
    for (int k = first; k < first + n; ++k) sum -= w->qLD[k] * x[m->M_colind[k]];
    x[i] = sum;
  }
  sn_real A = 0;
  for (int q = adr; q < adr + nnz; ++q) A += w->efc_J[q] * x[w->efc_J_colind[q]];
  return A;
}

SN_FUNC sn_real sn_exact_diagonal(const SnModel *m, SnWorld *w, SnBlock block, int row) {
  return sn_inverse_row(m, w, block.adr + (row - block.row) * block.nnz, block.nnz, w->diag_row + row * m->nv);
}
#endif

// J M^-1 J' of a row whose M^-1 J' is kept.
SN_LOCAL sn_real diagonal_of(const SnModel *m, const SnWorld *w, int row) {
  const int adr = w->efc_J_rowadr[row];
  const sn_real *x = w->diag_row + row * m->nv;
  sn_real A = 0;
  for (int q = adr; q < adr + w->efc_J_rownnz[row]; ++q) A += w->efc_J[q] * x[w->efc_J_colind[q]];
  return A;
}

SN_LOCAL sn_bar diagonal_bar(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int row) {
  const int n = sn_sharing_rows(w, row), state = w->efc_state[row];
  sn_bar force = {0};
  if (state == SN_CSTATE_LINEARNEG || state == SN_CSTATE_LINEARPOS) return force;
  for (int i = row; i < row + n; ++i) force -= sn_scaled_force(w, a, i);
  if (!sn_any(force) || w->efc_KBIP[4 * row + 2] <= SN_R(1e-30) || sn_is_bounded(w, row)) return sn_bar_of(0);
  return force / diagonal_of(m, w, row);
}

SN_FUNC void sn_diagonal_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_FOR(i, w->nefc[0]) a->diag_bar[i] = diagonal_bar(m, w, a, i);
  SN_ONE(lane) a->diag_on[0] = 1;
  SN_SYNC(lane);
}

SN_FUNC int sn_diagonal_pass(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, int pass) {
  const int nv = m->nv, nefc = w->nefc[0];
  if (pass == 0 && a->diag_on[0] == 0) return -1;
  SN_SYNC(lane);
  SN_ONE(lane) a->diag_on[0] = 0;
  SN_FOR(i, nefc) {
    for (int z = 0; z < 3; ++z) a->row_z[3 * i + z] = sn_bar_of(0);
    a->row_pos[i] = a->row_lambda[i] = a->row_c[i] = sn_bar_of(0);
  }
  SN_SYNC(lane);
  int row = pass;
  while (row < nefc && !sn_any(a->diag_bar[row])) ++row;
  if (row == nefc) return -1;
  const sn_real *B = w->diag_row + row * nv;
  SN_FOR(i, nv) {
    a->motion[SN_LAMBDA * nv + i] = a->motion[SN_VEL * nv + i] = sn_bar_of(0);
    a->motion[SN_Y * nv + i] = sn_bar_of(-B[i]);
    a->motion[SN_ACC * nv + i] = 2 * a->diag_bar[row] * B[i];
    a->motion[SN_NEXT * nv + i] = a->diag_bar[row] * B[i];
  }
  SN_ONE(lane) a->row_z[3 * row + SN_ACC] = sn_bar_of(1);
  SN_SYNC(lane);
  return row + 1;
}
