#include "planner/rollout/linearize.h"

#include <math.h>

#include "physics/sensor/sensor.h"

static void clear(sn_number *x, size_t n) {
  if (x) memset(x, 0, n * sizeof *x);
}

// The dof whose position or velocity sensor i gives as it is; -1: there is none.
static int plain_sensor(const SnModel *m, int i) {
  const int type = m->sensor_type[i];
  const bool plain = (type == SN_SENS_JOINTPOS || type == SN_SENS_JOINTVEL) && !(m->sensor_cutoff[i] > 0);
  return plain ? m->jnt_dofadr[m->sensor_objid[i]] : -1;
}

// Row r from the adjoint of number r of sensordata.
static void sensor_row(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnSensorJacobian *x, size_t r) {
  const size_t nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu, n = 2 * nv + na;
  sn_adjoint_clear(m, a, lane);
  sn_motion_rest(m, w, a, lane);
  x->bar[r] = 1;
  sn_sensor_data_vjp(m, w, a, lane, x->bar);
  x->bar[r] = 0;
  sn_position_vjp(m, w, a, lane);
  if (x->C) memcpy(x->C + r * n, a->qpos_bar, nv * sizeof *x->C);
  if (x->C) memcpy(x->C + r * n + nv, a->qvel_bar, nv * sizeof *x->C);
  if (x->C) memcpy(x->C + r * n + 2 * nv, a->act_bar, na * sizeof *x->C);
  if (x->D) memcpy(x->D + r * nu, a->ctrl_bar, nu * sizeof *x->D);
  if (!x->F) return;
  sn_parameter_row(x->by, 0, x->F + r * (size_t)sn_model_tangents_count(x->by->tangents));
  sn_parameter_rows_clear(x->by);
}

void sn_sensor_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnSensorJacobian *x) {
  const size_t ns = (size_t)m->nsensordata, n = (size_t)sn_tangent_size(m), nu = (size_t)m->nu;
  sn_lane_zero(lane, x->bar, m->nsensordata);
  clear(x->C, ns * n);
  clear(x->D, ns * nu);
  if (x->F) clear(x->F, ns * (size_t)sn_model_tangents_count(x->by->tangents));
  if (x->F) sn_parameter_rows_begin(x->by, a);
  for (int i = 0; i < m->nsensor; ++i) {
    const int dof = plain_sensor(m, i), velocity = m->sensor_type[i] == SN_SENS_JOINTVEL ? m->nv : 0;
    for (int k = 0; k < m->sensor_dim[i]; ++k) {
      const size_t r = (size_t)m->sensor_adr[i] + (size_t)k;
      if (x->sensors && x->sensors[r] == 0) continue;
      if (dof < 0)
        sensor_row(m, w, a, lane, x, r);
      else if (x->C)
        x->C[r * n + (size_t)(dof + velocity)] = 1;
    }
  }
  if (x->F) sn_parameter_rows_end(a);
}

// Matrix k of n numbers each, NULL where none are wanted.
static sn_number *matrix(sn_number *x, size_t k, size_t n) { return x ? x + k * n : NULL; }

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
  sn_number *A, *B, *C, *D, *E, *F;
  size_t n, nu, ns, np;
  const sn_number *sensors;
} Places;

static Places places(const SnModel *m, const SnLinearization *x, int i, int t, bool step) {
  const size_t n = (size_t)sn_tangent_size(m), nu = (size_t)m->nu, ns = (size_t)m->nsensordata;
  const size_t np = x->by ? (size_t)sn_model_tangents_count(x->by->tangents) : 0;
  const size_t k = (size_t)i * (size_t)x->nstep + (size_t)t;
  const bool room = t < x->nstep;
  step = step && room;
  return (Places){.A = step ? matrix(x->A, k, n * n) : NULL,
                  .B = step ? matrix(x->B, k, n * nu) : NULL,
                  .C = room ? matrix(x->C, k, ns * n) : NULL,
                  .D = room ? matrix(x->D, k, ns * nu) : NULL,
                  .E = step ? matrix(x->E, k, n * np) : NULL,
                  .F = room ? matrix(x->F, k, ns * np) : NULL,
                  .n = n,
                  .nu = nu,
                  .ns = ns,
                  .np = np,
                  .sensors = x->sensors};
}

// The Jacobians of a step whose world has run. Returns whether all numbers are finite.
static bool linearize_world(const SnModel *m, SnLane *lane, Places to, SnLinearizeScratch at) {
  const size_t n = to.n, nu = to.nu, ns = to.ns, np = to.np;
  sn_number *const A = to.A ? to.A : at.A, *const B = to.B ? to.B : at.B;
  const SnSensorJacobian sensors = {to.C, to.D, to.F, at.by, to.sensors, at.bar};
  if (to.E)
    sn_step_sensitivity(m, at.world, at.adjoint, lane, &(SnStepJacobian){A, B, at.by, to.E});
  else if (to.A || to.B)
    sn_step_jacobian(m, at.world, at.adjoint, lane, A, B);
  if (to.C || to.D || to.F) sn_sensor_jacobian(m, at.world, at.adjoint, lane, &sensors);
  return is_finite(to.A, n * n) && is_finite(to.B, n * nu) && is_finite(to.C, ns * n) && is_finite(to.D, ns * nu) &&
         is_finite(to.E, n * np) && is_finite(to.F, ns * np);
}

static void clear_places(Places to) {
  clear(to.A, to.n * to.n);
  clear(to.B, to.n * to.nu);
  clear(to.C, to.ns * to.n);
  clear(to.D, to.ns * to.nu);
  clear(to.E, to.n * to.np);
  clear(to.F, to.ns * to.np);
}

bool sn_linearize_step(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b,
                       const SnLinearization *x, int i, int t, SnLinearizeScratch at) {
  const int state = x->first + t, end = b->rollout->nstep;
  const bool made = b->rollout->status == SN_ROLLOUT_DONE || state < b->rollout->t;
  const Places to = places(m, x, i, t, state < end);
  const SnExpansion expansion = x->cost ? expansion_at(m, x, i, t) : (SnExpansion){0};
  bool finite = true;
  if (made) {
    sn_rollout_vjp_recompute(m, lane, b, state, at.world);
    finite = linearize_world(m, lane, to, at);
    if (x->cost) finite = expand_state(m, cost, lane, b, &expansion, state, at) && finite;
    if (finite) return true;
  }
  clear_places(to);
  if (x->cost) clear_expansion(m, &expansion);
  return finite;
}
