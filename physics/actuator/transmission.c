// Transmissions: length and moment of actuators, actuator_length and actuator_moment (manual, Computation, "Actuation
// model"; XMLreference, actuator/general).
//
// Moments of sites are those of a wrench at the site, J' (f, tau) with J from cdof, as in tendon.c.
// The sparsity of actuator_moment is fixed at load (setup_actuator.c).
// The adjoint is in transmission_vjp.c.
#include "physics/actuator/actuator_private.h"
#include "physics/base/vec.h"

// Wrench (moment, force) about the origin of cdof of dof: a force f at p and a torque tau.
SN_LOCAL sn_real trn_wrench_arm(const SnModel *m, const SnWorld *w, int dof, const sn_real *p, const sn_real *f,
                                const sn_real *tau) {
  const sn_real *c = w->subtree_com + 3 * m->body_rootid[m->dof_bodyid[dof]], *axis = w->cdof + 6 * dof;
  sn_real arm[3], moment[3];
  sn_sub3(arm, p, c);
  sn_cross(moment, arm, f);
  sn_addto3(moment, tau);
  return sn_dot3(axis, moment) + sn_dot3(axis + 3, f);
}

// Joint, or joint in the parent's frame: a scalar, 3D or 6D gear.
SN_LOCAL void trn_joint(const SnModel *m, SnWorld *w, int i) {
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
SN_LOCAL void trn_crank(const SnModel *m, SnWorld *w, int i) {
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
        m->mom_side[k] > 0 ? trn_wrench_arm(m, w, dof, p1, dv, none) : -trn_wrench_arm(m, w, dof, p0, dv, torque);
  }
}

// Orientation: three rotations along the axes of what turns, the joint's body or the site.
SN_LOCAL void trn_orientation(const SnModel *m, SnWorld *w, int i) {
  const int first = m->actuator_outadr[i], site = m->actuator_trnid[2 * i], ref = m->actuator_trnid[2 * i + 1];
  const sn_real none[3] = {0, 0, 0};
  if (ref < 0) {
    sn_ball_rotation(m, w, site, w->actuator_length + first);
    for (int out = first; out < first + 3; ++out) w->actuator_moment[m->mom_rowadr[out]] = 1;
    return;
  }
  const sn_real *p = w->site_xpos + 3 * site, *mat = w->site_xmat + 9 * site;
  sn_relative_turn(m, w, site, ref, w->actuator_length + first);
  for (int e = 0; e < 3; ++e) {
    const sn_real axis[3] = {mat[e], mat[3 + e], mat[6 + e]};
    const int adr = m->mom_rowadr[first + e], end = adr + m->mom_rownnz[first + e];
    for (int k = adr; k < end; ++k) {
      const sn_real arm = trn_wrench_arm(m, w, m->mom_colind[k], p, none, axis);
      w->actuator_moment[k] = m->mom_side[k] > 0 ? arm : -arm;
    }
  }
}

// Site: the gear is a wrench in the site's frame or, with a reference site, in that one's frame.
SN_LOCAL void trn_site(const SnModel *m, SnWorld *w, int i) {
  const int out = m->actuator_outadr[i], site = m->actuator_trnid[2 * i], ref = m->actuator_trnid[2 * i + 1];
  const sn_real *gear = m->actuator_gear + 6 * out, *p = w->site_xpos + 3 * site;
  const sn_real *mat = w->site_xmat + 9 * (ref >= 0 ? ref : site), *p_ref = ref >= 0 ? w->site_xpos + 3 * ref : p;
  sn_real force[3], torque[3];
  sn_mulmatvec3(force, mat, gear);
  sn_mulmatvec3(torque, mat, gear + 3);
  sn_real length = 0;
  if (ref >= 0) {
    sn_real v[3];
    sn_sub3(v, p, p_ref);
    length = sn_dot3(v, force);
    if (gear[3] != 0 || gear[4] != 0 || gear[5] != 0) {
      sn_relative_turn(m, w, site, ref, v);
      length += sn_dot3(v, gear + 3);
    }
  }
  w->actuator_length[out] = length;
  for (int k = m->mom_rowadr[out]; k < m->mom_rowadr[out] + m->mom_rownnz[out]; ++k) {
    const bool own = m->mom_side[k] > 0;
    const sn_real arm = trn_wrench_arm(m, w, m->mom_colind[k], own ? p : p_ref, force, torque);
    w->actuator_moment[k] = own ? arm : -arm;
  }
}

SN_LOCAL void trn_tendon(const SnModel *m, SnWorld *w, int i) {
  const int out = m->actuator_outadr[i], tendon = m->actuator_trnid[2 * i];
  const int n = m->mom_rownnz[out];
  const sn_real gear = m->actuator_gear[6 * out], *SN_RESTRICT J = w->ten_J + m->ten_J_rowadr[tendon];
  sn_real *SN_RESTRICT moment = w->actuator_moment + m->mom_rowadr[out];
  w->actuator_length[out] = gear * w->ten_length[tendon];
  for (int k = 0; k < n; ++k) moment[k] = gear * J[k];
}

// Adds scale times the velocity along `normal` of the point p of body per unit velocity of each of its
// dofs to row[nv].
SN_LOCAL void trn_add_normal_row(const SnModel *m, const SnWorld *w, int body, const sn_real *p, const sn_real *normal,
                                 sn_real scale, sn_real *row) {
  const int weld = m->body_weldid[body];
  const sn_real none[3] = {0, 0, 0};
  if (m->body_dofnum[weld] == 0) return;
  for (int dof = m->body_dofadr[weld] + m->body_dofnum[weld] - 1; dof >= 0; dof = m->dof_parentid[dof])
    row[dof] += scale * trn_wrench_arm(m, w, dof, p, normal, none);
}

// Adhesion: minus the mean of the normal Jacobians of the body's contacts, those in the gap included. (The mean
// of a pyramid's rows is its normal.) Its length means nothing.
SN_LOCAL void trn_body(const SnModel *m, SnWorld *w, int i) {
  const int out = m->actuator_outadr[i], body = m->actuator_trnid[2 * i];
  sn_real *row = w->actuator_moment + m->mom_rowadr[out];
  int count = 0;
  w->actuator_length[out] = 0;
  sn_zero(row, m->nv);
  for (int c = 0; c < *w->ncon; ++c) {
    const SnContact *con = w->contact + c;
    if (!sn_adheres(m, con, body)) continue;
    ++count;
    trn_add_normal_row(m, w, m->geom_bodyid[con->geom[0]], con->pos, con->frame, 1, row);
    trn_add_normal_row(m, w, m->geom_bodyid[con->geom[1]], con->pos, con->frame, -1, row);
  }
  for (int k = 0; k < m->nv && count > 0; ++k) row[k] /= (sn_real)count;
}

SN_FUNC void sn_transmission(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nactuator) {
    switch (m->actuator_trntype[i]) {
      case SN_TRN_TENDON:
        trn_tendon(m, w, i);
        break;
      case SN_TRN_SITE:
        trn_site(m, w, i);
        break;
      case SN_TRN_SLIDERCRANK:
        trn_crank(m, w, i);
        break;
      case SN_TRN_BODY:
        trn_body(m, w, i);
        break;
      case SN_TRN_SO3:
        trn_orientation(m, w, i);
        break;
      default:
        trn_joint(m, w, i);
        break;
    }
  }
  SN_SYNC(lane);
}
