// The noslip solver between its stage and its adjoint.
#ifndef SINEW_PHYSICS_CONSTRAINT_NOSLIP_PRIVATE_H_
#define SINEW_PHYSICS_CONSTRAINT_NOSLIP_PRIVATE_H_

#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"

// Lists the kinds of groups of rows whose forces are found together.
typedef enum SnSlipKind {
  SN_SLIP_LOSS,  // a friction loss
  SN_SLIP_PAIR,  // two opposite edges of a pyramid
  SN_SLIP_CONE   // the friction of an elliptic contact; its normal is the row before
} SnSlipKind;

// Describes a group: rows [row, row + num).
typedef struct SnSlipGroup {
  SnSlipKind kind;
  int row, num;
} SnSlipGroup;

// Returns group k of the world.
SN_INLINE SnSlipGroup sn_slip_group(const SnWorld *w, int k) {
  const int row = w->slip_group[k], type = w->efc_type[row];
  SnSlipGroup g = {SN_SLIP_LOSS, row, 1};
  if (type == SN_CNSTR_CONTACT_PYRAMIDAL) {
    g.kind = SN_SLIP_PAIR;
    g.num = 2;
  } else if (type == SN_CNSTR_CONTACT_ELLIPTIC) {
    g.kind = SN_SLIP_CONE;
    g.num = w->contact[w->efc_id[row]].dim - 1;
  }
  return g;
}

// Lists what an update has made of a group's forces.
typedef enum SnSlipCode {
  SN_SLIP_OVER,    // nothing: the sweeps of its island had ended, or it would have cost more
  SN_SLIP_FREE,    // the minimum inside the bounds
  SN_SLIP_LOW,     // a loss at minus its bound, a pair whose first edge has no force
  SN_SLIP_HIGH,    // a loss at its bound, a pair whose second edge has no force
  SN_SLIP_MIDDLE,  // a pair without curvature: equal forces
  SN_SLIP_EDGE,    // a cone on its boundary
  SN_SLIP_ZERO     // a cone without friction, for want of a normal force or of curvature
} SnSlipCode;

// Records updates for the way back: of sweep k and group g at [k * nefcmax + row], code at the group's first row.
typedef struct SnSlipRecord {
  int *code;
  sn_real *before;  // force of each row before the update
  int *sweeps;      // number of sweeps (1)
} SnSlipRecord;

// Sets the most iterations for the multiplier of an ellipsoid.
enum { SN_SLIP_NEWTON = 20 };

// Keeps the multipliers that Newton's method has gone through: shift[0] = 0 to shift[last].
typedef struct SnSlipShifts {
  sn_real shift[SN_SLIP_NEWTON];
  int last;
} SnSlipShifts;

// Sets L to the factor of A + shift (n), L L'. Returns false where that is too flat.
SN_FUNC bool sn_slip_factor(const sn_real *A, sn_real shift, int n, sn_real *L);
// Solves L L' x = -b (n).
SN_FUNC void sn_slip_solve(const sn_real *L, const sn_real *b, int n, sn_real *x);
// Minimises x' A x / 2 + b' x over the ball |x| <= r: Newton's method on the multiplier from below, where |x|^2 is
// convex and falls. It ends where it is near the ball, or after SN_SLIP_NEWTON iterations.
SN_FUNC SnSlipCode sn_slip_ball(const sn_real *A, const sn_real *b, sn_real r, int n, sn_real *x, SnSlipShifts *shifts);

// Returns J x of one row.
SN_INLINE sn_bar sn_slip_rate(const SnWorld *w, int row, const sn_bar *x) {
  const int adr = w->efc_J_rowadr[row];
  sn_bar sum = {0};
  for (int k = adr; k < adr + w->efc_J_rownnz[row]; ++k) sum += w->efc_J[k] * x[w->efc_J_colind[k]];
  return sum;
}

// Returns J a - aref of one row, a the acceleration of the forces so far.
SN_INLINE sn_real sn_slip_residual(const SnWorld *w, int row) {
  const int adr = w->efc_J_rowadr[row];
  sn_real sum = 0;
  for (int k = adr; k < adr + w->efc_J_rownnz[row]; ++k) sum += w->efc_J[k] * w->slip_acc[w->efc_J_colind[k]];
  return sum - w->efc_aref[row];
}

// Sweeps from the efc_force that there is: changes that of groups, leaves acceleration and groups behind. Records the
// updates where record is not NULL.
SN_FUNC void sn_noslip_run(const SnModel *m, SnWorld *w, SnLane *lane, const SnSlipRecord *record);

#endif
