// A fuzz target under libFuzzer. Inputs that take longer than they may are kept in the folder that FUZZ_SLOW names,
// each as a file, or as a folder with all inputs that led to it.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fuzz/fuzz.h"

#define SLOW 0.1  // [s] of this thread's processor time, under sanitizers

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
  if (!folder || kept == 100) return;
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int warm;
  const double began = thread_time();
  fuzz_one(data, size);
  const double took = thread_time() - began;
  if (took > SLOW && warm) keep(data, size, took);
  warm = 1;  // the first input sets up what the target works on
  return 0;
}
