// Shortest path of a string around a sphere or an infinite cylinder.
#ifndef SINEW_PHYSICS_ACTUATOR_WRAP_H_
#define SINEW_PHYSICS_ACTUATOR_WRAP_H_

#include "physics/model/model.h"

// What a side point asks for.
typedef enum SnSide {
  SN_SIDE_FREE,     // no side point: the shorter way round
  SN_SIDE_OUTSIDE,  // go round the way it lies
  SN_SIDE_INSIDE    // it lies inside: pass through the inside
} SnSide;

// Path from x0 to x1 [m] that must not enter (or, for SN_SIDE_INSIDE, must pass through) a sphere or cylinder
// of the given radius at pos with orientation mat (the cylinder's axis is its z). side[3]: the side point in the
// geom's frame; may be NULL for SN_SIDE_FREE.
// Returns the length [m] of the part that lies on the surface and the two points pnt[6] where the
// path meets and leaves it, or -1 when the straight segment is free (pnt is then undefined).
// *turn: how an outside wrap winds: about a sphere 1 the shorter way and -1 the longer one, about a cylinder 1
// counter-clockwise and -1 clockwise; 0 for an inside wrap and for a free segment.
// pnt must not alias the inputs. Not smooth where the path comes off the surface (the length has two
// continuous derivatives there, the points none) and where an endpoint crosses the ray opposite `side`.
SN_FUNC sn_real sn_wrap(sn_real *pnt, int *turn, const sn_real *x0, const sn_real *x1, const sn_real *pos,
                        const sn_real *mat, sn_real radius, int type, int rule, const sn_real *side);

// Gradient and Hessian-vector product (hvp) of a path that wraps, for the adjoint: its length as a function of the end
// points x[6], relative to the geom's centre and with the geom at rest, has the gradient g[6] (the directions of the
// two lines, away from the geom), and h[6] is the derivative of g as the ends move at y[6]: the product of the Hessian
// with y. World axes. length: of the whole path; touch[3]: where an inside wrap touches, relative to the centre; turn:
// as sn_wrap gave it. Choices, all finite: an end on the surface contributes no curvature of its tangent (the length's
// second derivative is infinite there); of opposite ends about a sphere, whose plane is arbitrary, the plane does not
// tilt.
SN_FUNC void sn_wrap_hvp(sn_real *g, sn_real *h, const sn_real *x, const sn_real *y, const sn_real *touch,
                         const sn_real *mat, sn_real length, sn_real radius, int type, int turn);

#endif
