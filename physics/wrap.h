// Shortest path of a string around a sphere or an infinite cylinder.
#ifndef SINEW_PHYSICS_WRAP_H_
#define SINEW_PHYSICS_WRAP_H_

#include "physics/model.h"

// Path from x0 to x1 [m] that must not enter (or, when `side` lies inside, must pass through) a
// sphere or cylinder of the given radius at pos with orientation mat (the cylinder's axis is its z).
// side: point that says which way round to go, or NULL for the shorter way.
// Returns the length [m] of the part that lies on the surface and the two points pnt[6] where the
// path meets and leaves it, or -1 when the straight segment is free (pnt is then untouched).
// pnt must not alias the inputs. Not smooth where the path comes off the surface (the length has two
// continuous derivatives there, the points none) and where an endpoint crosses the ray opposite `side`.
SN_FUNC sn_real sn_wrap(sn_real *pnt, const sn_real *x0, const sn_real *x1, const sn_real *pos, const sn_real *mat,
                        sn_real radius, int type, const sn_real *side);

#endif
