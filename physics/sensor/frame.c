// Poses from the frames of bodies, velocities from their twists: with cvel = (omega, v_c) of a body about the
// centre of mass c of its tree, a point p of it moves at v_c + omega x (p - c). With A = (alpha, a_c) the body's cacc
// and what qacc adds to it, the sum of cdof_k qacc_k over its dofs, the point's acceleration is
//
//   a_c + alpha x (p - c) + omega x v_p,    v_p the point's velocity.
//
// Adjoint, about the fixed point c: a bar b of the point's velocity is b for v_c, (p - c) x b for omega, and, because
// the point moves with its body, the force b x omega on the body at p. Bars (d, b) of an acceleration are
// T = (d + (p - c) x b, b) for A, cdof_k . T for qacc_k, b x omega for v_p, v_p x b for omega, and b x alpha at p.
#include "physics/sensor/sensor.h"

#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

SN_FUNC bool sn_object_has_frame(const SnModel *m, int type, int id) {
  enum { FIXED };  // mjtCamLight
  if (type == SN_OBJ_CAMERA) return m->cam_mode[id] == FIXED;
  return type == SN_OBJ_BODY || type == SN_OBJ_XBODY || type == SN_OBJ_GEOM || type == SN_OBJ_SITE;
}

// Body that carries an object.
SN_LOCAL int frame_object_body(const SnModel *m, int type, int id) {
  if (type == SN_OBJ_CAMERA) return m->cam_bodyid[id];
  return type == SN_OBJ_SITE ? m->site_bodyid[id] : type == SN_OBJ_GEOM ? m->geom_bodyid[id] : id;
}

// Pose of what stands at `local`, `quat` in the frame of a body.
SN_LOCAL void frame_in_body(const SnWorld *w, int body, const sn_real *local, const sn_real *quat, sn_real *p,
                            sn_real *r) {
  sn_real turn[9];
  sn_mulmatvec3(p, w->xmat + 9 * body, local);
  sn_addto3(p, w->xpos + 3 * body);
  sn_quat2mat(turn, quat);
  sn_mulmatmat3(r, w->xmat + 9 * body, turn);
}

SN_FUNC void sn_object_pose(const SnModel *m, const SnWorld *w, int type, int id, sn_real *pos, sn_real *mat) {
  sn_real p[3], r[9];
  switch (type) {
    case SN_OBJ_SITE:
      sn_site_pose(m, w, id, p, r);
      break;
    case SN_OBJ_GEOM:
      sn_geom_pose(m, w, id, p, r);
      break;
    case SN_OBJ_BODY:
      frame_in_body(w, id, m->body_ipos + 3 * id, m->body_iquat + 4 * id, p, r);
      break;
    case SN_OBJ_CAMERA:
      frame_in_body(w, m->cam_bodyid[id], m->cam_pos + 3 * id, m->cam_quat + 4 * id, p, r);
      break;
    default:
      sn_copy3(p, w->xpos + 3 * id);
      sn_copy(r, w->xmat + 9 * id, 9);
  }
  if (pos) sn_copy3(pos, p);
  if (mat) sn_copy(mat, r, 9);
}

SN_FUNC void sn_object_quat(const SnModel *m, const SnWorld *w, int type, int id, sn_real *quat) {
  const sn_real *body = w->xquat + 4 * frame_object_body(m, type, id);
  switch (type) {
    case SN_OBJ_SITE:
      sn_mulquat(quat, body, m->site_quat + 4 * id);
      break;
    case SN_OBJ_GEOM:
      sn_mulquat(quat, body, m->geom_quat + 4 * id);
      break;
    case SN_OBJ_BODY:
      sn_mulquat(quat, body, m->body_iquat + 4 * id);
      break;
    case SN_OBJ_CAMERA:
      sn_mulquat(quat, body, m->cam_quat + 4 * id);
      break;
    default:
      sn_copy4(quat, body);
  }
}

SN_FUNC void sn_point_velocity(const SnModel *m, const SnWorld *w, int body, const sn_real *p, sn_real *vel) {
  sn_real arm[3], turn[3];
  if (m->body_treeid[body] < 0) {  // static, or a mocap body: MuJoCo gives these no velocity
    sn_zero(vel, 6);
    return;
  }
  sn_sub3(arm, p, w->subtree_com + 3 * m->body_rootid[body]);
  sn_copy(vel, w->cvel + 6 * body, 6);
  sn_cross(turn, vel, arm);
  sn_addto3(vel + 3, turn);
}

SN_FUNC void sn_object_velocity(const SnModel *m, const SnWorld *w, int type, int id, sn_real *vel) {
  sn_real pos[3];
  sn_object_pose(m, w, type, id, pos, NULL);
  sn_point_velocity(m, w, frame_object_body(m, type, id), pos, vel);
}

SN_FUNC void sn_point_wrench(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *p,
                             const sn_real *force, const sn_real *torque) {
  sn_real *wrench = sn_body_wrench(m, a, body), arm[3], t[3];
  if (force) {
    sn_sub3(arm, p, sn_twist_origin(m, w, body));
    sn_cross(t, arm, force);
    sn_addto3(wrench, t);
    sn_addto3(wrench + 3, force);
  }
  if (torque) sn_addto3(wrench, torque);
}

#if defined(SN_MODEL_BARS)
// Force and torque on a site, a geom, a frame of inertia or a body's own frame by the model. No parameter may move a
// camera in its body, but the body.
SN_LOCAL void frame_object_wrench(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                  const sn_real *force, const sn_real *torque) {
  const SnModelBar *bar = sn_model_bar(a);
  const sn_real none[3] = {0};
  if (bar && (type == SN_OBJ_XBODY || type == SN_OBJ_CAMERA)) {
    const int body = frame_object_body(m, type, id);
    sn_real arm[3], about[3];
    sn_object_pose(m, w, type, id, arm, NULL);
    sn_subfrom3(arm, w->xpos + 3 * body);
    sn_cross(about, arm, force ? force : none);
    if (torque) sn_addto3(about, torque);
    sn_welded_model_vjp(m, w, a, body, force ? force : none, about);
  }
  if (!bar || (type != SN_OBJ_SITE && type != SN_OBJ_GEOM && type != SN_OBJ_BODY)) return;
  sn_real *to = type == SN_OBJ_SITE ? bar->site_wrench : type == SN_OBJ_GEOM ? bar->geom_wrench : bar->body_wrench;
  to += 6 * id;
  if (torque) sn_addto3(to, torque);
  if (force) sn_addto3(to + 3, force);
}
#endif

SN_FUNC void sn_object_pose_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                const sn_real *pos_bar, const sn_real *turn_bar) {
  sn_real pos[3];
  sn_object_pose(m, w, type, id, pos, NULL);
  sn_point_wrench(m, w, a, frame_object_body(m, type, id), pos, pos_bar, turn_bar);
#if defined(SN_MODEL_BARS)
  frame_object_wrench(m, w, a, type, id, pos_bar, turn_bar);
#endif
}

SN_FUNC void sn_object_push(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id, const sn_real *p,
                            const sn_real *force) {
  sn_point_wrench(m, w, a, frame_object_body(m, type, id), p, force, NULL);
#if defined(SN_MODEL_BARS)
  sn_real pos[3], arm[3], torque[3];
  sn_object_pose(m, w, type, id, pos, NULL);
  sn_sub3(arm, p, pos);
  sn_cross(torque, arm, force);
  frame_object_wrench(m, w, a, type, id, force, torque);
#endif
}

SN_FUNC void sn_object_velocity_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                    const sn_real vel_bar[6]) {
  const int body = frame_object_body(m, type, id);
  sn_real *bar = sn_twist_bar(m, a, body, SN_VEL), pos[3], arm[3], t[3];
  if (m->body_treeid[body] < 0) return;
  sn_object_pose(m, w, type, id, pos, NULL);
  sn_sub3(arm, pos, sn_twist_origin(m, w, body));
  sn_cross(t, arm, vel_bar + 3);
  for (int k = 0; k < 3; ++k) bar[k] += vel_bar[k] + t[k];
  sn_addto3(bar + 3, vel_bar + 3);
  sn_cross(t, vel_bar + 3, w->cvel + 6 * body);
  sn_point_wrench(m, w, a, body, pos, t, NULL);
#if defined(SN_MODEL_BARS)
  frame_object_wrench(m, w, a, type, id, t, NULL);
#endif
}

// What the world's acceleration gives to that of a body, and what qacc does.
SN_LOCAL void frame_acceleration(const SnModel *m, const SnWorld *w, int body, sn_real *acc) {
  sn_copy(acc, w->cacc + 6 * m->link_of_body[body], 6);
  for (int k = m->chain_adr[body]; k < m->chain_adr[body + 1]; ++k) {
    const int dof = m->chain_dof[k];
    for (int e = 0; e < 6; ++e) acc[e] += w->cdof[6 * dof + e] * w->qacc[dof];
  }
}

SN_FUNC void sn_point_acceleration(const SnModel *m, const SnWorld *w, int body, const sn_real *p, sn_real *acc) {
  sn_real vel[6], arm[3], t[3];
  frame_acceleration(m, w, body, acc);
  if (m->body_treeid[body] < 0) return;
  sn_sub3(arm, p, w->subtree_com + 3 * m->body_rootid[body]);
  sn_point_velocity(m, w, body, p, vel);
  sn_cross(t, acc, arm);
  sn_addto3(acc + 3, t);
  sn_cross(t, vel, vel + 3);
  sn_addto3(acc + 3, t);
}

SN_FUNC void sn_point_acceleration_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *p,
                                       const sn_real acc_bar[6], sn_real *p_bar) {
  const sn_real *b = acc_bar + 3;
  sn_real vel[6], acc[6], arm[3], T[6], t[3], v_bar[3];
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->gravity && !(m->opt.disableflags & SN_DSBL_GRAVITY))
    sn_subfrom3(sn_model_bar(a)->gravity, b);
#endif
  if (m->body_treeid[body] < 0) return;
  frame_acceleration(m, w, body, acc);
  sn_point_velocity(m, w, body, p, vel);
  sn_sub3(arm, p, sn_twist_origin(m, w, body));
  sn_cross(T, arm, b);
  sn_addto3(T, acc_bar);
  sn_copy3(T + 3, b);
  sn_real *acceleration = sn_twist_bar(m, a, body, SN_ACC), *velocity = sn_twist_bar(m, a, body, SN_VEL);
  sn_real *bias = a->acc_bar + 6 * m->link_of_body[body];
  for (int e = 0; e < 6; ++e) acceleration[e] += T[e];
  for (int e = 0; e < 6; ++e) bias[e] += T[e];
  for (int k = m->chain_adr[body]; k < m->chain_adr[body + 1]; ++k)
    a->qacc_bar[m->chain_dof[k]] += sn_dot(w->cdof + 6 * m->chain_dof[k], T, 6);
  sn_cross(v_bar, b, vel);
  sn_cross(t, vel + 3, b);
  sn_addto3(velocity, t);
  sn_cross(t, arm, v_bar);
  sn_addto3(velocity, t);
  sn_addto3(velocity + 3, v_bar);
  sn_cross(t, b, acc);
  sn_addto3(p_bar, t);
  sn_cross(t, v_bar, vel);
  sn_addto3(p_bar, t);
}

SN_FUNC void sn_object_acceleration(const SnModel *m, const SnWorld *w, int type, int id, sn_real *acc) {
  const int body = frame_object_body(m, type, id);
  sn_real pos[3];
  sn_object_pose(m, w, type, id, pos, NULL);
  sn_point_acceleration(m, w, body, pos, acc);
}

SN_FUNC void sn_object_acceleration_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                        const sn_real acc_bar[6]) {
  const int body = frame_object_body(m, type, id);
  sn_real pos[3], p_bar[3] = {0};
  sn_object_pose(m, w, type, id, pos, NULL);
  sn_point_acceleration_vjp(m, w, a, body, pos, acc_bar, p_bar);
  sn_object_pose_vjp(m, w, a, type, id, p_bar, NULL);
}

SN_FUNC void sn_ball_turn_vjp(const SnWorld *w, SnAdjoint *a, int qpos, int dof, const sn_real *turn_bar) {
  sn_real quat[4], back[4], local[3];
  sn_copy4(quat, w->qpos + qpos);
  sn_normalize4(quat);
  sn_negquat(back, quat);
  sn_rotquat(local, turn_bar, back);
  sn_addto3(a->qpos_bar + dof, local);
}
