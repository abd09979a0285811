// Parameters of a model as libsinew holds them.
#ifndef SINEW_CLIENTS_LIBSINEW_PARAMETERS_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_PARAMETERS_PRIVATE_H_

#include "clients/libsinew/model_private.h"
#include "physics/model/model_bar.h"

struct SinewParameters {
  SnModelTangents *tangents;
  uint64_t structure;  // digest of that of the models
};

// Holds bars of a model, one a rollout.
typedef struct ApiBars {
  SnModelBar *bar;
  void *memory;
} ApiBars;

// Checks that parameters are those of a model of this structure (api_model_structure). Returns SINEW_OK or
// SINEW_ERR_ARGUMENT.
SinewStatus api_parameters_fit(const SinewParameters *p, uint64_t structure, SinewError *err);
// Makes `count` bars of zeros. Returns SINEW_OK or SINEW_ERR_MEMORY.
SinewStatus api_bars_make(ApiBars *bars, const SinewParameters *p, size_t count, SinewError *err);
void api_bars_free(ApiBars *bars);

#endif
