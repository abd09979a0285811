// The checker's eye for sensors and inertias: a small one beside a large one, an energy that MuJoCo gives late, joints
// along one line.
#include <stdio.h>

#include "clients/reference/compare.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"

static void load(SnOracle *o, const char *xml) {
  sn_oracle_load_string(o, xml);
  sn_model_need_all(o->m);
  sn_world_init(o->m, &o->w, o->memory);
}

static void forward(SnOracle *o) {
  mj_forward(o->mj, o->d);
  sn_oracle_copy_state(o);
  sn_forward(o->m, &o->w, &o->lane);
}

static bool differs(const SnOracle *o, SnCompared field) {
  SnCompare c;
  sn_compare_init(&c);
  sn_compare_begin(&c, o);
  for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_SOLVER; ++stage) sn_compare_stage(&c, o, (SnStage)stage, 0);
  const bool found = c.field[field].differs;
  sn_compare_free(&c);
  return found;
}

static void a_small_sensor_is_not_hidden_by_a_large_one(void **state) {
  (void)state;
  SnOracle o;
  load(&o,
       "<mujoco><worldbody><body pos='2e6 0 0'><joint name='j'/><geom size='.1' pos='.2 0 0'/><site name='s'/></body>"
       "</worldbody><sensor><framepos objtype='site' objname='s'/><jointpos joint='j'/></sensor></mujoco>");
  o.d->qpos[0] = 1e-3;
  forward(&o);
  assert_false(differs(&o, SN_CMP_sensordata));
  o.d->sensordata[3] += 1e-6;
  assert_true(differs(&o, SN_CMP_sensordata));
  sn_oracle_free(&o);
}

// With flag energy MuJoCo's e_kinetic is that of the evaluation before; ours is compared with what it should be.
static void late_energies_are_compared(void **state) {
  (void)state;
  for (int cutoff = 0; cutoff < 2; ++cutoff) {
    char xml[600];
    SnOracle o;
    snprintf(xml, sizeof xml,
             "<mujoco><option><flag energy='enable'/></option><worldbody><body><joint axis='0 1 0'/><geom size='.1' "
             "pos='.3 0 0'/></body></worldbody><sensor><e_kinetic cutoff='%d'/></sensor></mujoco>",
             cutoff);
    load(&o, xml);
    forward(&o);
    o.d->qvel[0] = 3;
    forward(&o);
    assert_true(o.d->sensordata[0] == 0 && o.d->energy[1] > 1);  // else MuJoCo has changed
    assert_false(differs(&o, SN_CMP_sensordata));
    o.d->energy[1] = 0.9;
    assert_true(differs(&o, SN_CMP_sensordata));
    sn_oracle_free(&o);
  }
}

static void singular_inertias_are_counted(void **state) {
  (void)state;
  static const char *const second[] = {"axis='0 1 0'", "axis='0 1 0' armature='.01'", "axis='0 1 1e-3'"};
  for (int k = 0; k < 3; ++k) {
    char xml[600];
    SnOracle o;
    SnCompare c;
    snprintf(xml, sizeof xml,
             "<mujoco><worldbody><body><joint axis='0 1 0'/><joint %s/><geom size='.1' pos='.3 0 0'/></body>"
             "</worldbody></mujoco>",
             second[k]);
    load(&o, xml);
    forward(&o);
    sn_compare_init(&c);
    sn_compare_begin(&c, &o);
    assert_int_equal(c.singular_steps, k == 0);
    sn_compare_free(&c);
    sn_oracle_free(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_small_sensor_is_not_hidden_by_a_large_one),
                                     cmocka_unit_test(late_energies_are_compared),
                                     cmocka_unit_test(singular_inertias_are_counted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
