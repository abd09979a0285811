// MJCF, or a model that MuJoCo has compiled -> SnModel. Linked into sinew-import, the tests, the checker, the
// benchmark and the plant; never into the daemon.
//
// What happens to each field of MuJoCo's model is fixed by lists (import_rules.inc and those of model.h): copied,
// without effect, or refused unless it has its default. Nothing is dropped silently.
#ifndef SINEW_PHYSICS_IMPORT_IMPORT_MJCF_H_
#define SINEW_PHYSICS_IMPORT_IMPORT_MJCF_H_

#include "physics/model/model.h"

typedef struct mjModel_ mjModel;

// The compiled model of an MJCF file, or of one that MuJoCo has compiled and saved (mj_saveModel), which is told by its
// name's ending .mjb; only the MuJoCo that saved it reads it. The caller frees it with mj_deleteModel. On failure NULL,
// and MuJoCo's own text in why; for a compiled file MuJoCo gives that to its log handler, as a warning, and why is "".
mjModel *sn_import_read(const char *path, char *why, int size);

// Everything in mj that the engine does not support, one line each, naming element and feature ("geom 'head':
// hfield collision is not supported"). *count gets the number of lines. The text is "" when all is supported, NULL
// when out of memory; the caller frees it.
char *sn_import_unsupported(const mjModel *mj, int *count);

// For every geom, whether it may touch another: by a pair, or through the filters of types, welds and excludes. NULL
// when out of memory; the caller frees it.
bool *sn_import_touchable(const mjModel *mj);

// Copies a compiled MuJoCo model. On failure NULL and err: SN_ERR_UNSUPPORTED (as many lines of
// sn_import_unsupported as its text holds, and how many more there are), SN_ERR_LIMIT (a size over its cap),
// SN_ERR_FORMAT (NaN, a bad time step or other values that cannot be simulated), SN_ERR_MEMORY.
SnModel *sn_import_mjmodel(const mjModel *mj, SnError *err);

#endif
