// Rows of tendons and actuators whose columns lie on several branches of the tree: of their products J'J only what fits
// M's pattern counts.
#ifndef SINEW_PHYSICS_DYNAMICS_DYNAMICS_H_
#define SINEW_PHYSICS_DYNAMICS_DYNAMICS_H_

#include "physics/world/adjoint.h"

// A sparse row: n columns, ascending.
typedef struct SnRow {
  int n;
  const int *col;
  const sn_real *J;
} SnRow;

SN_INLINE SnRow sn_tendon_row(const SnModel *m, const SnWorld *w, int t) {
  const int adr = m->ten_J_rowadr[t];
  const SnRow row = {m->ten_J_rownnz[t], m->ten_J_colind + adr, w->ten_J + adr};
  return row;
}
SN_INLINE SnRow sn_output_row(const SnModel *m, const SnWorld *w, int out) {
  const int adr = m->mom_rowadr[out];
  const SnRow row = {m->mom_rownnz[out], m->mom_colind + adr, w->actuator_moment + adr};
  return row;
}

// All columns lie on one path to the root, so that nothing of J'J is cut off. `block`: in the pattern of implicitfast,
// which has the six equations of a free body that carries nothing as one full block; else in M's.
SN_FUNC bool sn_row_is_chain(const SnModel *m, const SnRow *row, bool block);
// x' (J'J in that pattern) y.
SN_FUNC sn_real sn_row_form(const SnModel *m, const SnRow *row, bool block, const sn_real *x, const sn_real *y);

// Adds to RESULT the derivative of the products that sn_bias_vjp and sn_integrate_vjp leave out: those of branched
// rows. Comes last, after sn_kinematics_vjp: it clears and uses the bars. The motions are kept, the twists are not.
SN_FUNC void sn_branched_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

#endif
