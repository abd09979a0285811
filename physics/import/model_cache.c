// An entry of the cache is two files: KEY.sinew, the flat model, and KEY.files, which holds for it: a line
// "sinew-cache 3 <checksum of the model>" and the list of inputs (model_inputs.c). KEY is the hash of the XML's path,
// or, for bytes from memory, "memory-" and a part of their hash: of those the cache keeps so many and no more. Programs
// in single precision have entries of their own, since an image has the numbers that its importer rounded.
#include "physics/import/model_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "physics/base/files.h"
#include "physics/base/folders.h"
#include "physics/import/child_private.h"
#include "physics/import/model_inputs_private.h"
#include "physics/import/sandbox_private.h"
#include "physics/model/model_file.h"

struct SnModelCache {
  char folder[PATH_MAX / 2];
  char importer[PATH_MAX];
  double seconds;
  size_t bytes;
  bool sandbox;
  atomic_bool cancelled;
};

typedef struct Entry {
  char model[PATH_MAX], files[PATH_MAX];
} Entry;

SnModelCacheDef sn_default_model_cache_def(void) { return (SnModelCacheDef){.seconds = 60, .bytes = (size_t)4 << 30}; }

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

// Checks the limits, makes the folder and finds the program.
static SnCode prepare(SnModelCache *c, const SnModelCacheDef *def, SnError *err) {
  c->seconds = def->seconds;
  c->bytes = def->bytes;
  c->sandbox = def->sandbox;
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
  if (!sn_folder_make(c->folder)) return sn_fail(err, SN_ERR_IO, "model cache: %s: %s", c->folder, strerror(errno));
  if (!sn_is_program(c->importer))
    return sn_fail(err, SN_ERR_NOT_FOUND, "model cache: the program %s cannot be run: %s", c->importer,
                   strerror(errno));
  return SN_OK;
}

// Checksum in the header of an image; false when there is none.
static bool image_checksum(const char *path, uint64_t *checksum) {
  SnModelHeader h;
  FILE *f = sn_file_open(path);
  const bool ok = f && fread(&h, sizeof h, 1, f) == 1;
  if (f) fclose(f);
  if (ok) *checksum = h.checksum;
  return ok;
}

// Writes the list of an entry whose image has this checksum.
static bool write_list(const char *files, uint64_t image, const SnModelInputs *inputs) {
  SnDraft draft;
  if (!sn_draft_begin(&draft, files, true)) return false;
  const bool ok = fprintf(draft.to, "sinew-cache 3 %" PRIx64 "\n", image) > 0;
  return sn_draft_end(&draft, files, 0600, ok && sn_model_inputs_write(inputs, draft.to));
}

// The model of an entry that still holds, with its inputs, or NULL. Files that have a new time but the old contents are
// noted with it, so that they need not be read the next time.
static SnModel *find(const Entry *e, uint64_t seed, SnModelInputs **inputs) {
  FILE *list = sn_file_open(e->files);
  uint64_t image = 0, present = 0;
  bool ok = list && fscanf(list, "sinew-cache 3 %" SCNx64, &image) == 1;
  SnModelInputs *read = ok ? sn_model_inputs_recall(list, seed) : NULL;
  if (list) fclose(list);
  ok = read && image_checksum(e->model, &present) && present == image;
  SnModel *m = ok ? sn_model_load_file(e->model, NULL) : NULL;
  if (m && !read->remembered && !read->fresh) write_list(e->files, image, read);
  if (m)
    *inputs = read;
  else
    sn_model_inputs_free(read);
  return m;
}

// Makes the files of an import, in temporary places, into the entry. A cache that cannot be written only costs time.
static void keep(const Entry *e, const char *model, const SnModelInputs *inputs) {
  uint64_t image = 0;
  if (image_checksum(model, &image) && rename(model, e->model) == 0) write_list(e->files, image, inputs);
}

// What the child said, or, when it said nothing, what became of it.
static SnCode report(const SnChildResult *r, const char *file, double seconds, SnError *err) {
  if (r->cancelled) return sn_fail(err, SN_ERR_STATE, "%s: importing was cancelled", file);
  if (r->timed_out) return sn_fail(err, SN_ERR_TIMEOUT, "%s: importing took longer than %g s", file, seconds);
  if (r->unknown)
    return sn_fail(err, SN_ERR_FORMAT, "%s", r->text[0] ? r->text : "the importer ended, and nobody knows how");
  if (r->signal == SIGKILL)
    return sn_fail(err, SN_ERR_LIMIT, "%s: the importer was killed, as where a machine runs out of memory%s%.3000s",
                   file, r->text[0] ? ": " : "", r->text);
  if (r->signal == SIGXFSZ)
    return sn_fail(err, SN_ERR_LIMIT, "%s: the importer was killed, since a file that it writes may not be so long",
                   file);
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
static SnModelInputs *read_inputs(const char *files, const struct timespec *began, uint64_t seed) {
  FILE *list = sn_file_open(files);
  SnModelInputs *inputs = list ? sn_model_inputs_read(list, began, seed) : NULL;
  if (list) fclose(list);
  return inputs;
}

// Where a model comes from: a file, or bytes that count as those of a file in `folder`.
typedef struct Source {
  const char *name;  // for texts
  const char *path;  // NULL: bytes
  const void *bytes;
  size_t size;
  const char *folder;
  uint64_t seed;  // of its inputs
} Source;

// Writes bytes to a new file.
static SnCode write_bytes(const char *path, const Source *from, SnError *err) {
  FILE *f = fopen(path, "wbe");
  bool ok = f && fwrite(from->bytes, 1, from->size, f) == from->size;
  if (f) ok = fclose(f) == 0 && ok;
  return ok ? SN_OK : sn_fail(err, SN_ERR_IO, "model cache: %s: %s", path, strerror(errno));
}

// The import of one model: a folder of its own, and the files in it. Who imports holds a lock on the folder, which ends
// with his process: what nobody holds was left behind.
typedef struct Import {
  char folder[PATH_MAX], bytes[PATH_MAX + 16], model[PATH_MAX + 16], files[PATH_MAX + 16];
  int lock;  // -1: none
} Import;

static void name_files(Import *x) {
  snprintf(x->bytes, sizeof x->bytes, "%s/bytes", x->folder);
  snprintf(x->model, sizeof x->model, "%s/model", x->folder);
  snprintf(x->files, sizeof x->files, "%s/files", x->folder);
}

static bool lock_folder(Import *x) {
  x->lock = open(x->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  return x->lock >= 0 && flock(x->lock, LOCK_EX | LOCK_NB) == 0;
}

static void end_import(const Import *x) {
  unlink(x->bytes);
  unlink(x->model);
  unlink(x->files);
  rmdir(x->folder);
  if (x->lock >= 0) close(x->lock);
}

// Names of folders of imports begin so: in the cache's folder, and where that cannot be written, in the system's.
static const char in_cache[] = "import.", in_system[] = "sinew-import.";

static const char *system_folder(void) {
  const char *folder = getenv("TMPDIR");
  return folder && folder[0] == '/' ? folder : "/tmp";
}

static SnCode begin_import(const char *folder, const char *prefix, const Source *from, Import *x, SnError *err) {
  if (snprintf(x->folder, sizeof x->folder, "%s/%sXXXXXX", folder, prefix) >= (int)sizeof x->folder ||
      !mkdtemp(x->folder))
    return sn_fail(err, SN_ERR_IO, "model cache: %s: %s", folder, strerror(errno));
  name_files(x);
  lock_folder(x);
  return from->path ? SN_OK : write_bytes(x->bytes, from, err);
}

// Seconds after which a folder has been locked by the one who has made it.
static const double lock_time = 2;

// Removes folders of imports that were left behind by processes that were killed.
static void sweep(const char *folder, const char *prefix) {
  DIR *dir = opendir(folder);
  for (const struct dirent *entry; dir && (entry = readdir(dir));) {
    Import x = {.lock = -1};
    struct stat st;
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
    if (snprintf(x.folder, sizeof x.folder, "%s/%s", folder, entry->d_name) >= (int)sizeof x.folder) continue;
    name_files(&x);
    const bool left = lock_folder(&x) && fstat(x.lock, &st) == 0 && st.st_uid == geteuid() &&
                      difftime(time(NULL), st.st_mtime) > lock_time;
    if (left)
      end_import(&x);
    else if (x.lock >= 0)
      close(x.lock);
  }
  if (dir) closedir(dir);
}

// Runs the importer.
static SnCode run_import(SnModelCache *c, const Source *from, Import *x, SnError *err) {
  char seconds[32], megabytes[32], folder[PATH_MAX + 16], path[PATH_MAX + 16];
  snprintf(seconds, sizeof seconds, "%d", c->seconds < 3600 ? (int)c->seconds + 1 : 3600);
  snprintf(megabytes, sizeof megabytes, "%zu", c->bytes >> 20 < 1000000 ? c->bytes >> 20 : 1000000);
  snprintf(folder, sizeof folder, "--folder=%s", from->path ? "" : from->folder);
  snprintf(path, sizeof path, "%s", from->path ? from->path : x->bytes);
  char sandbox[] = "--sandbox=required";
  char *argv[15] = {c->importer, "--output", x->model,   "--depends", x->files,
                    "--seconds", seconds,    "--memory", megabytes};
  int n = 9;
  if (c->sandbox) argv[n++] = sandbox;
  if (!from->path) argv[n++] = folder;
  argv[n++] = "--";
  argv[n] = path;
  SnChildResult result;
  const SnCode code = sn_child_run(argv, c->seconds, &c->cancelled, &result, err);
  if (code == SN_OK && result.unknown && access(x->model, R_OK) == 0) return SN_OK;  // its image is whole, or not there
  return code == SN_OK ? report(&result, from->name, c->seconds, err) : code;
}

// Imports into a new folder, and keeps it in the cache. *written says whether the folder could be written.
static SnModel *import_in(SnModelCache *c, const char *folder, const char *prefix, const Source *from, const Entry *e,
                          SnModelInputs **inputs, SnError *err, bool *written) {
  Import x = {.lock = -1};
  SnModel *m = NULL;
  struct timespec began;
  clock_gettime(CLOCK_REALTIME, &began);
  SnCode code = begin_import(folder, prefix, from, &x, err);
  if (code == SN_OK) code = run_import(c, from, &x, err);
  *written = code != SN_ERR_IO;
  if (code == SN_OK) {
    m = sn_model_load_file(x.model, err);
    *inputs = m ? read_inputs(x.files, &began, from->seed) : NULL;
    if (*inputs && !(*inputs)->torn) keep(e, x.model, *inputs);
  }
  end_import(&x);
  return m;
}

// A cache that is full or cannot be written any more costs time and nothing else.
static SnModel *import(SnModelCache *c, const Source *from, const Entry *e, SnModelInputs **inputs, SnError *err) {
  bool written;
  SnModel *m = import_in(c, c->folder, in_cache, from, e, inputs, err, &written);
  return written ? m : import_in(c, system_folder(), in_system, from, e, inputs, err, &written);
}

// ---- the cache ----

bool sn_model_cache_has_sandbox(void) { return sn_sandbox_exists(); }

SnModelCache *sn_model_cache_open(const SnModelCacheDef *def, SnError *err) {
  SnModelCache *c = calloc(1, sizeof *c);
  if (!c) {
    sn_fail(err, SN_ERR_MEMORY, "model cache: out of memory");
    return NULL;
  }
  if (prepare(c, def, err) == SN_OK) {
    sweep(c->folder, in_cache);
    sweep(system_folder(), in_system);
    return c;
  }
  free(c);
  return NULL;
}

void sn_model_cache_close(SnModelCache *c) { free(c); }

void sn_model_cache_cancel(SnModelCache *c) { atomic_store(&c->cancelled, true); }

// Hash of a path, another one in single precision.
static uint64_t hash_of(const char *path) {
  return XXH3_64bits_withSeed(path, strlen(path), sizeof(double) / sizeof(sn_real) - 1);
}

// The model of the cache's entry KEY, or else of an import.
static SnModel *load(SnModelCache *c, const Source *from, const char *key, SnModelInputs **inputs, SnError *err) {
  Entry e;
  snprintf(e.model, sizeof e.model, "%s/%s.sinew", c->folder, key);
  snprintf(e.files, sizeof e.files, "%s/%s.files", c->folder, key);
  *inputs = NULL;
  SnModel *m = find(&e, from->seed, inputs);
  return m ? m : import(c, from, &e, inputs, err);
}

SnModel *sn_model_cache_load(SnModelCache *c, const char *file, SnModelInputs **inputs, SnError *err) {
  char path[PATH_MAX], key[32];
  *inputs = NULL;
  if (!realpath(file, path)) {
    sn_fail(err, SN_ERR_IO, "%s: %s", file, strerror(errno));
    return NULL;
  }
  snprintf(key, sizeof key, "%016" PRIx64, hash_of(path));
  return load(c, &(Source){.name = path, .path = path}, key, inputs, err);
}

// Entries that bytes from memory may take: a model of the same number takes the place of the one before.
enum { MEMORY_ENTRIES = 256 };

// Writes the absolute path of a folder; false with errno.
static bool find_folder(const char *folder, char path[PATH_MAX]) {
  struct stat st;
  if (!realpath(folder, path) || stat(path, &st) != 0) return false;
  errno = ENOTDIR;
  return S_ISDIR(st.st_mode);
}

SnModel *sn_model_cache_read(SnModelCache *c, const void *bytes, size_t size, const char *folder, SnError *err) {
  char path[PATH_MAX], key[32];
  if (size > SN_MODEL_IMAGE_MAX) {
    sn_fail(err, SN_ERR_LIMIT, "model in memory: %zu bytes, allowed are %d", size, SN_MODEL_IMAGE_MAX);
    return NULL;
  }
  if (!folder) folder = ".";
  if (!find_folder(folder, path)) {
    sn_fail(err, SN_ERR_IO, "folder %s: %s", folder, strerror(errno));
    return NULL;
  }
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size, hash_of(path));
  snprintf(key, sizeof key, "memory-%02x", (unsigned)(hash.high64 % MEMORY_ENTRIES));
  SnModelInputs *inputs;
  const Source from = {.name = "model in memory", .bytes = bytes, .size = size, .folder = path, .seed = hash.low64 | 1};
  SnModel *m = load(c, &from, key, &inputs, err);
  sn_model_inputs_free(inputs);
  return m;
}
