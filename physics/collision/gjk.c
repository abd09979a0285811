// Distance of two convex shapes: Gilbert, Johnson and Keerthi (1988).
//
// x is the point nearest to the origin of a simplex of up to four vertices of the Minkowski difference. The support
// point s along -x either improves the simplex or proves that x is the answer: for every point y of the difference y'x
// >= s'x, so the distance is at least s'x / |x|, and |x - x*|^2 <= x'(x - s) (the duality gap of Frank and Wolfe). The
// point of a simplex nearest to the origin comes from signed volumes (Montanari, Petrinic and Barbieri, "Improving the
// GJK algorithm for faster and more reliable distance queries between convex objects", ACM ToG 2017): the ratios of the
// volumes that the origin makes with the faces are its barycentric coordinates; a sign that differs says which faces to
// try.
#include "physics/base/vec.h"
#include "physics/collision/convex_private.h"

// Determinant of three columns.
SN_LOCAL sn_real gjk_det(const sn_real *a, const sn_real *b, const sn_real *c) {
  return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
}

SN_LOCAL bool gjk_same_sign(sn_real a, sn_real b) { return (a > 0 && b > 0) || (a < 0 && b < 0); }

SN_FUNC bool sn_project_origin(sn_real *r, const sn_real *v1, const sn_real *v2, const sn_real *v3) {
  // the normal from each corner in turn: the first that is long enough and not through the origin by rounding
  sn_real d21[3], d31[3], d32[3], n[3];
  sn_sub3(d21, v2, v1);
  sn_sub3(d31, v3, v1);
  sn_sub3(d32, v3, v2);
  for (int k = 0; k < 3; ++k) {
    const sn_real *at = k == 0 ? v2 : (k == 1 ? v1 : v3);
    if (k == 0)
      sn_cross(n, d32, d21);
    else if (k == 1)
      sn_cross(n, d21, d31);
    else
      sn_cross(n, d31, d32);
    const sn_real nv = sn_dot3(n, at), nn = sn_dot3(n, n);
    if (nn == 0) return false;
    if (k == 2 || (nv != 0 && nn > SN_CCD_MIN)) {
      sn_scale3(r, n, nv / nn);
      return true;
    }
  }
  return false;
}

// x: the point of the segment s1 s2 nearest to the origin, and its coordinates lambda.
SN_LOCAL void gjk_segment(sn_real *lambda, sn_real *x, const sn_real *s1, const sn_real *s2) {
  sn_real d[3];
  sn_sub3(d, s2, s1);
  const sn_real d2 = sn_dot3(d, d);
  lambda[0] = 0;
  lambda[1] = 1;
  sn_copy3(x, s2);
  if (!(d2 >= SN_CCD_MIN2)) return;
  sn_real p[3];
  sn_addscl3(p, s2, d, -sn_dot3(s2, d) / d2);

  // compare along the axis on which the segment is longest
  int k = 0;
  if (sn_abs(s1[1] - s2[1]) >= sn_abs(s1[0] - s2[0])) k = 1;
  if (sn_abs(s1[2] - s2[2]) >= sn_abs(s1[k] - s2[k])) k = 2;
  const sn_real length = s1[k] - s2[k], c1 = p[k] - s2[k], c2 = s1[k] - p[k];
  const bool in1 = gjk_same_sign(length, c1);
  if (in1 && gjk_same_sign(length, c2)) {
    lambda[0] = c1 / length;
    lambda[1] = c2 / length;
    sn_copy3(x, p);
  } else if (in1) {
    lambda[0] = 1;
    lambda[1] = 0;
    sn_copy3(x, s1);
  }
}

// r = sum of coef[i] v_i.
SN_LOCAL void gjk_combine2(sn_real *r, const sn_real *coef, const sn_real *v1, const sn_real *v2) {
  for (int i = 0; i < 3; ++i) r[i] = coef[0] * v1[i] + coef[1] * v2[i];
}
SN_LOCAL void gjk_combine3(sn_real *r, const sn_real *coef, const sn_real *v1, const sn_real *v2, const sn_real *v3) {
  for (int i = 0; i < 3; ++i) r[i] = coef[0] * v1[i] + coef[1] * v2[i] + coef[2] * v3[i];
}

// Takes the nearest point y, with coordinates sub, of the face that leaves out vertex `out` of n when it is closer than
// *best. Which is closer is asked of the point z that the coordinates make.
SN_LOCAL void gjk_keep(sn_real *lambda, sn_real *x, int n, int out, const sn_real *sub, const sn_real *y,
                       const sn_real *z, sn_real *best) {
  const sn_real d = sn_dot3(z, z);
  if (!(d < *best)) return;
  for (int i = 0, k = 0; i < n; ++i) lambda[i] = i == out ? 0 : sub[k++];
  sn_copy3(x, y);
  *best = d;
}

SN_LOCAL void gjk_try_edge(sn_real *lambda, sn_real *x, int out, const sn_real *s1, const sn_real *s2, sn_real *best) {
  sn_real sub[2], y[3], z[3];
  gjk_segment(sub, y, s1, s2);
  gjk_combine2(z, sub, s1, s2);
  gjk_keep(lambda, x, 3, out, sub, y, z, best);
}

SN_FUNC void sn_nearest_in_triangle(sn_real *lambda, sn_real *x, const sn_real *s1, const sn_real *s2,
                                    const sn_real *s3) {
  sn_real p[3], best = SN_CCD_FAR;
  bool in1 = false, in2 = false, in3 = false;
  sn_set3(lambda, 0, 0, 0);
  if (sn_project_origin(p, s1, s2, s3)) {
    // areas of the triangle and of those that the projected origin makes, in the plane of two axes where it is largest
    sn_real a[3], b[3];
    sn_sub3(a, s2, s1);
    sn_sub3(b, s3, s1);
    const sn_real m14 = b[2] * a[1] - a[2] * b[1], m24 = b[2] * a[0] - a[2] * b[0], m34 = a[0] * b[1] - a[1] * b[0];
    const sn_real mu1 = sn_abs(m14), mu2 = sn_abs(m24), mu3 = sn_abs(m34);
    int i = 0, j = 2;
    sn_real area = m24;
    if (mu1 >= mu2 && mu1 >= mu3) {
      i = 1;
      area = m14;
    } else if (mu2 < mu3) {
      j = 1;
      area = m34;
    }
    const sn_real a1 = s1[i] - p[i], a2 = s2[i] - p[i], a3 = s3[i] - p[i];
    const sn_real b1 = s1[j] - p[j], b2 = s2[j] - p[j], b3 = s3[j] - p[j];
    const sn_real c1 = b3 * a2 - a3 * b2, c2 = a3 * b1 - a1 * b3, c3 = a1 * b2 - a2 * b1;
    in1 = gjk_same_sign(area, c1);
    in2 = gjk_same_sign(area, c2);
    in3 = gjk_same_sign(area, c3);
    if (in1 && in2 && in3) {
      const sn_real sum = c1 + c2 + c3;
      sn_set3(lambda, c1 / sum, c2 / sum, c3 / sum);
      sn_copy3(x, p);
      return;
    }
  }
  if (!in1) gjk_try_edge(lambda, x, 0, s2, s3, &best);
  if (!in2) gjk_try_edge(lambda, x, 1, s1, s3, &best);
  if (!in3) gjk_try_edge(lambda, x, 2, s1, s2, &best);
}

SN_LOCAL void gjk_try_face(sn_real *lambda, sn_real *x, int out, const sn_real *s1, const sn_real *s2,
                           const sn_real *s3, sn_real *best) {
  sn_real sub[3], y[3], z[3];
  sn_nearest_in_triangle(sub, y, s1, s2, s3);
  gjk_combine3(z, sub, s1, s2, s3);
  gjk_keep(lambda, x, 4, out, sub, y, z, best);
}

// The same in a tetrahedron; all four are positive when the origin is inside.
SN_LOCAL void gjk_tetrahedron(sn_real *lambda, sn_real *x, const sn_real *s1, const sn_real *s2, const sn_real *s3,
                              const sn_real *s4) {
  const sn_real c1 = -gjk_det(s2, s3, s4), c2 = gjk_det(s1, s3, s4), c3 = -gjk_det(s1, s2, s4),
                c4 = gjk_det(s1, s2, s3);
  const sn_real det = c1 + c2 + c3 + c4;
  const bool in1 = gjk_same_sign(det, c1), in2 = gjk_same_sign(det, c2);
  const bool in3 = gjk_same_sign(det, c3), in4 = gjk_same_sign(det, c4);
  if (in1 && in2 && in3 && in4) {
    lambda[0] = c1 / det;
    lambda[1] = c2 / det;
    lambda[2] = c3 / det;
    lambda[3] = c4 / det;
    return;
  }
  sn_real best = SN_CCD_FAR;
  if (!in1) gjk_try_face(lambda, x, 0, s2, s3, s4, &best);
  if (!in2) gjk_try_face(lambda, x, 1, s1, s3, s4, &best);
  if (!in3) gjk_try_face(lambda, x, 2, s1, s2, s4, &best);
  if (!in4) gjk_try_face(lambda, x, 3, s1, s2, s3, &best);
}

// x: the nearest point of the simplex c->simplex[0..n): keeps the vertices that carry it, with lambda; returns their
// number. With four of them x is the origin and not written.
SN_LOCAL int gjk_reduce(SnCcd *c, int n, sn_real *lambda, sn_real *x) {
  SnCcdVertex *s = c->simplex;
  for (int i = 0; i < 4; ++i) lambda[i] = 0;
  switch (n) {
    case 1:
      lambda[0] = 1;
      sn_copy3(x, s[0].v);
      break;
    case 2:
      gjk_segment(lambda, x, s[0].v, s[1].v);
      break;
    case 3:
      sn_nearest_in_triangle(lambda, x, s[0].v, s[1].v, s[2].v);
      break;
    default:
      gjk_tetrahedron(lambda, x, s[0].v, s[1].v, s[2].v, s[3].v);
      break;
  }
  int kept = 0;
  for (int i = 0; i < n; ++i) {
    if (lambda[i] == 0) continue;
    if (kept != i) s[kept] = s[i];
    lambda[kept++] = lambda[i];
  }
  return kept;
}

// Witness points from the coordinates.
SN_LOCAL void gjk_witness(SnCcd *c, int n, const sn_real *lambda) {
  const SnCcdVertex *s = c->simplex;
  for (int i = 0; i < 3; ++i) {
    sn_real a = lambda[0] * s[0].v1[i], b = lambda[0] * s[0].v2[i];
    for (int k = 1; k < n; ++k) {
      a += lambda[k] * s[k].v1[i];
      b += lambda[k] * s[k].v2[i];
    }
    c->x1[i] = a;
    c->x2[i] = b;
  }
}

SN_FUNC void sn_ccd_straighten(SnCcd *c, const sn_real *r) {
#ifdef SN_SINGLE
  for (int i = 0; i < 3; ++i) {
    const sn_real middle = SN_R(0.5) * (c->x1[i] + c->x2[i]);
    c->x1[i] = middle + SN_R(0.5) * r[i];
    c->x2[i] = middle - SN_R(0.5) * r[i];
  }
#else
  (void)c;
  (void)r;
#endif
}

// Support point of the difference towards the origin from x.
SN_LOCAL void gjk_support(SnCcd *c, const sn_real *x, sn_real norm, SnCcdVertex *v) {
  const sn_real inv = 1 / norm;
  const sn_real dir[3] = {-(inv * x[0]), -(inv * x[1]), -(inv * x[2])};
  sn_ccd_support(c, dir, v);
}

// The shapes are farther apart than anyone asked.
SN_LOCAL void gjk_far(SnCcd *c) {
  c->nx = 0;
  c->dist[0] = SN_CCD_FAR;
}

// Writes the result: n corners of the simplex with weights lambda, whose nearest point to the origin is x, at distance
// norm.
SN_LOCAL void gjk_finish(SnCcd *c, int n, const sn_real *lambda, const sn_real *x, sn_real norm) {
  if (n > 0) {
    gjk_witness(c, n, lambda);
    if (n < 4) sn_ccd_straighten(c, x);
  }
  if (n < 4 && !c->separated && norm >= SN_CCD_MIN) {
    SnCcdVertex v;
    gjk_support(c, x, norm, &v);
    if (sn_dot3(x, v.v) > 0) c->separated = true;
  }
  c->nx = 1;
  c->n = n;
  c->dist[0] = norm;
}

SN_FUNC void sn_gjk(SnCcd *c) {
  const bool discrete = sn_ccd_is_discrete(c), want_distance = c->cutoff > 0;
  const sn_real epsilon = discrete ? 0 : SN_R(0.5) * (c->tolerance * c->tolerance);
  const sn_real touching = discrete || want_distance ? SN_CCD_NOISE : c->tolerance;
  sn_real lambda[4] = {0, 0, 0, 0}, x[3], diff[3];
  int n = 0;
  c->separated = false;
  c->n = 0;

  // from the guess, or any direction when that is the origin
  sn_sub3(x, c->x1, c->x2);
  sn_real norm = sn_norm3(x);
  if (norm < SN_CCD_MIN) {
    sn_set3(x, 1, 0, 0);
    norm = 1;
  }

  for (int k = 0; k < c->iterations; ++k) {
    SnCcdVertex *s = c->simplex + n;
    gjk_support(c, x, norm, s);

    // a lower bound of the distance
    const sn_real lower = sn_dot3(x, s->v);
    if (lower > 0) {
      c->separated = true;
      if (!want_distance || (c->cutoff < SN_CCD_FAR && lower >= c->cutoff * norm)) {
        gjk_far(c);
        return;
      }
    }
    sn_sub3(diff, x, s->v);
    if (k > 0 && sn_dot3(x, diff) < epsilon + SN_CCD_GAP * (norm * norm)) break;

    n = gjk_reduce(c, n + 1, lambda, x);
    if (n == 0) {  // not a number
      c->separated = true;
      gjk_far(c);
      return;
    }
    if (n == 4) {
      if (!c->separated) norm = 0;
      break;
    }

    // done when the next point is the origin or stands still
    const sn_real previous = norm;
    norm = sn_norm3(x);
    if (norm < (n == 1 ? SN_CCD_MIN : touching)) break;
    if (k > 0 && sn_abs(norm - previous) < SN_CCD_MIN) break;
  }
  gjk_finish(c, n, lambda, x, norm);
}
