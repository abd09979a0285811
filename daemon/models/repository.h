// Models and tasks on disk. A client names them, never a path: a name is the path below a configured folder, without
// the ending .xml or .yaml, "arm" or "hand/myohand". A model that MuJoCo has compiled keeps its ending, "arm.mjb", so
// that it does not hide the XML beside it. Where two folders have the same name, the first one's counts.
#ifndef SINEW_DAEMON_MODELS_REPOSITORY_H_
#define SINEW_DAEMON_MODELS_REPOSITORY_H_

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"
#include "daemon/base/log.h"

enum { SN_REPOSITORY_NAMES = 4096, SN_REPOSITORY_DEPTH = 12 };

typedef enum SnKind { SN_KIND_MODEL, SN_KIND_TASK } SnKind;

typedef struct SnNames {
  int n, capacity;  // capacity: that there is room for
  char **name;      // (n) sorted
} SnNames;

// True for a name that may be looked for: parts of letters, digits, '_', '-', '.' joined by single '/', none of them
// starting with '.', at most SN_WIRE_NAME bytes.
bool sn_repository_is_name(const char *name);

// A name without the ending .xml or .yaml, which it may carry or not, into out: what two clients mean by the same
// model.
void sn_repository_stem(const char *name, SnKind kind, char *out, size_t size);

// The file of a name into path. The file must lie within its folder also after links are resolved. SN_ERR_ARGUMENT: no
// name; SN_ERR_NOT_FOUND: err has the folders and the names that are near.
SnCode sn_repository_find(const SnConfigList *folders, const char *name, SnKind kind, char *path, size_t size,
                          SnError *err);

// All names, at most SN_REPOSITORY_NAMES, folders at most SN_REPOSITORY_DEPTH deep. Free with sn_names_free.
SnNames sn_repository_list(const SnConfigList *folders, SnKind kind);
void sn_names_free(SnNames *names);

// Whether all of them are folders that can be read. err names the setting `kind` and the one that is not.
SnCode sn_repository_check(const SnConfigList *folders, SnKind kind, SnError *err);

// A word in the log for each folder that has nothing to offer: it may be another than was meant.
void sn_repository_report(const SnConfigList *folders, SnKind kind, const SnLog *log);

#endif
