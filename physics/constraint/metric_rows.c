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

// Whether the forces of the rows that share the rho of this one may depend on it: none where none acts.
SN_LOCAL bool metric_acts(const SnWorld *w, int row) {
  for (int r = row; r < row + sn_sharing_rows(w, row); ++r)
    if (w->efc_force[r] != 0 || sn_row_adhesion(w, r) != 0) return true;
  return false;
}

// Whether somebody asks for derivatives by the arms of output o: by the gear, where they are constant.
SN_LOCAL bool metric_output_moves(const SnModel *m, const SnAdjoint *a, int o) {
  const int i = m->out_actuator[o], trn = m->actuator_trntype[i], id = m->actuator_trnid[2 * i];
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) return true;
#endif
  if (trn == SN_TRN_TENDON) return sn_tendon_arms_move(m, a, id);
  if (trn != SN_TRN_JOINT && trn != SN_TRN_JOINTINPARENT) return true;
  return m->jnt_type[id] != SN_JNT_HINGE && m->jnt_type[id] != SN_JNT_SLIDE;
}

// Whether the arms of `item` may count, of nefc rows, ntendon tendons and nout outputs: as the state says, whatever the
// bars are, so that columns of a Jacobian have the bits that they have alone.
SN_LOCAL bool metric_moves(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int item) {
  const int k = item - w->nefc[0], id = k < 0 ? w->efc_id[item] : k - m->ntendon;
  SnRow row;
  if (k < 0) {
    switch (w->efc_type[item]) {
      case SN_CNSTR_FRICTION_DOF:
        return false;
      case SN_CNSTR_LIMIT_JOINT:
        return m->jnt_type[id] == SN_JNT_BALL && metric_acts(w, item);
      case SN_CNSTR_FRICTION_TENDON:
      case SN_CNSTR_LIMIT_TENDON:
        return sn_tendon_arms_move(m, a, id) && metric_acts(w, item);
      default:
        return metric_acts(w, item);
    }
  }
  if (!(k < m->ntendon ? sn_tendon_arms_move(m, a, k) : metric_output_moves(m, a, k - m->ntendon))) return false;
  const sn_real s = sn_metric_term(m, w, k, &row);
  return row.n > 0 && (s != 0 || (k < m->ntendon && m->ten_arm[k] != 0));
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

#if defined(SN_SERIAL)
// Marks a link and those that carry it.
SN_LOCAL void metric_mark(const SnModel *m, SnAdjoint *a, int link) {
  for (; !a->metric_link[link]; link = m->body_base[link]) a->metric_link[link] = 1;
}

SN_LOCAL void metric_mark_tendon(const SnModel *m, SnAdjoint *a, int t) {
  for (int k = m->tenlink_adr[t]; k < m->tenlink_adr[t + 1]; ++k) metric_mark(m, a, m->tenlink_link[k]);
}

// Marks the links that the adjoint of an item adds to. Returns what of the stages it is in, as bits; 0: not known.
SN_LOCAL int metric_mark_item(const SnModel *m, const SnWorld *w, SnAdjoint *a, int item) {
  const int k = item - w->nefc[0] - m->ntendon;
  if (item < w->nefc[0]) {
    const int id = w->efc_id[item], type = w->efc_type[item];
    const bool tendon = type == SN_CNSTR_FRICTION_TENDON || type == SN_CNSTR_LIMIT_TENDON;
    if (tendon) metric_mark_tendon(m, a, id);
    if (type == SN_CNSTR_LIMIT_JOINT) metric_mark(m, a, m->link_of_body[m->jnt_bodyid[id]]);
    for (int side = 0; type >= SN_CNSTR_CONTACT_FRICTIONLESS && side < 2; ++side)
      metric_mark(m, a, m->link_of_body[m->geom_bodyid[w->contact[id].geom[side]]]);
    return type == SN_CNSTR_EQUALITY ? 0 : SN_PASS_ROWS | (tendon ? SN_PASS_TENDONS : 0);
  }
  if (k >= 0 && m->actuator_trntype[m->out_actuator[k]] != SN_TRN_TENDON) return 0;
  metric_mark_tendon(m, a, k < 0 ? k + m->ntendon : m->actuator_trnid[2 * m->out_actuator[k]]);
  return SN_PASS_TENDONS;
}

// Notes what the pass of the n items of `list` goes over: the links that they are on and what carries these, or
// everything where somebody asks for derivatives by the model. Several lanes go over everything.
SN_LOCAL void metric_mark_pass(const SnModel *m, const SnWorld *w, SnAdjoint *a, const int *list, int n) {
  bool known = m->nsurface == 0 && m->nadhesive == 0;  // whose contacts look at both of their links in every pass
#if defined(SN_MODEL_BARS)
  known = known && !sn_model_bar(a);
#endif
  for (int i = 0; i < m->nbody; ++i) a->metric_link[i] = i == 0;
  int over = SN_PASS_LINKS;
  for (int k = 0; known && k < n; ++k) {
    const int stages = metric_mark_item(m, w, a, list[k]);
    known = stages != 0;
    over |= stages;
  }
  a->metric_over[0] = known ? over : 0;
}
#endif

// Lists the next items that move, rows or others, as many as a pass has motions for; *item: where to seek on.
SN_LOCAL int metric_group(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int *item, int list[4]) {
  const int nefc = w->nefc[0], end = nefc + m->ntendon + m->nout;
  int n = 0, most = 1;
  for (; *item < end && n < most; ++*item) {
    if (!metric_moves(m, w, a, *item)) continue;
    if (n > 0 && list[0] < nefc && *item >= nefc) break;
    list[n++] = *item;
    if (list[0] < nefc)
      most = m->nadhesive > 0 ? 1 : 2;
    else
      most = m->nadhesive > 0 ? 3 : 4;
  }
  return n;
}

SN_FUNC int sn_metric_pass(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, int pass) {
  const int end = w->nefc[0] + m->ntendon + m->nout;
  if (pass == 0) {
    if (a->metric_on[0] == 0) return -1;
    bool any = false;
    for (int row = 0; row < w->nefc[0]; ++row) any = any || sn_any(a->metric_row[row]);
    SN_SYNC(lane);
    SN_ONE(lane) a->metric_on[0] = 0;
    if (!any) return -1;
    const sn_bar *drag = sn_in_fluid(m) ? a->metric_bar : NULL;
    if (drag) sn_velocity_slopes(m, w, lane);
    sn_inertia_diagonal_vjp(m, w, a, lane, a->metric_inertia, drag);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) {
      sn_adjoint_clear_bars(m, a, lane);
      SN_ONE(lane) sn_inertia_diagonal_model_vjp(m, w, a, a->metric_inertia, drag);
    }
#endif
  }
  SN_SYNC(lane);
  SN_FOR(i, w->nefc[0]) {
    for (int z = 0; z < 3; ++z) a->row_z[3 * i + z] = sn_bar_of(0);
    a->row_pos[i] = a->row_lambda[i] = a->row_c[i] = sn_bar_of(0);
  }
  SN_FOR(i, SN_NMOTION * m->nv) a->motion[i] = sn_bar_of(0);
  SN_SYNC(lane);
  int set = 0, item = pass;
  while (item < end && set == 0) {
    int list[4];
    const int n = metric_group(m, w, a, &item, list);
    int mine = 0;
#if defined(SN_SERIAL)
    metric_mark_pass(m, w, a, list, n);
#endif
    sn_adjoint_clear_bars(m, a, lane);
    sn_adjoint_clear_contacts(w, a, lane);
    SN_ONE(lane) {
      for (int k = 0; k < n; ++k) mine += metric_item(m, w, a, list[k], metric_motion(list[0] < w->nefc[0], k));
    }
    set = sn_count(lane, mine);
  }
  SN_SYNC(lane);
  if (set > 0) return item;
  SN_ONE(lane) a->metric_over[0] = 0;
  SN_SYNC(lane);
  return -1;
}
