#include "physics/model/model_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "physics/base/files.h"
#include "physics/model/model_private.h"

static_assert(sizeof(SnModelHeader) == 64, "the header is 64 bytes");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "images are little-endian");

static const char magic[8] = {'S', 'I', 'N', 'E', 'W', 'M', 'D', 'L'};

static uint64_t mix(uint64_t hash, const char *text) { return XXH3_64bits_withSeed(text, strlen(text), hash); }

// Hash of all that fixes the layout.
static uint64_t schema_hash(void) {
  uint64_t h = 0;
#define SN_SIZE(name) h = mix(h, #name);
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SN_OPTION(type, name, count) h = mix(h, #type " " #name " " #count);
#include "physics/model/option_fields.inc"
#undef SN_OPTION
#define SN_MODEL_FIELD(type, name, rows, cols) h = mix(h, #type " " #name " " #rows " " #cols);
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
  return h;
}

// A place in an image. Counting has no data; a reader has source, a writer has target.
typedef struct Cursor {
  const char *source;
  char *target;
  size_t at;
} Cursor;

static void align8(Cursor *c) { c->at = (c->at + 7) / 8 * 8; }

static void visit_bytes(Cursor *c, void *data, size_t bytes) {
  if (c->source) memcpy(data, c->source + c->at, bytes);
  if (c->target) memcpy(c->target + c->at, data, bytes);
  c->at += bytes;
}

static_assert(sizeof(int) == 4, "ints are stored as they are");
static void visit_int(Cursor *c, int *x, size_t n) { visit_bytes(c, x, 4 * n); }
static void visit_char(Cursor *c, char *x, size_t n) { visit_bytes(c, x, n); }

static void visit_sn_real(Cursor *c, sn_real *x, size_t n) {
#ifdef SN_SINGLE
  for (size_t i = 0; i < n; ++i) {
    double value = c->source ? 0 : (double)x[i];
    visit_bytes(c, &value, sizeof value);
    if (c->source) x[i] = (sn_real)value;
  }
#else
  visit_bytes(c, x, sizeof(double) * n);
#endif
}

static void visit_option(Cursor *c, void *field, size_t n, bool is_int) {
  for (size_t i = 0; i < n; ++i) {
    double value = is_int ? ((int *)field)[i] : (double)((sn_real *)field)[i];
    visit_bytes(c, &value, sizeof value);
    if (!c->source) continue;
    if (!is_int)
      ((sn_real *)field)[i] = (sn_real)value;
    else
      ((int *)field)[i] = value >= -2147483648.0 && value <= 2147483647.0 ? (int)value : -1;
  }
}

// The one routine that knows the layout up to the arrays: sizes and options.
static void visit_head(Cursor *c, SnModel *m) {
  c->at = sizeof(SnModelHeader);
#define SN_SIZE(name) visit_int(c, &m->name, 1);
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
  align8(c);
#define SN_OPTION(type, name, count) visit_option(c, &m->opt.name, (count), IS_INT_##type);
#define IS_INT_int true
#define IS_INT_sn_real false
#include "physics/model/option_fields.inc"
#undef SN_OPTION
}

// And the one for the arrays.
static void visit_arrays(Cursor *c, SnModel *m) {
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SN_MODEL_FIELD(type, name, rows, cols) \
  align8(c);                                   \
  visit_##type(c, m->name, (size_t)(rows) * (size_t)(cols));
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
  align8(c);
}

// Bytes of the image of a model with these sizes; SIZE_MAX when over the cap. Arrays need not exist.
static size_t image_size(const SnModel *sizes) {
  SnModel m = *sizes;
  Cursor c = {0};
  visit_head(&c, &m);
  uint64_t total = c.at;
#define SN_SIZE(name)      \
  const int name = m.name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define BYTES_int 4
#define BYTES_char 1
#define BYTES_sn_real 8
#define SN_MODEL_FIELD(type, name, rows, cols)                             \
  total += ((uint64_t)(rows) * (uint64_t)(cols)*BYTES_##type + 7) / 8 * 8; \
  if (total > SN_MODEL_IMAGE_MAX) return SIZE_MAX;
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
  return (size_t)total;
}

void sn_model_seal(void *image, size_t size) {
  SnModelHeader h;
  if (size < sizeof h) return;
  memcpy(&h, image, sizeof h);
  h.size = size;
  h.checksum = XXH3_64bits((const char *)image + sizeof h, size - sizeof h);
  memcpy(image, &h, sizeof h);
}

void *sn_model_write(const SnModel *m, size_t *size, SnError *err) {
  if (sn_model_check_sizes(m, err) != SN_OK) return NULL;
  *size = image_size(m);
  if (*size == SIZE_MAX) {
    sn_fail(err, SN_ERR_LIMIT, "the image of the model is over %d bytes", SN_MODEL_IMAGE_MAX);
    return NULL;
  }
  char *image = calloc(1, *size);
  if (!image) {
    sn_fail(err, SN_ERR_MEMORY, "no memory for an image of %zu bytes", *size);
    return NULL;
  }
  SnModelHeader h = {.version = SN_MODEL_VERSION, .byte_order = SN_MODEL_BYTE_ORDER, .schema = schema_hash()};
  memcpy(h.magic, magic, sizeof magic);
  memcpy(image, &h, sizeof h);
  SnModel shallow = *m;  // the routines of the layout also read, so they take a model that is not const
  Cursor c = {.target = image};
  visit_head(&c, &shallow);
  visit_arrays(&c, &shallow);
  sn_model_seal(image, *size);
  return image;
}

uint64_t sn_model_checksum(const SnModel *m, SnError *err) {
  SnModelHeader h = {0};
  size_t size = 0;
  void *image = sn_model_write(m, &size, err);
  if (image) memcpy(&h, image, sizeof h);
  free(image);
  return h.checksum;
}

bool sn_model_is_image(const void *bytes, size_t size) {
  return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static SnCode check_header(const void *image, size_t size, SnError *err) {
  SnModelHeader h;
  if (size < sizeof h)
    return sn_fail(err, SN_ERR_FORMAT, "model image: %zu bytes, its header alone has %zu", size, sizeof h);
  if (size > SN_MODEL_IMAGE_MAX)
    return sn_fail(err, SN_ERR_LIMIT, "model image: %zu bytes; the limit is %d", size, SN_MODEL_IMAGE_MAX);
  memcpy(&h, image, sizeof h);
  if (!sn_model_is_image(image, size)) return sn_fail(err, SN_ERR_FORMAT, "model image: not made by sinew-import");
  if (h.byte_order != SN_MODEL_BYTE_ORDER)
    return sn_fail(err, SN_ERR_FORMAT, "model image: of a machine with another byte order");
  if (h.version != SN_MODEL_VERSION)
    return sn_fail(err, SN_ERR_FORMAT, "model image: version %u, this program reads %d: import the model again",
                   h.version, SN_MODEL_VERSION);
  if (h.schema != schema_hash())
    return sn_fail(err, SN_ERR_FORMAT, "model image: of another build of sinew: import the model again");
  if (h.size != size)
    return sn_fail(err, SN_ERR_FORMAT, "model image: %zu bytes, its header says %llu", size,
                   (unsigned long long)h.size);
  if (h.checksum != XXH3_64bits((const char *)image + sizeof h, size - sizeof h))
    return sn_fail(err, SN_ERR_FORMAT, "model image: the checksum is wrong, the file is damaged");
  return SN_OK;
}

SnModel *sn_model_read(const void *image, size_t size, SnError *err) {
  if (check_header(image, size, err) != SN_OK) return NULL;
  SnModel sizes = {0};
  Cursor count = {0};
  visit_head(&count, &sizes);
  if (size < count.at) {
    sn_fail(err, SN_ERR_FORMAT, "model image: %zu bytes, sizes and options alone have %zu", size, count.at);
    return NULL;
  }
  Cursor c = {.source = image};
  visit_head(&c, &sizes);
  if (sn_model_check_sizes(&sizes, err) != SN_OK) return NULL;
  const size_t expected = image_size(&sizes);
  if (expected != size) {
    sn_fail(err, SN_ERR_FORMAT, "model image: %zu bytes, its sizes make %zu", size, expected);
    return NULL;
  }
  SnModel *m = sn_model_create(&sizes, err);
  if (!m) return NULL;
  m->opt = sizes.opt;
  visit_arrays(&c, m);
  if (sn_model_check(m, err) != SN_OK || sn_model_setup(m, err) != SN_OK) {
    sn_model_free(m);
    return NULL;
  }
  return m;
}

// All bytes of an open file, or NULL.
static void *read_all(int fd, size_t size) {
  char *data = malloc(size ? size : 1);
  for (size_t at = 0; data && at < size;) {
    const ssize_t n = read(fd, data + at, size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      free(data);
      return NULL;
    }
    at += (size_t)n;
  }
  return data;
}

SnModel *sn_model_load_file(const char *path, SnError *err) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // what is no file must not be waited for
  struct stat st;
  SnModel *m = NULL;
  if (fd < 0 || fstat(fd, &st) != 0) {
    sn_fail(err, SN_ERR_IO, "%s: %s", path, strerror(errno));
  } else if (!S_ISREG(st.st_mode) || st.st_size > SN_MODEL_IMAGE_MAX) {
    sn_fail(err, SN_ERR_FORMAT, "%s: not a file of at most %d bytes", path, SN_MODEL_IMAGE_MAX);
  } else {
    void *image = read_all(fd, (size_t)st.st_size);
    if (!image)
      sn_fail(err, SN_ERR_IO, "%s: could not read %lld bytes", path, (long long)st.st_size);
    else
      m = sn_model_read(image, (size_t)st.st_size, err);
    free(image);
  }
  if (fd >= 0) close(fd);
  return m;
}

SnCode sn_model_save_file(const SnModel *m, const char *path, SnError *err) {
  SnDraft draft;
  size_t size = 0;
  void *image = sn_model_write(m, &size, err);
  if (!image) return err ? err->code : SN_ERR_MEMORY;
  const bool begun = sn_draft_begin(&draft, path, false);
  const bool done = begun && sn_draft_end(&draft, path, 0644, fwrite(image, 1, size, draft.to) == size);
  const int why = errno;
  free(image);
  if (done) return SN_OK;
  return sn_fail(err, SN_ERR_IO, "%s: could not write the image: %s", path,
                 why == EEXIST ? "not a regular file" : strerror(why));
}
