// Closed-form contacts of two boxes.
//
// All are computed in the frame of a box, where it is |x_i| <= s_i: separating axes, then either the face of the other
// box clipped by the reference face (Sutherland and Hodgman 1974) or two crossing edges. The choices of points, ties
// and thresholds are those of MuJoCo 4.0.0 (engine_collision_box.c); tests compare with the library.
#include "physics/collide.h"

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
static const sn_real BOX_EDGE_BIAS = SN_R(1e-6);  // an edge axis must be better than a face by this part
enum { BOX_MAXVERT = 12 };                        // room for a clipped polygon: a quadrilateral grows to at most 8

// Two boxes: axes of b in the frame of a (columns of rot), centre of b in a's frame and of a in b's.
typedef struct BoxPair {
  const SnShape *a, *b;
  sn_real rot[9], ab[3], ba[3];
  sn_real slack;  // reach and rounding
} BoxPair;

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

// One contact, midway between the nearest points of two crossing edges. Where the axis does not tell which of two
// parallel edges of a box supports it, the nearer pair of points counts.
SN_LOCAL int box_edge_contact(const BoxPair *p, int code, SnContact *con) {
  const int i = (code - 6) / 3, j = (code - 6) % 3;
  sn_real axis[3], down[3], w1[3] = {0}, w2[3] = {0}, best = 0;
  box_cross(p, i, j, axis);
  if (sn_dot3(axis, p->ab) < 0) sn_scale3(axis, axis, -1);
  sn_mulmattvec3(down, p->rot, axis);  // in b's frame
  const int free1 = box_ambiguous(axis, i), free2 = box_ambiguous(down, j);
  sn_scale3(down, down, -1);
  for (int v = 0; v < 4; ++v) {
    if ((v >= 2 && free1 < 0) || ((v & 1) && free2 < 0)) continue;
    sn_real c1[3], c2[3], local[3], p1[3], p2[3], gap[3];
    box_edge_corner(c1, p->a->size, axis, i);
    box_edge_corner(local, p->b->size, down, j);
    if (v >= 2) c1[free1] = -c1[free1];
    if (v & 1) local[free2] = -local[free2];
    sn_mulmatvec3(c2, p->rot, local);
    sn_addto3(c2, p->ab);
    box_edge_points(p, i, j, c1, c2, p1, p2);
    sn_sub3(gap, p2, p1);
    const sn_real square = sn_dot3(gap, gap);
    if (v > 0 && square >= best) continue;
    best = square;
    sn_copy3(w1, p1);
    sn_copy3(w2, p2);
  }
  sn_real gap[3], mid[3];
  sn_sub3(gap, w2, w1);
  const sn_real dist = sn_dot3(gap, axis);
  if (dist > p->slack) return 0;
  sn_add3(mid, w1, w2);
  sn_scale3(mid, mid, SN_R(0.5));
  sn_contact_write_local(con, p->a, dist, mid, axis, code);
  return 1;
}

typedef struct BoxPolygon {
  int n;
  sn_real v[BOX_MAXVERT][3];  // two coordinates in the reference face, height above it
} BoxPolygon;

// Clips a polygon to sign * v[k] <= limit; the height is interpolated.
SN_LOCAL void box_clip(BoxPolygon *poly, int k, sn_real sign, sn_real limit) {
  const BoxPolygon in = *poly;
  bool inside = true;
  for (int i = 0; i < in.n; ++i) inside = inside && sign * in.v[i][k] - limit <= 0;
  if (inside) return;
  poly->n = 0;
  for (int i = 0; i < in.n; ++i) {
    const sn_real *from = in.v[i], *to = in.v[i + 1 == in.n ? 0 : i + 1];
    const sn_real d = sign * from[k] - limit, e = sign * to[k] - limit;
    if (d <= 0 && poly->n < BOX_MAXVERT) sn_copy3(poly->v[poly->n++], from);
    if (((d < 0 && e > 0) || (d > 0 && e < 0)) && poly->n < BOX_MAXVERT) {
      const sn_real t = d / (d - e);
      for (int c = 0; c < 3; ++c) poly->v[poly->n][c] = from[c] + t * (to[c] - from[c]);
      ++poly->n;
    }
  }
}

// The reference face (normal a, outward sign `out`, of box `ref`) and the opposite face of the other box, as a polygon
// over the reference face. rot: axes of the other box in the reference frame (columns); centre: its centre.
SN_LOCAL void box_opposite_face(BoxPolygon *poly, const SnShape *ref, const SnShape *other, const sn_real *rot,
                                const sn_real *centre, int a, sn_real out) {
  int k = 0;
  for (int i = 1; i < 3; ++i)
    if (sn_abs(rot[3 * a + i]) > sn_abs(rot[3 * a + k])) k = i;
  const sn_real side = out * rot[3 * a + k] > 0 ? SN_R(-1.0) : SN_R(1.0);
  const int ku = (k + 1) % 3, kv = (k + 2) % 3;
  static const sn_real su[4] = {1, -1, -1, 1}, sv[4] = {1, 1, -1, -1};
  poly->n = 4;
  for (int r = 0; r < 3; ++r) {
    const int row = (a + 1 + r) % 3;
    const sn_real flip = r == 2 ? out : SN_R(1.0), base = r == 2 ? ref->size[a] : SN_R(0.0);
    const sn_real c = flip * (centre[row] + side * other->size[k] * rot[3 * row + k]) - base;
    const sn_real du = flip * other->size[ku] * rot[3 * row + ku], dv = flip * other->size[kv] * rot[3 * row + kv];
    for (int i = 0; i < 4; ++i) poly->v[i][r] = c + su[i] * du + sv[i] * dv;
  }
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
  box_opposite_face(&poly, ref, other, rot, centre, a, out);
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
    sn_contact_write_local(con + n, ref, v[2], pos, normal, code);
    kept[n++] = i;
  }
  return n;
}

SN_FUNC int sn_collide_box_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  BoxPair p = {.a = a, .b = b};
  BoxAxis face, best;
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
  if (!box_best_face(&p, &face) || !box_best_edge(&p, &face, &best)) return 0;
  if (best.code >= 6 && box_prefer_face(&p, &face, &best)) best = face;
  return best.code >= 6 ? box_edge_contact(&p, best.code, con) : box_face_contacts(&p, best.code, reach, con);
}
