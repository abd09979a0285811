// Every loop here runs over independent numbers, and sums are those of adam.c: any number of lanes gives the bits of
// one. What all lanes decide by, a status, a cost, is read by each of them before one lane writes it.
//
// Moments that are kept move in time with the plan. Where the rows of a time grid are the knots, a row of k base steps
// has the gradient of all of them together. Its share for one base step is g / k. After a shift by some base steps a
// row has the sum of the shares of the base steps that it now lasts:
//
//   first moment   m_t = sum_s m / k,   second moment   v_t = (sum_s sqrt(v) / k)^2
//
// over base steps s with the moments m, v and the length k of the row that each was in; base steps from behind the
// horizon have none. Root mean squares add like that at most (Minkowski), so no step becomes longer than Adam would
// make it.
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

// Moves one moment (rows, nu) of the rows of a time grid by `left` base steps in place; `second`: of squares. A row's
// base steps come from rows that are not before it, so the rows in order do not meet. A lane has columns of its own.
SN_LOCAL void multistart_resample(const SnLane *lane, const SnMultistart *r, sn_real *moment, int nu, bool second) {
  const SnGrid *g = &r->time;
  const int steps = r->grid.nstep, horizon = sn_grid_begin(g, steps);
  (void)lane;
  if (r->left == 0) return;
  SN_FOR(k, nu) {
    for (int t = 0; t < steps; ++t) {
      const int from = sn_grid_begin(g, t) + r->left, to = sn_mini(from + sn_grid_length(g, t), horizon);
      sn_real sum = 0;
      for (int s = from; s < to; ++s) {
        const int row = sn_grid_step(g, s);
        const sn_real x = moment[row * nu + k];
        sum += (second ? sn_sqrt(x) : x) / (sn_real)sn_grid_length(g, row);
      }
      moment[t * nu + k] = second ? sum * sum : sum;
    }
  }
}

// Moves the moments of start s, which are kept, by what of the plan is gone.
SN_LOCAL void multistart_shift_moments(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                       int knots) {
  if (r->time.parts > 0 && r->grid.time.parts == 0) {
    multistart_resample(lane, r, s->moments.first, m->nu, false);
    multistart_resample(lane, r, s->moments.second, m->nu, true);
  } else {
    multistart_shift(lane, s->moments.first, knots, m->nu, r->left);
    multistart_shift(lane, s->moments.second, knots, m->nu, r->left);
  }
}

SN_FUNC void sn_multistart_init(const SnModel *m, SnLane *lane, const SnMultistart *r, int i, SnMultistartStart *s,
                                sn_real *scratch) {
  const int knots = sn_maxi(sn_multistart_knots(r->grid.nstep), r->grid.knots), n = knots * m->nu;
  const int candidate = i < r->nlisted ? r->listed[i] : i;
  sn_candidate_controls(m, &r->noise, candidate, lane, r->nominal, r->grid.nstep, scratch, s->base);
  sn_lane_zero(lane, s->offset, n);
  sn_lane_zero(lane, s->best, n);
  sn_lane_zero(lane, s->gradient, n);
  if (i == 0 && r->keep) {
    multistart_shift_moments(m, lane, r, s, knots);
  } else {
    sn_lane_zero(lane, s->moments.first, n);
    sn_lane_zero(lane, s->moments.second, n);
    SN_ONE(lane) s->moments.power1 = s->moments.power2 = 1;
  }
  SN_ONE(lane) {
    s->cost = s->best_cost = (sn_real)INFINITY;
    s->norm = (sn_real)NAN;
    s->diverged = s->ahead = 0;
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

SN_FUNC void sn_multistart_move(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s) {
  if (s->ahead) return;
  if (s->diverged) {
    multistart_step_back(m, lane, r, s);
    return;
  }
  sn_adam_clip(m, &r->grid, &r->rule, lane, s->gradient);
  sn_adam_step(m, &r->grid, &r->rule, lane, s->gradient, &s->moments, s->offset);
}

SN_FUNC void sn_multistart_project(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                   SnPart knots) {
  if (!s->ahead && !s->diverged) sn_adam_project(m, &r->grid, lane, s->base, knots, s->offset);
}

SN_FUNC void sn_multistart_step(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s) {
  const SnPart knots = {0, r->grid.knots};
  sn_multistart_move(m, lane, r, s);
  sn_multistart_project(m, lane, r, s, knots);
}

SN_FUNC void sn_multistart_rows(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                SnPart rows) {
  sn_adam_controls(m, &r->grid, lane, s->base, s->offset, rows, s->ctrl);
}

SN_FUNC void sn_multistart_controls(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s) {
  const SnPart rows = {0, r->grid.nstep};
  sn_multistart_rows(m, lane, r, s, rows);
}

SN_FUNC void sn_multistart_gradient(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                    SnPart knots) {
  sn_adam_gradient(m, &r->grid, lane, s->base, s->offset, s->ctrl_bar, knots, s->gradient);
}

SN_FUNC void sn_multistart_evaluate(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                    int status, sn_real cost) {
  const SnPart knots = {0, r->grid.knots};
  if (status == SN_GRADIENT_DONE) sn_multistart_gradient(m, lane, r, s, knots);
  sn_multistart_take(m, lane, r, s, status, cost);
}

SN_FUNC void sn_multistart_take(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s, int status,
                                sn_real cost) {
  const int n = r->grid.knots * m->nu;
  const bool better = cost < s->best_cost;
  const bool rolled = status == SN_GRADIENT_ROLLED;
  sn_real norm = rolled ? s->norm : (sn_real)NAN;
  if (status == SN_GRADIENT_DONE) norm = sn_norm(lane, s->gradient, n);
  if (!multistart_finite(norm)) norm = (sn_real)NAN;
  if (rolled || norm != norm) sn_lane_zero(lane, s->gradient, n);
  if (better) sn_lane_copy(lane, s->best, s->offset, n);
  SN_SYNC(lane);
  SN_ONE(lane) {
    if (better) s->best_cost = cost;
    s->cost = cost;
    s->norm = norm;
    s->diverged = status == SN_GRADIENT_DIVERGED;
    s->ahead = 0;
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
    if (best >= first) r->best_start = best;
    if (best >= 0) r->gradient_norm = start[best].norm;
  }
  if (best >= 0) sn_lane_copy(lane, r->best_term, start[best].term, nterm);
  if (best >= first) sn_lane_copy(lane, r->nominal, start[best].ctrl, r->grid.nstep * m->nu);
  SN_SYNC(lane);
}

SN_FUNC void sn_multistart_advance(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *start) {
  if (!r->next) return;
  sn_multistart_step(m, lane, r, start);
  SN_SYNC(lane);  // of a start that diverged other lanes may still read it
  SN_ONE(lane) start->ahead = 1;
  sn_multistart_controls(m, lane, r, start);
  sn_lane_copy(lane, r->next, r->best_start == 0 ? start->ctrl : r->nominal, r->grid.nstep * m->nu);
  SN_SYNC(lane);
}
