// A fuzz target under libFuzzer.
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool tells;
  if (!tells) tells = atexit(fuzz_tell_slowest) == 0;
  fuzz_timed(data, size);
  return 0;
}
