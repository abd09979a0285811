// Between the files of contacts before impact: speculative.c, impact.c, impact_vjp.c.
#ifndef SINEW_PHYSICS_COLLISION_SPECULATIVE_PRIVATE_H_
#define SINEW_PHYSICS_COLLISION_SPECULATIVE_PRIVATE_H_

#include "physics/collision/collide_private.h"

// Sets the most advances, and the most contacts of a pair.
enum { SN_SPEC_ADVANCES = 16, SN_SPEC_POINTS = 4 };
// Sets the part of the first clearance that is aimed at.
#define SN_SPEC_TARGET SN_R(0.02)

// Holds a geom that moves through a step.
typedef struct SnSweptGeom {
  SnShape start;              // place at the start
  sn_real shift[3], turn[3];  // displacement of its centre [m], small turn [rad] over the step; world axes
  sn_real spin;               // |turn|
  sn_real travel;             // most that a point of it moves by [m]
  sn_real bound;              // radius of its bounding sphere; of a plane 0 [m]
  sn_real pos[3], mat[9];     // place after the fraction t
  sn_real rotation[9];        // turned it there
  bool turns;                 // false: a sphere, of which a turn moves nothing
} SnSweptGeom;

// Holds the nearest points of two geoms after a fraction of the step.
typedef struct SnSweptState {
  sn_real t;
  SnContact near;   // distance, midpoint, normal, and what the collider says for its adjoint
  sn_real closing;  // bound of the speed at which they close along the normal [m a step]
} SnSweptState;

// Holds a pair of geoms that is swept, and what was found.
typedef struct SnSwept {
  SnPairInfo pair;
  SnCollider collider;  // finds the nearest points
  SnSweptGeom geom[2];
  sn_real margin;
  int last;                                  // index of the last state
  SnSweptState state[SN_SPEC_ADVANCES + 1];  // one for each advance, and the last one
  bool extrapolated;                         // the time of impact is not that of the last state
  sn_real t;                                 // time of impact, a fraction of the step
  sn_real speed;                             // normal speed [m a step]
  sn_real normal[3];                         // there
  sn_real reach;                             // contacts of convex pairs are found with this margin [m]
} SnSwept;

// Holds a contact at the time of impact.
typedef struct SnSweptPoint {
  SnContact made;   // by a convex search with margin reach; of planes not set
  int code;         // corner of the face, or end of the line, at a plane; -1: the nearest point
  sn_real x[2][3];  // one on each geom
} SnSweptPoint;

// Returns displacement (3), turn (3) and travel of a geom over the next step.
SN_INLINE const sn_real *sn_geom_step(const SnWorld *w, int geom) { return w->geom_step + SN_GEOM_STEP * geom; }
// Sets the geoms of a pair where they are.
SN_FUNC void sn_swept_begin(SnSwept *s, const SnModel *m, const SnWorld *w, int pair);
// Puts a geom where it is after the fraction t.
SN_FUNC void sn_swept_place(SnSweptGeom *g, sn_real t);
// Computes by what a point at x, at the time of the last sn_swept_place, moves in a step [m].
SN_FUNC void sn_swept_velocity(const SnSweptGeom *g, const sn_real *x, sn_real *r);
// Computes the normal speed of the nearest points [m a step], of geoms placed where they are those.
SN_FUNC sn_real sn_swept_rate(const SnSwept *s, const SnContact *near);
// Finds the time of impact. Returns false where the geoms do not meet within the step.
SN_FUNC bool sn_swept_impact(const SnModel *m, SnSwept *s);
// Finds the nearest points of the geoms where they were placed. Returns false where they are not apart.
SN_FUNC bool sn_swept_nearest(const SnModel *m, const SnSwept *s, SnContact *near);
// Returns the shape of a geom where it was placed.
SN_INLINE SnShape sn_swept_shape(const SnSweptGeom *g) {
  const SnShape shape = {g->pos, g->mat, g->start.size, g->start.geom};
  return shape;
}
// Finds the points that touch there. Returns their number.
SN_FUNC int sn_swept_points(const SnModel *m, SnSwept *s, SnSweptPoint point[SN_SPEC_POINTS]);
// Returns whether a capsule or a cylinder lies along a plane with normal n.
SN_FUNC bool sn_swept_has_line(const SnModel *m, const SnSwept *s, const sn_real *n);
// Computes r: where a point x of a geom at the time of impact is at the start of the step.
SN_FUNC void sn_swept_back(const SnSweptGeom *g, const sn_real *x, sn_real *r);
// Computes stiffness and damping of a pair over a step, h^2 k and h b.
SN_FUNC void sn_swept_spring(const SnModel *m, const SnWorld *w, const SnSwept *s, sn_real *k, sn_real *b);

#endif
