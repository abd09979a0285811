#include "clients/base/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

SinewStatus api_fail(SinewError *err, SinewStatus status, const char *format, ...) {
  if (!err) return status;
  err->status = status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(err->text, sizeof err->text, format, arguments);
  va_end(arguments);
  return status;
}

SinewStatus api_ok(SinewError *err) {
  if (!err) return SINEW_OK;
  err->status = SINEW_OK;
  err->text[0] = 0;
  return SINEW_OK;
}

// No structure grows beyond it: a greater size is an accident, and that many bytes may not be there to be read.
enum { LARGEST = 4096 };

// Checks the size of a caller's structure, and that nothing is set that this version does not know.
static SinewStatus check(const ApiStruct *type, const void *in, size_t *size, SinewError *err) {
  if (!in) return api_fail(err, SINEW_ERR_ARGUMENT, "%s is NULL: start from %s()", type->name, type->maker);
  memcpy(size, in, sizeof *size);
  if (*size < type->first || *size > LARGEST)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s.size is %zu; allowed are %zu to %d bytes: start from %s()", type->name,
                    *size, type->first, LARGEST, type->maker);
  const unsigned char *byte = in;
  for (size_t i = type->known; i < *size; ++i)
    if (byte[i])
      return api_fail(err, SINEW_ERR_ARGUMENT,
                      "%s.size is %zu and byte %zu is not zero: this library knows the first %zu, a newer one has more",
                      type->name, *size, i, type->known);
  return SINEW_OK;
}

SinewStatus api_take(const ApiStruct *type, const void *in, void *out, SinewError *err) {
  size_t size = 0;
  const SinewStatus status = check(type, in, &size, err);
  if (status != SINEW_OK) return status;
  memcpy(out, in, size < type->known ? size : type->known);
  memcpy(out, &type->known, sizeof type->known);
  return api_ok(err);
}

SinewStatus api_give(const ApiStruct *type, const void *from, void *out, SinewError *err) {
  size_t size = 0;
  const SinewStatus status = check(type, out, &size, err);
  if (status != SINEW_OK) return status;
  const size_t both = size < type->known ? size : type->known;
  memcpy((char *)out + sizeof size, (const char *)from + sizeof size, both - sizeof size);
  return api_ok(err);
}
