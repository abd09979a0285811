// Narrow phase: contacts of one pair of geoms. Called by collide.c, one lane a pair: every function is
// private to its lane (no SN_SYNC, no scratch shared with other pairs).
//
// Conventions, all of them MuJoCo's: geoms come ordered by type (geom_type[g1] <= geom_type[g2], equal types
// in the order of the pair), the normal points from the first to the second, a contact exists where the distance
// of the surfaces is at most `reach` (margin + gap of the pair), its position is midway between the surfaces.
// A collider writes dist, pos and frame of its contacts, in frame[0..2] the unit normal and in frame[3..5] a
// wish for the first tangent (zero: none); collide.c completes the frame and the parameters.
#ifndef SINEW_PHYSICS_COLLIDE_H_
#define SINEW_PHYSICS_COLLIDE_H_

#include "physics/world.h"

// Pose and size of a geom: position (3), rotation matrix (9, row major), sizes (3, as geom_size).
typedef struct SnShape {
  const sn_real *pos;
  const sn_real *mat;
  const sn_real *size;
} SnShape;

// How a pair is collided: MuJoCo's table of pairs of types, see sn_collider.
typedef enum SnCollider {
  SN_COLLIDER_NONE,
  SN_COLLIDER_PLANE_SPHERE,
  SN_COLLIDER_PLANE_CAPSULE,
  SN_COLLIDER_PLANE_CYLINDER,
  SN_COLLIDER_PLANE_BOX,
  SN_COLLIDER_PLANE_CONVEX,
  SN_COLLIDER_SPHERE_SPHERE,
  SN_COLLIDER_SPHERE_CAPSULE,
  SN_COLLIDER_SPHERE_CYLINDER,
  SN_COLLIDER_SPHERE_BOX,
  SN_COLLIDER_CAPSULE_CAPSULE,
  SN_COLLIDER_CAPSULE_BOX,
  SN_COLLIDER_BOX_BOX,
  SN_COLLIDER_CONVEX
} SnCollider;

// The collider of two geom types (type1 <= type2); SN_COLLIDER_NONE when the two never collide.
SnCollider sn_collider(int type1, int type2);

// Most contacts that MuJoCo makes of geoms g1, g2 (ordered by type), multi-contact included.
int sn_collider_max(const SnModel *m, int g1, int g2);

// Closed-form pairs (collide_primitive.c, collide_box.c). a, b: the shapes, types as the name says; con: room for
// SN_MAXCON_PAIR contacts; returns their number.
SN_FUNC int sn_collide_plane_sphere(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_plane_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_plane_cylinder(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_plane_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_sphere_sphere(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_sphere_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_sphere_cylinder(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_sphere_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_capsule_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_capsule_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC int sn_collide_box_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);

// Square of the distance between the axes (segments of half length size[1] along z) of two capsules or cylinders; 0
// when these are parallel (collide_primitive.c).
SN_FUNC sn_real sn_axes_square(const SnShape *a, const SnShape *b);

// Plane against an ellipsoid or a mesh (collide_primitive.c).
SN_FUNC int sn_collide_plane_convex(const SnModel *m, SnWorld *w, int g1, int g2, sn_real margin, SnContact *con,
                                    int max);

// Every other pair, smooth or polyhedral (collide_convex.c): at most max contacts, in MuJoCo's order.
SN_FUNC int sn_collide_convex(const SnModel *m, SnWorld *w, int g1, int g2, sn_real margin, SnContact *con, int max);

#endif
