// Contact sensors against MuJoCo's sensordata: every kind of object, reduction and field, in contacts of both cones.
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

static const char bodies[] =
    "<worldbody><geom name='floor' type='plane' size='3 3 1' condim='4' friction='.8 .1 .01' gap='.02'/>"
    "<body name='a' pos='0 0 .1'><freejoint/><geom name='a' type='box' size='.2 .15 .1' condim='6'/><site name='zone' "
    "type='box' size='.1 .2 .15' pos='.15 0 -.05'/><body name='limb' pos='.25 0 0'><joint axis='0 1 0'/><geom "
    "name='limb' "
    "type='capsule' size='.05 .12' euler='0 80 0'/></body></body>"
    "<body name='b' pos='.1 0 .3'><freejoint/><geom name='b' type='sphere' size='.11' gap='.05'/></body>"
    "<body name='c' pos='-.1 .02 .29'><freejoint/><geom name='c' type='ellipsoid' size='.1 .12 .1' condim='1'/></body>"
    "</worldbody>";

static const char *const objects[] = {"",
                                      "geom1='floor'",
                                      "geom1='a' geom2='floor'",
                                      "geom2='a'",
                                      "body1='b'",
                                      "body1='floor'",
                                      "subtree1='a'",
                                      "subtree1='a' subtree2='b'",
                                      "subtree2='a'",
                                      "subtree1='a' subtree2='a'",
                                      "site='zone'",
                                      "site='zone' body2='b'",
                                      "body1='c' geom2='a'",
                                      "body1='world' subtree2='a'"};
static const char *const data[] = {"found", "found force torque dist pos normal tangent linvel angvel",
                                   "found force torque dist pos normal tangent", "dist", "force tangent"};
static const char *const reductions[] = {"none", "mindist", "maxforce", "netforce"};

static char *scene(const char *cone) {
  const size_t capacity = 60000;
  char *xml = malloc(capacity);
  size_t n = (size_t)snprintf(xml, capacity, "<mujoco><option cone='%s'/>%s<sensor>", cone, bodies);
  for (size_t k = 0; k < sizeof objects / sizeof *objects; ++k) {
    if (strstr(objects[k], "body1='floor'")) continue;
    for (size_t r = 0; r < 4; ++r)
      for (size_t f = 0; f < 5; ++f) {
        if (r == 3 && f == 1) continue;
        n += (size_t)snprintf(xml + n, capacity - n, "<contact %s data='%s' reduce='%s' num='%d'/>", objects[k],
                              data[f], reductions[r], r == 3 ? 1 : 1 + (int)f);
      }
  }
  snprintf(xml + n, capacity - n, "</sensor></mujoco>");
  return xml;
}

static void draw(SnOracle *o) {
  sn_oracle_randomize(o, 0.3);
  for (int i = 0; i < o->m->nq; ++i) o->d->qpos[i] = o->mj->qpos0[i] + 0.04 * sn_oracle_uniform(o);
}

// Forces are good to the solver's tolerance; where two are equal to it the order is open, which the draws avoid.
static void values(void **state) {
  (void)state;
  static const char *const cones[] = {"pyramidal", "elliptic"};
  for (int cone = 0; cone < 2; ++cone) {
    SnOracle o;
    char *xml = scene(cones[cone]);
    sn_oracle_load_string(&o, xml);
    sn_real *ours = malloc(sizeof *ours * (size_t)o.m->nsensordata);
    int full = 0, empty = 0;
    for (int sample = 0; sample < 30; ++sample) {
      draw(&o);
      mj_forward(o.mj, o.d);
      sn_oracle_copy_state(&o);
      sn_forward(o.m, &o.w, &o.lane);
      sn_solve_finish(o.m, &o.w, &o.lane);
      assert_int_equal(o.w.ncon[0], o.d->ncon);
      sn_sensor_data(o.m, &o.w, &o.lane, ours);
      double scale = 20;
      for (int j = 0; j < o.d->nefc; ++j) scale = sn_larger(scale, fabs(o.d->efc_force[j]));
      for (int i = 0; i < o.m->nsensor; ++i) {
        assert_true(sn_sensor_supported(o.m, i) && !sn_sensor_differentiable(o.m, i));
        // in float the order of contacts that are about equal is another one
        const int reduce = o.m->sensor_intprm[SN_NSENS * i + 1];
        if (sizeof(sn_real) == sizeof(float) && (reduce == 1 || reduce == 2)) continue;
        for (int k = 0; k < o.m->sensor_dim[i]; ++k) {
          const int at = o.m->sensor_adr[i] + k;
          full += o.d->sensordata[at] != 0;
          empty += o.d->sensordata[at] == 0;
          if (!(fabs((double)ours[at] - o.d->sensordata[at]) <= scale * SN_TOL(1e-7, 1e-1)))
            fail_msg("%s, sample %d: sensor %d, number %d: %.9g, MuJoCo %.9g", cones[cone], sample, i, k,
                     (double)ours[at], o.d->sensordata[at]);
        }
      }
    }
    assert_true(full > 5000 && empty > 5000);
    free(ours);
    sn_oracle_free(&o);
    free(xml);
  }
}

// What is asked for decides which stage has to run.
static void stages(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><geom name='g' type='plane' size='1 1 1'/></worldbody><sensor><contact "
                        "geom1='g'/><contact data='linvel'/><contact data='torque'/><contact data='pos' "
                        "reduce='maxforce'/><contact data='pos' reduce='mindist'/></sensor></mujoco>");
  const SnStage want[5] = {SN_STAGE_COLLISION, SN_STAGE_VELOCITY, SN_STAGE_SOLVER, SN_STAGE_SOLVER, SN_STAGE_COLLISION};
  for (int i = 0; i < 5; ++i) assert_int_equal(sn_sensor_stage(o.m, i), want[i]);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(stages)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
