// Models and tasks on disk. A client names them, never a path: a name is the path below a configured folder, without
// its ending, "arm" or "hand/myohand". Where two folders have the same name, the first one's counts.
#ifndef SINEW_DAEMON_REPOSITORY_H_
#define SINEW_DAEMON_REPOSITORY_H_

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config.h"

enum { SN_REPOSITORY_NAMES = 4096, SN_REPOSITORY_DEPTH = 12 };

typedef struct SnNames {
  int n;
  char **name;  // (n) sorted
} SnNames;

// True for a name that may be looked for: parts of letters, digits, '_', '-', '.' joined by single '/', none of them
// starting with '.', at most SN_WIRE_NAME bytes.
bool sn_repository_is_name(const char *name);

// A name without its ending, which it may carry or not, into out: what two clients mean by the same model.
void sn_repository_stem(const char *name, const char *ending, char *out, size_t size);

// The file of a name with this ending (".xml", ".yaml"; the name may carry it already) into path. The file must lie
// within its folder also after links are resolved. SN_ERR_ARGUMENT: no name; SN_ERR_NOT_FOUND.
SnCode sn_repository_find(const SnConfigList *folders, const char *name, const char *ending, char *path, size_t size,
                          SnError *err);

// All names with this ending, at most SN_REPOSITORY_NAMES, folders at most SN_REPOSITORY_DEPTH deep. Free with
// sn_names_free.
SnNames sn_repository_list(const SnConfigList *folders, const char *ending);
void sn_names_free(SnNames *names);

#endif
