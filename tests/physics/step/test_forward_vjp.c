// All of sn_forward backwards: qacc as a function of the state, through poses, contacts, rows and the solver, against
// differences.
#include <math.h>
#include <stdio.h>

#include "physics/actuator/actuator.h"
#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/slow.h"

enum { ROWS = 700 };

typedef struct Whole {
  SnGradWorld g;
  double speed;
  const SnCfd *cfd;
  int nefc, ncon, type[ROWS], id[ROWS], state[ROWS];
  int count[8];  // rows by type, over all samples
} Whole;

static void run(Whole *k, const double *dx) {
  sn_grad_world_move(&k->g, dx);
  sn_forward(k->g.m, &k->g.w, &k->g.lane);
}

static bool sample(void *context) {
  Whole *k = context;
  SnOracle *o = k->g.o;
  const SnWorld *w = &k->g.w;
  sn_constraint_sample(o, k->speed);
  if (k->cfd) *k->g.w.cfd = *k->cfd;
  sn_grad_world_sample(&k->g);
  run(k, NULL);
  sn_solve_finish(k->g.m, &k->g.w, &k->g.lane);
  k->nefc = *w->nefc;
  k->ncon = *w->ncon;
  assert_true(k->nefc <= ROWS);
  for (int i = 0; i < k->nefc; ++i) {
    k->state[i] = w->efc_state[i];
    k->type[i] = w->efc_type[i];
    k->id[i] = w->efc_id[i];
    ++k->count[k->type[i]];
  }
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Whole *k = context;
  SnWorld *w = &k->g.w;
  run(k, dx);
  sn_solve_finish(k->g.m, w, &k->g.lane);
  if (*w->nefc != k->nefc || *w->ncon != k->ncon) return false;
  for (int i = 0; i < k->nefc; ++i) {
    if (w->efc_type[i] != k->type[i] || w->efc_id[i] != k->id[i]) return false;
    // a row that nothing moves has a residual of rounding, in either state
    if (w->efc_state[i] != k->state[i] && fabs((double)w->efc_jar[i]) > 1e-10) return false;
  }
  for (int i = 0; i < k->g.m->nv; ++i) y[i] = (double)w->qacc[i];
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Whole *k = context;
  SnGradWorld *g = &k->g;
  const int nv = g->m->nv;
  run(k, NULL);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int i = 0; i < nv; ++i) {
    g->a.qacc_bar[i] = (sn_real)ybar[i];
    g->a.motion[SN_Y * nv + i] = g->a.motion[SN_NEXT * nv + i] = 0;
  }
  for (int i = 0; i < g->m->na; ++i) g->a.act_dot_bar[i] = 0;
  sn_forward_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_position_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void check_forward(Whole *k, const char *name, SnOracle *o, int samples, double step, double tolerance) {
  sn_grad_world_init(&k->g, o);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&k->g),
                        .ny = o->m->nv,
                        .context = k,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .step = step,
                        .tolerance = tolerance,
                        .samples = sn_draws(samples)};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&k->g);
}

static void check_case(void *context, SnOracle *o, const char *name, double speed) {
  Whole *k = context;
  k->speed = speed;
  check_forward(k, name, o, 5, 1e-7, 1e-6);
}

static void over_cases(void (*load)(SnOracle *, const SnConstraintCase *), const char *kind, int stride) {
  static Whole k;
  memset(&k, 0, sizeof k);
  sn_constraint_for_gradients(load, kind, stride, check_case, &k, k.count);
}

static void contacts(void **state) {
  (void)state;
  over_cases(sn_constraint_load_contacts, "contacts", 7);
}

static void joints_tendons_equalities(void **state) {
  (void)state;
  over_cases(sn_constraint_load_joints, "joints", 11);
}

// Contacts from distance, also without choices of the collider. The nearest points of boxes and cylinders far away are
// known to 1e-9 m or so, which limits the differences.
static void check_distant(const char *name, sn_real smooth) {
  static const SnConstraintCase c = {"elliptic", 3, 1, "0.02 1", "0 0", "0.4 0.8 0.03 0.5 2", "", NULL};
  const SnCfd cfd = {.on = 1, .solimp = {0, SN_R(0.1), 1, SN_R(0.5), 2}, .width = SN_R(0.01), .smooth = smooth};
  static Whole k;
  SnOracle o;
  memset(&k, 0, sizeof k);
  k.cfd = &cfd;
  k.speed = 1;
  sn_constraint_load_contacts(&o, &c);
  check_forward(&k, name, &o, 20, 1e-5, 5e-5);
  assert_true(k.count[SN_CNSTR_CONTACT_FRICTIONLESS] > 100);
  sn_oracle_free(&o);
}

static void contacts_from_distance(void **state) {
  (void)state;
  check_distant("contacts from distance", 0);
  check_distant("contacts from distance, smooth", SN_R(0.01));
}

// The gradient of w' qacc with the force of joint j's actuators limited to [lo, hi].
static void limited(Whole *k, int j, sn_real lo, sn_real hi, double *xbar) {
  SnGradWorld *g = &k->g;
  double ybar[8];
  g->o->m->jnt_actfrcrange[2 * j] = lo;
  g->o->m->jnt_actfrcrange[2 * j + 1] = hi;
  for (int i = 0; i < g->m->nv; ++i) ybar[i] = 1 + i;
  for (int i = 0; i < sn_grad_world_nx(g); ++i) xbar[i] = 0;
  adjoint(k, ybar, xbar);
}

static double distance(const double *a, const double *b, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += fabs(a[i] - b[i]);
  return sum;
}

// A joint whose actuators, gravity compensation among them, pull exactly with the force that its limit allows has the
// derivatives of one whose limit is far away, all of them; with a bit more it has others. Both ends of the range.
static void exactly_at_the_limit(void **state) {
  (void)state;
  enum { MOST = 40 };
  SnOracle o;
  Whole k;
  double inside[MOST], at[MOST], beyond[MOST];
  memset(&k, 0, sizeof k);
  sn_oracle_load_string(
      &o,
      "<mujoco><compiler autolimits='true'/><worldbody><body pos='0 0 1' gravcomp='.6'><joint name='a' axis='0 1 .2' "
      "actuatorfrcrange='-9 9' actuatorgravcomp='true'/><geom size='.05' pos='.1 0 .02'/><site name='s' pos='.05 0 "
      ".04'/><body pos='.2 0 0' gravcomp='.7'><joint name='b' axis='0 1 0' actuatorfrcrange='-9 9' "
      "actuatorgravcomp='true'/><geom size='.05' pos='.1 .02 0'/><site name='t' pos='.1 0 .05'/></body></body>"
      "</worldbody><tendon><spatial name='u'><site site='s'/><site site='t'/></spatial></tendon>"
      "<actuator><motor tendon='u'/><motor joint='a'/></actuator></mujoco>");
  sn_grad_world_init(&k.g, &o);
  const int n = sn_grad_world_nx(&k.g);
  const sn_real far = SN_R(1e6);
  assert_true(n <= MOST && o.m->nsaturable == 2 && o.m->nlift > 0);
  for (int round = 0; round < 6; ++round) {
    const int j = round % 2;
    sn_oracle_randomize(&o, 1);
    sn_grad_world_sample(&k.g);
    limited(&k, j, -far, far, inside);
    const sn_real force = sn_dof_actuation(o.m, &k.g.w, o.m->jnt_dofadr[j]), more = 8 * SN_EPS * sn_abs(force);
    assert_true(sn_abs(force) > SN_R(1e-3));
    for (int end = 0; end < 2; ++end) {
      const sn_real lo = end ? -far : force, hi = end ? force : far;
      limited(&k, j, lo, hi, at);
      assert_memory_equal(at, inside, sizeof *at * (size_t)n);
      limited(&k, j, end ? lo : lo + more, end ? hi - more : hi, beyond);
      assert_true(distance(beyond, inside, n) > 1e-3);
    }
    limited(&k, j, -far, far, at);  // for the other joint's turn
  }
  sn_grad_world_free(&k.g);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(contacts), cmocka_unit_test(joints_tendons_equalities),
                                     cmocka_unit_test(contacts_from_distance), cmocka_unit_test(exactly_at_the_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
