// Ellipsoid against sphere, capsule and ellipsoid: the distance as a convex program, solved to rounding, in double. A
// second opinion on GJK and EPA, independent of both.
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
// Ellipsoid: with A = R S^2 R' the support function is h(n) = sqrt(n'A n), and the signed distance of two ellipsoids
// with centres d apart is the largest f(n) = n'd - h1(n) - h2(n) over unit vectors n. Newton's method on the sphere:
// the gradient is r = d - A1 n / h1 - A2 n / h2 less its part along n, the Hessian -(sum (A - A n n'A / h^2) / h + f
// I).
//
// Apart, these programs are convex. In each other, the stationary point is the nearest of the boundary where the depth
// is below the least radius of curvature c^2 / a (sum of both, for two ellipsoids): a ball of that radius rolls freely
// inside a convex body (Blaschke). Deeper, the general algorithm has to look (return value false).
#include "tests/harness/smooth.h"

#include <float.h>
#include <math.h>
#include <mujoco/mujoco.h>

enum { SMOOTH_STEPS = 60 };

typedef struct SmoothShape {
  double pos[3], mat[9], size[3];
} SmoothShape;

static void set3(double *r, double x, double y, double z) {
  r[0] = x;
  r[1] = y;
  r[2] = z;
}

// Root of sum (s_i y_i / (lambda + s2_i))^2 = 1 to the right of the poles; s2 = s^2. False: the point is at the centre
// of an axis.
static bool smooth_secular(const double *s, const double *s2, const double *y, int n, double *root) {
  // one term alone is 1 at lo, all of them together at most 1 at hi
  double lo = -1e30, norm2 = 0, largest = 0, scale = 0;
  for (int i = 0; i < n; ++i) {
    const double sy = s[i] * fabs(y[i]);
    lo = fmax(lo, sy - s2[i]);
    norm2 += sy * sy;
    largest = i == 0 ? s2[i] : fmin(largest, s2[i]);
    scale = fmax(scale, s2[i]);
  }
  double hi = sqrt(norm2) - largest, lambda = lo;
  if (!(lo > -largest)) return false;
  for (int k = 0; k < SMOOTH_STEPS; ++k) {
    double w2 = 0, slope = 0;
    for (int i = 0; i < n; ++i) {
      const double inv = 1 / (lambda + s2[i]), t = s[i] * y[i] * inv, t2 = t * t;
      w2 += t2;
      slope += t2 * inv;
    }
    if (w2 >= 1)
      lo = lambda;
    else
      hi = lambda;
    const double step = w2 * (sqrt(w2) - 1) / slope;
    double next = lambda + step;
    if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
    const double change = fabs(next - lambda);
    lambda = next;
    if (change <= 2.0 * DBL_EPSILON * (fabs(lambda) + 1e-3 * scale)) break;
  }
  *root = lambda;
  return true;
}

// Nearest point x of the ellipsoid with semi-axes s to y, all in its frame; n: outward unit normal there. Returns
// whether the signed distance is certain.
static bool smooth_point(const double *s, const double *y, double *dist, double *n, double *x) {
  const double s2[3] = {s[0] * s[0], s[1] * s[1], s[2] * s[2]};
  double lambda;
  if (!smooth_secular(s, s2, y, 3, &lambda)) return false;
  for (int i = 0; i < 3; ++i) {
    n[i] = y[i] / (lambda + s2[i]);
    x[i] = s2[i] * n[i];
  }
  const double norm = mju_norm3(n);
  mju_scl3(n, n, 1 / norm);
  *dist = lambda * norm;
  const double a = fmax(fmax(s[0], s[1]), s[2]), c = fmin(fmin(s[0], s[1]), s[2]);
  return *dist * a > -c * c;
}

// Orthonormal b1, b2 that make a right-handed frame with the unit vector u (Duff et al., "Building an orthonormal
// basis, revisited", JCGT 2017).
static void smooth_basis(const double *u, double *b1, double *b2) {
  const double sign = u[2] >= 0 ? 1.0 : -1.0, a = -1 / (sign + u[2]), b = u[0] * u[1] * a;
  set3(b1, 1 + sign * u[0] * u[0] * a, sign * b, -sign * u[0]);
  set3(b2, b, sign + u[1] * u[1] * a, -u[1]);
}

// Nearest points of the ellipsoid and the line q + t u, seen along u. Gives the signed distance, normal, point and t.
static bool smooth_line(const double *s, const double *q, const double *u, double *dist, double *n, double *x,
                        double *t) {
  const double s2[3] = {s[0] * s[0], s[1] * s[1], s[2] * s[2]};
  double b1[3], b2[3], a11 = 0, a12 = 0, a22 = 0;
  smooth_basis(u, b1, b2);
  for (int i = 0; i < 3; ++i) {
    a11 += s2[i] * b1[i] * b1[i];
    a12 += s2[i] * b1[i] * b2[i];
    a22 += s2[i] * b2[i] * b2[i];
  }
  // principal axes of the shadow
  const double half = 0.5 * (a11 - a22), mean = 0.5 * (a11 + a22), root = sqrt(half * half + a12 * a12);
  const double big = mean + root, e2[2] = {big, (a11 * a22 - a12 * a12) / big};
  double cx = half + (half >= 0 ? root : -root), cy = a12;
  if (half < 0) {
    cx = a12;
    cy = root - half;
  }
  double norm = sqrt(cx * cx + cy * cy);
  if (norm == 0) {
    cx = norm = 1;
    cy = 0;
  }
  cx /= norm;
  cy /= norm;
  const double e[2] = {sqrt(e2[0]), sqrt(e2[1])}, q1 = mju_dot3(b1, q), q2 = mju_dot3(b2, q);
  const double y[2] = {cx * q1 + cy * q2, cx * q2 - cy * q1};
  double lambda;
  if (!smooth_secular(e, e2, y, 2, &lambda)) return false;
  const double g1 = y[0] / (lambda + e2[0]), g2 = y[1] / (lambda + e2[1]);
  const double m1 = cx * g1 - cy * g2, m2 = cy * g1 + cx * g2;
  for (int i = 0; i < 3; ++i) n[i] = m1 * b1[i] + m2 * b2[i];
  const double length = mju_norm3(n);
  mju_scl3(n, n, 1 / length);
  *dist = lambda * length;
  double h = 0;
  for (int i = 0; i < 3; ++i) h += s2[i] * n[i] * n[i];
  h = sqrt(h);
  *t = 0;
  for (int i = 0; i < 3; ++i) {
    x[i] = s2[i] * n[i] / h;
    *t += (x[i] - q[i]) * u[i];
  }
  return true;
}

// Where the line q + t u is inside the ellipsoid: t in [from, to].
static void smooth_inside(const double *s, const double *q, const double *u, double *from, double *to) {
  double a = 0, b = 0, c = -1;
  for (int i = 0; i < 3; ++i) {
    const double ui = u[i] / s[i], qi = q[i] / s[i];
    a += ui * ui;
    b += ui * qi;
    c += qi * qi;
  }
  const double root = sqrt(fmax(b * b - a * c, 0));
  *from = (-b - root) / a;
  *to = (-b + root) / a;
}

// The same with the segment |t| <= half.
static bool smooth_segment(const double *s, const double *q, const double *u, double half, double *dist, double *n,
                           double *x) {
  double t, end[3];
  if (!smooth_line(s, q, u, dist, n, x, &t)) return false;
  if (*dist > 0) {
    if (fabs(t) <= half) return true;
  } else {
    double from, to;
    smooth_inside(s, q, u, &from, &to);
    if (from <= half && to >= -half) return false;
    t = from;
  }
  mju_addScl3(end, q, u, t > 0 ? half : -half);
  return smooth_point(s, end, dist, n, x);
}

static bool smooth_round(const SmoothShape *a, const SmoothShape *b, double radius, double half, bool rod,
                         SmoothNearest *r) {
  double q[3], u[3], d[3], n[3], x[3];
  mju_sub3(d, b->pos, a->pos);
  mju_mulMatTVec3(q, a->mat, d);
  bool ok;
  if (rod) {
    const double axis[3] = {b->mat[2], b->mat[5], b->mat[8]};
    mju_mulMatTVec3(u, a->mat, axis);
    ok = smooth_segment(a->size, q, u, half, &r->dist, n, x);
  } else {
    ok = smooth_point(a->size, q, &r->dist, n, x);
  }
  if (!ok) return false;
  mju_mulMatVec3(r->normal, a->mat, n);
  mju_mulMatVec3(r->x1, a->mat, x);
  mju_addTo3(r->x1, a->pos);
  mju_addScl3(r->x2, r->x1, r->normal, r->dist - radius);
  r->dist -= radius;
  return true;
}

// A = R S^2 R', upper triangle by rows.
static void smooth_matrix(const SmoothShape *e, double *a) {
  const double s0 = e->size[0] * e->size[0], s1 = e->size[1] * e->size[1], s2 = e->size[2] * e->size[2];
  for (int i = 0, k = 0; i < 3; ++i)
    for (int j = i; j < 3; ++j, ++k) {
      const double *p = e->mat + 3 * i, *q = e->mat + 3 * j;
      a[k] = s0 * p[0] * q[0] + s1 * p[1] * q[1] + s2 * p[2] * q[2];
    }
}

static void smooth_mul(double *r, const double *a, const double *x) {
  r[0] = a[0] * x[0] + a[1] * x[1] + a[2] * x[2];
  r[1] = a[1] * x[0] + a[3] * x[1] + a[4] * x[2];
  r[2] = a[2] * x[0] + a[4] * x[1] + a[5] * x[2];
}

// x = A^-1 b for a symmetric A, up to a positive factor.
static void smooth_solve(double *x, const double *a, const double *b) {
  const double c[6] = {a[3] * a[5] - a[4] * a[4], a[2] * a[4] - a[1] * a[5], a[1] * a[4] - a[2] * a[3],
                       a[0] * a[5] - a[2] * a[2], a[1] * a[2] - a[0] * a[4], a[0] * a[3] - a[1] * a[1]};
  smooth_mul(x, c, b);
}

// Two ellipsoids at a direction n.
typedef struct SmoothPair {
  double n[3];
  double g1[3], g2[3];  // support points from the centres
  double h1, h2;
  double r[3];  // gradient
  double f;
} SmoothPair;

static void smooth_evaluate(SmoothPair *p, const double *a1, const double *a2, const double *d) {
  smooth_mul(p->g1, a1, p->n);
  smooth_mul(p->g2, a2, p->n);
  p->h1 = sqrt(mju_dot3(p->g1, p->n));
  p->h2 = sqrt(mju_dot3(p->g2, p->n));
  mju_scl3(p->g1, p->g1, 1 / p->h1);
  mju_scl3(p->g2, p->g2, 1 / p->h2);
  for (int i = 0; i < 3; ++i) p->r[i] = d[i] - p->g1[i] - p->g2[i];
  p->f = mju_dot3(p->n, p->r);
}

// b'((A - g g') / h) c for both ellipsoids.
static double smooth_curvature(const SmoothPair *p, const double *a1, const double *a2, const double *b,
                               const double *c) {
  double t[3];
  smooth_mul(t, a1, c);
  const double k1 = (mju_dot3(b, t) - mju_dot3(b, p->g1) * mju_dot3(c, p->g1)) / p->h1;
  smooth_mul(t, a2, c);
  return k1 + (mju_dot3(b, t) - mju_dot3(b, p->g2) * mju_dot3(c, p->g2)) / p->h2;
}

static double smooth_least_radius(const SmoothShape *e) {
  const double *s = e->size;
  const double a = fmax(fmax(s[0], s[1]), s[2]), c = fmin(fmin(s[0], s[1]), s[2]);
  return c * c / a;
}

static bool smooth_ellipsoids(const SmoothShape *a, const SmoothShape *b, SmoothNearest *r) {
  double a1[6], a2[6], sum[6], d[3], b1[3], b2[3];
  SmoothPair p, q;
  smooth_matrix(a, a1);
  smooth_matrix(b, a2);
  mju_sub3(d, b->pos, a->pos);
  if (!(mju_dot3(d, d) > 0)) return false;

  // start: the normal of an ellipsoid around the sum of the two, scaled to pass through the other centre
  const double ratio = sqrt((a2[0] + a2[3] + a2[5]) / (a1[0] + a1[3] + a1[5]));
  for (int i = 0; i < 6; ++i) sum[i] = (1 + ratio) * a1[i] + (1 + 1 / ratio) * a2[i];
  smooth_solve(p.n, sum, d);
  mju_scl3(p.n, p.n, 1 / mju_norm3(p.n));
  smooth_evaluate(&p, a1, a2, d);

  const double deepest = -smooth_least_radius(a) - smooth_least_radius(b);
  for (int k = 0; k < SMOOTH_STEPS; ++k) {
    smooth_basis(p.n, b1, b2);
    const double h11 = smooth_curvature(&p, a1, a2, b1, b1) + p.f, h12 = smooth_curvature(&p, a1, a2, b1, b2);
    const double h22 = smooth_curvature(&p, a1, a2, b2, b2) + p.f, det = h11 * h22 - h12 * h12;
    if (!(h11 > 0 && det > 0)) return false;
    const double r1 = mju_dot3(b1, p.r), r2 = mju_dot3(b2, p.r);
    double x1 = (h22 * r1 - h12 * r2) / det, x2 = (h11 * r2 - h12 * r1) / det;
    const bool last = x1 * x1 + x2 * x2 < 1e-17;
    for (int half = 0;; ++half) {
      for (int i = 0; i < 3; ++i) q.n[i] = p.n[i] + x1 * b1[i] + x2 * b2[i];
      mju_scl3(q.n, q.n, 1 / mju_norm3(q.n));
      smooth_evaluate(&q, a1, a2, d);
      if (last || q.f >= p.f) break;
      if (half == 20) return false;
      x1 *= 0.5;
      x2 *= 0.5;
    }
    p = q;
    if (!last) continue;
    if (!(p.f > deepest)) return false;
    r->dist = p.f;
    mju_copy3(r->normal, p.n);
    mju_add3(r->x1, a->pos, p.g1);
    mju_sub3(r->x2, b->pos, p.g2);
    return true;
  }
  return false;
}

static void take(SmoothShape *r, const SnConvex *s) {
  for (int i = 0; i < 3; ++i) r->pos[i] = (double)s->pos[i];
  for (int i = 0; i < 9; ++i) r->mat[i] = (double)s->mat[i];
  for (int i = 0; i < 3; ++i) r->size[i] = (double)s->size[i];
}

bool smooth_nearest(const SnConvex *a, const SnConvex *b, SmoothNearest *r) {
  SmoothShape sa, sb;
  take(&sa, a);
  take(&sb, b);
  if (a->type == SN_GEOM_ELLIPSOID) return smooth_ellipsoids(&sa, &sb, r);
  if (!smooth_round(&sb, &sa, sa.size[0], sa.size[1], a->type == SN_GEOM_CAPSULE, r)) return false;
  for (int i = 0; i < 3; ++i) {
    const double x = r->x1[i];
    r->normal[i] = -r->normal[i];
    r->x1[i] = r->x2[i];
    r->x2[i] = x;
  }
  return true;
}
