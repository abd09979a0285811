// The adjoint of passive forces, gravity compensation by actuators among them, against differences.
#include <stdio.h>

#include "physics/actuator/actuator.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/gradcheck.h"
#include "tests/support/dynamics_models.h"

static void run(SnGradWorld *g) {
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_tendon(g->m, &g->w, &g->lane);
  sn_transmission(g->m, &g->w, &g->lane);
  sn_velocity(g->m, &g->w, &g->lane);
  sn_passive(g->m, &g->w, &g->lane);
}

static double speed;

static bool sample(void *context) {
  SnGradWorld *g = context;
  sn_oracle_randomize(g->o, speed);
  sn_grad_world_sample(g);
  return true;
}

// qfrc_actuator from gravity compensation alone, as actuation.c makes it.
static void through_actuators(SnGradWorld *g) {
  const SnModel *m = g->m;
  const bool on = m->nactuator > 0 && !(m->opt.disableflags & SN_DSBL_ACTUATION);
  for (int i = 0; i < m->nv; ++i) {
    const int j = m->dof_jntid[i];
    const sn_real *range = m->jnt_actfrcrange + 2 * j;
    sn_real force = on && m->jnt_actgravcomp[j] ? g->w.qfrc_gravcomp[i] : 0;
    if (m->jnt_actfrclimited[j] && i == m->jnt_dofadr[j]) force = sn_clip(force, range[0], range[1]);
    g->w.qfrc_actuator[i] = force;
  }
}

// lambda' of passive forces and of what joints receive through their actuators.
static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = context;
  sn_grad_world_move(g, dx);
  run(g);
  through_actuators(g);
  y[0] = 0;
  for (int i = 0; i < g->m->nv; ++i)
    y[0] += g->motion[SN_LAMBDA * g->m->nv + i] * (double)(g->w.qfrc_passive[i] + g->w.qfrc_actuator[i]);
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  const int nv = g->m->nv;
  sn_grad_world_move(g, NULL);
  run(g);
  through_actuators(g);
  sn_grad_world_motions(g);
  for (int i = 0; i < nv; ++i) g->a.motion[SN_LAMBDA * nv + i] *= (sn_real)ybar[0];
  sn_motion_propagate(g->m, &g->w, &g->a, &g->lane);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  sn_passive_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static bool has_forces(const SnModel *m) {
  const bool springs = !(m->opt.disableflags & SN_DSBL_SPRING), dampers = !(m->opt.disableflags & SN_DSBL_DAMPER);
  bool any = m->nlift > 0 || (m->nfluid > 0 && (springs || dampers)) || (m->ntenpassive > 0 && (springs || dampers)) ||
             (m->njntspring > 0 && springs);
  for (int i = 0; i < m->nv * (1 + SN_NPOLY); ++i) any = any || (dampers && m->dof_damp[i] != 0);
  return any;
}

static void check(SnOracle *o, const char *name) {
  SnGradWorld g;
  sn_grad_world_init(&g, o);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&g),
                        .ny = 1,
                        .context = &g,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = 10};
  if (has_forces(o->m)) sn_gradcheck(&c, 1);
  sn_grad_world_free(&g);
  sn_oracle_free(o);
}

static void models(void **state) {
  (void)state;
  static const char *const options[] = {"", "<option gravity='3 -2 1'><flag damper='disable'/></option>",
                                        "<option><flag actuation='disable' spring='disable'/></option>"};
  SnOracle o;
  const char *name;
  for (int k = 0; k < 3; ++k)
    for (int i = 0; sn_dynamics_load_inline(&o, options[k], i, &name); ++i) {
      speed = k ? 3 : 0.3;
      check(&o, name);
    }
}

static void hand(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  check(&o, "myohand_baoding.xml");
}

// Gravity compensation through actuators that are there, are not there, are at their limits; several joints in a body,
// balls, a free body with others, mocap.
static void gravity_compensation(void **state) {
  (void)state;
  static const char *const ways[][3] = {{"", "<motor joint='a'/>", "-100 100"},
                                        {"", "", "-100 100"},
                                        {"<option><flag actuation='disable'/></option>", "<motor joint='a'/>", "-1 1"},
                                        {"<option gravity='1 2 -3'/>", "<motor joint='a'/>", "-.3 .2"}};
  for (int k = 0; k < 4; ++k) {
    static char xml[3000];
    snprintf(
        xml, sizeof xml,
        "<mujoco><compiler autolimits='true'/>%s<worldbody><body mocap='true' gravcomp='.3'><geom size='.1'/><body "
        "pos='.1 0 0' gravcomp='.7'><joint name='a' axis='0 1 0' actuatorgravcomp='true'/>"
        "<joint axis='1 0 0' actuatorfrcrange='%s' actuatorgravcomp='true'/><joint type='slide' axis='1 0 1' "
        "actuatorfrcrange='%s' actuatorgravcomp='true'/><joint axis='0 1 1'/><geom size='.1' pos='.2 .1 0'/>"
        "<body pos='.4 0 0' gravcomp='1.2'><joint type='ball' actuatorgravcomp='true'/><geom size='.1' pos='.2 0 "
        ".1'/><body pos='.1 0 0'><joint axis='0 1 0' actuatorfrcrange='%s' actuatorgravcomp='true'/><geom "
        "size='.1' pos='.1 .1 0'/></body>"
        "<body pos='.1 .1 0' euler='0 30 0' gravcomp='-1'><geom size='.05' pos='.1 0 0'/></body></body></body></body>"
        "<body pos='0 0 1' gravcomp='1'><joint type='free' actuatorgravcomp='true'/><geom type='box' size='.1 .2 "
        ".1' pos='.05 0 0'/><body pos='.1 0 0' gravcomp='.4'><joint type='ball'/><geom size='.1' pos='.1 0 "
        "0'/></body></body></worldbody><actuator>%s</actuator></mujoco>",
        ways[k][0], ways[k][2], ways[k][2], ways[k][2], ways[k][1]);
    SnOracle o;
    sn_oracle_load_string(&o, xml);
    speed = 1;
    snprintf(xml, sizeof xml, "gravity compensation %d", k);
    check(&o, xml);
  }
}

// Springs at rest, dampers at rest, a rotation of half a turn from its rest, the ends of lengthspring: finite.
static void kinks(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><body><joint type='free' stiffness='3 1 2' damping='1 1 1'/><geom size='.1' pos='.1 0 "
      "0'/></body><body><joint type='ball' stiffness='3 1 2' damping='1 1 1'/><geom size='.1' pos='.1 0 0'/><body "
      "pos='.2 0 0'><joint name='j' axis='0 1 0' stiffness='3 1 2' damping='1 1 1'/><geom size='.1'/></body></body>"
      "</worldbody><tendon><fixed stiffness='3 1 2' damping='1 1 1' springlength='0 .1'><joint joint='j' "
      "coef='1'/></fixed></tendon></mujoco>");
  static const double turns[][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, -.6, .8, 0}, {1e-9, 0, 1, 0}, {-1e-30, 0, 0, 1}};
  for (int k = 0; k < 5; ++k) {
    SnGradWorld g;
    sn_grad_world_init(&g, &o);
    mj_resetData(o.mj, o.d);
    mju_copy(o.d->qpos + 3, turns[k], 4);
    mju_copy(o.d->qpos + 7, turns[k], 4);
    o.d->qpos[11] = k == 1 ? 0.1 : 0;
    sn_grad_world_sample(&g);
    double one = 1, xbar[20] = {0};
    adjoint(&g, &one, xbar);
    for (int i = 0; i < 20; ++i) assert_true(isfinite(xbar[i]));
    sn_grad_world_free(&g);
  }
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(models), cmocka_unit_test(hand),
                                     cmocka_unit_test(gravity_compensation), cmocka_unit_test(kinks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
