// Controls of step t: u_t = clamp(b_t + s sum_j w_j(t) y_j), with base b, unit s, offsets y at knots and the weights w
// of a spline. So the gradient with respect to y_j is sum_t s w_j(t) du_t, over the steps t near knot j whose sum the
// clamp lets through. Sums go over t in order: any number of lanes gives the same bits.
//
// On a time grid w_j(t) is the mean over the base steps of row t.
//
// Adam's step has about the length of the rate in each coordinate, whatever the scale of the gradient: limiting the
// gradient's norm does not shorten a step, but keeps one steep moment, at a contact, from ruling the means of the
// gradients that follow.
#include "planner/optimize/adam.h"

#include <math.h>

#include "planner/optimize/spline_private.h"

// Rows [*from, *to) that knot j moves.
SN_LOCAL void adam_support(const SnAdamGrid *g, int j, int *from, int *to) {
  const int reach = g->interpolation == SN_SPLINE_CUBIC ? 2 : 1;
  *from = sn_grid_step(&g->time, sn_maxi((j - reach) * g->spacing - g->phase, 0));
  *to = sn_mini(sn_grid_step(&g->time, sn_maxi((j + reach) * g->spacing - g->phase, 0)) + 1, g->nstep);
}

SN_LOCAL sn_real adam_weight(const SnAdamGrid *g, int t, int j) {
  return sn_spline_mean_weight(g->interpolation, g->knots, sn_spline_row(&g->time, t, g->spacing, g->phase), j);
}

// Control k of step t before the clamp; where offsets are 0, the base as it is.
SN_LOCAL sn_real adam_control(const SnModel *m, const SnAdamGrid *g, const sn_real *base, const sn_real *offset, int t,
                              int k) {
  const SnSplineRow row = sn_spline_row(&g->time, t, g->spacing, g->phase);
  return base[t * m->nu + k] + sn_ctrl_unit(m, k) * sn_spline_mean(g->interpolation, offset + k, g->knots, m->nu, row);
}

// Whether the clamp holds a control at u: beyond its range by more than rounding, which may put one there whose offset
// was cut at the bound.
SN_LOCAL bool adam_beyond(const SnModel *m, int k, sn_real u) {
  const sn_real lo = m->ctrl_range[2 * k], hi = m->ctrl_range[2 * k + 1];
  const sn_real slack = 8 * SN_EPS * (sn_abs(lo) + sn_abs(hi));
  return u < lo - slack || u > hi + slack;
}

SN_FUNC void sn_adam_controls(const SnModel *m, const SnAdamGrid *g, SnLane *lane, const sn_real *base,
                              const sn_real *offset, SnPart rows, sn_real *ctrl) {
  SN_FOR(n, (rows.to - rows.from) * m->nu) {
    const int i = rows.from * m->nu + n, t = i / m->nu, k = i % m->nu;
    const sn_real u = adam_control(m, g, base, offset, t, k);
    ctrl[i] = m->ctrl_limited[k] ? sn_clip(u, m->ctrl_range[2 * k], m->ctrl_range[2 * k + 1]) : u;
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_adam_gradient(const SnModel *m, const SnAdamGrid *g, SnLane *lane, const sn_real *base,
                              const sn_real *offset, const sn_real *ctrl_bar, SnPart knots, sn_real *gradient) {
  SN_FOR(n, (knots.to - knots.from) * m->nu) {
    const int i = knots.from * m->nu + n, j = i / m->nu, k = i % m->nu;
    int from, to;
    sn_real sum = 0;
    adam_support(g, j, &from, &to);
    for (int t = from; t < to; ++t) {
      const sn_real weight = adam_weight(g, t, j);
      if (weight == 0) continue;
      const bool held = m->ctrl_limited[k] && adam_beyond(m, k, adam_control(m, g, base, offset, t, k));
      if (!held) sum += weight * ctrl_bar[t * m->nu + k];
    }
    gradient[i] = sn_ctrl_unit(m, k) * sum;
  }
  SN_SYNC(lane);
}

// sn_norm of n numbers by one lane alone, which adds them in order.
SN_LOCAL sn_real adam_length(const sn_real *x, int n) {
  sn_real largest = 0, sum = 0;
  for (int i = 0; i < n; ++i) {
    if (!(x[i] - x[i] == 0)) return (sn_real)INFINITY;
    largest = sn_max(largest, sn_abs(x[i]));
  }
  if (largest == 0) return 0;
  for (int i = 0; i < n; ++i) sum += (x[i] / largest) * (x[i] / largest);
  return largest * sn_sqrt(sum);
}

SN_LOCAL sn_real adam_scale(sn_real norm, sn_real most) { return norm > most ? most / norm : SN_R(1.0); }

SN_FUNC void sn_adam_clip(const SnModel *m, const SnAdamGrid *g, const SnAdamRule *rule, SnLane *lane,
                          sn_real *gradient) {
  const int n = g->knots * m->nu;
  if (rule->clip == SN_CLIP_GLOBAL) {
    const sn_real scale = adam_scale(sn_norm(lane, gradient, n), rule->clip_norm);
    SN_FOR(i, n) gradient[i] *= scale;
  } else if (rule->clip == SN_CLIP_STEP) {
    SN_FOR(j, g->knots) {
      sn_real *row = gradient + j * m->nu;
      const sn_real scale = adam_scale(adam_length(row, m->nu), rule->clip_norm);
      for (int k = 0; k < m->nu; ++k) row[k] *= scale;
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_adam_step(const SnModel *m, const SnAdamGrid *g, const SnAdamRule *rule, SnLane *lane,
                          const sn_real *gradient, SnAdamMoments *moments, sn_real *offset) {
  const sn_real power1 = moments->power1 * rule->beta1, power2 = moments->power2 * rule->beta2;
  const sn_real one = SN_R(1.0);
  SN_SYNC(lane);
  SN_ONE(lane) {
    moments->power1 = power1;
    moments->power2 = power2;
  }
  SN_FOR(i, g->knots * m->nu) {
    const sn_real d = sn_clip(gradient[i], -SN_MAXVAL, SN_MAXVAL);  // its square is a number in any precision
    sn_real *first = moments->first + i, *second = moments->second + i;
    *first = rule->beta1 * *first + (one - rule->beta1) * d;
    *second = rule->beta2 * *second + (one - rule->beta2) * d * d;
    offset[i] -= rule->rate * (*first / (one - power1)) / (sn_sqrt(*second / (one - power2)) + rule->epsilon);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_adam_project(const SnModel *m, const SnAdamGrid *g, SnLane *lane, const sn_real *base, SnPart knots,
                             sn_real *offset) {
  SN_FOR(n, (knots.to - knots.from) * m->nu) {
    const int i = knots.from * m->nu + n, j = i / m->nu, k = i % m->nu;
    int from, to;
    if (!m->ctrl_limited[k]) continue;
    sn_real least = 0, most = 0;
    adam_support(g, j, &from, &to);
    for (int t = from; t < to; ++t) {
      if (!(adam_weight(g, t, j) > 0)) continue;
      const sn_real b = base[t * m->nu + k], unit = sn_ctrl_unit(m, k);
      if (!(unit > 0)) continue;
      least = sn_min(least, (m->ctrl_range[2 * k] - b) / unit);
      most = sn_max(most, (m->ctrl_range[2 * k + 1] - b) / unit);
    }
    offset[i] = sn_clip(offset[i], least, most);
  }
  SN_SYNC(lane);
}
