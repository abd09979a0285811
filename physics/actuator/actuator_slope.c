// How the force of an actuator changes with its length and velocity, as implicit integrators take it.
//
// With gain g, bias b and input u, which is a control or an activation, the force is g u + b. An affine gain or bias
// has constant slopes; those of muscles follow from their curves. A force that is saturated, by a limit of its own, of
// its tendon or its joint, has none; friction of a motor, which no limit holds, keeps its own.
//
// Adjoint: a slope depends on the input, and of muscles on length and velocity. Beyond ctrlrange the input is its
// bound.
#include "physics/actuator/actuator_private.h"
#include "physics/base/muscle_curves.h"

// Whether the force of actuator i is at a limit of its own or of its tendon (within a relative 2e-10, as found in
// MuJoCo 4.0.0), also exactly at it, as in MuJoCo, whose next state this has to be. (Derivatives take that as inside:
// sn_joint_saturated.)
SN_LOCAL bool slope_held(const SnModel *m, const SnWorld *w, int i) {
  const int trn = m->actuator_trntype[i], id = m->actuator_trnid[2 * i];
  const sn_real *range = m->actuator_forcerange + 2 * i;
  if (trn == SN_TRN_SO3)
    return m->actuator_forcelimited[i] && sn_norm3(w->actuator_force + m->actuator_outadr[i]) >= range[1];
  const sn_real force = sn_limited_force(m, w, i);
  if (m->actuator_forcelimited[i] && (force <= range[0] || force >= range[1])) return true;
  if (trn == SN_TRN_TENDON && m->tendon_actfrclimited[id]) {
    const sn_real slack = sn_max(SN_R(2e-10), 4 * SN_EPS);
    sn_real total = 0;
    for (int k = 0; k < m->nactuator; ++k)
      if (m->actuator_trntype[k] == SN_TRN_TENDON && m->actuator_trnid[2 * k] == id) total += sn_limited_force(m, w, k);
    range = m->tendon_actfrcrange + 2 * id;
    if (total <= range[0] + slack * sn_abs(range[0]) || total >= range[1] - slack * sn_abs(range[1])) return true;
  }
  return false;
}

// Whether actuator i is switched off, or its joint is at the limit of its actuators.
SN_LOCAL bool slope_off(const SnModel *m, const SnWorld *w, int i) {
  const int trn = m->actuator_trntype[i], id = m->actuator_trnid[2 * i];
  if (sn_actuator_idle(m, w, i)) return true;
  if ((trn != SN_TRN_JOINT && trn != SN_TRN_JOINTINPARENT) || !m->jnt_actfrclimited[id]) return false;
  const sn_real total = w->qfrc_actuator[m->jnt_dofadr[id]], *range = m->jnt_actfrcrange + 2 * id;
  return total <= range[0] || total >= range[1];
}

#if !defined(SN_PACK)
SN_FUNC bool sn_actuator_gives(const SnModel *m, const SnWorld *w, int i) {
  return !slope_off(m, w, i) && (sn_is_motor(m, i) || !slope_held(m, w, i));
}
#endif

// What the gain of actuator i multiplies.
SN_LOCAL sn_real slope_input(const SnModel *m, const SnWorld *w, int i) {
  const int last = sn_last_activation(m, i);
  if (last < 0) return sn_clamped_ctrl(m, w, m->actuator_ctrladr[i]);
  if (!m->actuator_actearly[i]) return w->act[last];
  return sn_activation_after(m, i, w->act[last], w->act_dot[last], sn_timestep(m, w));
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_actuator_slope(const SnModel *m, const SnWorld *w, int i) {
  const int out = m->actuator_outadr[i];
  sn_real bias = 0, gain = 0;
  if (!sn_actuator_gives(m, w, i)) return 0;
  if (sn_is_motor(m, i)) return sn_motor_slope(m, w, i, slope_held(m, w, i));
  if (m->actuator_biastype[i] == SN_BIAS_AFFINE || m->actuator_biastype[i] == SN_BIAS_SO3)
    bias = m->actuator_biasprm[SN_NBIAS * i + 2];
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE) gain = m->actuator_gainprm[SN_NGAIN * i + 2];
  if (m->actuator_gaintype[i] == SN_GAIN_MUSCLE)
    gain = sn_muscle_gain_slope(m->muscle_gain + SN_NMUSCLE * i, w->actuator_length[out], w->actuator_velocity[out]);
  return gain == 0 ? bias : bias + gain * slope_input(m, w, i);
}
#endif

// Slope of the gain of actuator i by length.
SN_LOCAL sn_real slope_gain_stretch(const SnModel *m, const SnWorld *w, int i) {
  const int out = m->actuator_outadr[i];
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE) return m->actuator_gainprm[SN_NGAIN * i + 1];
  if (m->actuator_gaintype[i] != SN_GAIN_MUSCLE) return 0;
  return sn_muscle_gain_stretch(m->muscle_gain + SN_NMUSCLE * i, w->actuator_length[out], w->actuator_velocity[out]);
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_actuator_stretch(const SnModel *m, const SnWorld *w, int i) {
  if (!sn_actuator_gives(m, w, i)) return 0;
  if (sn_is_motor(m, i)) return sn_motor_stretch(m, w, i, slope_held(m, w, i));
  const sn_real gain = slope_gain_stretch(m, w, i);
  sn_real bias = 0;
  if (m->actuator_biastype[i] == SN_BIAS_AFFINE || m->actuator_biastype[i] == SN_BIAS_SO3)
    bias = m->actuator_biasprm[SN_NBIAS * i + 1];
  if (m->actuator_biastype[i] == SN_BIAS_MUSCLE)
    bias = sn_muscle_bias_stretch(m->muscle_bias + SN_NMUSCLE * i, w->actuator_length[m->actuator_outadr[i]]);
  return gain == 0 ? bias : bias + gain * slope_input(m, w, i);
}
#endif
#if defined(SN_MODEL_BARS)
// The slope of actuator i by the model, with the bar `bar`.
SN_LOCAL void slope_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *to, int i, sn_real input, sn_bar bar) {
  const int out = m->actuator_outadr[i];
  const int type = m->actuator_biastype[i];
  if ((type == SN_BIAS_AFFINE || type == SN_BIAS_SO3) && to->actuator_biasprm)
    to->actuator_biasprm[SN_NBIAS * i + 2] += bar;
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE && to->actuator_gainprm)
    to->actuator_gainprm[SN_NGAIN * i + 2] += bar * input;
  if (m->actuator_gaintype[i] != SN_GAIN_MUSCLE || !to->muscle_gain || !to->muscle_moved[i]) return;
  sn_muscle_model_vjp(SN_MUSCLE_GAIN_SLOPE, m->muscle_gain + SN_NMUSCLE * i, to->muscle_gain + SN_NMUSCLE * i,
                      w->actuator_length[out], w->actuator_velocity[out], bar * input);
}

// The slope by length of actuator i by the model, with the bar `bar`.
SN_LOCAL void stretch_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *to, int i, sn_real input, sn_bar bar) {
  const int out = m->actuator_outadr[i], type = m->actuator_biastype[i];
  const sn_real length = w->actuator_length[out], velocity = w->actuator_velocity[out];
  if ((type == SN_BIAS_AFFINE || type == SN_BIAS_SO3) && to->actuator_biasprm)
    to->actuator_biasprm[SN_NBIAS * i + 1] += bar;
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE && to->actuator_gainprm)
    to->actuator_gainprm[SN_NGAIN * i + 1] += bar * input;
  if (m->actuator_gaintype[i] == SN_GAIN_MUSCLE && to->muscle_gain && to->muscle_moved[i])
    sn_muscle_model_vjp(SN_MUSCLE_GAIN_STRETCH, m->muscle_gain + SN_NMUSCLE * i, to->muscle_gain + SN_NMUSCLE * i,
                        length, velocity, bar * input);
  if (type == SN_BIAS_MUSCLE && to->muscle_bias && to->muscle_moved[i])
    sn_muscle_model_vjp(SN_MUSCLE_BIAS_STRETCH, m->muscle_bias + SN_NMUSCLE * i, to->muscle_bias + SN_NMUSCLE * i,
                        length, velocity, bar);
}
#endif

// The input of the gain of actuator i has the bar `bar`.
SN_LOCAL void slope_input_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_bar bar) {
  const int last = sn_last_activation(m, i);
  if (last < 0) {
    sn_ctrl_vjp(m, w, a, m->actuator_ctrladr[i], false, bar);
  } else if (m->actuator_actearly[i]) {
    a->act_dot_bar[last] += sn_activation_after_vjp(m, w, a, i, last, w->act_dot[last], sn_timestep(m, w), bar);
  } else {
    a->act_bar[last] += bar;
  }
}

SN_FUNC void sn_actuator_slope_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_bar bar) {
  const int out = m->actuator_outadr[i];
  if (!sn_actuator_gives(m, w, i)) return;
  if (sn_is_motor(m, i)) {
    sn_motor_slope_vjp(m, w, a, i, slope_held(m, w, i), bar);
    return;
  }
  if (m->actuator_gaintype[i] == SN_GAIN_SO3) {
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) slope_model_vjp(m, w, sn_model_bar(a), i, 0, bar);
#endif
    return;
  }
  const bool muscle = m->actuator_gaintype[i] == SN_GAIN_MUSCLE;
  const sn_real *table = m->muscle_gain + SN_NMUSCLE * i, length = w->actuator_length[out];
  const sn_real velocity = w->actuator_velocity[out], input = slope_input(m, w, i);
  sn_real gain = 0;
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE) gain = m->actuator_gainprm[SN_NGAIN * i + 2];
  if (muscle) gain = sn_muscle_gain_slope(table, length, velocity);
  slope_input_vjp(m, w, a, i, bar * gain);
  if (muscle)
    sn_muscle_gain_slope_vjp(table, length, velocity, bar * input, a->trn_length_bar + out,
                             a->trn_rate_bar + SN_NMOTION * out + SN_VEL);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) slope_model_vjp(m, w, sn_model_bar(a), i, input, bar);
#endif
}

SN_FUNC void sn_actuator_stretch_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_bar bar) {
  const int out = m->actuator_outadr[i];
  const sn_real length = w->actuator_length[out], gain = slope_gain_stretch(m, w, i);
  if (!sn_actuator_gives(m, w, i)) return;
  if (sn_is_motor(m, i)) {
    sn_motor_stretch_vjp(m, w, a, i, slope_held(m, w, i), bar);
    return;
  }
  if (gain != 0) slope_input_vjp(m, w, a, i, bar * gain);
  if (m->actuator_gaintype[i] == SN_GAIN_MUSCLE)
    sn_muscle_gain_stretch_vjp(m->muscle_gain + SN_NMUSCLE * i, length, w->actuator_velocity[out],
                               bar * slope_input(m, w, i), a->trn_length_bar + out,
                               a->trn_rate_bar + SN_NMOTION * out + SN_VEL);
  if (m->actuator_biastype[i] == SN_BIAS_MUSCLE)
    sn_muscle_bias_stretch_vjp(m->muscle_bias + SN_NMUSCLE * i, length, bar, a->trn_length_bar + out);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) stretch_model_vjp(m, w, sn_model_bar(a), i, slope_input(m, w, i), bar);
#endif
}
