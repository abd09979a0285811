// Coloured noise over knots, from counter-based random numbers. The same numbers come out on any thread, in any order.
#ifndef SINEW_PLANNER_NOISE_H_
#define SINEW_PLANNER_NOISE_H_

#include "physics/real.h"
#include "planner/settings.h"

// What the noise of a candidate depends on, besides its number.
typedef struct SnNoise {
  uint64_t seed;
  uint32_t plan;       // number of the plan
  uint32_t iteration;  // of the plan
  int spacing;         // steps between knots, >= 1
  int phase;           // steps from the first knot to the first row, 0 <= phase < spacing
  int knots;           // sn_noise_knots()
  int interpolation;   // SnSplineKind
  int colour;          // SnNoiseColour
  sn_real scale;       // root mean square, in halves of a control's range
} SnNoise;

// Coefficients of the fractional integration over `knots` knots into h (knots), scaled to unit root mean square.
SN_FUNC void sn_noise_filter(int colour, int knots, sn_real *h);

// Noise of one control at the knots, in halves of its range, into out (knots). white: scratch (knots). The whole of
// the noise's arithmetic: a device runs one control a lane.
SN_FUNC void sn_noise_column(const SnNoise *noise, int candidate, int control, const sn_real *h, sn_real *white,
                             sn_real *out);

#endif
