#include "physics/import/model_inputs_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

// Looks at a file as who opens it does: of a network folder an opened file's time is the server's, that of a path may
// be what this machine remembers. False when it cannot be opened.
static bool look(const char *path, struct stat *seen) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const bool ok = fd >= 0 && fstat(fd, seen) == 0;
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

static SnModelInputs *create(uint64_t seed) {
  SnModelInputs *x = calloc(1, sizeof *x);
  if (!x) return NULL;
  x->seed = seed;
  atomic_init(&x->owners, 1);
  return x;
}

// Frees what is not whole. Returns NULL.
static SnModelInputs *give_up(SnModelInputs *x) {
  sn_model_inputs_free(x);
  return NULL;
}

// Reads every file of the list (paths and `seen` are known): hash, `fresh`, and `torn` where the making has begun.
static bool read_contents(SnModelInputs *x, const struct timespec *began) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  XXH3_state_t *state = XXH3_createState();
  bool ok = state && XXH3_64bits_reset_withSeed(state, x->seed) == XXH_OK;
  x->fresh = false;
  for (int i = 0; ok && i < x->n; ++i) {
    const struct stat *seen = &x->file[i].seen;
    ok = read_file(state, x->file[i].path, &x->file[i].seen);
    x->torn |= began && seconds_between(began, &seen->st_ctim) > 0;
    x->fresh |= seconds_between(&seen->st_ctim, &now) < coarse;
  }
  if (ok) x->hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return ok;
}

SnModelInputs *sn_model_inputs_read(FILE *list, const struct timespec *began, uint64_t seed) {
  char path[PATH_MAX];
  SnModelInputs *x = create(seed);
  bool ok = x != NULL;
  while (ok && fgets(path, sizeof path, list)) {
    path[strcspn(path, "\n")] = 0;
    ok = add(x, path, &(struct stat){0});
  }
  return ok && (x->n > 0 || seed) && read_contents(x, began) ? x : give_up(x);
}

// What changes with a file's contents: its time of change, which nobody can set.
static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
         a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

// A list: "HASH SEED N SETTLED", then for each file "DEVICE INODE SIZE SECONDS NANOSECONDS PATH".
bool sn_model_inputs_write(const SnModelInputs *x, FILE *list) {
  bool ok = fprintf(list, "%" PRIx64 " %" PRIx64 " %d %d\n", x->hash, x->seed, x->n, !x->fresh && !x->torn) > 0;
  for (int i = 0; ok && i < x->n; ++i) {
    const struct stat *s = &x->file[i].seen;
    ok = fprintf(list, "%ju %ju %jd %jd %ld %s\n", (uintmax_t)s->st_dev, (uintmax_t)s->st_ino, (intmax_t)s->st_size,
                 (intmax_t)s->st_ctim.tv_sec, s->st_ctim.tv_nsec, x->file[i].path) > 0;
  }
  return ok;
}

// One line of a list.
static bool read_line(FILE *list, struct stat *seen, char path[PATH_MAX]) {
  uintmax_t device = 0, inode = 0;
  intmax_t size = 0, seconds = 0;
  long nanoseconds = 0;
  if (fscanf(list, "%ju %ju %jd %jd %ld", &device, &inode, &size, &seconds, &nanoseconds) != 5) return false;
  if (fgetc(list) != ' ' || !fgets(path, PATH_MAX, list)) return false;
  path[strcspn(path, "\n")] = 0;
  *seen = (struct stat){.st_dev = (dev_t)device, .st_ino = (ino_t)inode, .st_size = (off_t)size};
  seen->st_ctim = (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = nanoseconds};
  return true;
}

SnModelInputs *sn_model_inputs_recall(FILE *list, uint64_t seed) {
  char path[PATH_MAX];
  struct stat kept, now;
  uint64_t hash = 0, kept_seed = 0;
  int n = 0, settled = 0;
  SnModelInputs *x = create(seed);
  bool ok = x && fscanf(list, "%" SCNx64 " %" SCNx64 " %d %d", &hash, &kept_seed, &n, &settled) == 4;
  ok = ok && kept_seed == seed && (n > 0 || seed);
  bool same = settled == 1;
  for (int i = 0; ok && i < n; ++i) {
    ok = read_line(list, &kept, path) && look(path, &now) && add(x, path, &now);
    same = ok && same && is_same(&kept, &now);
  }
  if (!ok) return give_up(x);
  x->hash = hash;
  x->remembered = same;
  return same || (read_contents(x, NULL) && x->hash == hash) ? x : give_up(x);
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

bool sn_model_inputs_hold(const SnModelInputs *x) {
  if (!x || x->torn || x->fresh) return false;
  for (int i = 0; i < x->n; i++) {
    struct stat now;
    if (!look(x->file[i].path, &now) || !is_same(&x->file[i].seen, &now)) return false;
  }
  return true;
}

bool sn_model_inputs_equal(const SnModelInputs *a, const SnModelInputs *b) {
  return a && b && !a->torn && !b->torn && a->n == b->n && a->hash == b->hash;
}
