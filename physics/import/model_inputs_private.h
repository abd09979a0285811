// The files that a model was made of: contents and times, to tell whether they have changed. Functions for other
// rooms stand in model_cache.h.
#ifndef SINEW_PHYSICS_IMPORT_MODEL_INPUTS_PRIVATE_H_
#define SINEW_PHYSICS_IMPORT_MODEL_INPUTS_PRIVATE_H_

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "physics/import/model_cache.h"

typedef struct SnModelInput {
  char *path;
  struct stat seen;  // just before its contents were read
} SnModelInput;

struct SnModelInputs {
  uint64_t hash;    // all paths and contents, and the seed
  uint64_t seed;    // stands for what the model is made of beside files; 0: nothing
  bool torn;        // one has changed since `began`: the model may have been made of what was there before
  bool fresh;       // one was so new when it was looked at that its time may not tell the next change
  bool remembered;  // hash is what was kept of it, no file was read
  int n;
  SnModelInput *file;  // (n)
  atomic_int owners;
};

// Reads the files that `list` names, one path a line, from where it stands. `began` is when the making of the model
// began. Returns NULL when a file cannot be read, memory is short, or there is neither file nor seed. The caller frees
// the result.
SnModelInputs *sn_model_inputs_read(FILE *list, const struct timespec *began, uint64_t seed);

// Writes what sn_model_inputs_recall reads. Returns false when that fails.
bool sn_model_inputs_write(const SnModelInputs *inputs, FILE *list);

// Reads a list that sn_model_inputs_write has written, for the same seed. Opens every file, but reads none where their
// times tell that none has changed since; `remembered` is true then. Returns NULL when contents have changed, and as
// sn_model_inputs_read does.
SnModelInputs *sn_model_inputs_recall(FILE *list, uint64_t seed);

#endif
