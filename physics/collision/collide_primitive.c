// Closed-form contacts of spheres, capsules and cylinders.
//
// Everything reduces to the distance of two points. Two spheres with centres p1, p2 and radii r1, r2 have
// dist = |p2 - p1| - r1 - r2, normal n = (p2 - p1) / |p2 - p1| and contact point p1 + (r1 + dist/2) n. A capsule is a
// sphere at the point of its axis nearest to the other geom, a cylinder's side likewise, its cap is a plane, its rim a
// sphere of radius 0.
//
// Which points are taken when several are equally near, and their order, are MuJoCo's choices (4.0.0,
// engine_collision_primitive.c); tests compare them with the library. The normal is undefined where two centres
// coincide: then it is the cross product of the z axes, or x when these are parallel.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"

// Contact of two spheres; the matrices choose the normal of coinciding centres.
SN_INLINE int prim_two_spheres(const sn_real *p1, const sn_real *mat1, sn_real r1, const sn_real *p2,
                               const sn_real *mat2, sn_real r2, sn_real reach, SnContact *con) {
  sn_real n[3];
  sn_sub3(n, p2, p1);
  const sn_real square = sn_dot3(n, n), limit = reach + r1 + r2;
  if (square > limit * limit) return 0;
  const sn_real length = sn_sqrt(square), dist = length - r1 - r2;
  if (length < SN_MINVAL) {
    sn_real z1[3], z2[3];
    sn_shape_axis(z1, mat1);
    sn_shape_axis(z2, mat2);
    sn_cross(n, z1, z2);
    sn_normalize3(n);
  } else {
    sn_scale3(n, n, 1 / length);
  }
  sn_real pos[3];
  sn_addscl3(pos, p1, n, r1 + dist / 2);
  sn_contact_write(con, dist, pos, n, 0);
  return 1;
}

SN_FUNC int sn_collide_sphere_sphere(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  return prim_two_spheres(a->pos, a->mat, a->size[0], b->pos, b->mat, b->size[0], reach, con);
}

// With L = |p2 - p1|: dist = L - r1 - r2, pos = p1 + n (L + r1 - r2) / 2. Where the centres coincide
// (SN_STEADY_LENGTH) the normal is taken as fixed, L as n.(p2 - p1).
SN_FUNC void sn_two_spheres_vjp(const sn_real *p1, sn_real r1, const sn_real *p2, sn_real r2, const sn_real *n,
                                const SnContactBar *bar, sn_real *p1_bar, sn_real *p2_bar) {
  sn_real d[3], n_bar[3];
  sn_sub3(d, p2, p1);
  const sn_real length = sn_dot3(n, d);
  if (length < SN_STEADY_LENGTH) {
    sn_zero(p2_bar, 3);
  } else {
    sn_addscl3(n_bar, bar->normal, bar->pos, (length + r1 - r2) / 2);
    sn_direction_vjp(p2_bar, n, length, n_bar);
  }
  sn_addtoscl3(p2_bar, n, bar->dist + SN_R(0.5) * sn_dot3(n, bar->pos));
  sn_sub3(p1_bar, bar->pos, p2_bar);
}

SN_FUNC void sn_collide_sphere_sphere_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                          const SnContactBar *bar, sn_real *wrench) {
  sn_real p1_bar[3], p2_bar[3];
  sn_two_spheres_vjp(a->pos, a->size[0], b->pos, b->size[0], con->frame, bar, p1_bar, p2_bar);
  sn_addto3(wrench + 3, p1_bar);
  sn_addto3(wrench + 9, p2_bar);
}

SN_FUNC int sn_collide_sphere_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real axis[3], d[3], near[3];
  sn_shape_axis(axis, b->mat);
  sn_sub3(d, a->pos, b->pos);
  sn_addscl3(near, b->pos, axis, sn_clip(sn_dot3(axis, d), -b->size[1], b->size[1]));
  return prim_two_spheres(a->pos, a->mat, a->size[0], near, b->mat, b->size[0], reach, con);
}

// Adjoint of the point p2 + z x, x = z.(p1 - p2), of an axis nearest to p1, from its bar.
SN_LOCAL void prim_foot_vjp(const SnShape *a, const SnShape *b, const sn_real *axis, sn_real x, const sn_real *bar,
                            sn_real *wrench) {
  sn_real d[3], axis_bar[3];
  const sn_real x_bar = sn_dot3(axis, bar);
  sn_sub3(d, a->pos, b->pos);
  for (int i = 0; i < 3; ++i) axis_bar[i] = x * bar[i] + x_bar * d[i];
  sn_turn(wrench + 6, axis, axis_bar);
  sn_addto3(wrench + 9, bar);
  sn_addtoscl3(wrench + 9, axis, -x_bar);
  sn_addtoscl3(wrench + 3, axis, x_bar);
}

// At the seam of side and end: the end.
SN_FUNC void sn_collide_sphere_capsule_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                           const SnContactBar *bar, sn_real *wrench) {
  sn_real axis[3], d[3], near[3], p1_bar[3], p2_bar[3];
  sn_shape_axis(axis, b->mat);
  sn_sub3(d, a->pos, b->pos);
  const sn_real x = sn_clip(sn_dot3(axis, d), -b->size[1], b->size[1]);
  sn_addscl3(near, b->pos, axis, x);
  sn_two_spheres_vjp(a->pos, a->size[0], near, b->size[0], con->frame, bar, p1_bar, p2_bar);
  sn_addto3(wrench + 3, p1_bar);
  if (sn_abs(x) < b->size[1])
    prim_foot_vjp(a, b, axis, x, p2_bar, wrench);
  else
    sn_push(wrench + 6, b, near, p2_bar);
}

enum { PRIM_SIDE, PRIM_CAP, PRIM_RIM };  // features of a cylinder

// Side, cap or rim. A centre inside the cylinder leaves by the nearer of side and cap.
SN_FUNC int sn_collide_sphere_cylinder(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const sn_real radius = b->size[0], half = b->size[1];
  sn_real axis[3], d[3], along[3], across[3], point[3];
  sn_shape_axis(axis, b->mat);
  sn_sub3(d, a->pos, b->pos);
  const sn_real x = sn_dot3(axis, d);
  sn_scale3(along, axis, x);
  sn_sub3(across, d, along);
  const sn_real square = sn_dot3(across, across), up = x > 0 ? SN_R(1.0) : SN_R(-1.0);
  bool by_side = sn_abs(x) < half, by_cap = square < radius * radius;
  if (by_side && by_cap) {
    by_side = half - sn_abs(x) >= radius - sn_sqrt(square);
    by_cap = !by_side;
  }
  if (by_side) {
    sn_add3(point, b->pos, along);
    return prim_two_spheres(a->pos, a->mat, a->size[0], point, b->mat, radius, reach, con);
  }
  if (by_cap) {
    sn_real out[3];
    sn_scale3(out, axis, up);
    sn_addscl3(point, b->pos, out, half);
    if (!sn_plane_point(point, out, a->pos, a->size[0], reach, con)) return 0;
    sn_scale3(con->frame, con->frame, -1);  // the sphere is the first geom
    con->feature = PRIM_CAP;
    return 1;
  }
  sn_scale3(across, across, radius / sn_sqrt(square));
  sn_addscl3(point, b->pos, axis, up * half);
  sn_addto3(point, across);
  if (!prim_two_spheres(a->pos, a->mat, a->size[0], point, b->mat, 0, reach, con)) return 0;
  con->feature = PRIM_RIM;
  return 1;
}

// The rim's point is half up z + radius e from the centre, e the direction of d - z (z.d), d from the cylinder to the
// sphere, at least the radius away from the axis.
SN_LOCAL void prim_rim_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                           sn_real *wrench) {
  sn_real axis[3], d[3], across[3], arm[3], point[3], p1_bar[3], p2_bar[3], e_bar[3], axis_bar[3];
  sn_shape_axis(axis, b->mat);
  sn_sub3(d, a->pos, b->pos);
  const sn_real x = sn_dot3(axis, d), half = x > 0 ? b->size[1] : -b->size[1];
  sn_addscl3(across, d, axis, -x);
  const sn_real length = sn_normalize3(across);
  sn_scale3(arm, axis, half);
  sn_addtoscl3(arm, across, b->size[0]);
  sn_add3(point, b->pos, arm);
  sn_two_spheres_vjp(a->pos, a->size[0], point, 0, con->frame, bar, p1_bar, p2_bar);
  sn_addto3(wrench + 3, p1_bar);
  sn_addto3(wrench + 9, p2_bar);
  sn_direction_vjp(e_bar, across, length / b->size[0], p2_bar);
  const sn_real along = sn_dot3(axis, e_bar);
  for (int i = 0; i < 3; ++i) axis_bar[i] = half * p2_bar[i] - x * e_bar[i] - along * d[i];
  sn_turn(wrench + 6, axis, axis_bar);
  sn_addtoscl3(e_bar, axis, -along);  // of d
  sn_addto3(wrench + 3, e_bar);
  sn_subfrom3(wrench + 9, e_bar);
}

// Where the features meet, the one that made the contact.
SN_FUNC void sn_collide_sphere_cylinder_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                            const SnContactBar *bar, sn_real *wrench) {
  sn_real axis[3], d[3], p1_bar[3], p2_bar[3], point[3];
  if (con->feature == PRIM_RIM) {
    prim_rim_vjp(a, b, con, bar, wrench);
    return;
  }
  if (con->feature == PRIM_CAP) {  // a plane whose normal is against the contact's
    SnContactBar cap = *bar;
    sn_scale3(cap.normal, bar->normal, -1);
    sn_scale3(axis, con->frame, -1);
    sn_plane_point_vjp(b, axis, a->pos, a->size[0], con->dist, &cap, wrench + 6, p1_bar);
    sn_addto3(wrench + 3, p1_bar);
    return;
  }
  sn_shape_axis(axis, b->mat);
  sn_sub3(d, a->pos, b->pos);
  const sn_real x = sn_dot3(axis, d);
  sn_addscl3(point, b->pos, axis, x);
  sn_two_spheres_vjp(a->pos, a->size[0], point, b->size[0], con->frame, bar, p1_bar, p2_bar);
  sn_addto3(wrench + 3, p1_bar);
  prim_foot_vjp(a, b, axis, x, p2_bar, wrench);
}

// Two capsules as segments p1 + x1 z1, p2 + x2 z2, |x1| <= half1, |x2| <= half2, z unit vectors.
typedef struct PrimSegments {
  const SnShape *a, *b;
  sn_real z1[3], z2[3], half1, half2;
  sn_real d[3];           // p2 - p1
  sn_real cross[3];       // z1 x z2
  sn_real cosine, sine2;  // z1 . z2, |z1 x z2|^2
  sn_real reach;
} PrimSegments;

SN_INLINE PrimSegments prim_segments(const SnShape *a, const SnShape *b, sn_real reach) {
  PrimSegments s = {.a = a, .b = b, .half1 = a->size[1], .half2 = b->size[1], .reach = reach};
  sn_shape_axis(s.z1, a->mat);
  sn_shape_axis(s.z2, b->mat);
  sn_sub3(s.d, b->pos, a->pos);
  sn_cross(s.cross, s.z1, s.z2);
  s.cosine = sn_dot3(s.z1, s.z2);
  s.sine2 = sn_dot3(s.cross, s.cross);
  return s;
}

SN_INLINE int prim_segment_contact(const PrimSegments *s, sn_real x1, sn_real x2, SnContact *con) {
  sn_real p1[3], p2[3];
  sn_addscl3(p1, s->a->pos, s->z1, x1);
  sn_addscl3(p2, s->b->pos, s->z2, x2);
  return prim_two_spheres(p1, s->a->mat, s->a->size[0], p2, s->b->mat, s->b->size[0], s->reach, con);
}

// Adjoint of a contact at x1 and x2. A coordinate at an end of its segment is fixed. One that is not: x1 = u + c x2
// next to a fixed x2, and likewise x2; both inside: as prim_crossing says.
SN_LOCAL void prim_segment_vjp(const PrimSegments *s, sn_real x1, sn_real x2, const sn_real *normal,
                               const SnContactBar *bar, sn_real *wrench) {
  sn_real p1[3], p2[3], z1_bar[3], z2_bar[3], p1_bar[3], p2_bar[3];
  sn_addscl3(p1, s->a->pos, s->z1, x1);
  sn_addscl3(p2, s->b->pos, s->z2, x2);
  sn_two_spheres_vjp(p1, s->a->size[0], p2, s->b->size[0], normal, bar, p1_bar, p2_bar);
  const bool free1 = sn_abs(x1) < s->half1, free2 = sn_abs(x2) < s->half2;
  const sn_real x1_bar = free1 ? sn_dot3(s->z1, p1_bar) : 0, x2_bar = free2 ? sn_dot3(s->z2, p2_bar) : 0;
  const sn_real c = s->cosine;
  sn_real u_bar = x1_bar, v_bar = x2_bar, c_bar = x2 * x1_bar + x1 * x2_bar;
  if (free1 && free2) {  // of x1 - c x2 = u, x2 - c x1 = v
    const sn_real inverse = 1 / s->sine2;
    u_bar = (x1_bar + c * x2_bar) * inverse;
    v_bar = (x2_bar + c * x1_bar) * inverse;
    c_bar = x2 * u_bar + x1 * v_bar;
  }
  for (int i = 0; i < 3; ++i) {
    z1_bar[i] = x1 * p1_bar[i] + u_bar * s->d[i] + c_bar * s->z2[i];
    z2_bar[i] = x2 * p2_bar[i] - v_bar * s->d[i] + c_bar * s->z1[i];
    const sn_real d_bar = u_bar * s->z1[i] - v_bar * s->z2[i];
    wrench[3 + i] += p1_bar[i] - d_bar;
    wrench[9 + i] += p2_bar[i] + d_bar;
  }
  sn_turn(wrench, s->z1, z1_bar);
  sn_turn(wrench + 6, s->z2, z2_bar);
}

enum { PRIM_CROSSING, PRIM_LOWER, PRIM_UPPER };  // features of two capsules: the ends of a common stretch of parallels

// Parallel: a contact at each end of the stretch where the two run side by side, lower end along z1 (-1) first. An end
// of the stretch is an end of one segment and the nearest point of the other.
SN_LOCAL void prim_stretch_end(const PrimSegments *s, int end, sn_real *x1, sn_real *x2) {
  const sn_real centre = sn_dot3(s->z1, s->d), behind = sn_dot3(s->z2, s->d);
  const sn_real far2 = s->cosine > 0 ? (sn_real)end * s->half2 : -(sn_real)end * s->half2;
  *x1 = centre + far2 * s->cosine;
  *x2 = far2;
  if (*x1 >= s->half1 || *x1 <= -s->half1) {
    *x1 = sn_clip(*x1, -s->half1, s->half1);
    *x2 = sn_clip(*x1 * s->cosine - behind, -s->half2, s->half2);
  }
}

SN_LOCAL int prim_parallel_capsules(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const PrimSegments s = prim_segments(a, b, reach);
  int n = 0;
  for (int end = -1; end <= 1; end += 2) {
    sn_real x1, x2;
    prim_stretch_end(&s, end, &x1, &x2);
    if (!prim_segment_contact(&s, x1, x2, con + n)) continue;
    con[n++].feature = end < 0 ? PRIM_LOWER : PRIM_UPPER;
  }
  return n;
}

// Crossing: the nearest points of the lines, x1 = (u + c v) / sin^2 and x2 = v + c x1 with u = z1.d, v = -z2.d and c
// the cosine, clipped to the segments. Where the axes are nearly parallel u + c v would cancel: it is d.(z2 x (z1 x
// z2)), and so both points are exact to rounding wherever along the axes they are.
SN_INLINE void prim_crossing(const PrimSegments *s, sn_real *x1, sn_real *x2) {
  sn_real across[3];
  sn_cross(across, s->z2, s->cross);
  *x1 = sn_clip(sn_dot3(s->d, across) / s->sine2, -s->half1, s->half1);
  *x2 = s->cosine * *x1 - sn_dot3(s->z2, s->d);
  if (*x2 > s->half2 || *x2 < -s->half2) {
    *x2 = sn_clip(*x2, -s->half2, s->half2);
    *x1 = sn_clip(s->cosine * *x2 + sn_dot3(s->z1, s->d), -s->half1, s->half1);
  }
}

static const sn_real PRIM_PARALLEL = SN_R(1e-8);  // sin^2 below which two axes are parallel

SN_FUNC int sn_collide_capsule_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const PrimSegments s = prim_segments(a, b, reach);
  // from the shapes again, so that these segments, which nearly all pairs need, stay in registers
  if (s.sine2 < PRIM_PARALLEL) return prim_parallel_capsules(a, b, reach, con);
  sn_real x1, x2;
  prim_crossing(&s, &x1, &x2);
  return prim_segment_contact(&s, x1, x2, con);
}

// At the seam of side and end: the end. Parallel axes stay as parallel as they are as far as the choice of points goes.
SN_FUNC void sn_collide_capsule_capsule_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                            const SnContactBar *bar, sn_real *wrench) {
  const PrimSegments s = prim_segments(a, b, 0);
  sn_real x1, x2;
  if (con->feature == PRIM_CROSSING)
    prim_crossing(&s, &x1, &x2);
  else
    prim_stretch_end(&s, con->feature == PRIM_LOWER ? -1 : 1, &x1, &x2);
  prim_segment_vjp(&s, x1, x2, con->frame, bar, wrench);
}

SN_FUNC sn_real sn_axes_square(const SnShape *a, const SnShape *b) {
  const PrimSegments s = prim_segments(a, b, 0);
  if (s.sine2 < PRIM_PARALLEL) return 0;
  sn_real x1, x2, d[3];
  prim_crossing(&s, &x1, &x2);
  for (int i = 0; i < 3; ++i) d[i] = s.d[i] + x2 * s.z2[i] - x1 * s.z1[i];
  return sn_dot3(d, d);
}
