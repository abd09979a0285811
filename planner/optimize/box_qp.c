// Projected Newton (D. Bertsekas, "Projected Newton methods for optimization problems with simple constraints", 1982),
// in the form of Y. Tassa, N. Mansard, E. Todorov, "Control-limited differential dynamic programming", 2014.
//
// An unknown is held where it is at a limit and the slope s = H x + g pushes it outwards. The others, the free ones f,
// take the Newton step d_f = -H_ff^-1 s_f, cut to the limits and halved until it pays (Armijo's rule). A whole step
// that meets no limit solves the programme of its free unknowns: when the same ones are then free, it is the solution.
#include "planner/optimize/box_qp_private.h"

#include "planner/base/dense.h"

enum { QP_STEPS = 100, QP_HALVINGS = 60 };
static const sn_number qp_armijo = SN_R(0.1);
static const sn_number qp_exact = SN_R(1e-16);  // of what was gained so far: less is rounding

static sn_number clip(sn_number x, sn_number lo, sn_number hi) { return x < lo ? lo : (x > hi ? hi : x); }

static sn_number row_dot(const sn_number *row, const sn_number *x, int n) {
  sn_number sum = 0;
  for (int j = 0; j < n; ++j) sum += row[j] * x[j];
  return sum;
}

static bool held(const SnBoxQp *q, int i) {
  return (q->x[i] <= q->lo[i] && q->slope[i] > 0) || (q->x[i] >= q->hi[i] && q->slope[i] < 0) || q->lo[i] == q->hi[i];
}

// Slope, and who is free. Returns whether others are than before.
static bool look(SnBoxQp *q) {
  const int before = q->nfree;
  bool changed = false;
  for (int i = 0; i < q->n; ++i) q->slope[i] = row_dot(q->H + (size_t)i * (size_t)q->n, q->x, q->n) + q->g[i];
  q->nfree = 0;
  for (int i = 0; i < q->n; ++i) {
    if (held(q, i)) continue;
    changed = changed || q->nfree >= before || q->free[q->nfree] != i;
    q->free[q->nfree++] = i;
  }
  return changed || q->nfree != before;
}

static bool factor(SnBoxQp *q) {
  for (int a = 0; a < q->nfree; ++a)
    for (int b = 0; b <= a; ++b) q->L[a * q->nfree + b] = q->H[q->free[a] * q->n + q->free[b]];
  return sn_dense_factor(q->L, q->nfree);
}

// Newton's step of the free unknowns, others 0. Returns the slope along it, which is negative but at the solution.
static sn_number newton(SnBoxQp *q) {
  sn_number along = 0;
  for (int a = 0; a < q->nfree; ++a) q->trial[a] = -q->slope[q->free[a]];
  sn_dense_solve(q->L, q->nfree, q->trial, 1);
  for (int i = 0; i < q->n; ++i) q->step[i] = 0;
  for (int a = 0; a < q->nfree; ++a) q->step[q->free[a]] = q->trial[a];
  for (int a = 0; a < q->nfree; ++a) along += q->slope[q->free[a]] * q->trial[a];
  return along;
}

// Goes a part of the step, cut to the limits, into `trial`. Returns whether the value falls as it should; `whole`:
// whether nothing was cut.
static bool try_part(SnBoxQp *q, sn_number part, bool *whole) {
  sn_number along = 0, curve = 0;
  *whole = part == 1;
  for (int i = 0; i < q->n; ++i) {
    const sn_number to = q->x[i] + part * q->step[i];
    q->trial[i] = clip(to, q->lo[i], q->hi[i]);
    *whole = *whole && q->trial[i] == to;
  }
  for (int i = 0; i < q->n; ++i) {
    const sn_number d = q->trial[i] - q->x[i];
    sn_number sum = 0;
    for (int j = 0; j < q->n; ++j) sum += q->H[i * q->n + j] * (q->trial[j] - q->x[j]);
    along += q->slope[i] * d;
    curve += d * sum;
  }
  return along + curve / 2 <= qp_armijo * along;
}

bool sn_box_qp(SnBoxQp *q) {
  bool whole = false;
  sn_number gained = 0;
  q->nfree = -1;
  for (int i = 0; i < q->n; ++i) q->x[i] = clip(q->x[i], q->lo[i], q->hi[i]);
  for (int step = 0;; ++step) {
    const bool changed = look(q);
    if (changed && !factor(q)) return false;
    if ((whole && !changed) || q->nfree == 0 || step == QP_STEPS) return true;
    const sn_number along = newton(q);
    if (!(-along > qp_exact * gained)) return true;
    gained -= along;
    sn_number part = 1;
    for (int i = 0; !try_part(q, part, &whole); ++i, part /= 2)
      if (i == QP_HALVINGS) return true;
    for (int i = 0; i < q->n; ++i) q->x[i] = q->trial[i];
  }
}
