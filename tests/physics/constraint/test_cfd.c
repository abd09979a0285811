// Contacts from distance in the forward direction: which pairs make rows, at what distance, how strong.
#include <math.h>
#include <stdio.h>

#include "physics/step/step.h"
#include "tests/support/oracle.h"

// What float arithmetic adds to tolerances.
static const bool single = sizeof(sn_real) == sizeof(float);

static SnCfd paper(void) {
  const SnCfd cfd = {.on = 1, .solimp = {0, SN_R(0.1), 1, SN_R(0.5), 2}, .width = SN_R(0.002)};
  return cfd;
}

// One of every kind of geom on free bodies, over a plane.
static const char kShapes[] =
    "<mujoco><asset><mesh name='m' vertex='0 0 0  .1 0 0  0 .12 0  0 0 .09  .08 .07 .06'/></asset>"
    "<worldbody><geom name='floor' type='plane' size='5 5 .1'/>"
    "<body pos='0 0 1'><freejoint/><geom type='sphere' size='.05'/></body>"
    "<body pos='.5 0 1'><freejoint/><geom type='capsule' size='.04 .1'/></body>"
    "<body pos='0 .5 1'><freejoint/><geom type='capsule' size='.03 .07'/></body>"
    "<body pos='.5 .5 1'><freejoint/><geom type='ellipsoid' size='.05 .08 .03'/></body>"
    "<body pos='-.5 0 1'><freejoint/><geom type='cylinder' size='.05 .08'/></body>"
    "<body pos='-.5 .5 1'><freejoint/><geom type='box' size='.05 .08 .03'/></body>"
    "<body pos='0 -.5 1'><freejoint/><geom type='box' size='.03 .04 .06'/></body>"
    "<body pos='.5 -.5 1'><freejoint/><geom type='mesh' mesh='m'/></body>"
    "</worldbody></mujoco>";

// Every pair that takes part and is within reach has one row, at MuJoCo's distance of the two geoms.
static void distances(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kShapes);
  *o.w.cfd = paper();
  int compared = 0;
  double worst = 0;
  for (int k = 0; k < 200; ++k) {
    sn_oracle_randomize(&o, 1);
    mj_kinematics(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &o.lane);
    int far[64] = {0}, found = 0;
    for (int i = 0; i < *o.w.ncon; ++i) {
      const SnContact *con = o.w.contact + i;
      if (con->cfd != SN_CONTACT_FAR) continue;
      assert_int_equal(con->dim, 1);
      assert_true(con->efc_address >= 0);
      assert_int_equal(o.w.efc_type[con->efc_address], SN_CNSTR_CONTACT_FRICTIONLESS);
      const double expected = mj_geomDistance(o.mj, o.d, con->geom[0], con->geom[1], 10, NULL);
      worst = sn_larger(worst, fabs(expected - (double)con->dist));
      if (!(fabs(expected - (double)con->dist) <= (single ? 1e-4 : 2e-6)))
        fail_msg("state %d, geoms %d, %d (types %d, %d): distance %.9g, MuJoCo %.9g", k, con->geom[0], con->geom[1],
                 o.mj->geom_type[con->geom[0]], o.mj->geom_type[con->geom[1]], (double)con->dist, expected);
      ++compared;
      assert_true(found < 64);
      far[found++] = con->geom[0] * o.m->ngeom + con->geom[1];
    }
    for (int i = 0; i < found; ++i)
      for (int j = 0; j < i; ++j) assert_int_not_equal(far[i], far[j]);
    for (int p = 0; p < o.m->ncpair; ++p) {
      const int g1 = o.m->cpair_geom[2 * p], g2 = o.m->cpair_geom[2 * p + 1];
      const double d = mj_geomDistance(o.mj, o.d, g1, g2, 10, NULL);
      bool row = false;
      for (int i = 0; i < *o.w.ncon; ++i) row = row || (o.w.contact[i].geom[0] == g1 && o.w.contact[i].geom[1] == g2);
      if (row != (d < 1.0) && !(fabs(d - 1) <= (single ? 1e-4 : 1e-6)))
        fail_msg("state %d, geoms %d, %d: distance %g, %s", k, g1, g2, d, row ? "a row" : "no row");
    }
  }
  printf("%d distances, largest difference %.2g m\n", compared, worst);
  assert_true(compared > 1000);
  sn_oracle_free(&o);
}

static const char kBalls[] =
    "<mujoco><option gravity='0 0 0'/><default><geom solimp='.5 .95 .001 .5 2' solref='.02 1'/></default><worldbody>"
    "<body name='a'><joint type='slide' axis='1 0 0'/><geom size='.05'/></body>"
    "<body name='b' pos='.3 0 0'><joint type='slide' axis='1 0 0'/><geom size='.05'/></body>"
    "<body name='c' pos='.3 5 0'><joint type='slide' axis='1 0 0'/><geom size='.05'/></body></worldbody></mujoco>";

static void close_to(double ours, double expected, double tolerance) {
  if (single) tolerance = fmax(10 * tolerance, 2e-4 * fabs(expected));
  if (!(fabs(ours - expected) <= tolerance)) fail_msg("%.12g, expected %.12g within %.2g", ours, expected, tolerance);
}

// Impedance and reference by the formulas of the design, written down again.
static void formulas(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kBalls);
  *o.w.cfd = paper();
  const double tc = 0.02, dwidth = 0.95, k = 1 / (dwidth * dwidth * tc * tc), b = 2 / (dwidth * tc);
  for (int i = 0; i < 50; ++i) {
    const double r = -0.002 + 0.02 * i, v = 0.3;
    o.d->qpos[0] = 0.2 - r;
    o.d->qvel[0] = v;
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &o.lane);
    if (r >= 1) break;
    assert_int_equal(*o.w.ncon, 1);
    assert_int_equal(*o.w.nefc, r < 0 ? 4 : 1);
    const double x = 1 - r, y = x <= 0.5 ? 2 * x * x : 1 - 2 * (1 - x) * (1 - x);
    const double t = fmin(fabs(r) / 0.001, 1), hard = t <= 0.5 ? 2 * t * t : 1 - 2 * (1 - t) * (1 - t);
    const double d = r < 0 ? 0.5 + hard * 0.45 : 0.1 * y, softplus = 0.002 * log1p(exp(-r / 0.002));
    close_to((double)o.w.efc_KBIP[2], d, 1e-6);
    close_to((double)o.w.efc_aref[0], b * v + k * d * softplus, 1e-4 * k * d * 0.002);
    if (r > 0) {
      const double A = (double)(o.m->body_invweight0[2] + o.m->body_invweight0[4]);
      close_to((double)o.w.efc_D[0], d / ((1 - d) * A), 1e-6 * d / A);
    }
  }
  // approaching, the row at a distance brakes: a small force, none in the hard world
  o.d->qpos[0] = 0;
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  assert_true(o.w.qacc[0] < 0);
  assert_true(o.w.qacc[1] > 0);
  o.w.cfd->on = 0;
  sn_forward(o.m, &o.w, &o.lane);
  assert_true(o.w.qacc[0] == 0);
  sn_oracle_free(&o);
}

// Only pairs that take part; contacts of all others are MuJoCo's.
static void chosen_pairs(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kBalls);
  const unsigned char none[3] = {0, 0, 0};
  assert_int_equal(o.m->ncpair, 3);
  *o.w.cfd = paper();
  o.w.cfd->pair = none;
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  assert_int_equal(*o.w.ncon, 0);
  o.w.qpos[0] = SN_R(0.21);
  sn_forward(o.m, &o.w, &o.lane);
  assert_int_equal(*o.w.ncon, 1);
  assert_int_equal(o.w.contact[0].cfd, SN_CONTACT_HARD);
  const sn_real qacc = o.w.qacc[0];
  o.w.cfd->on = 0;
  sn_forward(o.m, &o.w, &o.lane);
  close_to((double)o.w.qacc[0], (double)qacc, 1e-9 * fabs((double)qacc));
  sn_oracle_free(&o);
}

// Rows with friction where the settings say so.
static void friction(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kBalls);
  *o.w.cfd = paper();
  o.w.cfd->friction = 1;
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  assert_int_equal(*o.w.ncon, 1);
  assert_int_equal(o.w.contact[0].dim, 3);
  assert_int_equal(*o.w.nefc, 4);
  sn_oracle_free(&o);
}

// The contacts of pairs that touch are those of the hard world, bit for bit.
static void touching_as_before(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  int touching = 0, far = 0;
  for (int k = 0; k < 30; ++k) {
    sn_oracle_randomize(&o, 1);
    sn_oracle_copy_state(&o);
    o.w.cfd->on = 0;
    sn_forward(o.m, &o.w, &o.lane);
    const int n = *o.w.ncon;
    SnContact *hard = malloc(sizeof *hard * (size_t)(n + 1));
    memcpy(hard, o.w.contact, sizeof *hard * (size_t)n);
    *o.w.cfd = paper();
    sn_forward(o.m, &o.w, &o.lane);
    int at = 0;
    for (int i = 0; i < *o.w.ncon; ++i) {
      const SnContact *con = o.w.contact + i;
      if (con->cfd == SN_CONTACT_FAR) {
        ++far;
        continue;
      }
      while (at < n && hard[at].exclude == 1) ++at;
      assert_true(at < n);
      assert_memory_equal(&con->dist, &hard[at].dist, sizeof(sn_real) * 13);
      assert_int_equal(con->dim, hard[at].dim);
      ++at;
      ++touching;
    }
    for (int i = 0; i < o.m->nv; ++i) assert_true(isfinite(o.w.qacc[i]));
    assert_int_equal(*o.w.warn & (SN_WARN_CONTACT_FULL | SN_WARN_EFC_FULL), 0);
    free(hard);
  }
  printf("%d contacts that touch, %d at a distance\n", touching, far);
  assert_true(touching > 0 && far > 1000);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(distances), cmocka_unit_test(formulas),
                                     cmocka_unit_test(chosen_pairs), cmocka_unit_test(friction),
                                     cmocka_unit_test(touching_as_before)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
