// The steps of a rollout. In each: the stages up to the acceleration at x[t] under u[t], the cost there, then the
// integration, so that every term sees one consistent state. At x[H] the stages run once more for the terminal cost.
//
// On a time grid step t lasts k_t base steps h: it is MuJoCo's with opt.timestep = k_t h, and its cost counts k_t times
// in the mean, sum_t k_t c_t / sum_t k_t.
#include "planner/rollout/rollout.h"

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "planner/base/control_range.h"

// Copies n numbers; `from` NULL: zero. Ends with no sync.
SN_LOCAL void rollout_fill(SnLane *lane, sn_real *SN_RESTRICT to, const sn_real *SN_RESTRICT from, int n) {
  (void)lane;
  SN_FOR(i, n) to[i] = from ? from[i] : 0;
}

// Poses of mocap bodies: the rollout's, else those that the model gives them.
SN_LOCAL void rollout_mocap(const SnModel *m, SnWorld *w, SnLane *lane, const SnRollout *rollout) {
  (void)lane;
  SN_FOR(i, m->nmocap > 0 ? m->nbody : 0) {
    const int k = m->body_mocapid[i];
    if (k < 0) continue;
    const sn_real *pos = rollout->mocap_pos ? rollout->mocap_pos + 3 * k : m->body_pos + 3 * i;
    const sn_real *quat = rollout->mocap_quat ? rollout->mocap_quat + 4 * k : m->body_quat + 4 * i;
    for (int j = 0; j < 3; ++j) w->mocap_pos[3 * k + j] = pos[j];
    for (int j = 0; j < 4; ++j) w->mocap_quat[4 * k + j] = quat[j];
  }
}

SN_FUNC void sn_rollout_set_state(const SnModel *m, SnWorld *w, SnLane *lane, const SnRollout *rollout,
                                  const SnRolloutState *state, const SnCfd *cfd) {
  sn_lane_copy(lane, w->qpos, state->qpos, m->nq);
  sn_lane_copy(lane, w->qvel, state->qvel, m->nv);
  sn_lane_copy(lane, w->act, state->act, m->na);
  rollout_fill(lane, w->ctrl, state->ctrl, m->nu);
  rollout_fill(lane, w->qacc_warmstart, state->qacc_warmstart, m->nv);
  if (state->past)
    sn_lane_copy(lane, w->past, state->past, sn_past_size(m));
  else
    sn_past_reset(m, lane, w->past);
  rollout_mocap(m, w, lane, rollout);
  SN_ONE(lane) {
    w->time[0] = state->time;
    w->step[0] = state->step;
    w->cfd[0] = *cfd;
    *w->warn = 0;
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_rollout_set_initial(const SnModel *m, SnWorld *w, SnLane *lane, const SnRollout *rollout) {
  const SnRolloutState initial = {
      rollout->time, rollout->qpos, rollout->qvel, rollout->act, NULL, rollout->qacc_warmstart, 0, rollout->past};
  sn_rollout_set_state(m, w, lane, rollout, &initial, &rollout->cfd);
}

SN_FUNC void sn_rollout_begin(const SnModel *m, const SnCost *cost, SnWorld *w, SnLane *lane, SnRollout *rollout) {
  SN_FOR(i, cost->nterm) rollout->sum[i] = 0;
  SN_ONE(lane) {
    rollout->total = 0;
    rollout->t = 0;
    rollout->status = SN_ROLLOUT_UNDER_WAY;
    rollout->warn = 0;
  }
  sn_rollout_set_initial(m, w, lane, rollout);
}

// True on all lanes when one of them says so.
SN_LOCAL bool rollout_any_lane(SnLane *lane, bool mine) { return sn_count(lane, mine ? 1 : 0) > 0; }

// Whether the state has left all bounds.
SN_LOCAL bool rollout_diverged(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real max_velocity) {
  bool bad = (*w->warn & SN_WARN_BAD_STATE) != 0;
  SN_FOR(i, m->nq) bad |= sn_is_bad(w->qpos[i]);
  SN_FOR(i, m->nv) bad |= !(sn_abs(w->qvel[i]) <= max_velocity);
  SN_FOR(i, m->na) bad |= sn_is_bad(w->act[i]);
  return rollout_any_lane(lane, bad);
}

SN_LOCAL bool rollout_explodes(const SnModel *m, const SnWorld *w, SnLane *lane) {
  bool bad = false;
  SN_FOR(i, m->nv) bad |= sn_is_bad(w->qacc[i]);
  return rollout_any_lane(lane, bad);
}

SN_FUNC void sn_rollout_measure(const SnModel *m, const SnCost *cost, const SnWorld *w, SnLane *lane, SnCostInput in,
                                int n, const SnRolloutScratch *scratch) {
  sn_cost_residual(cost, m, w, lane, in, 0, n, scratch->res);
  sn_cost_norm(cost, lane, scratch->res, 0, n, scratch->value);
}

// Row t of the controls that were applied.
SN_LOCAL const sn_real *rollout_applied(const SnModel *m, const SnRollout *rollout, int t) {
  return (rollout->feedback ? rollout->feedback->ctrl : rollout->ctrl) + (size_t)t * (size_t)m->nu;
}

// In the last state the controls of the last step still stand: rates are 0.
SN_FUNC SnCostInput sn_rollout_cost_input(const SnModel *m, const SnCost *cost, const SnRollout *rollout, int t) {
  const sn_real *row = t > 0 ? rollout_applied(m, rollout, t - 1) : rollout->before;
  const int since = t > 0 ? sn_grid_length(&rollout->grid, t - 1) : 1;
  const SnCostInput in = {rollout->target + (size_t)t * (size_t)cost->ntarget, row, (sn_real)since * m->opt.timestep};
  return in;
}

// Adds the cost at state t, whose stages have run, to the sums.
SN_LOCAL void rollout_add_cost(const SnModel *m, const SnCost *cost, const SnWorld *w, SnLane *lane, SnRollout *rollout,
                               int t, const SnRolloutScratch *scratch) {
  const bool end = t == rollout->nstep;
  const sn_real *weight = end ? rollout->terminal : rollout->running, *value = scratch->value;
  const sn_real share = end ? SN_R(1.0) : (sn_real)sn_grid_length(&rollout->grid, t) * sn_rollout_share(rollout);
  sn_rollout_measure(m, cost, w, lane, sn_rollout_cost_input(m, cost, rollout, t), cost->nterm, scratch);
  SN_FOR(i, cost->nterm) rollout->sum[i] += share * sn_weighted(weight[i], value[i]);
  if (!rollout->out_cost) return;
  SN_ONE(lane) {
    sn_real sum = 0;
    for (int i = 0; i < cost->nterm; ++i) sum += sn_weighted(weight[i], value[i]);
    rollout->out_cost[t] = sum;
  }
}

// Row t of what is kept on the way. Its sync also ends rollout_add_cost.
SN_LOCAL void rollout_record(const SnModel *m, const SnWorld *w, SnLane *lane, const SnRollout *rollout, int t) {
  const size_t row = (size_t)t;
  if (rollout->out_qpos) sn_lane_copy(lane, rollout->out_qpos + row * (size_t)m->nq, w->qpos, m->nq);
  if (rollout->out_qvel) sn_lane_copy(lane, rollout->out_qvel + row * (size_t)m->nv, w->qvel, m->nv);
  if (rollout->out_act) sn_lane_copy(lane, rollout->out_act + row * (size_t)m->na, w->act, m->na);
  if (rollout->out_past)
    sn_lane_copy(lane, rollout->out_past + row * (size_t)sn_past_size(m), w->past, sn_past_size(m));
  if (rollout->out_qacc) sn_lane_copy(lane, rollout->out_qacc + row * (size_t)m->nv, w->qacc, m->nv);
  if (rollout->out_time) SN_ONE(lane) rollout->out_time[row] = w->time[0];
  if (rollout->out_sensordata)
    sn_sensor_data(m, w, lane, rollout->out_sensordata + row * (size_t)m->nsensordata);
  else
    SN_SYNC(lane);
}

// Notes what a step has come to. Every lane knows it already.
SN_LOCAL SnRolloutStatus rollout_note(const SnWorld *w, SnLane *lane, SnRollout *rollout, int t, SnRolloutStatus status,
                                      sn_real total) {
  SN_ONE(lane) {
    rollout->t = t;
    rollout->status = status;
    rollout->total = total;
    rollout->warn |= *w->warn;
  }
  SN_SYNC(lane);
  return status;
}

SN_LOCAL SnRolloutStatus rollout_fail(const SnWorld *w, SnLane *lane, SnRollout *rollout, int t) {
  return rollout_note(w, lane, rollout, t, SN_ROLLOUT_DIVERGED, (sn_real)INFINITY);
}

SN_LOCAL SnRolloutStatus rollout_end(const SnCost *cost, const SnWorld *w, SnLane *lane, SnRollout *rollout, int t) {
  sn_real total = 0;
  for (int i = 0; i < cost->nterm; ++i) total += rollout->sum[i];
  const bool finite = total - total == 0;
  return finite ? rollout_note(w, lane, rollout, t, SN_ROLLOUT_DONE, total) : rollout_fail(w, lane, rollout, t);
}

// Controls of step t, with feedback where there is one.
SN_LOCAL void rollout_control(const SnModel *m, SnWorld *w, SnLane *lane, const SnRollout *rollout, int t) {
  const SnFeedback *f = rollout->feedback;
  const size_t row = (size_t)t, nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu, n = 2 * nv + na;
  const sn_real *ctrl = rollout->ctrl + row * nu;
  if (!f) {
    sn_lane_copy(lane, w->ctrl, ctrl, m->nu);
    return;
  }
  sn_difference_pos(m, lane, f->qpos + row * (size_t)m->nq, w->qpos, f->difference);
  SN_FOR(i, m->nv) f->difference[m->nv + i] = w->qvel[i] - f->qvel[row * nv + (size_t)i];
  SN_FOR(i, m->na) f->difference[2 * m->nv + i] = w->act[i] - f->act[row * na + (size_t)i];
  SN_SYNC(lane);
  SN_FOR(i, m->nu) {
    const sn_real *gain = f->gain + (row * nu + (size_t)i) * n;
    sn_real u = ctrl[i];
    for (size_t k = 0; k < n; ++k) u += gain[k] * f->difference[k];
    f->ctrl[row * nu + (size_t)i] = w->ctrl[i] = sn_ctrl_clip(m, i, u);
  }
}

SN_FUNC SnRolloutStatus sn_rollout_visit(const SnModel *m, const SnCost *cost, SnWorld *w, SnLane *lane,
                                         SnRollout *rollout, const SnRolloutScratch *scratch) {
  const int t = rollout->t;
  const bool end = t == rollout->nstep;
  if (rollout->status != SN_ROLLOUT_UNDER_WAY) return (SnRolloutStatus)rollout->status;
  if (rollout_diverged(m, w, lane, rollout->max_velocity)) return rollout_fail(w, lane, rollout, t);
  if (!end) rollout_control(m, w, lane, rollout, t);
  SN_ONE(lane) w->step[0] = sn_rollout_duration(m, rollout, t);
  if (end && rollout->out_qacc_warmstart) sn_lane_copy(lane, rollout->out_qacc_warmstart, w->qacc_warmstart, m->nv);
  SN_SYNC(lane);
  SN_MARK(lane, OTHER);
  sn_forward(m, w, lane);
  rollout_add_cost(m, cost, w, lane, rollout, t, scratch);
  rollout_record(m, w, lane, rollout, t);
  SN_MARK(lane, COST);
  if (end) return rollout_end(cost, w, lane, rollout, t);
  return rollout_explodes(m, w, lane) ? rollout_fail(w, lane, rollout, t) : SN_ROLLOUT_UNDER_WAY;
}

SN_FUNC SnRolloutStatus sn_rollout_arrive(const SnWorld *w, SnLane *lane, SnRollout *rollout, int t, bool good) {
  return good ? rollout_note(w, lane, rollout, t, SN_ROLLOUT_UNDER_WAY, 0) : rollout_fail(w, lane, rollout, t - 1);
}

SN_FUNC SnRolloutStatus sn_rollout_step(const SnModel *m, const SnCost *cost, SnWorld *w, SnLane *lane,
                                        SnRollout *rollout, const SnRolloutScratch *scratch) {
  const int t = rollout->t;
  const SnRolloutStatus status = sn_rollout_visit(m, cost, w, lane, rollout, scratch);
  if (status != SN_ROLLOUT_UNDER_WAY) return status;
  sn_integrate(m, w, lane);
  SN_MARK(lane, INTEGRATE);
  return sn_rollout_arrive(w, lane, rollout, t + 1, true);
}

// Warnings are the rollout's already.
SN_FUNC void sn_rollout_save(const SnModel *m, const SnWorld *w, SnLane *lane, SnRollout *rollout) {
  sn_real *saved = rollout->saved;
  SN_ONE(lane) saved[0] = w->time[0];
  sn_lane_copy(lane, saved + 1, w->qpos, m->nq);
  sn_lane_copy(lane, saved + 1 + m->nq, w->qvel, m->nv);
  sn_lane_copy(lane, saved + 1 + m->nq + m->nv, w->qacc_warmstart, m->nv);
  sn_lane_copy(lane, saved + 1 + m->nq + 2 * m->nv, w->act, m->na);
  sn_lane_copy(lane, saved + 1 + m->nq + 2 * m->nv + m->na, w->past, sn_past_size(m));
  SN_SYNC(lane);
}

SN_FUNC void sn_rollout_restore(const SnModel *m, SnWorld *w, SnLane *lane, const SnRollout *rollout) {
  const sn_real *qpos = rollout->saved + 1, *qvel = qpos + m->nq, *warm = qvel + m->nv, *act = warm + m->nv;
  const sn_real *ctrl = rollout->t > 0 ? rollout_applied(m, rollout, rollout->t - 1) : NULL;
  const SnRolloutState state = {rollout->saved[0], qpos, qvel, act, ctrl, warm, 0, act + m->na};
  sn_rollout_set_state(m, w, lane, rollout, &state, &rollout->cfd);
}
