// Noise of predictive sampling: white, pink or brown over knots, from counter-based random numbers. The
// same numbers come out on any thread, in any order.
#ifndef SINEW_PLANNER_SAMPLING_H_
#define SINEW_PLANNER_SAMPLING_H_

#include "planner/plan.h"

// What the noise of a candidate depends on, besides its number.
typedef struct SnNoise {
  uint64_t seed;
  uint32_t plan;        // number of the plan
  uint32_t iteration;   // of the plan
  int spacing;          // steps between knots, >= 1
  int phase;            // steps from the first knot to the first row, 0 <= phase < spacing
  int knots;            // that the rows need: sn_noise_knots()
  int interpolation;    // SnSplineKind
  int colour;           // SnNoiseColour
  sn_real scale;        // root mean square, in halves of a control's range
} SnNoise;

// Knots that nstep rows need.
int sn_noise_knots(int nstep, int spacing, int phase, int interpolation);

// Adds noise `candidate` to base (nstep, nu), clamps to the ranges of the controls, writes ctrl (nstep, nu).
// knot: scratch (2 * knots). Candidate 0 has no noise. Any number of threads.
void sn_noise_candidate(const SnModel *m, const SnNoise *noise, int candidate, const sn_real *base, int nstep,
                        sn_real *knot, sn_real *ctrl);

#endif
