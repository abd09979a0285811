// Interpolation between equally spaced knots y_0 ... y_{n-1}, at x = k + s with 0 <= s < 1:
//
//   zero    y_k
//   linear  y_k + s (y_{k+1} - y_k)
//   cubic   h00(s) y_k + h10(s) d_k + h01(s) y_{k+1} + h11(s) d_{k+1}
//
// with the Hermite basis and slopes d_k = (y_{k+1} - y_{k-1}) / 2, one-sided at the ends (Catmull and Rom, 1974).
#include "planner/optimize/spline_private.h"

// Slope at knot k, per knot.
SN_LOCAL sn_real spline_slope(const sn_real *knot, int n, int stride, int k) {
  const int lo = sn_maxi(k - 1, 0), hi = sn_mini(k + 1, n - 1);
  return hi > lo ? (knot[hi * stride] - knot[lo * stride]) / (sn_real)(hi - lo) : 0;
}

SN_FUNC sn_real sn_spline(int kind, const sn_real *knot, int n, int stride, sn_real x) {
  x = sn_clip(x, 0, (sn_real)(n - 1));
  const int k = sn_mini((int)x, sn_maxi(n - 2, 0)), next = sn_mini(k + 1, n - 1);
  const sn_real s = x - (sn_real)k, a = knot[k * stride], b = knot[next * stride];
  if (kind == SN_SPLINE_ZERO) return s < 1 ? a : b;
  if (kind == SN_SPLINE_LINEAR) return a + s * (b - a);
  const sn_real s2 = s * s, s3 = s2 * s;
  return (2 * s3 - 3 * s2 + 1) * a + (s3 - 2 * s2 + s) * spline_slope(knot, n, stride, k) + (3 * s2 - 2 * s3) * b +
         (s3 - s2) * spline_slope(knot, n, stride, next);
}

// d slope at knot k / d knot j.
SN_LOCAL sn_real spline_slope_weight(int n, int k, int j) {
  const int lo = sn_maxi(k - 1, 0), hi = sn_mini(k + 1, n - 1);
  return hi > lo ? (sn_real)((j == hi) - (j == lo)) / (sn_real)(hi - lo) : 0;
}

SN_FUNC sn_real sn_spline_weight(int kind, int n, sn_real x, int j) {
  x = sn_clip(x, 0, (sn_real)(n - 1));
  const int k = sn_mini((int)x, sn_maxi(n - 2, 0)), next = sn_mini(k + 1, n - 1);
  const sn_real s = x - (sn_real)k, a = (sn_real)(j == k), b = (sn_real)(j == next);
  if (kind == SN_SPLINE_ZERO) return s < 1 ? a : b;
  if (kind == SN_SPLINE_LINEAR) return a + s * (b - a);
  const sn_real s2 = s * s, s3 = s2 * s;
  return (2 * s3 - 3 * s2 + 1) * a + (s3 - 2 * s2 + s) * spline_slope_weight(n, k, j) + (3 * s2 - 2 * s3) * b +
         (s3 - s2) * spline_slope_weight(n, next, j);
}

// x of base row i of a row.
SN_INLINE sn_real spline_place(SnSplineRow row, int i) { return (sn_real)(row.first + i) / (sn_real)row.spacing; }

SN_FUNC sn_real sn_spline_mean(int kind, const sn_real *knot, int n, int stride, SnSplineRow row) {
  sn_real sum = sn_spline(kind, knot, n, stride, spline_place(row, 0));
  for (int i = 1; i < row.length; ++i) sum += sn_spline(kind, knot, n, stride, spline_place(row, i));
  return row.length > 1 ? sum / (sn_real)row.length : sum;
}

SN_FUNC sn_real sn_spline_mean_weight(int kind, int n, SnSplineRow row, int j) {
  sn_real sum = sn_spline_weight(kind, n, spline_place(row, 0), j);
  for (int i = 1; i < row.length; ++i) sum += sn_spline_weight(kind, n, spline_place(row, i), j);
  return row.length > 1 ? sum / (sn_real)row.length : sum;
}
