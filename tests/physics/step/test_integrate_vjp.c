// The adjoint of Euler, implicitfast and implicit from given accelerations to the next state, against differences:
// turns, damping, slopes of actuators, free bodies that spin. (Runge-Kutta is tested with whole steps.)
#include <stdio.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/dynamics_models.h"

enum { MAXV = 60, MAXA = 20 };

typedef struct Case {
  SnGradWorld g;
  sn_real acc[MAXV], act_dot[MAXA];  // at the base state
  double next[2 * MAXV];             // qpos after the step from there
  double speed;
} Case;

// Up to the accelerations qacc and act_dot, which are inputs: base values and dx behind those of the state.
static void until_acceleration(Case *c, const double *dx) {
  SnGradWorld *g = &c->g;
  const SnModel *m = g->m;
  SnWorld *w = &g->w;
  const double *more = dx ? dx + sn_grad_world_nx(g) : NULL;
  sn_grad_world_move(g, dx);
  sn_kinematics(m, w, &g->lane);
  sn_com_pos(m, w, &g->lane);
  sn_tendon(m, w, &g->lane);
  sn_make_M(m, w, &g->lane);
  sn_collision(m, w, &g->lane);
  sn_transmission(m, w, &g->lane);
  sn_velocity(m, w, &g->lane);
  sn_passive(m, w, &g->lane);
  sn_actuation(m, w, &g->lane);
  for (int i = 0; i < m->nv; ++i) w->qacc[i] = c->acc[i] + (sn_real)(more ? more[i] : 0);
  for (int i = 0; i < m->na; ++i) w->act_dot[i] = c->act_dot[i] + (sn_real)(more ? more[m->nv + i] : 0);
  sn_mul_M(m, w, &g->lane, w->qfrc_smooth, w->qacc);
  for (int i = 0; i < m->nv; ++i) w->qfrc_constraint[i] = 0;
}

static bool sample(void *context) {
  Case *c = context;
  SnGradWorld *g = &c->g;
  const SnModel *m = g->m;
  sn_oracle_randomize(g->o, c->speed);
  sn_grad_world_sample(g);
  for (int i = 0; i < m->nv; ++i) c->acc[i] = (sn_real)(10 * sn_oracle_uniform(g->o));
  for (int i = 0; i < m->na; ++i) c->act_dot[i] = (sn_real)sn_oracle_uniform(g->o);
  until_acceleration(c, NULL);
  sn_integrate(m, &g->w, &g->lane);
  for (int i = 0; i < m->nq; ++i) c->next[i] = (double)g->w.qpos[i];
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Case *c = context;
  SnGradWorld *g = &c->g;
  const SnModel *m = g->m;
  until_acceleration(c, dx);
  sn_integrate(m, &g->w, &g->lane);
  double qpos[2 * MAXV];
  for (int i = 0; i < m->nq; ++i) qpos[i] = (double)g->w.qpos[i];
  mj_differentiatePos(g->o->mj, y, 1, c->next, qpos);
  for (int i = 0; i < m->nv; ++i) y[m->nv + i] = (double)g->w.qvel[i];
  for (int i = 0; i < m->na; ++i) y[2 * m->nv + i] = (double)g->w.act[i];
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Case *c = context;
  SnGradWorld *g = &c->g;
  const SnModel *m = g->m;
  SnAdjoint *a = &g->a;
  until_acceleration(c, NULL);
  sn_adjoint_clear(m, a, &g->lane);
  for (int i = 0; i < m->nv; ++i) {
    a->qpos_next_bar[i] = (sn_real)ybar[i];
    a->qvel_next_bar[i] = (sn_real)ybar[m->nv + i];
    a->motion[SN_LAMBDA * m->nv + i] = 0;
    a->motion[SN_ACC * m->nv + i] = g->w.qacc[i];
    a->motion[SN_VEL * m->nv + i] = g->w.qvel[i];
  }
  for (int i = 0; i < m->na; ++i) a->act_next_bar[i] = (sn_real)ybar[2 * m->nv + i];
  sn_integrate_vjp(m, &g->w, a, &g->lane);
  sn_motion_propagate(m, &g->w, a, &g->lane);
  sn_adjoint_clear_contacts(&g->w, a, &g->lane);
  sn_bias_vjp(m, &g->w, a, &g->lane);
  sn_passive_vjp(m, &g->w, a, &g->lane);
  sn_position_vjp(m, &g->w, a, &g->lane);
  sn_grad_world_result(g, xbar);
  xbar += sn_grad_world_nx(g);
  for (int i = 0; i < m->nv; ++i) xbar[i] += (double)a->qacc_bar[i];
  for (int i = 0; i < m->na; ++i) xbar[m->nv + i] += (double)a->act_dot_bar[i];
}

static void check(SnOracle *o, const char *name, double speed, int samples) {
  static Case k;
  assert_true(o->m->nv <= MAXV && o->m->na <= MAXA);
  sn_grad_world_init(&k.g, o);
  k.speed = speed;
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&k.g) + o->m->nv + o->m->na,
                        .ny = 2 * o->m->nv + o->m->na,
                        .context = &k,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&k.g);
  sn_oracle_free(o);
}

static void over_models(const char *option, double speed) {
  SnOracle o;
  const char *name;
  for (int i = 0; sn_dynamics_load_inline(&o, option, i, &name); ++i) check(&o, name, speed, 6);
}

static void euler(void **state) {
  (void)state;
  over_models("<option timestep='.02'/>", 3);
  over_models("<option timestep='.02'><flag eulerdamp='disable'/></option>", 3);
  over_models("<option timestep='.02'><flag damper='disable' actuation='disable'/></option>", 3);
}

static void implicitfast(void **state) {
  (void)state;
  over_models("<option integrator='implicitfast' timestep='.02'/>", 3);
  over_models("<option integrator='implicitfast' timestep='.02'><flag damper='disable' actuation='disable'/></option>",
              3);
}

static void implicit(void **state) {
  (void)state;
  over_models("<option integrator='implicit' timestep='.02'/>", 3);
  over_models("<option integrator='implicit' timestep='.02'><flag damper='disable' actuation='disable'/></option>", 3);
}

// Bodies that spin freely: simple, off-centre, with welded and with jointed parts, held by dampers.
static void gyroscopic(void **state) {
  (void)state;
  static const char *const integrator[] = {"implicitfast", "implicit"};
  static const char *const body =
      "<worldbody><site name='w' pos='1 1 1'/>"
      "<body><freejoint/><geom type='box' size='.1 .2 .3'/><site name='a' pos='.1 .2 0'/></body>"
      "<body pos='1 0 0'><freejoint/><geom type='box' size='.1 .2 .3' pos='.1 .05 .2'/><site name='b' pos='.1 .2 "
      "0'/></body>"
      "<body pos='2 0 0'><joint type='free' damping='.1 .2' armature='.1'/><geom type='box' size='.1 .2 .3' pos='.1 "
      ".05 .2'/><body pos='.3 .2 0'><geom size='.2'/></body></body>"
      "<body pos='3 0 0'><freejoint/><geom type='box' size='.1 .2 .3'/><body pos='.3 .2 0'><joint/><geom size='.2'/>"
      "<site name='c' pos='.1 .2 0'/></body></body></worldbody><tendon><spatial damping='3 2 1'><site site='w'/><site "
      "site='a'/></spatial><spatial damping='2'><site site='w'/><site site='b'/></spatial>"
      "<spatial damping='1 3'><site site='a'/><site site='b'/><site site='c'/></spatial></tendon>";
  for (int i = 0; i < 2; ++i) {
    char xml[3000];
    SnOracle o;
    snprintf(xml, sizeof xml, "<mujoco><option integrator='%s' timestep='.02'/>%s</mujoco>", integrator[i], body);
    sn_oracle_load_string(&o, xml);
    check(&o, integrator[i], 10, 10);
  }
}

// Every way in which a slope depends on the state: inputs, early activations, muscles; tendons that wrap, that branch;
// sites with a reference on another branch.
static void actuator_slopes(void **state) {
  (void)state;
  static const char *const body =
      "<compiler autolimits='true'/><worldbody><site name='w' pos='-.2 0 .2'/><body><joint name='a' axis='0 1 0' "
      "damping='.1' actuatorfrcrange='-3 3'/>"
      "<geom name='g' type='cylinder' size='.05 .1' euler='90 0 0' pos='.3 0 0'/><site name='s' pos='.3 0 .1'/>"
      "<body pos='.4 0 0'><joint name='b' axis='0 1 .3'/><geom size='.1' pos='.2 0 0'/><site name='t' pos='.2 0 .1'/>"
      "<body pos='.2 0 0'><joint name='c' type='ball'/><geom type='box' size='.1 .05 .1'/></body></body>"
      "<body pos='.3 .2 0'><joint name='d' axis='1 1 0'/><geom size='.1' pos='.1 .1 0'/><site name='u' pos='.1 .1 "
      ".1'/></body></body>"
      "<body pos='0 1 1'><freejoint/><geom type='box' size='.1 .2 .15' pos='.05 0 0'/><site name='f' pos='.1 .1 "
      ".2'/></body></worldbody>"
      "<tendon><fixed name='p'><joint joint='a' coef='1'/><joint joint='d' coef='.5'/></fixed>"
      "<spatial name='q'><site site='s'/><site site='t'/></spatial>"
      "<spatial name='r' damping='3 1 1'><site site='w'/><geom geom='g'/><site site='t'/><site site='u'/></spatial>"
      "<spatial name='v'><site site='t'/><site site='u'/><site site='f'/></spatial></tendon>";
  static const char *const actuators[] = {
      "<velocity joint='a' kv='.4'/><velocity joint='b' kv='.5' gear='3'/><general jointinparent='c' gear='1 2 3' "
      "biastype='affine' biasprm='.1 0 -.3'/>",
      "<velocity tendon='p' kv='.7'/><velocity tendon='q' kv='2'/><velocity tendon='r' kv='1'/><position tendon='v' "
      "kp='5' kv='2'/>",
      "<general tendon='q' gainprm='2 .1 .5' gaintype='affine' biastype='affine' biasprm='1 2 -.3'/>"
      "<general tendon='r' ctrlrange='-.2 .2' gainprm='2 .1 -.5' gaintype='affine'/>",
      "<general site='f' gear='1 2 3 .1 .2 .3' biastype='affine' biasprm='0 0 -2'/><general site='t' refsite='u' "
      "gear='0 1 0 .3 0 .1' biastype='affine' biasprm='0 0 -3'/>"
      "<general cranksite='t' slidersite='u' cranklength='.5' biastype='affine' biasprm='0 0 -3'/>",
      "<general joint='b' dyntype='filter' dynprm='.1' gaintype='affine' gainprm='1 0 -2'/><general joint='a' "
      "dyntype='filterexact' dynprm='.1' gaintype='affine' gainprm='1 0 -2' actearly='true'/>",
      "<general joint='b' dyntype='integrator' gaintype='affine' gainprm='1 0 -2' actlimited='true' actrange='-.2 .2' "
      "actearly='true'/>",
      "<muscle tendon='q' lengthrange='.1 .6' force='50'/><muscle joint='b' lengthrange='-1 1' force='20' "
      "gear='.5'/><muscle tendon='p' lengthrange='-1 1' force='5'/><muscle tendon='r' lengthrange='.2 2' force='40'/>",
      "<velocity joint='a' kv='3' forcerange='-1 1'/><velocity tendon='p' kv='2'/>",
      "<dcmotor joint='b' motorconst='.4' resistance='.2' thermal='3 5 0 .04 20 25' gear='2'/><dcmotor tendon='q' "
      "motorconst='.3' resistance='.1' thermal='2 3 0 .02 20 20' inductance='.01' lugre='3 .4 .2 .3 .1'/><dcmotor "
      "tendon='r' motorconst='.3' resistance='.1' input='pos vel' controller='1 0 2 0 0 .5' saturation='.3'/>",
      "<orientation joint='c' kp='2' kv='.4'/><orientation site='t' refsite='u' kp='1' kv='.7'/><orientation site='f' "
      "refsite='s' kp='1' kv='.5'/>"};
  const size_t n = sizeof actuators / sizeof *actuators;
  for (size_t i = 0; i < 2 * n; ++i) {
    static char xml[5000];
    snprintf(xml, sizeof xml, "<mujoco><option integrator='%s' timestep='.02'/>%s<actuator>%s</actuator></mujoco>",
             i < n ? "implicitfast" : "implicit", body, actuators[i % n]);
    SnOracle o;
    sn_oracle_load_string(&o, xml);
    snprintf(xml, sizeof xml, "actuator slopes %zu", i);
    check(&o, xml, 1, 10);
  }
}

// No motion at all, turns by nothing, by many turns: finite.
static void boundaries(void **state) {
  (void)state;
  static Case k;
  static const char *const integrators[] = {"Euler", "implicitfast", "implicit"};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      char option[100];
      SnOracle o;
      const char *name;
      snprintf(option, sizeof option, "<option integrator='%s' timestep='.01'/>", integrators[i]);
      sn_dynamics_load_inline(&o, option, 4, &name);
      sn_grad_world_init(&k.g, &o);
      k.speed = 0;
      sample(&k);
      const sn_real speeds[] = {0, SN_R(1e-30), 200 * SN_PI, SN_R(1e9)};
      for (int d = 0; d < o.m->nv; ++d) {
        k.g.qvel[d] = speeds[j];
        k.acc[d] = 0;
      }
      double ybar[2 * MAXV + MAXA], xbar[4 * MAXV] = {0};
      for (int d = 0; d < 2 * MAXV; ++d) ybar[d] = 1;
      adjoint(&k, ybar, xbar);
      for (int d = 0; d < 3 * o.m->nv; ++d) assert_true(isfinite(xbar[d]));
      sn_grad_world_free(&k.g);
      sn_oracle_free(&o);
    }
}

// Coefficients of rotations by their series and by their formulas, on both sides of where one takes over.
static void series(void **state) {
  (void)state;
  const double limits[] = {1e-3, 0.01};
  for (int k = 0; k < 2; ++k) {
    sn_real slope[2], c[2];
    SnTurn turn[2];
    for (int side = 0; side < 2; ++side) {
      const sn_real t2 = (sn_real)(limits[k] * (side ? 1 + 1e-9 : 1 - 1e-9));
      const sn_real r[3] = {sn_sqrt(t2), 0, 0};
      turn[side] = sn_turn_coefficients(r);
      c[side] = sn_dexpinv_coefficient(t2, slope + side);
    }
    assert_true(fabs((double)(turn[0].s - turn[1].s)) < SN_TOL(1e-11, 1e-5));
    assert_true(fabs((double)(turn[0].c - turn[1].c)) < SN_TOL(1e-11, 1e-5));
    assert_true(fabs((double)(turn[0].j - turn[1].j)) < SN_TOL(1e-11, 1e-3));
    assert_true(fabs((double)(c[0] - c[1])) < SN_TOL(1e-11, 1e-4));
    assert_true(fabs((double)(slope[0] - slope[1])) < SN_TOL(1e-9, 1e-1));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(euler),           cmocka_unit_test(implicitfast),
                                     cmocka_unit_test(implicit),        cmocka_unit_test(gyroscopic),
                                     cmocka_unit_test(actuator_slopes), cmocka_unit_test(boundaries),
                                     cmocka_unit_test(series)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
