// Derivatives by the entries of qpos: those of functions of rotations, by differences of the entries and of turns.
#include <stdio.h>

#include "clients/libsinew/coordinates_private.h"
#include "physics/base/vec.h"
#include "tests/support/oracle.h"

static const char joints[] =
    "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body><body><joint type='slide'/><joint type='hinge'/>"
    "<geom size='.1'/><body><joint type='ball'/><geom size='.1'/></body></body></worldbody></mujoco>";

enum { NQ = 13, NV = 11, SAMPLES = 50 };

// A smooth function of the positions: of the rotations that quaternions stand for, whatever their length.
static double number_of(const double *weight, const double *qpos) {
  static const int plain[] = {0, 1, 2, 7, 8}, turn[] = {3, 9};
  double sum = 0;
  for (int i = 0; i < 5; ++i) sum += sin(weight[i] * qpos[plain[i]]);
  for (int i = 0; i < 2; ++i) {
    double q[4], mat[9];
    sn_copy4(q, qpos + turn[i]);
    sn_normalize4(q);
    sn_quat2mat(mat, q);
    for (int k = 0; k < 9; ++k) sum += weight[5 + 9 * i + k] * mat[k] + mat[k] * mat[(k + 1) % 9];
  }
  return sum;
}

static double by_entry(const double *weight, const double *qpos, int i) {
  double moved[NQ], value[2];
  for (int side = 0; side < 2; ++side) {
    memcpy(moved, qpos, sizeof moved);
    moved[i] += side ? 1e-6 : -1e-6;
    value[side] = number_of(weight, moved);
  }
  return (value[1] - value[0]) / 2e-6;
}

static double by_tangent(const mjModel *mj, const double *weight, const double *qpos, int i) {
  double moved[NQ], value[2], v[NV] = {0};
  for (int side = 0; side < 2; ++side) {
    memcpy(moved, qpos, sizeof moved);
    v[i] = side ? 1e-6 : -1e-6;
    mj_integratePos(mj, moved, v, 1);
    value[side] = number_of(weight, moved);
  }
  return (value[1] - value[0]) / 2e-6;
}

static void differences(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, joints);
  assert_true(o.m->nq == NQ && o.m->nv == NV);
  for (int sample = 0; sample < SAMPLES; ++sample) {
    double weight[23], qpos[NQ], array_bar[NQ], tangent_bar[NV], back[NV];
    for (int i = 0; i < 23; ++i) weight[i] = sn_oracle_uniform(&o);
    for (int i = 0; i < NQ; ++i) qpos[i] = 2 * sn_oracle_uniform(&o);  // quaternions of any length
    for (int i = 0; i < NV; ++i) tangent_bar[i] = by_tangent(o.mj, weight, qpos, i);
    api_bar_of_array(o.m, qpos, tangent_bar, array_bar);
    double along = 0;
    for (int i = 0; i < NQ; ++i) {
      const double expected = by_entry(weight, qpos, i);
      if (!(fabs(array_bar[i] - expected) <= 1e-6 * (1 + fabs(expected))))
        fail_msg("sample %d: by entry %d it is %g, by differences %g", sample, i, array_bar[i], expected);
      along += i >= 9 ? array_bar[i] * qpos[i] : 0;
    }
    assert_true(fabs(along) < 1e-12);
    api_bar_of_tangent(o.m, qpos, array_bar, back);
    for (int i = 0; i < NV; ++i) assert_true(fabs(back[i] - tangent_bar[i]) <= 1e-12 * (1 + fabs(back[i])));
    // a part along a quaternion is lost
    for (int i = 9; i < NQ; ++i) array_bar[i] += 3 * qpos[i];
    api_bar_of_tangent(o.m, qpos, array_bar, back);
    for (int i = 0; i < NV; ++i) assert_true(fabs(back[i] - tangent_bar[i]) <= 1e-11 * (1 + fabs(back[i])));
  }
  // no rotation: no derivative by it
  const double zero[NQ] = {0}, ones[NV] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  double bar[NQ];
  api_bar_of_array(o.m, zero, ones, bar);
  for (int i = 0; i < NQ; ++i) assert_true(bar[i] == (i < 3 || i == 7 || i == 8 ? 1 : 0));
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(differences)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
