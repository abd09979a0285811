// Moving surfaces: conveyor belts that stand and that move with a body, turntables, spheres that spin on their spot, by
// both cones: rows and steps as MuJoCo's, derivatives by the numbers of the surfaces, what a model without them has.
#include <stdio.h>

#include "physics/model/model_arrays.h"
#include "physics/step/step.h"
#include "tests/support/parameter_check.h"
#include "tests/support/surface_model.h"
#include "tests/support/tolerance.h"

// A hundred steps, each from MuJoCo's state.
static void against_mujoco(void **state) {
  (void)state;
  for (int k = 0; k < 2; ++k) {
    SnOracle o;
    int contacts = 0;
    sn_surface_load(&o, k == 1);
    assert_int_equal(o.m->nsurface, 3);
    for (int t = 0; t < 100; ++t) {
      sn_oracle_copy_state(&o);
      mj_step(o.mj, o.d);
      sn_step(o.m, &o.w, &o.lane);
      contacts += o.d->ncon;
      assert_int_equal(o.w.nefc[0], o.d->nefc);
      for (int i = 0; i < o.d->nefc; ++i)
        if (!(fabs((double)o.w.efc_vel[i] - o.d->efc_vel[i]) <= SN_TOL(1e-9, 1e-3)))
          fail_msg("cone %d, step %d: efc_vel[%d] is %.12g, MuJoCo's %.12g", k, t, i, (double)o.w.efc_vel[i],
                   o.d->efc_vel[i]);
      for (int i = 0; i < o.m->nv; ++i)
        if (!(fabs((double)o.w.qvel[i] - o.d->qvel[i]) <= SN_TOL(1e-8, 1e-2)))
          fail_msg("cone %d, step %d: velocity %d is %.12g, MuJoCo's %.12g", k, t, i, (double)o.w.qvel[i],
                   o.d->qvel[i]);
    }
    assert_true(contacts > 300);
    sn_oracle_free(&o);
  }
}

// A box on a belt takes its speed, within the creep of friction.
static void a_belt_carries(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><option cone='elliptic' impratio='10'/><worldbody><geom type='plane' size='9 9 1' "
                        "surfacevel='.5 -.25 3'/><body pos='0 0 .05'><freejoint/><geom type='box' size='.1 .1 .05'/>"
                        "</body></worldbody></mujoco>");
  sn_oracle_copy_state(&o);
  for (int t = 0; t < 1000; ++t) sn_step(o.m, &o.w, &o.lane);
  assert_true(fabs((double)o.w.qvel[0] - .5) < .01 && fabs((double)o.w.qvel[1] + .25) < .01);
  assert_true(fabs((double)o.w.qvel[2]) < .01);
  sn_oracle_free(&o);
}

enum { PARAMETERS = 3 };
static const char *const names[PARAMETERS] = {"geom_surfacevel", "geom_friction", "geom_pos"};

static SnModel *moved(const SnModel *m, int p, double step) {
  SnModelArray a;
  SnError err;
  double value[100];
  assert_true(sn_model_find_array(m, names[p], &a) && a.rows * a.cols <= 100);
  for (int i = 0; i < a.rows * a.cols; ++i) {
    const double x = (double)((const sn_real *)a.data)[i];
    value[i] = p == 0 ? x + step * (x != 0) * (1 + i % 4) : (p == 1 ? x * (1 + step) : x);
  }
  if (p == 2) value[3 * 1] += step;  // the belt on its body
  const SnNewArray array = {names[p], value, a.rows, a.cols};
  SnModel *copy = sn_model_with_arrays(m, &array, 1, &err);
  if (!copy) fail_msg("%s: %s", names[p], err.text);
  return copy;
}

static void parameters(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();  // differences of floats are rounding
  for (int k = 0; k < 2; ++k) {
    SnOracle o;
    sn_surface_load(&o, k == 1);
    for (int t = 0; t < 60; ++t) mj_step(o.mj, o.d);
    sn_check_step_parameters(&o, k ? "elliptic" : "pyramidal", names, PARAMETERS, moved);
    sn_oracle_free(&o);
  }
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_mujoco), cmocka_unit_test(a_belt_carries),
                                     cmocka_unit_test(parameters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
