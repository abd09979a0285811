// Sensors that a cost can use, with MuJoCo's definitions (manual, XMLreference, "sensor").
//
// Sensors of frames stand in sensor_frame.c, of accelerations and interaction forces in sensor_force.c, of zones in
// sensor_shape.c, of rays in sensor_range.c, of energies in sensor_energy.c. Sensors of limits are zero while their
// limit has no row.
//
// Adjoint. A value that is one of the engine's quantities hands its bar to that quantity's: lengths and rates of
// tendons and actuators, forces of actuators (sn_actuator_force_vjp turns those on). That of all actuators on a joint
// is a motion of theirs, too, as their moment arms move (actuator/saturation.c). A limit's position has the row's own
// Jacobian as its gradient; its velocity is J v, and J changes with the state on ball joints alone: with the joint's
// rotation vector r and its unit axis n, J v = -n . v, and n turns by (I - n n') dr / |r|.
//
// What is known after the solver alone has bars of qacc and of efc_force, which go back through the stages of the step
// once more (sn_acceleration_vjp in step.c): that costs about as much as the adjoint of a step.
//
// A sensor with a delay, or between two ticks of an interval, answers from its buffer (physics/world/history.h), whose
// new samples step/past.c takes: its bar goes to the samples that it reads.
//
// All sensors at once (sn_sensor_data_vjp in step/sense.c) take the bar g of a quaternion's four numbers. A small turn
// t of q changes them by (0, t) q / 2, so the bar of t is the vector part of g q^-1, halved (q has unit length).
//
// Not smooth: beyond a cutoff or a limit of the joint's force the gradient is 0 (at the bound itself it is that
// inside); without its row a limit's value and gradient are 0; a ball joint in its rest position has no axis: 0.
#include "physics/sensor/sensor.h"

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/sensor/sensor_private.h"

// Types that the engine always computes.
SN_LOCAL bool sensor_is_plain(int type) {
  switch (type) {
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
    case SN_SENS_SUBTREELINVEL:
    case SN_SENS_SUBTREEANGMOM:
    case SN_SENS_MAGNETOMETER:
    case SN_SENS_E_POTENTIAL:
    case SN_SENS_E_KINETIC:
    case SN_SENS_CLOCK:
    case SN_SENS_USER:
      return true;
    default:
      return false;
  }
}

SN_FUNC bool sn_sensor_supported(const SnModel *m, int i) {
  if (sensor_is_plain(m->sensor_type[i])) return true;
  switch (m->sensor_type[i]) {
    case SN_SENS_ACCELEROMETER:
    case SN_SENS_FORCE:
    case SN_SENS_TORQUE:
    case SN_SENS_FRAMELINACC:
    case SN_SENS_FRAMEANGACC:
      return sn_force_sensor_supported(m, i);
    case SN_SENS_TOUCH:
    case SN_SENS_INSIDESITE:
      return sn_shape_sensor_supported(m, i);
    case SN_SENS_RANGEFINDER:
      return sn_range_sensor_supported(m, i);
    case SN_SENS_TACTILE:
      return sn_tactile_sensor_supported(m, i);
    case SN_SENS_CONTACT:
      return sn_contact_sensor_supported(m, i);
    case SN_SENS_GEOMDIST:
    case SN_SENS_GEOMNORMAL:
    case SN_SENS_GEOMFROMTO:
      return sn_distance_sensor_supported(m, i);
    case SN_SENS_FRAMEPOS:
    case SN_SENS_FRAMEQUAT:
    case SN_SENS_FRAMEXAXIS:
    case SN_SENS_FRAMEYAXIS:
    case SN_SENS_FRAMEZAXIS:
    case SN_SENS_FRAMELINVEL:
    case SN_SENS_FRAMEANGVEL:
      return sn_object_has_frame(m, m->sensor_objtype[i], m->sensor_objid[i]) &&
             (m->sensor_refid[i] < 0 || sn_object_has_frame(m, m->sensor_reftype[i], m->sensor_refid[i]));
    case SN_SENS_CAMPROJECTION:
      return sn_object_has_frame(m, SN_OBJ_CAMERA, m->sensor_refid[i]);
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
    case SN_SENS_USER:
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
    case SN_SENS_SUBTREELINVEL:
    case SN_SENS_SUBTREEANGMOM:
    case SN_SENS_TACTILE:
      return SN_STAGE_VELOCITY;
    case SN_SENS_E_POTENTIAL:
      return SN_STAGE_TENDON;
    case SN_SENS_E_KINETIC:
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
    case SN_SENS_TOUCH:
    case SN_SENS_ACCELEROMETER:
    case SN_SENS_FORCE:
    case SN_SENS_TORQUE:
    case SN_SENS_FRAMELINACC:
    case SN_SENS_FRAMEANGACC:
      return SN_STAGE_SOLVER;
    case SN_SENS_CONTACT:
      return sn_contact_sensor_stage(m, i);
    default:
      return SN_STAGE_KINEMATICS;
  }
}

// First row of the limit of joint or tendon id, or -1.
SN_LOCAL int sensor_limit_row(const SnWorld *w, int type, int id) {
  const int first = *w->ne + *w->nf;
  for (int r = first; r < first + *w->nl; ++r)
    if (w->efc_type[r] == type && w->efc_id[r] == id) return r;
  return -1;
}

SN_LOCAL sn_real sensor_limit_value(const SnWorld *w, int type, int id) {
  const bool tendon = type >= SN_SENS_TENDONLIMITPOS;
  const int row = sensor_limit_row(w, tendon ? SN_CNSTR_LIMIT_TENDON : SN_CNSTR_LIMIT_JOINT, id);
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

// Total force of the actuators on a tendon.
SN_LOCAL sn_real sensor_tendon_force(const SnModel *m, const SnWorld *w, int t) {
  sn_real total = 0;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k)
    total += w->actuator_force[m->actuator_outadr[m->ten_act[k]]];
  return total;
}

// Writes the value of a sensor that has a file of its own. False: it has none.
SN_LOCAL bool sensor_kind_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int type = m->sensor_type[i];
  if (sn_sensor_is_frame(type)) {
    sn_frame_sensor_value(m, w, i, value);
    return true;
  }
  if (sn_sensor_is_force(type)) {
    sn_force_sensor_value(m, w, i, value);
    return true;
  }
  switch (type) {
    case SN_SENS_TOUCH:
    case SN_SENS_INSIDESITE:
      sn_shape_sensor_value(m, w, i, value);
      return true;
    case SN_SENS_RANGEFINDER:
      sn_range_sensor_value(m, w, i, value);
      return true;
    case SN_SENS_TACTILE:
      sn_tactile_sensor_value(m, w, i, value);
      return true;
    case SN_SENS_CONTACT:
      sn_contact_sensor_value(m, w, i, value);
      return true;
    case SN_SENS_GEOMDIST:
    case SN_SENS_GEOMNORMAL:
    case SN_SENS_GEOMFROMTO:
      sn_distance_sensor_value(m, w, i, value);
      return true;
    case SN_SENS_E_POTENTIAL:
    case SN_SENS_E_KINETIC:
      value[0] = sn_energy_value(m, w, type);
      return true;
    default:
      return false;
  }
}

SN_LOCAL void sensor_raw_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int type = m->sensor_type[i], id = m->sensor_objid[i];
  if (sensor_kind_value(m, w, i, value)) return;
  switch (type) {
    case SN_SENS_CLOCK:
      value[0] = *w->time;
      break;
    case SN_SENS_USER:
      sn_zero(value, m->sensor_dim[i]);
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
      value[0] = sensor_tendon_force(m, w, id);
      break;
    case SN_SENS_ACTUATORPOS:
      sn_copy(value, w->actuator_length + m->actuator_outadr[id], m->actuator_outnum[id]);
      break;
    case SN_SENS_ACTUATORVEL:
      sn_copy(value, w->actuator_velocity + m->actuator_outadr[id], m->actuator_outnum[id]);
      break;
    case SN_SENS_ACTUATORFRC:
      sn_copy(value, w->actuator_force + m->actuator_outadr[id], m->actuator_outnum[id]);
      break;
    default:
      value[0] = sensor_limit_value(w, type, id);
      break;
  }
}

SN_FUNC bool sn_sensor_is_quat(const SnModel *m, int i) {
  return m->sensor_type[i] == SN_SENS_BALLQUAT || m->sensor_type[i] == SN_SENS_FRAMEQUAT;
}

// Smallest value that a cutoff lets through; the largest is the cutoff itself. False: sensor i has none.
SN_LOCAL bool sensor_cutoff(const SnModel *m, int i, sn_real *low) {
  enum { REAL, POSITIVE };  // mjtDataType: what a cutoff applies to
  // of these a cutoff is no bound, or none at all
  const bool other = m->sensor_type[i] == SN_SENS_CONTACT || m->sensor_type[i] == SN_SENS_GEOMFROMTO;
  const sn_real cutoff = other ? 0 : m->sensor_cutoff[i];
  *low = m->sensor_datatype[i] == REAL ? -cutoff : -SN_MAXVAL;
  return cutoff > 0 && m->sensor_datatype[i] <= POSITIVE;
}

SN_FUNC void sn_sensor_sample(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  sn_real low;
  sensor_raw_value(m, w, i, value);
  if (!sensor_cutoff(m, i, &low)) return;
  for (int k = 0; k < m->sensor_dim[i]; ++k) value[k] = sn_clip(value[k], low, m->sensor_cutoff[i]);
}

SN_FUNC void sn_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  SnHistoryRead read;
  if (!sn_sensor_reads(m, w->past, i, w->time[0])) {
    sn_sensor_sample(m, w, i, value);
    return;
  }
  sn_sensor_read(m, w->past, i, w->time[0], &read);
  sn_history_value(w->past + m->sensor_historyadr[i], m->sensor_history[2 * i], m->sensor_dim[i], &read, value);
}

SN_FUNC void sn_sensor_data(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *data) {
  (void)lane;
  SN_FOR(i, m->nsensor) {
    sn_real *const value = data + m->sensor_adr[i];
    for (int k = 0; k < m->sensor_dim[i]; ++k) value[k] = (sn_real)NAN;
    if (sn_sensor_supported(m, i)) sn_sensor_value(m, w, i, value);
  }
  SN_SYNC(lane);
}

SN_FUNC bool sn_sensor_differentiable(const SnModel *m, int i) {
  if (!sn_sensor_supported(m, i)) return false;
  switch (m->sensor_type[i]) {
    case SN_SENS_JOINTACTFRC:
      return !(m->jnt_actgravcomp[m->sensor_objid[i]] && m->ngravcomp > 0);
    case SN_SENS_E_POTENTIAL:
    case SN_SENS_E_KINETIC:
      return sn_energy_differentiable(m, m->sensor_type[i]);
    case SN_SENS_INSIDESITE:
    case SN_SENS_CONTACT:
    case SN_SENS_TACTILE:
    case SN_SENS_USER:
      return false;
    default:
      return true;
  }
}

SN_FUNC bool sn_sensor_uses_actuators(const SnModel *m, int i) {
  return sn_sensor_stage(m, i) == SN_STAGE_ACTUATION || m->sensor_tendons[i];
}

// Rate of a ball joint's limit: -n . v.
SN_LOCAL void sensor_ball_limit_rate_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int joint, sn_real bar) {
  const int dof = m->jnt_dofadr[joint];
  const sn_real *v = w->qvel + dof;
  sn_real quat[4], r[3], n[3], across[3], back[3], q[3];
  sn_copy4(quat, w->qpos + m->jnt_qposadr[joint]);
  sn_normalize4(quat);
  sn_quat2vel(r, quat);
  sn_copy3(n, r);
  const sn_real angle = sn_normalize3(n);
  if (angle < SN_MINVAL) return;
  sn_addtoscl3(a->qvel_bar + dof, n, -bar);
  sn_addscl3(across, v, n, -sn_dot3(n, v));
  sn_scale3(across, across, -bar / angle);
  sn_scale3(back, r, -1);
  sn_rotvec_vjp(q, back, across);
  sn_addto3(a->qpos_bar + dof, q);
}

#if defined(SN_MODEL_BARS)
// Distance of a limit by the model: bound, of the upper side or not, and margin.
SN_LOCAL void sensor_limit_model_vjp(const SnAdjoint *a, bool tendon, int id, bool upper, sn_real bar) {
  const SnModelBar *to = sn_model_bar(a);
  if (!to) return;
  sn_real *range = tendon ? to->tendon_range : to->jnt_range, *margin = tendon ? to->tendon_margin : to->jnt_margin;
  if (range) range[2 * id + upper] += upper ? bar : -bar;
  if (margin) margin[id] -= bar;
}
#endif

SN_LOCAL void sensor_limit_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id, sn_real bar) {
  const bool tendon = type >= SN_SENS_TENDONLIMITPOS;
  const int row = sensor_limit_row(w, tendon ? SN_CNSTR_LIMIT_TENDON : SN_CNSTR_LIMIT_JOINT, id);
  const bool rate = type == SN_SENS_JOINTLIMITVEL || type == SN_SENS_TENDONLIMITVEL;
  if (row < 0) return;
  if (type == SN_SENS_JOINTLIMITFRC || type == SN_SENS_TENDONLIMITFRC) {
    a->row_pos[row] += bar;
    return;
  }
  if (tendon) {
    const sn_real pull = sn_tendon_limit_pull(m, w, row), s = bar * pull;
#if defined(SN_MODEL_BARS)
    if (!rate) sensor_limit_model_vjp(a, true, id, pull < 0, bar);
#endif
    if (rate)
      a->ten_rate_bar[SN_NMOTION * id + SN_VEL] += s;
    else
      a->ten_length_bar[id] += s;
    return;
  }
  if (rate && m->jnt_type[id] == SN_JNT_BALL) {
    sensor_ball_limit_rate_vjp(m, w, a, id, bar);
    return;
  }
  const int dofs = m->jnt_type[id] == SN_JNT_BALL ? 3 : 1;
#if defined(SN_MODEL_BARS)
  const bool upper = dofs == 3 ? m->jnt_range[2 * id + 1] >= m->jnt_range[2 * id] : w->efc_J[w->efc_J_rowadr[row]] < 0;
  if (!rate) sensor_limit_model_vjp(a, false, id, upper, bar);
#endif
  sn_real *out = (rate ? a->qvel_bar : a->qpos_bar) + m->jnt_dofadr[id];
  for (int k = 0; k < dofs; ++k) out[k] += bar * w->efc_J[w->efc_J_rowadr[row] + k];
}

// Force of the actuators on a joint, inside its limit; by the model that limit.
SN_LOCAL void sensor_joint_force_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int j, sn_real bar) {
  const int dof = m->jnt_dofadr[j];
  if (m->opt.disableflags & SN_DSBL_ACTUATION) return;
  if (sn_joint_saturated(m, w, j)) {
#if defined(SN_MODEL_BARS)
    const bool upper = sn_dof_actuation(m, w, dof) > m->jnt_actfrcrange[2 * j + 1];
    if (sn_model_bar(a) && sn_model_bar(a)->jnt_actfrcrange) sn_model_bar(a)->jnt_actfrcrange[2 * j + upper] += bar;
#endif
    return;
  }
  for (int k = m->momT_adr[dof]; k < m->momT_adr[dof + 1]; ++k)
    a->force_bar[m->momT_out[k]] += bar * w->actuator_moment[m->momT_entry[k]];
  sn_actuation_motion(m, w, a, dof, bar);
}

SN_LOCAL void sensor_scalar_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  const int type = m->sensor_type[i], id = m->sensor_objid[i];
  switch (type) {
    case SN_SENS_CLOCK:
      break;
    case SN_SENS_TOUCH:
      sn_touch_sensor_vjp(m, w, a, i, bar[0]);
      break;
    case SN_SENS_GEOMDIST:
    case SN_SENS_GEOMNORMAL:
    case SN_SENS_GEOMFROMTO:
      sn_distance_sensor_vjp(m, w, a, i, bar);
      break;
    case SN_SENS_E_POTENTIAL:
    case SN_SENS_E_KINETIC:
      sn_energy_vjp(m, w, a, type, bar[0]);
      break;
    case SN_SENS_JOINTPOS:
      a->qpos_bar[m->jnt_dofadr[id]] += bar[0];
      break;
    case SN_SENS_JOINTVEL:
      a->qvel_bar[m->jnt_dofadr[id]] += bar[0];
      break;
    case SN_SENS_JOINTACTFRC:
      sensor_joint_force_vjp(m, w, a, id, bar[0]);
      break;
    case SN_SENS_BALLQUAT:
      sn_ball_turn_vjp(w, a, m->jnt_qposadr[id], m->jnt_dofadr[id], bar);
      break;
    case SN_SENS_BALLANGVEL:
      sn_addto3(a->qvel_bar + m->jnt_dofadr[id], bar);
      break;
    case SN_SENS_TENDONPOS:
      a->ten_length_bar[id] += bar[0];
      break;
    case SN_SENS_TENDONVEL:
      a->ten_rate_bar[SN_NMOTION * id + SN_VEL] += bar[0];
      break;
    case SN_SENS_TENDONACTFRC:
      for (int k = m->ten_act_adr[id]; k < m->ten_act_adr[id + 1]; ++k)
        a->force_bar[m->actuator_outadr[m->ten_act[k]]] += bar[0];
      break;
    case SN_SENS_ACTUATORPOS:
      for (int k = 0; k < m->actuator_outnum[id]; ++k) a->trn_length_bar[m->actuator_outadr[id] + k] += bar[k];
      break;
    case SN_SENS_ACTUATORVEL:
      if (m->opt.disableflags & SN_DSBL_ACTUATION) break;  // these velocities are 0
      for (int k = 0; k < m->actuator_outnum[id]; ++k)
        a->trn_rate_bar[SN_NMOTION * (m->actuator_outadr[id] + k) + SN_VEL] += bar[k];
      break;
    case SN_SENS_ACTUATORFRC:
      for (int k = 0; k < m->actuator_outnum[id]; ++k) a->force_bar[m->actuator_outadr[id] + k] += bar[k];
      break;
    default:
      sensor_limit_vjp(m, w, a, type, id, bar[0]);
      break;
  }
}

enum { SN_SENSOR_BARS = 6 };  // most numbers of a sensor that has a gradient and is no image

// What sensor i measures now: the bar of its numbers, of a quaternion that of a small turn.
SN_LOCAL void sensor_now_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *value_bar) {
  sn_real bar[SN_SENSOR_BARS] = {0}, value[SN_SENSOR_BARS], low;
  const bool cut = sensor_cutoff(m, i, &low);
  if (m->sensor_type[i] == SN_SENS_RANGEFINDER) {
    sn_range_sensor_vjp(m, w, a, i, value_bar, cut ? low : -SN_MAXVAL, cut ? m->sensor_cutoff[i] : SN_MAXVAL);
    return;
  }
  sn_copy(bar, value_bar, sn_sensor_is_quat(m, i) ? 3 : m->sensor_dim[i]);
  if (cut) {
    sensor_raw_value(m, w, i, value);
    for (int k = 0; k < m->sensor_dim[i]; ++k)
      if (value[k] < low || value[k] > m->sensor_cutoff[i]) bar[k] = 0;
  }
  if (sn_sensor_is_frame(m->sensor_type[i]))
    sn_frame_sensor_vjp(m, w, a, i, bar);
  else if (sn_sensor_is_force(m->sensor_type[i]))
    sn_force_sensor_vjp(m, w, a, i, bar);
  else
    sensor_scalar_vjp(m, w, a, i, bar);
}

// What sensor i reads in its buffer: the bar of its numbers goes to samples, and by the delay.
SN_LOCAL void sensor_read_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  const int adr = m->sensor_historyadr[i], n = m->sensor_history[2 * i], dim = m->sensor_dim[i];
  SnHistoryRead read;
  sn_sensor_read(m, w->past, i, w->time[0], &read);
  sn_history_value_vjp(n, dim, &read, bar, a->past_bar + adr);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->sensor_delay)
    sn_model_bar(a)->sensor_delay[i] -= sn_history_rate_vjp(w->past + adr, n, dim, &read, bar);
#endif
}

SN_FUNC void sn_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *value_bar) {
  if (!sn_sensor_reads(m, w->past, i, w->time[0])) {
    sensor_now_vjp(m, w, a, i, value_bar);
  } else if (sn_sensor_is_quat(m, i)) {
    // a small turn t changes the numbers by (0, t) q / 2, so the bars (0, 2 t_bar) q / |q|^2 of these are those of t
    const sn_real turn[4] = {0, 2 * value_bar[0], 2 * value_bar[1], 2 * value_bar[2]};
    sn_real q[4], bar[4];
    sn_sensor_value(m, w, i, q);
    const sn_real length2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    sn_mulquat(bar, turn, q);
    for (int k = 0; k < 4; ++k) bar[k] = length2 > SN_MINVAL ? bar[k] / length2 : 0;
    sensor_read_vjp(m, w, a, i, bar);
  } else {
    sensor_read_vjp(m, w, a, i, value_bar);
  }
}

// Bar of a small turn of the unit quaternion q, from that of its four numbers: q changes by (0, t) q / 2.
SN_LOCAL void sensor_quat_turn(const sn_real *q, const sn_real *bar, sn_real *turn_bar) {
  sn_real back[4], product[4];
  sn_negquat(back, q);
  sn_mulquat(product, bar, back);
  sn_scale3(turn_bar, product + 1, SN_R(0.5));
}

SN_FUNC bool sn_sensor_asked(const SnModel *m, int i, const sn_real *bar) {
  bool any = false;
  for (int k = 0; k < m->sensor_dim[i]; ++k) any = any || bar[k] != 0;
  return any && sn_sensor_differentiable(m, i);
}

SN_FUNC void sn_sensor_sample_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  sn_real value[4], turn_bar[3];
  if (!sn_sensor_asked(m, i, bar)) return;
  if (sn_sensor_is_quat(m, i)) {
    sn_sensor_sample(m, w, i, value);
    sensor_quat_turn(value, bar, turn_bar);
    sensor_now_vjp(m, w, a, i, turn_bar);
  } else {
    sensor_now_vjp(m, w, a, i, bar);
  }
}

SN_FUNC void sn_sensor_numbers_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  if (!sn_sensor_reads(m, w->past, i, w->time[0]))
    sn_sensor_sample_vjp(m, w, a, i, bar);
  else if (sn_sensor_asked(m, i, bar))
    sensor_read_vjp(m, w, a, i, bar);
}
