// Adjoint of convex contacts against differences: single nearest points of every kind of pair, apart, about to touch
// and in each other; multi-contacts; contacts of MyoSuite's models.
//
// GJK and EPA end where curved shapes are near enough, so that their normals are noisy and their differences useless.
// What is differentiated in their place is exact: sn_smooth_nearest for ellipsoids with round shapes; for the others
// the nearest points of two parts of surfaces (corner, edge, face, rim, mantle, ellipsoid), found by Newton's method
// from the contact. Which parts these are is taken from the engine, and believed only where distance, normal and
// point equal those of the contact. Polyhedra are differentiated as they are.
#include <stdio.h>
#include <stdlib.h>

#include "physics/smooth.h"
#include "physics/touch.h"
#include "tests/harness/gradcheck.h"

enum { NX = 12, NY = 7 };

// A part of a shape's surface, in the shape's frame: x(u) for `dim` parameters, and a radius around it.
typedef struct Part {
  SnTouchKind kind;
  int dim;
  double at[3], dir[6], radius, size[3];
  double u[2];  // at the base
} Part;

typedef struct Pair {
  SnOracle o;
  int geom[2];
  const char *name;
  double nearest, farthest;  // range of distances
  int max;                   // contacts
  bool exact;                // differentiate the nearest points of parts
  bool smooth;               // differentiate sn_smooth_nearest
  bool line;                 // differentiate a cylinder's end that lies on a face
  int wanted;                // of multi-contacts: 1 faces, 2 edges on faces
  int pair;
  int which;  // contact that is differentiated
  SnContact base[SN_MAXCON_PAIR];
  int count;
  double pos[6], mat[18];
  double reach;
  double smoothness;  // differences with two steps agree to
  Part part[2];
} Pair;

// Moves both geoms by dx: rotation, translation of the first, then of the second.
static void place(Pair *p, const double *dx) {
  for (int g = 0; g < 2; ++g) {
    sn_real *pos = p->o.w.geom_xpos + 3 * p->geom[g], *mat = p->o.w.geom_xmat + 9 * p->geom[g];
    double q[4], turn[9], r[9], axis[3] = {1, 0, 0}, angle = 0;
    if (dx) {
      mju_copy3(axis, dx + 6 * g);
      angle = mju_normalize3(axis);
    }
    mju_axisAngle2Quat(q, axis, angle);
    mju_quat2Mat(turn, q);
    mju_mulMatMat(r, turn, p->mat + 9 * g, 3, 3, 3);
    for (int i = 0; i < 9; ++i) mat[i] = (sn_real)r[i];
    for (int i = 0; i < 3; ++i) pos[i] = (sn_real)(p->pos[3 * g + i] + (dx ? dx[6 * g + 3 + i] : 0));
  }
}

static void shape_of(const Pair *p, int g, SnShape *s) {
  s->pos = p->o.w.geom_xpos + 3 * p->geom[g];
  s->mat = p->o.w.geom_xmat + 9 * p->geom[g];
  s->size = p->o.m->geom_size + 3 * p->geom[g];
}

static int collide(Pair *p, SnContact *con) {
  return sn_collide_convex(p->o.m, &p->o.w, p->geom[0], p->geom[1], (sn_real)p->reach, con, p->max);
}

static void write_y(double *y, double dist, const double *x1, const double *x2, const double *normal) {
  y[0] = dist;
  for (int i = 0; i < 3; ++i) {
    y[1 + i] = 0.5 * (x1[i] + x2[i]);
    y[4 + i] = normal[i];
  }
}

// Point of a part and its derivatives with respect to the parameters, in the frame of the shape.
static void part_point(const Part *a, const double *u, double *x, double *dx) {
  mju_copy3(x, a->at);
  switch (a->kind) {
    case SN_TOUCH_ELLIPSOID: {
      double q[3];
      for (int i = 0; i < 3; ++i) q[i] = a->at[i] + u[0] * a->dir[i] + u[1] * a->dir[3 + i];
      const double length = mju_normalize3(q);
      for (int k = 0; k < 2; ++k) {
        const double along = mju_dot3(q, a->dir + 3 * k);
        for (int i = 0; i < 3; ++i) dx[3 * k + i] = a->size[i] * (a->dir[3 * k + i] - q[i] * along) / length;
      }
      for (int i = 0; i < 3; ++i) x[i] = a->size[i] * q[i];
      return;
    }
    case SN_TOUCH_RIM:
      x[0] = a->size[0] * cos(u[0]);
      x[1] = a->size[0] * sin(u[0]);
      dx[0] = -x[1];
      dx[1] = x[0];
      dx[2] = 0;
      return;
    default:
      for (int k = 0; k < a->dim; ++k) {
        mju_addToScl3(x, a->dir + 3 * k, u[k]);
        mju_copy3(dx + 3 * k, a->dir + 3 * k);
      }
  }
}

static void part_world(const Pair *p, int g, const double *u, double *x, double *dx) {
  double local[3], dlocal[6] = {0}, mat[9];
  for (int i = 0; i < 9; ++i) mat[i] = (double)p->o.w.geom_xmat[9 * p->geom[g] + i];
  part_point(p->part + g, u, local, dlocal);
  mju_mulMatVec3(x, mat, local);
  for (int i = 0; i < 3; ++i) x[i] += (double)p->o.w.geom_xpos[3 * p->geom[g] + i];
  for (int k = 0; k < p->part[g].dim; ++k) mju_mulMatVec3(dx + 3 * k, mat, dlocal + 3 * k);
}

// Gradient of half the squared distance of the two points, with respect to all parameters.
static void part_gradient(const Pair *p, const double *u, double *x1, double *x2, double *g) {
  double dx1[6], dx2[6], d[3];
  const int n1 = p->part[0].dim;
  part_world(p, 0, u, x1, dx1);
  part_world(p, 1, u + n1, x2, dx2);
  mju_sub3(d, x2, x1);
  for (int k = 0; k < n1; ++k) g[k] = -mju_dot3(d, dx1 + 3 * k);
  for (int k = 0; k < p->part[1].dim; ++k) g[n1 + k] = mju_dot3(d, dx2 + 3 * k);
}

static bool solve4(double *a, double *b, int n) {
  for (int k = 0; k < n; ++k) {
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (fabs(a[4 * i + k]) > fabs(a[4 * best + k])) best = i;
    if (!(fabs(a[4 * best + k]) > 1e-12)) return false;
    for (int j = 0; j < n; ++j) {
      const double t = a[4 * k + j];
      a[4 * k + j] = a[4 * best + j];
      a[4 * best + j] = t;
    }
    const double t = b[k];
    b[k] = b[best];
    b[best] = t;
    for (int i = k + 1; i < n; ++i) {
      const double f = a[4 * i + k] / a[4 * k + k];
      for (int j = k; j < n; ++j) a[4 * i + j] -= f * a[4 * k + j];
      b[i] -= f * b[k];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    for (int j = k + 1; j < n; ++j) b[k] -= a[4 * k + j] * b[j];
    b[k] /= a[4 * k + k];
  }
  return true;
}

// Stationary distance of the two parts; sign: of the distance between cores at the base.
static bool nearest_parts(const Pair *p, double sign, double *y) {
  const int n = p->part[0].dim + p->part[1].dim;
  double u[4], x1[3], x2[3], g[4], jac[16], d[3];
  for (int k = 0; k < n; ++k) u[k] = k < p->part[0].dim ? p->part[0].u[k] : p->part[1].u[k - p->part[0].dim];
  for (int it = 0; it < 30; ++it) {
    part_gradient(p, u, x1, x2, g);
    for (int k = 0; k < n; ++k) {
      double moved[4], up[4], y1[3], y2[3];
      mju_copy(moved, u, n);
      moved[k] += 1e-7;
      part_gradient(p, moved, y1, y2, up);
      for (int i = 0; i < n; ++i) jac[4 * i + k] = (up[i] - g[i]) / 1e-7;
    }
    if (n > 0 && !solve4(jac, g, n)) return false;
    double change = 0;
    for (int k = 0; k < n; ++k) {
      change = fmax(change, fabs(g[k]));
      u[k] -= g[k];
    }
    if (!(change < 10)) return false;
    if (change < 1e-13) break;
  }
  part_gradient(p, u, x1, x2, g);
  mju_sub3(d, x2, x1);
  const double length = mju_normalize3(d);
  mju_scl3(d, d, sign);
  mju_addToScl3(x1, d, p->part[0].radius);
  mju_addToScl3(x2, d, -p->part[1].radius);
  write_y(y, sign * length - p->part[0].radius - p->part[1].radius, x1, x2, d);
  return true;
}

// The part of geom g that the engine says touches.
static void take_part(Pair *p, int g, const SnContact *con) {
  SnConvex s;
  SnTouch t;
  Part *a = p->part + g;
  sn_real x[3], n[3], r[3], l[3], ln[3];
  sn_convex_init(&s, p->o.m, &p->o.w, p->geom[g], 0);
  sn_scale3(n, con->frame, g == 0 ? 1 : -1);
  sn_addscl3(x, con->pos, n, SN_R(-0.5) * con->dist);
  sn_touch_init(&t, &s, con->corner + 3 * g, x, n);
  a->kind = t.kind;
  a->dim = t.kind == SN_TOUCH_ELLIPSOID ? 2 : t.kind == SN_TOUCH_RIM ? 1 : t.nflat;
  a->radius = t.kind == SN_TOUCH_RIM ? 0 : (double)t.radius;
  a->u[0] = a->u[1] = 0;
  sn_sub3(r, t.at, s.pos);
  sn_mulmattvec3(l, s.mat, r);
  for (int i = 0; i < 3; ++i) {
    a->at[i] = (double)l[i];
    a->size[i] = (double)s.size[i];
  }
  for (int k = 0; k < t.nflat; ++k) {
    sn_mulmattvec3(l, s.mat, t.flat + 3 * k);
    for (int i = 0; i < 3; ++i) a->dir[3 * k + i] = (double)l[i];
  }
  sn_mulmattvec3(ln, s.mat, n);
  sn_addtoscl3(x, n, -(sn_real)a->radius);
  if (t.kind == SN_TOUCH_RIM) {
    a->u[0] = atan2((double)ln[1], (double)ln[0]);
  } else if (t.kind == SN_TOUCH_ELLIPSOID) {
    double b[3] = {0};
    for (int i = 0; i < 3; ++i) a->at[i] = (double)ln[i] * a->size[i];
    mju_normalize3(a->at);
    b[fabs(a->at[0]) < 0.6 ? 0 : 1] = 1;
    mju_cross(a->dir, a->at, b);
    mju_normalize3(a->dir);
    mju_cross(a->dir + 3, a->at, a->dir);
  } else {
    sn_sub3(r, x, t.at);
    sn_mulmattvec3(l, s.mat, r);
    // coordinates along directions that need not be square to each other
    double m[16], c[4];
    for (int k = 0; k < a->dim; ++k) {
      c[k] = a->dir[3 * k] * (double)l[0] + a->dir[3 * k + 1] * (double)l[1] + a->dir[3 * k + 2] * (double)l[2];
      for (int j = 0; j < a->dim; ++j) m[4 * k + j] = mju_dot3(a->dir + 3 * k, a->dir + 3 * j);
    }
    if (a->dim > 0 && solve4(m, c, a->dim)) mju_copy(a->u, c, a->dim);
  }
}

static bool same_corners(const int *a, const int *b) {
  for (int i = 0; i < 3; ++i) {
    bool in = false, back = false;
    for (int j = 0; j < 3; ++j) {
      in |= a[i] == b[j];
      back |= b[i] == a[j];
    }
    if (!in || !back) return false;
  }
  return true;
}

// Contacts of the same features: the corners of an edge, and of several equal points one, come in any order.
static bool same_feature(const SnContact *a, const SnContact *b) {
  if (a->feature != b->feature) return false;
  if (a->feature == SN_FEATURE_NEAREST)
    return same_corners(a->corner, b->corner) && same_corners(a->corner + 3, b->corner + 3);
  int code[2][6];
  for (int k = 0; k < 2; ++k) {
    const int *c = (k ? b : a)->corner;
    const int in = c[SN_PATCH_IN], out = c[SN_PATCH_OUT], low = in < out ? in : out, high = in < out ? out : in;
    const bool edge = a->feature != SN_FEATURE_FACES, flip = c[SN_PATCH_START] > c[SN_PATCH_END];
    const int next[6] = {c[SN_PATCH_CLIP],
                         c[SN_PATCH_CUT],
                         c[flip ? SN_PATCH_END : SN_PATCH_START],
                         c[flip ? SN_PATCH_START : SN_PATCH_END],
                         edge && low < 2 ? 0 : low,
                         edge && high < 2 ? 0 : high};
    memcpy(code[k], next, sizeof next);
  }
  return !memcmp(code[0], code[1], sizeof code[0]);
}

static double core_sign(const Pair *p) {
  return (double)p->base[p->which].dist + p->part[0].radius + p->part[1].radius > 0 ? 1 : -1;
}

// The end of a cylinder's edge on a face: dist, pos, normal from the face of the contact at the base, carried by its
// geom, and the end of the line of the mantle that is nearest to the face, of the other geom.
static bool cylinder_end(const Pair *p, double *y) {
  const SnContact *con = p->base + p->which;
  const int cut = con->feature == SN_FEATURE_EDGE_A ? 0 : 1, clip = 1 - cut;
  if (con->corner[SN_PATCH_IN] >= SN_PATCH_SIDE || con->corner[SN_PATCH_OUT] >= SN_PATCH_SIDE) return false;
  double n[3], o[3], local[3], axis[3], down[3], point[3], base[3];
  // normal out of the face and a point of it, at the base and now
  for (int i = 0; i < 3; ++i) {
    n[i] = (clip == 0 ? 1 : -1) * (double)con->frame[i];
    o[i] = (double)con->pos[i] - 0.5 * n[i] * (double)con->dist - p->pos[3 * clip + i];
    base[i] = (double)con->pos[i] + 0.5 * n[i] * (double)con->dist - p->pos[3 * cut + i];
  }
  double now[9], mat[9];
  for (int i = 0; i < 9; ++i) now[i] = (double)p->o.w.geom_xmat[9 * clip + i];
  for (int i = 0; i < 9; ++i) mat[i] = (double)p->o.w.geom_xmat[9 * cut + i];
  mju_mulMatTVec3(local, p->mat + 9 * clip, n);
  mju_mulMatVec3(n, now, local);
  mju_mulMatTVec3(local, p->mat + 9 * clip, o);
  mju_mulMatVec3(o, now, local);
  for (int i = 0; i < 3; ++i) o[i] += (double)p->o.w.geom_xpos[3 * clip + i];
  mju_mulMatTVec3(local, p->mat + 9 * cut, base);
  const double half = (local[2] > 0 ? 1 : -1) * (double)p->o.m->geom_size[3 * cut + 1];
  for (int i = 0; i < 3; ++i) axis[i] = mat[3 * i + 2];
  mju_addScl3(down, n, axis, -mju_dot3(n, axis));
  mju_normalize3(down);
  for (int i = 0; i < 3; ++i)
    point[i] = (double)p->o.w.geom_xpos[3 * cut + i] + half * axis[i] - (double)p->o.m->geom_size[3 * cut] * down[i];
  mju_sub3(local, point, o);
  y[0] = mju_dot3(local, n);
  for (int i = 0; i < 3; ++i) {
    y[1 + i] = point[i] - 0.5 * y[0] * n[i];
    y[4 + i] = clip == 0 ? n[i] : -n[i];
  }
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Pair *p = context;
  place(p, dx);
  if (p->line) return cylinder_end(p, y);
  if (p->smooth) {
    SnShape a, b;
    SnNearest r;
    shape_of(p, 0, &a);
    shape_of(p, 1, &b);
    if (!sn_smooth_nearest(p->o.m->geom_type[p->geom[0]], &a, &b, &r)) return false;
    write_y(y, r.dist, r.x1, r.x2, r.normal);
    return true;
  }
  if (p->exact) return nearest_parts(p, core_sign(p), y);
  SnContact con[SN_MAXCON_PAIR];
  if (collide(p, con) != p->count) return false;
  int i = 0;
  for (int k = 1; k < p->count; ++k)
    if (sn_dist3(con[k].pos, p->base[p->which].pos) < sn_dist3(con[i].pos, p->base[p->which].pos)) i = k;
  if (!same_feature(con + i, p->base + p->which)) return false;
  y[0] = con[i].dist;
  for (int k = 0; k < 3; ++k) {
    y[1 + k] = con[i].pos[k];
    y[4 + k] = con[i].frame[k];
  }
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Pair *p = context;
  SnContactBar bar = {0};
  sn_real wrench[12] = {0};
  place(p, NULL);
  bar.dist = ybar[0];
  for (int i = 0; i < 3; ++i) {
    bar.pos[i] = ybar[1 + i];
    bar.normal[i] = ybar[4 + i];
  }
  SnContact con = p->base[p->which];
  con.geom[0] = p->geom[0];
  con.geom[1] = p->geom[1];
  con.pair = p->pair;
  p->o.m->cpair_reach[p->pair] = (sn_real)p->reach;
  sn_real *t = con.frame + 3;  // any tangent
  sn_set3(t, 0, 0, 0);
  t[sn_abs(con.frame[0]) < SN_R(0.6) ? 0 : 1] = 1;
  sn_addtoscl3(t, con.frame, -sn_dot3(t, con.frame));
  sn_normalize3(t);
  sn_collide_convex_vjp(p->o.m, &p->o.w, &con, &bar, wrench);
  for (int i = 0; i < NX; ++i) xbar[i] += wrench[i];
}

// Differences with two steps agree: the function is smooth here on the scale of the step.
static bool is_smooth(Pair *p) {
  double largest = 1e-3, worst = 0;
  for (int i = 0; i < NX; ++i) {
    double d[2][NY], up[NY], down[NY], dx[NX] = {0};
    for (int k = 0; k < 2; ++k) {
      const double h = k ? 4e-6 : 1e-6;
      dx[i] = h;
      if (!forward(p, dx, up)) return false;
      dx[i] = -h;
      if (!forward(p, dx, down)) return false;
      for (int j = 0; j < NY; ++j) d[k][j] = (up[j] - down[j]) / (2 * h);
    }
    for (int j = 0; j < NY; ++j) {
      largest = fmax(largest, fabs(d[0][j]));
      worst = fmax(worst, fabs(d[0][j] - d[1][j]));
    }
  }
  return worst < p->smoothness * largest;
}

static double gap(Pair *p) {
  SnCcd c;
  sn_convex_init(&c.a, p->o.m, &p->o.w, 0, 0);
  sn_convex_init(&c.b, p->o.m, &p->o.w, 1, 0);
  c.tolerance = SN_R(1e-12);
  c.iterations = 500;
  c.cutoff = 10;
  return (double)sn_ccd(&c, 1);
}

static void random_sizes(Pair *p) {
  for (int i = 0; i < 6; ++i)
    if (p->o.m->geom_type[i / 3] != SN_GEOM_MESH)
      p->o.m->geom_size[i] = (sn_real)(0.1 * (1.1 + 0.9 * sn_oracle_uniform(&p->o)));
}

// Moves the second geom along an axis to a random distance of those that are wanted.
static void approach(Pair *p, const double *dir) {
  const double wanted = p->nearest + (p->farthest - p->nearest) * 0.5 * (1 + sn_oracle_uniform(&p->o));
  place(p, NULL);
  for (int k = 0; k < 30; ++k) {
    const double over = gap(p) - wanted;
    if (fabs(over) < 1e-12) break;
    mju_addToScl3(p->pos + 3, dir, -over);
    place(p, NULL);
  }
}

// What is differentiated in the place of the contact is the contact: finds its parts.
static bool is_believed(Pair *p) {
  if (!p->smooth && !p->exact) return true;
  const SnContact *con = p->base + p->which;
  double y[NY], normal = 0, pos = 0;
  take_part(p, 0, con);
  take_part(p, 1, con);
  if (!forward(p, NULL, y)) return false;
  for (int i = 0; i < 3; ++i) {
    normal = fmax(normal, fabs(y[4 + i] - (double)con->frame[i]));
    pos = fmax(pos, fabs(y[1 + i] - (double)con->pos[i]));
  }
  if (fabs(y[0] - (double)con->dist) < 1e-6 && normal < 1e-2 && pos < 1e-3) return true;
  printf("%s: parts %d %d: dist %g normal %g pos %g\n", p->name, p->part[0].kind, p->part[1].kind,
         y[0] - (double)con->dist, normal, pos);
  return false;
}

static bool sample(void *context) {
  Pair *p = context;
  SnOracle *o = &p->o;
  double dir[3], q[4];
  random_sizes(p);
  for (int g = 0; g < 2; ++g) {
    for (int i = 0; i < 4; ++i) q[i] = sn_oracle_uniform(o);
    mju_normalize4(q);
    mju_quat2Mat(p->mat + 9 * g, q);
  }
  for (int i = 0; i < 3; ++i) dir[i] = sn_oracle_uniform(o);
  mju_normalize3(dir);
  mju_zero(p->pos, 6);
  mju_scl3(p->pos + 3, dir, 3);
  approach(p, dir);
  p->count = collide(p, p->base);
  if (p->count < 1) return false;
  p->which = sn_oracle_pick(o, p->count);
  return is_believed(p) && is_smooth(p);
}

// Outward normal of a random face of geom g, or (edge) a direction in which an edge sticks out, in the geom's frame.
static void outward(Pair *p, int g, bool edge, double *n) {
  SnOracle *o = &p->o;
  const int type = o->m->geom_type[g];
  mju_zero3(n);
  if (type == SN_GEOM_MESH) {
    SnConvex s;
    sn_convex_init(&s, o->m, &o->w, g, 0);
    const int a = sn_oracle_pick(o, s.npoly);
    for (int k = 0; k < 3; ++k) n[k] = (double)s.polynormal[3 * a + k];
    // between two faces that have an edge in common
    for (int b = sn_oracle_pick(o, s.npoly), tries = 0; edge && tries < 2 * s.npoly; b = (b + 1) % s.npoly, ++tries) {
      int common = 0;
      for (int i = 0; i < s.polynum[a]; ++i)
        for (int j = 0; j < s.polynum[b]; ++j) common += s.polyvert[s.polyadr[a] + i] == s.polyvert[s.polyadr[b] + j];
      if (common != 2) continue;
      const double t = 0.5 + 0.3 * sn_oracle_uniform(o);
      for (int k = 0; k < 3; ++k) n[k] += t * ((double)s.polynormal[3 * b + k] - n[k]);
      break;
    }
  } else if (type == SN_GEOM_BOX) {
    const int k = sn_oracle_pick(o, 3);
    n[k] = sn_oracle_pick(o, 2) ? 1 : -1;
    if (edge) n[(k + 1) % 3] = 0.5 + 0.4 * sn_oracle_uniform(o);
  } else if (edge) {
    n[0] = sn_oracle_uniform(o);
    n[1] = sn_oracle_uniform(o);
  } else {
    n[2] = sn_oracle_pick(o, 2) ? 1 : -1;
  }
  mju_normalize3(n);
}

// Turns geom g so that its direction n becomes the z axis times `sign`, but for a random turn about it and up to 2
// degrees.
static void orient(Pair *p, int g, const double *n, double sign) {
  double *mat = p->mat + 9 * g, r[9], other[3], axis[3], q[4], turn[9];
  for (int i = 0; i < 3; ++i) other[i] = sn_oracle_uniform(&p->o);
  mju_scl3(r + 6, n, sign);
  mju_cross(r, other, n);
  mju_normalize3(r);
  mju_cross(r + 3, r + 6, r);
  for (int i = 0; i < 3; ++i) axis[i] = sn_oracle_uniform(&p->o);
  mju_normalize3(axis);
  mju_axisAngle2Quat(q, axis, 0.035 * sn_oracle_uniform(&p->o));
  mju_quat2Mat(turn, q);
  mju_mulMatMat(mat, turn, r, 3, 3, 3);
}

static bool sample_flat(void *context) {
  Pair *p = context;
  SnOracle *o = &p->o;
  for (int tries = 0; tries < 200; ++tries) {
    random_sizes(p);
    const bool capsule = o->m->geom_type[0] == SN_GEOM_CAPSULE, first = capsule || sn_oracle_pick(o, 2);
    double n[3];
    outward(p, 0, p->wanted == 2 && first, n);
    orient(p, 0, n, 1);
    outward(p, 1, p->wanted == 2 && !first, n);
    orient(p, 1, n, -1);
    mju_zero(p->pos, 6);
    p->pos[5] = 3;
    approach(p, (const double[3]){0, 0, 1});
    for (int k = 3; k < 5; ++k) p->pos[k] = 0.03 * sn_oracle_uniform(o);
    place(p, NULL);
    p->count = collide(p, p->base);
    if (p->count < 1) continue;
    p->which = sn_oracle_pick(o, p->count);
    const int feature = p->base[p->which].feature;
    if ((p->wanted == 1) == (feature == SN_FEATURE_FACES) && feature != SN_FEATURE_NEAREST) {
      double y[NY], off = 0;
      if (!forward(p, NULL, y)) continue;
      for (int k = 0; k < 3; ++k) off = fmax(off, fabs(y[1 + k] - (double)p->base[p->which].pos[k]));
      if (off < 1e-3) return is_smooth(p);
    }
  }
  return false;
}

static void ball(char *text, int n, const double size[3]) {
  for (int i = 0; i < n; ++i) {
    const double z = 1 - (2.0 * i + 1) / n, r = sqrt(1 - z * z), t = 2.399963 * i;
    text += sprintf(text, "%.7g %.7g %.7g ", size[0] * r * cos(t), size[1] * r * sin(t), size[2] * z);
  }
}

static void load(SnOracle *o, const char *geom1, const char *geom2) {
  static char xml[40000], hull[4000];
  ball(hull, 24, (const double[3]){.1, .14, .2});
  snprintf(
      xml, sizeof xml,
      "<mujoco><asset><mesh name='hull' vertex='%s'/>"
      "<mesh name='cube' vertex='.1 .1 .1 -.1 .1 .1 .1 -.1 .1 -.1 -.1 .1 .1 .1 -.1 -.1 .1 -.1 .1 -.1 -.1 -.1 -.1 -.1'/>"
      "</asset><worldbody>"
      "<body><freejoint/><geom type='%s' size='.1 .1 .1'/></body>"
      "<body><freejoint/><geom type='%s' size='.1 .1 .1'/></body></worldbody></mujoco>",
      hull, geom1, geom2);
  sn_oracle_load_string(o, xml);
}

typedef struct Range {
  const char *name;
  double nearest, farthest;
} Range;

static const Range ranges[] = {
    {"far", 0.1, 0.9}, {"apart", 0.002, 0.04}, {"touching", -1e-5, 1e-5}, {"penetrating", -0.012, -0.001}};
enum { TOUCHING = 2, NRANGE = sizeof ranges / sizeof ranges[0] };

static void check(const char *geom1, const char *geom2, bool exact, bool smooth, int max, int samples) {
  for (int r = 0; r < NRANGE; ++r) {
    char name[100];
    Pair p = {0};
    if (exact && r == TOUCHING) continue;  // parts that touch have no normal
    load(&p.o, geom1, geom2);
    p.geom[1] = 1;
    p.o.m->opt.ccd_tolerance = SN_R(1e-12);
    p.o.m->opt.ccd_iterations = 500;
    snprintf(name, sizeof name, "%s %s, %s%s", geom1, geom2, ranges[r].name, max > 1 ? ", multi" : "");
    p.name = name;
    p.nearest = ranges[r].nearest;
    p.farthest = ranges[r].farthest;
    p.exact = exact;
    p.smooth = smooth;
    p.max = max;
    // GJK finds the normal of a gap of 1e-5 m to 1e-11
    p.smoothness = exact || smooth ? 2e-7 : (r == TOUCHING ? 1e-4 : 2e-6);
    p.reach = p.farthest > 0 ? p.farthest + 0.01 : 0.001;
    const SnGradCase c = {.name = name,
                          .nx = NX,
                          .ny = NY,
                          .context = &p,
                          .sample = sample,
                          .forward = forward,
                          .adjoint = adjoint,
                          .tolerance = 5 * p.smoothness,
                          .samples = samples};
    sn_gradcheck(&c, 1);
    sn_oracle_free(&p.o);
  }
}

static void smooth_pairs(void **state) {
  (void)state;
  check("sphere", "ellipsoid", false, true, 1, 40);
  check("capsule", "ellipsoid", false, true, 1, 40);
  check("ellipsoid", "ellipsoid", false, true, 1, 40);
}

static void curved_pairs(void **state) {
  (void)state;
  static const char *const pair[][2] = {{"capsule", "ellipsoid"},
                                        {"ellipsoid", "ellipsoid"},
                                        {"capsule", "cylinder"},
                                        {"ellipsoid", "cylinder"},
                                        {"ellipsoid", "box"},
                                        {"cylinder", "cylinder"},
                                        {"cylinder", "box"},
                                        {"ellipsoid", "mesh' mesh='hull"},
                                        {"sphere", "mesh' mesh='hull"},
                                        {"capsule", "mesh' mesh='hull"},
                                        {"cylinder", "mesh' mesh='hull"}};
  for (size_t i = 0; i < sizeof pair / sizeof pair[0]; ++i) check(pair[i][0], pair[i][1], true, false, 1, 60);
}

static void polyhedra(void **state) {
  (void)state;
  check("box", "mesh' mesh='hull", false, false, 1, 60);
  check("box", "mesh' mesh='cube", false, false, 1, 60);
  check("mesh' mesh='hull", "mesh' mesh='hull", false, false, 1, 60);
}

// Faces and edges that lie on faces: turned by a few degrees from parallel.
static void check_flat(const char *geom1, const char *geom2) {
  for (int edge = !strcmp(geom1, "capsule"); edge < 2; ++edge) {  // capsules have no face
    char name[100];
    Pair p = {0};
    load(&p.o, geom1, geom2);
    p.geom[1] = 1;
    p.o.m->opt.ccd_tolerance = SN_R(1e-12);
    p.o.m->opt.ccd_iterations = 500;
    snprintf(name, sizeof name, "%s %s, %s", geom1, geom2, edge ? "edges on faces" : "faces");
    p.name = name;
    p.nearest = -0.01;
    p.farthest = 0.01;
    p.max = 4;
    p.wanted = edge ? 2 : 1;
    // MuJoCo takes the edge of a cylinder from the support point that GJK found first, which is only roughly on the
    // side of the face; differentiated is what it converges to
    p.line = edge && (strstr(geom1, "cylinder") || !strcmp(geom2, "cylinder")) && strcmp(geom1, "capsule") != 0;
    p.smoothness = 2e-7;
    p.reach = 0.02;
    const SnGradCase c = {.name = name,
                          .nx = NX,
                          .ny = NY,
                          .context = &p,
                          .sample = sample_flat,
                          .forward = forward,
                          .adjoint = adjoint,
                          .tolerance = p.line ? 2e-2 : 1e-6,
                          .samples = 60};
    sn_gradcheck(&c, 1);
    sn_oracle_free(&p.o);
  }
}

// Faces against faces, and edges against faces.
static void multi(void **state) {
  (void)state;
  check_flat("box", "mesh' mesh='hull");
  check_flat("box", "mesh' mesh='cube");
  check_flat("mesh' mesh='cube", "mesh' mesh='cube");
  check_flat("mesh' mesh='hull", "mesh' mesh='hull");
  check_flat("cylinder", "box");
  check_flat("cylinder", "cylinder");
  check_flat("cylinder", "mesh' mesh='cube");
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// GJK and EPA stop early at MuJoCo's default tolerance; Newton's method makes up for it: the gradient at a contact
// found so is that at a contact found to 1e-12.
static void loose(void **state) {
  (void)state;
  static const char *const pair[][2] = {{"sphere", "ellipsoid"},   {"capsule", "ellipsoid"}, {"ellipsoid", "ellipsoid"},
                                        {"ellipsoid", "cylinder"}, {"cylinder", "cylinder"}, {"ellipsoid", "box"},
                                        {"capsule", "cylinder"},   {"cylinder", "box"}};
  for (size_t i = 0; i < sizeof pair / sizeof pair[0]; ++i) {
    enum { POSES = 1000 };
    static double error[POSES], before[POSES];
    int n = 0, parts = 0;
    Pair p = {0};
    load(&p.o, pair[i][0], pair[i][1]);
    p.geom[1] = 1;
    p.nearest = -0.005;
    p.farthest = 0.005;
    p.reach = 0.006;
    p.max = 1;
    p.smoothness = 1;
    for (int k = 0; k < POSES; ++k) {
      double ybar[NY], tight[NX] = {0}, at[NX] = {0}, worst = 0, largest = 1e-3;
      for (int j = 0; j < NY; ++j) ybar[j] = sn_oracle_uniform(&p.o);
      p.o.m->opt.ccd_tolerance = SN_R(1e-12);
      p.o.m->opt.ccd_iterations = 500;
      if (!sample(&p)) continue;
      const SnContact sharp = p.base[0];
      adjoint(&p, ybar, tight);
      p.o.m->opt.ccd_tolerance = SN_R(1e-6);
      p.o.m->opt.ccd_iterations = 35;
      if (collide(&p, p.base) != 1) continue;
      adjoint(&p, ybar, at);
      for (int j = 0; j < NX; ++j) {
        worst = fmax(worst, fabs(at[j] - tight[j]));
        largest = fmax(largest, fabs(tight[j]));
      }
      before[n] = 0;
      for (int j = 0; j < 3; ++j) before[n] = fmax(before[n], fabs((double)(sharp.frame[j] - p.base[0].frame[j])));
      error[n++] = worst / largest;
      parts += worst / largest > 1e-6;
    }
    qsort(error, (size_t)n, sizeof *error, compare_doubles);
    qsort(before, (size_t)n, sizeof *before, compare_doubles);
    printf("%-10s %-10s %4d poses: normal off by %.1e (median) %.1e (most); gradient %.1e %.1e, %d beyond 1e-6\n",
           pair[i][0], pair[i][1], n, before[n / 2], before[n - 1], error[n / 2], error[n - 1], parts);
    assert_true(n > POSES / 2 && error[n / 2] < 1e-8 && parts <= n / 100);
    sn_oracle_free(&p.o);
  }
}

// Geoms along the axes on a lattice, so that corners, edges, faces and axes meet exactly, apart, touching, deep and
// at the same place.
static void lattice_pose(Pair *p) {
  static const double half = 0.70710678118654752440;
  SnOracle *o = &p->o;
  for (int g = 0; g < 2; ++g) {
    double q[4] = {1, 0, 0, 0};
    for (int i = 0; i < 3; ++i) {
      double turn[4] = {half, 0, 0, 0}, r[4];
      turn[1 + sn_oracle_pick(o, 3)] = half;
      mju_mulQuat(r, q, turn);
      mju_copy4(q, r);
    }
    mju_quat2Mat(p->mat + 9 * g, q);
    for (int i = 0; i < 3; ++i) {
      p->pos[3 * g + i] = g * 0.05 * (sn_oracle_pick(o, 9) - 4);
      if (o->m->geom_type[g] != SN_GEOM_MESH) o->m->geom_size[3 * g + i] = (sn_real)(0.05 * (1 + sn_oracle_pick(o, 2)));
    }
  }
  place(p, NULL);
}

// The adjoint is finite, and both wrenches together are that of point and normal when the pair moves as one, wherever
// geoms meet.
static void degenerate(void **state) {
  (void)state;
  static const char *const geom[] = {"sphere", "capsule",          "ellipsoid",       "cylinder",
                                     "box",    "mesh' mesh='cube", "mesh' mesh='hull"};
  for (int a = 0; a < 7; ++a)
    for (int b = a; b < 7; ++b) {
      Pair p = {0};
      int contacts = 0, balanced = 0;
      double largest = 0;
      load(&p.o, geom[a], geom[b]);
      p.geom[1] = 1;
      for (int k = 0; k < 400; ++k) {
        lattice_pose(&p);
        p.reach = 0.1 * sn_oracle_pick(&p.o, 2);
        p.max = k % 2 ? 4 : 1;
        p.count = collide(&p, p.base);
        for (p.which = 0; p.which < p.count; ++p.which) {
          double ybar[NY], x[NX] = {0}, off = 0, size = 1;
          for (int j = 0; j < NY; ++j) ybar[j] = sn_oracle_uniform(&p.o);
          adjoint(&p, ybar, x);
          const SnContact *con = p.base + p.which;
          double total[6] = {0}, arm[3], t[3], n[3];
          for (int g = 0; g < 2; ++g) {
            for (int i = 0; i < 3; ++i) arm[i] = p.pos[3 * g + i] - (double)con->pos[i];
            mju_cross(t, arm, x + 6 * g + 3);
            for (int i = 0; i < 3; ++i) total[i] += x[6 * g + i] + t[i];
            for (int i = 0; i < 3; ++i) total[3 + i] += x[6 * g + 3 + i];
          }
          for (int i = 0; i < 3; ++i) n[i] = (double)con->frame[i];
          mju_cross(t, n, ybar + 4);
          for (int i = 0; i < 3; ++i) off = fmax(off, fmax(fabs(total[i] - t[i]), fabs(total[3 + i] - ybar[1 + i])));
          for (int j = 0; j < NX; ++j) {
            if (!isfinite(x[j])) fail_msg("%s %s: wrench[%d] = %g", geom[a], geom[b], j, x[j]);
            size = fmax(size, fabs(x[j]));
          }
          largest = fmax(largest, size);
          ++contacts;
          balanced += off < 1e-6 * size;
        }
      }
      printf("%-18s %-18s %4d contacts, %4d balanced, largest %.2g\n", geom[a], geom[b], contacts, balanced, largest);
      assert_true(contacts > 0 && largest < 1e8);
      sn_oracle_free(&p.o);
    }
}

// A contact of a convex pair in a model in motion.
typedef struct Met {
  int geom[2], pair;
  double pos[6], mat[18];
} Met;

enum { MET = 3000 };

typedef struct Tour {
  Pair p;
  Met met[MET];
  int n, next;
} Tour;

static bool sample_met(void *context) {
  Pair *p = context;
  Tour *t = context;
  if (t->n == 0) return false;
  const Met *met = t->met + t->next++ % t->n;
  for (int g = 0; g < 2; ++g) p->geom[g] = met->geom[g];
  mju_copy(p->pos, met->pos, 6);
  mju_copy(p->mat, met->mat, 18);
  p->pair = met->pair;
  p->reach = (double)p->o.m->cpair_reach[met->pair];
  p->max = p->o.m->cpair_max[met->pair];
  place(p, NULL);
  p->count = collide(p, p->base);
  if (p->count < 1) return false;
  p->which = sn_oracle_pick(&p->o, p->count);
  const int type1 = p->o.m->geom_type[p->geom[0]], type2 = p->o.m->geom_type[p->geom[1]];
  p->exact = p->base[p->which].feature == SN_FEATURE_NEAREST;
  p->smooth = p->exact && type2 == SN_GEOM_ELLIPSOID && p->base[p->which].dist > SN_R(-1e-3);
  (void)type1;
  return is_believed(p) && is_smooth(p);
}

// Rolls a model from random states under smooth controls and collects contacts of convex pairs.
static void collect(Tour *t, int *kinds) {
  SnOracle *o = &t->p.o;
  for (int step = 0; step < 1000 && t->n < MET; ++step) {
    if (step % 100 == 0) {
      mj_resetData(o->mj, o->d);
      if (step % 200) sn_oracle_randomize(o, 1);
    }
    for (int i = 0; i < o->m->nu; ++i) {
      const double *r = o->mj->actuator_ctrlrange + 2 * i, u = 0.5 + 0.5 * sin(0.02 * step + i);
      o->d->ctrl[i] = o->mj->actuator_ctrllimited[i] ? r[0] + (r[1] - r[0]) * u : u;
    }
    mj_step(o->mj, o->d);
    if (step % 5) continue;
    mj_fwdPosition(o->mj, o->d);
    sn_oracle_copy_state(o);
    sn_oracle_fill_stage(o, SN_STAGE_KINEMATICS);
    sn_collision(o->m, &o->w, &o->lane);
    for (int i = 0; i < o->w.ncon[0] && t->n < MET; ++i) {
      const SnContact *con = o->w.contact + i;
      kinds[8 * o->m->geom_type[con->geom[0]] + o->m->geom_type[con->geom[1]]]++;
      if (o->m->cpair_collider[con->pair] != SN_COLLIDER_CONVEX) continue;
      if (t->n > 0 && t->met[t->n - 1].pair == con->pair) continue;
      Met *met = t->met + t->n++;
      met->pair = con->pair;
      for (int g = 0; g < 2; ++g) {
        met->geom[g] = con->geom[g];
        for (int k = 0; k < 3; ++k) met->pos[3 * g + k] = (double)o->w.geom_xpos[3 * con->geom[g] + k];
        for (int k = 0; k < 9; ++k) met->mat[9 * g + k] = (double)o->w.geom_xmat[9 * con->geom[g] + k];
      }
    }
  }
}

static void real_models(void **state) {
  (void)state;
  static const char *const file[] = {
      "envs/myo/assets/hand/myohand_baoding.xml", "envs/myo/assets/hand/myohand_pen.xml",
      "envs/myo/assets/hand/myohand_die.xml",     "envs/myo/assets/hand/myohand_hold.xml",
      "envs/myo/assets/hand/myohand_keyturn.xml", "envs/myo/assets/arm/myoarm_relocate.xml",
      "envs/myo/assets/hand/myohand_tabletop.xml"};
  static const char *const type[] = {"plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"};
  for (size_t f = 0; f < sizeof file / sizeof file[0]; ++f) {
    static Tour t;
    int kinds[64] = {0};
    memset(&t, 0, sizeof t);
    sn_oracle_load_myosuite(&t.p.o, file[f]);
    collect(&t, kinds);
    printf("%s: %d convex pairs;", file[f], t.n);
    for (int k = 0; k < 64; ++k)
      if (kinds[k]) printf(" %s %s %d", type[k / 8], type[k % 8], kinds[k]);
    printf("\n");
    t.p.name = strrchr(file[f], '/') + 1;
    t.p.smoothness = 1e-5;
    const SnGradCase c = {.name = t.p.name,
                          .nx = NX,
                          .ny = NY,
                          .context = &t,
                          .sample = sample_met,
                          .forward = forward,
                          .adjoint = adjoint,
                          .tolerance = 1e-4,
                          .samples = t.n < 300 ? t.n : 300};
    if (t.n > 0) sn_gradcheck(&c, 1);
    sn_oracle_free(&t.p.o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(smooth_pairs), cmocka_unit_test(curved_pairs),
                                     cmocka_unit_test(polyhedra),    cmocka_unit_test(multi),
                                     cmocka_unit_test(loose),        cmocka_unit_test(degenerate),
                                     cmocka_unit_test(real_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
