#include "daemon/models/repository.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "physics/base/known_names.h"
#include "proto/places.h"
#include "proto/validate.h"

// The setting, the kind, and endings: the first is no part of a name.
static const struct {
  const char *setting, *what, *ending[2];
} kinds[] = {[SN_KIND_MODEL] = {"models", "model", {".xml", ".mjb"}}, [SN_KIND_TASK] = {"tasks", "task", {".yaml"}}};

enum { MOST_NAMES = 600 };  // bytes of the names that an error lists

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

// Whether a file of that name is of the kind.
static bool is_kind(const char *file, SnKind kind) {
  const char *const *ending = kinds[kind].ending;
  return ends_with(file, ending[0]) || (ending[1] && ends_with(file, ending[1]));
}

void sn_repository_stem(const char *name, SnKind kind, char *out, size_t size) {
  const char *ending = kinds[kind].ending[0];
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

static bool has_name(const SnNames *names, const char *name) {
  for (int i = 0; i < names->n; i++)
    if (!strcmp(names->name[i], name)) return true;
  return false;
}

// A list with capacity for so many names, or for none when memory is short.
static SnNames make_names(int capacity) {
  SnNames names = {.name = calloc((size_t)capacity, sizeof(char *))};
  if (names.name) names.capacity = capacity;
  return names;
}

// Adds the names that begin with `below`, "" or "part/part/", the first `skip` bytes of which stand for root itself.
static void add_names(SnNames *names, const char *root, const char *below, size_t skip, SnKind kind, int depth) {
  char path[PATH_MAX], name[SN_WIRE_NAME + 2];
  if (snprintf(path, sizeof path, "%s/%s", root, below + skip) >= (int)sizeof path) return;
  DIR *dir = opendir(path);
  for (struct dirent *entry; dir && names->n < names->capacity && (entry = readdir(dir));) {
    struct stat st;
    if (snprintf(name, sizeof name, "%s%s", below, entry->d_name) > SN_WIRE_NAME || !sn_repository_is_name(name))
      continue;
    if (snprintf(path, sizeof path, "%s/%s", root, name + skip) >= (int)sizeof path || stat(path, &st) != 0) continue;
    if (S_ISDIR(st.st_mode) && depth < SN_REPOSITORY_DEPTH) {
      if (strlen(name) >= SN_WIRE_NAME) continue;
      strcat(name, "/");
      add_names(names, root, name, skip, kind, depth + 1);
    } else if (S_ISREG(st.st_mode) && is_kind(name, kind)) {
      char stem[SN_WIRE_NAME + 2];
      sn_repository_stem(name, kind, stem, sizeof stem);
      char *copy = has_name(names, stem) ? NULL : strdup(stem);
      if (copy) names->name[names->n++] = copy;
    }
  }
  if (dir) closedir(dir);
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

SnNames sn_repository_list(const SnConfigList *folders, SnKind kind) {
  SnNames names = make_names(SN_REPOSITORY_NAMES);
  for (int i = 0; i < folders->n; i++) {
    char prefix[SN_WIRE_NAME + 2];
    const char *folder = split_entry(folders->item[i], prefix);
    add_names(&names, folder, prefix, strlen(prefix), kind, 0);
  }
  if (names.n > 0) qsort(names.name, (size_t)names.n, sizeof(char *), compare);
  return names;
}

void sn_names_free(SnNames *names) {
  for (int i = 0; i < names->n; i++) free(names->name[i]);
  free(names->name);
  *names = (SnNames){0};
}

// Appends to a text of that size; what does not fit is left out.
static void append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...) {
  const size_t n = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, size - n, format, args);
  va_end(args);
}

// Where it was looked for, and what is near.
static SnCode not_found(const SnConfigList *folders, const char *name, SnKind kind, SnError *err) {
  char where[2400] = "", prefix[SN_WIRE_NAME + 2], stem[SN_WIRE_NAME + 2];
  for (int i = 0; i < folders->n; i++)
    append(where, sizeof where, "%s%s%s", i ? ", " : "", folders->item[i],
           access(split_entry(folders->item[i], prefix), R_OK | X_OK) == 0 ? "" : " (cannot be read)");
  SnNames names = sn_repository_list(folders, kind);
  sn_repository_stem(name, kind, stem, sizeof stem);
  SnKnownNames known;
  sn_known_begin(&known, stem, MOST_NAMES);
  for (int i = 0; i < names.n; i++) sn_known_add(&known, names.name[i]);
  const char *near = sn_known_near(&known);
  const bool list = kind == SN_KIND_TASK && !near[0] && names.n > 0;
  sn_names_free(&names);
  return sn_fail(err, SN_ERR_NOT_FOUND, "no %s '%s' in %s%s%s; `sinewctl %s` lists all%s", kinds[kind].what, name,
                 folders->n ? where : "any folder: none is configured", list ? "; there are " : "",
                 list ? sn_known_list(&known) : "", kinds[kind].setting, near);
}

// As it stands, where it carries an ending, else with the first one.
SnCode sn_repository_find(const SnConfigList *folders, const char *name, SnKind kind, char *path, size_t size,
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
    for (int with = !is_kind(name, kind); with < 2; with++) {
      int n = snprintf(file, sizeof file, "%s/%s%s", folder, name + skip, with ? kinds[kind].ending[0] : "");
      if (n < (int)sizeof file && is_inside(folder, file, path, size)) return SN_OK;
    }
  }
  return not_found(folders, name, kind, err);
}

void sn_repository_report(const SnConfigList *folders, SnKind kind, const SnLog *log) {
  char prefix[SN_WIRE_NAME + 2];
  for (int i = 0; i < folders->n; i++) {
    const char *folder = split_entry(folders->item[i], prefix);
    SnNames names = make_names(1);
    add_names(&names, folder, prefix, strlen(prefix), kind, 0);
    if (access(folder, R_OK | X_OK) != 0)
      sn_log_event(log, SN_LOG_WARNING, "no-%s: %s: %s", kinds[kind].setting, folder, strerror(errno));
    else if (names.capacity > 0 && names.n == 0)
      sn_log_event(log, SN_LOG_WARNING, "no-%s: %s holds none", kinds[kind].setting, folder);
    sn_names_free(&names);
  }
}
