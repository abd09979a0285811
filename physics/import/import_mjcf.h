// MJCF, or a model that MuJoCo has compiled -> SnModel. Linked into sinew-import, the tests, the checker, the
// benchmark and the plant; never into the daemon.
//
// Lists (import_rules.inc and those of model.h) fix the fate of each field of MuJoCo's model: copied, without effect,
// or refused unless it has its default. Nothing is dropped silently.
#ifndef SINEW_PHYSICS_IMPORT_IMPORT_MJCF_H_
#define SINEW_PHYSICS_IMPORT_IMPORT_MJCF_H_

#include "physics/model/model.h"

typedef struct mjModel_ mjModel;

// Compiles an MJCF file, or reads a model that MuJoCo has compiled and saved (mj_saveModel). The ending .mjb tells the
// latter, which only the MuJoCo that saved it reads. The caller frees the model with mj_deleteModel. On failure the
// result is NULL, and why[size] holds MuJoCo's own text. For a compiled file MuJoCo gives its text to the log handler,
// as a warning, and why is "".
mjModel *sn_import_read(const char *path, char *why, int size);

// Does the same for bytes that count as those of a file in `folder`, an absolute path; its other files are found from
// there. The first bytes tell a compiled model.
mjModel *sn_import_read_bytes(const void *bytes, int size, const char *folder, char *why, int why_size);

// Lists everything in mj that the engine does not support, one line each, naming element and feature ("geom 'head':
// hfield collision is not supported"). *count gets the number of lines. The text is "" when all is supported, NULL
// when out of memory; the caller frees it.
char *sn_import_unsupported(const mjModel *mj, int *count);

// Tells for every geom (ngeom) whether it may touch another: by a pair, or through the filters of types, welds and
// excludes. Returns NULL when out of memory; the caller frees the result.
bool *sn_import_touchable(const mjModel *mj);

// Copies a compiled MuJoCo model. On failure it returns NULL and err:
//   SN_ERR_UNSUPPORTED  lines of sn_import_unsupported, as many as the text holds, and how many more there are
//   SN_ERR_LIMIT        a size over its cap
//   SN_ERR_FORMAT       NaN, a bad time step or other values that cannot be simulated
//   SN_ERR_MEMORY
SnModel *sn_import_mjmodel(const mjModel *mj, SnError *err);

#endif
