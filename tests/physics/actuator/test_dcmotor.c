// Steps of electric motors under every integrator: as MuJoCo's, their derivatives against differences, by parameters of
// the motors, too; what is refused. (test_actuation.c and test_actuation_vjp.c have the stage alone.)
#include <stdio.h>
#include <string.h>

#include "physics/import/import_mjcf.h"
#include "physics/model/model_arrays.h"
#include "physics/step/step.h"
#include "tests/support/actuator_models.h"
#include "tests/support/actuator_steps.h"
#include "tests/support/parameter_check.h"
#include "tests/support/step_fixture.h"
#include "tests/support/tolerance.h"

// Activations are as large as those of a motor that runs: currents of amperes would break the bristles.
static const double kAct = 0.05;

static void load(SnOracle *o, const char *integrator) {
  char xml[8000];
  const char *rest = strstr(sn_motor_xml, "<default>");
  snprintf(xml, sizeof xml, "<mujoco><option timestep='.001' integrator='%s'/>%s", integrator, rest);
  sn_oracle_load_string(o, xml);
}

static const char *const integrators[] = {"Euler", "implicitfast", "implicit", "discrete", "RK4"};

static void against_mujoco(void **state) {
  (void)state;
  for (int k = 0; k < 5; ++k) {
    SnOracle o;
    load(&o, integrators[k]);
    sn_check_actuator_steps(&o, integrators[k], kAct, 20);
  }
}

static void against_differences(void **state) {
  (void)state;
  sn_needs_doubles();
  for (int k = 0; k < 5; ++k) {
    SnOracle o;
    load(&o, integrators[k]);
    sn_check_actuator_gradient(&o, integrators[k], kAct, 12);
  }
}

// ---- by parameters ----

static const char *const arrays[] = {"actuator_gainprm", "actuator_biasprm", "actuator_dynprm"};

// One motor on a hinge: its array p times 1 + step, by another weight for each number.
static SnModel *moved(const SnModel *m, int p, double step) {
  SnModelArray a;
  SnError err;
  double value[SN_NGAIN];
  assert_true(sn_model_find_array(m, arrays[p], &a) && a.rows == 1 && a.cols <= SN_NGAIN);
  for (int i = 0; i < a.cols; ++i) value[i] = (double)((const sn_real *)a.data)[i] * (1 + step * (1 + 0.3 * (i % 4)));
  const SnNewArray array = {arrays[p], value, a.rows, a.cols};
  SnModel *copy = sn_model_with_arrays(m, &array, 1, &err);
  if (!copy) fail_msg("%s: %s", arrays[p], err.text);
  return copy;
}

static void by_parameters(void **state) {
  (void)state;
  sn_needs_doubles();
  // which arrays move the next velocity: of some the bias is all 0
  static const struct {
    const char *motor;
    int arrays;
  } cases[] = {
      {"cogging='.3 5 .4'", 2},
      {"lugre='20 .6 .2 .35 .1' cogging='.1 3 1'", 3},
      {"input='pos vel ff voltage' controller='2 3 .1 3 .3 5' thermal='2 1 0 .01 20 20' lugre='20 .3 .1 .2 .3' "
       "inductance='.006' cogging='.1 9 0'",
       3},
      {"input='pos vel ff voltage' controller='2 3 .1 3 .3 .01' thermal='2 1 0 .01 20 20' lugre='20 .3 .1 .2 .3'", 3},
      {"inductance='.006' thermal='2 1 0 .01 20 20' saturation='0 0 2' cogging='.1 9 0'", 3},
      {"thermal='2 1 0 .03 20 60' cogging='.1 9 0' lugre='20 .3 .1 .2 .3'", 3}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
    for (int i = 0; i < 8; ++i) {
      char xml[2000], what[400];
      SnOracle o;
      snprintf(xml, sizeof xml,
               "<mujoco><option integrator='%s' timestep='.004'/><worldbody><body><joint name='j' axis='0 1 0'/>"
               "<geom size='.05' pos='.1 0 0'/></body></worldbody><actuator><dcmotor joint='j' motorconst='.4' "
               "resistance='2' %s/></actuator></mujoco>",
               integrators[i % 4], cases[k].motor);
      sn_oracle_load_string(&o, xml);
      sn_actuator_draw(&o, i < 4 ? 1 : 0.1, kAct);
      snprintf(what, sizeof what, "%s, %s", integrators[i % 4], cases[k].motor);
      sn_check_step_parameters(&o, what, arrays, cases[k].arrays, moved);
      sn_oracle_free(&o);
    }
}

// ---- what is refused ----

static void assert_refused(const SnModel *m, const char *array, int k, double x) {
  SnModelArray a;
  SnError err;
  double value[SN_NGAIN];
  assert_true(sn_model_find_array(m, array, &a));
  for (int i = 0; i < a.cols; ++i) value[i] = i == k ? x : (double)((const sn_real *)a.data)[i];
  const SnNewArray changed = {array, value, a.rows, a.cols};
  SnModel *copy = sn_model_with_arrays(m, &changed, 1, &err);
  if (copy) fail_msg("%s[%d] = %g is taken", array, k, x);
  assert_non_null(strstr(err.text, "actuator_actnum[0]"));
}

// Parameters that a motor divides by, and those that would give it another activation.
static void refused(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody><actuator><dcmotor joint='j' "
      "motorconst='.4' resistance='2' input='vel' controller='0 0 1' thermal='2 1 0 .01 20 20'/></actuator></mujoco>");
  assert_refused(o.m, "actuator_gainprm", 0, 0);  // resistance
  assert_refused(o.m, "actuator_gainprm", 1, 0);  // constant, with a controller
  assert_refused(o.m, "actuator_gainprm", 5, 1);  // integral gain without the control of a position
  assert_refused(o.m, "actuator_dynprm", 3, 0);   // thermal capacitance
  assert_refused(o.m, "actuator_dynprm", 2, 0);   // no thermal resistance: one activation less
  assert_refused(o.m, "actuator_dynprm", 5, 10);  // bristles: one more
  sn_oracle_free(&o);
  static const char *const mixed[] = {"gaintype='dcmotor' dyntype='dcmotor' actdim='1' actearly='true'",
                                      "biastype='dcmotor'", "dyntype='dcmotor' actdim='1' actearly='true'"};
  for (int k = 0; k < 3; ++k) {
    char xml[1000];
    SnError err = {0};
    int count = 0;
    snprintf(xml, sizeof xml,
             "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody><actuator><general "
             "name='odd' joint='j' gainprm='2 .4' %s/></actuator></mujoco>",
             mixed[k]);
    mjModel *mj = sn_oracle_read_string(xml, &err);
    if (!mj) fail_msg("%s: %s", mixed[k], err.text);
    char *text = sn_import_unsupported(mj, &count);
    assert_int_equal(count, 1);
    assert_non_null(strstr(text, "actuator 'odd': an actuator of which only some of gain, bias and dynamics are"));
    free(text);
    mj_deleteModel(mj);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_mujoco), cmocka_unit_test(against_differences),
                                     cmocka_unit_test(by_parameters), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
