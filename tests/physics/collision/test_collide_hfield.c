// Height fields against MuJoCo 4.0.0: the same contacts in the same order with every convex kind, anywhere on and
// beside a rough terrain that lies anyhow, with and without margin; the nearest points at a distance; the adjoint of
// both against differences.
//
// In float GJK and EPA break ties differently. There the deepest contact must agree to 2 mm in 99 of 100 poses; all of
// them in 9 of 10 where MuJoCo rounds otherwise.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/collision/collide_private.h"
#include "physics/collision/collision.h"
#include "physics/collision/surface_private.h"
#include "tests/support/convex_scene.h"
#include "tests/support/gradcheck.h"
#include "tests/support/slow.h"
#include "tests/support/tolerance.h"

enum { POSES = 400, NX = 12, NY = 7 };

typedef struct Kind {
  const char *geom;  // type and size
  double tolerance;  // of distance, point and normal
  bool noisy;        // MuJoCo's search leaves noise in the normal and the point
} Kind;

static const Kind kinds[] = {{"sphere' size='.12", 1e-9, false},         {"capsule' size='.06 .15", 1e-9, false},
                             {"ellipsoid' size='.1 .15 .2", 1e-5, true}, {"cylinder' size='.1 .12", 1e-5, true},
                             {"box' size='.1 .15 .12", 1e-9, false},     {"mesh' mesh='hull", 1e-9, false}};
enum { NKIND = sizeof kinds / sizeof *kinds };

// Loads a terrain of (nrow, ncol) random heights on a mocap body, and a free geom.
static void load(SnOracle *o, const char *geom, double margin, int nrow, int ncol) {
  static char xml[200000];
  size_t n = (size_t)snprintf(xml, sizeof xml,
                              "<mujoco><asset>" SN_CONVEX_HULL
                              "<hfield name='h' nrow='%d' ncol='%d' size='1.2 .9 .3 .2' elevation='",
                              nrow, ncol);
  for (int i = 0; i < nrow * ncol; ++i) {
    const double x = 43758.5453 * sin(12.9898 * (i + 1));
    n += (size_t)snprintf(xml + n, sizeof xml - n, "%.4f ", x - floor(x));
  }
  snprintf(xml + n, sizeof xml - n,
           "'/></asset><worldbody><body mocap='true'><geom type='hfield' hfield='h' margin='%g'/></body>"
           "<body><freejoint/><geom type='%s'/></body></worldbody></mujoco>",
           margin, geom);
  sn_oracle_load_string(o, xml);
}

static void random_quat(SnOracle *o, double *quat) {
  for (int i = 0; i < 4; ++i) quat[i] = sn_oracle_uniform(o);
  mju_normalize4(quat);
}

// The terrain anyhow, the geom at x, y in and a little beside its rectangle, at a height about the terrain's.
static void random_pose(SnOracle *o, double lowest, double highest) {
  mjData *d = o->d;
  double local[3] = {1.3 * sn_oracle_uniform(o), sn_oracle_uniform(o),
                     lowest + (highest - lowest) * 0.5 * (1 + sn_oracle_uniform(o))};
  random_quat(o, d->mocap_quat);
  for (int i = 0; i < 3; ++i) d->mocap_pos[i] = 0.3 * sn_oracle_uniform(o);
  random_quat(o, d->qpos + 3);
  mju_rotVecQuat(d->qpos, local, d->mocap_quat);
  mju_addTo3(d->qpos, d->mocap_pos);
  mj_forward(o->mj, d);
  sn_oracle_fill(o);
}

static double deepest(const mjData *d) {
  double least = 1;
  for (int i = 0; i < d->ncon; ++i) least = fmin(least, d->contact[i].dist);
  return least;
}

// The largest difference of contacts, in m and of unit vectors; of a float build: of the deepest ones' distance.
static double difference(const SnOracle *o, const Kind *k) {
  const mjData *d = o->d;
  const SnWorld *w = &o->w;
  double worst = 0;
#ifdef SN_SINGLE
  sn_real least = 1;
  for (int i = 0; i < w->ncon[0]; ++i) least = sn_min(least, w->contact[i].dist);
  (void)k;
  if (deepest(d) > -1e-4 || least > SN_R(-1e-4)) return 0;
  return fabs((double)least - deepest(d)) > 2e-3;
#endif
  if (w->ncon[0] != d->ncon) return INFINITY;
  for (int i = 0; i < d->ncon; ++i) {
    const SnContact *c = w->contact + i;
    const double scale = k->noisy ? 1e-2 : 1;  // of points and normals
    worst = sn_larger(worst, fabs((double)c->dist - d->contact[i].dist));
    for (int e = 0; e < 3; ++e) {
      worst = sn_larger(worst, scale * fabs((double)c->pos[e] - d->contact[i].pos[e]));
      worst = sn_larger(worst, scale * fabs((double)c->frame[e] - d->contact[i].frame[e]));
    }
  }
  return worst;
}

static void like_mujoco(void **state) {
  (void)state;
  for (int i = 0; i < NKIND; ++i)
    for (int margin = 0; margin < 2; ++margin) {
      SnOracle o;
      int contacts = 0, touching = 0, off = 0;
      double worst = 0;
      load(&o, kinds[i].geom, margin * 0.03, 9, 12);
      printf("%s, margin %g, seed %llu: ", kinds[i].geom, margin * 0.03, (unsigned long long)o.rng);
      for (int k = 0; k < POSES; ++k) {
        random_pose(&o, -0.3, 0.45);
        sn_collision(o.m, &o.w, &o.lane);
        const double error = difference(&o, kinds + i);
        contacts += o.d->ncon;
        touching += o.d->ncon > 0;
        off += !(error <= kinds[i].tolerance);
        if (error <= kinds[i].tolerance) worst = sn_larger(worst, error);
      }
      printf("%d poses touch, %d contacts, largest difference %.2g, %d beyond %g\n", touching, contacts, worst, off,
             kinds[i].tolerance);
      assert_true(touching > POSES / 4);
      assert_true(off <= SN_TOL(SN_ALIKE(0, POSES / 10), POSES / 100));
      sn_oracle_free(&o);
    }
}

// A large box over a fine grid meets more prisms than a pair has contacts: the first 50 count.
static void most(void **state) {
  (void)state;
  SnOracle o;
  load(&o, "box' size='.5 .5 .2", 0, 60, 50);
  mju_zero(o.d->qpos, 3);
  o.d->qpos[2] = 0.3;
  mj_forward(o.mj, o.d);
  sn_oracle_fill(&o);
  sn_collision(o.m, &o.w, &o.lane);
  assert_int_equal(o.d->ncon, SN_MAXCON_HFIELD);
  assert_int_equal(o.w.ncon[0], SN_MAXCON_HFIELD);
  for (int i = 0; i < SN_ALIKE(o.d->ncon, 0); ++i)
    for (int k = 0; k < 3; ++k)
      assert_true(fabs((double)o.w.contact[i].pos[k] - o.d->contact[i].pos[k]) < SN_TOL(1e-9, 0.1));
  sn_oracle_free(&o);
}

// Places that are no numbers make no contacts.
static void not_a_number(void **state) {
  (void)state;
  SnOracle o;
  load(&o, kinds[4].geom, 0, 5, 5);
  random_pose(&o, 0, 0.1);
  for (int i = 0; i < 3; ++i) {
    sn_oracle_fill(&o);
    o.w.geom_xpos[3 + i] = (sn_real)NAN;
    sn_collision(o.m, &o.w, &o.lane);
    assert_int_equal(o.w.ncon[0], 0);
  }
  sn_oracle_free(&o);
}

// The distance to the nearest prism is that of MuJoCo's nearest contact in a margin.
static void nearest(void **state) {
  (void)state;
  for (int i = 0; i < NKIND; ++i) {
    SnOracle o;
    SnError err = {0};
    int apart = 0;
    double worst = 0;
    load(&o, kinds[i].geom, 0.2, 9, 12);
    for (int k = 0; k < POSES / 4; ++k) {
      SnDistance r;
      SnPlacedGeom g[2];
      random_pose(&o, 0.2, 0.7);
      for (int side = 0; side < 2; ++side) {
        g[side].geom = side;
        sn_copy3(g[side].pos, o.w.geom_xpos + 3 * side);
        sn_copy(g[side].mat, o.w.geom_xmat + 9 * side, 9);
      }
      const double least = deepest(o.d);
      assert_int_equal(sn_geom_distance(o.m, g, g + 1, SN_R(0.2), &r, &err), SN_OK);
      if (least <= 0 || (o.d->ncon > 0 && least > 0.199)) continue;
      assert_int_equal(r.within, o.d->ncon > 0);
      if (!r.within) continue;
      ++apart;
      worst = sn_larger(worst, fabs((double)r.dist - least));
      SnDistance back;  // in the other order
      assert_int_equal(sn_geom_distance(o.m, g + 1, g, SN_R(0.2), &back, &err), SN_OK);
      assert_true(back.dist == r.dist && sn_dist3(back.from, r.to) == 0 && sn_dot3(back.normal, r.normal) < 0);
    }
    printf("%s: %d poses apart, largest difference %.2g\n", kinds[i].geom, apart, worst);
    assert_true(apart > POSES / 16);
    assert_true(worst < SN_TOL(1e-8, 1e-4));
    sn_oracle_free(&o);
  }
}

// ---- the adjoint ----

typedef struct Scene {
  SnOracle o;
  SnPlacedGeom base[2];
  SnContact con;
  bool far;    // nearest points, else a contact
  bool exact;  // differentiate the nearest points of the contact's prism in its place
  double low, high;
} Scene;

// The contact of the base's prism with the geoms moved by dx.
static bool prism_contact(Scene *s, const double *dx, SnContact *con) {
  SnPlacedGeom g[2];
  for (int side = 0; side < 2; ++side) sn_moved_geom(s->base + side, dx + 6 * side, g + side);
  const SnModel *m = s->o.m;
  const SnShape a = {g[0].pos, g[0].mat, m->geom_size, 0}, b = {g[1].pos, g[1].mat, m->geom_size + 3, 1};
  const sn_real reach = m->cpair_reach[0];
  return sn_hfield_again(m, &a, &b, reach, s->far || s->exact, s->con.feature, con);
}

static bool forward(void *context, const double *dx, double *y) {
  SnContact con;
  if (!prism_contact(context, dx, &con)) return false;
  y[0] = (double)con.dist;
  for (int k = 0; k < 3; ++k) y[1 + k] = (double)con.pos[k];
  for (int k = 0; k < 3; ++k) y[4 + k] = (double)con.frame[k];
  return true;
}

// True where differences with two steps agree: the same parts of the surfaces stay nearest.
static bool is_smooth(Scene *s) {
  for (int i = 0; i < NX; ++i) {
    double slope[2][NY], y[2][NY], dx[NX] = {0};
    for (int h = 0; h < 2; ++h) {
      const double step = h ? 1e-6 : 1e-5;
      for (int e = 0; e < 2; ++e) {
        dx[i] = e ? -step : step;
        if (!forward(s, dx, y[e])) return false;
      }
      for (int k = 0; k < NY; ++k) slope[h][k] = (y[0][k] - y[1][k]) / (2 * step);
    }
    for (int k = 0; k < NY; ++k)
      if (!(fabs(slope[0][k] - slope[1][k]) < 1e-5 * (1 + fabs(slope[0][k])))) return false;
  }
  return true;
}

static bool draw(Scene *s) {
  SnOracle *o = &s->o;
  const SnShape a = sn_shape(o->m, &o->w, 0), b = sn_shape(o->m, &o->w, 1);
  random_pose(o, s->low, s->high);
  for (int side = 0; side < 2; ++side) {
    s->base[side].geom = side;
    sn_copy3(s->base[side].pos, o->w.geom_xpos + 3 * side);
    sn_copy(s->base[side].mat, o->w.geom_xmat + 9 * side, 9);
  }
  if (s->far) {
    if (!sn_hfield_nearest(o->m, &a, &b, 1, &s->con) || s->con.dist >= 1 || s->con.dist < SN_R(1e-3)) return false;
  } else {
    SnContact con[SN_MAXCON_HFIELD];
    const int n = sn_collide_hfield(o->m, &a, &b, o->m->cpair_reach[0], con, SN_MAXCON_HFIELD);
    if (n == 0) return false;
    s->con = con[sn_oracle_pick(o, n)];
    // deep in a prism the face that is left by is a matter of choice
    if (s->con.dist < SN_R(-0.03) || sn_abs(s->con.dist) < SN_R(1e-4)) return false;
  }
  if (sizeof(sn_real) == sizeof(float)) return true;
  SnContact exact;
  const double none[NX] = {0};
  if (!prism_contact(s, none, &exact)) return false;
  if (s->exact && (sn_abs(exact.dist - s->con.dist) > SN_R(1e-7) || sn_dist3(exact.frame, s->con.frame) > SN_R(1e-3)))
    return false;
  return is_smooth(s);
}

static bool sample(void *context) {
  for (int i = 0; i < 100; ++i)
    if (draw(context)) return true;
  return false;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Scene *s = context;
  const SnModel *m = s->o.m;
  const SnShape a = {s->base[0].pos, s->base[0].mat, m->geom_size, 0};
  const SnShape b = {s->base[1].pos, s->base[1].mat, m->geom_size + 3, 1};
  sn_real wrench[NX] = {0};
  SnContactBar bar = {.dist = (sn_real)ybar[0]};
  for (int k = 0; k < 3; ++k) {
    bar.pos[k] = (sn_real)ybar[1 + k];
    bar.normal[k] = (sn_real)ybar[4 + k];
  }
  sn_collide_hfield_vjp(m, &a, &b, &s->con, &bar, wrench);
  for (int i = 0; i < NX; ++i) xbar[i] += (double)wrench[i];
}

static void check_adjoint(const Kind *k, double margin, bool far, double low, double high) {
  char name[100];
  Scene s = {.far = far, .exact = k->noisy, .low = low, .high = high};
  load(&s.o, k->geom, margin, 9, 12);
  snprintf(name, sizeof name, "terrain and %s, %s, margin %g", k->geom, far ? "far" : "touching", margin);
  const SnGradCase c = {.name = name,
                        .nx = NX,
                        .ny = NY,
                        .context = &s,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .tolerance = 2e-5,
                        .samples = sn_draws(30)};
  sn_gradcheck(&c, 1);
  sn_oracle_free(&s.o);
}

static void differences(void **state) {
  (void)state;
  for (int i = 0; i < NKIND; ++i) {
    check_adjoint(kinds + i, 0, false, 0, 0.35);
    check_adjoint(kinds + i, 0.03, false, 0.1, 0.4);
    check_adjoint(kinds + i, 0, true, 0.2, 0.7);
  }
}

// Two corners of a prism span an edge where one lies above the other or both at one end, else an upright face.
static void faces_of_a_prism(void **state) {
  (void)state;
  static const sn_real vert[18] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 1};
  static const sn_real half = SN_R(0.5), pos[3] = {0}, mat[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  static const struct {
    int corner[3];
    sn_real x[3], n[3];
    int nflat;
  } part[] = {{{0, 3, 0}, {0, 0, half}, {SN_R(-0.6), SN_R(-0.8), 0}, 1},
              {{3, 4, 3}, {half, 0, 1}, {0, SN_R(-0.6), SN_R(0.8)}, 1},
              {{0, 4, 0}, {half, 0, half}, {0, -1, 0}, 2},
              {{5, 1, 5}, {half, half, half}, {SN_R(0.7071), SN_R(0.7071), 0}, 2}};
  const SnConvex prism = {.type = SN_GEOM_HFIELD, .pos = pos, .mat = mat, .vert = vert, .nvert = 6};
  for (size_t i = 0; i < sizeof part / sizeof *part; ++i) {
    SnSurface surface;
    sn_surface_init(&surface, &prism, part[i].corner, part[i].x, part[i].n);
    assert_int_equal(surface.nflat, part[i].nflat);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(like_mujoco),  cmocka_unit_test(most),
                                     cmocka_unit_test(not_a_number), cmocka_unit_test(nearest),
                                     cmocka_unit_test(differences),  cmocka_unit_test(faces_of_a_prism)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
