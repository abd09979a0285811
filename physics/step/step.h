// The stages of a step: each reads what earlier stages wrote and writes the group of fields named
// after it in world_fields.inc. Every stage may be called on any number of lanes, ends with all
// its outputs visible to all lanes (a final SN_SYNC), and allocates nothing.
#ifndef SINEW_PHYSICS_STEP_STEP_H_
#define SINEW_PHYSICS_STEP_STEP_H_

#include "physics/world/world.h"

// kinematics.c: qpos, mocap poses -> body, geom, site frames, joint anchors and axes. Quaternions in
// qpos are normalised on use, not in place.
SN_FUNC void sn_kinematics(const SnModel *m, SnWorld *w, SnLane *lane);
// kinematics.c: what `stage` leaves alone because it stays the same: frames of all that hangs on the world, its cvel
// (0), its subtree_com (0 where sn_com_pos does not compute it). Needs a sync after it. sn_world_init, sn_world_begin
// and sn_world_poison call it.
SN_FUNC void sn_static_fields(const SnModel *m, SnWorld *w, SnLane *lane, SnStage stage);

// inertia.c: frames -> subtree_com, cdof, cinert.
SN_FUNC void sn_com_pos(const SnModel *m, SnWorld *w, SnLane *lane);
// inertia.c: cdof, cinert (and ten_J for tendon armature) -> crb, M.
SN_FUNC void sn_make_M(const SnModel *m, SnWorld *w, SnLane *lane);
// inertia.c: M -> qLD, qLDiagInv.
SN_FUNC void sn_factor_M(const SnModel *m, SnWorld *w, SnLane *lane);
// inertia.c: x <- (L'DL)^-1 x for a factor in M's pattern; x has nv entries. Needs a sync before.
SN_FUNC void sn_solve_LD(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_real *x);
// inertia.c: factors a matrix in M's pattern in place (mat becomes LD).
SN_FUNC void sn_factor_LD(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *mat, sn_real *diag_inv);
// inertia.c: r = M x (nv).
SN_FUNC void sn_mul_M(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *r, const sn_real *x);

// inertia.c: mat += b J'J in M's pattern, for a sparse row J of nnz entries with columns col. Ends with a sync.
SN_FUNC void sn_add_JtJ(const SnModel *m, SnLane *lane, sn_real *mat, sn_real b, int nnz, const int *col,
                        const sn_real *J);

// tendon.c: frames -> ten_length, ten_J; after sn_model_need_all also the lists of path points.
SN_FUNC void sn_tendon(const SnModel *m, SnWorld *w, SnLane *lane);
// transmission.c: tendons, frames -> actuator_length, actuator_moment.
SN_FUNC void sn_transmission(const SnModel *m, SnWorld *w, SnLane *lane);

// collide.c: geom frames -> contact[ncon], in MuJoCo's order, parameters mixed.
SN_FUNC void sn_collision(const SnModel *m, SnWorld *w, SnLane *lane);

// bias.c: qvel -> cvel, cdof_dot, ten_velocity, actuator_velocity.
SN_FUNC void sn_velocity(const SnModel *m, SnWorld *w, SnLane *lane);
// bias.c: -> qfrc_bias (Coriolis, centrifugal, gravity; tendon armature's bias force too).
SN_FUNC void sn_bias(const SnModel *m, SnWorld *w, SnLane *lane);
// passive.c: -> qfrc_spring, qfrc_damper, qfrc_gravcomp, qfrc_passive.
SN_FUNC void sn_passive(const SnModel *m, SnWorld *w, SnLane *lane);
// actuation.c: act, ctrl -> act_dot, actuator_force, qfrc_actuator.
SN_FUNC void sn_actuation(const SnModel *m, SnWorld *w, SnLane *lane);
// actuation.c: control k as the actuators see it; whether actuator i is in a group that is switched off.
SN_FUNC sn_real sn_clamped_ctrl(const SnModel *m, const SnWorld *w, int k);
SN_FUNC bool sn_actuator_disabled(const SnModel *m, int i);
// actuation.c: force of all actuators on a dof, gravity compensation included, before its joint's limit.
SN_FUNC sn_real sn_dof_actuation(const SnModel *m, const SnWorld *w, int dof);
// actuation.c: whether that force is beyond the limit of joint j, so that the limit stands for it in the derivatives
// (passive.c, saturation.c). Exactly at the limit it is free, as inside, like a control or a force at its own bound.
SN_FUNC bool sn_joint_saturated(const SnModel *m, const SnWorld *w, int j);
// actuation.c: activations after one time step h [s] from act_dot, clamped to actrange: out (na).
SN_FUNC void sn_next_activation(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real h, sn_real *out);

// constraint.c: contacts, limits, equalities, friction loss -> rows, J, D, R and, with qvel, efc_vel, efc_aref.
SN_FUNC void sn_make_constraint(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_reference_constraint(const SnModel *m, SnWorld *w, SnLane *lane);

// solver.c: rows, qacc_smooth, qacc_warmstart -> qacc, efc_force, efc_state, qfrc_constraint; where qacc is
// finite it becomes the next qacc_warmstart. (The integrator, which may be given a qacc of another origin, stores it
// too.)
SN_FUNC void sn_solve(const SnModel *m, SnWorld *w, SnLane *lane);

// integrate.c: qacc, act_dot -> the next state, by opt.integrator.
SN_FUNC void sn_integrate(const SnModel *m, SnWorld *w, SnLane *lane);
// integrate.c: qpos <- qpos (+) dt * qvel, on the manifold of free and ball joints.
SN_FUNC void sn_integrate_pos(const SnModel *m, SnLane *lane, sn_real *qpos, const sn_real *qvel, sn_real dt);

// step.c: all stages up to qacc, without integration (MuJoCo's mj_forward).
SN_FUNC void sn_forward(const SnModel *m, SnWorld *w, SnLane *lane);
// step.c: one time step. A state or acceleration that is NaN or beyond SN_MAXVAL sets
// SN_WARN_BAD_STATE and leaves the world as it was; nothing is reset behind the caller's back.
SN_FUNC void sn_step(const SnModel *m, SnWorld *w, SnLane *lane);

// Frames of a geom or site from its body's frame, also of those that sn_kinematics leaves out
// because no contact, tendon or sensor needs them. mat may be NULL.
SN_FUNC void sn_geom_pose(const SnModel *m, const SnWorld *w, int geom, sn_real pos[3], sn_real mat[9]);
SN_FUNC void sn_site_pose(const SnModel *m, const SnWorld *w, int site, sn_real pos[3], sn_real mat[9]);

#endif
