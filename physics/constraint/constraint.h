// Constraints: the rows of contacts, limits, equalities and friction loss, the solver, and their adjoints.
// physics/step/step.h and physics/world/adjoint.h say what stages, lanes and adjoints have in common.
#ifndef SINEW_PHYSICS_CONSTRAINT_CONSTRAINT_H_
#define SINEW_PHYSICS_CONSTRAINT_CONSTRAINT_H_

#include "physics/world/adjoint.h"

// ---- constraint.c ----

// Computes rows, J, D and R from contacts, limits, equalities and friction loss.
SN_FUNC void sn_make_constraint(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes efc_vel and efc_aref of the rows from qvel.
SN_FUNC void sn_reference_constraint(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes row_z and row_pos of all rows from row_lambda, row_c and efc_force. Adds what they give, by kind of row, to
// qpos_bar, qvel_bar, bars of tendons and contacts, wrench, twist_bar and acc_bar.
SN_FUNC void sn_constraint_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Does the second half of it: hands on row_z and row_pos as they are. Derivatives by the model read row_lambda and
// row_c, too. Needs a sync before.
SN_FUNC void sn_rows_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- constraint_contact.c ----

// Computes the force of contact i on the body of geom[1], in the contact's frame: normal, two tangents [N], moments
// about the three [N m]. It is zero for a contact without rows. Any thread may call it after sn_solve.
SN_FUNC void sn_contact_force(const SnWorld *w, int i, sn_real force[6]);
// Adds the adjoint of sn_contact_force to the bars of efc_force (row_pos, see sn_solve_force_vjp). By
// the model the friction of pyramids counts. One lane at a time may add to a contact.
SN_FUNC void sn_contact_force_vjp(const SnWorld *w, SnAdjoint *a, int i, const sn_real force_bar[6]);

// ---- constraint_equality.c ----

// Holds what a connect or weld exerts on body[0], in world axes; body[1] gets the opposite.
typedef struct SnEqualityForce {
  int body[2];
  sn_real pos[2][3];            // anchors [m]
  sn_real force[3], torque[3];  // [N, N m], at the anchor
} SnEqualityForce;

// Returns how many rows the equality whose rows begin at `row` has.
SN_FUNC int sn_equality_size(const SnModel *m, const SnWorld *w, int row);
// Computes the force of a connect or weld whose rows begin at `row`. Returns false for other equalities. Any thread may
// call it after sn_solve.
SN_FUNC bool sn_equality_force(const SnModel *m, const SnWorld *w, int row, SnEqualityForce *f);
// Adds the adjoint of anchors, force and torque. Bars of efc_force go to row_pos (see sn_solve_force_vjp), what shifts
// of the anchors and turns of both bodies give goes to wrench. Reads no bodies of bar.
SN_FUNC void sn_equality_force_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int row,
                                   const SnEqualityForce *bar);

// Returns the slope of the row of an equality by the length of tendon t; 0 where it is none of t. Any thread may call
// it.
SN_FUNC sn_real sn_equality_pull(const SnModel *m, const SnWorld *w, int row, int t);
// Adds what the bar of that slope gives, to ten_length_bar.
SN_FUNC void sn_equality_pull_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int row, int t, sn_real bar);

// ---- constraint_limit.c ----

// Returns the slope of the row of a tendon's limit by the tendon's length: 1 at its lower bound, -1 at its upper one.
SN_FUNC sn_real sn_tendon_limit_pull(const SnModel *m, const SnWorld *w, int row);

// ---- solver.c ----

// Replaces x (nv) by (M + B)^-1 x with the B of the integrator `discrete` (dynamics/metric.c). Leaves the factor
// behind, and no states of rows. Needs a sync before.
SN_FUNC void sn_solve_metric(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *x);
// Computes qacc, efc_force, efc_state and qfrc_constraint from rows, qacc_smooth and qacc_warmstart. A finite qacc
// becomes the next qacc_warmstart. (The integrator, which may be given a qacc of another origin, stores it too.)
SN_FUNC void sn_solve(const SnModel *m, SnWorld *w, SnLane *lane);
// Solves to rounding from where sn_solve stopped: qacc, efc_force, efc_state, efc_jar, qfrc_constraint. Leaves the
// factor of H behind. Costs little more than a solve with it where nothing was left to do.
SN_FUNC void sn_solve_finish(const SnModel *m, SnWorld *w, SnLane *lane);
// Returns true on the rows of an elliptic contact after its first: they are treated with the first.
SN_INLINE bool sn_is_cone_tail(const SnWorld *w, int row) {
  return w->efc_type[row] == SN_CNSTR_CONTACT_ELLIPTIC && w->contact[w->efc_id[row]].efc_address != row;
}

// Returns a number that changes its sign where a row goes from `state` to another one or back (SnConstraintState), for
// residuals jar (nefc). It has about one slope on both sides, as those of a row that acts are scaled by its impedance.
// The row is no cone tail.
SN_FUNC sn_real sn_row_boundary(const SnWorld *w, int row, const sn_real *jar, int state, int other);
// Solves once more, from the qacc_warmstart that sn_solve has left, and finishes. The bits are those of both on a world
// made anew that starts there. Uses the factor of sn_solve where it is that of this start. Leaves qacc_warmstart.
SN_FUNC void sn_solve_again(const SnModel *m, SnWorld *w, SnLane *lane);
// ---- diagonal.c ----

// Sets the motions and row_z of the next pass of the stages that add what impedances by exact diagonals have left
// (diagonal.c). pass: 0, then what was returned. Returns -1 where none is left.
SN_FUNC int sn_diagonal_pass(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, int pass);

// ---- metric_rows.c: the integrator `discrete` ----

// Multiplies the D of rows by what the effective inertia makes of them. Changes aref of those that pull, too, which has
// R. Comes after sn_metric, once for rows that were made.
SN_FUNC void sn_metric_rows(const SnModel *m, SnWorld *w, SnLane *lane);
// Sets motions, row_z and bars of rates for the next pass, as sn_diagonal_pass. The first adds what the diagonal of M
// gives to qpos_bar. Bars are zero before.
SN_FUNC int sn_metric_pass(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, int pass);

// ---- sleep.c: trees that fall asleep, where the model has the flag and the world asks for it ----

// Returns the first tree of the island of a tree, by what sn_tree_roots has made.
SN_FUNC int sn_tree_root(const int *root, int tree);
// Joins trees by rows: root[t] (ntree) is t or an earlier tree of its island. One lane alone calls it, after
// sn_make_constraint.
SN_FUNC void sn_tree_roots(const SnModel *m, const SnWorld *w, int *root);
// Wakes trees that the caller has moved; computes tree_awake and nasleep. A step begins with it.
SN_FUNC void sn_sleep_begin(const SnModel *m, SnWorld *w, SnLane *lane);
// Wake trees by limits of tendons, after sn_tendon, and by equalities, after contacts. Some must sleep, here and below.
SN_FUNC void sn_wake_tendons(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_wake_equalities(const SnModel *m, SnWorld *w, SnLane *lane);
// Wakes trees by contacts. Returns whether any was: then contacts are to be made again.
SN_FUNC bool sn_wake_contacts(const SnModel *m, SnWorld *w, SnLane *lane);
// Returns whether an equality, limit or friction loss, source s, makes no rows because what it acts on sleeps.
SN_FUNC bool sn_source_asleep(const SnModel *m, const SnWorld *w, int s);
// Computes tree_next, which says who sleeps after the step, from rows and velocities.
SN_FUNC void sn_sleep_decide(const SnModel *m, SnWorld *w, SnLane *lane);
// Keeps the positions before a step is integrated, and puts those who sleep after it back to them, at rest.
SN_FUNC void sn_sleep_hold(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_sleep_end(const SnModel *m, SnWorld *w, SnLane *lane);
// Takes the bars of the next state of those who sleep after the step: that of positions goes to qpos_bar.
SN_FUNC void sn_sleep_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- noslip.c ----

// Solves friction once more, without regularisation, after Newton's method: qacc, efc_force, efc_state,
// qfrc_constraint. Keeps Newton's own in slip_qacc, slip_force, slip_state. There must be rows.
SN_FUNC void sn_noslip(const SnModel *m, SnWorld *w, SnLane *lane);
// Keeps Newton's solution as sn_noslip does, and exchanges it for that of noslip, or back.
SN_FUNC void sn_noslip_keep(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_noslip_exchange(const SnModel *m, SnWorld *w, SnLane *lane);

// ---- noslip_vjp.c ----

// Does what sn_solve_vjp does for a model with the noslip solver; slip_p: minus the bars of efc_force. Exchanges the
// solutions: sn_constraint_vjp, which wants Newton's, exchanges them back.
SN_FUNC void sn_noslip_solve_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Sets the motions and row_z of the next pass of the stages that add what sn_noslip_solve_vjp has left (noslip_vjp.c).
// pass: 0, then what was returned. Returns -1 where none is left: at once where sn_noslip_solve_vjp has not been there.
SN_FUNC int sn_noslip_pass(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, int pass);

// ---- solver.c ----

// Turns qacc_bar into the motions SN_LAMBDA, SN_ACC and SN_VEL, and into row_lambda and row_c. Calls sn_solve_finish.
SN_FUNC void sn_solve_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Does the same for a scalar that depends on efc_force, too, whose bars row_pos holds. Changes qacc_bar. row_lambda
// gets J lambda plus these bars, so that all that follows counts both.
SN_FUNC void sn_solve_force_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

#endif
