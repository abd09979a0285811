// Shortest path of a string around a sphere or an infinite cylinder.
#ifndef SINEW_PHYSICS_WRAP_H_
#define SINEW_PHYSICS_WRAP_H_

#include "physics/model.h"

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
// pnt must not alias the inputs. Not smooth where the path comes off the surface (the length has two
// continuous derivatives there, the points none) and where an endpoint crosses the ray opposite `side`.
SN_FUNC sn_real sn_wrap(sn_real *pnt, const sn_real *x0, const sn_real *x1, const sn_real *pos, const sn_real *mat,
                        sn_real radius, int type, int rule, const sn_real *side);

#endif
