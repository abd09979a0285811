// Actuators: forces, joint forces. Activations are activation.c's, controllers controller.c's; lengths and moments of
// transmissions transmission.c's.
//
//   force_i = gain_i(length, velocity) * (ctrl_i or act_i) + bias_i(length, velocity)
//   qfrc_actuator = actuator_moment' force  (manual, Computation, "Actuation model")
// Limits act in this order: ctrl to ctrlrange, the total of a tendon's actuators to its actfrcrange (all
// scaled alike), each force to forcerange, then the total on a joint (gravity compensation
// included where the joint asks for that) to its actfrcrange.
#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "physics/base/muscle_curves.h"
#include "physics/base/vec.h"

// Rate of the activation of actuator i.
SN_INLINE sn_real act_rate(const SnModel *m, int i, sn_real ctrl, sn_real act) {
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

// act_dot of actuator i, which has no law of its own.
SN_INLINE void act_rates(const SnModel *m, SnWorld *w, int i, bool bad_ctrl) {
  const int last = sn_last_activation(m, i);
  for (int k = m->actuator_actadr[i]; k < last; ++k) w->act_dot[k] = 0;
  if (last < 0) return;
  const sn_real ctrl = bad_ctrl ? 0 : sn_clamped_ctrl(m, w, m->actuator_ctrladr[i]);
  w->act_dot[last] = act_rate(m, i, ctrl, w->act[last]);
}

SN_INLINE sn_real act_gain(const SnModel *m, const SnWorld *w, int i) {
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

SN_INLINE sn_real act_bias(const SnModel *m, const SnWorld *w, int i) {
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

// What the gain of actuator i multiplies; act_dot is known.
SN_INLINE sn_real act_input(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl) {
  const int last = sn_last_activation(m, i);
  const sn_real period = m->actuator_period[i];
  sn_real input;
  if (last < 0)
    input = bad_ctrl ? 0 : sn_clamped_ctrl(m, w, m->actuator_ctrladr[i]);
  else if (m->actuator_actearly[i])
    input = sn_activation_after(m, i, w->act[last], w->act_dot[last], sn_timestep(m, w));
  else
    input = w->act[last];
  return period > 0 ? sn_near_setpoint(input, w->actuator_length[m->actuator_outadr[i]], period) : input;
}

// Force of actuator i, which has no orientation, before all limits.
SN_INLINE sn_real act_raw_force(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl) {
  if (sn_actuator_idle(m, w, i)) return 0;
  if (sn_has_own_law(m, i))
    return sn_is_motor(m, i) ? sn_motor_force(m, w, i, bad_ctrl)
                             : sn_controller_force(m, w, i, bad_ctrl) + act_bias(m, w, i);
  return act_gain(m, w, i) * act_input(m, w, i, bad_ctrl) + act_bias(m, w, i);
}

// What forces of a tendon are scaled by whose sum is `total`.
SN_INLINE sn_real act_tendon_scale(const sn_real *range, sn_real total) {
  if (total == 0 || (total >= range[0] && total <= range[1])) return 1;
  return (total < range[0] ? range[0] : range[1]) / total;
}

// act_dot and the force of actuator i before the limits on tendons.
SN_LOCAL void act_forces(const SnModel *m, SnWorld *w, int i, bool bad_ctrl) {
  sn_real *force = w->actuator_force + m->actuator_outadr[i];
  if (!sn_has_own_law(m, i)) {
    act_rates(m, w, i, bad_ctrl);
  } else if (sn_is_orientation(m, i)) {
    sn_orientation_rates(m, w, i, bad_ctrl);
    sn_orientation_forces(m, w, i, bad_ctrl, force);
    return;
  } else if (sn_is_motor(m, i)) {
    sn_motor_rates(m, w, i, bad_ctrl);
  } else {
    sn_controller_rates(m, w, i, bad_ctrl);
  }
  *force = act_raw_force(m, w, i, bad_ctrl);
}

// The limit of actuator i's own force, and what no limit holds.
SN_LOCAL void act_limit_force(const SnModel *m, SnWorld *w, int i) {
  sn_real *force = w->actuator_force + m->actuator_outadr[i];
  const sn_real *range = m->actuator_forcerange + 2 * i;
  if (sn_is_orientation(m, i))
    sn_orientation_limit(m, i, force);
  else if (m->actuator_forcelimited[i])
    *force = sn_clip(*force, range[0], range[1]);
  if (sn_is_motor(m, i)) *force = sn_motor_drag(m, w, i, *force);
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_limited_force(const SnModel *m, const SnWorld *w, int i) {
  const int t = m->actuator_trnid[2 * i];
  const bool bad_ctrl = sn_is_motor(m, i) && sn_bad_ctrl(m, w);
  if (!sn_is_motor(m, i)) return w->actuator_force[m->actuator_outadr[i]];
  sn_real force = act_raw_force(m, w, i, bad_ctrl), total = 0;
  if (m->actuator_trntype[i] == SN_TRN_TENDON && m->tendon_actfrclimited[t]) {
    const sn_real *range = m->tendon_actfrcrange + 2 * t;
    for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k)
      total += act_raw_force(m, w, m->ten_act[k], bad_ctrl);
    force *= act_tendon_scale(range, total);
  }
  const sn_real *range = m->actuator_forcerange + 2 * i;
  return m->actuator_forcelimited[i] ? sn_clip(force, range[0], range[1]) : force;
}
#endif

// Scales the forces on tendon t so that their sum stays in its range.
SN_LOCAL void act_limit_tendon(const SnModel *m, SnWorld *w, int t) {
  if (!m->tendon_actfrclimited[t]) return;
  const sn_real *range = m->tendon_actfrcrange + 2 * t;
  sn_real total = 0;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k)
    total += w->actuator_force[m->actuator_outadr[m->ten_act[k]]];
  const sn_real scale = act_tendon_scale(range, total);
  if (scale == 1) return;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k)
    w->actuator_force[m->actuator_outadr[m->ten_act[k]]] *= scale;
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_dof_actuation(const SnModel *m, const SnWorld *w, int dof) {
  sn_real force = 0;
  for (int k = m->momT_adr[dof]; k < m->momT_adr[dof + 1]; ++k)
    force += w->actuator_moment[m->momT_entry[k]] * w->actuator_force[m->momT_out[k]];
  if (m->ngravcomp > 0 && m->jnt_actgravcomp[m->dof_jntid[dof]] && !(m->opt.disableflags & SN_DSBL_GRAVITY) &&
      sn_norm3(m->opt.gravity) > 0)
    force += w->qfrc_gravcomp[dof];
  return force;
}

SN_FUNC bool sn_joint_saturated(const SnModel *m, const SnWorld *w, int j) {
  if (!m->jnt_actfrclimited[j]) return false;
  const sn_real force = sn_dof_actuation(m, w, m->jnt_dofadr[j]), *range = m->jnt_actfrcrange + 2 * j;
  return force < range[0] || force > range[1];
}
#endif

// Dofs of joint j: sum over actuators, gravity compensation, limit on its first dof.
SN_LOCAL void act_joint_force(const SnModel *m, SnWorld *w, int j) {
  const int adr = m->jnt_dofadr[j], end = j + 1 < m->njnt ? m->jnt_dofadr[j + 1] : m->nv;
  for (int dof = adr; dof < end; ++dof) w->qfrc_actuator[dof] = sn_dof_actuation(m, w, dof);
  if (m->jnt_actfrclimited[j])
    w->qfrc_actuator[adr] = sn_clip(w->qfrc_actuator[adr], m->jnt_actfrcrange[2 * j], m->jnt_actfrcrange[2 * j + 1]);
}

#if !defined(SN_PACK)
// Controls that act now: of actuators with a delay, what their buffers say.
SN_LOCAL void act_read_controls(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nactuator) {
    const int k = m->actuator_ctrladr[i], dim = m->actuator_ctrlnum[i];
    SnHistoryRead read;
    if (m->actuator_delay[i] > 0) {
      sn_actuator_read(m, w->past, i, w->time[0], &read);
      sn_history_value(w->past + m->actuator_historyadr[i], m->actuator_history[2 * i], dim, &read, w->ctrl_late + k);
    } else {
      sn_copy(w->ctrl_late + k, w->ctrl + k, dim);
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_actuation(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (m->ndelay > 0) act_read_controls(m, w, lane);
  // MuJoCo leaves gravity compensation out, too, where there is no actuator
  if (m->nactuator == 0 || (m->opt.disableflags & SN_DSBL_ACTUATION)) {
    SN_FOR(i, m->nout) w->actuator_force[i] = 0;
    SN_FOR(i, m->na) w->act_dot[i] = 0;
    SN_FOR(i, m->nv) w->qfrc_actuator[i] = 0;
    SN_SYNC(lane);
    return;
  }
  const bool bad_ctrl = sn_lanes_bad_ctrl(m, w, lane);
  SN_FOR(i, m->nactuator) act_forces(m, w, i, bad_ctrl);
  SN_SYNC(lane);
  SN_FOR(t, m->ntendon) act_limit_tendon(m, w, t);
  SN_SYNC(lane);
  SN_FOR(i, m->nactuator) if (m->actuator_forcelimited[i] || sn_has_own_law(m, i)) act_limit_force(m, w, i);
  SN_SYNC(lane);
  SN_FOR(j, m->njnt) act_joint_force(m, w, j);
  SN_SYNC(lane);
}
#endif

#if defined(SN_MODEL_BARS)
SN_LOCAL sn_real act_curve(SnMuscleCurve curve, const sn_real *table, sn_real length, sn_real velocity) {
  switch (curve) {
    case SN_MUSCLE_GAIN:
      return sn_muscle_gain(table, length, velocity);
    case SN_MUSCLE_GAIN_SLOPE:
      return sn_muscle_gain_slope(table, length, velocity);
    case SN_MUSCLE_GAIN_STRETCH:
      return sn_muscle_gain_stretch(table, length, velocity);
    case SN_MUSCLE_BIAS:
      return sn_muscle_bias(table, length);
    default:
      return sn_muscle_bias_stretch(table, length);
  }
}

SN_FUNC void sn_muscle_model_vjp(SnMuscleCurve curve, const sn_real *table, sn_bar *out, sn_real length,
                                 sn_real velocity, sn_bar bar) {
  sn_real moved[SN_NMUSCLE], end[2];
  sn_copy(moved, table, SN_NMUSCLE);
  for (int k = 0; k < SN_NMUSCLE; ++k) {
    const sn_real h = SN_DIFFERENCE * sn_max(sn_abs(table[k]), SN_R(1e-3));
    for (int e = 0; e < 2; ++e) {
      moved[k] = table[k] + (e == 0 ? h : -h);
      end[e] = act_curve(curve, moved, length, velocity);
    }
    moved[k] = table[k];
    out[k] += bar * (end[0] - end[1]) / (2 * h);
  }
}

// Coefficients of an affine gain or bias.
SN_LOCAL void act_affine_model_vjp(sn_bar *out, bool affine, sn_real length, sn_real velocity, sn_bar bar) {
  out[0] += bar;
  if (!affine) return;
  out[1] += bar * length;
  out[2] += bar * velocity;
}

// The force of actuator i before all limits has the bar `bar`.
SN_LOCAL void act_force_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *to, int i, sn_real input,
                                  sn_bar bar) {
  const int o = m->actuator_outadr[i];
  const sn_real length = w->actuator_length[o], velocity = w->actuator_velocity[o];
  if (m->actuator_gaintype[i] == SN_GAIN_MUSCLE) {
    if (to->muscle_gain && to->muscle_moved[i])
      sn_muscle_model_vjp(SN_MUSCLE_GAIN, m->muscle_gain + SN_NMUSCLE * i, to->muscle_gain + SN_NMUSCLE * i, length,
                          velocity, bar * input);
  } else if (to->actuator_gainprm) {
    act_affine_model_vjp(to->actuator_gainprm + SN_NGAIN * i, m->actuator_gaintype[i] == SN_GAIN_AFFINE, length,
                         velocity, bar * input);
  }
  if (m->actuator_biastype[i] == SN_BIAS_MUSCLE && to->muscle_bias && to->muscle_moved[i])
    sn_muscle_model_vjp(SN_MUSCLE_BIAS, m->muscle_bias + SN_NMUSCLE * i, to->muscle_bias + SN_NMUSCLE * i, length,
                        velocity, bar);
  if (m->actuator_biastype[i] == SN_BIAS_AFFINE && to->actuator_biasprm)
    act_affine_model_vjp(to->actuator_biasprm + SN_NBIAS * i, true, length, velocity, bar);
}

// Limits of the actuator forces of joints: where one holds, lambda works on it.
SN_LOCAL void act_joint_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a) {
  for (int k = 0; sn_model_bar(a)->jnt_actfrcrange && k < m->nsaturable; ++k) {
    const int j = m->saturable[k], dof = m->jnt_dofadr[j];
    sn_bound_model_vjp(sn_model_bar(a)->jnt_actfrcrange + 2 * j, m->jnt_actfrcrange + 2 * j,
                       sn_dof_actuation(m, w, dof), a->motion[SN_LAMBDA * m->nv + dof]);
  }
}
#endif

// Bar of actuator i's force before its own limit, from force_bar; `force` is that force.
SN_LOCAL sn_bar act_limit_vjp(const SnModel *m, const SnAdjoint *a, int i, sn_real force) {
  const sn_real *range = m->actuator_forcerange + 2 * i;
  if (m->actuator_forcelimited[i] && !(force >= range[0] && force <= range[1])) {
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a))
      sn_bound_model_vjp(sn_model_bar(a)->actuator_forcerange ? sn_model_bar(a)->actuator_forcerange + 2 * i : NULL,
                         range, force, a->force_bar[m->actuator_outadr[i]]);
#endif
    return sn_bar_of(0);
  }
  return a->force_bar[m->actuator_outadr[i]];
}

// The limit on tendon t, from force_bar to raw_force_bar: where it scales the forces f_i by s = bound / sum f,
//   bar_i = s (bar'_i - sum_j bar'_j f_j / sum f);
// a sum that nearly vanishes has no derivative.
SN_LOCAL void act_tendon_limit_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t, bool bad_ctrl) {
  if (!m->tendon_actfrclimited[t]) return;
  const sn_real *range = m->tendon_actfrcrange + 2 * t;
  sn_bar along = {0};
  sn_real total = 0;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k) {
    const int i = m->ten_act[k];
    total += a->raw_force[m->actuator_outadr[i]] = act_raw_force(m, w, i, bad_ctrl);
  }
  const bool scaled = !(total == 0 || (total >= range[0] && total <= range[1]));
  const sn_real scale = act_tendon_scale(range, total);
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k) {
    const int i = m->ten_act[k], o = m->actuator_outadr[i];
    a->raw_force_bar[o] = act_limit_vjp(m, a, i, scale * a->raw_force[o]);
    along += a->raw_force_bar[o] * a->raw_force[o];
  }
  if (!scaled) return;
  const bool vanishes = sn_abs(total) < SN_MINVAL;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k) {
    sn_bar *bar = a->raw_force_bar + m->actuator_outadr[m->ten_act[k]];
    *bar = vanishes ? sn_bar_of(0) : scale * (*bar - along / total);
  }
}

// Bars of gain's and bias's length and velocity.
SN_LOCAL void act_gain_vjp(const SnModel *m, const SnWorld *w, int i, sn_bar bar, sn_bar *length_bar,
                           sn_bar *velocity_bar) {
  const int o = m->actuator_outadr[i];
  const sn_real *prm = m->actuator_gainprm + SN_NGAIN * i;
  if (m->actuator_gaintype[i] == SN_GAIN_FIXED) return;
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE) {
    *length_bar += bar * prm[1];
    *velocity_bar += bar * prm[2];
    return;
  }
  sn_muscle_gain_vjp(m->muscle_gain + SN_NMUSCLE * i, w->actuator_length[o], w->actuator_velocity[o], bar, length_bar,
                     velocity_bar);
}

SN_LOCAL void act_bias_vjp(const SnModel *m, const SnWorld *w, int i, sn_bar bar, sn_bar *length_bar,
                           sn_bar *velocity_bar) {
  const sn_real *prm = m->actuator_biasprm + SN_NBIAS * i;
  if (m->actuator_biastype[i] == SN_BIAS_NONE) return;
  if (m->actuator_biastype[i] == SN_BIAS_AFFINE) {
    *length_bar += bar * prm[1];
    *velocity_bar += bar * prm[2];
    return;
  }
  sn_muscle_bias_vjp(m->muscle_bias + SN_NMUSCLE * i, w->actuator_length[m->actuator_outadr[i]], bar, length_bar);
}

// The force of actuator i before all limits has the bar `bar`. A setpoint on a rotation moves with its control; the
// turns that it is shifted by to stay near the length are constant.
SN_LOCAL void act_force_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, sn_bar bar) {
  const int o = m->actuator_outadr[i], last = sn_last_activation(m, i);
  if (!sn_any(bar) || sn_actuator_idle(m, w, i)) return;
  if (sn_is_controller(m, i)) {
    sn_controller_vjp(m, w, a, i, bad_ctrl, bar, sn_bar_of(0), sn_bar_of(0));
    return;
  }
  sn_bar *length_bar = a->trn_length_bar + o, *velocity_bar = a->trn_rate_bar + SN_NMOTION * o + SN_VEL;
  const sn_bar input_bar = bar * act_gain(m, w, i);
  act_gain_vjp(m, w, i, bar * act_input(m, w, i, bad_ctrl), length_bar, velocity_bar);
  act_bias_vjp(m, w, i, bar, length_bar, velocity_bar);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) act_force_model_vjp(m, w, sn_model_bar(a), i, act_input(m, w, i, bad_ctrl), bar);
#endif
  if (last < 0) {
    sn_ctrl_vjp(m, w, a, m->actuator_ctrladr[i], bad_ctrl, input_bar);
  } else if (m->actuator_actearly[i]) {
    const sn_bar rate_bar = sn_activation_after_vjp(m, w, a, i, last, w->act_dot[last], sn_timestep(m, w), input_bar);
    sn_activation_rate_vjp(m, w, a, i, bad_ctrl, rate_bar);
  } else {
    a->act_bar[last] += input_bar;
  }
}

// Hands the bars of the controls that act now on, to controls and to samples, and by the delay.
SN_LOCAL void act_read_controls_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  (void)lane;
  SN_FOR(i, m->nactuator) {
    const int k = m->actuator_ctrladr[i], dim = m->actuator_ctrlnum[i], adr = m->actuator_historyadr[i];
    SnHistoryRead read;
    if (m->actuator_delay[i] > 0) {
      sn_actuator_read(m, w->past, i, w->time[0], &read);
      sn_history_value_vjp(m->actuator_history[2 * i], dim, &read, a->ctrl_late_bar + k, a->past_bar + adr);
#if defined(SN_MODEL_BARS)
      if (sn_model_bar(a) && sn_model_bar(a)->actuator_delay)
        sn_model_bar(a)->actuator_delay[i] -=
            sn_history_rate_vjp(w->past + adr, m->actuator_history[2 * i], dim, &read, a->ctrl_late_bar + k);
#endif
    } else {
      for (int d = k; d < k + dim; ++d) a->ctrl_bar[d] += a->ctrl_late_bar[d];
    }
    for (int d = k; d < k + dim; ++d) a->ctrl_late_bar[d] = sn_bar_of(0);
  }
}

SN_FUNC void sn_actuator_force_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  if (m->nactuator > 0 && !(m->opt.disableflags & SN_DSBL_ACTUATION)) {
    const bool bad_ctrl = sn_lanes_bad_ctrl(m, w, lane);
    SN_FOR(t, m->ntendon) act_tendon_limit_vjp(m, w, a, t, bad_ctrl);
    SN_SYNC(lane);
    SN_FOR(i, m->nactuator) {
      const int o = m->actuator_outadr[i];
      if (sn_is_orientation(m, i)) {
        sn_orientation_vjp(m, w, a, i, bad_ctrl);
        continue;
      }
      const bool on_tendon = m->actuator_trntype[i] == SN_TRN_TENDON;
      sn_bar bar = a->force_bar[o];
      if (on_tendon && m->tendon_actfrclimited[m->actuator_trnid[2 * i]])
        bar = a->raw_force_bar[o];
      else if (m->actuator_forcelimited[i])
        bar = act_limit_vjp(m, a, i, act_raw_force(m, w, i, bad_ctrl));
      if (sn_is_motor(m, i))
        sn_motor_force_vjp(m, w, a, i, bad_ctrl, bar, a->force_bar[o]);
      else
        act_force_vjp(m, w, a, i, bad_ctrl, bar);
    }
    SN_SYNC(lane);
  }
  SN_FOR(o, m->nout) a->force_bar[o] = sn_bar_of(0);
  if (m->ndelay > 0) act_read_controls_vjp(m, w, a, lane);
  SN_SYNC(lane);
}

SN_FUNC void sn_actuation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  if (m->nactuator == 0 || (m->opt.disableflags & SN_DSBL_ACTUATION)) return;
  const bool bad_ctrl = sn_lanes_bad_ctrl(m, w, lane);
  SN_FOR(i, m->nactuator) {
    const int first = m->actuator_outadr[i], last = sn_last_activation(m, i);
    for (int o = first; o < first + m->actuator_outnum[i]; ++o) {
      a->force_bar[o] += a->trn_rate[SN_NMOTION * o + SN_LAMBDA];
      a->trn_rate_bar[SN_NMOTION * o + SN_LAMBDA] += w->actuator_force[o];
    }
    if (last >= 0 && sn_is_controller(m, i))
      sn_controller_rates_vjp(m, w, a, i, bad_ctrl);
    else if (last >= 0 && sn_is_motor(m, i))
      sn_motor_rates_vjp(m, w, a, i, bad_ctrl);
    else if (last >= 0 && sn_is_orientation(m, i))
      sn_orientation_rates_vjp(m, w, a, i, bad_ctrl);
    else if (last >= 0 && sn_any(a->act_dot_bar[last]))
      sn_activation_rate_vjp(m, w, a, i, bad_ctrl, a->act_dot_bar[last]);
  }
  if (m->nsaturable > 0) sn_saturation_vjp(m, w, a, lane);
  SN_SYNC(lane);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) SN_ONE(lane) act_joint_model_vjp(m, w, a);
#endif
  sn_actuator_force_vjp(m, w, a, lane);
}
