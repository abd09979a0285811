// Support functions: no point of a shape is farther along the direction, the point belongs to the shape, and hill
// climbing finds what a search of all vertices finds, warm or cold.
#include <stdio.h>

#include "physics/collision/convex_private.h"
#include "tests/support/oracle.h"

static const double tolerance = sizeof(sn_real) == sizeof(float) ? 1e-5 : 1e-12;

static void ball(char *text, int n) {
  for (int i = 0; i < n; ++i) {
    const double z = 1 - (2.0 * i + 1) / n, r = sqrt(1 - z * z), t = 2.399963 * i;
    text += sprintf(text, "%.7g %.7g %.7g ", .1 * r * cos(t), .2 * r * sin(t), .15 * z);
  }
}

static void load(SnOracle *o) {
  static char xml[40000], hull[20000];
  ball(hull, 300);
  snprintf(
      xml, sizeof xml,
      "<mujoco><asset><mesh name='hull' vertex='%s'/><mesh name='tetra' vertex='.15 0 0 0 .2 0 0 0 .2 -.1 -.1 -.1'/>"
      "</asset><worldbody><body><freejoint/><geom type='sphere' size='.1'/></body>"
      "<body><freejoint/><geom type='capsule' size='.1 .2'/></body>"
      "<body><freejoint/><geom type='ellipsoid' size='.1 .2 .3'/></body>"
      "<body><freejoint/><geom type='cylinder' size='.1 .2'/></body>"
      "<body><freejoint/><geom type='box' size='.1 .2 .3'/></body>"
      "<body><freejoint/><geom type='mesh' mesh='hull'/></body>"
      "<body><freejoint/><geom type='mesh' mesh='tetra'/></body></worldbody></mujoco>",
      hull);
  sn_oracle_load_string(o, xml);
  sn_oracle_randomize(o, 0);
  mj_forward(o->mj, o->d);
  sn_oracle_fill(o);
}

static void random_direction(SnOracle *o, sn_real *dir) {
  double d[3];
  for (int i = 0; i < 3; ++i) d[i] = sn_oracle_uniform(o);
  mju_normalize3(d);
  for (int i = 0; i < 3; ++i) dir[i] = (sn_real)d[i];
}

// A point of the shape's surface, or inside, in its own frame.
static void random_point(SnOracle *o, const SnConvex *s, double *p) {
  double d[3], z = sn_oracle_uniform(o);
  const double size[3] = {(double)s->size[0], (double)s->size[1], (double)s->size[2]};
  for (int i = 0; i < 3; ++i) d[i] = sn_oracle_uniform(o);
  if (s->type == SN_GEOM_BOX) {
    for (int i = 0; i < 3; ++i) p[i] = size[i] * d[i];
  } else if (s->type == SN_GEOM_CYLINDER) {
    const double r = hypot(d[0], d[1]);
    for (int i = 0; i < 2; ++i) p[i] = size[0] * d[i] / fmax(r, 1e-3);
    p[2] = size[1] * z;
  } else if (s->type == SN_GEOM_MESH) {
    const int v = (int)((z + 1) * 0.5 * s->nvert) % s->nvert;
    for (int i = 0; i < 3; ++i) p[i] = (double)s->vert[3 * v + i];
  } else {
    mju_normalize3(d);
    for (int i = 0; i < 3; ++i) p[i] = (s->type == SN_GEOM_ELLIPSOID ? size[i] : size[0]) * d[i];
    if (s->type == SN_GEOM_CAPSULE) p[2] += size[1] * z;
  }
}

static double along(const SnConvex *s, const double *local, const sn_real *dir) {
  double dot = 0;
  for (int i = 0; i < 3; ++i) {
    double x = (double)s->pos[i];
    for (int j = 0; j < 3; ++j) x += (double)s->mat[3 * i + j] * local[j];
    dot += x * (double)dir[i];
  }
  return dot;
}

// How far a point in the shape's own frame lies outside it [m]; 0 or less inside. Of a mesh: from its nearest vertex.
static double outside(const SnConvex *s, const double *p) {
  const double size[3] = {(double)s->size[0], (double)s->size[1], (double)s->size[2]};
  switch (s->type) {
    case SN_GEOM_SPHERE:
      return mju_norm3(p) - size[0];
    case SN_GEOM_CAPSULE: {
      const double q[3] = {p[0], p[1], p[2] - mju_clip(p[2], -size[1], size[1])};
      return mju_norm3(q) - size[0];
    }
    case SN_GEOM_ELLIPSOID: {
      const double q[3] = {p[0] / size[0], p[1] / size[1], p[2] / size[2]};
      return (mju_norm3(q) - 1) * size[0];  // the least of the sizes here
    }
    case SN_GEOM_CYLINDER:
      return sn_larger(hypot(p[0], p[1]) - size[0], fabs(p[2]) - size[1]);
    case SN_GEOM_BOX:
      return sn_larger(fabs(p[0]) - size[0], sn_larger(fabs(p[1]) - size[1], fabs(p[2]) - size[2]));
    default: {
      double nearest = 1e9;
      for (int i = 0; i < s->nvert; ++i) {
        const double v[3] = {(double)s->vert[3 * i], (double)s->vert[3 * i + 1], (double)s->vert[3 * i + 2]};
        nearest = mju_min(nearest, mju_dist3(v, p));
      }
      return nearest;
    }
  }
}

// A point of the world in the shape's own frame.
static void to_local(const SnConvex *s, const sn_real *x, double *p) {
  double mat[9], d[3];
  for (int i = 0; i < 9; ++i) mat[i] = (double)s->mat[i];
  for (int i = 0; i < 3; ++i) d[i] = (double)(x[i] - s->pos[i]);
  mju_mulMatTVec3(p, mat, d);
}

static void farthest(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  for (int g = 0; g < o.m->ngeom; ++g) {
    SnConvex s;
    const SnShape shape = sn_shape(o.m, &o.w, g);
    sn_convex_init(&s, o.m, &shape, 0);
    for (int k = 0; k < 200; ++k) {
      sn_real dir[3], x[3];
      random_direction(&o, dir);
      sn_support(&s, dir, x);
      const double most = (double)(x[0] * dir[0] + x[1] * dir[1] + x[2] * dir[2]);
      double best = -1e9, local[3];
      for (int i = 0; i < 500; ++i) {
        double p[3];
        random_point(&o, &s, p);
        best = sn_larger(best, along(&s, p, dir));
      }
      assert_true(best <= most + tolerance);
      // and the support is a point of the shape, not beyond it
      to_local(&s, x, local);
      if (!(outside(&s, local) <= tolerance)) fail_msg("geom %d: %g m outside", g, outside(&s, local));
    }
  }
  sn_oracle_free(&o);
}

static void climbing(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  SnConvex hull, all;
  const SnShape shape = sn_shape(o.m, &o.w, 5);
  sn_convex_init(&hull, o.m, &shape, 0);
  sn_convex_init(&all, o.m, &shape, 0);
  assert_int_equal(hull.support, SN_SUPPORT_HULL);
  all.support = SN_SUPPORT_MESH;
  for (int k = 0; k < 5000; ++k) {
    sn_real dir[3], x[3], y[3];
    random_direction(&o, dir);
    if (k % 3 == 0) hull.hull = -1;
    all.vertex = -1;
    sn_support(&hull, dir, x);
    sn_support(&all, dir, y);
    assert_int_equal(hull.vertex, all.vertex);
    for (int i = 0; i < 3; ++i) assert_true(x[i] == y[i]);
  }
  sn_oracle_free(&o);
}

// The difference: supports of both, margins of half a margin each along the direction, corners of both.
static void difference(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  SnCcd c;
  const SnShape a = sn_shape(o.m, &o.w, 4), b = sn_shape(o.m, &o.w, 5);
  sn_convex_init(&c.a, o.m, &a, SN_R(0.02));
  sn_convex_init(&c.b, o.m, &b, SN_R(0.04));
  for (int k = 0; k < 200; ++k) {
    SnCcdVertex v;
    sn_real dir[3], back[3], x[3], y[3];
    random_direction(&o, dir);
    for (int i = 0; i < 3; ++i) back[i] = -dir[i];
    sn_ccd_support(&c, dir, &v);
    sn_support(&c.a, dir, x);
    sn_support(&c.b, back, y);
    for (int i = 0; i < 3; ++i) {
      assert_true(fabs((double)(v.v1[i] - x[i] - SN_R(0.01) * dir[i])) <= tolerance);
      assert_true(fabs((double)(v.v2[i] - y[i] + SN_R(0.02) * dir[i])) <= tolerance);
      assert_true(v.v[i] == v.v1[i] - v.v2[i]);
    }
    assert_int_equal(v.i1, c.a.vertex);
    assert_int_equal(v.i2, c.b.vertex);
  }
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(farthest), cmocka_unit_test(climbing),
                                     cmocka_unit_test(difference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
