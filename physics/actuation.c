// Actuators: length and moment of their transmissions, activation, force, joint forces.
//
//   force_i = gain_i(length, velocity) * (ctrl_i or act_i) + bias_i(length, velocity)
//   qfrc_actuator = actuator_moment' force  (manual, Computation, "Actuation model")
// Limits act in this order: ctrl to ctrlrange, the total of a tendon's actuators to its actfrcrange (all
// scaled alike), each force to forcerange, then the total on a joint (gravity compensation
// included where the joint asks for that) to its actfrcrange.
//
// Moments of sites are those of a wrench at the site, J' (f, tau) with J from cdof, as in tendon.c.
// The sparsity of actuator_moment is fixed at load (derive_actuator.c).
#include "physics/muscle.h"
#include "physics/stages.h"
#include "physics/vec.h"

// Wrench (moment, force) about the origin of cdof of dof: a force f at p and a torque tau.
SN_LOCAL sn_real sn_wrench_arm(const SnModel *m, const SnWorld *w, int dof, const sn_real *p, const sn_real *f,
                               const sn_real *tau) {
  const sn_real *c = w->subtree_com + 3 * m->body_rootid[m->dof_bodyid[dof]], *axis = w->cdof + 6 * dof;
  sn_real arm[3], moment[3];
  sn_sub3(arm, p, c);
  sn_cross(moment, arm, f);
  sn_addto3(moment, tau);
  return sn_dot3(axis, moment) + sn_dot3(axis + 3, f);
}

// Joint, or joint in the parent's frame: a scalar, 3D or 6D gear.
SN_LOCAL void sn_joint_transmission(const SnModel *m, SnWorld *w, int i) {
  const int out = m->actuator_outadr[i], joint = m->actuator_trnid[2 * i], type = m->jnt_type[joint];
  const sn_real *gear = m->actuator_gear + 6 * out, *q = w->qpos + m->jnt_qposadr[joint];
  sn_real *moment = w->actuator_moment + m->mom_rowadr[out];
  if (type == SN_JNT_HINGE || type == SN_JNT_SLIDE) {
    w->actuator_length[out] = q[0] * gear[0];
    moment[0] = gear[0];
    return;
  }
  const bool in_parent = m->actuator_trntype[i] == SN_TRN_JOINTINPARENT, ball = type == SN_JNT_BALL;
  const sn_real *turn = ball ? gear : gear + 3;
  sn_real quat[4], inverse[4], axis[3];
  sn_copy4(quat, ball ? q : q + 3);
  sn_normalize4(quat);
  sn_negquat(inverse, quat);
  sn_real *rotation = ball ? moment : moment + 3;
  if (in_parent)
    sn_rotquat(rotation, turn, inverse);
  else
    sn_copy3(rotation, turn);
  if (ball) {
    sn_quat2vel(axis, quat);
    w->actuator_length[out] = sn_dot3(axis, rotation);
  } else {
    sn_copy3(moment, gear);
    w->actuator_length[out] = 0;  // no length is meaningful for a free joint
  }
}

// Slider-crank: with v the vector from slider to crank site and a the slider's axis, a rod of length r
// has length a.v - sqrt((a.v)^2 + r^2 - v.v); where the rod is too short, a.v.
SN_LOCAL void sn_crank_transmission(const SnModel *m, SnWorld *w, int i) {
  const int out = m->actuator_outadr[i], crank = m->actuator_trnid[2 * i], slider = m->actuator_trnid[2 * i + 1];
  const sn_real rod = m->actuator_cranklength[i], gear = m->actuator_gear[6 * out];
  const sn_real *p0 = w->site_xpos + 3 * slider, *p1 = w->site_xpos + 3 * crank, *mat = w->site_xmat + 9 * slider;
  const sn_real a[3] = {mat[2], mat[5], mat[8]};
  sn_real v[3], dv[3], da[3], torque[3];
  sn_sub3(v, p1, p0);
  const sn_real av = sn_dot3(v, a), det = av * av + rod * rod - sn_dot3(v, v);
  if (det <= 0) {
    w->actuator_length[out] = gear * av;
    sn_scale3(dv, a, gear);
    sn_scale3(da, v, gear);
  } else {
    const sn_real root = sn_sqrt(det);
    w->actuator_length[out] = gear * (av - root);
    sn_scale3(dv, a, gear * (1 - av / root));
    sn_addtoscl3(dv, v, gear / root);
    sn_scale3(da, v, gear * (1 - av / root));
  }
  // the crank feels the force dv; the slider its reaction and the torque a x da that turns the axis
  const sn_real none[3] = {0, 0, 0};
  sn_cross(torque, da, a);
  for (int k = m->mom_rowadr[out]; k < m->mom_rowadr[out] + m->mom_rownnz[out]; ++k) {
    const int dof = m->mom_colind[k];
    w->actuator_moment[k] =
        m->mom_side[k] > 0 ? sn_wrench_arm(m, w, dof, p1, dv, none) : -sn_wrench_arm(m, w, dof, p0, dv, torque);
  }
}

// Orientation of a site from its body's.
SN_LOCAL void sn_site_quat(const SnModel *m, const SnWorld *w, int site, sn_real *quat) {
  sn_mulquat(quat, w->xquat + 4 * m->site_bodyid[site], m->site_quat + 4 * site);
}

// Site: the gear is a wrench in the site's frame or, with a reference site, in that one's frame.
SN_LOCAL void sn_site_transmission(const SnModel *m, SnWorld *w, int i) {
  const int out = m->actuator_outadr[i], site = m->actuator_trnid[2 * i], ref = m->actuator_trnid[2 * i + 1];
  const sn_real *gear = m->actuator_gear + 6 * out, *p = w->site_xpos + 3 * site;
  const sn_real *mat = w->site_xmat + 9 * (ref >= 0 ? ref : site), *p_ref = ref >= 0 ? w->site_xpos + 3 * ref : p;
  sn_real force[3], torque[3];
  sn_mulmatvec3(force, mat, gear);
  sn_mulmatvec3(torque, mat, gear + 3);
  sn_real length = 0;
  if (ref >= 0) {
    sn_real v[3], quat[4], inverse[4], relative[4];
    sn_sub3(v, p, p_ref);
    length = sn_dot3(v, force);
    if (gear[3] != 0 || gear[4] != 0 || gear[5] != 0) {
      sn_site_quat(m, w, site, quat);
      sn_site_quat(m, w, ref, relative);
      sn_negquat(inverse, relative);
      sn_mulquat(relative, inverse, quat);
      sn_quat2vel(v, relative);
      length += sn_dot3(v, gear + 3);
    }
  }
  w->actuator_length[out] = length;
  for (int k = m->mom_rowadr[out]; k < m->mom_rowadr[out] + m->mom_rownnz[out]; ++k) {
    const bool own = m->mom_side[k] > 0;
    const sn_real arm = sn_wrench_arm(m, w, m->mom_colind[k], own ? p : p_ref, force, torque);
    w->actuator_moment[k] = own ? arm : -arm;
  }
}

SN_LOCAL void sn_tendon_transmission(const SnModel *m, SnWorld *w, int i) {
  const int out = m->actuator_outadr[i], tendon = m->actuator_trnid[2 * i];
  const sn_real gear = m->actuator_gear[6 * out], *J = w->ten_J + m->ten_J_rowadr[tendon];
  sn_real *moment = w->actuator_moment + m->mom_rowadr[out];
  w->actuator_length[out] = gear * w->ten_length[tendon];
  for (int k = 0; k < m->mom_rownnz[out]; ++k) moment[k] = gear * J[k];
}

// Adds scale times the velocity along `normal` of the point p of body per unit velocity of each of its
// dofs to row[nv].
SN_LOCAL void sn_add_normal_row(const SnModel *m, const SnWorld *w, int body, const sn_real *p, const sn_real *normal,
                                sn_real scale, sn_real *row) {
  const int weld = m->body_weldid[body];
  const sn_real none[3] = {0, 0, 0};
  if (m->body_dofnum[weld] == 0) return;
  for (int dof = m->body_dofadr[weld] + m->body_dofnum[weld] - 1; dof >= 0; dof = m->dof_parentid[dof])
    row[dof] += scale * sn_wrench_arm(m, w, dof, p, normal, none);
}

// Adhesion: minus the mean of the normal Jacobians of the body's contacts, those in the gap included. (The mean
// of a pyramid's rows is its normal.) Its length means nothing.
SN_LOCAL void sn_body_transmission(const SnModel *m, SnWorld *w, int i) {
  const int out = m->actuator_outadr[i], body = m->actuator_trnid[2 * i];
  sn_real *row = w->actuator_moment + m->mom_rowadr[out];
  int count = 0;
  w->actuator_length[out] = 0;
  sn_zero(row, m->nv);
  for (int c = 0; c < *w->ncon; ++c) {
    const SnContact *con = w->contact + c;
    const int body1 = m->geom_bodyid[con->geom[0]], body2 = m->geom_bodyid[con->geom[1]];
    if ((body1 != body && body2 != body) || con->exclude > 1) continue;
    ++count;
    sn_add_normal_row(m, w, body1, con->pos, con->frame, 1, row);
    sn_add_normal_row(m, w, body2, con->pos, con->frame, -1, row);
  }
  for (int k = 0; k < m->nv && count > 0; ++k) row[k] /= (sn_real)count;
}

SN_FUNC void sn_transmission(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nactuator) {
    switch (m->actuator_trntype[i]) {
      case SN_TRN_TENDON:
        sn_tendon_transmission(m, w, i);
        break;
      case SN_TRN_SITE:
        sn_site_transmission(m, w, i);
        break;
      case SN_TRN_SLIDERCRANK:
        sn_crank_transmission(m, w, i);
        break;
      case SN_TRN_BODY:
        sn_body_transmission(m, w, i);
        break;
      default:
        sn_joint_transmission(m, w, i);
        break;
    }
  }
  SN_SYNC(lane);
}

SN_LOCAL bool sn_actuator_disabled(const SnModel *m, int i) {
  const int group = m->actuator_group[i];
  return group >= 0 && group <= 30 && (m->opt.disableactuator & (1 << group)) != 0;
}

// Control k as the actuators see it.
SN_LOCAL sn_real sn_clamped_ctrl(const SnModel *m, const SnWorld *w, int k) {
  const sn_real u = w->ctrl[k], *range = m->actuator_ctrlrange + 2 * k;
  if (!m->actuator_ctrllimited[k] || (m->opt.disableflags & SN_DSBL_CLAMPCTRL)) return u;
  return u < range[0] ? range[0] : (u > range[1] ? range[1] : u);  // NaN stays NaN
}

// Rate of the activation of actuator i.
SN_LOCAL sn_real sn_activation_rate(const SnModel *m, int i, sn_real ctrl, sn_real act) {
  const sn_real *prm = m->actuator_dynprm + SN_NDYN * i;
  switch (m->actuator_dyntype[i]) {
    case SN_DYN_INTEGRATOR:
      return ctrl;
    case SN_DYN_MUSCLE:
      return sn_muscle_rate(ctrl, act, prm);
    default:
      return (ctrl - act) / sn_max(SN_MINVAL, prm[0]);
  }
}

// Activation of actuator i after h [s] at the given rate.
SN_LOCAL sn_real sn_advance_activation(const SnModel *m, int i, sn_real act, sn_real rate, sn_real h) {
  const sn_real *range = m->actuator_actrange + 2 * i;
  if (m->actuator_dyntype[i] == SN_DYN_FILTEREXACT) {
    const sn_real tau = sn_max(SN_MINVAL, m->actuator_dynprm[SN_NDYN * i]);
    act += rate * tau * (1 - sn_exp(-h / tau));
  } else {
    act += rate * h;
  }
  return m->actuator_actlimited[i] ? sn_clip(act, range[0], range[1]) : act;
}

// The setpoint that means the same rotation as u and is nearest to length.
SN_LOCAL sn_real sn_near_setpoint(sn_real u, sn_real length, sn_real period) {
  return u - period * sn_floor((u - length) / period + SN_R(0.5));
}

SN_LOCAL sn_real sn_actuator_gain(const SnModel *m, const SnWorld *w, int i) {
  const int out = m->actuator_outadr[i];
  const sn_real *prm = m->actuator_gainprm + SN_NGAIN * i, length = w->actuator_length[out],
                velocity = w->actuator_velocity[out];
  switch (m->actuator_gaintype[i]) {
    case SN_GAIN_FIXED:
      return prm[0];
    case SN_GAIN_AFFINE:
      return prm[0] + prm[1] * length + prm[2] * velocity;
    default:
      return sn_muscle_gain(m->muscle_gain + SN_NMUSCLE * i, length, velocity);
  }
}

SN_LOCAL sn_real sn_actuator_bias(const SnModel *m, const SnWorld *w, int i) {
  const int out = m->actuator_outadr[i];
  const sn_real *prm = m->actuator_biasprm + SN_NBIAS * i, length = w->actuator_length[out];
  switch (m->actuator_biastype[i]) {
    case SN_BIAS_NONE:
      return 0;
    case SN_BIAS_AFFINE:
      return prm[0] + prm[1] * length + prm[2] * w->actuator_velocity[out];
    default:
      return sn_muscle_bias(m->muscle_bias + SN_NMUSCLE * i, length);
  }
}

// act_dot and the force of actuator i before the limits on tendons.
SN_LOCAL void sn_actuate(const SnModel *m, SnWorld *w, int i, bool bad_ctrl) {
  const int out = m->actuator_outadr[i], adr = m->actuator_actadr[i];
  const sn_real ctrl = bad_ctrl ? 0 : sn_clamped_ctrl(m, w, m->actuator_ctrladr[i]), period = m->actuator_period[i];
  sn_real input = ctrl;
  if (adr >= 0) {
    const int last = adr + m->actuator_actnum[i] - 1;
    input = w->act[last];
    for (int k = adr; k < last; ++k) w->act_dot[k] = 0;
    w->act_dot[last] = sn_activation_rate(m, i, ctrl, input);
    if (m->actuator_actearly[i]) input = sn_advance_activation(m, i, input, w->act_dot[last], m->opt.timestep);
  }
  if (sn_actuator_disabled(m, i)) {
    w->actuator_force[out] = 0;
    return;
  }
  if (period > 0) input = sn_near_setpoint(input, w->actuator_length[out], period);
  w->actuator_force[out] = sn_actuator_gain(m, w, i) * input + sn_actuator_bias(m, w, i);
}

// Scales the forces on tendon t so that their sum stays in its range.
SN_LOCAL void sn_limit_tendon_force(const SnModel *m, SnWorld *w, int t) {
  if (!m->tendon_actfrclimited[t]) return;
  const sn_real *range = m->tendon_actfrcrange + 2 * t;
  sn_real total = 0;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k)
    total += w->actuator_force[m->actuator_outadr[m->ten_act[k]]];
  if (total == 0 || (total >= range[0] && total <= range[1])) return;
  const sn_real scale = (total < range[0] ? range[0] : range[1]) / total;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k)
    w->actuator_force[m->actuator_outadr[m->ten_act[k]]] *= scale;
}

// Dofs of joint j: sum over actuators, gravity compensation, limit on its first dof.
SN_LOCAL void sn_joint_force(const SnModel *m, SnWorld *w, int j, bool gravcomp) {
  const int adr = m->jnt_dofadr[j], end = j + 1 < m->njnt ? m->jnt_dofadr[j + 1] : m->nv;
  for (int dof = adr; dof < end; ++dof) {
    sn_real force = 0;
    for (int k = m->momT_adr[dof]; k < m->momT_adr[dof + 1]; ++k)
      force += w->actuator_moment[m->momT_entry[k]] * w->actuator_force[m->momT_out[k]];
    if (gravcomp && m->jnt_actgravcomp[j]) force += w->qfrc_gravcomp[dof];
    w->qfrc_actuator[dof] = force;
  }
  if (m->jnt_actfrclimited[j])
    w->qfrc_actuator[adr] = sn_clip(w->qfrc_actuator[adr], m->jnt_actfrcrange[2 * j], m->jnt_actfrcrange[2 * j + 1]);
}

SN_FUNC void sn_actuation(const SnModel *m, SnWorld *w, SnLane *lane) {
  // MuJoCo leaves gravity compensation out, too, where there is no actuator
  if (m->nactuator == 0 || (m->opt.disableflags & SN_DSBL_ACTUATION)) {
    SN_FOR(i, m->nout) w->actuator_force[i] = 0;
    SN_FOR(i, m->na) w->act_dot[i] = 0;
    SN_FOR(i, m->nv) w->qfrc_actuator[i] = 0;
    SN_SYNC(lane);
    return;
  }
  bool bad_ctrl = false;  // one bad control switches all of them off, as in MuJoCo; every lane looks at all
  for (int k = 0; k < m->nu; ++k) bad_ctrl = bad_ctrl || sn_is_bad(sn_clamped_ctrl(m, w, k));
  SN_FOR(i, m->nactuator) sn_actuate(m, w, i, bad_ctrl);
  SN_SYNC(lane);
  SN_FOR(t, m->ntendon) sn_limit_tendon_force(m, w, t);
  SN_SYNC(lane);
  SN_FOR(i, m->nactuator) {
    const int out = m->actuator_outadr[i];
    const sn_real *range = m->actuator_forcerange + 2 * i;
    if (m->actuator_forcelimited[i]) w->actuator_force[out] = sn_clip(w->actuator_force[out], range[0], range[1]);
  }
  SN_SYNC(lane);
  const bool gravcomp = m->ngravcomp > 0 && !(m->opt.disableflags & SN_DSBL_GRAVITY) && sn_norm3(m->opt.gravity) > 0;
  SN_FOR(j, m->njnt) sn_joint_force(m, w, j, gravcomp);
  SN_SYNC(lane);
}

SN_FUNC void sn_next_activation(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real h, sn_real *out) {
  if (m->opt.disableflags & SN_DSBL_ACTUATION) {
    SN_FOR(k, m->na) out[k] = w->act[k];
    SN_SYNC(lane);
    return;
  }
  SN_FOR(i, m->nactuator) {
    const int adr = m->actuator_actadr[i], end = adr + m->actuator_actnum[i];
    const bool disabled = sn_actuator_disabled(m, i);
    for (int k = adr; k < end; ++k) out[k] = sn_advance_activation(m, i, w->act[k], disabled ? 0 : w->act_dot[k], h);
    // a setpoint on a rotation stays within half a turn of the length
    if (m->actuator_period[i] > 0 && m->actuator_dyntype[i] == SN_DYN_INTEGRATOR)
      out[end - 1] = sn_near_setpoint(out[end - 1], w->actuator_length[m->actuator_outadr[i]], m->actuator_period[i]);
  }
  SN_SYNC(lane);
}
