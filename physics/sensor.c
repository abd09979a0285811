// Sensors that a cost can use, with MuJoCo's definitions (manual, XMLreference, "sensor").
//
// Relative to a reference frame (xr, Rr, omega_r, vr) an object (x, R, omega, v) has
//   position Rr'(x - xr),  orientation qr^-1 q,  angular velocity Rr'(omega - omega_r),
//   linear velocity Rr'(v - vr - omega_r x (x - xr)).
// Sensors of limits are zero while their limit has no row.
#include "physics/sensor.h"

#include "physics/frame.h"
#include "physics/vec.h"

SN_FUNC bool sn_sensor_supported(const SnModel *m, int i) {
  switch (m->sensor_type[i]) {
    case SN_SENS_VELOCIMETER:
    case SN_SENS_GYRO:
    case SN_SENS_JOINTPOS:
    case SN_SENS_JOINTVEL:
    case SN_SENS_TENDONPOS:
    case SN_SENS_TENDONVEL:
    case SN_SENS_ACTUATORPOS:
    case SN_SENS_ACTUATORVEL:
    case SN_SENS_ACTUATORFRC:
    case SN_SENS_JOINTACTFRC:
    case SN_SENS_TENDONACTFRC:
    case SN_SENS_BALLQUAT:
    case SN_SENS_BALLANGVEL:
    case SN_SENS_JOINTLIMITPOS:
    case SN_SENS_JOINTLIMITVEL:
    case SN_SENS_JOINTLIMITFRC:
    case SN_SENS_TENDONLIMITPOS:
    case SN_SENS_TENDONLIMITVEL:
    case SN_SENS_TENDONLIMITFRC:
    case SN_SENS_SUBTREECOM:
    case SN_SENS_CLOCK:
      return true;
    case SN_SENS_FRAMEPOS:
    case SN_SENS_FRAMEQUAT:
    case SN_SENS_FRAMEXAXIS:
    case SN_SENS_FRAMEYAXIS:
    case SN_SENS_FRAMEZAXIS:
    case SN_SENS_FRAMELINVEL:
    case SN_SENS_FRAMEANGVEL:
      return sn_object_has_frame(m->sensor_objtype[i]) &&
             (m->sensor_refid[i] < 0 || sn_object_has_frame(m->sensor_reftype[i]));
    default:
      return false;
  }
}

SN_FUNC SnStage sn_sensor_stage(const SnModel *m, int i) {
  switch (m->sensor_type[i]) {
    case SN_SENS_JOINTPOS:
    case SN_SENS_JOINTVEL:
    case SN_SENS_BALLQUAT:
    case SN_SENS_BALLANGVEL:
    case SN_SENS_CLOCK:
      return SN_STAGE_STATE;
    case SN_SENS_TENDONPOS:
      return SN_STAGE_TENDON;
    case SN_SENS_ACTUATORPOS:
      return SN_STAGE_TRANSMISSION;
    case SN_SENS_TENDONVEL:
    case SN_SENS_ACTUATORVEL:
    case SN_SENS_VELOCIMETER:
    case SN_SENS_GYRO:
    case SN_SENS_FRAMELINVEL:
    case SN_SENS_FRAMEANGVEL:
      return SN_STAGE_VELOCITY;
    case SN_SENS_ACTUATORFRC:
    case SN_SENS_JOINTACTFRC:
    case SN_SENS_TENDONACTFRC:
      return SN_STAGE_ACTUATION;
    case SN_SENS_JOINTLIMITPOS:
    case SN_SENS_JOINTLIMITVEL:
    case SN_SENS_TENDONLIMITPOS:
    case SN_SENS_TENDONLIMITVEL:
      return SN_STAGE_CONSTRAINT;
    case SN_SENS_JOINTLIMITFRC:
    case SN_SENS_TENDONLIMITFRC:
      return SN_STAGE_SOLVER;
    default:
      return SN_STAGE_KINEMATICS;
  }
}

// First row of the limit of joint or tendon id, or -1.
SN_LOCAL int sn_limit_row(const SnWorld *w, int type, int id) {
  const int first = *w->ne + *w->nf;
  for (int r = first; r < first + *w->nl; ++r)
    if (w->efc_type[r] == type && w->efc_id[r] == id) return r;
  return -1;
}

SN_LOCAL sn_real sn_limit_value(const SnWorld *w, int type, int id) {
  const bool tendon = type >= SN_SENS_TENDONLIMITPOS;
  const int row = sn_limit_row(w, tendon ? SN_CNSTR_LIMIT_TENDON : SN_CNSTR_LIMIT_JOINT, id);
  if (row < 0) return 0;
  switch (type) {
    case SN_SENS_JOINTLIMITPOS:
    case SN_SENS_TENDONLIMITPOS:
      return w->efc_pos[row] - w->efc_margin[row];
    case SN_SENS_JOINTLIMITVEL:
    case SN_SENS_TENDONLIMITVEL:
      return w->efc_vel[row];
    default:
      return w->efc_force[row];
  }
}

// Pose of an object, or one axis of it, relative to the reference frame where there is one.
SN_LOCAL void sn_frame_pose_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
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

SN_LOCAL void sn_frame_quat_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
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

SN_LOCAL void sn_frame_velocity_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int objtype = m->sensor_objtype[i], id = m->sensor_objid[i], reftype = m->sensor_reftype[i],
            ref = m->sensor_refid[i];
  const int part = m->sensor_type[i] == SN_SENS_FRAMELINVEL ? 3 : 0;
  sn_real vel[6];
  sn_object_velocity(m, w, objtype, id, vel);
  if (ref < 0) {
    sn_copy3(value, vel + part);
    return;
  }
  sn_real ref_vel[6], pos[3], ref_pos[3], ref_mat[9], arm[3], carried[3];
  sn_object_velocity(m, w, reftype, ref, ref_vel);
  sn_object_pose(m, w, objtype, id, pos, NULL);
  sn_object_pose(m, w, reftype, ref, ref_pos, ref_mat);
  sn_sub3(arm, pos, ref_pos);
  sn_cross(carried, ref_vel, arm);
  sn_addto3(ref_vel + 3, carried);
  sn_subfrom3(vel + part, ref_vel + part);
  sn_mulmattvec3(value, ref_mat, vel + part);
}

// Velocity of a site in its own axes.
SN_LOCAL void sn_site_motion_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  sn_real vel[6], mat[9];
  sn_object_velocity(m, w, SN_OBJ_SITE, m->sensor_objid[i], vel);
  sn_object_pose(m, w, SN_OBJ_SITE, m->sensor_objid[i], NULL, mat);
  sn_mulmattvec3(value, mat, vel + (m->sensor_type[i] == SN_SENS_VELOCIMETER ? 3 : 0));
}

// Total force of the actuators on a tendon.
SN_LOCAL sn_real sn_tendon_force(const SnModel *m, const SnWorld *w, int t) {
  sn_real total = 0;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k)
    total += w->actuator_force[m->actuator_outadr[m->ten_act[k]]];
  return total;
}

// Centre of mass of the subtree of a body: bodies of a subtree follow their root in one run. A step itself knows
// the centres of whole trees only.
SN_LOCAL void sn_subtree_com_value(const SnModel *m, const SnWorld *w, int body, sn_real *value) {
  sn_real sum[3] = {0, 0, 0}, mass = 0, pos[3];
  for (int i = body; i == body || (i < m->nbody && m->body_parentid[i] >= body); ++i) {
    sn_object_pose(m, w, SN_OBJ_BODY, i, pos, NULL);
    sn_addtoscl3(sum, pos, m->body_mass[i]);
    mass += m->body_mass[i];
  }
  if (mass < SN_MINVAL)
    sn_object_pose(m, w, SN_OBJ_BODY, body, value, NULL);
  else
    sn_scale3(value, sum, SN_R(1.0) / mass);
}

SN_LOCAL void sn_raw_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int type = m->sensor_type[i], id = m->sensor_objid[i];
  switch (type) {
    case SN_SENS_CLOCK:
      value[0] = *w->time;
      break;
    case SN_SENS_JOINTPOS:
      value[0] = w->qpos[m->jnt_qposadr[id]];
      break;
    case SN_SENS_JOINTVEL:
      value[0] = w->qvel[m->jnt_dofadr[id]];
      break;
    case SN_SENS_JOINTACTFRC:
      value[0] = w->qfrc_actuator[m->jnt_dofadr[id]];
      break;
    case SN_SENS_BALLQUAT:
      sn_copy4(value, w->qpos + m->jnt_qposadr[id]);
      sn_normalize4(value);
      break;
    case SN_SENS_BALLANGVEL:
      sn_copy3(value, w->qvel + m->jnt_dofadr[id]);
      break;
    case SN_SENS_TENDONPOS:
      value[0] = w->ten_length[id];
      break;
    case SN_SENS_TENDONVEL:
      value[0] = w->ten_velocity[id];
      break;
    case SN_SENS_TENDONACTFRC:
      value[0] = sn_tendon_force(m, w, id);
      break;
    case SN_SENS_ACTUATORPOS:
      value[0] = w->actuator_length[m->actuator_outadr[id]];
      break;
    case SN_SENS_ACTUATORVEL:
      value[0] = w->actuator_velocity[m->actuator_outadr[id]];
      break;
    case SN_SENS_ACTUATORFRC:
      value[0] = w->actuator_force[m->actuator_outadr[id]];
      break;
    case SN_SENS_SUBTREECOM:
      sn_subtree_com_value(m, w, id, value);
      break;
    case SN_SENS_FRAMEQUAT:
      sn_frame_quat_value(m, w, i, value);
      break;
    case SN_SENS_FRAMELINVEL:
    case SN_SENS_FRAMEANGVEL:
      sn_frame_velocity_value(m, w, i, value);
      break;
    case SN_SENS_VELOCIMETER:
    case SN_SENS_GYRO:
      sn_site_motion_value(m, w, i, value);
      break;
    case SN_SENS_FRAMEPOS:
    case SN_SENS_FRAMEXAXIS:
    case SN_SENS_FRAMEYAXIS:
    case SN_SENS_FRAMEZAXIS:
      sn_frame_pose_value(m, w, i, value);
      break;
    default:
      value[0] = sn_limit_value(w, type, id);
      break;
  }
}

SN_FUNC void sn_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  enum { REAL, POSITIVE };  // mjtDataType: what a cutoff applies to
  const sn_real cutoff = m->sensor_cutoff[i];
  sn_raw_sensor_value(m, w, i, value);
  if (!(cutoff > 0) || m->sensor_datatype[i] > POSITIVE) return;
  const sn_real low = m->sensor_datatype[i] == REAL ? -cutoff : -SN_MAXVAL;
  for (int k = 0; k < m->sensor_dim[i]; ++k) value[k] = sn_clip(value[k], low, cutoff);
}
