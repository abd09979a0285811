// What a start needs of the machine: folders, programs, libraries, rights. Looked at before there is a start; made by
// it.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/realtime.h"
#include "daemon/requests/requests.h"
#include "physics/base/folders.h"

// A folder that is this user's alone, where `own` says so; "" is none.
static SnCode check_folder(const char *setting, const char *path, bool own, SnError *err) {
  struct stat st;
  if (!*path) return SN_OK;
  if (!sn_folder_can_be_made(path)) return sn_fail(err, SN_ERR_IO, "%s: %s: %s", setting, path, strerror(errno));
  if (!own || stat(path, &st) != 0 || !(st.st_mode & 022)) return SN_OK;
  return sn_fail(err, SN_ERR_STATE, "%s: others may write into %s (owner %lu, mode %03o)", setting, path,
                 (unsigned long)st.st_uid, (unsigned)(st.st_mode & 0777));
}

// The folder that a path lies in has to be there.
static SnCode check_above(const char *setting, const char *path, SnError *err) {
  char folder[4096];
  const char *slash = strrchr(path, '/');
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
  if (access(folder, W_OK | X_OK) == 0) return SN_OK;
  return sn_fail(err, SN_ERR_IO, "%s: %s: %s", setting, path, strerror(errno));
}

static SnCode check_log(const char *file, SnError *err) {
  struct stat st;
  if (!*file) return SN_OK;
  if (stat(file, &st) != 0) return check_above("log_file", file, err);
  if (!S_ISDIR(st.st_mode) && access(file, W_OK) == 0) return SN_OK;
  return sn_fail(err, SN_ERR_IO, "log_file: %s: %s", file, strerror(S_ISDIR(st.st_mode) ? EISDIR : errno));
}

static SnCode check_socket(const char *setting, const char *address, SnError *err) {
  return strncmp(address, "ipc://", 6) == 0 ? check_above(setting, address + 6, err) : SN_OK;
}

static SnCode check_importer(const char *given, SnError *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s", given);
  if (!*given && !sn_default_importer(path, sizeof path))
    return sn_fail(err, SN_ERR_NOT_FOUND, "importer: cannot tell where sinewd lies");
  if (sn_is_program(path)) return SN_OK;
  return sn_fail(err, SN_ERR_NOT_FOUND, "importer: the program %s cannot be run: %s", path, strerror(errno));
}

static SnCode check_cache(const char *given, SnError *err) {
  char path[4096];
  if (*given) return check_folder("cache", given, false, err);
  if (sn_default_model_cache(path, sizeof path)) return check_folder("cache", path, false, err);
  return sn_fail(err, SN_ERR_ARGUMENT,
                 "cache: no folder is given, and neither is XDG_CACHE_HOME nor HOME in the environment");
}

static SnCode check_backend(const SnConfig *c, SnError *err) {
  SnError why;
  if (!strcmp(c->backend, "auto") || sn_backend_check(c->backend, c->backend_folder, &why) == SN_OK) return SN_OK;
  return sn_backends_refuse(c->backend, &why, err);
}

SnCode sn_check_start(const SnConfig *c, SnError *err) {
  SnCode code = check_log(c->log_file, err);
  if (code == SN_OK) code = check_socket("endpoint", c->endpoint, err);
  if (code == SN_OK) code = check_socket("telemetry", c->telemetry, err);
  if (code == SN_OK) code = check_socket("records", c->records, err);
  if (code == SN_OK) code = check_importer(c->importer, err);
  if (code == SN_OK) code = check_cache(c->cache, err);
  if (code == SN_OK) code = check_folder("state", c->state, true, err);
  if (code == SN_OK) code = check_folder("flight_folder", c->flight_folder, true, err);
  if (code == SN_OK) code = check_backend(c, err);
  const int highest = c->priority ? c->priority + 1 : 0;
  if (code == SN_OK) code = sn_realtime_check(c->planner_processors, highest, c->lock_memory, err);
  return code;
}
