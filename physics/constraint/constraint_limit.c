// Rows of friction loss and of limits.
//
// Friction loss of a dof or tendon: J is the dof or the tendon's moment arms, position and margin are 0.
// Limit: distance to the bound, positive inside; a row exists while distance < margin, and its J turns a
// velocity into the rate of that distance. A scalar joint or tendon has a lower and an upper bound. A ball
// joint's distance is the larger bound less the angle of the joint's rotation, and J = -axis.
//
// Adjoint. J of a dof is constant; that of a tendon is +-ten_J, so its derivative is the tendon's. A ball joint's axis
// u moves with its rotation: for a small turn d in the joint's own frame, the rotation vector t u gets Jr(t u)^-1 d, Jr
// the right Jacobian of SO(3) (J. Sola et al., A micro Lie theory, equation 144), hence
//   dt = u . d,   du = cot(t/2)/2 (d - u (u . d)) + u x d / 2.
// Not smooth: t = 0, where the forward sets u = (1, 0, 0) (its derivative is taken as 0), and t = pi, where u changes
// its sign (derivative of the side on which t is measured).
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"

// Signed distance to the bound on `side` (0 lower, 1 upper) of a scalar joint or tendon.
SN_LOCAL sn_real bound_distance(const sn_real *range, int side, sn_real value) {
  return side == 0 ? value - range[0] : range[1] - value;
}

// Value, range and margin of a scalar limit's joint or tendon.
SN_LOCAL sn_real limited_value(const SnModel *m, const SnWorld *w, int type, int id, const sn_real **range,
                               sn_real *margin) {
  if (type == SN_CNSTR_LIMIT_TENDON) {
    *range = m->tendon_range + 2 * id;
    *margin = m->tendon_margin[id];
    return w->ten_length[id];
  }
  *range = m->jnt_range + 2 * id;
  *margin = m->jnt_margin[id];
  return w->qpos[m->jnt_qposadr[id]];
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_tendon_limit_pull(const SnModel *m, const SnWorld *w, int row) {
  const int t = w->efc_id[row];
  const bool second = row > 0 && w->efc_type[row - 1] == SN_CNSTR_LIMIT_TENDON && w->efc_id[row - 1] == t;
  return !second && w->efc_pos[row] == bound_distance(m->tendon_range + 2 * t, 0, w->ten_length[t]) ? 1 : -1;
}
#endif

SN_LOCAL bool is_ball_limit(const SnModel *m, int type, int id) {
  return type == SN_CNSTR_LIMIT_JOINT && m->jnt_type[id] == SN_JNT_BALL;
}

// Distance of a ball joint's limit, and the axis of its rotation.
SN_LOCAL sn_real ball_distance(const SnModel *m, const SnWorld *w, int joint, sn_real *axis) {
  sn_real quat[4];
  sn_copy4(quat, w->qpos + m->jnt_qposadr[joint]);
  sn_normalize4(quat);
  sn_quat2vel(axis, quat);
  const sn_real angle = sn_normalize3(axis);
  return sn_max(m->jnt_range[2 * joint], m->jnt_range[2 * joint + 1]) - angle;
}

#if !defined(SN_PACK)
SN_FUNC int sn_limit_count(const SnModel *m, const SnWorld *w, int s) {
  if (is_ball_limit(m, m->src_type[s], m->src_id[s])) {
    sn_real axis[3];
    return ball_distance(m, w, m->src_id[s], axis) < m->jnt_margin[m->src_id[s]];
  }
  const sn_real *range;
  sn_real margin;
  const sn_real value = limited_value(m, w, m->src_type[s], m->src_id[s], &range, &margin);
  return (bound_distance(range, 0, value) < margin) + (bound_distance(range, 1, value) < margin);
}

SN_FUNC void sn_limit_rows(const SnModel *m, SnWorld *w, int s, SnBlock block) {
  sn_real *J = w->efc_J + block.adr;
  if (is_ball_limit(m, m->src_type[s], m->src_id[s])) {
    sn_real axis[3];
    w->efc_pos[block.row] = ball_distance(m, w, m->src_id[s], axis);
    w->efc_margin[block.row] = m->jnt_margin[m->src_id[s]];
    sn_scale3(J, axis, -1);
    return;
  }
  const sn_real *range;
  sn_real margin;
  const sn_real value = limited_value(m, w, m->src_type[s], m->src_id[s], &range, &margin);
  const sn_real *arm = w->ten_J;
  if (m->src_type[s] == SN_CNSTR_LIMIT_TENDON) arm += m->ten_J_rowadr[m->src_id[s]];
  int row = block.row;
  for (int side = 0; side < 2; ++side) {
    const sn_real dist = bound_distance(range, side, value), sign = side == 0 ? 1 : -1;
    if (!(dist < margin)) continue;
    w->efc_pos[row] = dist;
    w->efc_margin[row] = margin;
    sn_real *out = J + (row - block.row) * block.nnz;
    if (m->src_type[s] == SN_CNSTR_LIMIT_TENDON)
      for (int k = 0; k < block.nnz; ++k) out[k] = sign * arm[k];
    else
      out[0] = sign;
    ++row;
  }
}

SN_FUNC void sn_friction_rows(const SnModel *m, SnWorld *w, int s, SnBlock block) {
  const int id = m->src_id[s];
  sn_real *J = w->efc_J + block.adr;
  if (m->src_type[s] == SN_CNSTR_FRICTION_DOF) {
    w->efc_frictionloss[block.row] = m->dof_frictionloss[id];
    J[0] = 1;
    return;
  }
  w->efc_frictionloss[block.row] = m->tendon_frictionloss[id];
  const sn_real *arm = w->ten_J + m->ten_J_rowadr[id];
  for (int k = 0; k < block.nnz; ++k) J[k] = arm[k];
}
#endif

// Adds the bars of a rate, sign times that of a tendon.
SN_LOCAL void add_tendon_rate_bar(SnAdjoint *a, int tendon, const sn_bar *row_z, sn_real sign) {
  sn_bar *bar = a->ten_rate_bar + SN_NMOTION * tendon;
  bar[SN_LAMBDA] += sign * row_z[0];
  bar[SN_ACC] += sign * row_z[1];
  bar[SN_VEL] += sign * row_z[2];
}

#if defined(SN_MODEL_BARS)
// Friction loss by the model: where it is overcome, the force is that loss.
SN_LOCAL void friction_model_vjp(const SnWorld *w, SnAdjoint *a, int row) {
  const bool dof = w->efc_type[row] == SN_CNSTR_FRICTION_DOF;
  sn_bar *bar = dof ? sn_model_bar(a)->dof_frictionloss : sn_model_bar(a)->tendon_frictionloss;
  const int state = w->efc_state[row];
  if (!bar || (state != SN_CSTATE_LINEARNEG && state != SN_CSTATE_LINEARPOS)) return;
  bar[w->efc_id[row]] += a->row_lambda[row] * sn_sign(w->efc_force[row]);
}

// Bound `side` of a range, margin.
SN_LOCAL void limit_model_vjp(const SnAdjoint *a, int type, int id, int side, int row) {
  sn_bar *range = type == SN_CNSTR_LIMIT_TENDON ? sn_model_bar(a)->tendon_range : sn_model_bar(a)->jnt_range;
  sn_bar *margin = type == SN_CNSTR_LIMIT_TENDON ? sn_model_bar(a)->tendon_margin : sn_model_bar(a)->jnt_margin;
  if (range) range[2 * id + side] += side == 0 ? -a->row_pos[row] : a->row_pos[row];
  if (margin) margin[id] -= a->row_pos[row];
}
#endif

SN_FUNC void sn_friction_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnBlock block) {
  (void)m;
  const int id = w->efc_id[block.row];
  const sn_bar *z = a->row_z + 3 * block.row;
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) friction_model_vjp(w, a, block.row);
#endif
  if (w->efc_type[block.row] == SN_CNSTR_FRICTION_DOF)
    a->qvel_bar[id] += z[2];
  else
    add_tendon_rate_bar(a, id, z, 1);
}

SN_LOCAL void ball_limit_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, int joint, int row) {
  sn_real u[3];
  sn_bar s[3] = {0}, t[3];
  const sn_real distance = ball_distance(m, w, joint, u);
  const sn_bar *z = a->row_z + 3 * row;
  const sn_real angle = sn_max(m->jnt_range[2 * joint], m->jnt_range[2 * joint + 1]) - distance;
  const int dof = m->jnt_dofadr[joint];
  sn_bar *bar = a->qpos_bar + dof;
  sn_addtoscl3(bar, u, -a->row_pos[row]);
  sn_addtoscl3(a->qvel_bar + dof, u, -z[2]);
  // bar of u: J z = -u . z
  for (int k = 0; k < 3; ++k) sn_addtoscl3(s, a->motion + k * m->nv + dof, -z[k]);
  if (!(angle > SN_MINVAL)) return;
  const sn_real half = SN_R(0.5), cot = half / sn_tan(half * angle);
  const sn_bar along = sn_dot3(s, u);
  sn_cross(t, s, u);
  for (int e = 0; e < 3; ++e) bar[e] += cot * (s[e] - along * u[e]) + half * t[e];
}

SN_FUNC void sn_limit_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnBlock block) {
  const int type = w->efc_type[block.row], id = w->efc_id[block.row];
  if (is_ball_limit(m, type, id)) {
    ball_limit_vjp(m, w, a, id, block.row);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a))
      limit_model_vjp(a, type, id, m->jnt_range[2 * id + 1] >= m->jnt_range[2 * id] ? 1 : 0, block.row);
#endif
    return;
  }
  const sn_real *range;
  sn_real margin;
  const sn_real value = limited_value(m, w, type, id, &range, &margin);
  int row = block.row;
  for (int side = 0; side < 2 && row < block.row + block.num; ++side) {
    if (!(bound_distance(range, side, value) < margin)) continue;
    const sn_real sign = side == 0 ? 1 : -1;
    const sn_bar *z = a->row_z + 3 * row;
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) limit_model_vjp(a, type, id, side, row);
#endif
    if (type == SN_CNSTR_LIMIT_TENDON) {
      a->ten_length_bar[id] += sign * a->row_pos[row];
      add_tendon_rate_bar(a, id, z, sign);
    } else {
      a->qpos_bar[m->jnt_dofadr[id]] += sign * a->row_pos[row];
      a->qvel_bar[m->jnt_dofadr[id]] += sign * z[2];
    }
    ++row;
  }
}
