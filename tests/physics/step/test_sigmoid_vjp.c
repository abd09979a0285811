// The adjoint of a step with smoothed hard contacts against differences of that step, over cones, dimensions,
// integrators, restitution, and the noslip solver; by parameters of the model; its Jacobians.
#include <stdio.h>

#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/sigmoid_model.h"
#include "tests/support/slow.h"

// Rows by state and contacts by feature, to tell whether two steps are on the same branch.
static uint64_t branch(const SnModel *m, const SnWorld *w) {
  const int *row = sn_has_noslip(m) ? w->slip_state : w->efc_state;  // Newton's
  uint64_t h = (uint64_t)*w->nefc;
  for (int i = 0; i < *w->nefc; ++i) h = 1099511628211u * (h ^ (uint64_t)(row[i] + 7 * w->efc_type[i]));
  for (int i = 0; i < *w->ncon; ++i)
    h = 1099511628211u * (h ^ (uint64_t)(w->contact[i].pair * 64 + w->contact[i].feature));
  return h;
}

static uint64_t base_branch;
static int contacts, far_contacts;

// Bodies near the floor and near each other.
static bool sample(void *context) {
  SnGradWorld *g = context;
  for (int tries = 0; tries < 50; ++tries) {
    sn_oracle_randomize(g->o, 1);
    for (int i = 0; i < g->m->nq; ++i) g->o->d->qpos[i] = 0.03 * g->o->d->qpos[i] + 0.97 * g->o->mj->qpos0[i];
    mj_normalizeQuat(g->o->mj, g->o->d->qpos);
    sn_grad_world_sample(g);
    sn_grad_world_move(g, NULL);
    sn_forward(g->m, &g->w, &g->lane);
    for (int i = 0; i < *g->w.ncon; ++i) {
      ++contacts;
      far_contacts += g->w.contact[i].dist > 0;
    }
    if (*g->w.ncon > 0) return true;
  }
  return false;
}

static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = context;
  const SnModel *m = g->m;
  sn_grad_world_move(g, dx);
  sn_forward(m, &g->w, &g->lane);
  if (branch(m, &g->w) != base_branch) return false;
  sn_grad_world_integrate(g, y);
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  const SnModel *m = g->m;
  sn_grad_world_move(g, NULL);
  sn_forward(m, &g->w, &g->lane);
  base_branch = branch(m, &g->w);
  sn_grad_world_step_vjp(g, ybar, xbar);
}

// Bodies on a floor and on each other, a limit, an equality, a friction loss and damping beside.
static const char kBodies[] =
    "<mujoco><option timestep='.004' cone='%s' integrator='%s'%s><flag diagexact='%s'/></option>"
    "<default><geom condim='%d' friction='.6 .02 .01'/></default><worldbody>"
    "<geom type='plane' size='2 2 .1'/>"
    "<body pos='0 0 .051'><freejoint/><geom size='.05'/></body>"
    "<body pos='.3 0 .032' euler='90 0 0'><freejoint/><geom type='capsule' size='.03 .06'/></body>"
    "<body pos='0 .3 .042'><freejoint/><geom type='box' size='.06 .05 .04'/></body>"
    "<body pos='.02 .3 .11'><freejoint/><geom type='sphere' size='.03'/></body>"
    "<body pos='-.3 0 .3'><joint name='j' axis='0 1 0' range='-10 10' damping='.2' frictionloss='.1'/>"
    "<geom type='capsule' fromto='0 0 0 0 0 -.15' size='.02'/><body pos='0 0 -.15'><joint name='k' axis='0 1 0' "
    "damping='.1'/><geom type='capsule' fromto='0 0 0 0 0 -.125' size='.02'/></body></body></worldbody>"
    "<equality><joint joint1='j' joint2='k' polycoef='0 -.5 0 0 0'/></equality></mujoco>";

typedef struct Case {
  const char *cone, *integrator, *more, *exact;
  int condim;
  double width, restitution;
} Case;

static const Case cases[] = {{"pyramidal", "Euler", "", "disable", 1, 0.01, 0},
                             {"pyramidal", "Euler", "", "disable", 3, 0.01, 0.5},
                             {"elliptic", "Euler", "", "disable", 3, 0.01, 0.5},
                             {"pyramidal", "implicitfast", "", "disable", 6, 0.02, 0},
                             {"elliptic", "implicit", " impratio='3'", "disable", 4, 0.004, 0.3},
                             {"pyramidal", "Euler", "", "enable", 3, 0.01, 0.2},
                             {"elliptic", "Euler", " noslip_iterations='3'", "disable", 3, 0.01, 0.2}};

static void load(const Case *c, SnOracle *o) {
  char xml[4000];
  snprintf(xml, sizeof xml, kBodies, c->cone, c->integrator, c->more, c->exact, c->condim);
  sn_oracle_load_string(o, xml);
  sn_oracle_sigmoid(o, c->width, 0.2, c->restitution);
}

static void differences(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    SnOracle o;
    SnGradWorld g;
    char name[100];
    load(cases + i, &o);
    sn_grad_world_init(&g, &o);
    snprintf(name, sizeof name, "sigmoid, %s, condim %d, %s%s", cases[i].cone, cases[i].condim, cases[i].integrator,
             cases[i].more);
    const SnGradCase c = {.name = name,
                          .nx = sn_grad_world_nx(&g),
                          .ny = o.m->nv + o.m->na,
                          .context = &g,
                          .sample = sample,
                          .forward = forward,
                          .adjoint = adjoint,
                          .step = 1e-7,
                          .tolerance = 1e-5,
                          .samples = sn_draws(12)};
    sn_gradcheck(&c, 1 + i);
    sn_grad_world_free(&g);
    sn_oracle_free(&o);
  }
  printf("%d contacts, %d at a distance\n", contacts, far_contacts);
  assert_true(far_contacts > contacts / 5 && far_contacts < contacts);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(differences)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
