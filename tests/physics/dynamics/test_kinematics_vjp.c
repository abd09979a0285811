// The sweep that turns wrenches and derivatives of twists and accelerations into those of qpos and qvel: a worked
// example of how a stage's adjoint is checked.
#include <stdio.h>

#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/gradcheck.h"
#include "tests/support/small_models.h"

// Of every body: the position of a point fixed to it; its velocity and the angular velocity in each motion; the
// spatial acceleration there at zero qacc.
enum { OUT = 3 + 6 * SN_NMOTION + 6 };

static const sn_real kPoint[3] = {0.05, -0.03, 0.02};

static void offset(const SnGradWorld *g, int body, sn_real *p, sn_real *arm) {
  sn_mulmatvec3(p, g->w.xmat + 9 * body, kPoint);
  sn_addto3(p, g->w.xpos + 3 * body);
  sn_sub3(arm, p, sn_twist_origin(g->m, &g->w, body));
}

// Value at a point, `arm` from the origin, of the field of motions X; the angular part behind it.
static void at_point(const sn_real *X, const sn_real *arm, double *y) {
  sn_real t[3];
  sn_cross(t, X, arm);
  for (int e = 0; e < 3; ++e) {
    y[e] = (double)(X[3 + e] + t[e]);
    y[3 + e] = (double)X[e];
  }
}

static void run(SnGradWorld *g) {
  sn_grad_world_velocities(g);
  sn_grad_world_motions(g);
}

static bool sample(void *context) {
  SnGradWorld *g = context;
  sn_oracle_randomize(g->o, 2);
  sn_grad_world_sample(g);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = context;
  sn_grad_world_move(g, dx);
  run(g);
  for (int b = 0; b < g->m->nbody; ++b, y += OUT) {
    sn_real p[3], arm[3];
    offset(g, b, p, arm);
    for (int e = 0; e < 3; ++e) y[e] = (double)p[e];
    for (int z = 0; z < SN_NMOTION; ++z) at_point(sn_twist(g->m, &g->a, b, (SnMotion)z), arm, y + 3 + 6 * z);
    at_point(g->w.cacc + 6 * g->m->link_of_body[b], arm, y + 3 + 6 * SN_NMOTION);
  }
  return true;
}

// bar of a field's value at a point and of its angular part: bar of the field, and force on the point.
static void at_point_vjp(const sn_real *X, const sn_real *arm, const double *ybar, sn_real *Xbar, sn_real *force) {
  const sn_real f[3] = {(sn_real)ybar[0], (sn_real)ybar[1], (sn_real)ybar[2]};
  sn_real t[3];
  sn_cross(t, arm, f);
  for (int e = 0; e < 3; ++e) {
    Xbar[e] += t[e] + (sn_real)ybar[3 + e];
    Xbar[3 + e] += f[e];
  }
  sn_cross(t, f, X);
  sn_addto3(force, t);
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  sn_grad_world_move(g, NULL);
  run(g);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int b = 0; b < g->m->nbody; ++b, ybar += OUT) {
    sn_real p[3], arm[3], t[3], force[3] = {(sn_real)ybar[0], (sn_real)ybar[1], (sn_real)ybar[2]};
    offset(g, b, p, arm);
    for (int z = 0; z < SN_NMOTION; ++z)
      at_point_vjp(sn_twist(g->m, &g->a, b, (SnMotion)z), arm, ybar + 3 + 6 * z,
                   sn_twist_bar(g->m, &g->a, b, (SnMotion)z), force);
    const int link = g->m->link_of_body[b];
    at_point_vjp(g->w.cacc + 6 * link, arm, ybar + 3 + 6 * SN_NMOTION, g->a.acc_bar + 6 * link, force);
    sn_real *wrench = sn_body_wrench(g->m, &g->a, b);
    sn_cross(t, arm, force);
    sn_addto3(wrench, t);
    sn_addto3(wrench + 3, force);
  }
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void check_model(const char *name, const char *xml) {
  SnOracle o;
  SnGradWorld g;
  sn_oracle_load_string(&o, xml);
  sn_model_need_all(o.m);
  sn_grad_world_init(&g, &o);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&g),
                        .ny = OUT * o.m->nbody,
                        .context = &g,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = 10};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

static void small_models(void **state) {
  (void)state;
  char name[32];
  for (int i = 0; i < SN_SMALL_MODELS; ++i) {
    snprintf(name, sizeof name, "kinematics, small model %d", i);
    check_model(name, sn_small_model(i));
  }
}

// Several joints in a body, a ball behind a hinge, a free body that carries others.
static void mixed_joints(void **state) {
  (void)state;
  check_model("kinematics, mixed joints",
              "<mujoco><worldbody><body pos='0 0 1'><freejoint/><geom size='.05' pos='.1 0 0'/>"
              "<body pos='.2 0 0'><joint type='slide' axis='1 1 0'/><joint axis='0 1 0' pos='.01 .02 .03'/>"
              "<joint axis='0 .3 1' pos='-.02 0 .03'/><geom size='.03' pos='.1 .02 0'/>"
              "<body pos='.2 .1 0' euler='10 20 30'><joint type='hinge' axis='1 0 0'/>"
              "<geom size='.03' pos='.05 .02 0'/><body pos='.1 0 .1'><joint type='ball' pos='.01 0 .02'/>"
              "<geom size='.02' pos='.05 .02 0'/></body></body></body></body>"
              "<body pos='1 0 0'><joint type='ball'/><geom size='.05' pos='.1 0 0'/></body></worldbody></mujoco>");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_models), cmocka_unit_test(mixed_joints)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
