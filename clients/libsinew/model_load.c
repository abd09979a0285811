// Models from files and memory, and back.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clients/libsinew/model_private.h"
#include "physics/import/model_cache.h"
#include "physics/model/model_file.h"

// Opens the cache in the user's folder, under the limits of every import.
static SnModelCache *open_cache(SnError *err) {
  char importer[PATH_MAX];
  if (!api_find_importer(importer, sizeof importer, err)) return NULL;
  SnModelCacheDef def = sn_default_model_cache_def();
  def.importer = importer;
  return sn_model_cache_open(&def, err);
}

// Tells whether a file is an image.
static SnCode look_at(const char *path, bool *is_image, SnError *err) {
  char first[8];
  struct stat st;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would wait for its writer
  if (fd < 0 || fstat(fd, &st) != 0) {
    const int why = errno;
    if (fd >= 0) close(fd);
    return sn_fail(err, why == ENOENT ? SN_ERR_NOT_FOUND : SN_ERR_IO, "'%s': %s", path, strerror(why));
  }
  const ssize_t n = S_ISREG(st.st_mode) ? read(fd, first, sizeof first) : -1;
  close(fd);
  *is_image = n > 0 && sn_model_is_image(first, (size_t)n);
  return n >= 0 ? SN_OK : sn_fail(err, SN_ERR_IO, "%s: not a file that can be read", path);
}

static SnModel *load(const char *path, SnError *err) {
  bool is_image = false;
  if (look_at(path, &is_image, err) != SN_OK) return NULL;
  if (is_image) return sn_model_load_file(path, err);
  SnModelCache *cache = open_cache(err);
  if (!cache) return NULL;
  SnModelInputs *inputs;
  SnModel *m = sn_model_cache_load(cache, path, &inputs, err);
  sn_model_inputs_free(inputs);
  sn_model_cache_close(cache);
  return m;
}

static SnModel *read_bytes(const void *bytes, size_t size, const char *folder, SnError *err) {
  if (sn_model_is_image(bytes, size)) return sn_model_read(bytes, size, err);
  SnModelCache *cache = open_cache(err);
  if (!cache) return NULL;
  SnModel *m = sn_model_cache_read(cache, bytes, size, folder, err);
  sn_model_cache_close(cache);
  return m;
}

// Wraps a model, or hands the error on.
static SinewModel *give(SnModel *m, const SnError *why, SinewError *err) {
  if (m) return api_model_wrap(m, err);
  api_hand_on(err, why);
  return NULL;
}

SinewModel *sinew_model_load(const char *path, SinewError *err) {
  SnError why;
  if (path) return give(load(path, &why), &why, err);
  api_fail(err, SINEW_ERR_ARGUMENT, "sinew_model_load: path is NULL");
  return NULL;
}

SinewModel *sinew_model_read(const void *bytes, size_t size, const char *folder, SinewError *err) {
  SnError why;
  if (!bytes || size == 0)
    api_fail(err, SINEW_ERR_ARGUMENT, "sinew_model_read: %s", bytes ? "size is 0" : "bytes is NULL");
  else if (size > SN_MODEL_IMAGE_MAX)
    api_fail(err, SINEW_ERR_LIMIT, "sinew_model_read: %zu bytes; the limit is %d", size, SN_MODEL_IMAGE_MAX);
  else
    return give(read_bytes(bytes, size, folder, &why), &why, err);
  return NULL;
}

SinewStatus sinew_model_save(const SinewModel *model, const char *path, SinewError *err) {
  SnError why;
  if (!model || !path)
    return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_model_save: %s is NULL", model ? "path" : "model");
  return sn_model_save_file(model->model, path, &why) == SN_OK ? api_ok(err) : api_hand_on(err, &why);
}
