// Collision without choices, for contacts from distance (SnCfd.smooth): contacts of a plane with a box or a cylinder
// and of two boxes as smooth functions of the poses. After DiffMJX (A. Paulus et al., 2025, arXiv 2506.14186, section
// 3), which replaces the choices of a collider by soft ones; which choices there are, and so these formulas, are ours.
// s is the length of the smoothing; with s -> 0 the contacts are MuJoCo's but for what is said below.
//
// Boxes. Of each diagonal x +- c of a box (c: half of it) MuJoCo takes the lower end: where c rises against the plane
// -c, else c. With the heights d+, d- of both ends that is p = x + t c, t = -sign(d+ - d-), and smoothed
//
//   t = -tanh((d+ - d-) / 2 s),    p = x + t c,    dist = d(p),    pos = p - n d(p) / 2.
//
// Box against box: d is the distance from the faces f_k of the other box, of which the farthest one counts, smoothed by
// weights, and so is the normal:
//
//   w = softmax(f / s),    d = sum w_k f_k,    g = sum w_k N_k,    n = g / |g|.
//
// Four diagonals of either box make eight contacts. The crossings of edges, which no corner makes, stay MuJoCo's, where
// they touch; the corners that lie farthest away give way to them.
//
// Cylinder, axis a, half length h, radius R, C = n.a. MuJoCo takes the lowest point of both rims and a triangle on the
// lower cap. The rim's direction q / |q|, q = a C - n, turns without bound as the cap comes to lie on the plane, where
// it is the x axis of the cylinder. With e = s / R it is smoothed by
//
//   u = q + x e^3 / (q.q + e^2),    D = R u / sqrt(u.u + (e / 10)^2),    t = -tanh(h C / s),
//
//   points  c + h a + D,  c - h a + D,  c + t h a - D / 2 +- (sqrt(3) / 2) D x a.
//
// Adjoint. p is fixed to its shape but for t, whose bar is that of both ends: three evaluations of d, each with
//
//   f_bar_k = d_bar w_k + w_k (v_k - sum w v) / s,    v_k = d_bar f_k + N_k.g_bar.
//
// Everything is differentiable; in the limit where weights and signs are 0 or 1 the exact adjoints come out.
#include "physics/collision/collide_private.h"

enum { SMOOTH_DIAGONALS = 4, SMOOTH_FACES = 6, SMOOTH_UP = 4 };  // SMOOTH_UP: face along +z, that of a plane

SN_LOCAL sn_real smooth_tanh(sn_real x) {
  const sn_real e = sn_exp(-2 * sn_abs(x)), r = (1 - e) / (1 + e);
  return x < 0 ? -r : r;
}

// A plane, or the faces of a box, seen from a point: distances f, weights w of those that count, and what they make.
// Face 2 i looks along axis i, face 2 i + 1 against it.
typedef struct SmoothFaces {
  const SnShape *shape;
  bool plane;
  sn_real s;
  sn_real f[SMOOTH_FACES], w[SMOOTH_FACES];
  sn_real dist, local[3], length, n[3];  // length: |g|, local: g / |g|, n: the same in the world
} SmoothFaces;

// Distance and normal of a point.
SN_LOCAL void smooth_see(SmoothFaces *x, const sn_real *point) {
  const SnShape *shape = x->shape;
  sn_real d[3], y[3], g[3] = {0, 0, 0}, most, sum = 0;
  sn_sub3(d, point, shape->pos);
  sn_mulmattvec3(y, shape->mat, d);
  for (int k = 0; k < SMOOTH_FACES; ++k) x->f[k] = (k & 1 ? -y[k / 2] : y[k / 2]) - (x->plane ? 0 : shape->size[k / 2]);
  most = x->f[SMOOTH_UP];
  for (int k = 0; k < SMOOTH_FACES && !x->plane; ++k) most = sn_max(most, x->f[k]);
  for (int k = 0; k < SMOOTH_FACES; ++k) {
    x->w[k] = x->plane ? (k == SMOOTH_UP ? SN_R(1.0) : SN_R(0.0)) : sn_exp((x->f[k] - most) / x->s);
    sum += x->w[k];
  }
  x->dist = 0;
  for (int k = 0; k < SMOOTH_FACES; ++k) {
    x->w[k] /= sum;
    x->dist += x->w[k] * x->f[k];
    g[k / 2] += k & 1 ? -x->w[k] : x->w[k];
  }
  // in the middle of a box, from where all faces look alike, there is no direction
  x->length = sn_max(sn_norm3(g), SN_STEADY_SINE);
  sn_scale3(x->local, g, 1 / x->length);
  if (sn_dot3(x->local, x->local) < SN_R(0.25)) sn_set3(x->local, 0, 0, 1);
  sn_mulmatvec3(x->n, shape->mat, x->local);
}

// Adjoint of smooth_see at the point where it was: adds to the wrench on the shape, sets the force on the point.
SN_LOCAL void smooth_see_vjp(const SmoothFaces *x, const sn_real *point, sn_real dist_bar, const sn_real *n_bar,
                             sn_real *wrench, sn_real *force) {
  sn_real local_bar[3], g_bar[3], y_bar[3] = {0, 0, 0}, v[SMOOTH_FACES], mean = 0;
  sn_mulmattvec3(local_bar, x->shape->mat, n_bar);
  sn_direction_vjp(g_bar, x->local, x->length, local_bar);
  for (int k = 0; k < SMOOTH_FACES; ++k) {
    v[k] = dist_bar * x->f[k] + (k & 1 ? -g_bar[k / 2] : g_bar[k / 2]);
    mean += x->w[k] * v[k];
  }
  for (int k = 0; k < SMOOTH_FACES; ++k) {
    const sn_real f_bar = x->w[k] * (dist_bar + (v[k] - mean) / x->s);
    y_bar[k / 2] += k & 1 ? -f_bar : f_bar;
  }
  sn_mulmatvec3(force, x->shape->mat, y_bar);
  sn_scale3(y_bar, force, -1);
  sn_push(wrench, x->shape, point, y_bar);
  sn_turn(wrench, x->n, n_bar);
}

// ---- diagonals of a box ----

// Diagonal of a box, and the end of it that a surface sees as the lower one.
typedef struct SmoothEnd {
  sn_real c[3], t, point[3];
  SmoothFaces up, down;  // how the surface sees x + c and x - c
} SmoothEnd;

SN_LOCAL void smooth_end(SmoothEnd *r, SmoothFaces *x, const SnShape *box, int diagonal) {
  const sn_real local[3] = {box->size[0], diagonal & 1 ? -box->size[1] : box->size[1],
                            diagonal & 2 ? -box->size[2] : box->size[2]};
  sn_real end[3];
  sn_mulmatvec3(r->c, box->mat, local);
  r->up = r->down = *x;
  sn_add3(end, box->pos, r->c);
  smooth_see(&r->up, end);
  sn_sub3(end, box->pos, r->c);
  smooth_see(&r->down, end);
  r->t = -smooth_tanh((r->up.dist - r->down.dist) / (2 * x->s));
  sn_addscl3(r->point, box->pos, r->c, r->t);
  smooth_see(x, r->point);
}

// One contact of a diagonal; sign: 1 where the surface is the first geom, else -1. Returns whether it is in reach.
SN_LOCAL bool smooth_box_contact(SmoothFaces x, const SnShape *box, int diagonal, sn_real sign, sn_real reach,
                                 SnContact *con) {
  SmoothEnd end;
  sn_real pos[3], normal[3];
  smooth_end(&end, &x, box, diagonal);
  if (x.dist > reach) return false;
  sn_addscl3(pos, end.point, x.n, -x.dist / 2);
  sn_scale3(normal, x.n, sign);
  sn_contact_write(con, x.dist, pos, normal, 0);
  return true;
}

// Its adjoint: adds to the wrenches on the geom that has the surface and on the box.
SN_LOCAL void smooth_box_contact_vjp(SmoothFaces x, const SnShape *box, int diagonal, sn_real sign,
                                     const SnContactBar *bar, sn_real *on_surface, sn_real *on_box) {
  SmoothEnd r;
  sn_real n_bar[3], force[3], end[3];
  smooth_end(&r, &x, box, diagonal);
  sn_scale3(n_bar, bar->normal, sign);
  sn_addtoscl3(n_bar, bar->pos, -x.dist / 2);
  smooth_see_vjp(&x, r.point, bar->dist - SN_R(0.5) * sn_dot3(x.n, bar->pos), n_bar, on_surface, force);
  sn_addto3(force, bar->pos);
  sn_push(on_box, box, r.point, force);
  // t, by the heights of both ends
  const sn_real none[3] = {0, 0, 0}, rise = -(1 - r.t * r.t) / (2 * x.s) * sn_dot3(r.c, force);
  if (rise == 0) return;
  for (int side = 0; side < 2; ++side) {
    sn_addscl3(end, box->pos, r.c, side ? SN_R(-1.0) : SN_R(1.0));
    smooth_see_vjp(side ? &r.down : &r.up, end, side ? -rise : rise, none, on_surface, force);
    sn_push(on_box, box, end, force);
  }
}

// ---- cylinder on a plane ----

// What the points of a cylinder are made of; bars of the same.
typedef struct SmoothRim {
  sn_real n[3], a[3], x[3];  // normal of the plane, axis and x axis of the cylinder
  sn_real c, e, q[3], square, part, u[3], length, D[3], t;
} SmoothRim;

SN_LOCAL void smooth_rim(SmoothRim *r, const SnShape *plane, const SnShape *b, sn_real s) {
  const sn_real radius = b->size[0];
  sn_shape_axis(r->n, plane->mat);
  sn_shape_axis(r->a, b->mat);
  sn_set3(r->x, b->mat[0], b->mat[3], b->mat[6]);
  r->c = sn_dot3(r->n, r->a);
  r->e = s / radius;
  sn_scale3(r->q, r->a, r->c);
  sn_subfrom3(r->q, r->n);
  r->square = sn_dot3(r->q, r->q) + r->e * r->e;
  r->part = r->e * r->e * r->e / r->square;
  sn_addscl3(r->u, r->q, r->x, r->part);
  r->length = sn_sqrt(sn_dot3(r->u, r->u) + SN_R(0.01) * r->e * r->e);
  sn_scale3(r->D, r->u, radius / r->length);
  r->t = -smooth_tanh(b->size[1] * r->c / s);
}

// Factors of point k: along h a, D and (sqrt(3) / 2) D x a; the first of points 2 and 3 is t.
SN_LOCAL void smooth_rim_factors(const SmoothRim *r, int k, sn_real *factor) {
  const sn_real root = sn_sqrt(SN_R(3.0)) / 2;
  sn_set3(factor, k == 0 ? SN_R(1.0) : (k == 1 ? SN_R(-1.0) : r->t), k < 2 ? SN_R(1.0) : SN_R(-0.5),
          k < 2 ? SN_R(0.0) : (k == 2 ? root : -root));
}

// Point k from the centre of the cylinder.
SN_LOCAL void smooth_rim_point(const SmoothRim *r, int k, sn_real half, sn_real *arm) {
  sn_real factor[3], side[3];
  smooth_rim_factors(r, k, factor);
  sn_cross(side, r->D, r->a);
  for (int i = 0; i < 3; ++i) arm[i] = factor[0] * half * r->a[i] + factor[1] * r->D[i] + factor[2] * side[i];
}

// Adjoint of smooth_rim_point: turns of both geoms from the force on the point.
SN_LOCAL void smooth_rim_vjp(const SmoothRim *r, int k, const SnShape *b, sn_real s, const sn_real *force,
                             sn_real *wrench) {
  const sn_real half = b->size[1], radius = b->size[0];
  sn_real factor[3], side[3], D_bar[3], u_bar[3], q_bar[3], a_bar[3], n_bar[3], x_bar[3];
  smooth_rim_factors(r, k, factor);
  sn_cross(side, r->a, force);  // force . (D x a) = D . (a x force) = a . (force x D)
  sn_cross(a_bar, force, r->D);
  for (int i = 0; i < 3; ++i) {
    D_bar[i] = factor[1] * force[i] + factor[2] * side[i];
    a_bar[i] = factor[0] * half * force[i] + factor[2] * a_bar[i];
  }
  const sn_real along = sn_dot3(r->u, D_bar) / (r->length * r->length);
  for (int i = 0; i < 3; ++i) u_bar[i] = radius / r->length * (D_bar[i] - along * r->u[i]);
  sn_scale3(x_bar, u_bar, r->part);
  const sn_real square_bar = -sn_dot3(r->x, u_bar) * r->part / r->square;
  sn_addscl3(q_bar, u_bar, r->q, 2 * square_bar);
  sn_real c_bar = sn_dot3(r->a, q_bar);
  if (k >= 2) c_bar -= (1 - r->t * r->t) * half / s * half * sn_dot3(r->a, force);
  for (int i = 0; i < 3; ++i) {
    a_bar[i] += r->c * q_bar[i] + c_bar * r->n[i];
    n_bar[i] = c_bar * r->a[i] - q_bar[i];
  }
  sn_turn(wrench, r->n, n_bar);
  sn_turn(wrench + 6, r->a, a_bar);
  sn_turn(wrench + 6, r->x, x_bar);
}

SN_LOCAL int smooth_cylinder(const SnShape *a, const SnShape *b, sn_real reach, sn_real s, SnContact *con) {
  SmoothRim rim;
  sn_real arm[3], point[3];
  int n = 0;
  smooth_rim(&rim, a, b, s);
  for (int k = 0; k < 4; ++k) {
    smooth_rim_point(&rim, k, b->size[1], arm);
    sn_add3(point, b->pos, arm);
    if (sn_plane_point(a->pos, rim.n, point, 0, reach, con + n)) con[n++].feature = -1 - k;
  }
  return n;
}

SN_LOCAL void smooth_cylinder_vjp(const SnShape *a, const SnShape *b, int k, sn_real s, const SnContact *con,
                                  const SnContactBar *bar, sn_real *wrench) {
  SmoothRim rim;
  sn_real arm[3], point[3], force[3];
  smooth_rim(&rim, a, b, s);
  smooth_rim_point(&rim, k, b->size[1], arm);
  sn_add3(point, b->pos, arm);
  sn_plane_point_vjp(a, rim.n, point, 0, con->dist, bar, wrench, force);
  sn_addto3(wrench + 9, force);
  smooth_rim_vjp(&rim, k, b, s, force, wrench);
}

// ---- a pair ----

// Of contacts from `first` on drops the farthest ones until no more than SN_MAXCON_PAIR are left; returns their number.
SN_LOCAL int smooth_drop(SnContact *con, int first, int n) {
  while (n > SN_MAXCON_PAIR) {
    int far = first;
    for (int i = first + 1; i < n; ++i)
      if (con[i].dist > con[far].dist) far = i;
    con[far] = con[--n];
  }
  return n;
}

SN_FUNC int sn_collide_smooth(const SnShape *a, const SnShape *b, SnCollider collider, const SnSmooth *smooth,
                              SnContact *con) {
  if (collider == SN_COLLIDER_PLANE_CYLINDER) return smooth_cylinder(a, b, smooth->reach, smooth->length, con);
  const bool boxes = collider == SN_COLLIDER_BOX_BOX;
  int n = 0;
  const int found = boxes ? sn_collide_box_box(a, b, smooth->touch, con) : 0;
  for (int i = 0; i < found; ++i)
    if (sn_box_edges_cross(con[i].feature)) con[n++] = con[i];
  const int first = n;
  for (int k = 0; k < (boxes ? 2 : 1) * SMOOTH_DIAGONALS; ++k) {
    const bool second = k < SMOOTH_DIAGONALS;  // whose diagonal it is
    const SmoothFaces x = {.shape = second ? a : b, .plane = !boxes, .s = smooth->length};
    if (!smooth_box_contact(x, second ? b : a, k % SMOOTH_DIAGONALS, second ? SN_R(1.0) : SN_R(-1.0), smooth->reach,
                            con + n))
      continue;
    con[n++].feature = -1 - k;
    n = smooth_drop(con, first, n);
  }
  return n;
}

SN_FUNC void sn_collide_smooth_vjp(const SnShape *a, const SnShape *b, SnCollider collider, sn_real length,
                                   const SnContact *con, const SnContactBar *bar, sn_real *wrench) {
  const int k = -1 - con->feature;
  if (collider == SN_COLLIDER_PLANE_CYLINDER) {
    smooth_cylinder_vjp(a, b, k, length, con, bar, wrench);
    return;
  }
  const bool second = k < SMOOTH_DIAGONALS;
  const SmoothFaces x = {.shape = second ? a : b, .plane = collider == SN_COLLIDER_PLANE_BOX, .s = length};
  smooth_box_contact_vjp(x, second ? b : a, k % SMOOTH_DIAGONALS, second ? SN_R(1.0) : SN_R(-1.0), bar,
                         second ? wrench : wrench + 6, second ? wrench + 6 : wrench);
}
