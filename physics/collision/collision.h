// Collision: the contacts of a world, and their adjoint; the distance of any two geoms. physics/step/step.h and
// physics/world/adjoint.h say what stages, lanes and adjoints have in common.
#ifndef SINEW_PHYSICS_COLLISION_COLLISION_H_
#define SINEW_PHYSICS_COLLISION_COLLISION_H_

#include "physics/world/adjoint.h"

// ---- collide.c ----

// Computes contact[ncon] from the frames of geoms: in MuJoCo's order, parameters mixed.
SN_FUNC void sn_collision(const SnModel *m, SnWorld *w, SnLane *lane);
// Adds what con_dist_bar, con_pos_bar and con_frame_bar give to wrench.
SN_FUNC void sn_collision_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

// ---- distance.c ----

// Holds a geom at a pose, its own (sn_geom_pose) or any other.
typedef struct SnPlacedGeom {
  int geom;        // says type, sizes and mesh
  sn_real pos[3];  // centre [m], world
  sn_real mat[9];  // rotation, row major
} SnPlacedGeom;

// Holds the nearest points of two geoms.
typedef struct SnDistance {
  bool within;        // false: not nearer than the limit; dist is the limit, points and normal are zero
  sn_real dist;       // signed distance, negative: depth [m]
  sn_real from[3];    // nearest point on the first geom [m], world
  sn_real to[3];      // on the second: to - from = dist normal
  sn_real normal[3];  // unit vector out of the first geom, towards the second
  // For the adjoint: the collider and its contact.
  SnCollider collider;
  SnContact contact;
} SnDistance;

// Holds the derivative of a scalar with respect to the members of SnDistance.
typedef struct SnDistanceBar {
  sn_real dist, from[3], to[3], normal[3];
} SnDistanceBar;

// Counts the rows of Jacobians of a distance: dist, from, to, normal.
enum { SN_DISTANCE_ROWS = 10 };

// Returns what collides two geoms; SN_COLLIDER_NONE: nothing does.
SN_FUNC SnCollider sn_geoms_collider(const SnModel *m, int g1, int g2);
// Returns false for a mesh that the model was imported without, as nothing can touch it.
SN_FUNC bool sn_geom_has_surface(const SnModel *m, int g);
// Finds the nearest points of two geoms that have a collider and surfaces, whatever else the model says of them.
// Returns false where the search fails.
SN_FUNC bool sn_geoms_nearest(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, sn_real limit,
                              SnDistance *r);
// Adds the adjoint at the result r of the same geoms: torque and force (12) on the first geom about its centre, then on
// the second. They are the derivatives by a small turn about the world's axes and by a displacement. Beyond the limit
// they are zero.
SN_FUNC void sn_geom_distance_vjp(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, const SnDistance *r,
                                  const SnDistanceBar *bar, sn_real *wrench);

// The rest runs on the host alone.

// Computes the distance of two geoms at their poses. Filters of contacts, margins and gaps play no role. Returns
// SN_ERR_ARGUMENT for an index or a pose that is none, SN_ERR_UNSUPPORTED for types without a collider, SN_ERR_STATE
// where the search for nearest points fails.
SnCode sn_geom_distance(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, sn_real limit, SnDistance *r,
                        SnError *err);
// Does as sn_geom_distance_vjp by a crude rule, for comparison. Nearest points are carried rigidly by their geoms, and
// the normal turns with the mean of both. This is right for dist, wrong by tens of percent for the rest.
void sn_geom_distance_surrogate_vjp(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2,
                                    const SnDistance *r, const SnDistanceBar *bar, sn_real *wrench);
// Adds to size_bar (6) the derivatives by the sizes of both geoms, three each, as geom_size has them. They are central
// differences of the search alone; on parallel faces, where it may find other points, dist alone counts.
void sn_geom_distance_size_vjp(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, const SnDistance *r,
                               const SnDistanceBar *bar, sn_real *size_bar);
// Computes the Jacobian (SN_DISTANCE_ROWS, 12) by turns and displacements of both geoms.
void sn_geom_distance_jacobian(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, const SnDistance *r,
                               sn_real *jacobian);
// Adds to qpos_bar (nv, tangent) what torques and forces (12) of either give when the geoms are where qpos puts them.
// Reads subtree_com and cdof of w.
void sn_geom_distance_by_qpos(const SnModel *m, const SnWorld *w, const SnPlacedGeom *g1, const SnPlacedGeom *g2,
                              const sn_real *wrench, sn_real *qpos_bar);

#endif
