// Poses from the frames of bodies, velocities from their twists: with cvel = (omega, v_c) of a body about the
// centre of mass c of its tree, a point p of it moves at v_c + omega x (p - c).
#include "physics/frame.h"

#include "physics/stages.h"
#include "physics/vec.h"

SN_FUNC bool sn_object_has_frame(int type) {
  return type == SN_OBJ_BODY || type == SN_OBJ_XBODY || type == SN_OBJ_GEOM || type == SN_OBJ_SITE;
}

// Body that carries an object.
SN_LOCAL int sn_object_body(const SnModel *m, int type, int id) {
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
  const sn_real *body = w->xquat + 4 * sn_object_body(m, type, id);
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
  sn_point_velocity(m, w, sn_object_body(m, type, id), pos, vel);
}
