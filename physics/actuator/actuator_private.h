// Between the files of tendons and actuators.
#ifndef SINEW_PHYSICS_ACTUATOR_ACTUATOR_PRIVATE_H_
#define SINEW_PHYSICS_ACTUATOR_ACTUATOR_PRIVATE_H_

#include "physics/world/adjoint.h"

// ---- saturation.c: joints whose actuator forces are beyond their limit ----

// Writes sat_on, sat_motion, sat_twist and sat_trn_bar of these joints, and adds to force_bar. Called by
// sn_actuation_vjp.
SN_FUNC void sn_saturation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
// Adds what sat_twist_bar gives to wrench and qpos_bar. Called by sn_tendon_vjp.
SN_FUNC void sn_saturation_sweep(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- wrap.c: the shortest path of a string around a sphere or an infinite cylinder ----

// A geom that strings wrap around, and the way round it.
typedef struct SnWrapGeom {
  const sn_real *pos;   // (3) centre [m]
  const sn_real *mat;   // (9) orientation; a cylinder's axis is its z
  const sn_real *side;  // (3) side point in the geom's frame; may be NULL for SN_SIDE_FREE
  sn_real radius;       // [m]
  int type;             // SN_WRAP_SPHERE or SN_WRAP_CYLINDER
  int rule;             // SnSide
} SnWrapGeom;

// A path that wraps, as sn_wrap gave it.
typedef struct SnWrapPath {
  const sn_real *touch;  // (3) where an inside wrap touches, relative to the geom's centre
  sn_real length;        // of the whole path [m]
  int turn;              // how it winds
} SnWrapPath;

// Path from x0 to x1 [m] that must not enter (or, for SN_SIDE_INSIDE, must pass through) the geom.
// Returns the length [m] of the part that lies on the surface and the two points pnt[6] where the
// path meets and leaves it, or -1 when the straight segment is free (pnt is then undefined).
// *turn: how an outside wrap winds: about a sphere 1 the shorter way and -1 the longer one, about a cylinder 1
// counter-clockwise and -1 clockwise; 0 for an inside wrap and for a free segment.
// pnt must not alias the inputs. Not smooth where the path comes off the surface (the length has two
// continuous derivatives there, the points none) and where an endpoint crosses the ray opposite `side`.
SN_FUNC sn_real sn_wrap(sn_real *pnt, int *turn, const sn_real *x0, const sn_real *x1, const SnWrapGeom *geom);

// Gradient and Hessian-vector product (hvp) of a path that wraps, for the adjoint: its length as a function of the end
// points x[6], relative to the geom's centre and with the geom at rest, has the gradient g[6] (the directions of the
// two lines, away from the geom), and h[6] is the derivative of g as the ends move at y[6]: the product of the Hessian
// with y. World axes. Of the geom, pos, side and rule are not read. Choices, all finite: an end on the surface
// contributes no curvature of its tangent (the length's second derivative is infinite there); of opposite ends about a
// sphere, whose plane is arbitrary, the plane does not tilt.
SN_FUNC void sn_wrap_hvp(sn_real *g, sn_real *h, const sn_real *x, const sn_real *y, const SnWrapGeom *geom,
                         const SnWrapPath *path);

#endif
