// Between the files of horizon.h.
#ifndef SINEW_PHYSICS_STEP_HORIZON_PRIVATE_H_
#define SINEW_PHYSICS_STEP_HORIZON_PRIVATE_H_

#include "physics/step/horizon.h"

// Points to what is kept of a step: its start, and its stages with the one at its end. The solver's warm start of a
// stage on the way back is the acceleration itself.
typedef struct SnKeptStep {
  sn_real *time;               // (2) start, size [s]
  sn_real *qpos, *qvel, *act;  // the state at its start
  sn_real *rate, *acc, *adot;  // (stages + 1, nv), (stages + 1, nv), (stages + 1, na)
} SnKeptStep;

struct SnHorizonScratch {
  void *memory;
  SnLaneShared lane_shared;
  const SnTableau *rk;
  sn_real *record;  // (max(keep, 1), stride)
  int *segment;     // (max(keep, 1)) the knot before each step
  size_t stride;
  sn_real *xi, *dv, *dact;  // (nv), (nv), (na) a weighted sum of stages
  sn_real *quat_error;      // (nq) error of qpos
  sn_real *moved;           // (nv) the velocity integrated in a step
  sn_real *ctrl;            // (nu) controls of a run without knots
  double *weight;           // (stages + 1)
  // the way back
  SnAdjoint adjoint;
  sn_real *start_bar, *next_bar;           // (2 nv + na) of the state at the start and at the end of a step
  sn_real *state_bar, *xi_bar;             // (2 nv + na), (nv) of a stage's state
  sn_real *rate_bar, *acc_bar, *adot_bar;  // (stages + 1, .)
  bool done;
  // the controller
  sn_real last, before;  // inverse errors of the last accepted steps
};

// ---- horizon.c ----

// Returns what is kept of step k; without memory for it the place of the step that is being taken.
SnKeptStep sn_horizon_kept(const SnHorizon *h, int k);
// Sets xi, dv, dact to the sums of the first n stages with these weights.
void sn_horizon_sum(SnHorizon *h, const SnKeptStep *s, const double *weight, int n);
// Sets the world's state to the start of the step moved by dt times those sums; `limit`: activations to their ranges.
void sn_horizon_move(SnHorizon *h, const SnKeptStep *s, sn_real dt, bool limit);
// Returns the knot k whose controls hold at time t, together with those of knot k + 1: *part is the share of these.
int sn_horizon_controls(const SnHorizon *h, const SnHorizonInput *in, int segment, sn_real t, sn_real *part);
// Evaluates the dynamics of a stage at the state to which sn_horizon_move has brought the world, with its controls.
// Returns false where something is not finite.
bool sn_horizon_evaluate(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment, int stage,
                         sn_real dt);
// Does the same and keeps what it computes.
bool sn_horizon_forward(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment, int stage,
                        sn_real dt);

// ---- horizon_control.c ----

// Returns the error of the step, in units of the tolerance: the world is at its end.
sn_real sn_horizon_error(SnHorizon *h, const SnKeptStep *s);
// Returns the factor from this step's size to the next, and takes note of its error.
sn_real sn_horizon_factor(SnHorizon *h, sn_real error, bool accepted);
// Returns the size of the first step, with one more evaluation. The first stage of s has been evaluated.
sn_real sn_horizon_first(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s);

#endif
