// Poses from the frames of bodies, velocities from their twists: with cvel = (omega, v_c) of a body about the
// centre of mass c of its tree, a point p of it moves at v_c + omega x (p - c).
//
// Adjoint, about the fixed point c: a bar b of the point's velocity is b for v_c, (p - c) x b for omega, and, because
// the point moves with its body, the force b x omega on the body at p.
#include "physics/sensor/sensor.h"

#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

SN_FUNC bool sn_object_has_frame(int type) {
  return type == SN_OBJ_BODY || type == SN_OBJ_XBODY || type == SN_OBJ_GEOM || type == SN_OBJ_SITE;
}

// Body that carries an object.
SN_LOCAL int frame_object_body(const SnModel *m, int type, int id) {
  return type == SN_OBJ_SITE ? m->site_bodyid[id] : type == SN_OBJ_GEOM ? m->geom_bodyid[id] : id;
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
    case SN_OBJ_BODY: {
      sn_real local[9];
      sn_mulmatvec3(p, w->xmat + 9 * id, m->body_ipos + 3 * id);
      sn_addto3(p, w->xpos + 3 * id);
      sn_quat2mat(local, m->body_iquat + 4 * id);
      sn_mulmatmat3(r, w->xmat + 9 * id, local);
      break;
    }
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
// Force and torque on a site or geom by the model. Of other objects the frame is a body's.
SN_LOCAL void frame_object_wrench(SnAdjoint *a, int type, int id, const sn_real *force, const sn_real *torque) {
  if (!sn_model_bar(a) || (type != SN_OBJ_SITE && type != SN_OBJ_GEOM)) return;
  sn_real *to = (type == SN_OBJ_SITE ? sn_model_bar(a)->site_wrench : sn_model_bar(a)->geom_wrench) + 6 * id;
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
  frame_object_wrench(a, type, id, pos_bar, turn_bar);
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
  frame_object_wrench(a, type, id, t, NULL);
#endif
}

SN_FUNC void sn_ball_turn_vjp(const SnWorld *w, SnAdjoint *a, int qpos, int dof, const sn_real *turn_bar) {
  sn_real quat[4], back[4], local[3];
  sn_copy4(quat, w->qpos + qpos);
  sn_normalize4(quat);
  sn_negquat(back, quat);
  sn_rotquat(local, turn_bar, back);
  sn_addto3(a->qpos_bar + dof, local);
}
