#include "planner/rollout/linearize.h"

#include <math.h>

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"

void sn_sensor_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *C, sn_real *D,
                        sn_real *bar) {
  const size_t nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu, n = 2 * nv + na;
  sn_lane_zero(lane, bar, m->nsensordata);
  for (size_t r = 0; r < (size_t)m->nsensordata; ++r) {
    sn_adjoint_clear(m, a, lane);
    sn_motion_rest(m, w, a, lane);
    bar[r] = 1;
    sn_sensor_data_vjp(m, w, a, lane, bar);
    bar[r] = 0;
    sn_position_vjp(m, w, a, lane);
    if (C) memcpy(C + r * n, a->qpos_bar, nv * sizeof *C);
    if (C) memcpy(C + r * n + nv, a->qvel_bar, nv * sizeof *C);
    if (C) memcpy(C + r * n + 2 * nv, a->act_bar, na * sizeof *C);
    if (D) memcpy(D + r * nu, a->ctrl_bar, nu * sizeof *D);
  }
}

// Matrix k of n numbers each, NULL where none are wanted.
static sn_number *matrix(sn_number *x, size_t k, size_t n) { return x ? x + k * n : NULL; }

static void clear(sn_number *x, size_t n) {
  if (x) memset(x, 0, n * sizeof *x);
}

static bool is_finite(const sn_number *x, size_t n) {
  int bad = 0;
  for (size_t i = 0; x && i < n; ++i) bad |= !(x[i] - x[i] == 0);
  return !bad;
}

// The model of the cost of state t of rollout i, in its place.
static SnExpansion expansion_at(const SnModel *m, const SnLinearization *x, int i, int t) {
  const size_t n = (size_t)sn_tangent_size(m), nu = (size_t)m->nu, steps = (size_t)x->nstep;
  const size_t state = (size_t)i * (steps + 1) + (size_t)t, step = (size_t)i * steps + (size_t)t;
  const SnExpansion *all = x->cost;
  SnExpansion e = {.lx = all->lx + state * n, .lxx = all->lxx + state * n * n};
  if (t == x->nstep) return e;
  e.lu = all->lu + step * nu;
  e.lux = all->lux + step * nu * n;
  e.luu = all->luu + step * nu * nu;
  if (t == 0) return e;
  e.before_lu = all->before_lu + step * nu;
  e.before_luu = all->before_luu + step * nu;
  return e;
}

static bool expand_state(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b,
                         const SnExpansion *out, int t, SnLinearizeScratch at) {
  const size_t n = (size_t)sn_tangent_size(m), nu = (size_t)m->nu;
  SnExpandInput in = at.expand;
  in.in = sn_rollout_cost_input(m, cost, b->rollout, t);
  in.weight = t < b->rollout->nstep ? b->running : b->terminal;
  in.factor = t < b->rollout->nstep ? (sn_real)sn_grid_length(&b->rollout->grid, t) : 1;
  sn_cost_expand(cost, m, at.world, at.adjoint, lane, in, out);
  return is_finite(out->lx, n) && is_finite(out->lxx, n * n) && is_finite(out->lu, nu) && is_finite(out->lux, nu * n) &&
         is_finite(out->luu, nu * nu) && is_finite(out->before_lu, nu) && is_finite(out->before_luu, nu);
}

static void clear_expansion(const SnModel *m, const SnExpansion *out) {
  const size_t n = (size_t)sn_tangent_size(m), nu = (size_t)m->nu;
  clear(out->lx, n);
  clear(out->lxx, n * n);
  clear(out->lu, nu);
  clear(out->lux, nu * n);
  clear(out->luu, nu * nu);
  clear(out->before_lu, nu);
  clear(out->before_luu, nu);
}

void sn_linearize_end(const SnModel *m, const SnLinearization *x) {
  const size_t nu = (size_t)m->nu;
  for (int i = 0; x->cost && i < x->count; ++i)
    for (int t = 1; t < x->nstep; ++t) {
      const SnExpansion from = expansion_at(m, x, i, t), to = expansion_at(m, x, i, t - 1);
      for (size_t k = 0; k < nu; ++k) to.lu[k] += from.before_lu[k];
      for (size_t k = 0; k < nu; ++k) to.luu[k * nu + k] += from.before_luu[k];
    }
}

// Where the Jacobians of one step go; NULL where they are not wanted.
typedef struct Places {
  sn_number *A, *B, *C, *D;
  size_t n, nu, ns;
} Places;

// The Jacobians of a step whose world has run. Returns whether all numbers are finite.
static bool linearize_world(const SnModel *m, SnLane *lane, Places to, SnLinearizeScratch at) {
  const size_t n = to.n, nu = to.nu, ns = to.ns;
  if (to.A || to.B) sn_step_jacobian(m, at.world, at.adjoint, lane, to.A ? to.A : at.A, to.B ? to.B : at.B);
  if (to.C || to.D) sn_sensor_jacobian(m, at.world, at.adjoint, lane, to.C, to.D, at.bar);
  return is_finite(to.A, n * n) && is_finite(to.B, n * nu) && is_finite(to.C, ns * n) && is_finite(to.D, ns * nu);
}

bool sn_linearize_step(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b,
                       const SnLinearization *x, int i, int t, SnLinearizeScratch at) {
  const bool step = t < x->nstep, made = b->rollout->status == SN_ROLLOUT_DONE || t < b->rollout->t;
  const size_t n = (size_t)sn_tangent_size(m), nu = (size_t)m->nu, ns = (size_t)m->nsensordata;
  const size_t k = (size_t)i * (size_t)x->nstep + (size_t)t;
  const Places to = {.A = step ? matrix(x->A, k, n * n) : NULL,
                     .B = step ? matrix(x->B, k, n * nu) : NULL,
                     .C = step ? matrix(x->C, k, ns * n) : NULL,
                     .D = step ? matrix(x->D, k, ns * nu) : NULL,
                     .n = n,
                     .nu = nu,
                     .ns = ns};
  const SnExpansion expansion = x->cost ? expansion_at(m, x, i, t) : (SnExpansion){0};
  bool finite = true;
  if (made) {
    sn_rollout_vjp_recompute(m, lane, b, t, at.world);
    finite = linearize_world(m, lane, to, at);
    if (x->cost) finite = expand_state(m, cost, lane, b, &expansion, t, at) && finite;
    if (finite) return true;
  }
  clear(to.A, n * n);
  clear(to.B, n * nu);
  clear(to.C, ns * n);
  clear(to.D, ns * nu);
  if (x->cost) clear_expansion(m, &expansion);
  return finite;
}
