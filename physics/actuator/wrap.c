// Wrapping of a tendon around a sphere or cylinder, MuJoCo 4.0.0's rules.
//
// Both cases reduce to a circle of radius r about the origin of a plane: for a cylinder the plane
// across its axis, for a sphere the plane through its centre and the two endpoints.
//
// Outside wrap. With t_i = sqrt(|p_i|^2 - r^2), a tangent from p_i touches the circle at an angle
// alpha_i = atan(t_i / r) from p_i. The path turns about the origin by the winding angle w: the angle
// from p0 to p1, or, with a side point s, the sum of the angles p0 to s and s to p1, each in (-pi, pi]
// (the tendon is homotopic to the polyline p0, s, p1; manual, XMLreference, spatial/geom/sidesite).
// It touches the circle when |w| > alpha_0 + alpha_1, over the arc |w| - alpha_0 - alpha_1. No angle is
// needed to decide: |w| > pi holds exactly when both partial angles turn one way and the direct angle
// the other way; for |w| <= pi the path is free when cos w >= cos(alpha_0 + alpha_1), that is
// p0 . p1 >= r^2 - t_0 t_1.
// An endpoint that lies on the surface to the last bit is free to go straight outwards; MuJoCo then winds
// the string around the geom (its test for a free segment excludes equality).
//
// Inside wrap (s inside the geom). The tendon touches the circle from within at one point, where it is
// reflected: the angle psi between the tangent and the string obeys
//   asin(A sin psi) + asin(B sin psi) - 2 psi + G = 0,  A = r / |p0|,  B = r / |p1|,
// with G the angle between p0 and p1. MuJoCo solves it by Newton's method from pi/2 to a tolerance
// of 1e-6 and falls back to the radial projection of the midpoint; we take the same iterations,
// because that tolerance is visible in the result.
//
// Derivatives (own). The length is stationary in the touching points, so its gradient by an end is the direction of the
// line to it. Outside, with e_i = x_i / l_i and b_i across it, along the winding seen from that end,
//   g_i = (t_i / l_i) e_i - (r / l_i) b_i,
// and when the ends move at y_i, e_i turns towards b_i by (b_i . y_i) / l_i and t_i grows by (l_i / t_i) (e_i . y_i).
// About a sphere the plane also tilts: with n its normal, theta the angle of the ends and q_i = (n . y_i) / l_i, b_0
// leaves it by (q_1 - cos(theta) q_0) / sin(theta). About a cylinder g is lifted from the planar length p to sqrt(p^2 +
// dz^2). Inside, the touching point c moves so that u_0 + u_1, the directions from it to the ends, stays radial:
//   T (sum P_i / |x_i - c| + mu) T c' = T sum P_i y_i / |x_i - c|,  P_i = 1 - u_i u_i',  mu = (u_0 + u_1) . c / r^2,
// T the projection on the tangents at c, and h_i = P_i (y_i - c') / |x_i - c|. At the reflection T u_1 = -T u_0, so
// that the matrix is a multiple of one less a multiple of (T u_0)(T u_0)'.
#include "physics/actuator/actuator_private.h"

#include "physics/base/vec.h"

// Sign of the angle atan2(cross, dot) from a to b: 0 when they point the same way; half a turn counts
// as the sign of the zero says, as atan2 has it.
SN_LOCAL int wrap_turn_sign(const sn_real *a, const sn_real *b) {
  const sn_real cross = a[0] * b[1] - a[1] * b[0];
  if (cross == 0 && a[0] * b[0] + a[1] * b[1] >= 0) return 0;
  return signbit(cross) ? -1 : 1;
}

// Outside wrap in the plane: d holds the endpoints. Returns the arc's length or -1, the touching
// points in pnt[4], the lengths of the two tangents in tangent[2], and the sign of the winding.
SN_LOCAL sn_real wrap_circle(sn_real *pnt, sn_real *tangent, int *sign, const sn_real *d, const sn_real *side,
                             sn_real radius) {
  const sn_real rr = radius * radius;
  const sn_real ll0 = d[0] * d[0] + d[1] * d[1], ll1 = d[2] * d[2] + d[3] * d[3];
  if (ll0 < rr || ll1 < rr || radius < SN_MINVAL) return -1;
  const sn_real dx = d[2] - d[0], dy = d[3] - d[1];
  if (dx * dx + dy * dy < SN_MINVAL) return -1;

  // direction of the winding, and whether it exceeds half a turn
  const int direct = wrap_turn_sign(d, d + 2);
  const sn_real dot = d[0] * d[2] + d[1] * d[3];
  int turn = direct;
  if (side) {
    // a side point on the axis has no direction: MuJoCo takes x
    const bool on_axis = side[0] * side[0] + side[1] * side[1] < SN_MINVAL * SN_MINVAL;
    const sn_real s[2] = {on_axis ? 1 : side[0], on_axis ? 0 : side[1]};
    const int first = wrap_turn_sign(d, s), second = wrap_turn_sign(s, d + 2);
    if (first == second && first != 0) turn = first;
  }
  const bool reflex = turn != direct;
  if (!reflex && dot >= rr) return -1;
  const sn_real t0 = sn_sqrt(ll0 - rr), t1 = sn_sqrt(ll1 - rr);
  if (!reflex && dot >= rr - t0 * t1) return -1;

  // touching points: p_i turned by alpha_i along, p_1 against the winding
  const sn_real c = turn < 0 ? -radius : radius, s0 = SN_R(1.0) / ll0, s1 = SN_R(1.0) / ll1;
  pnt[0] = (rr * d[0] - c * t0 * d[1]) * s0;
  pnt[1] = (rr * d[1] + c * t0 * d[0]) * s0;
  pnt[2] = (rr * d[2] + c * t1 * d[3]) * s1;
  pnt[3] = (rr * d[3] - c * t1 * d[2]) * s1;
  tangent[0] = t0;
  tangent[1] = t1;
  *sign = turn < 0 ? -1 : 1;

  // The arc lies in [0, pi) or, for a reflex winding, in [0, 2 pi). Rounding can make an arc of zero
  // negative; far from the circle (t0 t1 > r^2) no arc comes close to a full turn.
  const sn_real cross = pnt[0] * pnt[3] - pnt[1] * pnt[2];
  sn_real angle = sn_atan2(turn < 0 ? -cross : cross, pnt[0] * pnt[2] + pnt[1] * pnt[3]);
  if (angle < 0) angle = !reflex || (t0 * t1 > rr && angle > SN_R(-1.0)) ? 0 : angle + 2 * SN_PI;
  return radius * angle;
}

// Angle of the unit vector (c, s) in (-pi, pi].
SN_LOCAL sn_real wrap_unit_angle(sn_real c, sn_real s) {
  if (c < 0 || sn_abs(s) > SN_R(0.1)) return sn_atan2(s, c);
  const sn_real x = s * s, xx = x * x;  // series of the arcsine
  return s * (1 + x * (SN_R(1.0) / 6) +
              xx * (SN_R(3.0) / 40 + x * (SN_R(5.0) / 112) + xx * (SN_R(35.0) / 1152 + x * (SN_R(63.0) / 2816))));
}

// Turns the vector z by an angle.
SN_LOCAL void wrap_turn(sn_real *z, sn_real angle) {
  sn_real c, s;
  if (sn_abs(angle) > SN_R(0.1)) {
    c = sn_cos(angle);
    s = sn_sin(angle);
  } else {
    const sn_real x = angle * angle, xx = x * x;
    c = 1 - x * (SN_R(1.0) / 2) +
        xx * (SN_R(1.0) / 24 - x * (SN_R(1.0) / 720) + xx * (SN_R(1.0) / 40320 - x * (SN_R(1.0) / 3628800)));
    s = angle * (1 - x * (SN_R(1.0) / 6) + xx * (SN_R(1.0) / 120 - x * (SN_R(1.0) / 5040) + xx * (SN_R(1.0) / 362880)));
  }
  const sn_real re = z[0] * c - z[1] * s;
  z[1] = z[0] * s + z[1] * c;
  z[0] = re;
}

// Solves the reflection equation: turn[2] gets the cosine and sine of psi - asin(A sin psi) (with B when !first). False
// where MuJoCo gives up. psi is held as z = (cos psi, sin psi) and the residual f as the angle of the product of the
// unit numbers of its four parts, so that no inverse function is needed near the solution; the first step, from
// psi = pi/2 with slope -2, is half of f. The residual after a step h is below (A / ca^3 + B / cb^3) h^2: where that is
// far below the tolerance it is not evaluated.
SN_LOCAL bool wrap_reflection(sn_real *turn, sn_real A, sn_real B, sn_real cosG, sn_real sinG, bool first) {
  const sn_real tolerance = sn_max(SN_R(1e-6), 32 * SN_EPS);
  enum { MAX_ITER = 20 };
  sn_real z[2] = {0, 1};
  bool done = false;
  for (int iter = 0;; ++iter) {
    const sn_real c = z[0], s = z[1], sa = A * s, sb = B * s;
    const sn_real ca = sn_sqrt(1 - sa * sa), cb = sn_sqrt(1 - sb * sb);
    sn_real f = 0;
    if (!done) {
      const sn_real csum = ca * cb - sa * sb, ssum = sa * cb + sb * ca;  // asin(A sin psi) + asin(B sin psi)
      const sn_real cback = c * c - s * s, sback = -2 * s * c;           // -2 psi
      const sn_real cpart = csum * cosG - ssum * sinG, spart = ssum * cosG + csum * sinG;
      const sn_real cf = cpart * cback - spart * sback, sf = spart * cback + cpart * sback;
      if (iter == 0) {
        if (sf > 0) return false;
        if (cf < 0 || sf < -tolerance) {
          const sn_real half = sn_sqrt(SN_R(0.5) * (1 + cf));
          z[0] = half > SN_MINVAL ? SN_R(-0.5) * sf / half : SN_R(1.0);
          z[1] = half;
          continue;
        }
      }
      f = wrap_unit_angle(cf, sf);
      if (f > tolerance) return false;
    }
    if (f >= -tolerance) {
      turn[0] = first ? c * ca + s * sa : c * cb + s * sb;
      turn[1] = first ? s * ca - c * sa : s * cb - c * sb;
      return true;
    }
    if (iter == MAX_ITER) return false;
    const sn_real ra = A / sn_max(SN_MINVAL, ca), rb = B / sn_max(SN_MINVAL, cb), df = c * (ra + rb) - 2;
    if (df > -SN_MINVAL) return false;
    const sn_real h = -f / df;
    done = h * h * (ra * cb * cb + rb * ca * ca) < SN_R(1e-3) * tolerance * (ca * ca * cb * cb);
    wrap_turn(z, h);
  }
}

// Inside wrap in the plane: returns 0 and the touching point twice in pnt[4], or -1.
SN_LOCAL sn_real wrap_inside(sn_real *pnt, const sn_real *d, sn_real radius) {
  const sn_real rr = radius * radius, ll0 = d[0] * d[0] + d[1] * d[1], ll1 = d[2] * d[2] + d[3] * d[3];
  if (ll0 <= rr || ll1 <= rr || radius < SN_MINVAL) return -1;

  // no wrap when the segment already meets the circle (its nearest point is between the ends, and near
  // enough), or its endpoints are opposite
  const sn_real dx = d[2] - d[0], dy = d[3] - d[1], dd = dx * dx + dy * dy;
  const sn_real along = -(dx * d[0] + dy * d[1]), cross = d[0] * d[3] - d[1] * d[2];
  if (dd > SN_MINVAL && along > 0 && along < dd && cross * cross <= rr * dd) return -1;
  const sn_real len0 = sn_sqrt(ll0), len1 = sn_sqrt(ll1), scale = 1 / (len0 * len1);
  const sn_real cosG = (d[0] * d[2] + d[1] * d[3]) * scale;
  if (cosG < -1 + SN_MINVAL) return -1;

  // turn from the endpoint that comes first counter-clockwise towards the other
  sn_real turn[2];
  const bool first = cross > 0;
  const sn_real A = radius * len1 * scale, B = radius * len0 * scale;
  if (cosG <= 1 - SN_MINVAL && wrap_reflection(turn, A, B, cosG, sn_abs(cross) * scale, first)) {
    const sn_real x = first ? d[0] * A : d[2] * B, y = first ? d[1] * A : d[3] * B;
    pnt[0] = pnt[2] = turn[0] * x - turn[1] * y;
    pnt[1] = pnt[3] = turn[1] * x + turn[0] * y;
    return 0;
  }

  // no solution: the midpoint's direction
  const sn_real x = SN_R(0.5) * (d[0] + d[2]), y = SN_R(0.5) * (d[1] + d[3]), norm = sn_sqrt(x * x + y * y);
  pnt[0] = pnt[2] = norm < SN_MINVAL ? radius : radius * x / norm;
  pnt[1] = pnt[3] = norm < SN_MINVAL ? 0 : radius * y / norm;
  return 0;
}

// Unit vectors a0 along p0 and a1 across it that span the plane of a sphere's wrap, and p0 and p1 in it. Where p0 and
// p1 are parallel the plane is arbitrary: MuJoCo's choice, made in the geom's own frame.
SN_LOCAL void wrap_plane(sn_real *a0, sn_real *a1, sn_real *d, const sn_real *p0, const sn_real *p1,
                         const sn_real *mat) {
  sn_real normal[3];
  sn_cross(normal, p0, p1);
  const sn_real across = sn_norm3(normal), len0 = sn_norm3(p0);
  if (across < SN_MINVAL) {
    sn_real local[3], other[3] = {1, 1, 1}, local_normal[3];
    sn_scale3(a0, p0, 1 / len0);
    sn_mulmattvec3(local, mat, a0);
    const sn_real x = sn_abs(local[0]), y = sn_abs(local[1]), z = sn_abs(local[2]);
    other[z > x && z > y ? 2 : (y > x && y > z ? 1 : 0)] = 0;
    sn_cross(local_normal, local, other);
    sn_normalize3(local_normal);
    sn_mulmatvec3(normal, mat, local_normal);
    sn_cross(a1, normal, a0);
    sn_normalize3(a1);
  } else {
    const sn_real scale = 1 / (len0 * across);
    sn_scale3(a0, p0, across * scale);
    sn_cross(a1, normal, p0);
    sn_scale3(a1, a1, scale);
  }
  d[0] = len0;
  d[1] = 0;
  d[2] = sn_dot3(p1, a0);
  d[3] = sn_dot3(p1, a1);
}

SN_LOCAL sn_real wrap_sphere(sn_real *pnt, int *turn, const sn_real *p0, const sn_real *p1, const SnWrapGeom *geom) {
  const sn_real *pos = geom->pos, radius = geom->radius;
  const int rule = geom->rule;
  // with the way round left open the segment is free when the angle at the centre is too small
  if (rule == SN_SIDE_FREE && sn_dot3(p0, p1) >= radius * radius) return -1;
  sn_real a0[3], a1[3], s[3], d[4], on[4], tangent[2];
  wrap_plane(a0, a1, d, p0, p1, geom->mat);
  sn_real arc;
  if (rule == SN_SIDE_INSIDE) {
    arc = wrap_inside(on, d, radius);
  } else if (rule == SN_SIDE_OUTSIDE) {
    sn_mulmatvec3(s, geom->mat, geom->side);
    const sn_real across[2] = {sn_dot3(s, a0), sn_dot3(s, a1)};
    arc = wrap_circle(on, tangent, turn, d, across, radius);
  } else {
    arc = wrap_circle(on, tangent, turn, d, NULL, radius);
  }
  if (arc < 0) return -1;
  for (int i = 0; i < 3; ++i) {
    pnt[i] = pos[i] + a0[i] * on[0] + a1[i] * on[1];
    pnt[3 + i] = pos[i] + a0[i] * on[2] + a1[i] * on[3];
  }
  return arc;
}

// x and y of a vector in the frame mat.
SN_LOCAL void wrap_across(sn_real *r, const sn_real *mat, const sn_real *a) {
  r[0] = mat[0] * a[0] + mat[3] * a[1] + mat[6] * a[2];
  r[1] = mat[1] * a[0] + mat[4] * a[1] + mat[7] * a[2];
}

SN_LOCAL sn_real wrap_cylinder(sn_real *pnt, int *turn, const sn_real *p0, const sn_real *p1, const SnWrapGeom *geom) {
  const sn_real *pos = geom->pos, *mat = geom->mat, radius = geom->radius;
  sn_real d[4], on[4], tangent[2], arc;
  wrap_across(d, mat, p0);
  wrap_across(d + 2, mat, p1);
  if (geom->rule == SN_SIDE_INSIDE) {
    arc = wrap_inside(on, d, radius);
    if (arc < 0) return -1;
    const sn_real dx0 = d[0] - on[0], dy0 = d[1] - on[1], dx1 = d[2] - on[2], dy1 = d[3] - on[3];
    tangent[0] = sn_sqrt(dx0 * dx0 + dy0 * dy0);
    tangent[1] = sn_sqrt(dx1 * dx1 + dy1 * dy1);
  } else {
    arc = wrap_circle(on, tangent, turn, d, geom->rule == SN_SIDE_OUTSIDE ? geom->side : NULL, radius);
    if (arc < 0) return -1;
  }

  // the unrolled path climbs along the axis in proportion to its length
  const sn_real z0 = mat[2] * p0[0] + mat[5] * p0[1] + mat[8] * p0[2];
  const sn_real z1 = mat[2] * p1[0] + mat[5] * p1[1] + mat[8] * p1[2];
  const sn_real slope = (z1 - z0) / (tangent[0] + arc + tangent[1]);
  const sn_real local[6] = {on[0], on[1], z0 + slope * tangent[0], on[2], on[3], z0 + slope * (tangent[0] + arc)};
  sn_mulmatvec3(pnt, mat, local);
  sn_mulmatvec3(pnt + 3, mat, local + 3);
  sn_addto3(pnt, pos);
  sn_addto3(pnt + 3, pos);
  return arc * sn_sqrt(1 + slope * slope);
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_wrap(sn_real *pnt, int *turn, const sn_real *x0, const sn_real *x1, const SnWrapGeom *geom) {
  sn_real p0[3], p1[3];
  sn_sub3(p0, x0, geom->pos);
  sn_sub3(p1, x1, geom->pos);
  *turn = 0;
  if (sn_dot3(p0, p0) < SN_MINVAL * SN_MINVAL || sn_dot3(p1, p1) < SN_MINVAL * SN_MINVAL) return -1;
  return geom->type == SN_WRAP_SPHERE ? wrap_sphere(pnt, turn, p0, p1, geom) : wrap_cylinder(pnt, turn, p0, p1, geom);
}
#endif

// One end of an outside wrap.
typedef struct WrapEnd {
  sn_real e[3], b[3];          // outwards, and along the winding
  sn_real along, across, per;  // t / l, r / l, 1 / l
} WrapEnd;

// Gradient and its change in the plane across the unit vector n, about which the path winds from x to x + 3.
SN_LOCAL void wrap_circle_hvp(WrapEnd *end, sn_real *g, sn_bar *h, const sn_real *x, const sn_bar *y, const sn_real *n,
                              sn_real radius) {
  for (int i = 0; i < 2; ++i) {
    WrapEnd *s = end + i;
    const sn_real *xi = x + 3 * i, ll = sn_dot3(xi, xi), tt = ll - radius * radius;
    const sn_bar *yi = y + 3 * i;
    const sn_real t = tt > 0 ? sn_sqrt(tt) : 0;
    s->per = 1 / sn_sqrt(ll);
    s->along = t * s->per;
    s->across = radius * s->per;
    sn_scale3(s->e, xi, s->per);
    if (i == 0)
      sn_cross(s->b, n, s->e);
    else
      sn_cross(s->b, s->e, n);
    const sn_bar ye = sn_dot3(yi, s->e), yb = sn_dot3(yi, s->b) * s->per;
    const sn_bar he = s->across * (yb + (t > SN_MINVAL ? s->across * ye / t : sn_bar_of(0)));
    const sn_bar hb = s->along * yb + s->across * s->per * ye;
    for (int k = 0; k < 3; ++k) {
      g[3 * i + k] = s->along * s->e[k] - s->across * s->b[k];
      h[3 * i + k] = he * s->e[k] + hb * s->b[k];
    }
  }
}

SN_LOCAL void wrap_sphere_hvp(sn_real *g, sn_bar *h, const sn_real *x, const sn_bar *y, const sn_real *mat,
                              sn_real radius, int turn) {
  const sn_real sign = turn < 0 ? SN_R(-1.0) : SN_R(1.0);
  WrapEnd end[2];
  sn_real n[3], tilt = 0;
  sn_cross(n, x, x + 3);
  const sn_real across = sn_norm3(n);
  if (across < SN_MINVAL) {
    sn_real a0[3], a1[3], d[4];
    wrap_plane(a0, a1, d, x, x + 3, mat);
    sn_cross(n, a0, a1);
    sn_scale3(n, n, sign);
  } else {
    sn_scale3(n, n, sign / across);
  }
  wrap_circle_hvp(end, g, h, x, y, n, radius);
  const sn_real per = end[0].per * end[1].per, cosine = sn_dot3(x, x + 3) * per;
  if (across >= SN_MINVAL) tilt = sign / (across * per);
  const sn_bar q0 = sn_dot3(y, n) * end[0].per, q1 = sn_dot3(y + 3, n) * end[1].per;
  sn_addtoscl3(h, n, end[0].along * q0 - end[0].across * tilt * (q1 - cosine * q0));
  sn_addtoscl3(h + 3, n, end[1].along * q1 - end[1].across * tilt * (q0 - cosine * q1));
}

// Inside wrap at c; about a cylinder all vectors lie in the plane across it. Returns the length.
SN_LOCAL sn_real wrap_inside_hvp(sn_real *g, sn_bar *h, const sn_real *x, const sn_bar *y, const sn_real *c,
                                 sn_real radius) {
  sn_real per[2], length = 0, radial[3], half[3];
  sn_bar both[3] = {0}, shift[3] = {0};
  sn_scale3(radial, c, 1 / radius);
  for (int i = 0; i < 2; ++i) {
    sn_sub3(g + 3 * i, x + 3 * i, c);
    const sn_real dist = sn_normalize3(g + 3 * i);
    length += dist;
    per[i] = 1 / sn_max(SN_MINVAL, dist);
    sn_reject3(h + 3 * i, y + 3 * i, g + 3 * i);
    sn_addtoscl3(both, h + 3 * i, per[i]);
  }
  for (int k = 0; k < 3; ++k) half[k] = SN_R(0.5) * (g[k] - g[3 + k]);
  sn_reject3(both, both, radial);
  sn_reject3(half, half, radial);
  const sn_real q = per[0] + per[1], stiff = q + (sn_dot3(g, radial) + sn_dot3(g + 3, radial)) / radius;
  const sn_real det = stiff - q * sn_dot3(half, half);
  if (stiff > SN_MINVAL && det > SN_MINVAL) {
    sn_addscl3(shift, both, half, q * sn_dot3(half, both) / det);
    sn_scale3(shift, shift, 1 / stiff);
  }
  for (int i = 0; i < 2; ++i) {
    sn_bar across[3];
    sn_reject3(across, shift, g + 3 * i);
    sn_subfrom3(h + 3 * i, across);
    sn_scale3(h + 3 * i, h + 3 * i, per[i]);
  }
  return length;
}

SN_LOCAL void wrap_cylinder_hvp(sn_real *g, sn_bar *h, const sn_real *x, const sn_bar *y, const SnWrapGeom *geom,
                                const SnWrapPath *path) {
  const sn_real *mat = geom->mat, radius = geom->radius, length = path->length;
  const sn_real axis[3] = {mat[2], mat[5], mat[8]};
  sn_real px[6], c[3], n[3], planar;
  sn_bar py[6];
  for (int i = 0; i < 2; ++i) {
    sn_reject3(px + 3 * i, x + 3 * i, axis);
    sn_reject3(py + 3 * i, y + 3 * i, axis);
  }
  const sn_real dz = sn_dot3(axis, x + 3) - sn_dot3(axis, x);
  const sn_bar dy = sn_dot3(axis, y + 3) - sn_dot3(axis, y);
  if (path->turn == 0) {
    sn_reject3(c, path->touch, axis);
    planar = wrap_inside_hvp(g, h, px, py, c, radius);
  } else {
    WrapEnd end[2];
    sn_scale3(n, axis, path->turn < 0 ? SN_R(-1.0) : SN_R(1.0));
    wrap_circle_hvp(end, g, h, px, py, n, radius);
    planar = sn_sqrt(sn_max(0, (length - dz) * (length + dz)));
  }
  // lift: p / s, dz / s with s = sqrt(p^2 + dz^2)
  const sn_real per = 1 / sn_max(SN_MINVAL, length), flat = planar * per, climb = dz * per;
  const sn_bar grow = sn_dot3(g, py) + sn_dot3(g + 3, py + 3), turned = (flat * dy - climb * grow) * per;
  for (int i = 0; i < 2; ++i) {
    const sn_real sign = i == 0 ? SN_R(-1.0) : SN_R(1.0);
    for (int k = 3 * i; k < 3 * i + 3; ++k) {
      h[k] = flat * h[k] - climb * turned * g[k] + sign * flat * turned * axis[k - 3 * i];
      g[k] = flat * g[k] + sign * climb * axis[k - 3 * i];
    }
  }
}

SN_FUNC void sn_wrap_hvp(sn_real *g, sn_bar *h, const sn_real *x, const sn_bar *y, const SnWrapGeom *geom,
                         const SnWrapPath *path) {
  if (geom->type == SN_WRAP_CYLINDER)
    wrap_cylinder_hvp(g, h, x, y, geom, path);
  else if (path->turn == 0)
    wrap_inside_hvp(g, h, x, y, path->touch, geom->radius);
  else
    wrap_sphere_hvp(g, h, x, y, geom->mat, geom->radius, path->turn);
}
