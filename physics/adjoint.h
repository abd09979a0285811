// The adjoint of a step: vector-Jacobian products of the stages, run backwards by sn_step_vjp (step.c).
//
// A step solves, with rows J, reference acceleration aref and row forces f = F(z; D), z = J a - aref,
//
//   M a = tau + J' f,   then integrates  (M + h B) a+ = M a,  v+ = v + h a+,  q+ = q (+) h v+,  act+ = next(act, ctrl).
//
// Given bars of the next state, integrate.c gives y = (M + h B)^-1 h v+bar and what reaches v, q and act directly. The
// acceleration's bar is M y. The solver is differentiated at its solution: with C = -dF/dz and H = M + J' C J,
// lambda = H^-1 M y. All the rest is the derivative of the scalar
//
//   G = lambda' (tau - bias) - lambda' M a + y' M (a - a+)                    smooth part
//     + sum_i [ f_i (J lambda)_i - c_i ((J a)_i - aref_i) + (J lambda)_i f_i log D_i ],   c = C J lambda fixed
//
// with respect to q, v, act, ctrl at fixed lambda, y, a, a+, f, c. With aref_i = -b_i (J v)_i - k_i imp_i pos_i and
// D_i a function of pos_i, the rows contribute
//
//   dG = sum_i [ f_i d(J_i lambda) - c_i d(J_i a) - b_i c_i d(J_i v) + row_pos_i dpos_i ].
//
// Everything of the form d(J z) is the change of a velocity of contact points, sites and tendons when the joints move along
// a fixed motion z. So the twists of all bodies are propagated once for each motion (sn_motion_propagate); stages
// turn their part of G into bars of twists (twist_bar), wrenches on bodies (wrench), bars of tendon lengths and rates, and
// direct bars of qpos, qvel, act, ctrl; tendon.c turns tendon bars into the former; one sweep from the leaves
// (sn_kinematics_vjp) turns twists' bars and wrenches into qpos_bar and qvel_bar.
//
// Conventions: twists and wrenches are (rotation, translation) about w->subtree_com of the body's root, which is a FIXED
// point during differentiation (G does not depend on it). A displacement xi of a body is a twist about that point times an
// infinitesimal time; wrench . xi is its contribution to dG. Static bodies take part (their wrench is dropped,
// a mocap body's goes to mocap_bar).
//
// Every routine adds to its outputs, is finite for every finite input, and may run on any number of lanes. Sums over contacts or
// tendons that reach the same body are made in index order by the lane that owns the body.
#ifndef SINEW_PHYSICS_ADJOINT_H_
#define SINEW_PHYSICS_ADJOINT_H_

#include "physics/stages.h"

// Motions z: rows of `motion`, `twist`, `twist_bar`, `ten_rate_bar`.
enum {
  SN_Z_LAMBDA,  // lambda
  SN_Z_ACC,     // a = qacc
  SN_Z_VEL,     // v = qvel: its twists are w->cvel; twist_bar of it reaches qvel_bar too
  SN_Z_Y,       // y
  SN_Z_LAG,     // a - a+ (0 without implicit damping)
  SN_NMOTION
};

typedef struct SnAdjoint {
#define SN_FIELD(group, type, name, rows, cols) type *name;
#include "physics/adjoint_fields.inc"
#undef SN_FIELD
} SnAdjoint;

// As sn_world_layout and sn_world_size, for an adjoint.
size_t sn_adjoint_layout(const SnModel *m, SnAdjoint *a, void *base);
size_t sn_adjoint_size(const SnModel *m);
// Makes an adjoint in memory of at least sn_adjoint_size(m) bytes, 64-byte aligned, zeroed.
void sn_adjoint_init(const SnModel *m, SnAdjoint *a, void *memory);

// step.c. Bars of state and control of a step from those of the next state (the NEXT group). w holds the state, control and warm
// start of the step; its intermediates are recomputed. w is left as sn_forward leaves it.
SN_FUNC void sn_step_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// integrate.c. From the NEXT group: y and a - a+ (motion rows), direct bars of qpos, qvel, act (through act+), and
// what the derivative of B adds. Euler, implicitfast; RK4 is a step of its own in sn_step_vjp.
SN_FUNC void sn_integrate_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// solver.c. motion[LAMBDA] = H^-1 M y, motion[ACC] = qacc, row_lambda, row_c. Finishes a Newton that stopped early.
SN_FUNC void sn_solve_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// kinematics.c. twist rows from motion rows; clears twist_bar and wrench.
SN_FUNC void sn_motion_propagate(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// kinematics.c. From twist_bar and wrench of all bodies: adds to qpos_bar, and for z = v to qvel_bar.
SN_FUNC void sn_kinematics_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// bias.c. -lambda' (M a + bias) + y' M (a - a+), armature left out where it is constant: adds to twist_bar, wrench, qvel_bar, and
// for tendon armature to ten_rate_bar.
SN_FUNC void sn_bias_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// passive.c. lambda' qfrc_passive: joints directly; tendons through ten_length_bar, ten_rate_bar; gravity compensation by wrenches.
SN_FUNC void sn_passive_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// actuation.c. lambda' qfrc_actuator: act_bar, ctrl_bar, qpos_bar, qvel_bar, tendon bars, wrenches. (act+ is
// integrate.c's, through sn_next_activation_vjp.)
SN_FUNC void sn_actuation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// actuation.c. act_bar and ctrl_bar from act_next_bar, for one time step h.
SN_FUNC void sn_next_activation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real h);
// tendon.c. ten_length_bar and ten_rate_bar -> twist_bar, wrench, qpos_bar (fixed tendons: qvel_bar). Runs after
// everything that adds to the tendon bars.
SN_FUNC void sn_tendon_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// constraint.c. From row_lambda, row_c: row_z, row_pos (through impedance.c), qvel_bar through aref; then the rows of each type into
// qpos_bar (joint limits, joint equalities), tendon bars, twist_bar and wrench (connect, weld), and the CONTACT group.
SN_FUNC void sn_constraint_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// collide.c. con_dist_bar, con_pos_bar, con_frame_bar of each contact -> con_wrench (one lane a contact), then
// con_wrench and con_twist_bar -> wrench, twist_bar of bodies.
SN_FUNC void sn_collision_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

#endif
