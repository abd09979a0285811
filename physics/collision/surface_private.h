// Surfaces of convex shapes near the point where they are nearest to another one: the part that decides how that point
// moves (surface.c).
#ifndef SINEW_PHYSICS_COLLISION_SURFACE_PRIVATE_H_
#define SINEW_PHYSICS_COLLISION_SURFACE_PRIVATE_H_

#include "physics/collision/convex_private.h"

typedef enum SnSurfaceKind {
  SN_SURFACE_POINT,  // a corner, the end of a capsule, a sphere
  SN_SURFACE_LINE,   // an edge, the side of a capsule or of a cylinder
  SN_SURFACE_PLANE,  // a face, the cap of a cylinder
  SN_SURFACE_ELLIPSOID,
  SN_SURFACE_RIM  // the edge of a cylinder's cap
} SnSurfaceKind;

// Describes the part of the surface.
typedef struct SnSurface {
  SnSurfaceKind kind;
  const SnConvex *s;
  sn_real radius;   // by which the surface lies beyond point or line; of a rim: its own
  sn_real at[3];    // the point, one of the line or plane, the centre of the ellipsoid or rim [m], world
  int nflat;        // directions in which the surface is straight: line 1, plane 2, others 0
  sn_real flat[6];  // these unit vectors; of a rim: the axis
  bool diagonal;    // a plane that two corners made: the line between them lies inside a face, flat[0] along it
} SnSurface;

// Describes the surface where its outward unit normal is n.
typedef struct SnSurfacePoint {
  sn_real x[3];  // the point; of a line or a plane: one of its points
  sn_real s[3];  // radii of curvature, straight directions left out: s11, s12, s22 in the caller's tangents [m]
} SnSurfacePoint;

// Finds the part of s that has the witness point x with outward normal n. corner holds three corners of the mesh that
// span it (repeated where they are fewer), as GJK and EPA leave them. It is not read for other shapes.
SN_FUNC void sn_surface_init(SnSurface *t, const SnConvex *s, const int *corner, const sn_real *x, const sn_real *n);

// Makes a line of a plane that was made of a diagonal, where the other surface is straight across it. A face that lies
// flat against an edge does not say where they are nearest. The crossing of the two lines does, and EPA has found it.
// So it is, too, where corners of a face are a little off its plane, which makes edges of its diagonals.
SN_FUNC void sn_surface_cross(SnSurface *t, const SnSurface *other);

// Computes r, the surface where its outward normal is n. tangent holds two unit vectors that make a right-handed frame
// with the contact normal, (2, 3).
SN_FUNC void sn_surface_point(const SnSurface *t, const sn_real *n, const sn_real *tangent, SnSurfacePoint *r);

#endif
