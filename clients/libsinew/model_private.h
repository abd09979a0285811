// A model as libsinew holds it.
#ifndef SINEW_CLIENTS_LIBSINEW_MODEL_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_MODEL_PRIVATE_H_

#include "clients/libsinew/api_private.h"
#include "physics/model/model.h"

struct SinewModel {
  SnModel *model;
  bool borrowed;  // the engine's model belongs to another handle
  SinewSizes sizes;
  double *ctrl_range;  // (nu, 2)
};

// Wraps a model of the engine, which then belongs to the result, and clears err; frees the model on failure. Returns
// NULL and err when out of memory.
SinewModel *api_model_wrap(SnModel *model, SinewError *err);

// Shows a model of the engine that belongs to another handle, which must outlive the result. Returns NULL and err when
// out of memory.
SinewModel *api_model_view(const SnModel *model, SinewError *err);

// Refuses options of a model that the engine has not, all of them. Returns SINEW_OK or SINEW_ERR_UNSUPPORTED.
SinewStatus api_check_supported(const SnModel *m, const SnOption *o, SinewError *err);

// Writes the path of the program sinew-import: beside the running program, or where this library was installed with it.
// Returns false, with the places in err, when it is nowhere.
bool api_find_importer(char *path, size_t size, SnError *err);

#endif
