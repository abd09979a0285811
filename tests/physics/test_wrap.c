// Wraps against MuJoCo in random configurations of free bodies, and their properties.
#include <stdio.h>

#include "physics/wrap.h"
#include "tests/harness/actuator_zoo.h"
#include "tests/harness/oracle.h"
#include "tests/harness/tolerance.h"

// Lengths and path points of 2000 random states, wrapped or not as MuJoCo has it.
static void random_states(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_wrap_zoo);
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
  assert_true(fabs((double)sn_wrap(pnt, &winding, a, b, zero, eye, 1, SN_WRAP_CYLINDER, SN_SIDE_OUTSIDE, up) - arc) <
              1e-6);
  assert_true(pnt[1] > 0);
  assert_true(fabs((double)sn_wrap(pnt, &winding, a, b, zero, eye, 1, SN_WRAP_CYLINDER, SN_SIDE_OUTSIDE, down) - arc) <
              1e-6);
  assert_true(pnt[1] < 0);
  assert_true(fabs((double)sn_wrap(pnt, &winding, a, b, zero, eye, 1, SN_WRAP_SPHERE, SN_SIDE_FREE, NULL) - arc) <
              1e-6);
  // endpoints below the circle, side point above: more than half way round
  const sn_real c[3] = {-2, SN_R(-1.5), 0}, e[3] = {2, SN_R(-1.5), 0};
  assert_true(sn_wrap(pnt, &winding, c, e, zero, eye, 1, SN_WRAP_CYLINDER, SN_SIDE_FREE, NULL) < 0);
  assert_true(sn_wrap(pnt, &winding, c, e, zero, eye, 1, SN_WRAP_CYLINDER, SN_SIDE_OUTSIDE, down) < 0);
  const double alpha = acos(1 / 2.5), turn = 3.14159265358979323846 + 2 * atan2(1.5, 2);
  assert_true(fabs((double)sn_wrap(pnt, &winding, c, e, zero, eye, 1, SN_WRAP_CYLINDER, SN_SIDE_OUTSIDE, up) -
                   (turn - 2 * alpha)) < 1e-6);
  // a point inside
  const sn_real inside[3] = {SN_R(0.1), 0, 0};
  assert_true(sn_wrap(pnt, &winding, a, inside, zero, eye, 1, SN_WRAP_SPHERE, SN_SIDE_FREE, NULL) < 0);
}

static sn_real path_length(const sn_real *a, const sn_real *b, int type, const sn_real *side) {
  const sn_real zero[3] = {0}, eye[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  sn_real pnt[6], sum = 0;
  int turn;
  const sn_real arc =
      sn_wrap(pnt, &turn, a, b, zero, eye, SN_R(0.5), type, side ? SN_SIDE_OUTSIDE : SN_SIDE_FREE, side);
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
      const sn_real before = sn_wrap(pnt, &turn, a, b, zero, eye, radius, type, rule, sides[k]);
      const sn_real after = sn_wrap(moved, &turn, y[0], y[1], shift, mat, radius, type, rule, sides[k]);
      assert_true(before >= 0);
      assert_true(fabs((double)(before - after)) < SN_TOL(1e-12, 1e-5));
    }
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_values), cmocka_unit_test(continuous),
                                     cmocka_unit_test(rigid_motion), cmocka_unit_test(random_states)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
