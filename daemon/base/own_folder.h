// Folders of a setting that this user alone may write: what is in them may move a robot.
#ifndef SINEW_DAEMON_BASE_OWN_FOLDER_H_
#define SINEW_DAEMON_BASE_OWN_FOLDER_H_

#include <sys/stat.h>

#include "daemon/base/log.h"

// Makes such a folder, and those above it, where it is missing. The log says when it did: the disk that it shall lie on
// may not be mounted. err names `setting`.
SnCode sn_own_folder_make(const char *setting, const char *path, const SnLog *log, SnError *err);

// Checks owner and mode of a folder, which may be root's where `root` says so. Returns SN_ERR_STATE, with `setting` in
// err, where it belongs to another user, or others may write into it.
SnCode sn_own_folder_check(const char *setting, const char *path, const struct stat *st, bool root, SnError *err);

#endif
