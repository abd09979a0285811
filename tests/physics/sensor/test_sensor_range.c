// Rangefinders of sites and cameras against MuJoCo's sensordata, at meshes and height fields, too; their gradients; and
// how the time of a ray grows with the triangles of a mesh.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

enum { SITES = 16, KINDS = 8, CAMERAS = 3 };

static const char *const assets =
    "<asset><mesh name='ring' builtin='supertorus' params='14 .3 1 1' scale='.16 .16 .16'/>"
    "<mesh name='corner' inertia='shell' vertex='0 0 0 .3 0 0 .3 .1 0 .1 .1 0 .1 .3 0 0 .3 0 "
    "0 0 .2 .3 0 .2 .3 .1 .2 .1 .1 .2 .1 .3 .2 0 .3 .2' "
    "face='0 2 1 0 3 2 0 5 3 3 5 4 6 7 8 6 8 9 6 9 11 9 10 11 0 1 7 0 7 6 1 2 8 1 8 7 2 3 9 2 9 8 3 4 10 3 10 9 "
    "4 5 11 4 11 10 5 0 6 5 6 11'/>"
    "<hfield name='hills' nrow='5' ncol='7' size='.5 .4 .3 .1' elevation='0 .2 .4 .1 .3 .8 .2 .5 .9 .3 .2 .6 1 .4 "
    ".1 .3 .7 .2 .8 .5 .3 .6 .1 .2 .9 .4 .7 .2 .3 .5 .1 .6 .2 .8 .1'/></asset>";

// A cluster of geoms of every kind that rays know, and rays from all around it; cameras of a few pixels, or of more.
static char *scene(bool few) {
  static const char *const kinds[KINDS] = {"type='sphere' size='.12'",           "type='capsule' size='.1 .16'",
                                           "type='ellipsoid' size='.12 .16 .2'", "type='cylinder' size='.12 .16'",
                                           "type='box' size='.12 .16 .2'",       "type='mesh' mesh='ring'",
                                           "type='mesh' mesh='corner'",          "type='hfield' hfield='hills'"};
  static const char *const views[CAMERAS] = {"fovy='70'", "projection='orthographic' fovy='1.4'",
                                             "sensorsize='.02 .015' focal='.012 .013' principal='.001 -.002'"};
  const size_t capacity = 40000;
  char *xml = malloc(capacity);
  size_t n = (size_t)snprintf(xml, capacity,
                              "<mujoco>%s<worldbody><geom name='floor' type='plane' size='1 2 1' pos='0 0 -1' "
                              "euler='3 4 5' contype='0' conaffinity='0'/>",
                              assets);
  for (int k = 0; k < KINDS; ++k) {
    const bool field = k == KINDS - 1;  // of bodies that cannot move
    n += (size_t)snprintf(xml + n, capacity - n,
                          "<body name='b%d' pos='%g %g %g' euler='%d %d %d'>%s<geom name='g%d' %s contype='0' "
                          "conaffinity='0' mass='1'/></body>",
                          k, 0.35 * cos(k), 0.35 * sin(k), field ? -.4 : 0.1 * k - 0.3, field ? 10 : 20 * k,
                          field ? 5 : 30 * k, 50 * k, "<joint type='free'/>", k, kinds[k]);
  }
  for (int k = 0; k < SITES; ++k) {
    const double turn = 0.7 * k, rise = 0.9 * sin(1.3 * k), r = k % 4 == 0 ? 0.1 : 0.8;
    const double p[3] = {r * cos(turn), r * sin(turn), rise};
    n += (size_t)snprintf(xml + n, capacity - n,
                          "<body name='s%d' pos='%g %g %g'><joint type='%s'/><geom size='.03' contype='0' "
                          "conaffinity='0'/><site name='s%d' zaxis='%g %g %g'/></body>",
                          k, p[0], p[1], p[2], k % 2 ? "ball" : "hinge", k, -p[0] + 0.2, -p[1], -p[2] + 0.1 * (k % 3));
  }
  for (int k = 0; k < CAMERAS; ++k)
    n += (size_t)snprintf(xml + n, capacity - n,
                          "<body pos='%g .1 1.1'><joint type='ball'/><geom size='.04' contype='0' conaffinity='0'/>"
                          "<camera name='c%d' pos='0 0 .02' euler='%d 10 5' %s resolution='%d %d'/></body>",
                          .2 * k - .2, k, 5 * k, views[k], few ? 3 : 9 - k, few ? 2 : 7 + k);
  n += (size_t)snprintf(xml + n, capacity - n, "</worldbody><sensor>");
  for (int k = 0; k < SITES; ++k)
    n += (size_t)snprintf(xml + n, capacity - n, "<rangefinder site='s%d' data='%s'%s/>", k,
                          k % 2 ? "dist" : "dist dir origin point normal depth", k % 5 == 1 ? " cutoff='.5'" : "");
  for (int k = 0; k < CAMERAS; ++k)
    n += (size_t)snprintf(xml + n, capacity - n,
                          "<rangefinder camera='c%d' data='dist dir origin point normal depth'/>", k);
  snprintf(xml + n, capacity - n, "<user dim='7' needstage='vel'/></sensor></mujoco>");
  return xml;
}

static void draw(SnOracle *o) {
  sn_oracle_randomize(o, 1);
  for (int k = 0; k < KINDS; ++k) {
    const int adr = o->mj->jnt_qposadr[k];
    for (int i = 0; i < 3; ++i) o->d->qpos[adr + i] = o->mj->qpos0[adr + i] + 0.1 * sn_oracle_uniform(o);
  }
  // cameras look roughly down still
  for (int k = 0; k < CAMERAS; ++k) {
    double *q = o->d->qpos + o->mj->jnt_qposadr[KINDS + SITES + k];
    q[0] = 1;
    for (int i = 1; i < 4; ++i) q[i] = 0.15 * sn_oracle_uniform(o);
    mju_normalize4(q);
  }
}

// Counts what differs in a sample, number by number; prints the first ones.
static int differences(const SnOracle *o, int sample, int *hits, int *misses) {
  int wrong = 0;
  sn_real value[2000];
  for (int i = 0; i < o->m->nsensor; ++i) {
    const double *ref = o->d->sensordata + o->m->sensor_adr[i];
    assert_true(sn_sensor_supported(o->m, i));
    assert_true(o->m->sensor_dim[i] <= 2000);
    sn_sensor_value(o->m, &o->w, i, value);
    for (int k = 0; k < o->m->sensor_dim[i]; k += 12) {
      *hits += ref[k] > 0;
      *misses += ref[k] < 0;
    }
    for (int k = 0; k < o->m->sensor_dim[i]; ++k) {
      if (fabs((double)value[k] - ref[k]) <= SN_TOL(1e-9, 1e-3)) continue;
      if (++wrong < 5)
        print_message("sample %d: sensor %d, number %d: %.9g, MuJoCo %.9g\n", sample, i, k, (double)value[k], ref[k]);
    }
  }
  return wrong;
}

static void values(void **state) {
  (void)state;
  SnOracle o;
  char *xml = scene(false);
  sn_oracle_load_string(&o, xml);
  int hits = 0, misses = 0, wrong = 0;
  for (int sample = 0; sample < 100; ++sample) {
    draw(&o);
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &o.lane);
    wrong += differences(&o, sample, &hits, &misses);
  }
  print_message("%d hits, %d misses, %d numbers differ\n", hits, misses, wrong);
  assert_true(hits > 5000 && misses > 200);
  assert_int_equal(wrong, 0);
  sn_oracle_free(&o);
  free(xml);
}

// ---- gradient ----

enum { NUMBERS = 1000 };

typedef struct Gradient {
  SnGradWorld g;
  sn_real base[NUMBERS];
} Gradient;

static void ranges(Gradient *x, const double *dx, sn_real *y) {
  sn_grad_world_move(&x->g, dx);
  sn_forward(x->g.m, &x->g.w, &x->g.lane);
  sn_sensor_data(x->g.m, &x->g.w, &x->g.lane, y);
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
  sn_real now[NUMBERS];
  ranges(x, dx, now);
  for (int i = 0; i < x->g.m->nsensordata; ++i) {
    if (fabs((double)(now[i] - x->base[i])) > 1e-3) return false;  // another geom, or another triangle
    y[i] = (double)now[i];
  }
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Gradient *x = context;
  SnGradWorld *g = &x->g;
  sn_real bar[NUMBERS], unused[NUMBERS];
  ranges(x, NULL, unused);
  for (int i = 0; i < g->m->nsensordata; ++i) bar[i] = (sn_real)ybar[i];
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
  char *xml = scene(true);
  sn_oracle_load_string(&o, xml);
  assert_true(o.m->nsensordata <= NUMBERS);
  for (int i = 0; i < o.m->nsensor; ++i)
    assert_true(sn_sensor_differentiable(o.m, i) == (o.m->sensor_type[i] != SN_SENS_USER));
  sn_grad_world_init(&x.g, &o);
  const SnGradCase c = {.name = "ranges",
                        .nx = sn_grad_world_nx(&x.g),
                        .ny = o.m->nsensordata,
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

// ---- how the time grows ----

// Seconds of the processor that `count` values of a sensor take.
static double seconds(const SnOracle *o, int count) {
  sn_real value = 0, sum = 0;
  const clock_t start = clock();
  for (int i = 0; i < count; ++i) {
    sn_sensor_value(o->m, &o->w, 0, &value);
    sum += value;
  }
  const double time = (double)(clock() - start) / CLOCKS_PER_SEC;
  assert_true(sum > 0);
  return time;
}

// A ray at a ring of n times n squares. Returns microseconds of a ray, and checks its value.
static double ring(int n) {
  enum { RAYS = 4000 };
  SnOracle o;
  char xml[600];
  snprintf(xml, sizeof xml,
           "<mujoco><asset><mesh name='ring' builtin='supertorus' params='%d .3 1 1'/></asset><worldbody><geom "
           "type='mesh' mesh='ring' contype='0' conaffinity='0'/><body pos='.9 .3 2'><joint/><geom size='.01' "
           "contype='0' conaffinity='0'/><site name='s' zaxis='.03 .02 -1'/></body></worldbody><sensor><rangefinder "
           "site='s'/></sensor></mujoco>",
           n);
  sn_oracle_load_string(&o, xml);
  mj_forward(o.mj, o.d);
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  sn_real value;
  sn_sensor_value(o.m, &o.w, 0, &value);
  if (!(fabs((double)value - o.d->sensordata[0]) < SN_TOL(1e-12, 1e-5)))
    fail_msg("%.15g, MuJoCo %.15g", (double)value, o.d->sensordata[0]);
  const double time = seconds(&o, RAYS) / RAYS * 1e6;
  print_message("%d triangles: %.3g us a ray\n", o.m->nmeshface, time);
  sn_oracle_free(&o);
  return time;
}

// A hundred times the triangles take a few times as long, not a hundred times.
static void many_triangles(void **state) {
  (void)state;
  const double few = ring(23), many = ring(230);
  assert_true(many < 12 * few);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(gradients),
                                     cmocka_unit_test(many_triangles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
