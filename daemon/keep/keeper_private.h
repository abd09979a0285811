// Shared by the keeper's own files.
#ifndef SINEW_DAEMON_KEEP_KEEPER_PRIVATE_H_
#define SINEW_DAEMON_KEEP_KEEPER_PRIVATE_H_

#include "daemon/keep/kept_file_private.h"

// Reads the folder: an entry for each session whose settings can be read.
SnCode sn_keeper_read(SnKeeper *keeper, SnError *err);

// Makes an entry, which is in the list from then on. Returns NULL when out of memory.
SnKept *sn_keeper_new(SnKeeper *keeper, const char *name, SnPeer *owner, SnKeptState state);

// Handles the signals of a crash from now on, after those who handled them before: what sn_keeper_first_plan has said
// is written down.
void sn_crash_note_watch(SnKeeper *keeper);
// Ends that. Does nothing where it has not begun.
void sn_crash_note_end(SnKeeper *keeper);
// Reads what the last daemon has written down, if it has, and removes it.
void sn_crash_note_read(SnKeeper *keeper);

#endif
