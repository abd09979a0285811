// Adjoint of convex contacts against differences: nearest points of every kind of pair, apart, about to touch and in
// each other; at MuJoCo's default tolerances; in degenerate poses; contacts of MyoSuite's models.
#include <stdio.h>
#include <stdlib.h>

#include "physics/collision/collision.h"
#include "tests/support/convex_pair.h"
#include "tests/support/tolerance.h"

static bool sample(void *context) {
  SnPair *p = context;
  SnOracle *o = &p->o;
  double dir[3], q[4];
  sn_pair_sizes(p);
  for (int g = 0; g < 2; ++g) {
    for (int i = 0; i < 4; ++i) q[i] = sn_oracle_uniform(o);
    mju_normalize4(q);
    mju_quat2Mat(p->mat + 9 * g, q);
  }
  for (int i = 0; i < 3; ++i) dir[i] = sn_oracle_uniform(o);
  mju_normalize3(dir);
  mju_zero(p->pos, 6);
  mju_scl3(p->pos + 3, dir, 3);
  sn_pair_approach(p, dir);
  p->count = sn_pair_collide(p, p->base);
  if (p->count < 1) return false;
  p->which = sn_oracle_pick(o, p->count);
  return sn_pair_is_believed(p) && sn_pair_is_smooth(p);
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
    SnPair p = {0};
    if (exact && r == TOUCHING) continue;  // parts that touch have no normal
    sn_pair_load(&p.o, geom1, geom2);
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
                          .nx = SN_PAIR_NX,
                          .ny = SN_PAIR_NY,
                          .context = &p,
                          .sample = sample,
                          .forward = sn_pair_forward,
                          .adjoint = sn_pair_adjoint,
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
  check("box", "mesh' mesh='cushion", false, false, 1, 60);
  check("mesh' mesh='cushion", "mesh' mesh='cushion", false, false, 1, 60);
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
    SnPair p = {0};
    sn_pair_load(&p.o, pair[i][0], pair[i][1]);
    p.geom[1] = 1;
    p.nearest = -0.005;
    p.farthest = 0.005;
    p.reach = 0.006;
    p.max = 1;
    p.smoothness = 1;
    for (int k = 0; k < POSES; ++k) {
      double ybar[SN_PAIR_NY], tight[SN_PAIR_NX] = {0}, at[SN_PAIR_NX] = {0}, worst = 0, largest = 1e-3;
      for (int j = 0; j < SN_PAIR_NY; ++j) ybar[j] = sn_oracle_uniform(&p.o);
      p.o.m->opt.ccd_tolerance = SN_R(1e-12);
      p.o.m->opt.ccd_iterations = 500;
      if (!sample(&p)) continue;
      const SnContact sharp = p.base[0];
      sn_pair_adjoint(&p, ybar, tight);
      p.o.m->opt.ccd_tolerance = SN_R(1e-6);
      p.o.m->opt.ccd_iterations = 35;
      if (sn_pair_collide(&p, p.base) != 1) continue;
      sn_pair_adjoint(&p, ybar, at);
      for (int j = 0; j < SN_PAIR_NX; ++j) {
        worst = sn_larger(worst, fabs(at[j] - tight[j]));
        largest = sn_larger(largest, fabs(tight[j]));
      }
      before[n] = 0;
      for (int j = 0; j < 3; ++j) before[n] = sn_larger(before[n], fabs((double)(sharp.frame[j] - p.base[0].frame[j])));
      error[n++] = worst / largest;
      parts += !(worst / largest <= 1e-6);
    }
    qsort(error, (size_t)n, sizeof *error, compare_doubles);
    qsort(before, (size_t)n, sizeof *before, compare_doubles);
    printf("%-10s %-10s %4d poses: normal off by %.1e (median) %.1e (most); gradient %.1e %.1e, %d beyond 1e-6\n",
           pair[i][0], pair[i][1], n, before[n / 2], before[n - 1], error[n / 2], error[n - 1], parts);
    if (sizeof(sn_real) == sizeof(double)) assert_true(n > POSES / 2 && error[n / 2] < 1e-8 && parts <= n / 100);
    sn_oracle_free(&p.o);
  }
}

// Geoms along the axes on a lattice, so that corners, edges, faces and axes meet exactly, apart, touching, deep and
// at the same place.
static void lattice_pose(SnPair *p) {
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
  sn_pair_place(p, NULL);
}

// The adjoint is finite, and both wrenches together are that of point and normal when the pair moves as one, wherever
// geoms meet.
static void degenerate(void **state) {
  (void)state;
  static const char *const geom[] = {"sphere", "capsule",          "ellipsoid",       "cylinder",
                                     "box",    "mesh' mesh='cube", "mesh' mesh='hull"};
  for (int a = 0; a < 7; ++a)
    for (int b = a; b < 7; ++b) {
      SnPair p = {0};
      // curved: balanced about the sharpened normal, which is not quite that of the contact
      const bool curved = a == 2 || a == 3 || b == 2 || b == 3;
      int contacts = 0, balanced = 0;
      double largest = 0;
      sn_pair_load(&p.o, geom[a], geom[b]);
      p.geom[1] = 1;
      for (int k = 0; k < 400; ++k) {
        lattice_pose(&p);
        p.reach = 0.1 * sn_oracle_pick(&p.o, 2);
        p.max = k % 2 ? 4 : 1;
        p.count = sn_pair_collide(&p, p.base);
        for (p.which = 0; p.which < p.count; ++p.which) {
          double ybar[SN_PAIR_NY], x[SN_PAIR_NX] = {0}, off = 0, size = 1;
          for (int j = 0; j < SN_PAIR_NY; ++j) ybar[j] = sn_oracle_uniform(&p.o);
          sn_pair_adjoint(&p, ybar, x);
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
          for (int i = 0; i < 3; ++i)
            off = sn_larger(off, sn_larger(fabs(total[i] - t[i]), fabs(total[3 + i] - ybar[1 + i])));
          for (int j = 0; j < SN_PAIR_NX; ++j) {
            if (!isfinite(x[j])) fail_msg("%s %s: wrench[%d] = %g", geom[a], geom[b], j, x[j]);
            size = sn_larger(size, fabs(x[j]));
          }
          largest = sn_larger(largest, size);
          ++contacts;
          balanced += off < (curved ? 0.05 : 1e-6) * size;
        }
      }
      printf("%-18s %-18s %4d contacts, %4d balanced, largest %.2g\n", geom[a], geom[b], contacts, balanced, largest);
      assert_true(contacts > 0 && largest < 1e8);
      const int lost = contacts - balanced;  // where the normal of a contact is arbitrary
      assert_true(sizeof(sn_real) == sizeof(float) || lost <= contacts / 100 + 1);
      sn_oracle_free(&p.o);
    }
}

// What the surrogate gradients are the gradients of: nearest points fixed to their geoms, the normal turned by the mean
// of both rotations; dist along the normal.
static bool carried(void *context, const double *dx, double *y) {
  SnPair *p = context;
  const SnContact *con = p->base;
  double x[6], mean[3], q[4], d[3];
  for (int g = 0; g < 2; ++g) {
    double arm[3], axis[3], turned[3];
    for (int i = 0; i < 3; ++i)
      arm[i] = (double)con->pos[i] + (g - 0.5) * (double)con->dist * (double)con->frame[i] - p->pos[3 * g + i];
    mju_copy3(axis, dx + 6 * g);
    const double angle = mju_normalize3(axis);
    mju_axisAngle2Quat(q, axis, angle);
    mju_rotVecQuat(turned, arm, q);
    for (int i = 0; i < 3; ++i) x[3 * g + i] = p->pos[3 * g + i] + dx[6 * g + 3 + i] + turned[i];
  }
  for (int i = 0; i < 3; ++i) mean[i] = 0.5 * (dx[i] + dx[6 + i]);
  const double angle = mju_normalize3(mean), n[3] = {con->frame[0], con->frame[1], con->frame[2]};
  mju_axisAngle2Quat(q, mean, angle);
  mju_rotVecQuat(y + 4, n, q);
  mju_sub3(d, x + 3, x);
  y[0] = mju_dot3(d, n);
  for (int i = 0; i < 3; ++i) y[1 + i] = 0.5 * (x[i] + x[3 + i]);
  return true;
}

static void carried_adjoint(void *context, const double *ybar, double *xbar) {
  SnPair *p = context;
  SnContactBar bar = {0};
  sn_real wrench[SN_PAIR_NX] = {0};
  sn_pair_place(p, NULL);
  bar.dist = (sn_real)ybar[0];
  for (int i = 0; i < 3; ++i) {
    bar.pos[i] = (sn_real)ybar[1 + i];
    bar.normal[i] = (sn_real)ybar[4 + i];
  }
  const SnShape a = sn_shape(p->o.m, &p->o.w, p->geom[0]), b = sn_shape(p->o.m, &p->o.w, p->geom[1]);
  sn_collide_surrogate_vjp(&a, &b, p->base, &bar, wrench);
  for (int i = 0; i < SN_PAIR_NX; ++i) xbar[i] += (double)wrench[i];
}

static void surrogate(void **state) {
  (void)state;
  SnPair p = {0};
  sn_pair_load(&p.o, "ellipsoid", "cylinder");
  p.geom[1] = 1;
  p.nearest = -0.01;
  p.farthest = 0.01;
  p.reach = 0.02;
  p.max = 1;
  p.smoothness = 1;
  const SnGradCase c = {.name = "surrogate",
                        .nx = SN_PAIR_NX,
                        .ny = SN_PAIR_NY,
                        .context = &p,
                        .sample = sample,
                        .forward = carried,
                        .adjoint = carried_adjoint};
  sn_gradcheck(&c, 1);
  sn_oracle_free(&p.o);
}

// Pairs up to 1 m apart: the distance against MuJoCo's.
static void ranges_of_distance(void **state) {
  (void)state;
  static const char *const geom[] = {"sphere", "capsule",          "ellipsoid",       "cylinder",
                                     "box",    "mesh' mesh='cube", "mesh' mesh='hull"};
  for (int a = 0; a < 7; ++a)
    for (int b = a; b < 7; ++b) {
      SnPair p = {0};
      double worst = 0, normal = 0;
      int n = 0;
      sn_pair_load(&p.o, geom[a], geom[b]);
      SnOracle *o = &p.o;
      p.geom[1] = 1;
      p.nearest = 0.001;
      p.farthest = 0.999;
      p.reach = 1;
      p.max = 1;
      p.smoothness = 1;
      for (int k = 0; k < 300; ++k) {
        double fromto[6], quat[4], d[3];
        o->m->opt.ccd_tolerance = SN_R(1e-6);
        o->m->opt.ccd_iterations = 35;
        if (!sample(&p)) continue;
        for (int g = 0; g < 2; ++g) {
          mju_copy3(o->d->geom_xpos + 3 * g, p.pos + 3 * g);
          mju_copy(o->d->geom_xmat + 9 * g, p.mat + 9 * g, 9);
          mju_mat2Quat(quat, p.mat + 9 * g);
          for (int i = 0; i < 3; ++i) o->mj->geom_size[3 * g + i] = (double)o->m->geom_size[3 * g + i];
        }
        const double dist = mj_geomDistance(o->mj, o->d, 0, 1, 2, fromto);
        worst = sn_larger(worst, fabs(dist - (double)p.base[0].dist));
        mju_sub3(d, fromto + 3, fromto);
        mju_normalize3(d);
        for (int i = 0; i < 3; ++i) normal = sn_larger(normal, fabs(d[i] - (double)p.base[0].frame[i]) * dist);
        ++n;
      }
      printf("%-18s %-18s %3d poses: dist off by %.1e m, normal by %.1e / dist\n", geom[a], geom[b], n, worst, normal);
      assert_true(n > 250 && worst < SN_TOL(SN_ALIKE(1e-9, 1e-4), 1e-4) && normal < SN_TOL(SN_ALIKE(1e-6, 1e-3), 1e-3));
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
  SnPair p;
  Met met[MET];
  int n, next;
} Tour;

static bool sample_met(void *context) {
  SnPair *p = context;
  Tour *t = context;
  if (t->n == 0) return false;
  const Met *met = t->met + t->next++ % t->n;
  for (int g = 0; g < 2; ++g) p->geom[g] = met->geom[g];
  mju_copy(p->pos, met->pos, 6);
  mju_copy(p->mat, met->mat, 18);
  p->reach = (double)p->o.m->cpair_reach[met->pair];
  p->max = p->o.m->cpair_max[met->pair];
  sn_pair_place(p, NULL);
  p->count = sn_pair_collide(p, p->base);
  if (p->count < 1) return false;
  p->which = sn_oracle_pick(&p->o, p->count);
  const int type1 = p->o.m->geom_type[p->geom[0]], type2 = p->o.m->geom_type[p->geom[1]];
  p->exact = p->base[p->which].feature == SN_FEATURE_NEAREST;
  p->smooth = p->exact && type2 == SN_GEOM_ELLIPSOID && p->base[p->which].dist > SN_R(-1e-3);
  (void)type1;
  return sn_pair_is_believed(p) && sn_pair_is_smooth(p);
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
                          .nx = SN_PAIR_NX,
                          .ny = SN_PAIR_NY,
                          .context = &t,
                          .sample = sample_met,
                          .forward = sn_pair_forward,
                          .adjoint = sn_pair_adjoint,
                          .tolerance = 1e-4,
                          .samples = t.n < 300 ? t.n : 300};
    if (t.n > 0) sn_gradcheck(&c, 1);
    sn_oracle_free(&t.p.o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(smooth_pairs),       cmocka_unit_test(curved_pairs),
                                     cmocka_unit_test(polyhedra),          cmocka_unit_test(loose),
                                     cmocka_unit_test(degenerate),         cmocka_unit_test(surrogate),
                                     cmocka_unit_test(ranges_of_distance), cmocka_unit_test(real_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
