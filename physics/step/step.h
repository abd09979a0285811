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

// Begin and end the adjoint of a scalar of qacc and efc_force, between the halves of sn_step_vjp, or after
// sn_motion_rest. All stages of sn_forward have run. In between, one lane adds to qacc_bar, to row_pos the bars of
// efc_force, and to wrench, twist_bar, acc_bar and bars of contacts what is direct. The end takes all bars so far to
// RESULT by a sweep of its own, as with noslip the begin does. It then runs the stages backwards once more from these,
// and leaves bars that wait for sn_position_vjp. Both end with a sync.
SN_FUNC void sn_acceleration_begin(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
SN_FUNC void sn_acceleration_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- step_jacobian.c ----

// Says by which parameters of the model rows are differentiated, too, and holds the memory for it. The CPU has it.
typedef struct SnParameterRows {
  const struct SnModelTangents *tangents;
  void *memory;  // sn_parameter_rows_size bytes, 64-byte aligned; of one thread
} SnParameterRows;

#if defined(SN_MODEL_BARS)
// Returns the bytes of that memory: of a bar of the model, and of one for several columns.
size_t sn_parameter_rows_size(const SnModelTangents *tangents);
// Lets the adjoints that follow add to a bar of the model, zero at first.
void sn_parameter_rows_begin(const SnParameterRows *by, SnAdjoint *a);
// Writes what they have added in column c as derivatives by the parameters.
void sn_parameter_row(const SnParameterRows *by, int c, sn_real *out);
// Zeroes the bar.
void sn_parameter_rows_clear(const SnParameterRows *by);
// Ends it: nobody asks for derivatives by the model any more.
void sn_parameter_rows_end(SnAdjoint *a);
#endif

// Says where Jacobians of a step go: rows are the next state, columns the state, the controls, parameters.
typedef struct SnStepJacobian {
  sn_real *A, *B;             // (n, n), (n, nu)
  const SnParameterRows *by;  // for E; NULL: there is none
  sn_real *E;                 // (n, parameters)
} SnStepJacobian;

// Computes the rows that need an adjoint, SN_COLUMNS at a time: not those of positions that follow from velocities.
SN_FUNC void sn_jacobian_rows(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnStepJacobian *to);
// Computes the Jacobians of a step: A (n, n) and B (n, nu) with n = 2 nv + na, row-major. Rows are the next state,
// columns the state (qpos, qvel, act) and the controls, positions by their tangent; the past is constant. The world is
// as for sn_step_vjp; of the adjoint, all is scratch. A row is what the adjoint gives for it where a step is not
// smooth.
SN_FUNC void sn_step_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B);
// Computes E, too. Takes an adjoint for each velocity; under RK4 for each position; for each activation where
// parameters move what these depend on, else one for all.
SN_FUNC void sn_step_sensitivity(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnStepJacobian *to);

// ---- sense.c ----

// Adds the adjoint of all sensors. bar (nsensordata) has the places of sn_sensor_data, so that a quaternion has four
// numbers; what is not differentiable is left out. Call it between sn_step_vjp (where no step is, sn_motion_rest) and
// sn_position_vjp. Adds to act_bar and ctrl_bar, too, where a sensor measures a force, and to past_bar. Ends with a
// sync.
SN_FUNC void sn_sensor_data_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const sn_real *bar);

// ---- integrate.c ----

// Computes the next state from qacc and act_dot, by opt.integrator.
SN_FUNC void sn_integrate(const SnModel *m, SnWorld *w, SnLane *lane);
// Turns NEXT into qacc_bar, act_dot_bar and the motions SN_Y and SN_NEXT. Adds what goes directly to qpos_bar,
// qvel_bar, act_bar, past_bar and ctrl_bar and, for implicitfast, the derivative of -h y' B a+.
SN_FUNC void sn_integrate_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Moves qpos by dt * qvel, on the manifold of free and ball joints.
SN_FUNC void sn_integrate_pos(const SnModel *m, SnLane *lane, sn_real *qpos, const sn_real *qvel, sn_real dt);
// Writes the tangent (nv) that leads from one position to another, the inverse of sn_integrate_pos: differences, and
// rotation vectors in the frame of `from`. Quaternions may have any length.
SN_FUNC void sn_difference_pos(const SnModel *m, SnLane *lane, const sn_real *from, const sn_real *to,
                               sn_real *tangent);

#endif
