#include "daemon/repository.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/places.h"
#include "proto/validate.h"

bool sn_repository_is_name(const char *name) {
  size_t n = strlen(name);
  if (n == 0 || n > SN_WIRE_NAME) return false;
  for (size_t i = 0; i < n; i++) {
    bool starts = i == 0 || name[i - 1] == '/';
    if (isalnum((unsigned char)name[i]) || name[i] == '_' || name[i] == '-') continue;
    if (starts || (name[i] != '.' && name[i] != '/')) return false;
  }
  return name[n - 1] != '/';
}

static bool ends_with(const char *name, const char *ending) {
  size_t n = strlen(name), m = strlen(ending);
  return n > m && !strcmp(name + n - m, ending);
}

void sn_repository_stem(const char *name, const char *ending, char *out, size_t size) {
  size_t n = strlen(name) - (ends_with(name, ending) ? strlen(ending) : 0);
  if (n >= size) n = size - 1;
  memcpy(out, name, n);
  out[n] = '\0';
}

// Whether the file exists within the folder, links resolved; its true path into path.
static bool is_inside(const char *folder, const char *file, char *path, size_t size) {
  char root[PATH_MAX], real[PATH_MAX];
  struct stat st;
  if (!realpath(folder, root) || !realpath(file, real) || stat(real, &st) != 0 || !S_ISREG(st.st_mode)) return false;
  size_t n = strlen(root);
  if (strncmp(real, root, n) || real[n] != '/' || strlen(real) >= size) return false;
  memcpy(path, real, strlen(real) + 1);
  return true;
}

// The folder of an entry of the configuration, "FOLDER" or "NAME=FOLDER"; its prefix "NAME/" or "" into prefix.
static const char *split_entry(const char *entry, char prefix[SN_WIRE_NAME + 2]) {
  size_t n;
  const char *folder = sn_place_folder(entry, &n);
  *prefix = '\0';
  if (n > SN_WIRE_NAME) return entry;
  if (n > 0) {
    memcpy(prefix, entry, n);
    memcpy(prefix + n, "/", 2);
  }
  return folder;
}

SnCode sn_repository_find(const SnConfigList *folders, const char *name, const char *ending, char *path, size_t size,
                          SnError *err) {
  char file[PATH_MAX], prefix[SN_WIRE_NAME + 2];
  if (!sn_repository_is_name(name))
    return sn_fail(
        err, SN_ERR_ARGUMENT,
        "'%.80s' is no name; allowed are letters, digits, '_', '-', '.' and single '/' between parts, at most %d", name,
        SN_WIRE_NAME);
  for (int i = 0; i < folders->n; i++) {
    const char *folder = split_entry(folders->item[i], prefix);
    size_t skip = strlen(prefix);
    if (strncmp(name, prefix, skip)) continue;
    int n = snprintf(file, sizeof file, "%s/%s%s", folder, name + skip, ends_with(name, ending) ? "" : ending);
    if (n < (int)sizeof file && is_inside(folder, file, path, size)) return SN_OK;
  }
  return sn_fail(err, SN_ERR_NOT_FOUND, "no '%s' in the %d configured folder%s", name, folders->n,
                 folders->n == 1 ? "" : "s");
}

static bool has_name(const SnNames *names, const char *name, size_t n) {
  for (int i = 0; i < names->n; i++)
    if (!strncmp(names->name[i], name, n) && !names->name[i][n]) return true;
  return false;
}

// Adds the names that begin with `below`, "" or "part/part/", the first `skip` bytes of which stand for root itself.
static void add_names(SnNames *names, const char *root, const char *below, size_t skip, const char *ending, int depth) {
  char path[PATH_MAX], name[SN_WIRE_NAME + 2];
  if (snprintf(path, sizeof path, "%s/%s", root, below + skip) >= (int)sizeof path) return;
  DIR *dir = opendir(path);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    struct stat st;
    if (snprintf(name, sizeof name, "%s%s", below, entry->d_name) > SN_WIRE_NAME || !sn_repository_is_name(name))
      continue;
    if (snprintf(path, sizeof path, "%s/%s", root, name + skip) >= (int)sizeof path || stat(path, &st) != 0) continue;
    if (S_ISDIR(st.st_mode) && depth < SN_REPOSITORY_DEPTH) {
      if (strlen(name) >= SN_WIRE_NAME) continue;
      strcat(name, "/");
      add_names(names, root, name, skip, ending, depth + 1);
    } else if (S_ISREG(st.st_mode) && ends_with(name, ending) && names->n < SN_REPOSITORY_NAMES) {
      size_t n = strlen(name) - strlen(ending);
      char *copy = has_name(names, name, n) ? NULL : strndup(name, n);
      if (copy) names->name[names->n++] = copy;
    }
  }
  if (dir) closedir(dir);
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

SnNames sn_repository_list(const SnConfigList *folders, const char *ending) {
  SnNames names = {.name = calloc(SN_REPOSITORY_NAMES, sizeof(char *))};
  if (!names.name) return names;
  for (int i = 0; i < folders->n; i++) {
    char prefix[SN_WIRE_NAME + 2];
    const char *folder = split_entry(folders->item[i], prefix);
    add_names(&names, folder, prefix, strlen(prefix), ending, 0);
  }
  qsort(names.name, (size_t)names.n, sizeof(char *), compare);
  return names;
}

void sn_names_free(SnNames *names) {
  for (int i = 0; i < names->n; i++) free(names->name[i]);
  free(names->name);
  *names = (SnNames){0};
}
