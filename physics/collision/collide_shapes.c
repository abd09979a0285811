// Narrow phase: the collider of two shapes and its adjoint.
//
// Costly pairs are first tested for a separating axis among the faces of their bounding boxes (Gottschalk, Lin, Manocha
// 1996): a gap along a unit axis is no more than the distance, so that nothing within reach is lost.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"

// True when the bounding sphere of geom s (radius, at its origin) is farther than reach from the bounding box of
// another geom; r becomes the origin of s relative to the centre of that box, in its frame.
SN_LOCAL bool shapes_sphere_box_apart(const SnModel *m, const SnShape *s, const SnShape *other, sn_real reach,
                                      sn_real *r) {
  const sn_real *box = m->geom_aabb + 6 * other->geom, limit = m->geom_rbound[s->geom] + reach;
  sn_real d[3], square = 0;
  sn_sub3(d, s->pos, other->pos);
  sn_mulmattvec3(r, other->mat, d);
  for (int i = 0; i < 3; ++i) {
    r[i] -= box[i];
    const sn_real over = sn_max(sn_abs(r[i]) - box[3 + i], 0);
    square += over * over;
  }
  return square > limit * limit;
}

// True when a face normal of either bounding box shows the geoms to be farther apart than reach.
SN_LOCAL bool shapes_boxes_apart(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach) {
  const sn_real *mat1 = a->mat, *mat2 = b->mat;
  const sn_real *box1 = m->geom_aabb + 6 * a->geom, *box2 = m->geom_aabb + 6 * b->geom;
  sn_real d1[3], d2[3];  // from the centre of one box to the other geom, in the frame of that box
  if (shapes_sphere_box_apart(m, a, b, reach, d2) || shapes_sphere_box_apart(m, b, a, reach, d1)) return true;
  sn_real r1[3], r2[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    r1[i] = 0;
    for (int j = 0; j < 3; ++j) {  // axis i of the first along axis j of the second
      const sn_real c = mat1[i] * mat2[j] + mat1[3 + i] * mat2[3 + j] + mat1[6 + i] * mat2[6 + j], size = sn_abs(c);
      d1[i] += c * box2[j];
      d2[j] += c * box1[i];
      r1[i] += size * box2[3 + j];
      r2[j] += size * box1[3 + i];
    }
  }
  bool apart = false;
  for (int i = 0; i < 3; ++i)
    apart = apart || sn_abs(d1[i]) > box1[3 + i] + r1[i] + reach || sn_abs(d2[i]) > box2[3 + i] + r2[i] + reach;
  return apart;
}

SN_LOCAL bool shapes_has_axis(const SnModel *m, int g) {
  return m->geom_type[g] == SN_GEOM_CAPSULE || m->geom_type[g] == SN_GEOM_CYLINDER;
}

// True when the axes of two capsules or cylinders are farther apart than reach and both radii: a cylinder lies inside
// the capsule around it.
SN_LOCAL bool shapes_axes_apart(const SnShape *a, const SnShape *b, sn_real reach) {
  const sn_real limit = (a->size[0] + b->size[0] + reach) * (1 + SN_R(16.0) * SN_EPS);  // rounding
  return sn_axes_square(a, b) > limit * limit;
}

// True when a costly pair is farther apart than reach. Not asked for two boxes: what counts there is the gap along the
// best axis, which is less than the distance.
SN_LOCAL bool shapes_costly_apart(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach) {
  return shapes_boxes_apart(m, a, b, reach) ||
         (shapes_has_axis(m, a->geom) && shapes_has_axis(m, b->geom) && shapes_axes_apart(a, b, reach));
}

SN_FUNC int sn_collide_shapes(const SnModel *m, const SnShape *a, const SnShape *b, SnCollider collider, sn_real reach,
                              int max, SnContact *con) {
  switch (collider) {
    case SN_COLLIDER_NONE:
    case SN_COLLIDER_ELLIPSOID:
      return 0;
    case SN_COLLIDER_PLANE_SPHERE:
      return sn_collide_plane_sphere(a, b, reach, con);
    case SN_COLLIDER_PLANE_CAPSULE:
      return sn_collide_plane_capsule(a, b, reach, con);
    case SN_COLLIDER_PLANE_CYLINDER:
      return sn_collide_plane_cylinder(a, b, reach, con);
    case SN_COLLIDER_PLANE_BOX:
      return sn_collide_plane_box(a, b, reach, con);
    case SN_COLLIDER_PLANE_CONVEX:
      return sn_collide_plane_convex(m, a, b, reach, con);
    case SN_COLLIDER_SPHERE_SPHERE:
      return sn_collide_sphere_sphere(a, b, reach, con);
    case SN_COLLIDER_SPHERE_CAPSULE:
      return sn_collide_sphere_capsule(a, b, reach, con);
    case SN_COLLIDER_SPHERE_CYLINDER:
      return sn_collide_sphere_cylinder(a, b, reach, con);
    case SN_COLLIDER_SPHERE_BOX:
      return sn_collide_sphere_box(a, b, reach, con);
    case SN_COLLIDER_CAPSULE_CAPSULE:
      return sn_collide_capsule_capsule(a, b, reach, con);
    case SN_COLLIDER_CAPSULE_BOX:
      return shapes_boxes_apart(m, a, b, reach) ? 0 : sn_collide_capsule_box(a, b, reach, con);
    case SN_COLLIDER_BOX_BOX:
      return sn_collide_box_box(a, b, reach, con);
    case SN_COLLIDER_CONVEX:
      return shapes_costly_apart(m, a, b, reach) ? 0 : sn_collide_convex(m, a, b, reach, con, max);
    case SN_COLLIDER_HFIELD:
      return sn_collide_hfield(m, a, b, reach, con, max);
    case SN_COLLIDER_HFIELD_FAR:
      return sn_hfield_nearest(m, a, b, reach, con) && con->dist < reach;
  }
  return 0;
}

SN_FUNC void sn_collide_shapes_vjp(const SnModel *m, const SnShape *a, const SnShape *b, SnCollider collider,
                                   sn_real reach, const SnContact *con, const SnContactBar *bar, sn_real *wrench) {
  switch (collider) {
    case SN_COLLIDER_NONE:
      break;
    case SN_COLLIDER_PLANE_SPHERE:
      sn_collide_plane_sphere_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_PLANE_CAPSULE:
      sn_collide_plane_capsule_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_PLANE_CYLINDER:
      sn_collide_plane_cylinder_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_PLANE_BOX:
      sn_collide_plane_box_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_PLANE_CONVEX:
      sn_collide_plane_convex_vjp(m, a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_SPHERE_SPHERE:
      sn_collide_sphere_sphere_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_SPHERE_CAPSULE:
      sn_collide_sphere_capsule_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_SPHERE_CYLINDER:
      sn_collide_sphere_cylinder_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_CAPSULE_CAPSULE:
      sn_collide_capsule_capsule_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_SPHERE_BOX:
      sn_collide_sphere_box_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_CAPSULE_BOX:
      sn_collide_capsule_box_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_BOX_BOX:
      sn_collide_box_box_vjp(a, b, con, bar, wrench);
      break;
    case SN_COLLIDER_CONVEX:
    case SN_COLLIDER_ELLIPSOID:
      sn_collide_convex_vjp(m, a, b, reach, con, bar, wrench);
      break;
    case SN_COLLIDER_HFIELD:
    case SN_COLLIDER_HFIELD_FAR:
      sn_collide_hfield_vjp(m, a, b, con, bar, wrench);
      break;
  }
}
