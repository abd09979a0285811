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
#include "physics/base/vec.h"
#include "physics/sensor/sensor_private.h"

// A ray in the frame of a shape, and the nearest hit so far.
typedef struct Ray {
  sn_real p[3], v[3];
  sn_real x;          // -1: none
  sn_real normal[3];  // outwards, of any length
} Ray;

// Takes the point at x as the nearest hit, whose normal is n.
SN_LOCAL void ray_take(Ray *r, sn_real x, sn_real nx, sn_real ny, sn_real nz) {
  if (!(x >= 0) || (r->x >= 0 && r->x <= x)) return;
  r->x = x;
  sn_set3(r->normal, nx, ny, nz);
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
SN_LOCAL void ray_quadric(Ray *r, const sn_real *s, sn_real c, int part) {
  const sn_real q[3] = {r->p[0] * s[0], r->p[1] * s[1], (r->p[2] - c) * s[2]};
  const sn_real u[3] = {r->v[0] * s[0], r->v[1] * s[1], r->v[2] * s[2]};
  sn_real root[2];
  if (!ray_roots(sn_dot3(u, u), sn_dot3(u, q), sn_dot3(q, q) - 1, root)) return;
  for (int k = 0; k < 2; ++k) {
    const sn_real at[3] = {q[0] + root[k] * u[0], q[1] + root[k] * u[1], q[2] + root[k] * u[2]};
    if (part * at[2] >= 0) ray_take(r, root[k], at[0] * s[0], at[1] * s[1], at[2] * s[2]);
  }
}

// The round side of radius `radius` between -half and half on the z axis. Of the two points only the first that lies
// ahead counts, as in MuJoCo.
SN_LOCAL void ray_side(Ray *r, sn_real radius, sn_real half) {
  sn_real root[2];
  const sn_real a = r->v[0] * r->v[0] + r->v[1] * r->v[1], b = r->v[0] * r->p[0] + r->v[1] * r->p[1];
  if (!ray_roots(a, b, r->p[0] * r->p[0] + r->p[1] * r->p[1] - radius * radius, root)) return;
  const sn_real x = root[0] >= 0 ? root[0] : root[1];
  if (sn_abs(r->p[2] + x * r->v[2]) <= half) ray_take(r, x, r->p[0] + x * r->v[0], r->p[1] + x * r->v[1], 0);
}

// The face at `side` half extents along axis k of a box; or, of a cylinder (round), the disc of radius size[0].
SN_LOCAL void ray_face(Ray *r, const sn_real *size, int k, sn_real side, bool round) {
  const int i = (k + 1) % 3, j = (k + 2) % 3;
  if (sn_abs(r->v[k]) <= SN_MINVAL) return;
  const sn_real half = round ? size[1] : size[k], x = (side * half - r->p[k]) / r->v[k];
  const sn_real a = r->p[i] + x * r->v[i], b = r->p[j] + x * r->v[j];
  const bool inside = round ? a * a + b * b <= size[0] * size[0] : sn_abs(a) <= size[i] && sn_abs(b) <= size[j];
  sn_real n[3] = {0, 0, 0};
  n[k] = side;
  if (inside) ray_take(r, x, n[0], n[1], n[2]);
}

SN_LOCAL void ray_plane(Ray *r, const sn_real *size) {
  if (r->v[2] > -SN_MINVAL) return;
  const sn_real x = -r->p[2] / r->v[2], a = r->p[0] + x * r->v[0], b = r->p[1] + x * r->v[1];
  if ((size[0] <= 0 || sn_abs(a) <= size[0]) && (size[1] <= 0 || sn_abs(b) <= size[1])) ray_take(r, x, 0, 0, 1);
}

SN_FUNC bool sn_ray_meets(int type) { return type == SN_GEOM_PLANE || (type >= SN_GEOM_SPHERE && type <= SN_GEOM_BOX); }

SN_FUNC sn_real sn_ray(const SnRayShape *shape, const sn_real *from, const sn_real *along, sn_real *normal) {
  const sn_real *size = shape->size;
  Ray r = {{0}, {0}, -1, {0}};
  sn_real d[3];
  sn_sub3(d, from, shape->pos);
  sn_mulmattvec3(r.p, shape->mat, d);
  sn_mulmattvec3(r.v, shape->mat, along);
  const sn_real inverse = SN_R(1.0) / size[0];
  sn_real s[3] = {inverse, inverse, inverse};
  switch (shape->type) {
    case SN_GEOM_PLANE:
      ray_plane(&r, size);
      break;
    case SN_GEOM_SPHERE:
      ray_quadric(&r, s, 0, 0);
      break;
    case SN_GEOM_ELLIPSOID:
      sn_set3(s, inverse, SN_R(1.0) / size[1], SN_R(1.0) / size[2]);
      ray_quadric(&r, s, 0, 0);
      break;
    case SN_GEOM_CAPSULE:
      ray_side(&r, size[0], size[1]);
      ray_quadric(&r, s, size[1], 1);
      ray_quadric(&r, s, -size[1], -1);
      break;
    case SN_GEOM_CYLINDER:
      ray_face(&r, size, 2, -1, true);
      ray_face(&r, size, 2, 1, true);
      ray_side(&r, size[0], size[1]);
      break;
    case SN_GEOM_BOX:
      for (int k = 0; k < 6; ++k) ray_face(&r, size, k / 2, k % 2 ? SN_R(1.0) : SN_R(-1.0), false);
      break;
    default:
      break;
  }
  if (r.x < 0 || !normal) return r.x;
  sn_normalize3(r.normal);
  sn_mulmatvec3(normal, shape->mat, r.normal);
  return r.x;
}

SN_FUNC bool sn_shape_contains(const SnRayShape *shape, const sn_real *point) {
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
    default:
      return false;
  }
}
