// The exact line search on rows whose numbers are drawn or chosen, beside the cost along the line as its definition has
// it (physics/constraint/solver.c): the slope where it ends, the gain that it tells, and how soon it ends.
#include "physics/constraint/constraint.h"
#include "physics/constraint/solver_private.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

#include <math.h>
#include <stdio.h>

enum { SLIDES = 24 };

// As many slides, each with a friction loss and a limit that it is beyond; the first two are tied to each other.
static void open_slides(SnOracle *o) {
  char xml[8000];
  int n = snprintf(xml, sizeof xml, "<mujoco><worldbody>");
  for (int i = 0; i < SLIDES; ++i)
    n += snprintf(xml + n, sizeof xml - (size_t)n,
                  "<body><joint name='j%d' type='slide' frictionloss='1' range='1 2' limited='true'/><geom size='.1' "
                  "contype='0' conaffinity='0'/></body>",
                  i);
  snprintf(xml + n, sizeof xml - (size_t)n,
           "</worldbody><equality><joint joint1='j0' joint2='j1'/></equality></mujoco>");
  sn_oracle_load_string(o, xml);
  sn_forward(o->m, &o->w, &o->lane);
  assert_int_equal(o->w.ne[0], 1);
  assert_int_equal(o->w.nf[0], SLIDES);
  assert_int_equal(o->w.nefc[0], 1 + 2 * SLIDES);
}

static void put_row(SnWorld *w, int row, double jar, double Jv, double D, double loss) {
  w->efc_jar[row] = (sn_real)jar;
  w->efc_Jv[row] = (sn_real)Jv;
  w->efc_D[row] = (sn_real)D;
  w->efc_R[row] = (sn_real)(1 / D);
  w->efc_frictionloss[row] = (sn_real)loss;
}

// Gives the quadratic part v'(M a - M a_s) = slope and v'M v = curvature.
static void put_gauss(SnOracle *o, double slope, double curvature) {
  SnWorld *w = &o->w;
  for (int i = 0; i < o->m->nv; ++i) w->solver_search[i] = w->solver_Ma[i] = w->solver_Mv[i] = w->qfrc_smooth[i] = 0;
  w->solver_search[0] = 1;
  w->solver_Ma[0] = (sn_real)slope;
  w->solver_Mv[0] = (sn_real)curvature;
}

// The cost of a row at residual x, and its derivative.
static double row_cost(const SnWorld *w, int row, double x, double *slope) {
  const double D = (double)w->efc_D[row], loss = (double)w->efc_frictionloss[row], bound = loss * (double)w->efc_R[row];
  const bool friction = row >= w->ne[0] && row < w->ne[0] + w->nf[0];
  if (friction && fabs(x) > bound) {
    *slope = x > 0 ? loss : -loss;
    return loss * (fabs(x) - bound / 2);
  }
  if (!friction && row >= w->ne[0] && x > 0) return *slope = 0;
  *slope = D * x;
  return D * x * x / 2;
}

// phi and phi' at alpha, and the sizes of their terms.
typedef struct Line {
  double cost, slope, cost_size, slope_size;
} Line;

static Line line_at(const SnWorld *w, double alpha) {
  const double first = (double)w->solver_Ma[0], second = (double)w->solver_Mv[0];
  Line p = {first * alpha + second * alpha * alpha / 2, first + second * alpha, 0, 0};
  p.cost_size = fabs(first * alpha) + fabs(second * alpha * alpha / 2);
  p.slope_size = fabs(first) + fabs(second * alpha);
  for (int row = 0; row < w->nefc[0]; ++row) {
    const double v = (double)w->efc_Jv[row];
    double slope;
    const double cost = row_cost(w, row, (double)w->efc_jar[row] + alpha * v, &slope);
    p.cost += cost;
    p.cost_size += cost;
    p.slope += slope * v;
    p.slope_size += fabs(slope * v);
  }
  return p;
}

// Rows of all kinds in all of their pieces: the search ends where the slope is zero, and tells what the cost falls by.
static void gains(void **state) {
  (void)state;
  SnOracle o;
  int pieces[3] = {0};
  double worst = 0;
  open_slides(&o);
  SnWorld *w = &o.w;
  for (int sample = 0; sample < 300; ++sample) {
    for (int row = 0; row < w->nefc[0]; ++row)
      put_row(w, row, sn_oracle_uniform(&o), sn_oracle_uniform(&o), pow(10, 2 * sn_oracle_uniform(&o)),
              sn_oracle_uniform(&o) + 1);
    put_gauss(&o, 0, 1 + 5 * (1 + sn_oracle_uniform(&o)));
    put_gauss(&o, -line_at(w, 0).slope - 20 * (1.01 + sn_oracle_uniform(&o)), (double)w->solver_Mv[0]);
    const Line from = line_at(w, 0);
    sn_real gain;
    const double alpha = (double)sn_line_search(o.m, w, &o.lane, (sn_real)from.slope, 0, &gain);
    const Line to = line_at(w, alpha);
    assert_true(alpha > 0 && gain > 0);
    if (!(fabs(to.slope) <= SN_TOL(1e-12, 1e-4) * to.slope_size))
      fail_msg("sample %d: slope %g at %g, of %g at 0", sample, to.slope, alpha, from.slope);
    const double error = fabs((double)gain - (from.cost - to.cost)) / (from.cost_size + to.cost_size);
    if (!(error <= SN_TOL(1e-13, 1e-5)))
      fail_msg("sample %d: the gain is %.15g, the cost falls by %.15g", sample, (double)gain, from.cost - to.cost);
    worst = sn_larger(worst, error);
    for (int row = 1; row <= SLIDES; ++row) {
      const double x = (double)w->efc_jar[row], y = x + alpha * (double)w->efc_Jv[row];
      const double bound = (double)(w->efc_R[row] * w->efc_frictionloss[row]);
      ++pieces[fabs(x) < bound || fabs(y) < bound ? 0 : (x > 0) == (y > 0) ? 1 : 2];
    }
  }
  printf("gains within %.1e; of friction losses %d not given way, %d the same way, %d across\n", worst, pieces[0],
         pieces[1], pieces[2]);
  for (int k = 0; k < 3; ++k) assert_true(pieces[k] > 50);
  sn_oracle_free(&o);
}

// Limits one behind the other, each four times as stiff as the one before: Newton's method takes one of them a step, so
// that all steps are short. The middle of the bracket is sooner there.
static void slow_brackets(void **state) {
  (void)state;
  SnOracle o;
  open_slides(&o);
  SnWorld *w = &o.w;
  for (int row = 0; row < w->nefc[0]; ++row) put_row(w, row, 1, 0, 1e-3, 0);
  for (int i = 0; i < SLIDES; ++i) put_row(w, 1 + SLIDES + i, (i + .5) / SLIDES, -1, pow(4, i), 0);
  put_gauss(&o, -0.2, 1e-3);
  const Line from = line_at(w, 0);
  for (int most = 4; most <= 12; most += 8) {
    sn_real gain;
    o.m->opt.ls_iterations = most;
    const double alpha = (double)sn_line_search(o.m, w, &o.lane, (sn_real)from.slope, 0, &gain);
    const Line to = line_at(w, alpha);
    printf("slope %.3g at %.6g, of %.3g at 0, after %d evaluations at most\n", to.slope, alpha, from.slope, most);
    assert_true((fabs(to.slope) < 1e-5 * fabs(from.slope)) == (most == 12));
  }
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gains), cmocka_unit_test(slow_brackets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
