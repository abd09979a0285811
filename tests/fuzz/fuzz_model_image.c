// Fuzz target: the reader of flat models through libsinew's public call. Magic, size and checksum in the header are
// made right, so that an engine reaches what lies behind them; a model that is accepted must be safe to ask, to edit,
// to save and to step.
#include <stdint.h>
#include <stdlib.h>

#include "clients/libsinew/model_private.h"
#include "physics/model/model_file.h"
#include "tests/support/untrusted_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile double sum;  // of all that is read: keeps a compiler from leaving the reading out

// Reads every number of every array.
static void read_arrays(const SinewModel *model) {
  SinewField field;
  for (int i = 0; sinew_model_field(model, i, &field); ++i) {
    const double *reals = sinew_model_array(model, field.name, NULL, NULL);
    const int *ints = sinew_model_int_array(model, field.name, NULL, NULL);
    for (size_t k = 0; k < (size_t)field.rows * (size_t)field.cols; ++k) sum += field.integer ? ints[k] : reals[k];
  }
  for (int i = 0; i < sinew_model_count(model, SINEW_SENSOR); ++i) sum += sinew_model_sensor(model, i).supported;
}

// A copy with other options, or the same model.
static SinewModel *edit(SinewModel *model) {
  SinewOptions options = sinew_default_options();
  if (sinew_model_get_options(model, &options, NULL) != SINEW_OK) abort();
  options.cone = !options.cone;
  options.disableflags = 0;
  options.contact_solref[0] = 0.01;
  SinewModel *edited = sinew_model_with_options(model, &options, NULL);
  if (!edited) return model;
  sinew_model_free(model);
  return edited;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char magic[8] = {'S', 'I', 'N', 'E', 'W', 'M', 'D', 'L'};  // other bytes go to sinew-import
  if (size < sizeof magic) return 0;
  char *image = malloc(size);
  if (!image) return 0;
  memcpy(image, data, size);
  memcpy(image, magic, sizeof magic);
  sn_model_seal(image, size);
  SinewModel *model = sinew_model_read(image, size, NULL, NULL);
  if (model) {
    read_arrays(model);
    sn_untrusted_model_run(model->model, 64 << 20);
    model = edit(model);
    sn_untrusted_model_run(model->model, 64 << 20);
  }
  sinew_model_free(model);
  free(image);
  return 0;
}
