// Between ray.c and ray_mesh.c.
#ifndef SINEW_PHYSICS_COLLISION_RAY_PRIVATE_H_
#define SINEW_PHYSICS_COLLISION_RAY_PRIVATE_H_

#include "physics/collision/ray.h"

// Holds a ray in the frame of a shape, and the nearest hit so far.
typedef struct SnRay {
  sn_real p[3], v[3];
  sn_real x;          // -1: none
  sn_real normal[3];  // outwards, of any length
  sn_real bend[3];    // diagonal of the derivative of that normal by the point
} SnRay;

// Takes the point at x as the hit, if it is ahead and nearer than the one so far. bend NULL: the surface is flat.
SN_FUNC void sn_ray_take(SnRay *r, sn_real x, const sn_real *normal, const sn_real *bend);
// Meets a box with these half extents. all, or NULL, gets how far along the ray each face is met (-x, x, -y, y, -z, z);
// -1: never.
SN_FUNC void sn_ray_box(SnRay *r, const sn_real *size, sn_real all[6]);
// Meets the triangles of a mesh, size: half extents of the box about its origin that has them all.
SN_FUNC void sn_ray_mesh(const SnModel *m, int mesh, const sn_real *size, SnRay *r);
// Meets a height field: its surface, its sides and its base.
SN_FUNC void sn_ray_hfield(const SnModel *m, int hfield, SnRay *r);

#endif
