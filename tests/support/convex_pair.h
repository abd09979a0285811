// Two convex geoms, their contact, and something exact to differentiate in its place.
//
// GJK and EPA end where curved shapes are near enough, so that their normals are noisy and their differences useless.
// An exact function is differentiated in their place. For ellipsoids with round shapes it is sn_ellipsoid_nearest. For
// the others it gives the nearest points of two parts of surfaces (corner, edge, face, rim, mantle, ellipsoid), found
// by Newton's method from the contact. The engine says which parts these are. It is believed only where distance,
// normal and point equal those of the contact. Polyhedra are differentiated as they are.
#ifndef SINEW_TESTS_SUPPORT_CONVEX_PAIR_H_
#define SINEW_TESTS_SUPPORT_CONVEX_PAIR_H_

#include "physics/collision/surface_private.h"
#include "tests/support/gradcheck.h"

// Counts the numbers of a case. x holds rotation and translation of the first geom, then of the second; y holds
// distance, point and normal.
enum { SN_PAIR_NX = 12, SN_PAIR_NY = 7 };

// Describes a part of a shape's surface, in the shape's frame: x(u) for `dim` parameters, and a radius around it.
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
  int wanted;                // kind of multi-contact: 1 faces, 2 edges on faces
  int which;                 // contact that is differentiated
  SnContact base[SN_MAXCON_PAIR];
  int count;
  double pos[6], mat[18];
  double reach;
  double smoothness;  // differences with two steps agree to
  SnPart part[2];
} SnPair;

// Loads two free geoms, each given by its type, and a mesh also by its asset, 'hull', 'cube' or 'cushion'.
void sn_pair_load(SnOracle *o, const char *geom1, const char *geom2);

// Moves both geoms by dx from the base (NULL: to the base).
void sn_pair_place(SnPair *p, const double *dx);

// Collides the geoms at their present place. Writes con (SN_MAXCON_PAIR) and returns the number of contacts.
int sn_pair_collide(SnPair *p, SnContact *con);

// Draws new sizes of the geoms that are no meshes, 2 to 20 cm.
void sn_pair_sizes(SnPair *p);

// Moves the second geom along an axis to a random distance of those that are wanted.
void sn_pair_approach(SnPair *p, const double *dir);

// Finds the parts of surfaces that touch. Returns whether their nearest points are the contact.
bool sn_pair_is_believed(SnPair *p);

// Returns whether differences with two steps agree: then the function is smooth on the scale of the step.
bool sn_pair_is_smooth(SnPair *p);

// Serve as forward and adjoint of an SnGradCase, whose context starts with an SnPair.
bool sn_pair_forward(void *context, const double *dx, double *y);
void sn_pair_adjoint(void *context, const double *ybar, double *xbar);

#endif
