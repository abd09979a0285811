// Products of branched rows within M's pattern, and their derivative.
//
// Armature and implicit damping of a tendon or actuator add b J'J to a matrix with M's pattern: entries (i, j) of which
// one is on the other's path to the root. For a row on one path that is all of J'J, and x' J'J y = (J x)(J y). For a
// row on several, with P_i the columns on the path of column i, itself included,
//   x' (J'J) y = sum_i e_i (J x_Pi)(J y_Pi),   e_i = 1 - number of columns whose next column towards the root is i,
// because below any column there is one column more than there are links between columns. Only tips (e = 1) and
// forks (e < 0) count.
//
// J z_P is the row's rate when the motion z is stopped off the path P. So each path takes one more pass of the stages
// that turn rates into displacements, with motions stopped like that. Such rows are rare: tendons between two branches,
// with armature, or with damping under an implicit integrator.
#include "physics/actuator/actuator.h"
#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"

// The equations of the dof's body are a full block: those of a free body that carries no other link, and under
// `implicit` those of a simple body.
SN_LOCAL bool branched_is_block(const SnModel *m, int dof) {
  const int body = m->dof_bodyid[dof];
  if (m->opt.integrator == SN_INT_IMPLICIT && m->dof_simplenum[dof] > 0) return true;
  return m->jnt_type[m->dof_jntid[dof]] == SN_JNT_FREE && m->child_adr[body + 1] == m->child_adr[body];
}

// `dof` is on the path from dof `tip` to the root.
SN_LOCAL bool branched_on_path(const SnModel *m, bool block, int dof, int tip) {
  if (block && branched_is_block(m, tip)) return dof >= m->body_dofadr[m->dof_bodyid[tip]] && dof <= tip;
  const int depth = m->M_rownnz[dof] - 1;
  return depth < m->M_rownnz[tip] && m->M_colind[m->M_rowadr[tip] + depth] == dof;
}

#if !defined(SN_PACK)
SN_FUNC bool sn_row_is_chain(const SnModel *m, const SnRow *row, bool block) {
  for (int q = 0; q < row->n; ++q)
    if (!branched_on_path(m, block, row->col[q], row->col[row->n - 1])) return false;
  return true;
}
#endif

// e of column p.
SN_LOCAL int branched_count(const SnModel *m, const SnRow *row, bool block, int p) {
  int count = 1;
  for (int q = p + 1; q < row->n; ++q) {
    int next = q - 1;
    while (next >= 0 && !branched_on_path(m, block, row->col[next], row->col[q])) --next;
    count -= next == p;
  }
  return count;
}

SN_FUNC sn_bar sn_row_form(const SnModel *m, const SnRow *row, bool block, const sn_bar *x, const sn_bar *y) {
  sn_bar sum = {0};
  for (int p = 0; p < row->n; ++p) {
    sn_bar below = {0};  // of row p of J'J left of the diagonal
    for (int q = 0; q < p; ++q)
      if (branched_on_path(m, block, row->col[q], row->col[p]))
        below += row->J[q] * (x[row->col[p]] * y[row->col[q]] + x[row->col[q]] * y[row->col[p]]);
    sum += row->J[p] * (below + row->J[p] * x[row->col[p]] * y[row->col[p]]);
  }
  return sum;
}

// What the products of a row count: arm in M, damp (time step times slope) in the matrix of implicit damping.
typedef struct Branched {
  SnRow row;
  bool block;
  sn_real arm, damp;
} Branched;

// Bars of the rates of one path, times its count e.
SN_LOCAL void branched_rate_bars(const Branched *b, const sn_bar *rate, sn_real e, sn_bar *bar) {
  const sn_real arm = e * b->arm, damp = e * b->damp;
  bar[SN_LAMBDA] = -arm * rate[SN_ACC];
  bar[SN_ACC] = -arm * (rate[SN_LAMBDA] - rate[SN_Y]);
  bar[SN_Y] = arm * (rate[SN_ACC] - rate[SN_NEXT]) - damp * rate[SN_NEXT];
  bar[SN_NEXT] = -(arm + damp) * rate[SN_Y];
}

// The passes of tendon t (out < 0) or of output `out`.
SN_LOCAL void branched_passes(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const Branched *b, int t,
                              int out) {
  for (int p = 0; p < b->row.n; ++p) {
    const int e = branched_count(m, &b->row, b->block, p), tip = b->row.col[p];
    if (e == 0) continue;
    SN_FOR(i, m->nv) {
      const bool moves = i <= tip && branched_on_path(m, b->block, i, tip);
      for (int z = 0; z < SN_NMOTION; ++z)
        if (z != SN_VEL) a->motion[z * m->nv + i] = moves ? a->motion_kept[z * m->nv + i] : sn_bar_of(0);
    }
    sn_adjoint_clear_bars(m, a, lane);
    sn_adjoint_clear_contacts(w, a, lane);
    sn_motion_propagate(m, w, a, lane);
    SN_ONE(lane) {
      if (out < 0)
        branched_rate_bars(b, a->ten_rate + SN_NMOTION * t, (sn_real)e, a->ten_rate_bar + SN_NMOTION * t);
      else
        branched_rate_bars(b, a->trn_rate + SN_NMOTION * out, (sn_real)e, a->trn_rate_bar + SN_NMOTION * out);
    }
    SN_SYNC(lane);
    if (out >= 0) {
      sn_transmission_vjp(m, w, a, lane);
      sn_collision_vjp(m, w, a, lane);
    }
    sn_tendon_vjp(m, w, a, lane);
    sn_kinematics_vjp(m, w, a, lane);
  }
}

// True on all lanes when a motion that is a factor of every product is not zero.
SN_LOCAL bool branched_any(const SnModel *m, const SnAdjoint *a) {
  for (int i = 0; i < m->nv; ++i)
    if (sn_any(a->motion[SN_LAMBDA * m->nv + i]) || sn_any(a->motion[SN_Y * m->nv + i])) return true;
  return false;
}

SN_FUNC void sn_branched_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, bool damping) {
  const bool implicit = damping && (m->opt.integrator == SN_INT_IMPLICITFAST || m->opt.integrator == SN_INT_IMPLICIT);
  const sn_real h = sn_timestep(m, w);
  bool arms = false;
  for (int t = 0; t < m->ntendon; ++t) arms = arms || m->ten_arm[t] != 0;
  if ((!implicit && !arms) || !branched_any(m, a)) return;
  SN_FOR(i, SN_NMOTION * m->nv) a->motion_kept[i] = a->motion[i];
  SN_SYNC(lane);
  for (int t = 0; t < m->ntendon; ++t) {
    if (!sn_tendon_arms_move(m, a, t)) continue;
    const Branched arm = {sn_tendon_row(m, w, t), false, m->ten_arm[t], 0};
    if (arm.arm != 0 && !sn_row_is_chain(m, &arm.row, false)) branched_passes(m, w, a, lane, &arm, t, -1);
    if (!implicit || w->ten_slope[t] == 0) continue;
    const Branched damp = {arm.row, true, 0, h * w->ten_slope[t]};
    if (!sn_row_is_chain(m, &damp.row, true)) branched_passes(m, w, a, lane, &damp, t, -1);
  }
  for (int out = 0; implicit && out < m->nout; ++out) {
    if (w->act_slope[out] == 0) continue;
    const Branched damp = {sn_output_row(m, w, out), true, 0, h * w->act_slope[out]};
    if (!sn_row_is_chain(m, &damp.row, true)) branched_passes(m, w, a, lane, &damp, -1, out);
  }
  SN_FOR(i, SN_NMOTION * m->nv) a->motion[i] = a->motion_kept[i];
  SN_SYNC(lane);
}
