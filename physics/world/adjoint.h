// The adjoint of a step: from the derivative of a cost with respect to the next state to that with respect to this
// state and the controls. Every stage's `_vjp` stands in the stage's own file; step.c runs them backwards.
//
// A step at state x solves M a = tau + J'f for its acceleration a and moves the velocity by a+ (a itself, or
// (M + h B)^-1 M a where damping is implicit). With y = (M + h B)^-1 h qvel_next_bar, C = -df/d(J a - aref) and
// lambda = (M + J' C J)^-1 qacc_bar (qacc_bar = M y), all that is left of the derivative is that of the scalar
//
//   G = lambda' (tau - bias - M a) + y' M (a - a+) [- h y' B a+]
//       + sum_i [ f_i J_i lambda  -  c_i J_i a  -  b_i c_i J_i v  +  p_i pos_i ],     c = C J lambda,
//
// at fixed lambda, a, a+, y, f, c, b, p, with p_i = -k_i (I_i + I_i' (pos_i - margin_i)) c_i + (J_i lambda) f_i I_i' /
// (I_i (1 - I_i)), I the impedance; the I' term of the latter is left out on rows of saturated friction.
//
// Products of Jacobians with lambda, a, v, y, a+ are velocities of bodies, contact points and tendons if the joints
// moved so: five *motions* z, whose twists are propagated once (sn_motion_propagate). Stages add the derivative of G
// with respect to twists (twist_bar), rates of tendons (ten_rate_bar), lengths, and to small displacements of links
// (wrench). sn_tendon_vjp turns what tendons got into twist_bar and wrench; one sweep from the leaves,
// sn_kinematics_vjp, turns all of it into qpos_bar and, for the motion v, qvel_bar.
//
// Twists and wrenches are about subtree_com of the tree's root, at its present place, which is held FIXED while
// differentiating: nothing depends on the choice of that point.
#ifndef SINEW_PHYSICS_WORLD_ADJOINT_H_
#define SINEW_PHYSICS_WORLD_ADJOINT_H_

#include "physics/step/step.h"

// The motions whose products with Jacobians are differentiated. Only qvel itself is an input of the step.
typedef enum SnMotion {
  SN_LAMBDA,  // multiplier of the equation of motion
  SN_ACC,     // qacc
  SN_VEL,     // qvel
  SN_Y,       // multiplier of the implicit damping; zero where a+ = a
  SN_NEXT,    // a+, the acceleration that moves qvel; zero where a+ = a
  SN_NMOTION
} SnMotion;

// True when a+ is another acceleration than a, by implicit damping; else the motions y and a+ are zero.
SN_INLINE bool sn_is_damped(const SnModel *m) {
  if (m->opt.integrator == SN_INT_IMPLICITFAST) return true;
  return m->opt.integrator == SN_INT_EULER && m->nimplicit > 0 &&
         !(m->opt.disableflags & (SN_DSBL_EULERDAMP | SN_DSBL_DAMPER));
}

typedef struct SnAdjoint {
#define SN_ADJOINT_FIELD(group, type, name, rows, cols) type *name;
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
} SnAdjoint;

// As sn_world_layout, sn_world_size, sn_world_init; all fields zero.
size_t sn_adjoint_layout(const SnModel *m, SnAdjoint *a, void *base);
size_t sn_adjoint_size(const SnModel *m);
void sn_adjoint_init(const SnModel *m, SnAdjoint *a, void *memory);

// adjoint.c: zeroes RESULT and the bars that several stages add to (those of rows and contacts are zeroed by
// sn_constraint_vjp, which comes first to them). Ends with a sync.
SN_FUNC void sn_adjoint_clear(const SnModel *m, SnAdjoint *a, SnLane *lane);
// adjoint.c: the bars alone, without RESULT; the bars of the contacts that the world has.
SN_FUNC void sn_adjoint_clear_bars(const SnModel *m, SnAdjoint *a, SnLane *lane);
SN_FUNC void sn_adjoint_clear_contacts(const SnWorld *w, SnAdjoint *a, SnLane *lane);

// step.c. The adjoint of one step in two halves, so that a cost of the state before the step can be added between
// them (wrench, twist_bar[SN_VEL], ten_length_bar, ten_rate_bar[SN_VEL], out_*_bar, and RESULT directly) and shares
// the sweep. Call sn_adjoint_clear first. The world is at the state before the step and sn_forward has run on it;
// nothing of its state is changed.
SN_FUNC void sn_step_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Second half: what has been added to lengths, rates, contacts and links becomes RESULT. For a state without a step
// (the end of a horizon): sn_adjoint_clear, sn_motion_rest, the cost, sn_position_vjp.
SN_FUNC void sn_position_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// step.c. From qacc_bar and act_dot_bar alone, for integrators of several stages: the first half without integration.
SN_FUNC void sn_forward_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// step.c. All motions zero but SN_VEL = qvel, propagated. The world has its kinematics, tendons and velocities.
SN_FUNC void sn_motion_rest(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
// step_jacobian.c. The Jacobians of a step: A (n, n) and B (n, nu) with n = 2 nv + na, row-major, rows the next state
// and columns the state (qpos, qvel, act) and the controls, positions by their tangent. The world is as for
// sn_step_vjp; of the adjoint, all is scratch. Where a step is not smooth, a row is what the adjoint gives for it.
SN_FUNC void sn_step_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B);

// integrate.c: NEXT -> qacc_bar, act_dot_bar, motions SN_Y and SN_NEXT; adds what goes directly to qpos_bar, qvel_bar,
// act_bar (and, for implicitfast, the derivative of -h y' B a+).
SN_FUNC void sn_integrate_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// actuation.c: act_next_bar -> act_bar, act_dot_bar, trn_length_bar.
SN_FUNC void sn_next_activation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real h);
// solver.c: the solution to rounding, from where sn_solve stopped: qacc, efc_force, efc_state, efc_jar,
// qfrc_constraint; the factor of H is left behind. Little more than a solve with it where nothing was left to do.
SN_FUNC void sn_solve_finish(const SnModel *m, SnWorld *w, SnLane *lane);
// solver.c: qacc_bar -> motions SN_LAMBDA, SN_ACC, SN_VEL; row_lambda, row_c. Calls sn_solve_finish.
SN_FUNC void sn_solve_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// kinematics.c: motion -> twist of links, ten_rate, trn_rate. Reads ten_J, actuator_moment, cdof.
SN_FUNC void sn_motion_propagate(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
// actuation.c: lambda' qfrc_actuator: force_bar, trn_rate_bar; act_dot_bar -> act_bar, ctrl_bar; calls the next.
SN_FUNC void sn_actuation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// saturation.c: joints whose actuator forces are beyond their limit -> sat_on, sat_motion, sat_twist, sat_trn_bar,
// force_bar; called by sn_actuation_vjp. The second adds what sat_twist_bar does to wrench and qpos_bar; called by
// sn_tendon_vjp.
SN_FUNC void sn_saturation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
SN_FUNC void sn_saturation_sweep(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
// actuation.c: force_bar -> trn_length_bar, trn_rate_bar[SN_VEL], act_bar, ctrl_bar; force_bar becomes 0.
SN_FUNC void sn_actuator_force_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// passive.c: lambda' qfrc_passive.
SN_FUNC void sn_passive_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// bias.c: -lambda' (qfrc_bias + M a) + y' M (a - a+), armature of tendons included.
SN_FUNC void sn_bias_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// constraint.c: rows -> row_z, row_pos; then, by kind, qpos_bar, qvel_bar, tendon and contact bars, wrench, twist_bar,
// acc_bar.
SN_FUNC void sn_constraint_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// transmission.c: trn_length_bar, trn_rate_bar -> tendon bars, wrench, twist_bar, contact bars (adhesion), qpos_bar.
SN_FUNC void sn_transmission_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// collide.c: con_dist_bar, con_pos_bar, con_frame_bar -> wrench.
SN_FUNC void sn_collision_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// tendon.c: ten_length_bar, ten_rate_bar -> wrench, twist_bar, qpos_bar, qvel_bar (fixed tendons).
SN_FUNC void sn_tendon_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// kinematics.c: the sweep. wrench, twist_bar, acc_bar -> qpos_bar, qvel_bar, mocap_bar. The accumulators of links then
// hold the sums over their subtrees.
SN_FUNC void sn_kinematics_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// Twist of a body in motion z, and where its bar and its wrench are added to. Bodies that do not move have zeroes;
// what is added to the bars of link 0 is never read.
SN_INLINE const sn_real *sn_twist(const SnModel *m, const SnAdjoint *a, int body, SnMotion z) {
  return a->twist + 6 * (SN_NMOTION * m->link_of_body[body] + (int)z);
}
SN_INLINE sn_real *sn_twist_bar(const SnModel *m, SnAdjoint *a, int body, SnMotion z) {
  return a->twist_bar + 6 * (SN_NMOTION * m->link_of_body[body] + (int)z);
}
SN_INLINE sn_real *sn_body_wrench(const SnModel *m, SnAdjoint *a, int body) {
  return a->wrench + 6 * m->link_of_body[body];
}
// The point that twists and wrenches of a body refer to.
SN_INLINE const sn_real *sn_twist_origin(const SnModel *m, const SnWorld *w, int body) {
  return w->subtree_com + 3 * m->body_rootid[m->link_of_body[body]];
}

#endif
