// Checks of a model whose arrays are filled but not yet trusted: after this, no index of it leads outside an array,
// its tree is a tree, and its numbers are finite. The importer and the reader of flat images both call it.
#ifndef SINEW_PHYSICS_MODEL_MODEL_PRIVATE_H_
#define SINEW_PHYSICS_MODEL_MODEL_PRIVATE_H_

#include "physics/model/model.h"

// Caps on the sizes of a model: SN_CAP_nbody and so on.
enum {
#define SN_CAP(name, max) SN_CAP_##name = (max),
#include "physics/model/model_caps.inc"
#undef SN_CAP
};

// SN_OK, or SN_ERR_LIMIT and a text that names the size.
SnCode sn_model_check_sizes(const SnModel *m, SnError *err);

// SN_OK, or SN_ERR_FORMAT and a text that names field, index, value and what is allowed. Reads fields of
// model_sizes.inc, model_fields.inc and option_fields.inc only; call it before sn_model_setup. Cost: one pass.
SnCode sn_model_check(const SnModel *m, SnError *err);

// Parts of sn_model_check: bodies, joints, degrees of freedom, patterns; everything else.
SnCode sn_model_check_tree(const SnModel *m, SnError *err);
SnCode sn_model_check_parts(const SnModel *m, SnError *err);

// One complaint: "model: body_parentid[3] is 7: must come before its child".
SnCode sn_model_complain(SnError *err, const char *field, int i, double value, const char *rule);

#endif
