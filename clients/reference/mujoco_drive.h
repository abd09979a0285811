// MuJoCo alone: reading a model, and the smooth controls that drive it. Nothing of our engine is seen here, so programs
// that use the public header need no other.
#ifndef SINEW_CLIENTS_REFERENCE_MUJOCO_DRIVE_H_
#define SINEW_CLIENTS_REFERENCE_MUJOCO_DRIVE_H_

#include <mujoco/mujoco.h>
#include <stdint.h>

#include "physics/base/status.h"

// Reads an MJCF file with MuJoCo. Returns NULL and err with MuJoCo's own text on failure; the caller frees the model
// with mj_deleteModel.
mjModel *sn_oracle_read_file(const char *path, SnError *err);
// Reads an MJCF string likewise.
mjModel *sn_oracle_read_string(const char *xml, SnError *err);

// Names the solver that a model asks MuJoCo for; that of our engine is always Newton's.
const char *sn_mujoco_solver(const mjModel *m);

// Draws a number, uniform in [-1, 1).
double sn_mujoco_uniform(uint64_t *rng);

// Puts MuJoCo into its first keyframe, or qpos0 when the model has none.
void sn_mujoco_start(const mjModel *m, mjData *d);
// Sets d->ctrl at time t [s]: the sum of three sine waves between 0.3 and 3 Hz for every control. Frequencies and
// phases follow from seed and index alone. The sum fills the control's range ([-1, 1] where it has none). `rng`, which
// may be NULL, gets a state that follows from the seed.
void sn_mujoco_controls(const mjModel *m, mjData *d, uint64_t seed, double t, uint64_t *rng);

#endif
