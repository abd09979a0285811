// Derivatives of sensors by the numbers of the model, against differences of models that MuJoCo compiled with these
// numbers moved both ways.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/model/model_bar.h"
#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"

// Every %.9g is a parameter, %s one of the options.
static const char *const scene =
    "<mujoco><compiler inertiafromgeom='false'/>%s<option gravity='.3 0 %.9g' magnetic='.1 %.9g .3'/><worldbody>"
    "<geom name='floor' type='plane' size='3 3 1' friction='%.9g .1 .01'/>"
    "<body name='upper' pos='0 0 .8'><joint name='shoulder' type='ball' stiffness='%.9g %.9g %.9g' damping='.2'/>"
    "<inertial pos='.1 %.9g -.1' quat='1 .1 .2 0' mass='%.9g' diaginertia='.02 %.9g .03'/>"
    "<geom type='capsule' fromto='0 0 0 .2 0 -.2' size='.04' contype='0' conaffinity='0'/>"
    "<site name='upper' pos='.03 %.9g -.05' euler='20 40 60'/>"
    "<body name='lower' pos='.2 0 -.2'><joint name='elbow' axis='0 1 .2' armature='%.9g' stiffness='3' "
    "springref='%.9g'/>"
    "<inertial pos='.1 0 -.1' quat='1 0 .3 0' mass='%.9g' diaginertia='.02 .01 .02'/>"
    "<site name='lower' euler='5 6 7'/><body name='hand' pos='%.9g 0 -.2' euler='%.9g 0 0'><inertial pos='.01 .02 0' "
    "mass='%.9g' "
    "diaginertia='.001 .002 .002'/><geom name='hand' size='.06' mass='.2' pos='0 0 %.9g'/><site name='hand' euler='50 "
    "20 "
    "10' "
    "size='.08'/><camera name='hand' pos='.05 .1 .02' euler='30 0 0'/></body></body></body>"
    "<body name='box' pos='.9 .2 .099'><freejoint/><inertial pos='0 0 0' mass='%.9g' diaginertia='.01 .02 .02'/><geom "
    "name='box' type='box' size='.15 .12 %.9g' friction='.6'/><site name='box' type='box' size='.3 .3 "
    ".3'/></body>"
    "<body pos='.9 .2 1'><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/><site name='down' zaxis='.1 0 -1'/></body>"
    "<body pos='2 0 .045'><joint axis='.3 .2 1'/><inertial pos='.1 0 0' mass='1' diaginertia='.01 .02 .02'/><geom "
    "size='.05' pos='.1 0 0' adhesion='%.9g'/><site name='pad'/></body>"
    "</worldbody><sensor><accelerometer site='hand'/><force site='upper'/><torque site='upper'/><force site='lower'/>"
    "<torque site='hand'/><force site='box'/><force site='pad'/><torque site='pad'/><framelinacc objtype='body' "
    "objname='lower'/><touch "
    "site='box'/><magnetometer "
    "site='hand'/><subtreecom body='upper'/><subtreelinvel body='upper'/><subtreeangmom body='upper'/><e_potential/>"
    "<e_kinetic/><rangefinder site='down'/><distance geom1='box' geom2='hand' cutoff='5'/><framepos objtype='body' "
    "objname='upper'/><framepos objtype='camera' objname='hand'/><framezaxis objtype='camera' objname='hand'/>"
    "<framelinvel objtype='site' objname='box' reftype='camera' refname='hand'/><camprojection camera='hand' "
    "site='box'/></sensor></mujoco>";

enum { PARAMETERS = 20, LONG = 8000, SENSORS = 80 };
static const double numbers[PARAMETERS] = {-9, .5, .8, 2,  .02, 1.2, .025, .02, .05, .3,
                                           .7, .2, 5,  .4, .01, 1.5, .1,   .3,  .2,  2};
static const char *const names[PARAMETERS] = {"gravity",
                                              "magnetic flux",
                                              "friction",
                                              "stiffness of a ball",
                                              "centre of mass",
                                              "mass",
                                              "inertia",
                                              "place of a site",
                                              "armature",
                                              "rest of a spring",
                                              "mass of a middle body",
                                              "place of a welded body",
                                              "turn of a welded body",
                                              "mass of a welded body",
                                              "place of a geom",
                                              "mass of a free body",
                                              "size of a box",
                                              "square of a stretch",
                                              "cube of a stretch",
                                              "pull of contacts"};

static const char *const options[] = {"", "<option noslip_iterations='3' cone='elliptic'/>",
                                      "<option noslip_iterations='2'/>",
                                      "<option cone='elliptic'><flag diagexact='enable'/></option>"};
static const char *option;  // of the present one

static void load(SnOracle *o, int moved, double step) {
  double x[PARAMETERS];
  char xml[LONG];
  memcpy(x, numbers, sizeof x);
  if (moved >= 0) x[moved] += step;
  const int n = snprintf(xml, sizeof xml, scene, option, x[0], x[1], x[2], x[3], x[17], x[18], x[4], x[5], x[6], x[7],
                         x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15], x[16], x[19]);
  assert_true(n > 0 && n < LONG);
  sn_oracle_load_string(o, xml);
}

// The state of the test in a world of some model.
static void place(SnOracle *o, const SnOracle *from) {
  const SnModel *m = o->m;
  memcpy(o->w.qpos, from->w.qpos, sizeof *o->w.qpos * (size_t)m->nq);
  memcpy(o->w.qvel, from->w.qvel, sizeof *o->w.qvel * (size_t)m->nv);
  sn_forward(m, &o->w, &o->lane);
  sn_solve_finish(m, &o->w, &o->lane);
}

// The model and those with each parameter moved up and down, and the directions that these make.
typedef struct Family {
  SnOracle o, up[PARAMETERS], down[PARAMETERS];
  SnParameterRows by;
  SnAdjoint a;
  void *memory;
} Family;

static const double step = 1e-6;

static void open_family(Family *f) {
  const SnModel *plus[PARAMETERS], *minus[PARAMETERS];
  double steps[PARAMETERS];
  SnError err = {0};
  load(&f->o, -1, 0);
  assert_true(f->o.m->nsensordata <= SENSORS);
  for (int p = 0; p < PARAMETERS; ++p) {
    load(&f->up[p], p, step);
    load(&f->down[p], p, -step);
    plus[p] = f->up[p].m;
    minus[p] = f->down[p].m;
    steps[p] = step;
  }
  f->by.tangents = sn_model_tangents_create(f->o.m, plus, minus, steps, PARAMETERS, &err);
  if (!f->by.tangents) fail_msg("%s", err.text);
  f->by.memory = aligned_alloc(64, (sn_parameter_rows_size(f->by.tangents) + 63) / 64 * 64);
  f->memory = aligned_alloc(64, (sn_adjoint_size(f->o.m) + 63) / 64 * 64);
  sn_adjoint_init(f->o.m, &f->a, f->memory);
}

static void close_family(Family *f) {
  for (int p = 0; p < PARAMETERS; ++p) {
    sn_oracle_free(&f->up[p]);
    sn_oracle_free(&f->down[p]);
  }
  sn_model_tangents_free((SnModelTangents *)f->by.tangents);
  free(f->by.memory);
  free(f->memory);
  sn_oracle_free(&f->o);
}

// Number r of the sensors by all parameters; returns how many of the derivatives are not zero.
static int check_number(Family *f, int r) {
  SnOracle *o = &f->o;
  sn_real bar[SENSORS] = {0}, row[PARAMETERS], y[2][SENSORS];
  int moving = 0;
  bar[r] = 1;
  sn_adjoint_clear(o->m, &f->a, &o->lane);
  sn_motion_rest(o->m, &o->w, &f->a, &o->lane);
  sn_sensor_data_vjp(o->m, &o->w, &f->a, &o->lane, bar);
  sn_position_vjp(o->m, &o->w, &f->a, &o->lane);
  sn_parameter_row(&f->by, 0, row);
  sn_parameter_rows_clear(&f->by);
  for (int p = 0; p < PARAMETERS; ++p) {
    SnOracle *const end[2] = {&f->up[p], &f->down[p]};
    for (int e = 0; e < 2; ++e) {
      place(end[e], o);
      sn_sensor_data(end[e]->m, &end[e]->w, &end[e]->lane, y[e]);
    }
    const double difference = ((double)y[0][r] - (double)y[1][r]) / (2 * step);
    moving += fabs(difference) > 1e-3;
    if (!(fabs((double)row[p] - difference) <= 2e-5 * (20 + fabs(difference))))
      fail_msg("number %d of the sensors by %s: %.9g, difference %.9g", r, names[p], (double)row[p], difference);
  }
  return moving;
}

static void check_option(int k) {
  static Family f;
  option = options[k];
  open_family(&f);
  SnOracle *o = &f.o;
  assert_true(sn_has_noslip(o->m) == (k == 1 || k == 2) && sn_has_exact_diagonal(o->m) == (k == 3));
  const double flat[4] = {1, .01, .02, .1};
  sn_oracle_randomize(o, 0.5);
  for (int i = 0; i < 3; ++i) o->d->qpos[5 + i] = o->mj->qpos0[5 + i];
  for (int i = 0; i < 4; ++i) o->d->qpos[8 + i] = flat[i] / sqrt(1.0105);
  o->d->qpos[7] = 0.09;
  o->d->qpos[12] = 0.1;
  mj_forward(o->mj, o->d);
  sn_oracle_copy_state(o);
  place(o, o);
  assert_true(o->w.ncon[0] > 0);
  int moving = 0;
  sn_parameter_rows_begin(&f.by, &f.a);
  for (int r = 0; r < o->m->nsensordata; ++r) moving += check_number(&f, r);
  sn_parameter_rows_end(&f.a);
  print_message("option %d: %d derivatives that are not zero\n", k, moving);
  assert_true(moving > 300);
  close_family(&f);
}

static void by_parameters(void **state) {
  (void)state;
  for (int k = 0; k < (int)(sizeof options / sizeof *options); ++k) check_option(k);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_parameters)};
#ifdef SN_SINGLE
  (void)tests;  // differences of floats would show their rounding
  return 0;
#else
  return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
