// A step and its adjoint: the stages in their order, and the integrators.
//
// A stage reads what earlier stages wrote and writes the group of fields named after it in world_fields.inc. It may be
// called on any number of lanes, ends with all its outputs visible to all lanes (a final SN_SYNC), and allocates
// nothing. Each stands in the header of its room, the adjoint behind the function: dynamics.h, actuator.h, collision.h,
// constraint.h, and here.
#ifndef SINEW_PHYSICS_STEP_STEP_H_
#define SINEW_PHYSICS_STEP_STEP_H_

#include "physics/world/adjoint.h"

// ---- step.c ----

// Runs all stages up to qacc, without integration (MuJoCo's mj_forward).
SN_FUNC void sn_forward(const SnModel *m, SnWorld *w, SnLane *lane);
// Runs the stages that say which rows there are, where they stand and how fast they move: efc_pos, efc_margin, efc_J,
// efc_vel. Leaves other velocities and forces of the world as they are.
SN_FUNC void sn_forward_rows(const SnModel *m, SnWorld *w, SnLane *lane);
// Runs again the stages that depend on how contacts act, after sn_forward at the same state: collision, rows, solver.
// No transmission may depend on contacts.
SN_FUNC void sn_forward_contacts(const SnModel *m, SnWorld *w, SnLane *lane);
// Runs the first half of sn_step_vjp without integration, from qacc_bar and act_dot_bar alone: for integrators of
// several stages.
SN_FUNC void sn_forward_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// Takes one time step. A state or acceleration that is NaN or beyond SN_MAXVAL sets SN_WARN_BAD_STATE and leaves the
// world as it was. Nothing is reset behind the caller's back.
SN_FUNC void sn_step(const SnModel *m, SnWorld *w, SnLane *lane);
// Runs the adjoint of one step, first half. The world is at the state before the step and sn_forward has run on it;
// nothing of its state is changed. Call sn_adjoint_clear first. The halves are two so that a cost of the state before
// the step can be added between them and shares the sweep. It adds to wrench, twist_bar[SN_VEL], ten_length_bar,
// ten_rate_bar[SN_VEL], trn_*_bar, or to RESULT directly.
SN_FUNC void sn_step_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Runs the second half: turns what has been added to lengths, rates, contacts and links into RESULT. For a state
// without a step (the end of a horizon) call sn_adjoint_clear, sn_motion_rest, the cost, sn_position_vjp.
SN_FUNC void sn_position_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Sets all motions to zero but SN_VEL = qvel, and propagates them. The world has its kinematics, tendons and
// velocities.
SN_FUNC void sn_motion_rest(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- step_jacobian.c ----

// Computes the rows that need an adjoint, SN_COLUMNS at a time: not those of positions that follow from velocities.
SN_FUNC void sn_jacobian_rows(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B);
// Computes the Jacobians of a step: A (n, n) and B (n, nu) with n = 2 nv + na, row-major. Rows are the next state,
// columns the state (qpos, qvel, act) and the controls, positions by their tangent. The world is as for sn_step_vjp; of
// the adjoint, all is scratch. A row is what the adjoint gives for it where a step is not smooth.
SN_FUNC void sn_step_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B);

#if defined(SN_MODEL_BARS)
// Says by which parameters of the model rows are differentiated, and holds the memory for it.
typedef struct SnParameterRows {
  const SnModelTangents *tangents;
  SnModelBar *bar;
  void *memory;  // sn_model_bar_size(tangents) bytes, 64-byte aligned
} SnParameterRows;

// Lets the adjoints that follow add to a bar of the model, zero at first.
void sn_parameter_rows_begin(const SnParameterRows *by, SnAdjoint *a);
// Writes what the adjoint of one number has added as derivatives by the parameters, and zeroes the bar.
void sn_parameter_row(const SnParameterRows *by, sn_real *out);
// Ends it: nobody asks for derivatives by the model any more.
void sn_parameter_rows_end(SnAdjoint *a);

// Computes A and B as sn_step_jacobian, up to rounding, and E (n, parameters): the next state by the parameters. Takes
// an adjoint for each velocity; under RK4 for each position; for each activation where parameters move what these
// depend on, else one.
void sn_step_sensitivity(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnParameterRows *by,
                         sn_real *A, sn_real *B, sn_real *E);
#endif

// ---- integrate.c ----

// Computes the next state from qacc and act_dot, by opt.integrator.
SN_FUNC void sn_integrate(const SnModel *m, SnWorld *w, SnLane *lane);
// Turns NEXT into qacc_bar, act_dot_bar and the motions SN_Y and SN_NEXT. Adds what goes directly to qpos_bar, qvel_bar
// and act_bar and, for implicitfast, the derivative of -h y' B a+.
SN_FUNC void sn_integrate_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Moves qpos by dt * qvel, on the manifold of free and ball joints.
SN_FUNC void sn_integrate_pos(const SnModel *m, SnLane *lane, sn_real *qpos, const sn_real *qvel, sn_real dt);
// Writes the tangent (nv) that leads from one position to another, the inverse of sn_integrate_pos: differences, and
// rotation vectors in the frame of `from`. Quaternions may have any length.
SN_FUNC void sn_difference_pos(const SnModel *m, SnLane *lane, const sn_real *from, const sn_real *to,
                               sn_real *tangent);

#endif
