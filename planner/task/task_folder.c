// Files of tasks, by name: where one is not there, the message says which are.
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/task/task_private.h"

enum { MOST_TEXT = 600 };  // bytes of the names that a message lists

// The length of a file's name without .yaml; 0: it has another ending.
static size_t stem(const char *name) {
  const size_t n = strlen(name);
  return n > 5 && strcmp(name + n - 5, ".yaml") == 0 ? n - 5 : 0;
}

static int is_task(const struct dirent *entry) { return entry->d_name[0] != '.' && stem(entry->d_name) > 0; }

// Begins `known` with the tasks in the folder of `path`, a name of one that is not there. Returns how many there are.
static int known_tasks(const char *path, const char *wanted, SnKnownNames *known) {
  const char *slash = strrchr(path, '/');
  char folder[4096], name[NAME_MAX + 1];
  struct dirent **entry;
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
  sn_known_begin(known, wanted, MOST_TEXT);
  const int n = scandir(folder, &entry, is_task, alphasort);
  for (int i = 0; i < n; ++i) {
    snprintf(name, sizeof name, "%.*s", (int)stem(entry[i]->d_name), entry[i]->d_name);
    sn_known_add(known, name);
    free(entry[i]);
  }
  if (n >= 0) free(entry);
  return n;
}

char *sn_task_load_text(const char *path, SnArena *arena, size_t *size, SnError *err) {
  char why[sizeof err->text], wanted[NAME_MAX + 1];
  char *text = sn_arena_file(arena, path, SN_TASK_MAX_BYTES, size, err);
  if (text || !err || err->code != SN_ERR_NOT_FOUND) return text;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  snprintf(wanted, sizeof wanted, "%.*s", (int)(stem(name) ? stem(name) : strlen(name)), name);
  SnKnownNames known;
  if (known_tasks(path, wanted, &known) <= 0) return NULL;
  snprintf(why, sizeof why, "%s", err->text);
  sn_fail(err, SN_ERR_NOT_FOUND, "%.1200s; there are %s%s", why, sn_known_list(&known), sn_known_near(&known));
  return NULL;
}
