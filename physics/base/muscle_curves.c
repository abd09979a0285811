// Muscle model of MuJoCo (manual, Modeling, "Muscle actuators"; activation after Millard et al. 2013).
//
// Lengths are normalised so that the operating range prm[0..1] is spread over the actuator's
// lengthrange: L0 = (max - min) / (range1 - range0), L = range0 + (length - min) / L0, V = velocity / (L0 vmax).
// Active force   -F FL(L) FV(V),  FL piecewise quadratic on [lmin, lmax] with peak 1 at L = 1, FV quadratic
// from 0 at V = -1 over 1 at V = 0 to fvmax at V = fvmax - 1. Passive force -F fpmax FP(L), quadratic from
// L = 1 to b = (1 + lmax) / 2 where it reaches 1/2, then linear with the same slope. F is prm[2], or
// prm[3] / acc0 where that is negative.
//
// FL, FV and FP have continuous slopes, so the adjoints differentiate the piece that the forward function takes. The
// time constant of the activation jumps with the sign of the excess excitation (where the rate is zero) unless prm[2]
// smooths it.
#include "physics/base/muscle_curves.h"

#if !defined(SN_PACK)
SN_FUNC void sn_muscle_table(sn_real *table, const sn_real *prm, const sn_real *lengthrange, sn_real acc0) {
  const sn_real lmin = prm[4], lmax = prm[5], low = SN_R(0.5) * (lmin + 1), high = SN_R(0.5) * (1 + lmax);
  const sn_real optimum = (lengthrange[1] - lengthrange[0]) / sn_max(SN_MINVAL, prm[1] - prm[0]);
  const sn_real per_length = 1 / sn_max(SN_MINVAL, optimum);
  table[SN_MUSCLE_OFFSET] = prm[0] - lengthrange[0] * per_length;
  table[SN_MUSCLE_PER_LENGTH] = per_length;
  table[SN_MUSCLE_PER_VELOCITY] = 1 / sn_max(SN_MINVAL, optimum * prm[6]);
  table[SN_MUSCLE_PEAK] = prm[2] < 0 ? prm[3] / sn_max(SN_MINVAL, acc0) : prm[2];
  table[SN_MUSCLE_LMIN] = lmin;
  table[SN_MUSCLE_LOW] = low;
  table[SN_MUSCLE_PER_LOW] = 1 / sn_max(SN_MINVAL, 1 - low);
  table[SN_MUSCLE_HIGH] = high;
  table[SN_MUSCLE_PER_HIGH] = 1 / sn_max(SN_MINVAL, high - 1);
  table[SN_MUSCLE_LMAX] = lmax;
  table[SN_MUSCLE_FVMAX] = prm[8];
  table[SN_MUSCLE_FVSTEP] = prm[8] - 1;
  table[SN_MUSCLE_PER_FVSTEP] = 1 / sn_max(SN_MINVAL, prm[8] - 1);
  table[SN_MUSCLE_PASSIVE] = table[SN_MUSCLE_PEAK] * prm[7];
}
#endif

// FL'.
SN_LOCAL sn_real muscle_length_slope(const sn_real *t, sn_real L) {
  if (!(L >= t[SN_MUSCLE_LMIN] && L <= t[SN_MUSCLE_LMAX])) return 0;
  const bool rising = L <= 1;
  const bool outer = rising ? L <= t[SN_MUSCLE_LOW] : L > t[SN_MUSCLE_HIGH];
  const sn_real from = outer ? (rising ? t[SN_MUSCLE_LMIN] : t[SN_MUSCLE_LMAX]) : 1;
  const sn_real per = rising ? t[SN_MUSCLE_PER_LOW] : t[SN_MUSCLE_PER_HIGH], slope = (L - from) * per * per;
  return outer ? slope : -slope;
}

// FL''.
SN_LOCAL sn_real muscle_length_curvature(const sn_real *t, sn_real L) {
  if (!(L >= t[SN_MUSCLE_LMIN] && L <= t[SN_MUSCLE_LMAX])) return 0;
  const bool rising = L <= 1, outer = rising ? L <= t[SN_MUSCLE_LOW] : L > t[SN_MUSCLE_HIGH];
  const sn_real per = rising ? t[SN_MUSCLE_PER_LOW] : t[SN_MUSCLE_PER_HIGH];
  return outer ? per * per : -per * per;
}

// Normalised active force: x is the distance from the nearest end of a quadratic piece, in its lengths.
SN_LOCAL sn_real muscle_length_curve(const sn_real *t, sn_real L) {
  if (!(L >= t[SN_MUSCLE_LMIN] && L <= t[SN_MUSCLE_LMAX])) return 0;
  const bool rising = L <= 1;
  const bool outer = rising ? L <= t[SN_MUSCLE_LOW] : L > t[SN_MUSCLE_HIGH];
  const sn_real from = outer ? (rising ? t[SN_MUSCLE_LMIN] : t[SN_MUSCLE_LMAX]) : 1;
  const sn_real x = (L - from) * (rising ? t[SN_MUSCLE_PER_LOW] : t[SN_MUSCLE_PER_HIGH]);
  return outer ? SN_R(0.5) * x * x : 1 - SN_R(0.5) * x * x;
}

// FV.
SN_LOCAL sn_real muscle_velocity_curve(const sn_real *t, sn_real V) {
  const sn_real y = t[SN_MUSCLE_FVSTEP];
  if (V <= -1) return 0;
  if (V <= 0) return (V + 1) * (V + 1);
  return V <= y ? t[SN_MUSCLE_FVMAX] - (y - V) * (y - V) * t[SN_MUSCLE_PER_FVSTEP] : t[SN_MUSCLE_FVMAX];
}

// FV'.
SN_LOCAL sn_real muscle_velocity_slope(const sn_real *t, sn_real V) {
  if (V > -1 && V <= 0) return 2 * V + 2;
  const sn_real y = t[SN_MUSCLE_FVSTEP];
  return V > 0 && V <= y ? 2 * (y - V) * t[SN_MUSCLE_PER_FVSTEP] : 0;
}

// FV''.
SN_LOCAL sn_real muscle_velocity_curvature(const sn_real *t, sn_real V) {
  if (V > -1 && V <= 0) return 2;
  return V > 0 && V <= t[SN_MUSCLE_FVSTEP] ? -2 * t[SN_MUSCLE_PER_FVSTEP] : 0;
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_muscle_gain(const sn_real *table, sn_real length, sn_real velocity) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  const sn_real V = velocity * table[SN_MUSCLE_PER_VELOCITY];
  return -table[SN_MUSCLE_PEAK] * muscle_length_curve(table, L) * muscle_velocity_curve(table, V);
}
#endif

SN_FUNC void sn_muscle_gain_vjp(const sn_real *table, sn_real length, sn_real velocity, sn_bar bar, sn_bar *length_bar,
                                sn_bar *velocity_bar) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  const sn_real V = velocity * table[SN_MUSCLE_PER_VELOCITY];
  const sn_bar scale = -table[SN_MUSCLE_PEAK] * bar;
  *length_bar += scale * table[SN_MUSCLE_PER_LENGTH] * muscle_length_slope(table, L) * muscle_velocity_curve(table, V);
  *velocity_bar +=
      scale * table[SN_MUSCLE_PER_VELOCITY] * muscle_length_curve(table, L) * muscle_velocity_slope(table, V);
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_muscle_gain_slope(const sn_real *table, sn_real length, sn_real velocity) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  const sn_real slope = muscle_velocity_slope(table, velocity * table[SN_MUSCLE_PER_VELOCITY]);
  return -table[SN_MUSCLE_PEAK] * muscle_length_curve(table, L) * slope * table[SN_MUSCLE_PER_VELOCITY];
}
#endif

SN_FUNC void sn_muscle_gain_slope_vjp(const sn_real *table, sn_real length, sn_real velocity, sn_bar bar,
                                      sn_bar *length_bar, sn_bar *velocity_bar) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  const sn_real V = velocity * table[SN_MUSCLE_PER_VELOCITY];
  const sn_bar scale = -table[SN_MUSCLE_PEAK] * table[SN_MUSCLE_PER_VELOCITY] * bar;
  *length_bar += scale * table[SN_MUSCLE_PER_LENGTH] * muscle_length_slope(table, L) * muscle_velocity_slope(table, V);
  *velocity_bar +=
      scale * table[SN_MUSCLE_PER_VELOCITY] * muscle_length_curve(table, L) * muscle_velocity_curvature(table, V);
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_muscle_gain_stretch(const sn_real *table, sn_real length, sn_real velocity) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  const sn_real curve = muscle_velocity_curve(table, velocity * table[SN_MUSCLE_PER_VELOCITY]);
  return -table[SN_MUSCLE_PEAK] * table[SN_MUSCLE_PER_LENGTH] * muscle_length_slope(table, L) * curve;
}
#endif

SN_FUNC void sn_muscle_gain_stretch_vjp(const sn_real *table, sn_real length, sn_real velocity, sn_bar bar,
                                        sn_bar *length_bar, sn_bar *velocity_bar) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  const sn_real V = velocity * table[SN_MUSCLE_PER_VELOCITY];
  const sn_bar scale = -table[SN_MUSCLE_PEAK] * table[SN_MUSCLE_PER_LENGTH] * bar;
  *length_bar +=
      scale * table[SN_MUSCLE_PER_LENGTH] * muscle_length_curvature(table, L) * muscle_velocity_curve(table, V);
  *velocity_bar +=
      scale * table[SN_MUSCLE_PER_VELOCITY] * muscle_length_slope(table, L) * muscle_velocity_slope(table, V);
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_muscle_bias(const sn_real *table, sn_real length) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  if (L <= 1) return 0;
  const bool curved = L <= table[SN_MUSCLE_HIGH];
  const sn_real x = (L - (curved ? 1 : table[SN_MUSCLE_HIGH])) * table[SN_MUSCLE_PER_HIGH];
  return -table[SN_MUSCLE_PASSIVE] * (curved ? SN_R(0.5) * x * x : SN_R(0.5) + x);
}
#endif

SN_FUNC void sn_muscle_bias_vjp(const sn_real *table, sn_real length, sn_bar bar, sn_bar *length_bar) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  if (L <= 1) return;
  const bool curved = L <= table[SN_MUSCLE_HIGH];
  const sn_real per = table[SN_MUSCLE_PER_HIGH], slope = curved ? (L - 1) * per * per : per;
  *length_bar -= bar * table[SN_MUSCLE_PASSIVE] * table[SN_MUSCLE_PER_LENGTH] * slope;
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_muscle_bias_stretch(const sn_real *table, sn_real length) {
  sn_real slope = 0;
  sn_muscle_bias_vjp(table, length, 1, &slope);
  return slope;
}
#endif

SN_FUNC void sn_muscle_bias_stretch_vjp(const sn_real *table, sn_real length, sn_bar bar, sn_bar *length_bar) {
  const sn_real L = table[SN_MUSCLE_OFFSET] + length * table[SN_MUSCLE_PER_LENGTH];
  const sn_real per = table[SN_MUSCLE_PER_HIGH] * table[SN_MUSCLE_PER_LENGTH];
  if (L > 1 && L <= table[SN_MUSCLE_HIGH]) *length_bar -= bar * table[SN_MUSCLE_PASSIVE] * per * per;
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_muscle_rate(sn_real ctrl, sn_real act, const sn_real *prm) {
  const sn_real excess = sn_clip(ctrl, 0, 1) - act, stretch = SN_R(0.5) + SN_R(1.5) * sn_clip(act, 0, 1);
  const sn_real rise = prm[0] * stretch, width = prm[2];
  if (width < SN_MINVAL && excess > 0) return excess / sn_max(SN_MINVAL, rise);
  sn_real tau = prm[1] / stretch;
  if (width >= SN_MINVAL) {
    // quintic step from 0 to 1 over the width, centred at no excess
    const sn_real x = sn_clip(excess / width + SN_R(0.5), 0, 1);
    tau += (rise - tau) * x * x * x * (x * (6 * x - 15) + 10);
  }
  return excess / sn_max(SN_MINVAL, tau);
}
#endif

SN_FUNC void sn_muscle_rate_vjp(sn_real ctrl, sn_real act, const sn_real *prm, sn_bar bar, sn_bar *ctrl_bar,
                                sn_bar *act_bar) {
  const bool ctrl_inside = ctrl >= 0 && ctrl <= 1, act_inside = act >= 0 && act <= 1;
  const sn_real excess = sn_clip(ctrl, 0, 1) - act, stretch = SN_R(0.5) + SN_R(1.5) * sn_clip(act, 0, 1);
  const sn_real width = prm[2];
  // time constant, its derivatives with respect to the excess and to the stretch
  sn_real tau, by_excess = 0, by_stretch = prm[0];
  if (width >= SN_MINVAL) {
    const sn_real rise = prm[0] * stretch, fall = prm[1] / stretch;
    const sn_real x = sn_clip(excess / width + SN_R(0.5), 0, 1), step = x * x * x * (x * (6 * x - 15) + 10);
    tau = fall + (rise - fall) * step;
    by_excess = (rise - fall) * 30 * x * x * (1 - x) * (1 - x) / width;
    by_stretch = prm[0] * step - fall / stretch * (1 - step);
  } else if (excess > 0 || (excess == 0 && ctrl < 1)) {
    tau = prm[0] * stretch;
  } else {
    tau = prm[1] / stretch;
    by_stretch = -tau / stretch;
  }
  const sn_real per = 1 / sn_max(SN_MINVAL, tau);
  sn_bar excess_bar = bar * per;
  if (tau >= SN_MINVAL) {
    const sn_bar tau_bar = -excess_bar * excess * per;
    excess_bar += tau_bar * by_excess;
    if (act_inside) *act_bar += SN_R(1.5) * tau_bar * by_stretch;
  }
  if (ctrl_inside) *ctrl_bar += excess_bar;
  *act_bar -= excess_bar;
}
