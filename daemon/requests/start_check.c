// What a start needs of the machine: folders, programs, libraries, rights. Looked at before there is a start; made by
// it.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/own_folder.h"
#include "daemon/base/realtime.h"
#include "daemon/requests/requests.h"
#include "physics/base/folders.h"
#include "proto/default_endpoint.h"
#include "proto/places.h"

static SnCode check_folder(const char *setting, const char *path, SnError *err) {
  if (sn_folder_can_be_made(path)) return SN_OK;
  return sn_fail(err, SN_ERR_IO, "%s: cannot make or write %s: %s", setting, path, strerror(errno));
}

// A folder that is this user's alone, or where `root` says so root's; "" is none.
static SnCode check_own_folder(const char *setting, const char *path, bool root, SnError *err) {
  struct stat st;
  if (!*path) return SN_OK;
  const SnCode code = check_folder(setting, path, err);
  return code == SN_OK && stat(path, &st) == 0 ? sn_own_folder_check(setting, path, &st, root, err) : code;
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

static SnCode check_socket(const char *setting, const char *address, bool made, SnError *err) {
  char folder[SN_CONFIG_TEXT_SIZE];
  if (strncmp(address, "ipc://", 6) != 0) return SN_OK;
  const size_t n = made && sn_runtime_folder(folder, sizeof folder) ? strlen(folder) : 0;
  if (n && !strncmp(address + 6, folder, n) && address[6 + n] == '/' && !strchr(address + 7 + n, '/')) return SN_OK;
  return check_above(setting, address + 6, err);
}

// The folder of the user's sockets is made where it is missing.
static SnCode check_sockets(const SnConfig *c, SnError *err) {
  bool made;
  SnCode code = sn_runtime_folder_check(c, &made, err);
  if (code == SN_OK) code = check_socket("endpoint", c->endpoint, made, err);
  if (code == SN_OK) code = check_socket("telemetry", c->telemetry, made, err);
  return code == SN_OK ? check_socket("records", c->records, made, err) : code;
}

static SnCode check_importer(const char *path, SnError *err) {
  if (sn_is_program(path)) return SN_OK;
  return sn_fail(err, SN_ERR_NOT_FOUND, "importer: the program %s cannot be run: %s", path, strerror(errno));
}

static SnCode check_flight(const char *folder, SnError *err) {
  char schema[SN_PLACE_SIZE] = "";
  if (!*folder) return SN_OK;
  const SnCode code = check_own_folder("flight_folder", folder, true, err);
  if (code != SN_OK || (sn_place_of_schema(schema, sizeof schema) && access(schema, R_OK) == 0)) return code;
  return sn_fail(err, SN_ERR_IO, "flight_folder: the schema %s cannot be read", schema);
}

static SnCode check_backend(const SnConfig *c, SnError *err) {
  SnError why;
  if (!strcmp(c->backend, "auto") || sn_backend_check(c->backend, c->backend_folder, &why) == SN_OK) return SN_OK;
  return sn_backends_refuse(c->backend, &why, err);
}

SnCode sn_check_start(const SnConfig *c, SnError *err) {
  SnCode code = sn_config_check_folders(c, err);
  if (code == SN_OK) code = check_log(c->log_file, err);
  if (code == SN_OK) code = check_sockets(c, err);
  if (code == SN_OK) code = sn_files_check(c, err);
  if (code == SN_OK) code = check_importer(c->importer, err);
  if (code == SN_OK) code = check_folder("cache", c->cache, err);
  if (code == SN_OK) code = check_own_folder("state", c->state, false, err);
  if (code == SN_OK) code = check_flight(c->flight_folder, err);
  if (code == SN_OK) code = check_backend(c, err);
  const int highest = c->priority ? c->priority + 1 : 0;
  if (code == SN_OK) code = sn_realtime_check(c->planner_processors, highest, c->lock_memory, err);
  return code;
}
