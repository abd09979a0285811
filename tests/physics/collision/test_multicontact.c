// Patches of contacts whose corners are known: a cube of 20 cm, and on it another cube, a cylinder on its cap or on its
// side, a capsule, each pushed in by 1 mm or held 1 mm off inside a margin.
#include <stdio.h>

#include "physics/collision/collide_private.h"
#include "tests/support/oracle.h"

static const double eps = sizeof(sn_real) == sizeof(float) ? 1e-5 : 1e-9;  // a mesh has its corners in float

// On a mantle the line of contact is found to the square root of that.
static const double loose = sizeof(sn_real) == sizeof(float) ? 1e-3 : 1e-6;

typedef struct Scene {
  SnOracle o;
  SnContact con[SN_MAXCON_PAIR];
  int n;
} Scene;

// The cube's upper face is at z = 0; the other geom (type, size, asset) at (x, 0, z), turned by euler angles [deg].
// Geoms come in the order of types, so the normal may point either way.
static void collide(Scene *s, const char *geom, double x, double z, const char *euler, double margin) {
  char xml[3000];
  snprintf(xml, sizeof xml,
           "<mujoco><asset><mesh name='cube' vertex='.1 .1 .1 -.1 .1 .1 .1 -.1 .1 -.1 -.1 .1 .1 .1 -.1 -.1 .1 -.1 .1 "
           "-.1 -.1 "
           "-.1 -.1 -.1'/></asset><worldbody><body><freejoint/><geom type='%s' pos='%.17g 0 %.17g' euler='%s'/></body>"
           "<body><freejoint/><geom type='mesh' mesh='cube' pos='0 0 -.1'/></body></worldbody></mujoco>",
           geom, x, z, euler);
  sn_oracle_load_string(&s->o, xml);
  mj_kinematics(s->o.mj, s->o.d);
  sn_oracle_fill_stage(&s->o, SN_STAGE_KINEMATICS);
  const SnShape a = sn_shape(s->o.m, &s->o.w, 0), b = sn_shape(s->o.m, &s->o.w, 1);
  s->n = sn_collide_convex(s->o.m, &a, &b, (sn_real)margin, s->con, sn_collider_max(s->o.m, 0, 1));
  sn_oracle_free(&s->o);
}

// True when one of the contacts is at (x, y), halfway between the surfaces, with this distance and a normal down.
static bool has(const Scene *s, double x, double y, double dist, double tolerance) {
  for (int i = 0; i < s->n; ++i) {
    const SnContact *c = s->con + i;
    if (!(fabs((double)c->pos[0] - x) <= tolerance && fabs((double)c->pos[1] - y) <= tolerance)) continue;
    return fabs((double)c->pos[2] - dist / 2) < tolerance && fabs((double)c->dist - dist) < tolerance &&
           fabs((double)c->frame[2] + 1) < eps;
  }
  return false;
}

static void faces(void **state) {
  (void)state;
  Scene s;
  for (int k = 0; k < 2; ++k) {
    const double dist = k ? 0.001 : -0.001, margin = k ? 0.01 : 0;
    collide(&s, "mesh' mesh='cube", 0, 0.1 + dist, "0 0 0", margin);
    assert_int_equal(s.n, 4);
    for (int i = 0; i < 4; ++i) assert_true(has(&s, i & 1 ? .1 : -.1, i & 2 ? .1 : -.1, dist, 10 * eps));
    // half over the edge
    collide(&s, "mesh' mesh='cube", 0.1, 0.1 + dist, "0 0 0", margin);
    assert_int_equal(s.n, 4);
    for (int i = 0; i < 4; ++i) assert_true(has(&s, i & 1 ? .1 : 0, i & 2 ? .1 : -.1, dist, 10 * eps));
    // a smaller box inside the face, turned
    collide(&s, "box' size='.05 .05 .05", 0, 0.05 + dist, "0 0 45", margin);
    assert_int_equal(s.n, 4);
    const double r = 0.05 * sqrt(2);
    assert_true(has(&s, r, 0, dist, 10 * eps) && has(&s, -r, 0, dist, 10 * eps));
    assert_true(has(&s, 0, r, dist, 10 * eps) && has(&s, 0, -r, dist, 10 * eps));
  }
}

// Which of n corners on a circle about the origin, the first at angle `first` [rad], contact i is at; -1: none, or not
// with this distance and a normal down.
static int corner_of(const Scene *s, int i, double radius, double first, int n, double dist, double tolerance) {
  const SnContact *c = s->con + i;
  for (int k = 0; k < n; ++k) {
    const double angle = first + 2 * mjPI * k / n;
    if (!(hypot((double)c->pos[0] - radius * cos(angle), (double)c->pos[1] - radius * sin(angle)) < tolerance))
      continue;
    const bool good = fabs((double)c->pos[2] - dist / 2) < tolerance && fabs((double)c->dist - dist) < tolerance &&
                      fabs((double)c->frame[2] + 1) < eps;
    return good ? k : -1;
  }
  return -1;
}

// All contacts are at such corners, no two at the same; which ones, as bits.
static int assert_corners(const Scene *s, double radius, double first, int n, double dist, double tolerance) {
  int taken = 0;
  for (int i = 0; i < s->n; ++i) {
    const int k = corner_of(s, i, radius, first, n, dist, tolerance);
    assert_true(k >= 0 && !(taken >> k & 1));
    taken |= 1 << k;
  }
  return taken;
}

// Of the octagon where two faces overlap at 45 degrees, four corners are kept: those of a square, of area 2, or
// where rounding ends the search early such as leave two turns of 90 degrees.
static void octagon(void **state) {
  (void)state;
  Scene s;
  collide(&s, "mesh' mesh='cube", 0, 0.099, "0 0 45", 0);
  assert_int_equal(s.n, 4);
  const int taken = assert_corners(&s, 0.1 / cos(mjPI / 8), mjPI / 8, 8, -0.001, loose);
  double area = 0;  // of the quadrilateral, in squares of the radius, by the turns from corner to corner
  int last = -1, first = -1;
  for (int k = 0; k < 8; ++k) {
    if (!(taken >> k & 1)) continue;
    if (last < 0) first = k;
    if (last >= 0) area += 0.5 * sin(mjPI / 4 * (k - last));
    last = k;
  }
  area += 0.5 * sin(mjPI / 4 * (first + 8 - last));
  assert_true(area > 1.6);
}

static void cylinders(void **state) {
  (void)state;
  Scene s;
  for (int k = 0; k < 2; ++k) {
    const double dist = k ? 0.001 : -0.001, margin = k ? 0.01 : 0;
    // on its cap: four corners of the polygon of 16
    collide(&s, "cylinder' size='.05 .08", 0, 0.08 + dist, "0 0 0", margin);
    assert_int_equal(s.n, 4);
    assert_corners(&s, 0.05, 0, 16, dist, 10 * eps);
    // on its side, its upper end beyond the edge of the cube
    collide(&s, "cylinder' size='.05 .08", 0.06, 0.05 + dist, "0 90 0", margin);
    assert_int_equal(s.n, 2);
    assert_true(has(&s, -.02, 0, dist, loose) && has(&s, .1, 0, dist, loose));
  }
}

static void capsules(void **state) {
  (void)state;
  Scene s;
  for (int k = 0; k < 2; ++k) {
    const double dist = k ? 0.001 : -0.001, margin = k ? 0.01 : 0;
    collide(&s, "capsule' size='.03 .06", 0, 0.03 + dist, "0 90 0", margin);
    assert_int_equal(s.n, 2);
    assert_true(has(&s, -.06, 0, dist, loose) && has(&s, .06, 0, dist, loose));
    // longer than the cube
    collide(&s, "capsule' size='.03 .3", 0, 0.03 + dist, "0 90 0", margin);
    assert_int_equal(s.n, 2);
    assert_true(has(&s, -.1, 0, dist, loose) && has(&s, .1, 0, dist, loose));
    // upright: a point
    collide(&s, "capsule' size='.03 .06", 0, 0.09 + dist, "0 0 0", margin);
    assert_int_equal(s.n, 1);
    assert_true(has(&s, 0, 0, dist, loose));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(faces), cmocka_unit_test(octagon), cmocka_unit_test(cylinders),
                                     cmocka_unit_test(capsules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
