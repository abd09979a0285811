// The adjoint of bias forces and inertia, -lambda' (qfrc_bias + M a) + y' M (a - a+), against differences.
#include "physics/actuator/actuator.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/gradcheck.h"
#include "tests/support/dynamics_models.h"

static void run(SnGradWorld *g) {
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_tendon(g->m, &g->w, &g->lane);
  sn_make_M(g->m, &g->w, &g->lane);
  sn_transmission(g->m, &g->w, &g->lane);
  sn_velocity(g->m, &g->w, &g->lane);
  sn_bias(g->m, &g->w, &g->lane);
}

static bool sample(void *context) {
  SnGradWorld *g = context;
  sn_oracle_randomize(g->o, 2);
  sn_grad_world_sample(g);
  return true;
}

static const double *motion(const SnGradWorld *g, SnMotion z) { return g->motion + z * g->m->nv; }

static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = context;
  const int nv = g->m->nv;
  sn_real x[200], Mx[200];
  sn_grad_world_move(g, dx);
  run(g);
  y[0] = 0;
  for (int i = 0; i < nv; ++i) x[i] = (sn_real)motion(g, SN_ACC)[i];
  sn_mul_M(g->m, &g->w, &g->lane, Mx, x);
  for (int i = 0; i < nv; ++i) y[0] -= motion(g, SN_LAMBDA)[i] * (double)(g->w.qfrc_bias[i] + Mx[i]);
  if (!sn_is_damped(g->m)) return true;
  for (int i = 0; i < nv; ++i) x[i] -= (sn_real)motion(g, SN_NEXT)[i];
  sn_mul_M(g->m, &g->w, &g->lane, Mx, x);
  for (int i = 0; i < nv; ++i) y[0] += motion(g, SN_Y)[i] * (double)Mx[i];
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  const int nv = g->m->nv;
  sn_grad_world_move(g, NULL);
  run(g);
  sn_grad_world_motions(g);
  for (int i = 0; i < nv; ++i) {
    g->a.motion[SN_LAMBDA * nv + i] *= (sn_real)ybar[0];
    g->a.motion[SN_Y * nv + i] *= (sn_real)(sn_is_damped(g->m) ? ybar[0] : 0);
  }
  sn_motion_propagate(g->m, &g->w, &g->a, &g->lane);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  sn_bias_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_branched_vjp(g->m, &g->w, &g->a, &g->lane, true);
  sn_grad_world_result(g, xbar);
}

static void check(SnOracle *o, const char *name) {
  SnGradWorld g;
  assert_true(o->m->nv <= 200);
  sn_grad_world_init(&g, o);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&g),
                        .ny = 1,
                        .context = &g,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = 6};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&g);
  sn_oracle_free(o);
}

static void models(void **state) {
  (void)state;
  static const char *const options[] = {"", "<option gravity='3 -2 1'><flag eulerdamp='disable'/></option>"};
  SnOracle o;
  const char *name;
  for (int k = 0; k < 2; ++k)
    for (int i = 0; sn_dynamics_load_inline(&o, options[k], i, &name); ++i) check(&o, name);
}

static void hand(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  check(&o, "myohand_baoding.xml");
}

// Armature of tendons: along one branch, from branch to branch, between trees, with a simple free body.
static void tendon_armature(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><site name='w' pos='-.3 .1 .2'/><body><joint axis='0 1 0' damping='1'/><joint axis='1 0 "
      "0'/><geom size='.1' pos='.1 0 0'/><body pos='.5 0 0'><joint axis='0 1 .2'/><geom size='.1'/><site name='a' "
      "pos='.2 .1 .1'/><body pos='.2 0 0'><joint type='ball'/><geom size='.1' pos='.1 0 0'/><site name='b' pos='.1 .2 "
      "0'/></body><body pos='.1 .1 0'><joint axis='1 2 3'/><joint type='slide' axis='1 0 0'/><geom size='.1'/><site "
      "name='c' pos='.1 0 .1'/></body></body>"
      "<body pos='0 .3 0'><joint type='ball'/><geom size='.1' pos='0 0 .2'/><site name='d' pos='.1 0 "
      ".2'/></body></body>"
      "<body pos='0 0 1'><freejoint/><geom type='box' size='.1 .1 .2' pos='.1 0 0'/><site name='e' pos='.1 .1 "
      ".1'/></body>"
      "<body pos='1 0 1'><freejoint/><geom type='box' size='.1 .1 .2'/><site name='f' pos='.1 .1 .1'/></body>"
      "</worldbody>"
      "<tendon><spatial armature='.3'><site site='w'/><site site='b'/></spatial>"
      "<spatial armature='.2'><site site='b'/><site site='c'/><site site='d'/><pulley divisor='3'/><site "
      "site='a'/><site site='d'/></spatial>"
      "<spatial armature='.4'><site site='c'/><site site='e'/></spatial>"
      "<spatial armature='.5'><site site='d'/><site site='f'/><site site='w'/></spatial></tendon></mujoco>");
  check(&o, "tendon armature");
}

// Sites of a tendon with armature at one place, nothing moving: finite.
static void coincident_sites(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><site name='w'/><body><joint axis='0 1 0' damping='1'/><geom size='.1' "
                        "pos='.1 0 0'/><site name='a'/></body></worldbody><tendon><spatial armature='.3'><site "
                        "site='w'/><site site='a'/></spatial></tendon></mujoco>");
  for (int moving = 0; moving < 2; ++moving) {
    SnGradWorld g;
    sn_grad_world_init(&g, &o);
    mj_resetData(o.mj, o.d);
    o.d->qvel[0] = moving;
    sn_grad_world_sample(&g);
    double one = 1, xbar[2] = {0};
    adjoint(&g, &one, xbar);
    assert_true(isfinite(xbar[0]) && isfinite(xbar[1]));
    sn_grad_world_free(&g);
  }
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(models), cmocka_unit_test(hand),
                                     cmocka_unit_test(tendon_armature), cmocka_unit_test(coincident_sites)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
