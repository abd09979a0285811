// Models from MJCF files, without MuJoCo in this process. sinew-import runs as a child under limits. The results are
// kept in a folder, so that a model that has not changed loads in a millisecond.
//
// An entry is found by the path of the XML. It holds for the contents of every file that the model was made of: the
// XML, its includes, meshes and so on. A change of any of them leads to a new import. Contents are read again where a
// file's place, size or time of change differs from those noted.
#ifndef SINEW_PHYSICS_IMPORT_MODEL_CACHE_H_
#define SINEW_PHYSICS_IMPORT_MODEL_CACHE_H_

#include "physics/model/model.h"

typedef struct SnModelCacheDef {
  const char *folder;    // the cache's, made when missing; NULL or "": models/ in the user's cache folder of sinew
  const char *importer;  // the program; NULL or "": sinew-import next to the running program
  double seconds;        // limit on processor time and on real time of one import [s]
  size_t bytes;          // limit on its memory
  bool sandbox;          // without a sandbox for it nothing is imported
} SnModelCacheDef;

// Returns limits of 60 s and 4 GiB, default folder and program.
SnModelCacheDef sn_default_model_cache_def(void);

// Returns whether this system has a sandbox, in which importers then run.
bool sn_model_cache_has_sandbox(void);

typedef struct SnModelCache SnModelCache;

// Makes the folder and finds the program. Returns NULL and err (SN_ERR_IO, SN_ERR_NOT_FOUND, SN_ERR_ARGUMENT) on
// failure; the caller closes the result.
SnModelCache *sn_model_cache_open(const SnModelCacheDef *def, SnError *err);
void sn_model_cache_close(SnModelCache *c);

// Ends the imports under way and lets no more begin: they fail with SN_ERR_STATE. Any thread may call it.
void sn_model_cache_cancel(SnModelCache *c);

// Names the files that a model was made of, and knows what was in them. Several owners may share it.
typedef struct SnModelInputs SnModelInputs;

// Loads the model of an MJCF file, or of one that MuJoCo has compiled (.mjb). The caller frees it with sn_model_free.
// *inputs gets the files that it was made of, NULL where they cannot be told; the caller frees them.
//
// The call blocks for as long as an import takes, at most def.seconds and a little. Any number of threads and processes
// may call it at once. On failure it returns NULL and err with the importer's own text:
//   SN_ERR_UNSUPPORTED  the model uses what is not supported (all of it is listed)
//   SN_ERR_FORMAT       it cannot be loaded, or the loader crashed
//   SN_ERR_LIMIT        memory, sizes
//   SN_ERR_TIMEOUT      def.seconds are over
//   SN_ERR_IO           no such file, no program, no space
SnModel *sn_model_cache_load(SnModelCache *c, const char *file, SnModelInputs **inputs, SnError *err);

// Loads the model of `size` bytes of MJCF, or of a file that MuJoCo has compiled. They count as those of a file in
// `folder` (NULL: the current one), from where MJCF's other files are found. Nothing is written there. The
// cache keeps up to 256 such models. Otherwise as sn_model_cache_load; SN_ERR_IO also says that the folder is none.
SnModel *sn_model_cache_read(SnModelCache *c, const void *bytes, size_t size, const char *folder, SnError *err);

// Adds an owner, who frees it too. Any thread may call it.
SnModelInputs *sn_model_inputs_share(SnModelInputs *inputs);
// Removes an owner; the last one frees the memory. Accepts NULL.
void sn_model_inputs_free(SnModelInputs *inputs);

// Returns whether no file has changed, as far as the times of change tell; false for NULL.
bool sn_model_inputs_hold(const SnModelInputs *inputs);

// Returns whether both are the same files with the same contents.
bool sn_model_inputs_equal(const SnModelInputs *a, const SnModelInputs *b);

#endif
