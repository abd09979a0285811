// Every loop here runs over independent numbers, and sums are those of adam.c: any number of lanes gives the bits of
// one. What all lanes decide by, a status, a cost, is read by each of them before one lane writes it.
#include "planner/optimize/multistart.h"

SN_LOCAL bool multistart_finite(sn_real x) { return x - x == 0; }

// Drops the first `left` knots of one moment (knots, nu) in place; new ones are 0. A lane has columns of its own.
SN_LOCAL void multistart_shift(const SnLane *lane, sn_real *moment, int knots, int nu, int left) {
  (void)lane;
  const int gone = sn_mini(sn_maxi(left, 0), knots);
  SN_FOR(k, nu) {
    for (int j = 0; j < knots - gone; ++j) moment[j * nu + k] = moment[(j + gone) * nu + k];
    for (int j = knots - gone; j < knots; ++j) moment[j * nu + k] = 0;
  }
}

SN_FUNC void sn_multistart_init(const SnModel *m, SnLane *lane, const SnMultistart *r, int i, SnMultistartStart *s,
                                sn_real *scratch) {
  const int knots = sn_multistart_knots(r->grid.nstep), n = knots * m->nu;
  const int candidate = i < r->nlisted ? r->listed[i] : i;
  sn_candidate_controls(m, &r->noise, candidate, lane, r->nominal, r->grid.nstep, scratch, s->base);
  sn_lane_zero(lane, s->offset, n);
  sn_lane_zero(lane, s->best, n);
  sn_lane_zero(lane, s->gradient, n);
  if (i == 0 && r->keep) {
    multistart_shift(lane, s->moments.first, knots, m->nu, r->left);
    multistart_shift(lane, s->moments.second, knots, m->nu, r->left);
  } else {
    sn_lane_zero(lane, s->moments.first, n);
    sn_lane_zero(lane, s->moments.second, n);
    SN_ONE(lane) s->moments.power1 = s->moments.power2 = 1;
  }
  SN_ONE(lane) {
    s->cost = s->best_cost = (sn_real)INFINITY;
    s->norm = (sn_real)NAN;
    s->diverged = 0;
  }
  SN_SYNC(lane);
}

// Half the way back from controls that diverged.
SN_LOCAL void multistart_step_back(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s) {
  const int n = r->grid.knots * m->nu;
  sn_lane_zero(lane, s->moments.first, n);
  if (multistart_finite(s->best_cost)) {
    SN_FOR(i, n) s->offset[i] = s->best[i] + SN_R(0.5) * (s->offset[i] - s->best[i]);
  } else {
    SN_FOR(i, r->grid.nstep * m->nu) s->base[i] += SN_R(0.5) * (r->initial_ctrl[i % m->nu] - s->base[i]);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_multistart_step(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s) {
  if (s->diverged) {
    multistart_step_back(m, lane, r, s);
    return;
  }
  sn_adam_clip(m, &r->grid, &r->rule, lane, s->gradient);
  sn_adam_step(m, &r->grid, &r->rule, lane, s->gradient, &s->moments, s->offset);
  sn_adam_project(m, &r->grid, lane, s->base, s->offset);
}

SN_FUNC void sn_multistart_controls(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s) {
  sn_adam_controls(m, &r->grid, lane, s->base, s->offset, s->ctrl);
}

SN_FUNC void sn_multistart_evaluate(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                    int status, sn_real cost) {
  const int n = r->grid.knots * m->nu;
  const bool better = cost < s->best_cost;
  sn_real norm = (sn_real)NAN;
  if (status == SN_GRADIENT_DONE) {
    sn_adam_gradient(m, &r->grid, lane, s->base, s->offset, s->ctrl_bar, s->gradient);
    norm = sn_norm(lane, s->gradient, n);
  }
  if (!multistart_finite(norm)) {
    norm = (sn_real)NAN;
    sn_lane_zero(lane, s->gradient, n);
  }
  if (better) sn_lane_copy(lane, s->best, s->offset, n);
  SN_SYNC(lane);
  SN_ONE(lane) {
    if (better) s->best_cost = cost;
    s->cost = cost;
    s->norm = norm;
    s->diverged = status == SN_GRADIENT_DIVERGED;
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_multistart_select_best(const SnModel *m, int nterm, SnLane *lane, SnMultistart *r,
                                       const SnMultistartStart *start, int count) {
  const int first = r->measured ? 0 : 1;  // the nominal was not measured: start 0 is, and stands for it
  if (count < 1) return;
  int best = first - 1;  // -1: the nominal as it is
  sn_real least = first ? start[0].cost : r->best_cost;
  for (int i = first; i < count; ++i)
    if (start[i].cost < least) {
      best = i;
      least = start[i].cost;
    }
  SN_SYNC(lane);
  SN_ONE(lane) {
    if (first) r->cost_before = start[0].cost;
    r->measured = 1;
    r->best_cost = least;
    if (best >= 0) r->gradient_norm = start[best].norm;
  }
  if (best >= 0) sn_lane_copy(lane, r->best_term, start[best].term, nterm);
  if (best >= first) sn_lane_copy(lane, r->nominal, start[best].ctrl, r->grid.nstep * m->nu);
  SN_SYNC(lane);
}
