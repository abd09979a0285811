// Derivatives by the numbers of a model, and what they are multiplied by: how parameters move these numbers.
//
// A parameter p is whatever a user turns: an attribute of MJCF, an entry of an array, many of both at once. All that is
// asked of it is the model with p moved both ways by a step h, compiled and set up (SnModel). Then by central
// differences
//
//   dmodel/dp = (model(p + h) - model(p - h)) / 2 h,    dL/dp = sum over fields  bar . dmodel/dp
//
// with bar the adjoint of the model, exact, which the stages write (physics/world/adjoint.h). Differences of the model
// alone, made once for any number of steps, chain what MuJoCo's compiler derives of p and what is folded at load.
// The error of such a difference is of the second order in h; most fields are linear or quadratic in p.
#ifndef SINEW_PHYSICS_MODEL_MODEL_BAR_H_
#define SINEW_PHYSICS_MODEL_MODEL_BAR_H_

#include "physics/base/bar.h"
#include "physics/model/model.h"

// Holds derivatives of a scalar by fields of a model. A field that no parameter moves is NULL.
typedef struct SnModelBar {
#define SN_BAR_FIELD(kind, name, source, rows, cols) sn_bar *name;
#define SN_BAR_NONE(name, source, count)
#include "physics/model/model_bar_fields.inc"
#undef SN_BAR_FIELD
#undef SN_BAR_NONE
  // Mark what is costly and moved by a parameter: sizes of geoms (ngeom), tables of muscles (nactuator).
  const bool *geom_sized, *muscle_moved;
  // Scratch of the stages, zero between states.
  sn_bar *geom_wrench;  // (ngeom, 6) torque and force on geoms, about their own centres
  sn_bar *site_wrench;  // (nsite, 6) on sites likewise
  sn_bar *body_wrench;  // (nbody, 6) on frames of inertia likewise
  sn_bar *dof_wrench;   // (nv, 6) on all that moves with a dof
  sn_bar *dof_pull;     // (nv, 6) bar of the dof's axis
  sn_bar *dof_own;      // (nv, 6) the part that stages have themselves handed on to dofs and the link below
} SnModelBar;

// Holds the directions in which parameters move a model. Needs no model once made. Stays as it is, so that threads may
// share it.
typedef struct SnModelTangents SnModelTangents;

// Makes the directions of n parameters from models that they have moved up and down by step (n). All have the structure
// of m, which is the caller's to check. Frees with sn_model_tangents_free. Returns NULL and on failure
//   SN_ERR_ARGUMENT     a step that is not above 0
//   SN_ERR_UNSUPPORTED  a parameter moves a number that has no derivative, or an integer: the text names it
//   SN_ERR_MEMORY       there is no room
SnModelTangents *sn_model_tangents_create(const SnModel *m, const SnModel *const *plus, const SnModel *const *minus,
                                          const double *step, int n, SnError *err);
void sn_model_tangents_free(SnModelTangents *t);
// Returns the number of parameters.
int sn_model_tangents_count(const SnModelTangents *t);
// Returns the bytes of a bar of the fields that the parameters move, of this text's bars (physics/base/bar.h).
size_t sn_model_bar_size(const SnModelTangents *t);
// Points the fields of a bar into memory of that size, 64-byte aligned, and zeroes it.
void sn_model_bar_init(const SnModelTangents *t, SnModelBar *bar, void *memory);
// Writes the derivatives by the parameters (n), of column c of the bars.
void sn_model_bar_apply(const SnModelTangents *t, const SnModelBar *bar, int c, sn_real *out);

#endif
