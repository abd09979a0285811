// Models from MJCF files, without MuJoCo in this process: sinew-import runs as a child under limits, and what it wrote
// is kept in a folder, so that a model that has not changed loads in a millisecond.
//
// An entry is found by the path of the XML and holds for the contents of every file that the model was made of (the
// XML, its includes, meshes, ...): change one, and it is imported again.
#ifndef SINEW_PHYSICS_IMPORT_MODEL_CACHE_H_
#define SINEW_PHYSICS_IMPORT_MODEL_CACHE_H_

#include "physics/import/model_inputs_private.h"
#include "physics/model/model.h"

typedef struct SnModelCacheDef {
  const char *folder;    // of the cache, made when missing; NULL or "": sinew/models in the user's cache folder
  const char *importer;  // the program; NULL or "": sinew-import next to the running program
  double seconds;        // limit on processor time and on real time of one import [s]
  size_t bytes;          // limit on its memory
} SnModelCacheDef;

// 60 s, 4 GiB, default folder and program.
SnModelCacheDef sn_default_model_cache_def(void);

typedef struct SnModelCache SnModelCache;

// Makes the folder and finds the program. NULL and err (SN_ERR_IO, SN_ERR_NOT_FOUND, SN_ERR_ARGUMENT) on failure; the
// caller closes it.
SnModelCache *sn_model_cache_open(const SnModelCacheDef *def, SnError *err);
void sn_model_cache_close(SnModelCache *c);

// Ends the imports under way and lets no more begin: they fail with SN_ERR_STATE. Any thread.
void sn_model_cache_cancel(SnModelCache *c);

// The model of an MJCF file, or of one that MuJoCo has compiled (.mjb); the caller frees it with sn_model_free. *inputs
// gets the files that it was made of, NULL where they cannot be told; the caller frees them. Blocks for as long as an
// import takes, at most def.seconds and a little; any number of threads and processes may call it at once. On failure
// NULL and err, with the importer's own text: SN_ERR_UNSUPPORTED (all of it), SN_ERR_FORMAT (cannot be loaded, or the
// loader crashed), SN_ERR_LIMIT (memory, sizes), SN_ERR_TIMEOUT, SN_ERR_IO (no such file, no program, no space).
SnModel *sn_model_cache_load(SnModelCache *c, const char *file, SnModelInputs **inputs, SnError *err);

#endif
