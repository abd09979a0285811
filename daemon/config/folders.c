#include "daemon/config/folders_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/default_endpoint.h"
#include "proto/places.h"
#include "proto/validate.h"

// In /tmp somebody else may have made it first.
static SnCode check_runtime_folder(const char *path, const struct stat *st, SnError *err) {
  if (!S_ISDIR(st->st_mode) || st->st_uid != getuid())
    return sn_fail(err, SN_ERR_STATE, "%s is not a folder that belongs to user %lu", path, (unsigned long)getuid());
  if (st->st_mode & 077)
    return sn_fail(err, SN_ERR_STATE, "%s is open to other users (mode %03o); it must have mode 700", path,
                   (unsigned)(st->st_mode & 0777));
  return SN_OK;
}

SnCode sn_runtime_folder_make(const SnConfig *config, SnError *err) {
  char path[SN_CONFIG_TEXT_SIZE];
  bool missing;
  SnCode code = sn_runtime_folder_check(config, &missing, err);
  if (code != SN_OK || !missing) return code;
  sn_runtime_folder(path, sizeof path);
  if (mkdir(path, 0700) == 0) return SN_OK;
  if (errno == EEXIST) return sn_runtime_folder_check(config, &missing, err);  // somebody was faster
  return sn_fail(err, SN_ERR_IO, "cannot make %s: %s", path, strerror(errno));
}

SnCode sn_runtime_folder_check(const SnConfig *config, bool *missing, SnError *err) {
  char path[SN_CONFIG_TEXT_SIZE];
  struct stat st;
  *missing = false;
  if (!config->runtime_folder) return SN_OK;
  if (!sn_runtime_folder(path, sizeof path)) return sn_fail(err, SN_ERR_LIMIT, "the runtime folder's path is too long");
  if (lstat(path, &st) == 0) return check_runtime_folder(path, &st, err);
  *missing = errno == ENOENT;
  *strrchr(path, '/') = '\0';
  if (*missing && access(*path ? path : "/", W_OK | X_OK) == 0) return SN_OK;
  const int error = errno;
  sn_runtime_folder(path, sizeof path);
  return sn_fail(err, SN_ERR_IO, "cannot make %s: %s", path, strerror(error));
}

SnCode sn_folders_check(const SnConfigList *list, const char *setting, SnError *err) {
  for (int i = 0; i < list->n; i++) {
    size_t name;
    const char *folder = sn_place_folder(list->item[i], &name);
    if (name > SN_WIRE_NAME) folder = list->item[i];
    struct stat st;
    int error = 0;
    if (stat(folder, &st) != 0)
      error = errno;
    else if (!S_ISDIR(st.st_mode))
      error = ENOTDIR;
    else if (access(folder, R_OK | X_OK) != 0)
      error = errno;
    if (error)
      return sn_fail(err, SN_ERR_NOT_FOUND, "%s is '%s'; allowed is a folder that can be read: %s: %s", setting,
                     list->item[i], folder, strerror(error));
  }
  return SN_OK;
}

// Of defaults some may be missing: models that nobody has fetched.
SnCode sn_config_check_folders(const SnConfig *config, SnError *err) {
  const SnCode code = config->default_models ? SN_OK : sn_folders_check(&config->models, "models", err);
  return code == SN_OK && !config->default_tasks ? sn_folders_check(&config->tasks, "tasks", err) : code;
}
