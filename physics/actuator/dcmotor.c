// Electric motors (SN_GAIN_DCMOTOR, MuJoCo's element dcmotor), with their adjoint.
//
// A motor has up to four controls: setpoints p of the length l and w of the velocity v, a torque f, and a voltage u.
// The controller asks for the torque t = k_p (p' - l) + k_d (w - v) + k_i x + f, by V = R_0/K t + K v (cut to +-V_max)
// + u. Activations, each only where its parameter is positive, in this order:
//   s  follows the first control c at a limited rate r, which makes c' = s + clip(c - s, +-r h):  s_dot = (c' - s) / h
//   x  integral of the error: x_dot = p' - l, cut to the side that leads back where |x| has reached its bound
//   T  heat above ambient: T_dot = (R i^2 - T / R_T) / C, where R = R_0 (1 + alpha (T + T_a - T_0)), else R = R_0
//   z  deflection of LuGre's bristles: z_dot = a z + v, a = -s_0 |v| / g, g = F_c + (F_s - F_c) exp(-(v / v_s)^2)
//   i  current: i_dot = (V/R - K/R v - i) / t_e, cut to +-i_dot_max; without this one i = (V - K v) / R
// (C. Canudas de Wit et al., A new model for control of systems with friction, 1995). The electric force is K i, with
// `early` that of the current after the step, and has the limits of all actuators; the mechanical one stands outside of
// them:  A sin(N l + phi) - s_0 z - s_1 z_dot.
// After a step h a current is i + i_dot t_e (1 - exp(-h / t_e)), a deflection exp(a h) z + v (exp(a h) - 1) / a, the
// others x + h x_dot.
#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "physics/base/vec.h"

// Places of parameters in gainprm, biasprm and dynprm.
enum { MOTOR_R, MOTOR_K, MOTOR_ALPHA, MOTOR_T0, MOTOR_KP, MOTOR_KI, MOTOR_KD, MOTOR_VMAX };
enum { MOTOR_COGGING, MOTOR_POLES, MOTOR_PHASE, MOTOR_COULOMB, MOTOR_STATIC, MOTOR_STRIBECK };
enum {
  MOTOR_TE,
  MOTOR_IDOT,
  MOTOR_RT,
  MOTOR_C,
  MOTOR_AMBIENT,
  MOTOR_SIGMA0,
  MOTOR_SIGMA1,
  MOTOR_SLEW_RATE,
  MOTOR_XMAX
};
// Its controls and states.
enum { MOTOR_POS, MOTOR_VEL, MOTOR_FF, MOTOR_VOLTAGE, MOTOR_NIN };
enum { MOTOR_SLEW, MOTOR_INTEGRAL, MOTOR_HEAT, MOTOR_BRISTLE, MOTOR_CURRENT, MOTOR_NACT };

// What a motor works on. Controls and activations: -1: it has none.
typedef struct DcMotor {
  const sn_real *gain, *bias, *dyn;
  sn_real length, velocity, h;
  int ctrl[MOTOR_NIN], first, act[MOTOR_NACT];
  sn_real in[MOTOR_NIN];  // controls, the first one slowed down
  sn_real state[MOTOR_NACT], rate[MOTOR_NACT];
  sn_real torque, R, decay;  // asked for by the controller; at its temperature; a of the bristles
  sn_real voltage;
  bool slewed, held, full,
      steep;  // cut: the setpoint's rate, the integral's, the controller's voltage, the current's rate
} DcMotor;

// Friction g at a velocity; *grown: its exponential.
SN_INLINE sn_real dcmotor_stribeck(const DcMotor *d, sn_real *grown) {
  const sn_real ratio = d->velocity / sn_max(SN_MINVAL, d->bias[MOTOR_STRIBECK]);
  *grown = sn_exp(-ratio * ratio);
  return d->bias[MOTOR_COULOMB] + (d->bias[MOTOR_STATIC] - d->bias[MOTOR_COULOMB]) * *grown;
}

// The rate a of the bristles' decay.
SN_INLINE sn_real dcmotor_decay(const DcMotor *d) {
  sn_real grown;
  return -d->dyn[MOTOR_SIGMA0] * sn_abs(d->velocity) / sn_max(SN_MINVAL, dcmotor_stribeck(d, &grown));
}

SN_INLINE bool dcmotor_is_driven(const SnModel *m, int i) {
  return (m->actuator_ctrlspec[i] & (SN_INPUT_POS | SN_INPUT_VEL | SN_INPUT_FF)) != 0;
}

// Places and values of controls and activations.
SN_LOCAL void dcmotor_open(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl, DcMotor *d) {
  const int bits[MOTOR_NIN] = {SN_INPUT_POS, SN_INPUT_VEL, SN_INPUT_FF, SN_INPUT_VOLTAGE};
  int u = m->actuator_ctrladr[i], adr = m->actuator_actadr[i];
  d->gain = m->actuator_gainprm + SN_NGAIN * i;
  d->bias = m->actuator_biasprm + SN_NBIAS * i;
  d->dyn = m->actuator_dynprm + SN_NDYN * i;
  d->length = w->actuator_length[m->actuator_outadr[i]];
  d->velocity = w->actuator_velocity[m->actuator_outadr[i]];
  d->h = sn_timestep(m, w);
  d->first = -1;
  for (int k = 0; k < MOTOR_NIN; ++k) {
    const bool has = (m->actuator_ctrlspec[i] & bits[k]) != 0;
    if (has && d->first < 0) d->first = k;
    d->ctrl[k] = has ? u++ : -1;
    d->in[k] = has && !bad_ctrl ? sn_clamped_ctrl(m, w, d->ctrl[k]) : 0;
  }
  const bool on[MOTOR_NACT] = {d->dyn[MOTOR_SLEW_RATE] > 0, d->gain[MOTOR_KI] > 0, d->dyn[MOTOR_RT] > 0,
                               d->dyn[MOTOR_SIGMA0] > 0, d->dyn[MOTOR_TE] > 0};
  for (int k = 0; k < MOTOR_NACT; ++k) {
    d->act[k] = on[k] ? adr++ : -1;
    d->state[k] = on[k] ? w->act[d->act[k]] : 0;
    d->rate[k] = 0;
  }
}

// The voltage, from controls and the states of the controller.
SN_LOCAL void dcmotor_drive(const SnModel *m, int i, DcMotor *d) {
  d->slewed = d->held = d->full = false;
  d->torque = d->voltage = 0;
  if (d->act[MOTOR_SLEW] >= 0) {
    const sn_real before = d->state[MOTOR_SLEW], most = d->dyn[MOTOR_SLEW_RATE] * d->h, wanted = d->in[d->first];
    d->in[d->first] = sn_clip(wanted, before - most, before + most);
    d->slewed = wanted < before - most || wanted > before + most;
    d->rate[MOTOR_SLEW] = (d->in[d->first] - before) / d->h;
  }
  if (d->act[MOTOR_INTEGRAL] >= 0) {
    const sn_real error = d->in[MOTOR_POS] - d->length, bound = d->dyn[MOTOR_XMAX], x = d->state[MOTOR_INTEGRAL];
    d->held = bound > 0 && ((x >= bound && error > 0) || (x <= -bound && error < 0));
    d->rate[MOTOR_INTEGRAL] = d->held ? 0 : error;
  }
  if (dcmotor_is_driven(m, i)) {
    const sn_real *g = d->gain, most = g[MOTOR_VMAX];
    d->torque = g[MOTOR_KP] * (d->in[MOTOR_POS] - d->length) + g[MOTOR_KD] * (d->in[MOTOR_VEL] - d->velocity) +
                g[MOTOR_KI] * d->state[MOTOR_INTEGRAL] + d->in[MOTOR_FF];
    d->voltage = g[MOTOR_R] / g[MOTOR_K] * d->torque + g[MOTOR_K] * d->velocity;
    d->full = most > 0 && (d->voltage < -most || d->voltage > most);
    if (most > 0) d->voltage = sn_clip(d->voltage, -most, most);
  }
  d->voltage += d->in[MOTOR_VOLTAGE];
}

// The whole motor: rates of all of its activations.
SN_LOCAL void dcmotor_see(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl, DcMotor *d) {
  dcmotor_open(m, w, i, bad_ctrl, d);
  dcmotor_drive(m, i, d);
  const sn_real K = d->gain[MOTOR_K], v = d->velocity;
  d->R = d->gain[MOTOR_R];
  d->decay = 0;
  d->steep = false;
  if (d->act[MOTOR_HEAT] >= 0) {
    const sn_real T = d->state[MOTOR_HEAT];
    d->R *= 1 + d->gain[MOTOR_ALPHA] * (T + d->dyn[MOTOR_AMBIENT] - d->gain[MOTOR_T0]);
    const sn_real current = d->act[MOTOR_CURRENT] >= 0 ? d->state[MOTOR_CURRENT] : (d->voltage - K * v) / d->R;
    d->rate[MOTOR_HEAT] = (d->R * current * current - T / d->dyn[MOTOR_RT]) / d->dyn[MOTOR_C];
  }
  if (d->act[MOTOR_BRISTLE] >= 0) {
    d->decay = dcmotor_decay(d);
    d->rate[MOTOR_BRISTLE] = d->decay * d->state[MOTOR_BRISTLE] + v;
  }
  if (d->act[MOTOR_CURRENT] >= 0) {
    const sn_real most = d->dyn[MOTOR_IDOT];
    sn_real rate = (d->voltage / d->R - K / d->R * v - d->state[MOTOR_CURRENT]) / d->dyn[MOTOR_TE];
    d->steep = most > 0 && (rate < -most || rate > most);
    if (most > 0) rate = sn_clip(rate, -most, most);
    d->rate[MOTOR_CURRENT] = rate;
  }
}

// Share of a current's rate, times its time constant, that h [s] bring.
SN_INLINE sn_real dcmotor_share(const DcMotor *d, sn_real h) { return 1 - sn_exp(-h / d->dyn[MOTOR_TE]); }

SN_INLINE sn_real dcmotor_current_after(const DcMotor *d, sn_real rate, sn_real h) {
  return d->state[MOTOR_CURRENT] + rate * d->dyn[MOTOR_TE] * dcmotor_share(d, h);
}

// Part of a current's rate that reaches the electric force.
SN_INLINE sn_real dcmotor_reach(const SnModel *m, int i, const DcMotor *d) {
  if (d->act[MOTOR_CURRENT] < 0) return 1;
  return d->steep || !m->actuator_actearly[i] ? 0 : dcmotor_share(d, d->h);
}

// Slope of the electric force by velocity: K (dV/dv - K) / R, as far as a current follows.
SN_INLINE sn_real dcmotor_electric_slope(const SnModel *m, int i, const DcMotor *d) {
  const sn_real K = d->gain[MOTOR_K], R = sn_max(SN_MINVAL, d->R);
  const sn_real drive = dcmotor_is_driven(m, i) && !d->full ? K - d->gain[MOTOR_R] / K * d->gain[MOTOR_KD] : 0;
  return K * (drive - K) / R * dcmotor_reach(m, i, d);
}

// Slope of the electric force by length: -k_p R_0 / R, as far as a current follows.
SN_INLINE sn_real dcmotor_electric_stretch(const SnModel *m, int i, const DcMotor *d) {
  if (!dcmotor_is_driven(m, i) || d->full) return 0;
  return -d->gain[MOTOR_KP] * (d->gain[MOTOR_R] / sn_max(SN_MINVAL, d->R)) * dcmotor_reach(m, i, d);
}

#if !defined(SN_PACK)
SN_FUNC void sn_motor_rates(const SnModel *m, SnWorld *w, int i, bool bad_ctrl) {
  DcMotor d;
  dcmotor_see(m, w, i, bad_ctrl, &d);
  for (int k = 0; k < MOTOR_NACT; ++k)
    if (d.act[k] >= 0) w->act_dot[d.act[k]] = d.rate[k];
}

SN_FUNC sn_real sn_motor_force(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl) {
  DcMotor d;
  dcmotor_see(m, w, i, bad_ctrl, &d);
  const sn_real K = d.gain[MOTOR_K];
  if (d.act[MOTOR_CURRENT] >= 0)
    return K *
           (m->actuator_actearly[i] ? dcmotor_current_after(&d, d.rate[MOTOR_CURRENT], d.h) : d.state[MOTOR_CURRENT]);
  const sn_real gain = K / sn_max(SN_MINVAL, d.R);
  return gain * d.voltage - gain * K * d.velocity;
}

SN_FUNC sn_real sn_motor_drag(const SnModel *m, const SnWorld *w, int i, sn_real force) {
  const sn_real *bias = m->actuator_biasprm + SN_NBIAS * i;
  const sn_real length = w->actuator_length[m->actuator_outadr[i]];
  if (sn_actuator_idle(m, w, i)) return force;
  if (bias[MOTOR_COGGING] != 0) force += bias[MOTOR_COGGING] * sn_sin(bias[MOTOR_POLES] * length + bias[MOTOR_PHASE]);
  DcMotor d;
  dcmotor_open(m, w, i, false, &d);
  const int k = d.act[MOTOR_BRISTLE];
  if (k >= 0) force -= d.dyn[MOTOR_SIGMA0] * d.state[MOTOR_BRISTLE] + d.dyn[MOTOR_SIGMA1] * w->act_dot[k];
  return force;
}

SN_FUNC void sn_motor_next(const SnModel *m, const SnWorld *w, int i, sn_real h, sn_real *out) {
  const bool disabled = sn_actuator_disabled(m, i);
  DcMotor d;
  dcmotor_open(m, w, i, false, &d);
  for (int k = 0; k < MOTOR_NACT; ++k) {
    if (d.act[k] < 0) continue;
    const sn_real rate = disabled ? 0 : w->act_dot[d.act[k]], bound = d.dyn[MOTOR_XMAX];
    sn_real next = d.state[k] + rate * h;
    if (k == MOTOR_INTEGRAL && bound > 0) next = sn_clip(next, -bound, bound);
    if (k == MOTOR_CURRENT) next = dcmotor_current_after(&d, rate, h);
    if (k == MOTOR_BRISTLE) {
      const sn_real a = dcmotor_decay(&d), left = sn_exp(a * h), sum = sn_abs(a) > SN_MINVAL ? (left - 1) / a : h;
      next = left * d.state[k] + sum * d.velocity;
    }
    out[d.act[k]] = next;
  }
}

SN_FUNC sn_real sn_motor_slope(const SnModel *m, const SnWorld *w, int i, bool held) {
  DcMotor d;
  dcmotor_see(m, w, i, sn_bad_ctrl(m, w), &d);
  const sn_real electric = held ? 0 : dcmotor_electric_slope(m, i, &d);
  return electric - sn_max(0, d.dyn[MOTOR_SIGMA1]);
}

SN_FUNC sn_real sn_motor_stretch(const SnModel *m, const SnWorld *w, int i, bool held) {
  DcMotor d;
  dcmotor_see(m, w, i, sn_bad_ctrl(m, w), &d);
  const sn_real A = d.bias[MOTOR_COGGING], N = d.bias[MOTOR_POLES];
  const sn_real electric = held ? 0 : dcmotor_electric_stretch(m, i, &d);
  return A == 0 ? electric : electric + A * N * sn_cos(N * d.length + d.bias[MOTOR_PHASE]);
}
#endif

// Bars of what is in DcMotor, and of its parameters.
typedef struct DcMotorBar {
  sn_bar gain[MOTOR_VMAX + 1], bias[MOTOR_STRIBECK + 1], dyn[MOTOR_XMAX + 1];
  sn_bar in[MOTOR_NIN], state[MOTOR_NACT], rate[MOTOR_NACT], length, velocity, voltage, R;
} DcMotorBar;

// The rate a of the bristles' decay has the bar `bar`. Where they stand, |v| has the slope 0.
SN_LOCAL void dcmotor_decay_vjp(const DcMotor *d, sn_bar bar, DcMotorBar *b) {
  const sn_real v = d->velocity, width = sn_max(SN_MINVAL, d->bias[MOTOR_STRIBECK]), ratio = v / width;
  const sn_real extra = d->bias[MOTOR_STATIC] - d->bias[MOTOR_COULOMB], sigma = d->dyn[MOTOR_SIGMA0];
  sn_real grown;
  const sn_real g = dcmotor_stribeck(d, &grown), at = sn_max(SN_MINVAL, g);
  b->velocity -= bar * sigma * sn_sign(v) / at;
  b->dyn[MOTOR_SIGMA0] -= bar * sn_abs(v) / at;
  if (g <= SN_MINVAL) return;
  const sn_bar g_bar = bar * sigma * sn_abs(v) / (at * at);
  b->velocity -= g_bar * 2 * extra * grown * ratio / width;
  b->bias[MOTOR_COULOMB] += g_bar * (1 - grown);
  b->bias[MOTOR_STATIC] += g_bar * grown;
  if (d->bias[MOTOR_STRIBECK] > SN_MINVAL) b->bias[MOTOR_STRIBECK] += g_bar * 2 * extra * grown * ratio * ratio / width;
}

// A current after h [s] has the bar `bar`.
SN_LOCAL void dcmotor_current_vjp(const DcMotor *d, sn_real rate, sn_real h, sn_bar bar, DcMotorBar *b) {
  const sn_real te = d->dyn[MOTOR_TE], share = dcmotor_share(d, h);
  b->state[MOTOR_CURRENT] += bar;
  b->rate[MOTOR_CURRENT] += bar * te * share;
  b->dyn[MOTOR_TE] += bar * rate * (share - (1 - share) * h / te);
}

// The electric force has the bar `bar`.
SN_LOCAL void dcmotor_electric_vjp(const DcMotor *d, bool early, sn_bar bar, DcMotorBar *b) {
  const sn_real K = d->gain[MOTOR_K], R = sn_max(SN_MINVAL, d->R), back = d->voltage - K * d->velocity;
  if (d->act[MOTOR_CURRENT] < 0) {
    b->voltage += bar * K / R;
    b->velocity -= bar * K * K / R;
    b->gain[MOTOR_K] += bar * (back - K * d->velocity) / R;
    if (d->R > SN_MINVAL) b->R -= bar * K * back / (R * R);
    return;
  }
  const sn_real rate = d->rate[MOTOR_CURRENT];
  b->gain[MOTOR_K] += bar * (early ? dcmotor_current_after(d, rate, d->h) : d->state[MOTOR_CURRENT]);
  if (early)
    dcmotor_current_vjp(d, rate, d->h, bar * K, b);
  else
    b->state[MOTOR_CURRENT] += bar * K;
}

// The mechanical force has the bar `bar`.
SN_LOCAL void dcmotor_drag_vjp(const DcMotor *d, sn_bar bar, DcMotorBar *b) {
  const sn_real A = d->bias[MOTOR_COGGING], N = d->bias[MOTOR_POLES], angle = N * d->length + d->bias[MOTOR_PHASE];
  const sn_bar turn = bar * A * sn_cos(angle);
  b->length += turn * N;
  b->bias[MOTOR_COGGING] += bar * sn_sin(angle);
  b->bias[MOTOR_POLES] += turn * d->length;
  b->bias[MOTOR_PHASE] += turn;
  if (d->act[MOTOR_BRISTLE] < 0) return;
  b->state[MOTOR_BRISTLE] -= bar * d->dyn[MOTOR_SIGMA0];
  b->rate[MOTOR_BRISTLE] -= bar * d->dyn[MOTOR_SIGMA1];
  b->dyn[MOTOR_SIGMA0] -= bar * d->state[MOTOR_BRISTLE];
  b->dyn[MOTOR_SIGMA1] -= bar * d->rate[MOTOR_BRISTLE];
}

// From the bar of the resistance, which is whole, to those of heat and parameters.
SN_LOCAL void dcmotor_resistance_vjp(const DcMotor *d, DcMotorBar *b) {
  if (d->act[MOTOR_HEAT] < 0) {
    b->gain[MOTOR_R] += b->R;
    return;
  }
  const sn_real R = d->gain[MOTOR_R], alpha = d->gain[MOTOR_ALPHA];
  const sn_real warmer = d->state[MOTOR_HEAT] + d->dyn[MOTOR_AMBIENT] - d->gain[MOTOR_T0];
  const sn_bar warm = b->R * R * alpha;
  b->state[MOTOR_HEAT] += warm;
  b->dyn[MOTOR_AMBIENT] += warm;
  b->gain[MOTOR_T0] -= warm;
  b->gain[MOTOR_ALPHA] += b->R * R * warmer;
  b->gain[MOTOR_R] += b->R * (1 + alpha * warmer);
}

// From bars of the rates of current, bristles and heat to those of the voltage and the resistance, which are whole
// then.
SN_LOCAL void dcmotor_physics_vjp(const DcMotor *d, DcMotorBar *b) {
  const sn_real K = d->gain[MOTOR_K], v = d->velocity, back = d->voltage - K * v, R = d->R;
  if (d->act[MOTOR_CURRENT] >= 0) {
    const sn_bar bar = b->rate[MOTOR_CURRENT], per = bar / d->dyn[MOTOR_TE];
    if (d->steep) {
      b->dyn[MOTOR_IDOT] += bar * sn_sign(d->rate[MOTOR_CURRENT]);
    } else {
      b->voltage += per / R;
      b->velocity -= per * K / R;
      b->state[MOTOR_CURRENT] -= per;
      b->R -= per * back / (R * R);
      b->gain[MOTOR_K] -= per * v / R;
      b->dyn[MOTOR_TE] -= per * d->rate[MOTOR_CURRENT];
    }
  }
  if (d->act[MOTOR_BRISTLE] >= 0) {
    const sn_bar bar = b->rate[MOTOR_BRISTLE];
    b->state[MOTOR_BRISTLE] += bar * d->decay;
    b->velocity += bar;
    dcmotor_decay_vjp(d, bar * d->state[MOTOR_BRISTLE], b);
  }
  if (d->act[MOTOR_HEAT] < 0) {
    dcmotor_resistance_vjp(d, b);
    return;
  }
  const bool stateful = d->act[MOTOR_CURRENT] >= 0;
  const sn_real RT = d->dyn[MOTOR_RT], C = d->dyn[MOTOR_C], T = d->state[MOTOR_HEAT];
  const sn_real i = stateful ? d->state[MOTOR_CURRENT] : back / R;
  const sn_bar bar = b->rate[MOTOR_HEAT], power = bar / C;
  b->state[MOTOR_HEAT] -= power / RT;
  b->dyn[MOTOR_RT] += power * T / (RT * RT);
  b->dyn[MOTOR_C] -= power * d->rate[MOTOR_HEAT];
  if (stateful) {
    b->state[MOTOR_CURRENT] += power * 2 * R * i;
  } else {
    b->voltage += power * 2 * i;
    b->velocity -= power * 2 * i * K;
    b->gain[MOTOR_K] -= power * 2 * i * v;
  }
  b->R += power * (stateful ? i * i : -i * i);
  dcmotor_resistance_vjp(d, b);
}

// From bars of the voltage and of the rates of setpoint and integral to those of the controls.
SN_LOCAL void dcmotor_drive_vjp(const DcMotor *d, bool driven, DcMotorBar *b) {
  const sn_real *g = d->gain, R = g[MOTOR_R], K = g[MOTOR_K], error = d->in[MOTOR_POS] - d->length;
  const sn_bar V = b->voltage;
  b->in[MOTOR_VOLTAGE] += V;
  if (driven && d->full) b->gain[MOTOR_VMAX] += V * sn_sign(d->voltage - d->in[MOTOR_VOLTAGE]);
  if (driven && !d->full) {
    const sn_bar torque = V * R / K;
    b->velocity += V * K;
    b->gain[MOTOR_R] += V * d->torque / K;
    b->gain[MOTOR_K] += V * (d->velocity - R * d->torque / (K * K));
    b->gain[MOTOR_KP] += torque * error;
    b->gain[MOTOR_KD] += torque * (d->in[MOTOR_VEL] - d->velocity);
    b->gain[MOTOR_KI] += torque * d->state[MOTOR_INTEGRAL];
    b->in[MOTOR_POS] += torque * g[MOTOR_KP];
    b->length -= torque * g[MOTOR_KP];
    b->in[MOTOR_VEL] += torque * g[MOTOR_KD];
    b->velocity -= torque * g[MOTOR_KD];
    b->state[MOTOR_INTEGRAL] += torque * g[MOTOR_KI];
    b->in[MOTOR_FF] += torque;
  }
  if (d->act[MOTOR_INTEGRAL] >= 0 && !d->held) {
    b->in[MOTOR_POS] += b->rate[MOTOR_INTEGRAL];
    b->length -= b->rate[MOTOR_INTEGRAL];
  }
  if (d->act[MOTOR_SLEW] < 0) return;
  sn_bar *first = b->in + d->first;
  *first += b->rate[MOTOR_SLEW] / d->h;
  b->state[MOTOR_SLEW] -= b->rate[MOTOR_SLEW] / d->h;
  if (!d->slewed) return;
  b->state[MOTOR_SLEW] += *first;
  b->dyn[MOTOR_SLEW_RATE] += *first * d->h * sn_sign(d->rate[MOTOR_SLEW]);
  *first = sn_bar_of(0);
}

// Adds bars of length, velocity, activations and parameters to those of the adjoint.
SN_LOCAL void dcmotor_hand_on(const SnModel *m, SnAdjoint *a, int i, const DcMotor *d, const DcMotorBar *b) {
  const int o = m->actuator_outadr[i];
  a->trn_length_bar[o] += b->length;
  a->trn_rate_bar[SN_NMOTION * o + SN_VEL] += b->velocity;
  for (int k = 0; k < MOTOR_NACT; ++k)
    if (d->act[k] >= 0) a->act_bar[d->act[k]] += b->state[k];
#if defined(SN_MODEL_BARS)
  SnModelBar *to = sn_model_bar(a);
  if (!to) return;
  for (int k = 0; to->actuator_gainprm && k <= MOTOR_VMAX; ++k) to->actuator_gainprm[SN_NGAIN * i + k] += b->gain[k];
  for (int k = 0; to->actuator_biasprm && k <= MOTOR_STRIBECK; ++k)
    to->actuator_biasprm[SN_NBIAS * i + k] += b->bias[k];
  for (int k = 0; to->actuator_dynprm && k <= MOTOR_XMAX; ++k) to->actuator_dynprm[SN_NDYN * i + k] += b->dyn[k];
#endif
}

// What bars of the rates (b->rate) and of what the forces have added give.
SN_LOCAL void dcmotor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, const DcMotor *d,
                          DcMotorBar *b) {
  dcmotor_physics_vjp(d, b);
  dcmotor_drive_vjp(d, dcmotor_is_driven(m, i), b);
  for (int k = 0; k < MOTOR_NIN; ++k) sn_ctrl_vjp(m, w, a, d->ctrl[k], bad_ctrl, b->in[k]);
  dcmotor_hand_on(m, a, i, d, b);
}

SN_FUNC void sn_motor_force_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, sn_bar bar,
                                sn_bar drag_bar) {
  if (sn_actuator_idle(m, w, i)) return;
  DcMotor d;
  DcMotorBar b = {0};
  dcmotor_see(m, w, i, bad_ctrl, &d);
  dcmotor_electric_vjp(&d, m->actuator_actearly[i] != 0, bar, &b);
  dcmotor_drag_vjp(&d, drag_bar, &b);
  dcmotor_vjp(m, w, a, i, bad_ctrl, &d, &b);
}

SN_FUNC void sn_motor_rates_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl) {
  DcMotor d;
  DcMotorBar b = {0};
  dcmotor_see(m, w, i, bad_ctrl, &d);
  for (int k = 0; k < MOTOR_NACT; ++k)
    if (d.act[k] >= 0) b.rate[k] = a->act_dot_bar[d.act[k]];
  dcmotor_vjp(m, w, a, i, bad_ctrl, &d, &b);
}

// The bristles after h [s] have the bar `bar`. They do not know of act_dot.
SN_LOCAL void dcmotor_bristle_vjp(const DcMotor *d, sn_real h, sn_bar bar, DcMotorBar *b) {
  const sn_real v = d->velocity, decay = dcmotor_decay(d), x = decay * h, left = sn_exp(x);
  const sn_real sum = sn_abs(decay) > SN_MINVAL ? (left - 1) / decay : h;
  // of the sum by the decay: (h exp(x) - sum) / a, near 0 by its series
  const sn_real bend = sn_abs(x) > SN_R(1e-3) ? (h * left - sum) / decay : h * h * (SN_R(0.5) + x / 3 + x * x / 8);
  b->state[MOTOR_BRISTLE] += bar * left;
  b->velocity += bar * sum;
  dcmotor_decay_vjp(d, bar * (h * left * d->state[MOTOR_BRISTLE] + bend * v), b);
}

SN_FUNC void sn_motor_next_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_real h) {
  const bool disabled = sn_actuator_disabled(m, i);
  DcMotor d;
  DcMotorBar b = {0};
  dcmotor_open(m, w, i, false, &d);
  for (int k = 0; k < MOTOR_NACT; ++k) {
    if (d.act[k] < 0 || k == MOTOR_BRISTLE) continue;
    const sn_bar bar = a->act_next_bar[d.act[k]];
    const sn_real rate = disabled ? 0 : w->act_dot[d.act[k]], bound = d.dyn[MOTOR_XMAX], next = d.state[k] + rate * h;
    if (k == MOTOR_CURRENT) {
      dcmotor_current_vjp(&d, rate, h, bar, &b);
    } else if (k == MOTOR_INTEGRAL && bound > 0 && !(next >= -bound && next <= bound)) {
      b.dyn[MOTOR_XMAX] += bar * sn_sign(next);
    } else {
      b.state[k] += bar;
      b.rate[k] += bar * h;
    }
    if (!disabled) a->act_dot_bar[d.act[k]] += b.rate[k];
  }
  dcmotor_hand_on(m, a, i, &d, &b);
}

SN_FUNC void sn_next_bristles_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real h) {
  if (m->opt.disableflags & SN_DSBL_ACTUATION) return;
  SN_FOR(i, m->nactuator) {
    DcMotor d;
    DcMotorBar b = {0};
    if (!sn_is_motor(m, i)) continue;
    dcmotor_open(m, w, i, false, &d);
    if (d.act[MOTOR_BRISTLE] < 0) continue;
    dcmotor_bristle_vjp(&d, h, a->act_next_bar[d.act[MOTOR_BRISTLE]], &b);
    dcmotor_hand_on(m, a, i, &d, &b);
  }
  SN_SYNC(lane);
}

// A slope of the electric force, proportional to what of a current's rate reaches it and to 1 / R, has the bar `bar`.
SN_LOCAL void dcmotor_reach_vjp(const DcMotor *d, sn_real slope, sn_real reach, sn_bar bar, DcMotorBar *b) {
  const sn_real te = d->dyn[MOTOR_TE];
  if (d->R > SN_MINVAL) b->R -= bar * slope / d->R;
  if (d->act[MOTOR_CURRENT] >= 0 && reach > 0) b->dyn[MOTOR_TE] -= bar * slope / reach * (1 - reach) * d->h / (te * te);
}

SN_FUNC void sn_motor_slope_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool held, sn_bar bar) {
  DcMotor d;
  DcMotorBar b = {0};
  dcmotor_see(m, w, i, sn_bad_ctrl(m, w), &d);
  if (d.dyn[MOTOR_SIGMA1] > 0) b.dyn[MOTOR_SIGMA1] -= bar;
  if (!held) {
    const sn_real reach = dcmotor_reach(m, i, &d), K = d.gain[MOTOR_K], R = sn_max(SN_MINVAL, d.R);
    dcmotor_reach_vjp(&d, dcmotor_electric_slope(m, i, &d), reach, bar, &b);
    if (dcmotor_is_driven(m, i) && !d.full) {
      b.gain[MOTOR_KD] -= bar * reach * d.gain[MOTOR_R] / R;
      b.gain[MOTOR_R] -= bar * reach * d.gain[MOTOR_KD] / R;
    } else {
      b.gain[MOTOR_K] -= bar * reach * 2 * K / R;
    }
  }
  dcmotor_resistance_vjp(&d, &b);
  dcmotor_hand_on(m, a, i, &d, &b);
}

SN_FUNC void sn_motor_stretch_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool held, sn_bar bar) {
  DcMotor d;
  DcMotorBar b = {0};
  dcmotor_see(m, w, i, sn_bad_ctrl(m, w), &d);
  const sn_real A = d.bias[MOTOR_COGGING], N = d.bias[MOTOR_POLES], angle = N * d.length + d.bias[MOTOR_PHASE];
  const sn_bar across = bar * -A * N * sn_sin(angle);
  b.bias[MOTOR_COGGING] += bar * N * sn_cos(angle);
  b.bias[MOTOR_POLES] += bar * A * sn_cos(angle) + across * d.length;
  b.bias[MOTOR_PHASE] += across;
  b.length += across * N;
  if (!held && dcmotor_is_driven(m, i) && !d.full) {
    const sn_real reach = dcmotor_reach(m, i, &d), R = sn_max(SN_MINVAL, d.R);
    dcmotor_reach_vjp(&d, dcmotor_electric_stretch(m, i, &d), reach, bar, &b);
    b.gain[MOTOR_KP] -= bar * reach * d.gain[MOTOR_R] / R;
    b.gain[MOTOR_R] -= bar * reach * d.gain[MOTOR_KP] / R;
  }
  dcmotor_resistance_vjp(&d, &b);
  dcmotor_hand_on(m, a, i, &d, &b);
}
