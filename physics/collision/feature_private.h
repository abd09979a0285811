// Features of convex shapes: the corner, edge or face that a simplex of GJK or EPA names. With them come the faces and
// edges that meet there, and polygons made of them (multicontact.c). Faces and edges are those of boxes, mesh hulls
// (polygons of coplanar triangles), cylinders and capsules. A cylinder's caps are polygons of 16 sides, and its edge is
// a line of the mantle. A capsule has one edge.
#ifndef SINEW_PHYSICS_COLLISION_FEATURE_PRIVATE_H_
#define SINEW_PHYSICS_COLLISION_FEATURE_PRIVATE_H_

#include "physics/collision/convex_private.h"

// Sets the cosine of the angle up to which directions count as parallel.
#define SN_MULTI_FACE SN_R(0.996)
// Sets the sine of the angle up to which directions count as perpendicular.
#define SN_MULTI_EDGE SN_R(0.0888)

// Holds what the simplex says about one shape.
typedef struct SnFeature {
  const SnConvex *s;
  int dim;          // 1 corner, 2 edge, 3 face
  int id[3];        // corners
  sn_real v[9];     // places of the corners
  int nface;        // faces that meet here
  const int *face;  // numbers of the faces
  int own[3];       // room for up to three of them
} SnFeature;

// Describes a polygon to clip, or to clip with: a face of a shape, or an edge.
typedef struct SnPatch {
  const SnConvex *s;  // NULL: an edge
  int face;
  int n;  // corners
  sn_real edge[6];
  int end[2];  // corners of the shape that the edge joins
} SnPatch;

// Describes a corner of a clipped polygon: its place, and the sides that end and start there, as in SnPatchCode.
typedef struct SnClipCorner {
  sn_real x[3];
  short before;  // known after the last cut
  short side;
} SnClipCorner;

// Finds the feature of shape s (the first or the second) that the simplex of c names.
SN_FUNC void sn_feature_init(SnFeature *f, const SnConvex *s, const SnCcd *c, bool first);
// Lists the faces that meet in the feature. dir points along the contact, out of the shape.
SN_FUNC void sn_feature_faces(SnFeature *f, const sn_real *dir);
// Returns the number of edges that start at the feature's first corner (of an edge: 1).
SN_FUNC int sn_feature_edge_count(const SnFeature *f);
// Puts the corners where they are without margin. x: the shape's witness point.
SN_FUNC void sn_feature_edge_start(SnFeature *f, const sn_real *x);
// Computes edge k from the feature's first corner: its far end (*id: which corner), and its unit direction. Returns
// false when there is no such edge.
SN_FUNC bool sn_feature_edge(const SnFeature *f, int k, sn_real *end, int *id, sn_real *dir);

// Computes n, the outward unit normal of a face, in the world.
SN_FUNC void sn_face_normal(const SnConvex *s, int face, sn_real *n);

// Makes the polygon of a face.
SN_FUNC void sn_patch_face(SnPatch *p, const SnConvex *s, int face);
// Makes the polygon of an edge between two places, corners id1 and id2 of its shape.
SN_FUNC void sn_patch_edge(SnPatch *p, const sn_real *start, const sn_real *end, int id1, int id2);
// Computes r, corner k of a polygon, in the world. Corners go counter-clockwise seen from outside, in the order that
// MuJoCo uses.
SN_FUNC void sn_patch_corner(const SnPatch *p, int k, sn_real *r);

// Finds best, the corners of a quadrilateral of large area in a convex polygon of n > 4 corners (multicontact.c).
SN_FUNC void sn_largest_quad(const SnClipCorner *v, int n, int *best);

#endif
