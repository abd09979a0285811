// Fuzz target: the reader of flat models. Size and checksum in the header are made right, so that an engine reaches
// what lies behind them; a model that is accepted must be safe to step.
#include <stdint.h>
#include <stdlib.h>

#include "physics/model/model_file.h"
#include "tests/support/untrusted_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *image = malloc(size ? size : 1);
  if (!image) return 0;
  if (size) memcpy(image, data, size);
  sn_model_seal(image, size);
  SnModel *m = sn_model_read(image, size, NULL);
  if (m) sn_untrusted_model_run(m, 64 << 20);
  sn_model_free(m);
  free(image);
  return 0;
}
