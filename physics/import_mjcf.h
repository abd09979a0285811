// MJCF -> SnModel, through MuJoCo's compiler. Linked into sinew-import, the tests, the checker, the
// benchmark and the plant; never into the daemon.
#ifndef SINEW_PHYSICS_IMPORT_MJCF_H_
#define SINEW_PHYSICS_IMPORT_MJCF_H_

#include "physics/model.h"

typedef struct mjModel_ mjModel;

// Copies a compiled MuJoCo model. NULL and err (every unsupported element named) on failure.
SnModel *sn_import_mjmodel(const mjModel *mj, SnError *err);

#endif
