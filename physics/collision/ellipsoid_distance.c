// Ellipsoid against sphere, capsule and ellipsoid: the distance as a convex program, solved to rounding. Contacts at a
// distance come from here (faster than GJK, and exact); those that touch follow MuJoCo's iterations instead
// (collide_convex.c), for which this is a second opinion in the tests.
//
// Point y (in the ellipsoid's frame, semi-axes s): the nearest point is x_i = s_i^2 g_i with y - x = lambda g, so
// g_i = y_i / (lambda + s_i^2), and lambda is the root of the secular equation w(lambda)^2 = sum (s_i g_i)^2 = 1
// (Eberly, "Distance from a point to an ellipse, an ellipsoid, or a hyperellipsoid", 2013). 1 / w is close to a
// straight line (Moré and Sorensen 1983), so Newton's method on 1 / w - 1 takes a few steps. The signed distance is
// lambda |g|.
//
// Segment: seen along its line, the ellipsoid is an ellipse and the line a point, so the nearest point of the line
// comes from the same equation with two terms; where it lies beyond an end of the segment, the end is the nearest.
//
// Ellipsoid: with A = R S^2 R' the support function is h(n) = sn_sqrt(n'A n), and the signed distance of two ellipsoids
// with centres d apart is the largest f(n) = n'd - h1(n) - h2(n) over unit vectors n. Newton's method on the sphere:
// the gradient is r = d - A1 n / h1 - A2 n / h2 less its part along n, the Hessian -(sum (A - A n n'A / h^2) / h + f
// I).
//
// Apart, these programs are convex. In each other, the stationary point is the nearest of the boundary where the depth
// is below the least radius of curvature c^2 / a (sum of both, for two ellipsoids): a ball of that radius rolls freely
// inside a convex body (Blaschke). Deeper, the general algorithm has to look (return value false).
#include "physics/collision/collide_private.h"

#include "physics/base/vec.h"

enum { ELLIPSOID_STEPS = 60 };

// Root of sum (s_i y_i / (lambda + s2_i))^2 = 1 to the right of the poles; s2 = s^2. False: the point is at the centre
// of an axis.
SN_LOCAL bool ellipsoid_secular(const sn_real *s, const sn_real *s2, const sn_real *y, int n, sn_real *root) {
  // one term alone is 1 at lo, all of them together at most 1 at hi
  sn_real lo = -SN_R(1e30), norm2 = 0, largest = 0, scale = 0;
  for (int i = 0; i < n; ++i) {
    const sn_real sy = s[i] * sn_abs(y[i]);
    lo = sn_max(lo, sy - s2[i]);
    norm2 += sy * sy;
    largest = i == 0 ? s2[i] : sn_min(largest, s2[i]);
    scale = sn_max(scale, s2[i]);
  }
  sn_real hi = sn_sqrt(norm2) - largest, lambda = lo;
  if (!(lo > -largest)) return false;
  for (int k = 0; k < ELLIPSOID_STEPS; ++k) {
    sn_real w2 = 0, slope = 0;
    for (int i = 0; i < n; ++i) {
      const sn_real inv = 1 / (lambda + s2[i]), t = s[i] * y[i] * inv, t2 = t * t;
      w2 += t2;
      slope += t2 * inv;
    }
    if (w2 >= 1)
      lo = lambda;
    else
      hi = lambda;
    const sn_real step = w2 * (sn_sqrt(w2) - 1) / slope;
    sn_real next = lambda + step;
    // a step of rounding ends it, before the bracket, one side of which may still be far away, is asked
    if (sn_abs(step) <= SN_R(4.0) * SN_EPS * (sn_abs(lambda) + SN_R(1e-3) * scale)) break;
    if (!(next > lo && next < hi)) next = SN_R(0.5) * (lo + hi);
    lambda = next;
  }
  *root = lambda;
  return true;
}

// Nearest point x of the ellipsoid with semi-axes s to y, all in its frame; n: outward unit normal there. Returns
// whether the signed distance is certain.
SN_LOCAL bool ellipsoid_point(const sn_real *s, const sn_real *y, sn_real *dist, sn_real *n, sn_real *x) {
  const sn_real s2[3] = {s[0] * s[0], s[1] * s[1], s[2] * s[2]};
  sn_real lambda;
  if (!ellipsoid_secular(s, s2, y, 3, &lambda)) return false;
  for (int i = 0; i < 3; ++i) {
    n[i] = y[i] / (lambda + s2[i]);
    x[i] = s2[i] * n[i];
  }
  const sn_real norm = sn_norm3(n);
  sn_scale3(n, n, 1 / norm);
  *dist = lambda * norm;
  const sn_real a = sn_max(sn_max(s[0], s[1]), s[2]), c = sn_min(sn_min(s[0], s[1]), s[2]);
  return *dist * a > -c * c;
}

// Orthonormal b1, b2 that make a right-handed frame with the unit vector u (Duff et al., "Building an orthonormal
// basis, revisited", JCGT 2017).
SN_LOCAL void ellipsoid_basis(const sn_real *u, sn_real *b1, sn_real *b2) {
  const sn_real sign = u[2] >= 0 ? SN_R(1.0) : -SN_R(1.0), a = -1 / (sign + u[2]), b = u[0] * u[1] * a;
  sn_set3(b1, 1 + sign * u[0] * u[0] * a, sign * b, -sign * u[0]);
  sn_set3(b2, b, sign + u[1] * u[1] * a, -u[1]);
}

// Nearest points of the ellipsoid and the line q + t u, seen along u. Gives the signed distance, normal, point and t.
SN_LOCAL bool ellipsoid_line(const sn_real *s, const sn_real *q, const sn_real *u, sn_real *dist, sn_real *n,
                             sn_real *x, sn_real *t) {
  const sn_real s2[3] = {s[0] * s[0], s[1] * s[1], s[2] * s[2]};
  sn_real b1[3], b2[3], a11 = 0, a12 = 0, a22 = 0;
  ellipsoid_basis(u, b1, b2);
  for (int i = 0; i < 3; ++i) {
    a11 += s2[i] * b1[i] * b1[i];
    a12 += s2[i] * b1[i] * b2[i];
    a22 += s2[i] * b2[i] * b2[i];
  }
  // principal axes of the shadow
  const sn_real half = SN_R(0.5) * (a11 - a22), mean = SN_R(0.5) * (a11 + a22), root = sn_sqrt(half * half + a12 * a12);
  const sn_real big = mean + root, e2[2] = {big, (a11 * a22 - a12 * a12) / big};
  sn_real cx = half + (half >= 0 ? root : -root), cy = a12;
  if (half < 0) {
    cx = a12;
    cy = root - half;
  }
  sn_real norm = sn_sqrt(cx * cx + cy * cy);
  if (norm == 0) {
    cx = norm = 1;
    cy = 0;
  }
  cx /= norm;
  cy /= norm;
  const sn_real e[2] = {sn_sqrt(e2[0]), sn_sqrt(e2[1])}, q1 = sn_dot3(b1, q), q2 = sn_dot3(b2, q);
  const sn_real y[2] = {cx * q1 + cy * q2, cx * q2 - cy * q1};
  sn_real lambda;
  if (!ellipsoid_secular(e, e2, y, 2, &lambda)) return false;
  const sn_real g1 = y[0] / (lambda + e2[0]), g2 = y[1] / (lambda + e2[1]);
  const sn_real m1 = cx * g1 - cy * g2, m2 = cy * g1 + cx * g2;
  for (int i = 0; i < 3; ++i) n[i] = m1 * b1[i] + m2 * b2[i];
  const sn_real length = sn_norm3(n);
  sn_scale3(n, n, 1 / length);
  *dist = lambda * length;
  sn_real h = 0;
  for (int i = 0; i < 3; ++i) h += s2[i] * n[i] * n[i];
  h = sn_sqrt(h);
  *t = 0;
  for (int i = 0; i < 3; ++i) {
    x[i] = s2[i] * n[i] / h;
    *t += (x[i] - q[i]) * u[i];
  }
  return true;
}

// Where the line q + t u is inside the ellipsoid: t in [from, to].
SN_LOCAL void ellipsoid_inside(const sn_real *s, const sn_real *q, const sn_real *u, sn_real *from, sn_real *to) {
  sn_real a = 0, b = 0, c = -1;
  for (int i = 0; i < 3; ++i) {
    const sn_real ui = u[i] / s[i], qi = q[i] / s[i];
    a += ui * ui;
    b += ui * qi;
    c += qi * qi;
  }
  const sn_real root = sn_sqrt(sn_max(b * b - a * c, 0));
  *from = (-b - root) / a;
  *to = (-b + root) / a;
}

// The same with the segment |t| <= half.
SN_LOCAL bool ellipsoid_segment(const sn_real *s, const sn_real *q, const sn_real *u, sn_real half, sn_real *dist,
                                sn_real *n, sn_real *x) {
  sn_real t, end[3];
  if (!ellipsoid_line(s, q, u, dist, n, x, &t)) return false;
  if (*dist > 0) {
    if (sn_abs(t) <= half) return true;
  } else {
    sn_real from, to;
    ellipsoid_inside(s, q, u, &from, &to);
    if (from <= half && to >= -half) return false;
    t = from;
  }
  sn_addscl3(end, q, u, t > 0 ? half : -half);
  return ellipsoid_point(s, end, dist, n, x);
}

SN_LOCAL bool ellipsoid_round(const SnShape *a, const SnShape *b, sn_real radius, sn_real half, bool rod,
                              SnNearest *r) {
  sn_real q[3], u[3], d[3], n[3], x[3];
  sn_sub3(d, b->pos, a->pos);
  sn_mulmattvec3(q, a->mat, d);
  bool ok;
  if (rod) {
    const sn_real axis[3] = {b->mat[2], b->mat[5], b->mat[8]};
    sn_mulmattvec3(u, a->mat, axis);
    ok = ellipsoid_segment(a->size, q, u, half, &r->dist, n, x);
  } else {
    ok = ellipsoid_point(a->size, q, &r->dist, n, x);
  }
  if (!ok) return false;
  sn_mulmatvec3(r->normal, a->mat, n);
  sn_mulmatvec3(r->x1, a->mat, x);
  sn_addto3(r->x1, a->pos);
  sn_addscl3(r->x2, r->x1, r->normal, r->dist - radius);
  r->dist -= radius;
  return true;
}

// A = R S^2 R', upper triangle by rows.
SN_LOCAL void ellipsoid_matrix(const SnShape *e, sn_real *a) {
  const sn_real s0 = e->size[0] * e->size[0], s1 = e->size[1] * e->size[1], s2 = e->size[2] * e->size[2];
  for (int i = 0, k = 0; i < 3; ++i)
    for (int j = i; j < 3; ++j, ++k) {
      const sn_real *p = e->mat + 3 * i, *q = e->mat + 3 * j;
      a[k] = s0 * p[0] * q[0] + s1 * p[1] * q[1] + s2 * p[2] * q[2];
    }
}

SN_LOCAL void ellipsoid_mul(sn_real *r, const sn_real *a, const sn_real *x) {
  r[0] = a[0] * x[0] + a[1] * x[1] + a[2] * x[2];
  r[1] = a[1] * x[0] + a[3] * x[1] + a[4] * x[2];
  r[2] = a[2] * x[0] + a[4] * x[1] + a[5] * x[2];
}

// x = A^-1 b for a symmetric A, up to a positive factor.
SN_LOCAL void ellipsoid_solve(sn_real *x, const sn_real *a, const sn_real *b) {
  const sn_real c[6] = {a[3] * a[5] - a[4] * a[4], a[2] * a[4] - a[1] * a[5], a[1] * a[4] - a[2] * a[3],
                        a[0] * a[5] - a[2] * a[2], a[1] * a[2] - a[0] * a[4], a[0] * a[3] - a[1] * a[1]};
  ellipsoid_mul(x, c, b);
}

// Two ellipsoids at a direction n.
typedef struct EllipsoidPair {
  sn_real n[3];
  sn_real g1[3], g2[3];  // support points from the centres
  sn_real h1, h2;
  sn_real r[3];  // gradient
  sn_real f;
} EllipsoidPair;

SN_LOCAL void ellipsoid_evaluate(EllipsoidPair *p, const sn_real *a1, const sn_real *a2, const sn_real *d) {
  ellipsoid_mul(p->g1, a1, p->n);
  ellipsoid_mul(p->g2, a2, p->n);
  p->h1 = sn_sqrt(sn_dot3(p->g1, p->n));
  p->h2 = sn_sqrt(sn_dot3(p->g2, p->n));
  sn_scale3(p->g1, p->g1, 1 / p->h1);
  sn_scale3(p->g2, p->g2, 1 / p->h2);
  for (int i = 0; i < 3; ++i) p->r[i] = d[i] - p->g1[i] - p->g2[i];
  p->f = sn_dot3(p->n, p->r);
}

// b'((A - g g') / h) c for both ellipsoids.
SN_LOCAL sn_real ellipsoid_curvature(const EllipsoidPair *p, const sn_real *a1, const sn_real *a2, const sn_real *b,
                                     const sn_real *c) {
  sn_real t[3];
  ellipsoid_mul(t, a1, c);
  const sn_real k1 = (sn_dot3(b, t) - sn_dot3(b, p->g1) * sn_dot3(c, p->g1)) / p->h1;
  ellipsoid_mul(t, a2, c);
  return k1 + (sn_dot3(b, t) - sn_dot3(b, p->g2) * sn_dot3(c, p->g2)) / p->h2;
}

SN_LOCAL sn_real ellipsoid_least_radius(const SnShape *e) {
  const sn_real *s = e->size;
  const sn_real a = sn_max(sn_max(s[0], s[1]), s[2]), c = sn_min(sn_min(s[0], s[1]), s[2]);
  return c * c / a;
}

SN_LOCAL bool ellipsoid_ellipsoid(const SnShape *a, const SnShape *b, SnNearest *r) {
  sn_real a1[6], a2[6], sum[6], d[3], b1[3], b2[3];
  EllipsoidPair p, q;
  ellipsoid_matrix(a, a1);
  ellipsoid_matrix(b, a2);
  sn_sub3(d, b->pos, a->pos);
  if (!(sn_dot3(d, d) > 0)) return false;

  // start: the normal of an ellipsoid around the sum of the two, scaled to pass through the other centre
  const sn_real ratio = sn_sqrt((a2[0] + a2[3] + a2[5]) / (a1[0] + a1[3] + a1[5]));
  for (int i = 0; i < 6; ++i) sum[i] = (1 + ratio) * a1[i] + (1 + 1 / ratio) * a2[i];
  ellipsoid_solve(p.n, sum, d);
  sn_scale3(p.n, p.n, 1 / sn_norm3(p.n));
  ellipsoid_evaluate(&p, a1, a2, d);

  const sn_real deepest = -ellipsoid_least_radius(a) - ellipsoid_least_radius(b);
  for (int k = 0; k < ELLIPSOID_STEPS; ++k) {
    ellipsoid_basis(p.n, b1, b2);
    const sn_real h11 = ellipsoid_curvature(&p, a1, a2, b1, b1) + p.f, h12 = ellipsoid_curvature(&p, a1, a2, b1, b2);
    const sn_real h22 = ellipsoid_curvature(&p, a1, a2, b2, b2) + p.f, det = h11 * h22 - h12 * h12;
    if (!(h11 > 0 && det > 0)) return false;
    const sn_real r1 = sn_dot3(b1, p.r), r2 = sn_dot3(b2, p.r);
    sn_real x1 = (h22 * r1 - h12 * r2) / det, x2 = (h11 * r2 - h12 * r1) / det;
    const bool last = x1 * x1 + x2 * x2 < SN_R(0.05) * SN_EPS;
    for (int half = 0;; ++half) {
      for (int i = 0; i < 3; ++i) q.n[i] = p.n[i] + x1 * b1[i] + x2 * b2[i];
      sn_scale3(q.n, q.n, 1 / sn_norm3(q.n));
      ellipsoid_evaluate(&q, a1, a2, d);
      if (last || q.f >= p.f) break;
      if (half == 20) return false;
      x1 *= SN_R(0.5);
      x2 *= SN_R(0.5);
    }
    p = q;
    if (!last) continue;
    if (!(p.f > deepest)) return false;
    r->dist = p.f;
    sn_copy3(r->normal, p.n);
    sn_add3(r->x1, a->pos, p.g1);
    sn_sub3(r->x2, b->pos, p.g2);
    return true;
  }
  return false;
}

SN_FUNC bool sn_ellipsoid_nearest(int type, const SnShape *a, const SnShape *b, SnNearest *r) {
  if (type == SN_GEOM_ELLIPSOID) return ellipsoid_ellipsoid(a, b, r);
  if (!ellipsoid_round(b, a, a->size[0], a->size[1], type == SN_GEOM_CAPSULE, r)) return false;
  for (int i = 0; i < 3; ++i) {
    const sn_real x = r->x1[i];
    r->normal[i] = -r->normal[i];
    r->x1[i] = r->x2[i];
    r->x2[i] = x;
  }
  return true;
}
