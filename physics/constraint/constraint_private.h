// Between the files of the constraint stage and the solver; not for other stages.
#ifndef SINEW_PHYSICS_CONSTRAINT_CONSTRAINT_PRIVATE_H_
#define SINEW_PHYSICS_CONSTRAINT_CONSTRAINT_PRIVATE_H_

#include "physics/world/adjoint.h"

enum { SN_MAXBLOCK = 10 };  // most rows of one source or contact: a pyramid of condim 6

// Describes the rows of one source or contact, or of contacts at a distance that follow each other and move the same
// two links. They are a dense block of efc_J whose rows have the same columns.
typedef struct SnBlock {
  int row, num;  // rows [row, row + num)
  int adr, nnz;  // first address in efc_J, columns of a row
} SnBlock;

// Returns block b of the world.
SN_INLINE SnBlock sn_block(const SnWorld *w, int b) {
  const int row = w->block_row[b];
  const SnBlock block = {row, w->block_row[b + 1] - row, w->efc_J_rowadr[row], w->efc_J_rownnz[row]};
  return block;
}

// Returns at most SN_MAXBLOCK rows of a block, from row `start` of it on.
SN_INLINE SnBlock sn_block_part(SnBlock block, int start) {
  const SnBlock part = {block.row + start, sn_mini(SN_MAXBLOCK, block.num - start), block.adr + start * block.nnz,
                        block.nnz};
  return part;
}

// ---- constraint_limit.c, constraint_equality.c: limits, friction loss and equalities, the sources of the model ----

// Returns the number of rows that source s, a limit, makes in this state.
SN_FUNC int sn_limit_count(const SnModel *m, const SnWorld *w, int s);
// Write the rows of source s: values of J, pos, margin, friction loss.
SN_FUNC void sn_limit_rows(const SnModel *m, SnWorld *w, int s, SnBlock block);
SN_FUNC void sn_friction_rows(const SnModel *m, SnWorld *w, int s, SnBlock block);
SN_FUNC void sn_equality_rows(const SnModel *m, SnWorld *w, int s, SnBlock block);
// Add the derivative of G (adjoint.h) from row_z and row_pos of a block. Sources of friction loss write to their own
// dof or tendon, so do limits; equalities may share links.
SN_FUNC void sn_friction_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnBlock block);
SN_FUNC void sn_limit_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnBlock block);
SN_FUNC void sn_equality_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnBlock block);

// Returns the approximate inverse inertia of row k of equality eq.
SN_FUNC sn_real sn_equality_weight(const SnModel *m, int eq, int k);
// Subtracts Jdot v from the reference accelerations of a connect or weld, source s with first row `row`.
SN_FUNC void sn_equality_bias(const SnModel *m, SnWorld *w, int s, int row);

// ---- constraint_contact.c ----

// Returns the number of rows of contact i; *nnz gets that of columns.
SN_FUNC int sn_contact_count(const SnModel *m, SnWorld *w, int i, int *nnz);
// Returns true when contact i continues the block of the one before.
SN_FUNC bool sn_contact_continues(const SnModel *m, const SnWorld *w, int i);
// Writes the rows of contact i.
SN_FUNC void sn_contact_rows(const SnModel *m, SnWorld *w, int i, SnBlock block);
// Writes con_dist_bar, con_pos_bar, con_frame_bar of contact i and the bars of the twists of its two bodies,
// [side][lambda, a, v][6]. Returns false where those are zero, and writes nothing.
SN_FUNC bool sn_contact_rows_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_bar *twist);

#if defined(SN_MODEL_BARS)
// Computes the contact velocities (3, 6) of contact i in the motions lambda, a, v.
SN_FUNC void sn_contact_velocities(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i, sn_bar *velocity);
#endif

// ---- constraint_surface.c ----

// Computes the velocities (6) that moving surfaces add to those of contact i.
SN_FUNC void sn_surface_velocity(const SnModel *m, const SnWorld *w, int i, sn_real vel[6]);
// Adds them to efc_vel.
SN_FUNC void sn_surface_rows(const SnModel *m, SnWorld *w, int i);
// Adds the derivative of G (adjoint.h) by them, to bars of contact i and to wrenches of the links of its geoms.
SN_FUNC void sn_surface_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i);

// ---- adhesion: contacts that pull (MuJoCo manual, Computation, Adhesion) ----

// Returns the part of a contact's adhesion that the reference acceleration of a row of it has, times R. The force along
// the normal is in sn_passive.
SN_INLINE sn_real sn_row_adhesion(const SnWorld *w, int row) {
  if (w->efc_type[row] < SN_CNSTR_CONTACT_FRICTIONLESS) return 0;
  const SnContact *con = w->contact + w->efc_id[row];
  if (w->efc_type[row] == SN_CNSTR_CONTACT_PYRAMIDAL) return con->adhesion / (sn_real)(2 * (con->dim - 1));
  return row == con->efc_address ? con->adhesion : 0;
}

// Returns how many rows have an R that is made of the inverse inertia of this one: itself, all of a contact, or none.
SN_INLINE int sn_sharing_rows(const SnWorld *w, int row) {
  if (w->efc_type[row] < SN_CNSTR_CONTACT_FRICTIONLESS) return 1;
  const SnContact *con = w->contact + w->efc_id[row];
  if (con->efc_address != row) return 0;
  return w->efc_type[row] == SN_CNSTR_CONTACT_PYRAMIDAL ? 2 * (con->dim - 1) : con->dim;
}

// ---- impedance.c ----

// Compute diagA, KBIP, R, D of the rows of source s, or of contact i, from pos and margin.
SN_FUNC void sn_source_impedance(const SnModel *m, SnWorld *w, int s, SnBlock block);
SN_FUNC void sn_contact_impedance(const SnModel *m, SnWorld *w, int i, SnBlock block);
// Returns the derivative of G (adjoint.h) by -log R of a row. It is that of the force of a given residual, and of the
// adhesion that the reference has.
SN_FUNC sn_bar sn_scaled_force(const SnWorld *w, const SnAdjoint *a, int row);
// Returns the derivative of G (adjoint.h) with respect to the position that the impedance of a row is taken at, through
// that impedance alone. depth is that of sn_reference_depth.
SN_FUNC sn_bar sn_impedance_bar(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int row, sn_real depth);

// Holds the spring of a row as its reference acceleration has it: aref = -damping vel + stiffness I depth - Jdot v /
// factor. The factor is 1 but under the integrator `discrete`.
typedef struct SnRowSpring {
  sn_real stiffness, damping, factor;
} SnRowSpring;
SN_FUNC SnRowSpring sn_row_spring(const SnModel *m, const SnWorld *w, int row);

// Returns true where a bound has replaced the R of a row, so that it does not follow impedance and inertia.
SN_FUNC bool sn_is_bounded(const SnWorld *w, int row);

#if defined(SN_MODEL_BARS)
// Add the derivative of G (adjoint.h) by the model's solref, solimp, friction, margins and inverse weights. They are
// those of a block of a source, or of contact i. velocity (3, 6) holds the contact velocities of the motions lambda, a,
// v; it is read where the cone is a pyramid.
SN_FUNC void sn_source_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnBlock block);
SN_FUNC void sn_contact_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_bar *velocity);
#endif

// ---- sigmoid.c: smoothed hard contacts ----

// Says how far impedances may go (mjMINIMP, mjMAXIMP).
#define SN_MINIMP SN_R(0.0001)
#define SN_MAXIMP SN_R(0.9999)

// Computes KBIP (4) of the rows of a contact whose geoms are r from touch [m].
SN_FUNC void sn_sigmoid_spring(const SnModel *m, const SnWorld *w, sn_real r, sn_real *kbip);
// Adds to efc_aref of the rows of contact i what velocities make of it beyond -efc_vel / h.
SN_FUNC void sn_sigmoid_reference(const SnModel *m, SnWorld *w, int i);
// Adds the derivative of G (adjoint.h) by it to row_z of these rows, from row_c. One lane alone has the contact.
SN_FUNC void sn_sigmoid_reference_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i);
#if defined(SN_MODEL_BARS)
// Adds that by the coefficients of friction (5), but for what goes through J. The contact has rows.
SN_FUNC void sn_sigmoid_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i, sn_bar *friction);
#endif

// ---- metric_rows.c: the integrator `discrete` ----

// Computes metric_row, metric_bar and metric_inertia from row_lambda and efc_force, and turns metric_on on.
SN_FUNC void sn_metric_rows_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- diagonal.c ----

// Computes x = M^-1 J' (nv) of the row of J whose nnz entries begin at address adr. Returns J x. One lane calls it.
SN_FUNC sn_real sn_inverse_row(const SnModel *m, const SnWorld *w, int adr, int nnz, sn_real *x);
// Returns J M^-1 J' of a row of a block and keeps M^-1 J' in diag_row.
SN_FUNC sn_real sn_exact_diagonal(const SnModel *m, SnWorld *w, SnBlock block, int row);
// Computes diag_bar from row_lambda and efc_force, and turns diag_on on.
SN_FUNC void sn_diagonal_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- constraint.c ----

// Returns the depth that the reference acceleration of a row corrects: margin - pos, or its softplus where contacts act
// from a distance. *slope gets its derivative with respect to pos.
SN_FUNC sn_real sn_reference_depth(const SnModel *m, const SnWorld *w, int row, sn_real *slope);

// Computes r = J x (nefc) from x (nv). Needs a sync before, has one at the end.
SN_FUNC void sn_mul_J(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *r, const sn_bar *x);
// Computes r = J' f (nv) from f (nefc). Needs a sync before, has one at the end.
SN_FUNC void sn_mul_Jt(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *r, const sn_real *f);

#endif
