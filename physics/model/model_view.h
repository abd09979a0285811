// A structure of the engine as its parts (SnParts): sizes, options and arrays in the order of their field lists. So it
// can be handed to a library that computes in another number type. Both sides compile the same lists.
#ifndef SINEW_PHYSICS_MODEL_MODEL_VIEW_H_
#define SINEW_PHYSICS_MODEL_MODEL_VIEW_H_

#include "physics/model/model.h"

// Points to the parts. Real numbers are doubles; other arrays are of the type that the list gives.
typedef struct SnParts {
  int nsize, noption, nfield;
  const int *size;           // (nsize)
  const double *option;      // (noption) entries of all options
  const void *const *field;  // (nfield) arrays; an empty one may be NULL
} SnParts;

// Counts the sizes (model_sizes.inc, setup_sizes.inc), entries of options (option_fields.inc) and arrays
// (model_fields.inc, setup_fields.inc) of a model.
enum {
  SN_MODEL_NSIZE = 0
#define SN_SIZE(name) +1
#include "physics/model/model_sizes.inc"
#include "physics/model/setup_sizes.inc"
#undef SN_SIZE
  ,
  SN_MODEL_NOPTION = 0
#define SN_OPTION(type, name, count) +(count)
#include "physics/model/option_fields.inc"
#undef SN_OPTION
  ,
  SN_MODEL_NFIELD = 0
#define SN_MODEL_FIELD(type, name, rows, cols) +1
#include "physics/model/model_fields.inc"
#include "physics/model/setup_fields.inc"
#undef SN_MODEL_FIELD
};

// Holds the view of a model: memory of its parts. The arrays are the model's own.
typedef struct SnModelView {
  SnParts parts;
  int size[SN_MODEL_NSIZE];
  double option[SN_MODEL_NOPTION];
  const void *field[SN_MODEL_NFIELD];
} SnModelView;

// Makes a view of a model that has been set up, for as long as model and view stay where they are. Returns
// SN_ERR_UNSUPPORTED in a build whose sn_real is not double.
SnCode sn_model_view(const SnModel *m, SnModelView *view, SnError *err);

// Says whether a field's type in a list is the number type.
#define SN_IS_REAL_sn_real 1
#define SN_IS_REAL_int 0
#define SN_IS_REAL_char 0
#define SN_IS_REAL_uint64_t 0

#endif
