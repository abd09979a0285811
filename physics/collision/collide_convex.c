// Contacts of two convex geoms, one or both without a closed form.
//
// A margin, the radius of a sphere and that of a capsule only offset a surface along its normal: they are left out
// first (the shapes shrink to point, segment or bare geom), GJK finds the distance of what is left, and the witness
// points are moved outwards again. This is exact and covers all contacts inside a margin. Only where the shrunken
// shapes overlap does EPA look for the depth, with everything put back.
//
// Pairs of ellipsoids take this path too, not Newton's method: MuJoCo's distance is that of the optimum to 1e-9 m at
// tight tolerances, but its normal is off by up to 3e-5 and at default tolerances its depth by up to 4e-4 m, so to
// agree is to take the same steps. ellipsoid_distance.c has the exact answer, which a derivative should start from.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"
#include "physics/collision/convex_private.h"
#include "physics/collision/surface_private.h"

// Takes margin and radius off a shape; returns by how much it shrank.
SN_LOCAL sn_real convex_shrink(SnConvex *s) {
  sn_real off = SN_R(0.5) * s->margin;
  s->margin = 0;
  if (s->type == SN_GEOM_SPHERE) {
    off += s->size[0];
    s->support = SN_SUPPORT_POINT;
  } else if (s->type == SN_GEOM_CAPSULE) {
    off += s->size[0];
    s->support = SN_SUPPORT_LINE;
  }
  return off;
}

// Puts a shape back, but for what it has learned.
SN_LOCAL void convex_restore(SnConvex *s, sn_real margin, SnSupport support) {
  s->margin = margin;
  s->support = support;
}

// Moves the witness points outwards by off1, off2.
SN_LOCAL void convex_inflate(SnCcd *c, sn_real off1, sn_real off2) {
  if (off1 == 0 && off2 == 0) return;
  sn_real n[3];
  sn_sub3(n, c->x2, c->x1);
  sn_normalize3(n);
  sn_addtoscl3(c->x1, n, off1);
  sn_addtoscl3(c->x2, n, -off2);
  c->dist[0] -= off1 + off2;
}

SN_LOCAL sn_real convex_least(const SnCcd *c) {
  sn_real least = c->dist[0];
  for (int i = 1; i < c->nx; ++i) least = sn_min(c->dist[i], least);
  return least;
}

// Where the search begins: in the middle of both shapes.
SN_LOCAL void convex_guess(SnCcd *c) {
  if (c->a.support == SN_SUPPORT_PRISM)
    sn_prism_middle(c->x1, c->a.vert);
  else
    sn_copy3(c->x1, c->a.pos);
  sn_copy3(c->x2, c->b.pos);
}

SN_FUNC bool sn_ccd_depth(SnCcd *c) {
  SnEpa polytope;
  c->dist[0] = 0;
  return sn_epa_start(c, &polytope) && sn_epa(c, &polytope);
}

SN_LOCAL bool convex_is_round(const SnConvex *s) { return s->type == SN_GEOM_SPHERE || s->type == SN_GEOM_CAPSULE; }

SN_FUNC sn_real sn_ccd(SnCcd *c, int max) {
  c->feature = SN_FEATURE_NEAREST;
  convex_guess(c);
  if (convex_is_round(&c->a) || convex_is_round(&c->b) || c->a.margin > 0 || c->b.margin > 0) {
    const sn_real margin1 = c->a.margin, margin2 = c->b.margin, cutoff = c->cutoff;
    const SnSupport support1 = c->a.support, support2 = c->b.support;
    const sn_real off1 = convex_shrink(&c->a), off2 = convex_shrink(&c->b);
    c->cutoff += off1 + off2;
    sn_gjk(c);
    c->cutoff = cutoff;
    convex_restore(&c->a, margin1, support1);
    convex_restore(&c->b, margin2, support2);
    if (c->dist[0] > sn_max(c->tolerance, SN_CCD_SHALLOW)) {
      if (c->nx) convex_inflate(c, off1, off2);
      if (c->dist[0] > cutoff) {
        c->nx = 0;
        return c->dist[0] = SN_CCD_FAR;
      }
      if (c->dist[0] < 0 && max > 1) c->nx = sn_multicontact(c, max);
      return convex_least(c);
    }
    convex_guess(c);
  }
  sn_gjk(c);
  if (c->dist[0] <= sn_max(c->tolerance, SN_CCD_SHALLOW) && c->n > 1 && !c->separated) {
    if (sn_ccd_depth(c) && max > 1) c->nx = sn_multicontact(c, max);
  }
  return convex_least(c);
}

// Writes what contact i has to know for its adjoint.
SN_LOCAL void convex_remember(const SnCcd *c, int i, SnContact *con) {
  con->feature = c->feature;
  for (int k = 0; k < 6; ++k) {
    const SnCcdVertex *v = c->simplex + sn_mini(k % 3, sn_maxi(c->n, 1) - 1);
    con->corner[k] = c->feature != SN_FEATURE_NEAREST ? c->corner[i][k] : (k < 3 ? v->i1 : v->i2);
  }
}

SN_FUNC void sn_convex_contact(const SnCcd *c, int i, sn_real margin, SnContact *con) {
  const sn_real *x1 = c->x1 + 3 * i, *x2 = c->x2 + 3 * i;
  con->dist = margin + c->dist[i];
  sn_add3(con->pos, x1, x2);
  sn_scale3(con->pos, con->pos, SN_R(0.5));
  sn_zero(con->frame, 9);
  sn_sub3(con->frame, x1, x2);
  sn_normalize3(con->frame);
  convex_remember(c, i, con);
}

SN_FUNC int sn_collide_convex(const SnModel *m, const SnShape *a, const SnShape *b, sn_real margin, SnContact *con,
                              int max) {
  SnCcd c;
  sn_convex_init(&c.a, m, a, margin);
  sn_convex_init(&c.b, m, b, margin);
  c.tolerance = sn_max(m->opt.ccd_tolerance, SN_CCD_TOLERANCE);
  c.iterations = m->opt.ccd_iterations;
  c.cutoff = 0;
  if (!(sn_ccd(&c, max) < 0)) return 0;
  const int n = sn_mini(c.nx, max);
  for (int i = 0; i < n; ++i) sn_convex_contact(&c, i, margin, con + i);
  return n;
}

// The adjoint.
//
// Nearest points x1, x2 with x2 - x1 = d n: the normal of the first surface at x1 is n, that of the second at x2 is -n,
// for both signs of d. Let the bodies move: v1, v2 the velocities of the points of the bodies that lie at x1, x2, and
// w1, w2 the angular velocities. A surface of radii of curvature S (surface.c) has at the turned normal n + dn the
// point x + v + S (dn - w x n). With P the projection on the tangent plane, the condition x2 - x1 = d n becomes
//
//   dd = n'(v2 - v1),     (S1 + S2 + d I) dn + E z = P (v2 - v1) + S1 W1 + S2 W2,     E'dn = E'W,     W = w x n,
//
// the columns of E being the directions in which one of the surfaces is straight: there the normal turns with that
// body, and the point slips along by z. This matrix is symmetric, so that the adjoint solves the same system, and the
// step of Newton's method for n itself does, too, with what the conditions lack on the right. So nearest points that
// GJK and EPA left with normals good to 1e-3 are first sharpened (at default tolerances of MuJoCo: the gradient
// changes by less than 1e-6 when they are found to 1e-12 instead). All of it is cheap: two evaluations of both
// surfaces.
//
// Written choices: where S1 + S2 + d I is not definite (two corners that touch, the centre of curvature of a shape at
// the depth of the contact) both surfaces are rounded until its least principal value is CONVEX_LEAST: a normal
// turns by at most 1 rad in that length. Of straight directions that are parallel, the first shape's turns the normal,
// and the point does not slip along the second's.

// The linear conditions at the nearest points, in the tangent plane.
typedef struct SnKkt {
  sn_real h[3];  // S_a + S_b + d I: h11, h12, h22
  int nflat;     // straight directions in use, at most two
  int from[2];   // which: 0, 1 of the first shape, 2, 3 of the second
  sn_real e[4];  // (2, 2), nflat of them
} SnKkt;

// Least radius of curvature that counts [m].
#define CONVEX_LEAST SN_R(1e-5)

// Takes a straight direction in, unless it is nearly along one that is there or two are there already.
SN_LOCAL void convex_flat(SnKkt *k, int from, const sn_real *dir, const sn_real *tangent) {
  const sn_real e1 = sn_dot3(dir, tangent), e2 = sn_dot3(dir, tangent + 3), length = sn_sqrt(e1 * e1 + e2 * e2);
  if (k->nflat == 2 || !(length > SN_R(0.1))) return;
  sn_real *e = k->e + 2 * k->nflat;
  e[0] = e1 / length;
  e[1] = e2 / length;
  if (k->nflat == 1 && !(sn_abs(k->e[0] * e[1] - k->e[1] * e[0]) > SN_STEADY_SINE)) return;
  k->from[k->nflat++] = from;
}

// Rounds both surfaces by equal parts where the principal radius along t (NULL: the least of all) is below the limit.
SN_LOCAL void convex_round(SnKkt *k, SnSurfacePoint *s, const sn_real *t) {
  sn_real *h = k->h, least, add[3] = {0, 0, 0};
  if (t) {
    least = t[0] * t[0] * h[0] + 2 * t[0] * t[1] * h[1] + t[1] * t[1] * h[2];
    sn_set3(add, t[0] * t[0], t[0] * t[1], t[1] * t[1]);
  } else {
    const sn_real half = SN_R(0.5) * (h[0] - h[2]);
    least = SN_R(0.5) * (h[0] + h[2]) - sn_sqrt(half * half + h[1] * h[1]);
    add[0] = add[2] = 1;
  }
  if (least >= CONVEX_LEAST) return;
  const sn_real lift = CONVEX_LEAST - least;
  for (int i = 0; i < 3; ++i) {
    h[i] += lift * add[i];
    s[0].s[i] += SN_R(0.5) * lift * add[i];
    s[1].s[i] += SN_R(0.5) * lift * add[i];
  }
}

SN_LOCAL void convex_kkt(SnKkt *k, const SnSurface *t, SnSurfacePoint *s, sn_real dist, const sn_real *tangent) {
  for (int i = 0; i < 3; ++i) k->h[i] = s[0].s[i] + s[1].s[i];
  k->h[0] += dist;
  k->h[2] += dist;
  k->nflat = 0;
  k->e[0] = k->e[1] = 0;
  for (int i = 0; i < t[0].nflat; ++i) convex_flat(k, i, t[0].flat + 3 * i, tangent);
  for (int i = 0; i < t[1].nflat; ++i) convex_flat(k, 2 + i, t[1].flat + 3 * i, tangent);
  const sn_real across[2] = {-k->e[1], k->e[0]};
  if (k->nflat < 2) convex_round(k, s, k->nflat == 1 ? across : NULL);
}

// Solves H y + E z = r, E'y = g.
SN_LOCAL void convex_solve(const SnKkt *k, const sn_real *r, const sn_real *g, sn_real *y, sn_real *z) {
  const sn_real *h = k->h, *e = k->e;
  if (k->nflat == 0) {
    const sn_real inv = 1 / sn_max(h[0] * h[2] - h[1] * h[1], SN_R(0.1) * CONVEX_LEAST * CONVEX_LEAST);
    y[0] = (h[2] * r[0] - h[1] * r[1]) * inv;
    y[1] = (h[0] * r[1] - h[1] * r[0]) * inv;
    return;
  }
  if (k->nflat == 1) {
    // along e given, across by the equation
    const sn_real t[2] = {-e[1], e[0]};
    const sn_real he[2] = {h[0] * e[0] + h[1] * e[1], h[1] * e[0] + h[2] * e[1]};
    const sn_real ht[2] = {h[0] * t[0] + h[1] * t[1], h[1] * t[0] + h[2] * t[1]};
    const sn_real tht = sn_max(t[0] * ht[0] + t[1] * ht[1], SN_R(0.1) * CONVEX_LEAST);
    const sn_real the = t[0] * he[0] + t[1] * he[1], b = (t[0] * r[0] + t[1] * r[1] - the * g[0]) / tht;
    y[0] = g[0] * e[0] + b * t[0];
    y[1] = g[0] * e[1] + b * t[1];
    z[0] = e[0] * r[0] + e[1] * r[1] - (e[0] * he[0] + e[1] * he[1]) * g[0] - the * b;
    return;
  }
  const sn_real inv = 1 / (e[0] * e[3] - e[1] * e[2]);
  y[0] = (e[3] * g[0] - e[1] * g[1]) * inv;
  y[1] = (e[0] * g[1] - e[2] * g[0]) * inv;
  const sn_real r1 = r[0] - h[0] * y[0] - h[1] * y[1], r2 = r[1] - h[1] * y[0] - h[2] * y[1];
  z[0] = (e[3] * r1 - e[2] * r2) * inv;
  z[1] = (e[0] * r2 - e[1] * r1) * inv;
}

// The nearest points and what surrounds them.
typedef struct SnNearby {
  SnSurface t[2];
  SnSurfacePoint s[2];
  SnKkt k;
  sn_real n[3], tangent[6], dist;
  sn_real x[6];  // nearest points
} SnNearby;

// Surfaces at the normal n, which becomes a unit vector, and the equations there. con: NULL, or the contact whose
// distance is to be taken for that of the surfaces.
SN_LOCAL void convex_linearise(SnNearby *p, const SnContact *con) {
  sn_real back[3], d[3];
  sn_normalize3(p->n);
  sn_addtoscl3(p->tangent, p->n, -sn_dot3(p->n, p->tangent));
  sn_normalize3(p->tangent);
  sn_cross(p->tangent + 3, p->n, p->tangent);
  sn_scale3(back, p->n, -1);
  sn_surface_point(p->t, p->n, p->tangent, p->s);
  sn_surface_point(p->t + 1, back, p->tangent, p->s + 1);
  sn_sub3(d, p->s[1].x, p->s[0].x);
  p->dist = con ? con->dist : sn_dot3(d, p->n);
  convex_kkt(&p->k, p->t, p->s, p->dist, p->tangent);
}

// One step of Newton's method; z: how far the points lie along the straight directions. Returns the change of n.
SN_LOCAL sn_real convex_newton(SnNearby *p, sn_real *z) {
  sn_real d[3], y[2], g[2] = {0, 0};
  sn_sub3(d, p->s[1].x, p->s[0].x);
  const sn_real r[2] = {sn_dot3(d, p->tangent), sn_dot3(d, p->tangent + 3)};
  for (int i = 0; i < p->k.nflat; ++i) {
    const int from = p->k.from[i];
    g[i] = -sn_dot3(p->n, p->t[from / 2].flat + 3 * (from % 2));
  }
  convex_solve(&p->k, r, g, y, z);
  sn_addtoscl3(p->n, p->tangent, y[0]);
  sn_addtoscl3(p->n, p->tangent + 3, y[1]);
  return sn_sqrt(y[0] * y[0] + y[1] * y[1]);
}

// Newton's method for normal and nearest points from what was found, p->x included. False: it leads away from there.
SN_LOCAL bool convex_sharpen(SnNearby *p, const SnContact *con) {
  const sn_real settled = sn_max(SN_R(1e-9), SN_R(100.0) * SN_EPS);
  sn_real z[2] = {0, 0}, x[6], gap[3];
  bool good = false;
  for (int i = 0; i < 4 && !good; ++i) {
    const sn_real change = convex_newton(p, z);
    good = change < SN_R(1e-4);
    if (change > settled) convex_linearise(p, NULL);
    if (!(change < SN_R(0.1))) return false;
  }
  if (!good || !(sn_dot3(p->n, con->frame) > SN_R(0.9998)) || !(sn_abs(p->dist - con->dist) < SN_R(1e-3))) return false;
  if (p->k.nflat < p->t[0].nflat + p->t[1].nflat) {
    // parallel lines or faces leave the point undetermined: it stays where it is
    sn_addscl3(p->x, con->pos, p->n, SN_R(-0.5) * p->dist);
    sn_addscl3(p->x + 3, con->pos, p->n, SN_R(0.5) * p->dist);
    return true;
  }
  sn_copy3(x, p->s[0].x);
  sn_copy3(x + 3, p->s[1].x);
  for (int i = 0; i < p->k.nflat; ++i) {
    const int from = p->k.from[i], side = from / 2;
    sn_addtoscl3(x + 3 * side, p->t[side].flat + 3 * (from % 2), side == 0 ? z[i] : -z[i]);
  }
  sn_sub3(gap, x + 3, x);
  sn_addtoscl3(gap, p->n, -p->dist);
  if (!(sn_norm3(gap) < SN_R(1e-5))) return false;
  sn_copy(p->x, x, 6);
  return true;
}

// The nearest points of a contact and what surrounds them.
SN_LOCAL void convex_nearby(SnNearby *p, const SnConvex *a, const SnConvex *b, const SnContact *con) {
  const sn_real half = SN_R(0.5) * con->dist;
  sn_real back[3], found[6];
  sn_copy3(p->n, con->frame);
  sn_zero(p->tangent, 6);
  p->tangent[sn_abs(p->n[0]) < SN_R(0.6) ? 0 : 1] = 1;
  sn_scale3(back, p->n, -1);
  sn_addscl3(found, con->pos, p->n, -half);
  sn_addscl3(found + 3, con->pos, p->n, half);
  sn_copy(p->x, found, 6);
  sn_surface_init(p->t, a, con->corner, found, p->n);
  sn_surface_init(p->t + 1, b, con->corner + 3, found + 3, back);
  sn_surface_cross(p->t, p->t + 1);
  sn_surface_cross(p->t + 1, p->t);
  convex_linearise(p, NULL);
  if (convex_sharpen(p, con)) return;
  sn_copy3(p->n, con->frame);
  sn_copy(p->x, found, 6);
  convex_linearise(p, con);
}

// r += the vector of the tangent plane with coordinates y.
SN_LOCAL void convex_lift(sn_real *r, const sn_real *tangent, const sn_real *y, sn_real scale) {
  sn_addtoscl3(r, tangent, scale * y[0]);
  sn_addtoscl3(r, tangent + 3, scale * y[1]);
}

SN_FUNC void sn_convex_nearest_vjp(const SnConvex *a, const SnConvex *b, const SnContact *con, const SnContactBar *bar,
                                   sn_real *wrench) {
  SnNearby p;
  convex_nearby(&p, a, b, con);
  const SnConvex *shape[2] = {a, b};
  const sn_real *t = p.tangent, *s1 = p.s[0].s, *s2 = p.s[1].s;
  const sn_real slip[2] = {SN_R(0.5) * sn_dot3(bar->pos, t), SN_R(0.5) * sn_dot3(bar->pos, t + 3)};
  const sn_real d[3] = {s1[0] - s2[0], s1[1] - s2[1], s1[2] - s2[2]};
  const sn_real r[2] = {sn_dot3(bar->normal, t) + d[0] * slip[0] + d[1] * slip[1],
                        sn_dot3(bar->normal, t + 3) + d[1] * slip[0] + d[2] * slip[1]};
  sn_real g[2] = {0, 0}, y[2], z[2];
  for (int i = 0; i < p.k.nflat; ++i) {
    const sn_real along = p.k.e[2 * i] * slip[0] + p.k.e[2 * i + 1] * slip[1];
    g[i] = p.k.from[i] < 2 ? along : -along;
  }
  convex_solve(&p.k, r, g, y, z);
  for (int side = 0; side < 2; ++side) {
    const sn_real *s = p.s[side].s, sign = side == 0 ? SN_R(-1.0) : SN_R(1.0);
    const sn_real u[2] = {y[0] + sign * slip[0], y[1] + sign * slip[1]};
    sn_real turn[2] = {s[0] * u[0] + s[1] * u[1], s[1] * u[0] + s[2] * u[1]};
    for (int i = 0; i < p.k.nflat; ++i) {
      if (p.k.from[i] / 2 != side) continue;
      turn[0] += p.k.e[2 * i] * z[i];
      turn[1] += p.k.e[2 * i + 1] * z[i];
    }
    const SnShape body = {.pos = shape[side]->pos, .mat = shape[side]->mat, .size = shape[side]->size};
    sn_real force[3], turned[3] = {0, 0, 0};
    sn_scale3(force, bar->pos, SN_R(0.5));
    sn_addtoscl3(force, p.n, sign * bar->dist);
    convex_lift(force, t, y, sign);
    convex_lift(turned, t, turn, 1);
    sn_push(wrench + 6 * side, &body, p.x + 3 * side, force);
    sn_turn(wrench + 6 * side, p.n, turned);
  }
}

// How far GJK and EPA go where nothing but the distance is asked [m]: to CONVEX_FINE. Surfaces that are nearer to
// touching than CONVEX_TOUCH are looked at moved into each other by CONVEX_LIFT, and this to CONVEX_LIFT_FINE.
#ifdef SN_SINGLE
#define CONVEX_FINE SN_R(1e-6)
#define CONVEX_TOUCH SN_R(1e-4)
#define CONVEX_LIFT SN_R(1e-2)
#define CONVEX_LIFT_FINE SN_R(1e-6)
#else
#define CONVEX_FINE SN_R(1e-10)
#define CONVEX_TOUCH SN_R(1e-8)
#define CONVEX_LIFT SN_R(1e-5)
#define CONVEX_LIFT_FINE SN_R(1e-12)
#endif
enum { CONVEX_ITERATIONS = 200, CONVEX_PASSES = 4 };

// Sets dist, pos and normal from the witness points; `lift` is by how much surfaces were moved towards each other.
// Returns false where the points have no direction. Where GJK ended in a triangle the normal is the triangle's: in a
// thin one the points' weights are rounding.
SN_LOCAL bool convex_take(const SnCcd *c, sn_real lift, SnContact *con) {
  const SnCcdVertex *s = c->simplex;
  sn_real x[3];
  con->dist = lift + c->dist[0];
  sn_add3(con->pos, c->x1, c->x2);
  sn_scale3(con->pos, con->pos, SN_R(0.5));
  sn_zero(con->frame, 9);
  sn_sub3(con->frame, c->x2, c->x1);
  if (c->dist[0] < 0) sn_scale3(con->frame, con->frame, -1);
  if (c->dist[0] > 0 && c->n == 3 && sn_project_origin(x, s[0].v, s[1].v, s[2].v)) sn_scale3(con->frame, x, -1);
  return sn_normalize3(con->frame) > 0;
}

// The same for surfaces that about touch: of witness points in one place the direction is rounding, but moved into each
// other they overlap.
SN_LOCAL bool convex_touching(SnCcd *c, SnContact *con) {
  c->a.margin = c->b.margin = CONVEX_LIFT;
  c->cutoff = 0;
  c->tolerance = CONVEX_LIFT_FINE;
  convex_guess(c);
  sn_gjk(c);
  const bool found = c->n > 1 && !c->separated && sn_ccd_depth(c) && c->nx > 0;
  c->a.margin = c->b.margin = 0;
  return found && convex_take(c, CONVEX_LIFT, con);
}

SN_FUNC bool sn_convex_nearest_shapes(const SnModel *m, SnCcd *c, sn_real limit, SnContact *con) {
  SnNearby p;
  c->tolerance = sn_max(sn_min(m->opt.ccd_tolerance, CONVEX_FINE), SN_CCD_TOLERANCE);
  c->iterations = sn_maxi(m->opt.ccd_iterations, CONVEX_ITERATIONS);
  c->cutoff = sn_max(limit, CONVEX_TOUCH);
  con->dist = sn_ccd(c, 1);
  if (con->dist >= c->cutoff) return true;
  const bool clear = c->nx > 0 && sn_abs(con->dist) > CONVEX_TOUCH && convex_take(c, 0, con);
  if (!clear && !convex_touching(c, con)) return false;
  c->feature = SN_FEATURE_NEAREST;
  convex_remember(c, 0, con);
  sn_real turned = 1;
  for (int k = 0; k < CONVEX_PASSES && turned > SN_R(16.0) * SN_EPS; ++k) {
    convex_nearby(&p, &c->a, &c->b, con);
    turned = sn_dist3(p.n, con->frame);
    con->dist = p.dist;
    sn_copy3(con->frame, p.n);
    sn_add3(con->pos, p.x, p.x + 3);
    sn_scale3(con->pos, con->pos, SN_R(0.5));
  }
  return true;
}

SN_FUNC bool sn_convex_nearest(const SnModel *m, const SnShape *a, const SnShape *b, sn_real limit, SnContact *con) {
  SnCcd c;
  sn_convex_init(&c.a, m, a, 0);
  sn_convex_init(&c.b, m, b, 0);
  return sn_convex_nearest_shapes(m, &c, limit, con);
}

SN_FUNC void sn_collide_convex_vjp(const SnModel *m, const SnShape *a, const SnShape *b, sn_real margin,
                                   const SnContact *con, const SnContactBar *bar, sn_real *wrench) {
  SnConvex s1, s2;
  sn_convex_init(&s1, m, a, margin);
  sn_convex_init(&s2, m, b, margin);
  if (con->feature == SN_FEATURE_NEAREST) {
    sn_convex_nearest_vjp(&s1, &s2, con, bar, wrench);
    return;
  }
  // a line that lies where the nearest points say: find them again
  SnContact near;
  SnContactBar near_bar = {0};
  const bool line = sn_multicontact_has_line(&s1, &s2, con) && sn_collide_convex(m, a, b, margin, &near, 1) == 1;
  sn_multicontact_vjp(&s1, &s2, con, bar, line ? near.frame : NULL, near_bar.normal, wrench);
  if (line) sn_convex_nearest_vjp(&s1, &s2, &near, &near_bar, wrench);
}

SN_FUNC void sn_collide_surrogate_vjp(const SnShape *a, const SnShape *b, const SnContact *con, const SnContactBar *bar,
                                      sn_real *wrench) {
  sn_real half[3];
  sn_scale3(half, bar->normal, SN_R(0.5));
  for (int side = 0; side < 2; ++side) {
    const sn_real sign = side == 0 ? SN_R(-1.0) : SN_R(1.0);
    sn_real x[3], force[3];
    sn_addscl3(x, con->pos, con->frame, sign * SN_R(0.5) * con->dist);
    sn_scale3(force, bar->pos, SN_R(0.5));
    sn_addtoscl3(force, con->frame, sign * bar->dist);
    sn_push(wrench + 6 * side, side == 0 ? a : b, x, force);
    sn_turn(wrench + 6 * side, con->frame, half);
  }
}
