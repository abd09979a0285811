// Jacobians of a step: each row is the adjoint of the step for that row alone, though most are not made so; and they
// are the differences of the step; several at once are those that are made one after the other. MuJoCo's differences
// are the business of sinew-check --gradient.
#include <stdio.h>

#include "physics/step/step.h"
#include "tests/support/actuator_models.h"
#include "tests/support/constraint_models.h"
#include "tests/support/dynamics_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/small_models.h"
#include "tests/support/step_fixture.h"

enum { SAMPLES = 4 };

// Models in which an activation depends on more than itself, and two controls drive one joint.
static const char *const servo_xml =
    "<mujoco><worldbody><body><joint name='a' type='ball'/><geom size='.1' pos='.2 0 0'/><body pos='.4 0 0'>"
    "<joint name='b' axis='0 1 0' damping='.3'/><geom size='.1' pos='.2 0 0'/></body></body></worldbody><actuator>"
    "<general joint='a' gear='1 2 0' dyntype='integrator' gainprm='5' biastype='affine' biasprm='0 -5 -.1'/>"
    "<general joint='b' dyntype='filter' dynprm='.1' gainprm='3'/><general joint='b' dyntype='filterexact' "
    "dynprm='.05' "
    "gainprm='2'/><motor joint='b'/><intvelocity joint='b' kp='4' actrange='-1 1'/></actuator></mujoco>";

// A and B of the step at the base, by one adjoint a row.
static void by_rows(SnGradWorld *g, sn_real *A, sn_real *B) {
  const SnModel *m = g->m;
  const int nv = m->nv, n = 2 * nv + m->na;
  double *row = calloc((size_t)(n + m->nu), sizeof *row);
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < nv; ++i) {
      g->a.qpos_next_bar[i] = i == k;
      g->a.qvel_next_bar[i] = nv + i == k;
    }
    for (int i = 0; i < m->na; ++i) g->a.act_next_bar[i] = 2 * nv + i == k;
    sn_adjoint_clear(m, &g->a, &g->lane);
    sn_step_vjp(m, &g->w, &g->a, &g->lane);
    sn_position_vjp(m, &g->w, &g->a, &g->lane);
    memset(row, 0, sizeof *row * (size_t)(n + m->nu));
    sn_grad_world_result(g, row);
    for (int i = 0; i < n; ++i) A[k * n + i] = (sn_real)row[i];
    for (int i = 0; i < m->nu; ++i) B[k * m->nu + i] = (sn_real)row[n + i];
  }
  free(row);
}

static double largest(const sn_real *x, int n) {
  double most = 1e-9;
  for (int i = 0; i < n; ++i) most = sn_larger(most, fabs((double)x[i]));
  return most;
}

static void check(const char *xml, const char *name) {
  SnOracle o;
  SnGradWorld g;
  sn_oracle_load_string(&o, xml);
  sn_grad_world_init(&g, &o);
  const SnModel *m = o.m;
  const int n = 2 * m->nv + m->na;
  const size_t nA = (size_t)(n * n), nB = (size_t)(n * m->nu);
  sn_real *A = calloc(2 * nA + 1, sizeof *A), *B = calloc(2 * nB + 1, sizeof *B);
  for (int k = 0; k < SAMPLES; ++k) {
    sn_oracle_randomize(&o, 1);
    mj_forward(o.mj, o.d);
    sn_grad_world_sample(&g);
    sn_grad_world_move(&g, NULL);
    sn_forward(m, &g.w, &g.lane);
    memset(A, 0xff, 2 * nA * sizeof *A);
    memset(B, 0xff, 2 * nB * sizeof *B);
    sn_step_jacobian(m, &g.w, &g.a, &g.lane, A, B);
    by_rows(&g, A + nA, B + nB);
    const double tight = sizeof(sn_real) == 4 ? 1e-4 : 1e-11;
    const double scale = tight * sn_larger(largest(A + nA, (int)nA), largest(B + nB, (int)nB));
    for (size_t i = 0; i < nA; ++i)
      if (!(fabs((double)(A[i] - A[nA + i])) <= scale))
        fail_msg("%s, sample %d: A[%d][%d] is %g, its row says %g", name, k, (int)i / n, (int)i % n, (double)A[i],
                 (double)A[nA + i]);
    for (size_t i = 0; i < nB; ++i)
      if (!(fabs((double)(B[i] - B[nB + i])) <= scale))
        fail_msg("%s, sample %d: B[%d][%d] is %g, its row says %g", name, k, (int)i / m->nu, (int)i % m->nu,
                 (double)B[i], (double)B[nB + i]);
    assert_true(largest(A, (int)nA) >= 1);
  }
  free(A);
  free(B);
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

static void rows(void **state) {
  (void)state;
  for (int i = 0; i < SN_SMALL_MODELS; ++i) {
    char name[20];
    snprintf(name, sizeof name, "small model %d", i);
    check(sn_small_model(i), name);
  }
  check(servo_xml, "servos");
  check(sn_terrain_model(), "terrain");
}

// Under every integrator.
static void integrators(void **state) {
  (void)state;
  static const char *const option[] = {"<option integrator='Euler'/>", "<option integrator='implicitfast'/>",
                                       "<option integrator='implicit'/>", "<option integrator='RK4'/>"};
  for (int i = 0; i < 4; ++i) {
    static const char *const models[] = {servo_xml, sn_controller_xml, sn_motor_xml, sn_orientation_xml};
    for (int k = 0; k < 4; ++k) {
      char xml[8000];
      snprintf(xml, sizeof xml, "<mujoco>%s%s", option[i], models[k] + strlen("<mujoco>"));
      check(xml, option[i]);
    }
  }
}

// Whether there are rows several at once on this machine; how many models and contacts have been compared.
static int columns_compared, columns_contacts, columns_rows;

// A and B at the state of MuJoCo's data, several rows at once or one after the other.
static void jacobian_of(SnGradWorld *g, bool several, sn_real *A, sn_real *B) {
  SnAdjointColumns *columns = g->a.host->columns;
  if (!several) g->a.host->columns = NULL;
  sn_grad_world_move(g, NULL);
  sn_forward(g->m, &g->w, &g->lane);
  sn_step_jacobian(g->m, &g->w, &g->a, &g->lane, A, B);
  g->a.host->columns = columns;
}

// A number of a pack has the bits that it has alone. Under RK4, whose stages are evaluated anew for each adjoint, the
// solver starts from where it ended before; what that changes, smooth pairs of shapes amplify
// (physics/BESIDE_MUJOCO.md).
static void check_columns(SnOracle *o, const char *name) {
  static const SnCfd kCfd = {.on = 1, .friction = 1, .solimp = {0.01, 0.2, 0.05, 0.6, 2}, .width = 0.01};
  const SnModel *m = o->m;
  const int n = 2 * m->nv + m->na;
  const size_t size = (size_t)(n * (n + m->nu)), nA = (size_t)(n * n);
  sn_real *one = malloc(sizeof *one * (size + 1)), *all = malloc(sizeof *all * (size + 1));
  for (int k = 0; k < 2 * SN_STEP_INTEGRATORS; ++k) {
    const bool bits = sn_integrators[k / 2] != SN_INT_RK4;
    double most = 0;
    SnGradWorld g;
    sn_step_integrator(o, k / 2);
    sn_grad_world_init(&g, o);
    sn_grad_world_sample(&g);
    if (!g.a.host->columns) {
      sn_grad_world_free(&g);
      break;
    }
    if (k % 2) *g.w.cfd = kCfd;
    memset(one, 0xff, sizeof *one * size);
    memset(all, 0xff, sizeof *all * size);
    jacobian_of(&g, false, one, one + nA);
    jacobian_of(&g, true, all, all + nA);
    *g.w.cfd = (SnCfd){0};
    for (size_t i = 0; i < size; ++i) most = sn_larger(most, fabs((double)one[i]));
    for (size_t i = 0; i < size; ++i) {
      if (bits ? memcmp(one + i, all + i, sizeof *one) != 0 : !(fabs((double)(one[i] - all[i])) <= 1e-6 * most))
        fail_msg("%s, %s, CFD %d: [%d] is %.17g, several at once %.17g", name, sn_integrator_name[k / 2], k % 2, (int)i,
                 (double)one[i], (double)all[i]);
    }
    columns_contacts += *g.w.ncon;
    columns_rows += *g.w.nefc;
    ++columns_compared;
    sn_grad_world_free(&g);
  }
  free(one);
  free(all);
}

static void check_columns_xml(const char *xml, const char *name) {
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  sn_oracle_randomize(&o, 1);
  mj_forward(o.mj, o.d);
  check_columns(&o, name);
  sn_oracle_free(&o);
}

static void check_columns_constraints(void (*load)(SnOracle *, const SnConstraintCase *), const char *name) {
  SnConstraintCase cases[200];
  const int count = sn_constraint_cases(cases, 200);
  for (int i = 0; i < count; i += 7) {
    SnOracle o;
    load(&o, cases + i);
    sn_constraint_sample(&o, i % 2 ? 0.1 : 2);
    check_columns(&o, name);
    sn_oracle_free(&o);
  }
}

static void columns(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  char xml[4000];
  const char *name;
  bool missing;
  SnOracle o;
  for (int i = 0; i < SN_SMALL_MODELS; ++i) check_columns_xml(sn_small_model(i), "small model");
  check_columns_xml(sn_branching_model(), "branching");
  check_columns_xml(sn_terrain_model(), "terrain");
  check_columns_xml(servo_xml, "servos");
  check_columns_xml(sn_tendon_xml, "tendons");
  check_columns_xml(sn_actuator_xml, "actuators");
  check_columns_xml(sn_controller_xml, "controllers");
  check_columns_xml(sn_motor_xml, "motors");
  check_columns_xml(sn_orientation_xml, "orientations");
  snprintf(xml, sizeof xml, sn_adhesion_xml, "elliptic");
  check_columns_xml(xml, "adhesion");
  for (int i = 0; sn_dynamics_load_inline(&o, "", i, &name); ++i) {
    sn_dynamics_sample(&o, 1);
    check_columns(&o, name);
    sn_oracle_free(&o);
  }
  check_columns_constraints(sn_constraint_load_contacts, "contacts");
  check_columns_constraints(sn_constraint_load_joints, "joints");
  if (sn_constraint_load_real(&o, 0, 20, &name, &missing) && !missing) {
    mj_forward(o.mj, o.d);
    check_columns(&o, name);
    sn_oracle_free(&o);
  }
  printf("several rows at once: %d Jacobians, %d contacts, %d rows of constraints\n", columns_compared,
         columns_contacts, columns_rows);
  if (columns_compared == 0) skip();  // this machine has no text for it
  assert_true(columns_contacts > 100 && columns_rows > 1000);
}

// One step of the world from the base moved by dx: tangent of the next state at the base's own next state.
typedef struct StepCase {
  SnGradWorld g;
  SnOracle o;
  sn_real *A, *B, *next;
} StepCase;

static bool step_sample(void *context) {
  StepCase *c = context;
  sn_oracle_randomize(&c->o, 1);
  mj_forward(c->o.mj, c->o.d);
  sn_grad_world_sample(&c->g);
  sn_grad_world_move(&c->g, NULL);
  sn_step(c->o.m, &c->g.w, &c->g.lane);
  memcpy(c->next, c->g.w.qpos, sizeof *c->next * (size_t)c->o.m->nq);
  sn_grad_world_move(&c->g, NULL);
  sn_forward(c->o.m, &c->g.w, &c->g.lane);
  sn_step_jacobian(c->o.m, &c->g.w, &c->g.a, &c->g.lane, c->A, c->B);
  return true;
}

static bool step_forward(void *context, const double *dx, double *y) {
  StepCase *c = context;
  const SnModel *m = c->o.m;
  sn_grad_world_move(&c->g, dx);
  sn_step(m, &c->g.w, &c->g.lane);
  mj_differentiatePos(c->o.mj, y, 1, (const mjtNum *)c->next, (const mjtNum *)c->g.w.qpos);
  for (int i = 0; i < m->nv; ++i) y[m->nv + i] = (double)c->g.w.qvel[i];
  for (int i = 0; i < m->na; ++i) y[2 * m->nv + i] = (double)c->g.w.act[i];
  return true;
}

static void step_adjoint(void *context, const double *ybar, double *xbar) {
  StepCase *c = context;
  const SnModel *m = c->o.m;
  const int n = 2 * m->nv + m->na;
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < n; ++i) xbar[i] += ybar[k] * (double)c->A[k * n + i];
    for (int i = 0; i < m->nu; ++i) xbar[n + i] += ybar[k] * (double)c->B[k * m->nu + i];
  }
}

static void differences(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  static const char *const integrator[] = {"Euler", "implicitfast", "RK4"};
  for (int i = 0; i < 3; ++i) {
    StepCase c = {0};
    char xml[3000];
    snprintf(xml, sizeof xml, "<mujoco><option integrator='%s'/>%s", integrator[i], servo_xml + strlen("<mujoco>"));
    sn_oracle_load_string(&c.o, xml);
    sn_grad_world_init(&c.g, &c.o);
    const SnModel *m = c.o.m;
    const int n = 2 * m->nv + m->na;
    c.A = calloc((size_t)(n * n) + 1, sizeof *c.A);
    c.B = calloc((size_t)(n * m->nu) + 1, sizeof *c.B);
    c.next = calloc((size_t)m->nq + 1, sizeof *c.next);
    const SnGradCase grad = {.name = integrator[i],
                             .nx = n + m->nu,
                             .ny = n,
                             .context = &c,
                             .sample = step_sample,
                             .forward = step_forward,
                             .adjoint = step_adjoint};
    sn_gradcheck(&grad, 11);
    free(c.A);
    free(c.B);
    free(c.next);
    sn_grad_world_free(&c.g);
    sn_oracle_free(&c.o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(integrators), cmocka_unit_test(columns),
                                     cmocka_unit_test(differences)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
