// Springs and dampers with polynomials: x p(x), p(x) = k0 + k1 x + k2 x^2, from a linear coefficient and SN_NPOLY
// others.
#ifndef SINEW_PHYSICS_BASE_POLYNOMIAL_H_
#define SINEW_PHYSICS_BASE_POLYNOMIAL_H_

#include "physics/base/bar.h"

enum { SN_NPOLY = 2 };  // coefficients beyond the linear one

// Returns p(x).
SN_INLINE sn_real sn_polynomial(sn_real linear, const sn_real *poly, sn_real x) {
  sn_real s = 0;
  for (int p = SN_NPOLY - 1; p >= 0; --p) s = (s + poly[p]) * x;
  return linear + s;
}

// Returns (x p(x))' = k0 + 2 k1 x + 3 k2 x^2.
SN_INLINE sn_real sn_polynomial_slope(sn_real linear, const sn_real *poly, sn_real x) {
  sn_real s = 0;
  for (int p = SN_NPOLY - 1; p >= 0; --p) s = (s + (sn_real)(p + 2) * poly[p]) * x;
  return linear + s;
}

// Returns p'(x) = k1 + 2 k2 x.
SN_INLINE sn_real sn_polynomial_change(const sn_real *poly, sn_real x) {
  sn_real s = 0;
  for (int p = SN_NPOLY - 1; p >= 0; --p) s = s * x + (sn_real)(p + 1) * poly[p];
  return s;
}

// Returns (x p(x))'' = 2 k1 + 6 k2 x.
SN_INLINE sn_real sn_polynomial_curve(const sn_real *poly, sn_real x) {
  sn_real s = 0;
  for (int p = SN_NPOLY - 1; p >= 0; --p) s = s * x + (sn_real)((p + 2) * (p + 1)) * poly[p];
  return s;
}

// Returns the slope in v of the damper v p(|v|), coefficients damp[1 + SN_NPOLY].
SN_INLINE sn_real sn_damping_slope(const sn_real *damp, sn_real v) {
  return sn_polynomial_slope(damp[0], damp + 1, sn_abs(v));
}
// Adds bar times the derivatives of sn_polynomial_slope by the coefficients, where there is a place for them.
SN_INLINE void sn_polynomial_slope_vjp(sn_bar *linear, sn_bar *poly, sn_real x, sn_bar bar) {
  sn_real power = x;
  if (linear) linear[0] += bar;
  for (int p = 0; poly && p < SN_NPOLY; ++p, power *= x) poly[p] += bar * (sn_real)(p + 2) * power;
}
// Adds bar times the derivatives of sn_damping_slope by the coefficients (1 + SN_NPOLY) to `out`.
SN_INLINE void sn_damping_slope_vjp(sn_bar *out, sn_real v, sn_bar bar) {
  sn_polynomial_slope_vjp(out, out + 1, sn_abs(v), bar);
}
// Returns the slope of sn_damping_slope in v, 0 at v = 0.
SN_INLINE sn_real sn_damping_curve(const sn_real *damp, sn_real v) {
  sn_real s = 0;
  for (int p = SN_NPOLY - 1; p >= 0; --p) s = s * sn_abs(v) + (sn_real)((p + 2) * (p + 1)) * damp[1 + p];
  return sn_sign(v) * s;
}

#endif
