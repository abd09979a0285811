// An entry of the cache is two files, named after the hash of the XML's path: KEY.sinew, the flat model, and KEY.files,
// which holds for it: a line "sinew-cache 1 <hash of all inputs> <checksum of the model>" and the path of every input.
#include "physics/import/model_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "physics/base/folders.h"
#include "physics/import/child_private.h"
#include "physics/import/model_inputs_private.h"
#include "physics/model/model_file.h"

struct SnModelCache {
  char folder[PATH_MAX / 2];
  char importer[PATH_MAX];
  double seconds;
  size_t bytes;
  atomic_bool cancelled;
};

typedef struct Entry {
  char model[PATH_MAX], files[PATH_MAX];
} Entry;

SnModelCacheDef sn_default_model_cache_def(void) { return (SnModelCacheDef){.seconds = 60, .bytes = (size_t)4 << 30}; }

// Makes a folder and those above it; false with errno.
static bool make_folder(const char *path) {
  char part[PATH_MAX];
  if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) {
    errno = ENAMETOOLONG;
    return false;
  }
  for (char *p = part + 1; *p; ++p) {
    if (*p != '/') continue;
    *p = 0;
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return false;
    *p = '/';
  }
  if (mkdir(part, 0700) != 0 && errno != EEXIST) return false;
  return access(part, W_OK | X_OK) == 0;
}

// Writes the folder of the cache: the one that is given, or the default.
static SnCode choose_folder(const char *given, char *out, size_t size, SnError *err) {
  if (!given || !given[0]) {
    if (sn_default_model_cache(out, size)) return SN_OK;
    return sn_fail(err, SN_ERR_ARGUMENT,
                   "model cache: no folder is given, and neither is XDG_CACHE_HOME nor HOME in the environment");
  }
  if (snprintf(out, size, "%s", given) < (int)size) return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT, "model cache: the path of the folder is too long");
}

// Tells whether a file can be run; a folder, which may be entered, cannot. errno says why not.
static bool is_program(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0 || access(path, X_OK) != 0) return false;
  if (S_ISREG(st.st_mode)) return true;
  errno = EACCES;
  return false;
}

// Checks the limits, makes the folder and finds the program.
static SnCode prepare(SnModelCache *c, const SnModelCacheDef *def, SnError *err) {
  c->seconds = def->seconds;
  c->bytes = def->bytes;
  if (def->importer && def->importer[0])
    snprintf(c->importer, sizeof c->importer, "%s", def->importer);
  else if (!sn_default_importer(c->importer, sizeof c->importer))
    c->importer[0] = '\0';
  if (!(c->seconds > 0) || c->bytes < (size_t)64 << 20)
    return sn_fail(err, SN_ERR_ARGUMENT,
                   "model cache: limits of %g s and %zu bytes; more than 0 s and at least 64 MiB are needed",
                   c->seconds, c->bytes);
  const SnCode code = choose_folder(def->folder, c->folder, sizeof c->folder, err);
  if (code != SN_OK) return code;
  if (!make_folder(c->folder)) return sn_fail(err, SN_ERR_IO, "model cache: %s: %s", c->folder, strerror(errno));
  if (!is_program(c->importer))
    return sn_fail(err, SN_ERR_NOT_FOUND, "model cache: the program %s cannot be run: %s", c->importer,
                   strerror(errno));
  return SN_OK;
}

SnModelCache *sn_model_cache_open(const SnModelCacheDef *def, SnError *err) {
  SnModelCache *c = calloc(1, sizeof *c);
  if (!c) {
    sn_fail(err, SN_ERR_MEMORY, "model cache: out of memory");
    return NULL;
  }
  if (prepare(c, def, err) == SN_OK) return c;
  free(c);
  return NULL;
}

void sn_model_cache_close(SnModelCache *c) { free(c); }

void sn_model_cache_cancel(SnModelCache *c) { atomic_store(&c->cancelled, true); }

// Checksum in the header of an image; false when there is none.
static bool image_checksum(const char *path, uint64_t *checksum) {
  SnModelHeader h;
  FILE *f = fopen(path, "rb");
  const bool ok = f && fread(&h, sizeof h, 1, f) == 1;
  if (f) fclose(f);
  if (ok) *checksum = h.checksum;
  return ok;
}

// The model of an entry that still holds, with its inputs, or NULL.
static SnModel *find(const Entry *e, SnModelInputs **inputs) {
  FILE *list = fopen(e->files, "r");
  uint64_t hash = 0, image = 0, present = 0;
  bool ok = list && fscanf(list, "sinew-cache 1 %" SCNx64 " %" SCNx64, &hash, &image) == 2 && fgetc(list) == '\n';
  SnModelInputs *read = ok ? sn_model_inputs_read(list, NULL) : NULL;
  if (list) fclose(list);
  ok = read && read->hash == hash && image_checksum(e->model, &present) && present == image;
  SnModel *m = ok ? sn_model_load_file(e->model, NULL) : NULL;
  if (m)
    *inputs = read;
  else
    sn_model_inputs_free(read);
  return m;
}

// Makes the files of an import, in temporary places, into the entry. A cache that cannot be written only costs time.
static void keep(const Entry *e, const char *model, const char *files, const SnModelInputs *inputs) {
  char temporary[PATH_MAX + 8];
  snprintf(temporary, sizeof temporary, "%s.new", files);
  FILE *to = fopen(temporary, "w");
  uint64_t image = 0;
  bool ok = to && image_checksum(model, &image);
  if (ok) {
    fprintf(to, "sinew-cache 1 %" PRIx64 " %" PRIx64 "\n", inputs->hash, image);
    for (int i = 0; i < inputs->n; i++) fprintf(to, "%s\n", inputs->file[i].path);
  }
  if (to) ok = fclose(to) == 0 && ok;
  if (ok) ok = rename(model, e->model) == 0 && rename(temporary, e->files) == 0;
  if (!ok) unlink(temporary);
}

// What the child said, or, when it said nothing, what became of it.
static SnCode report(const SnChildResult *r, const char *file, double seconds, SnError *err) {
  if (r->cancelled) return sn_fail(err, SN_ERR_STATE, "%s: importing was cancelled", file);
  if (r->timed_out) return sn_fail(err, SN_ERR_TIMEOUT, "%s: importing took longer than %g s", file, seconds);
  if (r->signal == SIGKILL)
    return sn_fail(err, SN_ERR_LIMIT, "%s: the importer was killed, as where a machine runs out of memory%s%.3000s",
                   file, r->text[0] ? ": " : "", r->text);
  if (r->signal) {
    return sn_fail(err, SN_ERR_FORMAT, "%s: the importer crashed on it (%s)%s%.3000s", file, strsignal(r->signal),
                   r->text[0] ? ": " : "", r->text);
  }
  enum { IMPORTED = 0, UNSUPPORTED = 2, LOAD = 3, LIMIT = 4, WRITE = 5 };
  switch (r->status) {
    case IMPORTED:
      return SN_OK;
    case UNSUPPORTED:
      return sn_fail(err, SN_ERR_UNSUPPORTED, "%s", r->text);
    case LOAD:
      return sn_fail(err, SN_ERR_FORMAT, "%s", r->text);
    case LIMIT:
      if (strstr(r->text, "took longer"))
        return sn_fail(err, SN_ERR_TIMEOUT, "%s: importing took longer than %g s", file, seconds);
      return sn_fail(err, SN_ERR_LIMIT, "%s", r->text);
    case WRITE:
      return sn_fail(err, SN_ERR_IO, "%s", r->text);
    default:
      return sn_fail(err, SN_ERR_IO, "%s: the importer ended with status %d%s%.3000s", file, r->status,
                     r->text[0] ? ": " : "", r->text);
  }
}

// What the importer read; NULL when it cannot be read again.
static SnModelInputs *read_inputs(const char *files, const struct timespec *began) {
  FILE *list = fopen(files, "r");
  SnModelInputs *inputs = list ? sn_model_inputs_read(list, began) : NULL;
  if (list) fclose(list);
  return inputs;
}

static SnModel *import(SnModelCache *c, const char *file, const Entry *e, SnModelInputs **inputs, SnError *err) {
  char folder[PATH_MAX], model[PATH_MAX + 16], files[PATH_MAX + 16], seconds[32], megabytes[32], path[PATH_MAX];
  snprintf(folder, sizeof folder, "%s/import.XXXXXX", c->folder);
  snprintf(path, sizeof path, "%s", file);
  if (!mkdtemp(folder)) {
    sn_fail(err, SN_ERR_IO, "model cache: %s: %s", c->folder, strerror(errno));
    return NULL;
  }
  snprintf(model, sizeof model, "%s/model", folder);
  snprintf(files, sizeof files, "%s/files", folder);
  snprintf(seconds, sizeof seconds, "%d", c->seconds < 3600 ? (int)c->seconds + 1 : 3600);
  snprintf(megabytes, sizeof megabytes, "%zu", c->bytes >> 20 < 1000000 ? c->bytes >> 20 : 1000000);
  char *const argv[] = {c->importer, "--output", model,     "--depends", files, "--seconds",
                        seconds,     "--memory", megabytes, "--",        path,  NULL};
  SnChildResult result;
  SnModel *m = NULL;
  struct timespec began;
  clock_gettime(CLOCK_REALTIME, &began);
  if (sn_child_run(argv, c->seconds, &c->cancelled, &result, err) == SN_OK &&
      report(&result, file, c->seconds, err) == SN_OK) {
    m = sn_model_load_file(model, err);
    *inputs = m ? read_inputs(files, &began) : NULL;
    if (*inputs && !(*inputs)->torn) keep(e, model, files, *inputs);
  }
  unlink(model);
  unlink(files);
  rmdir(folder);
  return m;
}

SnModel *sn_model_cache_load(SnModelCache *c, const char *file, SnModelInputs **inputs, SnError *err) {
  char path[PATH_MAX];
  *inputs = NULL;
  if (!realpath(file, path)) {
    sn_fail(err, SN_ERR_IO, "%s: %s", file, strerror(errno));
    return NULL;
  }
  Entry e;
  const unsigned long long key = XXH3_64bits(path, strlen(path));
  snprintf(e.model, sizeof e.model, "%s/%016llx.sinew", c->folder, key);
  snprintf(e.files, sizeof e.files, "%s/%016llx.files", c->folder, key);
  SnModel *m = find(&e, inputs);
  return m ? m : import(c, path, &e, inputs, err);
}
