// Declares what handlers need of the binary interface through which XLA calls foreign functions, version 0.1 and later
// minor ones (jaxlib 0.6 and newer). It is stable, so the package builds without jaxlib and runs with any of these.
// tests/clients/python/test_jax.py compares the layout with that of the installed jaxlib.
#ifndef SINEW_PYTHON_XLA_ABI_PRIVATE_H_
#define SINEW_PYTHON_XLA_ABI_PRIVATE_H_

#include <cstddef>
#include <cstdint>

namespace sinew_python::xla {

// The versions whose layouts are those below.
enum : int { version_major = 0, version_minor_oldest = 1, version_minor_newest = 3 };

enum DataType : int { type_s32 = 4, type_f32 = 11, type_f64 = 12 };

enum ErrorCode : int {
  error_argument = 3,
  error_memory = 8,
  error_state = 9,
  error_unsupported = 12,
  error_other = 13
};

enum ExtensionType : int { extension_metadata = 1 };
enum AttributeType : int { attribute_string = 4 };

struct Extension {
  size_t struct_size;
  ExtensionType type;
  Extension *next;
};

struct Version {
  size_t struct_size;
  Extension *extensions;
  int major, minor;
};

// Holds what XLA asks of a handler when it is registered.
struct Metadata {
  size_t struct_size;
  Version version;
  uint32_t traits;
};

struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

// Stands for an error, which belongs to XLA.
struct Error;

struct ErrorCreate {
  size_t struct_size;
  Extension *extensions;
  const char *message;
  ErrorCode code;
};

struct Api {
  size_t struct_size;
  Extension *extensions;
  Version version;
  const void *internal;
  Error *(*create_error)(ErrorCreate *);
};

struct Buffer {
  size_t struct_size;
  Extension *extensions;
  DataType type;
  void *data;
  int64_t rank;
  int64_t *dims;
};

// Holds arguments; results have the same layout.
struct Buffers {
  size_t struct_size;
  Extension *extensions;
  int64_t size;
  int *types;
  Buffer **data;
};

struct Text {
  const char *data;
  size_t size;
};

// Holds attributes, sorted by name. The data of one of a string is a Text.
struct Attributes {
  size_t struct_size;
  Extension *extensions;
  int64_t size;
  AttributeType *types;
  Text **names;
  void **data;
};

struct CallFrame {
  size_t struct_size;
  Extension *extensions;
  const Api *api;
  void *context;
  int stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
};

}  // namespace sinew_python::xla

#endif
