// Closed-form contacts of planes, spheres, capsules and cylinders, and of a plane with ellipsoids and meshes.
//
// Everything reduces to the distance of two points or of a point and a plane. Two spheres with centres p1, p2 and
// radii r1, r2 have dist = |p2 - p1| - r1 - r2, normal n = (p2 - p1) / |p2 - p1| and contact point p1 + (r1 + dist/2)
// n. A capsule is a sphere at the point of its axis nearest to the other geom, a cylinder's side likewise, its cap is a
// plane, its rim a sphere of radius 0. A plane touches the lowest points of a shape.
//
// Which points are taken when several are equally near, and their order, are MuJoCo's choices (4.0.0,
// engine_collision_primitive.c and engine_collision_convex.c); tests compare them with the library. The normal is
// undefined where two centres coincide: then it is the cross product of the z axes, or x when these are parallel.
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
SN_LOCAL int prim_two_spheres(const sn_real *p1, const sn_real *mat1, sn_real r1, const sn_real *p2,
                              const sn_real *mat2, sn_real r2, sn_real reach, SnContact *con) {
  sn_real n[3];
  sn_sub3(n, p2, p1);
  const sn_real square = sn_dot3(n, n), limit = reach + r1 + r2;
  if (square > limit * limit) return 0;
  const sn_real length = sn_sqrt(square), dist = length - r1 - r2;
  if (length < SN_MINVAL) {
    sn_real z1[3], z2[3];
    prim_axis_z(z1, mat1);
    prim_axis_z(z2, mat2);
    sn_cross(n, z1, z2);
    sn_normalize3(n);
  } else {
    sn_scale3(n, n, 1 / length);
  }
  con->dist = dist;
  sn_addscl3(con->pos, p1, n, r1 + dist / 2);
  sn_copy3(con->frame, n);
  sn_zero(con->frame + 3, 3);
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

// Two capsules as segments p1 + x1 z1, p2 + x2 z2, |x1| <= half1, |x2| <= half2, z unit vectors.
typedef struct PrimSegments {
  const SnShape *a, *b;
  sn_real z1[3], z2[3], half1, half2;
  sn_real d[3];           // p2 - p1
  sn_real cosine, sine2;  // z1 . z2, |z1 x z2|^2
  sn_real reach;
} PrimSegments;

SN_LOCAL PrimSegments prim_segments(const SnShape *a, const SnShape *b, sn_real reach) {
  PrimSegments s = {.a = a, .b = b, .half1 = a->size[1], .half2 = b->size[1], .reach = reach};
  sn_real cross[3];
  prim_axis_z(s.z1, a->mat);
  prim_axis_z(s.z2, b->mat);
  sn_sub3(s.d, b->pos, a->pos);
  sn_cross(cross, s.z1, s.z2);
  s.cosine = sn_dot3(s.z1, s.z2);
  s.sine2 = sn_dot3(cross, cross);
  return s;
}

SN_LOCAL int prim_segment_contact(const PrimSegments *s, sn_real x1, sn_real x2, SnContact *con) {
  sn_real p1[3], p2[3];
  sn_addscl3(p1, s->a->pos, s->z1, x1);
  sn_addscl3(p2, s->b->pos, s->z2, x2);
  return prim_two_spheres(p1, s->a->mat, s->a->size[0], p2, s->b->mat, s->b->size[0], s->reach, con);
}

// Parallel: a contact at each end of the stretch where the two run side by side, lower end along z1 first. An end of
// the stretch is an end of one segment and the nearest point of the other.
SN_LOCAL int prim_parallel_capsules(const PrimSegments *s, SnContact *con) {
  const sn_real centre = sn_dot3(s->z1, s->d), behind = sn_dot3(s->z2, s->d);
  int n = 0;
  for (int end = -1; end <= 1; end += 2) {
    const sn_real far2 = s->cosine > 0 ? (sn_real)end * s->half2 : -(sn_real)end * s->half2;
    sn_real x1 = centre + far2 * s->cosine, x2 = far2;
    if (x1 >= s->half1 || x1 <= -s->half1) {
      x1 = sn_clip(x1, -s->half1, s->half1);
      x2 = sn_clip(x1 * s->cosine - behind, -s->half2, s->half2);
    }
    n += prim_segment_contact(s, x1, x2, con + n);
  }
  return n;
}

// Crossing: the nearest points of the lines, x1 = (u + c v) / sin^2 and x2 = (v + c u) / sin^2 with u = z1.d,
// v = -z2.d and c the cosine, clipped to the segments.
SN_LOCAL void prim_crossing(const PrimSegments *s, sn_real *x1, sn_real *x2) {
  const sn_real u = sn_dot3(s->z1, s->d), v = -sn_dot3(s->z2, s->d), c = s->cosine;
  *x1 = (u + c * v) / s->sine2;
  *x2 = (v + c * u) / s->sine2;
  if (*x1 > s->half1 || *x1 < -s->half1) {
    *x1 = sn_clip(*x1, -s->half1, s->half1);
    *x2 = v + c * *x1;
  }
  if (*x2 > s->half2 || *x2 < -s->half2) {
    *x2 = sn_clip(*x2, -s->half2, s->half2);
    *x1 = sn_clip(u + c * *x2, -s->half1, s->half1);
  }
}

static const sn_real PRIM_PARALLEL = SN_R(1e-8);  // sin^2 below which two axes are parallel

SN_FUNC int sn_collide_capsule_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const PrimSegments s = prim_segments(a, b, reach);
  if (s.sine2 < PRIM_PARALLEL) return prim_parallel_capsules(&s, con);
  sn_real x1, x2;
  prim_crossing(&s, &x1, &x2);
  return prim_segment_contact(&s, x1, x2, con);
}

SN_FUNC sn_real sn_axes_square(const SnShape *a, const SnShape *b) {
  const PrimSegments s = prim_segments(a, b, 0);
  if (s.sine2 < PRIM_PARALLEL) return 0;
  sn_real x1, x2, d[3];
  prim_crossing(&s, &x1, &x2);
  for (int i = 0; i < 3; ++i) d[i] = s.d[i] + x2 * s.z2[i] - x1 * s.z1[i];
  return sn_dot3(d, d);
}

// Support point of an ellipsoid in local direction dir.
SN_LOCAL void prim_ellipsoid_support(sn_real *r, const sn_real *size, const sn_real *dir) {
  for (int i = 0; i < 3; ++i) r[i] = dir[i] * size[i];
  sn_normalize3(r);
  for (int i = 0; i < 3; ++i) r[i] *= size[i];
}

// The vertices of a mesh and its convex hull: mesh_graph holds, for numvert hull vertices, the first edge, the vertex
// of the mesh, and then lists of neighbours ended by -1.
typedef struct PrimHull {
  const sn_real *vert;
  int nvert;
  const int *edge, *id, *neighbour;  // NULL: every vertex is looked at
  const int *seed;                   // hull vertices that lie farthest in 27 directions
} PrimHull;

enum { PRIM_CLIMB_MIN = 10 };  // meshes with fewer vertices are searched

SN_LOCAL PrimHull prim_hull(const SnModel *m, int mesh) {
  PrimHull h = {.vert = m->mesh_vert + 3 * m->mesh_vertadr[mesh],
                .nvert = m->mesh_vertnum[mesh],
                .edge = NULL,
                .id = NULL,
                .neighbour = NULL,
                .seed = m->mesh_extrema + 27 * mesh};
  if (m->mesh_graphadr[mesh] < 0 || h.nvert < PRIM_CLIMB_MIN) return h;
  const int *graph = m->mesh_graph + m->mesh_graphadr[mesh];
  h.edge = graph + 2;
  h.id = graph + 2 + graph[0];
  h.neighbour = graph + 2 + 2 * graph[0];
  return h;
}

// The vertex that lies farthest in direction dir (unit): by climbing the hull from a seed. Of equals the first.
SN_LOCAL int prim_mesh_support(const PrimHull *h, const sn_real *dir) {
  int best = 0;
  if (!h->edge) {
    sn_real top = sn_dot3(dir, h->vert);
    for (int i = 1; i < h->nvert; ++i) {
      const sn_real x = sn_dot3(dir, h->vert + 3 * i);
      if (x > top) {
        top = x;
        best = i;
      }
    }
    return best;
  }
  int cell = 0;  // the nearest of the directions with components -1, 0, 1
  for (int k = 0; k < 3; ++k) cell = 3 * cell + (dir[k] > SN_R(0.4)) - (dir[k] < SN_R(-0.4)) + 1;
  best = h->seed[cell];
  sn_real top = sn_dot3(dir, h->vert + 3 * h->id[best]);
  for (int from = -1; from != best;) {
    from = best;
    for (int e = h->edge[from]; h->neighbour[e] >= 0; ++e) {
      const int i = h->neighbour[e];
      const sn_real x = sn_dot3(dir, h->vert + 3 * h->id[i]);
      if (x > top) {
        top = x;
        best = i;
      }
    }
  }
  return h->id[best];
}

// A face of a hull as a list that starts at one of its vertices.
typedef struct PrimFace {
  const sn_real *vert;  // of the mesh
  const int *list;      // vertices of the face, in order
  int n, first;
} PrimFace;

SN_LOCAL const sn_real *prim_face_vertex(const PrimFace *f, int i) {
  return f->vert + 3 * f->list[(f->first + i) % f->n];
}

// Twice the area of the quadrilateral of vertices 0, q[0], q[1], q[2] of a face.
SN_LOCAL sn_real prim_quad_area(const PrimFace *f, const int *q) {
  sn_real d1[3], d2[3], n[3];
  sn_sub3(d1, prim_face_vertex(f, q[1]), prim_face_vertex(f, 0));
  sn_sub3(d2, prim_face_vertex(f, q[2]), prim_face_vertex(f, q[0]));
  sn_cross(n, d1, d2);
  return sn_norm3(n);
}

// Moves corner k of the quadrilateral on while that makes it larger; true when it moved.
SN_LOCAL bool prim_quad_grow(const PrimFace *f, int *q, int k, bool once, sn_real *area) {
  bool moved = false;
  do {
    int t[3] = {q[0], q[1], q[2]};
    t[k] = (t[k] + 1) % f->n;
    const sn_real x = prim_quad_area(f, t);
    if (!(x > *area)) break;
    *area = x;
    q[k] = t[k];
    moved = true;
  } while (!once);
  return moved;
}

// The corners, after vertex 0, of a large quadrilateral in a face of more than four vertices.
SN_LOCAL void prim_large_quad(const PrimFace *f, int *q) {
  for (int k = 0; k < 3; ++k) q[k] = k + 1;
  sn_real area = prim_quad_area(f, q);
  while (prim_quad_grow(f, q, 2, true, &area)) {
    prim_quad_grow(f, q, 1, false, &area);
    prim_quad_grow(f, q, 0, false, &area);
  }
}

// The face at vertex v whose normal points most in direction dir, starting at v; n is 1 when the mesh has no faces.
SN_LOCAL PrimFace prim_face(const SnModel *m, int mesh, int v, const sn_real *dir) {
  const int at = m->mesh_vertadr[mesh] + v, *map = m->mesh_polymap + m->mesh_polymapadr[at];
  PrimFace f = {.vert = m->mesh_vert + 3 * m->mesh_vertadr[mesh], .list = NULL, .n = 1, .first = 0};
  sn_real best = 0;
  for (int i = 0; i < m->mesh_polymapnum[at]; ++i) {
    const int face = m->mesh_polyadr[mesh] + map[i];
    const sn_real x = sn_dot3(dir, m->mesh_polynormal + 3 * face);
    if (f.list && !(x > best)) continue;
    best = x;
    f.list = m->mesh_polyvert + m->mesh_polyvertadr[face];
    f.n = m->mesh_polyvertnum[face];
  }
  while (f.list && f.first < f.n - 1 && f.list[f.first] != v) ++f.first;
  return f;
}

// The deepest vertex, then the others of the face there that lies most along the plane, where they are in reach and
// below the centre of the geom. Of a face with more than four vertices a large quadrilateral is taken.
SN_LOCAL int prim_plane_mesh(const SnModel *m, int g2, const SnShape *a, const SnShape *b, const sn_real *normal,
                             sn_real reach, SnContact *con) {
  const int mesh = m->geom_dataid[g2];
  const PrimHull h = prim_hull(m, mesh);
  sn_real down[3], dir[3], d[3], point[3];
  sn_scale3(down, normal, -1);
  sn_mulmattvec3(dir, b->mat, down);
  const int deepest = prim_mesh_support(&h, dir);
  sn_mulmatvec3(point, b->mat, h.vert + 3 * deepest);
  sn_addto3(point, b->pos);
  if (!prim_plane_point(a->pos, normal, point, 0, reach, con)) return 0;
  const PrimFace face = prim_face(m, mesh, deepest, dir);
  int corner[3] = {1, 2, 3}, n = 1;
  if (face.n > 4) prim_large_quad(&face, corner);
  for (int k = 0; k < sn_mini(face.n, 4) - 1; ++k) {
    const sn_real *vert = prim_face_vertex(&face, corner[k]);
    if (sn_dot3(dir, vert) < 0) continue;
    sn_mulmatvec3(point, b->mat, vert);
    sn_addto3(point, b->pos);
    sn_sub3(d, point, a->pos);
    const sn_real dist = sn_dot3(normal, d);
    if (dist > reach) continue;
    sn_addtoscl3(point, normal, SN_R(-0.5) * dist);
    prim_contact(con + n++, dist, point, normal);
  }
  return n;
}

SN_FUNC int sn_collide_plane_convex(const SnModel *m, SnWorld *w, int g1, int g2, sn_real margin, SnContact *con,
                                    int max) {
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
