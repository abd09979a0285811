// Collision: the contacts of a world, and their adjoint. physics/step/step.h and physics/world/adjoint.h say what
// stages, lanes and adjoints have in common.
#ifndef SINEW_PHYSICS_COLLISION_COLLISION_H_
#define SINEW_PHYSICS_COLLISION_COLLISION_H_

#include "physics/world/adjoint.h"

// Computes contact[ncon] from the frames of geoms: in MuJoCo's order, parameters mixed.
SN_FUNC void sn_collision(const SnModel *m, SnWorld *w, SnLane *lane);
// Adds what con_dist_bar, con_pos_bar and con_frame_bar give to wrench.
SN_FUNC void sn_collision_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

#endif
