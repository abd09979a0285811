// Normalised controls, clamping, shift with its tail rules.
#include "planner/optimize/controls.h"
#include "tests/support/oracle.h"

static const char *xml =
    "<mujoco><worldbody><body><joint name='j' axis='0 1 0'/><geom size='.1'/></body></worldbody><actuator>"
    "<motor joint='j' ctrllimited='true' ctrlrange='-2 6'/>"
    "<motor joint='j' ctrllimited='true' ctrlrange='0 1'/>"
    "<motor joint='j'/></actuator></mujoco>";

static void normalised(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  assert_true(sn_ctrl_unit(o.m, 0) == 4);
  assert_true(sn_ctrl_unit(o.m, 1) == 1);
  assert_true(sn_ctrl_unit(o.m, 2) == 1);
  assert_true(sn_ctrl_half_range(o.m, 0) == 4);
  assert_true(sn_ctrl_half_range(o.m, 1) == SN_R(0.5));
  assert_true(sn_ctrl_half_range(o.m, 2) == 1);
  sn_real wild[6] = {9, 2, 9, -9, -2, -9};
  const sn_real clamped[6] = {6, 1, 9, -2, 0, -9};
  sn_ctrl_clamp(o.m, wild, 2);
  for (int i = 0; i < 6; ++i) assert_true(wild[i] == clamped[i]);
  sn_oracle_free(&o);
}

// Rows 0 ... 4 of two controls, shifted.
static void shifted(int k, SnTail tail, const int wanted[5]) {
  sn_real ctrl[10];
  const sn_real initial[2] = {-1, -11};
  for (int t = 0; t < 5; ++t) {
    ctrl[2 * t] = (sn_real)t;
    ctrl[2 * t + 1] = (sn_real)(t + 10);
  }
  sn_controls_shift(ctrl, 5, 2, k, tail, initial);
  for (int t = 0; t < 5; ++t) {
    assert_true(ctrl[2 * t] == (sn_real)wanted[t]);
    assert_true(ctrl[2 * t + 1] == (sn_real)(wanted[t] < 0 ? -11 : wanted[t] + 10));
  }
}

static void shift(void **state) {
  (void)state;
  shifted(0, SN_TAIL_HOLD, (const int[]){0, 1, 2, 3, 4});
  shifted(2, SN_TAIL_HOLD, (const int[]){2, 3, 4, 4, 4});
  shifted(2, SN_TAIL_INITIAL, (const int[]){2, 3, 4, -1, -1});
  shifted(5, SN_TAIL_HOLD, (const int[]){4, 4, 4, 4, 4});
  shifted(9, SN_TAIL_HOLD, (const int[]){4, 4, 4, 4, 4});
  shifted(7, SN_TAIL_INITIAL, (const int[]){-1, -1, -1, -1, -1});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(normalised), cmocka_unit_test(shift)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
