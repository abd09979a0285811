// The equation of motion but for its constraints: kinematics, inertia, velocities, bias and passive forces, each with
// its adjoint. physics/step/step.h and physics/world/adjoint.h say what stages, lanes and adjoints have in common.
#ifndef SINEW_PHYSICS_DYNAMICS_DYNAMICS_H_
#define SINEW_PHYSICS_DYNAMICS_DYNAMICS_H_

#include "physics/base/vec.h"
#include "physics/world/adjoint.h"

// ---- kinematics.c ----

// Computes frames of bodies, geoms and sites, anchors and axes of joints from qpos and mocap poses. Quaternions in qpos
// are normalised on use, not in place.
SN_FUNC void sn_kinematics(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes the frame of a geom from its body's: pos [m], mat (row major, may be NULL). Serves also the geoms that
// sn_kinematics leaves out because no contact, tendon or sensor needs them.
SN_FUNC void sn_geom_pose(const SnModel *m, const SnWorld *w, int geom, sn_real pos[3], sn_real mat[9]);
// Computes the frame of a site likewise.
SN_FUNC void sn_site_pose(const SnModel *m, const SnWorld *w, int site, sn_real pos[3], sn_real mat[9]);

// ---- kinematics_vjp.c ----

// Sweeps from the leaves: turns wrench, twist_bar and acc_bar into qpos_bar, qvel_bar and mocap_bar. The accumulators
// of links then hold the sums over their subtrees.
SN_FUNC void sn_kinematics_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
#if defined(SN_MODEL_BARS)
// Adds force and torque about the origin of a body that is welded to a link to the bars of its frame there. Leaves
// links to the sweep.
SN_FUNC void sn_welded_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_bar *force,
                                 const sn_bar *torque);
// Adds what wrenches on links, and dof_wrench, dof_pull and dof_own give to the bars of frames, joints, geoms and
// sites. Zeroes dof_own and the wrenches of geoms, sites and bodies.
SN_FUNC void sn_kinematics_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a);
#endif
// Propagates the motions: turns motion into twist of links, ten_rate and trn_rate. Reads ten_J, actuator_moment, cdof.
SN_FUNC void sn_motion_propagate(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- inertia.c ----

// Computes subtree_com, cdof and cinert from frames.
SN_FUNC void sn_com_pos(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes crb and M from cdof and cinert, and from ten_J where tendons have armature.
SN_FUNC void sn_make_M(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes qLD and qLDiagInv, the factor L'DL of M.
SN_FUNC void sn_factor_M(const SnModel *m, SnWorld *w, SnLane *lane);
// Replaces mat, a matrix in M's pattern, by its factor LD, and sets diag_inv (nv).
SN_FUNC void sn_factor_LD(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *mat, sn_real *diag_inv);
// Replaces x (nv) by (L'DL)^-1 x for a factor in M's pattern. Needs a sync before.
SN_FUNC void sn_solve_LD(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_bar *x);
// Computes r = M x (nv).
SN_FUNC void sn_mul_M(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *r, const sn_bar *x);
// Adds to r (nv) the product of x (nv) and a symmetric matrix in the pattern of M.
SN_FUNC void sn_add_product(const SnModel *m, SnLane *lane, const sn_real *mat, sn_real *r, const sn_real *x);
// Adds the derivative of the sum of bar[i] M_ii to qpos_bar, armature of tendons left out. With drag, adds that of
// drag[i] times the diagonal of efm_fluid, each part of a fluid at one velocity in its axes. link_slope is known then.
// Ends with a sync.
SN_FUNC void sn_inertia_diagonal_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, const sn_bar *bar,
                                     const sn_bar *drag);
#if defined(SN_MODEL_BARS)
// Adds what these bars give to the model: inertias, armatures and frames. Uses wrenches on links, which are zero before
// and after. Is for one lane alone.
SN_FUNC void sn_inertia_diagonal_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const sn_bar *bar,
                                           const sn_bar *drag);
#endif
// Adds b J'J to mat in M's pattern, for a sparse row J of nnz entries with columns col. Ends with a sync.
SN_FUNC void sn_add_JtJ(const SnModel *m, SnLane *lane, sn_real *mat, sn_real b, int nnz, const int *col,
                        const sn_real *J);

// ---- factor_lanes.c ----

enum { SN_WARP_ROWS = 4 };  // most rows of a matrix that a lane of a warp keeps
// Solves like sn_solve_LD where lanes pass numbers by shuffles (sn_can_shuffle). Returns false, and does nothing, where
// they do not. So it does where nv is too large for what they keep: SN_WARP_ROWS rows a lane of a warp, 8 a lane of
// fewer lanes.
SN_FUNC bool sn_lanes_solve_LD(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_real *x);
// Computes L in mat and D from the leaves on, on several lanes. Overwrites w->hessian.
SN_FUNC void sn_lanes_factor(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *mat, sn_real *D);

// ---- bias.c ----

// Computes cvel, cdof_dot, ten_velocity and actuator_velocity from qvel.
SN_FUNC void sn_velocity(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes qfrc_bias: Coriolis, centrifugal and gravity forces, and the bias force of tendons' armature.
SN_FUNC void sn_bias(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes Jdot qvel of spatial tendon t, a path of sites and pulleys. Any thread may call it.
SN_FUNC sn_real sn_tendon_dot(const SnModel *m, const SnWorld *w, int t);
// Adds what the bar of that gives, to acc_bar, twist_bar[SN_VEL] and wrench.
SN_FUNC void sn_tendon_dot_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t, sn_bar bar);
#if defined(SN_MODEL_BARS)
// Adds the bar of a symmetric matrix I in the frame R to r (xx yy zz xy xz yz). It is that of sign x' I y, where x and
// y are in world axes.
SN_INLINE void sn_add_inertia_bar(sn_bar *r, const sn_real *R, const sn_bar *x, const sn_bar *y, sn_real sign) {
  sn_bar u[3], v[3];
  sn_mulmattvec3(u, R, x);
  sn_mulmattvec3(v, R, y);
  for (int e = 0; e < 3; ++e) r[e] += sign * u[e] * v[e];
  r[3] += sign * (u[0] * v[1] + u[1] * v[0]);
  r[4] += sign * (u[0] * v[2] + u[2] * v[0]);
  r[5] += sign * (u[1] * v[2] + u[2] * v[1]);
}
#endif
// Adds the derivative of -lambda' (qfrc_bias + M a) + y' M (a - a+), armature of tendons included.
SN_FUNC void sn_bias_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Adds to RESULT the derivative of -h y' (d qfrc_bias / d qvel) a+, tendons left out; of the integrator `implicit`
// alone. Comes last, as sn_branched_vjp: it clears and uses the bars.
SN_FUNC void sn_bias_slope_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- passive.c ----

// Computes qfrc_spring, qfrc_damper, qfrc_gravcomp and qfrc_passive.
SN_FUNC void sn_passive(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes how far joint j is from where its spring rests. It writes a number for a slide or hinge, else a displacement
// of a free joint and a rotation vector. Returns how many numbers. Any thread may call it.
SN_FUNC int sn_joint_stretch(const SnModel *m, const SnWorld *w, int j, sn_real dif[6]);
// Adds to rest_bar (4) what the bar (3) of a ball joint's displacement dif gives to its rest. Takes -Jr^-1(-dif) w for
// the change of dif at a turn w of the rest.
SN_FUNC void sn_ball_rest_vjp(const sn_real *rest, const sn_real *dif, const sn_real *bar, sn_real *rest_bar);
// Returns how much longer (above 0) or shorter tendon t is than lengths at which its spring is slack [m].
SN_FUNC sn_real sn_tendon_stretch(const SnModel *m, const SnWorld *w, int t);
// Computes the forces of tendon t along its length [N]: spring in out[0], damper in out[1]. Any thread may call it.
SN_FUNC void sn_tendon_passive(const SnModel *m, const SnWorld *w, int t, sn_real out[2]);
// Adds what the bar `pull` of the sum of these two gives, to ten_length_bar, ten_rate_bar[SN_VEL] and past_bar.
SN_FUNC void sn_tendon_passive_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t, sn_bar pull);
// Adds the derivative of lambda' qfrc_passive.
SN_FUNC void sn_passive_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- fluid.c ----

// Computes qfrc_fluid. For models with nfluid > 0 alone, as what follows.
SN_FUNC void sn_fluid(const SnModel *m, SnWorld *w, SnLane *lane);
// Adds the slopes of the fluid to link_slope, each link its own.
SN_FUNC void sn_fluid_slopes(const SnModel *m, SnWorld *w, SnLane *lane);
// Adds the derivative of lambda' qfrc_fluid, and under implicit integrators of h y' (d qfrc_fluid / d qvel) a+.
SN_FUNC void sn_fluid_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// Returns whether a fluid acts.
SN_INLINE bool sn_in_fluid(const SnModel *m) { return m->nfluid > 0 && sn_is_passive(m); }

// ---- slope.c ----

// Sums n numbers of each link over its subtree, from the leaves. Needs a sync before, ends with one.
SN_FUNC void sn_sum_subtrees(const SnModel *m, SnLane *lane, sn_real *x, int n);
// Computes link_slope and dof_slope: how forces on links change with velocities, of a fluid and, under `implicit`, of
// the bias.
SN_FUNC void sn_velocity_slopes(const SnModel *m, SnWorld *w, SnLane *lane);
// Returns the entry (i, j) that they give to d (qfrc_passive - qfrc_bias) / d qvel, of two dofs on one path to the
// root.
SN_FUNC sn_real sn_velocity_slope(const SnModel *m, const SnWorld *w, int i, int j);

// ---- branched.c ----

// Rows of tendons and actuators whose columns lie on several branches of the tree: of their products J'J only what fits
// M's pattern counts.

// Holds a sparse row: n columns, ascending.
typedef struct SnRow {
  int n;
  const int *col;
  const sn_real *J;
} SnRow;

// Returns the row of tendon t, a view of ten_J.
SN_INLINE SnRow sn_tendon_row(const SnModel *m, const SnWorld *w, int t) {
  const int adr = m->ten_J_rowadr[t];
  const SnRow row = {m->ten_J_rownnz[t], m->ten_J_colind + adr, w->ten_J + adr};
  return row;
}
// Returns whether somebody asks for derivatives by the moment arms of tendon t, which are numbers of the model where it
// is fixed.
SN_INLINE bool sn_tendon_arms_move(const SnModel *m, const SnAdjoint *a, int t) {
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->ten_J_fixed) return true;
#endif
  (void)a;
  return m->tendon_type[t] == SN_TENDON_SPATIAL;
}
// Returns the row of actuator output `out`, a view of actuator_moment.
SN_INLINE SnRow sn_output_row(const SnModel *m, const SnWorld *w, int out) {
  const int adr = m->mom_rowadr[out];
  const SnRow row = {m->mom_rownnz[out], m->mom_colind + adr, w->actuator_moment + adr};
  return row;
}

// Returns true when all columns lie on one path to the root, so that nothing of J'J is cut off. `block`: in the pattern
// of the implicit integrator, else in M's. The former has the equations of a free body that carries nothing, and with
// `implicit` of every simple body, as one full block.
SN_FUNC bool sn_row_is_chain(const SnModel *m, const SnRow *row, bool block);
// Returns x' (J'J in that pattern) y; x and y (nv).
SN_FUNC sn_bar sn_row_form(const SnModel *m, const SnRow *row, bool block, const sn_bar *x, const sn_bar *y);

// Adds to RESULT the derivative of the products that sn_bias_vjp and sn_integrate_vjp leave out, those of branched
// rows. Leaves those of implicit damping out where `damping` is false. Comes last, after sn_kinematics_vjp: it clears
// and uses the bars. Keeps the motions, not the twists.
SN_FUNC void sn_branched_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, bool damping);

// ---- metric.c: the effective inertia of the integrator `discrete` ----

// Computes its terms, efm_sdiag and qfrc_metric, from qfrc_smooth, forces of actuators and velocities.
SN_FUNC void sn_metric(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes r = (M + B) x (nv); B = 0 under other integrators.
SN_FUNC void sn_mul_metric(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *r, const sn_real *x);
// Returns the scale s of term k of B that is s J'J, of ntendon + nout, and its row.
SN_FUNC sn_real sn_metric_term(const SnModel *m, const SnWorld *w, int k, SnRow *row);
// Adds the derivative of -lambda' (B a + h K v) + y' B (a - a+), and what metric_bar gives.
SN_FUNC void sn_metric_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- free_body.c: free bodies that carry nothing, of implicit integrators ----

// Replaces acc (nv) of free body i by that of its own unsymmetric equations. Leaves it where they are singular.
SN_FUNC void sn_free_body(const SnModel *m, const SnWorld *w, int i, sn_real *acc);
// Replaces its y, from `scale` times the bar (nv) of acc, and adds the derivative of -h y' (d qfrc_bias / d qvel) acc.
// Leaves y where the equations are singular, as the acceleration.
SN_FUNC void sn_free_body_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *acc,
                              sn_real scale, const sn_bar *acc_bar);
// Computes efm_touched from rows and sn_metric_term, once rows were made. Serves `discrete` alone, as what follows.
SN_FUNC void sn_free_touch(const SnModel *m, SnWorld *w, SnLane *lane);
// Returns whether free body i stands alone, so that it has such equations.
SN_FUNC bool sn_free_is_alone(const SnModel *m, const SnWorld *w, int i);
// Turns qacc_bar of those that do into that of the acceleration that the solver finds for them. Sets the motions y and
// a+ and adds what sn_free_body_vjp does. Serves `discrete` alone.
SN_FUNC void sn_free_alone_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

#endif
