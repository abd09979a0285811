// Declares what the files about MuJoCo's own objects share. They use the structures of MuJoCo's headers and none of its
// functions.
#ifndef SINEW_PYTHON_MUJOCO_H_
#define SINEW_PYTHON_MUJOCO_H_

#include <mujoco/mujoco.h>
#include <mujoco/mjxmacro.h>

#include "clients/python/core/core_private.h"

namespace sinew_python {

// Writes contacts and rows of constraints of a body's last step into the arena of an MjData, where MuJoCo's own step
// leaves them. Leaves empty what a SinewData does not tell: islands, the dual problem, solref and the like of contacts.
// Returns false, with neither contacts nor rows, when the arena is too small.
bool write_arena(SinewData *body, const mjModel *m, mjData *d);

}  // namespace sinew_python

#endif
