// EPA's first polytope: a tetrahedron or a hexahedron (two tetrahedra on a common triangle) of vertices of the
// Minkowski difference, with the origin inside.
//
// GJK leaves a tetrahedron around the origin, or a triangle or segment on which the origin lies. A triangle gets a
// vertex on either side; a segment gets three vertices around it. Where the origin lies on the boundary of what
// results, that face or edge is tried instead; a segment and a triangle may hand the task to each other once.
//
// What is done in the degenerate cases follows MuJoCo 4.0.0.
#include "physics/base/vec.h"
#include "physics/collision/convex_private.h"

// What a step says: a polytope, none, or "try again with the smaller simplex".
typedef enum SnPolytope { SN_POLYTOPE_READY, SN_POLYTOPE_NONE, SN_POLYTOPE_AGAIN } SnPolytope;

SN_LOCAL int polytope_insert(SnEpa *p, const SnCcdVertex *v) {
  p->vert[p->nvert] = *v;
  return p->nvert++;
}

// The centre of the first n vertices.
SN_LOCAL void polytope_center(SnEpa *p, const int *id, int n, sn_real share) {
  sn_copy3(p->center, p->vert[id[0]].v);
  for (int i = 1; i < n; ++i) sn_addto3(p->center, p->vert[id[i]].v);
  sn_scale3(p->center, p->center, share);
}

// Goes back to a simplex made of vertices of the polytope.
SN_LOCAL SnPolytope polytope_retry(SnCcd *c, SnEpa *p, int n, int v1, int v2, int v3) {
  c->n = n;
  c->simplex[0] = p->vert[v1];
  c->simplex[1] = p->vert[v2];
  if (n > 2) c->simplex[2] = p->vert[v3];
  sn_epa_reset(p);
  return SN_POLYTOPE_AGAIN;
}

// All faces are candidates.
SN_LOCAL SnPolytope polytope_ready(SnEpa *p) {
  for (int i = 0; i < p->nface; ++i) {
    p->candidate[i] = (short)i;
    p->candidate_dist2[i] = p->face[i].dist2;
    p->face[i].slot = (short)i;
  }
  p->ncandidate = p->nface;
  return SN_POLYTOPE_READY;
}

// True when q and the origin are strictly on the same side of the plane through three points.
SN_LOCAL bool polytope_same_side(const sn_real *p0, const sn_real *p1, const sn_real *p2, const sn_real *q) {
  sn_real a[3], b[3], d[3], n[3];
  sn_sub3(a, p1, p0);
  sn_sub3(b, p2, p0);
  sn_sub3(d, q, p0);
  sn_cross(n, a, b);
  const sn_real side = sn_dot3(n, d), origin = -n[0] * p0[0] - n[1] * p0[1] - n[2] * p0[2];
  return (side > 0 && origin > 0) || (side < 0 && origin < 0);
}

// Six times the volumes that the segment from `from` along d makes with the edges of a triangle. All of one sign: it
// passes through.
SN_LOCAL void polytope_volumes(sn_real *vol, const sn_real *from, const sn_real *to, const sn_real *t1,
                               const sn_real *t2, const sn_real *t3) {
  const sn_real *tri[3] = {t1, t2, t3};
  sn_real d[3], r[3][3], n[3];
  sn_sub3(d, to, from);
  for (int i = 0; i < 3; ++i) sn_sub3(r[i], tri[i], from);
  for (int i = 0; i < 3; ++i) {
    sn_cross(n, r[(i + 1) % 3], d);
    vol[i] = sn_dot3(r[i], n);
  }
}

SN_LOCAL bool polytope_all_above(const sn_real *x, sn_real bound) {
  return x[0] >= bound && x[1] >= bound && x[2] >= bound;
}
SN_LOCAL bool polytope_all_below(const sn_real *x, sn_real bound) {
  return x[0] <= bound && x[1] <= bound && x[2] <= bound;
}
SN_LOCAL bool polytope_one_sign(const sn_real *x, sn_real bound) {
  return polytope_all_above(x, bound) || polytope_all_below(x, -bound);
}

// True when a point lies on a triangle.
SN_LOCAL bool polytope_on_triangle(const sn_real *v1, const sn_real *v2, const sn_real *v3, const sn_real *q) {
  sn_real lambda[3], r[3];
  sn_epa_coordinates(lambda, v1, v2, v3, q);
  if (lambda[0] < 0 || lambda[1] < 0 || lambda[2] < 0) return false;
  for (int i = 0; i < 3; ++i) r[i] = v1[i] * lambda[0] + v2[i] * lambda[1] + v3[i] * lambda[2] - q[i];
  return sn_norm3(r) < SN_CCD_MIN;
}

// True when the origin lies between two points.
SN_LOCAL bool polytope_on_segment(const sn_real *v1, const sn_real *v2) {
  if (!(sn_dot3(v1, v2) < 0)) return false;
  sn_real d[3], x[3];
  sn_sub3(d, v2, v1);
  const sn_real d2 = sn_dot3(d, d);
  if (d2 < SN_CCD_MIN2) return false;
  sn_addscl3(x, v2, d, -sn_dot3(v2, d) / d2);
  return sn_dot3(x, x) < SN_CCD_MIN2;
}

// Adds faces: rows of (v1, v2, v3, adj1, adj2, adj3) with vertices as indices into id. Returns the first degenerate
// face, or count.
SN_LOCAL int polytope_attach(SnEpa *p, const int *id, const int (*row)[6], int count, sn_real *dist2) {
  int first_bad = count;
  for (int i = 0; i < count; ++i) {
    const int *f = row[i];
    dist2[i] = sn_epa_attach(p, id[f[0]], id[f[1]], id[f[2]], f[3], f[4], f[5]);
    if (!(dist2[i] >= SN_EPA_MIN2) && first_bad == count) first_bad = i;
  }
  return first_bad;
}

// From a tetrahedron.
SN_LOCAL SnPolytope polytope_from_4(SnCcd *c, SnEpa *p) {
  static const int row[4][6] = {{0, 1, 2, 1, 3, 2}, {0, 3, 1, 2, 3, 0}, {0, 2, 3, 0, 3, 1}, {3, 2, 1, 2, 0, 1}};
  sn_real dist2[4];
  int id[4];
  for (int i = 0; i < 4; ++i) id[i] = polytope_insert(p, c->simplex + i);
  polytope_center(p, id, 4, SN_R(0.25));

  // the origin on a face: that triangle instead
  const int bad = polytope_attach(p, id, row, 4, dist2);
  if (bad < 4) return polytope_retry(c, p, 3, row[bad][0], row[bad][1], row[bad][2]);
  for (int i = 0; i < 4; ++i) {
    const SnCcdVertex *v = p->vert;
    if (!polytope_same_side(v[i].v, v[(i + 1) % 4].v, v[(i + 2) % 4].v, v[(i + 3) % 4].v)) return SN_POLYTOPE_NONE;
  }
  return polytope_ready(p);
}

// A segment v3 v4 that misses the triangle id[0..2] of a hexahedron whose tips are id[3], id[4]. vol: polytope_volumes
// of it. Where the tips are beyond one edge, the triangle through them and the far corner does: exchanges the ids and
// returns true. Else moves the edge beyond which they are to id[0], id[1].
SN_LOCAL bool polytope_recover(int *id, const sn_real *vol) {
  const sn_real e = -SN_CCD_MIN;
  const int v[5] = {id[0], id[1], id[2], id[3], id[4]};
  if (vol[0] > 0 && vol[1] < e && vol[2] < e) {
    id[0] = v[2], id[1] = v[4], id[2] = v[3], id[3] = v[0], id[4] = v[1];
    return true;
  }
  if (vol[1] > 0 && vol[0] < e && vol[2] < e) {
    id[1] = v[4], id[2] = v[3], id[3] = v[1], id[4] = v[2];
    return true;
  }
  if (vol[2] > 0 && vol[0] < e && vol[1] < e) {
    id[0] = v[1], id[1] = v[4], id[2] = v[3], id[3] = v[2], id[4] = v[0];
    return true;
  }
  if (vol[1] >= vol[0] && vol[2] >= vol[0]) return false;
  if (vol[0] >= vol[1] && vol[2] >= vol[1]) {
    id[0] = v[1];
    id[1] = v[2];
  } else {
    id[0] = v[2];
    id[1] = v[0];
  }
  return false;
}

// From a triangle. last: do not hand over to a segment.
SN_LOCAL SnPolytope polytope_from_3(SnCcd *c, SnEpa *p, bool last) {
  static const int hexa[6][6] = {{3, 0, 1, 1, 3, 2}, {3, 2, 0, 2, 4, 0}, {3, 1, 2, 0, 5, 1},
                                 {4, 1, 0, 5, 0, 4}, {4, 0, 2, 3, 1, 5}, {4, 2, 1, 4, 2, 3}};
  static const int tetra[4][6] = {{0, 1, 3, 1, 3, 2}, {0, 4, 1, 2, 3, 0}, {0, 3, 4, 0, 3, 1}, {4, 3, 1, 2, 0, 1}};
  // the corner of each face's opposite vertex
  static const int hexa_tip[6] = {2, 1, 0, 2, 1, 0}, tetra_tip[4] = {4, 3, 1, 0};
  const SnCcdVertex *v = p->vert;
  sn_real a[3], b[3], n[3], back[3], d[3], vol[3], dist2[6];
  int id[5];
  for (int i = 0; i < 3; ++i) id[i] = polytope_insert(p, c->simplex + i);
  sn_sub3(a, v[1].v, v[0].v);
  sn_sub3(b, v[2].v, v[0].v);
  sn_cross(n, a, b);
  const sn_real norm = sn_norm3(n);
  if (norm < SN_CCD_MIN) return SN_POLYTOPE_NONE;

  // a vertex on either side
  sn_scale3(back, n, -1);
  id[4] = sn_epa_support(c, p, back, norm);
  id[3] = sn_epa_support(c, p, n, norm);
  if (polytope_on_triangle(v[0].v, v[1].v, v[2].v, v[id[3]].v)) return SN_POLYTOPE_NONE;
  if (polytope_on_triangle(v[0].v, v[1].v, v[2].v, v[id[4]].v)) return SN_POLYTOPE_NONE;
  const sn_real least = norm * SN_CCD_MIN;
  sn_sub3(d, v[id[3]].v, v[0].v);
  if (least > sn_dot3(n, d)) return SN_POLYTOPE_NONE;
  sn_sub3(d, v[id[4]].v, v[0].v);
  if (least > sn_dot3(back, d)) return SN_POLYTOPE_NONE;

  // convex only where the segment between them passes through the triangle
  bool is_hexa = true;
  polytope_volumes(vol, v[id[3]].v, v[id[4]].v, v[0].v, v[1].v, v[2].v);
  if (!polytope_one_sign(vol, 0)) is_hexa = polytope_recover(id, vol);
  const int count = is_hexa ? 6 : 4;
  const int(*row)[6] = is_hexa ? hexa : tetra;
  if (is_hexa) {
    polytope_center(p, id, 5, SN_R(0.2));
  } else {
    const int corner[4] = {id[0], id[1], id[3], id[4]};
    polytope_center(p, corner, 4, SN_R(0.25));
  }
  if (polytope_attach(p, id, row, count, dist2) < count) {
    if (last) return SN_POLYTOPE_NONE;
    for (int i = 0; i < 3; ++i)
      if (polytope_on_segment(v[i].v, v[(i + 1) % 3].v)) return polytope_retry(c, p, 2, i, (i + 1) % 3, 0);
    return SN_POLYTOPE_NONE;
  }

  // the origin must be inside, or as near to the boundary as rounding
  for (int i = 0; i < count; ++i) {
    const int tip = is_hexa ? hexa_tip[i] : tetra_tip[i];
    const int *f = row[i];
    const bool inside = polytope_same_side(v[id[f[0]]].v, v[id[f[1]]].v, v[id[f[2]]].v, v[id[tip]].v);
    if (!inside && dist2[i] >= c->tolerance * c->tolerance) return SN_POLYTOPE_NONE;
  }
  return polytope_ready(p);
}

// Three vertices around the segment v[0] v[1], by 120 degrees; returns 1e-15 times the cube of its length: a volume of
// zero.
SN_LOCAL sn_real polytope_around(SnCcd *c, SnEpa *p, int *id) {
  sn_real d[3], e[3] = {0, 0, 0}, r[9], d1[3], d2[3], d3[3];
  sn_sub3(d, p->vert[1].v, p->vert[0].v);

  // perpendicular: the cross product with the axis that is least along it
  int least = 0;
  if (sn_abs(d[1]) < sn_abs(d[0])) least = 1;
  if (sn_abs(d[2]) < sn_abs(d[least])) least = 2;
  e[least] = 1;
  sn_cross(d1, e, d);

  // rotation by 120 degrees about it
  const sn_real norm2 = sn_dot3(d, d), norm = sn_sqrt(norm2), s = SN_R(0.86602540378), k = SN_R(1.5);
  const sn_real x = d[0] / norm, y = d[1] / norm, z = d[2] / norm;
  sn_set3(r, SN_R(-0.5) + x * x * k, x * y * k - z * s, x * z * k + y * s);
  sn_set3(r + 3, y * x * k + z * s, SN_R(-0.5) + y * y * k, y * z * k - x * s);
  sn_set3(r + 6, x * z * k - y * s, y * z * k + x * s, SN_R(-0.5) + z * z * k);
  sn_mulmatvec3(d2, r, d1);
  sn_mulmatvec3(d3, r, d2);
  id[2] = sn_epa_support(c, p, d1, sn_norm3(d1));
  id[3] = sn_epa_support(c, p, d2, sn_norm3(d2));
  id[4] = sn_epa_support(c, p, d3, sn_norm3(d3));
  return norm2 * SN_CCD_MIN * norm;
}

// Where the segment v[0] v[1] misses the triangle id[2..4]: looks for a vertex beyond the edge where it misses, and
// exchanges one of the three for it when the segment then passes through.
SN_LOCAL void polytope_repair(SnCcd *c, SnEpa *p, const int *id, const sn_real *vol, sn_real zero) {
  SnCcdVertex *v = p->vert;
  int far = 1;  // the edge with the least volume: corners far, far + 1
  if (vol[0] <= vol[1] && vol[0] <= vol[2])
    far = 0;
  else if (vol[1] <= vol[0] && vol[1] <= vol[2])
    far = 1;
  else
    far = 2;
  const int a = id[2 + far], b = id[2 + (far + 1) % 3], o = id[2 + (far + 2) % 3];

  // away from the opposite corner, leaning to the end of the segment that is farther from it
  sn_real d[3], u[3], to[3], dir[3], n[3];
  sn_sub3(d, v[1].v, v[0].v);
  sn_sub3(u, v[b].v, v[a].v);
  sn_sub3(to, v[o].v, v[0].v);
  sn_cross(n, u, d);
  const sn_real lean = sn_norm3(u) * (SN_R(0.5) * sn_dot3(d, d) <= sn_dot3(d, to) ? SN_R(0.001) : SN_R(-0.001));
  sn_addscl3(dir, n, d, lean);
  const int w = sn_epa_support(c, p, dir, sn_norm3(dir));
  p->nvert--;

  sn_real test[3];
  polytope_volumes(test, v[0].v, v[1].v, v[w].v, v[b].v, v[o].v);
  if (polytope_one_sign(test, zero)) {
    v[a] = v[w];
    return;
  }
  polytope_volumes(test, v[0].v, v[1].v, v[a].v, v[w].v, v[o].v);
  if (polytope_one_sign(test, zero)) {
    v[b] = v[w];
    return;
  }
  polytope_volumes(test, v[0].v, v[1].v, v[a].v, v[b].v, v[w].v);
  if (polytope_one_sign(test, zero)) v[o] = v[w];
}

// Of the two triangles on the edge a b with an end of the segment v[0] v[1], the one that is not degenerate and nearer
// to the origin, as the simplex.
SN_LOCAL SnPolytope polytope_retry_best(SnCcd *c, SnEpa *p, int a, int b) {
  const SnCcdVertex *v = p->vert;
  sn_real area2[2], dist[2];
  for (int k = 0; k < 2; ++k) {
    sn_real s[3], t[3], n[3], x[3], y[3], lambda[3];
    const int q = k == 0 ? a : b, r = k == 0 ? b : a;
    sn_sub3(s, v[q].v, v[k].v);
    sn_sub3(t, v[r].v, v[k].v);
    sn_cross(n, s, t);
    area2[k] = sn_dot3(n, n);
    sn_nearest_in_triangle(lambda, y, v[k].v, v[q].v, v[r].v);
    for (int i = 0; i < 3; ++i) x[i] = lambda[0] * v[k].v[i] + lambda[1] * v[q].v[i] + lambda[2] * v[r].v[i];
    dist[k] = sn_dot3(x, x);
  }
  bool second;
  if (area2[0] < SN_CCD_MIN && area2[1] >= SN_CCD_MIN)
    second = true;
  else if (area2[0] >= SN_CCD_MIN && area2[1] < SN_CCD_MIN)
    second = false;
  else
    second = dist[1] < dist[0];
  return second ? polytope_retry(c, p, 3, 1, b, a) : polytope_retry(c, p, 3, 0, a, b);
}

// From a segment.
SN_LOCAL SnPolytope polytope_from_2(SnCcd *c, SnEpa *p) {
  static const int row[6][6] = {{0, 2, 3, 1, 3, 2}, {0, 4, 2, 2, 4, 0}, {0, 3, 4, 0, 5, 1},
                                {1, 3, 2, 5, 0, 4}, {1, 2, 4, 3, 1, 5}, {1, 4, 3, 4, 2, 3}};
  static const int edge[3][2] = {{2, 3}, {4, 2}, {3, 4}};
  sn_real vol[3], dist2[6];
  int id[5];
  for (int i = 0; i < 2; ++i) id[i] = polytope_insert(p, c->simplex + i);
  const sn_real zero = polytope_around(c, p, id);
  const SnCcdVertex *v = p->vert;
  polytope_volumes(vol, v[0].v, v[1].v, v[2].v, v[3].v, v[4].v);
  if (!polytope_one_sign(vol, zero)) polytope_repair(c, p, id, vol, zero);
  polytope_center(p, id, 5, SN_R(0.2));

  // the origin on a face: a triangle on its outer edge instead
  const int bad = polytope_attach(p, id, row, 6, dist2);
  if (bad < 6) return polytope_retry_best(c, p, edge[bad % 3][0], edge[bad % 3][1]);
  polytope_volumes(vol, v[0].v, v[1].v, v[2].v, v[3].v, v[4].v);
  return polytope_one_sign(vol, 0) ? polytope_ready(p) : SN_POLYTOPE_NONE;
}

SN_FUNC bool sn_epa_start(SnCcd *c, SnEpa *p) {
  bool last = false;
  SnPolytope state = SN_POLYTOPE_AGAIN;
  sn_epa_reset(p);
  while (state == SN_POLYTOPE_AGAIN) {
    if (c->n == 4) {
      state = polytope_from_4(c, p);
    } else if (c->n == 3) {
      state = polytope_from_3(c, p, last);
    } else {
      last = true;
      state = polytope_from_2(c, p);
    }
  }
  return state == SN_POLYTOPE_READY;
}
