// MuJoCo as oracle: the same model and state in both engines, in one process, and the controls that drive them.
//
// The checker, the benchmark and the tests use it. One thread. MuJoCo's log handler is the caller's business
// (mujoco_log.h).
#ifndef SINEW_CLIENTS_REFERENCE_MUJOCO_REFERENCE_H_
#define SINEW_CLIENTS_REFERENCE_MUJOCO_REFERENCE_H_

#include "clients/reference/mujoco_drive.h"
#include "physics/world/world.h"

// Holds both engines. Zeroed: empty.
typedef struct SnOracle {
  mjModel *mj;
  mjData *d;
  SnModel *m;
  SnWorld w;
  void *memory;  // memory of the world
  SnLaneShared shared;
  SnLane lane;  // one lane
  uint64_t rng;
} SnOracle;

// Prepares MuJoCo for a comparison.
//   solver       Newton, 1e-14 and 200 iterations: PGS and CG, which a model may ask for, stop short of the optimum
//   collision    convex shapes to 1e-12 and 500 iterations
//   islands      off, so that MuJoCo fills efc_state
//   auto-reset   off: a reset of a state that diverged would stand in the place of a step's result
void sn_oracle_tighten(mjModel *mj);

// Takes over mj (also when it fails), imports it and makes data and a world, both in their reset state.
SnCode sn_oracle_open(SnOracle *o, mjModel *mj, SnError *err);
// Frees all of it; accepts an empty oracle.
void sn_oracle_free(SnOracle *o);

// Draws a number, uniform in [-1, 1), from o->rng (sn_oracle_open sets 1).
double sn_oracle_uniform(SnOracle *o);
// Draws a random state of MuJoCo and does not call mj_forward. Joints are in their range (or +-1 rad about qpos0), qvel
// in +-speed, act in [0, 1], ctrl in its range (or +-1).
void sn_oracle_randomize(SnOracle *o, double speed);

// Do as sn_mujoco_start and sn_mujoco_controls do, to the oracle's MuJoCo; o->rng gets what they leave.
void sn_drive_start(SnOracle *o);
void sn_drive_controls(SnOracle *o, uint64_t seed, double t);

// Copies time, qpos, qvel, act, ctrl, mocap and warm start from MuJoCo to our world; clears its warnings.
void sn_oracle_copy_state(SnOracle *o);
// Copies the state and every field of world_fields.inc that mjData also has; call mj_forward first. Contacts and
// constraint rows are included. J takes the pattern of our own stage when that has run and covers it, else all
// non-zeros.
void sn_oracle_fill(SnOracle *o);
// Copies the part of sn_oracle_fill that stage `stage` writes.
void sn_oracle_fill_stage(SnOracle *o, SnStage stage);

// Returns max|ours - ref| / (max|ref| + 1e-6) over n numbers, which may be none; NaN in ours gives NaN. Stores the
// index of the worst element in `where`, which may be NULL.
double sn_oracle_error_at(const sn_real *ours, const double *ref, int n, int *where);
// Returns that error alone.
double sn_oracle_error(const sn_real *ours, const double *ref, int n);

#endif
