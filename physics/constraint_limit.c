// Rows of friction loss and of limits.
//
// Friction loss of a dof or tendon: J is the dof or the tendon's moment arms, position and margin are 0.
// Limit: distance to the bound, positive inside; a row exists while distance < margin, and its J turns a
// velocity into the rate of that distance. A scalar joint or tendon has a lower and an upper bound. A ball
// joint's distance is the larger bound less the angle of the joint's rotation, and J = -axis.
#include "physics/constraint.h"

// Signed distance to the bound on `side` (0 lower, 1 upper) of a scalar joint or tendon.
SN_LOCAL sn_real bound_distance(const sn_real *range, int side, sn_real value) {
  return side == 0 ? value - range[0] : range[1] - value;
}

// Value, range and margin of a scalar limit's joint or tendon.
SN_LOCAL sn_real limited_value(const SnModel *m, const SnWorld *w, int s, const sn_real **range, sn_real *margin) {
  const int id = m->src_id[s];
  if (m->src_type[s] == SN_CNSTR_LIMIT_TENDON) {
    *range = m->tendon_range + 2 * id;
    *margin = m->tendon_margin[id];
    return w->ten_length[id];
  }
  *range = m->jnt_range + 2 * id;
  *margin = m->jnt_margin[id];
  return w->qpos[m->jnt_qposadr[id]];
}

SN_LOCAL bool is_ball_limit(const SnModel *m, int s) {
  return m->src_type[s] == SN_CNSTR_LIMIT_JOINT && m->jnt_type[m->src_id[s]] == SN_JNT_BALL;
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

SN_FUNC int sn_limit_count(const SnModel *m, const SnWorld *w, int s) {
  if (is_ball_limit(m, s)) {
    sn_real axis[3];
    return ball_distance(m, w, m->src_id[s], axis) < m->jnt_margin[m->src_id[s]];
  }
  const sn_real *range;
  sn_real margin;
  const sn_real value = limited_value(m, w, s, &range, &margin);
  return (bound_distance(range, 0, value) < margin) + (bound_distance(range, 1, value) < margin);
}

SN_FUNC void sn_limit_rows(const SnModel *m, SnWorld *w, int s, SnBlock block) {
  sn_real *J = w->efc_J + block.adr;
  if (is_ball_limit(m, s)) {
    sn_real axis[3];
    w->efc_pos[block.row] = ball_distance(m, w, m->src_id[s], axis);
    w->efc_margin[block.row] = m->jnt_margin[m->src_id[s]];
    sn_scale3(J, axis, -1);
    return;
  }
  const sn_real *range;
  sn_real margin;
  const sn_real value = limited_value(m, w, s, &range, &margin);
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
