// Sensors of frames, with MuJoCo's definitions (manual, XMLreference, "sensor").
//
// Relative to a reference frame (xr, Rr, omega_r, vr) an object (x, R, omega, v) has
//   position Rr'(x - xr),  axis Rr' R e,  orientation qr^-1 q,  angular velocity Rr'(omega - omega_r),
//   linear velocity Rr'(v - vr - omega_r x (x - xr)).
//
// Adjoint. With the bar b = Rr bar in world axes, and u what Rr' stands before, a small turn t of the reference frame
// changes Rr' u by -Rr'(t x u), so the frame gets the torque b x u; b itself goes to what u is made of:
//
//   position          x: b                         xr: -b
//   axis              turn of the object: (R e) x b
//   angular velocity  omega: b                     omega_r: -b
//   linear velocity   v: b, x: omega_r x b         vr: -b, xr: -omega_r x b, omega_r: -(x - xr) x b
//
// A small turn t of an object and tr of its frame turn qr^-1 q by Rr'(t - tr) from the left.
//
// The angular momentum of a subtree, sum I w + m (c - C) x (u - U) over its bodies, with the bar g gives
//
//   w: I g,   u: m g x (c - C),   c: m (u - U) x g,   a small turn of I: I w x g + I g x w.
//
// All of it is smooth in positions and velocities.
#include "physics/sensor/sensor_private.h"

#include "physics/base/vec.h"
#include "physics/sensor/sensor.h"

// Pose of an object, or one axis of it, relative to the reference frame where there is one.
SN_LOCAL void frame_pose_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int type = m->sensor_type[i], ref = m->sensor_refid[i];
  sn_real pos[3], mat[9], ref_pos[3] = {0, 0, 0}, ref_mat[9], v[3];
  sn_object_pose(m, w, m->sensor_objtype[i], m->sensor_objid[i], pos, mat);
  if (ref >= 0) sn_object_pose(m, w, m->sensor_reftype[i], ref, ref_pos, ref_mat);
  if (type == SN_SENS_FRAMEPOS) {
    sn_sub3(v, pos, ref_pos);
  } else {
    const int axis = type - SN_SENS_FRAMEXAXIS;
    sn_set3(v, mat[axis], mat[3 + axis], mat[6 + axis]);
  }
  if (ref >= 0)
    sn_mulmattvec3(value, ref_mat, v);
  else
    sn_copy3(value, v);
}

// Bar of a value in the axes of the reference frame, in world axes.
SN_LOCAL void frame_reference_bar(const SnModel *m, const SnWorld *w, int i, const sn_real *bar, sn_real *b) {
  sn_real mat[9];
  if (m->sensor_refid[i] < 0) {
    sn_copy3(b, bar);
    return;
  }
  sn_object_pose(m, w, m->sensor_reftype[i], m->sensor_refid[i], NULL, mat);
  sn_mulmatvec3(b, mat, bar);
}

SN_LOCAL void frame_pose_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  const int type = m->sensor_type[i], objtype = m->sensor_objtype[i], id = m->sensor_objid[i], ref = m->sensor_refid[i];
  const bool point = type == SN_SENS_FRAMEPOS;
  sn_real b[3], pos[3], mat[9], u[3], torque[3];
  frame_reference_bar(m, w, i, bar, b);
  sn_object_pose(m, w, objtype, id, pos, mat);
  if (point) {
    sn_object_pose_vjp(m, w, a, objtype, id, b, NULL);
  } else {
    const int axis = type - SN_SENS_FRAMEXAXIS;
    sn_set3(u, mat[axis], mat[3 + axis], mat[6 + axis]);
    sn_cross(torque, u, b);
    sn_object_pose_vjp(m, w, a, objtype, id, NULL, torque);
  }
  if (ref < 0) return;
  if (point) {
    sn_real ref_pos[3], back[3];
    sn_object_pose(m, w, m->sensor_reftype[i], ref, ref_pos, NULL);
    sn_sub3(u, pos, ref_pos);
    sn_scale3(back, b, -1);
    sn_cross(torque, b, u);
    sn_object_pose_vjp(m, w, a, m->sensor_reftype[i], ref, back, torque);
    return;
  }
  sn_cross(torque, b, u);
  sn_object_pose_vjp(m, w, a, m->sensor_reftype[i], ref, NULL, torque);
}

SN_LOCAL void frame_quat_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  sn_real quat[4], back[4];
  sn_object_quat(m, w, m->sensor_objtype[i], m->sensor_objid[i], quat);
  if (m->sensor_refid[i] < 0) {
    sn_copy4(value, quat);
    return;
  }
  sn_object_quat(m, w, m->sensor_reftype[i], m->sensor_refid[i], back);
  sn_negquat(back, back);
  sn_mulquat(value, back, quat);
}

SN_LOCAL void frame_quat_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  sn_real torque[3];
  frame_reference_bar(m, w, i, bar, torque);
  sn_object_pose_vjp(m, w, a, m->sensor_objtype[i], m->sensor_objid[i], NULL, torque);
  if (m->sensor_refid[i] < 0) return;
  sn_scale3(torque, torque, -1);
  sn_object_pose_vjp(m, w, a, m->sensor_reftype[i], m->sensor_refid[i], NULL, torque);
}

// Velocity of the object of a sensor less that of its reference frame there, in world axes; arm: from the frame to it.
SN_LOCAL void frame_relative_velocity(const SnModel *m, const SnWorld *w, int i, sn_real *vel, sn_real *ref_vel,
                                      sn_real *arm) {
  const int objtype = m->sensor_objtype[i], id = m->sensor_objid[i], reftype = m->sensor_reftype[i],
            ref = m->sensor_refid[i];
  sn_real pos[3], ref_pos[3], carried[3];
  sn_object_velocity(m, w, objtype, id, vel);
  sn_object_velocity(m, w, reftype, ref, ref_vel);
  sn_object_pose(m, w, objtype, id, pos, NULL);
  sn_object_pose(m, w, reftype, ref, ref_pos, NULL);
  sn_sub3(arm, pos, ref_pos);
  sn_cross(carried, ref_vel, arm);
  for (int k = 0; k < 6; ++k) vel[k] -= ref_vel[k];
  sn_subfrom3(vel + 3, carried);
}

SN_LOCAL void frame_velocity_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int part = m->sensor_type[i] == SN_SENS_FRAMELINVEL ? 3 : 0;
  sn_real vel[6], ref_vel[6], arm[3], mat[9];
  if (m->sensor_refid[i] < 0) {
    sn_object_velocity(m, w, m->sensor_objtype[i], m->sensor_objid[i], vel);
    sn_copy3(value, vel + part);
    return;
  }
  frame_relative_velocity(m, w, i, vel, ref_vel, arm);
  sn_object_pose(m, w, m->sensor_reftype[i], m->sensor_refid[i], NULL, mat);
  sn_mulmattvec3(value, mat, vel + part);
}

SN_LOCAL void frame_velocity_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  const int part = m->sensor_type[i] == SN_SENS_FRAMELINVEL ? 3 : 0;
  const int objtype = m->sensor_objtype[i], id = m->sensor_objid[i], reftype = m->sensor_reftype[i],
            ref = m->sensor_refid[i];
  sn_real b[3], vel_bar[6] = {0};
  frame_reference_bar(m, w, i, bar, b);
  sn_copy3(vel_bar + part, b);
  sn_object_velocity_vjp(m, w, a, objtype, id, vel_bar);
  if (ref < 0) return;
  sn_real vel[6], ref_vel[6], arm[3], torque[3], force[3] = {0, 0, 0}, t[3];
  frame_relative_velocity(m, w, i, vel, ref_vel, arm);
  for (int k = 0; k < 6; ++k) vel_bar[k] = -vel_bar[k];
  if (part == 3) {
    sn_cross(t, arm, b);
    sn_subfrom3(vel_bar, t);
    sn_cross(force, ref_vel, b);
    sn_object_pose_vjp(m, w, a, objtype, id, force, NULL);
    sn_scale3(force, force, -1);
  }
  sn_object_velocity_vjp(m, w, a, reftype, ref, vel_bar);
  sn_cross(torque, b, vel + part);
  sn_object_pose_vjp(m, w, a, reftype, ref, force, torque);
}

// Velocity of a site in its own axes.
SN_LOCAL void frame_site_motion_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  sn_real vel[6], mat[9];
  sn_object_velocity(m, w, SN_OBJ_SITE, m->sensor_objid[i], vel);
  sn_object_pose(m, w, SN_OBJ_SITE, m->sensor_objid[i], NULL, mat);
  sn_mulmattvec3(value, mat, vel + (m->sensor_type[i] == SN_SENS_VELOCIMETER ? 3 : 0));
}

SN_LOCAL void frame_site_motion_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  const int part = m->sensor_type[i] == SN_SENS_VELOCIMETER ? 3 : 0, site = m->sensor_objid[i];
  sn_real vel[6], mat[9], vel_bar[6] = {0}, torque[3];
  sn_object_velocity(m, w, SN_OBJ_SITE, site, vel);
  sn_object_pose(m, w, SN_OBJ_SITE, site, NULL, mat);
  sn_mulmatvec3(vel_bar + part, mat, bar);
  sn_cross(torque, vel_bar + part, vel + part);
  sn_object_velocity_vjp(m, w, a, SN_OBJ_SITE, site, vel_bar);
  sn_object_pose_vjp(m, w, a, SN_OBJ_SITE, site, NULL, torque);
}

// Mass of the subtree of a body: bodies of a subtree follow their root in one run.
SN_LOCAL sn_real frame_subtree_mass(const SnModel *m, int body) {
  sn_real mass = 0;
  for (int i = body; i <= m->body_last[body]; ++i) mass += m->body_mass[i];
  return mass;
}

// Centre of mass of the subtree of a body. A step itself knows the centres of whole trees only.
SN_FUNC void sn_subtree_com(const SnModel *m, const SnWorld *w, int body, sn_real *value) {
  const sn_real mass = frame_subtree_mass(m, body);
  sn_real sum[3] = {0, 0, 0}, pos[3];
  for (int i = body; i <= m->body_last[body]; ++i) {
    sn_object_pose(m, w, SN_OBJ_BODY, i, pos, NULL);
    sn_addtoscl3(sum, pos, m->body_mass[i]);
  }
  if (mass < SN_MINVAL)
    sn_object_pose(m, w, SN_OBJ_BODY, body, value, NULL);
  else
    sn_scale3(value, sum, SN_R(1.0) / mass);
}

SN_LOCAL void frame_subtree_com_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *bar) {
  const sn_real mass = frame_subtree_mass(m, body);
  sn_real share[3];
#if defined(SN_MODEL_BARS)
  sn_real com[3], pos[3];
  sn_subtree_com(m, w, body, com);
#endif
  if (mass < SN_MINVAL) {
    sn_object_pose_vjp(m, w, a, SN_OBJ_BODY, body, bar, NULL);
    return;
  }
  for (int i = body; i <= m->body_last[body]; ++i) {
    sn_scale3(share, bar, m->body_mass[i] / mass);
    sn_object_pose_vjp(m, w, a, SN_OBJ_BODY, i, share, NULL);
#if defined(SN_MODEL_BARS)
    sn_object_pose(m, w, SN_OBJ_BODY, i, pos, NULL);
    sn_subfrom3(pos, com);
    sn_mass_model_bar(a, i, sn_dot3(bar, pos) / mass);
#endif
  }
}

// Velocity of that centre of mass: the mean of the bodies' own, 0 where they have no mass.
SN_LOCAL void frame_subtree_velocity_value(const SnModel *m, const SnWorld *w, int body, sn_real *value) {
  sn_real sum[3] = {0, 0, 0}, vel[6];
  for (int i = body; i <= m->body_last[body]; ++i) {
    sn_object_velocity(m, w, SN_OBJ_BODY, i, vel);
    sn_addtoscl3(sum, vel + 3, m->body_mass[i]);
  }
  sn_scale3(value, sum, SN_R(1.0) / sn_max(frame_subtree_mass(m, body), SN_MINVAL));
}

SN_LOCAL void frame_subtree_velocity_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body,
                                         const sn_real *bar) {
  const sn_real mass = sn_max(frame_subtree_mass(m, body), SN_MINVAL);
  sn_real share[6] = {0};
#if defined(SN_MODEL_BARS)
  sn_real mean[3], own[6];
  frame_subtree_velocity_value(m, w, body, mean);
#endif
  for (int i = body; i <= m->body_last[body]; ++i) {
    sn_scale3(share + 3, bar, m->body_mass[i] / mass);
    sn_object_velocity_vjp(m, w, a, SN_OBJ_BODY, i, share);
#if defined(SN_MODEL_BARS)
    sn_object_velocity(m, w, SN_OBJ_BODY, i, own);
    sn_subfrom3(own + 3, mean);
    sn_mass_model_bar(a, i, sn_dot3(bar, own + 3) / mass);
#endif
  }
}

// The magnetic flux in the axes of a site.
SN_LOCAL void frame_magnetic_value(const SnModel *m, const SnWorld *w, int site, sn_real *value) {
  sn_real mat[9];
  sn_object_pose(m, w, SN_OBJ_SITE, site, NULL, mat);
  sn_mulmattvec3(value, mat, m->opt.magnetic);
}

SN_LOCAL void frame_magnetic_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int site, const sn_real *bar) {
  sn_real mat[9], b[3], torque[3];
  sn_object_pose(m, w, SN_OBJ_SITE, site, NULL, mat);
  sn_mulmatvec3(b, mat, bar);
  sn_cross(torque, b, m->opt.magnetic);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->magnetic) sn_addto3(sn_model_bar(a)->magnetic, b);
#endif
  sn_object_pose_vjp(m, w, a, SN_OBJ_SITE, site, NULL, torque);
}

// What a sensor of this size, or a picture of this length on it, has of pixels; MuJoCo computes it in single precision.
SN_LOCAL sn_real frame_pixels(sn_real length, sn_real size, int pixels) {
  return (sn_real)((float)length / (float)size * (float)pixels);
}

SN_FUNC void sn_camera_lens(const SnModel *m, int cam, sn_real focal[2], sn_real centre[2]) {
  const sn_real *size = m->cam_sensorsize + 2 * cam, *intrinsic = m->cam_intrinsic + 4 * cam;
  const int *pixels = m->cam_resolution + 2 * cam;
  const bool sized = size[0] != 0 && size[1] != 0;
  for (int k = 0; k < 2; ++k) {
    focal[k] = SN_R(0.5) / sn_tan(m->cam_fovy[cam] * (SN_PI / SN_R(360.0))) * (sn_real)pixels[1];
    centre[k] = SN_R(0.5) * (sn_real)pixels[k];
    if (!sized) continue;
    focal[k] = frame_pixels(intrinsic[k], size[k], pixels[k]);
    centre[k] = frame_pixels(intrinsic[2 + k], size[k], pixels[k]);
  }
}

// Where a camera sees a point: q in its own axes, and the depth that divides, never 0.
SN_LOCAL sn_real frame_seen(const SnModel *m, const SnWorld *w, int i, sn_real *q, sn_real *mat) {
  sn_real pos[3], eye[3], d[3];
  sn_object_pose(m, w, SN_OBJ_SITE, m->sensor_objid[i], pos, NULL);
  sn_object_pose(m, w, SN_OBJ_CAMERA, m->sensor_refid[i], eye, mat);
  sn_sub3(d, pos, eye);
  sn_mulmattvec3(q, mat, d);
  return q[2] < 0 ? sn_min(q[2], -SN_MINVAL) : sn_max(q[2], SN_MINVAL);
}

// Pixels (x to the right, y down) at which a camera sees a site.
SN_LOCAL void frame_projection_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int *resolution = m->cam_resolution + 2 * m->sensor_refid[i];
  sn_real focal[2], centre[2], q[3], mat[9];
  const sn_real depth = frame_seen(m, w, i, q, mat);
  sn_camera_lens(m, m->sensor_refid[i], focal, centre);
  value[0] = -focal[0] * (q[0] / depth) + SN_R(0.5) * (sn_real)resolution[0];
  value[1] = focal[1] * (q[1] / depth) + SN_R(0.5) * (sn_real)resolution[1];
}

SN_LOCAL void frame_projection_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  sn_real focal[2], centre[2], q[3], mat[9], local[3], force[3], pos[3];
  const sn_real depth = frame_seen(m, w, i, q, mat);
  sn_camera_lens(m, m->sensor_refid[i], focal, centre);
  const sn_real x = -focal[0] * bar[0] / depth, y = focal[1] * bar[1] / depth;
  sn_set3(local, x, y, -(x * q[0] + y * q[1]) / depth);
  sn_mulmatvec3(force, mat, local);
  sn_object_pose_vjp(m, w, a, SN_OBJ_SITE, m->sensor_objid[i], force, NULL);
  // the camera sees the same point elsewhere when it moves
  sn_object_pose(m, w, SN_OBJ_SITE, m->sensor_objid[i], pos, NULL);
  sn_scale3(force, force, -1);
  sn_object_push(m, w, a, SN_OBJ_CAMERA, m->sensor_refid[i], pos, force);
}

SN_FUNC void sn_sensor_inertia(const SnModel *m, int body, const sn_real *R, const sn_real *x, sn_real *r) {
  sn_real local[3];
  sn_mulmattvec3(local, R, x);
  for (int k = 0; k < 3; ++k) local[k] *= m->body_inertia[3 * body + k];
  sn_mulmatvec3(r, R, local);
}

// Place and velocity of a body's centre of mass relative to that of a subtree: arm, vel; its axes and its own turn.
typedef struct FrameBody {
  sn_real arm[3], vel[3], turn[3], mat[9];
} FrameBody;

SN_LOCAL void frame_relative_body(const SnModel *m, const SnWorld *w, int body, const sn_real *com, const sn_real *vel,
                                  FrameBody *b) {
  sn_real motion[6];
  sn_object_pose(m, w, SN_OBJ_BODY, body, b->arm, b->mat);
  sn_object_velocity(m, w, SN_OBJ_BODY, body, motion);
  sn_subfrom3(b->arm, com);
  sn_copy3(b->turn, motion);
  sn_sub3(b->vel, motion + 3, vel);
}

// Angular momentum of a subtree about its centre of mass.
SN_LOCAL void frame_subtree_momentum_value(const SnModel *m, const SnWorld *w, int body, sn_real *value) {
  sn_real com[3], vel[3], t[3];
  sn_subtree_com(m, w, body, com);
  frame_subtree_velocity_value(m, w, body, vel);
  sn_zero(value, 3);
  for (int i = body; i <= m->body_last[body]; ++i) {
    FrameBody b;
    frame_relative_body(m, w, i, com, vel, &b);
    sn_sensor_inertia(m, i, b.mat, b.turn, t);
    sn_addto3(value, t);
    sn_cross(t, b.arm, b.vel);
    sn_addtoscl3(value, t, m->body_mass[i]);
  }
}

// Centre and velocity of the subtree drop out: the masses' arms and relative velocities about them add up to zero.
SN_LOCAL void frame_subtree_momentum_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body,
                                         const sn_real *bar) {
  sn_real com[3], vel[3], t[3];
  sn_subtree_com(m, w, body, com);
  frame_subtree_velocity_value(m, w, body, vel);
  for (int i = body; i <= m->body_last[body]; ++i) {
    FrameBody b;
    sn_real vel_bar[6], pos_bar[3], torque[3];
    frame_relative_body(m, w, i, com, vel, &b);
    sn_sensor_inertia(m, i, b.mat, bar, vel_bar);
    sn_cross(t, bar, b.arm);
    sn_scale3(vel_bar + 3, t, m->body_mass[i]);
    sn_cross(t, b.vel, bar);
    sn_scale3(pos_bar, t, m->body_mass[i]);
    sn_cross(torque, vel_bar, b.turn);
    sn_sensor_inertia(m, i, b.mat, b.turn, t);
    sn_addcross(torque, t, bar);
    sn_object_velocity_vjp(m, w, a, SN_OBJ_BODY, i, vel_bar);
    sn_object_pose_vjp(m, w, a, SN_OBJ_BODY, i, pos_bar, torque);
#if defined(SN_MODEL_BARS)
    sn_cross(t, b.arm, b.vel);
    sn_mass_model_bar(a, i, sn_dot3(bar, t));
    sn_inertia_model_bar(a, i, b.mat, bar, b.turn);
#endif
  }
}

SN_FUNC bool sn_sensor_is_frame(int type) {
  switch (type) {
    case SN_SENS_FRAMEPOS:
    case SN_SENS_FRAMEQUAT:
    case SN_SENS_FRAMEXAXIS:
    case SN_SENS_FRAMEYAXIS:
    case SN_SENS_FRAMEZAXIS:
    case SN_SENS_FRAMELINVEL:
    case SN_SENS_FRAMEANGVEL:
    case SN_SENS_VELOCIMETER:
    case SN_SENS_GYRO:
    case SN_SENS_SUBTREECOM:
    case SN_SENS_SUBTREELINVEL:
    case SN_SENS_SUBTREEANGMOM:
    case SN_SENS_MAGNETOMETER:
    case SN_SENS_CAMPROJECTION:
      return true;
    default:
      return false;
  }
}

SN_FUNC void sn_frame_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  switch (m->sensor_type[i]) {
    case SN_SENS_SUBTREECOM:
      sn_subtree_com(m, w, m->sensor_objid[i], value);
      break;
    case SN_SENS_SUBTREELINVEL:
      frame_subtree_velocity_value(m, w, m->sensor_objid[i], value);
      break;
    case SN_SENS_SUBTREEANGMOM:
      frame_subtree_momentum_value(m, w, m->sensor_objid[i], value);
      break;
    case SN_SENS_MAGNETOMETER:
      frame_magnetic_value(m, w, m->sensor_objid[i], value);
      break;
    case SN_SENS_CAMPROJECTION:
      frame_projection_value(m, w, i, value);
      break;
    case SN_SENS_FRAMEQUAT:
      frame_quat_value(m, w, i, value);
      break;
    case SN_SENS_FRAMELINVEL:
    case SN_SENS_FRAMEANGVEL:
      frame_velocity_value(m, w, i, value);
      break;
    case SN_SENS_VELOCIMETER:
    case SN_SENS_GYRO:
      frame_site_motion_value(m, w, i, value);
      break;
    default:
      frame_pose_value(m, w, i, value);
      break;
  }
}

SN_FUNC void sn_frame_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real bar[3]) {
  switch (m->sensor_type[i]) {
    case SN_SENS_SUBTREECOM:
      frame_subtree_com_vjp(m, w, a, m->sensor_objid[i], bar);
      break;
    case SN_SENS_SUBTREELINVEL:
      frame_subtree_velocity_vjp(m, w, a, m->sensor_objid[i], bar);
      break;
    case SN_SENS_SUBTREEANGMOM:
      frame_subtree_momentum_vjp(m, w, a, m->sensor_objid[i], bar);
      break;
    case SN_SENS_MAGNETOMETER:
      frame_magnetic_vjp(m, w, a, m->sensor_objid[i], bar);
      break;
    case SN_SENS_CAMPROJECTION:
      frame_projection_vjp(m, w, a, i, bar);
      break;
    case SN_SENS_FRAMEQUAT:
      frame_quat_vjp(m, w, a, i, bar);
      break;
    case SN_SENS_FRAMELINVEL:
    case SN_SENS_FRAMEANGVEL:
      frame_velocity_vjp(m, w, a, i, bar);
      break;
    case SN_SENS_VELOCIMETER:
    case SN_SENS_GYRO:
      frame_site_motion_vjp(m, w, a, i, bar);
      break;
    default:
      frame_pose_vjp(m, w, a, i, bar);
      break;
  }
}
