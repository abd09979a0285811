// Whole steps: against mj_step with every integrator, conserved quantities, order of accuracy, bad states.
#include "physics/base/vec.h"
#include "physics/step/step.h"
#include "tests/support/dynamics_models.h"

#include <stdio.h>
#include <stdlib.h>

static double worst;

// Largest error relative to the largest change in the step.
static double change_error(const sn_real *ours, const double *ref, const double *before, int n) {
  double error = 0, change = 0;
  for (int i = 0; i < n; ++i) {
    error = sn_larger(error, fabs((double)ours[i] - ref[i]));
    change = sn_larger(change, fabs(ref[i] - before[i]));
  }
  return error / (change + 1e-6);
}

static void check_step(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  mjData *before = mj_copyData(NULL, o->mj, o->d);
  sn_step(m, &o->w, &o->lane);
  mj_step(o->mj, o->d);
  const double eq = change_error(o->w.qpos, o->d->qpos, before->qpos, m->nq);
  const double ev = change_error(o->w.qvel, o->d->qvel, before->qvel, m->nv);
  const double ea = change_error(o->w.act, o->d->act, before->act, m->na);
  mj_deleteData(before);
  const double tol = SN_TOL(1e-8, 1e-2);
  if (!(eq <= tol && ev <= tol && ea <= tol)) fail_msg("%s: errors of qpos %g, qvel %g, act %g", name, eq, ev, ea);
  assert_true(fabs((double)o->w.time[0] - o->d->time) < SN_TOL(1e-12, 1e-5));
  worst = sn_larger(worst, sn_larger(eq, sn_larger(ev, ea)));
}

static void against_mujoco(void **state) {
  (void)state;
  static const char *const integrators[] = {"Euler", "implicitfast", "implicit", "RK4", "discrete"};
  for (int i = 0; i < 5; ++i) {
    char option[200];
    snprintf(option, sizeof option,
             "<option integrator='%s' timestep='.01'><flag contact='disable' island='disable'/></option>",
             integrators[i]);
    worst = 0;
    sn_dynamics_for_inline(option, 4, 2.0, check_step);
    print_message("%s: largest error relative to the change %.2g\n", integrators[i], worst);
  }
}

// The MyoHand with each integrator, contacts off: what a muscle's activation and velocity do to all of them.
static void muscles(void **state) {
  (void)state;
  sn_oracle_needs_myosuite();
  static const int integrators[] = {mjINT_EULER, mjINT_IMPLICITFAST, mjINT_IMPLICIT, mjINT_RK4, mjINT_DISCRETE};
  char path[5000];
  snprintf(path, sizeof path, "%s/envs/myo/assets/hand/myohand_baoding.xml", sn_oracle_myosuite());
  for (int i = 0; i < 5; ++i) {
    SnError err = {0};
    SnOracle o;
    mjModel *mj = sn_oracle_read_file(path, &err);
    if (!mj) fail_msg("%s", err.text);
    sn_oracle_tighten(mj);
    mj->opt.integrator = integrators[i];
    mj->opt.disableflags |= mjDSBL_CONTACT;
    assert_int_equal(sn_oracle_open(&o, mj, &err), SN_OK);
    worst = 0;
    for (int k = 0; k < 5; ++k) {
      sn_dynamics_sample(&o, 1.0);
      check_step(&o, "myohand_baoding.xml");
    }
    print_message("integrator %d: largest error relative to the change %.2g\n", integrators[i], worst);
    sn_oracle_free(&o);
  }
}

static const char *const floating =
    "<mujoco><option integrator='RK4' timestep='%g' gravity='0 0 %g'><flag contact='disable'/></option><worldbody>"
    "<body pos='0 0 1'>%s<geom type='box' size='.1 .2 .3' pos='.1 0 0'/><body pos='.3 .1 0'><joint type='ball' "
    "pos='.05 0 0'/>"
    "<geom type='box' size='.05 .2 .1' pos='.2 0 0'/><body pos='.4 0 0'><joint axis='1 1 0'/><joint type='slide' "
    "axis='0 1 0' stiffness='20'/>"
    "<geom type='box' size='.1 .05 .1' pos='0 .1 0'/></body></body></body></worldbody></mujoco>";

static void load_floating(SnOracle *o, double step, double gravity, const char *joint) {
  static char xml[2000];
  snprintf(xml, sizeof xml, floating, step, gravity, joint);
  sn_oracle_load_string(o, xml);
  o->mj->opt.enableflags |= mjENBL_ENERGY;
}

// Energy and momentum of our state, as MuJoCo tells them: energy, linear (3), angular about the origin (3).
static void conserved(SnOracle *o, double *out) {
  for (int i = 0; i < o->m->nq; ++i) o->d->qpos[i] = (double)o->w.qpos[i];
  for (int i = 0; i < o->m->nv; ++i) o->d->qvel[i] = (double)o->w.qvel[i];
  mj_forward(o->mj, o->d);
  mj_subtreeVel(o->mj, o->d);
  out[0] = o->d->energy[0] + o->d->energy[1];
  double angular[3];
  mju_scl3(out + 1, o->d->subtree_linvel + 3, o->mj->body_subtreemass[1]);
  mju_cross(angular, o->d->subtree_com + 3, out + 1);
  mju_add3(out + 4, o->d->subtree_angmom + 3, angular);
}

static void conservation(void **state) {
  (void)state;
  const double tol = SN_TOL(1e-7, 1e-3);
  for (int with_gravity = 0; with_gravity < 2; ++with_gravity) {
    SnOracle o;
    load_floating(&o, SN_TOL(5e-4, 2e-3), with_gravity ? -9.81 : 0.0,
                  with_gravity ? "<joint type='ball'/>" : "<freejoint/>");
    sn_dynamics_sample(&o, 2);
    double first[7], last[7];
    conserved(&o, first);
    for (int k = 0; k < 1000; ++k) sn_step(o.m, &o.w, &o.lane);
    conserved(&o, last);
    print_message("energy %.9g, after %.2g s %.9g\n", first[0], (double)o.w.time[0], last[0]);
    assert_true(fabs(last[0] - first[0]) < tol * fabs(first[0]));
    for (int e = 1; e < 7 && !with_gravity; ++e)
      assert_true(fabs(last[e] - first[e]) < 10 * tol * (1 + fabs(first[e])));
    sn_oracle_free(&o);
  }
}

// Position error after 0.2 s at the given step, against a run with a step 16 times smaller than the largest.
static void run_for(double step, sn_real *qpos) {
  SnOracle o;
  load_floating(&o, step, -9.81, "<freejoint/>");
  sn_dynamics_sample(&o, 3);
  const int n = (int)(0.2 / step + 0.5);
  for (int k = 0; k < n; ++k) sn_step(o.m, &o.w, &o.lane);
  sn_copy(qpos, o.w.qpos, o.m->nq);
  sn_oracle_free(&o);
}

static void fourth_order(void **state) {
  (void)state;
#ifdef SN_SINGLE
  print_message("skipped: rounding of floats hides the order\n");
  skip();
#endif
  sn_real reference[13], coarse[13], fine[13];
  double e1 = 0, e2 = 0;
  run_for(0.02 / 16, reference);
  run_for(0.02, coarse);
  run_for(0.01, fine);
  for (int i = 0; i < 13; ++i) {
    e1 = sn_larger(e1, fabs((double)(coarse[i] - reference[i])));
    e2 = sn_larger(e2, fabs((double)(fine[i] - reference[i])));
  }
  print_message("errors %.3g, %.3g: order %.2f\n", e1, e2, log2(e1 / e2));
  assert_true(log2(e1 / e2) > 3.5);
}

// A bad position, velocity or acceleration is reported, and the world stays as it was.
static void bad_states(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body><joint name='j' axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
                        "</worldbody><actuator><motor joint='j' gear='1e12'/></actuator></mujoco>");
  for (int kind = 0; kind < 4; ++kind) {
    sn_world_reset(o.m, &o.w);
    const sn_real qpos = kind == 0 ? NAN : SN_R(0.3), qvel = kind == 1 ? SN_R(2e10) : SN_R(0.2);
    o.w.qpos[0] = qpos;
    o.w.qvel[0] = qvel;
    o.w.ctrl[0] = kind == 2 ? SN_R(1.0) : SN_R(0.0);
    sn_step(o.m, &o.w, &o.lane);
    const bool bad = kind < 3;
    assert_int_equal(*o.w.warn, bad ? SN_WARN_BAD_STATE : 0);
    assert_true(bad ? memcmp(o.w.qpos, &qpos, sizeof qpos) == 0 && o.w.qvel[0] == qvel && o.w.time[0] == 0
                    : o.w.time[0] > 0);
  }
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_mujoco), cmocka_unit_test(muscles),
                                     cmocka_unit_test(conservation), cmocka_unit_test(fourth_order),
                                     cmocka_unit_test(bad_states)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
