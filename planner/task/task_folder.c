// Files of tasks, by name: where one is not there, the message says which are.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/task/task_private.h"

enum { MOST_TEXT = 600 };  // of the names that a message lists

// The length of a file's name without .yaml; 0: it has another ending.
static size_t stem(const char *name) {
  const size_t n = strlen(name);
  return n > 5 && strcmp(name + n - 5, ".yaml") == 0 ? n - 5 : 0;
}

static int is_task(const struct dirent *entry) { return entry->d_name[0] != '.' && stem(entry->d_name) > 0; }

// Writes "a, b, c" of the tasks in the folder of `path`; "" where there are none.
static void list_tasks(const char *path, char text[MOST_TEXT]) {
  const char *slash = strrchr(path, '/');
  char folder[4096];
  struct dirent **entry;
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
  const int n = scandir(folder, &entry, is_task, alphasort);
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < n; ++i) {
    const char *name = entry[i]->d_name;
    const bool fits = used + strlen(name) + sizeof ", ..." < MOST_TEXT;
    if (fits) used += (size_t)sprintf(text + used, "%s%.*s", used ? ", " : "", (int)stem(name), name);
    if (!fits && i == n - 1) strcpy(text + used, ", ...");
    free(entry[i]);
  }
  if (n >= 0) free(entry);
}

char *sn_task_load_text(const char *path, SnArena *arena, size_t *size, SnError *err) {
  char names[MOST_TEXT], why[sizeof err->text];
  char *text = sn_yaml_load_text(path, SN_TASK_MAX_BYTES, arena, size, err);
  if (text || !err || err->code != SN_ERR_NOT_FOUND) return text;
  list_tasks(path, names);
  snprintf(why, sizeof why, "%s", err->text);
  if (names[0]) sn_fail(err, SN_ERR_NOT_FOUND, "%.1200s; there are %s", why, names);
  return NULL;
}
