// Derivatives of rotations exp(r), r a rotation vector (axis times angle), with turns in the rotated frame:
//   exp(r + dr) = exp(r) exp(Jr(r) dr),    Jr = 1 - (1 - cos t)/t^2 [r] + (t - sin t)/t^3 [r]^2,    t = |r|
//   Jr^-1 = 1 + [r]/2 + c [r]^2,    c = (1 - t/2 cot(t/2)) / t^2
// (J. Sola, J. Deray, D. Atchuthan, A micro Lie theory for state estimation in robotics, 2018, appendix B). All are
// smooth at r = 0, where series take over; Jr^-1 has poles at t = 2 pi, 4 pi, ..., where c is bounded instead.
#ifndef SINEW_PHYSICS_BASE_ROTATION_H_
#define SINEW_PHYSICS_BASE_ROTATION_H_

#include "physics/base/vec.h"

// The coefficients of exp(r) = 1 + s [r] + c [r]^2, and (t - sin t)/t^3 = j.
typedef struct SnTurn {
  sn_real s, c, j;
} SnTurn;

SN_INLINE SnTurn sn_turn(const sn_real *r) {
  const sn_real t2 = sn_dot3(r, r);
  SnTurn k;
  if (t2 < SN_R(1e-3)) {
    k.s = 1 - t2 / 6 * (1 - t2 / 20 * (1 - t2 / 42));
    k.c = SN_R(0.5) * (1 - t2 / 12 * (1 - t2 / 30 * (1 - t2 / 56)));
    k.j = (1 - t2 / 20 * (1 - t2 / 42 * (1 - t2 / 72))) / 6;
  } else {
    const sn_real t = sn_sqrt(t2), half = sn_sin(SN_R(0.5) * t);
    k.s = sn_sin(t) / t;
    k.c = 2 * half * half / t2;
    k.j = (1 - k.s) / t2;
  }
  return k;
}

// x <- exp(r) x.
SN_INLINE void sn_turn_vector(sn_real *x, const sn_real *r) {
  const SnTurn k = sn_turn(r);
  sn_real t[3], tt[3];
  sn_cross(t, r, x);
  sn_cross(tt, r, t);
  for (int e = 0; e < 3; ++e) x[e] += k.s * t[e] + k.c * tt[e];
}

// x <- Jr(r)' x.
SN_INLINE void sn_right_jacobian_transpose(sn_real *x, const sn_real *r) {
  const SnTurn k = sn_turn(r);
  sn_real t[3], tt[3];
  sn_cross(t, r, x);
  sn_cross(tt, r, t);
  for (int e = 0; e < 3; ++e) x[e] += k.c * t[e] + k.j * tt[e];
}

// c of Jr^-1, and its derivative with respect to t^2, for t^2 = t2.
SN_INLINE sn_real sn_dexpinv_coefficient(sn_real t2, sn_real *slope) {
  if (t2 < SN_R(0.01)) {
    *slope = SN_R(1.0) / 720 + t2 / 15120 + t2 * t2 / 403200;
    return SN_R(1.0) / 12 + t2 / 720 + t2 * t2 / 30240;
  }
  const sn_real half = SN_R(0.5) * sn_sqrt(t2), tan = sn_tan(half), cot = 1 / tan, c = (1 - half / tan) / t2;
  // d(half cot)/d(t2) = (cot - half (1 + cot^2)) / (8 half)
  *slope = -((cot - half * (1 + cot * cot)) / (8 * half) + c) / t2;
  return c;
}

// x <- Jr^-1(r)' x.
SN_INLINE void sn_right_jacobian_inverse_transpose(sn_real *x, const sn_real *r) {
  sn_real t[3], tt[3], slope;
  const sn_real c = sn_dexpinv_coefficient(sn_dot3(r, r), &slope);
  sn_cross(t, r, x);
  sn_cross(tt, r, t);
  for (int e = 0; e < 3; ++e) x[e] += c * tt[e] - SN_R(0.5) * t[e];
}

#endif
