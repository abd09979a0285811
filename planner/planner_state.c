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

int sn_planner_applied_until(const SnApplied *applied, double time) {
  int low = 0, high = applied->n;  // rows before `low` begin by then, those from `high` on do not
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (applied->time[middle] <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

void sn_planner_copy_applied(const SnPlanner *p, const SnApplied *applied, int row, sn_real *ctrl) {
  const double *from = applied->ctrl + (size_t)row * (size_t)p->m->nu;
  for (int i = 0; i < p->m->nu; ++i) ctrl[i] = (sn_real)from[i];
}

static void copy(sn_real *to, const sn_real *from, int n) {
  if (n > 0 && to != from) memcpy(to, from, sizeof *to * (size_t)n);
}

// Writes the controls that were in force at a time: those reported, else those of the plan in force.
static void copy_controls_at(const SnPlanner *p, const SnApplied *applied, double time, sn_real *ctrl) {
  const int row = applied->n > 0 ? sn_planner_applied_until(applied, time + 1e-9) : 0;
  if (applied->n > 0)
    sn_planner_copy_applied(p, applied, row > 0 ? row : 0, ctrl);
  else
    copy(ctrl, sn_planner_force_row(p, time), p->m->nu);
}

static void begin_estimate(const SnPlanner *p, SnEstimate *e) {
  const SnModel *m = p->m;
  const SnStateBuffer *from = p->latest.has_act ? &p->latest.state : &p->initial.state;
  SnWorld *w = sn_rollout_runner_world(e->runner);
  const double gap = p->latest.has_act ? e->into->time - from->time : 0;
  const double memory = gap < longest_memory ? gap : longest_memory;
  e->steps = gap > 0 ? lround(memory / p->h) : 0;
  SnState s = sn_state_view(from);
  s.qpos = e->into->qpos;
  s.qvel = e->into->qvel;
  s.qacc_warmstart = NULL;
  sn_world_set_state(m, w, &s);
  if (e->steps > 0) sn_forward(m, w, sn_rollout_runner_lane(e->runner));
}

static void step_estimate(const SnPlanner *p, SnEstimate *e) {
  const SnModel *m = p->m;
  SnWorld *w = sn_rollout_runner_world(e->runner);
  SnLane *lane = sn_rollout_runner_lane(e->runner);
  const double at = e->into->time - (double)(e->steps - e->step) * p->h;
  copy_controls_at(p, &e->applied, at, w->ctrl);
  w->time[0] = (sn_real)at;
  sn_actuation(m, w, lane);
  sn_next_activation(m, w, lane, m->opt.timestep, w->int_act);
  copy(w->act, w->int_act, m->na);
  for (int i = 0; m->nhistory > 0 && i < m->nactuator; ++i)
    if (m->actuator_history[2 * i] > 0) sn_actuator_insert(m, w->past, i, w->time[0], w->ctrl);
  ++e->step;
}

bool sn_planner_estimate(const SnPlanner *p, SnEstimate *e, double until) {
  while (e->step < e->steps) {
    if (e->step > 0 && until < INFINITY && sn_planner_now(p) >= until) return false;
    for (int i = 0; i < SN_ESTIMATE_ROUND && e->step < e->steps; ++i) step_estimate(p, e);
  }
  return true;
}

void sn_planner_take_estimate(const SnPlanner *p, const SnEstimate *e) {
  const SnWorld *w = sn_rollout_runner_world(e->runner);
  if (e->act) copy(e->into->act, w->act, p->m->na);
  if (e->past) copy(e->into->past, w->past, sn_past_size(p->m));
}

static SnCode check_applied(const SnPlanner *p, const SnApplied *a, SnError *err) {
  for (int i = 0; a && i < a->n; ++i)
    if (!isfinite(a->time[i]) || (i > 0 && !(a->time[i] > a->time[i - 1])))
      return sn_fail(err, SN_ERR_ARGUMENT, "applied: time[%d]: %g, allowed is a finite number above the one before", i,
                     a->time[i]);
  const size_t n = a ? (size_t)a->n * (size_t)p->m->nu : 0;
  for (size_t i = 0; i < n; ++i)
    if (!(fabs(a->ctrl[i]) <= SN_MAXVAL))
      return sn_fail(err, SN_ERR_ARGUMENT, "applied[%zu]: %g, allowed is a number within +-%g", i, a->ctrl[i], 1e10);
  return SN_OK;
}

SnCode sn_planner_take_state(const SnPlanner *p, const SnPlanRequest *r, SnStateBuffer *into, SnRolloutRunner *runner,
                             SnEstimate *estimate, SnError *err) {
  const SnModel *m = p->m;
  SnCode code = sn_planner_check_state(m, r, err);
  if (code == SN_OK) code = check_applied(p, r->applied, err);
  if (code != SN_OK) return code;
  *estimate = (SnEstimate){
      .runner = runner, .into = into, .act = m->na > 0 && !r->act, .past = sn_past_size(m) > 0 && !r->past};
  if (r->applied) estimate->applied = *r->applied;
  into->time = r->time;
  copy(into->qpos, r->qpos, m->nq);
  copy(into->qvel, r->qvel, m->nv);
  if (estimate->act || estimate->past) begin_estimate(p, estimate);  // from what was measured, not normalised yet
  if (!estimate->act) copy(into->act, r->act, m->na);
  if (!estimate->past) copy(into->past, r->past, sn_past_size(m));
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
  const SnModel *m = sn_chosen_model(sn_rollout_runner_chosen(p->runners.tracer), p->m);
  SnWorld *w = sn_rollout_runner_world(p->runners.scratch);
  SnState view = sn_state_view(s);
  view.qacc_warmstart = NULL;
  sn_world_set_state(m, w, &view);
  sn_forward(m, w, sn_rollout_runner_lane(p->runners.scratch));
  for (int i = 0; i < m->nv; ++i) s->qacc_warmstart[i] = sn_is_bad(w->qacc[i]) ? 0 : w->qacc[i];
  return sn_state_view(s);
}
