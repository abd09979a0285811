// Arrays of a model under their names, and what the engine can do with its sensors. physics/model/model_fields.inc is
// the only list: those of the engine's own setup are not in it. Letters of names are left to sinew_model_name.
#include <stddef.h>
#include <string.h>

#include "clients/libsinew/model_private.h"
#include "physics/sensor/sensor.h"

typedef struct Array {
  const char *name;
  bool integer;
  size_t pointer;  // where SnModel has it
} Array;

#define ARRAY_int(name) {#name, true, offsetof(SnModel, name)},
#define ARRAY_sn_real(name) {#name, false, offsetof(SnModel, name)},
#define ARRAY_char(name)
static const Array arrays[] = {
#define SN_MODEL_FIELD(type, name, rows, cols) ARRAY_##type(name)
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
};
enum { ARRAYS = sizeof arrays / sizeof *arrays };

static void get_shape(const SnModel *m, int i, int *rows, int *cols) {
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SHAPE_int(rows, cols) {(rows), (cols)},
#define SHAPE_sn_real(rows, cols) {(rows), (cols)},
#define SHAPE_char(rows, cols)
  const int shape[ARRAYS][2] = {
#define SN_MODEL_FIELD(type, name, rows, cols) SHAPE_##type(rows, cols)
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
  };
  if (rows) *rows = shape[i][0];
  if (cols) *cols = shape[i][1];
}

// The array of this name and type, or NULL with shape (0, 0).
static const void *find_array(const SinewModel *model, const char *name, bool integer, int *rows, int *cols) {
  if (rows) *rows = 0;
  if (cols) *cols = 0;
  for (int i = 0; model && name && i < ARRAYS; ++i) {
    if (arrays[i].integer != integer || strcmp(arrays[i].name, name) != 0) continue;
    get_shape(model->model, i, rows, cols);
    const void *array;
    memcpy(&array, (const char *)model->model + arrays[i].pointer, sizeof array);
    return array;
  }
  return NULL;
}

const double *sinew_model_array(const SinewModel *model, const char *name, int *rows, int *cols) {
  return find_array(model, name, false, rows, cols);
}

const int *sinew_model_int_array(const SinewModel *model, const char *name, int *rows, int *cols) {
  return find_array(model, name, true, rows, cols);
}

bool sinew_model_field(const SinewModel *model, int i, SinewField *field) {
  if (!model || !field || i < 0 || i >= ARRAYS) return false;
  *field = (SinewField){.name = arrays[i].name, .integer = arrays[i].integer};
  get_shape(model->model, i, &field->rows, &field->cols);
  return true;
}

SinewSensorInfo sinew_model_sensor(const SinewModel *model, int id) {
  const SnModel *m = model ? model->model : NULL;
  if (!m || id < 0 || id >= m->nsensor || !sn_sensor_supported(m, id)) return (SinewSensorInfo){0};
  return (SinewSensorInfo){.supported = true, .differentiable = sn_sensor_differentiable(m, id)};
}
