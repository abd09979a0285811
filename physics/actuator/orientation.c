// Orientation servos (SN_GAIN_SO3, MuJoCo's element orientation), with their adjoint.
//
// The three lengths l are a rotation vector, exp(l) the rotation of a ball joint, or of a site in the frame of another
// one. The target is exp(u) of three controls, or a quaternion of four, brought to unit length; u may be three
// activations instead, whose rates the controls are. With e = log(exp(-l) exp(u)) the forces are
//   k_p e + b_0 + b_2 v,   v the three velocities, in the frame of what turns; their limit is one of their norm.
// After a step activations longer than pi are replaced by the shorter vector of the same rotation.
//
// Adjoint: with J(r) the right Jacobian of rotations, J(r)^-T(e) turns e_bar into the bar of a small turn of the
// target, J(u)' of that is u_bar; a turn of l goes the other way from the left, l_bar = -J(l)' J(-e)^-T e_bar. For a
// quaternion c the bar of a turn t is 2 q (0, t) / |c|.
#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "physics/base/vec.h"

// The rotation of a rotation vector.
SN_LOCAL void orientation_exp(sn_real *quat, const sn_real *v) {
  const sn_real angle = sn_norm3(v);
  if (angle < SN_MINVAL) {
    quat[0] = 1;
    sn_zero(quat + 1, 3);
    return;
  }
  const sn_real axis[3] = {v[0] / angle, v[1] / angle, v[2] / angle};
  sn_axisangle2quat(quat, axis, angle);
}

// Control k of servo i.
SN_INLINE sn_real orientation_ctrl(const SnModel *m, const SnWorld *w, int i, int k, bool bad_ctrl) {
  return bad_ctrl ? 0 : sn_clamped_ctrl(m, w, m->actuator_ctrladr[i] + k);
}

// The rotation vector of the target, from controls or activations.
SN_LOCAL void orientation_vector(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl, sn_real *u) {
  const int adr = m->actuator_actadr[i];
  for (int k = 0; k < 3; ++k) {
    if (adr < 0)
      u[k] = orientation_ctrl(m, w, i, k, bad_ctrl);
    else if (m->actuator_actearly[i])
      u[k] = sn_activation_after(m, i, w->act[adr + k], w->act_dot[adr + k], sn_timestep(m, w));
    else
      u[k] = w->act[adr + k];
  }
}

// The rotation from where it is to the target, and the target: a rotation vector, or a quaternion before it is brought
// to unit length.
SN_LOCAL void orientation_error(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl, sn_real *e, sn_real *target) {
  sn_real goal[4], now[4], back[4], turn[4];
  if (sn_ctrl_is_quat(m, i)) {
    for (int k = 0; k < 4; ++k) target[k] = orientation_ctrl(m, w, i, k, bad_ctrl);
    sn_copy4(goal, target);
    sn_normalize4(goal);
  } else {
    orientation_vector(m, w, i, bad_ctrl, target);
    orientation_exp(goal, target);
  }
  orientation_exp(now, w->actuator_length + m->actuator_outadr[i]);
  sn_negquat(back, now);
  sn_mulquat(turn, back, goal);
  sn_quat2vel(e, turn);
}

// What shortens an activation of three to that of the same rotation; turns: how many times a whole one is left out.
SN_LOCAL sn_real orientation_shorter(const sn_real *act, sn_real *angle, sn_real *turns) {
  *angle = sn_norm3(act);
  *turns = sn_floor(*angle / (2 * SN_PI) + SN_R(0.5));
  return *angle > SN_PI ? (*angle - 2 * SN_PI * *turns) / *angle : 1;
}

#if !defined(SN_PACK)
SN_FUNC void sn_orientation_forces(const SnModel *m, SnWorld *w, int i, bool bad_ctrl, sn_real *force) {
  const sn_real kp = m->actuator_gainprm[SN_NGAIN * i], *prm = m->actuator_biasprm + SN_NBIAS * i;
  sn_real e[3], target[4];
  sn_zero(force, 3);
  if (sn_actuator_idle(m, w, i)) return;
  orientation_error(m, w, i, bad_ctrl, e, target);
  for (int k = 0; k < 3; ++k) force[k] = kp * e[k] + prm[0] + prm[2] * w->actuator_velocity[m->actuator_outadr[i] + k];
}

SN_FUNC void sn_orientation_limit(const SnModel *m, int i, sn_real *force) {
  const sn_real norm = sn_norm3(force), most = m->actuator_forcerange[2 * i + 1];
  if (m->actuator_forcelimited[i] && norm > most) sn_scale3(force, force, most / norm);
}

SN_FUNC void sn_orientation_rates(const SnModel *m, SnWorld *w, int i, bool bad_ctrl) {
  for (int k = 0; k < m->actuator_actnum[i]; ++k)
    w->act_dot[m->actuator_actadr[i] + k] = orientation_ctrl(m, w, i, k, bad_ctrl);
}

SN_FUNC void sn_orientation_next(const SnModel *m, const SnWorld *w, int i, sn_real h, sn_real *out) {
  const int adr = m->actuator_actadr[i];
  sn_real angle, turns;
  if (adr < 0) return;
  for (int k = adr; k < adr + 3; ++k)
    out[k] = sn_activation_after(m, i, w->act[k], sn_actuator_disabled(m, i) ? 0 : w->act_dot[k], h);
  const sn_real scale = orientation_shorter(out + adr, &angle, &turns);
  if (angle > SN_PI) sn_scale3(out + adr, out + adr, scale);
}
#endif

SN_FUNC void sn_orientation_next_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_real h) {
  const int adr = m->actuator_actadr[i];
  const bool disabled = sn_actuator_disabled(m, i);
  sn_real next[3], angle, turns;
  sn_bar bar[3];
  if (adr < 0) return;
  for (int k = 0; k < 3; ++k)
    next[k] = sn_activation_after(m, i, w->act[adr + k], disabled ? 0 : w->act_dot[adr + k], h);
  const sn_real scale = orientation_shorter(next, &angle, &turns);
  sn_copy3(bar, a->act_next_bar + adr);
  if (angle > SN_PI) {
    const sn_bar along = sn_dot3(next, bar) * (2 * SN_PI * turns / (angle * angle * angle));
    sn_scale3(bar, bar, scale);
    sn_addtoscl3(bar, next, along);
  }
  for (int k = 0; k < 3; ++k) {
    const sn_bar rate = sn_activation_after_vjp(m, w, a, i, adr + k, disabled ? 0 : w->act_dot[adr + k], h, bar[k]);
    if (!disabled) a->act_dot_bar[adr + k] += rate;
  }
}

SN_FUNC void sn_orientation_rates_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl) {
  for (int k = 0; k < m->actuator_actnum[i]; ++k)
    sn_ctrl_vjp(m, w, a, m->actuator_ctrladr[i] + k, bad_ctrl, a->act_dot_bar[m->actuator_actadr[i] + k]);
}

// The norm of the forces is at its limit or beyond: bars before it from those behind it.
SN_LOCAL void orientation_limit_vjp(const SnModel *m, const SnAdjoint *a, int i, const sn_real *force, sn_bar *bar) {
  const sn_real norm = sn_norm3(force), most = m->actuator_forcerange[2 * i + 1];
  (void)a;
  if (!m->actuator_forcelimited[i] || norm <= most) return;
  const sn_bar along = sn_dot3(force, bar) / norm;
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->actuator_forcerange) sn_model_bar(a)->actuator_forcerange[2 * i + 1] += along;
#endif
  sn_addtoscl3(bar, force, -along / norm);
  sn_scale3(bar, bar, most / norm);
}

// The target has the bar `turn` of a small turn in its own frame.
SN_LOCAL void orientation_target_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl,
                                     const sn_real *target, sn_bar *turn) {
  const int u = m->actuator_ctrladr[i], adr = m->actuator_actadr[i];
  if (sn_ctrl_is_quat(m, i)) {
    sn_real goal[4];
    sn_copy4(goal, target);
    const sn_real norm = sn_normalize4(goal);
    if (norm < SN_MINVAL) return;  // all controls 0: the target stays where it is
    const sn_bar pure[4] = {sn_bar_of(0), turn[0], turn[1], turn[2]};
    sn_bar bar[4];
    sn_mulquat(bar, goal, pure);
    for (int k = 0; k < 4; ++k) sn_ctrl_vjp(m, w, a, u + k, bad_ctrl, bar[k] * (2 / norm));
    return;
  }
  sn_right_jacobian_transpose(turn, target);
  for (int k = 0; k < 3; ++k) {
    if (adr < 0) {
      sn_ctrl_vjp(m, w, a, u + k, bad_ctrl, turn[k]);
    } else if (m->actuator_actearly[i]) {
      const sn_bar rate = sn_activation_after_vjp(m, w, a, i, adr + k, w->act_dot[adr + k], sn_timestep(m, w), turn[k]);
      sn_ctrl_vjp(m, w, a, u + k, bad_ctrl, rate);
    } else {
      a->act_bar[adr + k] += turn[k];
    }
  }
}

SN_FUNC void sn_orientation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl) {
  const int o = m->actuator_outadr[i];
  const sn_real kp = m->actuator_gainprm[SN_NGAIN * i], *prm = m->actuator_biasprm + SN_NBIAS * i;
  const sn_real *length = w->actuator_length + o;
  sn_real e[3], back[3], force[3], target[4];
  sn_bar bar[3], turn[3];
  sn_copy3(bar, a->force_bar + o);
  if (sn_actuator_idle(m, w, i) || !(sn_any(bar[0]) || sn_any(bar[1]) || sn_any(bar[2]))) return;
  sn_orientation_forces(m, w, i, bad_ctrl, force);
  orientation_limit_vjp(m, a, i, force, bar);
  orientation_error(m, w, i, bad_ctrl, e, target);
  for (int k = 0; k < 3; ++k) a->trn_rate_bar[SN_NMOTION * (o + k) + SN_VEL] += bar[k] * prm[2];
#if defined(SN_MODEL_BARS)
  SnModelBar *to = sn_model_bar(a);
  for (int k = 0; to && k < 3; ++k) {
    if (to->actuator_gainprm) to->actuator_gainprm[SN_NGAIN * i] += bar[k] * e[k];
    if (!to->actuator_biasprm) continue;
    to->actuator_biasprm[SN_NBIAS * i] += bar[k];
    to->actuator_biasprm[SN_NBIAS * i + 2] += bar[k] * w->actuator_velocity[o + k];
  }
#endif
  sn_scale3(bar, bar, kp);
  sn_copy3(turn, bar);
  sn_right_jacobian_inverse_transpose(turn, e);
  orientation_target_vjp(m, w, a, i, bad_ctrl, target, turn);
  sn_scale3(back, e, -1);
  sn_scale3(turn, bar, -1);
  sn_right_jacobian_inverse_transpose(turn, back);
  sn_right_jacobian_transpose(turn, length);
  sn_addto3(a->trn_length_bar + o, turn);
}
