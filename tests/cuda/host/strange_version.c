// A library of another version of the interface.
#include "planner/backend/plugin.h"

SnPluginOpen sn_plugin_open;

SnPlugin *sn_plugin_open(const SnPluginOptions *options, SnError *err) {
  static SnPlugin plugin;
  (void)options;
  (void)err;
  plugin.version = SN_PLUGIN_VERSION + 1000;
  return &plugin;
}
