// Sensor values against MuJoCo's sensordata, for every supported type, kind of object and kind of reference.
#include <stdio.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

// The inertia of body b is so nearly in line with the body that MuJoCo takes the body's orientation for its own.
static const char kBodies[] =
    "<worldbody><site name='w' pos='.3 .1 1' euler='10 20 30'/><geom name='w' type='box' size='.1 .1 .1' pos='1 1 1' "
    "euler='40 5 6'/>"
    "<body name='a' pos='0 0 1'><joint name='h' axis='0 1 .2' range='-20 20' stiffness='3 .4 .5' "
    "armature='.02'/><joint name='s' type='slide' axis='1 0 "
    ".1' range='-.2 .2'/>"
    "<geom name='a' type='box' size='.05 .03 .02' pos='.1 0 0' euler='5 6 7'/><site name='a' pos='.05 0 .02' euler='10 "
    "40 30'/>"
    "<body name='b' pos='.2 0 0'><joint name='ball' type='ball' range='0 60' stiffness='2 .3 .1'/>"
    "<inertial pos='.1 0 .02' quat='1 0 7e-7 0' mass='1' diaginertia='.02 .01 .02'/><geom name='b' type='capsule' "
    "size='.03 "
    ".1' pos='.1 0 0' euler='0 70 1'/>"
    "<site name='b' pos='.06 0 .02' euler='-50 20 70'/></body></body>"
    "<body name='f' pos='.2 .2 1.5' euler='1 2 3'><joint name='f' type='free' stiffness='4 .5 .2'/><geom name='f' "
    "type='ellipsoid' size='.03 .04 "
    ".05' pos='.01 0 0' euler='3 2 1'/>"
    "<site name='f' pos='.02 .02 .01' euler='5 6 7'/></body>"
    "<body name='m' mocap='true' pos='0 1 1' euler='20 40 60'><site name='m' pos='.1 .2 .3'/></body>"
    "<body name='z' pos='3 0 0'><joint name='z' axis='1 0 0' actuatorfrcrange='-5 5'/><geom "
    "size='.1'/></body></worldbody>"
    "<tendon><spatial name='t' range='.3 .35' stiffness='5 2 3' springlength='.2 .31'><site site='w'/><site "
    "site='a'/><site site='b'/></spatial>"
    "<fixed name='x' range='-.1 .1'><joint joint='h' coef='1'/></fixed></tendon>"
    "<actuator><motor name='u' joint='h' gear='2'/><motor name='t' tendon='t'/><motor name='t2' tendon='t' "
    "gear='3'/><motor name='z' joint='z' gear='3'/><position name='p' joint='z' kp='2' kv='.5'/>"
    "<position name='x' tendon='x' kp='3' kv='.1'/></actuator>";

static const char kScalars[] =
    "<clock/><jointpos joint='h'/><jointvel joint='s'/><jointpos joint='h' cutoff='.1'/><ballquat "
    "joint='ball'/><ballangvel joint='ball'/>"
    "<tendonpos tendon='t'/><tendonvel tendon='t'/><tendonpos tendon='t' cutoff='.2'/><actuatorpos "
    "actuator='t2'/><actuatorvel actuator='u'/>"
    "<actuatorfrc actuator='t'/><jointactuatorfrc joint='h'/><tendonactuatorfrc tendon='t'/>"
    "<jointlimitpos joint='h'/><jointlimitvel joint='h'/><jointlimitfrc joint='h'/><jointlimitpos joint='ball'/>"
    "<tendonlimitpos tendon='t'/><tendonlimitvel tendon='t'/><tendonlimitfrc tendon='x'/><jointlimitfrc joint='s' "
    "cutoff='.01'/>"
    "<subtreecom body='a'/><subtreecom body='b'/><subtreecom body='m'/><subtreecom body='world'/>"
    "<subtreelinvel body='a'/><subtreelinvel body='b'/><subtreelinvel body='m'/><subtreelinvel body='world'/><gyro "
    "site='b'/><velocimeter site='b'/><gyro "
    "site='w'/><velocimeter site='f' cutoff='.3'/><actuatorfrc actuator='x'/><jointactuatorfrc joint='z'/>"
    "<jointlimitvel joint='ball'/><jointlimitvel joint='s'/><tendonlimitvel tendon='x'/><tendonlimitpos tendon='x'/>"
    "<magnetometer site='b'/><magnetometer site='w'/><magnetometer site='m'/><subtreeangmom body='a'/><subtreeangmom "
    "body='b'/><subtreeangmom body='f'/><subtreeangmom body='world'/><subtreeangmom body='m'/><e_potential/>"
    "<e_kinetic/>";

// Every frame sensor of every kind of object in every kind of frame.
static size_t frame_sensors(char *xml, size_t capacity) {
  static const char *const kinds[] = {"framepos",   "framequat",   "framexaxis", "frameyaxis",
                                      "framezaxis", "framelinvel", "frameangvel"};
  static const char *const objects[][2] = {{"body", "b"}, {"xbody", "b"}, {"geom", "f"},
                                           {"site", "a"}, {"xbody", "m"}, {"geom", "w"}};
  static const char *const refs[][2] = {{"body", "a"}, {"xbody", "f"}, {"geom", "b"},
                                        {"site", "f"}, {"site", "m"},  {"site", "w"}};
  size_t n = 0;
  for (size_t k = 0; k < 7; ++k)
    for (size_t i = 0; i < 6; ++i)
      for (size_t j = 0; j < 7; ++j) {
        n += (size_t)snprintf(xml + n, capacity - n, "<%s objtype='%s' objname='%s'", kinds[k], objects[i][0],
                              objects[i][1]);
        if (j < 6) n += (size_t)snprintf(xml + n, capacity - n, " reftype='%s' refname='%s'", refs[j][0], refs[j][1]);
        n += (size_t)snprintf(xml + n, capacity - n, "/>");
      }
  return n;
}

// On MuJoCo's fields, or on those of our own step, which computes no more than it needs.
static void compare(SnOracle *o, bool own) {
  mj_forward(o->mj, o->d);
  if (own) {
    sn_oracle_copy_state(o);
    sn_forward(o->m, &o->w, &o->lane);
  } else {
    sn_oracle_fill(o);
  }
  for (int i = 0; i < o->m->nsensor; ++i) {
    // relative to the size of the scene: values may cancel
    sn_real value[4];
    assert_true(sn_sensor_supported(o->m, i));
    sn_sensor_value(o->m, &o->w, i, value);
    const double *ref = o->d->sensordata + o->m->sensor_adr[i];
    double scale = 1;
    for (int k = 0; k < o->m->sensor_dim[i]; ++k) scale = sn_larger(scale, fabs(ref[k]));
    for (int k = 0; k < o->m->sensor_dim[i]; ++k)
      if (!(fabs((double)value[k] - ref[k]) <= scale * (own ? SN_TOL(1e-6, 2e-2) : SN_TOL_SENSOR)))
        fail_msg("sensor %d of type %d: %g, MuJoCo %g", i, o->m->sensor_type[i], (double)value[k], ref[k]);
  }
}

// The switches of actuators: all at work, actuation off, their group off.
static const char *const kSwitches[] = {"", "<option><flag actuation='disable'/></option>",
                                        "<option actuatorgroupdisable='0'/>"};

// The scene with all sensors and one of the switches; free it.
static char *all_sensors(const char *option) {
  const size_t capacity = 60000;
  char *xml = malloc(capacity);
  size_t n = (size_t)snprintf(xml, capacity, "<mujoco><option magnetic='.1 -.5 .3'/>%s%s<sensor>%s", option, kBodies,
                              kScalars);
  n += frame_sensors(xml + n, capacity - n);
  snprintf(xml + n, capacity - n, "</sensor></mujoco>");
  return xml;
}

// Sensors of actuators where those are switched off: their velocities are measured only where actuation is on.
static void switched_off(void **state) {
  (void)state;
  for (int c = 0; c < 3; ++c) {
    char xml[8000];
    double speed = 0;
    SnOracle o;
    snprintf(xml, sizeof xml, "<mujoco>%s%s<sensor>%s</sensor></mujoco>", kSwitches[c], kBodies, kScalars);
    sn_oracle_load_string(&o, xml);
    for (int k = 0; k < 20; ++k) {
      sn_oracle_randomize(&o, 1);
      compare(&o, false);
      compare(&o, true);
      for (int i = 0; i < o.m->nout; ++i) speed = sn_larger(speed, fabs((double)o.w.actuator_velocity[i]));
    }
    assert_true((speed == 0) == (c == 1));
    sn_oracle_free(&o);
  }
}

static void every_sensor(void **state) {
  (void)state;
  char *xml = all_sensors("");
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  print_message("%d sensors\n", o.m->nsensor);
  int limits = 0;
  for (int k = 0; k < 50; ++k) {
    sn_oracle_randomize(&o, 1);
    for (int j = 0; j < 2; ++j) o.d->qpos[j] *= 1.3;  // beyond the limits now and then
    o.d->time = 0.3 * k;
    for (int i = 0; i < 3; ++i) o.d->mocap_pos[i] += 0.1 * sn_oracle_uniform(&o);
    compare(&o, false);
    compare(&o, true);
    limits |= o.d->nl > 2;
  }
  assert_true(limits);
  sn_oracle_free(&o);
  free(xml);
}

// What cannot be computed does no harm in a model and is known as such.
static void unsupported(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><camera name='c' mode='track' resolution='2 2'/><body "
                        "name='a'><joint/><geom size='.1'/><site "
                        "name='s'/></body></worldbody>"
                        "<sensor><rangefinder camera='c'/><framelinacc objtype='camera' objname='c'/><insidesite "
                        "objtype='camera' objname='c' "
                        "site='s'/>"
                        "<framepos objtype='camera' objname='c'/><rangefinder camera='c' data='dir'/>"
                        "<clock/></sensor></mujoco>");
  for (int i = 0; i < 5; ++i) assert_false(sn_sensor_supported(o.m, i));
  assert_true(sn_sensor_supported(o.m, 5));
  sn_real data[24];
  assert_int_equal(o.m->nsensordata, 24);
  *o.w.time = SN_R(2.5);
  sn_forward(o.m, &o.w, &o.lane);
  sn_sensor_data(o.m, &o.w, &o.lane, data);
  for (int i = 0; i < 23; ++i) assert_true(isnan(data[i]));
  assert_true(data[23] == SN_R(2.5));
  sn_oracle_free(&o);
}

static void stages(void **state) {
  (void)state;
  SnOracle o;
  char xml[8000];
  snprintf(xml, sizeof xml, "<mujoco>%s<sensor>%s</sensor></mujoco>", kBodies, kScalars);
  sn_oracle_load_string(&o, xml);
  assert_int_equal(sn_sensor_stage(o.m, 1), SN_STAGE_STATE);        // jointpos
  assert_int_equal(sn_sensor_stage(o.m, 6), SN_STAGE_TENDON);       // tendonpos
  assert_int_equal(sn_sensor_stage(o.m, 11), SN_STAGE_ACTUATION);   // actuatorfrc
  assert_int_equal(sn_sensor_stage(o.m, 14), SN_STAGE_CONSTRAINT);  // jointlimitpos
  assert_int_equal(sn_sensor_stage(o.m, 16), SN_STAGE_SOLVER);      // jointlimitfrc
  sn_oracle_free(&o);
}

// ---- gradient ----

enum { MAX_SENSORS = 400 };

typedef struct Gradient {
  SnGradWorld g;
  bool data;  // of the numbers of sn_sensor_data; else of each sensor, and turns of quaternions
  sn_real base[MAX_SENSORS][4];
} Gradient;

static int residual_size(const Gradient *x, int i) {
  const int n = x->g.m->sensor_dim[i];
  return n == 4 && !x->data ? 3 : n;
}

static bool sample_state(void *context) {
  Gradient *x = context;
  SnGradWorld *g = &x->g;
  sn_oracle_randomize(g->o, 1);
  for (int j = 0; j < 2; ++j) g->o->d->qpos[j] *= 1.3;
  for (int i = 0; i < 3; ++i) g->o->d->mocap_pos[i] += 0.1 * sn_oracle_uniform(g->o);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_forward(g->m, &g->w, &g->lane);
  for (int i = 0; i < g->m->nsensor; ++i) sn_sensor_value(g->m, &g->w, i, x->base[i]);
  return true;
}

// Whether a value is at its cutoff, or that of a limit without row.
static bool held(const SnModel *m, int i, sn_real value) {
  return (value == 0 && m->sensor_type[i] >= SN_SENS_JOINTLIMITPOS && m->sensor_type[i] <= SN_SENS_TENDONLIMITFRC) ||
         (m->sensor_cutoff[i] > 0 && sn_abs(value) >= m->sensor_cutoff[i]);
}

// Values of all sensors with a gradient; of quaternions the turn from the base, or their numbers.
static bool values(void *context, const double *dx, double *y) {
  Gradient *x = context;
  SnGradWorld *g = &x->g;
  const SnModel *m = g->m;
  sn_grad_world_move(g, dx);
  sn_forward(m, &g->w, &g->lane);
  for (int i = 0; i < m->nsensor; ++i) {
    sn_real value[4], back[4], turn[4];
    if (!sn_sensor_differentiable(m, i)) continue;
    sn_sensor_value(m, &g->w, i, value);
    for (int k = 0; k < m->sensor_dim[i] && m->sensor_dim[i] < 4; ++k)
      if (held(m, i, value[k]) != held(m, i, x->base[i][k])) return false;
    if (m->sensor_dim[i] == 4 && !x->data) {
      sn_negquat(back, x->base[i]);
      sn_mulquat(turn, value, back);
      sn_quat2vel(value, turn);
    }
    for (int k = 0; k < residual_size(x, i); ++k) *y++ = (double)value[k];
  }
  return true;
}

static void values_vjp(void *context, const double *ybar, double *xbar) {
  Gradient *x = context;
  SnGradWorld *g = &x->g;
  const SnModel *m = g->m;
  sn_real data_bar[4 * MAX_SENSORS] = {0};
  sn_grad_world_move(g, NULL);
  sn_forward(m, &g->w, &g->lane);
  sn_adjoint_clear(m, &g->a, &g->lane);
  sn_motion_rest(m, &g->w, &g->a, &g->lane);
  if (!x->data) sn_acceleration_begin(m, &g->w, &g->a, &g->lane);
  for (int i = 0; i < m->nsensor; ++i) {
    sn_real *bar = data_bar + m->sensor_adr[i];
    if (!sn_sensor_differentiable(m, i)) continue;
    for (int k = 0; k < residual_size(x, i); ++k) bar[k] = (sn_real)*ybar++;
    if (!x->data) sn_sensor_vjp(m, &g->w, &g->a, i, bar);
  }
  if (x->data) {
    sn_sensor_data_vjp(m, &g->w, &g->a, &g->lane, data_bar);
  } else {
    sn_actuator_force_vjp(m, &g->w, &g->a, &g->lane);
    sn_acceleration_vjp(m, &g->w, &g->a, &g->lane);
  }
  sn_position_vjp(m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

// Derivatives of all sensors of the scene with one of the switches, and of their numbers.
static void check_gradients(const char *option) {
  char *xml = all_sensors(option);
  static Gradient x;
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  sn_grad_world_init(&x.g, &o);
  assert_true(o.m->nsensor <= MAX_SENSORS);
  for (int data = 0; data < 2; ++data) {
    int n = 0, without = 0;
    x.data = data;
    for (int i = 0; i < o.m->nsensor; ++i) {
      if (sn_sensor_differentiable(o.m, i))
        n += residual_size(&x, i);
      else
        ++without;
    }
    assert_int_equal(without, 0);
    const SnGradCase c = {.name = data ? "numbers of sensors" : "sensors",
                          .nx = sn_grad_world_nx(&x.g),
                          .ny = n,
                          .context = &x,
                          .sample = sample_state,
                          .forward = values,
                          .adjoint = values_vjp,
                          .samples = 30};
    sn_gradcheck(&c, 1);
  }
  sn_grad_world_free(&x.g);
  sn_oracle_free(&o);
  free(xml);
}

static void gradients(void **state) {
  (void)state;
  check_gradients("");
}

static void gradients_switched_off(void **state) {
  (void)state;
  for (int c = 1; c < 3; ++c) check_gradients(kSwitches[c]);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_sensor), cmocka_unit_test(switched_off),
                                     cmocka_unit_test(unsupported),  cmocka_unit_test(stages),
                                     cmocka_unit_test(gradients),    cmocka_unit_test(gradients_switched_off)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
