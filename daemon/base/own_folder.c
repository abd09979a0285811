#include "daemon/base/own_folder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "physics/base/folders.h"

SnCode sn_own_folder_make(const char *setting, const char *path, const SnLog *log, SnError *err) {
  const bool missing = access(path, F_OK) != 0;
  if (!sn_folder_make(path))
    return sn_fail(err, SN_ERR_IO, "%s: cannot make or write %s: %s", setting, path, strerror(errno));
  if (missing) sn_log_event(log, SN_LOG_INFO, "folder-made: %s: %s was missing", setting, path);
  return SN_OK;
}

SnCode sn_own_folder_check(const char *setting, const char *path, const struct stat *st, bool root, SnError *err) {
  const bool ours = st->st_uid == geteuid() || (root && st->st_uid == 0);
  if (ours && !(st->st_mode & 022)) return SN_OK;
  return sn_fail(err, SN_ERR_STATE, "%s: others may write into %s (owner %lu, mode %03o)", setting, path,
                 (unsigned long)st->st_uid, (unsigned)(st->st_mode & 0777));
}
