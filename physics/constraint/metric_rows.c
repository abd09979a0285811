// What the effective inertia of the integrator `discrete` (dynamics/metric.c) does to the impedance of rows.
//
// Approximate inverse inertias are those of M. With sigma, the diagonal of B = h D + h^2 K, a row counts as lighter by
//   rho = (sum_i J_i^2 / M_ii) / (sum_i J_i^2 / (M_ii + sigma_i)),
// which its D is multiplied by (as found in MuJoCo 4.0.0), on all rows of a contact by that of their first.
//
// Adjoint. The derivative of G (adjoint.h) by log D is F = f (J lambda), summed over the rows that share rho. With S
// and S+ the sums in rho's numerator and denominator,
//   F d log rho = sum_i 2 z_i dJ_i + mu_i dM_ii + nu_i dsigma_i,      z_i = F J_i [1 / (M_ii S) - 1 / ((M_ii + sigma_i)
//   S+)], mu_i = F J_i^2 [1 / ((M_ii + sigma_i)^2 S+) - 1 / (M_ii^2 S)],    nu_i = F J_i^2 / ((M_ii + sigma_i)^2 S+).
// nu goes to metric_bar, mu to metric_inertia. A row's rate in a motion of its own, 2 z, has dJ; so have the arms of
// tendons and actuators in sigma, with motions 2 s nu_i J_i, and in M_ii, of tendons with armature. Each takes a motion
// of a pass as those of diagonal.c. By the model M_ii depends on inertias, armatures and frames (dynamics/inertia.c).
//
// Not smooth: where J of a row is 0. There MuJoCo has rho = 1, beside it another one, and the derivative is that of the
// former.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"
#include "physics/dynamics/dynamics.h"

// M_ii.
SN_INLINE sn_real metric_M(const SnModel *m, const SnWorld *w, int i) {
  return w->M[m->M_rowadr[i] + m->M_rownnz[i] - 1];
}

// S and S+ of a row. Returns false where it moves nothing, so that rho is 1 (the bound is MuJoCo's).
SN_LOCAL bool metric_sums(const SnModel *m, const SnWorld *w, int row, sn_real sum[2]) {
  const int adr = w->efc_J_rowadr[row];
  sum[0] = sum[1] = 0;
  for (int q = adr; q < adr + w->efc_J_rownnz[row]; ++q) {
    const int i = w->efc_J_colind[q];
    const sn_real square = w->efc_J[q] * w->efc_J[q], M = metric_M(m, w, i);
    sum[0] += square / sn_max(SN_MINVAL, M);
    sum[1] += square / sn_max(SN_MINVAL, M + w->efm_sdiag[i]);
  }
  return sum[0] >= SN_MINVAL;
}

#if !defined(SN_PACK)
SN_FUNC void sn_metric_rows(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(row, w->nefc[0]) {
    const int n = sn_sharing_rows(w, row);
    sn_real sum[2];
    if (n == 0 || !metric_sums(m, w, row, sum)) continue;
    // the bound of R is that of what all rows of a pyramid share
    const bool edges = w->efc_type[row] == SN_CNSTR_CONTACT_PYRAMIDAL;
    const sn_real mu = edges ? w->contact[w->efc_id[row]].mu : 1,
                  R = edges ? w->efc_R[row] / (2 * mu * mu) : w->efc_R[row];
    const sn_real ratio = sn_max(sum[1] / sum[0], SN_MINVAL / R);
    for (int r = row; r < row + n; ++r) {
      const sn_real pull = sn_row_adhesion(w, r);
      w->efc_aref[r] -= w->efc_R[r] * pull;
      w->efc_R[r] *= ratio;
      w->efc_aref[r] += w->efc_R[r] * pull;
      w->efc_diagA[r] *= ratio;
      w->efc_D[r] = 1 / w->efc_R[r];
    }
  }
  SN_SYNC(lane);
  if (m->nfreebody > 0) sn_free_touch(m, w, lane);
}
#endif

// F of the rows that share the rho of this one.
SN_LOCAL sn_bar metric_force(const SnWorld *w, const SnAdjoint *a, int row) {
  const int n = sn_sharing_rows(w, row), state = w->efc_state[row];
  sn_bar force = {0};
  if (state == SN_CSTATE_LINEARNEG || state == SN_CSTATE_LINEARPOS || sn_is_bounded(w, row)) return force;
  for (int r = row; r < row + n; ++r) force += sn_scaled_force(w, a, r);
  return force;
}

// z of column q of a row.
SN_LOCAL sn_bar metric_slope(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int row, int q,
                             const sn_real sum[2]) {
  const int i = w->efc_J_colind[q];
  const sn_real M = sn_max(SN_MINVAL, metric_M(m, w, i)), all = sn_max(SN_MINVAL, M + w->efm_sdiag[i]);
  return a->metric_row[row] * (w->efc_J[q] * (1 / (M * sum[0]) - 1 / (all * sum[1])));
}

SN_FUNC void sn_metric_rows_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_FOR(i, m->nv) a->metric_bar[i] = a->metric_inertia[i] = sn_bar_of(0);
  SN_FOR(row, w->nefc[0]) a->metric_row[row] = metric_force(w, a, row);
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int row = 0; row < w->nefc[0]; ++row) {
      const int adr = w->efc_J_rowadr[row];
      const sn_bar force = a->metric_row[row];
      sn_real sum[2];
      if (!sn_any(force) || !metric_sums(m, w, row, sum)) {
        a->metric_row[row] = sn_bar_of(0);
        continue;
      }
      for (int q = adr; q < adr + w->efc_J_rownnz[row]; ++q) {
        const int i = w->efc_J_colind[q];
        const sn_real square = w->efc_J[q] * w->efc_J[q], M = sn_max(SN_MINVAL, metric_M(m, w, i));
        const sn_real all = sn_max(SN_MINVAL, M + w->efm_sdiag[i]), late = square / (all * all * sum[1]);
        a->metric_bar[i] += force * late;
        a->metric_inertia[i] += force * (late - square / (M * M * sum[0]));
      }
    }
    a->metric_on[0] = 1;
  }
  SN_SYNC(lane);
}

// Sets motion z to the arms of a term of B and of M, for the bar of its rate there. Returns false where it is zero.
SN_LOCAL bool metric_arms(const SnModel *m, SnAdjoint *a, const SnRow *row, sn_real s, sn_real arm, SnMotion z) {
  bool any = false;
  for (int q = 0; q < row->n; ++q) {
    const int i = row->col[q];
    const sn_bar x = (2 * row->J[q]) * (s * a->metric_bar[i] + arm * a->metric_inertia[i]);
    a->motion[(int)z * m->nv + i] = x;
    any = any || sn_any(x);
  }
  return any;
}

// Sets motion z for what `item` says, of nefc rows, ntendon tendons and nout outputs. Returns false where nothing is
// left of it.
SN_LOCAL bool metric_item(const SnModel *m, const SnWorld *w, SnAdjoint *a, int item, SnMotion z) {
  const int nefc = w->nefc[0], k = item - nefc;
  SnRow row;
  if (k < 0) {
    const int adr = w->efc_J_rowadr[item];
    sn_real sum[2];
    if (!sn_any(a->metric_row[item]) || !metric_sums(m, w, item, sum)) return false;
    for (int q = adr; q < adr + w->efc_J_rownnz[item]; ++q)
      a->motion[(int)z * m->nv + w->efc_J_colind[q]] = 2 * metric_slope(m, w, a, item, q, sum);
    a->row_z[3 * item + (int)z] = sn_bar_of(1);
    return true;
  }
  const sn_real s = sn_metric_term(m, w, k, &row), arm = k < m->ntendon ? m->ten_arm[k] : 0;
  if ((s == 0 && arm == 0) || row.n == 0) return false;
  if (k < m->ntendon && !sn_tendon_arms_move(m, a, k)) return false;
  if (!metric_arms(m, a, &row, s, arm, z)) return false;
  if (k < m->ntendon)
    a->ten_rate_bar[SN_NMOTION * k + (int)z] = sn_bar_of(1);
  else
    a->trn_rate_bar[SN_NMOTION * (k - m->ntendon) + (int)z] = sn_bar_of(1);
  return true;
}

// Motion of item k of a pass: of all but that of the velocity, which is an input. Rows have rates in SN_LAMBDA and
// SN_ACC alone. Contacts that pull have a force of their own, whose adjoint asks for SN_LAMBDA.
SN_LOCAL SnMotion metric_motion(bool row, int k) {
  if (k == 0) return SN_ACC;
  if (row || k == 3) return SN_LAMBDA;
  return k == 1 ? SN_Y : SN_NEXT;
}

// Items of the pass that begins with this one.
SN_LOCAL int metric_group(const SnModel *m, const SnWorld *w, int item) {
  const int nefc = w->nefc[0], end = nefc + m->ntendon + m->nout;
  if (item < nefc) return m->nadhesive > 0 ? 1 : sn_mini(2, nefc - item);
  return sn_mini(m->nadhesive > 0 ? 3 : 4, end - item);
}

SN_FUNC int sn_metric_pass(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, int pass) {
  const int end = w->nefc[0] + m->ntendon + m->nout;
  if (pass == 0) {
    if (a->metric_on[0] == 0) return -1;
    bool any = false;
    for (int row = 0; row < w->nefc[0]; ++row) any = any || sn_any(a->metric_row[row]);
    SN_SYNC(lane);
    SN_ONE(lane) a->metric_on[0] = 0;
    if (!any) return -1;
    const sn_bar *drag = sn_in_fluid(m) ? a->metric_bar : NULL;
    sn_inertia_diagonal_vjp(m, w, a, lane, a->metric_inertia, drag);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) SN_ONE(lane) sn_inertia_diagonal_model_vjp(m, w, a, a->metric_inertia, drag);
#endif
  }
  SN_SYNC(lane);
  SN_FOR(i, w->nefc[0]) {
    for (int z = 0; z < 3; ++z) a->row_z[3 * i + z] = sn_bar_of(0);
    a->row_pos[i] = a->row_lambda[i] = a->row_c[i] = sn_bar_of(0);
  }
  SN_FOR(i, SN_NMOTION * m->nv) a->motion[i] = sn_bar_of(0);
  SN_SYNC(lane);
  // Items have the same motion whatever there is of the others, so that columns of a Jacobian have the bits that they
  // have alone.
  int set = 0, item = pass;
  while (item < end && set == 0) {
    const int n = metric_group(m, w, item);
    int mine = 0;
    SN_ONE(lane) {
      for (int k = 0; k < n; ++k) mine += metric_item(m, w, a, item + k, metric_motion(item < w->nefc[0], k));
    }
    set = sn_count(lane, mine);
    item += n;
  }
  SN_SYNC(lane);
  return set > 0 ? item : -1;
}
