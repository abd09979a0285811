// Folders that the configuration names.
#ifndef SINEW_DAEMON_CONFIG_FOLDERS_PRIVATE_H_
#define SINEW_DAEMON_CONFIG_FOLDERS_PRIVATE_H_

#include "daemon/config/config.h"

// Checks that all entries of a list, "FOLDER" or "NAME=FOLDER", are folders that can be read. err names `setting` and
// the first one that is not.
SnCode sn_folders_check(const SnConfigList *list, const char *setting, SnError *err);

#endif
