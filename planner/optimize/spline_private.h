// Splines over equally spaced knots: held, linear, or cubic (Catmull-Rom). All are linear in their knots.
#ifndef SINEW_PLANNER_OPTIMIZE_SPLINE_PRIVATE_H_
#define SINEW_PLANNER_OPTIMIZE_SPLINE_PRIVATE_H_

#include "physics/base/real.h"
#include "planner/task/settings.h"

// Returns the value at x (in knots from the first; clamped to [0, n - 1]) of n >= 1 knots, `stride` numbers apart.
// Cubic: between knots k and k + 1 the Hermite cubic whose slopes are central differences, one-sided at the ends.
SN_FUNC sn_real sn_spline(int kind, const sn_real *knot, int n, int stride, sn_real x);

// Returns d sn_spline / d knot j. Splines are linear in their knots, so the value is the sum of weights times knots.
SN_FUNC sn_real sn_spline_weight(int kind, int n, sn_real x, int j);

#endif
