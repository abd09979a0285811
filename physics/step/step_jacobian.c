// The Jacobians of a step from its adjoint: row k is the gradient of entry k of the next state. The adjoint is linear
// in what it starts from, so rows go side by side, one a column of a pack (bar.h), and share what depends on the state
// alone.
//
// Most rows need no adjoint of their own. An activation depends on itself and on its control alone, so all activations
// share one. But under RK4, which moves them with a mean velocity, positions move with the new velocity v+: from
//   q+ = q (+) h v+,    q_bar += R q+_bar,    v+_bar += h J q+_bar
// (integrate.c; R and J are 1 but for turns) the row of position k is the sum over i of h J_ik times the row of
// velocity i, and column k of R at the positions of its own joint.
#include "physics/base/vec.h"
#include "physics/step/integrate_private.h"
#include "physics/step/step.h"

// Adjoints that are run, in this order: of each velocity, under RK4 of each position, of all activations together.
SN_INLINE int jacobian_activations(const SnModel *m) { return m->opt.integrator == SN_INT_RK4 ? 2 * m->nv : m->nv; }
SN_INLINE int jacobian_adjoints(const SnModel *m) { return jacobian_activations(m) + (m->na > 0); }

// Sets column c of NEXT, zero before, for adjoint k.
SN_LOCAL void jacobian_set(const SnModel *m, SnAdjoint *a, int c, int k) {
  if (k < m->nv)
    sn_set_column(a->qvel_next_bar + k, c, 1);
  else if (k < jacobian_activations(m))
    sn_set_column(a->qpos_next_bar + k - m->nv, c, 1);
  else
    for (int i = 0; i < m->na; ++i) sn_set_column(a->act_next_bar + i, c, 1);
}

// Row `row` of A and B from column c of RESULT.
SN_LOCAL void jacobian_row(const SnModel *m, const SnAdjoint *a, SnLane *lane, int c, int row, sn_real *A, sn_real *B) {
  const int nv = m->nv;
  sn_real *to = A + row * (2 * nv + m->na), *to_ctrl = B + row * m->nu;
  (void)lane;
  SN_FOR(i, nv) {
    to[i] = sn_column(a->qpos_bar[i], c);
    to[nv + i] = sn_column(a->qvel_bar[i], c);
  }
  SN_FOR(i, m->na) to[2 * nv + i] = sn_column(a->act_bar[i], c);
  SN_FOR(i, m->nu) to_ctrl[i] = sn_column(a->ctrl_bar[i], c);
}

// Rows of all activations from column c of RESULT.
SN_LOCAL void jacobian_activation_rows(const SnModel *m, const SnAdjoint *a, SnLane *lane, int c, sn_real *A,
                                       sn_real *B) {
  const int first = 2 * m->nv, n = first + m->na;
  (void)lane;
  SN_FOR(i, m->nactuator) {
    const int k = m->actuator_actadr[i], u = m->actuator_ctrladr[i];
    if (m->actuator_actnum[i] == 0) continue;
    sn_zero(A + (first + k) * n, n);
    sn_zero(B + (first + k) * m->nu, m->nu);
    A[(first + k) * n + first + k] = sn_column(a->act_bar[k], c);
    B[(first + k) * m->nu + u] = sn_column(a->ctrl_bar[u], c);
  }
}

SN_FUNC void sn_jacobian_rows(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B) {
  const int nv = m->nv, n = jacobian_adjoints(m);
  for (int first = 0; first < n; first += SN_COLUMNS) {
    const int num = sn_mini(SN_COLUMNS, n - first);
    SN_FOR(i, nv) a->qpos_next_bar[i] = a->qvel_next_bar[i] = sn_bar_of(0);
    SN_FOR(i, m->na) a->act_next_bar[i] = sn_bar_of(0);
    SN_SYNC(lane);
    SN_ONE(lane) {
      for (int c = 0; c < num; ++c) jacobian_set(m, a, c, first + c);
    }
    SN_SYNC(lane);
    sn_adjoint_clear(m, a, lane);
    sn_step_vjp(m, w, a, lane);
    sn_position_vjp(m, w, a, lane);
    for (int c = 0; c < num; ++c) {
      const int k = first + c;
      if (k == jacobian_activations(m))
        jacobian_activation_rows(m, a, lane, c, A, B);
      else
        jacobian_row(m, a, lane, c, k < nv ? nv + k : k - nv, A, B);
    }
    SN_SYNC(lane);
  }
}

#if !defined(SN_PACK)
// The row of position k from the bars of its joint's positions and velocities: those of `num` dofs from `adr` on.
SN_LOCAL void jacobian_position_row(const SnModel *m, const SnAdjoint *a, int k, int adr, int num, sn_real *A,
                                    sn_real *B) {
  const int nv = m->nv, n = 2 * nv + m->na, nu = m->nu;
  for (int e = 0; e < n; ++e) A[k * n + e] = a->qacc_bar[adr] * A[(nv + adr) * n + e];
  for (int e = 0; e < nu; ++e) B[k * nu + e] = a->qacc_bar[adr] * B[(nv + adr) * nu + e];
  for (int i = adr + 1; i < adr + num; ++i) {
    for (int e = 0; e < n; ++e) A[k * n + e] += a->qacc_bar[i] * A[(nv + i) * n + e];
    for (int e = 0; e < nu; ++e) B[k * nu + e] += a->qacc_bar[i] * B[(nv + i) * nu + e];
  }
  for (int i = adr; i < adr + num; ++i) A[k * n + i] += a->qpos_bar[i];
}

// Positions that move with the new velocity, which sn_integrate_vjp has left in rk_rate: of a turn its three dofs one
// after the other, those of different joints at once.
SN_LOCAL void jacobian_positions(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B) {
  for (int e = 0; e < 3; ++e) {
    SN_FOR(i, m->nv) {
      const int j = m->dof_jntid[i], type = m->jnt_type[j], k = i - m->jnt_dofadr[j];
      const bool turns = type == SN_JNT_BALL || (type == SN_JNT_FREE && k >= 3);
      a->qpos_next_bar[i] = turns ? k % 3 == e : e == 0;
      a->qpos_bar[i] = a->qacc_bar[i] = 0;
    }
    SN_SYNC(lane);
    sn_integrate_pos_vjp(m, lane, w->rk_rate, sn_timestep(m, w), a->qpos_next_bar, a->qpos_bar, a->qacc_bar);
    SN_FOR(i, m->nv) {
      const int j = m->dof_jntid[i], type = m->jnt_type[j], k = i - m->jnt_dofadr[j];
      const bool turns = type == SN_JNT_BALL || (type == SN_JNT_FREE && k >= 3);
      if (a->qpos_next_bar[i] != 0) jacobian_position_row(m, a, i, turns ? i - k % 3 : i, turns ? 3 : 1, A, B);
    }
    SN_SYNC(lane);
  }
}

#if defined(SN_HAS_COLUMNS)
// sn_jacobian_rows of the text that is compiled with SN_PACK.
void sn_jacobian_rows_columns(const SnModel *m, SnWorld *w, SnAdjointColumns *a, SnLane *lane, sn_real *A, sn_real *B);
#endif

SN_FUNC void sn_step_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B) {
#if defined(SN_HAS_COLUMNS)
  if (a->host && a->host->columns)
    sn_jacobian_rows_columns(m, w, a->host->columns, lane, A, B);
  else
#endif
    sn_jacobian_rows(m, w, a, lane, A, B);
  if (m->opt.integrator != SN_INT_RK4) jacobian_positions(m, w, a, lane, A, B);
}
#endif
