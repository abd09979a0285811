// Arrays of a model by their names, and copies of a model that have other numbers in some of them.
#ifndef SINEW_PHYSICS_MODEL_MODEL_ARRAYS_H_
#define SINEW_PHYSICS_MODEL_MODEL_ARRAYS_H_

#include "physics/model/model.h"

// Says what of a model an array holds: see model_fields.inc.
typedef enum SnArrayKind { SN_ARRAY_VALUE, SN_ARRAY_STRUCTURE, SN_ARRAY_ASSET, SN_ARRAY_DERIVED } SnArrayKind;

// Describes an array of model_fields.inc.
typedef struct SnModelArray {
  const char *name;
  bool integer;  // int, else sn_real
  SnArrayKind kind;
  int rows, cols;
  const void *data;  // (rows, cols) belongs to the model
} SnModelArray;

// Describes array i = 0, 1, ... of a model. Returns false past the last. Letters of names are left out.
bool sn_model_array(const SnModel *m, int i, SnModelArray *array);
// Describes the array of a name. Returns false when there is none. Compares names one by one.
bool sn_model_find_array(const SnModel *m, const char *name, SnModelArray *array);

// Counts the arrays of a model, letters of names too.
enum {
  SN_MODEL_ARRAYS = 0
#define SN_MODEL_FIELD(type, name, rows, cols) +1
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
};

// Holds the numbers that an array shall have, whole ones where it has integers.
typedef struct SnNewArray {
  const char *name;
  const double *value;  // (rows, cols)
  int rows, cols;
} SnNewArray;

// Makes a copy with other numbers in n arrays. Makes anew what the compiler derives from masses, flags and sizes of
// primitive geoms: body_subtreemass, body_contype and body_conaffinity, jnt_actuatorid and tendon_actuatorid,
// ngravcomp. Also makes geom_rbound and geom_aabb anew, unless they are given. Constants of the dynamics at qpos0 stay.
// Returns NULL and on failure
//   SN_ERR_NOT_FOUND    no array of that name
//   SN_ERR_UNSUPPORTED  numbers of this array, or this entry, may not change: the reason
//   SN_ERR_ARGUMENT     the shape, an array named twice, a number that is not allowed
//   SN_ERR_LIMIT, SN_ERR_MEMORY  there is no room
SnModel *sn_model_with_arrays(const SnModel *m, const SnNewArray *array, int n, SnError *err);

#endif
