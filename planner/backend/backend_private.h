// Backends in libraries: backend.c alone uses this.
#ifndef SINEW_PLANNER_BACKEND_BACKEND_PRIVATE_H_
#define SINEW_PLANNER_BACKEND_BACKEND_PRIVATE_H_

#include "planner/backend/backend_impl.h"

// Opens the backend of libsinew_NAME.so; `name` stays. Returns NULL and err as sn_backend_open.
SnBackend *sn_backend_plugin(const char *name, const SnBackendOptions *options, SnError *err);

// Checks that this program can use such a library, in a folder as in SnBackendOptions.
SnCode sn_backend_plugin_check(const char *name, const char *folder, SnError *err);

// Returns whether there is such a library in a folder as in SnBackendOptions.
bool sn_backend_plugin_found(const char *name, const char *folder);

#endif
