// Adjoint of tendons: lengths, and rates in all motions, against central differences.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/actuator_models.h"
#include "tests/support/gradcheck.h"

enum { OUT = 1 + SN_NMOTION };  // of a tendon: length, rates

typedef struct Tendons {
  SnGradWorld g;
  double speed;
  bool inside;  // tendons that wrap inside count alone; else the others
  int *branch;  // of every wrap at the base: touches, how it winds
} Tendons;

static void run(SnGradWorld *g) {
  sn_grad_world_velocities(g);
  sn_grad_world_motions(g);
}

static int branch(const SnWorld *w, int k) { return w->wseg_on[k] ? 2 + w->wseg_turn[k] : 0; }

// True when tendon t takes part.
static bool counts(const Tendons *s, int t) {
  bool inside = false;
  for (int k = s->g.m->ten_wseg[t]; k < s->g.m->ten_wseg[t + 1]; ++k) inside = inside || s->branch[k] == 2;
  return inside == s->inside;
}

static bool sample(void *context) {
  Tendons *s = context;
  SnGradWorld *g = &s->g;
  sn_oracle_randomize(g->o, s->speed);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  run(g);
  for (int k = 0; k < g->m->nwseg; ++k) s->branch[k] = branch(&g->w, k);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Tendons *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, dx);
  run(g);
  for (int k = 0; k < g->m->nwseg; ++k)
    if (branch(&g->w, k) != s->branch[k]) return false;
  for (int t = 0; t < g->m->ntendon; ++t, y += OUT) {
    const bool on = counts(s, t);
    y[0] = on ? (double)g->w.ten_length[t] : 0;
    for (int z = 0; z < SN_NMOTION; ++z) y[1 + z] = on ? (double)g->a.ten_rate[SN_NMOTION * t + z] : 0;
  }
  return true;
}

static void bars(Tendons *s, const double *ybar) {
  SnGradWorld *g = &s->g;
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int t = 0; t < g->m->ntendon; ++t, ybar += OUT) {
    if (!counts(s, t)) continue;
    g->a.ten_length_bar[t] = (sn_real)ybar[0];
    for (int z = 0; z < SN_NMOTION; ++z) g->a.ten_rate_bar[SN_NMOTION * t + z] = (sn_real)ybar[1 + z];
  }
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Tendons *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, NULL);
  run(g);
  bars(s, ybar);
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void check_oracle(const char *name, SnOracle *o, double speed, bool inside, double tolerance, int samples) {
  Tendons s = {.speed = speed, .inside = inside};
  sn_grad_world_init(&s.g, o);
  s.branch = calloc((size_t)o->m->nwseg + 1, sizeof *s.branch);
  assert_non_null(s.branch);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&s.g),
                        .ny = OUT * o->m->ntendon,
                        .context = &s,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .tolerance = tolerance,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  free(s.branch);
  sn_grad_world_free(&s.g);
}

static void check_string(const char *name, const char *xml, bool inside, double tolerance, int samples) {
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  check_oracle(name, &o, 1, inside, tolerance, samples);
  sn_oracle_free(&o);
}

static void every_branch(void **state) {
  (void)state;
  check_string("tendons, all kinds", sn_tendon_xml, false, 1e-6, 40);
}

static void wraps(void **state) {
  (void)state;
  check_string("tendons, wraps", sn_wrap_xml, false, 1e-6, 60);
  // the forward function solves for the touching point to 1e-6, as MuJoCo does: differences show it
  check_string("tendons, wraps inside", sn_wrap_xml, true, 1e-4, 60);
}

// Models of people: all tendons.
static void real_models(void **state) {
  (void)state;
  static const char *const files[] = {"envs/myo/assets/hand/myohand_baoding.xml", "simhive/myo_sim/arm/myoarm.xml",
                                      "simhive/myo_sim/leg/myolegs.xml", "simhive/myo_sim/finger/myofinger_v0.xml"};
  for (size_t f = 0; f < sizeof files / sizeof *files; ++f)
    for (int inside = 0; inside < (f < 2 ? 2 : 1); ++inside) {  // hand and arm have wraps inside
      SnOracle o;
      sn_oracle_load_myosuite(&o, files[f]);
      char name[100];
      snprintf(name, sizeof name, "tendons%s, %s", inside ? " that wrap inside" : "", files[f]);
      check_oracle(name, &o, 3, inside, inside ? 1e-4 : 1e-6, 4);
      sn_oracle_free(&o);
    }
}

// All bars 1 at the oracle's state: the gradient is finite.
static void finite_here(SnGradWorld *g, const char *what) {
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  run(g);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int t = 0; t < g->m->ntendon; ++t) {
    g->a.ten_length_bar[t] = 1;
    for (int z = 0; z < SN_NMOTION; ++z) g->a.ten_rate_bar[SN_NMOTION * t + z] = 1;
  }
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  for (int i = 0; i < g->m->nv; ++i)
    if (!isfinite((double)g->a.qpos_bar[i]) || !isfinite((double)g->a.qvel_bar[i]))
      fail_msg("%s: gradient[%d] = %g, %g", what, i, (double)g->a.qpos_bar[i], (double)g->a.qvel_bar[i]);
}

// Ends opposite across the centre or in one direction from it, on the surface, in the geom's centre, in one place, on a
// line that touches the geom; side sites in line with an end or on the axis. Both ends on one body with the geom on
// another, and the other way round.
static void degenerate(void **state) {
  (void)state;
  static const char *const ends[] = {
      "-.2 0 0", ".2 0 0",   "0 .2 0",   "0 0 .2",   ".1 0 .3",   "-.1 0 -.3",         "-.06 0 0",         "0 .06 0",
      "0 0 0",   "-.05 0 0", "0 .05 .1", ".2 .05 0", "-.2 .05 0", "-.2 .0500000001 0", "-.2 .0499999999 0"};
  static const char *const sides[] = {NULL, "0 .1 0", "0 -.1 0", ".1 0 0", "0 0 .1", "0 .01 0", "0 0 .01"};
  const int n = (int)(sizeof ends / sizeof *ends);
  for (int s = 0; s < 7; ++s)
    for (int cylinder = 0; cylinder < 2; ++cylinder)
      for (int i = 0; i < n; ++i) {
        char xml[8000], what[200];
        int at = snprintf(xml, sizeof xml,
                          "<mujoco><worldbody><body name='o'><joint axis='1 2 3' pos='.1 .2 .3'/><joint axis='3 -2 0'/>"
                          "<geom name='g' type='%s' size='.05 .1'/><site name='s' pos='%s'/></body>"
                          "<body><joint type='free'/><geom size='.01'/><site name='a' pos='%s'/>",
                          cylinder ? "cylinder" : "sphere", sides[s] ? sides[s] : "0 0 0", ends[i]);
        for (int j = 0; j < n; ++j)
          at += snprintf(xml + at, sizeof xml - (size_t)at, "<site name='b%d' pos='%s'/>", j, ends[j]);
        at += snprintf(xml + at, sizeof xml - (size_t)at, "</body><body><joint type='free'/><geom size='.01'/>");
        for (int j = 0; j < n; ++j)
          at += snprintf(xml + at, sizeof xml - (size_t)at, "<site name='c%d' pos='%s'/>", j, ends[j]);
        at += snprintf(xml + at, sizeof xml - (size_t)at, "</body></worldbody><tendon>");
        for (int j = 0; j < n; ++j)
          at += snprintf(xml + at, sizeof xml - (size_t)at,
                         "<spatial><site site='a'/><geom geom='g' %s/><site site='b%d'/><geom geom='g'/>"
                         "<site site='c%d'/><site site='a'/></spatial>",
                         sides[s] ? "sidesite='s'" : "", j, j);
        snprintf(xml + at, sizeof xml - (size_t)at, "</tendon></mujoco>");
        snprintf(what, sizeof what, "end %s, side %s, cylinder %d", ends[i], sides[s] ? sides[s] : "none", cylinder);
        SnOracle o;
        SnGradWorld g;
        sn_oracle_load_string(&o, xml);
        sn_grad_world_init(&g, &o);
        for (int moving = 0; moving < 2; ++moving) {
          for (int k = 0; k < o.m->nv; ++k) o.d->qvel[k] = moving ? sn_oracle_uniform(&o) : 0;
          finite_here(&g, what);
        }
        sn_grad_world_free(&g);
        sn_oracle_free(&o);
      }
}

// qpos_bar of the lengths of all tendons (rate < 0) or of their rates in one motion, at the oracle's state.
static void pull_back(SnGradWorld *g, int rate, double *bar) {
  finite_here(g, "here");
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int t = 0; t < g->m->ntendon; ++t)
    *(rate < 0 ? g->a.ten_length_bar + t : g->a.ten_rate_bar + SN_NMOTION * t + rate) = 1;
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  for (int i = 0; i < g->m->nv; ++i) bar[i] = (double)g->a.qpos_bar[i];
}

// A string that slides off a geom: the gradient of its length is continuous.
static void touching(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  static const char *const types[] = {"sphere", "cylinder"};
  for (int type = 0; type < 2; ++type) {
    char xml[1000];
    snprintf(xml, sizeof xml,
             "<mujoco><worldbody><site name='a' pos='-.2 0 0'/><site name='b' pos='.3 0 0'/>"
             "<body><joint type='slide' axis='0 1 0'/><joint axis='1 0 0'/><joint axis='0 0 1' pos='.1 0 0'/>"
             "<geom name='g' type='%s' size='.05 .1'/></body></worldbody><tendon><spatial><site site='a'/>"
             "<geom geom='g'/><site site='b'/></spatial></tendon></mujoco>",
             types[type]);
    SnOracle o;
    SnGradWorld g;
    sn_oracle_load_string(&o, xml);
    sn_grad_world_init(&g, &o);
    double bar[3][3];
    for (int side = -1; side <= 1; ++side) {
      o.d->qpos[0] = 0.05 + 1e-9 * side;
      pull_back(&g, -1, bar[side + 1]);
      if (side) assert_int_equal(g.w.wseg_on[0], side < 0);
    }
    for (int i = 0; i < 3; ++i) {
      assert_true(fabs(bar[0][i] - bar[2][i]) < 1e-7);
      assert_true(fabs(bar[0][i] - bar[1][i]) < 1e-7);
    }
    sn_grad_world_free(&g);
    sn_oracle_free(&o);
  }
}

// Sites in one place: the length has the gradient of MuJoCo's moment arm there (the string points along x), which does
// not change.
static void coincident(void **state) {
  (void)state;
  SnOracle o;
  SnGradWorld g;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body pos='0 0 1'><joint type='slide' axis='1 0 0'/>"
                        "<joint type='slide' axis='0 1 0'/><geom size='.1'/><site name='a' pos='.1 .2 .3'/></body>"
                        "<body pos='0 0 1'><joint type='slide' axis='1 1 0'/><geom size='.1'/><site name='b' "
                        "pos='.1 .2 .3'/></body></worldbody><tendon><spatial><site site='a'/><site site='b'/></spatial>"
                        "</tendon></mujoco>");
  sn_grad_world_init(&g, &o);
  for (int i = 0; i < 3; ++i) o.d->qvel[i] = 1 + i;
  double bar[3];
  pull_back(&g, -1, bar);
  const double expected[3] = {-1, 0, sqrt(0.5)};
  for (int i = 0; i < 3; ++i) assert_true(fabs(bar[i] - expected[i]) < 1e-6);
  for (int z = 0; z < SN_NMOTION; ++z) {
    pull_back(&g, z, bar);
    for (int i = 0; i < 3; ++i) assert_true(bar[i] == 0);
  }
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_branch), cmocka_unit_test(wraps),
                                     cmocka_unit_test(degenerate),   cmocka_unit_test(touching),
                                     cmocka_unit_test(coincident),   cmocka_unit_test(real_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
