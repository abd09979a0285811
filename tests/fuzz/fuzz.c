#include "tests/fuzz/fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *fuzz_inputs;
void (*fuzz_anew)(void);

void fuzz_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("fuzz: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  if (fuzz_inputs) fprintf(stderr, "fuzz: inputs in %s\n", fuzz_inputs);
  va_end(args);
  abort();
}

const char *fuzz_file(const void *bytes, size_t size) {
  static int fd = -1;
  static char path[64];
  if (fd < 0) {
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0600) != 0) fuzz_fail("no file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) fuzz_fail("a file cannot be written");
  return path;
}

size_t fuzz_read(const char *path, uint8_t *bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) fuzz_fail("%s cannot be read", path);
  const size_t n = fread(bytes, 1, FUZZ_SEED_BYTES, f);
  fclose(f);
  return n;
}

size_t fuzz_text(const char *text, uint8_t *bytes) {
  const size_t n = strlen(text);
  memcpy(bytes, text, n);
  return n;
}
