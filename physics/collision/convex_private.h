// Convex collision: the types shared by support.c, gjk.c, epa.c, epa_polytope.c, multicontact.c and collide_convex.c.
//
// Two convex shapes A and B touch where their Minkowski difference A - B = {a - b} contains the origin. All that the
// algorithms know of a shape is its support function s(d), a point of the shape farthest along d. The difference has
// the support s_A(d) - s_B(-d). GJK finds the point of A - B nearest to the origin, hence the distance and the two
// witness points. EPA finds, where the shapes overlap, the face of A - B nearest to the origin, hence the depth.
// multicontact.c turns the touching features (faces, edges) of polyhedra and cylinders into a patch.
//
// The oracle is the native pipeline of MuJoCo 4.0.0. The results depend on choices where many are right: which triangle
// of a flat facet, which corner first. So ours follow its order of operations: the same support directions, the same
// comparisons, the same sums in the same order.
//
// One lane works on a pair; everything is private to the lane and lives on its stack.
#ifndef SINEW_PHYSICS_COLLISION_CONVEX_PRIVATE_H_
#define SINEW_PHYSICS_COLLISION_CONVEX_PRIVATE_H_

#include "physics/collision/collide_private.h"

// Sets capacities. EPA's iterations are bounded by opt.ccd_iterations and by SN_EPA_ITER, whichever is less. A polytope
// of V vertices has at most 2 V - 4 faces.
enum {
#if defined(__CUDACC__)
  SN_EPA_ITER = 64,
#else
  SN_EPA_ITER = 500,
#endif
  SN_EPA_VERTS = SN_EPA_ITER + 5,
  SN_EPA_FACES = 2 * SN_EPA_VERTS,
  SN_CCD_MAXCON = 4
};

// Sets thresholds, in metres and units of the unit vectors. SN_CCD_MIN is the smallest length, SN_CCD_MIN2 its square,
// SN_EPA_MIN2 the smallest squared distance of the origin from a face, SN_EPA_MINTOL EPA's tolerance on polyhedra.
// A float build also stops where rounding hides the rest: at a relative duality gap, at distances that are noise. It
// takes no face as seen from a point that is in its plane by rounding.
#ifdef SN_SINGLE
#define SN_CCD_MIN SN_R(1e-15)
#define SN_CCD_MIN2 SN_R(1e-30)
#define SN_CCD_NOISE SN_R(1e-7)
#define SN_CCD_GAP SN_R(1e-6)
#define SN_CCD_TOLERANCE SN_R(1e-6)
#define SN_CCD_SHALLOW SN_R(1e-5)
#define SN_EPA_MIN2 SN_R(1e-17)
#define SN_EPA_SEEN SN_R(2e-7)
#define SN_EPA_MINTOL SN_R(1e-7)
#define SN_CCD_FAR FLT_MAX
#else
#define SN_CCD_MIN SN_R(1e-15)
#define SN_CCD_MIN2 SN_R(1e-30)
#define SN_CCD_NOISE SN_CCD_MIN
#define SN_CCD_GAP SN_R(0.0)
#define SN_CCD_TOLERANCE SN_R(0.0)
#define SN_CCD_SHALLOW SN_R(0.0)
#define SN_EPA_MIN2 SN_R(1e-30)
#define SN_EPA_MINTOL SN_R(1e-15)
#define SN_CCD_FAR DBL_MAX
#endif

// Says what the support function evaluates: a geom, or the point or segment inside a sphere or capsule.
typedef enum SnSupport {
  SN_SUPPORT_POINT,
  SN_SUPPORT_LINE,
  SN_SUPPORT_SPHERE,
  SN_SUPPORT_CAPSULE,
  SN_SUPPORT_ELLIPSOID,
  SN_SUPPORT_CYLINDER,
  SN_SUPPORT_BOX,
  SN_SUPPORT_MESH,
  SN_SUPPORT_HULL,
  SN_SUPPORT_PRISM  // part of a height field, looked for in the frame of that one: pos and mat are not read
} SnSupport;

// Describes a convex shape. With margin > 0 it is inflated by margin / 2 along the support direction.
typedef struct SnConvex {
  SnSupport support;
  int type;             // SnGeom
  const sn_real *pos;   // (3)
  const sn_real *mat;   // (9) row major
  const sn_real *size;  // (3)
  sn_real margin;
  int vertex;  // corner of the last support point: of a mesh, a box (bits), a cylinder (cap); -1: none
  int hull;    // index of that corner in the hull's graph: warm start of hill climbing; -1: none
  // meshes
  const sn_real *vert;  // (nvert, 3)
  int nvert;
  int npoly;                                // polygons of the hull; 0: not known
  const int *graph;                         // hull graph
  const int *extrema;                       // (27) hull vertices that are extreme in the 3x3x3 grid of directions
  const int *mapadr, *mapnum, *map;         // polygons of a vertex
  const int *polyadr, *polynum, *polyvert;  // vertices of a polygon
  const sn_real *polynormal;                // (npoly, 3)
} SnConvex;

// Holds a point of the Minkowski difference, the points of both shapes that made it, and their corners.
typedef struct SnCcdVertex {
  sn_real v[3];
  sn_real v1[3];
  sn_real v2[3];
  int i1;
  int i2;
} SnCcdVertex;

// Says what a contact of a convex pair remembers for its adjoint, in SnContact.feature and corner.
typedef enum SnFeatureCode {
  SN_FEATURE_NEAREST,  // nearest points. corner: three corners of the first geom, three of the second
  SN_FEATURE_FACES,    // multi-contact of two faces, or of a face and an edge. corner: see SnPatchCode
  SN_FEATURE_EDGE_B,   // the edge belongs to the second geom
  SN_FEATURE_EDGE_A
} SnFeatureCode;

// Indexes corner of a multi-contact. The point lies between two sides: edges of what is cut, or SN_PATCH_SIDE + sides
// of the face that clips.
typedef enum SnPatchCode {
  SN_PATCH_CLIP,   // the face that clips
  SN_PATCH_CUT,    // the face that is cut; an edge: -1
  SN_PATCH_START,  // corners of the edge; shapes other than boxes and meshes: not set
  SN_PATCH_END,
  SN_PATCH_IN,  // the two sides
  SN_PATCH_OUT,
  SN_PATCH_SIDE = 4096
} SnPatchCode;

// Holds two shapes, and what is known of their distance.
typedef struct SnCcd {
  SnConvex a, b;
  sn_real tolerance;  // opt.ccd_tolerance [m]
  int iterations;     // opt.ccd_iterations
  sn_real cutoff;     // distances beyond need not be known; 0: overlap or not is enough
  bool separated;     // a separating direction was seen
  int n;              // vertices of the simplex
  SnCcdVertex simplex[4];
  int nx;  // witness pairs
  sn_real dist[SN_CCD_MAXCON];
  sn_real x1[3 * SN_CCD_MAXCON];
  sn_real x2[3 * SN_CCD_MAXCON];
  int feature;  // SnFeatureCode; of more than nearest points:
  int corner[SN_CCD_MAXCON][6];
} SnCcd;

// ---- support.c ----

// Fills s with the shape of a geom, inflated by margin / 2.
SN_FUNC void sn_convex_init(SnConvex *s, const SnModel *m, const SnShape *shape, sn_real margin);
// Computes res, the point of s farthest along the unit vector dir, margin left out. Sets s->vertex.
SN_FUNC void sn_support(SnConvex *s, const sn_real *dir, sn_real *res);
// Computes r, the mean of the six corners of a prism.
SN_FUNC void sn_prism_middle(sn_real *r, const sn_real *vert);
// Computes v, the vertex of the difference farthest along the unit vector dir, margins included.
SN_FUNC void sn_ccd_support(SnCcd *c, const sn_real *dir, SnCcdVertex *v);
// Returns true when both shapes are points, segments or polyhedra without margin, so that the algorithms end exactly.
SN_FUNC bool sn_ccd_is_discrete(const SnCcd *c);

// ---- gjk.c ----

// Finds nearest points of the two shapes from the guess x1, x2: sets n, simplex, separated, nx, dist[0], x1, x2. With
// nx 0 the distance is beyond cutoff. With dist[0] 0 the simplex is a tetrahedron around the origin.
SN_FUNC void sn_gjk(SnCcd *c);
// Moves the witness points, in a float build, so that x1 - x2 is r. Made of corners of a small triangle, they have no
// direction left. In double they are left as MuJoCo has them.
SN_FUNC void sn_ccd_straighten(SnCcd *c, const sn_real *r);
// Computes r, the point of a plane through three points that is nearest to the origin. Returns false when they are in
// line.
SN_FUNC bool sn_project_origin(sn_real *r, const sn_real *v1, const sn_real *v2, const sn_real *v3);
// Computes x, the point of a triangle nearest to the origin, and its barycentric coordinates lambda (3).
SN_FUNC void sn_nearest_in_triangle(sn_real *lambda, sn_real *x, const sn_real *s1, const sn_real *s2,
                                    const sn_real *s3);

// ---- epa.c, epa_polytope.c ----

// Describes a face of EPA's polytope.
typedef struct SnEpaFace {
  short v[3];     // vertices
  short adj[3];   // faces across the edges (v0 v1), (v1 v2), (v2 v0)
  short slot;     // place in the list of candidates; -1: none; -2 and less: deleted
  sn_real n[3];   // projection of the origin on the face's plane
  sn_real dist2;  // |n|^2
} SnEpaFace;

// Holds EPA's polytope.
typedef struct SnEpa {
  SnCcdVertex vert[SN_EPA_VERTS + 1];
  SnEpaFace face[SN_EPA_FACES];
  short free_face[SN_EPA_FACES];  // unused places of face
  short candidate[SN_EPA_FACES];  // faces that may be nearest
  sn_real candidate_dist2[SN_EPA_FACES];
  short rim_face[SN_EPA_VERTS];  // horizon: faces beyond it and which of their edges
  short rim_edge[SN_EPA_VERTS];
  int nvert, nface, nfree, ncandidate, nrim;
  int ncreated;  // faces ever made
  sn_real center[3];
} SnEpa;

// Makes a first polytope around the origin from the simplex. Returns false when there is none.
SN_FUNC bool sn_epa_start(SnCcd *c, SnEpa *p);
// Empties the polytope.
SN_FUNC void sn_epa_reset(SnEpa *p);
// Adds a face and returns its squared distance from the origin; 0 when it is degenerate.
SN_FUNC sn_real sn_epa_attach(SnEpa *p, int v1, int v2, int v3, int adj1, int adj2, int adj3);
// Adds the vertex of the difference farthest along d (norm: its length) and returns its index.
SN_FUNC int sn_epa_support(SnCcd *c, SnEpa *p, const sn_real *d, sn_real norm);
// Computes lambda (3), the barycentric coordinates of a point p of the plane of a triangle.
SN_FUNC void sn_epa_coordinates(sn_real *lambda, const sn_real *v1, const sn_real *v2, const sn_real *v3,
                                const sn_real *p);
// Expands the polytope to the face of the difference nearest to the origin. Sets nx, dist[0] (minus the depth), x1, x2
// and the face's corners as the simplex. Returns false when that fails: then nx is 0, or 1 with dist[0] from GJK.
SN_FUNC bool sn_epa(SnCcd *c, SnEpa *p);

// ---- multicontact.c ----

// Replaces the one witness pair of a contact, whose features are the simplex, by those of the touching features, at
// most max. Returns their number.
SN_FUNC int sn_multicontact(SnCcd *c, int max);
// Runs the adjoint of one of its contacts, as that of a collider (collide_private.h). normal is NULL, or that of the
// nearest points for contacts for which sn_multicontact_has_line is true. Sets normal_bar, which is not in the wrench.
SN_FUNC void sn_multicontact_vjp(const SnConvex *a, const SnConvex *b, const SnContact *con, const SnContactBar *bar,
                                 const sn_real *normal, sn_real *normal_bar, sn_real *wrench);
// Returns true when what is cut is a line of a capsule or of a cylinder's mantle. Such a line depends on the normal of
// the nearest points.
SN_FUNC bool sn_multicontact_has_line(const SnConvex *a, const SnConvex *b, const SnContact *con);

// ---- collide_convex.c ----

// Finds the depth of overlapping shapes, from GJK's simplex, as sn_epa. It is a function of its own because of its
// stack, which a device keeps for every thread. So the stack is free again when the contacts are multiplied.
SN_FUNC bool sn_ccd_depth(SnCcd *c);
// Finds nearest points, or the depth: up to max witness pairs in c->dist, x1, x2. Returns the least distance.
SN_FUNC sn_real sn_ccd(SnCcd *c, int max);
// Writes witness pair i as a contact, with what it has to know for its adjoint. The shapes are inflated by margin / 2
// each, which is taken off the distance.
SN_FUNC void sn_convex_contact(const SnCcd *c, int i, sn_real margin, SnContact *con);
// Does what sn_convex_nearest does, for two shapes without margin. Sets tolerance, iterations and cutoff.
SN_FUNC bool sn_convex_nearest_shapes(const SnModel *m, SnCcd *c, sn_real limit, SnContact *con);
// Runs the adjoint of a contact at nearest points (SN_FEATURE_NEAREST), as that of a collider.
SN_FUNC void sn_convex_nearest_vjp(const SnConvex *a, const SnConvex *b, const SnContact *con, const SnContactBar *bar,
                                   sn_real *wrench);

#endif
