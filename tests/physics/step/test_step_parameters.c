// Derivatives of a step by numbers of the model where products of rows with M^-1 count: with the noslip solver, with
// exact diagonals, with both; with smoothed hard contacts; and by numbers of actuators whose slopes are in the matrix
// of implicit integrators; by springs, dampers and inertias under `discrete`; against differences of steps of moved
// models.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/constraint/constraint.h"
#include "physics/model/model_arrays.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"
#include "tests/support/parameter_check.h"
#include "tests/support/sigmoid_model.h"

enum { PARAMETERS = 10, NUMBERS = 400, CURVES = 3, PARTS = 16 };
static const char *const parts[PARTS] = {
    "jnt_stiffness",       "jnt_stiffnesspoly", "qpos_spring",    "tendon_stiffness", "tendon_stiffnesspoly",
    "tendon_lengthspring", "dof_damping",       "tendon_damping", "body_mass",        "body_inertia",
    "body_ipos",           "body_pos",          "jnt_pos",        "tendon_armature",  "jnt_solref",
    "jnt_solimp"};
static const char *const curves[CURVES] = {"actuator_gainprm", "actuator_biasprm", "actuator_dynprm"};
static const char *const names[PARAMETERS] = {"geom_friction",       "geom_size",  "geom_pos",     "body_mass",
                                              "body_inertia",        "body_ipos",  "dof_armature", "dof_frictionloss",
                                              "tendon_frictionloss", "geom_solref"};

// Whether entry i of qpos belongs to a quaternion.
static bool is_turn(const SnModel *m, int i) {
  for (int j = 0; j < m->njnt; ++j) {
    const int turn = m->jnt_qposadr[j] + (m->jnt_type[j] == SN_JNT_FREE ? 3 : 0);
    if ((m->jnt_type[j] == SN_JNT_FREE || m->jnt_type[j] == SN_JNT_BALL) && i >= turn && i < turn + 4) return true;
  }
  return false;
}

// Entry i of an array is moved by another share of itself than its neighbours.
static SnModel *moved_array(const SnModel *m, const char *name, double step) {
  SnModelArray a;
  SnError err;
  double value[NUMBERS];
  assert_true(sn_model_find_array(m, name, &a) && a.rows * a.cols <= NUMBERS);
  for (int i = 0; i < a.rows * a.cols; ++i) value[i] = (double)((const sn_real *)a.data)[i] * (1 + step * (1 + i % 4));
  for (int i = 0; strcmp(name, "qpos_spring") == 0 && i < m->nq; ++i)
    if (is_turn(m, i)) value[i] = (double)m->qpos_spring[i];
  const SnNewArray array = {name, value, a.rows, a.cols};
  SnModel *copy = sn_model_with_arrays(m, &array, 1, &err);
  if (!copy) fail_msg("%s: %s", name, err.text);
  return copy;
}

static SnModel *moved(const SnModel *m, int p, double step) { return moved_array(m, names[p], step); }

static SnModel *moved_curves(const SnModel *m, int p, double step) { return moved_array(m, curves[p], step); }

static SnModel *moved_parts(const SnModel *m, int p, double step) { return moved_array(m, parts[p], step); }

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
    {"discrete, cones", "<option integrator='discrete' cone='elliptic' impratio='2'/>", 3, 0},
    {"discrete, cones of six", "<option integrator='discrete' cone='elliptic'/>", 6, 0},
    {"discrete, pyramids", "<option integrator='discrete'/>", 4, 0},
    {"sigmoid, cones of six", "<option cone='elliptic' impratio='2'/>", 6, 0.3},
    {"sigmoid, pyramids", "<option integrator='implicitfast'/>", 4, 0.3},
    {"sigmoid, noslip, exact diagonals", "<option noslip_iterations='3'><flag diagexact='enable'/></option>", 3, 0.2}};

// Loads a scene at qpos0, with random velocities up to `push` [rad/s, m/s].
static void load_pushed(SnOracle *o, const char *xml, double push) {
  sn_oracle_load_string(o, xml);
  for (int i = 0; i < o->m->nv; ++i) o->d->qvel[i] = push * sn_oracle_uniform(o);
}

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
      load_pushed(&o, xml, 2 * pushed);
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
static const char *const servos =
    "<mujoco><option integrator='%s' timestep='.01'/><worldbody><site name='s' pos='.05 0 .6'/><body pos='0 0 "
    ".5'><joint name='a' axis='0 1 0' armature='.01'/><geom type='capsule' size='.03' fromto='0 0 0 0 0 "
    "-.3'/><site name='t' pos='.04 0 -.1'/><body pos='0 0 -.3'><joint name='b' axis='0 1 0'/><geom "
    "type='capsule' size='.03' fromto='0 0 0 .2 0 -.1'/></body></body></worldbody>"
    "<tendon><spatial name='v'><site site='s'/><site site='t'/></spatial></tendon><actuator>"
    "<muscle tendon='v' lengthrange='.1 .25' force='60' vmax='2'/><muscle tendon='v' lengthrange='.05 .14' "
    "force='40' fpmax='3'/>"
    "<general joint='b' gaintype='affine' gainprm='1 .3 -.4' biastype='affine' biasprm='.1 -2 -.5'/>"
    "<general joint='a' dyntype='filter' dynprm='.05' gaintype='affine' gainprm='2 .1 -.6' "
    "actearly='true'/></actuator></mujoco>";

static void parameters_of_slopes(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();  // differences of floats are rounding
  static const char *const integrators[] = {"Euler", "implicit", "implicitfast", "RK4", "discrete"};
  for (size_t k = 0; k < sizeof integrators / sizeof *integrators; ++k)
    for (int pushed = 1; pushed < 4; ++pushed) {
      SnOracle o;
      char xml[2000], what[100];
      snprintf(xml, sizeof xml, servos, integrators[k]);
      snprintf(what, sizeof what, "%s, push %d", integrators[k], pushed);
      load_pushed(&o, xml, pushed);
      for (int i = 0; i < o.m->na; ++i) o.d->act[i] = 0.3 - 0.1 * i;
      for (int i = 0; i < o.m->nu; ++i) o.d->ctrl[i] = 0.7 - 0.2 * i;
      mj_forward(o.mj, o.d);
      sn_check_step_parameters(&o, what, curves, CURVES, moved_curves);
      sn_oracle_free(&o);
    }
}

// The effective inertia of `discrete` with springs of all kinds, and the impedances of limits that it moves: with
// springs that a step resolves, with one that it replaces, with numbers of which MuJoCo takes none, and in a fluid.
static const char *const springs =
    "<mujoco><compiler angle='radian'/><option integrator='discrete' timestep='.008' %s "
    "tolerance='1e-15'/><worldbody><site name='s' "
    "pos='.05 .02 .6'/><body pos='.1 0 .5'><joint name='a' axis='0 1 0' pos='.01 .02 .03' armature='.01' "
    "stiffness='40 3 2' springref='.3' damping='.4 .1 .05' limited='true' range='-.2 .2' solreflimit='%s' "
    "solimplimit='.6 .9 .3 .4 2'/><joint name='c' axis='1 0 .2' pos='.02 0 .01' stiffness='3'/><geom "
    "type='capsule' "
    "size='.03' fromto='0 0 0 0 .02 -.3'/><site name='t' pos='.04 0 -.1'/><body pos='.01 0 -.3'><joint name='b' "
    "type='ball' pos='.01 .03 0' stiffness='5 2 1' damping='.1'/><geom type='capsule' size='.03' fromto='0 0 0 "
    ".2 "
    "0 -.1'/><body pos='.2 .01 -.1'><joint name='d' axis='0 .6 .8' pos='.01 0 .02' damping='.05' limited='true' "
    "range='-.1 .1' solreflimit='%s' solimplimit='%s .2 .6 2'/><geom size='.05' pos='.06 0 "
    ".02'/></body></body></body>"
    "<body pos='0 1 1'><joint name='f' type='free' stiffness='3 1 1' damping='.2'/><geom type='box' size='.1 .2 "
    ".15' pos='.02 .01 0'/><site name='u' "
    "pos='.1 .1 0'/></body></worldbody><tendon><spatial name='v' stiffness='200 50 30' damping='3 1 .5' "
    "springlength='.05 .09' armature='.2'><site site='s'/><site site='t'/></spatial><fixed stiffness='4' "
    "damping='.3' armature='.02'><joint joint='a' coef='.7'/><joint joint='d' coef='-.4'/></fixed>"
    "<spatial stiffness='30' springlength='.2'><site site='s'/><site site='u'/></spatial></tendon></mujoco>";

static void parameters_of_inertia(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();  // differences of floats are rounding
  static const char *const hardness[][4] = {
      {".03 1", ".03 1", ".7 .95", ""},      {".004 .8", ".004 .8", ".7 .95", ""},
      {"-900 -20", "-900 -20", ".8 .8", ""}, {"-100 1", ".03 1", ".7 .95", ""},
      {".03 1", ".02 -1", ".7 .95", ""},     {".03 1", ".03 1", ".7 .95", "density='1000' viscosity='5'"}};
  for (size_t k = 0; k < sizeof hardness / sizeof *hardness; ++k)
    for (int pushed = 1; pushed < 4; ++pushed) {
      SnOracle o;
      char xml[3000], what[100];
      snprintf(xml, sizeof xml, springs, hardness[k][3], hardness[k][0], hardness[k][1], hardness[k][2]);
      snprintf(what, sizeof what, "solref %s and %s, push %d", hardness[k][0], hardness[k][1], pushed);
      load_pushed(&o, xml, pushed);
      for (int i = 0; i < o.m->nv; ++i) o.d->qacc[i] = 0.2 * sn_oracle_uniform(&o);
      mj_integratePos(o.mj, o.d->qpos, o.d->qacc, 1);
      o.d->qpos[o.mj->jnt_qposadr[0]] = 0.3;
      o.d->qpos[o.mj->jnt_qposadr[3]] = -0.2;
      mj_forward(o.mj, o.d);
      assert_true(o.d->nefc == 2);
      sn_check_step_parameters(&o, what, parts, PARTS, moved_parts);
      sn_oracle_free(&o);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parameters), cmocka_unit_test(parameters_of_slopes),
                                     cmocka_unit_test(parameters_of_inertia)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
