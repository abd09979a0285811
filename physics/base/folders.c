#include "physics/base/folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sn_program_folder(char *path, size_t size) {
  const ssize_t n = readlink("/proc/self/exe", path, size);
  if (n <= 0 || (size_t)n == size) return false;
  path[n] = '\0';
  *strrchr(path, '/') = '\0';
  return true;
}

bool sn_cache_folder(char *path, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = -1;
  if (cache && *cache)
    n = snprintf(path, size, "%s/sinew", cache);
  else if (home && *home)
    n = snprintf(path, size, "%s/.cache/sinew", home);
  return n > 0 && (size_t)n < size;
}

// Appends a name to a folder in path[size].
static bool append(char *path, size_t size, const char *name) {
  const size_t length = strlen(path);
  const int n = snprintf(path + length, size - length, "/%s", name);
  return n > 0 && (size_t)n < size - length;
}

bool sn_default_importer(char *path, size_t size) {
  return sn_program_folder(path, size) && append(path, size, "sinew-import");
}

bool sn_default_model_cache(char *path, size_t size) {
  return sn_cache_folder(path, size) && append(path, size, "models");
}
