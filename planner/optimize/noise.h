// Coloured noise over knots, from counter-based random numbers. On any thread, in any order, the numbers are the same.
#ifndef SINEW_PLANNER_OPTIMIZE_NOISE_H_
#define SINEW_PLANNER_OPTIMIZE_NOISE_H_

#include "physics/base/lane.h"
#include "planner/base/grid.h"
#include "planner/optimize/controls.h"

// Holds what the noise of a candidate depends on, besides its number.
typedef struct SnNoise {
  uint64_t seed;
  uint32_t plan;             // number of the plan
  uint32_t iteration;        // number of the iteration of the plan
  int spacing;               // base steps between knots, >= 1
  int phase;                 // base steps from the first knot to the first row, 0 <= phase < spacing
  int knots;                 // sn_noise_knots() of the horizon
  int interpolation;         // SnSplineKind
  int colour;                // SnNoiseColour
  sn_real scale;             // root mean square, in halves of a control's range
  const sn_real *deviation;  // (nu, knots) factors of the scale for each control at each knot; NULL: 1
  SnGrid grid;               // time grid of the rows: each has the mean over its base steps
} SnNoise;

// Holds an SnNoise as a backend is asked for it: in doubles, whatever it computes in.
typedef struct SnNoiseSettings {
  uint64_t seed;
  uint32_t plan, iteration;
  int spacing, phase, knots, interpolation, colour;
  double scale;
  const sn_number *deviation;
  SnGrid grid;
} SnNoiseSettings;

// Returns the same in the number type of the engine, without its deviation, whose place is the caller's business. Runs
// on the host only.
static inline SnNoise sn_noise(const SnNoiseSettings *s) {
  return (SnNoise){.seed = s->seed,
                   .plan = s->plan,
                   .iteration = s->iteration,
                   .spacing = s->spacing,
                   .phase = s->phase,
                   .knots = s->knots,
                   .interpolation = s->interpolation,
                   .colour = s->colour,
                   .scale = (sn_real)s->scale,
                   .grid = s->grid};
}

// Computes coefficients of the fractional integration over `knots` knots into h (knots), scaled to unit root mean
// square.
SN_FUNC void sn_noise_filter(int colour, int knots, sn_real *h);

// Computes the noise of one control at the knots, in halves of its range, into out (knots). Uses scratch `white`
// (knots).
SN_FUNC void sn_noise_column(const SnNoise *noise, int candidate, int control, const sn_real *h, sn_real *white,
                             sn_real *out);
// Computes one control of ctrl (nstep, nu): that of base plus its noise at the knots, clamped to its range.
SN_FUNC void sn_noise_add(const SnModel *m, const SnNoise *noise, int control, const sn_real *knot, const sn_real *base,
                          int nstep, sn_real *ctrl);

// Returns the numbers of scratch that the controls of a candidate take, for all lanes of a world; lanes beyond the
// controls use none.
SN_INLINE int sn_candidate_scratch(int knots, int lanes) { return knots * (1 + 2 * lanes); }
// Computes the controls of candidate `candidate` (0: the base, as it is) into ctrl (nstep, nu): base plus noise,
// clamped to the ranges. Columns are shared among the lanes; ends with a sync.
SN_FUNC void sn_candidate_controls(const SnModel *m, const SnNoise *noise, int candidate, SnLane *lane,
                                   const sn_real *base, int nstep, sn_real *scratch, sn_real *ctrl);

#endif
