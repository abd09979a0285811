// Between the files of tendons and actuators.
#ifndef SINEW_PHYSICS_ACTUATOR_ACTUATOR_PRIVATE_H_
#define SINEW_PHYSICS_ACTUATOR_ACTUATOR_PRIVATE_H_

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/world/adjoint.h"

// ---- activation.c: controls and activations of one actuator ----

// Returns true when an actuator has a law in a file of its own: controllers, motors, orientations.
SN_INLINE bool sn_has_own_law(const SnModel *m, int i) { return m->actuator_gaintype[i] > SN_GAIN_MUSCLE; }
// Returns the last activation of actuator i; -1: it has none.
SN_INLINE int sn_last_activation(const SnModel *m, int i) {
  return m->actuator_actadr[i] < 0 ? -1 : m->actuator_actadr[i] + m->actuator_actnum[i] - 1;
}
// Returns the setpoint that means the same rotation as u and is nearest to length.
SN_INLINE sn_real sn_near_setpoint(sn_real u, sn_real length, sn_real period) {
  return u - period * sn_floor((u - length) / period + SN_R(0.5));
}
// Returns true when a control is bad. One such control switches all of them off, as in MuJoCo. A lane looks at all.
SN_INLINE bool sn_bad_ctrl(const SnModel *m, const SnWorld *w) {
  bool bad = false;
  for (int k = 0; k < m->nu; ++k) bad = bad || sn_is_bad(sn_clamped_ctrl(m, w, k));
  return bad;
}
// Returns the same, where all lanes ask: they share the controls out. Ends with a sync.
SN_INLINE bool sn_lanes_bad_ctrl(const SnModel *m, const SnWorld *w, SnLane *lane) {
  int bad = 0;
  SN_FOR(k, m->nu) bad |= sn_is_bad(sn_clamped_ctrl(m, w, k));
  return sn_count(lane, bad) != 0;
}
// Returns an activation of actuator i, `act` now, after h [s] at the given rate.
SN_FUNC sn_real sn_activation_after(const SnModel *m, int i, sn_real act, sn_real rate, sn_real h);
// Adds to act_bar and ctrl_bar what the bar of the rate of the activation of actuator i gives.
SN_FUNC void sn_activation_rate_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, sn_bar bar);
// Returns the bar of the rate from that of activation k, of actuator i, after h [s], and adds to act_bar. An activation
// that its range has stopped has no derivative. On a bound it is that of the inside.
SN_FUNC sn_bar sn_activation_after_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, int k, sn_real rate,
                                       sn_real h, sn_bar bar);
#if defined(SN_MODEL_BARS)
// Adds the bar of a number x that a range holds to that of the bound. range_bar may be NULL.
SN_FUNC void sn_bound_model_vjp(sn_bar *range_bar, const sn_real *range, sn_real x, sn_bar bar);
#endif

// ---- actuation.c: muscles by their tables ----

#if defined(SN_MODEL_BARS)
// Lists what a muscle's table gives: force per activation, its derivatives by velocity and length, passive force, its
// derivative by length.
typedef enum SnMuscleCurve {
  SN_MUSCLE_GAIN,
  SN_MUSCLE_GAIN_SLOPE,
  SN_MUSCLE_GAIN_STRETCH,
  SN_MUSCLE_BIAS,
  SN_MUSCLE_BIAS_STRETCH
} SnMuscleCurve;
// Adds to `out` (SN_NMUSCLE) what the bar of a curve gives to its table, by differences in the table's numbers.
SN_FUNC void sn_muscle_model_vjp(SnMuscleCurve curve, const sn_real *table, sn_bar *out, sn_real length,
                                 sn_real velocity, sn_bar bar);
#endif

// ---- controller.c: controllers ----

SN_INLINE bool sn_is_controller(const SnModel *m, int i) { return m->actuator_gaintype[i] == SN_GAIN_PID; }
// Returns the force of controller i before all limits, less its affine bias.
SN_FUNC sn_real sn_controller_force(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl);
// Writes act_dot of controller i.
SN_FUNC void sn_controller_rates(const SnModel *m, SnWorld *w, int i, bool bad_ctrl);
// Adds what the bars of a controller's force before all limits, its bias included, and of the rates of its setpoint and
// its integral give. A turn by which a setpoint is shifted is constant.
SN_FUNC void sn_controller_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, sn_bar bar,
                               sn_bar slew_bar, sn_bar integral_bar);
// Adds what act_dot_bar of a controller gives.
SN_FUNC void sn_controller_rates_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl);

// ---- dcmotor.c: electric motors ----

SN_INLINE bool sn_is_motor(const SnModel *m, int i) { return m->actuator_gaintype[i] == SN_GAIN_DCMOTOR; }
// Writes act_dot of motor i.
SN_FUNC void sn_motor_rates(const SnModel *m, SnWorld *w, int i, bool bad_ctrl);
// Returns the electric force of motor i before all limits.
SN_FUNC sn_real sn_motor_force(const SnModel *m, const SnWorld *w, int i, bool bad_ctrl);
// Returns `force` with cogging and friction of motor i, which no limit holds; act_dot is known.
SN_FUNC sn_real sn_motor_drag(const SnModel *m, const SnWorld *w, int i, sn_real force);
// Writes the activations of motor i after h [s] to out (na).
SN_FUNC void sn_motor_next(const SnModel *m, const SnWorld *w, int i, sn_real h, sn_real *out);
// Adds what the bars of the electric and the mechanical force of motor i give.
SN_FUNC void sn_motor_force_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl, sn_bar bar,
                                sn_bar drag_bar);
// Adds what act_dot_bar of motor i gives.
SN_FUNC void sn_motor_rates_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl);
// Adds what act_next_bar of motor i but for its bristles gives to act_bar and act_dot_bar.
SN_FUNC void sn_motor_next_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_real h);

// ---- orientation.c: orientation servos ----

SN_INLINE bool sn_is_orientation(const SnModel *m, int i) { return m->actuator_gaintype[i] == SN_GAIN_SO3; }
// Writes act_dot of servo i.
SN_FUNC void sn_orientation_rates(const SnModel *m, SnWorld *w, int i, bool bad_ctrl);
// Computes force (3) of servo i before its limit; act_dot is known.
SN_FUNC void sn_orientation_forces(const SnModel *m, SnWorld *w, int i, bool bad_ctrl, sn_real *force);
// Scales force (3) down to the limit of its norm.
SN_FUNC void sn_orientation_limit(const SnModel *m, int i, sn_real *force);
// Writes the activations of servo i after h [s] to out (na).
SN_FUNC void sn_orientation_next(const SnModel *m, const SnWorld *w, int i, sn_real h, sn_real *out);
// Adds what act_next_bar of servo i gives to act_bar and act_dot_bar.
SN_FUNC void sn_orientation_next_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_real h);
// Adds what act_dot_bar of servo i gives.
SN_FUNC void sn_orientation_rates_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl);
// Adds what force_bar of servo i gives. A force at the limit of its norm turns with what is asked for; of a target of
// four zeros there is no derivative.
SN_FUNC void sn_orientation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, int i, bool bad_ctrl);

// ---- saturation.c: joints whose actuator forces are beyond their limit ----

// Writes sat_on, sat_motion, sat_twist and sat_trn_bar of these joints, and adds to force_bar. sn_actuation_vjp calls
// it.
SN_FUNC void sn_saturation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
// Adds what sat_twist_bar gives to wrench and qpos_bar. sn_tendon_vjp calls it.
SN_FUNC void sn_saturation_sweep(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- transmission.c: what it and its adjoint have in common ----

// Computes the orientation of a site from its body's.
SN_INLINE void sn_site_quat(const SnModel *m, const SnWorld *w, int site, sn_real *quat) {
  sn_mulquat(quat, w->xquat + 4 * m->site_bodyid[site], m->site_quat + 4 * site);
}

// Computes the rotation vector v of a site relative to a reference site, in the frame of that one.
SN_INLINE void sn_relative_turn(const SnModel *m, const SnWorld *w, int site, int ref, sn_real *v) {
  sn_real quat[4], inverse[4], relative[4];
  sn_site_quat(m, w, site, quat);
  sn_site_quat(m, w, ref, relative);
  sn_negquat(inverse, relative);
  sn_mulquat(relative, inverse, quat);
  sn_quat2vel(v, relative);
}

// Computes the rotation vector v of ball joint j.
SN_INLINE void sn_ball_rotation(const SnModel *m, const SnWorld *w, int j, sn_real *v) {
  sn_real quat[4];
  sn_copy4(quat, w->qpos + m->jnt_qposadr[j]);
  sn_normalize4(quat);
  sn_quat2vel(v, quat);
}

// Returns true when the contact counts for adhesion of the body. Does not count what CFD adds at a distance. So
// adhesion is the same with CFD, but for contacts in the gap that CFD leaves out because their pair also touches.
SN_INLINE bool sn_adheres(const SnModel *m, const SnContact *con, int body) {
  if (con->exclude > 1 || (con->cfd == SN_CONTACT_FAR && con->dist > m->cpair_reach[con->pair])) return false;
  return m->geom_bodyid[con->geom[0]] == body || m->geom_bodyid[con->geom[1]] == body;
}

// ---- wrap.c: the shortest path of a string around a sphere or an infinite cylinder ----

// Describes a geom that strings wrap around, and the way round it.
typedef struct SnWrapGeom {
  const sn_real *pos;   // (3) centre [m]
  const sn_real *mat;   // (9) orientation; a cylinder's axis is its z
  const sn_real *side;  // (3) side point in the geom's frame; may be NULL for SN_SIDE_FREE
  sn_real radius;       // [m]
  int type;             // SN_WRAP_SPHERE or SN_WRAP_CYLINDER
  int rule;             // SnSide
} SnWrapGeom;

// Describes a path that wraps, as sn_wrap gave it.
typedef struct SnWrapPath {
  const sn_real *touch;  // (3) where an inside wrap touches, relative to the geom's centre
  sn_real length;        // length of the whole path [m]
  int turn;              // how it winds
} SnWrapPath;

// Finds the path from x0 to x1 [m] that must not enter (or, for SN_SIDE_INSIDE, must pass through) the geom. Returns
// the length [m] of the part that lies on the surface, or -1 when the straight segment is free. pnt[6] gets the two
// points where the path meets and leaves the surface, and is undefined for a free segment. *turn says how an outside
// wrap winds. About a sphere 1 is the shorter way and -1 the longer one, about a cylinder 1 is counter-clockwise and -1
// clockwise. It is 0 for an inside wrap and for a free segment. pnt must not alias the inputs.
// The path is not smooth where it comes off the surface (the length has two continuous derivatives there, the points
// none). It is not smooth, either, where an endpoint crosses the ray opposite `side`.
SN_FUNC sn_real sn_wrap(sn_real *pnt, int *turn, const sn_real *x0, const sn_real *x1, const SnWrapGeom *geom);

// Computes gradient and Hessian-vector product (hvp) of a path that wraps, for the adjoint. The length is a function of
// the end points x[6], relative to the geom's centre and with the geom at rest, in world axes. g[6] is its gradient:
// the directions of the two lines, away from the geom. h[6] is the derivative of g as the ends move at y[6], the
// product of the Hessian with y. pos, side and rule of the geom are not read.
// All choices are finite: an end on the surface contributes no curvature of its tangent, where the length's second
// derivative is infinite. The plane of opposite ends about a sphere, which is arbitrary, does not tilt.
SN_FUNC void sn_wrap_hvp(sn_real *g, sn_bar *h, const sn_real *x, const sn_bar *y, const SnWrapGeom *geom,
                         const SnWrapPath *path);

#endif
