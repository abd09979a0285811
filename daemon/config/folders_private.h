// Folders that the configuration names, and the one that it needs itself.
#ifndef SINEW_DAEMON_CONFIG_FOLDERS_PRIVATE_H_
#define SINEW_DAEMON_CONFIG_FOLDERS_PRIVATE_H_

#include "daemon/config/config.h"

// Writes the folder of the user's sockets (proto/default_endpoint.h) into path[size], and makes it with mode 0700 if
// missing. Returns an error when it is not a folder of this user, or open to others.
SnCode sn_make_runtime_folder(char *path, size_t size, SnError *err);

// Checks that all entries of a list, "FOLDER" or "NAME=FOLDER", are folders that can be read. err names `setting` and
// the first one that is not.
SnCode sn_folders_check(const SnConfigList *list, const char *setting, SnError *err);

#endif
