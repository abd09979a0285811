// Finds a backend in a library libsinew_NAME.so, which fills in the table itself (planner/backend/backend_impl.h). A
// program whose numbers are floats has no such backends: arrays cross the table as doubles.
#include <dlfcn.h>
#include <stdio.h>

#include "planner/backend/backend_private.h"

// What the library exports, NULL and err where it exports nothing. What was opened stays open: a GPU's runtime does not
// like to go, and static names of the library are in use.
static const SnPlugin *find_library(const char *name, const char *folder, SnError *err) {
  char file[4096];
  const bool somewhere = folder && folder[0];
  snprintf(file, sizeof file, "%s%slibsinew_%s.so", somewhere ? folder : "", somewhere ? "/" : "", name);
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    sn_fail(err, SN_ERR_NOT_FOUND, "backend '%s': its library cannot be opened: %s", name, dlerror());
    return NULL;
  }
  const SnPlugin *plugin = dlsym(library, SN_PLUGIN_SYMBOL);
  if (!plugin) {
    sn_fail(err, SN_ERR_FORMAT, "backend '%s': %s is no library of a backend: it has no %s", name, file,
            SN_PLUGIN_SYMBOL);
    dlclose(library);
  }
  return plugin;
}

bool sn_backend_plugin_found(const char *name, const char *folder) {
  return sizeof(sn_real) == sizeof(double) && find_library(name, folder, NULL) != NULL;
}

// The library's own words, with the backend's name before them.
static void blame(const char *name, SnError *err, const SnError *from) {
  sn_fail(err, from->code, "backend '%s': %.3800s", name, from->text);
}

// The library's table, NULL and err where this program cannot use it.
static const SnPlugin *find_table(const char *name, const char *folder, SnError *err) {
  if (sizeof(sn_real) != sizeof(double)) {
    sn_fail(err, SN_ERR_UNSUPPORTED, "backend '%s': a program whose numbers are floats has the backend 'cpu' alone",
            name);
    return NULL;
  }
  const SnPlugin *plugin = find_library(name, folder, err);
  if (!plugin) return NULL;
  if (plugin->version != SN_PLUGIN_VERSION) {
    sn_fail(err, SN_ERR_UNSUPPORTED, "backend '%s': the library is of version %d of the interface, the program of %d",
            name, plugin->version, SN_PLUGIN_VERSION);
    return NULL;
  }
  return plugin;
}

SnCode sn_backend_plugin_check(const char *name, const char *folder, SnError *err) {
  SnError why = {.code = SN_OK};
  if (find_table(name, folder, &why)) return SN_OK;
  return sn_fail(err, why.code, "%s", why.text);
}

SnBackend *sn_backend_plugin(const char *name, const SnBackendOptions *options, SnError *err) {
  const SnPlugin *plugin = find_table(name, options->folder, err);
  if (!plugin) return NULL;
  SnError said = {.code = SN_OK};
  SnBackend *b = plugin->open(options, &said);
  if (b)
    b->name = name;
  else
    blame(name, err, &said);
  return b;
}
