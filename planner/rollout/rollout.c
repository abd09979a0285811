// The steps of a path. In each: the stages up to the acceleration at x[t] under u[t], the cost there, then the
// integration, so that every term sees one consistent state. At x[H] the stages run once more for the terminal cost.
#include "planner/rollout/rollout.h"

// Copies n numbers; `from` NULL: zero. Ends with no sync.
SN_LOCAL void sn_path_fill(SnLane *lane, sn_real *SN_RESTRICT to, const sn_real *SN_RESTRICT from, int n) {
  (void)lane;
  SN_FOR(i, n) to[i] = from ? from[i] : 0;
}

// Poses of mocap bodies: the path's, else those that the model gives them.
SN_LOCAL void sn_path_mocap(const SnModel *m, SnWorld *w, SnLane *lane, const SnPath *path) {
  (void)lane;
  SN_FOR(i, m->nmocap > 0 ? m->nbody : 0) {
    const int k = m->body_mocapid[i];
    if (k < 0) continue;
    const sn_real *pos = path->mocap_pos ? path->mocap_pos + 3 * k : m->body_pos + 3 * i;
    const sn_real *quat = path->mocap_quat ? path->mocap_quat + 4 * k : m->body_quat + 4 * i;
    for (int j = 0; j < 3; ++j) w->mocap_pos[3 * k + j] = pos[j];
    for (int j = 0; j < 4; ++j) w->mocap_quat[4 * k + j] = quat[j];
  }
}

SN_FUNC void sn_path_put(const SnModel *m, SnWorld *w, SnLane *lane, const SnPath *path, const SnPathState *state,
                         const SnCfd *cfd) {
  sn_lane_copy(lane, w->qpos, state->qpos, m->nq);
  sn_lane_copy(lane, w->qvel, state->qvel, m->nv);
  sn_lane_copy(lane, w->act, state->act, m->na);
  sn_path_fill(lane, w->ctrl, state->ctrl, m->nu);
  sn_path_fill(lane, w->qacc_warmstart, state->qacc_warmstart, m->nv);
  sn_path_mocap(m, w, lane, path);
  SN_ONE(lane) {
    w->time[0] = state->time;
    w->cfd[0] = *cfd;
    *w->warn = 0;
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_path_put_start(const SnModel *m, SnWorld *w, SnLane *lane, const SnPath *path) {
  const SnPathState start = {path->time, path->qpos, path->qvel, path->act, NULL, path->qacc_warmstart};
  sn_path_put(m, w, lane, path, &start, &path->cfd);
}

SN_FUNC void sn_path_begin(const SnModel *m, const SnCost *cost, SnWorld *w, SnLane *lane, SnPath *path) {
  SN_FOR(i, cost->nterm) path->sum[i] = 0;
  SN_ONE(lane) {
    path->total = 0;
    path->t = 0;
    path->status = SN_PATH_UNDER_WAY;
    path->warn = 0;
  }
  sn_path_put_start(m, w, lane, path);
}

// True on all lanes when one of them says so.
SN_LOCAL bool sn_path_any(SnLane *lane, bool mine) { return sn_count(lane, mine ? 1 : 0) > 0; }

// Whether the state has left all bounds.
SN_LOCAL bool sn_path_diverged(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real max_velocity) {
  bool bad = (*w->warn & SN_WARN_BAD_STATE) != 0;
  SN_FOR(i, m->nq) bad |= sn_is_bad(w->qpos[i]);
  SN_FOR(i, m->nv) bad |= !(sn_abs(w->qvel[i]) <= max_velocity);
  SN_FOR(i, m->na) bad |= sn_is_bad(w->act[i]);
  return sn_path_any(lane, bad);
}

SN_LOCAL bool sn_path_explodes(const SnModel *m, const SnWorld *w, SnLane *lane) {
  bool bad = false;
  SN_FOR(i, m->nv) bad |= sn_is_bad(w->qacc[i]);
  return sn_path_any(lane, bad);
}

SN_FUNC void sn_path_measure(const SnModel *m, const SnCost *cost, const SnWorld *w, SnLane *lane,
                             const sn_real *target, int n, const SnPathScratch *scratch) {
  sn_cost_residual(cost, m, w, lane, target, 0, n, scratch->res);
  sn_cost_norm(cost, lane, scratch->res, 0, n, scratch->value);
}

// Adds the cost at state t, whose stages have run, to the sums.
SN_LOCAL void sn_path_add_cost(const SnModel *m, const SnCost *cost, const SnWorld *w, SnLane *lane, SnPath *path,
                               int t, const SnPathScratch *scratch) {
  const bool end = t == path->nstep;
  const sn_real *weight = end ? path->terminal : path->running, *value = scratch->value;
  const sn_real share = end ? SN_R(1.0) : SN_R(1.0) / (sn_real)path->nstep;
  sn_path_measure(m, cost, w, lane, path->target + (size_t)t * (size_t)cost->ntarget, cost->nterm, scratch);
  SN_FOR(i, cost->nterm) path->sum[i] += share * sn_weighted(weight[i], value[i]);
  if (!path->out_cost) return;
  SN_ONE(lane) {
    sn_real sum = 0;
    for (int i = 0; i < cost->nterm; ++i) sum += sn_weighted(weight[i], value[i]);
    path->out_cost[t] = sum;
  }
}

// Row t of what is kept on the way. Its sync also ends sn_path_add_cost.
SN_LOCAL void sn_path_record(const SnModel *m, const SnWorld *w, SnLane *lane, const SnPath *path, int t) {
  const size_t row = (size_t)t;
  if (path->out_qpos) sn_lane_copy(lane, path->out_qpos + row * (size_t)m->nq, w->qpos, m->nq);
  if (path->out_qvel) sn_lane_copy(lane, path->out_qvel + row * (size_t)m->nv, w->qvel, m->nv);
  if (path->out_act) sn_lane_copy(lane, path->out_act + row * (size_t)m->na, w->act, m->na);
  if (path->out_qacc) sn_lane_copy(lane, path->out_qacc + row * (size_t)m->nv, w->qacc, m->nv);
  if (path->out_time) SN_ONE(lane) path->out_time[row] = w->time[0];
  SN_SYNC(lane);
}

// Books what a step has come to. Every lane knows it already.
SN_LOCAL SnPathStatus sn_path_book(const SnWorld *w, SnLane *lane, SnPath *path, int t, SnPathStatus status,
                                   sn_real total) {
  SN_ONE(lane) {
    path->t = t;
    path->status = status;
    path->total = total;
    path->warn |= *w->warn;
  }
  SN_SYNC(lane);
  return status;
}

SN_LOCAL SnPathStatus sn_path_fail(const SnWorld *w, SnLane *lane, SnPath *path, int t) {
  return sn_path_book(w, lane, path, t, SN_PATH_DIVERGED, (sn_real)INFINITY);
}

SN_LOCAL SnPathStatus sn_path_end(const SnCost *cost, const SnWorld *w, SnLane *lane, SnPath *path, int t) {
  sn_real total = 0;
  for (int i = 0; i < cost->nterm; ++i) total += path->sum[i];
  const bool finite = total - total == 0;
  return finite ? sn_path_book(w, lane, path, t, SN_PATH_DONE, total) : sn_path_fail(w, lane, path, t);
}

SN_FUNC SnPathStatus sn_path_step(const SnModel *m, const SnCost *cost, SnWorld *w, SnLane *lane, SnPath *path,
                                  const SnPathScratch *scratch) {
  const int t = path->t;
  const bool end = t == path->nstep;
  if (path->status != SN_PATH_UNDER_WAY) return (SnPathStatus)path->status;
  if (sn_path_diverged(m, w, lane, path->max_velocity)) return sn_path_fail(w, lane, path, t);
  if (!end) sn_lane_copy(lane, w->ctrl, path->ctrl + (size_t)t * (size_t)m->nu, m->nu);
  SN_SYNC(lane);
  SN_MARK(lane, OTHER);
  sn_forward(m, w, lane);
  sn_path_add_cost(m, cost, w, lane, path, t, scratch);
  sn_path_record(m, w, lane, path, t);
  SN_MARK(lane, COST);
  if (end) return sn_path_end(cost, w, lane, path, t);
  if (sn_path_explodes(m, w, lane)) return sn_path_fail(w, lane, path, t);
  sn_integrate(m, w, lane);
  SN_MARK(lane, INTEGRATE);
  return sn_path_book(w, lane, path, t + 1, SN_PATH_UNDER_WAY, 0);
}

// Warnings are the path's already.
SN_FUNC void sn_path_leave(const SnModel *m, const SnWorld *w, SnLane *lane, SnPath *path) {
  sn_real *kept = path->kept;
  SN_ONE(lane) kept[0] = w->time[0];
  sn_lane_copy(lane, kept + 1, w->qpos, m->nq);
  sn_lane_copy(lane, kept + 1 + m->nq, w->qvel, m->nv);
  sn_lane_copy(lane, kept + 1 + m->nq + m->nv, w->qacc_warmstart, m->nv);
  sn_lane_copy(lane, kept + 1 + m->nq + 2 * m->nv, w->act, m->na);
  SN_SYNC(lane);
}

SN_FUNC void sn_path_return(const SnModel *m, SnWorld *w, SnLane *lane, const SnPath *path) {
  const sn_real *qpos = path->kept + 1, *qvel = qpos + m->nq, *warm = qvel + m->nv, *act = warm + m->nv;
  const sn_real *ctrl = path->t > 0 ? path->ctrl + (size_t)(path->t - 1) * (size_t)m->nu : NULL;
  const SnPathState state = {path->kept[0], qpos, qvel, act, ctrl, warm};
  sn_path_put(m, w, lane, path, &state, &path->cfd);
}
