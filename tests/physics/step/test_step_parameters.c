// Derivatives of a step by numbers of the model where products of rows with M^-1 count: with the noslip solver, with
// exact diagonals, with both; with smoothed hard contacts; and by numbers of actuators whose slopes are in the matrix
// of implicit integrators; against differences of steps of moved models.
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/model/model_arrays.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"
#include "tests/support/parameter_check.h"
#include "tests/support/sigmoid_model.h"

enum { PARAMETERS = 10, NUMBERS = 400, CURVES = 3 };
static const char *const curves[CURVES] = {"actuator_gainprm", "actuator_biasprm", "actuator_dynprm"};
static const char *const names[PARAMETERS] = {"geom_friction",       "geom_size",  "geom_pos",     "body_mass",
                                              "body_inertia",        "body_ipos",  "dof_armature", "dof_frictionloss",
                                              "tendon_frictionloss", "geom_solref"};

// Entry i of an array is moved by another share of itself than its neighbours.
static SnModel *moved_array(const SnModel *m, const char *name, double step) {
  SnModelArray a;
  SnError err;
  double value[NUMBERS];
  assert_true(sn_model_find_array(m, name, &a) && a.rows * a.cols <= NUMBERS);
  for (int i = 0; i < a.rows * a.cols; ++i) value[i] = (double)((const sn_real *)a.data)[i] * (1 + step * (1 + i % 4));
  const SnNewArray array = {name, value, a.rows, a.cols};
  SnModel *copy = sn_model_with_arrays(m, &array, 1, &err);
  if (!copy) fail_msg("%s: %s", name, err.text);
  return copy;
}

static SnModel *moved(const SnModel *m, int p, double step) { return moved_array(m, names[p], step); }

static SnModel *moved_curves(const SnModel *m, int p, double step) { return moved_array(m, curves[p], step); }

// A box and a ball that slide and spin, an arm whose joints and tendons rub, a limit that holds.
static const char *const bodies =
    "<worldbody><geom type='plane' size='9 9 1' pos='0 0 .01' friction='.4 .02 .003'/>"
    "<body pos='0 0 .105' euler='0 1 2'><freejoint/><geom type='box' size='.12 .1 .1' pos='.01 0 0' condim='%d' "
    "friction='.5 .03 .02' solref='.03 1'/></body>"
    "<body pos='.6 0 .105'><freejoint/><geom size='.1' pos='.01 .02 0' condim='6' friction='.3 .03 .02'/></body>"
    "<body pos='0 .6 .5'><joint name='a' axis='1 0 0' frictionloss='.3' armature='.01'/><geom type='capsule' "
    "size='.03' "
    "fromto='0 0 0 0 0 -.3'/><body pos='0 0 -.3'><joint name='b' axis='0 1 .3' frictionloss='.2' range='-20 1'/><geom "
    "type='capsule' size='.03' fromto='0 0 0 .2 0 -.1'/></body></body></worldbody>"
    "<tendon><fixed name='t' frictionloss='.3'><joint joint='a' coef='1'/><joint joint='b' "
    "coef='-.5'/></fixed></tendon>";

typedef struct Case {
  const char *name, *option;
  int condim;
  double restitution;  // above 0: contacts of the sigmoid
} Case;
static const Case cases[] = {
    {"noslip, cones", "<option cone='elliptic' noslip_iterations='3'/>", 3, 0},
    {"noslip, cones of six", "<option cone='elliptic' noslip_iterations='5' integrator='implicitfast'/>", 6, 0},
    {"noslip, pyramids", "<option noslip_iterations='4'/>", 4, 0},
    {"exact diagonals, cones", "<option cone='elliptic' impratio='3'><flag diagexact='enable'/></option>", 4, 0},
    {"exact diagonals, pyramids", "<option><flag diagexact='enable'/></option>", 3, 0},
    {"both", "<option noslip_iterations='3' cone='elliptic'><flag diagexact='enable'/></option>", 3, 0},
    {"sigmoid, cones of six", "<option cone='elliptic' impratio='2'/>", 6, 0.3},
    {"sigmoid, pyramids", "<option integrator='implicitfast'/>", 4, 0.3},
    {"sigmoid, noslip, exact diagonals", "<option noslip_iterations='3'><flag diagexact='enable'/></option>", 3, 0.2}};

static void parameters(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();  // differences of floats are rounding
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
    for (int pushed = 1; pushed < 4; ++pushed) {
      SnOracle o;
      char xml[3000], body[2500], what[100];
      snprintf(body, sizeof body, bodies, cases[k].condim);
      snprintf(xml, sizeof xml, "<mujoco>%s%s</mujoco>", cases[k].option, body);
      snprintf(what, sizeof what, "%s, push %d", cases[k].name, pushed);
      sn_oracle_load_string(&o, xml);
      for (int i = 0; i < o.m->nv; ++i) o.d->qvel[i] = 2 * pushed * sn_oracle_uniform(&o);
      for (int t = 0; t < 3; ++t) mj_step(o.mj, o.d);
      mj_forward(o.mj, o.d);
      assert_true(o.d->nefc > 8);
      const bool sigmoid = cases[k].restitution > 0;
      if (sigmoid) sn_oracle_sigmoid(&o, 0.01, 0.2, cases[k].restitution);
      sn_check_step_parameters(&o, what, names, sigmoid ? PARAMETERS - 1 : PARAMETERS, moved);  // it reads no solref
      sn_oracle_free(&o);
    }
}

// An arm that a muscle and servos with slopes by velocity move, which implicit integrators put into their matrix.
static void parameters_of_slopes(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();  // differences of floats are rounding
  static const char *const integrators[] = {"Euler", "implicit", "implicitfast", "RK4"};
  for (size_t k = 0; k < sizeof integrators / sizeof *integrators; ++k)
    for (int pushed = 1; pushed < 4; ++pushed) {
      SnOracle o;
      char xml[2000], what[100];
      snprintf(
          xml, sizeof xml,
          "<mujoco><option integrator='%s' timestep='.01'/><worldbody><site name='s' pos='.05 0 .6'/><body pos='0 0 "
          ".5'><joint name='a' axis='0 1 0' armature='.01'/><geom type='capsule' size='.03' fromto='0 0 0 0 0 "
          "-.3'/><site name='t' pos='.04 0 -.1'/><body pos='0 0 -.3'><joint name='b' axis='0 1 0'/><geom "
          "type='capsule' size='.03' fromto='0 0 0 .2 0 -.1'/></body></body></worldbody>"
          "<tendon><spatial name='v'><site site='s'/><site site='t'/></spatial></tendon><actuator>"
          "<muscle tendon='v' lengthrange='.1 .25' force='60' vmax='2'/>"
          "<general joint='b' gaintype='affine' gainprm='1 .3 -.4' biastype='affine' biasprm='.1 -2 -.5'/>"
          "<general joint='a' dyntype='filter' dynprm='.05' gaintype='affine' gainprm='2 .1 -.6' "
          "actearly='true'/></actuator></mujoco>",
          integrators[k]);
      snprintf(what, sizeof what, "%s, push %d", integrators[k], pushed);
      sn_oracle_load_string(&o, xml);
      for (int i = 0; i < o.m->nv; ++i) o.d->qvel[i] = pushed * sn_oracle_uniform(&o);
      for (int i = 0; i < o.m->na; ++i) o.d->act[i] = 0.3 + 0.2 * i;
      for (int i = 0; i < o.m->nu; ++i) o.d->ctrl[i] = 0.7 - 0.2 * i;
      mj_forward(o.mj, o.d);
      sn_check_step_parameters(&o, what, curves, CURVES, moved_curves);
      sn_oracle_free(&o);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parameters), cmocka_unit_test(parameters_of_slopes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
