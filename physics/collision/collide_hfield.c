// Contacts of a height field with a convex shape.
//
// A height field is a grid of (nrow, ncol) heights over the rectangle of half extents size[0], size[1] in the geom's
// frame; its base lies at z = -size[3], and a height of 1 in the data is size[2]. Each cell of the grid is two
// triangles, and under each of them stands a prism down to the base: a convex shape of six corners. MuJoCo 4.0.0
// collides the other geom with every prism under its bounding box by GJK and EPA, one contact each, in the order of
// rows, columns, halves of a cell, and stops at 50. Ours follow it: all in the frame of the height field, the same
// corners, the same bounding box by six support points.
//
// What saves time: the plane of a prism's top bounds the prism, the base being below. Where the other geom is beyond
// that plane by more than rounding and the tolerance of the search, there is no contact, and no search.
//
// Worlds with contacts from distance have, of a pair that does not touch, the nearest points of the nearest prism.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"
#include "physics/collision/convex_private.h"

// The grid, the other geom in its frame, and the prism at hand. It refers to itself, so it stays where it is.
typedef struct SnTerrain {
  const sn_real *size, *data;  // (4), (nrow, ncol)
  int nrow, ncol;
  sn_real dx, dy;             // steps of the grid [m]
  sn_real pos[3], mat[9];     // of the other geom in the frame of the grid
  sn_real low[3], high[3];    // its bounding box
  int first[2], last[2];      // under it: rows first[0] to last[0] - 1, columns first[1] to last[1] - 1 of cells
  sn_real vert[18];           // corners of the prism: three of the base, then those above them
  sn_real origin[3], eye[9];  // frame of the prism: none
  SnCcd ccd;                  // the prism, and the other geom
  SnConvex probe;             // the other geom, for support points beside the search
} SnTerrain;

// Distance beyond the plane of a top at which the search is left out [m].
#ifdef SN_SINGLE
#define HFIELD_CLEAR SN_R(1e-4)
#else
#define HFIELD_CLEAR SN_R(1e-5)
#endif

SN_LOCAL void hfield_grid(SnTerrain *t, const SnModel *m, int geom) {
  const int id = m->geom_dataid[geom];
  t->size = m->hfield_size + 4 * id;
  t->data = m->hfield_data + m->hfield_adr[id];
  t->nrow = m->hfield_nrow[id];
  t->ncol = m->hfield_ncol[id];
  t->dx = 2 * t->size[0] / (sn_real)(t->ncol - 1);
  t->dy = 2 * t->size[1] / (sn_real)(t->nrow - 1);
}

// One corner of the grid: x, y and height.
SN_LOCAL void hfield_corner(const SnTerrain *t, int row, int col, sn_real *r) {
  r[0] = t->dx * (sn_real)col - t->size[0];
  r[1] = t->dy * (sn_real)row - t->size[1];
  r[2] = t->data[(size_t)row * (size_t)t->ncol + (size_t)col] * t->size[2];
}

// The prism of a half (0, 1) of the cell whose lowest row and column are given: corners in MuJoCo's order.
SN_LOCAL void hfield_prism(SnTerrain *t, int row, int col, int half) {
  sn_real *top = t->vert + 9;
  hfield_corner(t, half ? row : row + 1, col, top);
  hfield_corner(t, half ? row + 1 : row, half ? col + 1 : col, top + 3);
  hfield_corner(t, half ? row : row + 1, col + 1, top + 6);
  for (int k = 0; k < 3; ++k) sn_set3(t->vert + 3 * k, top[3 * k], top[3 * k + 1], -t->size[3]);
}

// The number of a prism, from which hfield_prism_of makes it again.
SN_LOCAL int hfield_number(const SnTerrain *t, int row, int col, int half) {
  return 2 * (row * (t->ncol - 1) + col) + half;
}

SN_LOCAL void hfield_prism_of(SnTerrain *t, int number) {
  const int cell = number / 2, row = cell / (t->ncol - 1);
  hfield_prism(t, row, cell - row * (t->ncol - 1), number % 2);
}

// Makes the convex shape of a prism, at a pose.
SN_LOCAL void hfield_convex(SnConvex *s, const sn_real *vert, const sn_real *pos, const sn_real *mat) {
  s->support = SN_SUPPORT_PRISM;
  s->type = SN_GEOM_HFIELD;
  s->pos = pos;
  s->mat = mat;
  s->size = vert;
  s->margin = 0;
  s->vertex = s->hull = -1;
  s->vert = vert;
  s->nvert = 6;
  s->npoly = 0;
}

// The other geom in the frame of the height field.
SN_LOCAL void hfield_place(SnTerrain *t, const SnShape *a, const SnShape *b) {
  sn_real d[3];
  sn_sub3(d, b->pos, a->pos);
  sn_mulmattvec3(t->pos, a->mat, d);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      t->mat[3 * i + j] = a->mat[i] * b->mat[j] + a->mat[3 + i] * b->mat[3 + j] + a->mat[6 + i] * b->mat[6 + j];
}

// Both shapes of the search.
SN_LOCAL void hfield_shapes(SnTerrain *t, const SnModel *m, const SnShape *b) {
  const SnShape local = {t->pos, t->mat, b->size, b->geom};
  sn_zero(t->origin, 3);
  sn_zero(t->eye, 9);
  t->eye[0] = t->eye[4] = t->eye[8] = 1;
  hfield_convex(&t->ccd.a, t->vert, t->origin, t->eye);
  sn_convex_init(&t->ccd.b, m, &local, 0);
  t->ccd.tolerance = sn_max(m->opt.ccd_tolerance, SN_CCD_TOLERANCE);
  t->ccd.iterations = m->opt.ccd_iterations;
  t->ccd.cutoff = 0;
}

// The bounding box of the other geom. Directions in MuJoCo's order: a mesh learns from each.
SN_LOCAL void hfield_bounds(SnTerrain *t) {
  for (int k = 0; k < 6; ++k) {
    sn_real dir[3] = {0, 0, 0}, r[3];
    dir[k / 2] = k % 2 ? SN_R(-1.0) : SN_R(1.0);
    sn_support(&t->ccd.b, dir, r);
    (k % 2 ? t->low : t->high)[k / 2] = r[k / 2];
  }
  t->probe = t->ccd.b;
}

// True when the ball around the other geom, or its bounding box, is within `reach` of the box around the grid. False
// for what is not a number.
SN_LOCAL bool hfield_near_ball(const SnTerrain *t, sn_real radius) {
  const sn_real *s = t->size, *p = t->pos;
  return p[0] - radius <= s[0] && p[0] + radius >= -s[0] && p[1] - radius <= s[1] && p[1] + radius >= -s[1] &&
         p[2] - radius <= s[2] && p[2] + radius >= -s[3];
}

SN_LOCAL bool hfield_near_box(const SnTerrain *t, sn_real reach) {
  const sn_real *s = t->size, *l = t->low, *h = t->high;
  return l[0] - reach <= s[0] && h[0] + reach >= -s[0] && l[1] - reach <= s[1] && h[1] + reach >= -s[1] &&
         l[2] - reach <= s[2] && h[2] + reach >= -s[3];
}

// The cells under the bounding box, grown by `reach`.
SN_LOCAL void hfield_cells(SnTerrain *t, sn_real reach) {
  for (int axis = 0; axis < 2; ++axis) {
    const sn_real size = t->size[axis];
    const int n = (axis == 0 ? t->ncol : t->nrow) - 1;
    const sn_real least = (t->low[axis] - reach + size) / (2 * size) * (sn_real)n;
    const sn_real most = (t->high[axis] + reach + size) / (2 * size) * (sn_real)n;
    t->first[1 - axis] = least > 0 ? (int)sn_floor(sn_min(least, (sn_real)n)) : 0;
    t->last[1 - axis] = most < (sn_real)n ? -(int)sn_floor(-sn_max(most, 0)) : n;
  }
}

// How far the other geom is beyond the plane of the prism's top [m]: no more than their distance.
SN_LOCAL sn_real hfield_above(SnTerrain *t) {
  const sn_real *top = t->vert + 9;
  sn_real e1[3], e2[3], n[3], back[3], r[3];
  sn_sub3(e1, top + 3, top);
  sn_sub3(e2, top + 6, top);
  sn_cross(n, e1, e2);
  if (n[2] < 0) sn_scale3(n, n, -1);
  sn_normalize3(n);
  sn_scale3(back, n, -1);
  sn_support(&t->probe, back, r);
  sn_subfrom3(r, top);
  return sn_dot3(n, r);
}

// Writes a contact of the prism, found in the frame of the grid, into the world.
SN_LOCAL void hfield_to_world(const SnShape *a, SnContact *con) {
  sn_real normal[3], pos[3];
  sn_copy3(normal, con->frame);
  sn_copy3(pos, con->pos);
  sn_mulmatvec3(con->frame, a->mat, normal);
  sn_mulmatvec3(con->pos, a->mat, pos);
  sn_addto3(con->pos, a->pos);
}

// The contact of the prism at hand; returns whether there is one.
SN_LOCAL bool hfield_touch(SnTerrain *t, const SnShape *a, int number, sn_real reach, SnContact *con) {
  SnCcd *c = &t->ccd;
  c->a.margin = c->b.margin = reach;
  if (!(sn_ccd(c, 1) < 0) || c->nx < 1) return false;
  sn_convex_contact(c, 0, reach, con);
  hfield_to_world(a, con);
  con->feature = number;
  return true;
}

// Everything up to the first prism. Returns false where none is within reach.
SN_LOCAL bool hfield_begin(SnTerrain *t, const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach) {
  hfield_grid(t, m, a->geom);
  if (t->nrow < 2 || t->ncol < 2) return false;
  hfield_place(t, a, b);
  if (!hfield_near_ball(t, m->geom_rbound[b->geom] + reach)) return false;
  hfield_shapes(t, m, b);
  hfield_bounds(t);
  return hfield_near_box(t, reach);
}

SN_FUNC int sn_collide_hfield(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach, SnContact *con,
                              int max) {
  SnTerrain t;
  int n = 0;
  if (!hfield_begin(&t, m, a, b, reach)) return 0;
  hfield_cells(&t, reach);
  const sn_real clear = reach + sn_max(HFIELD_CLEAR, SN_R(10.0) * t.ccd.tolerance), bottom = t.low[2] - reach;
  for (int row = t.first[0]; row < t.last[0]; ++row)
    for (int k = 2 * t.first[1]; k < 2 * t.last[1] && n < max; ++k) {
      hfield_prism(&t, row, k / 2, k % 2);
      const sn_real *top = t.vert + 9;
      if (top[2] < bottom && top[5] < bottom && top[8] < bottom) continue;
      if (hfield_above(&t) > clear) continue;
      n += hfield_touch(&t, a, hfield_number(&t, row, k / 2, k % 2), reach, con + n);
    }
  return n;
}

SN_FUNC bool sn_hfield_nearest(const SnModel *m, const SnShape *a, const SnShape *b, sn_real limit, SnContact *con) {
  SnTerrain t;
  con->dist = limit;
  if (!hfield_begin(&t, m, a, b, limit)) return true;
  hfield_cells(&t, sn_max(limit, 0));
  for (int row = t.first[0]; row < t.last[0]; ++row)
    for (int k = 2 * t.first[1]; k < 2 * t.last[1]; ++k) {
      SnContact found;
      hfield_prism(&t, row, k / 2, k % 2);
      if (hfield_above(&t) >= con->dist) continue;
      if (!sn_convex_nearest_shapes(m, &t.ccd, con->dist, &found)) return false;
      if (!(found.dist < con->dist)) continue;
      *con = found;
      con->feature = hfield_number(&t, row, k / 2, k % 2);
    }
  if (con->dist < limit) hfield_to_world(a, con);
  return true;
}

SN_FUNC bool sn_hfield_again(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach, bool far, int number,
                             SnContact *con) {
  SnTerrain t;
  hfield_grid(&t, m, a->geom);
  hfield_place(&t, a, b);
  hfield_shapes(&t, m, b);
  hfield_prism_of(&t, number);
  if (!far) return hfield_touch(&t, a, number, reach, con);
  if (!sn_convex_nearest_shapes(m, &t.ccd, SN_MAXVAL, con) || !(con->dist < SN_MAXVAL)) return false;
  hfield_to_world(a, con);
  con->feature = number;
  return true;
}

// The adjoint of a contact of two polyhedra in each other.
//
// There the search ends with a triangle of the difference of both shapes: corners v_k = a_k - b_k, k = 0, 1, 2, of
// corners of the shapes. MuJoCo ends it early at times (epa.c), with a triangle that is none of the difference's faces;
// what it writes is a smooth function of the triangle all the same. With the edges e_i = v_i - v_0, i = 1, 2, their
// dual vectors g_i in the plane (g_i'e_j = 1 for i = j, else 0), the normal n, h = n'v_0 and the barycentric
// coordinates l_k of the foot p = h n of the origin,
//
//   dist = -h,   pos = sum l_k c_k,   c_k = (a_k + b_k) / 2,
//   dh = n' sum l_k dv_k,   dn = -sum g_i n'de_i,   dl_i = g_i'(h dn - sum l_k dv_k).

// The triangle: corners of both shapes in the world.
typedef struct SnDifference {
  sn_real a[9], b[9], dual[6], weight[3];
} SnDifference;

// Corner `id` of a box, a mesh or a prism.
SN_LOCAL void hfield_vertex(const SnConvex *s, int id, sn_real *r) {
  sn_real local[3];
  if (s->type == SN_GEOM_BOX)
    for (int i = 0; i < 3; ++i) local[i] = id >> i & 1 ? s->size[i] : -s->size[i];
  else
    sn_copy3(local, s->vert + 3 * id);
  sn_mulmatvec3(r, s->mat, local);
  sn_addto3(r, s->pos);
}

// Finds the triangle of a contact. Returns false where there is none, or a thin one.
SN_LOCAL bool hfield_triangle(SnDifference *t, const SnConvex *a, const SnConvex *b, const SnContact *con) {
  sn_real v[9], e[6], g[3], foot[3];
  if (b->type != SN_GEOM_BOX && b->type != SN_GEOM_MESH) return false;
  for (int k = 0; k < 3; ++k) {
    if (con->corner[k] < 0 || con->corner[3 + k] < 0) return false;
    hfield_vertex(a, con->corner[k], t->a + 3 * k);
    hfield_vertex(b, con->corner[3 + k], t->b + 3 * k);
    sn_sub3(v + 3 * k, t->a + 3 * k, t->b + 3 * k);
  }
  for (int i = 0; i < 2; ++i) sn_sub3(e + 3 * i, v + 3 * (i + 1), v);
  sn_set3(g, sn_dot3(e, e), sn_dot3(e, e + 3), sn_dot3(e + 3, e + 3));
  const sn_real det = g[0] * g[2] - g[1] * g[1];
  if (!(det > SN_R(1e-12) * g[0] * g[2])) return false;
  for (int i = 0; i < 3; ++i) {
    t->dual[i] = (g[2] * e[i] - g[1] * e[3 + i]) / det;
    t->dual[3 + i] = (g[0] * e[3 + i] - g[1] * e[i]) / det;
  }
  sn_scale3(foot, con->frame, -con->dist);
  sn_subfrom3(foot, v);
  t->weight[1] = sn_dot3(t->dual, foot);
  t->weight[2] = sn_dot3(t->dual + 3, foot);
  t->weight[0] = 1 - t->weight[1] - t->weight[2];
  // is this the triangle that the contact is of?
  return sn_abs(sn_dot3(con->frame, v) + con->dist) < SN_STEADY_SINE &&
         sn_abs(sn_dot3(con->frame, e)) < SN_STEADY_SINE * sn_sqrt(g[0]) &&
         sn_abs(sn_dot3(con->frame, e + 3)) < SN_STEADY_SINE * sn_sqrt(g[2]);
}

SN_LOCAL void hfield_triangle_vjp(const SnDifference *t, const SnShape *a, const SnShape *b, const SnContact *con,
                                  const SnContactBar *bar, sn_real *wrench) {
  const sn_real *n = con->frame;
  sn_real slide[3] = {0, 0, 0}, normal[3], turn[3];
  for (int i = 1; i < 3; ++i) {  // sum of g_i times the bar of l_i
    sn_real c[3];
    for (int k = 0; k < 3; ++k) c[k] = SN_R(0.5) * (t->a[3 * i + k] + t->b[3 * i + k] - t->a[k] - t->b[k]);
    sn_addtoscl3(slide, t->dual + 3 * (i - 1), sn_dot3(bar->pos, c));
  }
  sn_addscl3(normal, bar->normal, slide, -con->dist);
  turn[1] = -sn_dot3(normal, t->dual);
  turn[2] = -sn_dot3(normal, t->dual + 3);
  turn[0] = -turn[1] - turn[2];
  for (int k = 0; k < 3; ++k) {
    const sn_real weight = t->weight[k];
    sn_real along[3], push[3];
    sn_scale3(along, n, turn[k] - weight * bar->dist);  // the bar of v_k
    sn_addtoscl3(along, slide, -weight);
    sn_addscl3(push, along, bar->pos, SN_R(0.5) * weight);
    sn_push(wrench, a, t->a + 3 * k, push);
    sn_scale3(along, along, -1);
    sn_addscl3(push, along, bar->pos, SN_R(0.5) * weight);
    sn_push(wrench + 6, b, t->b + 3 * k, push);
  }
}

SN_FUNC void sn_collide_hfield_vjp(const SnModel *m, const SnShape *a, const SnShape *b, const SnContact *con,
                                   const SnContactBar *bar, sn_real *wrench) {
  SnTerrain t;
  SnConvex s1, s2;
  SnDifference triangle;
  SnContact near = *con;
  hfield_grid(&t, m, a->geom);
  hfield_prism_of(&t, con->feature);
  hfield_convex(&s1, t.vert, a->pos, a->mat);
  sn_convex_init(&s2, m, b, 0);
  near.feature = SN_FEATURE_NEAREST;
  if (con->dist < 0 && hfield_triangle(&triangle, &s1, &s2, con))
    hfield_triangle_vjp(&triangle, a, b, con, bar, wrench);
  else
    sn_convex_nearest_vjp(&s1, &s2, &near, bar, wrench);
}
