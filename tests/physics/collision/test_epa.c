// Penetration: a second opinion from libccd and from the exact distance of ellipsoids, and the definition itself: the
// depth is the least shift that separates the shapes, so no direction needs less.
#include <ccd/ccd.h>
#include <stdio.h>

#include "physics/base/vec.h"
#include "tests/support/convex_scene.h"
#include "physics/collision/collide_private.h"

static const bool single = sizeof(sn_real) == sizeof(float);

static void load(SnOracle *o) {
  sn_convex_scene(o,
                  "<body><freejoint/><geom type='capsule' size='.1 .2'/></body>"
                  "<body><freejoint/><geom type='ellipsoid' size='.1 .15 .2'/></body>"
                  "<body><freejoint/><geom type='ellipsoid' size='.2 .15 .12'/></body>");
}

static void scatter(SnOracle *o) { sn_convex_scatter(o, 0.12); }

static void pair(const SnOracle *o, SnCcd *c, int g1, int g2) { sn_convex_pair(o, c, g1, g2, 0); }

// Shift along the unit vector n that takes b out of a.
static double shift(SnCcd *c, const sn_real *n) {
  SnCcdVertex v;
  sn_ccd_support(c, n, &v);
  return (double)sn_dot3(n, v.v);
}

static void definition(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  int deep = 0;
  double short_by = 0, differs = 0;
  for (int k = 0; k < 1000; ++k) {
    SnCcd c;
    if (k % 5 == 0) scatter(&o);
    const int g1 = sn_oracle_pick(&o, o.m->ngeom), g2 = (g1 + 1 + sn_oracle_pick(&o, o.m->ngeom - 1)) % o.m->ngeom;
    pair(&o, &c, g1, g2);
    const double depth = -(double)sn_ccd(&c, 1);
    if (!(depth > 1e-3) || c.nx == 0) continue;
    deep++;
    // the normal found needs this much, any other more
    sn_real n[3];
    sn_sub3(n, c.x1, c.x2);
    sn_normalize3(n);
    differs = sn_larger(differs, fabs(shift(&c, n) - depth));
    for (int i = 0; i < 300; ++i) {
      double d[3];
      for (int j = 0; j < 3; ++j) d[j] = sn_oracle_uniform(&o) + (i % 2 ? 3 * (double)n[j] : 0);
      mju_normalize3(d);
      const sn_real dir[3] = {(sn_real)d[0], (sn_real)d[1], (sn_real)d[2]};
      short_by = sn_larger(short_by, depth - shift(&c, dir));
    }
  }
  printf(
      "%d overlapping pairs: shift along the normal differs from the depth by %.1e m, another direction needs %.1e m "
      "less\n",
      deep, differs, short_by);
  assert_true(deep > 500);
  assert_true(differs <= (single ? 1e-3 : 1e-6));
  assert_true(short_by <= (single ? 1e-4 : 1e-11));
  sn_oracle_free(&o);
}

static bool nearest(const SnCcd *c, SnNearest *r) {
  const SnShape a = {.pos = c->a.pos, .mat = c->a.mat, .size = c->a.size};
  const SnShape b = {.pos = c->b.pos, .mat = c->b.mat, .size = c->b.size};
  return sn_ellipsoid_nearest(c->a.type, &a, &b, r);
}

static void ellipsoids(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  int compared = 0;
  double dist = 0, normal = 0;
  for (int k = 0; k < 3000; ++k) {
    SnCcd c;
    SnNearest exact;
    scatter(&o);
    pair(&o, &c, sn_oracle_pick(&o, 2), 2);
    if (!nearest(&c, &exact) || !((double)exact.dist < -1e-3)) continue;
    const double d = (double)sn_ccd(&c, 1);
    dist = sn_larger(dist, fabs(d - (double)exact.dist));
    sn_real n[3];
    sn_sub3(n, c.x1, c.x2);
    sn_normalize3(n);
    for (int i = 0; i < 3; ++i) normal = sn_larger(normal, fabs((double)n[i] - (double)exact.normal[i]));
    compared++;
  }
  printf("%d overlapping ellipsoids: depth differs by at most %.1e m, normal by %.1e\n", compared, dist, normal);
  assert_true(compared > 300);
  assert_true(dist <= (single ? 1e-4 : 1e-9));
  assert_true(normal <= (single ? 1e-1 : 1e-4));
  sn_oracle_free(&o);
}

static void ccd_support(const void *obj, const ccd_vec3_t *dir, ccd_vec3_t *v) {
  SnConvex s = *(const SnConvex *)obj;
  double d[3] = {dir->v[0], dir->v[1], dir->v[2]};
  mju_normalize3(d);
  const sn_real n[3] = {(sn_real)d[0], (sn_real)d[1], (sn_real)d[2]};
  sn_real x[3];
  sn_support(&s, n, x);
  ccdVec3Set(v, (double)x[0], (double)x[1], (double)x[2]);
}

// libccd's GJK and EPA: the shift that its direction really needs is never less than our depth, and mostly the same.
// (The depth that it reports may be less: its polytope lies inside the shape, and is not expanded to the end.)
static void libccd(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  int compared = 0, same = 0, failed = 0;
  double less = 0;
  for (int k = 0; k < 2000; ++k) {
    SnCcd c;
    ccd_t ccd;
    ccd_real_t depth;
    ccd_vec3_t dir, pos;
    if (k % 5 == 0) scatter(&o);
    const int g1 = 3 + sn_oracle_pick(&o, 3), g2 = 3 + (g1 - 3 + 1 + sn_oracle_pick(&o, 2)) % 3;  // cylinder, box, mesh
    pair(&o, &c, g1, g2);
    const double ours = -(double)sn_ccd(&c, 1);
    if (!(ours > 1e-3)) continue;
    CCD_INIT(&ccd);
    ccd.support1 = ccd.support2 = ccd_support;
    ccd.max_iterations = 500;
    ccd.epa_tolerance = 1e-6;
    if (ccdGJKPenetration(&c.a, &c.b, &ccd, &depth, &dir, &pos) != 0) {
      failed++;
      continue;
    }
    compared++;
    const sn_real n[3] = {(sn_real)dir.v[0], (sn_real)dir.v[1], (sn_real)dir.v[2]};
    const sn_real back[3] = {-n[0], -n[1], -n[2]};
    const double needs = fmin(shift(&c, n), shift(&c, back));
    less = sn_larger(less, ours - needs);
    same += needs - ours < 1e-4;
  }
  printf(
      "libccd: %d pairs, its direction as good as ours within 0.1 mm in %d, better by at most %.1e m; gave up on %d\n",
      compared, same, less, failed);
  assert_true(compared > 800);
  assert_true(same > compared * 7 / 10);
  assert_true(less <= (single ? 1e-4 : 1e-9));
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(definition), cmocka_unit_test(ellipsoids),
                                     cmocka_unit_test(libccd)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
