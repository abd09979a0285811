// Distance of convex shapes: closed forms, the exact signed distance of ellipsoids
// (physics/collision/collide_private.h), optimality of the witness points, and the same distance whichever shape
// comes first and wherever the pair is in space.
#include <stdio.h>

#include "physics/base/vec.h"
#include "tests/support/convex_scene.h"
#include "physics/collision/collide_private.h"

static const bool single = sizeof(sn_real) == sizeof(float);

// A scene of one geom of each type that moves freely.
static void load(SnOracle *o) {
  sn_convex_scene(o,
                  "<body><freejoint/><geom type='sphere' size='.1'/></body>"
                  "<body><freejoint/><geom type='capsule' size='.1 .2'/></body>"
                  "<body><freejoint/><geom type='ellipsoid' size='.1 .15 .25'/></body>"
                  "<body><freejoint/><geom type='ellipsoid' size='.2 .05 .1'/></body>");
}

static void scatter(SnOracle *o) { sn_convex_scatter(o, 0.4); }

static void pair(const SnOracle *o, SnCcd *c, int g1, int g2) {
  sn_convex_pair(o, c, g1, g2, SN_CCD_FAR);
  sn_copy3(c->x1, c->a.pos);
  sn_copy3(c->x2, c->b.pos);
}

// The distance is that of the witness points, and no point of either shape is nearer: the shapes lie on either side of
// the planes through the witness points.
static void witnesses(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  int apart = 0;
  double worst = 0;
  for (int k = 0; k < 3000; ++k) {
    SnCcd c;
    sn_real n[3], s[3], back[3];
    if (k % 10 == 0) scatter(&o);
    const int g1 = sn_oracle_pick(&o, o.m->ngeom), g2 = (g1 + 1 + sn_oracle_pick(&o, o.m->ngeom - 1)) % o.m->ngeom;
    pair(&o, &c, g1, g2);
    sn_gjk(&c);
    if (!(c.dist[0] > SN_R(1e-3))) continue;
    apart++;
    assert_true(c.separated);
    sn_sub3(n, c.x2, c.x1);
    assert_true(fabs((double)(sn_norm3(n) - c.dist[0])) <= (single ? 1e-6 : 1e-9));
    sn_normalize3(n);
    sn_scale3(back, n, -1);
    sn_support(&c.a, n, s);
    sn_subfrom3(s, c.x1);
    worst = sn_larger(worst, fabs((double)sn_dot3(s, n)));
    sn_support(&c.b, back, s);
    sn_subfrom3(s, c.x2);
    worst = sn_larger(worst, fabs((double)sn_dot3(s, n)));
  }
  printf("%d pairs apart: points beyond the planes through the witness points by at most %.1e m\n", apart, worst);
  assert_true(apart > 1000);
  assert_true(worst <= (single ? 1e-4 : 1e-8));
  sn_oracle_free(&o);
}

static bool nearest(const SnCcd *c, SnNearest *r) {
  const SnShape a = {.pos = c->a.pos, .mat = c->a.mat, .size = c->a.size};
  const SnShape b = {.pos = c->b.pos, .mat = c->b.mat, .size = c->b.size};
  return sn_ellipsoid_nearest(c->a.type, &a, &b, r);
}

// Ellipsoids with spheres, capsules and ellipsoids.
static void smooth_pairs(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  double dist = 0, normal = 0;
  int compared = 0;
  for (int k = 0; k < 3000; ++k) {
    SnCcd c;
    SnNearest exact;
    scatter(&o);
    const int g1 = sn_oracle_pick(&o, 3), g2 = g1 == 2 ? 3 : 2 + sn_oracle_pick(&o, 2);
    pair(&o, &c, g1, g2);
    if (!nearest(&c, &exact) || (double)exact.dist < 1e-3) continue;
    const double d = (double)sn_ccd(&c, 1);
    dist = sn_larger(dist, fabs(d - (double)exact.dist));
    sn_real n[3];
    sn_sub3(n, c.x2, c.x1);
    sn_normalize3(n);
    for (int i = 0; i < 3; ++i) normal = sn_larger(normal, fabs((double)n[i] - (double)exact.normal[i]));
    compared++;
  }
  printf("%d ellipsoid pairs apart: distance differs by at most %.1e m, normal by %.1e\n", compared, dist, normal);
  assert_true(compared > 1000);
  assert_true(dist <= (single ? 1e-4 : 1e-9));
  assert_true(normal <= (single ? 1e-1 : 1e-4));
  sn_oracle_free(&o);
}

// The same distance in either order and after a common motion.
static void invariance(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  double order = 0, motion = 0;
  for (int k = 0; k < 1000; ++k) {
    SnCcd c;
    scatter(&o);
    const int g1 = sn_oracle_pick(&o, o.m->ngeom), g2 = (g1 + 1 + sn_oracle_pick(&o, o.m->ngeom - 1)) % o.m->ngeom;
    pair(&o, &c, g1, g2);
    const double d = (double)sn_ccd(&c, 1);
    pair(&o, &c, g2, g1);
    order = sn_larger(order, fabs((double)sn_ccd(&c, 1) - d));

    // a rotation and a shift of everything
    double q[4], r[4], x[3], shift[3];
    for (int i = 0; i < 4; ++i) q[i] = sn_oracle_uniform(&o);
    for (int i = 0; i < 3; ++i) shift[i] = sn_oracle_uniform(&o);
    mju_normalize4(q);
    for (int j = 0; j < o.m->njnt; ++j) {
      double *qpos = o.d->qpos + 7 * j;
      mju_rotVecQuat(x, qpos, q);
      mju_add3(qpos, x, shift);
      mju_mulQuat(r, q, qpos + 3);
      mju_copy4(qpos + 3, r);
    }
    mj_kinematics(o.mj, o.d);
    sn_oracle_fill_stage(&o, SN_STAGE_KINEMATICS);
    pair(&o, &c, g1, g2);
    motion = sn_larger(motion, fabs((double)sn_ccd(&c, 1) - d));
  }
  printf("order changes a distance or depth by at most %.1e m, a motion of both by %.1e m\n", order, motion);
  assert_true(order <= (single ? 1e-3 : 1e-9));
  assert_true(motion <= (single ? 1e-3 : 1e-9));
  sn_oracle_free(&o);
}

// With a cutoff, only what is farther may be called far.
static void cutoff(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  int far = 0;
  for (int k = 0; k < 1000; ++k) {
    SnCcd c;
    scatter(&o);
    const int g1 = sn_oracle_pick(&o, o.m->ngeom), g2 = (g1 + 1 + sn_oracle_pick(&o, o.m->ngeom - 1)) % o.m->ngeom;
    pair(&o, &c, g1, g2);
    const sn_real d = sn_ccd(&c, 1);
    pair(&o, &c, g1, g2);
    c.cutoff = SN_R(0.1);
    const sn_real limited = sn_ccd(&c, 1);
    if (limited == SN_CCD_FAR) {
      assert_true(d > SN_R(0.1) - SN_R(1e-6));
      far++;
    } else {
      assert_true(fabs((double)(limited - d)) <= (single ? 1e-3 : 1e-9));
    }
  }
  assert_true(far > 100);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(witnesses), cmocka_unit_test(smooth_pairs),
                                     cmocka_unit_test(invariance), cmocka_unit_test(cutoff)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
