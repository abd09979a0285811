// Between the files of the integrators.
#ifndef SINEW_PHYSICS_STEP_INTEGRATE_PRIVATE_H_
#define SINEW_PHYSICS_STEP_INTEGRATE_PRIVATE_H_

#include "physics/world/adjoint.h"

// ---- integrate.c ----

// Computes qH = M + h diag(damping of dofs); damping enters when `damped`.
SN_FUNC void sn_damped_M(const SnModel *m, SnWorld *w, SnLane *lane, bool damped);
// Computes int_qacc = qH^-1 (qfrc_smooth + qfrc_constraint). Replaces qH by its factor.
SN_FUNC void sn_damped_solve(const SnModel *m, SnWorld *w, SnLane *lane);
// Advances activations, velocities, positions and time, and keeps qacc for the next warm start. Positions move with
// `qvel`, or with the new velocity when it is NULL.
SN_FUNC void sn_advance(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real *qacc, const sn_real *qvel);
// Runs the adjoint of sn_advance with the new velocity qvel + h qacc. Adds to qpos_bar and qvel_bar; qacc_bar becomes
// the bar of the new velocity.
SN_FUNC void sn_advance_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const sn_real *qacc);
// Adds what act_next_bar gives to act_bar, and sets act_dot_bar.
SN_FUNC void sn_advance_activation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// Runs the adjoint of sn_integrate_pos with dt * rate: adds what next_bar (nv) gives to qpos_bar and rate_bar (nv).
SN_FUNC void sn_integrate_pos_vjp(const SnModel *m, SnLane *lane, const sn_real *rate, sn_real dt,
                                  const sn_bar *next_bar, sn_bar *qpos_bar, sn_bar *rate_bar);
// Adds the derivative of -h y' B a+ for the damping of dofs to qvel_bar.
SN_FUNC void sn_dof_damping_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- plastic.c ----

// Moves the rests of springs that yield. The positions are those after the step; tendons' lengths and arms those before
// it, from which `rate` (nv) has led.
SN_FUNC void sn_plastic_advance(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real *rate);
// Runs the adjoint of what joints' springs do, after rk_rate: plastic_next (nv) becomes qpos_next_bar and what
// past_next_bar gives to the next positions. Adds to past_bar.
SN_FUNC void sn_plastic_joints_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
// Runs that of tendons' springs. Adds to ten_length_bar, ten_rate_bar and past_bar, and to qacc_bar what accelerations
// do to the velocity that moves positions.
SN_FUNC void sn_plastic_tendons_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- integrate_rk4.c ----

// Computes the rates (nv) of the coordinates about the start of a step, for velocity v at displacement dt * last.
SN_FUNC void sn_stage_rate(const SnModel *m, SnLane *lane, sn_real *rate, const sn_real *v, const sn_real *last,
                           sn_real dt);
// Runs its adjoint: adds what bar (nv), that of the rates, gives to v_bar and last_bar (nv).
SN_FUNC void sn_stage_rate_vjp(const SnModel *m, SnLane *lane, const sn_real *v, const sn_real *last, sn_real dt,
                               const sn_bar *bar, sn_bar *v_bar, sn_bar *last_bar);

// ---- integrate_implicit.c, integrate_rk4.c ----

// Computes int_qacc of implicitfast or of implicit, and all that it is made of.
SN_FUNC void sn_implicit_acceleration(const SnModel *m, SnWorld *w, SnLane *lane);
// Take the step of one integrator, as sn_integrate does, or run its adjoint, as sn_integrate_vjp.
SN_FUNC void sn_integrate_implicitfast(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_integrate_implicitfast_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
SN_FUNC void sn_integrate_rk4(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_integrate_rk4_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- implicit_matrix.c ----

// Computes lu_low and lu_up, the factors of the matrix of the integrator `implicit`. Reads act_slope and ten_slope.
SN_FUNC void sn_implicit_factor(const SnModel *m, SnWorld *w, SnLane *lane);
// Replaces x (nv) by the solution with this matrix, or with its transpose. Needs a sync before, ends with one.
SN_FUNC void sn_implicit_solve(const SnModel *m, const SnWorld *w, SnLane *lane, bool transposed, sn_bar *x);

#endif
