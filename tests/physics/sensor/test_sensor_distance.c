// Sensors of distances between geoms and bodies, and of what a camera sees, against MuJoCo's sensordata and
// differences.
#include <stdio.h>
#include <stdlib.h>

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

enum { NUMBERS = 400 };

// Bodies that are near each other but do not touch: depths of convex pairs are MuJoCo's to its tolerance alone. Nothing
// can touch the wedge: its hull is there for the sensors.
static const char bodies[] =
    "<asset><mesh name='wedge' vertex='0 0 0 .2 0 0 0 .2 0 0 0 .3 .2 .1 .1'/></asset><worldbody>"
    "<camera name='wall' pos='0 -2 .5' xyaxes='1 0 0 0 .3 1' fovy='60' resolution='64 48'/>"
    "<geom name='floor' type='plane' size='2 2 1'/>"
    "<body name='a' pos='0 0 .5'><freejoint/><geom name='ball' size='.1'/><geom name='rod' type='capsule' size='.05 "
    ".1' "
    "pos='.32 0 0' euler='0 70 0'/><camera name='eye' pos='.1 .02 .03' euler='20 30 40' resolution='30 20' "
    "sensorsize='.03 .02' focal='.02 .025'/><site name='a' pos='.1 .1 0'/></body>"
    "<body name='b' pos='.6 .2 .6'><freejoint/><geom name='brick' type='box' size='.1 .08 .06' euler='10 20 30'/>"
    "<geom name='egg' type='ellipsoid' size='.05 .07 .09' pos='0 .2 0'/><site name='b' pos='.05 0 .02'/></body>"
    "<body name='c' pos='-.3 .6 .7'><freejoint/><geom name='can' type='cylinder' size='.06 .1' euler='30 10 0'/>"
    "<geom name='wedge' type='mesh' mesh='wedge' pos='0 .3 0' contype='0' conaffinity='0'/></body></worldbody>";

static char *scene(void) {
  static const char *const pairs[] = {
      "geom1='floor' geom2='ball'", "geom1='rod' geom2='floor'", "geom1='ball' geom2='rod'",
      "geom1='brick' geom2='ball'", "geom1='rod' geom2='brick'", "geom1='egg' geom2='can'",
      "geom1='wedge' geom2='ball'", "geom1='can' geom2='rod'",   "body1='a' body2='b'",
      "body1='c' body2='a'",        "geom1='floor' body2='c'",   "body1='b' geom2='wedge'"};
  static const char *const kinds[] = {"distance", "normal", "fromto"};
  const size_t capacity = 20000;
  char *xml = malloc(capacity);
  size_t n = (size_t)snprintf(xml, capacity, "<mujoco><option><flag contact='disable'/></option>%s<sensor>", bodies);
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; ++k)
    for (int i = 0; i < 3; ++i)
      n += (size_t)snprintf(xml + n, capacity - n, "<%s %s cutoff='%g'/>", kinds[i], pairs[k], k == 4 ? 0.55 : 5.0);
  n += (size_t)snprintf(
      xml + n, capacity - n,
      "<camprojection site='b' camera='eye'/><camprojection site='a' camera='wall'/><camprojection site='b' "
      "camera='wall'/><framepos objtype='camera' objname='eye'/><framequat objtype='camera' objname='eye' "
      "reftype='body' "
      "refname='b'/><framezaxis objtype='site' objname='a' reftype='camera' refname='eye'/><framelinvel "
      "objtype='camera' "
      "objname='eye' reftype='camera' refname='wall'/><framelinacc objtype='camera' objname='eye'/>");
  snprintf(xml + n, capacity - n, "</sensor></mujoco>");
  return xml;
}

static void draw(SnOracle *o) {
  sn_oracle_randomize(o, 1);
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) o->d->qpos[7 * j + i] = o->mj->qpos0[7 * j + i] + 0.1 * sn_oracle_uniform(o);
}

static void values(void **state) {
  (void)state;
  SnOracle o;
  char *xml = scene();
  sn_oracle_load_string(&o, xml);
  int compared = 0, cut = 0;
  for (int sample = 0; sample < 60; ++sample) {
    draw(&o);
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &o.lane);
    for (int i = 0; i < o.m->nsensor; ++i) {
      sn_real value[6];
      const double *ref = o.d->sensordata + o.m->sensor_adr[i];
      assert_true(sn_sensor_supported(o.m, i) && sn_sensor_differentiable(o.m, i));
      sn_sensor_value(o.m, &o.w, i, value);
      const bool pair = o.m->sensor_type[i] >= SN_SENS_GEOMDIST && o.m->sensor_type[i] <= SN_SENS_GEOMFROMTO;
      const int first = pair ? i / 3 * 3 : i;
      cut += pair && i == first && ref[0] == o.mj->sensor_cutoff[i];
      if (pair && o.d->sensordata[o.m->sensor_adr[first]] < 1e-3) continue;  // a depth
      double scale = 1;
      for (int k = 0; k < o.m->sensor_dim[i]; ++k) scale = sn_larger(scale, fabs(ref[k]));
      for (int k = 0; k < o.m->sensor_dim[i]; ++k, ++compared)
        if (!(fabs((double)value[k] - ref[k]) <= scale * SN_TOL(1e-6, 2e-2)))
          fail_msg("sample %d: sensor %d of type %d, number %d: %.9g, MuJoCo %.9g", sample, i, o.m->sensor_type[i], k,
                   (double)value[k], ref[k]);
    }
  }
  assert_true(compared > 5000 && cut > 5);
  sn_oracle_free(&o);
  free(xml);
}

static bool sample(void *context) {
  SnGradWorld *g = context;
  draw(g->o);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_forward(g->m, &g->w, &g->lane);
  for (int i = 0; i < g->m->nsensor; ++i) {
    sn_real value[6];
    sn_sensor_value(g->m, &g->w, i, value);
    if (g->m->sensor_type[i] == SN_SENS_GEOMDIST && value[0] < SN_R(0.005)) return false;
    if (g->m->sensor_type[i] == SN_SENS_CAMPROJECTION && sn_abs(value[0]) > 2000) return false;  // seen from the side
  }
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = context;
  sn_real data[NUMBERS];
  assert_true(g->m->nsensordata <= NUMBERS);
  sn_grad_world_move(g, dx);
  sn_forward(g->m, &g->w, &g->lane);
  sn_sensor_data(g->m, &g->w, &g->lane, data);
  for (int k = 0; k < g->m->nsensordata; ++k) y[k] = (double)data[k];
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  sn_real bar[NUMBERS];
  sn_grad_world_move(g, NULL);
  sn_forward(g->m, &g->w, &g->lane);
  for (int k = 0; k < g->m->nsensordata; ++k) bar[k] = (sn_real)ybar[k];
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  sn_motion_rest(g->m, &g->w, &g->a, &g->lane);
  sn_sensor_data_vjp(g->m, &g->w, &g->a, &g->lane, bar);
  sn_position_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void gradients(void **state) {
  (void)state;
  static SnGradWorld g;
  SnOracle o;
  char *xml = scene();
  sn_oracle_load_string(&o, xml);
  sn_grad_world_init(&g, &o);
  const SnGradCase c = {.name = "distances and cameras",
                        .nx = sn_grad_world_nx(&g),
                        .ny = o.m->nsensordata,
                        .context = &g,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .tolerance = 2e-5,
                        .samples = 6};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
  free(xml);
}

// Planes have no nearest points.
static void unsupported(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><geom name='p' type='plane' size='1 1 1'/><geom name='q' type='plane' size='1 1 1' pos='0 0 "
      "-1'/><body name='a'><joint/><geom name='s' size='.1'/></body></worldbody><sensor><distance geom1='p' "
      "body2='a'/><distance geom1='p' geom2='q'/><distance geom1='p' geom2='s'/></sensor></mujoco>");
  const bool want[3] = {true, false, true};
  for (int i = 0; i < 3; ++i)
    if (sn_sensor_supported(o.m, i) != want[i]) fail_msg("sensor %d", i);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(gradients),
                                     cmocka_unit_test(unsupported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
