// One state of a rollout on the way back: its world recomputed, and the derivative of the cost taken through its step.
//
// The cost is sum_t c_t(x_t, u_t, g_t), durations of steps in c_t, with x_{t+1} = step(x_t, u_t), g_t the targets. With
// p_t = d cost / d x_t,
//
//   p_H = dc_H/dx,   p_t = A_t' p_{t+1} + dc_t/dx,   d cost / du_t = B_t' p_{t+1} + dc_t/du,   A, B = d step / d(x, u).
//
// What the caller makes of the trajectory has the bars g_t of x_t, s_t of the sensors y_t(x_t, u_t) there and v_t of
// u_t. They are added to those of c_t, which a factor multiplies: dc_t/dx + g_t + (dy_t/dx)' s_t, and dc_t/du + v_t +
// (dy_t/du)' s_t. At x_H the controls u_{H-1} still stand, so (dy_H/du)' s_H belongs to du_{H-1}: it waits in its row.
// So does the derivative of c_t with respect to u_{t-1}, which rates of controls have.
//
// Only p_{t+1} ties the steps together. sn_rollout_vjp_sweep applies A_t' and B_t' as the adjoint of the step, and c_t
// shares its sweep over the links; sn_rollout_vjp_jacobian forms A_t, B_t and dc_t ahead, for all t in parallel.
#include "planner/rollout/rollout_vjp.h"

#include "physics/constraint/constraint.h"
#include "physics/sensor/sensor.h"
#include "physics/step/step.h"

SN_FUNC void sn_rollout_vjp_begin(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b) {
  const sn_real share = sn_rollout_share(b->rollout), factor = b->bar.on ? b->bar.cost : SN_R(1.0);
  SN_FOR(i, cost->nterm) {
    b->running[i] = factor * (share * b->rollout->running[i]);
    b->terminal[i] = factor * b->rollout->terminal[i];
  }
  sn_lane_zero(lane, b->state_bar, sn_state_bar_size(m));
  SN_SYNC(lane);
}

// The solver starts at the acceleration that the rollout found, or that of the same world with CFD before. At the last
// state the controls of the last step still stand.
SN_FUNC void sn_rollout_vjp_set_state(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnWorld *w) {
  const SnRollout *rollout = b->rollout;
  const size_t row = (size_t)t, step = (size_t)(t < rollout->nstep ? t : t - 1), nv = (size_t)m->nv;
  const SnRolloutState state = {rollout->out_time[t],
                                rollout->out_qpos + row * (size_t)m->nq,
                                rollout->out_qvel + row * nv,
                                rollout->out_act + row * (size_t)m->na,
                                rollout->ctrl + step * (size_t)m->nu,
                                (b->cfd_start ? b->cfd_qacc : rollout->out_qacc) + row * nv,
                                sn_rollout_duration(m, rollout, t),
                                rollout->out_past ? rollout->out_past + row * (size_t)sn_past_size(m) : NULL};
  sn_rollout_set_state(m, w, lane, rollout, &state, &b->cfd);
  SN_MARK(lane, OTHER);
}

SN_FUNC void sn_rollout_vjp_finish(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnWorld *w) {
  sn_solve_finish(m, w, lane);
  SN_MARK(lane, SOLVER);
  if (!b->cfd.on) return;
  sn_lane_copy(lane, b->cfd_qacc + (size_t)t * (size_t)m->nv, w->qacc, m->nv);
  SN_SYNC(lane);
}

SN_FUNC void sn_rollout_vjp_recompute(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnWorld *w) {
  sn_rollout_vjp_set_state(m, lane, b, t, w);
  sn_forward(m, w, lane);
  sn_rollout_vjp_finish(m, lane, b, t, w);
}

// Adds row t of n numbers; `bar` may be NULL. Ends with no sync.
SN_LOCAL void vjp_add(SnLane *lane, sn_real *SN_RESTRICT to, const sn_real *SN_RESTRICT bar, int t, int n) {
  (void)lane;
  if (bar) SN_FOR(i, n) to[i] += bar[(size_t)t * (size_t)n + (size_t)i];
}

// Adds the bars of the samples of a buffer. Ends with no sync.
SN_LOCAL void vjp_add_buffer(sn_real *to, const sn_real *bar, int n, int dim) {
  for (int k = 2 + n; k < sn_history_size(n, dim); ++k) to[k] += bar[k];
}

// Adds the bars of all samples and rests of the past; other numbers of it have no derivative.
SN_LOCAL void vjp_add_past(const SnModel *m, SnLane *lane, sn_real *to, const sn_real *bar) {
  (void)lane;
  SN_FOR(i, m->nactuator) {
    const int adr = m->actuator_historyadr[i];
    if (adr >= 0) vjp_add_buffer(to + adr, bar + adr, m->actuator_history[2 * i], m->actuator_ctrlnum[i]);
  }
  SN_FOR(i, m->nsensor) {
    const int adr = m->sensor_historyadr[i];
    if (adr >= 0) vjp_add_buffer(to + adr, bar + adr, m->sensor_history[2 * i], m->sensor_dim[i]);
  }
  SN_FOR(i, m->nplastic) to[m->nhistory + i] += bar[m->nhistory + i];
}

// Adds what the caller makes of state t to the adjoint.
SN_LOCAL void vjp_trajectory(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnRolloutVjpScratch at) {
  const SnRolloutBar *bar = &b->bar;
  SnAdjoint *const a = at.adjoint;
  vjp_add(lane, a->qpos_bar, bar->qpos, t, m->nv);
  vjp_add(lane, a->qvel_bar, bar->qvel, t, m->nv);
  vjp_add(lane, a->act_bar, bar->act, t, m->na);
  if (bar->past) vjp_add_past(m, lane, a->past_bar, bar->past + (size_t)t * (size_t)sn_past_size(m));
  if (t < b->rollout->nstep) vjp_add(lane, a->ctrl_bar, bar->ctrl, t, m->nu);
  SN_SYNC(lane);
  if (bar->sensordata) sn_sensor_data_vjp(m, at.world, a, lane, bar->sensordata + (size_t)t * (size_t)m->nsensordata);
}

// Row t - 1 of the derivative with respect to controls, where the cost of state t has a part in it; else NULL.
SN_LOCAL sn_real *vjp_row_before(const SnModel *m, const SnCost *cost, const SnRolloutVjp *b, int t) {
  const bool part = cost->uses_rate && t > 0 && t < b->rollout->nstep;
  return part ? b->ctrl_bar + (size_t)(t - 1) * (size_t)m->nu : NULL;
}

// Adds the derivative of the cost of state t to the adjoint, between the halves of a step's adjoint, and carries all of
// it to the state.
SN_LOCAL void vjp_cost(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                       SnRolloutVjpScratch at, sn_real *target_bar, sn_real *before_bar) {
  const SnRollout *rollout = b->rollout;
  if (target_bar) sn_lane_zero(lane, target_bar, cost->ntarget);
  if (before_bar) sn_lane_zero(lane, before_bar, m->nu);
  SN_SYNC(lane);
  const bool end = t == rollout->nstep;
  const sn_real factor = end ? SN_R(1.0) : (sn_real)sn_grid_length(&rollout->grid, t);
  const SnCostVjp v = {sn_rollout_cost_input(m, cost, rollout, t),
                       end ? b->terminal : b->running,
                       factor,
                       at.res,
                       target_bar,
                       before_bar};
  sn_cost_vjp(cost, m, at.world, at.adjoint, lane, v);
  if (b->bar.on) vjp_trajectory(m, lane, b, t, at);
  SN_MARK(lane, COST_VJP);
  sn_position_vjp(m, at.world, at.adjoint, lane);
}

// What the adjoint has come to, with respect to the state.
SN_LOCAL void vjp_state_bar(const SnModel *m, SnLane *lane, const SnAdjoint *a, sn_real *state_bar) {
  sn_lane_copy(lane, state_bar, a->qpos_bar, m->nv);
  sn_lane_copy(lane, state_bar + m->nv, a->qvel_bar, m->nv);
  sn_lane_copy(lane, state_bar + 2 * m->nv, a->act_bar, m->na);
}

// True where the row of the controls of step t holds what the state after it has added to them.
SN_LOCAL bool vjp_waits(const SnCost *cost, const SnRolloutVjp *b, int t) {
  const int last = b->rollout->nstep - 1;
  return t == last ? b->bar.on != 0 : t < last && cost->uses_rate;
}

// Row t of the derivative with respect to controls; the last state has none of its own. Ends with no sync.
SN_LOCAL void vjp_ctrl_bar(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                           const sn_real *ctrl_bar) {
  const bool end = t == b->rollout->nstep;
  sn_real *row = b->ctrl_bar + (size_t)(end ? t - 1 : t) * (size_t)m->nu;
  if (end && !b->bar.on) return;
  if (vjp_waits(cost, b, t))
    vjp_add(lane, row, ctrl_bar, 0, m->nu);
  else
    sn_lane_copy(lane, row, ctrl_bar, m->nu);
}

SN_FUNC void sn_rollout_vjp_jacobian(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                                     SnRolloutVjpScratch at, const SnRolloutVjpState *state) {
  SnWorld *const w = at.world;
  SnAdjoint *const a = at.adjoint;
  if (t < b->rollout->nstep) sn_step_jacobian(m, w, a, lane, state->A, state->B);
  sn_adjoint_clear(m, a, lane);
  sn_motion_rest(m, w, a, lane);
  vjp_cost(m, cost, lane, b, t, at, state->target_bar, cost->uses_rate ? state->before_bar : NULL);
  vjp_state_bar(m, lane, a, state->state_bar);
  sn_lane_copy(lane, state->ctrl_bar, a->ctrl_bar, m->nu);
  SN_SYNC(lane);
}

// How many of x[0..n) are not finite, among those of this lane.
SN_LOCAL int vjp_lost(SnLane *lane, const sn_real *x, int n) {
  (void)lane;
  sn_real sum = 0;
  SN_FOR(i, n) sum += 0 * x[i];
  return sum == 0 ? 0 : 1;
}

// The end of going back through state t: its targets, which are written in order, so that none is after a failure.
SN_LOCAL bool vjp_close(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                        const sn_real *target_bar) {
  if (b->target_bar) sn_lane_copy(lane, b->target_bar + (size_t)t * (size_t)cost->ntarget, target_bar, cost->ntarget);
  int lost = vjp_lost(lane, b->state_bar, sn_state_bar_size(m));
  if (t < b->rollout->nstep) lost += vjp_lost(lane, b->ctrl_bar + (size_t)t * (size_t)m->nu, m->nu);
  return sn_count(lane, lost) == 0;
}

// Begins at what the derivative has come to, with respect to the state and its controls, through a chosen step.
SN_LOCAL void vjp_chosen(const SnModel *m, SnLane *lane, SnAdjoint *a, const SnRolloutVjpState *state) {
  sn_lane_copy(lane, a->qpos_bar, state->state_bar, m->nv);
  sn_lane_copy(lane, a->qvel_bar, state->state_bar + m->nv, m->nv);
  sn_lane_copy(lane, a->act_bar, state->state_bar + 2 * m->nv, m->na);
  sn_lane_copy(lane, a->ctrl_bar, state->ctrl_bar, m->nu);
  SN_SYNC(lane);
}

SN_FUNC bool sn_rollout_vjp_sweep(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                                  SnRolloutVjpScratch at, const SnRolloutVjpState *state) {
  SnWorld *const w = at.world;
  SnAdjoint *const a = at.adjoint;
  const bool step = t < b->rollout->nstep, chosen = b->rollout->chosen != 0;
  sn_adjoint_clear(m, a, lane);
  if (step && chosen) vjp_chosen(m, lane, a, state);
  if (step && !chosen) {
    sn_lane_copy(lane, a->qpos_next_bar, b->state_bar, m->nv);
    sn_lane_copy(lane, a->qvel_next_bar, b->state_bar + m->nv, m->nv);
    sn_lane_copy(lane, a->act_next_bar, b->state_bar + 2 * m->nv, m->na);
    sn_lane_copy(lane, a->past_next_bar, b->state_bar + sn_tangent_size(m), sn_past_size(m));
    SN_SYNC(lane);
    SN_MARK(lane, OTHER);
    sn_step_vjp(m, w, a, lane);
  } else {
    sn_motion_rest(m, w, a, lane);
  }
  vjp_cost(m, cost, lane, b, t, at, state->target_bar, vjp_row_before(m, cost, b, t));
  vjp_state_bar(m, lane, a, b->state_bar);
  sn_lane_copy(lane, b->state_bar + sn_tangent_size(m), a->past_bar, sn_past_size(m));
  vjp_ctrl_bar(m, cost, lane, b, t, a->ctrl_bar);
  SN_SYNC(lane);
  return vjp_close(m, cost, lane, b, t, state->target_bar);
}

// y = c + J' x, J (n, cols). Ends with no sync.
SN_LOCAL void vjp_multiply(SnLane *lane, sn_real *SN_RESTRICT y, const sn_real *SN_RESTRICT c,
                           const sn_real *SN_RESTRICT J, const sn_real *SN_RESTRICT x, int n, int cols) {
  (void)lane;
  SN_FOR(j, cols) {
    sn_real sum = c[j];
    for (int i = 0; i < n; ++i) sum += J[i * cols + j] * x[i];
    y[j] = sum;
  }
}

SN_FUNC bool sn_rollout_vjp_product(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                                    const SnRolloutVjpState *state) {
  const int n = sn_tangent_size(m), rows = t < b->rollout->nstep ? n : 0;  // no step from the last state
  sn_real *row = b->ctrl_bar + (size_t)t * (size_t)m->nu, *row_before = vjp_row_before(m, cost, b, t);
  if (vjp_waits(cost, b, t)) vjp_add(lane, state->ctrl_bar, row, 0, m->nu);
  SN_SYNC(lane);
  vjp_multiply(lane, b->scratch, state->state_bar, state->A, b->state_bar, rows, n);
  if (rows > 0)
    vjp_multiply(lane, row, state->ctrl_bar, state->B, b->state_bar, n, m->nu);
  else
    vjp_ctrl_bar(m, cost, lane, b, t, state->ctrl_bar);
  SN_SYNC(lane);
  sn_lane_copy(lane, b->state_bar, b->scratch, n);
  if (row_before) sn_lane_copy(lane, row_before, state->before_bar, m->nu);
  SN_SYNC(lane);
  return vjp_close(m, cost, lane, b, t, state->target_bar);
}

SN_FUNC void sn_rollout_vjp_collect(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                                    const SnRolloutVjpState *state) {
  const int n = sn_tangent_size(m), nstep = b->rollout->nstep;
  const SnRolloutVjpState *next = state + 1;
  if (t < nstep) {
    if (vjp_waits(cost, b, t))
      vjp_add(lane, state->ctrl_bar, t == nstep - 1 ? next->ctrl_bar : next->before_bar, 0, m->nu);
    SN_SYNC(lane);
    vjp_multiply(lane, b->ctrl_bar + (size_t)t * (size_t)m->nu, state->ctrl_bar, state->B, next->state_bar, n, m->nu);
  }
  if (t == 0) sn_lane_copy(lane, b->state_bar, state->state_bar, n);
  if (b->target_bar)
    sn_lane_copy(lane, b->target_bar + (size_t)t * (size_t)cost->ntarget, state->target_bar, cost->ntarget);
  SN_SYNC(lane);
}

SN_FUNC bool sn_rollout_vjp_finite(const SnModel *m, SnLane *lane, const SnRolloutVjp *b) {
  const int lost =
      vjp_lost(lane, b->state_bar, sn_state_bar_size(m)) + vjp_lost(lane, b->ctrl_bar, b->rollout->nstep * m->nu);
  return sn_count(lane, lost) == 0;
}
