// Actuators: activation, force, joint forces; lengths and moments of their transmissions are transmission.c's.
//
//   force_i = gain_i(length, velocity) * (ctrl_i or act_i) + bias_i(length, velocity)
//   qfrc_actuator = actuator_moment' force  (manual, Computation, "Actuation model")
// A controller (SN_GAIN_PID) has up to three controls, setpoints p of the length and v of the velocity and a force f,
// and up to two activations, a setpoint s that follows p at a limited rate r, and the integral z of the error:
//   p' = p, or with a limit s + clip(p - s, +-r h),   s_dot = (p' - s) / h,   z_dot = p' - length,
// z_dot cut to the side that leads back where |z| has reached its bound;
//   force_i = -b_1 p' - b_2 v + f + k z + bias_i(length, velocity),   b_1, b_2 the slopes of the affine bias.
// On a rotation p means what is nearest to s, p' in the force what is nearest to the length, and the error is the one
// within half a turn.
// Limits act in this order: ctrl to ctrlrange, the total of a tendon's actuators to its actfrcrange (all
// scaled alike), each force to forcerange, then the total on a joint (gravity compensation
// included where the joint asks for that) to its actfrcrange.
#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "physics/base/muscle_curves.h"
#include "physics/base/vec.h"

#if !defined(SN_PACK)
SN_FUNC bool sn_actuator_disabled(const SnModel *m, int i) {
  const int group = m->actuator_group[i];
  return group >= 0 && group <= 30 && (m->opt.disableactuator & (1 << group)) != 0;
}

SN_FUNC sn_real sn_clamped_ctrl(const SnModel *m, const SnWorld *w, int k) {
  const sn_real u = w->ctrl[k], *range = m->actuator_ctrlrange + 2 * k;
  if (!m->actuator_ctrllimited[k] || (m->opt.disableflags & SN_DSBL_CLAMPCTRL)) return u;
  return u < range[0] ? range[0] : (u > range[1] ? range[1] : u);  // NaN stays NaN
}
#endif

// One bad control switches all of them off, as in MuJoCo; every lane looks at all.
SN_LOCAL bool act_bad_ctrl(const SnModel *m, const SnWorld *w) {
  bool bad = false;
  for (int k = 0; k < m->nu; ++k) bad = bad || sn_is_bad(sn_clamped_ctrl(m, w, k));
  return bad;
}

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

// Activation of actuator i after h [s] at the given rate.
SN_INLINE sn_real act_advance(const SnModel *m, int i, sn_real act, sn_real rate, sn_real h) {
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
SN_LOCAL sn_real act_near_setpoint(sn_real u, sn_real length, sn_real period) {
  return u - period * sn_floor((u - length) / period + SN_R(0.5));
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

// Last activation of actuator i; -1: it has none.
SN_INLINE int act_last(const SnModel *m, int i) {
  return m->actuator_actadr[i] < 0 ? -1 : m->actuator_actadr[i] + m->actuator_actnum[i] - 1;
}

// ---- controllers ----

SN_INLINE bool act_is_pid(const SnModel *m, int i) { return m->actuator_gaintype[i] == SN_GAIN_PID; }

// What a controller works on: its controls, and where they and its activations are; -1: it has none.
typedef struct ActPid {
  sn_real pos, vel, ff, rate, error;  // setpoints and force, rates of the two activations
  int ctrl[3], slew, integral;
  bool clipped, held;  // the setpoint moves as fast as it may; the integral is at its bound
} ActPid;

// Clamped control k, 0 where there is none.
SN_INLINE sn_real act_pid_ctrl(const SnModel *m, const SnWorld *w, int k, bool bad_ctrl) {
  return k < 0 || bad_ctrl ? 0 : sn_clamped_ctrl(m, w, k);
}

// The setpoint that follows with a limited rate, and that rate.
SN_LOCAL void act_pid_slew(const SnModel *m, const SnWorld *w, int i, ActPid *p) {
  const sn_real period = m->actuator_period[i], before = w->act[p->slew], h = sn_timestep(m, w);
  const sn_real most = m->actuator_dynprm[SN_NDYN * i + 1] * h;
  const sn_real wanted = period > 0 ? act_near_setpoint(p->pos, before, period) : p->pos;
  p->pos = sn_clip(wanted, before - most, before + most);
  p->clipped = wanted < before - most || wanted > before + most;
  p->rate = (p->pos - before) / h;
}

// The rate of the integral.
SN_LOCAL void act_pid_error(const SnModel *m, const SnWorld *w, int i, ActPid *p) {
  const sn_real period = m->actuator_period[i], bound = m->actuator_dynprm[SN_NDYN * i], z = w->act[p->integral];
  sn_real error = p->pos - w->actuator_length[m->actuator_outadr[i]];
  if (period > 0) error = act_near_setpoint(error, 0, period);
  p->held = bound > 0 && ((z >= bound && error > 0) || (z <= -bound && error < 0));
  p->error = p->held ? 0 : error;
}

SN_LOCAL void act_pid(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl, ActPid *p) {
  const int spec = m->actuator_ctrlspec[i], bits[3] = {SN_INPUT_POS, SN_INPUT_VEL, SN_INPUT_FF};
  int u = m->actuator_ctrladr[i], adr = m->actuator_actadr[i];
  for (int k = 0; k < 3; ++k) p->ctrl[k] = spec & bits[k] ? u++ : -1;
  const bool states = m->actuator_actnum[i] > 0;
  p->slew = states && m->actuator_dynprm[SN_NDYN * i + 1] > 0 ? adr++ : -1;
  p->integral = states && m->actuator_gainprm[SN_NGAIN * i] > 0 ? adr : -1;
  p->pos = act_pid_ctrl(m, w, p->ctrl[0], bad_ctrl);
  p->vel = act_pid_ctrl(m, w, p->ctrl[1], bad_ctrl);
  p->ff = act_pid_ctrl(m, w, p->ctrl[2], bad_ctrl);
  p->clipped = p->held = false;
  if (p->slew >= 0) act_pid_slew(m, w, i, p);
  if (p->integral >= 0) act_pid_error(m, w, i, p);
}

// The integral that the force sees.
SN_INLINE sn_real act_pid_integral(const SnModel *m, const SnWorld *w, int i, const ActPid *p) {
  const sn_real z = w->act[p->integral];
  return m->actuator_actearly[i] ? act_advance(m, i, z, p->error, sn_timestep(m, w)) : z;
}

// The setpoint of the length that the force sees.
SN_INLINE sn_real act_pid_setpoint(const SnModel *m, const SnWorld *w, int i, const ActPid *p) {
  const sn_real period = m->actuator_period[i];
  return period > 0 ? act_near_setpoint(p->pos, w->actuator_length[m->actuator_outadr[i]], period) : p->pos;
}

SN_LOCAL sn_real act_pid_force(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl) {
  const sn_real *prm = m->actuator_biasprm + SN_NBIAS * i;
  ActPid p;
  act_pid(m, w, i, bad_ctrl, &p);
  sn_real force = -prm[1] * act_pid_setpoint(m, w, i, &p) - prm[2] * p.vel + p.ff;
  if (p.integral >= 0) force += m->actuator_gainprm[SN_NGAIN * i] * act_pid_integral(m, w, i, &p);
  return force + act_bias(m, w, i);
}

// ---- forces ----

// What the gain of actuator i multiplies; act_dot is known.
SN_INLINE sn_real act_input(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl) {
  const int last = act_last(m, i);
  const sn_real period = m->actuator_period[i];
  sn_real input;
  if (last < 0)
    input = bad_ctrl ? 0 : sn_clamped_ctrl(m, w, m->actuator_ctrladr[i]);
  else if (m->actuator_actearly[i])
    input = act_advance(m, i, w->act[last], w->act_dot[last], sn_timestep(m, w));
  else
    input = w->act[last];
  return period > 0 ? act_near_setpoint(input, w->actuator_length[m->actuator_outadr[i]], period) : input;
}

// Force of actuator i before all limits.
SN_INLINE sn_real act_raw_force(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl) {
  if (sn_actuator_disabled(m, i)) return 0;
  if (act_is_pid(m, i)) return act_pid_force(m, w, i, bad_ctrl);
  return act_gain(m, w, i) * act_input(m, w, i, bad_ctrl) + act_bias(m, w, i);
}

// act_dot and the force of actuator i before the limits on tendons.
SN_LOCAL void act_forces(const SnModel *m, SnWorld *w, int i, bool bad_ctrl) {
  const int last = act_last(m, i);
  const sn_real ctrl = bad_ctrl ? 0 : sn_clamped_ctrl(m, w, m->actuator_ctrladr[i]);
  if (act_is_pid(m, i)) {
    ActPid p;
    act_pid(m, w, i, bad_ctrl, &p);
    if (p.slew >= 0) w->act_dot[p.slew] = p.rate;
    if (p.integral >= 0) w->act_dot[p.integral] = p.error;
    w->actuator_force[m->actuator_outadr[i]] = act_raw_force(m, w, i, bad_ctrl);
    return;
  }
  for (int k = m->actuator_actadr[i]; k < last; ++k) w->act_dot[k] = 0;
  if (last >= 0) w->act_dot[last] = act_rate(m, i, ctrl, w->act[last]);
  w->actuator_force[m->actuator_outadr[i]] = act_raw_force(m, w, i, bad_ctrl);
}

// Scales the forces on tendon t so that their sum stays in its range.
SN_LOCAL void act_limit_tendon(const SnModel *m, SnWorld *w, int t) {
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
SN_FUNC void sn_actuation(const SnModel *m, SnWorld *w, SnLane *lane) {
  // MuJoCo leaves gravity compensation out, too, where there is no actuator
  if (m->nactuator == 0 || (m->opt.disableflags & SN_DSBL_ACTUATION)) {
    SN_FOR(i, m->nout) w->actuator_force[i] = 0;
    SN_FOR(i, m->na) w->act_dot[i] = 0;
    SN_FOR(i, m->nv) w->qfrc_actuator[i] = 0;
    SN_SYNC(lane);
    return;
  }
  const bool bad_ctrl = act_bad_ctrl(m, w);
  SN_FOR(i, m->nactuator) act_forces(m, w, i, bad_ctrl);
  SN_SYNC(lane);
  SN_FOR(t, m->ntendon) act_limit_tendon(m, w, t);
  SN_SYNC(lane);
  SN_FOR(i, m->nactuator) {
    const int out = m->actuator_outadr[i];
    const sn_real *range = m->actuator_forcerange + 2 * i;
    if (m->actuator_forcelimited[i]) w->actuator_force[out] = sn_clip(w->actuator_force[out], range[0], range[1]);
  }
  SN_SYNC(lane);
  SN_FOR(j, m->njnt) act_joint_force(m, w, j);
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
    for (int k = adr; k < end; ++k) out[k] = act_advance(m, i, w->act[k], disabled ? 0 : w->act_dot[k], h);
    // a setpoint on a rotation stays within half a turn of the length
    if (m->actuator_period[i] > 0 && m->actuator_dyntype[i] == SN_DYN_INTEGRATOR)
      out[end - 1] = act_near_setpoint(out[end - 1], w->actuator_length[m->actuator_outadr[i]], m->actuator_period[i]);
  }
  SN_SYNC(lane);
}
#endif

#if defined(SN_MODEL_BARS)
// Adds the bar of the bound of a range that holds x.
SN_LOCAL void act_bound_model_vjp(sn_bar *range_bar, const sn_real *range, sn_real x, sn_bar bar) {
  if (range_bar && x < range[0]) range_bar[0] += bar;
  if (range_bar && x > range[1]) range_bar[1] += bar;
}

// Bar of the clamped control k: of its range, where that holds it.
SN_LOCAL void act_ctrl_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int k, sn_bar bar) {
  if (sn_clamped_ctrl(m, w, k) != w->ctrl[k])
    act_bound_model_vjp(sn_model_bar(a)->actuator_ctrlrange ? sn_model_bar(a)->actuator_ctrlrange + 2 * k : NULL,
                        m->actuator_ctrlrange + 2 * k, w->ctrl[k], bar);
}

// Rate of the activation of actuator i, with the bar `bar`, by time constants.
SN_LOCAL void act_rate_model_vjp(const SnModel *m, SnModelBar *to, int i, sn_real ctrl, sn_real act, sn_bar bar) {
  const sn_real *prm = m->actuator_dynprm + SN_NDYN * i;
  const int type = m->actuator_dyntype[i];
  if (!to->actuator_dynprm || type == SN_DYN_INTEGRATOR) return;
  sn_bar *out = to->actuator_dynprm + SN_NDYN * i;
  sn_real moved[3];
  if (type != SN_DYN_MUSCLE) {
    if (prm[0] > SN_MINVAL) out[0] -= bar * (ctrl - act) / (prm[0] * prm[0]);
    return;
  }
  for (int k = 0; k < 3; ++k) {
    const sn_real h = SN_DIFFERENCE * prm[k];
    if (prm[k] == 0) continue;
    sn_copy3(moved, prm);
    moved[k] = prm[k] + h;
    const sn_real up = sn_muscle_rate(ctrl, act, moved);
    moved[k] = prm[k] - h;
    out[k] += bar * (up - sn_muscle_rate(ctrl, act, moved)) / (2 * h);
  }
}

// Activation of actuator i after h [s], with the bar `bar`: its range, and the constant of an exact filter.
SN_LOCAL void act_advance_model_vjp(const SnModel *m, SnModelBar *to, int i, sn_real act, sn_real rate, sn_real h,
                                    sn_bar bar) {
  const sn_real *range = m->actuator_actrange + 2 * i, tau = sn_max(SN_MINVAL, m->actuator_dynprm[SN_NDYN * i]);
  const bool exact = m->actuator_dyntype[i] == SN_DYN_FILTEREXACT;
  const sn_real left = sn_exp(-h / tau), next = act + rate * (exact ? tau * (1 - left) : h);
  if (m->actuator_actlimited[i] && !(next >= range[0] && next <= range[1])) {
    act_bound_model_vjp(to->actuator_actrange ? to->actuator_actrange + 2 * i : NULL, range, next, bar);
    return;
  }
  if (exact && to->actuator_dynprm) to->actuator_dynprm[SN_NDYN * i] += bar * rate * (1 - left - left * h / tau);
}

// Table of a muscle: gain (velocity not NULL) or bias with the bar `bar`, by differences of the curve in its numbers.
SN_LOCAL void act_table_model_vjp(const sn_real *table, sn_bar *out, sn_real length, const sn_real *velocity,
                                  sn_bar bar) {
  sn_real moved[SN_NMUSCLE], end[2];
  sn_copy(moved, table, SN_NMUSCLE);
  for (int k = 0; k < SN_NMUSCLE; ++k) {
    const sn_real h = SN_DIFFERENCE * sn_max(sn_abs(table[k]), SN_R(1e-3));
    for (int e = 0; e < 2; ++e) {
      moved[k] = table[k] + (e == 0 ? h : -h);
      end[e] = velocity ? sn_muscle_gain(moved, length, *velocity) : sn_muscle_bias(moved, length);
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
      act_table_model_vjp(m->muscle_gain + SN_NMUSCLE * i, to->muscle_gain + SN_NMUSCLE * i, length, &velocity,
                          bar * input);
  } else if (to->actuator_gainprm) {
    act_affine_model_vjp(to->actuator_gainprm + SN_NGAIN * i, m->actuator_gaintype[i] == SN_GAIN_AFFINE, length,
                         velocity, bar * input);
  }
  if (m->actuator_biastype[i] == SN_BIAS_MUSCLE && to->muscle_bias && to->muscle_moved[i])
    act_table_model_vjp(m->muscle_bias + SN_NMUSCLE * i, to->muscle_bias + SN_NMUSCLE * i, length, NULL, bar);
  if (m->actuator_biastype[i] == SN_BIAS_AFFINE && to->actuator_biasprm)
    act_affine_model_vjp(to->actuator_biasprm + SN_NBIAS * i, true, length, velocity, bar);
}

// Limits of the actuator forces of joints: where one holds, lambda works on it.
SN_LOCAL void act_joint_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a) {
  for (int k = 0; sn_model_bar(a)->jnt_actfrcrange && k < m->nsaturable; ++k) {
    const int j = m->saturable[k], dof = m->jnt_dofadr[j];
    act_bound_model_vjp(sn_model_bar(a)->jnt_actfrcrange + 2 * j, m->jnt_actfrcrange + 2 * j,
                        sn_dof_actuation(m, w, dof), a->motion[SN_LAMBDA * m->nv + dof]);
  }
}
#endif

// Bars of act_rate's arguments.
SN_LOCAL void act_rate_vjp(const SnModel *m, int i, sn_real ctrl, sn_real act, sn_bar bar, sn_bar *ctrl_bar,
                           sn_bar *act_bar) {
  const sn_real *prm = m->actuator_dynprm + SN_NDYN * i;
  switch (m->actuator_dyntype[i]) {
    case SN_DYN_INTEGRATOR:
      *ctrl_bar += bar;
      return;
    case SN_DYN_MUSCLE:
      sn_muscle_rate_vjp(ctrl, act, prm, bar, ctrl_bar, act_bar);
      return;
    default:
      bar /= sn_max(SN_MINVAL, prm[0]);
      *ctrl_bar += bar;
      *act_bar -= bar;
      return;
  }
}

// Bars of act_advance's arguments. An activation that its range has stopped has no derivative; on a bound it
// is that of the inside.
SN_LOCAL void act_advance_vjp(const SnModel *m, int i, sn_real act, sn_real rate, sn_real h, sn_bar bar,
                              sn_bar *act_bar, sn_bar *rate_bar) {
  const sn_real *range = m->actuator_actrange + 2 * i;
  if (m->actuator_dyntype[i] == SN_DYN_FILTEREXACT) {
    const sn_real tau = sn_max(SN_MINVAL, m->actuator_dynprm[SN_NDYN * i]);
    h = tau * (1 - sn_exp(-h / tau));
  }
  const sn_real next = act + rate * h;
  if (m->actuator_actlimited[i] && !(next >= range[0] && next <= range[1])) return;
  *act_bar += bar;
  *rate_bar += h * bar;
}

// True when a small change of control k reaches the actuators; at a bound of its range it does, inwards.
SN_LOCAL bool act_ctrl_free(const SnModel *m, const SnWorld *w, int k) {
  return sn_clamped_ctrl(m, w, k) == w->ctrl[k];
}

SN_FUNC void sn_next_activation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real h) {
  SN_SYNC(lane);
  if (m->opt.disableflags & SN_DSBL_ACTUATION) {
    SN_FOR(k, m->na) a->act_bar[k] += a->act_next_bar[k];
    SN_SYNC(lane);
    return;
  }
  SN_FOR(i, m->nactuator) {
    const bool disabled = sn_actuator_disabled(m, i);
    for (int k = m->actuator_actadr[i]; k >= 0 && k <= act_last(m, i); ++k) {
      sn_bar rate_bar = {0};
      act_advance_vjp(m, i, w->act[k], disabled ? 0 : w->act_dot[k], h, a->act_next_bar[k], a->act_bar + k, &rate_bar);
#if defined(SN_MODEL_BARS)
      if (sn_model_bar(a))
        act_advance_model_vjp(m, sn_model_bar(a), i, w->act[k], disabled ? 0 : w->act_dot[k], h, a->act_next_bar[k]);
#endif
      if (!disabled) a->act_dot_bar[k] += rate_bar;
    }
  }
  SN_SYNC(lane);
}

// Bar of control k, of an actuator, as it sees it.
SN_LOCAL void act_pid_ctrl_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int k, bool bad_ctrl, sn_bar bar) {
  if (k < 0 || bad_ctrl) return;
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) act_ctrl_model_vjp(m, w, a, k, bar);
#endif
  if (act_ctrl_free(m, w, k)) a->ctrl_bar[k] += bar;
}

#if defined(SN_MODEL_BARS)
// A controller's force by gains, with the bar `bar`.
SN_LOCAL void act_pid_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *to, int i, const ActPid *p,
                                sn_bar bar) {
  const int o = m->actuator_outadr[i];
  if (to->actuator_biasprm) {
    sn_bar *prm = to->actuator_biasprm + SN_NBIAS * i;
    prm[0] += bar;
    prm[1] += bar * (w->actuator_length[o] - act_pid_setpoint(m, w, i, p));
    prm[2] += bar * (w->actuator_velocity[o] - p->vel);
  }
  if (to->actuator_gainprm && p->integral >= 0)
    to->actuator_gainprm[SN_NGAIN * i] += bar * act_pid_integral(m, w, i, p);
}
#endif

// A controller: bars of its force before all limits and of the rates of its setpoint and integral. A turn by which a
// setpoint is shifted is constant.
SN_LOCAL void act_pid_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, sn_bar bar,
                          sn_bar slew_bar, sn_bar integral_bar) {
  const sn_real *prm = m->actuator_biasprm + SN_NBIAS * i, h = sn_timestep(m, w);
  const int o = m->actuator_outadr[i];
  sn_bar *length_bar = a->trn_length_bar + o, pos_bar = bar * -prm[1];
  ActPid p;
  act_pid(m, w, i, bad_ctrl, &p);
  *length_bar += bar * prm[1];
  a->trn_rate_bar[SN_NMOTION * o + SN_VEL] += bar * prm[2];
  act_pid_ctrl_vjp(m, w, a, p.ctrl[1], bad_ctrl, bar * -prm[2]);
  act_pid_ctrl_vjp(m, w, a, p.ctrl[2], bad_ctrl, bar);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) act_pid_model_vjp(m, w, sn_model_bar(a), i, &p, bar);
#endif
  if (p.integral >= 0) {
    const sn_bar z_bar = bar * m->actuator_gainprm[SN_NGAIN * i];
    if (m->actuator_actearly[i]) {
      act_advance_vjp(m, i, w->act[p.integral], p.error, h, z_bar, a->act_bar + p.integral, &integral_bar);
#if defined(SN_MODEL_BARS)
      if (sn_model_bar(a)) act_advance_model_vjp(m, sn_model_bar(a), i, w->act[p.integral], p.error, h, z_bar);
#endif
    } else {
      a->act_bar[p.integral] += z_bar;
    }
    if (!p.held) {
      pos_bar += integral_bar;
      *length_bar -= integral_bar;
    }
  }
  if (p.slew >= 0) {
    pos_bar += slew_bar / h;
    a->act_bar[p.slew] -= slew_bar / h;
    if (p.clipped) {
      a->act_bar[p.slew] += pos_bar;
#if defined(SN_MODEL_BARS)
      if (sn_model_bar(a) && sn_model_bar(a)->actuator_dynprm)
        sn_model_bar(a)->actuator_dynprm[SN_NDYN * i + 1] += pos_bar * (p.rate > 0 ? h : -h);
#endif
      return;
    }
  }
  act_pid_ctrl_vjp(m, w, a, p.ctrl[0], bad_ctrl, pos_bar);
}

// Bars of the activation and the control of actuator i from that of the rate of its activation.
SN_LOCAL void act_dot_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, sn_bar bar) {
  const int last = act_last(m, i), k = m->actuator_ctrladr[i];
  sn_bar ctrl_bar = {0};
  act_rate_vjp(m, i, bad_ctrl ? 0 : sn_clamped_ctrl(m, w, k), w->act[last], bar, &ctrl_bar, a->act_bar + last);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && !bad_ctrl) {
    act_rate_model_vjp(m, sn_model_bar(a), i, sn_clamped_ctrl(m, w, k), w->act[last], bar);
    act_ctrl_model_vjp(m, w, a, k, ctrl_bar);
  }
#endif
  if (!bad_ctrl && act_ctrl_free(m, w, k)) a->ctrl_bar[k] += ctrl_bar;
}

// Bar of actuator i's force before its own limit, from force_bar; `force` is that force.
SN_LOCAL sn_bar act_limit_vjp(const SnModel *m, const SnAdjoint *a, int i, sn_real force) {
  const sn_real *range = m->actuator_forcerange + 2 * i;
  if (m->actuator_forcelimited[i] && !(force >= range[0] && force <= range[1])) {
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a))
      act_bound_model_vjp(sn_model_bar(a)->actuator_forcerange ? sn_model_bar(a)->actuator_forcerange + 2 * i : NULL,
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
  sn_real total = 0, scale = 1;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k) {
    const int i = m->ten_act[k];
    total += a->raw_force[m->actuator_outadr[i]] = act_raw_force(m, w, i, bad_ctrl);
  }
  const bool scaled = !(total == 0 || (total >= range[0] && total <= range[1]));
  if (scaled) scale = (total < range[0] ? range[0] : range[1]) / total;
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
  const int o = m->actuator_outadr[i], last = act_last(m, i), k = m->actuator_ctrladr[i];
  if (!sn_any(bar) || sn_actuator_disabled(m, i)) return;
  if (act_is_pid(m, i)) {
    act_pid_vjp(m, w, a, i, bad_ctrl, bar, sn_bar_of(0), sn_bar_of(0));
    return;
  }
  sn_bar *length_bar = a->trn_length_bar + o, *velocity_bar = a->trn_rate_bar + SN_NMOTION * o + SN_VEL;
  const sn_bar input_bar = bar * act_gain(m, w, i);
  act_gain_vjp(m, w, i, bar * act_input(m, w, i, bad_ctrl), length_bar, velocity_bar);
  act_bias_vjp(m, w, i, bar, length_bar, velocity_bar);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) act_force_model_vjp(m, w, sn_model_bar(a), i, act_input(m, w, i, bad_ctrl), bar);
  if (sn_model_bar(a) && last < 0 && !bad_ctrl) act_ctrl_model_vjp(m, w, a, k, input_bar);
#endif
  if (last < 0) {
    if (!bad_ctrl && act_ctrl_free(m, w, k)) a->ctrl_bar[k] += input_bar;
  } else if (m->actuator_actearly[i]) {
    sn_bar rate_bar = {0};
    act_advance_vjp(m, i, w->act[last], w->act_dot[last], sn_timestep(m, w), input_bar, a->act_bar + last, &rate_bar);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a))
      act_advance_model_vjp(m, sn_model_bar(a), i, w->act[last], w->act_dot[last], sn_timestep(m, w), input_bar);
#endif
    act_dot_vjp(m, w, a, i, bad_ctrl, rate_bar);
  } else {
    a->act_bar[last] += input_bar;
  }
}

SN_FUNC void sn_actuator_force_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  if (m->nactuator > 0 && !(m->opt.disableflags & SN_DSBL_ACTUATION)) {
    const bool bad_ctrl = act_bad_ctrl(m, w);
    SN_FOR(t, m->ntendon) act_tendon_limit_vjp(m, w, a, t, bad_ctrl);
    SN_SYNC(lane);
    SN_FOR(i, m->nactuator) {
      const int o = m->actuator_outadr[i];
      const bool on_tendon = m->actuator_trntype[i] == SN_TRN_TENDON;
      sn_bar bar = a->force_bar[o];
      if (on_tendon && m->tendon_actfrclimited[m->actuator_trnid[2 * i]])
        bar = a->raw_force_bar[o];
      else if (m->actuator_forcelimited[i])
        bar = act_limit_vjp(m, a, i, act_raw_force(m, w, i, bad_ctrl));
      act_force_vjp(m, w, a, i, bad_ctrl, bar);
    }
    SN_SYNC(lane);
  }
  SN_FOR(o, m->nout) a->force_bar[o] = sn_bar_of(0);
  SN_SYNC(lane);
}

// Bars of the rates of a controller's activations.
SN_LOCAL void act_pid_rates_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl) {
  ActPid p;
  act_pid(m, w, i, bad_ctrl, &p);
  act_pid_vjp(m, w, a, i, bad_ctrl, sn_bar_of(0), p.slew >= 0 ? a->act_dot_bar[p.slew] : sn_bar_of(0),
              p.integral >= 0 ? a->act_dot_bar[p.integral] : sn_bar_of(0));
}

SN_FUNC void sn_actuation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  if (m->nactuator == 0 || (m->opt.disableflags & SN_DSBL_ACTUATION)) return;
  const bool bad_ctrl = act_bad_ctrl(m, w);
  SN_FOR(i, m->nactuator) {
    const int o = m->actuator_outadr[i], last = act_last(m, i);
    a->force_bar[o] += a->trn_rate[SN_NMOTION * o + SN_LAMBDA];
    a->trn_rate_bar[SN_NMOTION * o + SN_LAMBDA] += w->actuator_force[o];
    if (last >= 0 && act_is_pid(m, i))
      act_pid_rates_vjp(m, w, a, i, bad_ctrl);
    else if (last >= 0 && sn_any(a->act_dot_bar[last]))
      act_dot_vjp(m, w, a, i, bad_ctrl, a->act_dot_bar[last]);
  }
  if (m->nsaturable > 0) sn_saturation_vjp(m, w, a, lane);
  SN_SYNC(lane);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) SN_ONE(lane) act_joint_model_vjp(m, w, a);
#endif
  sn_actuator_force_vjp(m, w, a, lane);
}
