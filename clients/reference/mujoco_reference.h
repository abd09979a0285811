// MuJoCo as oracle: the same model and state in both engines, in one process.
//
// Used by the checker, the benchmark and the tests. One thread; MuJoCo's log handler is the caller's business
// (sn_mujoco_handlers in physics/import/import_mjcf.h).
#ifndef SINEW_CLIENTS_REFERENCE_MUJOCO_REFERENCE_H_
#define SINEW_CLIENTS_REFERENCE_MUJOCO_REFERENCE_H_

#include <mujoco/mujoco.h>

#include "physics/world/world.h"

typedef struct SnOracle {
  mjModel *mj;
  mjData *d;
  SnModel *m;
  SnWorld w;
  void *memory;
  SnLaneShared shared;
  SnLane lane;  // one lane
  uint64_t rng;
} SnOracle;

// Reads an MJCF file or string with MuJoCo. NULL and err with MuJoCo's own text on failure; the caller frees
// with mj_deleteModel.
mjModel *sn_oracle_read_file(const char *path, SnError *err);
mjModel *sn_oracle_read_string(const char *xml, SnError *err);

// Prepares MuJoCo for a comparison. Newton's solver, 1e-14 and 200 iterations: PGS and CG, which a model may ask for,
// stop short of the optimum. Convex collision 1e-12 and 500 iterations. Islands off, so that MuJoCo fills efc_state.
// No reset of a state that diverged: it would stand in the place of a step's result.
void sn_oracle_tighten(mjModel *mj);

// Takes over mj (also when it fails), imports it and makes data and a world, both in their reset state.
SnCode sn_oracle_open(SnOracle *o, mjModel *mj, SnError *err);
// Frees all of it; a zeroed oracle is allowed.
void sn_oracle_free(SnOracle *o);

// Uniform in [-1, 1), from o->rng (sn_oracle_open sets 1).
double sn_oracle_uniform(SnOracle *o);
// A random state of MuJoCo: joints inside their range (or +-1 rad about qpos0), qvel in +-speed,
// act in [0,1], ctrl in its range (or +-1). Does not call mj_forward.
void sn_oracle_randomize(SnOracle *o, double speed);

// Copies time, qpos, qvel, act, ctrl, mocap and warm start from MuJoCo to our world; clears its warnings.
void sn_oracle_copy_state(SnOracle *o);
// The same and every field of world_fields.inc that mjData also has (call mj_forward first), contacts and
// constraint rows included (J in the pattern of our own stage when that has run and covers it, else all non-zeros).
void sn_oracle_fill(SnOracle *o);
// The part of sn_oracle_fill that stage `stage` writes.
void sn_oracle_fill_stage(SnOracle *o, SnStage stage);

// max|ours - ref| / (max|ref| + 1e-6); n may be 0; NaN in ours gives NaN. `where`, which may be NULL, gets the
// index of the worst element.
double sn_oracle_error_at(const sn_real *ours, const double *ref, int n, int *where);
double sn_oracle_error(const sn_real *ours, const double *ref, int n);

#endif
