// Rays and shapes: for sensors, and for contacts that nothing may stand between.
#ifndef SINEW_PHYSICS_COLLISION_RAY_H_
#define SINEW_PHYSICS_COLLISION_RAY_H_

#include "physics/world/world.h"

// Points to a shape: SnGeom, mesh or height field, pose, sizes.
typedef struct SnRayShape {
  int type, data;
  const sn_real *pos, *mat, *size;
} SnRayShape;

// Holds what is known where a ray meets a surface: the unit normal outwards, in world axes, and how it bends. bend is
// the diagonal of its derivative by the point, in the shape's axes [1/m], with the part along the normal still in it.
typedef struct SnRayHit {
  sn_real normal[3], bend[3];
} SnRayHit;

// Returns whether sn_ray and sn_shape_contains know shapes of this type (SnGeom) without a model.
SN_FUNC bool sn_ray_meets(int type);
// Returns whether sn_ray knows geom g.
SN_FUNC bool sn_ray_meets_geom(const SnModel *m, int g);
// Returns how far along the unit vector `along` from a point the ray meets a shape [m]; -1: never. hit, or NULL, is
// filled where it does.
SN_FUNC sn_real sn_ray(const SnModel *m, const SnRayShape *shape, const sn_real *from, const sn_real *along,
                       SnRayHit *hit);
// Returns whether a point of the world is inside.
SN_FUNC bool sn_shape_contains(const SnModel *m, const SnRayShape *shape, const sn_real *point);

#endif
