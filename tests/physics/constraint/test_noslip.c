// The noslip solver against MuJoCo's, sweep by sweep, with islands and without; its adjoint, through rows and through
// whole steps, against differences.
#include "physics/constraint/constraint.h"
#include "physics/constraint/noslip_private.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/slow.h"
#include "tests/support/step_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CASES = 200, CODES = 20000 };
static SnConstraintCase cases[CASES];

static double worst_qacc, worst_force, largest_change;
static int islands, rows_at_bounds;

// How much the forces of friction have changed.
static double change_of(const SnWorld *w) {
  double change = 0, size = 1e-9;
  for (int k = 0; k < w->slip_num[0]; ++k) {
    const SnSlipGroup g = sn_slip_group(w, k);
    for (int i = g.row; i < g.row + g.num; ++i) {
      change = sn_larger(change, fabs((double)(w->efc_force[i] - w->slip_force[i])));
      size = sn_larger(size, fabs((double)w->efc_force[i]));
    }
  }
  return change / size;
}

// Of pairs whose difference moves nothing rounding says which edge has the force: gives both the half.
static void level(const SnWorld *w, double *ours, double *theirs) {
  for (int k = 0; k < w->slip_num[0]; ++k) {
    const SnSlipGroup g = sn_slip_group(w, k);
    const sn_real *A = w->slip_A + g.row * SN_MAXSLIP, *B = A + SN_MAXSLIP;
    if (g.kind != SN_SLIP_PAIR || A[0] + B[1] - A[1] - B[0] > SN_TOL(1e-12, 1e-5) * (A[0] + B[1])) continue;
    for (double *f = ours; f; f = f == ours ? theirs : NULL) f[g.row] = f[g.row + 1] = 0.5 * (f[g.row] + f[g.row + 1]);
  }
}

static double force_error(SnOracle *o) {
  const int n = o->d->nefc;
  double *f = calloc(2 * (size_t)n + 1, sizeof *f), worst = 0, size = 1e-9;
  for (int i = 0; i < n; ++i) {
    f[i] = (double)o->w.efc_force[i];
    f[n + i] = o->d->efc_force[i];
  }
  level(&o->w, f, f + n);
  for (int i = 0; i < n; ++i) {
    worst = sn_larger(worst, fabs(f[i] - f[n + i]));
    size = sn_larger(size, fabs(f[n + i]));
  }
  free(f);
  return worst / size;
}

static void check_state(SnOracle *o, const char *what) {
  const mjData *d = o->d;
  sn_constraint_make_rows(o);
  sn_world_poison(o->m, &o->w, SN_STAGE_SOLVER);
  sn_solve(o->m, &o->w, &o->lane);
  if (d->nefc == 0) return;
  const double eq = sn_oracle_error(o->w.qacc, d->qacc, o->m->nv), ef = force_error(o),
               ec = sn_oracle_error(o->w.qfrc_constraint, d->qfrc_constraint, o->m->nv);
  if (!(eq <= SN_TOL(1e-7, 0.2))) fail_msg("%s: qacc: relative error %g", what, eq);
  // in floats rounding shares forces out among rows that hardly move anything: what they do together is compared
  if (!(ef <= SN_TOL(SN_ALIKE(1e-6, 1e-5), HUGE_VAL))) fail_msg("%s: efc_force: relative error %g", what, ef);
  if (!(ec <= SN_TOL(1e-6, 0.2))) fail_msg("%s: qfrc_constraint: relative error %g", what, ec);
  for (int r = 0; r < d->nefc; ++r) {
    const bool friction = o->w.efc_type[r] == SN_CNSTR_FRICTION_DOF || o->w.efc_type[r] == SN_CNSTR_FRICTION_TENDON;
    rows_at_bounds += friction && fabs((double)o->w.efc_force[r]) == (double)o->w.efc_frictionloss[r];
    // on the boundary of a cone rounding says on which side, of floats everywhere
    if (SN_TOL(true, false) && d->nisland == 0 && o->w.efc_type[r] != SN_CNSTR_CONTACT_ELLIPTIC &&
        fabs(d->efc_force[r]) > 1e-9 &&
        (!friction || fabs(fabs(d->efc_force[r]) - (double)o->w.efc_frictionloss[r]) > 1e-9) &&
        o->w.efc_state[r] != d->efc_state[r])
      fail_msg("%s: row %d: state %d, MuJoCo %d (force %g)", what, r, o->w.efc_state[r], d->efc_state[r],
               d->efc_force[r]);
  }
  for (int i = 0; i < o->m->nv; ++i) assert_true(o->w.qacc_warmstart[i] == o->w.qacc[i]);
  worst_qacc = sn_larger(worst_qacc, eq);
  worst_force = sn_larger(worst_force, ef);
  largest_change = sn_larger(largest_change, change_of(&o->w));
  islands = d->nisland > islands ? d->nisland : islands;
}

static void over_cases(void (*load)(SnOracle *, const SnConstraintCase *), const char *name) {
  static const char *const option[] = {"noslip_iterations='1'", "noslip_iterations='4' noslip_tolerance='0'",
                                       "noslip_iterations='30'", "noslip_iterations='30' noslip_tolerance='1e-3'",
                                       "noslip_iterations='30' noslip_tolerance='1'"};
  const int n = sn_constraint_cases(cases, CASES);
  worst_qacc = worst_force = largest_change = 0;
  islands = rows_at_bounds = 0;
  for (int i = 0; i < n; i += 3) {
    SnOracle o;
    cases[i].option = option[i / 3 % 5];
    load(&o, cases + i);
    for (int k = 0; k < 6; ++k) {
      char what[300];
      const bool together = k % 2 != 0;
      o.mj->opt.disableflags = (o.mj->opt.disableflags & ~mjDSBL_ISLAND) | (together ? mjDSBL_ISLAND : 0);
      o.m->opt.disableflags = (o.m->opt.disableflags & ~SN_DSBL_ISLAND) | (together ? SN_DSBL_ISLAND : 0);
      snprintf(what, sizeof what, "%s %d: %s condim %d impratio %g %s%s", name, k, cases[i].cone, cases[i].condim,
               cases[i].impratio, cases[i].option, together ? ", islands off" : "");
      sn_constraint_sample(&o, k < 3 ? 0.1 : 2);
      check_state(&o, what);
    }
    sn_oracle_free(&o);
  }
  printf("%s: worst qacc %.1e, force %.1e; forces change by up to %.2g of the largest; most islands %d\n", name,
         worst_qacc, worst_force, largest_change, islands);
  assert_true(largest_change > 0.01);
}

static void contacts(void **state) {
  (void)state;
  over_cases(sn_constraint_load_contacts, "contacts");
  assert_true(islands > 1);
}

static void joints_tendons_equalities(void **state) {
  (void)state;
  over_cases(sn_constraint_load_joints, "joints");
  assert_true(rows_at_bounds > 10);
}

// ---- the adjoint ----

typedef struct Slip {
  SnGradWorld g;
  double speed;
  double *next;  // qpos after the step from the base state
  int n, code[CODES];
  int count[7];  // updates by what they have made
} Slip;

// The updates of the sweeps of the world's solution, which they spoil.
static int codes_of(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, int *code) {
  int n = 0;
  code[n++] = w->nefc[0];
  for (int i = 0; i < w->nefc[0]; ++i) code[n++] = w->slip_state[i];
  if (w->nefc[0] == 0) return n;
  const SnSlipRecord record = {a->slip_code, a->slip_before, a->slip_sweeps};
  sn_noslip_exchange(m, w, lane);
  sn_noslip_run(m, w, lane, &record);
  for (int sweep = 0; sweep < a->slip_sweeps[0]; ++sweep)
    for (int k = 0; k < w->slip_num[0]; ++k) {
      assert_true(n < CODES);
      const int row = w->slip_group[k], at = sweep * m->nefcmax + row;
      const bool pair = w->efc_type[row] == SN_CNSTR_CONTACT_PYRAMIDAL;
      const bool idle = pair && a->slip_before[at] + a->slip_before[at + 1] == 0;  // whatever the code, no force
      code[n++] = idle ? SN_SLIP_OVER : a->slip_code[at];
    }
  return n;
}

static bool sample(void *context) {
  Slip *s = context;
  SnGradWorld *g = &s->g;
  sn_constraint_sample(g->o, s->speed);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_step_full(g);
  for (int i = 0; i < g->m->nq; ++i) s->next[i] = (double)g->w.qpos[i];
  s->n = codes_of(g->m, &g->w, &g->a, &g->lane, s->code);
  for (int i = 1 + s->code[0]; i < s->n; ++i) ++s->count[s->code[i]];
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  static int code[CODES];
  Slip *s = context;
  SnGradWorld *g = &s->g;
  const int nv = g->m->nv;
  sn_grad_world_move(g, dx);
  sn_step_full(g);
  double *qpos = malloc(sizeof *qpos * (size_t)(g->m->nq + 1));
  for (int i = 0; i < g->m->nq; ++i) qpos[i] = (double)g->w.qpos[i];
  mj_differentiatePos(g->o->mj, y, 1, s->next, qpos);
  free(qpos);
  for (int i = 0; i < nv; ++i) y[nv + i] = (double)g->w.qvel[i];
  const int n = codes_of(g->m, &g->w, &g->a, &g->lane, code);
  return n == s->n && memcmp(code, s->code, sizeof *code * (size_t)n) == 0;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Slip *s = context;
  sn_grad_world_move(&s->g, NULL);
  sn_forward(s->g.m, &s->g.w, &s->g.lane);
  sn_step_full_vjp(&s->g, ybar);
  sn_grad_world_result(&s->g, xbar);
}

static void gradients(void (*load)(SnOracle *, const SnConstraintCase *), const char *name, int first, Slip *s) {
  static const char *const option[] = {"noslip_iterations='1'", "noslip_iterations='3' noslip_tolerance='1e-9'",
                                       "noslip_iterations='10'"};
  const int n = sn_constraint_cases(cases, CASES);
  for (int i = first, k = 0; i < n; i += 13, ++k) {
    SnOracle o;
    char text[300];
    cases[i].option = option[k % 3];
    load(&o, cases + i);
    o.m->opt.disableflags = (o.m->opt.disableflags & ~SN_DSBL_ISLAND) | (k % 2 ? 0 : SN_DSBL_ISLAND);
    sn_step_integrator(&o, first > 0 && k / 2 % 3 == 1 ? 2 : 0);
    snprintf(text, sizeof text, "%s: %s condim %d impratio %g, %s, %s", name, cases[i].cone, cases[i].condim,
             cases[i].impratio, cases[i].option, first > 0 && k / 2 % 3 == 1 ? "implicitfast" : "Euler");
    sn_grad_world_init(&s->g, &o);
    s->next = calloc((size_t)o.m->nq + 1, sizeof *s->next);
    s->speed = k % 2 ? 0.1 : 0.5;
    const SnGradCase c = {.name = text,
                          .nx = sn_grad_world_nx(&s->g),
                          .ny = 2 * o.m->nv,
                          .context = s,
                          .sample = sample,
                          .forward = forward,
                          .adjoint = adjoint,
                          .step = 1e-6,
                          .tolerance = 1e-5,
                          .samples = sn_draws(5)};
    sn_gradcheck(&c, 1);
    free(s->next);
    sn_grad_world_free(&s->g);
    sn_oracle_free(&o);
  }
  printf("%s: updates left %d, free %d, low %d, high %d, middle %d, edge %d, zero %d\n", name, s->count[0], s->count[1],
         s->count[2], s->count[3], s->count[4], s->count[5], s->count[6]);
}

// Losses that hold, and that give way: of dofs, of a fixed tendon, of one that moves.
static void load_losses(SnOracle *o, const SnConstraintCase *c) {
  char xml[3000];
  snprintf(
      xml, sizeof xml,
      "<mujoco><option timestep='0.004' %s/><default><geom type='capsule' size='0.03' fromto='0 0 0 0 0 -0.3' "
      "contype='0' conaffinity='0'/></default><worldbody><site name='w' pos='0.3 0.1 0.2'/>"
      "<body><joint name='a' axis='1 0 0' frictionloss='3' armature='0.01'/><geom/>"
      "<body pos='0 0 -0.3'><joint name='b' axis='0 1 0.3' frictionloss='1.5'/><geom/><site name='s' pos='0.05 0 "
      "-0.2'/>"
      "<body pos='0 0 -0.3'><joint type='ball' frictionloss='0.3'/><geom/><site name='t' pos='0 0 -0.3'/></body></body>"
      "</body><body pos='0.5 0 0'><freejoint/><geom/><site name='f' pos='0 0.1 -0.1'/></body></worldbody>"
      "<tendon><fixed frictionloss='0.7' armature='0.1'><joint joint='a' coef='1'/><joint joint='b' "
      "coef='-0.5'/></fixed>"
      "<spatial frictionloss='2'><site site='w'/><site site='s'/></spatial>"
      "<spatial frictionloss='4' armature='0.2'><site site='t'/><site site='f'/></spatial></tendon></mujoco>",
      c->option);
  sn_oracle_load_string(o, xml);
}

// A box on a floor with MuJoCo's coefficients of friction, far apart: the search for forces of its cones ends early.
static void load_rolling(SnOracle *o, const SnConstraintCase *c) {
  char xml[1000];
  snprintf(xml, sizeof xml,
           "<mujoco><option timestep='0.004' cone='elliptic' %s/><worldbody><geom type='plane' size='9 9 1'/>"
           "<body pos='0 0 .09'><freejoint/><geom type='box' size='.12 .1 .1' condim='6' friction='1 .005 .0001'/>"
           "</body></worldbody></mujoco>",
           c->option);
  sn_oracle_load_string(o, xml);
}

static void gradients_of_rolling_friction(void **state) {
  (void)state;
  static Slip s;
  memset(&s, 0, sizeof s);
  gradients(load_rolling, "rolling", 1, &s);
  assert_true(s.count[SN_SLIP_EDGE] > 20);
}

static void gradients_of_contacts(void **state) {
  (void)state;
  static Slip s;
  memset(&s, 0, sizeof s);
  gradients(sn_constraint_load_bodies, "bodies", 19, &s);
  assert_true(s.count[SN_SLIP_FREE] > 100 && s.count[SN_SLIP_LOW] > 20 && s.count[SN_SLIP_HIGH] > 20);
  assert_true(s.count[SN_SLIP_EDGE] > 20);
}

static void gradients_of_joints(void **state) {
  (void)state;
  static Slip s;
  memset(&s, 0, sizeof s);
  gradients(sn_constraint_load_joints, "joints", 0, &s);
  gradients(load_losses, "losses", 1, &s);
  assert_true(s.count[SN_SLIP_FREE] > 20 && s.count[SN_SLIP_LOW] > 20 && s.count[SN_SLIP_HIGH] > 20);
}

// Once more from the solution that there is: the same bits, and an adjoint that leaves the world as it was.
static void leaves_the_world(void **state) {
  (void)state;
  const int n = sn_constraint_cases(cases, CASES);
  for (int i = 0; i < n; i += 29) {
    SnOracle o;
    SnGradWorld g;
    cases[i].option = "noslip_iterations='5'";
    sn_constraint_load_contacts(&o, cases + i);
    sn_grad_world_init(&g, &o);
    sn_constraint_sample(&o, 0.5);
    sn_grad_world_sample(&g);
    sn_grad_world_move(&g, NULL);
    const size_t nv = (size_t)o.m->nv, bytes = sizeof(sn_real) * nv;
    double *ybar = calloc(2 * nv + 1, sizeof *ybar);
    sn_real *qacc = calloc(2 * nv + 1, sizeof *qacc);
    for (size_t k = 0; k < 2 * nv; ++k) ybar[k] = sn_oracle_uniform(&o);
    sn_forward(o.m, &g.w, &g.lane);
    sn_solve_finish(o.m, &g.w, &g.lane);
    memcpy(qacc, g.w.qacc, bytes);
    memcpy(qacc + nv, g.w.qfrc_constraint, bytes);
    sn_step_full_vjp(&g, ybar);
    assert_memory_equal(qacc, g.w.qacc, bytes);
    assert_memory_equal(qacc + nv, g.w.qfrc_constraint, bytes);
    free(ybar);
    free(qacc);
    sn_grad_world_free(&g);
    sn_oracle_free(&o);
  }
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(contacts),
                                     cmocka_unit_test(joints_tendons_equalities),
                                     cmocka_unit_test(gradients_of_rolling_friction),
                                     cmocka_unit_test(gradients_of_contacts),
                                     cmocka_unit_test(gradients_of_joints),
                                     cmocka_unit_test(leaves_the_world)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
