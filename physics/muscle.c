// Muscle model of MuJoCo (manual, Modeling, "Muscle actuators"; activation after Millard et al. 2013).
//
// Lengths are normalised so that the operating range prm[0..1] is spread over the actuator's
// lengthrange: L0 = (max - min) / (range1 - range0), L = range0 + (length - min) / L0, V = velocity / (L0 vmax).
// Active force   -F FL(L) FV(V),  FL piecewise quadratic on [lmin, lmax] with peak 1 at L = 1, FV quadratic
// from 0 at V = -1 over 1 at V = 0 to fvmax at V = fvmax - 1. Passive force -F fpmax FP(L), quadratic from
// L = 1 to b = (1 + lmax) / 2 where it reaches 1/2, then linear with the same slope. F is prm[2], or
// prm[3] / acc0 where that is negative.
//
// FL, FV and FP have continuous slopes. The time constant of the activation jumps with the sign of the
// excess excitation (where the rate is zero) unless prm[2] smooths it.
#include "physics/muscle.h"

SN_FUNC sn_real sn_muscle_length_curve(sn_real length, sn_real lmin, sn_real lmax) {
  if (!(length >= lmin && length <= lmax)) return 0;
  const sn_real a = SN_R(0.5) * (lmin + 1), b = SN_R(0.5) * (1 + lmax);
  if (length <= a || length > b) {
    const sn_real x =
        length <= a ? (length - lmin) / sn_max(SN_MINVAL, a - lmin) : (lmax - length) / sn_max(SN_MINVAL, lmax - b);
    return SN_R(0.5) * x * x;
  }
  const sn_real x = length <= 1 ? (1 - length) / sn_max(SN_MINVAL, 1 - a) : (length - 1) / sn_max(SN_MINVAL, b - 1);
  return 1 - SN_R(0.5) * x * x;
}

// Peak force F and optimal length L0.
SN_LOCAL sn_real sn_muscle_peak(sn_real acc0, const sn_real *prm) {
  return prm[2] < 0 ? prm[3] / sn_max(SN_MINVAL, acc0) : prm[2];
}
SN_LOCAL sn_real sn_muscle_optimum(const sn_real *lengthrange, const sn_real *prm) {
  return (lengthrange[1] - lengthrange[0]) / sn_max(SN_MINVAL, prm[1] - prm[0]);
}

SN_FUNC sn_real sn_muscle_gain(sn_real length, sn_real velocity, const sn_real *lengthrange, sn_real acc0,
                               const sn_real *prm) {
  const sn_real vmax = prm[6], fvmax = prm[8], y = fvmax - 1;
  const sn_real L0 = sn_muscle_optimum(lengthrange, prm);
  const sn_real L = prm[0] + (length - lengthrange[0]) / sn_max(SN_MINVAL, L0);
  const sn_real V = velocity / sn_max(SN_MINVAL, L0 * vmax);
  sn_real FV;
  if (V <= -1)
    FV = 0;
  else if (V <= 0)
    FV = (V + 1) * (V + 1);
  else if (V <= y)
    FV = fvmax - (y - V) * (y - V) / sn_max(SN_MINVAL, y);
  else
    FV = fvmax;
  return -sn_muscle_peak(acc0, prm) * sn_muscle_length_curve(L, prm[4], prm[5]) * FV;
}

SN_FUNC sn_real sn_muscle_bias(sn_real length, const sn_real *lengthrange, sn_real acc0, const sn_real *prm) {
  const sn_real lmax = prm[5], fpmax = prm[7], b = SN_R(0.5) * (1 + lmax);
  const sn_real L = prm[0] + (length - lengthrange[0]) / sn_max(SN_MINVAL, sn_muscle_optimum(lengthrange, prm));
  if (L <= 1) return 0;
  const sn_real width = sn_max(SN_MINVAL, b - 1);
  const sn_real x = (L - (L <= b ? 1 : b)) / width;
  return -sn_muscle_peak(acc0, prm) * fpmax * (L <= b ? SN_R(0.5) * x * x : SN_R(0.5) + x);
}

SN_FUNC sn_real sn_muscle_rate(sn_real ctrl, sn_real act, const sn_real *prm) {
  const sn_real excess = sn_clip(ctrl, 0, 1) - act, stretch = SN_R(0.5) + SN_R(1.5) * sn_clip(act, 0, 1);
  const sn_real rise = prm[0] * stretch, fall = prm[1] / stretch, width = prm[2];
  sn_real tau;
  if (width < SN_MINVAL) {
    tau = excess > 0 ? rise : fall;
  } else {
    // quintic step from 0 to 1 over the width, centred at no excess
    const sn_real x = sn_clip(excess / width + SN_R(0.5), 0, 1);
    tau = fall + (rise - fall) * x * x * x * (x * (6 * x - 15) + 10);
  }
  return excess / sn_max(SN_MINVAL, tau);
}
