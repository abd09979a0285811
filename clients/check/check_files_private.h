// The models that a user has named: files, and files of folders.
#ifndef SINEW_CLIENTS_CHECK_CHECK_FILES_PRIVATE_H_
#define SINEW_CLIENTS_CHECK_CHECK_FILES_PRIVATE_H_

#include <stdbool.h>

// Holds their paths.
typedef struct CheckFiles {
  int n, given;  // files; arguments
  char **path;   // (n)
  bool *found;   // (n) in a folder
} CheckFiles;

// Adds a file, or all .xml, .urdf and .mjb below a folder, by name. Returns false when out of memory or where a folder
// cannot be read.
bool check_files_add(CheckFiles *f, const char *path);
// Frees the paths.
void check_files_free(CheckFiles *f);

#endif
