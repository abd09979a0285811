// MuJoCo tells nobody in C which files a model is made of, so this program's own fopen stands before the C library's:
// every file that is opened for reading is noted. Linked into sinew-import alone.
#include "physics/import/import_files_private.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef FILE *Open(const char *path, const char *mode);

static struct {
  pthread_mutex_t mutex;  // MuJoCo reads meshes on several threads
  char **path;
  int n, capacity;
  bool on, failed;
} files = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void sn_import_files_start(void) {
  pthread_mutex_lock(&files.mutex);
  for (int i = 0; i < files.n; ++i) free(files.path[i]);
  files.n = 0;
  files.on = true;
  files.failed = false;
  pthread_mutex_unlock(&files.mutex);
}

// Adds the path unless it is known. With the mutex.
static void add(char *path) {
  for (int i = 0; i < files.n; ++i) {
    if (strcmp(files.path[i], path) != 0) continue;
    free(path);
    return;
  }
  if (files.n == files.capacity) {
    const int capacity = 2 * files.capacity + 64;
    char **list = realloc(files.path, sizeof *list * (size_t)capacity);
    if (!list) {
      free(path);
      files.failed = true;
      return;
    }
    files.path = list;
    files.capacity = capacity;
  }
  files.path[files.n++] = path;
}

static FILE *open_noted(const char *symbol, const char *path, const char *mode) {
  Open *next = NULL;
  *(void **)&next = dlsym(RTLD_NEXT, symbol);
  FILE *f = next ? next(path, mode) : NULL;
  if (!f || mode[0] != 'r') return f;
  pthread_mutex_lock(&files.mutex);
  if (files.on) {
    char *full = realpath(path, NULL);
    if (!full || strchr(full, '\n')) files.failed = true;
    if (full) add(full);
  }
  pthread_mutex_unlock(&files.mutex);
  return f;
}

FILE *fopen(const char *restrict path, const char *restrict mode) { return open_noted("fopen", path, mode); }
FILE *fopen64(const char *restrict path, const char *restrict mode) { return open_noted("fopen64", path, mode); }

bool sn_import_files_save(FILE *to) {
  pthread_mutex_lock(&files.mutex);
  files.on = false;
  bool ok = !files.failed;
  for (int i = 0; ok && i < files.n; ++i) ok = fprintf(to, "%s\n", files.path[i]) > 0;
  ok = fflush(to) == 0 && ok;
  pthread_mutex_unlock(&files.mutex);
  return ok;
}
