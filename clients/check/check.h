// Our derivatives against central differences: the figures behind sinew-check --gradient.
//
// Steps: the Jacobians A, B of a step (sn_step_jacobian) against MuJoCo's central differences, at the states that
// MuJoCo passes through under seeded smooth controls. The error of a step is max|ours - ref| / (max|ref| + 1e-6). A
// step is left out where the differences with 1e-6 and with 1e-5 disagree by more than 1e-6 by the same measure: it is
// not smooth there, or MuJoCo's own values are not certain enough.
//
// It is compared all the same, and counted as curved, where a third difference shows that the two disagree by the
// square of their step alone, as those of a smooth function do (impedances change within a millimetre): the reference
// is then their limit. What makes a step uncertain tends to last, so after such a step the run starts again at a state
// where the differences agree.
//
// Rollout: over the longest stretch of compared steps of that run, from the same state, under the same controls, the
// derivative of a cost of all positions, velocities, activations, controls and tendon lengths along random directions
// in controls and initial state, against central differences of our own rollout. Directions are left out by the same
// rule, and as long as more than a quarter of them is, the rollout is halved; its largest error counts at any length.
#ifndef SINEW_CLIENTS_CHECK_CHECK_H_
#define SINEW_CLIENTS_CHECK_CHECK_H_

#include "clients/reference/mujoco_reference.h"

typedef struct CheckJacobian {
  double median, max;     // of the errors of the compared steps; 0 where there are none
  int step, row, column;  // of the largest; -1: none
} CheckJacobian;

typedef struct CheckGradientReport {
  CheckJacobian A, B;
  int steps_compared, steps_skipped;
  int steps_curved;  // of the compared ones
  double rollout_max;
  int rollout_steps;
  int rollout_compared, rollout_skipped;
  int rollout_curved;  // of the compared ones
} CheckGradientReport;

// Runs MuJoCo for `steps` steps from the start of a drive; the world is ours, of model m. Allocates while it runs.
SnCode check_gradient(SnOracle *o, const SnModel *m, SnWorld *w, int steps, uint64_t seed, CheckGradientReport *r,
                      SnError *err);
// A and B at most 1e-5 in the median and 1e-4 at most, rollouts at most 1e-4, at most a quarter of each left out.
bool check_gradient_agrees(const CheckGradientReport *r);

#endif
