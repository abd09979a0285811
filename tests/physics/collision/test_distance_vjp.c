// Derivatives of the distance of two geoms against differences: of our own by both poses, for every pair of types; of
// MuJoCo's mj_geomDistance; by qpos, in a hand with an object; by sizes. At kinks they are finite and balanced.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "physics/collision/collision.h"
#include "physics/collision/convex_private.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/convex_scene.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tolerance.h"

enum { SEED = 5, TYPES = 7, NX = 12, NY = SN_DISTANCE_ROWS };

static const char *const names[TYPES] = {"plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"};

// Two geoms at poses that the test sets, or two of a model in motion.
typedef struct Pair {
  SnOracle *o;
  SnGradWorld g;         // of the model in motion
  SnPlacedGeom base[2];  // turned by dx: rotation and displacement of each
  double far;
  int drawn, kinks;
} Pair;

static void load(SnOracle *o) {
  sn_oracle_load_string(
      o,
      "<mujoco><asset>" SN_CONVEX_HULL
      "</asset><worldbody><geom type='plane' size='1 1 1'/><geom type='plane' size='1 1 1'/>"
      "<body><freejoint/><geom type='sphere' size='.1'/></body><body><freejoint/><geom type='sphere' "
      "size='.07'/></body>"
      "<body><freejoint/><geom type='capsule' size='.06 .12'/></body>"
      "<body><freejoint/><geom type='capsule' size='.05 .1'/></body>"
      "<body><freejoint/><geom type='ellipsoid' size='.06 .1 .15'/></body>"
      "<body><freejoint/><geom type='ellipsoid' size='.08 .05 .1'/></body>"
      "<body><freejoint/><geom type='cylinder' size='.08 .12'/></body>"
      "<body><freejoint/><geom type='cylinder' size='.1 .06'/></body>"
      "<body><freejoint/><geom type='box' size='.06 .1 .14'/></body>"
      "<body><freejoint/><geom type='box' size='.1 .08 .09'/></body>"
      "<body><freejoint/><geom type='mesh' mesh='hull'/></body><body><freejoint/><geom type='mesh' mesh='hull'/></body>"
      "</worldbody></mujoco>");
  o->rng = SEED;
}

static SnDistance distance(const SnOracle *o, const SnPlacedGeom g[2]) {
  SnDistance r;
  SnError err;
  if (sn_geom_distance(o->m, g, g + 1, 10, &r, &err) != SN_OK) fail_msg("%s", err.text);
  return r;
}

static void flatten(const SnDistance *r, double *y) {
  y[0] = (double)r->dist;
  for (int i = 0; i < 3; ++i) {
    y[1 + i] = (double)r->from[i];
    y[4 + i] = (double)r->to[i];
    y[7 + i] = (double)r->normal[i];
  }
}

static bool forward(void *context, const double *dx, double *y) {
  const Pair *p = context;
  SnPlacedGeom g[2];
  for (int i = 0; i < 2; ++i) {
    g[i] = p->base[i];
    if (dx) sn_moved_geom(p->base + i, dx + 6 * i, g + i);
  }
  const SnDistance r = distance(p->o, g);
  flatten(&r, y);
  return r.within;
}

static SnDistanceBar bar_of(const double *ybar) {
  SnDistanceBar bar = {.dist = (sn_real)ybar[0]};
  for (int i = 0; i < 3; ++i) {
    bar.from[i] = (sn_real)ybar[1 + i];
    bar.to[i] = (sn_real)ybar[4 + i];
    bar.normal[i] = (sn_real)ybar[7 + i];
  }
  return bar;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  const Pair *p = context;
  const SnDistance r = distance(p->o, p->base);
  const SnDistanceBar bar = bar_of(ybar);
  sn_real wrench[NX] = {0};
  sn_geom_distance_vjp(p->o->m, p->base, p->base + 1, &r, &bar, wrench);
  for (int i = 0; i < NX; ++i) xbar[i] += (double)wrench[i];
}

// Differences with two steps agree: no kink is near.
static bool is_smooth(Pair *p, int nx, bool (*y)(void *, const double *, double *)) {
  if (sizeof(sn_real) == sizeof(float)) return true;  // nothing is compared
  double largest = 1e-3, worst = 0;
  for (int i = 0; i < nx; ++i) {
    double d[2][NY], up[NY], down[NY], dx[512] = {0};
    for (int k = 0; k < 2; ++k) {
      const double h = k ? 4e-6 : 1e-6;
      dx[i] = h;
      if (!y(p, dx, up)) return false;
      dx[i] = -h;
      if (!y(p, dx, down)) return false;
      for (int j = 0; j < NY; ++j) d[k][j] = (up[j] - down[j]) / (2 * h);
    }
    for (int j = 0; j < NY; ++j) {
      largest = sn_larger(largest, fabs(d[0][j]));
      worst = sn_larger(worst, fabs(d[0][j] - d[1][j]));
    }
  }
  return worst < 1e-6 * largest;
}

static bool sample(void *context) {
  Pair *p = context;
  for (int i = 0; i < 2; ++i) sn_random_geom(p->o, p->base[i].geom, p->far, p->base + i);
  ++p->drawn;
  const bool smooth = is_smooth(p, NX, forward);
  p->kinks += !smooth;
  return smooth;
}

static void every_pair(void **state) {
  (void)state;
  static const double far[3] = {0.08, 0.15, 0.4};
  SnOracle o;
  load(&o);
  for (int i = 0; i < TYPES; ++i)
    for (int j = i > 1 ? i : 1; j < TYPES; ++j) {
      Pair p = {.o = &o};
      for (int k = 0; k < 3; ++k) {
        char name[64];
        snprintf(name, sizeof name, "%s, %s within %g m", names[i], names[j], far[k]);
        p.base[k % 2].geom = 2 * i;
        p.base[1 - k % 2].geom = 2 * j + 1;
        p.far = far[k];
        const SnGradCase c = {.name = name,
                              .nx = NX,
                              .ny = NY,
                              .context = &p,
                              .sample = sample,
                              .forward = forward,
                              .adjoint = adjoint,
                              .samples = 20};
        sn_gradcheck(&c, SEED);
      }
      printf("%s, %s: %d of %d near a kink\n", names[i], names[j], p.kinks, p.drawn);
    }
  sn_oracle_free(&o);
}

// MuJoCo's distance at poses moved by dx; its search ends within 1e-10 m, so the step of differences is wide.
static double mujoco(Pair *p, const double *dx) {
  for (int i = 0; i < 2; ++i) {
    SnPlacedGeom g;
    sn_moved_geom(p->base + i, dx + 6 * i, &g);
    for (int k = 0; k < 3; ++k) p->o->d->geom_xpos[3 * g.geom + k] = (double)g.pos[k];
    for (int k = 0; k < 9; ++k) p->o->d->geom_xmat[9 * g.geom + k] = (double)g.mat[k];
  }
  return mj_geomDistance(p->o->mj, p->o->d, p->base[0].geom, p->base[1].geom, 10, NULL);
}

static void of_mujoco(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  SnOracle o;
  load(&o);
  double worst = 0;
  int compared = 0, left_out = 0;
  for (int k = 0; k < 1500; ++k) {
    const double h = 3e-5, one[NY] = {1};
    Pair p = {.o = &o};
    double bar[NX] = {0}, error = 0, wide = 0;
    sn_random_geom(&o, 2 * sn_oracle_pick(&o, TYPES), 0.25, p.base);
    sn_random_geom(&o, 3 + 2 * sn_oracle_pick(&o, TYPES - 1), 0.25, p.base + 1);
    adjoint(&p, one, bar);
    for (int i = 0; i < NX; ++i) {
      double dx[NX] = {0}, y[4];
      for (int e = 0; e < 4; ++e) {
        dx[i] = (e % 2 ? -h : h) * (e < 2 ? 1 : 4);
        y[e] = mujoco(&p, dx);
      }
      const double d = (y[0] - y[1]) / (2 * h);
      wide = sn_larger(wide, fabs(d - (y[2] - y[3]) / (8 * h)));
      error = sn_larger(error, fabs(d - bar[i]));
    }
    const double zero[NX] = {0};
    const bool same = fabs(mujoco(&p, zero) - (double)distance(&o, p.base).dist) < 1e-9;
    if (!same || wide > 1e-4) {  // a capsule whose axis enters a box; a kink
      ++left_out;
      continue;
    }
    worst = sn_larger(worst, error);
    ++compared;
  }
  printf("seed %d: differences of mj_geomDistance differ by %.2g from %d gradients, %d left out\n", SEED, worst,
         compared, left_out);
  assert_true(compared > 1300);
  assert_true(worst < 2e-5);
  sn_oracle_free(&o);
}

// Quarter turns on a lattice: parallel edges and faces, centres that coincide. Whatever is chosen there, numbers are
// finite, and a displacement of both geoms carries the points with it.
static void kinks(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  double worst = 0, largest = 0;
  for (int k = 0; k < 4000; ++k) {
    SnPlacedGeom g[2];
    sn_real jac[NY * NX];
    for (int i = 0; i < 2; ++i) {
      static const double turn[6][9] = {{1, 0, 0, 0, 1, 0, 0, 0, 1},   {0, -1, 0, 1, 0, 0, 0, 0, 1},
                                        {1, 0, 0, 0, 0, -1, 0, 1, 0},  {0, 0, 1, 0, 1, 0, -1, 0, 0},
                                        {-1, 0, 0, 0, 1, 0, 0, 0, -1}, {0, 0, 1, 1, 0, 0, 0, 1, 0}};
      const double *mat = turn[sn_oracle_pick(&o, 6)];
      g[i].geom = i == 0 ? 2 * sn_oracle_pick(&o, TYPES) : 3 + 2 * sn_oracle_pick(&o, TYPES - 1);
      for (int e = 0; e < 9; ++e) g[i].mat[e] = (sn_real)mat[e];
      for (int e = 0; e < 3; ++e) g[i].pos[e] = (sn_real)(i == 0 ? 0 : 0.05 * (sn_oracle_pick(&o, 7) - 3));
    }
    const SnDistance r = distance(&o, g);
    assert_true(r.within && fabs((double)sn_norm3(r.normal) - 1) < SN_TOL(1e-12, 1e-5));
    sn_geom_distance_jacobian(o.m, g, g + 1, &r, jac);
    for (int i = 0; i < NY * NX; ++i) {
      assert_true(isfinite(jac[i]));
      largest = sn_larger(largest, fabs((double)jac[i]));
    }
    for (int row = 0; row < NY; ++row)
      for (int e = 0; e < 3; ++e) {
        const double both = (double)(jac[NX * row + 3 + e] + jac[NX * row + 9 + e]);
        const double expected = row >= 1 && row <= 6 && (row - 1) % 3 == e ? 1 : 0;
        worst = sn_larger(worst, fabs(both - expected));
      }
  }
  printf("seed %d: poses on a lattice: largest entry %.3g, displacement of both off by %.2g\n", SEED, largest, worst);
  assert_true(worst <= SN_TOL(1e-9, 1e-2));
  sn_oracle_free(&o);
}

// ---- the surrogate ----

// What it differentiates: points fixed to their geoms, a normal that turns with the mean of both.
static bool carried_forward(void *context, const double *dx, double *y) {
  const Pair *p = context;
  const SnDistance r = distance(p->o, p->base);
  const sn_real *point[2] = {r.from, r.to};
  double turn[3], quat[4];
  flatten(&r, y);
  for (int side = 0; side < 2; ++side) {
    SnPlacedGeom g;
    sn_real arm[3], local[3];
    sn_moved_geom(p->base + side, dx + 6 * side, &g);
    sn_sub3(arm, point[side], p->base[side].pos);
    sn_mulmattvec3(local, p->base[side].mat, arm);
    sn_mulmatvec3(arm, g.mat, local);
    for (int i = 0; i < 3; ++i) {
      const double at = (double)(g.pos[i] + arm[i]), was = (double)point[side][i];
      y[1 + 3 * side + i] = at;
      y[0] += (side ? 1 : -1) * (double)r.normal[i] * (at - was);
    }
  }
  for (int i = 0; i < 3; ++i) turn[i] = 0.5 * (dx[i] + dx[6 + i]);
  const double angle = mju_normalize3(turn), normal[3] = {y[7], y[8], y[9]};
  mju_axisAngle2Quat(quat, turn, angle);
  mju_rotVecQuat(y + 7, normal, quat);
  return true;
}

static void carried_adjoint(void *context, const double *ybar, double *xbar) {
  const Pair *p = context;
  const SnDistance r = distance(p->o, p->base);
  const SnDistanceBar bar = bar_of(ybar);
  sn_real wrench[NX] = {0};
  sn_geom_distance_surrogate_vjp(p->o->m, p->base, p->base + 1, &r, &bar, wrench);
  for (int i = 0; i < NX; ++i) xbar[i] += (double)wrench[i];
}

static void surrogate(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  for (int j = 1; j < TYPES; ++j) {
    Pair p = {.o = &o, .far = 0.3};
    char name[64];
    p.base[j % 2].geom = 4;  // a capsule
    p.base[1 - j % 2].geom = 2 * j + 1;
    snprintf(name, sizeof name, "surrogate of capsule, %s", names[j]);
    const SnGradCase c = {.name = name,
                          .nx = NX,
                          .ny = NY,
                          .context = &p,
                          .sample = sample,
                          .forward = carried_forward,
                          .adjoint = carried_adjoint};
    sn_gradcheck(&c, SEED);
  }
  sn_oracle_free(&o);
}

// ---- by sizes ----

static void resize(const Pair *p, const double *dx, double sign) {
  for (int k = 0; k < 6; ++k) {
    const int geom = p->base[k / 3].geom;
    if (p->o->m->geom_type[geom] != SN_GEOM_PLANE) p->o->m->geom_size[3 * geom + k % 3] += (sn_real)(sign * dx[k]);
  }
}

static bool size_forward(void *context, const double *dx, double *y) {
  const Pair *p = context;
  sn_real own[2][3];
  for (int i = 0; i < 2; ++i) sn_copy3(own[i], p->o->m->geom_size + 3 * p->base[i].geom);
  resize(p, dx, 1);
  const SnDistance r = distance(p->o, p->base);
  for (int i = 0; i < 2; ++i) sn_copy3(p->o->m->geom_size + 3 * p->base[i].geom, own[i]);
  flatten(&r, y);
  return r.within;
}

static void size_adjoint(void *context, const double *ybar, double *xbar) {
  const Pair *p = context;
  const SnDistance r = distance(p->o, p->base);
  const SnDistanceBar bar = bar_of(ybar);
  sn_real sizes[6] = {0};
  sn_geom_distance_size_vjp(p->o->m, p->base, p->base + 1, &r, &bar, sizes);
  for (int i = 0; i < 6; ++i) xbar[i] += (double)sizes[i];
}

static bool size_sample(void *context) {
  Pair *p = context;
  for (int i = 0; i < 2; ++i) sn_random_geom(p->o, p->base[i].geom, p->far, p->base + i);
  return is_smooth(p, 6, size_forward);
}

static void by_sizes(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  for (int i = 0; i < TYPES; ++i)
    for (int j = i > 1 ? i : 1; j < TYPES - 1; ++j) {  // a mesh has none
      Pair p = {.o = &o, .far = 0.3};
      p.base[j % 2].geom = 2 * i;  // in either order
      p.base[1 - j % 2].geom = 2 * j + 1;
      char name[64];
      snprintf(name, sizeof name, "sizes of %s, %s", names[i], names[j]);
      const SnGradCase c = {.name = name,
                            .nx = 6,
                            .ny = NY,
                            .context = &p,
                            .sample = size_sample,
                            .forward = size_forward,
                            .adjoint = size_adjoint};
      sn_gradcheck(&c, SEED);
    }
  sn_oracle_free(&o);
}

// Parallel cylinders side by side: with another radius the search finds points at another height, so that only the
// distance counts.
static void size_of_parallel_mantles(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  const SnPlacedGeom g[2] = {
      {.geom = 8, .mat = {1, 0, 0, 0, 1, 0, 0, 0, 1}},
      {.geom = 9, .pos = {SN_R(0.05), SN_R(0.2), SN_R(0.05)}, .mat = {1, 0, 0, 0, 1, 0, 0, 0, 1}}};
  const SnDistance r = distance(&o, g);
  const SnDistanceBar bar = {.dist = 1, .from = {0, 0, 1}};
  sn_real sizes[6] = {0};
  sn_geom_distance_size_vjp(o.m, g, g + 1, &r, &bar, sizes);
  for (int k = 0; k < 6; k += 3)
    if (!(fabs((double)sizes[k] + 1) < SN_TOL(1e-6, 1e-2))) fail_msg("radius %d: %g", k / 3, (double)sizes[k]);
  sn_oracle_free(&o);
}

static void place_geoms(Pair *p, const double *dx) {
  SnGradWorld *g = &p->g;
  double full[512] = {0};
  assert_true(sn_grad_world_nx(g) <= 512);
  if (dx) memcpy(full, dx, sizeof *dx * (size_t)g->m->nv);
  sn_grad_world_move(g, full);
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  for (int i = 0; i < 2; ++i) sn_geom_pose(g->m, &g->w, p->base[i].geom, p->base[i].pos, p->base[i].mat);
}

static bool hand_forward(void *context, const double *dx, double *y) {
  Pair *p = context;
  place_geoms(p, dx);
  return forward(p, NULL, y);
}

static void hand_adjoint(void *context, const double *ybar, double *xbar) {
  Pair *p = context;
  const SnModel *m = p->o->m;
  sn_real wrench[NX] = {0}, qpos_bar[512] = {0};
  place_geoms(p, NULL);
  const SnDistance r = distance(p->o, p->base);
  const SnDistanceBar bar = bar_of(ybar);
  sn_geom_distance_vjp(m, p->base, p->base + 1, &r, &bar, wrench);
  sn_geom_distance_by_qpos(m, &p->g.w, p->base, p->base + 1, wrench, qpos_bar);
  for (int i = 0; i < m->nv; ++i) xbar[i] += (double)qpos_bar[i];
}

// Any two geoms that move against each other.
static bool hand_sample(void *context) {
  Pair *p = context;
  const SnModel *m = p->o->m;
  bool found = false;
  sn_oracle_randomize(p->o, 0);
  sn_grad_world_sample(&p->g);
  for (int k = 0; k < 1000 && !found; ++k) {
    SnDistance r;
    for (int i = 0; i < 2; ++i) p->base[i].geom = sn_oracle_pick(p->o, m->ngeom);
    place_geoms(p, NULL);
    found = m->link_of_geom[p->base[0].geom] != m->link_of_geom[p->base[1].geom] &&
            sn_geom_distance(m, p->base, p->base + 1, 1, &r, NULL) == SN_OK;
  }
  assert_true(found);
  ++p->drawn;
  const bool smooth = is_smooth(p, m->nv, hand_forward);
  p->kinks += !smooth;
  return smooth;
}

static void by_qpos(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_die.xml");
  Pair p = {.o = &o};
  sn_grad_world_init(&p.g, &o);
  const SnGradCase c = {.name = "hand and die",
                        .nx = o.m->nv,
                        .ny = NY,
                        .context = &p,
                        .sample = hand_sample,
                        .forward = hand_forward,
                        .adjoint = hand_adjoint,
                        .samples = 40};
  sn_gradcheck(&c, SEED);
  printf("%d of %d near a kink\n", p.kinks, p.drawn);
  sn_grad_world_free(&p.g);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_pair),
                                     cmocka_unit_test(of_mujoco),
                                     cmocka_unit_test(kinks),
                                     cmocka_unit_test(by_qpos),
                                     cmocka_unit_test(surrogate),
                                     cmocka_unit_test(by_sizes),
                                     cmocka_unit_test(size_of_parallel_mantles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
