// Files of kept sessions: written whole or not at all, read with distrust.
#ifndef SINEW_DAEMON_KEEP_KEPT_FILE_PRIVATE_H_
#define SINEW_DAEMON_KEEP_KEPT_FILE_PRIVATE_H_

#include "daemon/keep/keep.h"

enum { SN_KEPT_NAME = 40 };  // bytes of a file's name, the zero included

// Opens the folder, which is made if it is missing, and locks it. Removes what was being written when the last daemon
// ended. SN_ERR_STATE: another daemon has it, or others may write there.
SnCode sn_kept_folder_open(SnKeptFolder *folder, const char *path, const SnLog *log, SnError *err);
void sn_kept_folder_close(SnKeptFolder *folder);

// Returns the name of a session's file.
const char *sn_kept_file_name(uint64_t id, SnKeptPart part, char name[SN_KEPT_NAME]);
// Reads the id and the part in a file's name; false: it is no such file.
bool sn_kept_file_parse(const char *name, uint64_t *id, SnKeptPart *part);

// Writes a file, mode 0600. `lasting` waits until it is on the disk. On failure the old file is as it was.
SnCode sn_kept_file_write(const SnKeptFolder *folder, const char *name, SnKeptBytes bytes, bool lasting, SnError *err);
// Reads a file, whose bytes the caller frees. err says what is wrong with it; SN_ERR_NOT_FOUND: there is none,
// SN_ERR_MEMORY: memory or files are lacking.
SnCode sn_kept_file_read(const SnKeptFolder *folder, const char *name, SnKeptBytes *bytes, SnError *err);
void sn_kept_file_remove(const SnKeptFolder *folder, const char *name);
// Moves a file into the folder `refused` beside it, and logs why.
void sn_kept_file_refuse(const SnKeptFolder *folder, const char *name, const SnLog *log, const char *why);

#endif
