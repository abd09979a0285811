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
  uint64_t hash;  // all paths and contents
  bool torn;      // one has changed since `began`: the model may have been made of what was there before
  bool fresh;     // one was so new when it was looked at that its time may not tell the next change
  int n;
  SnModelInput *file;  // (n)
  atomic_int owners;
};

// Reads the files that `list` names, one path a line, from where it stands. `began` is when the making of the model
// began; NULL says that the model is known to be made of these contents. Returns NULL when a file cannot be read, none
// is listed or memory is short. The caller frees the result.
SnModelInputs *sn_model_inputs_read(FILE *list, const struct timespec *began);

#endif
