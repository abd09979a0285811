// Exact signed distance of an ellipsoid and another smooth shape.
#ifndef SINEW_PHYSICS_COLLISION_ELLIPSOID_DISTANCE_H_
#define SINEW_PHYSICS_COLLISION_ELLIPSOID_DISTANCE_H_

#include "physics/collision/collide_private.h"

// Nearest points of two surfaces, and the unit normal from the first to the second; dist < 0: depth.
typedef struct SnNearest {
  sn_real dist;
  sn_real normal[3];
  sn_real x1[3], x2[3];
} SnNearest;

// a: sphere, capsule or ellipsoid, as `type` says; b: ellipsoid. False: too deep to be certain that the point found is
// the nearest, or the centres coincide.
SN_FUNC bool sn_ellipsoid_nearest(int type, const SnShape *a, const SnShape *b, SnNearest *r);

#endif
