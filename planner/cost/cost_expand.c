// Gauss-Newton: residuals r(x, u) of a term with norm N and weight w are linear, r + R dx, and N is replaced by a
// quadratic, so that
//
//   lx = w R' s,   lxx = w R' c R,   s = dN/dr,   c = curvature >= 0.
//
// All norms are concave functions of squares: r_i^2 (squared), of their sum (euclidean), of each (smooth_abs). So the
// parabola with the slope of the norm and twice the derivative with respect to the square lies above the norm and
// touches it (iteratively reweighted least squares: A. Beaton, J. Tukey, 1974):
//
//   squared     c = 2                      exact
//   euclidean   c = 1 / sqrt(|r|^2 + w^2)   the same along r and across it
//   smooth_abs  c = 1 / sqrt(r_i^2 + w^2)
//
// With weights e_i of the entries c is e_i times that, and |r|^2 is sum e_i r_i^2. Of a one-sided norm an entry that
// does not count has neither slope nor curvature: the parabola there is that of the side on which it lies.
//
// The norm's own second derivative along r is w^2 / sqrt(..)^3 instead: nearly 0 far from the target, and a step would
// go far beyond it. Where the root is 0 the slope is, too, and the curvature counts as 0.
//
// A gate counts as constant in the curvature of its term, w g R' c R: that is what Gauss-Newton drops of second
// derivatives, and it keeps lxx positive semidefinite. The slope of the gate itself, w n dg/dx, is exact (cost_norm.c).
//
// The rate of a control depends on the controls of two steps. Their product would tie the steps together beside the
// state, so it is bounded: (a + b)^2 <= 2 a^2 + 2 b^2 for changes a and b, which again lies above and touches. The
// slopes are exact, so a plan that cannot be improved is one that the cost itself finds flat.
#include "planner/cost/cost_expand.h"

#include <string.h>

#include "physics/actuator/actuator.h"
#include "physics/step/step.h"
#include "planner/cost/cost_private.h"

// The slope of a norm of r[n] with a weight in place of r. Returns the curvature of entry i in curve[i].
static void norm_model(SnPenalty p, sn_real weight, sn_real *r, sn_real *curve, int n) {
  sn_real square = p.width * p.width;
  for (int i = 0; i < n && p.norm == SN_NORM_EUCLIDEAN; ++i) {
    const sn_real x = sn_side_value(p.side, r[i]);
    square += p.each[i] * x * x;
  }
  for (int i = 0; i < n; ++i) {
    const bool counts = sn_side_value(p.side, r[i]) == r[i];
    const sn_real root = sn_sqrt(p.norm == SN_NORM_SMOOTH_ABS ? r[i] * r[i] + square : square);
    curve[i] = p.norm == SN_NORM_SQUARED ? 2 * weight : (root > 0 ? weight / root : 0);
    curve[i] *= counts ? p.each[i] : 0;
    r[i] *= curve[i];
  }
}

// What the adjoint has come to: a row of the residuals' Jacobian, state and controls.
static void take_row(const SnModel *m, const SnAdjoint *a, sn_real *row) {
  const size_t nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu;
  memcpy(row, a->qpos_bar, nv * sizeof *row);
  memcpy(row + nv, a->qvel_bar, nv * sizeof *row);
  memcpy(row + 2 * nv, a->act_bar, na * sizeof *row);
  memcpy(row + 2 * nv + na, a->ctrl_bar, nu * sizeof *row);
}

// Adds the part of a row that belongs to the controls of the step before. Returns by how much the curvatures grow.
static sn_real add_before(const SnModel *m, SnExpandInput in, sn_real slope, sn_real curve, const SnExpansion *out) {
  int parts = 0;
  for (int i = 0; out->before_lu && i < m->nu; ++i) parts += in.before[i] != 0;
  for (int i = 0; parts > 0 && i < m->nu; ++i) {
    out->before_lu[i] += slope * in.before[i];
    out->before_luu[i] += 2 * (sn_real)parts * curve * in.before[i] * in.before[i];
  }
  return parts > 0 ? 2 : 1;
}

// Adds slope * row and curve * row row', by the entries of the row that are not 0.
static void add_row(const SnModel *m, SnExpandInput in, sn_real slope, sn_real curve, const SnExpansion *out) {
  const int n = 2 * m->nv + m->na, wide = n + (out->lu ? m->nu : 0);
  int count = 0;
  for (int i = 0; i < wide; ++i)
    if (in.row[i] != 0) in.at[count++] = i;
  for (int a = 0; a < count; ++a) {
    const int i = in.at[a];
    sn_number *const x = i < n ? out->lxx + (size_t)i * (size_t)n : out->lux + (size_t)(i - n) * (size_t)n;
    const sn_real scaled = curve * in.row[i];
    int b = 0;
    for (; b < count && in.at[b] < n; ++b) x[in.at[b]] += scaled * in.row[in.at[b]];
    if (i < n) {
      out->lx[i] += slope * in.row[i];
      continue;
    }
    out->lu[i - n] += slope * in.row[i];
    for (; b < count; ++b) out->luu[(i - n) * m->nu + in.at[b] - n] += scaled * in.row[in.at[b]];
  }
}

static void clear(const SnModel *m, const SnExpansion *out) {
  const size_t n = 2 * (size_t)m->nv + (size_t)m->na, nu = (size_t)m->nu;
  memset(out->lx, 0, n * sizeof *out->lx);
  memset(out->lxx, 0, n * n * sizeof *out->lxx);
  if (!out->lu) return;
  memset(out->lu, 0, nu * sizeof *out->lu);
  memset(out->lux, 0, nu * n * sizeof *out->lux);
  memset(out->luu, 0, nu * nu * sizeof *out->luu);
  if (!out->before_lu) return;
  memset(out->before_lu, 0, nu * sizeof *out->before_lu);
  memset(out->before_luu, 0, nu * sizeof *out->before_luu);
}

// Adds the items of term or gate i: in.res has their slopes, in.bar the curvatures.
static void expand_items(const SnCost *cost, const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, int term,
                         SnExpandInput in, const SnExpansion *out) {
  const SnCostVjp v = {.in = in.in, .before_bar = in.before};
  for (int i = cost->term_item[term]; i < cost->term_item[term + 1]; ++i) {
    const int at = cost->item_res[i], entries = sn_item_residual_size(cost->item_type[i]);
    for (int k = 0; k < entries; ++k) {
      sn_real unit[3] = {0};
      unit[k] = 1;
      sn_adjoint_clear(m, a, lane);
      sn_motion_rest(m, w, a, lane);
      if (cost->uses_acceleration) sn_acceleration_begin(m, w, a, lane);
      memset(in.before, 0, (size_t)m->nu * sizeof *in.before);
      sn_cost_item_vjp(cost, m, w, a, i, &v, unit);
      if (cost->uses_force) sn_actuator_force_vjp(m, w, a, lane);
      if (cost->uses_acceleration) sn_acceleration_vjp(m, w, a, lane);
      sn_position_vjp(m, w, a, lane);
      take_row(m, a, in.row);
      const sn_real more = add_before(m, in, in.res[at + k], in.bar[at + k], out);
      add_row(m, in, in.res[at + k], more * in.bar[at + k], out);
    }
  }
}

void sn_cost_expand(const SnCost *cost, const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, SnExpandInput in,
                    const SnExpansion *out) {
  clear(m, out);
  sn_cost_residual(cost, m, w, lane, in.in, 0, cost->nterm, in.res);
  for (int term = 0; term < cost->nterm; ++term) {
    const int first = cost->term_res[term], size = cost->term_res[term + 1] - first, gate = cost->term_gate[term];
    const sn_real weight = in.factor * in.weight[term];
    if (in.weight[term] == 0) continue;
    const sn_real open = sn_cost_gate(cost, term, in.res);
    if (gate >= 0) {
      const int from = cost->term_res[gate];
      sn_cost_gate_vjp(cost, term, open, weight, in.res);
      memset(in.bar + from, 0, (size_t)(cost->term_res[gate + 1] - from) * sizeof *in.bar);
      expand_items(cost, m, w, a, lane, gate, in, out);
    }
    norm_model(sn_cost_penalty(cost, term), open * weight, in.res + first, in.bar + first, size);
    expand_items(cost, m, w, a, lane, term, in, out);
  }
}
