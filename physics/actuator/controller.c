// Controllers (SN_GAIN_PID, MuJoCo's element pid), with their adjoint.
//
// A controller has up to three controls, setpoints p of the length and v of the velocity and a force f,
// and up to two activations, a setpoint s that follows p at a limited rate r, and the integral z of the error:
//   p' = p, or with a limit s + clip(p - s, +-r h),   s_dot = (p' - s) / h,   z_dot = p' - length,
// z_dot cut to the side that leads back where |z| has reached its bound;
//   force_i = -b_1 p' - b_2 v + f + k z + bias_i(length, velocity),   b_1, b_2 the slopes of the affine bias.
// On a rotation p means what is nearest to s, p' in the force what is nearest to the length, and the error is the one
// within half a turn.
#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "physics/base/vec.h"

// What a controller works on: its controls, and where they and its activations are; -1: it has none.
typedef struct ControllerSight {
  sn_real pos, vel, ff, rate, error;  // setpoints and force, rates of the two activations
  int ctrl[3], slew, integral;
  bool clipped, held;  // the setpoint moves as fast as it may; the integral is at its bound
} ControllerSight;

// Clamped control k, 0 where there is none.
SN_INLINE sn_real controller_ctrl(const SnModel *m, const SnWorld *w, int k, bool bad_ctrl) {
  return k < 0 || bad_ctrl ? 0 : sn_clamped_ctrl(m, w, k);
}

// The setpoint that follows with a limited rate, and that rate.
SN_LOCAL void controller_slew(const SnModel *m, const SnWorld *w, int i, ControllerSight *p) {
  const sn_real period = m->actuator_period[i], before = w->act[p->slew], h = sn_timestep(m, w);
  const sn_real most = m->actuator_dynprm[SN_NDYN * i + 1] * h;
  const sn_real wanted = period > 0 ? sn_near_setpoint(p->pos, before, period) : p->pos;
  p->pos = sn_clip(wanted, before - most, before + most);
  p->clipped = wanted < before - most || wanted > before + most;
  p->rate = (p->pos - before) / h;
}

// The rate of the integral.
SN_LOCAL void controller_error(const SnModel *m, const SnWorld *w, int i, ControllerSight *p) {
  const sn_real period = m->actuator_period[i], bound = m->actuator_dynprm[SN_NDYN * i], z = w->act[p->integral];
  sn_real error = p->pos - w->actuator_length[m->actuator_outadr[i]];
  if (period > 0) error = sn_near_setpoint(error, 0, period);
  p->held = bound > 0 && ((z >= bound && error > 0) || (z <= -bound && error < 0));
  p->error = p->held ? 0 : error;
}

SN_LOCAL void controller_see(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl, ControllerSight *p) {
  const int spec = m->actuator_ctrlspec[i], bits[3] = {SN_INPUT_POS, SN_INPUT_VEL, SN_INPUT_FF};
  int u = m->actuator_ctrladr[i], adr = m->actuator_actadr[i];
  for (int k = 0; k < 3; ++k) p->ctrl[k] = spec & bits[k] ? u++ : -1;
  const bool states = m->actuator_actnum[i] > 0;
  p->slew = states && m->actuator_dynprm[SN_NDYN * i + 1] > 0 ? adr++ : -1;
  p->integral = states && m->actuator_gainprm[SN_NGAIN * i] > 0 ? adr : -1;
  p->pos = controller_ctrl(m, w, p->ctrl[0], bad_ctrl);
  p->vel = controller_ctrl(m, w, p->ctrl[1], bad_ctrl);
  p->ff = controller_ctrl(m, w, p->ctrl[2], bad_ctrl);
  p->clipped = p->held = false;
  if (p->slew >= 0) controller_slew(m, w, i, p);
  if (p->integral >= 0) controller_error(m, w, i, p);
}

// The integral that the force sees.
SN_INLINE sn_real controller_integral(const SnModel *m, const SnWorld *w, int i, const ControllerSight *p) {
  const sn_real z = w->act[p->integral];
  return m->actuator_actearly[i] ? sn_activation_after(m, i, z, p->error, sn_timestep(m, w)) : z;
}

// The setpoint of the length that the force sees.
SN_INLINE sn_real controller_setpoint(const SnModel *m, const SnWorld *w, int i, const ControllerSight *p) {
  const sn_real period = m->actuator_period[i];
  return period > 0 ? sn_near_setpoint(p->pos, w->actuator_length[m->actuator_outadr[i]], period) : p->pos;
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_controller_force(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl) {
  const sn_real *prm = m->actuator_biasprm + SN_NBIAS * i;
  ControllerSight p;
  controller_see(m, w, i, bad_ctrl, &p);
  sn_real force = -prm[1] * controller_setpoint(m, w, i, &p) - prm[2] * p.vel + p.ff;
  if (p.integral >= 0) force += m->actuator_gainprm[SN_NGAIN * i] * controller_integral(m, w, i, &p);
  return force;
}

SN_FUNC void sn_controller_rates(const SnModel *m, SnWorld *w, int i, bool bad_ctrl) {
  ControllerSight p;
  controller_see(m, w, i, bad_ctrl, &p);
  if (p.slew >= 0) w->act_dot[p.slew] = p.rate;
  if (p.integral >= 0) w->act_dot[p.integral] = p.error;
}
#endif

#if defined(SN_MODEL_BARS)
// A controller's force by gains, with the bar `bar`.
SN_LOCAL void controller_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *to, int i, const ControllerSight *p,
                                   sn_bar bar) {
  const int o = m->actuator_outadr[i];
  if (to->actuator_biasprm) {
    sn_bar *prm = to->actuator_biasprm + SN_NBIAS * i;
    prm[0] += bar;
    prm[1] += bar * (w->actuator_length[o] - controller_setpoint(m, w, i, p));
    prm[2] += bar * (w->actuator_velocity[o] - p->vel);
  }
  if (to->actuator_gainprm && p->integral >= 0)
    to->actuator_gainprm[SN_NGAIN * i] += bar * controller_integral(m, w, i, p);
}
#endif

SN_FUNC void sn_controller_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, sn_bar bar,
                               sn_bar slew_bar, sn_bar integral_bar) {
  const sn_real *prm = m->actuator_biasprm + SN_NBIAS * i, h = sn_timestep(m, w);
  const int o = m->actuator_outadr[i];
  sn_bar *length_bar = a->trn_length_bar + o, pos_bar = bar * -prm[1];
  ControllerSight p;
  controller_see(m, w, i, bad_ctrl, &p);
  *length_bar += bar * prm[1];
  a->trn_rate_bar[SN_NMOTION * o + SN_VEL] += bar * prm[2];
  sn_ctrl_vjp(m, w, a, p.ctrl[1], bad_ctrl, bar * -prm[2]);
  sn_ctrl_vjp(m, w, a, p.ctrl[2], bad_ctrl, bar);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) controller_model_vjp(m, w, sn_model_bar(a), i, &p, bar);
#endif
  if (p.integral >= 0) {
    const sn_bar z_bar = bar * m->actuator_gainprm[SN_NGAIN * i];
    if (m->actuator_actearly[i])
      integral_bar += sn_activation_after_vjp(m, w, a, i, p.integral, p.error, h, z_bar);
    else
      a->act_bar[p.integral] += z_bar;
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
  sn_ctrl_vjp(m, w, a, p.ctrl[0], bad_ctrl, pos_bar);
}

SN_FUNC void sn_controller_rates_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl) {
  ControllerSight p;
  controller_see(m, w, i, bad_ctrl, &p);
  sn_controller_vjp(m, w, a, i, bad_ctrl, sn_bar_of(0), p.slew >= 0 ? a->act_dot_bar[p.slew] : sn_bar_of(0),
                    p.integral >= 0 ? a->act_dot_bar[p.integral] : sn_bar_of(0));
}
