// Narrow phase: contacts of one pair of geoms. collide.c calls it, one lane a pair: every function is private to its
// lane (no SN_SYNC, no scratch shared with other pairs).
//
// All conventions are MuJoCo's. Geoms come ordered by type (geom_type[g1] <= geom_type[g2], equal types in the order of
// the pair), the normal points from the first to the second. A contact exists where the distance of the surfaces is at
// most `reach` (margin + gap of the pair). It lies midway between the surfaces. A collider writes dist, pos and frame
// of its contacts: frame[0..2] is the unit normal, frame[3..5] a hint for the first tangent (zero: none). In `feature`
// it writes a code that tells its adjoint what touches what. collide.c completes the frame and the parameters.
//
// The adjoint of a collider, NAME_vjp, gets the derivative of a scalar with respect to dist, pos, normal and
// tangent_hint (SnContactBar). It adds that for a small displacement of either geom: torque and force on it, about its
// own centre geom_xpos, in world axes. wrench = (torque, force) of the first geom, then of the second, 12 numbers. The
// normal is a unit vector however the geoms move, so what lies along it in the bar is of no account. collide.c
// differentiates the completion of the frame and moves wrenches to the links.
#ifndef SINEW_PHYSICS_COLLISION_COLLIDE_PRIVATE_H_
#define SINEW_PHYSICS_COLLISION_COLLIDE_PRIVATE_H_

#include "physics/base/vec.h"
#include "physics/world/world.h"

// Points to pose and size of a geom: position (3), rotation matrix (9, row major), sizes (3, as geom_size).
typedef struct SnShape {
  const sn_real *pos;
  const sn_real *mat;
  const sn_real *size;
  int geom;  // index, for its type and mesh; closed-form pairs do not read it
} SnShape;

// Holds what the list of a model says of a pair of geoms, or, beyond its end, the rules (setup_collision.c).
typedef struct SnPairInfo {
  int geom[2];  // ordered by type
  SnCollider collider;
  int max, param;  // most contacts; set of contact parameters
  sn_real reach;   // margin + gap [m]
} SnPairInfo;

// Returns whether neither of two geoms is awake, in a world in which some sleep.
SN_INLINE bool sn_pair_asleep(const SnModel *m, const SnWorld *w, int g1, int g2) {
  return sn_body_sleep(m, w, m->geom_bodyid[g1]) != SN_BODY_AWAKE &&
         sn_body_sleep(m, w, m->geom_bodyid[g2]) != SN_BODY_AWAKE;
}

SN_INLINE SnPairInfo sn_pair_info(const SnModel *m, int pair) {
  SnPairInfo p;
  if (pair < m->ncpair) {
    p.geom[0] = m->cpair_geom[2 * pair];
    p.geom[1] = m->cpair_geom[2 * pair + 1];
    p.collider = (SnCollider)m->cpair_collider[pair];
    p.max = m->cpair_max[pair];
    p.param = m->cpair_param[pair];
    p.reach = m->cpair_reach[pair];
    return p;
  }
  const int k = pair - m->ncpair, a = k / m->ngeom, b = k - a * m->ngeom;
  const int types = 9 * m->geom_type[a] + m->geom_type[b];
  p.geom[0] = a;
  p.geom[1] = b;
  p.collider = (SnCollider)m->rule_collider[types];
  p.max = m->rule_max[types];
  p.param = m->rule_param[m->rule_class[a] * m->nruleclass + m->rule_class[b]];
  p.reach = m->conparam[SN_NCONPARAM * p.param] + (m->geom_gap[a] + m->geom_gap[b]) + sn_sigmoid_reach(m);
  return p;
}

// Returns whether a listed pair may touch: its bounding spheres are no farther apart than its reach (collide.c).
SN_FUNC bool sn_collide_is_near(const SnModel *m, const SnWorld *w, int pair);
// Lists the near pairs of a model with many geoms in col_near, in order (sweep.c). Returns their number.
SN_FUNC int sn_sweep(const SnModel *m, SnWorld *w, SnLane *lane);

// Finds the contacts of a pair within its reach, con has room for the pair's slots. Returns their number.
SN_FUNC int sn_collide_pair(const SnModel *m, const SnWorld *w, int pair, SnContact *con);

// ---- speculative.c, impact.c: contacts before impact, where the model has the flag ----

// Computes geom_step. Ends with a sync.
SN_FUNC void sn_speculate_begin(const SnModel *m, SnWorld *w, SnLane *lane);
// Puts the `near` pairs of col_near in MuJoCo's order where bodies have a fast geom. Ends with a sync.
SN_FUNC void sn_speculate_order(const SnModel *m, SnWorld *w, SnLane *lane, int near);
// Returns half of the least width of a geom's bounding box [m]; that of a plane is no bound.
SN_FUNC sn_real sn_geom_thickness(const SnModel *m, int geom);
// Returns whether a pair may meet in this step, one of its geoms being fast.
SN_FUNC bool sn_speculate_is_near(const SnModel *m, const SnWorld *w, int pair);
// Replaces the n contacts of a pair by those before impact, if none of them acts. Returns their number.
SN_FUNC int sn_speculate(const SnModel *m, const SnWorld *w, int pair, SnContact *con, int n);

// Returns the shape of a geom where the world has it.
SN_INLINE SnShape sn_shape(const SnModel *m, const SnWorld *w, int geom) {
  const SnShape s = {w->geom_xpos + 3 * geom, w->geom_xmat + 9 * geom, m->geom_size + 3 * geom, geom};
  return s;
}

// Computes r, the z axis of a shape with rotation matrix mat: normal of a plane, axis of a capsule or cylinder.
SN_INLINE void sn_shape_axis(sn_real *r, const sn_real *mat) { sn_set3(r, mat[2], mat[5], mat[8]); }

// Writes a contact without a hint for a tangent, from point and normal in the world.
SN_INLINE void sn_contact_write(SnContact *con, sn_real dist, const sn_real *pos, const sn_real *normal, int feature) {
  con->dist = dist;
  sn_copy3(con->pos, pos);
  sn_copy3(con->frame, normal);
  sn_zero(con->frame + 3, 3);
  con->feature = feature;
}

// Writes a contact without a hint for a tangent, from point and normal in the frame of a shape.
SN_INLINE void sn_contact_write_local(SnContact *con, const SnShape *shape, sn_real dist, const sn_real *pos,
                                      const sn_real *normal, int feature) {
  con->dist = dist;
  sn_mulmatvec3(con->pos, shape->mat, pos);
  sn_addto3(con->pos, shape->pos);
  sn_mulmatvec3(con->frame, shape->mat, normal);
  sn_zero(con->frame + 3, 3);
  con->feature = feature;
}

// Holds the derivative of a scalar with respect to what a collider writes of a contact.
typedef struct SnContactBar {
  sn_real dist;
  sn_real pos[3], normal[3];
  sn_real tangent_hint[3];  // zero where the collider gives none
} SnContactBar;

// Adds a force on a point fixed to a shape to the (torque, force) on it about its centre.
SN_INLINE void sn_push(sn_real *wrench, const SnShape *s, const sn_real *point, const sn_real *force) {
  const sn_real x = point[0] - s->pos[0], y = point[1] - s->pos[1], z = point[2] - s->pos[2];
  wrench[0] += y * force[2] - z * force[1];
  wrench[1] += z * force[0] - x * force[2];
  wrench[2] += x * force[1] - y * force[0];
  sn_addto3(wrench + 3, force);
}

// Adds a force on a point at `arm` from the centre of a shape to the (torque, force) on it.
SN_INLINE void sn_push_arm(sn_real *wrench, const sn_real *arm, const sn_real *force) {
  sn_real t[3];
  sn_cross(t, arm, force);
  sn_addto3(wrench, t);
  sn_addto3(wrench + 3, force);
}

// Adds the torque that a direction fixed to a shape receives from its bar.
SN_INLINE void sn_turn(sn_real *wrench, const sn_real *dir, const sn_real *bar) {
  sn_real t[3];
  sn_cross(t, dir, bar);
  sn_addto3(wrench, t);
}

// Computes r, the bar of a vector from that of its direction: `unit` is the direction, `length` the vector's length.
SN_INLINE void sn_direction_vjp(sn_real *r, const sn_real *unit, sn_real length, const sn_real *bar) {
  const sn_real along = sn_dot3(unit, bar), s = 1 / length;
  for (int i = 0; i < 3; ++i) r[i] = (bar[i] - along * unit[i]) * s;
}

// Takes two directions for parallel below the sine, where a derivative would grow with its inverse, and two points for
// one below the length [m].
#ifdef SN_SINGLE
#define SN_STEADY_SINE SN_R(1e-3)
#define SN_STEADY_LENGTH SN_R(1e-6)
#else
#define SN_STEADY_SINE SN_R(1e-6)
#define SN_STEADY_LENGTH SN_R(1e-10)
#endif

// Collide closed-form pairs (collide_plane.c, collide_primitive.c, collide_capsule_box.c, collide_box.c). a, b are the
// shapes, types as the name says; con has room for SN_MAXCON_PAIR contacts. They return the number of contacts. Behind
// each stands its adjoint at a contact of sn_collision, which states its choice at a non-smooth point.
SN_FUNC int sn_collide_plane_sphere(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_plane_sphere_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                         const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_plane_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_plane_capsule_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                          const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_plane_cylinder(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_plane_cylinder_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                           const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_plane_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_plane_box_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                                      sn_real *wrench);
SN_FUNC int sn_collide_sphere_sphere(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_sphere_sphere_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                          const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_sphere_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_sphere_capsule_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                           const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_sphere_cylinder(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_sphere_cylinder_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                            const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_sphere_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_sphere_box_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                       const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_capsule_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_capsule_capsule_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                            const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_capsule_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_capsule_box_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                        const SnContactBar *bar, sn_real *wrench);
SN_FUNC int sn_collide_box_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con);
SN_FUNC void sn_collide_box_box_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                                    sn_real *wrench);

// Returns the square of the distance between the axes (segments of half length size[1] along z) of two capsules or
// cylinders. It is 0 when these are parallel (collide_primitive.c).
SN_FUNC sn_real sn_axes_square(const SnShape *a, const SnShape *b);

// Collides a plane (a point of it, unit normal) with a point below which `radius` of a sphere hangs (collide_plane.c).
// The first geom is the plane.
SN_FUNC int sn_plane_point(const sn_real *origin, const sn_real *normal, const sn_real *point, sn_real radius,
                           sn_real reach, SnContact *con);
// Runs the adjoint of sn_plane_point, the normal and whatever it is measured from fixed to `plane`. Adds to the wrench
// (6) on it, sets the bar of the point.
SN_FUNC void sn_plane_point_vjp(const SnShape *plane, const sn_real *normal, const sn_real *point, sn_real radius,
                                sn_real dist, const SnContactBar *bar, sn_real *wrench, sn_real *point_bar);

// Sets the bars of the centres of two spheres whose contact has the normal n (collide_primitive.c).
SN_FUNC void sn_two_spheres_vjp(const sn_real *p1, sn_real r1, const sn_real *p2, sn_real r2, const sn_real *n,
                                const SnContactBar *bar, sn_real *p1_bar, sn_real *p2_bar);

// Collides a plane with an ellipsoid or a mesh (collide_plane.c).
SN_FUNC int sn_collide_plane_convex(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach,
                                    SnContact *con);
SN_FUNC void sn_collide_plane_convex_vjp(const SnModel *m, const SnShape *a, const SnShape *b, const SnContact *con,
                                         const SnContactBar *bar, sn_real *wrench);

// Runs the adjoint of a contact of sn_collision (collide.c). bar (13) has those of dist, pos (3) and frame (9), omega
// the angular velocities of both bodies. Sets wrench (12) to (torque, force) on the links of the two geoms, about their
// twist origins. Sets twist (12), of a contact before impact alone, as sn_impact_vjp does.
SN_FUNC void sn_contact_vjp(const SnModel *m, const SnWorld *w, const SnContact *con, const sn_real *bar,
                            const sn_real *omega, sn_real *wrench, sn_real *twist);
// Runs the adjoint of a contact before impact. con_bar has its dist, pos and normal, omega the angular velocities of
// both bodies. Adds to wrench (12), as a collider does; computes twist (12), the bars of the bodies' velocities
// (rotation, translation) about the origins of their twists.
SN_FUNC void sn_impact_vjp(const SnModel *m, const SnWorld *w, const SnContact *con, const SnContactBar *con_bar,
                           const sn_real *omega, sn_real *wrench, sn_real *twist);

// Collides every other pair, smooth or polyhedral (collide_convex.c): at most max contacts, in MuJoCo's order.
SN_FUNC int sn_collide_convex(const SnModel *m, const SnShape *a, const SnShape *b, sn_real margin, SnContact *con,
                              int max);
// Finds the nearest points of such a pair, exact where MuJoCo's are good to a tolerance: one contact, at their
// midpoint. Beyond `limit` only its dist is set, to a number that is not less. Returns false where the search fails.
SN_FUNC bool sn_convex_nearest(const SnModel *m, const SnShape *a, const SnShape *b, sn_real limit, SnContact *con);
// Runs the adjoint of a contact of either, also for nearest points found otherwise (sn_ellipsoid_nearest).
SN_FUNC void sn_collide_convex_vjp(const SnModel *m, const SnShape *a, const SnShape *b, sn_real margin,
                                   const SnContact *con, const SnContactBar *bar, sn_real *wrench);

// Collides a height field with a convex shape (collide_hfield.c): at most max contacts, in MuJoCo's order. Writes the
// number of a prism of the height field as feature of each. Makes no contact of what is not a number.
SN_FUNC int sn_collide_hfield(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach, SnContact *con,
                              int max);
// Finds the nearest points as sn_convex_nearest does: those of the nearest prism, or of the deepest one.
SN_FUNC bool sn_hfield_nearest(const SnModel *m, const SnShape *a, const SnShape *b, sn_real limit, SnContact *con);
// Finds the contact of one prism again, far: the nearest points. Returns false where there is none.
SN_FUNC bool sn_hfield_again(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach, bool far, int number,
                             SnContact *con);
// Runs the adjoint of a contact of any of them.
SN_FUNC void sn_collide_hfield_vjp(const SnModel *m, const SnShape *a, const SnShape *b, const SnContact *con,
                                   const SnContactBar *bar, sn_real *wrench);

// Collides any pair of shapes within reach by a collider (collide_shapes.c), without parameters of contacts. Returns
// the number of contacts, at most max.
SN_FUNC int sn_collide_shapes(const SnModel *m, const SnShape *a, const SnShape *b, SnCollider collider, sn_real reach,
                              int max, SnContact *con);
// Runs the adjoint of a contact that the collider has made with this reach.
SN_FUNC void sn_collide_shapes_vjp(const SnModel *m, const SnShape *a, const SnShape *b, SnCollider collider,
                                   sn_real reach, const SnContact *con, const SnContactBar *bar, sn_real *wrench);

// Says how smooth contacts are found (collide_smooth.c).
typedef struct SnSmooth {
  sn_real touch;   // distance below which edges of boxes that cross have contacts [m]
  sn_real reach;   // distance up to which all others have [m]
  sn_real length;  // over which choices are smoothed [m], > 0
} SnSmooth;

// Returns whether a collider has a version without choices, for worlds with CFD.
SN_INLINE bool sn_has_smooth(SnCollider collider) {
  return collider == SN_COLLIDER_PLANE_CYLINDER || collider == SN_COLLIDER_PLANE_BOX || collider == SN_COLLIDER_BOX_BOX;
}
// Collides a pair by it. con has room for SN_MAXCON_PAIR + 1 contacts. Contacts of MuJoCo's own collider may be among
// them; the others have features below 0. Returns the number, which is at most that of the collider (sn_collider_max).
SN_FUNC int sn_collide_smooth(const SnShape *a, const SnShape *b, SnCollider collider, const SnSmooth *smooth,
                              SnContact *con);
// Runs the adjoint of a contact whose feature is below 0; `length` as it was.
SN_FUNC void sn_collide_smooth_vjp(const SnShape *a, const SnShape *b, SnCollider collider, sn_real length,
                                   const SnContact *con, const SnContactBar *bar, sn_real *wrench);

// Returns whether a contact of sn_collide_box_box lies where edges cross, and not at a corner (collide_box.c).
SN_FUNC bool sn_box_edges_cross(int feature);

// Runs the adjoint of any contact by a crude rule, the surrogate gradients. The nearest points are carried rigidly by
// their geoms, the normal turns with the mean of both. This is right for dist, wrong by tens of percent for the rest.
SN_FUNC void sn_collide_surrogate_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                                      sn_real *wrench);

// Returns whether contacts of a collider are told by the corners of both shapes (SnContact.corner).
SN_INLINE bool sn_has_corners(SnCollider collider) {
  return collider == SN_COLLIDER_CONVEX || collider == SN_COLLIDER_HFIELD || collider == SN_COLLIDER_HFIELD_FAR;
}

// Returns what finds the nearest points of a pair that does not touch: `own` finds its contacts, type2 is the type of
// its second geom. Finds those of two boxes by the convex search: their contacts measure the gap along the best axis,
// which is not the distance.
SN_INLINE SnCollider sn_far_collider(SnCollider own, int type2) {
  if (own == SN_COLLIDER_CONVEX && type2 == SN_GEOM_ELLIPSOID) return SN_COLLIDER_ELLIPSOID;
  if (own == SN_COLLIDER_HFIELD) return SN_COLLIDER_HFIELD_FAR;
  return own == SN_COLLIDER_BOX_BOX ? SN_COLLIDER_CONVEX : own;
}

// Moves the nearest of n > 0 contacts to the front, of equal ones the first.
SN_INLINE void sn_contact_nearest(SnContact *con, int n) {
  int nearest = 0;
  for (int i = 1; i < n; ++i)
    if (con[i].dist < con[nearest].dist) nearest = i;
  if (nearest > 0) con[0] = con[nearest];
}

// Holds nearest points of two surfaces, and the unit normal from the first to the second; dist < 0: depth.
typedef struct SnNearest {
  sn_real dist;
  sn_real normal[3];
  sn_real x1[3], x2[3];
} SnNearest;

// Finds the nearest points exactly (ellipsoid_distance.c). a is a sphere, capsule or ellipsoid, as `type` says, b an
// ellipsoid. Returns false where it is too deep to be certain that the point found is the nearest, or the centres
// coincide.
SN_FUNC bool sn_ellipsoid_nearest(int type, const SnShape *a, const SnShape *b, SnNearest *r);

#endif
