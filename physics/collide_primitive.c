// Closed-form contacts of planes, spheres, capsules and cylinders, and of a plane with ellipsoids and meshes.
//
// Everything reduces to the distance of two points or of a point and a plane. Two spheres with centres p1, p2 and
// radii r1, r2 have dist = |p2 - p1| - r1 - r2, normal n = (p2 - p1) / |p2 - p1| and contact point p1 + (r1 + dist/2) n.
// A capsule is a sphere at the point of its axis nearest to the other geom, a cylinder's side likewise, its cap
// is a plane, its rim a sphere of radius 0. A plane touches the lowest points of a shape.
//
// Which points are taken when several are equally near, and their order, are MuJoCo's choices (4.0.0,
// engine_collision_primitive.c and engine_collision_convex.c); tests compare them with the library. The normal is undefined where two
// centres coincide: then it is the cross product of the z axes, or x when these are parallel.
#include "physics/collide.h"
#include "physics/vec.h"

// Contact without a wish for a tangent.
SN_LOCAL void prim_contact(SnContact *con, sn_real dist, const sn_real *pos, const sn_real *normal) {
  con->dist = dist;
  sn_copy3(con->pos, pos);
  sn_copy3(con->frame, normal);
  sn_zero(con->frame + 3, 3);
}

SN_LOCAL void prim_axis_z(sn_real *r, const sn_real *mat) { sn_set3(r, mat[2], mat[5], mat[8]); }

// Contact of a plane (point, unit normal) with a point below which `radius` of a sphere hangs.
SN_LOCAL int prim_plane_point(const sn_real *origin, const sn_real *normal, const sn_real *point, sn_real radius,
                              sn_real reach, SnContact *con) {
  sn_real d[3], pos[3];
  sn_sub3(d, point, origin);
  const sn_real height = sn_dot3(d, normal);
  if (height > reach + radius) return 0;
  const sn_real dist = height - radius;
  sn_addscl3(pos, point, normal, -(dist / 2) - radius);
  prim_contact(con, dist, pos, normal);
  return 1;
}

// Contact of two spheres; the matrices choose the normal of coinciding centres.
SN_LOCAL int prim_two_spheres(const sn_real *p1, const sn_real *mat1, sn_real r1, const sn_real *p2, const sn_real *mat2,
                              sn_real r2, sn_real reach, SnContact *con) {
  sn_real n[3], pos[3];
  sn_sub3(n, p2, p1);
  const sn_real square = sn_dot3(n, n), limit = reach + r1 + r2;
  if (square > limit * limit) return 0;
  if (sn_normalize3(n) < SN_MINVAL) {
    sn_real z1[3], z2[3];
    prim_axis_z(z1, mat1);
    prim_axis_z(z2, mat2);
    sn_cross(n, z1, z2);
    sn_normalize3(n);
  }
  const sn_real dist = sn_sqrt(square) - r1 - r2;
  sn_addscl3(pos, p1, n, r1 + dist / 2);
  prim_contact(con, dist, pos, n);
  return 1;
}

SN_FUNC int sn_collide_plane_sphere(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real normal[3];
  prim_axis_z(normal, a->mat);
  return prim_plane_point(a->pos, normal, b->pos, b->size[0], reach, con);
}

// Both ends, the one along +z first; the first tangent follows the capsule.
SN_FUNC int sn_collide_plane_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real normal[3], axis[3], end[3];
  prim_axis_z(normal, a->mat);
  prim_axis_z(axis, b->mat);
  int n = 0;
  for (int side = 0; side < 2; ++side) {
    sn_addscl3(end, b->pos, axis, side ? -b->size[1] : b->size[1]);
    if (prim_plane_point(a->pos, normal, end, b->size[0], reach, con + n)) sn_copy3(con[n++].frame + 3, axis);
  }
  return n;
}

// The rim point that lies deepest, the rim point opposite to it along the axis, then two more of the near cap which
// make with the first an equilateral triangle.
SN_FUNC int sn_collide_plane_cylinder(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const sn_real radius = b->size[0], half = b->size[1];
  sn_real normal[3], axis[3], down[3], point[3], side[3];
  prim_axis_z(normal, a->mat);
  prim_axis_z(axis, b->mat);
  sn_real slope = sn_dot3(normal, axis);
  if (slope > 0) {  // axis towards the plane
    sn_scale3(axis, axis, -1);
    slope = -slope;
  }
  // down: from the centre of a cap to its deepest rim point; the cylinder's x axis when the cap is parallel
  sn_scale3(down, axis, slope);
  sn_subfrom3(down, normal);
  const sn_real square = sn_dot3(down, down);
  if (square >= SN_MINVAL * SN_MINVAL) {
    sn_scale3(down, down, radius / sn_sqrt(square));
  } else {
    sn_set3(down, b->mat[0] * radius, b->mat[3] * radius, b->mat[6] * radius);
  }
  // heights of the centre, and of cap and rim above it
  sn_sub3(point, b->pos, a->pos);
  const sn_real height = sn_dot3(point, normal), cap = slope * half, rim = sn_dot3(down, normal);
  sn_scale3(axis, axis, half);
  sn_cross(side, down, axis);
  sn_normalize3(side);
  sn_scale3(side, side, radius * sn_sqrt(SN_R(3.0)) / 2);
  if (height + cap + rim > reach) return 0;
  int n = 0;
  for (int k = 0; k < 4; ++k) {
    const sn_real dist = height + (k == 1 ? -cap : cap) + (k < 2 ? rim : -rim * SN_R(0.5));
    if (dist > reach) continue;
    sn_addscl3(point, b->pos, axis, k == 1 ? SN_R(-1.0) : SN_R(1.0));
    sn_addtoscl3(point, down, k < 2 ? SN_R(1.0) : SN_R(-0.5));
    if (k >= 2) sn_addtoscl3(point, side, k == 2 ? SN_R(1.0) : SN_R(-1.0));
    sn_addtoscl3(point, normal, -dist / 2);
    prim_contact(con + n++, dist, point, normal);
  }
  return n;
}

// Corners on the lower side of the centre, in binary order of their signs, at most four.
SN_FUNC int sn_collide_plane_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real normal[3], d[3], local[3], corner[3], point[3], pos[3];
  prim_axis_z(normal, a->mat);
  sn_sub3(d, b->pos, a->pos);
  const sn_real height = sn_dot3(d, normal);
  int n = 0;
  for (int i = 0; i < 8 && n < 4; ++i) {
    for (int k = 0; k < 3; ++k) local[k] = (i >> k) & 1 ? b->size[k] : -b->size[k];
    sn_mulmatvec3(corner, b->mat, local);
    const sn_real rise = sn_dot3(normal, corner), dist = height + rise;
    if (dist > reach || rise > 0) continue;
    sn_add3(point, corner, b->pos);
    sn_addscl3(pos, point, normal, -dist / 2);
    prim_contact(con + n++, dist, pos, normal);
  }
  return n;
}

SN_FUNC int sn_collide_sphere_sphere(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  return prim_two_spheres(a->pos, a->mat, a->size[0], b->pos, b->mat, b->size[0], reach, con);
}

SN_FUNC int sn_collide_sphere_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real axis[3], d[3], near[3];
  prim_axis_z(axis, b->mat);
  sn_sub3(d, a->pos, b->pos);
  sn_addscl3(near, b->pos, axis, sn_clip(sn_dot3(axis, d), -b->size[1], b->size[1]));
  return prim_two_spheres(a->pos, a->mat, a->size[0], near, b->mat, b->size[0], reach, con);
}

// Side, cap or rim. A centre inside the cylinder leaves by the nearer of side and cap.
SN_FUNC int sn_collide_sphere_cylinder(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const sn_real radius = b->size[0], half = b->size[1];
  sn_real axis[3], d[3], along[3], across[3], point[3];
  prim_axis_z(axis, b->mat);
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
    const int n = prim_plane_point(point, out, a->pos, a->size[0], reach, con);
    if (n) sn_scale3(con->frame, con->frame, -1);  // the sphere is the first geom
    return n;
  }
  sn_scale3(across, across, radius / sn_sqrt(square));
  sn_addscl3(point, b->pos, axis, up * half);
  sn_addto3(point, across);
  return prim_two_spheres(a->pos, a->mat, a->size[0], point, b->mat, 0, reach, con);
}

// Two capsules as segments p1 + x1 a1, p2 + x2 a2 with x in [-1, 1].
typedef struct PrimSegments {
  const SnShape *a, *b;
  sn_real axis1[3], axis2[3];
  sn_real reach;
} PrimSegments;

SN_LOCAL int prim_segment_contact(const PrimSegments *s, sn_real x1, sn_real x2, SnContact *con) {
  sn_real p1[3], p2[3];
  sn_addscl3(p1, s->a->pos, s->axis1, x1);
  sn_addscl3(p2, s->b->pos, s->axis2, x2);
  return prim_two_spheres(p1, s->a->mat, s->a->size[0], p2, s->b->mat, s->b->size[0], s->reach, con);
}

// Nearest points solve [a b; b c] (x1, x2) = (u, v), clipped to the segments; parallel segments are tried from
// their ends until two contacts are found.
SN_FUNC int sn_collide_capsule_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  PrimSegments s = {.a = a, .b = b, .reach = reach};
  sn_real d[3];
  prim_axis_z(s.axis1, a->mat);
  prim_axis_z(s.axis2, b->mat);
  sn_scale3(s.axis1, s.axis1, a->size[1]);
  sn_scale3(s.axis2, s.axis2, b->size[1]);
  sn_sub3(d, a->pos, b->pos);
  const sn_real ma = sn_dot3(s.axis1, s.axis1), mb = -sn_dot3(s.axis1, s.axis2), mc = sn_dot3(s.axis2, s.axis2);
  const sn_real u = -sn_dot3(s.axis1, d), v = sn_dot3(s.axis2, d), det = ma * mc - mb * mb;
  if (sn_abs(det) >= SN_MINVAL) {
    sn_real x1 = (mc * u - mb * v) / det, x2 = (ma * v - mb * u) / det;
    if (x1 > 1 || x1 < -1) {
      x1 = x1 > 1 ? SN_R(1.0) : SN_R(-1.0);
      x2 = (v - mb * x1) / mc;
    }
    if (x2 > 1 || x2 < -1) {
      x2 = x2 > 1 ? SN_R(1.0) : SN_R(-1.0);
      x1 = sn_clip((u - mb * x2) / ma, -1, 1);
    }
    return prim_segment_contact(&s, x1, x2, con);
  }
  int n = 0;
  for (int k = 0; k < 4 && n < 2; ++k) {
    const sn_real end = k & 1 ? SN_R(-1.0) : SN_R(1.0);
    if (k < 2) n += prim_segment_contact(&s, end, sn_clip((v - mb * end) / mc, -1, 1), con + n);
    else n += prim_segment_contact(&s, sn_clip((u - mb * end) / ma, -1, 1), end, con + n);
  }
  return n;
}

// Support point of an ellipsoid in local direction dir.
SN_LOCAL void prim_ellipsoid_support(sn_real *r, const sn_real *size, const sn_real *dir) {
  for (int i = 0; i < 3; ++i) r[i] = dir[i] * size[i];
  sn_normalize3(r);
  for (int i = 0; i < 3; ++i) r[i] *= size[i];
}

// The convex hull of a mesh: mesh_graph holds, for numvert hull vertices, the first edge, the vertex of the mesh, and
// then lists of neighbours ended by -1.
typedef struct PrimHull {
  const sn_real *vert;         // vertices of the mesh
  int nvert;
  const int *edge, *id, *neighbour;  // NULL without a hull: all vertices count
} PrimHull;

SN_LOCAL PrimHull prim_hull(const SnModel *m, int mesh) {
  PrimHull h = {.vert = m->mesh_vert + 3 * m->mesh_vertadr[mesh], .nvert = m->mesh_vertnum[mesh], .edge = NULL, .id = NULL,
                .neighbour = NULL};
  if (m->mesh_graphadr[mesh] >= 0) {
    const int *graph = m->mesh_graph + m->mesh_graphadr[mesh];
    h.edge = graph + 2;
    h.id = graph + 2 + graph[0];
    h.neighbour = graph + 2 + 2 * graph[0];
  }
  return h;
}

// Index of the farthest vertex in direction dir: of the hull (climbing from its vertex 0), or of the mesh without hull.
SN_LOCAL int prim_mesh_support(const PrimHull *h, const sn_real *dir) {
  int best = 0;
  if (!h->edge) {
    sn_real top = sn_dot3(dir, h->vert);
    for (int i = 1; i < h->nvert; ++i) {
      const sn_real x = sn_dot3(dir, h->vert + 3 * i);
      if (x > top) { top = x; best = i; }
    }
    return best;
  }
  sn_real top = sn_dot3(dir, h->vert + 3 * h->id[0]);
  for (int from = -1; from != best;) {
    from = best;
    for (int e = h->edge[from]; h->neighbour[e] >= 0; ++e) {
      const int i = h->neighbour[e];
      const sn_real x = sn_dot3(dir, h->vert + 3 * h->id[i]);
      if (x > top) { top = x; best = i; }
    }
  }
  return best;
}

// The deepest vertex, then neighbours of it (any vertices, without a hull) that lie in reach and at least 0.3
// bounding radii from it: at most three contacts.
SN_LOCAL int prim_plane_mesh(const SnModel *m, int g2, const SnShape *a, const SnShape *b, const sn_real *normal,
                             sn_real reach, SnContact *con) {
  const PrimHull h = prim_hull(m, m->geom_dataid[g2]);
  const sn_real apart = SN_R(0.3) * m->geom_rbound[g2];
  sn_real down[3], local[3], d[3], point[3];
  sn_scale3(down, normal, -1);
  sn_mulmattvec3(local, b->mat, down);
  const int best = prim_mesh_support(&h, local);
  sn_mulmatvec3(point, b->mat, h.vert + 3 * (h.edge ? h.id[best] : best));
  sn_addto3(point, b->pos);
  if (!prim_plane_point(a->pos, normal, point, 0, reach, con)) return 0;
  sn_sub3(d, b->pos, a->pos);
  const sn_real threshold = sn_dot3(normal, d) - reach;
  int n = 1;
  for (int e = h.edge ? h.edge[best] : 0; n < 3; ++e) {
    if (h.edge ? h.neighbour[e] < 0 : e >= h.nvert) break;
    if (!h.edge && e == best) continue;
    const sn_real *vert = h.vert + 3 * (h.edge ? h.id[h.neighbour[e]] : e);
    if (!(sn_dot3(local, vert) > threshold)) continue;
    sn_mulmatvec3(point, b->mat, vert);
    sn_addto3(point, b->pos);
    if (sn_dist3(point, con->pos) < apart) continue;
    sn_sub3(d, point, a->pos);
    const sn_real dist = sn_dot3(normal, d);
    sn_addtoscl3(point, normal, SN_R(-0.5) * dist);
    prim_contact(con + n++, dist, point, normal);
  }
  return n;
}

SN_FUNC int sn_collide_plane_convex(const SnModel *m, SnWorld *w, int g1, int g2, sn_real margin, SnContact *con, int max) {
  (void)max;
  const SnShape a = {w->geom_xpos + 3 * g1, w->geom_xmat + 9 * g1, m->geom_size + 3 * g1};
  const SnShape b = {w->geom_xpos + 3 * g2, w->geom_xmat + 9 * g2, m->geom_size + 3 * g2};
  sn_real normal[3], down[3], local[3], point[3];
  prim_axis_z(normal, a.mat);
  if (m->geom_type[g2] == SN_GEOM_MESH) return prim_plane_mesh(m, g2, &a, &b, normal, margin, con);
  sn_scale3(down, normal, -1);
  sn_mulmattvec3(local, b.mat, down);
  prim_ellipsoid_support(point, b.size, local);
  sn_mulmatvec3(local, b.mat, point);
  sn_add3(point, local, b.pos);
  return prim_plane_point(a.pos, normal, point, 0, margin, con);
}
