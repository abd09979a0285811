// Tactile sensors against MuJoCo's sensordata: pads of two meshes, touched by every shape that has a distance, and by a
// mesh that has none.
#include <stdio.h>
#include <stdlib.h>

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

enum { KINDS = 6, MOST = 400 };
static const char *const kinds[KINDS] = {"size='.03'",
                                         "type='box' size='.03 .02 .025'",
                                         "type='capsule' size='.02 .03'",
                                         "type='ellipsoid' size='.02 .03 .025'",
                                         "type='cylinder' size='.02 .03'",
                                         "type='mesh' mesh='block'"};

static void load(SnOracle *o, const char *first, const char *second) {
  char xml[3000];
  snprintf(xml, sizeof xml,
           "<mujoco><asset><mesh name='plate' builtin='plate' params='5 4' scale='.04 .04 .005'/><mesh name='wedge' "
           "builtin='wedge' params='3 4 60 40 0' scale='.05 .05 .05'/><mesh name='block' vertex='-.02 -.02 -.02 .02 "
           "-.02 -.02 .02 .02 -.02 -.02 .02 -.02 -.02 0 .02 .02 0 .02'/></asset><worldbody>"
           "<body name='pad' euler='10 20 30'><freejoint/><geom type='box' size='.04 .04 .005'/><geom name='s' "
           "type='mesh' mesh='plate' pos='0 .002 0' euler='5 6 7' contype='0' conaffinity='0'/><body pos='.03 0 0'>"
           "<geom name='v' type='mesh' mesh='wedge' contype='0' conaffinity='0'/><geom size='.02' "
           "condim='1'/></body></body>"
           "<body name='a' pos='0 0 .02'><freejoint/><geom %s/></body><body name='b'><freejoint/><geom %s/></body>"
           "</worldbody><sensor><tactile geom='s' mesh='plate'/><tactile geom='v' mesh='wedge' cutoff='.004'/></sensor>"
           "</mujoco>",
           first, second);
  sn_oracle_load_string(o, xml);
}

// Bodies about each other, moving.
static void draw(SnOracle *o) {
  mj_resetData(o->mj, o->d);
  for (int b = 0; b < 3; ++b) {
    double *q = o->d->qpos + 7 * b;
    for (int k = 0; k < 3; ++k) q[k] = b > 0 ? 0.02 * sn_oracle_uniform(o) : 0;
    q[3] = 1;
    for (int k = 4; k < 7; ++k) q[k] = 0.4 * sn_oracle_uniform(o);
    mju_normalize4(q + 3);
  }
  for (int k = 0; k < o->mj->nv; ++k) o->d->qvel[k] = sn_oracle_uniform(o);
}

static void values(void **state) {
  (void)state;
  int deep = 0, sliding = 0;
  for (int kind = 0; kind < KINDS; ++kind) {
    SnOracle o;
    load(&o, kinds[kind], kinds[(kind + 1) % KINDS]);
    assert_true(o.m->nsensordata <= MOST && sn_sensor_supported(o.m, 0) && sn_sensor_supported(o.m, 1));
    assert_false(sn_sensor_differentiable(o.m, 0));
    assert_int_equal(sn_sensor_stage(o.m, 0), SN_STAGE_VELOCITY);
    for (int sample = 0; sample < 40; ++sample) {
      sn_real data[MOST];
      draw(&o);
      mj_forward(o.mj, o.d);
      sn_oracle_copy_state(&o);
      sn_forward(o.m, &o.w, &o.lane);
      sn_sensor_data(o.m, &o.w, &o.lane, data);
      for (int k = 0; k < o.m->nsensordata; ++k) {
        const double ref = o.d->sensordata[k];
        const int n = o.m->sensor_dim[0] / 3;
        deep += k < n && ref > 0;
        sliding += k >= n && k < 3 * n && ref > 0;
        if (!(fabs((double)data[k] - ref) <= SN_TOL(1e-11, 1e-3)))
          fail_msg("%s, sample %d, number %d: %.12g, MuJoCo %.12g", kinds[kind], sample, k, (double)data[k], ref);
      }
    }
    sn_oracle_free(&o);
  }
  print_message("%d depths, %d speeds\n", deep, sliding);
  assert_true(deep > 300 && sliding > 600);
}

// Signed distance fields and height fields are not felt.
static void unsupported(void **state) {
  (void)state;
  SnOracle o;
  load(&o, kinds[0], "type='sdf' mesh='block' contype='0' conaffinity='0'/><geom size='.1'");
  assert_false(sn_sensor_supported(o.m, 0));
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(unsupported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
