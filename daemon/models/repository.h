// Models and tasks on disk. A client names them, never a path: a name is the path below a configured folder, without
// the ending .xml or .yaml, "arm" or "hand/myohand". A model that MuJoCo has compiled keeps its ending, "arm.mjb", so
// that it does not hide the XML beside it. If two folders have the same name, the first one's counts.
#ifndef SINEW_DAEMON_MODELS_REPOSITORY_H_
#define SINEW_DAEMON_MODELS_REPOSITORY_H_

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/log.h"
#include "daemon/config/config.h"

enum { SN_REPOSITORY_NAMES = 4096, SN_REPOSITORY_DEPTH = 12 };

typedef enum SnKind { SN_KIND_MODEL, SN_KIND_TASK } SnKind;

typedef struct SnNames {
  int n, capacity;  // names, and how many fit
  char **name;      // (n) sorted
} SnNames;

// Returns whether a name may be looked for. The parts are letters, digits, '_', '-' or '.', and begin with no '.'; they
// are joined by single '/'. All have at most SN_WIRE_NAME bytes.
bool sn_repository_is_name(const char *name);

// Copies a name into out[size], without the ending .xml or .yaml if it has one. Two clients who mean the same model may
// differ in that.
void sn_repository_stem(const char *name, SnKind kind, char *out, size_t size);

// Finds the file of a name and writes it into path[size]. The file must lie within its folder also after links are
// resolved. Returns SN_ERR_ARGUMENT for what is no name; SN_ERR_NOT_FOUND lists the folders and the names that are
// near.
SnCode sn_repository_find(const SnConfigList *folders, const char *name, SnKind kind, char *path, size_t size,
                          SnError *err);

// Lists all names, at most SN_REPOSITORY_NAMES, in folders at most SN_REPOSITORY_DEPTH deep. The caller frees them with
// sn_names_free.
SnNames sn_repository_list(const SnConfigList *folders, SnKind kind);
void sn_names_free(SnNames *names);

// Writes a line of the log for each folder that has nothing to offer: it may be another than was meant.
void sn_repository_report(const SnConfigList *folders, SnKind kind, const SnLog *log);

#endif
