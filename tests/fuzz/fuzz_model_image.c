// Fuzz target: the reader of flat models through libsinew's public call. Magic, size and checksum in the header are
// made right, so that an engine reaches what lies behind them; a model that is accepted must be safe to ask, to edit,
// to save and to step.
#include <stdlib.h>

#include "clients/libsinew/model_private.h"
#include "physics/model/model_arrays.h"
#include "physics/model/model_file.h"
#include "physics/world/world.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/oracle.h"
#include "tests/support/small_models.h"

enum { BY_NAME = 64 };  // of so many models one is asked by names, which takes a sixth of an execution

static bool stepped, changed;  // a model made a step, one got other options
static volatile double sum;    // of all that is read: keeps a compiler from leaving the reading out

// Reads every number of an array of this shape: of the one that is not NULL.
static void read_numbers(const double *reals, const int *ints, int rows, int cols) {
  for (size_t k = 0; k < (size_t)rows * (size_t)cols; ++k) sum += ints ? ints[k] : reals[k];
}

// Asks for each array of a model by its name, as callers do: it has the shape that it is said to have, and one type.
static void ask_by_name(const SinewModel *model) {
  SinewField field;
  for (int i = 0, rows[2], cols[2]; sinew_model_field(model, i, &field); ++i) {
    const double *reals = sinew_model_array(model, field.name, &rows[0], &cols[0]);
    const int *ints = sinew_model_int_array(model, field.name, &rows[1], &cols[1]);
    const int other = !field.integer;
    if (rows[!other] != field.rows || cols[!other] != field.cols || rows[other] || cols[other] || (reals && ints))
      fuzz_fail("array '%s' is not what it is said to be", field.name);
    read_numbers(reals, ints, field.rows, field.cols);
  }
}

// Reads every number of every array, without a search for each.
static void read_arrays(const SinewModel *model) {
  SnModelArray a;
  for (int i = 0; sn_model_array(model->model, i, &a); ++i)
    read_numbers(a.integer ? NULL : a.data, a.integer ? a.data : NULL, a.rows, a.cols);
  for (int i = 0; i < sinew_model_count(model, SINEW_SENSOR); ++i) sum += sinew_model_sensor(model, i).supported;
}

// Reads every number of every array of a body, and its contacts.
static void read_body(SinewData *data) {
  SinewField field;
  SinewContact contact;
  for (int i = 0; sinew_data_field(data, i, &field); ++i) {
    const double *reals = field.integer ? NULL : sinew_data_array(data, field.name, &field.rows, &field.cols);
    const int *ints = field.integer ? sinew_data_int_array(data, field.name, &field.rows, &field.cols) : NULL;
    read_numbers(reals, ints, field.rows, field.cols);
  }
  for (int i = 0; i < sinew_data_ncon(data); ++i)
    if (sinew_data_contact(data, i, &contact, NULL) == SINEW_OK) sum += contact.force[0];
}

// Steps a body with controls on, from qpos0 and from the first keyframe, if it is not too large.
static void run(const SinewModel *model) {
  if (sn_world_size(model->model) > 64 << 20) return;
  SinewData *data = sinew_data_create(model, NULL);
  if (!data) return;
  int nu = 0;
  double *ctrl = sinew_data_array(data, "ctrl", &nu, NULL);
  for (int key = -1; key < 1; ++key) {
    if (key >= 0 && sinew_data_reset_keyframe(data, key, NULL) != SINEW_OK) break;
    for (int i = 0; i < nu; ++i) ctrl[i] = 0.5;
    stepped |= sinew_step(data, 2, NULL) == SINEW_OK;
    read_body(data);
    sinew_forward(data, NULL);
    read_body(data);
  }
  sinew_data_free(data);
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
  changed = true;
  return edited;
}

void fuzz_one(const uint8_t *data, size_t size) {
  static const char magic[8] = {'S', 'I', 'N', 'E', 'W', 'M', 'D', 'L'};  // other bytes go to sinew-import
  if (size < sizeof magic) return;
  char *image = malloc(size);
  if (!image) return;
  memcpy(image, data, size);
  memcpy(image, magic, sizeof magic);
  sn_model_seal(image, size);
  SinewModel *model = sinew_model_read(image, size, NULL, NULL);
  if (model) {
    static unsigned accepted;
    if (accepted++ % BY_NAME == 0) ask_by_name(model);
    read_arrays(model);
    run(model);
    model = edit(model);
    run(model);
  }
  sinew_model_free(model);
  free(image);
}

const char *fuzz_missing(void) { return !stepped ? "a step" : !changed ? "other options" : NULL; }

size_t fuzz_seed(int i, uint8_t *bytes) {
  const char *const more[] = {sn_slipping_model(), sn_branching_model(), sn_terrain_model()};
  if (i >= SN_SMALL_MODELS + 3) return 0;
  SnOracle o;
  size_t size = 0;
  sn_oracle_load_string(&o, i < SN_SMALL_MODELS ? sn_small_model(i) : more[i - SN_SMALL_MODELS]);
  void *image = sn_model_write(o.m, &size, NULL);
  if (!image || size > FUZZ_SEED_BYTES) fuzz_fail("the image of small model %d has %zu bytes", i, size);
  memcpy(bytes, image, size);
  free(image);
  sn_oracle_free(&o);
  return size;
}
