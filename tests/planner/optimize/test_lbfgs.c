// L-BFGS on quadratic costs within limits whose least is known: cost(x) = 1/2 (x - x*)' A (x - x*) + g*.(x - x*), where
// g* presses x* against its limits and is 0 elsewhere. So x* fulfils the conditions of Karush, Kuhn and Tucker.
#include "planner/optimize/lbfgs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/oracle.h"

enum { N = 40, MEMORY = 10 };

// What errors may be larger by in single precision.
static const double loose = sizeof(sn_real) == sizeof(double) ? 1 : 1e6;

typedef struct Problem {
  double root[N][N];  // A = I + root' root
  double best[N], press[N];
  SnLbfgs l;
} Problem;

static uint64_t draws;

static double draw(void) {
  uint64_t x = 0x9e3779b97f4a7c15u * ++draws;  // splitmix64, S. Vigna
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1;
}

// Of four numbers one ends at its lower limit, one at its upper one; some have no limits at all.
static void make_problem(Problem *p) {
  assert_true(sn_lbfgs_create(&p->l, N, MEMORY));
  for (int i = 0; i < N; ++i) {
    for (int k = 0; k < N; ++k) p->root[i][k] = draw();
    p->best[i] = 0.8 * draw();
    p->press[i] = i % 4 == 0 ? 0.1 + fabs(draw()) : (i % 4 == 1 ? -0.1 - fabs(draw()) : 0);
    p->l.lo[i] = i % 4 == 0 ? p->best[i] : (i % 8 == 2 ? -INFINITY : p->best[i] - 1.5 - fabs(draw()));
    p->l.hi[i] = i % 4 == 1 ? p->best[i] : (i % 8 == 2 ? INFINITY : p->best[i] + 1.5 + fabs(draw()));
  }
}

static double value(const Problem *p, const sn_real *x, sn_real *gradient) {
  double turned[N], cost = 0;
  for (int i = 0; i < N; ++i) {
    turned[i] = 0;
    for (int k = 0; k < N; ++k) turned[i] += p->root[i][k] * (x[k] - p->best[k]);
  }
  for (int i = 0; i < N; ++i) {
    const double off = x[i] - p->best[i];
    gradient[i] = p->press[i] + off;
    for (int k = 0; k < N; ++k) gradient[i] += p->root[k][i] * turned[k];
    cost += p->press[i] * off + 0.5 * (off * off + turned[i] * turned[i]);
  }
  return cost;
}

static double error_of(const Problem *p, const sn_real *x) {
  double most = 0;
  for (int i = 0; i < N; ++i) most = sn_max(most, fabs(x[i] - p->best[i]));
  return most;
}

static const SnLbfgsRule rule = {.memory = MEMORY, .trials = 6, .first = 0.05, .longest = 1};

static void within_limits(const SnLbfgs *l) {
  for (int i = 0; i < N; ++i) assert_true(l->trial[i] >= l->lo[i] && l->trial[i] <= l->hi[i]);
}

// The least is found, every trial is within the limits, and what was accepted has lower and lower costs.
static void finds_the_least(void **state) {
  (void)state;
  static Problem p;
  for (int seed = 0; seed < 5; ++seed) {
    sn_real gradient[N];
    int n = 0;
    double error = INFINITY, last = INFINITY;
    make_problem(&p);
    sn_lbfgs_begin(&p.l, &rule);
    do {
      within_limits(&p.l);
      const double cost = value(&p, p.l.trial, gradient);
      const bool more = sn_lbfgs_take(&p.l, cost, gradient);
      assert_true(p.l.cost <= last);
      last = p.l.cost;
      error = error_of(&p, p.l.x);
      if (!more) break;
    } while (++n < 600 && error > 1e-10);
    printf("problem %d: error %.1e after %d gradients\n", seed, error, n);
    assert_true(error < 1e-9 * loose);
    sn_lbfgs_free(&p.l);
  }
}

// The direction is that of BFGS in full, from the same pairs, oldest first: H' = (I - r s y') H (I - r y s') + r s s'.
static void update_dense(double h[N][N], const double *s, const double *y) {
  double sy = 0, yhy = 0, hy[N] = {0};
  for (int i = 0; i < N; ++i) {
    sy += s[i] * y[i];
    for (int k = 0; k < N; ++k) hy[i] += h[i][k] * y[k];
  }
  for (int i = 0; i < N; ++i) yhy += y[i] * hy[i];
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < N; ++k) h[i][k] += (1 + yhy / sy) * s[i] * s[k] / sy - (hy[i] * s[k] + s[i] * hy[k]) / sy;
}

static void direction_of_bfgs(void **state) {
  (void)state;
  static Problem p;
  enum { PAIRS = 6 };
  double s[PAIRS][N], y[PAIRS][N], h[N][N] = {{0}}, sy = 0, yy = 0, largest = 0;
  sn_real gradient[N], x[N], g[N];
  const SnLbfgsRule free_rule = {.memory = MEMORY, .trials = 6, .first = 0.05, .longest = 1e6};
  make_problem(&p);
  for (int i = 0; i < N; ++i) {
    p.l.lo[i] = -INFINITY;
    p.l.hi[i] = INFINITY;
  }
  sn_lbfgs_begin(&p.l, &free_rule);
  for (int pairs = -1; pairs < PAIRS;) {
    const double before = p.l.cost;
    memcpy(x, p.l.x, sizeof x);
    memcpy(g, p.l.gradient, sizeof g);
    const bool first = pairs < 0;
    assert_true(sn_lbfgs_take(&p.l, value(&p, p.l.trial, gradient), gradient));
    if (!first && !(p.l.cost < before)) continue;  // a trial that was taken back
    for (int i = 0; i < N && !first; ++i) {
      s[pairs][i] = p.l.x[i] - x[i];
      y[pairs][i] = p.l.gradient[i] - g[i];
    }
    ++pairs;
  }
  for (int i = 0; i < N; ++i) {
    sy += s[PAIRS - 1][i] * y[PAIRS - 1][i];
    yy += y[PAIRS - 1][i] * y[PAIRS - 1][i];
  }
  for (int i = 0; i < N; ++i) h[i][i] = sy / yy;
  for (int k = 0; k < PAIRS; ++k) update_dense(h, s[k], y[k]);
  for (int i = 0; i < N; ++i) {
    double want = 0;
    for (int k = 0; k < N; ++k) want -= h[i][k] * p.l.gradient[k];
    largest = sn_max(largest, fabs(want - (p.l.trial[i] - p.l.x[i])));
  }
  printf("direction off by %.1e\n", largest);
  assert_true(largest < 1e-12 * loose);
  sn_lbfgs_free(&p.l);
}

// The first move is of the length asked for, and no move is longer than the longest.
static void lengths(void **state) {
  (void)state;
  static Problem p;
  sn_real gradient[N], before[N];
  make_problem(&p);
  SnLbfgsRule shorter = rule;
  shorter.first = 0.02;
  shorter.longest = 0.03;
  sn_lbfgs_begin(&p.l, &shorter);
  for (int n = 0; n < 40; ++n) {
    if (!sn_lbfgs_take(&p.l, value(&p, p.l.trial, gradient), gradient)) break;
    sn_real most = 0;
    memcpy(before, p.l.x, sizeof before);
    for (int i = 0; i < N; ++i) most = sn_max(most, fabs(p.l.trial[i] - before[i]));
    assert_true((double)most <= 0.03 + 1e-13 * loose);
    if (n == 0) assert_true(fabs((double)most - 0.02) < 1e-12 * loose);
  }
  sn_lbfgs_free(&p.l);
}

// Trials without a finite cost, or without a gradient, are taken back; the rest of the way is found.
static void infinite_costs(void **state) {
  (void)state;
  static Problem p;
  sn_real gradient[N];
  int n = 0;
  make_problem(&p);
  sn_lbfgs_begin(&p.l, &rule);
  for (; n < 900 && error_of(&p, p.l.x) > 1e-9; ++n) {
    const double cost = value(&p, p.l.trial, gradient);
    const bool lost = n % 5 == 3, blind = n % 5 == 1 && n > 1;
    const double before = p.l.cost;
    if (!sn_lbfgs_take(&p.l, lost ? INFINITY : cost, lost || blind ? NULL : gradient)) break;
    if (lost || blind) assert_true(p.l.cost == before);
  }
  assert_true(error_of(&p, p.l.x) < 1e-8 * loose);
  // a first point without a gradient leads nowhere
  sn_lbfgs_begin(&p.l, &rule);
  assert_false(sn_lbfgs_take(&p.l, 1, NULL));
  sn_lbfgs_begin(&p.l, &rule);
  assert_false(sn_lbfgs_take(&p.l, NAN, gradient));
  sn_lbfgs_free(&p.l);
}

// At the least, where every number is held or has no gradient, there is no next trial.
static void ends_at_the_least(void **state) {
  (void)state;
  SnLbfgs l;
  const sn_real gradient[3] = {1, -2, 0};
  assert_true(sn_lbfgs_create(&l, 3, 2));
  l.lo[0] = 0, l.hi[0] = 1;
  l.lo[1] = -1, l.hi[1] = 0;
  l.lo[2] = -1, l.hi[2] = 1;
  const SnLbfgsRule two = {.memory = 2, .trials = 3, .first = 0.1, .longest = 1};
  sn_lbfgs_begin(&l, &two);
  assert_false(sn_lbfgs_take(&l, 1, gradient));
  sn_lbfgs_free(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(finds_the_least), cmocka_unit_test(direction_of_bfgs),
                                     cmocka_unit_test(lengths), cmocka_unit_test(infinite_costs),
                                     cmocka_unit_test(ends_at_the_least)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
