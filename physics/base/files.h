// Files that are kept: none that is a pipe is waited for. Other processes see one that is written whole, or as it was
// before; nothing is brought to the disk.
#ifndef SINEW_PHYSICS_BASE_FILES_H_
#define SINEW_PHYSICS_BASE_FILES_H_

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

// Opens a file for reading. Returns NULL where there is none, or what is none: a named pipe would be waited for without
// end.
FILE *sn_file_open(const char *path);

// Holds what is written beside a file, to take its place.
typedef struct SnDraft {
  FILE *to;
  char path[PATH_MAX + 8];
} SnDraft;

// Begins a draft of the file `path`, in its folder, of mode 0600. Returns false, with errno, where none can be made.
// Refuses (EEXIST) to replace anything but a file, such as a device, unless it is `own`: of a folder whose files are
// all of this kind.
bool sn_draft_begin(SnDraft *draft, const char *path, bool own);

// Gives the draft a mode and puts it in the place of `path`, if the caller has written all of it (`whole`). Removes it
// where it is not `whole` or has not arrived, leaves what was there, and returns false with errno.
bool sn_draft_end(SnDraft *draft, const char *path, unsigned mode, bool whole);

#endif
