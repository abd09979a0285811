// Steps of orientation servos under every integrator: as MuJoCo's, their derivatives against differences, by gains,
// too; setpoints that turn more than half way round; what is refused. (test_actuation.c and test_actuation_vjp.c have
// the stage alone.)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/import/import_mjcf.h"
#include "physics/model/model_arrays.h"
#include "physics/step/step.h"
#include "tests/support/actuator_models.h"
#include "tests/support/actuator_steps.h"
#include "tests/support/parameter_check.h"
#include "tests/support/step_fixture.h"
#include "tests/support/tolerance.h"

// The model under an integrator. Implicit ones have no limits of forces: where one holds, MuJoCo's slope hangs on the
// last bit of a norm.
static void load(SnOracle *o, const char *integrator) {
  static const char limit[] = "forcerange='0 ";
  char xml[8000];
  snprintf(xml, sizeof xml, "<mujoco><option integrator='%s'/>%s", integrator, sn_orientation_xml + strlen("<mujoco>"));
  for (char *at = xml; strncmp(integrator, "implicit", 8) == 0 && (at = strstr(at, limit));)
    for (char *end = strchr(at + sizeof limit, '\'') + 1; at < end; ++at) *at = ' ';
  sn_oracle_load_string(o, xml);
}

static const char *const integrators[] = {"Euler", "implicitfast", "implicit", "RK4"};

static void against_mujoco(void **state) {
  (void)state;
  for (int k = 0; k < 4; ++k) {
    SnOracle o;
    load(&o, integrators[k]);
    sn_check_actuator_steps(&o, integrators[k], 1, 20);
  }
}

static void against_differences(void **state) {
  (void)state;
  sn_needs_doubles();
  for (int k = 0; k < 4; ++k) {
    SnOracle o;
    load(&o, integrators[k]);
    sn_check_actuator_gradient(&o, integrators[k], 1, 12);
  }
}

// Activations of many turns become those of the shorter way, and their derivatives with them.
static void long_ways(void **state) {
  (void)state;
  for (int k = 0; k < 2; ++k) {
    SnOracle o;
    load(&o, integrators[k]);
    sn_check_actuator_steps(&o, "long ways", 8, 20);
    load(&o, integrators[k]);
    if (sizeof(sn_real) == 8)
      sn_check_actuator_gradient(&o, "long ways", 8, 12);
    else
      sn_oracle_free(&o);
  }
}

// ---- by gains ----

static const char *const arrays[] = {"actuator_gainprm", "actuator_biasprm"};

// One servo: its array p times 1 + step. The opposite gain in the bias, which only says what kind it is, stays.
static SnModel *moved(const SnModel *m, int p, double step) {
  SnModelArray a;
  SnError err;
  double value[SN_NGAIN];
  assert_true(sn_model_find_array(m, arrays[p], &a) && a.rows == 1 && a.cols <= SN_NGAIN);
  for (int i = 0; i < a.cols; ++i) value[i] = (double)((const sn_real *)a.data)[i] * (1 + step * (1 + 0.3 * i));
  const SnNewArray array = {arrays[p], value, a.rows, a.cols};
  SnModel *copy = sn_model_with_arrays(m, &array, 1, &err);
  if (!copy) fail_msg("%s: %s", arrays[p], err.text);
  return copy;
}

static void by_parameters(void **state) {
  (void)state;
  sn_needs_doubles();
  for (int k = 0; k < 3; ++k) {
    char xml[2000];
    SnOracle o;
    snprintf(xml, sizeof xml,
             "<mujoco><option integrator='%s'/><worldbody><body><joint name='j' type='ball'/><geom type='box' size='.1 "
             ".06 .08' pos='.1 0 0'/></body></worldbody><actuator><general joint='j' gaintype='so3' biastype='so3' "
             "gainprm='2' biasprm='.3 -2 -.4' %s/></actuator></mujoco>",
             integrators[k], k == 0 ? "forcerange='0 1'" : "");
    sn_oracle_load_string(&o, xml);
    sn_oracle_randomize(&o, 1);
    sn_check_step_parameters(&o, integrators[k], arrays, 2, moved);
    sn_oracle_free(&o);
  }
}

// ---- what is refused ----

// A servo of a file that is not whole.
static void refused(void **state) {
  (void)state;
  SnOracle o;
  SnError err;
  load(&o, "Euler");
  SnModel *m = o.m;
  assert_int_equal(sn_model_check(m, &err), SN_OK);
  int *const places[] = {m->actuator_ctrlspec, m->actuator_ctrlnum, m->actuator_outnum, m->actuator_biastype,
                         m->actuator_dyntype,  m->actuator_trnid,   m->actuator_trntype};
  const int values[] = {3, 4, 1, SN_BIAS_AFFINE, SN_DYN_FILTER, 0, SN_TRN_JOINT};
  for (size_t k = 0; k < sizeof places / sizeof *places; ++k) {
    const int kept = *places[k];
    *places[k] = values[k];
    assert_int_equal(sn_model_check(m, &err), SN_ERR_FORMAT);
    assert_non_null(strstr(err.text, "actuator_"));
    *places[k] = kept;
  }
  assert_int_equal(sn_model_check(m, &err), SN_OK);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_mujoco), cmocka_unit_test(against_differences),
                                     cmocka_unit_test(long_ways), cmocka_unit_test(by_parameters),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
