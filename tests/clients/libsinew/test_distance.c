// Distances of two geoms through sinew.h: those of a body against mj_geomDistance and their Jacobians against
// differences, filtered pairs and geoms that no stage needs among them; at any poses; refusals.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/clients/libsinew/pair_fixture.h"

enum { SEED = 11, ROWS = 10, MOST = 64 };

// dist, from, to, normal
static void flatten(const SinewDistance *d, double *y) {
  y[0] = d->dist;
  mju_copy3(y + 1, d->from);
  mju_copy3(y + 4, d->to);
  mju_copy3(y + 7, d->normal);
}

static void measure(BodyPair *b, const int geom[2], double *y) {
  SinewDistance d;
  body_ok(b, sinew_forward(b->data, &b->err));
  body_ok(b, sinew_geom_distance(b->data, geom[0], geom[1], 10, &d, &b->err));
  flatten(&d, y);
}

// Moves qpos of both by h along dof i.
static void move(BodyPair *b, const double *qpos, int i, double h) {
  double step[MOST] = {0};
  step[i] = h;
  mju_copy(b->o.d->qpos, qpos, b->o.mj->nq);
  mj_integratePos(b->o.mj, b->o.d->qpos, step, 1);
  body_follow(b);
}

// Compares the Jacobian with differences. Returns false near a kink.
static bool check_jacobian(BodyPair *b, const int geom[2], const double *jac, double *worst) {
  const double h = 1e-6;
  double qpos[MOST + 8], largest = 1, error = 0, rough = 0;
  const int nv = b->o.mj->nv;
  mju_copy(qpos, b->o.d->qpos, b->o.mj->nq);
  for (int i = 0; i < nv; ++i) {
    double y[4][ROWS];
    for (int k = 0; k < 4; ++k) {
      move(b, qpos, i, (k % 2 ? -h : h) * (k < 2 ? 1 : 4));
      measure(b, geom, y[k]);
    }
    for (int row = 0; row < ROWS; ++row) {
      const double d = (y[0][row] - y[1][row]) / (2 * h);
      rough = sn_larger(rough, fabs(d - (y[2][row] - y[3][row]) / (8 * h)));
      largest = sn_larger(largest, fabs(d));
      error = sn_larger(error, fabs(d - jac[nv * row + i]));
    }
  }
  move(b, qpos, 0, 0);
  if (rough > 1e-6 * largest) return false;
  *worst = sn_larger(*worst, error / largest);
  return true;
}

static void of_a_body(void **state) {
  (void)state;
  BodyPair b;
  int count = 0, compared = 0, kinks = 0;
  double dist = 0, worst = 0;
  body_open(&b, 4);
  b.o.rng = SEED;
  const int nv = b.o.mj->nv;
  assert_true(nv <= MOST);
  for (int k = 0; k < 60; ++k) {
    double fromto[6], jac[ROWS * MOST], y[ROWS];
    SinewDistance d;
    int geom[2];
    body_sample(&b, 0);
    do
      for (int i = 0; i < 2; ++i) geom[i] = sn_oracle_pick(&b.o, b.o.mj->ngeom);
    while (b.o.mj->geom_bodyid[geom[0]] == b.o.mj->geom_bodyid[geom[1]]);
    mj_forward(b.o.mj, b.o.d);
    const double ref = mj_geomDistance(b.o.mj, b.o.d, geom[0], geom[1], 10, fromto);
    measure(&b, geom, y);
    const SinewDistanceJacobian all = {jac, jac + nv, jac + 4 * nv, jac + 7 * nv};
    body_ok(&b, sinew_geom_distance_jacobian(b.data, geom[0], geom[1], 10, &d, &all, &b.err));
    // MuJoCo's depth is that of a contact where the axis of a capsule enters a box
    const int *type = b.o.mj->geom_type, box = type[geom[0]] == mjGEOM_BOX ? 0 : 1, rod = geom[1 - box];
    const bool pierced =
        type[geom[box]] == mjGEOM_BOX && type[rod] == mjGEOM_CAPSULE && d.dist < -b.o.mj->geom_size[3 * rod];
    if (!pierced) dist = sn_larger(dist, fabs(d.dist - ref));
    compared += !pierced;
    assert_true(d.dist == y[0]);
    ++count;
    kinks += !check_jacobian(&b, geom, jac, &worst);
  }
  printf("seed %d: %d of %d distances differ by %.2g m from MuJoCo's, Jacobians by %.2g, %d near a kink\n", SEED,
         compared, count, dist, worst, kinks);
  assert_true(compared > count / 2);
  assert_true(dist < 1e-9);
  assert_true(worst < 1e-6);
  assert_true(kinks < count / 4);
  body_close(&b);
}

static void parts(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 4);
  body_sample(&b, 0);
  double dist[MOST], all[ROWS * MOST], to[3 * MOST], y[ROWS];
  const int geom[2] = {1, 3}, nv = b.o.mj->nv;
  SinewDistance d;
  measure(&b, geom, y);
  const SinewDistanceJacobian each = {all, all + nv, all + 4 * nv, all + 7 * nv}, some = {dist, NULL, to, NULL};
  body_ok(&b, sinew_geom_distance_jacobian(b.data, 1, 3, 10, NULL, &each, &b.err));
  body_ok(&b, sinew_geom_distance_jacobian(b.data, 1, 3, 10, NULL, &some, &b.err));
  assert_memory_equal(dist, all, sizeof *dist * (size_t)nv);
  assert_memory_equal(to, all + 4 * nv, sizeof *to * 3 * (size_t)nv);
  body_ok(&b, sinew_geom_distance_jacobian(b.data, 1, 3, y[0] - 1e-6, &d, &each, &b.err));  // beyond the limit
  assert_true(d.dist == y[0] - 1e-6);
  for (int i = 0; i < 3; ++i) assert_true(d.from[i] == 0 && d.to[i] == 0 && d.normal[i] == 0);
  for (int i = 0; i < ROWS * nv; ++i) assert_true(all[i] == 0);
  body_close(&b);
}

// The poses that the body has give its distance; the Jacobian is that of displacements and turns.
static void at_poses(void **state) {
  (void)state;
  BodyPair b;
  double worst = 0;
  body_open(&b, 4);
  b.o.rng = SEED;
  for (int k = 0; k < 40; ++k) {
    SinewGeomPose pose[2];
    SinewDistance d, again;
    double jac[ROWS * 12], y[ROWS];
    body_sample(&b, 0);
    mj_forward(b.o.mj, b.o.d);
    int geom[2];
    for (int i = 0; i < 2; ++i) geom[i] = i == 0 ? 1 : 2 + k % 4;
    measure(&b, geom, y);
    for (int i = 0; i < 2; ++i) {
      pose[i].geom = geom[i];
      mju_copy3(pose[i].pos, b.o.d->geom_xpos + 3 * geom[i]);
      mju_mat2Quat(pose[i].quat, b.o.d->geom_xmat + 9 * geom[i]);
      mju_scl(pose[i].quat, pose[i].quat, 3, 4);  // of any length
    }
    const SinewDistanceJacobian all = {jac, jac + 12, jac + 48, jac + 84};
    body_ok(&b, sinew_geom_distance_at(b.model, pose, pose + 1, 10, &d, &all, &b.err));
    assert_true(fabs(d.dist - y[0]) < 1e-12);
    double largest = 1;
    for (int i = 0; i < 12; ++i) {
      double e[2][ROWS];
      for (int side = 0; side < 2; ++side) {
        const double h = side ? -1e-6 : 1e-6;
        SinewGeomPose moved[2] = {pose[0], pose[1]};
        double turn[4], axis[3] = {0};
        axis[i % 3] = 1;
        mju_axisAngle2Quat(turn, axis, h);
        if (i % 6 < 3)
          moved[i / 6].pos[i % 3] += h;
        else
          mju_mulQuat(moved[i / 6].quat, turn, pose[i / 6].quat);
        body_ok(&b, sinew_geom_distance_at(b.model, moved, moved + 1, 10, &again, NULL, &b.err));
        flatten(&again, e[side]);
      }
      for (int row = 0; row < ROWS; ++row) {
        const double slope = (e[0][row] - e[1][row]) / 2e-6;
        largest = sn_larger(largest, fabs(slope));
        worst = sn_larger(worst, fabs(slope - jac[12 * row + i]) / largest);
      }
    }
  }
  printf("seed %d: Jacobians by poses differ by %.2g\n", SEED, worst);
  assert_true(worst < 1e-5);
  body_close(&b);
}

static void expect(const BodyPair *b, SinewStatus status, SinewStatus wanted, const char *text) {
  assert_int_equal(status, wanted);
  assert_int_equal(b->err.status, wanted);
  if (!strstr(b->err.text, text)) fail_msg("'%s' is not in: %s", text, b->err.text);
}

static void refusals(void **state) {
  (void)state;
  BodyPair b;
  SinewDistance d;
  SinewDistanceJacobian none = {0};
  SinewGeomPose pose[2] = {{.geom = 0, .quat = {1}}, {.geom = 1, .quat = {1}}};
  body_open_string(&b,
                   "<mujoco><worldbody><geom name='a' type='plane' size='1 1 1'/><geom name='b' type='plane' "
                   "size='1 1 1'/><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>");
  expect(&b, sinew_geom_distance(b.data, 0, 2, 1, &d, &b.err), SINEW_ERR_STATE, "sinew_forward");
  body_ok(&b, sinew_forward(b.data, &b.err));
  body_ok(&b, sinew_geom_distance(b.data, 0, 2, 1, &d, &b.err));
  expect(&b, sinew_geom_distance(b.data, 0, 1, 1, &d, &b.err), SINEW_ERR_UNSUPPORTED, "'a' (plane)");
  expect(&b, sinew_geom_distance(NULL, 0, 2, 1, &d, &b.err), SINEW_ERR_ARGUMENT, "data is NULL");
  expect(&b, sinew_geom_distance(b.data, 0, 2, 1, NULL, &b.err), SINEW_ERR_ARGUMENT, "distance is NULL");
  expect(&b, sinew_geom_distance(b.data, 0, 3, 1, &d, &b.err), SINEW_ERR_ARGUMENT, "geom2 is 3");
  expect(&b, sinew_geom_distance(b.data, -1, 2, 1, &d, &b.err), SINEW_ERR_ARGUMENT, "geom1 is -1");
  expect(&b, sinew_geom_distance(b.data, 0, 2, NAN, &d, &b.err), SINEW_ERR_ARGUMENT, "limit");
  expect(&b, sinew_geom_distance_jacobian(b.data, 0, 2, 1, &d, NULL, &b.err), SINEW_ERR_ARGUMENT, "jacobian is NULL");
  expect(&b, sinew_geom_distance_jacobian(NULL, 0, 2, 1, &d, &none, &b.err), SINEW_ERR_ARGUMENT, "data is NULL");
  assert_int_equal(sinew_geom_distance(b.data, 0, 1, 1, &d, NULL), SINEW_ERR_UNSUPPORTED);

  pose[1].geom = 2;
  body_ok(&b, sinew_geom_distance_at(b.model, pose, pose + 1, 1, NULL, &none, &b.err));
  expect(&b, sinew_geom_distance_at(NULL, pose, pose + 1, 1, &d, NULL, &b.err), SINEW_ERR_ARGUMENT, "model is NULL");
  expect(&b, sinew_geom_distance_at(b.model, NULL, pose + 1, 1, &d, NULL, &b.err), SINEW_ERR_ARGUMENT, "first is NULL");
  expect(&b, sinew_geom_distance_at(b.model, pose, NULL, 1, &d, NULL, &b.err), SINEW_ERR_ARGUMENT, "second is NULL");
  pose[1].quat[0] = 0;
  expect(&b, sinew_geom_distance_at(b.model, pose, pose + 1, 1, &d, NULL, &b.err), SINEW_ERR_ARGUMENT, "not zero");
  pose[1].quat[0] = NAN;
  expect(&b, sinew_geom_distance_at(b.model, pose, pose + 1, 1, &d, NULL, &b.err), SINEW_ERR_ARGUMENT, "second");
  pose[1].quat[0] = 1e-300;
  body_ok(&b, sinew_geom_distance_at(b.model, pose, pose + 1, 1, &d, NULL, &b.err));
  pose[0].pos[2] = INFINITY;
  expect(&b, sinew_geom_distance_at(b.model, pose, pose + 1, 1, &d, NULL, &b.err), SINEW_ERR_ARGUMENT, "first");
  pose[0].geom = 3;
  expect(&b, sinew_geom_distance_at(b.model, pose, pose + 1, 1, &d, NULL, &b.err), SINEW_ERR_ARGUMENT, "first->geom");
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_a_body), cmocka_unit_test(parts), cmocka_unit_test(at_poses),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
