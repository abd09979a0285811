// Between the files of the integrators.
#ifndef SINEW_PHYSICS_STEP_INTEGRATE_PRIVATE_H_
#define SINEW_PHYSICS_STEP_INTEGRATE_PRIVATE_H_

#include "physics/world/adjoint.h"

// integrate.c. qH = M + h diag(damping of dofs); damping enters when `damped`.
SN_FUNC void sn_damped_M(const SnModel *m, SnWorld *w, SnLane *lane, bool damped);
// integrate.c. int_qacc = qH^-1 (qfrc_smooth + qfrc_constraint); qH becomes its factor.
SN_FUNC void sn_damped_solve(const SnModel *m, SnWorld *w, SnLane *lane);
// integrate.c. Advances activations, velocities, positions and time, and keeps qacc for the next warm start. Positions
// move with `qvel`, or with the new velocity when it is NULL.
SN_FUNC void sn_advance(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real *qacc, const sn_real *qvel);

// integrate.c. Adjoint of qpos (+) dt * rate: from the bar of the result (nv) those of qpos and rate are added to.
SN_FUNC void sn_integrate_pos_vjp(const SnModel *m, SnLane *lane, const sn_real *rate, sn_real dt,
                                  const sn_real *next_bar, sn_real *qpos_bar, sn_real *rate_bar);
// integrate.c. Adjoint of sn_advance with the new velocity qvel + h qacc: qpos_bar, qvel_bar; qacc_bar becomes the bar
// of the new velocity.
SN_FUNC void sn_advance_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const sn_real *qacc);
// integrate.c. act_next_bar -> act_bar, act_dot_bar.
SN_FUNC void sn_advance_activation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// integrate.c. The derivative of -h y' B a+ for the damping of dofs: qvel_bar.
SN_FUNC void sn_dof_damping_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// integrate_implicit.c, integrate_rk4.c: sn_integrate and its adjoint for one integrator.
SN_FUNC void sn_integrate_implicitfast(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_integrate_implicitfast_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
SN_FUNC void sn_integrate_rk4(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_integrate_rk4_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

#endif
