#include "physics/base/status.h"

#include <stdarg.h>
#include <stdio.h>

SnCode sn_fail(SnError *err, SnCode code, const char *format, ...) {
  if (err) {
    va_list args;
    va_start(args, format);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
  }
  return code;
}

const char *sn_code_text(SnCode code) {
  switch (code) {
#define SN_ERROR_TEXT(name, text) \
  case name:                      \
    return text;
    SN_ERRORS(SN_ERROR_TEXT)
#undef SN_ERROR_TEXT
  }
  return "unknown error";
}
