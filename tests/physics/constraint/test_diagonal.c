// Impedances by the exact diagonal of J M^-1 J' against MuJoCo's; their adjoint, with the noslip solver behind it too,
// against differences.
#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/slow.h"
#include "tests/support/step_fixture.h"

#include <stdio.h>

enum { CASES = 200, ROWS = 700 };
static SnConstraintCase cases[CASES];
static double largest;  // difference of D from that by inverse inertias at qpos0

// All rows, and that their D is not what it would be otherwise.
static void check_rows(SnOracle *o, const char *what) {
  static sn_real D[ROWS];
  sn_constraint_make_rows(o);
  sn_constraint_check_rows(o, what);
  const int n = o->w.nefc[0];
  assert_true(n <= ROWS);
  memcpy(D, o->w.efc_D, sizeof *D * (size_t)n);
  o->m->opt.enableflags &= ~SN_ENBL_DIAGEXACT;
  sn_constraint_make_rows(o);
  o->m->opt.enableflags |= SN_ENBL_DIAGEXACT;
  for (int i = 0; i < n; ++i) largest = sn_larger(largest, fabs((double)(D[i] / o->w.efc_D[i]) - 1));
}

static void over_cases(void (*load)(SnOracle *, const SnConstraintCase *), const char *name) {
  const int n = sn_constraint_cases(cases, CASES);
  largest = 0;
  for (int i = 0; i < n; i += 3) {
    SnOracle o;
    cases[i].flag = "diagexact='enable'";
    load(&o, cases + i);
    for (int k = 0; k < 4; ++k) {
      char what[300];
      snprintf(what, sizeof what, "%s %d: %s condim %d impratio %g", name, k, cases[i].cone, cases[i].condim,
               cases[i].impratio);
      sn_constraint_sample(&o, k % 2 ? 3 : 0.1);
      check_rows(&o, what);
    }
    sn_oracle_free(&o);
  }
  printf("%s: D differs by up to %.2g of that by inverse inertias\n", name, largest);
  assert_true(largest > 0.1);
}

static void rows_of_contacts(void **state) {
  (void)state;
  over_cases(sn_constraint_load_contacts, "contacts");
}

static void rows_of_joints(void **state) {
  (void)state;
  over_cases(sn_constraint_load_joints, "joints");
}

typedef struct Exact {
  SnGradWorld g;
  double speed, *next;
  int n, state[ROWS];
} Exact;

static const int *states(const Exact *s) { return sn_has_noslip(s->g.m) ? s->g.w.slip_state : s->g.w.efc_state; }

static bool sample(void *context) {
  Exact *s = context;
  SnGradWorld *g = &s->g;
  sn_constraint_sample(g->o, s->speed);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_step_full(g);
  for (int i = 0; i < g->m->nq; ++i) s->next[i] = (double)g->w.qpos[i];
  s->n = g->w.nefc[0];
  assert_true(s->n <= ROWS);
  memcpy(s->state, states(s), sizeof *s->state * (size_t)s->n);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Exact *s = context;
  SnGradWorld *g = &s->g;
  const int nv = g->m->nv;
  double qpos[100];
  sn_grad_world_move(g, dx);
  sn_step_full(g);
  for (int i = 0; i < g->m->nq; ++i) qpos[i] = (double)g->w.qpos[i];
  mj_differentiatePos(g->o->mj, y, 1, s->next, qpos);
  for (int i = 0; i < nv; ++i) y[nv + i] = (double)g->w.qvel[i];
  return g->w.nefc[0] == s->n && memcmp(states(s), s->state, sizeof *s->state * (size_t)s->n) == 0;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Exact *s = context;
  sn_grad_world_move(&s->g, NULL);
  sn_forward(s->g.m, &s->g.w, &s->g.lane);
  sn_step_full_vjp(&s->g, ybar);
  sn_grad_world_result(&s->g, xbar);
}

static void gradients(void (*load)(SnOracle *, const SnConstraintCase *), const char *name) {
  static Exact s;
  const int n = sn_constraint_cases(cases, CASES);
  for (int i = 0, k = 0; i < n; i += 13, ++k) {
    SnOracle o;
    char text[300];
    double next[100];
    cases[i].flag = "diagexact='enable'";
    cases[i].option = k % 4 == 3 ? "noslip_iterations='2'" : NULL;
    load(&o, cases + i);
    assert_true(o.m->nq <= 100);
    sn_step_integrator(&o, k % 3);
    snprintf(text, sizeof text, "%s: %s condim %d impratio %g, %s%s", name, cases[i].cone, cases[i].condim,
             cases[i].impratio, sn_integrator_name[k % 3], k % 4 == 3 ? ", noslip" : "");
    sn_grad_world_init(&s.g, &o);
    s.next = next;
    s.speed = k % 2 ? 0.5 : 0.1;
    const SnGradCase c = {.name = text,
                          .nx = sn_grad_world_nx(&s.g),
                          .ny = 2 * o.m->nv,
                          .context = &s,
                          .sample = sample,
                          .forward = forward,
                          .adjoint = adjoint,
                          .tolerance = 1e-5,
                          .samples = sn_draws(5)};
    sn_gradcheck(&c, 1);
    sn_grad_world_free(&s.g);
    sn_oracle_free(&o);
  }
}

static void gradients_of_contacts(void **state) {
  (void)state;
  gradients(sn_constraint_load_bodies, "bodies");
}

static void gradients_of_joints(void **state) {
  (void)state;
  gradients(sn_constraint_load_joints, "joints");
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_contacts), cmocka_unit_test(rows_of_joints),
                                     cmocka_unit_test(gradients_of_contacts), cmocka_unit_test(gradients_of_joints)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
