// The Jacobians of a step, row by row from its adjoint: row k is the gradient of entry k of the next state.
//
// Most rows need no adjoint of their own. Positions that are numbers move with the new velocity, q+ = q + h v+ (not
// under RK4, which moves them with a mean velocity), so their rows are those of v+ times h. An activation depends on
// itself and on its control alone, so all activations share one adjoint. The exception is an
// integrated setpoint on a rotation, which is moved by whole turns of the length.
#include "physics/base/vec.h"
#include "physics/step/step.h"

// Row `row` of A and B from RESULT.
SN_LOCAL void jacobian_row(const SnModel *m, const SnAdjoint *a, SnLane *lane, int row, sn_real *A, sn_real *B) {
  const int nv = m->nv;
  sn_real *to = A + row * (2 * nv + m->na), *to_ctrl = B + row * m->nu;
  SN_FOR(i, nv) to[i] = a->qpos_bar[i];
  SN_FOR(i, nv) to[nv + i] = a->qvel_bar[i];
  SN_FOR(i, m->na) to[2 * nv + i] = a->act_bar[i];
  SN_FOR(i, m->nu) to_ctrl[i] = a->ctrl_bar[i];
  SN_SYNC(lane);
}

// The adjoint of the step for NEXT as it is; zeroes NEXT.
SN_LOCAL void jacobian_adjoint(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_adjoint_clear(m, a, lane);
  sn_step_vjp(m, w, a, lane);
  sn_position_vjp(m, w, a, lane);
  SN_FOR(i, m->nv) a->qpos_next_bar[i] = a->qvel_next_bar[i] = 0;
  SN_FOR(i, m->na) a->act_next_bar[i] = 0;
  SN_SYNC(lane);
}

// The row of a position that moves with dof i: that of its velocity times h, and 1 for itself.
SN_LOCAL void jacobian_position_row(const SnModel *m, const SnWorld *w, SnLane *lane, int i, sn_real *A, sn_real *B) {
  const int n = 2 * m->nv + m->na;
  const sn_real h = sn_timestep(m, w);
  SN_FOR(k, n) A[i * n + k] = h * A[(m->nv + i) * n + k] + (k == i ? 1 : 0);
  SN_FOR(k, m->nu) B[i * m->nu + k] = h * B[(m->nv + i) * m->nu + k];
  SN_SYNC(lane);
}

// Positions: joint by joint.
SN_LOCAL void jacobian_positions(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B) {
  for (int j = 0; j < m->njnt; ++j) {
    const int type = m->jnt_type[j], adr = m->jnt_dofadr[j];
    const int num = type == SN_JNT_FREE ? 6 : type == SN_JNT_BALL ? 3 : 1;
    const int rotation = type == SN_JNT_FREE ? 3 : type == SN_JNT_BALL ? 0 : 1;  // first dof of it
    for (int k = 0; k < num; ++k) {
      if (k < rotation && m->opt.integrator != SN_INT_RK4) {
        jacobian_position_row(m, w, lane, adr + k, A, B);
        continue;
      }
      SN_ONE(lane) a->qpos_next_bar[adr + k] = 1;
      SN_SYNC(lane);
      jacobian_adjoint(m, w, a, lane);
      jacobian_row(m, a, lane, adr + k, A, B);
    }
  }
}

// Whether actuator i has an activation that depends on nothing but itself and the actuator's control.
SN_INLINE bool jacobian_own_activation(const SnModel *m, int i) {
  return m->actuator_actnum[i] == 1 && !(m->actuator_period[i] > 0);
}

// Activations: by one adjoint, but for those that depend on more.
SN_LOCAL void jacobian_activations(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B) {
  const int first = 2 * m->nv, n = first + m->na;
  for (int i = 0; i < m->nactuator; ++i) {
    if (m->actuator_actnum[i] == 0 || jacobian_own_activation(m, i)) continue;
    SN_ONE(lane) a->act_next_bar[m->actuator_actadr[i]] = 1;
    SN_SYNC(lane);
    jacobian_adjoint(m, w, a, lane);
    jacobian_row(m, a, lane, first + m->actuator_actadr[i], A, B);
  }
  SN_FOR(i, m->nactuator) if (jacobian_own_activation(m, i)) a->act_next_bar[m->actuator_actadr[i]] = 1;
  SN_SYNC(lane);
  jacobian_adjoint(m, w, a, lane);
  SN_FOR(i, m->nactuator) {
    if (!jacobian_own_activation(m, i)) continue;
    const int k = m->actuator_actadr[i];
    sn_zero(A + (first + k) * n, n);
    sn_zero(B + (first + k) * m->nu, m->nu);
    A[(first + k) * n + first + k] = a->act_bar[k];
    B[(first + k) * m->nu + m->actuator_ctrladr[i]] = a->ctrl_bar[m->actuator_ctrladr[i]];
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_step_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B) {
  const int nv = m->nv;
  SN_FOR(i, nv) a->qpos_next_bar[i] = a->qvel_next_bar[i] = 0;
  SN_FOR(i, m->na) a->act_next_bar[i] = 0;
  SN_SYNC(lane);
  for (int i = 0; i < nv; ++i) {
    SN_ONE(lane) a->qvel_next_bar[i] = 1;
    SN_SYNC(lane);
    jacobian_adjoint(m, w, a, lane);
    jacobian_row(m, a, lane, nv + i, A, B);
  }
  jacobian_positions(m, w, a, lane, A, B);
  if (m->na > 0) jacobian_activations(m, w, a, lane, A, B);
}
