// The solution of the constraint solver differentiated: lambda, C J lambda against differences of qacc.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/constraint/solver_private.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"

enum { ROWS = 200, BLOCKS = 50 };

// x: qfrc_smooth (nv), efc_aref (ROWS), log D by block (BLOCKS). y: qacc.
typedef struct Solve {
  SnGradWorld g;
  double speed;
  int steps;  // > 0: states are those of MuJoCo's simulation, so many steps apart; else random ones of the small models
  int iterations;  // of the adjoint's own solve; 0: as many as it takes
  sn_real *smooth;
  double *qacc;
  sn_real aref[ROWS], D[ROWS], R[ROWS];
  int state[ROWS], nefc;
  int count[5], early;  // rows by state, solves that stopped early
} Solve;

static void rows(Solve *k) {
  SnGradWorld *g = &k->g;
  sn_grad_world_move(g, NULL);
  sn_forward(g->m, &g->w, &g->lane);
}

static void solve(Solve *k, const double *dx, int iterations) {
  SnGradWorld *g = &k->g;
  SnWorld *w = &g->w;
  const int nv = g->m->nv;
  for (int i = 0; i < nv; ++i) w->qacc_smooth[i] = w->qfrc_smooth[i] = k->smooth[i] + (dx ? (sn_real)dx[i] : 0);
  sn_solve_LD(g->m, &g->lane, w->qLD, w->qLDiagInv, w->qacc_smooth);
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock block = sn_block(w, b);
    const sn_real scale = dx ? (sn_real)exp(dx[nv + ROWS + b]) : 1;
    for (int r = block.row; r < block.row + block.num; ++r) {
      w->efc_aref[r] = k->aref[r] + (dx ? (sn_real)dx[nv + r] : 0);
      w->efc_D[r] = k->D[r] * scale;
      w->efc_R[r] = k->R[r] / scale;
    }
  }
  memcpy(w->qacc_warmstart, g->warm, sizeof(sn_real) * (size_t)nv);
  const int most = g->o->m->opt.iterations;
  if (iterations > 0) g->o->m->opt.iterations = iterations;
  sn_solve(g->m, w, &g->lane);
  g->o->m->opt.iterations = most;
}

static bool sample(void *context) {
  Solve *k = context;
  SnGradWorld *g = &k->g;
  SnWorld *w = &g->w;
  if (k->steps == 0) sn_constraint_sample(g->o, k->speed);
  for (int i = 0; i < k->steps; ++i) {
    if (i % 20 == 0)
      for (int u = 0; u < g->m->nu; ++u) g->o->d->ctrl[u] = 0.5 * (1 + sn_oracle_uniform(g->o));
    mj_step(g->o->mj, g->o->d);
  }
  sn_grad_world_sample(g);
  rows(k);
  k->nefc = w->nefc[0];
  assert_true(k->nefc <= ROWS && w->nblock[0] <= BLOCKS);
  memcpy(k->smooth, w->qfrc_smooth, sizeof(sn_real) * (size_t)g->m->nv);
  memcpy(k->aref, w->efc_aref, sizeof(sn_real) * (size_t)k->nefc);
  memcpy(k->D, w->efc_D, sizeof(sn_real) * (size_t)k->nefc);
  memcpy(k->R, w->efc_R, sizeof(sn_real) * (size_t)k->nefc);
  solve(k, NULL, 0);
  sn_solve_finish(g->m, w, &g->lane);
  for (int i = 0; i < g->m->nv; ++i) k->qacc[i] = (double)w->qacc[i];
  for (int i = 0; i < k->nefc; ++i) ++k->count[k->state[i] = w->efc_state[i]];
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Solve *k = context;
  SnWorld *w = &k->g.w;
  solve(k, dx, 0);
  sn_solve_finish(k->g.m, w, &k->g.lane);
  for (int i = 0; i < k->nefc; ++i)
    if (w->efc_state[i] != k->state[i]) return false;
  for (int i = 0; i < k->g.m->nv; ++i) y[i] = (double)w->qacc[i];
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Solve *k = context;
  SnGradWorld *g = &k->g;
  SnWorld *w = &g->w;
  const int nv = g->m->nv;
  *w->warn = 0;
  solve(k, NULL, k->iterations);
  k->early += *w->warn != 0;
  for (int i = 0; i < nv; ++i) g->a.qacc_bar[i] = (sn_real)ybar[i];
  sn_solve_vjp(g->m, w, &g->a, &g->lane);
  const double e = sn_oracle_error(w->qacc, k->qacc, nv);
  if (!(e <= SN_TOL(1e-9, 1e-2))) fail_msg("the finished solution differs by %g", e);
  for (int i = 0; i < nv; ++i) {
    xbar[i] += (double)g->a.motion[SN_LAMBDA * nv + i];
    assert_true(g->a.motion[SN_ACC * nv + i] == w->qacc[i] && g->a.motion[SN_VEL * nv + i] == w->qvel[i]);
  }
  for (int i = 0; i < k->nefc; ++i) xbar[nv + i] += (double)g->a.row_c[i];
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock block = sn_block(w, b);
    double sum = 0;
    for (int r = block.row; r < block.row + block.num; ++r)
      if (w->efc_state[r] != SN_CSTATE_LINEARNEG && w->efc_state[r] != SN_CSTATE_LINEARPOS)
        sum += (double)(g->a.row_lambda[r] * w->efc_force[r]);
    xbar[nv + ROWS + b] += sum;
  }
}

static void check_solve(Solve *k, const char *name, SnOracle *o, int samples) {
  const int nv = o->m->nv;
  sn_grad_world_init(&k->g, o);
  k->smooth = calloc((size_t)nv + 1, sizeof *k->smooth);
  k->qacc = calloc((size_t)nv + 1, sizeof *k->qacc);
  const SnGradCase c = {.name = name,
                        .nx = nv + ROWS + BLOCKS,
                        .ny = nv,
                        .context = k,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .step = 1e-5,
                        .tolerance = 1e-5,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&k->g);
  free(k->smooth);
  free(k->qacc);
}

static void over_cases(Solve *k, void (*load)(SnOracle *, const SnConstraintCase *), const char *kind, int stride) {
  static SnConstraintCase cases[200];
  const int n = sn_constraint_cases(cases, 200);
  for (int i = 0; i < n; i += stride)
    for (int near = 0; near < 2; ++near) {
      SnOracle o;
      char name[300];
      const SnConstraintCase *c = cases + i;
      load(&o, c);
      k->speed = near ? 0.1 : 2;
      snprintf(name, sizeof name, "%s, %s: %s condim %d impratio %g solref %s solimp %s", kind, near ? "near" : "far",
               c->cone, c->condim, c->impratio, c->solref, c->solimp);
      check_solve(k, name, &o, 4);
      sn_oracle_free(&o);
    }
  printf("%s: rows satisfied %d, quadratic %d, linear %d and %d, in cones %d; %d solves stopped early\n", kind,
         k->count[0], k->count[1], k->count[2], k->count[3], k->count[4], k->early);
}

static void contacts(void **state) {
  (void)state;
  static Solve k;
  memset(&k, 0, sizeof k);
  over_cases(&k, sn_constraint_load_contacts, "contacts", 11);
  assert_true(k.count[SN_CSTATE_CONE] > 100);
}

static void joints_tendons_equalities(void **state) {
  (void)state;
  static Solve k;
  memset(&k, 0, sizeof k);
  over_cases(&k, sn_constraint_load_joints, "joints", 17);
  assert_true(k.count[SN_CSTATE_LINEARNEG] > 10 && k.count[SN_CSTATE_LINEARPOS] > 10);
}

// One to four iterations, as a planner allows.
static void stopped_early(void **state) {
  (void)state;
  for (int iterations = 1; iterations <= 4; ++iterations) {
    static Solve k;
    memset(&k, 0, sizeof k);
    k.iterations = iterations;
    over_cases(&k, sn_constraint_load_contacts, "contacts, few iterations", 29);
    assert_true(k.early > 0);
  }
}

// MyoHand with two balls, with the few iterations of a planner.
static void hand(void **state) {
  (void)state;
  static Solve k;
  SnOracle o;
  memset(&k, 0, sizeof k);
  k.steps = 60;
  k.iterations = 4;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  check_solve(&k, "hand", &o, 10);
  printf("hand: rows satisfied %d, quadratic %d\n", k.count[0], k.count[1]);
  sn_oracle_free(&o);
}

// Without rows lambda = M^-1 qacc_bar.
static void no_rows(void **state) {
  (void)state;
  SnOracle o;
  SnGradWorld g;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/><body pos='.4 0 "
                        "0'><joint axis='0 0 1'/><joint axis='0 1 0'/><geom size='.1' pos='.1 0 0'/></body></body>"
                        "</worldbody></mujoco>");
  sn_grad_world_init(&g, &o);
  sn_constraint_sample(&o, 1);
  sn_grad_world_sample(&g);
  sn_grad_world_move(&g, NULL);
  sn_forward(g.m, &g.w, &g.lane);
  assert_int_equal(*g.w.nefc, 0);
  for (int i = 0; i < 3; ++i) g.a.qacc_bar[i] = (sn_real)(1 + i);
  sn_solve_vjp(g.m, &g.w, &g.a, &g.lane);
  sn_real back[3];
  sn_mul_M(g.m, &g.w, &g.lane, back, g.a.motion + SN_LAMBDA * g.m->nv);
  for (int i = 0; i < 3; ++i) assert_true(fabs((double)back[i] - (1 + i)) < SN_TOL(1e-12, 1e-4));
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(contacts), cmocka_unit_test(joints_tendons_equalities),
                                     cmocka_unit_test(stopped_early), cmocka_unit_test(hand),
                                     cmocka_unit_test(no_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
