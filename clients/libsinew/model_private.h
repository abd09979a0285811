// A model as libsinew holds it.
#ifndef SINEW_CLIENTS_LIBSINEW_MODEL_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_MODEL_PRIVATE_H_

#include <stdint.h>

#include "clients/libsinew/api_private.h"
#include "physics/model/model.h"

struct SinewModel {
  SnModel *model;
  bool borrowed;  // the engine's model belongs to another handle
  SinewSizes sizes;
  double *ctrl_range;          // (nu, 2)
  _Atomic uint64_t structure;  // digest for api_model_same_structure; 0: nobody has asked yet
};

// Wraps a model of the engine, which then belongs to the result, and clears err; frees the model on failure. Returns
// NULL and err when out of memory.
SinewModel *api_model_wrap(SnModel *model, SinewError *err);

// Shows a model of the engine that belongs to another handle, which must outlive the result. Returns NULL and err when
// out of memory.
SinewModel *api_model_view(const SnModel *model, SinewError *err);

// Refuses options of a model that the engine has not, all of them. Returns SINEW_OK or SINEW_ERR_UNSUPPORTED.
SinewStatus api_check_supported(const SnOption *o, SinewError *err);
// Wraps a copy of a model that has been set up, as api_model_wrap. Refuses and frees it where its options leave a pair
// of geoms without a collider: SINEW_ERR_UNSUPPORTED.
SinewModel *api_model_take(SnModel *m, SinewError *err);

// model_structure.c: checks that a model has the structure of another one, `of`, that of a batch. Both have the same
// arrays of what there is and what belongs to what, and their worlds and adjoints the same layout. `name` stands for
// the model in texts. Keeps a digest of each, so that it is cheap from the second time on. Returns SINEW_ERR_ARGUMENT,
// with what differs, where it has not.
SinewStatus api_model_same_structure(const SinewModel *of, const SinewModel *model, const char *name, SinewError *err);

// Returns a digest of the structure of a model, never 0.
uint64_t api_model_structure(const SinewModel *model);

// derivative.c: refuses sensors whose derivative is asked for and not known: those with a bar (nsensordata) that is not
// 0, or all where it is NULL. `who` is the call. Returns SINEW_OK or SINEW_ERR_UNSUPPORTED.
SinewStatus api_check_sensors(const SnModel *m, const double *bar, const char *who, SinewError *err);

// Writes the path of the program sinew-import: beside the running program, or where this library was installed with it.
// Returns false, with the places in err, when it is nowhere.
bool api_find_importer(char *path, size_t size, SnError *err);

#endif
