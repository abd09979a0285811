#include "clients/check/check_files_private.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Keeps a copy of the path.
static bool keep(CheckFiles *f, const char *path, bool found) {
  char **paths = realloc(f->path, sizeof *paths * ((size_t)f->n + 1));
  if (paths) f->path = paths;
  bool *marks = realloc(f->found, sizeof *marks * ((size_t)f->n + 1));
  if (marks) f->found = marks;
  char *copy = strdup(path);
  if (!paths || !marks || !copy) {
    free(copy);
    return false;
  }
  f->path[f->n] = copy;
  f->found[f->n++] = found;
  return true;
}

static bool is_model(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot && (strcmp(dot, ".xml") == 0 || strcmp(dot, ".urdf") == 0 || strcmp(dot, ".mjb") == 0);
}

// True for a folder; of what lies in one, links are not followed.
static bool is_folder(const char *path, bool found) {
  struct stat st;
  return (found ? lstat(path, &st) : stat(path, &st)) == 0 && S_ISDIR(st.st_mode);
}

static bool add(CheckFiles *f, const char *path, bool found) {
  if (!is_folder(path, found)) return keep(f, path, found);
  struct dirent **entry = NULL;
  const int n = scandir(path, &entry, NULL, alphasort);
  bool good = n >= 0;
  for (int i = 0; i < n; ++i) {
    char name[4096];
    const bool fits = snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name) < (int)sizeof name;
    if (good && entry[i]->d_name[0] != '.' && fits && (is_model(name) || is_folder(name, true)))
      good = add(f, name, true);
    free(entry[i]);
  }
  free(entry);
  return good;
}

bool check_files_add(CheckFiles *f, const char *path) {
  ++f->given;
  return add(f, path, false);
}

void check_files_free(CheckFiles *f) {
  for (int i = 0; i < f->n; ++i) free(f->path[i]);
  free(f->path);
  free(f->found);
  *f = (CheckFiles){0};
}
