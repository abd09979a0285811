// The files that a model was made of: what was in them, and whether they have changed since. The latter costs one stat
// a file.
#ifndef SINEW_PHYSICS_IMPORT_MODEL_INPUTS_PRIVATE_H_
#define SINEW_PHYSICS_IMPORT_MODEL_INPUTS_PRIVATE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

typedef struct SnModelInput {
  char *path;
  struct stat seen;  // just before its contents were read
} SnModelInput;

typedef struct SnModelInputs {
  uint64_t hash;  // of all paths and contents
  bool torn;      // one has changed since `began`: the model may have been made of what was there before
  bool fresh;     // one was so new when it was looked at that its time may not tell the next change
  int n;
  SnModelInput *file;  // (n)
  atomic_int owners;
} SnModelInputs;

// Reads a list of paths, one a line, from where it stands, and the files. began: when the model was begun to be made of
// them; NULL: it is known to be made of these contents. NULL when one of them cannot be read, none is listed or memory
// is short; the caller frees it.
SnModelInputs *sn_model_inputs_read(FILE *list, const struct timespec *began);

// One more owner, who frees it too. Any thread.
SnModelInputs *sn_model_inputs_share(SnModelInputs *inputs);
void sn_model_inputs_free(SnModelInputs *inputs);  // NULL is allowed

// Whether no file has changed, as far as can be told without reading them; false for NULL.
bool sn_model_inputs_hold(const SnModelInputs *inputs);

// Whether both are the same files with the same contents.
bool sn_model_inputs_equal(const SnModelInputs *a, const SnModelInputs *b);

#endif
