// The adjoint of a step with contacts from distance (CFD) against differences of that step.
#include <stdio.h>

#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/slow.h"

// Rows that push, to tell whether two steps are on the same branch.
static uint64_t branch(const SnWorld *w) {
  uint64_t h = (uint64_t)*w->nefc;
  for (int i = 0; i < *w->nefc; ++i) h = 1099511628211u * (h ^ (uint64_t)(w->efc_state[i] + 7 * w->efc_type[i]));
  for (int i = 0; i < *w->ncon; ++i)
    h = 1099511628211u * (h ^ (uint64_t)(w->contact[i].pair * 64 + w->contact[i].feature));
  return h;
}

// Touching convex pairs follow MuJoCo's iterations, whose noise of 1e-6 and more differences would show.
static bool is_noisy(const SnModel *m, const SnWorld *w) {
  for (int i = 0; i < *w->ncon; ++i)
    if (w->contact[i].cfd == SN_CONTACT_TOUCHES && m->cpair_collider[w->contact[i].pair] == SN_COLLIDER_CONVEX)
      return true;
  return false;
}

static bool sample(void *context) {
  SnGradWorld *g = context;
  for (int tries = 0; tries < 50; ++tries) {
    sn_oracle_randomize(g->o, 1);
    for (int i = 0; i < g->m->nq; ++i) g->o->d->qpos[i] = 0.6 * g->o->d->qpos[i] + 0.4 * g->o->mj->qpos0[i];
    mj_normalizeQuat(g->o->mj, g->o->d->qpos);
    sn_grad_world_sample(g);
    sn_grad_world_move(g, NULL);
    sn_forward(g->m, &g->w, &g->lane);
    if (!is_noisy(g->m, &g->w)) return true;
  }
  return false;
}

static uint64_t base_branch;

static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = context;
  const SnModel *m = g->m;
  sn_grad_world_move(g, dx);
  sn_forward(m, &g->w, &g->lane);
  if (branch(&g->w) != base_branch || is_noisy(m, &g->w)) return false;
  sn_grad_world_integrate(g, y);
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  const SnModel *m = g->m;
  sn_grad_world_move(g, NULL);
  sn_forward(m, &g->w, &g->lane);
  base_branch = branch(&g->w);
  sn_grad_world_step_vjp(g, ybar, xbar);
}

static void check(SnOracle *o, const char *name, const SnCfd *cfd, double tolerance, int samples) {
  SnGradWorld g;
  sn_grad_world_init(&g, o);
  *g.w.cfd = *cfd;
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&g),
                        .ny = o->m->nv + o->m->na,
                        .context = &g,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .tolerance = tolerance,
                        .samples = sn_draws(samples)};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&g);
}

static const SnCfd kPaper = {.on = 1, .solimp = {0, SN_R(0.1), 1, SN_R(0.999), 4}, .width = SN_R(0.002)};

// Not the ellipsoid with the box: MuJoCo's iterations leave noise in their distance that differences would show.
static const char kBodies[] =
    "<mujoco><default><geom solimp='.1 .95 .001 .5 2' contype='5'/></default><worldbody><geom type='plane' size='2 2 "
    ".1'/>"
    "<body pos='0 0 .3'><freejoint/><geom size='.05'/></body>"
    "<body pos='.2 0 .3'><freejoint/><geom type='capsule' size='.03 .06'/></body>"
    "<body pos='-.2 .1 .4'><freejoint/><geom type='ellipsoid' contype='1' size='.03 .06 .04'/></body>"
    "<body pos='0 .3 .4'><joint axis='0 1 0'/><joint type='ball' pos='.1 0 0'/><geom type='box' contype='2' "
    "conaffinity='4' size='.03 .06 .04'/>"
    "</body></worldbody></mujoco>";

static void bodies(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kBodies);
  SnCfd cfd = kPaper;
  check(&o, "bodies with CFD", &cfd, 1e-5, 20);
  cfd.friction = 1;
  check(&o, "bodies with CFD, friction", &cfd, 1e-5, 10);
  cfd.width = SN_R(0.05);
  cfd.solimp[4] = 1;
  check(&o, "bodies with CFD, wide softplus, linear impedance", &cfd, 1e-5, 10);
  sn_oracle_free(&o);
}

// Bodies above and in hills: nearest points of a pair that does not touch, else its contacts.
static const char kHills[] =
    "<mujoco><default><geom solimp='.1 .95 .001 .5 2'/></default><asset><hfield name='hills' nrow='5' ncol='6' "
    "size='.8 .6 .15 .1' elevation='3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3 2 3 8 4 6 2 6 4 3 3 8 3 2 7'/></asset><worldbody>"
    "<body mocap='true' pos='0 0 -.2' euler='3 -4 5'><geom type='hfield' hfield='hills'/></body>"
    "<body pos='-.3 0 .1'><freejoint/><geom size='.05'/></body>"
    "<body pos='.3 0 .1'><freejoint/><geom type='capsule' size='.03 .06'/></body>"
    "<body pos='0 .3 .1'><freejoint/><geom type='box' size='.03 .06 .04'/></body></worldbody></mujoco>";

static void hills(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kHills);
  SnCfd cfd = kPaper;
  check(&o, "hills with CFD", &cfd, 1e-5, 20);
  cfd.friction = 1;
  check(&o, "hills with CFD, friction", &cfd, 1e-5, 10);
  sn_oracle_free(&o);
}

static void myohand(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  check(&o, "MyoHand with CFD", &kPaper, 1e-4, 8);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bodies), cmocka_unit_test(hills), cmocka_unit_test(myohand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
