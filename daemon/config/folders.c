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

SnCode sn_make_runtime_folder(char *path, size_t size, SnError *err) {
  if (!sn_runtime_folder(path, size)) return sn_fail(err, SN_ERR_LIMIT, "the runtime folder's path is too long");
  if (mkdir(path, 0700) != 0 && errno != EEXIST)
    return sn_fail(err, SN_ERR_IO, "cannot make %s: %s", path, strerror(errno));

  // In /tmp somebody else may have made it first.
  struct stat st;
  if (lstat(path, &st) != 0) return sn_fail(err, SN_ERR_IO, "%s: %s", path, strerror(errno));
  if (!S_ISDIR(st.st_mode) || st.st_uid != getuid())
    return sn_fail(err, SN_ERR_STATE, "%s is not a folder that belongs to user %lu", path, (unsigned long)getuid());
  if (st.st_mode & 077)
    return sn_fail(err, SN_ERR_STATE, "%s is open to other users (mode %03o); it must have mode 700", path,
                   (unsigned)(st.st_mode & 0777));
  return SN_OK;
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
