// Seeded smooth controls and a starting state, the same for the checker and the benchmark.
#ifndef SINEW_CLIENTS_REFERENCE_MUJOCO_DRIVE_H_
#define SINEW_CLIENTS_REFERENCE_MUJOCO_DRIVE_H_

#include "clients/reference/mujoco_reference.h"

// Puts MuJoCo into its first keyframe, or qpos0 when the model has none.
void sn_drive_start(SnOracle *o);

// Sets d->ctrl at time t [s]: for every control the sum of three sine waves between 0.3 and 3 Hz, whose frequencies
// and phases follow from seed and index alone, filling its range ([-1, 1] where it has none).
void sn_drive_controls(SnOracle *o, uint64_t seed, double t);

#endif
