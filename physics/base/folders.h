// Folders that programs of sinew look in when nobody names one. Installed files lie beside the running program; those
// that were fetched or made lie in the user's cache folder.
#ifndef SINEW_PHYSICS_BASE_FOLDERS_H_
#define SINEW_PHYSICS_BASE_FOLDERS_H_

#include <stdbool.h>
#include <stddef.h>

// Writes the folder that the running program lies in. Returns false when that cannot be told, or does not fit.
bool sn_program_folder(char *path, size_t size);

// Writes the user's cache folder of sinew: $XDG_CACHE_HOME/sinew, or ~/.cache/sinew. Returns false when neither
// variable is set, or the path does not fit.
bool sn_cache_folder(char *path, size_t size);

// Writes the program that compiles models, sinew-import beside the running program. Returns false as sn_program_folder.
bool sn_default_importer(char *path, size_t size);

// Makes a folder and those above it, for this user alone. Returns false, with errno, where it cannot be written.
bool sn_folder_make(const char *path);

// Returns whether sn_folder_make would succeed, and makes nothing; else false, with errno.
bool sn_folder_can_be_made(const char *path);

// Returns whether a file can be run; a folder, which may be entered, cannot. On false errno says why.
bool sn_is_program(const char *path);

// Writes the folder that compiled models are kept in, `models` of the user's cache folder. Returns false as
// sn_cache_folder.
bool sn_default_model_cache(char *path, size_t size);

#endif
