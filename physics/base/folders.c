#include "physics/base/folders.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

// One folder, below one that is there. What is there already has to be one.
static bool make_one(const char *path) {
  struct stat st;
  if (mkdir(path, 0700) == 0) return true;
  if (errno != EEXIST || stat(path, &st) != 0) return false;
  if (S_ISDIR(st.st_mode)) return true;
  errno = ENOTDIR;
  return false;
}

// Copies a path of at least one character; false, with errno, where there is none or it is too long.
static bool copy_path(char copy[PATH_MAX], const char *path) {
  errno = *path ? ENAMETOOLONG : ENOENT;
  return *path && snprintf(copy, PATH_MAX, "%s", path) < PATH_MAX;
}

bool sn_folder_make(const char *path) {
  char part[PATH_MAX];
  if (!copy_path(part, path)) return false;
  for (char *p = part + 1; *p; ++p) {
    if (*p != '/') continue;
    *p = 0;
    if (!make_one(part)) return false;
    *p = '/';
  }
  return make_one(part) && access(part, W_OK | X_OK) == 0;
}

bool sn_folder_can_be_made(const char *path) {
  char above[PATH_MAX];
  struct stat st;
  if (!copy_path(above, path)) return false;
  while (stat(above, &st) != 0) {
    if (errno != ENOENT) return false;
    if (lstat(above, &st) == 0) {  // a link that leads nowhere
      errno = ENOENT;
      return false;
    }
    char *slash = strrchr(above, '/');
    if (!slash)
      strcpy(above, ".");
    else
      slash[slash == above] = '\0';
  }
  if (S_ISDIR(st.st_mode)) return access(above, W_OK | X_OK) == 0;
  errno = ENOTDIR;
  return false;
}

bool sn_is_program(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0 || access(path, X_OK) != 0) return false;
  if (S_ISREG(st.st_mode)) return true;
  errno = EACCES;
  return false;
}
