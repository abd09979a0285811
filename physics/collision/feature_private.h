// Features of convex shapes: the corner, edge or face that a simplex of GJK or EPA names, the faces and edges that meet
// there, and polygons made of them (multicontact.c). Faces and edges are those of boxes, mesh hulls (polygons of
// coplanar triangles), cylinders (a cap is a polygon of 16 sides; the edge is a line of the mantle) and capsules (one
// edge).
#ifndef SINEW_PHYSICS_COLLISION_FEATURE_PRIVATE_H_
#define SINEW_PHYSICS_COLLISION_FEATURE_PRIVATE_H_

#include "physics/collision/convex_private.h"

// Cosine of the angle up to which directions count as parallel.
#define SN_MULTI_FACE SN_R(0.996)

// What the simplex says about one shape.
typedef struct SnFeature {
  const SnConvex *s;
  int dim;          // 1 corner, 2 edge, 3 face
  int id[3];        // corners
  sn_real v[9];     // their places
  int nface;        // faces that meet here
  const int *face;  // their numbers
  int own[3];       // room for up to three of them
} SnFeature;

// A polygon to clip, or to clip with: a face of a shape, or an edge.
typedef struct SnPatch {
  const SnConvex *s;  // NULL: an edge
  int face;
  int n;  // corners
  sn_real edge[6];
  int end[2];  // corners of the shape that the edge joins
} SnPatch;

// The feature of shape s (the first or the second) that the simplex of c names.
SN_FUNC void sn_feature_init(SnFeature *f, const SnConvex *s, const SnCcd *c, bool first);
// Faces that meet in the feature. dir: along the contact, out of the shape.
SN_FUNC void sn_feature_faces(SnFeature *f, const sn_real *dir);
// Number of edges that start at the feature's first corner (of an edge: 1).
SN_FUNC int sn_feature_edge_count(const SnFeature *f);
// Puts the corners where they are without margin. x: the shape's witness point.
SN_FUNC void sn_feature_edge_start(SnFeature *f, const sn_real *x);
// Edge k from the feature's first corner: its far end (*id: which corner), and its unit direction. False: there is no
// such edge.
SN_FUNC bool sn_feature_edge(const SnFeature *f, int k, sn_real *end, int *id, sn_real *dir);

// Outward unit normal of a face, world.
SN_FUNC void sn_face_normal(const SnConvex *s, int face, sn_real *n);

// The polygon of a face; that of an edge between two places, corners id1 and id2 of its shape.
SN_FUNC void sn_patch_face(SnPatch *p, const SnConvex *s, int face);
SN_FUNC void sn_patch_edge(SnPatch *p, const sn_real *start, const sn_real *end, int id1, int id2);
// Corner k of a polygon, world, counter-clockwise seen from outside in the order that MuJoCo uses.
SN_FUNC void sn_patch_corner(const SnPatch *p, int k, sn_real *r);

#endif
