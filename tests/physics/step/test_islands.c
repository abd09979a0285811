// MuJoCo's islands, trees that rows connect and that it solves each by itself, change nothing: its own steps with them
// and without are the same, and ours, which solve all trees together, equal both. In our steps the flag changes no bit.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

enum { STEPS = 200 };

static const char pile_xml[] =
    "<mujoco><option timestep='.004'%s/><worldbody><geom type='plane' size='5 5 1' solref='.01 1'/>"
    "<body pos='0 0 .3'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "<body pos='.05 0 .52'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "<body pos='1 0 .3'><freejoint/><geom size='.1' condim='4'/></body>"
    "<body pos='1.1 .1 .52'><freejoint/><geom type='capsule' size='.05 .1'/></body>"
    "<body pos='2 0 .5'><joint name='a' type='slide' axis='0 0 1' range='-.2 .5' limited='true'/><geom "
    "size='.1'/></body>"
    "<body pos='2 1 .5'><joint name='b' type='slide' axis='0 0 1' frictionloss='2'/><geom size='.1'/></body>"
    "<body pos='3 0 1'><joint axis='0 1 0' damping='.1'/><geom type='capsule' size='.04 .2' pos='.2 0 0'/></body>"
    "</worldbody><equality><joint joint1='a' joint2='b' polycoef='0 .5 0 0 0'/></equality></mujoco>";

// The largest difference between accelerations, relative to the largest.
static double apart(const double *a, const double *b, int n) {
  double worst = 0, size = 1e-6;
  for (int i = 0; i < n; ++i) {
    worst = sn_larger(worst, fabs(a[i] - b[i]));
    size = sn_larger(size, fabs(b[i]));
  }
  return worst / size;
}

// Steps of one model; counts those that MuJoCo has solved by several islands.
static int check(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  const size_t nq = sizeof(sn_real) * (size_t)m->nq, nv = sizeof(sn_real) * (size_t)m->nv;
  double *with = calloc((size_t)m->nv + 1, sizeof *with), worst[2] = {0, 0};
  sn_real *qpos = malloc(nq + 1), *qvel = malloc(nv + 1);
  int several = 0;
  for (int step = 0; step < STEPS; ++step) {
    o->mj->opt.disableflags &= ~mjDSBL_ISLAND;
    mj_forward(o->mj, o->d);
    several += o->d->nisland > 1;
    memcpy(with, o->d->qacc, sizeof *with * (size_t)m->nv);
    o->mj->opt.disableflags |= mjDSBL_ISLAND;
    mj_forward(o->mj, o->d);
    assert_int_equal(o->d->nisland, 0);
    worst[0] = sn_larger(worst[0], apart(with, o->d->qacc, m->nv));
    for (int off = 0; off < 2; ++off) {
      o->m->opt.disableflags = (m->opt.disableflags & ~SN_DSBL_ISLAND) | (off ? SN_DSBL_ISLAND : 0);
      sn_oracle_copy_state(o);
      sn_forward(m, &o->w, &o->lane);
      worst[1] = sn_larger(worst[1], sn_oracle_error(o->w.qacc, with, m->nv));
      worst[1] = sn_larger(worst[1], sn_oracle_error(o->w.qacc, o->d->qacc, m->nv));
      sn_integrate(m, &o->w, &o->lane);
      if (off) assert_memory_equal(qpos, o->w.qpos, nq);
      if (off && nv) assert_memory_equal(qvel, o->w.qvel, nv);
      memcpy(qpos, o->w.qpos, nq);
      memcpy(qvel, o->w.qvel, nv);
    }
    mj_step(o->mj, o->d);
  }
  printf(
      "pile%s: qacc with islands and without %.1e apart in MuJoCo, ours %.1e from either; %d of %d steps with "
      "several\n",
      name, worst[0], worst[1], several, STEPS);
  if (!(worst[0] <= 1e-6) || !(worst[1] <= SN_TOL(1e-6, 2e-2)))
    fail_msg("pile%s: islands change the acceleration", name);
  free(with);
  free(qpos);
  free(qvel);
  return several;
}

static void islands_change_nothing(void **state) {
  static const char *const option[] = {"", " cone='elliptic'", " integrator='implicitfast'"};
  (void)state;
  int several = 0;
  for (int i = 0; i < 3; ++i) {
    SnOracle o;
    char xml[4000];
    snprintf(xml, sizeof xml, pile_xml, option[i]);
    sn_oracle_load_string(&o, xml);
    several += check(&o, option[i]);
    sn_oracle_free(&o);
  }
  assert_true(several > STEPS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(islands_change_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
