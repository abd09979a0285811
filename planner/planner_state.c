// States that reach a planner: checked, completed (activations cannot be measured on a body), prepared.
#include "planner/planner_private.h"

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/step/step.h"

// Activation dynamics forget within a fraction of a second: longer gaps are cut to this.
static const double longest_memory = 2.0;

SnState sn_state_view(const SnStateBuffer *s) {
  return (SnState){.time = s->time,
                   .qpos = s->qpos,
                   .qvel = s->qvel,
                   .act = s->act,
                   .mocap_pos = s->mocap_pos,
                   .mocap_quat = s->mocap_quat,
                   .qacc_warmstart = s->qacc_warmstart,
                   .past = s->past};
}

SnCode sn_planner_check_finite(const char *what, const sn_real *x, size_t n, SnError *err) {
  for (size_t i = 0; i < n; ++i)
    if (sn_is_bad(x[i]))
      return sn_fail(err, SN_ERR_ARGUMENT, "%s[%zu]: %g, allowed is a number within +-%g", what, i, (double)x[i], 1e10);
  return SN_OK;
}

static SnCode check_finite(const char *what, const sn_real *x, int n, SnError *err) {
  return sn_planner_check_finite(what, x, (size_t)n, err);
}

static SnCode check_quat(const char *what, int at, const sn_real *q, SnError *err) {
  const sn_real n2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
  if (n2 > SN_R(0.25) && n2 < SN_R(4.0)) return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT, "%s[%d]: a quaternion of length %g, allowed is about 1", what, at,
                 (double)sn_sqrt(n2));
}

// Address of the quaternion of a free or ball joint in qpos, or -1.
static int joint_quat(const SnModel *m, int j) {
  if (m->jnt_type[j] == SN_JNT_FREE) return m->jnt_qposadr[j] + 3;
  return m->jnt_type[j] == SN_JNT_BALL ? m->jnt_qposadr[j] : -1;
}

static SnCode check_past(const SnModel *m, const sn_real *past, SnError *err) {
  int bad;
  if (sn_past_good(m, past, &bad)) return SN_OK;
  return sn_fail(
      err, SN_ERR_ARGUMENT,
      "past[%d]: %g, allowed are numbers within +-%g: of each buffer a mark, the place of the newest sample, "
      "times that ascend up to it, samples",
      bad, (double)past[bad], 1e10);
}

SnCode sn_planner_check_state(const SnModel *m, const SnPlanRequest *r, SnError *err) {
  if (!r->qpos || (!r->qvel && m->nv > 0)) return sn_fail(err, SN_ERR_ARGUMENT, "state: qpos and qvel are needed");
  if (!isfinite(r->time)) return sn_fail(err, SN_ERR_ARGUMENT, "time: not finite");
  SnCode code = check_finite("qpos", r->qpos, m->nq, err);
  if (code == SN_OK) code = check_finite("qvel", r->qvel, m->nv, err);
  if (code == SN_OK && r->act) code = check_finite("act", r->act, m->na, err);
  if (code == SN_OK && r->past) code = check_past(m, r->past, err);
  if (code == SN_OK && r->mocap_pos) code = check_finite("mocap_pos", r->mocap_pos, 3 * m->nmocap, err);
  if (code == SN_OK && r->mocap_quat) code = check_finite("mocap_quat", r->mocap_quat, 4 * m->nmocap, err);
  for (int j = 0; code == SN_OK && j < m->njnt; ++j)
    if (joint_quat(m, j) >= 0) code = check_quat("qpos", joint_quat(m, j), r->qpos + joint_quat(m, j), err);
  for (int i = 0; code == SN_OK && r->mocap_quat && i < m->nmocap; ++i)
    code = check_quat("mocap_quat", 4 * i, r->mocap_quat + 4 * i, err);
  return code;
}

const sn_real *sn_planner_control(const SnPlanner *p, double time) {
  if (p->active_plan.rows == 0) return NULL;
  // A time on the border of two rows belongs to the later one, also when rounding put it just before.
  const double row = floor((time - p->active_plan.time) / p->h + 1e-6);
  const int k = row < 0 ? 0 : (row >= p->active_plan.rows ? p->active_plan.rows - 1 : (int)row);
  return p->active_plan.ctrl + (size_t)k * (size_t)p->m->nu;
}

const sn_real *sn_planner_force_row(const SnPlanner *p, double time) {
  const sn_real *row = sn_planner_control(p, time);
  return row ? row : p->initial.ctrl;
}

// Row of the reported controls that held at a time; `from` is a row at or before it.
static int applied_row(const SnApplied *applied, double time, int from) {
  while (from + 1 < applied->n && applied->time[from + 1] <= time + 1e-9) ++from;
  return from;
}

static void copy(sn_real *to, const sn_real *from, int n) {
  if (n > 0 && to != from) memcpy(to, from, sizeof *to * (size_t)n);
}

// Controls that were in force at a time; *row is that of the ones before among those that were reported.
static const sn_real *controls_at(const SnPlanner *p, const SnApplied *applied, double time, int *row) {
  if (!applied || applied->n == 0) return sn_planner_force_row(p, time);
  *row = applied_row(applied, time, *row);
  return applied->ctrl + (size_t)*row * (size_t)p->m->nu;
}

void sn_planner_estimate_act(SnPlanner *p, const sn_real *qpos, const sn_real *qvel, double time,
                             const SnApplied *applied) {
  const SnModel *m = p->m;
  const SnStateBuffer *from = p->latest.has_act ? &p->latest.state : &p->initial.state;
  SnWorld *w = sn_rollout_runner_world(p->runners.scratch);
  SnLane *lane = sn_rollout_runner_lane(p->runners.scratch);
  const double gap = p->latest.has_act ? time - from->time : 0;
  const double memory = gap < longest_memory ? gap : longest_memory;
  const long steps = gap > 0 ? lround(memory / p->h) : 0;
  SnState s = sn_state_view(from);
  s.qpos = qpos;
  s.qvel = qvel;
  s.qacc_warmstart = NULL;
  sn_world_set_state(m, w, &s);
  if (steps > 0) sn_forward(m, w, lane);
  int row = 0;
  for (long k = 0; k < steps; ++k) {
    const double at = time - (double)(steps - k) * p->h;
    copy(w->ctrl, controls_at(p, applied, at, &row), m->nu);
    w->time[0] = (sn_real)at;
    sn_actuation(m, w, lane);
    sn_next_activation(m, w, lane, m->opt.timestep, w->int_act);
    copy(w->act, w->int_act, m->na);
    for (int i = 0; m->nhistory > 0 && i < m->nactuator; ++i)
      if (m->actuator_history[2 * i] > 0) sn_actuator_insert(m, w->past, i, w->time[0], w->ctrl);
  }
}

static SnCode check_applied(const SnPlanner *p, const SnApplied *a, SnError *err) {
  for (int i = 0; a && i < a->n; ++i) {
    if (!isfinite(a->time[i]) || (i > 0 && !(a->time[i] > a->time[i - 1])))
      return sn_fail(err, SN_ERR_ARGUMENT, "applied: times must be finite and ascend");
    const SnCode code = check_finite("applied", a->ctrl + (size_t)i * (size_t)p->m->nu, p->m->nu, err);
    if (code != SN_OK) return code;
  }
  return SN_OK;
}

SnCode sn_planner_take_state(SnPlanner *p, const SnPlanRequest *r, SnStateBuffer *into, bool *act_estimated,
                             SnError *err) {
  const SnModel *m = p->m;
  SnCode code = sn_planner_check_state(m, r, err);
  if (code == SN_OK) code = check_applied(p, r->applied, err);
  if (code != SN_OK) return code;
  const SnWorld *estimate = sn_rollout_runner_world(p->runners.scratch);
  const bool past_estimated = sn_past_size(m) > 0 && !r->past;
  *act_estimated = m->na > 0 && !r->act;
  // The estimate starts from the state before, which `into` may be: it comes first.
  if (*act_estimated || past_estimated) sn_planner_estimate_act(p, r->qpos, r->qvel, r->time, r->applied);
  copy(into->act, *act_estimated ? estimate->act : r->act, m->na);
  copy(into->past, past_estimated ? estimate->past : r->past, sn_past_size(m));
  into->time = r->time;
  copy(into->qpos, r->qpos, m->nq);
  copy(into->qvel, r->qvel, m->nv);
  copy(into->mocap_pos, r->mocap_pos ? r->mocap_pos : p->latest.state.mocap_pos, 3 * m->nmocap);
  copy(into->mocap_quat, r->mocap_quat ? r->mocap_quat : p->latest.state.mocap_quat, 4 * m->nmocap);
  for (int j = 0; j < m->njnt; ++j)
    if (joint_quat(m, j) >= 0) sn_normalize4(into->qpos + joint_quat(m, j));
  for (int i = 0; i < m->nmocap; ++i) sn_normalize4(into->mocap_quat + 4 * i);
  return SN_OK;
}

SnState sn_planner_rollout_state(const SnPlanner *p, const SnStateBuffer *s) {
  SnState state = sn_state_view(s);
  if (p->cfd.forward.on) state.cfd = &p->cfd.forward;
  if (s == &p->progress.start) state.before = p->progress.before;
  return state;
}

SnState sn_planner_iteration_state(const SnPlanner *p, const SnStateBuffer *s) {
  SnState state = sn_planner_rollout_state(p, s);
  state.grid = &p->grid.grid;
  return state;
}

SnState sn_planner_prepare(SnPlanner *p, SnStateBuffer *s) {
  SnWorld *w = sn_rollout_runner_world(p->runners.scratch);
  SnState view = sn_state_view(s);
  view.qacc_warmstart = NULL;
  sn_world_set_state(p->m, w, &view);
  sn_forward(p->m, w, sn_rollout_runner_lane(p->runners.scratch));
  for (int i = 0; i < p->m->nv; ++i) s->qacc_warmstart[i] = sn_is_bad(w->qacc[i]) ? 0 : w->qacc[i];
  return sn_state_view(s);
}
