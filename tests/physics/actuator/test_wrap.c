// Wraps against MuJoCo in random configurations of free bodies, and their properties.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "tests/support/actuator_models.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

// Lengths and path points of 2000 random states, wrapped or not as MuJoCo has it.
static void random_states(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_wrap_xml);
  sn_model_need_all(o.m);
  int on[9] = {0};
  for (int k = 0; k < 2000; ++k) {
    sn_oracle_randomize(&o, 1);
    mj_forward(o.mj, o.d);
    sn_oracle_fill(&o);
    sn_world_poison(o.m, &o.w, SN_STAGE_TENDON);
    sn_tendon(o.m, &o.w, &o.lane);
    sn_oracle_check("ten_length", o.w.ten_length, o.d->ten_length, o.m->ntendon, SN_TOL_TENDON);
    sn_oracle_check("ten_J", o.w.ten_J, o.d->ten_J, o.m->nJten, SN_TOL_MOMENT);
    bool same = true;  // in float a path may touch when MuJoCo's does not
    for (int t = 0; t < o.m->ntendon; ++t) same = same && o.w.ten_wrapnum[t] == o.d->ten_wrapnum[t];
    if (!same && sizeof(sn_real) == sizeof(float)) continue;
    for (int t = 0; t < o.m->ntendon; ++t) {
      assert_int_equal(o.w.ten_wrapnum[t], o.d->ten_wrapnum[t]);
      assert_int_equal(o.w.ten_wrapadr[t], o.d->ten_wrapadr[t]);
      on[t] += o.w.ten_wrapnum[t] == 4;
    }
    const int points = o.w.ten_wrapadr[8] + o.w.ten_wrapnum[8];
    sn_oracle_check("wrap_xpos", o.w.wrap_xpos, o.d->wrap_xpos, 3 * points, SN_TOL_TENDON);
    for (int i = 0; i < points; ++i) assert_int_equal(o.w.wrap_obj[i], o.d->wrap_obj[i]);
  }
  for (int t = 0; t < 9; ++t) {
    print_message("tendon %d wraps in %d of 2000 states\n", t, on[t]);
    assert_in_range(on[t], 100, 1900);
  }
  sn_oracle_free(&o);
}

// Known path: endpoints at distance 2 either side of a unit circle, half way round.
static void known_values(void **state) {
  (void)state;
  const sn_real zero[3] = {0}, eye[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const sn_real a[3] = {-2, 0, 0}, b[3] = {2, 0, 0}, up[3] = {0, 2, 0}, down[3] = {0, -2, 0};
  const double arc = 3.14159265358979323846 / 3;  // pi - 2 acos(1/2)
  sn_real pnt[6];
  int winding;
  assert_true(
      fabs((double)sn_wrap(pnt, &winding, a, b, &(SnWrapGeom){zero, eye, up, 1, SN_WRAP_CYLINDER, SN_SIDE_OUTSIDE}) -
           arc) < 1e-6);
  assert_true(pnt[1] > 0);
  assert_true(
      fabs((double)sn_wrap(pnt, &winding, a, b, &(SnWrapGeom){zero, eye, down, 1, SN_WRAP_CYLINDER, SN_SIDE_OUTSIDE}) -
           arc) < 1e-6);
  assert_true(pnt[1] < 0);
  assert_true(
      fabs((double)sn_wrap(pnt, &winding, a, b, &(SnWrapGeom){zero, eye, NULL, 1, SN_WRAP_SPHERE, SN_SIDE_FREE}) -
           arc) < 1e-6);
  // endpoints below the circle, side point above: more than half way round
  const sn_real c[3] = {-2, SN_R(-1.5), 0}, e[3] = {2, SN_R(-1.5), 0};
  assert_true(sn_wrap(pnt, &winding, c, e, &(SnWrapGeom){zero, eye, NULL, 1, SN_WRAP_CYLINDER, SN_SIDE_FREE}) < 0);
  assert_true(sn_wrap(pnt, &winding, c, e, &(SnWrapGeom){zero, eye, down, 1, SN_WRAP_CYLINDER, SN_SIDE_OUTSIDE}) < 0);
  const double alpha = acos(1 / 2.5), turn = 3.14159265358979323846 + 2 * atan2(1.5, 2);
  assert_true(
      fabs((double)sn_wrap(pnt, &winding, c, e, &(SnWrapGeom){zero, eye, up, 1, SN_WRAP_CYLINDER, SN_SIDE_OUTSIDE}) -
           (turn - 2 * alpha)) < 1e-6);
  // a point inside
  const sn_real inside[3] = {SN_R(0.1), 0, 0};
  assert_true(sn_wrap(pnt, &winding, a, inside, &(SnWrapGeom){zero, eye, NULL, 1, SN_WRAP_SPHERE, SN_SIDE_FREE}) < 0);
}

static sn_real path_length(const sn_real *a, const sn_real *b, int type, const sn_real *side) {
  const sn_real zero[3] = {0}, eye[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  sn_real pnt[6], sum = 0;
  int turn;
  const sn_real arc =
      sn_wrap(pnt, &turn, a, b, &(SnWrapGeom){zero, eye, side, SN_R(0.5), type, side ? SN_SIDE_OUTSIDE : SN_SIDE_FREE});
  const sn_real *from[2] = {a, arc < 0 ? b : pnt + 3}, *to[2] = {arc < 0 ? b : pnt, b};
  for (int k = 0; k < 2; ++k) {
    sn_real ss = 0;
    for (int i = 0; i < 3; ++i) ss += (to[k][i] - from[k][i]) * (to[k][i] - from[k][i]);
    sum += sn_sqrt(ss);
  }
  return sum + (arc < 0 ? 0 : arc);
}

// An endpoint passes the circle: the length changes by no more than the endpoint moves, on and off. A sphere with a
// side point is left out near antipodal endpoints, where its wrapping plane swings.
static void continuous(void **state) {
  (void)state;
  const sn_real a[3] = {-1, SN_R(0.1), SN_R(0.3)}, side[3] = {0, SN_R(0.7), 0};
  const int n = 20000;
  for (int type = SN_WRAP_SPHERE; type <= SN_WRAP_CYLINDER; ++type)
    for (int with_side = 0; with_side < 2; ++with_side) {
      sn_real last = 0;
      for (int i = 0; i <= n; ++i) {
        // from above the circle, past its right, to below: the winding passes half a turn
        const double phi = 1.4 - (type == SN_WRAP_SPHERE && with_side ? 1.2 : 2.4) * i / n;
        const sn_real b[3] = {(sn_real)(1.2 * cos(phi)), (sn_real)(1.2 * sin(phi)), SN_R(-0.2)};
        const sn_real length = path_length(a, b, type, with_side ? side : NULL);
        if (i > 0) assert_true(fabs((double)(length - last)) <= 1.2 * 2.4 / n * 1.001 + SN_TOL(0, 4e-6));
        last = length;
      }
    }
}

// The path moves with the scene.
static void rigid_motion(void **state) {
  (void)state;
  const sn_real zero[3] = {0}, eye[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const sn_real a[3] = {SN_R(-0.9), SN_R(0.2), SN_R(0.3)}, b[3] = {SN_R(0.8), SN_R(-0.1), SN_R(-0.2)};
  const sn_real sides[2][3] = {{SN_R(0.1), SN_R(0.7), SN_R(0.2)}, {SN_R(0.005), SN_R(0.002), 0}};
  const double c = cos(0.7), s = sin(0.7);
  const sn_real mat[9] = {(sn_real)c, 0, (sn_real)s, 0, 1, 0, (sn_real)-s, 0, (sn_real)c}, shift[3] = {3, -2, 1};
  for (int type = SN_WRAP_SPHERE; type <= SN_WRAP_CYLINDER; ++type)
    for (int k = 0; k < 2; ++k) {
      const sn_real *x[2] = {a, b};
      sn_real y[2][3], pnt[6], moved[6];
      int turn;
      for (int p = 0; p < 2; ++p)
        for (int i = 0; i < 3; ++i)
          y[p][i] = shift[i] + mat[3 * i] * x[p][0] + mat[3 * i + 1] * x[p][1] + mat[3 * i + 2] * x[p][2];
      const int rule = k == 0 ? SN_SIDE_OUTSIDE : SN_SIDE_INSIDE;
      const sn_real radius = k == 0 ? SN_R(0.5) : SN_R(0.02);
      const sn_real before = sn_wrap(pnt, &turn, a, b, &(SnWrapGeom){zero, eye, sides[k], radius, type, rule});
      const sn_real after = sn_wrap(moved, &turn, y[0], y[1], &(SnWrapGeom){shift, mat, sides[k], radius, type, rule});
      assert_true(before >= 0);
      assert_true(fabs((double)(before - after)) < SN_TOL(1e-12, 1e-5));
    }
}

// A wrap of two points x[6] about a geom at the origin, in the frame kFrame.
typedef struct Path {
  double x[6], touch[3];
  int type, rule, turn;
  sn_real side[3];
} Path;

static const double kRadius = 0.05;
static const sn_real kFrame[9] = {SN_R(0.36), SN_R(0.48), SN_R(-0.8), SN_R(-0.8), SN_R(0.6),
                                  0,          SN_R(0.48), SN_R(0.64), SN_R(0.6)};

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// Sum of the distances from x and x + 3 to p.touch's direction turned by phi in the plane of (e, f): the touching
// point.
static double bent(const Path *p, const double *e, const double *f, double phi, double *c) {
  double sum = 0;
  for (int k = 0; k < 3; ++k) c[k] = kRadius * (cos(phi) * e[k] + sin(phi) * f[k]);
  for (int i = 0; i < 2; ++i) {
    double d[3];
    for (int k = 0; k < 3; ++k) d[k] = p->x[3 * i + k] - c[k];
    sum += sqrt(dot(d, d));
  }
  return sum;
}

// Length of an inside wrap, whose touching point is searched for to the last digits: the circle of the plane (e, f) is
// scanned, then the shortest path found by sections. x lies in that plane.
static double shortest(Path *p, const double *e, const double *f) {
  double c[3], best = 0;
  for (int i = 1; i < 720; ++i)
    if (bent(p, e, f, i * 3.14159265358979323846 / 360, c) < bent(p, e, f, best * 3.14159265358979323846 / 360, c))
      best = i;
  double lo = (best - 1) * 3.14159265358979323846 / 360, hi = (best + 1) * 3.14159265358979323846 / 360;
  // the slope's zero, because the length itself is flat there
  for (int i = 0; i < 100; ++i) {
    const double mid = 0.5 * (lo + hi), t[3] = {cos(mid) * f[0] - sin(mid) * e[0], cos(mid) * f[1] - sin(mid) * e[1],
                                                cos(mid) * f[2] - sin(mid) * e[2]};
    double slope = 0;
    bent(p, e, f, mid, c);
    for (int k = 0; k < 2; ++k) {
      double d[3];
      for (int j = 0; j < 3; ++j) d[j] = c[j] - p->x[3 * k + j];
      slope += dot(d, t) / sqrt(dot(d, d));
    }
    if (slope > 0)
      hi = mid;
    else
      lo = mid;
  }
  const double sum = bent(p, e, f, lo, c);
  memcpy(p->touch, c, sizeof c);
  return sum;
}

static void orthonormal(double *e, double *f, const double *a, const double *b) {
  const double len = sqrt(dot(a, a));
  double across = 0;
  for (int k = 0; k < 3; ++k) e[k] = a[k] / len;
  for (int k = 0; k < 3; ++k) f[k] = b[k] - dot(e, b) * e[k];
  across = sqrt(dot(f, f));
  for (int k = 0; k < 3; ++k) f[k] /= across;
}

// Length of the path at p->x, touching points and winding; negative: free.
static double exact_length(Path *p) {
  const sn_real zero[3] = {0};
  sn_real pnt[6], x[6];
  for (int k = 0; k < 6; ++k) x[k] = (sn_real)p->x[k];
  const SnWrapGeom geom = {zero, kFrame, p->side, (sn_real)kRadius, p->type, p->rule};
  const double arc = (double)sn_wrap(pnt, &p->turn, x, x + 3, &geom);
  if (arc < 0) return -1;
  double e[3], f[3];
  if (p->rule == SN_SIDE_INSIDE) {
    if (p->type == SN_WRAP_SPHERE) {
      orthonormal(e, f, p->x, p->x + 3);
      return shortest(p, e, f);
    }
    const double axis[3] = {(double)kFrame[2], (double)kFrame[5], (double)kFrame[8]};
    const double dz = dot(axis, p->x + 3) - dot(axis, p->x);
    Path flat = *p;
    for (int i = 0; i < 2; ++i)
      for (int k = 0; k < 3; ++k) flat.x[3 * i + k] -= dot(axis, p->x + 3 * i) * axis[k];
    orthonormal(e, f, flat.x, flat.x + 3);
    const double planar = shortest(&flat, e, f);
    memcpy(p->touch, flat.touch, sizeof p->touch);
    return sqrt(planar * planar + dz * dz);
  }
  double sum = arc;
  for (int i = 0; i < 2; ++i) {
    double d[3];
    for (int k = 0; k < 3; ++k) d[k] = p->x[3 * i + k] - (double)pnt[3 * i + k];
    sum += sqrt(dot(d, d));
  }
  return sum;
}

// Gradient and its change when the ends move at y.
static void gradient_and_hvp(Path *p, const double *y, double *g, double *h) {
  const double length = exact_length(p);
  sn_real xs[6], ys[6], gs[6], hs[6], touch[3];
  for (int k = 0; k < 6; ++k) {
    xs[k] = (sn_real)p->x[k];
    ys[k] = (sn_real)y[k];
  }
  for (int k = 0; k < 3; ++k) touch[k] = (sn_real)p->touch[k];
  sn_wrap_hvp(gs, hs, xs, ys, &(SnWrapGeom){.mat = kFrame, .radius = (sn_real)kRadius, .type = p->type},
              &(SnWrapPath){touch, (sn_real)length, p->turn});
  for (int k = 0; k < 6; ++k) {
    g[k] = (double)gs[k];
    h[k] = (double)hs[k];
  }
}

// Draws path n and a direction y (6) to move its ends in. False: there is no such path, or one whose ends are close to
// the surface or nearly opposite, which have large higher derivatives.
static bool draw_regular(SnOracle *o, int n, Path *p, double *y) {
  const double axis[3] = {(double)kFrame[2], (double)kFrame[5], (double)kFrame[8]};
  *p = (Path){.type = n & 1 ? SN_WRAP_SPHERE : SN_WRAP_CYLINDER,
              .rule = n % 3 == 0   ? SN_SIDE_INSIDE
                      : n % 3 == 1 ? SN_SIDE_OUTSIDE
                                   : SN_SIDE_FREE};
  for (int k = 0; k < 6; ++k) {
    p->x[k] = 0.12 * sn_oracle_uniform(o);
    y[k] = sn_oracle_uniform(o);
  }
  for (int k = 0; k < 3; ++k)
    p->side[k] = (sn_real)(p->rule == SN_SIDE_INSIDE ? 0.1 : 1) * (sn_real)(0.1 * sn_oracle_uniform(o));
  if (exact_length(p) < 0) return false;
  for (int i = 0; i < 2; ++i) {
    const double along = dot(axis, p->x + 3 * i), up = p->type == SN_WRAP_CYLINDER ? along : 0;
    if (!(dot(p->x + 3 * i, p->x + 3 * i) - up * up > 1.2 * kRadius * kRadius)) return false;
  }
  double e[3], f[3];
  orthonormal(e, f, p->x, p->x + 3);
  return fabs(dot(f, p->x + 3)) > 0.01;
}

// Compares the gradient and its Hessian-vector product with y with central differences. False: the path takes another
// turn near by. Raises *worst to the largest difference.
static bool compare_differences(Path *p, const double *y, int n, double *worst) {
  const double step = 1e-6;
  double g[6], h[6], gs[2][6], unused[6], length[2], along = 0;
  gradient_and_hvp(p, y, g, h);
  for (int side = 0; side < 2; ++side) {
    Path q = *p;
    for (int k = 0; k < 6; ++k) q.x[k] += (side ? step : -step) * y[k];
    length[side] = exact_length(&q);
    if (length[side] < 0 || q.turn != p->turn) return false;
    gradient_and_hvp(&q, y, gs[side], unused);
  }
  for (int k = 0; k < 6; ++k) {
    along += g[k] * y[k];
    const double expected = (gs[1][k] - gs[0][k]) / (2 * step);
    *worst = sn_larger(*worst, fabs(h[k] - expected) / (1 + fabs(h[k])));
    if (!(fabs(h[k] - expected) <= 1e-5 * (1 + fabs(h[k]))))
      fail_msg("path %d, type %d, turn %d: change of gradient[%d] %.12g, difference %.12g", n, p->type, p->turn, k,
               h[k], expected);
  }
  assert_true(fabs(along - (length[1] - length[0]) / (2 * step)) < 1e-7);
  return true;
}

// Gradients of lengths and their changes, of every kind of wrap, against central differences of exact lengths.
static void gradients_and_hvps(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  SnOracle o = {.rng = 7};
  int compared[2][2][3] = {{{0}}};
  double worst = 0, y[6];
  for (int n = 0; n < 40000; ++n) {
    Path p;
    if (draw_regular(&o, n, &p, y) && compare_differences(&p, y, n, &worst))
      ++compared[p.type == SN_WRAP_SPHERE][p.rule == SN_SIDE_OUTSIDE][p.turn + 1];
  }
  print_message("seed 7, largest difference %.3g\n", worst);
  for (int type = 0; type < 2; ++type)
    for (int outside = 0; outside < 2; ++outside)
      for (int turn = -1; turn <= 1; ++turn) {
        const bool inside = turn == 0, longer = type == 1 && turn == -1;
        print_message("type %d, side %d, turn %d: %d compared\n", type, outside, turn,
                      compared[type][outside][turn + 1]);
        if ((inside && outside) || (longer && !outside)) continue;
        assert_true(compared[type][outside][turn + 1] > 20);
      }
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_values), cmocka_unit_test(continuous),
                                     cmocka_unit_test(rigid_motion), cmocka_unit_test(random_states),
                                     cmocka_unit_test(gradients_and_hvps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
