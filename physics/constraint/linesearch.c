// Exact line search: the minimum of phi(alpha) = cost(a + alpha v), a convex function of one variable whose
// derivatives are sums over rows.
//
// Newton's method on phi' with a bracket: phi' is increasing and piecewise smooth, so a step that leaves the
// bracket, or two that do not halve it, is replaced by its middle. The gain phi(0) - phi(alpha) is summed from
// each row's own difference, because the two totals agree in most of their digits.
#include "physics/constraint/solver_private.h"

typedef struct LinePoint {
  sn_real alpha, d1, d2;  // phi', phi''
} LinePoint;

// Residual of an elliptic contact at alpha, in the cone's coordinates: N, T and their first derivatives.
typedef struct LineCone {
  sn_real N, T, N1, UV, VV;  // UV = U.V, VV = V.V of the tangential parts U, V
} LineCone;

SN_LOCAL LineCone line_cone(const SnWorld *w, const SnContact *con, int row, sn_real alpha) {
  LineCone c;
  const sn_real *x = w->efc_jar + row, *v = w->efc_Jv + row;
  sn_real TT = 0;
  c.N = con->mu * (x[0] + alpha * v[0]);
  c.N1 = con->mu * v[0];
  c.UV = c.VV = 0;
  for (int j = 1; j < con->dim; ++j) {
    const sn_real U = con->friction[j - 1] * (x[j] + alpha * v[j]), V = con->friction[j - 1] * v[j];
    TT += U * U;
    c.UV += U * V;
    c.VV += V * V;
  }
  c.T = sn_sqrt(TT);
  return c;
}

// Adds the derivatives of an elliptic contact.
SN_LOCAL void cone_slope(const SnWorld *w, int row, sn_real alpha, sn_real *d1, sn_real *d2) {
  const SnContact *con = w->contact + w->efc_id[row];
  const sn_real mu = con->mu;
  const LineCone c = line_cone(w, con, row, alpha);
  const SnConstraintState zone = sn_cone_zone(mu, c.N, c.T);
  if (zone == SN_CSTATE_QUADRATIC) {
    for (int j = 0; j < con->dim; ++j) {
      const sn_real Dv = w->efc_D[row + j] * w->efc_Jv[row + j];
      *d1 += Dv * (w->efc_jar[row + j] + alpha * w->efc_Jv[row + j]);
      *d2 += Dv * w->efc_Jv[row + j];
    }
  } else if (zone == SN_CSTATE_CONE) {
    const sn_real Dm = w->efc_D[row] / (mu * mu * (1 + mu * mu));
    const sn_real T1 = c.UV / c.T, T2 = (c.VV - T1 * T1) / c.T, gap = c.N - mu * c.T, gap1 = c.N1 - mu * T1;
    *d1 += Dm * gap * gap1;
    *d2 += Dm * (gap1 * gap1 - gap * mu * T2);
  }
}

// Adds the derivatives of a friction loss row.
SN_LOCAL void friction_slope(const SnWorld *w, int row, sn_real alpha, sn_real *d1, sn_real *d2) {
  const sn_real v = w->efc_Jv[row], x = w->efc_jar[row] + alpha * v, Dv = w->efc_D[row] * v;
  const sn_real loss = w->efc_frictionloss[row], bound = w->efc_R[row] * loss;
  if (x <= -bound || x >= bound) {
    *d1 += x < 0 ? -loss * v : loss * v;
  } else {
    *d1 += Dv * x;
    *d2 += Dv * v;
  }
}

SN_LOCAL void clear_parts(SnLane *lane, sn_real *part, int columns) {
  for (int j = 0; j < columns; ++j) SN_FOR(k, SN_VLANES) part[j * SN_VLANES + k] = 0;
  (void)lane;
}

// Adds the derivatives of rows [lo, hi) that push only where their residual is negative, each to partial sum
// row % SN_VLANES in the order of the rows.
SN_LOCAL void one_sided_slope(const SnWorld *w, SnLane *lane, int lo, int hi, sn_real alpha, sn_real *SN_RESTRICT d1,
                              sn_real *SN_RESTRICT d2) {
  const sn_real *SN_RESTRICT jar = w->efc_jar, *SN_RESTRICT Jv = w->efc_Jv, *SN_RESTRICT D = w->efc_D;
  (void)lane;
  SN_FOR_PARTS_FROM(k, i, lo, hi) {
    const sn_real v = Jv[i], x = jar[i] + alpha * v, Dv = x < 0 ? D[i] * v : 0;
    d1[k] += Dv * x;
    d2[k] += Dv * v;
  }
}

SN_LOCAL LinePoint line_eval(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real gauss[2], sn_real alpha) {
  const int ne = w->ne[0], nef = ne + w->nf[0];
  const bool elliptic = m->opt.cone == SN_CONE_ELLIPTIC;
  sn_real *part = w->solver_part;
  clear_parts(lane, part, 2);
  // in a pyramid all rows behind friction loss push one way
  const int mixed = elliptic ? w->nefc[0] : nef;
  SN_FOR_PARTS(k, i, mixed) {
    if (i >= ne && i < nef) {
      friction_slope(w, i, alpha, part + k, part + SN_VLANES + k);
    } else if (elliptic && w->efc_type[i] == SN_CNSTR_CONTACT_ELLIPTIC) {
      if (!sn_is_cone_tail(w, i)) cone_slope(w, i, alpha, part + k, part + SN_VLANES + k);
    } else {
      const sn_real v = w->efc_Jv[i], x = w->efc_jar[i] + alpha * v;
      const sn_real Dv = i < ne || x < 0 ? w->efc_D[i] * v : 0;
      part[k] += Dv * x;
      part[SN_VLANES + k] += Dv * v;
    }
  }
  one_sided_slope(w, lane, mixed, w->nefc[0], alpha, part, part + SN_VLANES);
  SN_SYNC(lane);
  const sn_real s1 = sn_sum_parts(lane, part), s2 = sn_sum_parts(lane, part + SN_VLANES);
  const LinePoint p = {alpha, gauss[0] + alpha * gauss[1] + s1, sn_max(SN_MINVAL, gauss[1] + s2)};
  return p;
}

// Cost of an elliptic contact at alpha = 0 less that at alpha.
SN_LOCAL sn_real cone_gain(const SnWorld *w, int row, sn_real alpha) {
  const SnContact *con = w->contact + w->efc_id[row];
  const sn_real mu = con->mu, Dm = w->efc_D[row] / (mu * mu * (1 + mu * mu));
  const LineCone a = line_cone(w, con, row, 0), b = line_cone(w, con, row, alpha);
  const SnConstraintState za = sn_cone_zone(mu, a.N, a.T), zb = sn_cone_zone(mu, b.N, b.T);
  const sn_real ga = a.N - mu * a.T, gb = b.N - mu * b.T;
  if (za == SN_CSTATE_CONE && zb == SN_CSTATE_CONE) {
    const sn_real dT = alpha * (2 * a.UV + alpha * a.VV) / (a.T + b.T), dg = alpha * a.N1 - mu * dT;
    return SN_R(-0.5) * Dm * dg * (ga + gb);
  }
  sn_real cost_a = za == SN_CSTATE_CONE ? SN_R(0.5) * Dm * ga * ga : 0;
  sn_real cost_b = zb == SN_CSTATE_CONE ? SN_R(0.5) * Dm * gb * gb : 0, both = 0;
  for (int j = 0; j < con->dim; ++j) {
    const sn_real D = w->efc_D[row + j], dx = alpha * w->efc_Jv[row + j], x = w->efc_jar[row + j];
    if (za == SN_CSTATE_QUADRATIC && zb == SN_CSTATE_QUADRATIC)
      both -= SN_R(0.5) * D * dx * (2 * x + dx);
    else if (za == SN_CSTATE_QUADRATIC)
      cost_a += SN_R(0.5) * D * x * x;
    else if (zb == SN_CSTATE_QUADRATIC)
      cost_b += SN_R(0.5) * D * (x + dx) * (x + dx);
  }
  return both + (cost_a - cost_b);
}

// Cost and piece (-1, 0, 1) of a friction loss at x.
SN_LOCAL sn_real huber(sn_real x, sn_real loss, sn_real bound, sn_real D, int *piece) {
  *piece = x <= -bound ? -1 : (x >= bound ? 1 : 0);
  return *piece ? loss * (sn_abs(x) - SN_R(0.5) * bound) : SN_R(0.5) * D * x * x;
}

// The same of a friction loss row.
SN_LOCAL sn_real friction_gain(const SnWorld *w, int row, sn_real alpha) {
  const sn_real D = w->efc_D[row], x = w->efc_jar[row], dx = alpha * w->efc_Jv[row];
  const sn_real loss = w->efc_frictionloss[row], bound = w->efc_R[row] * loss;
  int px, py;
  const sn_real cx = huber(x, loss, bound, D, &px), cy = huber(x + dx, loss, bound, D, &py);
  if (px != py) return cx - cy;
  return px == 0 ? SN_R(-0.5) * D * dx * (2 * x + dx) : (sn_real)(-px) * loss * dx;
}

// The same of a row that pushes where its residual x is negative.
SN_INLINE sn_real one_sided_row_gain(sn_real x, sn_real dx, sn_real D) {
  const sn_real y = x + dx, px = sn_min(x, 0), py = sn_min(y, 0), fall = x < 0 && y < 0 ? -dx : px - py;
  return SN_R(0.5) * D * fall * (px + py);
}

// The same of any row.
SN_INLINE sn_real row_gain(const SnWorld *w, int row, sn_real alpha) {
  const int ne = w->ne[0], nef = ne + w->nf[0];
  if (row >= ne && row < nef) return friction_gain(w, row, alpha);
  if (w->efc_type[row] == SN_CNSTR_CONTACT_ELLIPTIC) return sn_is_cone_tail(w, row) ? 0 : cone_gain(w, row, alpha);
  const sn_real dx = alpha * w->efc_Jv[row], x = w->efc_jar[row], D = w->efc_D[row];
  return row < ne ? SN_R(0.5) * D * -dx * (x + (x + dx)) : one_sided_row_gain(x, dx, D);
}

// Adds the gains of rows [lo, hi) that push one way, and their sizes, as one_sided_slope adds derivatives.
SN_LOCAL void one_sided_gain(const SnWorld *w, SnLane *lane, int lo, int hi, sn_real alpha, sn_real *SN_RESTRICT sum,
                             sn_real *SN_RESTRICT size) {
  const sn_real *SN_RESTRICT jar = w->efc_jar, *SN_RESTRICT Jv = w->efc_Jv, *SN_RESTRICT D = w->efc_D;
  (void)lane;
  SN_FOR_PARTS_FROM(k, i, lo, hi) {
    const sn_real g = one_sided_row_gain(jar[i], alpha * Jv[i], D[i]);
    sum[k] += g;
    size[k] += sn_abs(g);
  }
}

// phi(0) - phi(alpha), 0 when that is not more than the rounding of its terms.
SN_LOCAL sn_real line_gain(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real gauss[2], sn_real alpha) {
  sn_real *part = w->solver_part;
  clear_parts(lane, part, 2);
  const int mixed = m->opt.cone == SN_CONE_ELLIPTIC ? w->nefc[0] : w->ne[0] + w->nf[0];
  SN_FOR_PARTS(k, i, mixed) {
    const sn_real g = row_gain(w, i, alpha);
    part[k] += g;
    part[SN_VLANES + k] += sn_abs(g);
  }
  one_sided_gain(w, lane, mixed, w->nefc[0], alpha, part, part + SN_VLANES);
  SN_SYNC(lane);
  const sn_real linear = alpha * gauss[0], square = SN_R(0.5) * alpha * alpha * gauss[1];
  const sn_real gain = sn_sum_parts(lane, part) - linear - square;
  const sn_real size = sn_sum_parts(lane, part + SN_VLANES) + sn_abs(linear) + square;
  return gain > 2 * SN_EPS * size ? gain : 0;
}

// Derivatives of the quadratic part: v'(M a - M a_s) and v' M v.
SN_LOCAL void gauss_slope(const SnModel *m, SnWorld *w, SnLane *lane, sn_real gauss[2]) {
  sn_real *part = w->solver_part;
  const sn_real *smooth = sn_free_force(m, w);
  clear_parts(lane, part, 2);
  SN_FOR_PARTS(k, i, m->nv) {
    part[k] += w->solver_search[i] * (w->solver_Ma[i] - smooth[i]);
    part[SN_VLANES + k] += w->solver_search[i] * w->solver_Mv[i];
  }
  SN_SYNC(lane);
  gauss[0] = sn_sum_parts(lane, part);
  gauss[1] = sn_sum_parts(lane, part + SN_VLANES);
}

// Point of the smallest |phi'| found within the allowed number of evaluations, phi'(0) = slope < 0. H is exact at 0,
// so the Newton step from there is 1.
SN_LOCAL LinePoint line_minimum(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real gauss[2], sn_real slope,
                                sn_real gtol) {
  LinePoint best = {0, slope, 0};
  sn_real lo = 0, hi = -1, next = 1;  // bracket, hi < lo: open
  sn_real older = 0, old = 0;         // its widths one and two evaluations ago
  for (int n = 0; n < m->opt.ls_iterations; ++n) {
    const LinePoint p = line_eval(m, w, lane, gauss, next);
    if (sn_abs(p.d1) < sn_abs(best.d1)) best = p;
    if (sn_abs(p.d1) < gtol || p.d1 == 0) break;
    if (p.d1 < 0)
      lo = p.alpha;
    else
      hi = p.alpha;
    next = p.alpha - p.d1 / p.d2;
    if (hi > lo) {
      const bool slow = older > 0 && hi - lo > SN_R(0.5) * older;
      if (slow || next <= lo || next >= hi) next = SN_R(0.5) * (lo + hi);
      if (next <= lo || next >= hi) break;
      older = old;
      old = hi - lo;
    } else if (next <= lo) {
      break;
    }
  }
  return best;
}

SN_FUNC sn_real sn_line_search(const SnModel *m, SnWorld *w, SnLane *lane, sn_real slope, sn_real gtol, sn_real *gain) {
  sn_real gauss[2];
  gauss_slope(m, w, lane, gauss);
  const LinePoint p = line_minimum(m, w, lane, gauss, slope, gtol);
  *gain = 0;
  if (p.alpha == 0) return 0;
  *gain = line_gain(m, w, lane, gauss, p.alpha);
  return *gain > 0 ? p.alpha : 0;
}
