// Two convex geoms, their contact, and something exact to differentiate in its place.
//
// GJK and EPA end where curved shapes are near enough, so that their normals are noisy and their differences useless.
// What is differentiated in their place is exact: sn_ellipsoid_nearest for ellipsoids with round shapes; for the others
// the nearest points of two parts of surfaces (corner, edge, face, rim, mantle, ellipsoid), found by Newton's method
// from the contact. Which parts these are is taken from the engine, and believed only where distance, normal and
// point equal those of the contact. Polyhedra are differentiated as they are.
#ifndef SINEW_TESTS_SUPPORT_CONVEX_PAIR_H_
#define SINEW_TESTS_SUPPORT_CONVEX_PAIR_H_

#include "physics/collision/ellipsoid_distance.h"
#include "physics/collision/surface.h"
#include "tests/support/gradcheck.h"

// Coordinates of a case: rotation and translation of the first geom, then of the second; distance, point, normal.
enum { SN_PAIR_NX = 12, SN_PAIR_NY = 7 };

// A part of a shape's surface, in the shape's frame: x(u) for `dim` parameters, and a radius around it.
typedef struct SnPart {
  SnSurfaceKind kind;
  int dim;
  double at[3], dir[6], radius, size[3];
  double u[2];  // at the base
} SnPart;

typedef struct SnPair {
  SnOracle o;
  int geom[2];
  const char *name;
  double nearest, farthest;  // range of distances
  int max;                   // contacts
  bool exact;                // differentiate the nearest points of parts
  bool smooth;               // differentiate sn_ellipsoid_nearest
  bool line;                 // differentiate a cylinder's end that lies on a face
  int wanted;                // of multi-contacts: 1 faces, 2 edges on faces
  int pair;
  int which;  // contact that is differentiated
  SnContact base[SN_MAXCON_PAIR];
  int count;
  double pos[6], mat[18];
  double reach;
  double smoothness;  // differences with two steps agree to
  SnPart part[2];
} SnPair;

// Loads two free geoms: type, and of a mesh also its asset, 'hull' or 'cube'.
void sn_pair_load(SnOracle *o, const char *geom1, const char *geom2);

// Moves both geoms by dx from the base (NULL: to the base).
void sn_pair_place(SnPair *p, const double *dx);

// Contacts at the present place; returns their number.
int sn_pair_collide(SnPair *p, SnContact *con);

// Sizes of geoms that are no meshes, 2 to 20 cm.
void sn_pair_sizes(SnPair *p);

// Moves the second geom along an axis to a random distance of those that are wanted.
void sn_pair_approach(SnPair *p, const double *dir);

// What is differentiated in the place of the contact is the contact: finds its parts.
bool sn_pair_is_believed(SnPair *p);

// Differences with two steps agree: the function is smooth here on the scale of the step.
bool sn_pair_is_smooth(SnPair *p);

// For SnGradCase; the context starts with an SnPair.
bool sn_pair_forward(void *context, const double *dx, double *y);
void sn_pair_adjoint(void *context, const double *ybar, double *xbar);

#endif
