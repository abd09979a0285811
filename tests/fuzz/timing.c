#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fuzz/fuzz.h"

#define SLOW 0.1  // [s] of this thread's processor time, under sanitizers, too

enum { KEPT = 100 };

static double slowest;
static size_t slowest_size;

static double thread_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void keep(const uint8_t *data, size_t size, double seconds) {
  static int kept;
  const char *folder = getenv("FUZZ_SLOW");
  char path[4096];
  fprintf(stderr, "fuzz: slow input: %.3f s for %zu bytes\n", seconds, size);
  if (!folder || kept == KEPT) return;
  snprintf(path, sizeof path, "%s/slow-%d-%.0fms", folder, kept++, 1e3 * seconds);
  if (fuzz_inputs) {
    char copy[8192];
    snprintf(copy, sizeof copy, "cp -rT '%s' '%s'", fuzz_inputs, path);
    if (system(copy) != 0) fuzz_fail("%s cannot be written", path);
    return;
  }
  FILE *f = fopen(path, "wb");
  if (!f) return;
  fwrite(data, 1, size, f);
  fclose(f);
}

void fuzz_timed(const uint8_t *data, size_t size) {
  static bool warm;
  const double began = thread_time();
  fuzz_one(data, size);
  const double took = thread_time() - began;
  if (warm && took > slowest) {
    slowest = took;
    slowest_size = size;
  }
  if (warm && took > SLOW) keep(data, size, took);
  warm = true;
}

void fuzz_tell_slowest(void) {
  if (slowest > 0) printf("slowest: %.3f ms for %zu bytes\n", 1e3 * slowest, slowest_size);
}
