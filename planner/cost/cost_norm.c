// What a term makes of its residual: norms and gates.
//
// Norms of a residual r:
//
//   squared     n = sum e_i r_i^2                        dn/dr_i = 2 e_i r_i
//   euclidean   n = sqrt(s + w^2) - w, s = sum e_i r_i^2  dn/dr_i = e_i r_i / sqrt(s + w^2); 0 where w = 0 and r = 0
//   smooth_abs  n = sum e_i (sqrt(r_i^2 + w^2) - w)       dn/dr_i = e_i r_i / sqrt(r_i^2 + w^2), w > 0
//
// e_i are the weights of the entries, 1 by themselves. Of a one-sided norm r_i stands for max(r_i, 0) or min(r_i, 0).
// It has the slope 0 on both sides of the target, so that it is as smooth as the norm itself, and 0 on the other side.
//
// A gate multiplies the norm of a term by a number g of a residual q of its own. With m(q) the norm of q, or q itself
// where it is one number and has no norm, v its value and w > 0 its width,
//
//   above     g = 1 / (1 + exp(-(m - v) / w))      dg/dm = g (1 - g) / w
//   below     g = 1 / (1 + exp((m - v) / w))       dg/dm = -g (1 - g) / w
//   product   g = m                                dg/dm = 1
//
// so that g is 1/2 where m = v, and within 5 % of 0 and of 1 three widths to both sides. The derivative of the product
// of gate and norm has two parts, d(g n) = g dn + n dg/dm dm: terms that are far from their targets pull at their
// gates, too, and a plan may find it cheaper to close a gate than to reach a target.
#include "planner/cost/cost.h"
#include "planner/cost/cost_private.h"

SN_FUNC SnPenalty sn_cost_penalty(const SnCost *cost, int i) {
  const SnPenalty p = {cost->term_norm[i], cost->term_side[i], cost->term_width[i],
                       cost->res_weight + cost->term_res[i]};
  return p;
}

SN_FUNC sn_real sn_side_value(int side, sn_real r) { return (sn_real)side * r < 0 ? 0 : r; }

SN_FUNC sn_real sn_norm_value(SnPenalty p, const sn_real *r, int n) {
  const sn_real w2 = p.width * p.width;
  sn_real s = 0;
  if (p.norm == SN_NORM_SIGNED) return r[0];
  for (int i = 0; i < n; ++i) {
    const sn_real x = sn_side_value(p.side, r[i]);
    s += p.norm == SN_NORM_SMOOTH_ABS ? p.each[i] * (sn_sqrt(x * x + w2) - p.width) : p.each[i] * x * x;
  }
  return p.norm == SN_NORM_EUCLIDEAN ? sn_sqrt(s + w2) - p.width : s;
}

SN_FUNC void sn_norm_vjp(SnPenalty p, sn_real weight, sn_real *r, int n) {
  const sn_real w2 = p.width * p.width;
  sn_real s = 0, scale = 2 * weight;
  if (p.norm == SN_NORM_SIGNED) {
    r[0] = weight;
    return;
  }
  for (int i = 0; i < n; ++i) {
    r[i] = sn_side_value(p.side, r[i]);
    s += p.each[i] * r[i] * r[i];
  }
  if (p.norm == SN_NORM_EUCLIDEAN) {
    const sn_real root = sn_sqrt(s + w2);
    scale = root > 0 ? weight / root : 0;
  }
  for (int i = 0; i < n; ++i) {
    const sn_real x = p.each[i] * r[i];
    if (p.norm == SN_NORM_SMOOTH_ABS) {
      const sn_real root = sn_sqrt(r[i] * r[i] + w2);
      r[i] = root > 0 ? weight * x / root : 0;
    } else {
      r[i] = x * scale;
    }
  }
}

// The norm of term or gate i.
SN_LOCAL sn_real norm_of_term(const SnCost *c, int i, const sn_real *res) {
  const int at = c->term_res[i];
  return sn_norm_value(sn_cost_penalty(c, i), res + at, c->term_res[i + 1] - at);
}

// 1 / (1 + exp(-x)), by the exponential that is at most 1.
SN_LOCAL sn_real norm_sigmoid(sn_real x) {
  const sn_real e = sn_exp(-sn_abs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

SN_FUNC sn_real sn_cost_gate(const SnCost *cost, int i, const sn_real *res) {
  const int gate = cost->term_gate[i];
  if (gate < 0) return 1;
  const sn_real m = norm_of_term(cost, gate, res), side = (sn_real)cost->gate_side[i];
  return cost->gate_side[i] == 0 ? m : norm_sigmoid(side * (m - cost->gate_value[i]) / cost->gate_width[i]);
}

SN_FUNC void sn_cost_gate_vjp(const SnCost *cost, int i, sn_real gate, sn_real weight, sn_real *res) {
  const int k = cost->term_gate[i], at = cost->term_res[k], side = cost->gate_side[i];
  const sn_real slope = side == 0 ? 1 : (sn_real)side * gate * (1 - gate) / cost->gate_width[i];
  sn_norm_vjp(sn_cost_penalty(cost, k), weight * norm_of_term(cost, i, res) * slope, res + at,
              cost->term_res[k + 1] - at);
}

SN_FUNC void sn_cost_norm(const SnCost *cost, SnLane *lane, const sn_real *res, int first, int last, sn_real *value) {
  SN_FOR(k, last - first) {
    const int i = first + k;
    const sn_real norm = norm_of_term(cost, i, res);
    value[i] = cost->term_gate[i] < 0 ? norm : sn_cost_gate(cost, i, res) * norm;
  }
  SN_SYNC(lane);
}
