// Constants of a model that follow from its dynamics at qpos0, computed anew: on the host, when models are made.
#ifndef SINEW_PHYSICS_STEP_CONSTANTS_H_
#define SINEW_PHYSICS_STEP_CONSTANTS_H_

#include "physics/model/model.h"

// Makes a copy whose constants are those of its other numbers, as mj_setConst makes them. They are dof_M0,
// dof_invweight0, body_invweight0, body_subtreemass, tendon_length0, tendon_invweight0, actuator_acc0. In eq_data they
// are the second anchor of a connect between bodies, and the pose of a weld that holds at qpos0. Returns NULL and sets
// err on failure: SN_ERR_LIMIT, SN_ERR_MEMORY.
SnModel *sn_model_with_constants(const SnModel *m, SnError *err);

#endif
