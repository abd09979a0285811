#include "tests/support/convex_pair.h"

#include <stdio.h>

#include "physics/collision/collide_private.h"

// Moves both geoms by dx: rotation, translation of the first, then of the second.
void sn_pair_place(SnPair *p, const double *dx) {
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

int sn_pair_collide(SnPair *p, SnContact *con) {
  const SnShape a = sn_shape(p->o.m, &p->o.w, p->geom[0]), b = sn_shape(p->o.m, &p->o.w, p->geom[1]);
  return sn_collide_convex(p->o.m, &a, &b, (sn_real)p->reach, con, p->max);
}

static void write_y(double *y, double dist, const double *x1, const double *x2, const double *normal) {
  y[0] = dist;
  for (int i = 0; i < 3; ++i) {
    y[1 + i] = 0.5 * (x1[i] + x2[i]);
    y[4 + i] = normal[i];
  }
}

// Point of a part and its derivatives with respect to the parameters, in the frame of the shape.
static void part_point(const SnPart *a, const double *u, double *x, double *dx) {
  mju_copy3(x, a->at);
  switch (a->kind) {
    case SN_SURFACE_ELLIPSOID: {
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
    case SN_SURFACE_RIM:
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

static void part_world(const SnPair *p, int g, const double *u, double *x, double *dx) {
  double local[3], dlocal[6] = {0}, mat[9];
  for (int i = 0; i < 9; ++i) mat[i] = (double)p->o.w.geom_xmat[9 * p->geom[g] + i];
  part_point(p->part + g, u, local, dlocal);
  mju_mulMatVec3(x, mat, local);
  for (int i = 0; i < 3; ++i) x[i] += (double)p->o.w.geom_xpos[3 * p->geom[g] + i];
  for (int k = 0; k < p->part[g].dim; ++k) mju_mulMatVec3(dx + 3 * k, mat, dlocal + 3 * k);
}

// Gradient of half the squared distance of the two points, with respect to all parameters.
static void part_gradient(const SnPair *p, const double *u, double *x1, double *x2, double *g) {
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
static bool nearest_parts(const SnPair *p, double sign, double *y) {
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
      change = sn_larger(change, fabs(g[k]));
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
static void take_part(SnPair *p, int g, const SnContact *con) {
  SnConvex s;
  SnSurface t;
  SnPart *a = p->part + g;
  sn_real x[3], n[3], r[3], l[3], ln[3];
  const SnShape shape = sn_shape(p->o.m, &p->o.w, p->geom[g]);
  sn_convex_init(&s, p->o.m, &shape, 0);
  sn_scale3(n, con->frame, g == 0 ? 1 : -1);
  sn_addscl3(x, con->pos, n, SN_R(-0.5) * con->dist);
  sn_surface_init(&t, &s, con->corner + 3 * g, x, n);
  a->kind = t.kind;
  a->dim = t.kind == SN_SURFACE_ELLIPSOID ? 2 : t.kind == SN_SURFACE_RIM ? 1 : t.nflat;
  a->radius = t.kind == SN_SURFACE_RIM ? 0 : (double)t.radius;
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
  if (t.kind == SN_SURFACE_RIM) {
    a->u[0] = atan2((double)ln[1], (double)ln[0]);
  } else if (t.kind == SN_SURFACE_ELLIPSOID) {
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

static double core_sign(const SnPair *p) {
  return (double)p->base[p->which].dist + p->part[0].radius + p->part[1].radius > 0 ? 1 : -1;
}

// The end of a cylinder's edge on a face: dist, pos, normal from the face of the contact at the base, carried by its
// geom, and the end of the line of the mantle that is nearest to the face, of the other geom.
static bool cylinder_end(const SnPair *p, double *y) {
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

bool sn_pair_forward(void *context, const double *dx, double *y) {
  SnPair *p = context;
  sn_pair_place(p, dx);
  if (p->line) return cylinder_end(p, y);
  if (p->smooth) {
    const SnShape a = sn_shape(p->o.m, &p->o.w, p->geom[0]), b = sn_shape(p->o.m, &p->o.w, p->geom[1]);
    SnNearest r;
    if (!sn_ellipsoid_nearest(p->o.m->geom_type[p->geom[0]], &a, &b, &r)) return false;
    const double x1[3] = {r.x1[0], r.x1[1], r.x1[2]}, x2[3] = {r.x2[0], r.x2[1], r.x2[2]};
    write_y(y, r.dist, x1, x2, (const double[3]){r.normal[0], r.normal[1], r.normal[2]});
    return true;
  }
  if (p->exact) return nearest_parts(p, core_sign(p), y);
  SnContact con[SN_MAXCON_PAIR];
  if (sn_pair_collide(p, con) != p->count) return false;
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

void sn_pair_adjoint(void *context, const double *ybar, double *xbar) {
  SnPair *p = context;
  SnContactBar bar = {0};
  sn_real wrench[12] = {0};
  sn_pair_place(p, NULL);
  bar.dist = ybar[0];
  for (int i = 0; i < 3; ++i) {
    bar.pos[i] = ybar[1 + i];
    bar.normal[i] = ybar[4 + i];
  }
  const SnShape a = sn_shape(p->o.m, &p->o.w, p->geom[0]), b = sn_shape(p->o.m, &p->o.w, p->geom[1]);
  sn_collide_convex_vjp(p->o.m, &a, &b, (sn_real)p->reach, p->base + p->which, &bar, wrench);
  for (int i = 0; i < SN_PAIR_NX; ++i) xbar[i] += wrench[i];
}

// Differences with two steps agree: the function is smooth here on the scale of the step.
bool sn_pair_is_smooth(SnPair *p) {
  if (sizeof(sn_real) == sizeof(float)) return true;  // nothing is differentiated
  double largest = 1e-3, worst = 0;
  for (int i = 0; i < SN_PAIR_NX; ++i) {
    double d[2][SN_PAIR_NY], up[SN_PAIR_NY], down[SN_PAIR_NY], dx[SN_PAIR_NX] = {0};
    for (int k = 0; k < 2; ++k) {
      const double h = k ? 4e-6 : 1e-6;
      dx[i] = h;
      if (!sn_pair_forward(p, dx, up)) return false;
      dx[i] = -h;
      if (!sn_pair_forward(p, dx, down)) return false;
      for (int j = 0; j < SN_PAIR_NY; ++j) d[k][j] = (up[j] - down[j]) / (2 * h);
    }
    for (int j = 0; j < SN_PAIR_NY; ++j) {
      largest = sn_larger(largest, fabs(d[0][j]));
      worst = sn_larger(worst, fabs(d[0][j] - d[1][j]));
    }
  }
  return !(worst >= p->smoothness * largest);  // NaN is the comparison's to refuse
}

static double gap(SnPair *p) {
  SnCcd c;
  const SnShape a = sn_shape(p->o.m, &p->o.w, 0), b = sn_shape(p->o.m, &p->o.w, 1);
  sn_convex_init(&c.a, p->o.m, &a, 0);
  sn_convex_init(&c.b, p->o.m, &b, 0);
  c.tolerance = SN_R(1e-12);
  c.iterations = 500;
  c.cutoff = 10;
  return (double)sn_ccd(&c, 1);
}

void sn_pair_sizes(SnPair *p) {
  for (int i = 0; i < 6; ++i)
    if (p->o.m->geom_type[i / 3] != SN_GEOM_MESH)
      p->o.m->geom_size[i] = (sn_real)(0.1 * (1.1 + 0.9 * sn_oracle_uniform(&p->o)));
}

// Moves the second geom along an axis to a random distance of those that are wanted.
void sn_pair_approach(SnPair *p, const double *dir) {
  const double wanted = p->nearest + (p->farthest - p->nearest) * 0.5 * (1 + sn_oracle_uniform(&p->o));
  sn_pair_place(p, NULL);
  for (int k = 0; k < 30; ++k) {
    const double over = gap(p) - wanted;
    if (fabs(over) < 1e-12) break;
    mju_addToScl3(p->pos + 3, dir, -over);
    sn_pair_place(p, NULL);
  }
}

// What is differentiated in the place of the contact is the contact: finds its parts.
bool sn_pair_is_believed(SnPair *p) {
  if ((!p->smooth && !p->exact) || sizeof(sn_real) == sizeof(float)) return true;
  const SnContact *con = p->base + p->which;
  double y[SN_PAIR_NY], normal = 0, pos = 0;
  take_part(p, 0, con);
  take_part(p, 1, con);
  if (!sn_pair_forward(p, NULL, y)) return false;
  for (int i = 0; i < 3; ++i) {
    assert_true(isfinite((double)con->frame[i]) && isfinite((double)con->pos[i]));
    normal = sn_larger(normal, fabs(y[4 + i] - (double)con->frame[i]));
    pos = sn_larger(pos, fabs(y[1 + i] - (double)con->pos[i]));
  }
  if (fabs(y[0] - (double)con->dist) < 1e-6 && normal < 1e-2 && pos < 1e-3) return true;
  printf("%s: parts %d %d: dist %g normal %g pos %g\n", p->name, p->part[0].kind, p->part[1].kind,
         y[0] - (double)con->dist, normal, pos);
  return false;
}

static void ball(char *text, int n, const double size[3]) {
  for (int i = 0; i < n; ++i) {
    const double z = 1 - (2.0 * i + 1) / n, r = sqrt(1 - z * z), t = 2.399963 * i;
    text += sprintf(text, "%.7g %.7g %.7g ", size[0] * r * cos(t), size[1] * r * sin(t), size[2] * z);
  }
}

// Writes the corners of a cushion: its upper face is one polygon for MuJoCo, and turns by 0.0003 rad from strip to
// strip.
static void cushion(char *text) {
  for (int i = 0; i < 12; ++i) {
    const double x = -.1 + .04 * (i / 2), y = i % 2 ? .08 : -.08;
    text += sprintf(text, "%.9g %.9g %.9g ", x, y, .05 - 4e-3 * x * x * (1 + .2 * (i % 2)));
  }
  sprintf(text, "-.07 -.06 -.05 -.07 .06 -.05 .07 -.06 -.05 .07 .06 -.05");
}

void sn_pair_load(SnOracle *o, const char *geom1, const char *geom2) {
  static char xml[40000], hull[4000], soft[1000];
  cushion(soft);
  ball(hull, 24, (const double[3]){.1, .14, .2});
  snprintf(
      xml, sizeof xml,
      "<mujoco><asset><mesh name='hull' vertex='%s'/><mesh name='cushion' vertex='%s'/>"
      "<mesh name='cube' vertex='.1 .1 .1 -.1 .1 .1 .1 -.1 .1 -.1 -.1 .1 .1 .1 -.1 -.1 .1 -.1 .1 -.1 -.1 -.1 -.1 -.1'/>"
      "</asset><worldbody>"
      "<body><freejoint/><geom type='%s' size='.1 .1 .1'/></body>"
      "<body><freejoint/><geom type='%s' size='.1 .1 .1'/></body></worldbody></mujoco>",
      hull, soft, geom1, geom2);
  sn_oracle_load_string(o, xml);
}
