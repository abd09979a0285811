// Tendons, transmissions and actuators: lengths, moment arms and forces, each with its adjoint. physics/step/step.h and
// physics/world/adjoint.h say what stages, lanes and adjoints have in common.
#ifndef SINEW_PHYSICS_ACTUATOR_ACTUATOR_H_
#define SINEW_PHYSICS_ACTUATOR_ACTUATOR_H_

#include "physics/world/adjoint.h"

// ---- tendon.c ----

// Computes ten_length and ten_J from frames; after sn_model_need_all also the lists of path points.
SN_FUNC void sn_tendon(const SnModel *m, SnWorld *w, SnLane *lane);
// Computes the gradient g of the length of segment k of a tendon, which touches its geom, by its two ends relative to
// the geom. Computes what g changes by as they move at y, too. The divisor of the pulley does not count. By the model
// it adds what g . y over that divisor gives to the radius.
SN_FUNC void sn_tendon_wrap_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int k, const sn_real y[6],
                                sn_real g[6], sn_real h[6]);
// Adds what ten_length_bar and ten_rate_bar give to wrench and twist_bar; of fixed tendons, to qpos_bar and qvel_bar.
// Adds the sweep of saturated joints, too.
SN_FUNC void sn_tendon_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- transmission.c ----

// Computes actuator_length and actuator_moment from tendons and frames.
SN_FUNC void sn_transmission(const SnModel *m, SnWorld *w, SnLane *lane);
// Adds what trn_length_bar and trn_rate_bar give to bars of tendons, wrench, twist_bar, qpos_bar and, for adhesion,
// bars of contacts.
SN_FUNC void sn_transmission_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- actuation.c ----

// Computes act_dot, actuator_force and qfrc_actuator from act and ctrl.
SN_FUNC void sn_actuation(const SnModel *m, SnWorld *w, SnLane *lane);
// Adds the derivative of lambda' qfrc_actuator to force_bar and trn_rate_bar, and what act_dot_bar gives to act_bar and
// ctrl_bar. Calls sn_actuator_force_vjp.
SN_FUNC void sn_actuation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);
// Adds what force_bar gives to trn_length_bar, trn_rate_bar[SN_VEL], act_bar and ctrl_bar. Sets force_bar to 0.
SN_FUNC void sn_actuator_force_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// Computes out (na): activations after one time step h [s] from act_dot, clamped to actrange.
SN_FUNC void sn_next_activation(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real h, sn_real *out);
// Adds what act_next_bar gives to act_bar and act_dot_bar.
SN_FUNC void sn_next_activation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real h);

// Adds what act_next_bar gives of bristles of motors, which sn_next_activation_vjp leaves out, to act_bar and
// trn_rate_bar[SN_VEL]: the world is at the start of the step.
SN_FUNC void sn_next_bristles_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real h);
// Returns the force of actuator i as its own limit and that of its tendon leave it. For an electric motor that is
// without cogging and friction, which no such limit holds.
SN_FUNC sn_real sn_limited_force(const SnModel *m, const SnWorld *w, int i);
// Returns the slope of the force of electric motor i by velocity, as implicit integrators take it. held: a limit holds
// its electric force.
SN_FUNC sn_real sn_motor_slope(const SnModel *m, const SnWorld *w, int i, bool held);
// Returns its slope by length, as the integrator `discrete` takes it: of its controller and of cogging.
SN_FUNC sn_real sn_motor_stretch(const SnModel *m, const SnWorld *w, int i, bool held);
// Add what the bar of such a slope gives to act_bar, to lengths and to parameters.
SN_FUNC void sn_motor_slope_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool held, sn_bar bar);
SN_FUNC void sn_motor_stretch_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool held, sn_bar bar);

// Returns the controls (nu) that act now, before their ranges: of those that act late, what their buffers say, from
// sn_actuation on.
SN_INLINE const sn_real *sn_applied_ctrl(const SnModel *m, const SnWorld *w) {
  return m->ndelay > 0 ? w->ctrl_late : w->ctrl;
}
// Returns the place that their bars are added to.
SN_INLINE sn_bar *sn_applied_bar(const SnModel *m, SnAdjoint *a) {
  return m->ndelay > 0 ? a->ctrl_late_bar : a->ctrl_bar;
}
// Returns control k as the actuators see it.
SN_INLINE sn_real sn_clamped_ctrl(const SnModel *m, const SnWorld *w, int k) {
  const sn_real u = sn_applied_ctrl(m, w)[k], *range = m->actuator_ctrlrange + 2 * k;
  if (!m->actuator_ctrllimited[k] || (m->opt.disableflags & SN_DSBL_CLAMPCTRL)) return u;
  return u < range[0] ? range[0] : (u > range[1] ? range[1] : u);  // NaN stays NaN
}
// Returns true when actuator i is in a group that is switched off.
SN_FUNC bool sn_actuator_disabled(const SnModel *m, int i);
// Returns whether actuator i has no force: it is disabled, or what it acts on sleeps.
SN_FUNC bool sn_actuator_idle(const SnModel *m, const SnWorld *w, int i);
// Returns the force of all actuators on a dof, gravity compensation included, before its joint's limit.
SN_FUNC sn_real sn_dof_actuation(const SnModel *m, const SnWorld *w, int dof);
// Returns true when that force is beyond the limit of joint j, so that the limit stands for it in the derivatives.
// Exactly at the limit it is free, as inside, like a control or a force at its own bound.
SN_FUNC bool sn_joint_saturated(const SnModel *m, const SnWorld *w, int j);
// Adds the bar of the force of all actuators on a dof, but for what it does to their forces. It adds to the motion of
// saturation.c, which sn_transmission_vjp and sn_tendon_vjp take back. One lane calls it, of a model with nactmotion >
// 0.
SN_FUNC void sn_actuation_motion(const SnModel *m, const SnWorld *w, SnAdjoint *a, int dof, sn_real bar);
// Adds to ctrl_bar what the bar of control k gives, as an actuator sees it. k = -1: there is none.
SN_FUNC void sn_ctrl_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int k, bool bad_ctrl, sn_bar bar);

// ---- actuator_slope.c: how forces change with lengths and velocities, as implicit integrators take it ----

// Returns whether the force of actuator i changes at all: it is neither off nor saturated.
SN_FUNC bool sn_actuator_gives(const SnModel *m, const SnWorld *w, int i);
// Returns d force / d velocity of actuator i.
SN_FUNC sn_real sn_actuator_slope(const SnModel *m, const SnWorld *w, int i);
// Adds what the bar of that gives to trn_length_bar, trn_rate_bar[SN_VEL], act_bar, act_dot_bar, bars of the controls
// that act now, and parameters.
SN_FUNC void sn_actuator_slope_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_bar bar);
// Returns d force / d length of actuator i: of gains and biases that are fixed, affine or a muscle's.
SN_FUNC sn_real sn_actuator_stretch(const SnModel *m, const SnWorld *w, int i);
// Adds what the bar of that gives, to the same but for parameters.
SN_FUNC void sn_actuator_stretch_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_bar bar);

#endif
