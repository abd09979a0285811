// Closed-form contacts of a plane with every shape.
//
// A plane touches the lowest points of a shape: where the unit normal is n and o a point of the plane, a point p below
// which `radius` of a sphere hangs has height h = n.(p - o), dist = h - radius, and contact point p - n (h + radius)
// / 2.
//
// Which points are taken when several are equally low, and their order, are MuJoCo's choices (4.0.0,
// engine_collision_primitive.c and engine_collision_convex.c); tests compare them with the library.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"

// Contact of a plane (point, unit normal) with a point below which `radius` of a sphere hangs.
SN_FUNC int sn_plane_point(const sn_real *origin, const sn_real *normal, const sn_real *point, sn_real radius,
                           sn_real reach, SnContact *con) {
  sn_real d[3], pos[3];
  sn_sub3(d, point, origin);
  const sn_real height = sn_dot3(d, normal);
  if (height > reach + radius) return 0;
  const sn_real dist = height - radius;
  sn_addscl3(pos, point, normal, -(dist / 2) - radius);
  sn_contact_write(con, dist, pos, normal, 0);
  return 1;
}

// Smooth everywhere. With h = dist + radius: dist = n.(p - o) - radius and pos = p - n (h + radius) / 2; what h
// receives acts on p along n and, against it, on the point of the plane's geom that lies there.
SN_FUNC void sn_plane_point_vjp(const SnShape *plane, const sn_real *normal, const sn_real *point, sn_real radius,
                                sn_real dist, const SnContactBar *bar, sn_real *wrench, sn_real *point_bar) {
  sn_real force[3], normal_bar[3];
  const sn_real height = bar->dist - SN_R(0.5) * sn_dot3(normal, bar->pos);
  sn_scale3(force, normal, height);
  sn_add3(point_bar, bar->pos, force);
  sn_scale3(force, force, -1);
  sn_push(wrench, plane, point, force);
  sn_addscl3(normal_bar, bar->normal, bar->pos, -(SN_R(0.5) * dist + radius));
  sn_turn(wrench, normal, normal_bar);
}

SN_FUNC int sn_collide_plane_sphere(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real normal[3];
  sn_shape_axis(normal, a->mat);
  return sn_plane_point(a->pos, normal, b->pos, b->size[0], reach, con);
}

SN_FUNC void sn_collide_plane_sphere_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                         const SnContactBar *bar, sn_real *wrench) {
  sn_real force[3];
  sn_plane_point_vjp(a, con->frame, b->pos, b->size[0], con->dist, bar, wrench, force);
  sn_addto3(wrench + 9, force);
}

// Both ends, the one along +z first; the first tangent follows the capsule.
SN_FUNC int sn_collide_plane_capsule(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real normal[3], axis[3], end[3];
  sn_shape_axis(normal, a->mat);
  sn_shape_axis(axis, b->mat);
  int n = 0;
  for (int side = 0; side < 2; ++side) {
    sn_addscl3(end, b->pos, axis, side ? -b->size[1] : b->size[1]);
    if (sn_plane_point(a->pos, normal, end, b->size[0], reach, con + n)) {
      con[n].feature = side;
      sn_copy3(con[n++].frame + 3, axis);
    }
  }
  return n;
}

// Feature: the end.
SN_FUNC void sn_collide_plane_capsule_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                          const SnContactBar *bar, sn_real *wrench) {
  sn_real axis[3], arm[3], end[3], force[3];
  sn_shape_axis(axis, b->mat);
  sn_scale3(arm, axis, con->feature ? -b->size[1] : b->size[1]);
  sn_add3(end, b->pos, arm);
  sn_plane_point_vjp(a, con->frame, end, b->size[0], con->dist, bar, wrench, force);
  sn_push_arm(wrench + 6, arm, force);
  sn_turn(wrench + 6, axis, bar->tangent_hint);
}

// The rim point that lies deepest, the rim point opposite to it along the axis, then two more of the near cap which
// make with the first an equilateral triangle.
SN_FUNC int sn_collide_plane_cylinder(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const sn_real radius = b->size[0], half = b->size[1];
  sn_real normal[3], axis[3], down[3], point[3], side[3];
  sn_shape_axis(normal, a->mat);
  sn_shape_axis(axis, b->mat);
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
    sn_contact_write(con + n++, dist, point, normal, k);
  }
  return n;
}

// Feature k: which of the four points. It is half c A + alpha D + beta S from the centre, with A the unit axis towards
// the plane, D = radius q / |q|, q = A (n.A) - n, and S = sqrt(3)/2 D x A. Where the cap is parallel to the plane (the
// sine |q| below SN_STEADY_SINE) the points are taken as fixed to the cylinder.
SN_FUNC void sn_collide_plane_cylinder_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                           const SnContactBar *bar, sn_real *wrench) {
  const sn_real *n = con->frame, half = b->size[1], root = sn_sqrt(SN_R(3.0)) / 2;
  const int k = con->feature;
  const sn_real c = k == 1 ? -half : half, alpha = k < 2 ? SN_R(1.0) : SN_R(-0.5),
                beta = k < 2 ? SN_R(0.0) : (k == 2 ? root : -root);
  sn_real axis[3], force[3], point[3], arm[3], q[3], down[3], side_bar[3], down_bar[3], q_bar[3], axis_bar[3];
  sn_addscl3(point, con->pos, n, con->dist / 2);
  sn_plane_point_vjp(a, n, point, 0, con->dist, bar, wrench, force);
  sn_shape_axis(axis, b->mat);
  sn_sub3(arm, point, b->pos);
  if (sn_dot3(arm, axis) * c < 0) sn_scale3(axis, axis, -1);  // as the forward chose where the cylinder lies flat
  const sn_real slope = sn_dot3(n, axis);
  sn_scale3(q, axis, slope);
  sn_subfrom3(q, n);
  const sn_real sine = sn_norm3(q);
  if (sine < SN_STEADY_SINE) {
    sn_push(wrench + 6, b, point, force);
    return;
  }
  sn_scale3(down, q, 1 / sine);  // D / radius
  sn_scale3(side_bar, force, beta);
  sn_cross(arm, axis, side_bar);
  sn_scale3(down_bar, force, alpha);
  sn_addto3(down_bar, arm);
  sn_direction_vjp(q_bar, down, sine / b->size[0], down_bar);
  const sn_real along = sn_dot3(axis, q_bar);
  sn_cross(axis_bar, side_bar, down);  // radius missing
  for (int i = 0; i < 3; ++i) axis_bar[i] = c * force[i] + b->size[0] * axis_bar[i] + slope * q_bar[i] + along * n[i];
  sn_addto3(wrench + 9, force);
  sn_turn(wrench + 6, axis, axis_bar);
  sn_scale3(q_bar, q_bar, -1);  // of the normal
  sn_addtoscl3(q_bar, axis, along);
  sn_turn(wrench, n, q_bar);
}

// Corners on the lower side of the centre, in binary order of their signs, at most four.
SN_FUNC int sn_collide_plane_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real normal[3], d[3], local[3], corner[3], point[3], pos[3];
  sn_shape_axis(normal, a->mat);
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
    sn_contact_write(con + n++, dist, pos, normal, i);
  }
  return n;
}

// Feature: the corner, fixed to the box.
SN_FUNC void sn_collide_plane_box_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                                      sn_real *wrench) {
  sn_real point[3], force[3];
  sn_addscl3(point, con->pos, con->frame, con->dist / 2);
  sn_plane_point_vjp(a, con->frame, point, 0, con->dist, bar, wrench, force);
  sn_push(wrench + 6, b, point, force);
}

// Support point of an ellipsoid in local direction dir.
SN_LOCAL void plane_ellipsoid_support(sn_real *r, const sn_real *size, const sn_real *dir) {
  for (int i = 0; i < 3; ++i) r[i] = dir[i] * size[i];
  sn_normalize3(r);
  for (int i = 0; i < 3; ++i) r[i] *= size[i];
}

// The vertices of a mesh and its convex hull: mesh_graph holds, for numvert hull vertices, the first edge, the vertex
// of the mesh, and then lists of neighbours ended by -1.
typedef struct PlaneHull {
  const sn_real *vert;
  int nvert;
  const int *edge, *id, *neighbour;  // NULL: every vertex is looked at
  const int *seed;                   // hull vertices that lie farthest in 27 directions
} PlaneHull;

enum { PLANE_CLIMB_MIN = 10 };  // meshes with fewer vertices are searched

SN_LOCAL PlaneHull plane_hull(const SnModel *m, int mesh) {
  PlaneHull h = {.vert = m->mesh_vert + 3 * m->mesh_vertadr[mesh],
                 .nvert = m->mesh_vertnum[mesh],
                 .edge = NULL,
                 .id = NULL,
                 .neighbour = NULL,
                 .seed = m->mesh_extrema + 27 * mesh};
  if (m->mesh_graphadr[mesh] < 0 || h.nvert < PLANE_CLIMB_MIN) return h;
  const int *graph = m->mesh_graph + m->mesh_graphadr[mesh];
  h.edge = graph + 2;
  h.id = graph + 2 + graph[0];
  h.neighbour = graph + 2 + 2 * graph[0];
  return h;
}

// The vertex that lies farthest in direction dir (unit): by climbing the hull from a seed. Of equals the first.
SN_LOCAL int plane_mesh_support(const PlaneHull *h, const sn_real *dir) {
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
typedef struct PlaneFace {
  const sn_real *vert;  // of the mesh
  const int *list;      // vertices of the face, in order
  int n, first;
} PlaneFace;

SN_LOCAL const sn_real *plane_face_vertex(const PlaneFace *f, int i) {
  return f->vert + 3 * f->list[(f->first + i) % f->n];
}

// Twice the area of the quadrilateral of vertices 0, q[0], q[1], q[2] of a face.
SN_LOCAL sn_real plane_quad_area(const PlaneFace *f, const int *q) {
  sn_real d1[3], d2[3], n[3];
  sn_sub3(d1, plane_face_vertex(f, q[1]), plane_face_vertex(f, 0));
  sn_sub3(d2, plane_face_vertex(f, q[2]), plane_face_vertex(f, q[0]));
  sn_cross(n, d1, d2);
  return sn_norm3(n);
}

// Moves corner k of the quadrilateral on while that makes it larger; true when it moved.
SN_LOCAL bool plane_quad_grow(const PlaneFace *f, int *q, int k, bool once, sn_real *area) {
  bool moved = false;
  do {
    int t[3] = {q[0], q[1], q[2]};
    t[k] = (t[k] + 1) % f->n;
    const sn_real x = plane_quad_area(f, t);
    if (!(x > *area)) break;
    *area = x;
    q[k] = t[k];
    moved = true;
  } while (!once);
  return moved;
}

// The corners, after vertex 0, of a large quadrilateral in a face of more than four vertices.
SN_LOCAL void plane_large_quad(const PlaneFace *f, int *q) {
  for (int k = 0; k < 3; ++k) q[k] = k + 1;
  sn_real area = plane_quad_area(f, q);
  while (plane_quad_grow(f, q, 2, true, &area)) {
    plane_quad_grow(f, q, 1, false, &area);
    plane_quad_grow(f, q, 0, false, &area);
  }
}

// The face at vertex v whose normal points most in direction dir, starting at v; n is 1 when the mesh has no faces.
SN_LOCAL PlaneFace plane_face(const SnModel *m, int mesh, int v, const sn_real *dir) {
  const int at = m->mesh_vertadr[mesh] + v, *map = m->mesh_polymap + m->mesh_polymapadr[at];
  PlaneFace f = {.vert = m->mesh_vert + 3 * m->mesh_vertadr[mesh], .list = NULL, .n = 1, .first = 0};
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
SN_LOCAL int plane_mesh(const SnModel *m, const SnShape *a, const SnShape *b, const sn_real *normal, sn_real reach,
                        SnContact *con) {
  const int mesh = m->geom_dataid[b->geom];
  const PlaneHull h = plane_hull(m, mesh);
  sn_real down[3], dir[3], d[3], point[3];
  sn_scale3(down, normal, -1);
  sn_mulmattvec3(dir, b->mat, down);
  const int deepest = plane_mesh_support(&h, dir);
  sn_mulmatvec3(point, b->mat, h.vert + 3 * deepest);
  sn_addto3(point, b->pos);
  if (!sn_plane_point(a->pos, normal, point, 0, reach, con)) return 0;
  con->feature = deepest;
  const PlaneFace face = plane_face(m, mesh, deepest, dir);
  int corner[3] = {1, 2, 3}, n = 1;
  if (face.n > 4) plane_large_quad(&face, corner);
  for (int k = 0; k < sn_mini(face.n, 4) - 1; ++k) {
    const sn_real *vert = plane_face_vertex(&face, corner[k]);
    if (sn_dot3(dir, vert) < 0) continue;
    sn_mulmatvec3(point, b->mat, vert);
    sn_addto3(point, b->pos);
    sn_sub3(d, point, a->pos);
    const sn_real dist = sn_dot3(normal, d);
    if (dist > reach) continue;
    sn_addtoscl3(point, normal, SN_R(-0.5) * dist);
    sn_contact_write(con + n++, dist, point, normal, (int)(vert - h.vert) / 3);
  }
  return n;
}

SN_FUNC int sn_collide_plane_convex(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach,
                                    SnContact *con) {
  sn_real normal[3], down[3], local[3], point[3];
  sn_shape_axis(normal, a->mat);
  if (m->geom_type[b->geom] == SN_GEOM_MESH) return plane_mesh(m, a, b, normal, reach, con);
  sn_scale3(down, normal, -1);
  sn_mulmattvec3(local, b->mat, down);
  plane_ellipsoid_support(point, b->size, local);
  sn_mulmatvec3(local, b->mat, point);
  sn_add3(point, local, b->pos);
  return sn_plane_point(a->pos, normal, point, 0, reach, con);
}

// A vertex is fixed to the mesh (at edges and faces parallel to the plane: the one taken). The lowest point of an
// ellipsoid is S u, u = S d / |S d|, in its frame, with S the half axes and d the direction -n there.
SN_FUNC void sn_collide_plane_convex_vjp(const SnModel *m, const SnShape *a, const SnShape *b, const SnContact *con,
                                         const SnContactBar *bar, sn_real *wrench) {
  const sn_real *n = con->frame;
  sn_real point[3], force[3], u[3], bar_l[3], d_bar[3];
  sn_addscl3(point, con->pos, n, con->dist / 2);
  sn_plane_point_vjp(a, n, point, 0, con->dist, bar, wrench, force);
  sn_push(wrench + 6, b, point, force);
  if (m->geom_type[b->geom] == SN_GEOM_MESH) return;
  sn_mulmattvec3(u, b->mat, n);
  sn_mulmattvec3(bar_l, b->mat, force);
  for (int i = 0; i < 3; ++i) {
    u[i] *= -b->size[i];
    bar_l[i] *= b->size[i];
  }
  const sn_real length = sn_normalize3(u);
  sn_direction_vjp(d_bar, u, length, bar_l);
  for (int i = 0; i < 3; ++i) d_bar[i] *= -b->size[i];
  sn_mulmatvec3(bar_l, b->mat, d_bar);  // of the normal, at a fixed ellipsoid
  sn_turn(wrench, n, bar_l);
  sn_scale3(bar_l, bar_l, -1);
  sn_turn(wrench + 6, n, bar_l);
}
