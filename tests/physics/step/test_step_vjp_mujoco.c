// The adjoint of whole steps, all integrators, against MuJoCo's transition differences.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/slow.h"
#include "tests/support/small_models.h"
#include "tests/support/step_fixture.h"

// Our Jacobians of a step, one row of A (n, n) and B (n, nu) for each number of the next state: bars of unit vectors.
static void our_jacobians(SnGradWorld *g, double *A, double *B) {
  const SnModel *m = g->m;
  const int n = 2 * m->nv + m->na;
  double *row = malloc(sizeof *row * (size_t)(n + m->nu + 1)), *unit = calloc((size_t)n + 1, sizeof *unit);
  sn_grad_world_move(g, NULL);
  sn_forward(m, &g->w, &g->lane);
  for (int i = 0; i < n; ++i) {
    unit[i] = 1;
    sn_step_full_vjp(g, unit);
    unit[i] = 0;
    for (int k = 0; k < n + m->nu; ++k) row[k] = 0;
    sn_grad_world_result(g, row);
    memcpy(A + i * n, row, sizeof *row * (size_t)n);
    memcpy(B + i * m->nu, row + n, sizeof *row * (size_t)m->nu);
  }
  free(row);
  free(unit);
}

// The state after MuJoCo's step from that of `from`, coordinate k of (q, v, act, ctrl) moved by h; to: scratch.
static void mujoco_step(const mjModel *mj, const mjData *from, mjData *to, int k, double h) {
  mj_copyData(to, mj, from);
  double *dq = calloc((size_t)mj->nv + 1, sizeof *dq);
  if (k < mj->nv) {
    dq[k] = h;
    mj_integratePos(mj, to->qpos, dq, 1);
  } else if (k < 2 * mj->nv) {
    to->qvel[k - mj->nv] += h;
  } else if (k < 2 * mj->nv + mj->na) {
    to->act[k - 2 * mj->nv] += h;
  } else {
    to->ctrl[k - 2 * mj->nv - mj->na] += h;
  }
  free(dq);
  mj_step(mj, to);
}

// mjd_transitionFD, which refuses Runge-Kutta: there the same differences of its steps.
static void mujoco_jacobians(SnOracle *o, double h, double *A, double *B) {
  const mjModel *mj = o->mj;
  if (mj->opt.integrator != mjINT_RK4) {
    mjd_transitionFD(mj, o->d, h, 1, A, B, NULL, NULL);
    return;
  }
  const int nv = mj->nv, n = 2 * nv + mj->na;
  mjData *up = mj_makeData(mj), *down = mj_makeData(mj);
  double *dq = calloc((size_t)nv + 1, sizeof *dq);
  for (int k = 0; k < n + mj->nu; ++k) {
    mujoco_step(mj, o->d, up, k, h);
    mujoco_step(mj, o->d, down, k, -h);
    mj_differentiatePos(mj, dq, 2 * h, down->qpos, up->qpos);
    for (int i = 0; i < n; ++i) {
      const double d =
          i < nv ? dq[i]
                 : (i < 2 * nv ? up->qvel[i - nv] - down->qvel[i - nv] : up->act[i - 2 * nv] - down->act[i - 2 * nv]) /
                       (2 * h);
      if (k < n)
        A[i * n + k] = d;
      else
        B[i * mj->nu + k - n] = d;
    }
  }
  free(dq);
  mj_deleteData(up);
  mj_deleteData(down);
}

typedef struct Score {
  int compared, skipped, loose;  // columns of A and B; of those compared: beyond 1e-5
  int states, same;              // of all states: those in which both engines make the same step
  double worst;
} Score;

// Both engines make the same step. (Runge-Kutta with turns of 2 pi and more between its stages does not: the rate of a
// rotation vector has a pole there.)
static bool same_step(SnOracle *o, SnGradWorld *g) {
  mjData *d = mj_copyData(NULL, o->mj, o->d);
  mj_step(o->mj, d);
  sn_grad_world_move(g, NULL);
  sn_step(g->m, &g->w, &g->lane);
  const double error =
      sn_larger(sn_oracle_error(g->w.qpos, d->qpos, g->m->nq), sn_oracle_error(g->w.qvel, d->qvel, g->m->nv));
  mj_deleteData(d);
  return error < 1e-6;
}

// Largest difference of column k of an (n, width) matrix, relative to its largest entry and to 1.
static double column_distance(const double *x, const double *ref, int n, int width, int k) {
  double error = 0, scale = 1;
  for (int i = 0; i < n; ++i) {
    const double a = x[i * width + k], b = ref[i * width + k];
    error = sn_larger(error, fabs(a - b));
    scale = sn_larger(scale, fabs(b));
  }
  return error / scale;
}

static void compare_columns(double *const *J, int n, int width, const char *name, Score *score) {
  for (int k = 0; k < width; ++k) {
    if (!(column_distance(J[1], J[0], n, width, k) <= 1e-6)) {
      ++score->skipped;
      continue;
    }
    const double error = column_distance(J[2], J[0], n, width, k);
    ++score->compared;
    score->worst = sn_larger(score->worst, error);
    score->loose += !(error < 1e-5);
    if (!(error < 1e-4)) fail_msg("%s: column %d differs by %g from MuJoCo's differences", name, k, error);
  }
}

// At MuJoCo's state. Columns in which its differences with 1e-6 and 1e-5 disagree are left out: a switch is nearby.
// What is beyond 1e-5 is what its solver leaves undone, and rounding in its search of convex contacts.
static void compare_mujoco(SnOracle *o, SnGradWorld *g, const char *name, Score *score) {
  const SnModel *m = o->m;
  const int n = 2 * m->nv + m->na, nA = n * n, nB = n * m->nu;
  const mjOption option = o->mj->opt;
  sn_grad_world_sample(g);
  ++score->states;
  if (!same_step(o, g)) return;
  ++score->same;
  o->mj->opt.tolerance = 0;  // differences show what a solver leaves undone
  o->mj->opt.iterations = 30;
  double *memory = calloc((size_t)(3 * (nA + nB) + 1), sizeof *memory), *A[3], *B[3];
  for (int k = 0; k < 3; ++k) {
    A[k] = memory + k * (nA + nB);
    B[k] = A[k] + nA;
  }
  mujoco_jacobians(o, 1e-6, A[0], B[0]);
  mujoco_jacobians(o, 1e-5, A[1], B[1]);
  o->mj->opt = option;
  our_jacobians(g, A[2], B[2]);
  compare_columns(A, n, n, name, score);
  compare_columns(B, n, m->nu, name, score);
  free(memory);
}

// A step that is wrong would leave its states out: at most one in twenty may be.
static void report(const char *name, const Score *score) {
  printf("%s: %d of %d states, %d columns compared, %d left out, %d beyond 1e-5, largest difference %.2g\n", name,
         score->same, score->states, score->compared, score->skipped, score->loose, score->worst);
  assert_true(score->states > 0 && 20 * (score->states - score->same) <= score->states);
  assert_true(score->compared > score->skipped && score->loose <= score->compared / 100);
}

static void rows_against_mujoco(void **state) {
  (void)state;
  sn_needs_doubles();
  enum { MAXCASE = 200 };
  static SnConstraintCase cases[MAXCASE];
  const int n = sn_constraint_cases(cases, MAXCASE);
  for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
    Score score = {0};
    for (int i = k; i < n; i += SN_SLOW ? 58 : 29)
      for (int kind = 0; kind < 2; ++kind) {
        SnOracle o;
        SnGradWorld g;
        (kind ? sn_constraint_load_joints : sn_constraint_load_contacts)(&o, cases + i);
        sn_step_integrator(&o, k);
        sn_grad_world_init(&g, &o);
        for (int j = 0; j < sn_draws(4); ++j) {
          sn_constraint_sample(&o, j % 2 ? 2 : 0.1);
          compare_mujoco(&o, &g, kind ? "joints" : "contacts", &score);
        }
        sn_grad_world_free(&g);
        sn_oracle_free(&o);
      }
    report(sn_integrator_name[k], &score);
  }
}

static void models_against_mujoco(void **state) {
  (void)state;
  sn_needs_doubles();
  for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
    Score score = {0};
    for (int i = 0; i <= SN_SMALL_MODELS; ++i) {
      SnOracle o;
      SnGradWorld g;
      if (i < SN_SMALL_MODELS)
        sn_step_model(&o, i);
      else
        sn_oracle_load_string(&o, sn_branching_model());
      sn_step_integrator(&o, k);
      sn_grad_world_init(&g, &o);
      for (int j = 0; j < sn_draws(6); ++j) {
        sn_oracle_randomize(&o, 1);
        mj_forward(o.mj, o.d);
        compare_mujoco(&o, &g, "small model", &score);
      }
      sn_grad_world_free(&g);
      sn_oracle_free(&o);
    }
    report(sn_integrator_name[k], &score);
  }
}

// Random controls: constant ones would be what activations have settled at, where the time constants of muscles jump.
static void random_controls(SnOracle *o) {
  for (int i = 0; i < o->mj->nu; ++i) o->d->ctrl[i] = 0.5 * (1 + sn_oracle_uniform(o));
}

// Some steps further.
static void draw_motion(SnOracle *o) {
  const int integrator = o->mj->opt.integrator;
  o->mj->opt.integrator = mjINT_EULER;
  random_controls(o);
  for (int i = 0; i < 40; ++i) mj_step(o->mj, o->d);
  random_controls(o);
  o->mj->opt.integrator = integrator;
  mj_forward(o->mj, o->d);
}

// The MyoHand with two balls, touching itself and them, every integrator, both cones.
static void hand(void **state) {
  (void)state;
  sn_needs_doubles();
  SnOracle o;
  const char *name;
  bool missing;
  sn_oracle_needs_myosuite();
  sn_constraint_load_real(&o, 0, 300, &name, &missing);
  assert_false(missing);
  Score score = {0};
  for (int cone = 0; cone < 2; ++cone)
    for (int k = 0; k < (cone ? 1 : SN_STEP_INTEGRATORS); ++k) {
      o.m->opt.cone = o.mj->opt.cone = cone;
      sn_step_integrator(&o, k);
      SnGradWorld g;
      sn_grad_world_init(&g, &o);
      for (int j = 0; j < (k || SN_SLOW ? 1 : 2); ++j) {
        draw_motion(&o);
        compare_mujoco(&o, &g, name, &score);
      }
      printf("%s, %s cone, %d contacts: %d columns so far\n", sn_integrator_name[k], cone ? "elliptic" : "pyramidal",
             o.d->ncon, score.compared);
      sn_grad_world_free(&g);
    }
  report("myohand_baoding", &score);
  sn_oracle_free(&o);
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_against_mujoco), cmocka_unit_test(models_against_mujoco),
                                     cmocka_unit_test(hand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
