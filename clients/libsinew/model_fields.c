// Arrays of a model under their names, copies with other numbers in them, and what the engine can do with its sensors.
// Arrays of the engine's own setup, and letters of names, are not there.
#include <string.h>

#include "clients/libsinew/model_private.h"
#include "physics/model/model_arrays.h"
#include "physics/sensor/sensor.h"
#include "physics/step/constants.h"

// The array of this name and type, or NULL with shape (0, 0).
static const void *find_array(const SinewModel *model, const char *name, bool integer, int *rows, int *cols) {
  SnModelArray a;
  const bool found = model && name && sn_model_find_array(model->model, name, &a) && a.integer == integer;
  if (rows) *rows = found ? a.rows : 0;
  if (cols) *cols = found ? a.cols : 0;
  return found ? a.data : NULL;
}

const double *sinew_model_array(const SinewModel *model, const char *name, int *rows, int *cols) {
  return find_array(model, name, false, rows, cols);
}

const int *sinew_model_int_array(const SinewModel *model, const char *name, int *rows, int *cols) {
  return find_array(model, name, true, rows, cols);
}

bool sinew_model_field(const SinewModel *model, int i, SinewField *field) {
  SnModelArray a;
  if (!model || !field || !sn_model_array(model->model, i, &a)) return false;
  *field = (SinewField){
      .name = a.name, .integer = a.integer, .input = a.kind == SN_ARRAY_VALUE, .rows = a.rows, .cols = a.cols};
  return true;
}

SinewModel *sinew_model_with_arrays(const SinewModel *model, const SinewArray *arrays, int n, SinewError *err) {
  const char *const who = "sinew_model_with_arrays";
  if (!model || (n > 0 && !arrays)) {
    api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, model ? "arrays" : "model");
    return NULL;
  }
  SnNewArray list[SN_MODEL_ARRAYS];
  if (n < 0 || n > SN_MODEL_ARRAYS) {
    api_fail(err, SINEW_ERR_ARGUMENT, "%s: n is %d; allowed are 0 to %d, each array once", who, n, SN_MODEL_ARRAYS);
    return NULL;
  }
  for (int i = 0; i < n; ++i) list[i] = (SnNewArray){arrays[i].name, arrays[i].value, arrays[i].rows, arrays[i].cols};
  SnError why;
  SnModel *m = sn_model_with_arrays(model->model, list, n, &why);
  if (!m) {
    api_hand_on(err, &why);
    return NULL;
  }
  if (api_check_supported(&m->opt, err) == SINEW_OK) return api_model_take(m, err);
  sn_model_free(m);
  return NULL;
}

SinewModel *sinew_model_with_constants(const SinewModel *model, SinewError *err) {
  SnError why;
  if (!model) {
    api_fail(err, SINEW_ERR_ARGUMENT, "sinew_model_with_constants: model is NULL");
    return NULL;
  }
  SnModel *m = sn_model_with_constants(model->model, &why);
  if (m) return api_model_wrap(m, err);
  api_hand_on(err, &why);
  return NULL;
}

SinewSensorInfo sinew_model_sensor(const SinewModel *model, int id) {
  const SnModel *m = model ? model->model : NULL;
  if (!m || id < 0 || id >= m->nsensor || !sn_sensor_supported(m, id)) return (SinewSensorInfo){0};
  return (SinewSensorInfo){.supported = true, .differentiable = sn_sensor_differentiable(m, id)};
}
