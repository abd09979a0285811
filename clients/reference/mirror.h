// A body of libsinew beside one of MuJoCo, through the public header: what a user does who has both.
#ifndef SINEW_CLIENTS_REFERENCE_MIRROR_H_
#define SINEW_CLIENTS_REFERENCE_MIRROR_H_

#include <mujoco/mujoco.h>

#include "clients/include/sinew.h"

// Makes libsinew's model of one that MuJoCo has compiled, with its present options. Returns NULL and err on failure;
// the caller frees the model.
SinewModel *sn_mirror_model(const mjModel *m, SinewError *err);

// Puts a body of that model into MuJoCo's state: time, positions, velocities, activations, controls, mocap poses and
// the solver's warm start.
void sn_mirror_state(SinewData *data, const mjModel *m, const mjData *d);

#endif
