// Closed-form contacts of two boxes.
//
// All are computed in the frame of a box, where it is |x_i| <= s_i: separating axes, then either the face of the other
// box clipped by the reference face (Sutherland and Hodgman 1974) or two crossing edges. The choices of points, ties
// and thresholds are those of MuJoCo 4.0.0 (engine_collision_box.c); tests compare with the library.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"

#ifdef SN_SINGLE
static const sn_real BOX_SLACK = SN_R(1e-6);      // rounding slack of a separation, times the sizes
static const sn_real BOX_PARALLEL = SN_R(1e-7);   // sin^2 below which two edges are parallel
static const sn_real BOX_AMBIGUOUS = SN_R(1e-5);  // component of the axis below which two edges support it
static const sn_real BOX_SAME = SN_R(1e-10);      // squared distance of equal vertices, times the face's size squared
#else
static const sn_real BOX_SLACK = SN_R(1e-13);
static const sn_real BOX_PARALLEL = SN_R(1e-16);
static const sn_real BOX_AMBIGUOUS = SN_R(1e-9);
static const sn_real BOX_SAME = SN_R(1e-14);
#endif
enum { BOX_CHOICE = 16 };                         // codes of axes are less
static const sn_real BOX_EDGE_BIAS = SN_R(1e-6);  // an edge axis must be better than a face by this part
enum { BOX_MAXVERT = 12 };                        // room for a clipped polygon: a quadrilateral grows to at most 8

// Two boxes: axes of b in the frame of a (columns of rot), centre of b in a's frame and of a in b's.
typedef struct BoxPair {
  const SnShape *a, *b;
  sn_real rot[9], ab[3], ba[3];
  sn_real slack;  // reach and rounding
} BoxPair;

SN_LOCAL BoxPair box_pair(const SnShape *a, const SnShape *b, sn_real reach) {
  BoxPair p = {.a = a, .b = b};
  sn_real d[3];
  sn_sub3(d, b->pos, a->pos);
  sn_mulmattvec3(p.ab, a->mat, d);
  sn_scale3(d, d, -1);
  sn_mulmattvec3(p.ba, b->mat, d);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      p.rot[3 * i + j] = a->mat[i] * b->mat[j] + a->mat[3 + i] * b->mat[3 + j] + a->mat[6 + i] * b->mat[6 + j];
  sn_real sizes = 0;
  for (int i = 0; i < 3; ++i) sizes += a->size[i] + b->size[i];
  p.slack = reach + BOX_SLACK * sizes;
  return p;
}

// The axis of largest separation: 0..2 face of a, 3..5 face of b, 6 + 3 i + j edge i of a with edge j of b.
typedef struct BoxAxis {
  int code;
  sn_real separation;
} BoxAxis;

// Unit cross product of edge i of a and edge j of b, in the frame of a; false when parallel.
SN_LOCAL bool box_cross(const BoxPair *p, int i, int j, sn_real *axis) {
  const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
  const sn_real x1 = -p->rot[3 * i2 + j], x2 = p->rot[3 * i1 + j], square = x1 * x1 + x2 * x2;
  if (square < BOX_PARALLEL) return false;
  const sn_real s = 1 / sn_sqrt(square);
  axis[i] = 0;
  axis[i1] = x1 * s;
  axis[i2] = x2 * s;
  return true;
}

// Half width of a box along a direction in its frame.
SN_LOCAL sn_real box_width(const sn_real *size, const sn_real *dir) {
  return size[0] * sn_abs(dir[0]) + size[1] * sn_abs(dir[1]) + size[2] * sn_abs(dir[2]);
}

// Best face axis; false when one separates the boxes.
SN_LOCAL bool box_best_face(const BoxPair *p, BoxAxis *best) {
  for (int i = 0; i < 6; ++i) {
    const int k = i % 3;
    sn_real dir[3];
    if (i < 3)
      sn_copy3(dir, p->rot + 3 * k);
    else
      sn_set3(dir, p->rot[k], p->rot[3 + k], p->rot[6 + k]);
    const sn_real separation = i < 3 ? sn_abs(p->ab[k]) - p->a->size[k] - box_width(p->b->size, dir)
                                     : sn_abs(p->ba[k]) - p->b->size[k] - box_width(p->a->size, dir);
    if (separation > p->slack) return false;
    if (i == 0 || separation > best->separation) *best = (BoxAxis){i, separation};
  }
  return true;
}

// The best of all axes, starting from the best face; false when one separates the boxes.
SN_LOCAL bool box_best_edge(const BoxPair *p, const BoxAxis *face, BoxAxis *best) {
  *best = *face;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      sn_real axis[3], other[3];
      if (!box_cross(p, i, j, axis)) continue;
      sn_mulmattvec3(other, p->rot, axis);
      other[j] = 0;
      const sn_real separation =
          sn_abs(sn_dot3(axis, p->ab)) - box_width(p->a->size, axis) - box_width(p->b->size, other);
      if (separation > p->slack) return false;
      if (separation - BOX_EDGE_BIAS * sn_abs(separation) > best->separation && separation > face->separation)
        *best = (BoxAxis){6 + 3 * i + j, separation};
    }
  return true;
}

// An edge axis within 8 degrees of the best face's normal that is hardly better gives way to the face, whose several
// contacts are steadier.
SN_LOCAL bool box_prefer_face(const BoxPair *p, const BoxAxis *face, const BoxAxis *edge) {
  const int k = face->code % 3;
  sn_real axis[3];
  box_cross(p, (edge->code - 6) / 3, (edge->code - 6) % 3, axis);
  const sn_real cosine =
      face->code < 3 ? axis[k] : axis[0] * p->rot[k] + axis[1] * p->rot[3 + k] + axis[2] * p->rot[6 + k];
  return sn_abs(cosine) > SN_R(0.99) &&
         edge->separation < face->separation + SN_R(0.05) * sn_abs(face->separation) + SN_MINVAL;
}

// Corner of the edge in direction k that supports dir (in the box's frame), component k zero.
SN_LOCAL void box_edge_corner(sn_real *r, const sn_real *size, const sn_real *dir, int k) {
  for (int i = 0; i < 3; ++i) r[i] = i == k ? SN_R(0.0) : (dir[i] >= 0 ? size[i] : -size[i]);
}

// Component of dir, other than k, whose sign does not choose a corner; -1: none. The next after k is preferred.
SN_LOCAL int box_ambiguous(const sn_real *dir, int k) {
  for (int i = 1; i < 3; ++i)
    if (sn_abs(dir[(k + i) % 3]) < BOX_AMBIGUOUS) return (k + i) % 3;
  return -1;
}

// Nearest points of edge i of a through corner c1 and edge j of b through c2 (all in a's frame).
SN_LOCAL void box_edge_points(const BoxPair *p, int i, int j, const sn_real *c1, const sn_real *c2, sn_real *p1,
                              sn_real *p2) {
  const sn_real half1 = p->a->size[i], half2 = p->b->size[j];
  sn_real d2[3] = {p->rot[j], p->rot[3 + j], p->rot[6 + j]}, e[3];
  sn_sub3(e, c2, c1);
  const sn_real b = d2[i], denom = 1 - b * b, e1 = e[i], e2 = sn_dot3(d2, e);
  sn_real s = denom < SN_MINVAL ? SN_R(0.0) : (e1 - b * e2) / denom;
  s = sn_clip(s, -half1, half1);
  const sn_real t = sn_clip(b * s - e2, -half2, half2);
  s = sn_clip(e1 + b * t, -half1, half1);
  sn_copy3(p1, c1);
  p1[i] += s;
  sn_addscl3(p2, c2, d2, t);
}

// Crossing edges: edge i of a along a unit axis from a to b (in a's frame), with edge j of b.
typedef struct BoxEdges {
  int i, j;
  sn_real axis[3], down[3];  // the axis, and its negative in b's frame
  int free1, free2;          // box_ambiguous
} BoxEdges;

SN_LOCAL BoxEdges box_edges(const BoxPair *p, int code) {
  BoxEdges e = {.i = (code - 6) / 3, .j = (code - 6) % 3};
  box_cross(p, e.i, e.j, e.axis);
  if (sn_dot3(e.axis, p->ab) < 0) sn_scale3(e.axis, e.axis, -1);
  sn_mulmattvec3(e.down, p->rot, e.axis);
  e.free1 = box_ambiguous(e.axis, e.i);
  e.free2 = box_ambiguous(e.down, e.j);
  sn_scale3(e.down, e.down, -1);
  return e;
}

// Corners of the two edges, in a's frame. v: whether the other of two parallel edges is taken, of b (1) or a (2);
// false where the axis leaves no such choice.
SN_LOCAL bool box_edge_corners(const BoxPair *p, const BoxEdges *e, int v, sn_real *c1, sn_real *c2) {
  if ((v >= 2 && e->free1 < 0) || ((v & 1) && e->free2 < 0)) return false;
  sn_real local[3];
  box_edge_corner(c1, p->a->size, e->axis, e->i);
  box_edge_corner(local, p->b->size, e->down, e->j);
  if (v >= 2) c1[e->free1] = -c1[e->free1];
  if (v & 1) local[e->free2] = -local[e->free2];
  sn_mulmatvec3(c2, p->rot, local);
  sn_addto3(c2, p->ab);
  return true;
}

// One contact, midway between the nearest points of two crossing edges. Where the axis does not tell which of two
// parallel edges of a box supports it, the nearer pair of points counts.
SN_LOCAL int box_edge_contact(const BoxPair *p, int code, SnContact *con) {
  const BoxEdges e = box_edges(p, code);
  const sn_real *axis = e.axis;
  sn_real w1[3] = {0}, w2[3] = {0}, best = 0;
  int choice = 0;
  for (int v = 0; v < 4; ++v) {
    sn_real c1[3], c2[3], p1[3], p2[3], gap[3];
    if (!box_edge_corners(p, &e, v, c1, c2)) continue;
    box_edge_points(p, e.i, e.j, c1, c2, p1, p2);
    sn_sub3(gap, p2, p1);
    const sn_real square = sn_dot3(gap, gap);
    if (v > 0 && square >= best) continue;
    best = square;
    choice = v;
    sn_copy3(w1, p1);
    sn_copy3(w2, p2);
  }
  sn_real gap[3], mid[3];
  sn_sub3(gap, w2, w1);
  const sn_real dist = sn_dot3(gap, axis);
  if (dist > p->slack) return 0;
  sn_add3(mid, w1, w2);
  sn_scale3(mid, mid, SN_R(0.5));
  sn_contact_write_local(con, p->a, dist, mid, axis, code + BOX_CHOICE * choice);
  return 1;
}

// Two edges in world axes: their unit directions and E = c2 - c1; or the bars of these.
typedef struct BoxEdgePair {
  sn_real e1[3], e2[3], E[3];
} BoxEdgePair;

// Adjoint of box_edge_points, along the edges of half lengths half1 and half2: s and t, with their bars, belong to the
// bars of the edges. A coordinate at an end of its edge is fixed, and where the edges are parallel (sine below
// SN_STEADY_SINE) the first guess of s.
SN_LOCAL void box_edge_points_vjp(const BoxEdgePair *edges, sn_real half1, sn_real half2, const sn_real *w1_bar,
                                  const sn_real *w2_bar, BoxEdgePair *bar) {
  const sn_real *e1 = edges->e1, *e2 = edges->e2, *E = edges->E;
  const sn_real b = sn_dot3(e1, e2), x1 = sn_dot3(e1, E), x2 = sn_dot3(e2, E), denom = 1 - b * b;
  const sn_real first = denom < SN_MINVAL ? SN_R(0.0) : (x1 - b * x2) / denom;
  const sn_real s0 = sn_clip(first, -half1, half1), t = sn_clip(b * s0 - x2, -half2, half2);
  const sn_real s = sn_clip(x1 + b * t, -half1, half1);
  const sn_real s_bar = sn_abs(s) < half1 ? sn_dot3(e1, w1_bar) : 0;
  const sn_real t_bar = sn_abs(t) < half2 ? sn_dot3(e2, w2_bar) + b * s_bar : 0;
  const bool crossing = denom >= SN_STEADY_SINE * SN_STEADY_SINE;
  const sn_real first_bar = sn_abs(s0) < half1 && crossing ? b * t_bar / denom : 0;
  const sn_real b_bar = t * s_bar + s0 * t_bar + first_bar * (2 * b * s0 - x2);
  const sn_real x1_bar = s_bar + first_bar, x2_bar = -t_bar - b * first_bar;
  for (int i = 0; i < 3; ++i) {
    bar->e1[i] = s * w1_bar[i] + x1_bar * E[i] + b_bar * e2[i];
    bar->e2[i] = t * w2_bar[i] + x2_bar * E[i] + b_bar * e1[i];
    bar->E[i] = x1_bar * e1[i] + x2_bar * e2[i];
  }
}

// Feature: the code of the axis and, times BOX_CHOICE, which corners. With w1, w2 the points of the edges and n their
// cross product: dist = n.(w2 - w1), pos = (w1 + w2) / 2. The normal of parallel edges is fixed to the first box.
SN_LOCAL void box_edge_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                           sn_real *wrench) {
  const BoxPair p = box_pair(a, b, 0);
  const BoxEdges edges = box_edges(&p, con->feature % BOX_CHOICE);
  const int i = edges.i, j = edges.j;
  BoxEdgePair x = {.e1 = {a->mat[i], a->mat[3 + i], a->mat[6 + i]}, .e2 = {b->mat[j], b->mat[3 + j], b->mat[6 + j]}};
  const sn_real *n = con->frame;
  BoxEdgePair x_bar;
  sn_real c1[3], c2[3], p1[3], p2[3], r[3], n_bar[3], w1_bar[3], w2_bar[3];
  if (!box_edge_corners(&p, &edges, con->feature / BOX_CHOICE, c1, c2)) return;
  box_edge_points(&p, i, j, c1, c2, p1, p2);
  sn_sub3(r, p2, p1);
  sn_mulmatvec3(n_bar, a->mat, r);
  for (int k = 0; k < 3; ++k) {
    n_bar[k] = bar->normal[k] + bar->dist * n_bar[k];
    w1_bar[k] = SN_R(0.5) * bar->pos[k] - bar->dist * n[k];
    w2_bar[k] = SN_R(0.5) * bar->pos[k] + bar->dist * n[k];
  }
  sn_sub3(r, c2, c1);
  sn_mulmatvec3(x.E, a->mat, r);
  box_edge_points_vjp(&x, a->size[i], b->size[j], w1_bar, w2_bar, &x_bar);
  // corners are fixed to their boxes
  sn_mulmatvec3(p1, a->mat, c1);
  sn_addto3(p1, a->pos);
  sn_add3(p2, p1, x.E);
  sn_subfrom3(w1_bar, x_bar.E);
  sn_push(wrench, a, p1, w1_bar);
  sn_addto3(w2_bar, x_bar.E);
  sn_push(wrench + 6, b, p2, w2_bar);
  // n = +- e1 x e2 / |e1 x e2|
  sn_cross(r, x.e1, x.e2);
  const sn_real size = sn_norm3(r);
  if (size < SN_STEADY_SINE) {
    sn_turn(wrench, n, n_bar);
  } else {
    sn_real y_bar[3];
    sn_direction_vjp(y_bar, n, sn_dot3(n, r) < 0 ? -size : size, n_bar);
    sn_cross(r, x.e2, y_bar);
    sn_addto3(x_bar.e1, r);
    sn_cross(r, y_bar, x.e1);
    sn_addto3(x_bar.e2, r);
  }
  sn_turn(wrench, x.e1, x_bar.e1);
  sn_turn(wrench + 6, x.e2, x_bar.e2);
}

// The lines through a vertex of the clipped polygon, as bits: edges of the opposite face, at the upper and lower end of
// its first and second direction, and upper and lower sides of the reference face that clipped it, x and y.
enum {
  BOX_U = 1 + 2,
  BOX_V = 4 + 8,
  BOX_CLIP_X = 16 + 32,
  BOX_CLIP_Y = 64 + 128,
  BOX_UPPER = 1 + 4 + 16 + 64,
  BOX_LOWER = 2 + 8 + 32 + 128,
  BOX_LINES = 256
};

typedef struct BoxPolygon {
  int n;
  sn_real v[BOX_MAXVERT][3];  // two coordinates in the reference face, height above it
  int lines[BOX_MAXVERT];
} BoxPolygon;

// Clips a polygon to sign * v[k] <= limit; the height is interpolated.
SN_LOCAL void box_clip(BoxPolygon *poly, int k, sn_real sign, sn_real limit) {
  const BoxPolygon in = *poly;
  bool inside = true;
  for (int i = 0; i < in.n; ++i) inside = inside && sign * in.v[i][k] - limit <= 0;
  if (inside) return;
  poly->n = 0;
  const int line = (k == 0 ? BOX_CLIP_X : BOX_CLIP_Y) & (sign > 0 ? BOX_UPPER : BOX_LOWER);
  for (int i = 0; i < in.n; ++i) {
    const int next = i + 1 == in.n ? 0 : i + 1;
    const sn_real *from = in.v[i], *to = in.v[next];
    const sn_real d = sign * from[k] - limit, e = sign * to[k] - limit;
    if (d <= 0 && poly->n < BOX_MAXVERT) {
      poly->lines[poly->n] = in.lines[i] | (d == 0 ? line : 0);
      sn_copy3(poly->v[poly->n++], from);
    }
    if (((d < 0 && e > 0) || (d > 0 && e < 0)) && poly->n < BOX_MAXVERT) {
      const sn_real t = d / (d - e);
      for (int c = 0; c < 3; ++c) poly->v[poly->n][c] = from[c] + t * (to[c] - from[c]);
      poly->lines[poly->n++] = (in.lines[i] & in.lines[next]) | line;
    }
  }
}

// The reference face (normal a, outward sign `out`, of box `ref`) and the opposite face of the other box, as a polygon
// over the reference face; returns its normal's number. rot: axes of the other box in the reference frame (columns);
// centre: its centre.
SN_LOCAL int box_opposite_face(BoxPolygon *poly, const SnShape *ref, const SnShape *other, const sn_real *rot,
                               const sn_real *centre, int a, sn_real out) {
  int k = 0;
  for (int i = 1; i < 3; ++i)
    if (sn_abs(rot[3 * a + i]) > sn_abs(rot[3 * a + k])) k = i;
  const sn_real side = out * rot[3 * a + k] > 0 ? SN_R(-1.0) : SN_R(1.0);
  const int ku = (k + 1) % 3, kv = (k + 2) % 3;
  static const sn_real su[4] = {1, -1, -1, 1}, sv[4] = {1, 1, -1, -1};
  poly->n = 4;
  for (int i = 0; i < 4; ++i)
    poly->lines[i] = (BOX_U & (su[i] > 0 ? BOX_UPPER : BOX_LOWER)) | (BOX_V & (sv[i] > 0 ? BOX_UPPER : BOX_LOWER));
  for (int r = 0; r < 3; ++r) {
    const int row = (a + 1 + r) % 3;
    const sn_real flip = r == 2 ? out : SN_R(1.0), base = r == 2 ? ref->size[a] : SN_R(0.0);
    const sn_real c = flip * (centre[row] + side * other->size[k] * rot[3 * row + k]) - base;
    const sn_real du = flip * other->size[ku] * rot[3 * row + ku], dv = flip * other->size[kv] * rot[3 * row + kv];
    for (int i = 0; i < 4; ++i) poly->v[i][r] = c + su[i] * du + sv[i] * dv;
  }
  return k;
}

// A contact at each vertex of the clipped polygon that lies in reach, midway between the surfaces.
SN_LOCAL int box_face_contacts(const BoxPair *p, int code, sn_real reach, SnContact *con) {
  const bool first = code < 3;
  const int a = code % 3, ax = (a + 1) % 3, ay = (a + 2) % 3;
  const SnShape *ref = first ? p->a : p->b, *other = first ? p->b : p->a;
  const sn_real *centre = first ? p->ab : p->ba;
  sn_real rot[9], normal[3] = {0, 0, 0};
  for (int i = 0; i < 9; ++i) rot[i] = first ? p->rot[i] : p->rot[3 * (i % 3) + i / 3];
  const sn_real out = centre[a] >= 0 ? SN_R(1.0) : SN_R(-1.0);
  BoxPolygon poly;
  const int opposite = box_opposite_face(&poly, ref, other, rot, centre, a, out);
  box_clip(&poly, 0, 1, ref->size[ax]);
  box_clip(&poly, 0, -1, ref->size[ax]);
  box_clip(&poly, 1, 1, ref->size[ay]);
  box_clip(&poly, 1, -1, ref->size[ay]);
  normal[a] = first ? out : -out;
  const sn_real same = BOX_SAME * (ref->size[ax] * ref->size[ax] + ref->size[ay] * ref->size[ay]);
  int n = 0, kept[BOX_MAXVERT];
  for (int i = 0; i < poly.n && n < SN_MAXCON_PAIR; ++i) {
    const sn_real *v = poly.v[i];
    if (v[2] > reach) continue;
    bool twin = false;
    for (int q = 0; q < n; ++q) {
      const sn_real dx = poly.v[kept[q]][0] - v[0], dy = poly.v[kept[q]][1] - v[1];
      twin = twin || dx * dx + dy * dy < same;
    }
    if (twin) continue;
    sn_real pos[3];
    pos[ax] = v[0];
    pos[ay] = v[1];
    pos[a] = out * (ref->size[a] + SN_R(0.5) * v[2]);
    const int feature = code + BOX_CHOICE * (poly.lines[i] + BOX_LINES * opposite);
    sn_contact_write_local(con + n, ref, v[2], pos, normal, feature);
    kept[n++] = i;
  }
  return n;
}

// A point of the opposite face and the lines that meet there (BOX_U, ..). The opposite face lies across axis q of its
// box, the reference face across axis a of its own.
typedef struct BoxVertex {
  int a, q, lines;
  const sn_real *p, *out;  // (3) the point, the reference face's normal
} BoxVertex;

// Adjoint of a point p of the opposite face: which lines meet there tells how it moves. A corner of that face is fixed
// to `other`. On an edge e of it at a side (normal m) of `ref` the point slides along e by what keeps it at the side,
// and likewise, at a corner of the reference face, along the normal `out` by what keeps it in the opposite face (normal
// q). An edge along the side (sine below SN_STEADY_SINE) carries the point.
SN_LOCAL void box_vertex_vjp(const SnShape *ref, const SnShape *other, const BoxVertex *vertex, const sn_real *p_bar,
                             sn_real *on_ref, sn_real *on_other) {
  const int a = vertex->a, q = vertex->q, lines = vertex->lines;
  const bool u = lines & BOX_U, v = lines & BOX_V, x = lines & BOX_CLIP_X, y = lines & BOX_CLIP_Y;
  sn_real force[3], rest[3];
  sn_copy3(force, p_bar);
  sn_zero(rest, 3);
  if (u != v && (x || y)) {
    const int e = u ? (q + 2) % 3 : (q + 1) % 3, side = x ? (a + 1) % 3 : (a + 2) % 3;
    const sn_real *E = other->mat + e, *m = ref->mat + side;
    const sn_real sine = m[0] * E[0] + m[3] * E[3] + m[6] * E[6];
    if (sn_abs(sine) >= SN_STEADY_SINE) {
      const sn_real along = (p_bar[0] * E[0] + p_bar[1] * E[3] + p_bar[2] * E[6]) / sine;
      sn_set3(rest, along * m[0], along * m[3], along * m[6]);
      sn_subfrom3(force, rest);
    }
  } else if (!u && !v && x && y) {
    const sn_real *Q = other->mat + q;
    const sn_real normal[3] = {Q[0], Q[3], Q[6]};
    sn_scale3(force, normal, sn_dot3(vertex->out, p_bar) / sn_dot3(vertex->out, normal));
    sn_sub3(rest, p_bar, force);
  }
  sn_push(on_other, other, vertex->p, force);
  sn_push(on_ref, ref, vertex->p, rest);
}

// Feature: the code of the axis, times BOX_CHOICE the lines, times BOX_LINES the direction of the opposite face. The
// reference face is a plane above which the point lies.
SN_LOCAL void box_face_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                           sn_real *wrench) {
  const int code = con->feature % BOX_CHOICE;
  const bool first = code < 3;
  const SnShape *ref = first ? a : b, *other = first ? b : a;
  sn_real *on_ref = first ? wrench : wrench + 6, *on_other = first ? wrench + 6 : wrench;
  SnContactBar face = *bar;
  sn_real out[3], point[3], point_bar[3];
  sn_scale3(out, con->frame, first ? SN_R(1.0) : SN_R(-1.0));
  sn_scale3(face.normal, bar->normal, first ? SN_R(1.0) : SN_R(-1.0));
  sn_addscl3(point, con->pos, out, con->dist / 2);
  sn_plane_point_vjp(ref, out, point, 0, con->dist, &face, on_ref, point_bar);
  const int feature = con->feature / BOX_CHOICE;
  const BoxVertex vertex = {
      .a = code % 3, .q = feature / BOX_LINES, .lines = feature % BOX_LINES, .p = point, .out = out};
  box_vertex_vjp(ref, other, &vertex, point_bar, on_ref, on_other);
}

SN_FUNC int sn_collide_box_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const BoxPair p = box_pair(a, b, reach);
  BoxAxis face = {0, 0}, best;  // GCC, with sanitizers, does not see that it is set
  if (!box_best_face(&p, &face) || !box_best_edge(&p, &face, &best)) return 0;
  if (best.code >= 6 && box_prefer_face(&p, &face, &best)) best = face;
  return best.code >= 6 ? box_edge_contact(&p, best.code, con) : box_face_contacts(&p, best.code, reach, con);
}

// Where features compete, the one that made the contact.
SN_FUNC void sn_collide_box_box_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                                    sn_real *wrench) {
  if (con->feature % BOX_CHOICE >= 6)
    box_edge_vjp(a, b, con, bar, wrench);
  else
    box_face_vjp(a, b, con, bar, wrench);
}

SN_FUNC bool sn_box_edges_cross(int feature) {
  if (feature % BOX_CHOICE >= 6) return true;
  const int lines = feature / BOX_CHOICE % BOX_LINES;
  const bool u = lines & BOX_U, v = lines & BOX_V, x = lines & BOX_CLIP_X, y = lines & BOX_CLIP_Y;
  return u != v && x != y;
}
