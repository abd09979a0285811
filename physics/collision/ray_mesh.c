// Where a ray meets triangles: of a mesh, of a height field.
//
// Triangle (mju_rayTriangle). With b0, b1 across the ray, the corners less the ray's origin are projected to the plane
// of these two, where the ray is the origin. The triangle is met where the origin's barycentric coordinates there are
// all in [0, 1]; how far along says the plane of the triangle.
//
// Mesh. Boxes of a balanced binary tree (model/setup_ray.c): node k of level l has the triangles from n k / 2^l to
// n (k + 1) / 2^l of mesh_raytri, so that children and triangles follow from its number. The nearer child comes first,
// and what lies behind the nearest hit is left out. MuJoCo has a tree of its own; both meet the same triangles.
//
// Height field. A box below the surface, and cells of two triangles each. Only cells near the ray are looked at: in a
// row of them those between the ray's ends there, one more to each side. Where the ray meets a side of the field's box
// below the line between two heights, that side is met, as in mj_rayHfield.
//
// Not smooth: a ray through an edge meets either of two triangles.
#include "physics/base/vec.h"
#include "physics/collision/ray_private.h"

// Two unit vectors across a ray.
typedef struct RayAcross {
  sn_real b0[3], b1[3];
} RayAcross;

SN_LOCAL RayAcross ray_across(const sn_real *v) {
  RayAcross r;
  sn_real b0[3] = {1, 1, 1};
  const sn_real x = sn_abs(v[0]), y = sn_abs(v[1]), z = sn_abs(v[2]);
  b0[x >= y && x >= z ? 0 : y >= z ? 1 : 2] = 0;
  sn_addscl3(r.b1, b0, v, -sn_dot3(v, b0) / sn_dot3(v, v));
  sn_normalize3(r.b1);
  sn_cross(r.b0, r.b1, v);
  sn_normalize3(r.b0);
  return r;
}

// True where three numbers lie on one side of 0.
SN_LOCAL bool ray_one_side(const sn_real *x) {
  return (x[0] > 0 && x[1] > 0 && x[2] > 0) || (x[0] < 0 && x[1] < 0 && x[2] < 0);
}

SN_LOCAL void ray_triangle(SnRay *r, const RayAcross *across, const sn_real *const corner[3]) {
  sn_real a[3], b[3], d[3], side[2][3], normal[3];
  for (int k = 0; k < 3; ++k) {
    sn_sub3(d, corner[k], r->p);
    a[k] = sn_dot3(across->b0, d);
    b[k] = sn_dot3(across->b1, d);
  }
  if (ray_one_side(a) || ray_one_side(b)) return;
  const sn_real A[4] = {a[0] - a[2], a[1] - a[2], b[0] - b[2], b[1] - b[2]};
  const sn_real det = A[0] * A[3] - A[1] * A[2];
  if (sn_abs(det) < SN_MINVAL) return;
  const sn_real t0 = (A[3] * -a[2] - A[1] * -b[2]) / det, t1 = (-A[2] * -a[2] + A[0] * -b[2]) / det;
  if (t0 < 0 || t1 < 0 || t0 + t1 > 1) return;
  sn_sub3(side[0], corner[0], corner[2]);
  sn_sub3(side[1], corner[1], corner[2]);
  sn_sub3(d, r->p, corner[2]);
  sn_cross(normal, side[0], side[1]);
  const sn_real slope = sn_dot3(r->v, normal);
  if (sn_abs(slope) < SN_MINVAL) return;
  sn_ray_take(r, -sn_dot3(d, normal) / slope, normal, NULL);
}

// ---- mesh ----

// How far along a ray enters a box (lower corner, upper corner); -1: it does not.
SN_LOCAL sn_real ray_enters(const SnRay *r, const sn_real *box) {
  sn_real low = 0, high = SN_MAXVAL;
  for (int k = 0; k < 3; ++k) {
    if (r->v[k] == 0) {
      if (r->p[k] < box[k] || r->p[k] > box[3 + k]) return -1;
      continue;
    }
    const sn_real inverse = SN_R(1.0) / r->v[k];
    const sn_real s = (box[k] - r->p[k]) * inverse, t = (box[3 + k] - r->p[k]) * inverse;
    low = sn_max(low, sn_min(s, t));
    high = sn_min(high, sn_max(s, t));
  }
  return low <= high ? low : -1;
}

// The triangles of a leaf.
SN_LOCAL void ray_leaf(const SnModel *m, int mesh, SnRay *r, const RayAcross *across, int first, int end) {
  const int face = m->mesh_faceadr[mesh];
  const sn_real *vert = m->mesh_vert + 3 * m->mesh_vertadr[mesh];
  for (int i = first; i < end; ++i) {
    const int *v = m->mesh_face + 3 * (face + m->mesh_raytri[face + i]);
    const sn_real *const corner[3] = {vert + 3 * v[0], vert + 3 * v[1], vert + 3 * v[2]};
    ray_triangle(r, across, corner);
  }
}

SN_FUNC void sn_ray_mesh(const SnModel *m, int mesh, const sn_real *size, SnRay *r) {
  enum { DEEP = 2 * SN_RAY_LEVELS + 2 };
  struct {
    int node, level;
    sn_real from;
  } stack[DEEP];
  SnRay around = *r;
  sn_ray_box(&around, size, NULL);
  const int n = m->mesh_facenum[mesh], levels = m->mesh_raylevels[mesh];
  const sn_real *box = m->mesh_raybox + 6 * (ptrdiff_t)m->mesh_rayadr[mesh];
  const RayAcross across = ray_across(r->v);
  int top = 0;
  if (around.x < 0 || n == 0) return;
  stack[top].node = stack[top].level = 0;
  stack[top++].from = ray_enters(r, box);
  while (top > 0) {
    const int node = stack[--top].node, level = stack[top].level;
    const sn_real from = stack[top].from;
    if (from < 0 || (r->x >= 0 && from > r->x)) continue;
    if (level == levels) {
      const int64_t k = node - ((1 << level) - 1);
      ray_leaf(m, mesh, r, &across, (int)((n * k) >> level), (int)((n * (k + 1)) >> level));
      continue;
    }
    const int child = 2 * node + 1;
    const sn_real near[2] = {ray_enters(r, box + 6 * (ptrdiff_t)child), ray_enters(r, box + 6 * (ptrdiff_t)child + 6)};
    const int later = near[0] <= near[1];
    for (int e = 0; e < 2; ++e) {
      const int which = e == 0 ? later : 1 - later;
      stack[top].node = child + which;
      stack[top].level = level + 1;
      stack[top++].from = near[which];
    }
  }
}

// ---- height field ----

// A height field with a ray in units of its cells.
typedef struct RayField {
  const sn_real *data, *size;
  int nrow, ncol;
  sn_real dx, dy;        // a cell [m]
  sn_real sx[2], sy[2];  // ends of the part of the ray inside the field's box
} RayField;

// First and last column of the cells that the ray may meet in row `row` of them; the last one is not among them.
SN_LOCAL void ray_columns(const RayField *f, int row, int *first, int *end) {
  const sn_real rise = f->sy[1] - f->sy[0], run = f->sx[1] - f->sx[0];
  sn_real low = 0, high = 1;
  if (sn_abs(rise) > SN_R(1e-6)) {
    const sn_real s = ((sn_real)(row - 1) - f->sy[0]) / rise, t = ((sn_real)(row + 2) - f->sy[0]) / rise;
    low = sn_clip(sn_min(s, t), 0, 1);
    high = sn_clip(sn_max(s, t), 0, 1);
  }
  const sn_real a = f->sx[0] + low * run, b = f->sx[0] + high * run;
  *first = sn_maxi(0, (int)sn_floor(sn_min(a, b)) - 1);
  *end = sn_mini(f->ncol - 1, -(int)sn_floor(-sn_max(a, b)) + 1);
}

// The two triangles of a cell.
SN_LOCAL void ray_cell(SnRay *r, const RayAcross *across, const RayField *f, int row, int col) {
  sn_real corner[4][3];  // (row, col), (row, col + 1), (row + 1, col + 1), (row + 1, col)
  for (int k = 0; k < 4; ++k) {
    const int i = row + (k > 1), j = col + (k == 1 || k == 2);
    sn_set3(corner[k], f->dx * (sn_real)j - f->size[0], f->dy * (sn_real)i - f->size[1],
            f->data[i * f->ncol + j] * f->size[2]);
  }
  const sn_real *const one[3] = {corner[0], corner[1], corner[2]}, *const two[3] = {corner[0], corner[2], corner[3]};
  ray_triangle(r, across, one);
  ray_triangle(r, across, two);
}

// Side `k` (-x, x, -y, y) of the field's box, which the ray meets at x.
SN_LOCAL void ray_field_side(SnRay *r, const RayField *f, int k, sn_real x) {
  const bool along_y = k < 2;
  const int n = along_y ? f->nrow : f->ncol, e = along_y ? 1 : 0;
  const sn_real z = (r->p[2] + x * r->v[2]) / f->size[2];
  const sn_real at = (r->p[e] + x * r->v[e] + f->size[e]) / (along_y ? f->dy : f->dx);
  const int cell = (int)sn_clip(sn_floor(at), 0, (sn_real)(n - 2));
  const int stride = along_y ? f->ncol : 1, start = k == 1 ? f->ncol - 1 : k == 3 ? (f->nrow - 1) * f->ncol : 0;
  const sn_real low = f->data[start + cell * stride], high = f->data[start + (cell + 1) * stride];
  sn_real normal[3] = {0, 0, 0};
  normal[k / 2] = k % 2 ? SN_R(1.0) : SN_R(-1.0);
  if (z < low * ((sn_real)cell + 1 - at) + high * (at - (sn_real)cell)) sn_ray_take(r, x, normal, NULL);
}

SN_FUNC void sn_ray_hfield(const SnModel *m, int hfield, SnRay *r) {
  const sn_real *size = m->hfield_size + 4 * hfield;
  const sn_real base[3] = {size[0], size[1], size[3] * SN_R(0.5)}, above[3] = {size[0], size[1], size[2] * SN_R(0.5)};
  const int nrow = m->hfield_nrow[hfield], ncol = m->hfield_ncol[hfield];
  RayField f = {m->hfield_data + m->hfield_adr[hfield], size, nrow, ncol, 2 * size[0] / (sn_real)(ncol - 1),
                2 * size[1] / (sn_real)(nrow - 1),      {0},  {0}};
  const sn_real z = r->p[2];
  sn_real all[6], part[2] = {0, 0};
  SnRay box = *r;
  r->p[2] = z + base[2];
  sn_ray_box(r, base, NULL);
  r->p[2] = z;
  box.p[2] = z - above[2];
  sn_ray_box(&box, above, all);
  if (box.x < 0) return;
  part[1] = box.x;
  for (int k = 0; k < 6; ++k) {
    if (all[k] <= part[1]) continue;
    part[0] = box.x;
    part[1] = all[k];
  }
  for (int k = 0; k < 2; ++k) {
    f.sx[k] = (r->p[0] + part[k] * r->v[0] + size[0]) / f.dx;
    f.sy[k] = (r->p[1] + part[k] * r->v[1] + size[1]) / f.dy;
  }
  const RayAcross across = ray_across(r->v);
  const int top = sn_maxi(0, (int)sn_floor(sn_min(f.sy[0], f.sy[1])) - 1);
  const int bottom = sn_mini(nrow - 1, -(int)sn_floor(-sn_max(f.sy[0], f.sy[1])) + 1);
  for (int i = top; i < bottom; ++i) {
    int first, end;
    ray_columns(&f, i, &first, &end);
    for (int j = first; j < end; ++j) ray_cell(r, &across, &f, i, j);
  }
  for (int k = 0; k < 4; ++k)
    if (all[k] >= 0) ray_field_side(r, &f, k, all[k]);
}

SN_FUNC bool sn_ray_meets_geom(const SnModel *m, int g) {
  const int data = m->geom_dataid[g];
  if (m->geom_type[g] == SN_GEOM_MESH) return m->mesh_facenum[data] > 0;
  if (m->geom_type[g] == SN_GEOM_HFIELD) return data >= 0 && m->hfield_nrow[data] > 1 && m->hfield_ncol[data] > 1;
  return sn_ray_meets(m->geom_type[g]);
}
