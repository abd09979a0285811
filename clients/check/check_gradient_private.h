// Shared by check_gradient.c (steps) and check_rollout.c.
#ifndef SINEW_CLIENTS_CHECK_CHECK_GRADIENT_PRIVATE_H_
#define SINEW_CLIENTS_CHECK_CHECK_GRADIENT_PRIVATE_H_

#include "clients/check/check.h"

#define CHECK_FINE 1e-6  // steps of the differences
#define CHECK_COARSE 1e-5
#define CHECK_BETWEEN 3e-6
#define CHECK_CERTAIN 1e-6  // most that the first two may disagree

// Where the fine and coarse differences f, c disagree because the function is curved, they do so by the square of their
// step: then those between, b, tell, and f becomes their limit. False where they disagree otherwise. n numbers each.
bool check_extrapolate(double *f, const double *c, const double *b, int n);

// The state that a rollout starts from, its controls (room for all steps, nu) and its length.
typedef struct CheckStretch {
  double time;
  sn_real *qpos, *qvel, *act, *mocap_pos, *mocap_quat, *warm, *ctrl;
  int steps;
} CheckStretch;

bool check_stretch_init(CheckStretch *s, const SnModel *m, int steps);
void check_stretch_free(CheckStretch *s);
// One more step at MuJoCo's state, with its controls; the first one makes the state the start.
void check_stretch_add(CheckStretch *s, SnOracle *o);

// Compares the rollout from `start`; half as long, as long as more than a quarter of its directions is left out: the
// longer, the likelier a direction meets a place where a step is not smooth.
SnCode check_rollout(SnOracle *o, const SnModel *m, CheckStretch *start, CheckGradientReport *r, SnError *err);

#endif
