// The integrator `discrete` beside MuJoCo: terms of its effective inertia, springs and impedances of rows that are
// stiffer than the step, what a free body that stands alone is moved by; that long runs with stiff springs do not
// explode; what it goes without. (Steps and derivatives of many models: test_step.c, test_step_vjp.c,
// test_step_vjp_mujoco.c.)
#include <math.h>
#include <stdio.h>

#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "tests/support/discrete_model.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

// viscosity [Pa s]: above 0 in a fluid, whose drag is of the order of inertias.
static void load(SnOracle *o, double timestep, const char *cone, double viscosity) {
  char xml[9000];
  snprintf(xml, sizeof xml, SN_DISCRETE_MODEL("%g' density='%g' viscosity='%g", "%s"), timestep, 200 * viscosity,
           viscosity, cone);
  sn_oracle_load_string(o, xml);
}

static void compare_terms(SnOracle *o) {
  const SnModel *m = o->m;
  const SnWorld *w = &o->w;
  const mjData *d = o->d;
  const double tol = SN_TOL(1e-9, 1e-3);
  sn_oracle_check("efm_diag", w->efm_diag, d->efm_diag, m->nv, tol);
  sn_oracle_check("efm_ck", w->efm_ck, d->efm_ck, m->nv, tol);
  if (m->nfluid > 0) sn_oracle_check("efm_fluid", w->efm_fluid, d->efm_fluid, m->nC, tol);
  sn_oracle_check("efm_sdiag", w->efm_sdiag, d->efm_sdiag, m->nv, tol);
  for (int k = 0; k < d->nefmT; ++k) {
    sn_oracle_check("efm_ts", w->efm_ts + d->efm_tid[k], d->efm_ts + k, 1, tol);
    sn_oracle_check("efm_tk", w->efm_tk + d->efm_tid[k], d->efm_tk + k, 1, tol);
  }
  double stiff = 0, sum = 0;
  for (int k = 0; k < d->nefmA; ++k) {
    sn_oracle_check("efm_as", w->efm_as + m->actuator_outadr[d->efm_aid[k]], d->efm_as + k, 1, tol);
    sn_oracle_check("efm_ak", w->efm_ak + m->actuator_outadr[d->efm_aid[k]], d->efm_ak + k, 1, tol);
    stiff += d->efm_ak[k];
  }
  for (int i = 0; i < m->nout; ++i) sum += (double)w->efm_ak[i];
  assert_true(fabs(sum - stiff) <= tol * (1 + stiff));  // those that MuJoCo has not are 0
}

// Counts rows whose spring is not that of their solref, because a step cannot resolve it.
static int count_resolved(const SnOracle *o) {
  int n = 0;
  for (int i = 0; i < o->d->nefc; ++i) {
    const double *kbip = o->d->efc_KBIP + 4 * i, h = o->mj->opt.timestep;
    n += fabs(h * h * kbip[0] * kbip[2] - 1) < 1e-12;
  }
  return n;
}

static void fields_against_mujoco(void **state) {
  (void)state;
  static const char *const cones[] = {"pyramidal", "elliptic"};
  int resolved = 0, contacts = 0;
  for (int c = 0; c < 12; ++c) {
    // with 20 and 22 ms the step hardly resolves the springs that rows have by default
    const double timestep[] = {0.005, 0.02, 0.022};
    SnOracle o;
    load(&o, timestep[c % 6 / 2], cones[c % 2], c < 6 ? 0 : 3);
    for (int k = 0; k < 60; ++k) {
      for (int i = 0; i < o.mj->nu; ++i) o.d->ctrl[i] = sn_oracle_uniform(&o);
      mj_step(o.mj, o.d);
      mj_forward(o.mj, o.d);
      sn_oracle_copy_state(&o);
      sn_forward(o.m, &o.w, &o.lane);
      const int n = o.d->nefc;
      assert_int_equal(*o.w.nefc, n);
      compare_terms(&o);
      for (int i = 0; i < n; ++i)
        sn_oracle_check("efc_KBIP", o.w.efc_KBIP + 4 * i, o.d->efc_KBIP + 4 * i, 3, SN_TOL(1e-8, 1e-2));
      sn_oracle_check("efc_D", o.w.efc_D, o.d->efc_D, n, SN_TOL(1e-8, 1e-2));
      sn_oracle_check("efc_aref", o.w.efc_aref, o.d->efc_aref, n, SN_TOL(1e-8, 1e-2));
      sn_oracle_check("qacc_smooth", o.w.qacc_smooth, o.d->qacc_smooth, o.m->nv, SN_TOL(1e-8, 1e-2));
      sn_oracle_check("qacc", o.w.qacc, o.d->qacc, o.m->nv, SN_TOL(1e-6, 1e-2));
      resolved += count_resolved(&o);
      contacts += o.d->ncon;
    }
    sn_oracle_free(&o);
  }
  print_message("%d rows that a step cannot resolve, %d contacts\n", resolved, contacts);
  assert_true(resolved > 50 && contacts > 50);
}

// A spring that Euler's method cannot hold at this step, and a servo: the energy of the motion falls.
static void stiff_springs_are_stable(void **state) {
  (void)state;
  static const char *const integrators[] = {"discrete", "implicitfast"};
  double speed[2];
  for (int k = 0; k < 2; ++k) {
    char xml[1000];
    SnOracle o;
    snprintf(
        xml, sizeof xml,
        "<mujoco><option integrator='%s' timestep='.02' gravity='0 0 0'/><worldbody><body><joint name='j' "
        "type='slide' axis='1 0 0' stiffness='2e5'/><geom size='.1' mass='1'/><body><joint name='i' axis='0 1 0'/>"
        "<geom pos='.3 0 0' size='.05' mass='.1'/></body></body></worldbody><actuator><position joint='i' kp='4e3'/>"
        "</actuator></mujoco>",
        integrators[k]);
    sn_oracle_load_string(&o, xml);
    o.w.qpos[0] = SN_R(0.01);
    o.w.ctrl[0] = SN_R(0.5);
    for (int i = 0; i < 200 && !(*o.w.warn & SN_WARN_BAD_STATE); ++i) sn_step(o.m, &o.w, &o.lane);
    speed[k] = fabs((double)o.w.qvel[0]) + fabs((double)o.w.qvel[1]);
    if (k == 0) {
      assert_true(fabs((double)o.w.qpos[0]) < 1e-3);
      assert_true(fabs((double)o.w.qpos[1] - 0.5) < 0.02);
    }
    sn_oracle_free(&o);
  }
  print_message("speed after 4 s: %g, with implicitfast %g\n", speed[0], speed[1]);
  assert_true(speed[0] < 1e-2 && !(speed[1] < 1));
}

// A fixed tendon, whose length may be below 0, has no spring between the ends of its rest, and springs beside them.
static void slack_at_negative_length(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><option integrator='discrete'/><worldbody><body><joint name='j'/><geom size='.1' "
                        "pos='.1 0 0'/></body></worldbody><tendon><fixed name='t' stiffness='2' springlength='-.1 "
                        ".03'><joint joint='j' coef='-1'/></fixed></tendon></mujoco>");
  int slack = 0;
  for (int k = -8; k <= 8; ++k) {
    o.d->qpos[0] = 0.03 * k + 0.004;
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &o.lane);
    const double wanted = o.d->nefmT > 0 ? o.d->efm_ts[0] : 0;
    assert_true(fabs((double)o.w.efm_ts[0] - wanted) <= SN_TOL(1e-15, 1e-8));
    slack += wanted == 0;
  }
  assert_int_equal(slack, 5);
  sn_oracle_free(&o);
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(fields_against_mujoco),
                                     cmocka_unit_test(stiff_springs_are_stable),
                                     cmocka_unit_test(slack_at_negative_length)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
