// Springs, dampers and gravity compensation against MuJoCo, with each of the flags that switch them off.
#include <stdio.h>

#include "physics/dynamics/dynamics.h"
#include "tests/support/dynamics_models.h"

static double worst;

static void same(const char *model, const char *field, const sn_real *ours, const double *ref, int n) {
  const double e = sn_oracle_error(ours, ref, n);
  if (!(e <= SN_TOL_BIAS)) fail_msg("%s: %s: relative error %g", model, field, e);
  worst = sn_larger(worst, e);
}

static void check_passive(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  const mjData *d = o->d;
  sn_kinematics(m, &o->w, &o->lane);
  sn_com_pos(m, &o->w, &o->lane);
  sn_oracle_fill_stage(o, SN_STAGE_TENDON);
  sn_oracle_fill_stage(o, SN_STAGE_VELOCITY);
  sn_passive(m, &o->w, &o->lane);
  same(name, "qfrc_spring", o->w.qfrc_spring, d->qfrc_spring, m->nv);
  same(name, "qfrc_damper", o->w.qfrc_damper, d->qfrc_damper, m->nv);
  same(name, "qfrc_gravcomp", o->w.qfrc_gravcomp, d->qfrc_gravcomp, m->nv);
  same(name, "qfrc_fluid", o->w.qfrc_fluid, d->qfrc_fluid, m->nv);
  same(name, "qfrc_passive", o->w.qfrc_passive, d->qfrc_passive, m->nv);
}

static void against_mujoco(void **state) {
  (void)state;
  sn_dynamics_for_models(5, 2.0, check_passive);
  print_message("largest relative error %.2g\n", worst);
}

static void flags(void **state) {
  (void)state;
  sn_dynamics_for_inline("<option><flag spring='disable'/></option>", 2, 2.0, check_passive);
  sn_dynamics_for_inline("<option><flag damper='disable'/></option>", 2, 2.0, check_passive);
  sn_dynamics_for_inline("<option><flag spring='disable' damper='disable'/></option>", 2, 2.0, check_passive);
  sn_dynamics_for_inline("<option><flag gravity='disable'/></option>", 2, 2.0, check_passive);
  sn_dynamics_for_inline("<option gravity='0 0 0'/>", 1, 2.0, check_passive);
  sn_dynamics_for_inline("<option gravity='1 2 3'/>", 1, 2.0, check_passive);
}

// Bodies are pressed down, too, but only where some other is lifted: MuJoCo counts those above 0.
static void negative_compensation(void **state) {
  (void)state;
  static const char *const lifted[] = {"", "gravcomp='.3'"};
  for (int k = 0; k < 2; ++k) {
    char xml[600];
    SnOracle o;
    snprintf(xml, sizeof xml,
             "<mujoco><worldbody><body gravcomp='-.5'><joint axis='0 1 0'/><geom size='.1' pos='.3 0 0'/></body>"
             "<body pos='2 0 0' %s><joint axis='0 1 0'/><geom size='.1' pos='.3 0 0'/></body></worldbody></mujoco>",
             lifted[k]);
    sn_oracle_load_string(&o, xml);
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    check_passive(&o, xml);
    assert_true((o.w.qfrc_gravcomp[0] != 0) == (k == 1));
    sn_oracle_free(&o);
  }
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_mujoco), cmocka_unit_test(flags),
                                     cmocka_unit_test(negative_compensation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
