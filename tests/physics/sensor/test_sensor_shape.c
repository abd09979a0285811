// Sensors with zones and rays against MuJoCo's sensordata, and gradients of distances.
#include <stdio.h>
#include <stdlib.h>

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

enum { SITES = 24, KINDS = 6, ZONES = 7 };

// A cluster of geoms of every kind that rays know, and many rays from all around it, from sites that move and from some
// that do not; zones of every kind about them.
static char *scene(void) {
  static const char *const kinds[KINDS] = {"sphere", "capsule", "ellipsoid", "cylinder", "box", "sphere"};
  static const char *const zones[ZONES] = {"sphere", "capsule",           "ellipsoid", "cylinder",
                                           "box",    "mesh' mesh='wedge", "sphere"};
  const size_t capacity = 60000;
  char *xml = malloc(capacity);
  size_t n = 0;
  n += (size_t)snprintf(
      xml + n, capacity - n,
      "<mujoco><asset><mesh name='wedge' vertex='0 0 0 .7 0 0 0 .8 0 0 0 .9 .6 .7 .5'/><material name='clear' rgba='1 "
      "1 1 0'/><material name='red' rgba='1 0 0 1'/></asset><worldbody>"
      "<geom name='floor' type='plane' size='1 2 1' pos='0 0 -1' euler='3 4 5' contype='0' conaffinity='0'/>"
      "<geom name='glass' type='box' size='.5 .5 .5' rgba='1 1 1 0' contype='0' conaffinity='0'/>"
      "<geom name='sheer' size='.7' material='clear' rgba='1 1 1 1' contype='0' conaffinity='0'/>");
  for (int k = 0; k < KINDS; ++k)
    n += (size_t)snprintf(
        xml + n, capacity - n,
        "<body name='b%d' pos='%g %g %g' euler='%d %d %d'><joint type='free'/><geom name='g%d' type='%s' "
        "size='.12 .16 .2' contype='0' conaffinity='0'%s/></body>",
        k, 0.3 * cos(k), 0.3 * sin(k), 0.1 * k - 0.3, 20 * k, 30 * k, 50 * k, k, kinds[k],
        k == 2 ? " material='red' rgba='0 0 0 0'" : "");
  for (int k = 0; k < SITES; ++k) {
    const double turn = 0.7 * k, rise = 0.9 * sin(1.3 * k), r = k % 4 == 0 ? 0.1 : 0.8;
    const double p[3] = {r * cos(turn), r * sin(turn), rise};
    n += (size_t)snprintf(xml + n, capacity - n,
                          "<body name='s%d' pos='%g %g %g'><joint type='%s'/><geom size='.03' contype='0' "
                          "conaffinity='0'/><site name='s%d' "
                          "zaxis='%g %g %g' type='%s' size='.3 .25 .35'/></body>",
                          k, p[0], p[1], p[2], k % 2 ? "ball" : "hinge", k, -p[0] + 0.2, -p[1], -p[2] + 0.1 * (k % 3),
                          zones[k % ZONES]);
  }
  n += (size_t)snprintf(xml + n, capacity - n, "</worldbody><sensor>");
  for (int k = 0; k < SITES; ++k)
    n += (size_t)snprintf(xml + n, capacity - n, "<rangefinder site='s%d'%s/>", k, k % 5 == 4 ? " cutoff='.5'" : "");
  for (int k = 0; k < SITES; k += 5)
    n += (size_t)snprintf(xml + n, capacity - n,
                          "<rangefinder site='s%d' data='dist dir origin point normal depth'/><rangefinder site='s%d' "
                          "data='normal'/>",
                          k, k + 1);
  for (int k = 0; k < SITES; ++k)
    for (int b = 0; b < KINDS; ++b)
      n += (size_t)snprintf(xml + n, capacity - n, "<insidesite objtype='%s' objname='%s%d' site='s%d'/>",
                            b % 2 ? "body" : "geom", b % 2 ? "b" : "g", b, k);
  snprintf(xml + n, capacity - n, "</sensor></mujoco>");
  return xml;
}

static void draw(SnOracle *o) {
  sn_oracle_randomize(o, 1);
  for (int k = 0; k < KINDS; ++k) {
    const int adr = o->mj->jnt_qposadr[k];
    for (int i = 0; i < 3; ++i) o->d->qpos[adr + i] = o->mj->qpos0[adr + i] + 0.1 * sn_oracle_uniform(o);
  }
}

static void values(void **state) {
  (void)state;
  SnOracle o;
  char *xml = scene();
  sn_oracle_load_string(&o, xml);
  int hits = 0, misses = 0, inside = 0, outside = 0;
  for (int sample = 0; sample < 100; ++sample) {
    draw(&o);
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &o.lane);
    for (int i = 0; i < o.m->nsensor; ++i) {
      sn_real value[16];
      const double *ref = o.d->sensordata + o.m->sensor_adr[i];
      assert_true(sn_sensor_supported(o.m, i));
      sn_sensor_value(o.m, &o.w, i, value);
      if (o.m->sensor_type[i] == SN_SENS_INSIDESITE) {
        inside += ref[0] == 1;
        outside += ref[0] == 0;
      } else {
        hits += ref[0] > 0;
        misses += ref[0] < 0;
      }
      for (int k = 0; k < o.m->sensor_dim[i]; ++k)
        if (!(fabs((double)value[k] - ref[k]) <= SN_TOL(1e-9, 1e-3)) && sizeof(sn_real) == sizeof(double))
          fail_msg("sample %d: sensor %d, number %d: %.9g, MuJoCo %.9g", sample, i, k, (double)value[k], ref[k]);
    }
  }
  print_message("%d hits, %d misses, %d inside, %d outside\n", hits, misses, inside, outside);
  assert_true(hits > 500 && misses > 20 && inside > 200 && outside > 200);
  sn_oracle_free(&o);
  free(xml);
}

// ---- gradient ----

typedef struct Gradient {
  SnGradWorld g;
  sn_real base[SITES];
} Gradient;

static void ranges(Gradient *x, const double *dx, sn_real *y) {
  sn_grad_world_move(&x->g, dx);
  sn_forward(x->g.m, &x->g.w, &x->g.lane);
  for (int i = 0; i < SITES; ++i) sn_sensor_value(x->g.m, &x->g.w, i, y + i);
}

static bool sample(void *context) {
  Gradient *x = context;
  draw(x->g.o);
  sn_grad_world_sample(&x->g);
  ranges(x, NULL, x->base);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Gradient *x = context;
  sn_real now[SITES];
  ranges(x, dx, now);
  for (int i = 0; i < SITES; ++i) {
    if (fabs((double)(now[i] - x->base[i])) > 1e-3) return false;  // another geom
    y[i] = (double)now[i];
  }
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Gradient *x = context;
  SnGradWorld *g = &x->g;
  sn_real bar[2000] = {0}, unused[SITES];
  assert_true(g->m->nsensordata <= 2000);
  ranges(x, NULL, unused);
  for (int i = 0; i < SITES; ++i) bar[i] = (sn_real)ybar[i];
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  sn_motion_rest(g->m, &g->w, &g->a, &g->lane);
  sn_sensor_data_vjp(g->m, &g->w, &g->a, &g->lane, bar);
  sn_position_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void gradients(void **state) {
  (void)state;
  static Gradient x;
  SnOracle o;
  char *xml = scene();
  sn_oracle_load_string(&o, xml);
  for (int i = 0; i < o.m->nsensor; ++i)
    assert_true(sn_sensor_differentiable(o.m, i) == (o.m->sensor_type[i] == SN_SENS_RANGEFINDER));
  sn_grad_world_init(&x.g, &o);
  const SnGradCase c = {.name = "ranges",
                        .nx = sn_grad_world_nx(&x.g),
                        .ny = SITES,
                        .context = &x,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .tolerance = 1e-5,
                        .step = 1e-7,
                        .samples = 6};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&x.g);
  sn_oracle_free(&o);
  free(xml);
}

// Touch in the zone of a mesh, enclosure, and a rangefinder that might meet a signed distance field are not computed.
static void unsupported(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><asset><mesh name='m' vertex='0 0 0 1 0 0 0 1 0 0 0 1'/></asset><worldbody><camera name='c' "
      "resolution='2 2'/><body name='a'><joint/><geom size='.1'/><site name='s'/><site name='m' type='mesh' "
      "mesh='m'/></body><body name='b'><geom size='.1'/><geom type='sdf' mesh='m' pos='0 0 5' contype='0' "
      "conaffinity='0'/><site name='b'/></body></worldbody><sensor>"
      "<rangefinder site='b'/><rangefinder camera='c'/><touch site='s'/><touch site='m'/>"
      "<insidesite objtype='body' objname='a' site='s' enclosed='true'/><insidesite objtype='body' objname='a' "
      "site='m'/></sensor></mujoco>");
  const bool want[6] = {true, false, true, false, false, true};
  assert_int_equal(o.m->nsensor, 6);
  for (int i = 0; i < 6; ++i)
    if (sn_sensor_supported(o.m, i) != want[i]) fail_msg("sensor %d", i);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(gradients),
                                     cmocka_unit_test(unsupported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
