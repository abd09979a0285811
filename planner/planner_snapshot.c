// Snapshots of a planner: all that its next plan depends on beside the request.
#include "planner/planner_private.h"

SnCode sn_planner_snapshot(const SnPlanner *p, SnPlannerSnapshot *s, SnError *err) {
  if (p->progress.active) return sn_fail(err, SN_ERR_STATE, "a snapshot is taken between two plans");
  *s = (SnPlannerSnapshot){.number = p->progress.number,
                           .state = sn_state_view(&p->latest.state),
                           .act_known = p->latest.has_act,
                           .begun = p->warm_start.exists,
                           .warm_time = p->warm_start.time,
                           .warm_ctrl = p->warm_start.ctrl,
                           .phase = p->warm_start.phase,
                           .active_time = p->active_plan.time,
                           .active_rows = p->active_plan.rows,
                           .active_ctrl = p->active_plan.ctrl};
  sn_planner_adam_snapshot(p, &s->adam);
  return SN_OK;
}

static SnCode check(const SnPlanner *p, const SnPlannerSnapshot *s, SnError *err) {
  enum { MOST = 1 << 24 };  // so that sums stay integers
  const size_t nu = (size_t)p->m->nu;
  const SnPlanRequest state = {.time = s->state.time,
                               .qpos = s->state.qpos,
                               .qvel = s->state.qvel,
                               .act = s->state.act,
                               .mocap_pos = s->state.mocap_pos,
                               .mocap_quat = s->state.mocap_quat,
                               .past = s->state.past};
  if (s->phase < 0 || s->phase > MOST)
    return sn_fail(err, SN_ERR_ARGUMENT, "phase is %d, allowed are 0 to %d", s->phase, MOST);
  if (s->active_rows < 0 || s->active_rows > 2 * p->horizon)
    return sn_fail(err, SN_ERR_ARGUMENT, "the active plan has %d rows, allowed are 0 to %d", s->active_rows,
                   2 * p->horizon);
  if (!isfinite(s->warm_time) || !isfinite(s->active_time))
    return sn_fail(err, SN_ERR_ARGUMENT, "a plan begins at a time that is not finite");
  SnCode code = sn_planner_check_state(p->m, &state, err);
  if (code == SN_OK) code = sn_planner_check_finite("warm start", s->warm_ctrl, (size_t)p->horizon * nu, err);
  return code == SN_OK ? sn_planner_check_finite("active plan", s->active_ctrl, (size_t)s->active_rows * nu, err)
                       : code;
}

static void restore_state(SnPlanner *p, const SnState *s) {
  const SnModel *m = p->m;
  SnStateBuffer *to = &p->latest.state;
  to->time = s->time;
  sn_planner_copy(to->qpos, s->qpos, (size_t)m->nq);
  sn_planner_copy(to->qvel, s->qvel, (size_t)m->nv);
  sn_planner_copy(to->act, s->act, (size_t)m->na);
  if (s->past) sn_planner_copy(to->past, s->past, (size_t)sn_past_size(m));
  sn_planner_copy(to->mocap_pos, s->mocap_pos, 3 * (size_t)m->nmocap);
  sn_planner_copy(to->mocap_quat, s->mocap_quat, 4 * (size_t)m->nmocap);
}

SnCode sn_planner_restore(SnPlanner *p, const SnPlannerSnapshot *s, SnError *err) {
  const size_t nu = (size_t)p->m->nu;
  SnCode code = check(p, s, err);
  if (code == SN_OK) code = sn_planner_adam_restore(p, &s->adam, err);
  if (code != SN_OK) return code;
  sn_planner_drop(p);
  restore_state(p, &s->state);
  p->latest.has_act = s->act_known;
  p->warm_start.exists = s->begun;
  p->warm_start.time = s->warm_time;
  p->warm_start.phase = s->phase;
  sn_planner_copy(p->warm_start.ctrl, s->warm_ctrl, (size_t)p->horizon * nu);
  p->active_plan.time = s->active_time;
  p->active_plan.rows = s->active_rows;
  sn_planner_copy(p->active_plan.ctrl, s->active_ctrl, (size_t)s->active_rows * nu);
  p->progress.number = s->number;
  p->unimproved = 0;
  return SN_OK;
}
