// Controls and activations: what a control is where its range holds it, rates of activations, activations after a step,
// each with its adjoint.
//
// Filters: act_dot = (ctrl - act) / tau, after a step h act + h act_dot, or exactly act + tau (1 - exp(-h / tau))
// act_dot.
#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "physics/base/muscle_curves.h"
#include "physics/base/vec.h"

#if !defined(SN_PACK)
SN_FUNC bool sn_actuator_disabled(const SnModel *m, int i) {
  const int group = m->actuator_group[i];
  return group >= 0 && group <= 30 && (m->opt.disableactuator & (1 << group)) != 0;
}

// Whether what an actuator acts on sleeps: of two sites, where neither is awake.
SN_LOCAL bool activation_target_asleep(const SnModel *m, const SnWorld *w, int i) {
  const int id = m->actuator_trnid[2 * i], other = m->actuator_trnid[2 * i + 1];
  switch (m->actuator_trntype[i]) {
    case SN_TRN_TENDON:
      return sn_tendon_asleep(m, w, id);
    case SN_TRN_SO3:
    case SN_TRN_SITE:
    case SN_TRN_SLIDERCRANK:
      if (other < 0) {
        const int body = m->actuator_trntype[i] == SN_TRN_SO3 ? m->jnt_bodyid[id] : m->site_bodyid[id];
        return sn_body_sleep(m, w, body) == SN_BODY_ASLEEP;
      }
      return sn_body_sleep(m, w, m->site_bodyid[id]) != SN_BODY_AWAKE &&
             sn_body_sleep(m, w, m->site_bodyid[other]) != SN_BODY_AWAKE;
    case SN_TRN_BODY:
      return sn_body_sleep(m, w, id) == SN_BODY_ASLEEP;
    default:
      return sn_body_sleep(m, w, m->jnt_bodyid[id]) == SN_BODY_ASLEEP;
  }
}

SN_FUNC bool sn_actuator_idle(const SnModel *m, const SnWorld *w, int i) {
  return sn_actuator_disabled(m, i) || (sn_sleeps(m, w) && activation_target_asleep(m, w, i));
}

SN_FUNC sn_real sn_activation_after(const SnModel *m, int i, sn_real act, sn_real rate, sn_real h) {
  const sn_real *range = m->actuator_actrange + 2 * i;
  if (m->actuator_dyntype[i] == SN_DYN_FILTEREXACT) {
    const sn_real tau = sn_max(SN_MINVAL, m->actuator_dynprm[SN_NDYN * i]);
    act += rate * tau * (1 - sn_exp(-h / tau));
  } else {
    act += rate * h;
  }
  return m->actuator_actlimited[i] ? sn_clip(act, range[0], range[1]) : act;
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
    if (sn_has_own_law(m, i) && !sn_is_controller(m, i)) {
      if (sn_is_motor(m, i))
        sn_motor_next(m, w, i, h, out);
      else
        sn_orientation_next(m, w, i, h, out);
      continue;
    }
    for (int k = adr; k < end; ++k) out[k] = sn_activation_after(m, i, w->act[k], disabled ? 0 : w->act_dot[k], h);
    // a setpoint on a rotation stays within half a turn of the length
    if (m->actuator_period[i] > 0 && m->actuator_dyntype[i] == SN_DYN_INTEGRATOR)
      out[end - 1] = sn_near_setpoint(out[end - 1], w->actuator_length[m->actuator_outadr[i]], m->actuator_period[i]);
  }
  SN_SYNC(lane);
}
#endif

#if defined(SN_MODEL_BARS)
SN_FUNC void sn_bound_model_vjp(sn_bar *range_bar, const sn_real *range, sn_real x, sn_bar bar) {
  if (range_bar && x < range[0]) range_bar[0] += bar;
  if (range_bar && x > range[1]) range_bar[1] += bar;
}

// Bar of the clamped control k: of its range, where that holds it.
SN_LOCAL void activation_ctrl_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int k, sn_bar bar) {
  const sn_real u = sn_applied_ctrl(m, w)[k];
  if (sn_clamped_ctrl(m, w, k) != u)
    sn_bound_model_vjp(sn_model_bar(a)->actuator_ctrlrange ? sn_model_bar(a)->actuator_ctrlrange + 2 * k : NULL,
                       m->actuator_ctrlrange + 2 * k, u, bar);
}

// Rate of the activation of actuator i, with the bar `bar`, by time constants.
SN_LOCAL void activation_rate_model_vjp(const SnModel *m, SnModelBar *to, int i, sn_real ctrl, sn_real act,
                                        sn_bar bar) {
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
SN_LOCAL void activation_after_model_vjp(const SnModel *m, SnModelBar *to, int i, sn_real act, sn_real rate, sn_real h,
                                         sn_bar bar) {
  const sn_real *range = m->actuator_actrange + 2 * i, tau = sn_max(SN_MINVAL, m->actuator_dynprm[SN_NDYN * i]);
  const bool exact = m->actuator_dyntype[i] == SN_DYN_FILTEREXACT;
  const sn_real left = sn_exp(-h / tau), next = act + rate * (exact ? tau * (1 - left) : h);
  if (m->actuator_actlimited[i] && !(next >= range[0] && next <= range[1])) {
    sn_bound_model_vjp(to->actuator_actrange ? to->actuator_actrange + 2 * i : NULL, range, next, bar);
    return;
  }
  if (exact && to->actuator_dynprm) to->actuator_dynprm[SN_NDYN * i] += bar * rate * (1 - left - left * h / tau);
}

#endif

// Bars of activation_rate's arguments.
SN_LOCAL void activation_rate_vjp(const SnModel *m, int i, sn_real ctrl, sn_real act, sn_bar bar, sn_bar *ctrl_bar,
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

SN_FUNC sn_bar sn_activation_after_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, int k, sn_real rate,
                                       sn_real h, sn_bar bar) {
  const sn_real *range = m->actuator_actrange + 2 * i, act = w->act[k];
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) activation_after_model_vjp(m, sn_model_bar(a), i, act, rate, h, bar);
#endif
  if (m->actuator_dyntype[i] == SN_DYN_FILTEREXACT) {
    const sn_real tau = sn_max(SN_MINVAL, m->actuator_dynprm[SN_NDYN * i]);
    h = tau * (1 - sn_exp(-h / tau));
  }
  const sn_real next = act + rate * h;
  if (m->actuator_actlimited[i] && !(next >= range[0] && next <= range[1])) return sn_bar_of(0);
  a->act_bar[k] += bar;
  return h * bar;
}

// True when a small change of control k reaches the actuators; at a bound of its range it does, inwards.
SN_LOCAL bool activation_ctrl_free(const SnModel *m, const SnWorld *w, int k) {
  return sn_clamped_ctrl(m, w, k) == sn_applied_ctrl(m, w)[k];
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
    if (sn_is_motor(m, i)) {
      sn_motor_next_vjp(m, w, a, i, h);
      continue;
    }
    if (sn_is_orientation(m, i)) {
      sn_orientation_next_vjp(m, w, a, i, h);
      continue;
    }
    for (int k = m->actuator_actadr[i]; k >= 0 && k <= sn_last_activation(m, i); ++k) {
      const sn_bar rate_bar =
          sn_activation_after_vjp(m, w, a, i, k, disabled ? 0 : w->act_dot[k], h, a->act_next_bar[k]);
      if (!disabled) a->act_dot_bar[k] += rate_bar;
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_ctrl_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int k, bool bad_ctrl, sn_bar bar) {
  if (k < 0 || bad_ctrl) return;
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) activation_ctrl_model_vjp(m, w, a, k, bar);
#endif
  if (activation_ctrl_free(m, w, k)) sn_applied_bar(m, a)[k] += bar;
}

SN_FUNC void sn_activation_rate_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl,
                                    sn_bar bar) {
  const int last = sn_last_activation(m, i), k = m->actuator_ctrladr[i];
  sn_bar ctrl_bar = {0};
  activation_rate_vjp(m, i, bad_ctrl ? 0 : sn_clamped_ctrl(m, w, k), w->act[last], bar, &ctrl_bar, a->act_bar + last);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && !bad_ctrl) {
    activation_rate_model_vjp(m, sn_model_bar(a), i, sn_clamped_ctrl(m, w, k), w->act[last], bar);
    activation_ctrl_model_vjp(m, w, a, k, ctrl_bar);
  }
#endif
  if (!bad_ctrl && activation_ctrl_free(m, w, k)) sn_applied_bar(m, a)[k] += ctrl_bar;
}
