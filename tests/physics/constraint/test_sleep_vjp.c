// The adjoint of steps in which trees sleep, fall asleep or are awake, against differences. A tree that sleeps has
// positions that stay and no velocity: in a difference its positions are moved as a caller moves them, who says that it
// sleeps there. Its velocity does not count.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/step_fixture.h"

// Trees: a box and a ball that sleep together, a slide and a pendulum that fall asleep in this step, a ball that rolls,
// two joints that a tendon connects, of which the first sleeps.
enum { BOX, BALL, SLIDE, PENDULUM, ROLLER, ANCHOR, PULLED, TREES };
static const char model_xml[] =
    "<mujoco><option timestep='.005' %s><flag sleep='enable'/></option><worldbody>"
    "<geom type='plane' size='5 5 1'/>"
    "<body pos='0 0 .099'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "<body pos='0 0 .295'><freejoint/><geom size='.1'/></body>"
    "<body pos='1 0 1'><joint type='slide' axis='1 0 0' damping='2' frictionloss='.1'/><geom size='.1'/></body>"
    "<body pos='2 0 1'><joint type='ball' damping='2'/><geom size='.1' pos='0 0 -.3'/></body>"
    "<body pos='3 0 .0996'><freejoint/><geom size='.1'/></body>"
    "<body pos='0 2 1' sleep='allowed'><joint type='hinge' axis='0 1 0'/><geom size='.1' pos='.3 0 0'/>"
    "<site name='a' pos='.3 0 .05'/></body>"
    "<body pos='1 2.3 1' sleep='allowed'><joint type='hinge' axis='0 1 0' damping='1'/><geom size='.1' pos='.2 0 0'/>"
    "<site name='b' pos='.2 0 .05'/></body></worldbody>"
    "<tendon><spatial name='t'><site site='a'/><site site='b'/></spatial></tendon>"
    "<actuator><motor tendon='t'/><position tendon='t' kp='20' kv='1'/></actuator></mujoco>";

static const bool sleeps[TREES] = {true, true, false, false, false, true, false};
static const bool dozes[TREES] = {false, false, true, true, false, false, false};

typedef struct Step {
  SnGradWorld g;
  double *next;
  int nefc, state[400];
} Step;

static bool tree_rests(const SnModel *m, int dof) { return sleeps[m->dof_treeid[dof]]; }

// The trees' states at the base, and that sleepers do not move.
static void put_trees(SnGradWorld *g) {
  SnWorld *w = &g->w;
  w->sleep_on[0] = 1;
  for (int t = 0; t < TREES; ++t) w->tree_asleep[t] = sleeps[t] ? t : dozes[t] ? -2 : (int)SN_AWAKE;
  w->tree_asleep[BOX] = BALL;
  w->tree_asleep[BALL] = BOX;
  memcpy(w->sleep_qpos, w->qpos, sizeof(sn_real) * (size_t)g->m->nq);
  for (int i = 0; i < g->m->nv; ++i)
    if (tree_rests(g->m, i)) w->qvel[i] = 0;
}

// A state near the start in which those that doze are slow.
static bool sample(void *context) {
  Step *s = context;
  SnGradWorld *g = &s->g;
  SnOracle *o = g->o;
  mj_resetData(o->mj, o->d);
  for (int i = 0; i < o->m->nv; ++i)
    o->d->qvel[i] = (dozes[o->m->dof_treeid[i]] ? 1e-4 : tree_rests(o->m, i) ? 0 : .3) * sn_oracle_uniform(o);
  for (int t = SLIDE; t < TREES; ++t)
    for (int i = o->m->tree_dofadr[t]; i < o->m->tree_dofadr[t] + (t == ROLLER ? 2 : 0); ++i) o->d->qpos[i] += .01;
  for (int i = 0; i < o->m->nu; ++i) o->d->ctrl[i] = sn_oracle_uniform(o);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  put_trees(g);
  sn_step_full(g);
  for (int t = 0; t < TREES; ++t) assert_int_equal(g->w.tree_asleep[t] >= 0, sleeps[t] || dozes[t]);
  for (int i = 0; i < g->m->nq; ++i) s->next[i] = (double)g->w.qpos[i];
  s->nefc = g->w.nefc[0];
  assert_in_range(s->nefc, 1, 399);
  memcpy(s->state, g->w.efc_state, sizeof(int) * (size_t)s->nefc);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Step *s = context;
  SnGradWorld *g = &s->g;
  const SnModel *m = g->m;
  double qpos[100];
  sn_grad_world_move(g, dx);
  put_trees(g);
  sn_step_full(g);
  assert_in_range(m->nq, 1, 99);
  for (int i = 0; i < m->nq; ++i) qpos[i] = (double)g->w.qpos[i];
  mj_differentiatePos(g->o->mj, y, 1, s->next, qpos);
  for (int i = 0; i < m->nv; ++i) y[m->nv + i] = (double)g->w.qvel[i];
  return g->w.nefc[0] == s->nefc && memcmp(s->state, g->w.efc_state, sizeof(int) * (size_t)s->nefc) == 0;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Step *s = context;
  sn_grad_world_move(&s->g, NULL);
  put_trees(&s->g);
  sn_forward(s->g.m, &s->g.w, &s->g.lane);
  sn_step_full_vjp(&s->g, ybar);
  sn_grad_world_result(&s->g, xbar);
}

// A by sn_step_jacobian is A by one adjoint a row.
static void check_jacobian(Step *s) {
  SnGradWorld *g = &s->g;
  const SnModel *m = g->m;
  const int n = 2 * m->nv, nx = sn_grad_world_nx(g);
  sn_real *A = calloc((size_t)n * (size_t)n, sizeof *A), *B = calloc((size_t)n * (size_t)m->nu + 1, sizeof *B);
  double *bar = calloc((size_t)n, sizeof *bar), *row = calloc((size_t)nx, sizeof *row);
  assert_true(sample(s));
  sn_grad_world_move(g, NULL);
  put_trees(g);
  sn_forward(m, &g->w, &g->lane);
  sn_step_jacobian(m, &g->w, &g->a, &g->lane, A, B);
  for (int k = 0; k < n; ++k) {
    memset(bar, 0, sizeof *bar * (size_t)n);
    memset(row, 0, sizeof *row * (size_t)nx);
    bar[k] = 1;
    sn_step_full_vjp(g, bar);
    sn_grad_world_result(g, row);
    for (int i = 0; i < n; ++i)
      if (!(fabs((double)A[k * n + i] - row[i]) <= SN_TOL(1e-10, 1e-3)))
        fail_msg("A[%d][%d] is %g, its row says %g", k, i, (double)A[k * n + i], row[i]);
    const int dof = k % m->nv;
    if (!tree_rests(m, dof) && !dozes[m->dof_treeid[dof]]) continue;
    for (int i = 0; i < n; ++i)  // who sleeps after the step stays where it is
      if (A[k * n + i] != (k < m->nv && i == k)) fail_msg("sleeper: A[%d][%d] is %g", k, i, (double)A[k * n + i]);
  }
  free(A);
  free(B);
  free(bar);
  free(row);
}

static void adjoints(void **state) {
  static const char *const option[] = {"", "integrator='implicitfast'", "integrator='implicit'",
                                       "cone='elliptic' noslip_iterations='3'"};
  (void)state;
  for (int k = 0; k < 4; ++k) {
    SnOracle o;
    Step s;
    char xml[3000];
    snprintf(xml, sizeof xml, model_xml, option[k]);
    sn_oracle_load_string(&o, xml);
    sn_grad_world_init(&s.g, &o);
    s.next = calloc((size_t)o.m->nq, sizeof *s.next);
    assert_int_equal(o.m->ntree, TREES);
    const SnGradCase c = {.name = option[k],
                          .nx = sn_grad_world_nx(&s.g),
                          .ny = 2 * o.m->nv,
                          .context = &s,
                          .sample = sample,
                          .forward = forward,
                          .adjoint = adjoint,
                          .samples = 6,
                          .tolerance = k == 3 ? 1e-4 : 1e-5};
    sn_gradcheck(&c, 1);
    check_jacobian(&s);
    free(s.next);
    sn_grad_world_free(&s.g);
    sn_oracle_free(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adjoints),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
