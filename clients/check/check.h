// Our derivatives against central differences: the figures behind sinew-check --gradient.
//
// Steps (check_gradient.c). The Jacobians A, B of a step (sinew_step_jacobian) are compared with MuJoCo's central
// differences, at the states that MuJoCo passes through under seeded smooth controls.
//
//   error of a step   max|ours - ref| / (max|ref| + 1e-6)
//   left out          differences with 1e-6 and with 1e-5 disagree by more than 1e-6 by the same measure
//   curved            left out by that rule, but they disagree by the square of their step alone
//
// A step that is left out is not smooth there, or MuJoCo's own values are not certain enough. A curved step is compared
// all the same: a third difference shows that it behaves as a smooth function does. The limit of the differences is
// then the reference. Impedances, which change within a millimetre, make such steps. Uncertain steps tend to follow
// each other, so after one the run starts again at a state where the differences agree.
//
// Rollout (check_rollout.c). It runs over the longest stretch of compared steps of that run, from the same state, under
// the same controls. The cost is one of all positions, velocities, activations, controls and tendon lengths. The
// derivative along random directions in controls and initial state is compared with central differences of our own
// rollout. Directions are left out by the rule of steps. The rollout is halved as long as more than a quarter of the
// directions is left out; the largest error counts at any length.
//
// Motion by chosen steps (check_integrate.c). Controls are held, tolerances are 1e-4 to 1e-8. The reference is MuJoCo's
// RK4 with steps 32 times as fine as the model's. Steps of twice that size tell how certain it is. Slopes along random
// directions are compared with differences of runs at tolerance 1e-11. A direction is left out where differences with
// 1e-6 and with 1e-5 disagree by more than 1e-4.
#ifndef SINEW_CLIENTS_CHECK_CHECK_H_
#define SINEW_CLIENTS_CHECK_CHECK_H_

#include "clients/include/sinew.h"
#include "clients/reference/mujoco_drive.h"

#define CHECK_FINE 1e-6     // step of the first differences
#define CHECK_COARSE 1e-5   // step of the second ones
#define CHECK_BETWEEN 3e-6  // step of those that tell a curved function
#define CHECK_CERTAIN 1e-6  // most that the first two may disagree

// Holds the errors of one Jacobian over a run.
typedef struct CheckJacobian {
  double median, max;     // over the compared steps; 0 where there are none
  int step, row, column;  // place of the largest error; -1: none
} CheckJacobian;

// Holds the outcome of a check of gradients.
typedef struct CheckGradientReport {
  CheckJacobian A, B;
  int steps_compared, steps_skipped;
  int steps_curved;    // among the compared ones
  double rollout_max;  // largest error of a direction
  int rollout_steps;
  int rollout_compared, rollout_skipped;  // directions
  int rollout_curved;                     // among the compared ones
} CheckGradientReport;

// Holds what a motion at a tolerance came to.
typedef struct CheckIntegrationRow {
  double tolerance, error;  // the largest error of positions, velocities, activations, each in units of its size
  int accepted, rejected, evaluations;
} CheckIntegrationRow;

enum { CHECK_TOLERANCES = 3 };

// Holds the outcome of a check of motions by chosen steps.
typedef struct CheckIntegrationReport {
  double seconds;
  double uncertainty;  // error of the reference, by the same measure, when its steps are twice as long
  CheckIntegrationRow row[CHECK_TOLERANCES];
  double slope_error;  // largest error of a direction, at the last tolerance
  int slopes_compared, slopes_skipped;
} CheckIntegrationReport;

// Holds a stretch of steps: the state it starts from, and its controls.
typedef struct CheckStretch {
  double time;
  double *qpos, *qvel, *act, *mocap;  // (nq), (nv), (na), (nmocap, 7)
  double *history;                    // (nhistory + nplastic)
  double *ctrl;                       // (steps, nu), with memory for all steps of a run
  int steps;
} CheckStretch;

// Holds both engines, as a user has them, with the same model.
typedef struct CheckBodies {
  const mjModel *mj;
  mjData *d;
  const SinewModel *model;
  SinewData *data;
  uint64_t rng;
} CheckBodies;

// Runs MuJoCo for `steps` steps from the start of a drive and fills the report. Allocates while it runs.
SinewStatus check_gradient(CheckBodies *b, int steps, uint64_t seed, CheckGradientReport *r, SinewError *err);
// Returns true when A and B are right to 1e-5 in the median and to 1e-4 at most, and rollouts to 1e-4. At most a
// quarter of each may be left out.
bool check_gradient_agrees(const CheckGradientReport *r);
// Returns true when what was compared is right, but more than that was left out.
bool check_gradient_undecided(const CheckGradientReport *r);

// Puts MuJoCo where a step is smooth: moving, muscles active, joints and late controls inside of their ranges.
void check_start_moving(CheckBodies *b, uint64_t seed);

// Compares a motion of `steps` steps, rounded up to a multiple of four, and fills the report. The motion is halved as
// long as MuJoCo's own steps are uncertain by more than 1e-3. Fails where a run of ours does not come to its end, and
// with SINEW_ERR_UNSUPPORTED where chosen steps do not support the model.
// Allocates while it runs.
SinewStatus check_integration(CheckBodies *b, int steps, uint64_t seed, CheckIntegrationReport *r, SinewError *err);
// Returns true when the motion at the last tolerance is right to 1e-6 and four times the reference's uncertainty, and
// slopes to 1e-3. The uncertainty may be 1e-3, and half of the slopes may be left out.
bool check_integration_agrees(const CheckIntegrationReport *r);
// Returns true when what was compared is right, but more than that was left out, or the reference is too uncertain.
bool check_integration_undecided(const CheckIntegrationReport *r);

// Tells whether a function is curved where its fine and coarse differences f, c (n each) disagree. Such differences
// disagree by the square of their step, which those between, b, show: f becomes the limit of all. Returns false, and
// leaves f, where they disagree otherwise.
bool check_extrapolate(double *f, const double *c, const double *b, int n);

// Returns n zeros, which the caller frees; NULL when out of memory.
double *check_numbers(size_t n);
// Writes the poses of MuJoCo's mocap bodies, (nmocap, 7): positions, then quaternions.
void check_mocap(const mjModel *m, const mjData *d, double *mocap);

// Starts a stretch without steps, with memory for `steps` of them. Returns false when out of memory; the caller frees
// the stretch either way.
bool check_stretch_init(CheckStretch *s, const mjModel *m, int steps);
// Frees what a stretch holds; accepts a zeroed one.
void check_stretch_free(CheckStretch *s);
// Adds a step at MuJoCo's state, with its controls. The first one makes that state the start.
void check_stretch_add(CheckStretch *s, const CheckBodies *b);

// Compares the rollout over the stretch, and halves the stretch as long as more than a quarter of the directions is
// left out. The longer it is, the likelier a direction meets a place where a step is not smooth.
SinewStatus check_rollout(CheckBodies *b, CheckStretch *stretch, CheckGradientReport *r, SinewError *err);

#endif
