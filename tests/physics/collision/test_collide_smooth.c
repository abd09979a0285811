// Collision without choices: its adjoint against differences; MuJoCo's contacts as the smoothing goes to nothing; no
// jumps where MuJoCo's collider has them; finite numbers at poses on a lattice.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "physics/collision/collide_private.h"
#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/convex_scene.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tolerance.h"

enum { SEED = 9, PAIRS = 3, NX = 12, OUT = 7, MOST = SN_MAXCON_PAIR };

typedef struct Pair {
  const char *name;
  SnCollider collider;
  sn_real size[2][3];
  double far;  // of centres
} Pair;

static const Pair pairs[PAIRS] = {
    {"plane box", SN_COLLIDER_PLANE_BOX, {{1, 1, 1}, {SN_R(0.1), SN_R(0.15), SN_R(0.2)}}, 0.2},
    {"plane cylinder", SN_COLLIDER_PLANE_CYLINDER, {{1, 1, 1}, {SN_R(0.1), SN_R(0.2), 0}}, 0.2},
    {"box box", SN_COLLIDER_BOX_BOX, {{SN_R(0.1), SN_R(0.15), SN_R(0.2)}, {SN_R(0.12), SN_R(0.1), SN_R(0.08)}}, 0.3}};

typedef struct Scene {
  const Pair *pair;
  SnOracle *o;  // random numbers
  SnSmooth smooth;
  SnPlacedGeom base[2];
  int n, feature[MOST];
} Scene;

static SnShape shape_of(const Scene *s, const SnPlacedGeom *p, int side) {
  const SnShape shape = {p->pos, p->mat, s->pair->size[side], side};
  return shape;
}

static int collide(const Scene *s, const SnPlacedGeom pose[2], SnContact *con) {
  const SnShape a = shape_of(s, pose, 0), b = shape_of(s, pose + 1, 1);
  const int n = sn_collide_smooth(&a, &b, s->pair->collider, &s->smooth, con);
  assert_true(n <= MOST);
  return n;
}

static int collide_exactly(const Scene *s, const SnPlacedGeom pose[2], SnContact *con) {
  const SnShape a = shape_of(s, pose, 0), b = shape_of(s, pose + 1, 1);
  return sn_collide_shapes(NULL, &a, &b, s->pair->collider, s->smooth.reach, MOST, con);
}

static bool forward(void *context, const double *dx, double *y) {
  const Scene *s = context;
  SnPlacedGeom pose[2];
  SnContact con[SN_COLLIDE_SLOTS];
  for (int i = 0; i < 2; ++i) sn_moved_geom(s->base + i, dx + 6 * i, pose + i);
  if (collide(s, pose, con) != s->n) return false;
  memset(y, 0, sizeof *y * MOST * OUT);
  for (int i = 0; i < s->n; ++i) {
    if (con[i].feature != s->feature[i]) return false;
    if (con[i].feature >= 0) continue;  // MuJoCo's own
    y[OUT * i] = (double)con[i].dist;
    for (int k = 0; k < 3; ++k) {
      y[OUT * i + 1 + k] = (double)con[i].pos[k];
      y[OUT * i + 4 + k] = (double)con[i].frame[k];
    }
  }
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  const Scene *s = context;
  SnContact con[SN_COLLIDE_SLOTS];
  sn_real wrench[NX] = {0};
  const SnShape a = shape_of(s, s->base, 0), b = shape_of(s, s->base + 1, 1);
  const int n = collide(s, s->base, con);
  for (int i = 0; i < n; ++i) {
    SnContactBar bar = {.dist = (sn_real)ybar[OUT * i]};
    if (con[i].feature >= 0) continue;
    for (int k = 0; k < 3; ++k) {
      bar.pos[k] = (sn_real)ybar[OUT * i + 1 + k];
      bar.normal[k] = (sn_real)ybar[OUT * i + 4 + k];
    }
    sn_collide_smooth_vjp(&a, &b, s->pair->collider, s->smooth.length, con + i, &bar, wrench);
  }
  for (int i = 0; i < NX; ++i) xbar[i] += (double)wrench[i];
}

// Half of the poses are turned by a little from one that rests flat, so that weights and signs are in between.
static bool sample(void *context) {
  Scene *s = context;
  SnContact con[SN_COLLIDE_SLOTS];
  for (int i = 0; i < 2; ++i) sn_random_geom(s->o, 0, s->pair->far, s->base + i);
  if (sn_oracle_uniform(s->o) > 0) {
    double dx[6] = {0};
    for (int i = 0; i < 3; ++i) dx[i] = 0.03 * sn_oracle_uniform(s->o);
    for (int i = 0; i < 3; ++i) dx[3 + i] = s->pair->far * sn_oracle_uniform(s->o);
    sn_moved_geom(s->base, dx, s->base + 1);
    sn_add3(s->base[1].pos, s->base[0].pos, (sn_real[3]){(sn_real)dx[3], (sn_real)dx[4], (sn_real)dx[5]});
  }
  s->n = collide(s, s->base, con);
  for (int i = 0; i < s->n; ++i) s->feature[i] = con[i].feature;
  return s->n > 0;
}

static void against_differences(void **state) {
  (void)state;
  SnOracle o = {.rng = SEED};
  static const double length[3] = {0.03, 0.005, 0.001};
  for (int i = 0; i < PAIRS; ++i)
    for (int k = 0; k < 3; ++k) {
      char name[64];
      Scene s = {.pair = pairs + i, .o = &o, .smooth = {0, SN_R(0.5), (sn_real)length[k]}};
      snprintf(name, sizeof name, "%s, smoothed over %g m", pairs[i].name, length[k]);
      const SnGradCase c = {.name = name,
                            .nx = NX,
                            .ny = MOST * OUT,
                            .context = &s,
                            .sample = sample,
                            .forward = forward,
                            .adjoint = adjoint,
                            .step = 3e-7,
                            .tolerance = 1e-5,
                            .samples = 60};
      sn_gradcheck(&c, SEED);
    }
}

// How far the nearest contact of a list is from a given one, in distance, point and normal.
static double nearest(const SnContact *con, int n, const SnContact *to) {
  double best = 1e9;
  for (int i = 0; i < n; ++i) {
    double far = fabs((double)(con[i].dist - to->dist));
    far = sn_larger(far, (double)sn_dist3(con[i].pos, to->pos));
    far = sn_larger(far, (double)sn_dist3(con[i].frame, to->frame));
    best = far < best ? far : best;
  }
  return best;
}

// Puts the second geom at `at` in the frame of the first one, turned from it by `turn`.
static void rest(Scene *s, const double at[3], const double turn[3]) {
  const double dx[6] = {turn[0], turn[1], turn[2], 0, 0, 0};
  sn_real local[3], shift[3];
  sn_moved_geom(s->base, dx, s->base + 1);
  for (int i = 0; i < 3; ++i) local[i] = (sn_real)at[i];
  sn_mulmatvec3(shift, s->base[0].mat, local);
  sn_addto3(s->base[1].pos, shift);
}

static const Pair table = {
    "cube on a table", SN_COLLIDER_BOX_BOX, {{1, 1, SN_R(0.1)}, {SN_R(0.05), SN_R(0.06), SN_R(0.07)}}, 0};
static const Pair bars = {"crossing bars",
                          SN_COLLIDER_BOX_BOX,
                          {{SN_R(0.3), SN_R(0.02), SN_R(0.02)}, {SN_R(0.02), SN_R(0.3), SN_R(0.02)}},
                          0};

// As the smoothing goes to nothing every contact of MuJoCo's is there.
static void limit(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  SnOracle o = {.rng = SEED};
  const Pair *all[4] = {pairs, pairs + 1, &table, &bars};
  for (int i = 0; i < 4; ++i) {
    Scene s = {.pair = all[i], .o = &o, .smooth = {0, 0, SN_R(1e-6)}};
    double worst = 0;
    int found = 0;
    for (int k = 0; k < 1000; ++k) {
      SnContact exact[SN_COLLIDE_SLOTS], smooth[SN_COLLIDE_SLOTS];
      sn_random_geom(&o, 0, 0.3, s.base);
      sn_random_geom(&o, 0, s.pair->far, s.base + 1);
      const double turn[3] = {0.02 * sn_oracle_uniform(&o), 0.02 * sn_oracle_uniform(&o), sn_oracle_uniform(&o)};
      const double on[3] = {sn_oracle_uniform(&o) / 4, sn_oracle_uniform(&o) / 4, i == 2 ? 0.168 : 0.0395};
      if (i >= 2) rest(&s, on, i == 2 ? turn : (double[3]){0, 0, 0.1 * turn[2]});
      const int n = collide_exactly(&s, s.base, exact), m = collide(&s, s.base, smooth);
      found += n;
      for (int e = 0; e < n; ++e) worst = sn_larger(worst, nearest(smooth, m, exact + e));
    }
    printf("%s: %d contacts, off by at most %.2g\n", s.pair->name, found, worst);
    assert_true(found > 500);
    assert_true(worst < 2e-5);
  }
}

// ---- jumps ----

// The largest change of a contact, whatever its feature, between poses that `turn` and `shift` part by 2e-9.
static double jump(Scene *s, const double turn[3], const double shift[3],
                   int (*by)(const Scene *, const SnPlacedGeom[2], SnContact *)) {
  const SnPlacedGeom middle = s->base[1];
  SnContact con[2][SN_COLLIDE_SLOTS];
  int n[2];
  double most = 0;
  for (int e = 0; e < 2; ++e) {
    const double h = e == 0 ? 1e-9 : -1e-9;
    const double dx[6] = {h * turn[0], h * turn[1], h * turn[2], h * shift[0], h * shift[1], h * shift[2]};
    sn_moved_geom(&middle, dx, s->base + 1);
    n[e] = by(s, s->base, con[e]);
  }
  s->base[1] = middle;
  assert_true(n[0] > 0 && n[1] > 0);
  for (int i = 0; i < n[0]; ++i) most = sn_larger(most, nearest(con[1], n[1], con[0] + i));
  return most;
}

// The smooth contacts alone: where edges cross, contacts are MuJoCo's and jump with its normal.
static int collide_corners(const Scene *s, const SnPlacedGeom pose[2], SnContact *con) {
  const int found = collide(s, pose, con);
  int n = 0;
  for (int i = 0; i < found; ++i)
    if (con[i].feature < 0) con[n++] = con[i];
  return n;
}

// A box that turns on until its upper corners are the lower ones, a cylinder that is upright, a box at the edge of
// another one.
static void no_jumps(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  SnOracle o = {.rng = SEED};
  const SnPlacedGeom upright = {.mat = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  const Pair cubes = {"box at an edge", SN_COLLIDER_BOX_BOX, {{1, 1, 1}, {SN_R(0.1), SN_R(0.1), SN_R(0.1)}}, 0};
  const struct {
    const Pair *pair;
    double at[3], start[3], turn[3], shift[3];
  } way[3] = {{pairs, {0, 0, 0.05}, {atan(4.0 / 3), 0, 0}, {1, 0, 0}, {0, 0, 0}},
              {pairs + 1, {0, 0, 0.199}, {0, 0, 0}, {1, 0.3, 0}, {0, 0, 0}},
              {&cubes, {1.09, 0.2, 1.09}, {0, 0, 0}, {0, 0, 0}, {1, 0, -1}}};
  for (int i = 0; i < 3; ++i) {
    Scene s = {.pair = way[i].pair, .o = &o, .smooth = {0, SN_R(0.5), SN_R(0.002)}, .base = {upright, upright}};
    rest(&s, way[i].at, way[i].start);
    const double exact = jump(&s, way[i].turn, way[i].shift, collide_exactly);
    const double smooth = jump(&s, way[i].turn, way[i].shift, collide_corners);
    printf("%s: MuJoCo's contacts jump by %.2g, the smooth ones by %.2g\n", way[i].pair->name, exact, smooth);
    assert_true(exact > 0.05);
    assert_true(smooth < 1e-4);
  }
}

// Quarter turns and centres on a lattice, centres that coincide among them.
static void on_a_lattice(void **state) {
  (void)state;
  SnOracle o = {.rng = SEED};
  static const double turn[6][3] = {{0, 0, 0},      {M_PI_2, 0, 0}, {0, M_PI_2, 0},
                                    {0, 0, M_PI_2}, {M_PI, 0, 0},   {M_PI_4, 0, 0}};
  for (int k = 0; k < 3000; ++k) {
    Scene s = {.pair = pairs + k % PAIRS, .o = &o, .smooth = {0, 1, k % 2 ? SN_R(1e-6) : SN_R(0.01)}};
    SnContact con[SN_COLLIDE_SLOTS];
    sn_real wrench[NX] = {0};
    double at[3];
    s.base[0] = (SnPlacedGeom){.mat = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    for (int i = 0; i < 3; ++i) at[i] = 0.05 * (sn_oracle_pick(&o, 9) - 4);
    rest(&s, at, turn[sn_oracle_pick(&o, 6)]);
    const SnShape a = shape_of(&s, s.base, 0), b = shape_of(&s, s.base + 1, 1);
    const int n = collide(&s, s.base, con);
    for (int i = 0; i < n; ++i) {
      const SnContactBar bar = {.dist = 1, .pos = {1, 2, 3}, .normal = {3, 2, 1}};
      assert_true(isfinite(con[i].dist) && fabs((double)sn_norm3(con[i].frame) - 1) < SN_TOL(1e-12, 1e-5));
      if (con[i].feature < 0) sn_collide_smooth_vjp(&a, &b, s.pair->collider, s.smooth.length, con + i, &bar, wrench);
    }
    for (int i = 0; i < NX; ++i) assert_true(isfinite(wrench[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_differences), cmocka_unit_test(limit),
                                     cmocka_unit_test(no_jumps), cmocka_unit_test(on_a_lattice)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
