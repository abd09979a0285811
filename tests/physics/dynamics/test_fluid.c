// Forces of a fluid: at rest and at any speed as MuJoCo's, off where passive forces are, what a model without a fluid
// has of it, derivatives of a step by the numbers of the fluid, and densities that are refused. (test_passive.c and
// test_integrate_vjp.c have the force and its derivatives on the shared models.)
#include <stdio.h>

#include "physics/dynamics/dynamics.h"
#include "physics/import/import_mjcf.h"
#include "physics/model/model_arrays.h"
#include "physics/model/model_bar.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/parameter_check.h"
#include "tests/support/tolerance.h"

// A free body of two ellipsoids, a simple body, a chain of a box, an ellipsoid and a part that is welded to it.
static const char *const parts =
    "<worldbody><body pos='1 0 1'><freejoint/><geom type='ellipsoid' size='.1 .05 .02' pos='.03 0 0' euler='20 30 0' "
    "fluidshape='ellipsoid'/><geom type='capsule' size='.02 .1' pos='-.1 0 0' fluidshape='ellipsoid' fluidcoef='1 .3 "
    ".8 1.2 .7'/></body>"
    "<body pos='2 0 1'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint type='ball'/><geom "
    "type='ellipsoid' size='.1 .07 .08' fluidshape='ellipsoid'/></body>"
    "<body pos='4 0 1'><joint axis='0 1 0' damping='.1'/><geom type='box' size='.02 .1 .05' pos='.1 0 0'/>"
    "<body pos='.2 0 0'><joint type='ball'/><geom type='cylinder' size='.05 .02' pos='.1 .02 0' euler='0 40 20' "
    "fluidshape='ellipsoid'/><body pos='.1 0 .1' euler='10 0 0'><geom type='box' size='.1 .05 .02'/></body></body>"
    "</body></worldbody>";

static void load(SnOracle *o, const char *option) {
  char xml[4000];
  snprintf(xml, sizeof xml, "<mujoco><option timestep='.005' %s/>%s</mujoco>", option, parts);
  sn_oracle_load_string(o, xml);
}

// One step of both engines from the same state, whose velocity has this scale.
static void step_both(SnOracle *o, double speed) {
  sn_oracle_randomize(o, speed);
  sn_oracle_copy_state(o);
  mjData *before = mj_copyData(NULL, o->mj, o->d);
  mj_step(o->mj, o->d);
  sn_step(o->m, &o->w, &o->lane);
  double change = 1e-12;
  for (int i = 0; i < o->m->nv; ++i) change = sn_larger(change, fabs(o->d->qvel[i] - before->qvel[i]));
  for (int i = 0; i < o->m->nv; ++i) {
    const double error = fabs((double)o->w.qvel[i] - o->d->qvel[i]);
    if (!(error <= SN_TOL(1e-10, 1e-4) * (change + speed)))
      fail_msg("speed %g, dof %d: velocity %.12g, MuJoCo's %.12g", speed, i, (double)o->w.qvel[i], o->d->qvel[i]);
  }
  mj_deleteData(before);
}

static void against_mujoco(void **state) {
  (void)state;
  static const char *const option[] = {"density='900'",
                                       "viscosity='2'",
                                       "density='900' viscosity='.5' wind='.4 -1 2' integrator='implicitfast'",
                                       "density='1.2' gravity='0 0 0' integrator='implicitfast'",
                                       "density='900' wind='1 2 3' integrator='RK4'",
                                       "density='900' viscosity='.5' wind='.4 -1 2' integrator='implicit'",
                                       "density='900' viscosity='.5' wind='.4 -1 2' integrator='discrete'",
                                       "viscosity='2' integrator='discrete'"};
  for (size_t k = 0; k < sizeof option / sizeof *option; ++k) {
    SnOracle o;
    load(&o, option[k]);
    assert_int_equal(o.m->nfluid, 6);
    for (int i = 0; i < 4; ++i) {
      step_both(&o, 2);
      step_both(&o, 1e-3);
    }
    step_both(&o, 0);
    sn_oracle_free(&o);
  }
}

// A factor of geom_fluid other than 0 and 1, which only a program can set, and a body that loses its ellipsoids.
static void set_by_arrays(void **state) {
  (void)state;
  SnOracle o;
  load(&o, "density='900' integrator='implicitfast'");
  for (int i = 0; i < o.mj->ngeom; ++i) o.mj->geom_fluid[SN_NFLUID * i] *= i == 2 ? 0 : 0.4;
  double fluid[SN_NFLUID * 10];
  SnError err;
  for (int i = 0; i < SN_NFLUID * o.mj->ngeom; ++i) fluid[i] = o.mj->geom_fluid[i];
  const SnNewArray array = {"geom_fluid", fluid, (int)o.mj->ngeom, SN_NFLUID};
  SnModel *m = sn_model_with_arrays(o.m, &array, 1, &err), *own = o.m;
  assert_non_null(m);
  assert_int_equal(m->fluid_kind[m->nfluid - 1], own->fluid_kind[m->nfluid - 1]);
  assert_int_equal(m->nfluid, own->nfluid);
  o.m = m;
  for (int i = 0; i < 4; ++i) step_both(&o, 2);
  o.m = own;
  sn_model_free(m);
  sn_oracle_free(&o);
}

static void off(void **state) {
  (void)state;
  SnOracle o;
  load(&o, "density='0' viscosity='0' wind='1 2 3'");
  assert_int_equal(o.m->nfluid, 0);
  step_both(&o, 2);
  sn_oracle_free(&o);
  load(&o, "density='900' integrator='implicitfast'><flag spring='disable' damper='disable'/></option><option");
  assert_true(o.m->nfluid > 0);
  step_both(&o, 2);
  for (int i = 0; i < o.m->nv; ++i) assert_true(o.w.qfrc_fluid[i] == 0);
  sn_oracle_free(&o);
}

enum { PARAMETERS = 10 };
static const char *const arrays[PARAMETERS] = {"geom_fluid", "geom_size", "geom_pos", "body_mass", "body_inertia",
                                               "body_ipos",  "geom_quat", "density",  "viscosity", "wind"};

// Rows that stay: of a simple body, whose M is a constant beside its mass; frames of inertias but that of the last
// body.
static bool is_held(const char *name, int row, int rows) {
  if (strcmp(name, "body_ipos") == 0) return row < rows - 1;
  return row == 2 && (strcmp(name, "body_mass") == 0 || strcmp(name, "body_inertia") == 0);
}

// The model with one array or option times 1 + step, or plus step for frames.
static SnModel *moved(const SnModel *m, int p, double step) {
  const double nan[SN_NIMP] = {NAN, NAN, NAN, NAN, NAN};
  sn_real none[SN_NIMP];
  SnError err;
  SnModel *copy;
  if (p >= 7) {
    SnOption opt = m->opt;
    opt.density *= p == 7 ? (sn_real)(1 + step) : 1;
    opt.viscosity *= p == 8 ? (sn_real)(1 + step) : 1;
    for (int e = 0; e < 3; ++e) opt.wind[e] += p == 9 ? (sn_real)(step * (e + 1)) : 0;
    for (int e = 0; e < SN_NIMP; ++e) none[e] = (sn_real)nan[e];
    copy = sn_model_with_options(m, &opt, none, none, &err);
  } else {
    SnModelArray a;
    assert_true(sn_model_find_array(m, arrays[p], &a));
    double value[400];
    const bool frame = strstr(arrays[p], "pos") || strstr(arrays[p], "quat");
    for (int i = 0; i < a.rows * a.cols; ++i) {
      const double x = (double)((const sn_real *)a.data)[i];
      value[i] = x;
      if (is_held(arrays[p], i / a.cols, a.rows)) continue;
      value[i] = frame ? x + step * ((i + i / 3) % 3 - 1) : x * (1 + step);
    }
    if (strstr(arrays[p], "quat"))
      for (int i = 0; i < a.rows; ++i) mju_normalize4(value + 4 * i);
    const SnNewArray array = {arrays[p], value, a.rows, a.cols};
    copy = sn_model_with_arrays(m, &array, 1, &err);
  }
  if (!copy) fail_msg("%s: %s", arrays[p], err.text);
  return copy;
}

static void check_parameters(const char *option) {
  SnOracle o;
  load(&o, option);
  sn_oracle_randomize(&o, 2);
  sn_check_step_parameters(&o, option, arrays, PARAMETERS, moved);
  sn_oracle_free(&o);
}

static void parameters(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();  // differences of floats are rounding
  check_parameters("density='900' viscosity='.5' wind='.4 -1 2'");
  check_parameters("density='900' viscosity='.5' wind='.4 -1 2' integrator='implicitfast'");
  check_parameters("density='900' viscosity='.5' wind='.4 -1 2' integrator='implicit'");
  check_parameters("density='900' viscosity='.5' wind='.4 -1 2' integrator='discrete'");
}

// A body that slides along its own axes; %s: the integrator, attributes of the body, the first axis.
static const char kSlides[] =
    "<mujoco><option density='900' viscosity='.5' wind='.4 -1 2' integrator='%s'/><worldbody><body%s><joint "
    "type='slide' axis='%s'/><joint type='slide' axis='0 1 0'/><joint type='slide' axis='0 0 1'/><geom "
    "type='ellipsoid' size='.1 .07 .05' fluidshape='ellipsoid'/></body></worldbody></mujoco>";

static void load_slides(SnOracle *o, const char *integrator, const char *body, const char *axis) {
  char xml[2000];
  snprintf(xml, sizeof xml, kSlides, integrator, body, axis);
  sn_oracle_load_string(o, xml);
}

// Turns the axis of slide p / 2 towards another one.
static SnModel *turned(const SnModel *m, int p, double step) {
  double axis[9];
  SnError err;
  for (int i = 0; i < 9; ++i) axis[i] = (double)m->jnt_axis[i];
  axis[3 * (p / 2) + (p / 2 + 1 + p % 2) % 3] += step;
  mju_normalize3(axis + 3 * (p / 2));
  const SnNewArray array = {"jnt_axis", axis, 3, 3};
  SnModel *copy = sn_model_with_arrays(m, &array, 1, &err);
  if (!copy) fail_msg("%s", err.text);
  return copy;
}

// Axes of slides have derivatives in a fluid under every integrator. Of a body that MuJoCo's compiler made simple,
// whose inertia and fluid are diagonal in these very axes, they are refused, moved by arrays or compiled anew.
static void axes_of_slides(void **state) {
  (void)state;
  static const char *const names[6] = {"x to y", "x to z", "y to z", "y to x", "z to x", "z to y"};
  static const char *const integrators[] = {"Euler", "implicitfast", "implicit", "RK4", "discrete"};
  SnOracle o, other;
  SnError err;
  if (sizeof(sn_real) == 4) skip();  // differences of floats are rounding
  for (int k = 0; k < 5; ++k) {
    load_slides(&o, integrators[k], " simple='false'", "1 0 0");
    assert_int_equal(o.m->dof_simplenum[0], 0);
    sn_oracle_randomize(&o, 2);
    sn_check_step_parameters(&o, integrators[k], names, 6, turned);
    sn_oracle_free(&o);
  }
  load_slides(&o, "implicitfast", "", "1 0 0");
  load_slides(&other, "implicitfast", "", "1 .001 0");
  assert_int_equal(o.m->dof_simplenum[0], 3);
  const double axis[9] = {1, 1e-3, 0, 0, 1, 0, 0, 0, 1}, step = 1e-3;
  const SnNewArray array = {"jnt_axis", axis, 3, 3};
  assert_null(sn_model_with_arrays(o.m, &array, 1, &err));
  assert_non_null(strstr(err.text, "jnt_axis[0] cannot have another number: the inertia matrix of body 1"));
  const SnModel *const plus = other.m, *const minus = o.m;
  assert_null(sn_model_tangents_create(o.m, &plus, &minus, &step, 1, &err));
  assert_non_null(strstr(err.text, "it changes dof_simplenum[0] from 3 to 0, which is no number"));
  sn_oracle_free(&o);
  sn_oracle_free(&other);
}

static void refusals(void **state) {
  (void)state;
  SnOracle o;
  SnError err;
  load(&o, "density='900'");
  SnOption opt = o.m->opt;
  opt.density = -1;
  assert_int_equal(sn_option_check(&opt, &err), SN_ERR_FORMAT);
  assert_string_equal(err.text, "model: option density is -1: must be at least 0");
  opt = o.m->opt;
  opt.viscosity = -1;
  assert_int_equal(sn_option_check(&opt, &err), SN_ERR_FORMAT);
  assert_string_equal(err.text, "model: option viscosity is -1: must be at least 0");
  opt = o.m->opt;
  opt.wind[2] = NAN;
  assert_int_equal(sn_option_check(&opt, &err), SN_ERR_FORMAT);
  o.mj->opt.density = o.mj->opt.viscosity = -1;
  int count;
  char *text = sn_import_unsupported(o.mj, &count);
  assert_int_equal(count, 2);
  assert_string_equal(text,
                      "option 'density': a density below 0 is not supported\n"
                      "option 'viscosity': a viscosity below 0 is not supported\n");
  free(text);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(against_mujoco), cmocka_unit_test(set_by_arrays),  cmocka_unit_test(off),
      cmocka_unit_test(parameters),     cmocka_unit_test(axes_of_slides), cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
