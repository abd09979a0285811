// Backends that lie in a library of their own (planner/backend/plugin.h). backend.c alone uses this.
#ifndef SINEW_PLANNER_BACKEND_BACKEND_PLUGIN_H_
#define SINEW_PLANNER_BACKEND_BACKEND_PLUGIN_H_

#include "planner/backend/backend.h"

// Opens libsinew_NAME.so. name must be in static memory.
SnBackend *sn_backend_plugin(const char *name, const SnBackendOptions *options, SnError *err);
// Whether that library is found and looks like one; no device is asked.
bool sn_backend_plugin_found(const char *name);

#endif
