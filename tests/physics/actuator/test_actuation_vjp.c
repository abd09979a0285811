// Adjoint of actuation: activations, forces and the power of joint forces in a motion, against central differences.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/actuator/actuator.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/actuator_models.h"
#include "tests/support/gradcheck.h"

// y: rates of activations, activations after a step, forces, and lambda' qfrc_actuator.
typedef struct Actuation {
  SnGradWorld g;
  double speed;
  sn_real *next;
} Actuation;

static const double kStep = 0.01;  // [s]

static void run(SnGradWorld *g) {
  sn_grad_world_velocities(g);
  sn_actuation(g->m, &g->w, &g->lane);
  sn_grad_world_motions(g);
}

static bool sample(void *context) {
  Actuation *s = context;
  SnGradWorld *g = &s->g;
  sn_oracle_randomize(g->o, s->speed);
  for (int i = 0; i < g->m->na; ++i) g->o->d->act[i] *= 1.3;
  for (int i = 0; i < g->m->nu; ++i) g->o->d->ctrl[i] *= 1.5;  // beyond their ranges, too
  sn_grad_world_sample(g);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Actuation *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, dx);
  run(g);
  sn_next_activation(g->m, &g->w, &g->lane, (sn_real)kStep, s->next);
  for (int i = 0; i < g->m->na; ++i) *y++ = (double)g->w.act_dot[i];
  for (int i = 0; i < g->m->na; ++i) *y++ = (double)s->next[i];
  for (int i = 0; i < g->m->nout; ++i) *y++ = (double)g->w.actuator_force[i];
  *y = 0;
  for (int i = 0; i < g->m->nv; ++i) *y += (double)(g->a.motion[SN_LAMBDA * g->m->nv + i] * (g->w.qfrc_actuator[i]));
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Actuation *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, NULL);
  // the multiplier of the last output is in the motion
  run(g);
  const int na = g->m->na, nout = g->m->nout;
  for (int i = 0; i < g->m->nv; ++i) g->a.motion[SN_LAMBDA * g->m->nv + i] *= (sn_real)ybar[2 * na + nout];
  sn_motion_propagate(g->m, &g->w, &g->a, &g->lane);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int i = 0; i < na; ++i) g->a.act_dot_bar[i] = (sn_real)ybar[i];
  for (int i = 0; i < na; ++i) g->a.act_next_bar[i] = (sn_real)ybar[na + i];
  for (int i = 0; i < nout; ++i) g->a.force_bar[i] = (sn_real)ybar[2 * na + i];
  sn_next_activation_vjp(g->m, &g->w, &g->a, &g->lane, (sn_real)kStep);
  sn_next_bristles_vjp(g->m, &g->w, &g->a, &g->lane, (sn_real)kStep);
  sn_actuation_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_transmission_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void check_with(const char *name, SnOracle *o, double speed, int samples, bool (*draw)(void *)) {
  Actuation s = {.speed = speed};
  sn_grad_world_init(&s.g, o);
  s.next = calloc((size_t)o->m->na + 1, sizeof *s.next);
  assert_non_null(s.next);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&s.g),
                        .ny = 2 * o->m->na + o->m->nout + 1,
                        .context = &s,
                        .sample = draw,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  free(s.next);
  sn_grad_world_free(&s.g);
}

static const char *const models[] = {sn_actuator_xml, sn_controller_xml, sn_motor_xml, sn_orientation_xml};

static void every_branch(void **state) {
  (void)state;
  for (int x = 0; x < 4; ++x) {
    SnOracle o;
    sn_oracle_load_string(&o, models[x]);
    static const char *const names[] = {"actuation, all kinds", "controllers", "motors", "orientations"};
    check_with(names[x], &o, 1, 60, sample);
    sn_oracle_free(&o);
  }
}

// Flags and groups that switch things off; a control that is not a number switches all controls off.
static bool bad_sample(void *context) {
  Actuation *s = context;
  const bool ok = sample(context);
  s->g.ctrl[5] = (sn_real)NAN;
  return ok;
}

static void switches(void **state) {
  (void)state;
  for (int k = 0; k < 20; ++k) {
    SnError err;
    const int c = k / 4;
    mjModel *mj = sn_oracle_read_string(models[k % 4], &err);
    assert_non_null(mj);
    sn_oracle_tighten(mj);
    if (c == 0) mj->opt.disableflags |= mjDSBL_ACTUATION;
    if (c == 1) mj->opt.disableflags |= mjDSBL_CLAMPCTRL;
    if (c == 2) mj->opt.disableactuator = 1 << 3;
    if (c == 3) mj->opt.disableactuator = 1;
    SnOracle o;
    assert_int_equal(sn_oracle_open(&o, mj, &err), SN_OK);
    static const char *const names[] = {"actuation disabled", "controls not clamped", "group 3 disabled",
                                        "group 0 disabled", "bad control"};
    check_with(names[c], &o, 1, 10, c == 4 ? bad_sample : sample);
    sn_oracle_free(&o);
  }
}

// Joints at their limit below others, in one link with others and behind a ball, moved by tendons that wrap, by sites
// and by a crank.
static void saturated(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><site name='w' pos='.3 .1 1'/><body pos='0 0 1'>"
      "<joint axis='0 1 .2' actuatorfrcrange='-.1 .1'/><joint axis='1 0 .3' pos='.1 .05 0'/><geom size='.05' pos='.1 0 "
      "0'/>"
      "<site name='a' pos='.05 0 .02' euler='10 40 30'/>"
      "<body pos='.2 0 0'><joint type='slide' axis='0 1 0'/><joint type='ball'/>"
      "<joint type='slide' axis='1 2 3' actuatorfrcrange='-.2 .05'/><geom name='g' size='.03' pos='.1 0 0'/>"
      "<site name='b' pos='.06 0 .05'/><body pos='.15 0 0'><joint axis='0 1 0'/>"
      "<joint axis='0 1 1' pos='0 .02 0' actuatorfrcrange='-.02 .01'/><geom size='.02' pos='.1 0 0'/>"
      "<site name='c' pos='.1 .01 .01' euler='0 30 0'/></body></body>"
      "<body pos='0 .3 0'><joint axis='0 0 1' actuatorfrcrange='-.1 .01'/><geom size='.02' pos='.05 0 0'/>"
      "<site name='d' pos='.1 0 0' euler='90 0 20'/></body></body>"
      "<body pos='.2 .2 1.5'><freejoint/><geom size='.03' pos='.01 0 0'/><site name='f' pos='.02 .02 .01'/></body>"
      "</worldbody><tendon><spatial name='t'><site site='a'/><geom geom='g'/><site site='c'/></spatial>"
      "<spatial name='u'><site site='d'/><site site='b'/></spatial><spatial name='v'><site site='f'/><site site='c'/>"
      "</spatial></tendon><actuator><motor tendon='t' gear='2'/><motor tendon='u'/><motor tendon='v'/>"
      "<motor site='c' gear='1 2 3 .4 .5 .6'/><motor site='c' refsite='a' gear='1 2 3 .3 .2 .1'/>"
      "<motor cranksite='c' slidersite='a' cranklength='.5' gear='3'/></actuator></mujoco>");
  check_with("saturated joints", &o, 1, 40, sample);
  sn_oracle_free(&o);
}

static void real_models(void **state) {
  (void)state;
  static const char *const files[] = {"envs/myo/assets/hand/myohand_baoding.xml", "simhive/myo_sim/arm/myoarm.xml"};
  for (size_t f = 0; f < sizeof files / sizeof *files; ++f) {
    SnOracle o;
    sn_oracle_load_myosuite(&o, files[f]);
    check_with(files[f], &o, 0.3, 4, sample);
    sn_oracle_free(&o);
  }
}

// Gradient of one force or rate by controls and activations at the oracle's state; force < 0: of all rates of
// activation.
static void pull_back(SnGradWorld *g, int force) {
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  run(g);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  memset(g->a.trn_rate, 0, sizeof(sn_real) * (size_t)(SN_NMOTION * g->m->nout));
  for (int i = 0; i < g->m->na; ++i) g->a.act_dot_bar[i] = force < 0;
  if (force >= 0) g->a.force_bar[force] = 1;
  sn_actuation_vjp(g->m, &g->w, &g->a, &g->lane);
}

// At a bound of a control, of an activation, of a force, the derivative is that of the inside; beyond there is none.
static void bounds(void **state) {
  (void)state;
  SnOracle o;
  SnGradWorld g;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><body pos='0 0 1'><joint name='j' axis='0 1 0'/><geom size='.1' pos='.3 0 "
      "0'/></body></worldbody>"
      "<actuator><general joint='j' gainprm='2' ctrlrange='-1 1'/><general joint='j' gainprm='2' forcerange='-1 1'/>"
      "<general joint='j' dyntype='integrator' gainprm='2' actrange='-1 1' actearly='true'/></actuator></mujoco>");
  sn_grad_world_init(&g, &o);
  static const double ctrl[4] = {-1, 1, -1.01, 1.01};
  for (int k = 0; k < 4; ++k) {
    const bool inside = k < 2;
    o.d->ctrl[0] = ctrl[k];
    pull_back(&g, 0);
    assert_true(g.a.ctrl_bar[0] == (inside ? 2 : 0));
    o.d->ctrl[1] = 0.5 * ctrl[k];
    pull_back(&g, 1);
    assert_true(g.a.ctrl_bar[1] == (inside ? 2 : 0));
    o.d->ctrl[2] = 0;
    o.d->act[0] = ctrl[k];
    pull_back(&g, 2);
    assert_true(g.a.act_bar[0] == (inside ? 2 : 0));
  }
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

// Muscles at rest, at the ends of their curves and far beyond; forces of a tendon that cancel: all finite.
static void always_finite(void **state) {
  (void)state;
  SnOracle o;
  SnGradWorld g;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><body pos='0 0 1'><joint name='j' type='slide' axis='0 1 0'/><geom "
      "size='.1'/></body></worldbody>"
      "<tendon><fixed name='t' actuatorfrcrange='0 2'><joint joint='j' coef='1'/></fixed></tendon><actuator>"
      "<muscle joint='j' lengthrange='.75 1.05' force='10' lmin='.5' lmax='1.6' vmax='1.5'/>"
      "<muscle joint='j' lengthrange='.75 1.05' force='10' tausmooth='.2'/>"
      "<muscle joint='j' lengthrange='.75 1.05' force='10' tausmooth='1e-14'/>"
      "<motor tendon='t'/><motor tendon='t'/></actuator></mujoco>");
  sn_grad_world_init(&g, &o);
  static const double length[] = {-3, 0, 0.5, 0.75, 1, 1.3, 1.6, 1e5}, speed[] = {-100, -1.5, 0, 0.3, 100},
                      act[] = {-1, 0, 0.5, 1, 2};
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 25; ++k) {
        o.d->qpos[0] = length[i];
        o.d->qvel[0] = speed[j];
        for (int u = 0; u < 3; ++u) {
          o.d->act[u] = act[k % 5];
          o.d->ctrl[u] = act[k / 5];
        }
        o.d->ctrl[3] = act[k % 5];
        o.d->ctrl[4] = k == 7 ? -act[k % 5] + 1e-17 : -act[k % 5] * (1 + 2e-16 * k);
        for (int force = -1; force < g.m->nout; ++force) {
          pull_back(&g, force);
          for (int u = 0; u < g.m->nu; ++u) assert_true(isfinite((double)g.a.ctrl_bar[u]));
          for (int u = 0; u < g.m->na; ++u) assert_true(isfinite((double)g.a.act_bar[u]));
          for (int n = 0; n < g.m->nout; ++n) {
            assert_true(isfinite((double)g.a.trn_length_bar[n]));
            assert_true(isfinite((double)g.a.trn_rate_bar[SN_NMOTION * n + SN_VEL]));
          }
        }
      }
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_branch),  cmocka_unit_test(switches),
                                     cmocka_unit_test(saturated),     cmocka_unit_test(bounds),
                                     cmocka_unit_test(always_finite), cmocka_unit_test(real_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
