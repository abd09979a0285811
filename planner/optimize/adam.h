// Adam on the controls of a plan (Kingma and Ba, "Adam: a method for stochastic optimization", 2015): the arithmetic of
// one start. Unknowns are offsets at knots, in normalised units, added to base controls; with a knot for every step the
// controls themselves are sought.
#ifndef SINEW_PLANNER_OPTIMIZE_ADAM_H_
#define SINEW_PLANNER_OPTIMIZE_ADAM_H_

#include "physics/base/lane.h"
#include "planner/base/grid.h"
#include "planner/optimize/controls.h"

// Says how offsets (knots, nu) become controls: value at row t of the spline over knots at x = (t + phase) / spacing.
// On a time grid it is the mean over the base steps t of a row.
typedef struct SnAdamGrid {
  int nstep;
  int knots;          // sn_noise_knots(base steps, spacing, phase)
  int spacing;        // base steps between knots, >= 1
  int phase;          // base steps from the first knot to the first row, 0 <= phase < spacing
  int interpolation;  // SnSplineKind
  SnGrid time;        // time grid of the rows; zeroed where every row has a knot of its own
} SnAdamGrid;

typedef struct SnAdamRule {
  sn_real rate, beta1, beta2, epsilon;
  int clip;  // SnClip
  sn_real clip_norm;
} SnAdamRule;

// Holds an SnAdamRule as a backend is asked for it: in doubles, whatever it computes in.
typedef struct SnAdamSettings {
  double rate, beta1, beta2, epsilon;
  int clip;  // SnClip
  double clip_norm;
} SnAdamSettings;

// Returns the rule that a planner's settings ask for. Runs on the host only.
static inline SnAdamSettings sn_adam_settings(const SnSettings *s) {
  return (SnAdamSettings){.rate = s->adam_rate,
                          .beta1 = s->adam_beta1,
                          .beta2 = s->adam_beta2,
                          .epsilon = s->adam_epsilon,
                          .clip = s->adam_clip,
                          .clip_norm = s->adam_clip_norm};
}

// Returns a rule in the number type of the engine. Runs on the host only.
static inline SnAdamRule sn_adam_rule(const SnAdamSettings *s) {
  return (SnAdamRule){.rate = (sn_real)s->rate,
                      .beta1 = (sn_real)s->beta1,
                      .beta2 = (sn_real)s->beta2,
                      .epsilon = (sn_real)s->epsilon,
                      .clip = s->clip,
                      .clip_norm = (sn_real)s->clip_norm};
}

// Holds what Adam remembers of the gradients g: means of g and g^2 (knots, nu), and beta1^n, beta2^n after n of them.
typedef struct SnAdamMoments {
  sn_real *first, *second;
  sn_real power1, power2;
} SnAdamMoments;

// Names knots, or rows, [from, to) of a plan.
typedef struct SnPart {
  int from, to;
} SnPart;

// Writes some rows of the controls (nstep, nu): base + unit * spline(offset), clamped to the ranges. Offsets of 0 give
// the base, bit for bit. Ends with a sync, as all of these.
SN_FUNC void sn_adam_controls(const SnModel *m, const SnAdamGrid *g, SnLane *lane, const sn_real *base,
                              const sn_real *offset, SnPart rows, sn_real *ctrl);

// Applies the chain rule backwards: writes the gradient (knots, nu) of some knots from ctrl_bar (nstep, nu). A control
// beyond its range before the clamp has no derivative; at its bound it has that inside.
SN_FUNC void sn_adam_gradient(const SnModel *m, const SnAdamGrid *g, SnLane *lane, const sn_real *base,
                              const sn_real *offset, const sn_real *ctrl_bar, SnPart knots, sn_real *gradient);

// Limits the gradient in place.
SN_FUNC void sn_adam_clip(const SnModel *m, const SnAdamGrid *g, const SnAdamRule *rule, SnLane *lane,
                          sn_real *gradient);

// Takes the gradient into the moments and moves the offsets: offset -= rate * mean / (root of mean square + epsilon),
// both means corrected for their start at zero.
SN_FUNC void sn_adam_step(const SnModel *m, const SnAdamGrid *g, const SnAdamRule *rule, SnLane *lane,
                          const sn_real *gradient, SnAdamMoments *moments, sn_real *offset);

// Cuts the offsets of some knots to what at least one of the controls that they raise can use. This is exact for a knot
// a step; with fewer knots it keeps offsets from running away behind the clamp.
SN_FUNC void sn_adam_project(const SnModel *m, const SnAdamGrid *g, SnLane *lane, const sn_real *base, SnPart knots,
                             sn_real *offset);

#endif
