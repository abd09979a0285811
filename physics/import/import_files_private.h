// The files that MuJoCo opens while it loads a model: the XML, what it includes, meshes, textures.
#ifndef SINEW_PHYSICS_IMPORT_IMPORT_FILES_PRIVATE_H_
#define SINEW_PHYSICS_IMPORT_IMPORT_FILES_PRIVATE_H_

#include <stdbool.h>
#include <stdio.h>

// Forgets the list and records from now on. One thread alone may use the record.
void sn_import_files_start(void);

// Writes the absolute paths recorded so far to an open file, one a line, each once, and ends the record. Returns false
// when that fails or the record is incomplete (a path with a line break, no memory).
bool sn_import_files_save(FILE *to);

#endif
