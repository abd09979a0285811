#include "physics/import/model_inputs_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

// Changes closer together than this may have the same time, on file systems with coarse clocks [s].
static const double coarse = 2.0;

static double seconds_between(const struct timespec *from, const struct timespec *to) {
  return (double)(to->tv_sec - from->tv_sec) + 1e-9 * (double)(to->tv_nsec - from->tv_nsec);
}

// Adds path and contents of a file to the hash; false when it cannot be read.
static bool read_file(XXH3_state_t *state, const char *path, struct stat *seen) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool ok = fd >= 0 && fstat(fd, seen) == 0 && S_ISREG(seen->st_mode);
  XXH3_64bits_update(state, path, strlen(path) + 1);
  static const size_t block = 1 << 16;
  char *data = ok ? malloc(block) : NULL;
  ok = data != NULL;
  for (ssize_t n = 1; ok && n != 0;) {
    n = read(fd, data, block);
    if (n < 0 && errno == EINTR) continue;
    ok = n >= 0;
    if (n > 0) XXH3_64bits_update(state, data, (size_t)n);
  }
  free(data);
  if (fd >= 0) close(fd);
  return ok;
}

// One more file at the end.
static bool add(SnModelInputs *x, const char *path, const struct stat *seen) {
  SnModelInput *more = realloc(x->file, sizeof *more * (size_t)(x->n + 1));
  if (more) x->file = more;
  char *copy = more ? strdup(path) : NULL;
  if (copy) x->file[x->n++] = (SnModelInput){.path = copy, .seen = *seen};
  return copy != NULL;
}

SnModelInputs *sn_model_inputs_read(FILE *list, const struct timespec *began) {
  struct timespec now;
  struct stat seen;
  char path[PATH_MAX];
  SnModelInputs *x = calloc(1, sizeof *x);
  if (x) atomic_init(&x->owners, 1);
  XXH3_state_t *state = XXH3_createState();
  bool ok = x && state && XXH3_64bits_reset(state) == XXH_OK;
  clock_gettime(CLOCK_REALTIME, &now);
  while (ok && fgets(path, sizeof path, list)) {
    path[strcspn(path, "\n")] = 0;
    ok = read_file(state, path, &seen) && add(x, path, &seen);
    if (!ok) break;
    x->torn |= began && seconds_between(began, &seen.st_ctim) > 0;
    x->fresh |= seconds_between(&seen.st_ctim, &now) < coarse;
  }
  ok = ok && x->n > 0;
  if (ok) x->hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  if (ok) return x;
  sn_model_inputs_free(x);
  return NULL;
}

SnModelInputs *sn_model_inputs_share(SnModelInputs *x) {
  if (x) atomic_fetch_add(&x->owners, 1);
  return x;
}

void sn_model_inputs_free(SnModelInputs *x) {
  if (!x || atomic_fetch_sub(&x->owners, 1) > 1) return;
  for (int i = 0; i < x->n; i++) free(x->file[i].path);
  free(x->file);
  free(x);
}

// What changes with a file's contents: its time of change, which nobody can set.
static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
         a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool sn_model_inputs_hold(const SnModelInputs *x) {
  if (!x || x->torn || x->fresh) return false;
  for (int i = 0; i < x->n; i++) {
    struct stat now;
    if (stat(x->file[i].path, &now) != 0 || !is_same(&x->file[i].seen, &now)) return false;
  }
  return true;
}

bool sn_model_inputs_equal(const SnModelInputs *a, const SnModelInputs *b) {
  return a && b && !a->torn && !b->torn && a->n == b->n && a->hash == b->hash;
}
