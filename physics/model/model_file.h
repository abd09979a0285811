// The flat image of a model: what sinew-import writes and every other process reads.
//
// Layout: a header of 64 bytes (below), sizes as int32 in the order of model_sizes.inc, options as float64, arrays of
// model_fields.inc. Each array (int32, float64, char) begins on a multiple of 8 bytes. Numbers are little-endian, in
// double precision in every build. The reader trusts nothing: checksum, sizes against their caps, every index, every
// number (model_check.c).
#ifndef SINEW_PHYSICS_MODEL_MODEL_FILE_H_
#define SINEW_PHYSICS_MODEL_MODEL_FILE_H_

#include "physics/model/model.h"

// Counts up in SN_MODEL_VERSION whenever the importer puts something else into an image: models are imported again
// then. The fields themselves are in the header's `schema`.
enum { SN_MODEL_VERSION = 5, SN_MODEL_BYTE_ORDER = 0x01020304, SN_MODEL_IMAGE_MAX = 1 << 30 };

typedef struct SnModelHeader {
  char magic[8];        // "SINEWMDL"
  uint32_t version;     // SN_MODEL_VERSION
  uint32_t byte_order;  // SN_MODEL_BYTE_ORDER
  uint64_t schema;      // hash of the names, types and shapes of all fields: another build, another layout
  uint64_t size;        // bytes of the image, header included
  uint64_t checksum;    // XXH3 of everything after the header
  uint64_t reserved[3];
} SnModelHeader;

// Returns whether bytes begin as an image does.
bool sn_model_is_image(const void *bytes, size_t size);

// Reads an image of `size` bytes (any alignment) into a model that is checked, set up and ready for use. The caller
// frees it with sn_model_free. Returns NULL and sets err on failure: SN_ERR_FORMAT, SN_ERR_LIMIT, SN_ERR_MEMORY.
SnModel *sn_model_read(const void *image, size_t size, SnError *err);

// Reads an image from a file as sn_model_read does; SN_ERR_IO when it cannot be read.
SnModel *sn_model_load_file(const char *path, SnError *err);

// Makes the image of a model; *size gets its bytes. The caller frees it. Returns NULL and sets err on failure:
// SN_ERR_LIMIT over SN_MODEL_IMAGE_MAX, SN_ERR_MEMORY.
void *sn_model_write(const SnModel *m, size_t *size, SnError *err);

// Returns the checksum of a model's image, 0 and err where there is none: the same for the same numbers.
uint64_t sn_model_checksum(const SnModel *m, SnError *err);

// Writes an image to a file, through a temporary file next to it, so that a reader never sees a part.
SnCode sn_model_save_file(const SnModel *m, const char *path, SnError *err);

// Recomputes size and checksum of an image that was changed on purpose. Only tests and tools call it.
void sn_model_seal(void *image, size_t size);

#endif
