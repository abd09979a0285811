// Small vectors, quaternions (w, x, y, z), 3x3 matrices (row major) and 6-vectors
// (rotation first, translation second), with MuJoCo's conventions; rotations and their derivatives.
#ifndef SINEW_PHYSICS_BASE_VEC_H_
#define SINEW_PHYSICS_BASE_VEC_H_

#include "physics/base/bar.h"

// Products and sums: of numbers, and with SN_PACK also of bars (vec_columns.h).
#if defined(SN_PACK)
#include "physics/base/vec_columns.h"
#else
#define SN_OP(name) name
#define SN_R_TYPE sn_real
#define SN_A_TYPE sn_real
#define SN_B_TYPE sn_real
#define SN_TO_R(x) (x)
#include "physics/base/vec_ops.inc"
#endif

SN_INLINE sn_real sn_norm3(const sn_real *a) { return sn_sqrt(sn_dot3(a, a)); }
SN_INLINE sn_real sn_dist3(const sn_real *a, const sn_real *b) {
  sn_real d[3];
  sn_sub3(d, a, b);
  return sn_norm3(d);
}
// Scales a to unit length and returns the old length; (1,0,0) when it is below SN_MINVAL.
SN_INLINE sn_real sn_normalize3(sn_real *a) {
  const sn_real norm = sn_norm3(a);
  if (norm < SN_MINVAL) {
    sn_set3(a, 1, 0, 0);
    return norm;
  }
  sn_scale3(a, a, SN_R(1.0) / norm);
  return norm;
}

// Computes r = a * b for 3x3; r must not alias.
SN_INLINE void sn_mulmatmat3(sn_real *r, const sn_real *a, const sn_real *b) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) r[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}

// Computes the point r = x + R p of a frame (x, R); r must not alias p.
SN_INLINE void sn_frame_point(sn_real *r, const sn_real *x, const sn_real *R, const sn_real *p) {
  for (int e = 0; e < 3; ++e) r[e] = x[e] + R[3 * e] * p[0] + R[3 * e + 1] * p[1] + R[3 * e + 2] * p[2];
}

SN_INLINE void sn_copy4(sn_real *r, const sn_real *a) {
  r[0] = a[0];
  r[1] = a[1];
  r[2] = a[2];
  r[3] = a[3];
}
// Scales q to unit length and returns the old length; (1,0,0,0) when it is below SN_MINVAL.
SN_INLINE sn_real sn_normalize4(sn_real *q) {
  const sn_real norm = sn_sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (norm < SN_MINVAL) {
    q[0] = 1;
    q[1] = q[2] = q[3] = 0;
    return norm;
  }
  const sn_real s = SN_R(1.0) / norm;
  for (int i = 0; i < 4; ++i) q[i] *= s;
  return norm;
}
// Computes the unit quaternion q of a rotation by angle [rad] about a unit axis.
SN_INLINE void sn_axisangle2quat(sn_real *q, const sn_real *axis, sn_real angle) {
  const sn_real s = sn_sin(angle * SN_R(0.5));
  q[0] = sn_cos(angle * SN_R(0.5));
  q[1] = axis[0] * s;
  q[2] = axis[1] * s;
  q[3] = axis[2] * s;
}
SN_INLINE void sn_quat2mat(sn_real *r, const sn_real *q) {
  const sn_real q00 = q[0] * q[0], q01 = q[0] * q[1], q02 = q[0] * q[2], q03 = q[0] * q[3];
  const sn_real q11 = q[1] * q[1], q12 = q[1] * q[2], q13 = q[1] * q[3];
  const sn_real q22 = q[2] * q[2], q23 = q[2] * q[3], q33 = q[3] * q[3];
  r[0] = q00 + q11 - q22 - q33;
  r[4] = q00 - q11 + q22 - q33;
  r[8] = q00 - q11 - q22 + q33;
  r[1] = 2 * (q12 - q03);
  r[2] = 2 * (q13 + q02);
  r[3] = 2 * (q12 + q03);
  r[5] = 2 * (q23 - q01);
  r[6] = 2 * (q13 - q02);
  r[7] = 2 * (q23 + q01);
}
// Computes r, a rotated by the unit quaternion q; r must not alias a.
SN_INLINE void sn_rotquat(sn_real *r, const sn_real *a, const sn_real *q) {
  sn_real t[3] = {q[0] * a[0] + q[2] * a[2] - q[3] * a[1], q[0] * a[1] + q[3] * a[0] - q[1] * a[2],
                  q[0] * a[2] + q[1] * a[1] - q[2] * a[0]};
  r[0] = a[0] + 2 * (q[2] * t[2] - q[3] * t[1]);
  r[1] = a[1] + 2 * (q[3] * t[0] - q[1] * t[2]);
  r[2] = a[2] + 2 * (q[1] * t[1] - q[2] * t[0]);
}
// Computes the rotation vector r (axis times angle in (-pi, pi]) of a unit quaternion.
SN_INLINE void sn_quat2vel(sn_real *r, const sn_real *q) {
  sn_real axis[3] = {q[1], q[2], q[3]};
  const sn_real s = sn_normalize3(axis);
  sn_real angle = 2 * sn_atan2(s, q[0]);
  if (angle > SN_PI) angle -= 2 * SN_PI;
  sn_scale3(r, axis, angle);
}
// Computes out = A' bar, the adjoint of the rotation vector r = log(q). For a small turn of q from the left,
//   q <- exp(t / 2) q,    dr = A t,    A = I - [r]x / 2 + c [r]x^2,    c = (1 - |r|/2 cot(|r|/2)) / |r|^2
// (A is the inverse of the left Jacobian of SO(3)). A turn from the right, q <- q exp(t / 2), has -r in place of r. At
// |r| = pi, where the shorter way round changes, A is that of r. out must not alias bar.
SN_INLINE void sn_rotvec_vjp(sn_real *out, const sn_real *r, const sn_real *bar) {
  const sn_real angle2 = sn_dot3(r, r), half = SN_R(0.5) * sn_sqrt(angle2);
  const sn_real c =
      angle2 < SN_R(1e-4) ? SN_R(1.0) / 12 + angle2 / 720 : (1 - half * sn_cos(half) / sn_sin(half)) / angle2;
  sn_real t[3], tt[3];
  sn_cross(t, r, bar);
  sn_cross(tt, r, t);
  for (int k = 0; k < 3; ++k) out[k] = bar[k] + SN_R(0.5) * t[k] + c * tt[k];
}
// Turns q by the angular velocity vel [rad/s], in the local frame, for a time dt [s]: q <- q * exp(vel * dt / 2).
SN_INLINE void sn_quatintegrate(sn_real *q, const sn_real *vel, sn_real dt) {
  sn_real axis[3] = {vel[0], vel[1], vel[2]}, dq[4], r[4];
  const sn_real angle = dt * sn_normalize3(axis);
  sn_axisangle2quat(dq, axis, angle);
  sn_normalize4(q);
  sn_mulquat(r, q, dq);
  sn_copy4(q, r);
}

// Computes r = vel x v, the cross product of two motions (rotation, translation).
SN_INLINE void sn_crossmotion(sn_real *r, const sn_real *vel, const sn_real *v) {
  sn_real t[3];
  sn_cross(r, vel, v);
  sn_cross(r + 3, vel, v + 3);
  sn_cross(t, vel + 3, v);
  sn_addto3(r + 3, t);
}
// Computes r = vel x f, the cross product of a motion and a force (rotation, translation).
SN_INLINE void sn_crossforce(sn_real *r, const sn_real *vel, const sn_real *f) {
  sn_real t[3];
  sn_cross(r, vel, f);
  sn_cross(t, vel + 3, f + 3);
  sn_addto3(r, t);
  sn_cross(r + 3, vel, f + 3);
}
// Adds s * (vel x f) to r, as sn_crossforce. The dual holds: d . (vel x f) = f . (d x vel) for a motion d.
SN_INLINE void sn_addcrossforce(sn_bar *r, const sn_real *vel, const sn_bar *f, sn_bar s) {
  sn_bar t[3];
  sn_cross(t, vel, f);
  sn_addtoscl3(r, t, s);
  sn_cross(t, vel + 3, f + 3);
  sn_addtoscl3(r, t, s);
  sn_cross(t, vel, f + 3);
  sn_addtoscl3(r + 3, t, s);
}
// Computes r = I v for MuJoCo's 10-number inertia (Ixx Iyy Izz Ixy Ixz Iyz, m*c, m).
SN_INLINE void sn_mulinert(sn_real *r, const sn_real *i, const sn_real *v) {
  r[0] = i[0] * v[0] + i[3] * v[1] + i[4] * v[2] - i[8] * v[4] + i[7] * v[5];
  r[1] = i[3] * v[0] + i[1] * v[1] + i[5] * v[2] + i[8] * v[3] - i[6] * v[5];
  r[2] = i[4] * v[0] + i[5] * v[1] + i[2] * v[2] - i[7] * v[3] + i[6] * v[4];
  r[3] = i[8] * v[1] - i[7] * v[2] + i[9] * v[3];
  r[4] = i[6] * v[2] - i[8] * v[0] + i[9] * v[4];
  r[5] = i[7] * v[0] - i[6] * v[1] + i[9] * v[5];
}

// ---- rotations ----
//
// Derivatives of rotations exp(r), r a rotation vector (axis times angle), with turns in the rotated frame:
//   exp(r + dr) = exp(r) exp(Jr(r) dr),    Jr = 1 - (1 - cos t)/t^2 [r] + (t - sin t)/t^3 [r]^2,    t = |r|
//   Jr^-1 = 1 + [r]/2 + c [r]^2,    c = (1 - t/2 cot(t/2)) / t^2
// (J. Sola, J. Deray, D. Atchuthan, A micro Lie theory for state estimation in robotics, 2018, appendix B). All are
// smooth at r = 0, where series take over; Jr^-1 has poles at t = 2 pi, 4 pi, ..., where c is bounded instead.

// Holds the coefficients of exp(r) = 1 + s [r] + c [r]^2, and j = (t - sin t)/t^3.
typedef struct SnTurn {
  sn_real s, c, j;
} SnTurn;

// Returns the coefficients of the rotation vector r.
SN_INLINE SnTurn sn_turn_coefficients(const sn_real *r) {
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

// Replaces x by exp(r) x.
SN_INLINE void sn_turn_vector(sn_bar *x, const sn_real *r) {
  const SnTurn k = sn_turn_coefficients(r);
  sn_bar t[3], tt[3];
  sn_cross(t, r, x);
  sn_cross(tt, r, t);
  for (int e = 0; e < 3; ++e) x[e] += k.s * t[e] + k.c * tt[e];
}

// Replaces x by Jr(r)' x.
SN_INLINE void sn_right_jacobian_transpose(sn_bar *x, const sn_real *r) {
  const SnTurn k = sn_turn_coefficients(r);
  sn_bar t[3], tt[3];
  sn_cross(t, r, x);
  sn_cross(tt, r, t);
  for (int e = 0; e < 3; ++e) x[e] += k.c * t[e] + k.j * tt[e];
}

// Returns c of Jr^-1 for t^2 = t2; *slope becomes its derivative with respect to t^2.
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

// Replaces x by Jr^-1(r)' x.
SN_INLINE void sn_right_jacobian_inverse_transpose(sn_bar *x, const sn_real *r) {
  sn_bar t[3], tt[3];
  sn_real slope;
  const sn_real c = sn_dexpinv_coefficient(sn_dot3(r, r), &slope);
  sn_cross(t, r, x);
  sn_cross(tt, r, t);
  for (int e = 0; e < 3; ++e) x[e] += c * tt[e] - SN_R(0.5) * t[e];
}

#endif
