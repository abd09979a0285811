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
  sn_number sum = 0;
  for (size_t i = 0; x && i < n; ++i) sum += 0 * x[i];
  return sum == 0;
}

bool sn_linearize_step(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, const SnLinearization *x, int i, int t,
                       SnLinearizeScratch at) {
  const size_t n = (size_t)sn_tangent_size(m), nu = (size_t)m->nu, ns = (size_t)m->nsensordata;
  const size_t k = (size_t)i * (size_t)x->nstep + (size_t)t;
  sn_number *A = matrix(x->A, k, n * n), *B = matrix(x->B, k, n * nu);
  sn_number *C = matrix(x->C, k, ns * n), *D = matrix(x->D, k, ns * nu);
  bool finite = true;
  if (t < b->rollout->t) {
    sn_rollout_vjp_recompute(m, lane, b, t, at.world);
    if (A || B) sn_step_jacobian(m, at.world, at.adjoint, lane, A ? A : at.A, B ? B : at.B);
    if (C || D) sn_sensor_jacobian(m, at.world, at.adjoint, lane, C, D, at.bar);
    finite = is_finite(A, n * n) && is_finite(B, n * nu) && is_finite(C, ns * n) && is_finite(D, ns * nu);
    if (finite) return true;
  }
  clear(A, n * n);
  clear(B, n * nu);
  clear(C, ns * n);
  clear(D, ns * nu);
  return finite;
}
