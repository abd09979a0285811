// Splines over equally spaced knots: held, linear, or cubic (Catmull-Rom). All are linear in their knots.
#ifndef SINEW_PLANNER_OPTIMIZE_SPLINE_PRIVATE_H_
#define SINEW_PLANNER_OPTIMIZE_SPLINE_PRIVATE_H_

#include "physics/base/real.h"
#include "planner/base/grid.h"
#include "planner/task/settings.h"

// Returns the value at x (in knots from the first; clamped to [0, n - 1]) of n >= 1 knots, `stride` numbers apart.
// Cubic: between knots k and k + 1 the Hermite cubic whose slopes are central differences, one-sided at the ends.
SN_FUNC sn_real sn_spline(int kind, const sn_real *knot, int n, int stride, sn_real x);

// Describes a row of a time grid over knots that are `spacing` base steps apart, the first `phase` before base row 0.
typedef struct SnSplineRow {
  int first, length;  // base rows of it, counted from the first knot
  int spacing;
} SnSplineRow;

// Returns row t of the grid.
SN_INLINE SnSplineRow sn_spline_row(const SnGrid *grid, int t, int spacing, int phase) {
  const SnSplineRow row = {sn_grid_begin(grid, t) + phase, sn_grid_length(grid, t), spacing};
  return row;
}

// Returns the mean of sn_spline over the base rows of a row; of one base row the value there.
SN_FUNC sn_real sn_spline_mean(int kind, const sn_real *knot, int n, int stride, SnSplineRow row);

// Returns d sn_spline / d knot j. Splines are linear in their knots, so the value is the sum of weights times knots.
SN_FUNC sn_real sn_spline_weight(int kind, int n, sn_real x, int j);

// Returns d sn_spline_mean / d knot j.
SN_FUNC sn_real sn_spline_mean_weight(int kind, int n, SnSplineRow row, int j);

#endif
