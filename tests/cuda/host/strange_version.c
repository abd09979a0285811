// A library of another version of the interface.
#include "planner/backend/backend_impl.h"

const SnPlugin sn_plugin = {.version = SN_PLUGIN_VERSION + 1000};
