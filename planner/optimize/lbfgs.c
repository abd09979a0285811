// Directions by the two-loop recursion (J. Nocedal, "Updating quasi-Newton matrices with limited storage", 1980): with
// pairs s = x' - x, y = g' - g of the latest moves, and H0 = (s.y / y.y) I of the newest one,
//
//   q = g;            newest to oldest:  a = s.q / s.y,  q -= a y
//   d = H0 q;         oldest to newest:  d += (a - y.d / s.y) s;      direction -d
//
// Limits by projection with an active set (D. Bertsekas, "Projected Newton methods for optimization problems with
// simple constraints", 1982; D. Kim, S. Sra, I. Dhillon, "Tackling box-constrained optimization via a new projected
// quasi-Newton approach", 2010). A number at a limit whose gradient presses against it is held. The recursion runs over
// the others alone, so a short move along the direction, cut to the limits, lowers the cost.
//
// A trial x' = cut(x + t d) is accepted by Armijo's rule, cost(x') <= cost(x) - c g.(x - x'). Else t shrinks to the
// minimum of the parabola through what is known, but to between 0.1 and 0.5 of itself. Once the trials are used up the
// memory is dropped. Where there is none, the first move shrinks to a tenth, until it moves nothing.
#include "planner/optimize/lbfgs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const sn_real armijo = SN_R(1e-4);
static const sn_real least_curvature = SN_R(1e-12);  // s.y over |s| |y| of a pair that says something
static const sn_real least_first = SN_R(1e-9);       // of the rule's: a first move that is shorter moves nothing

bool sn_lbfgs_create(SnLbfgs *l, int n, int room) {
  const size_t row = (size_t)n, all = 6 * row + (2 * row + 1) * (size_t)room;
  sn_real *x = calloc(all + 1, sizeof *x);
  unsigned char *loose = calloc(row + 1, 1);
  if (!x || !loose) {
    free(x);
    free(loose);
    return false;
  }
  *l = (SnLbfgs){.n = n, .room = room, .lo = x, .loose = loose};
  sn_real **const rows[] = {&l->hi, &l->trial, &l->x, &l->gradient, &l->direction};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) *rows[i] = x += row;
  l->move = x + row;
  l->change = l->move + row * (size_t)room;
  l->share = l->change + row * (size_t)room;
  return true;
}

void sn_lbfgs_free(SnLbfgs *l) {
  free(l->lo);
  free(l->loose);
  *l = (SnLbfgs){0};
}

static bool finite_number(sn_real x) { return x - x == 0; }

static bool all_finite(const sn_real *x, int n) {
  for (int i = 0; i < n; ++i)
    if (!finite_number(x[i])) return false;
  return true;
}

static sn_real *pair_of(const SnLbfgs *l, sn_real *ring, int age) {
  const int memory = l->rule.memory;
  return ring + (size_t)((l->newest - age + memory) % memory) * (size_t)l->n;
}

// Sum over the numbers that are not held.
static sn_real loose_dot(const SnLbfgs *l, const sn_real *a, const sn_real *b) {
  sn_real sum = 0;
  for (int i = 0; i < l->n; ++i)
    if (l->loose[i]) sum += a[i] * b[i];
  return sum;
}

static sn_real largest(const SnLbfgs *l, const sn_real *x) {
  sn_real most = 0;
  for (int i = 0; i < l->n; ++i) most = sn_max(most, sn_abs(x[i]));
  return most;
}

static void scale(const SnLbfgs *l, sn_real *x, sn_real by) {
  for (int i = 0; i < l->n; ++i) x[i] *= by;
}

static void find_loose(SnLbfgs *l) {
  for (int i = 0; i < l->n; ++i) {
    const sn_real x = l->x[i], g = l->gradient[i];
    l->loose[i] = !(x <= l->lo[i] && g >= 0) && !(x >= l->hi[i] && g <= 0);
  }
}

// Whether a pair has a curvature on the numbers that are not held.
static sn_real curvature(const SnLbfgs *l, const sn_real *s, const sn_real *y) {
  const sn_real sy = loose_dot(l, s, y), most = loose_dot(l, s, s) * loose_dot(l, y, y);
  return sy > least_curvature * sn_sqrt(most) ? sy : 0;
}

// The two loops, over the pairs that have a curvature. False where none has.
static bool recursion(SnLbfgs *l) {
  sn_real first = 0, *d = l->direction;
  for (int k = 0; k < l->pairs; ++k) {
    const sn_real *s = pair_of(l, l->move, k), *y = pair_of(l, l->change, k), sy = curvature(l, s, y);
    l->share[k] = sy > 0 ? loose_dot(l, s, d) / sy : 0;
    if (!(sy > 0)) continue;
    if (first == 0) first = sy / loose_dot(l, y, y);
    for (int i = 0; i < l->n; ++i) d[i] -= l->share[k] * y[i];
  }
  if (!(first > 0)) return false;
  scale(l, d, first);
  for (int k = l->pairs - 1; k >= 0; --k) {
    const sn_real *s = pair_of(l, l->move, k), *y = pair_of(l, l->change, k), sy = curvature(l, s, y);
    if (!(sy > 0)) continue;
    const sn_real by = l->share[k] - loose_dot(l, y, d) / sy;
    for (int i = 0; i < l->n; ++i) d[i] += by * s[i];
  }
  return true;
}

static void steepest(SnLbfgs *l) {
  for (int i = 0; i < l->n; ++i) l->direction[i] = l->loose[i] ? -l->gradient[i] : 0;
  const sn_real most = largest(l, l->direction);
  if (most > 0) scale(l, l->direction, l->first / most);
}

// The direction from x. False where the gradient leads nowhere.
static bool aim(SnLbfgs *l) {
  sn_real *d = l->direction;
  l->length = 1;
  l->tried = 0;
  find_loose(l);
  for (int i = 0; i < l->n; ++i) d[i] = l->loose[i] ? l->gradient[i] : 0;
  if (!(largest(l, d) > 0)) return false;
  const bool known = l->pairs > 0 && recursion(l);
  for (int i = 0; i < l->n; ++i) d[i] = l->loose[i] ? -d[i] : 0;
  if (!known || !(loose_dot(l, l->gradient, d) < 0)) {
    l->pairs = 0;
    steepest(l);
    return true;
  }
  const sn_real most = largest(l, d);
  if (most > l->rule.longest) scale(l, d, l->rule.longest / most);
  return true;
}

static void put_trial(SnLbfgs *l) {
  for (int i = 0; i < l->n; ++i) l->trial[i] = sn_clip(l->x[i] + l->length * l->direction[i], l->lo[i], l->hi[i]);
}

void sn_lbfgs_begin(SnLbfgs *l, const SnLbfgsRule *rule) {
  l->rule = *rule;
  l->first = rule->first;
  l->pairs = l->newest = l->tried = 0;
  l->begun = false;
  for (int i = 0; i < l->n; ++i) l->trial[i] = sn_clip(0, l->lo[i], l->hi[i]);
}

// The trial is the new x.
static bool accept(SnLbfgs *l, sn_real cost, const sn_real *gradient) {
  if (l->begun) {
    l->newest = (l->newest + 1) % l->rule.memory;
    sn_real *s = pair_of(l, l->move, 0), *y = pair_of(l, l->change, 0);
    for (int i = 0; i < l->n; ++i) {
      s[i] = l->trial[i] - l->x[i];
      y[i] = gradient[i] - l->gradient[i];
    }
    l->pairs = sn_mini(l->pairs + 1, l->rule.memory);
  }
  memcpy(l->x, l->trial, sizeof *l->x * (size_t)l->n);
  memcpy(l->gradient, gradient, sizeof *gradient * (size_t)l->n);
  l->cost = cost;
  l->first = l->rule.first;
  l->begun = true;
  if (!aim(l)) return false;
  put_trial(l);
  return true;
}

// The trial was no better than x by enough; `gain` is what its gradient promised.
static bool refuse(SnLbfgs *l, sn_real cost, sn_real gain) {
  sn_real shrink = SN_R(0.5);
  if (finite_number(cost) && gain > 0) shrink = sn_clip(gain / (2 * (cost - l->cost + gain)), SN_R(0.1), shrink);
  l->length *= shrink;
  if (++l->tried >= l->rule.trials) {
    if (l->pairs == 0) l->first *= SN_R(0.1);
    l->pairs = 0;
    if (l->first < least_first * l->rule.first || !aim(l)) return false;
  }
  put_trial(l);
  return true;
}

bool sn_lbfgs_take(SnLbfgs *l, sn_real cost, const sn_real *gradient) {
  const bool known = gradient && finite_number(cost) && all_finite(gradient, l->n);
  if (!l->begun) return known && accept(l, cost, gradient);
  sn_real gain = 0;
  for (int i = 0; i < l->n; ++i) gain += l->gradient[i] * (l->x[i] - l->trial[i]);
  if (known && cost < l->cost && cost <= l->cost - armijo * gain) return accept(l, cost, gradient);
  return refuse(l, cost, gain);
}
