// Where a ray meets a shape, and whether a point is inside one, with MuJoCo's conventions (mj_ray, mju_rayGeom,
// mju_insideGeom): the first point at p + x v, x >= 0, also from inside; of a plane its front alone, as far as it is
// drawn. In the frame of the shape:
//
//   plane      z = 0
//   sphere     |q|^2 = r^2
//   ellipsoid  sum (q_k / s_k)^2 = 1
//   capsule    a round side between its ends, and the outer halves of the two spheres at them
//   cylinder   a round side, and discs
//   box        six faces
//
// All of them are planes and quadrics: a x^2 + 2 b x + c = 0, of which the roots are looked at that lie on the piece.
// Meshes and height fields are triangles: ray_mesh.c.
//
// A normal turns along a curved surface: of a quadric with gradient g = D (q - c), D diagonal, a displacement of q
// moves g by D dq. So what a hit says of the curvature is D over the length of g; 0 where the surface is flat.
#include "physics/base/vec.h"
#include "physics/collision/ray_private.h"

SN_FUNC void sn_ray_take(SnRay *r, sn_real x, const sn_real *normal, const sn_real *bend) {
  const sn_real flat[3] = {0, 0, 0};
  if (!(x >= 0) || (r->x >= 0 && r->x <= x)) return;
  r->x = x;
  sn_copy3(r->normal, normal);
  sn_copy3(r->bend, bend ? bend : flat);
}

// Roots of a x^2 + 2 b x + c, the smaller one first. False: there are none.
SN_LOCAL bool ray_roots(sn_real a, sn_real b, sn_real c, sn_real root[2]) {
  const sn_real square = b * b - a * c;
  if (square < 0 || a < SN_MINVAL) return false;
  root[0] = (-b - sn_sqrt(square)) / a;
  root[1] = (-b + sn_sqrt(square)) / a;
  return true;
}

// The surface sum ((q_k - c_k) s_k)^2 = 1 about c on the z axis; of its points those with part: 0 all, 1 z >= c, -1
// z <= c.
SN_LOCAL void ray_quadric(SnRay *r, const sn_real *s, sn_real c, int part) {
  const sn_real q[3] = {r->p[0] * s[0], r->p[1] * s[1], (r->p[2] - c) * s[2]};
  const sn_real u[3] = {r->v[0] * s[0], r->v[1] * s[1], r->v[2] * s[2]};
  sn_real root[2];
  if (!ray_roots(sn_dot3(u, u), sn_dot3(u, q), sn_dot3(q, q) - 1, root)) return;
  for (int k = 0; k < 2; ++k) {
    const sn_real at[3] = {q[0] + root[k] * u[0], q[1] + root[k] * u[1], q[2] + root[k] * u[2]};
    const sn_real normal[3] = {at[0] * s[0], at[1] * s[1], at[2] * s[2]};
    const sn_real bend[3] = {s[0] * s[0], s[1] * s[1], s[2] * s[2]};
    if (part * at[2] >= 0) sn_ray_take(r, root[k], normal, bend);
  }
}

// The round side of radius `radius` between -half and half on the z axis. Of the two points only the first that lies
// ahead counts, as in MuJoCo.
SN_LOCAL void ray_side(SnRay *r, sn_real radius, sn_real half) {
  sn_real root[2];
  const sn_real a = r->v[0] * r->v[0] + r->v[1] * r->v[1], b = r->v[0] * r->p[0] + r->v[1] * r->p[1];
  if (!ray_roots(a, b, r->p[0] * r->p[0] + r->p[1] * r->p[1] - radius * radius, root)) return;
  const sn_real x = root[0] >= 0 ? root[0] : root[1];
  const sn_real normal[3] = {r->p[0] + x * r->v[0], r->p[1] + x * r->v[1], 0}, bend[3] = {1, 1, 0};
  if (sn_abs(r->p[2] + x * r->v[2]) <= half) sn_ray_take(r, x, normal, bend);
}

// The face at `side` half extents along axis k of a box; or, of a cylinder (round), the disc of radius size[0]. Returns
// how far along the ray it is met; -1: behind, or never.
SN_LOCAL sn_real ray_face(SnRay *r, const sn_real *size, int k, sn_real side, bool round) {
  const int i = (k + 1) % 3, j = (k + 2) % 3;
  if (sn_abs(r->v[k]) <= SN_MINVAL) return -1;
  const sn_real half = round ? size[1] : size[k], x = (side * half - r->p[k]) / r->v[k];
  const sn_real a = r->p[i] + x * r->v[i], b = r->p[j] + x * r->v[j];
  const bool inside = round ? a * a + b * b <= size[0] * size[0] : sn_abs(a) <= size[i] && sn_abs(b) <= size[j];
  sn_real n[3] = {0, 0, 0};
  n[k] = side;
  if (!inside || !(x >= 0)) return -1;
  sn_ray_take(r, x, n, NULL);
  return x;
}

SN_FUNC void sn_ray_box(SnRay *r, const sn_real *size, sn_real all[6]) {
  for (int k = 0; k < 6; ++k) {
    const sn_real x = ray_face(r, size, k / 2, k % 2 ? SN_R(1.0) : SN_R(-1.0), false);
    if (all) all[k] = x;
  }
}

SN_LOCAL void ray_plane(SnRay *r, const sn_real *size) {
  const sn_real up[3] = {0, 0, 1};
  if (r->v[2] > -SN_MINVAL) return;
  const sn_real x = -r->p[2] / r->v[2], a = r->p[0] + x * r->v[0], b = r->p[1] + x * r->v[1];
  if ((size[0] <= 0 || sn_abs(a) <= size[0]) && (size[1] <= 0 || sn_abs(b) <= size[1])) sn_ray_take(r, x, up, NULL);
}

SN_FUNC bool sn_ray_meets(int type) { return type == SN_GEOM_PLANE || (type >= SN_GEOM_SPHERE && type <= SN_GEOM_BOX); }

// What is made of closed forms.
SN_LOCAL void ray_primitive(SnRay *r, int type, const sn_real *size) {
  const sn_real inverse = SN_R(1.0) / size[0];
  sn_real s[3] = {inverse, inverse, inverse};
  switch (type) {
    case SN_GEOM_PLANE:
      ray_plane(r, size);
      break;
    case SN_GEOM_SPHERE:
      ray_quadric(r, s, 0, 0);
      break;
    case SN_GEOM_ELLIPSOID:
      sn_set3(s, inverse, SN_R(1.0) / size[1], SN_R(1.0) / size[2]);
      ray_quadric(r, s, 0, 0);
      break;
    case SN_GEOM_CAPSULE:
      ray_side(r, size[0], size[1]);
      ray_quadric(r, s, size[1], 1);
      ray_quadric(r, s, -size[1], -1);
      break;
    case SN_GEOM_CYLINDER:
      ray_face(r, size, 2, -1, true);
      ray_face(r, size, 2, 1, true);
      ray_side(r, size[0], size[1]);
      break;
    case SN_GEOM_BOX:
      sn_ray_box(r, size, NULL);
      break;
    default:
      break;
  }
}

SN_FUNC sn_real sn_ray(const SnModel *m, const SnRayShape *shape, const sn_real *from, const sn_real *along,
                       SnRayHit *hit) {
  SnRay r = {{0}, {0}, -1, {0}, {0}};
  sn_real d[3];
  sn_sub3(d, from, shape->pos);
  sn_mulmattvec3(r.p, shape->mat, d);
  sn_mulmattvec3(r.v, shape->mat, along);
  if (shape->type == SN_GEOM_MESH)
    sn_ray_mesh(m, shape->data, shape->size, &r);
  else if (shape->type == SN_GEOM_HFIELD)
    sn_ray_hfield(m, shape->data, &r);
  else
    ray_primitive(&r, shape->type, shape->size);
  if (r.x < 0 || !hit) return r.x;
  const sn_real length = sn_normalize3(r.normal);
  sn_mulmatvec3(hit->normal, shape->mat, r.normal);
  sn_scale3(hit->bend, r.bend, SN_R(1.0) / length);
  return r.x;
}

// Whether a point is behind all faces of a mesh's hull. A site stands in the frame of the mesh's file.
SN_LOCAL bool ray_in_hull(const SnModel *m, int mesh, const sn_real *point) {
  const sn_real *vert = m->mesh_vert + 3 * m->mesh_vertadr[mesh];
  sn_real back[4], from[3], q[3];
  sn_negquat(back, m->mesh_quat + 4 * mesh);
  sn_sub3(from, point, m->mesh_pos + 3 * mesh);
  sn_rotquat(q, from, back);
  for (int p = m->mesh_polyadr[mesh]; p < m->mesh_polyadr[mesh] + m->mesh_polynum[mesh]; ++p) {
    sn_real d[3];
    sn_sub3(d, q, vert + 3 * m->mesh_polyvert[m->mesh_polyvertadr[p]]);
    if (sn_dot3(m->mesh_polynormal + 3 * p, d) >= 0) return false;
  }
  return true;
}

SN_FUNC bool sn_shape_contains(const SnModel *m, const SnRayShape *shape, const sn_real *point) {
  const sn_real *s = shape->size;
  sn_real d[3], q[3];
  sn_sub3(d, point, shape->pos);
  sn_mulmattvec3(q, shape->mat, d);
  const sn_real across = q[0] * q[0] + q[1] * q[1], beyond = q[2] - sn_clip(q[2], -s[1], s[1]);
  switch (shape->type) {
    case SN_GEOM_SPHERE:
      return sn_dot3(d, d) < s[0] * s[0];
    case SN_GEOM_CAPSULE:
      return across + beyond * beyond < s[0] * s[0];
    case SN_GEOM_ELLIPSOID:
      return q[0] * q[0] / (s[0] * s[0]) + q[1] * q[1] / (s[1] * s[1]) + q[2] * q[2] / (s[2] * s[2]) < 1;
    case SN_GEOM_CYLINDER:
      return sn_abs(q[2]) < s[1] && across < s[0] * s[0];
    case SN_GEOM_BOX:
      return sn_abs(q[0]) < s[0] && sn_abs(q[1]) < s[1] && sn_abs(q[2]) < s[2];
    case SN_GEOM_PLANE:
      return q[2] < 0;
    case SN_GEOM_MESH:
      return ray_in_hull(m, shape->data, q);
    default:
      return false;
  }
}
