// Planners in this process: a body, a task, a plan that is refined. See planner_settings.c for what can be tuned.
#include "clients/libsinew/planner_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/data_private.h"
#include "clients/libsinew/task_private.h"
#include "physics/base/clock.h"
#include "physics/step/step.h"
#include "planner/base/control_range.h"

static const ApiStruct planner_def = {"SinewPlannerDef", "sinew_default_planner", sizeof(SinewPlannerDef),
                                      API_END(SinewPlannerDef, seed)};
static const ApiStruct plan_request = {"SinewPlanRequest", "sinew_default_plan_request", sizeof(SinewPlanRequest),
                                       API_END(SinewPlanRequest, want_states)};

_Static_assert((int)SINEW_WARN_CONTACTS == (int)SN_WARN_CONTACT_FULL &&
                   (int)SINEW_WARN_CONSTRAINTS == (int)SN_WARN_EFC_FULL &&
                   (int)SINEW_WARN_BAD_STATE == (int)SN_WARN_BAD_STATE &&
                   (int)SINEW_WARN_NOT_CONVERGED == (int)SN_WARN_NOT_CONVERGED &&
                   (int)SINEW_WARN_INERTIA == (int)SN_WARN_INERTIA,
               "warnings of the engine and of the library differ");

// ---- one thread at a time ----

SinewStatus api_planner_enter(SinewPlanner *planner, const char *call, SinewError *err) {
  if (!planner) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: planner is NULL", call);
  const SinewStatus status = api_enter_pair(&planner->guard, "planner", planner->backend, err);
  if (status != SINEW_OK) return status;
  api_interrupt_begin(&planner->interrupt);  // not before: another thread's call may be under way
  if (!planner->fallback) return SINEW_OK;
  if (api_enter(&planner->fallback->guard, "backend", err) == SINEW_OK) return SINEW_OK;
  return api_leave_pair(&planner->guard, planner->backend, SINEW_ERR_STATE);
}

SinewStatus api_planner_leave(SinewPlanner *planner, SinewStatus status) {
  if (planner->fallback) api_leave(&planner->fallback->guard, SINEW_OK);
  return api_leave_pair(&planner->guard, planner->backend, status);
}

SinewStatus api_planner_end(SinewPlanner *planner, SnCode code, const SnError *why, SinewError *err) {
  return api_planner_leave(planner, code == SN_OK ? api_ok(err) : api_hand_on(err, why));
}

// ---- creation ----

static SinewStatus check_def(const SinewPlannerDef *d, SinewError *err) {
  const char *missing = !d->model ? "model" : !d->task ? "task" : !d->backend ? "backend" : NULL;
  if (missing) return api_fail(err, SINEW_ERR_ARGUMENT, "SinewPlannerDef: %s is NULL", missing);
  if (d->fallback == d->backend)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewPlannerDef: the fallback is the backend itself");
  return SINEW_OK;
}

static SnCode make_planner(SinewPlanner *p, const SinewPlannerDef *d, SnError *why) {
  SnPlannerDef def = sn_default_planner_def();
  SnCode code = SN_OK;
  def.model = d->model->model;
  def.task = d->task->task;
  def.backend = d->backend->backend;
  def.fallback = d->fallback ? d->fallback->backend : NULL;
  def.settings = d->task->task->settings;
  def.seed = d->seed;
  def.clock = api_interrupt_clock(&p->interrupt, true);
  def.settle_until = api_interrupt_until(&p->interrupt);
  for (const char *const *s = d->settings; s && *s && code == SN_OK; ++s)
    code = sn_settings_assign(&def.settings, *s, why);
  if (code != SN_OK) return code;
  p->planner = sn_planner_create(&def, why);
  return p->planner ? SN_OK : why->code;
}

// Poses of mocap bodies as the library hands them out: (nmocap, 7).
static void join_mocap(const SnState *s, int n, double *mocap) {
  for (int i = 0; i < n; ++i) {
    memcpy(mocap + 7 * i, s->mocap_pos + 3 * i, 3 * sizeof *mocap);
    memcpy(mocap + 7 * i + 3, s->mocap_quat + 4 * i, 4 * sizeof *mocap);
  }
}

static SinewStatus make_buffers(SinewPlanner *p, SinewError *err) {
  const SnModel *m = sn_planner_model(p->planner);
  p->rest = calloc((size_t)(m->nq + m->nv) + 1, sizeof *p->rest);
  p->mocap = calloc(7 * (size_t)m->nmocap + 1, sizeof *p->mocap);
  p->mocap_init = calloc(7 * (size_t)m->nmocap + 1, sizeof *p->mocap_init);
  p->difference = calloc((size_t)(2 * m->nv + m->na) + 1, sizeof *p->difference);
  if (!p->rest || !p->mocap || !p->mocap_init || !p->difference)
    return api_fail(err, SINEW_ERR_MEMORY, "planner: out of memory");
  memcpy(p->rest, m->qpos0, (size_t)m->nq * sizeof *p->rest);
  join_mocap(sn_planner_initial(p->planner), m->nmocap, p->mocap_init);
  p->model = api_model_view(m, err);
  return p->model ? SINEW_OK : SINEW_ERR_MEMORY;
}

// Tells why the engine's planner did not do it. Returns the status.
static SinewStatus failed(SinewPlanner *p, const SnError *why, SinewError *err) {
  return api_interrupt_look(&p->interrupt) ? api_interrupt_fail(err) : api_hand_on(err, why);
}

// Makes all of a planner whose backends are entered.
static SinewStatus build(SinewPlanner *p, const SinewPlannerDef *d, SinewError *err) {
  SnError why = {0};
  if (make_planner(p, d, &why) != SN_OK) return failed(p, &why, err);
  return make_buffers(p, err);
}

SinewPlanner *sinew_planner_create(const SinewPlannerDef *def, SinewError *err) {
  SinewPlannerDef d = sinew_default_planner();
  if (api_take(&planner_def, def, &d, err) != SINEW_OK || check_def(&d, err) != SINEW_OK) return NULL;
  SinewPlanner *p = calloc(1, sizeof *p);
  if (!p) {
    api_fail(err, SINEW_ERR_MEMORY, "planner: out of memory");
    return NULL;
  }
  p->backend = d.backend;
  p->fallback = d.fallback;
  p->interrupt = (ApiInterrupt){.ask = d.interrupt, .user = d.interrupt_user};
  SinewStatus status = api_planner_enter(p, "sinew_planner_create", err);
  if (status == SINEW_OK) status = api_planner_leave(p, build(p, &d, err));
  if (status == SINEW_OK) {
    api_ok(err);
    return p;
  }
  sinew_planner_free(p);
  return NULL;
}

void sinew_planner_free(SinewPlanner *planner) {
  if (!planner) return;
  sn_planner_free(planner->planner);
  sinew_model_free(planner->model);
  free(planner->rest);
  free(planner->mocap);
  free(planner->mocap_init);
  free(planner->difference);
  free(planner);
}

SinewStatus sinew_planner_reset(SinewPlanner *planner, uint64_t seed, SinewError *err) {
  SnError why = {0};
  const SinewStatus status = api_planner_enter(planner, "sinew_planner_reset", err);
  if (status != SINEW_OK) return status;
  const SnCode code = sn_planner_reset(planner->planner, seed, &why);
  join_mocap(sn_planner_initial(planner->planner), planner->model->sizes.nmocap, planner->mocap_init);
  return api_planner_leave(planner, code == SN_OK ? api_ok(err) : failed(planner, &why, err));
}

const SinewModel *sinew_planner_model(const SinewPlanner *planner) { return planner ? planner->model : NULL; }

SinewState sinew_planner_initial(const SinewPlanner *planner) {
  if (!planner) return (SinewState){0};
  const SnState *s = sn_planner_initial(planner->planner);
  return (SinewState){s->time, s->qpos, s->qvel, s->act, planner->mocap_init};
}

// ---- plans ----

// What a planner is asked of a state. Poses of mocap bodies are taken apart.
static void take_state(SinewPlanner *p, const SinewState *s, SnPlanRequest *r) {
  const int n = p->model->sizes.nmocap;
  r->time = s->time;
  r->qpos = s->qpos;
  r->qvel = s->qvel;
  r->act = s->act;
  if (!s->mocap || n == 0) return;
  for (int i = 0; i < n; ++i) {
    memcpy(p->mocap + 3 * i, s->mocap + 7 * i, 3 * sizeof *p->mocap);
    memcpy(p->mocap + 3 * n + 4 * i, s->mocap + 7 * i + 3, 4 * sizeof *p->mocap);
  }
  r->mocap_pos = p->mocap;
  r->mocap_quat = p->mocap + 3 * n;
}

static SinewPlan plan_of(const SnPlan *plan) {
  return (SinewPlan){.number = plan->number,
                     .start = plan->start,
                     .step = plan->step,
                     .steps = plan->nstep,
                     .lead = plan->lead,
                     .ctrl = plan->ctrl,
                     .qpos = plan->qpos,
                     .qvel = plan->qvel,
                     .act = plan->act,
                     .cost_before = plan->cost_before,
                     .cost_after = plan->cost_after,
                     .term = plan->term,
                     .terms = plan->nterm,
                     .iterations = plan->iterations,
                     .candidates = plan->candidates,
                     .gradient_norm = plan->gradient_norm,
                     .refined = plan->status == SN_PLAN_OK,
                     .deadline_met = plan->deadline_met,
                     .act_estimated = plan->act_estimated,
                     .device_lost = plan->device_lost,
                     .warnings = (unsigned)plan->warn,
                     .backend = plan->backend,
                     .remark = plan->remark,
                     .seconds = plan->seconds,
                     .gain = plan->gain,
                     .gain_rows = plan->gain_rows,
                     .stuck = plan->stuck,
                     .unimproved = plan->unimproved,
                     .from_policy = plan->from_policy};
}

// Works on a plan until it is there. A device makes whole iterations; between slices its planner's caller is asked,
// too.
static SinewStatus work(SinewPlanner *p, const SnPlanRequest *request, SnPlan *plan, SinewError *err) {
  SnError why = {0};
  const double until = p->backend->pool ? api_interrupt_until(&p->interrupt) : (double)INFINITY;
  if (sn_planner_begin(p->planner, request, &why) != SN_OK) return api_hand_on(err, &why);
  while (!sn_planner_slice(p->planner, until) && !api_interrupt_look(&p->interrupt)) continue;
  if (api_interrupt_look(&p->interrupt)) {
    sn_planner_drop(p->planner);
    return api_interrupt_fail(err);
  }
  sn_planner_finish(p->planner, plan);
  return SINEW_OK;
}

// Makes a plan in p->plan.
static SinewStatus make_plan(SinewPlanner *p, const SinewPlanRequest *in, SinewError *err) {
  SnPlanRequest request = sn_default_plan_request();
  SnPlan plan;
  if (!(in->budget >= 0 && isfinite(in->budget)))
    return api_fail(err, SINEW_ERR_ARGUMENT, "budget: %g s, allowed is at least 0", in->budget);
  take_state(p, &in->state, &request);
  request.latency = in->latency;
  request.deadline = in->budget > 0 ? sn_clock_now() + in->budget : INFINITY;
  request.max_iterations = in->max_iterations;
  request.want_states = in->want_states;
  request.gain_rows = in->gain_rows;
  request.past = in->history;
  p->plan.gain = NULL;  // plans are made where it lies
  p->plan.gain_rows = 0;
  const SinewStatus status = work(p, &request, &plan, err);
  if (status != SINEW_OK) return status;
  if (plan.status == SN_PLAN_DIVERGED)
    return api_fail(err, SINEW_ERR_DIVERGED, "every candidate diverged: there is no plan for this state%s%s",
                    plan.remark[0] ? "; " : "", plan.remark);
  p->plan = plan_of(&plan);
  return api_ok(err);
}

SinewStatus sinew_planner_plan(SinewPlanner *planner, const SinewPlanRequest *request, const SinewPlan **plan,
                               SinewError *err) {
  SinewPlanRequest in = sinew_default_plan_request();
  if (plan) *plan = NULL;
  SinewStatus status = api_planner_enter(planner, "sinew_planner_plan", err);
  if (status != SINEW_OK) return status;
  status = api_take(&plan_request, request, &in, err);
  if (status == SINEW_OK) status = make_plan(planner, &in, err);
  if (status == SINEW_OK && plan) *plan = &planner->plan;
  return api_planner_leave(planner, status);
}

SinewStatus sinew_planner_control(SinewPlanner *planner, double time, double *ctrl, SinewError *err) {
  SinewStatus status = api_planner_enter(planner, "sinew_planner_control", err);
  if (status != SINEW_OK) return status;
  const double *row = isfinite(time) ? sn_planner_control(planner->planner, time) : NULL;
  if (!isfinite(time) || !ctrl)
    status =
        api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_control: %s", ctrl ? "time is not finite" : "ctrl is NULL");
  else if (!row)
    status = api_fail(err, SINEW_ERR_NO_PLAN, "there is no plan yet");
  else
    memcpy(ctrl, row, (size_t)planner->model->sizes.nu * sizeof *ctrl);
  return api_planner_leave(planner, status == SINEW_OK ? api_ok(err) : status);
}

// Adds the feedback of a row of the plan to ctrl. Returns false where the row has none.
static bool add_feedback(const SinewPlanner *p, const SinewState *state, double *ctrl) {
  const SinewPlan *plan = &p->plan;
  const SnModel *m = sn_planner_model(p->planner);
  const size_t nv = (size_t)m->nv, na = (size_t)m->na, n = 2 * nv + na;
  const double at = floor((state->time - plan->start) / plan->step + 1e-6);
  double *const difference = p->difference;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  if (!plan->gain || !(at >= plan->lead && at < plan->lead + plan->gain_rows)) return false;
  const size_t row = (size_t)at;
  const double *gain = plan->gain + (row - (size_t)plan->lead) * (size_t)m->nu * n;
  sn_difference_pos(m, &lane, plan->qpos + row * (size_t)m->nq, state->qpos, difference);
  for (size_t k = 0; k < nv; ++k) difference[nv + k] = state->qvel[k] - plan->qvel[row * nv + k];
  for (size_t k = 0; k < na; ++k) difference[2 * nv + k] = state->act[k] - plan->act[row * na + k];
  for (size_t i = 0; i < (size_t)m->nu; ++i)
    for (size_t k = 0; k < n; ++k) ctrl[i] += gain[i * n + k] * difference[k];
  sn_ctrl_clamp(m, ctrl, 1);
  return true;
}

static SinewStatus check_measured(const char *who, const SinewState *state, const double *ctrl, const SnModel *m,
                                  SinewError *err) {
  if (!state || !ctrl) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, state ? "ctrl" : "state");
  SinewStatus status = api_check_array(who, "time", &state->time, 1, err);
  if (status == SINEW_OK) status = api_check_array(who, "qpos", state->qpos, m->nq, err);
  if (status == SINEW_OK) status = api_check_array(who, "qvel", state->qvel, m->nv, err);
  return status == SINEW_OK ? api_check_array(who, "act", state->act, m->na, err) : status;
}

SinewStatus sinew_planner_feedback(SinewPlanner *planner, const SinewState *state, double *ctrl, bool *corrected,
                                   SinewError *err) {
  const char *const who = "sinew_planner_feedback";
  if (corrected) *corrected = false;
  SinewStatus status = api_planner_enter(planner, who, err);
  if (status != SINEW_OK) return status;
  const SnModel *m = sn_planner_model(planner->planner);
  status = check_measured(who, state, ctrl, m, err);
  const double *row = status == SINEW_OK ? sn_planner_control(planner->planner, state->time) : NULL;
  if (status == SINEW_OK && !row) status = api_fail(err, SINEW_ERR_NO_PLAN, "there is no plan yet");
  if (status != SINEW_OK) return api_planner_leave(planner, status);
  memcpy(ctrl, row, (size_t)m->nu * sizeof *ctrl);
  const bool added = add_feedback(planner, state, ctrl);
  if (corrected) *corrected = added;
  return api_planner_leave(planner, api_ok(err));
}

// ---- evaluation ----

// Hands the gradient of an evaluation on.
static SinewStatus take_gradient(const SinewPlanner *p, const SnEvaluation *e, int steps, double *gradient,
                                 SinewError *err) {
  if (!e->gradient) return api_device_lost(p->backend, err);
  memcpy(gradient, e->gradient->ctrl_bar, (size_t)steps * (size_t)p->model->sizes.nu * sizeof *gradient);
  if (e->gradient->status == SN_GRADIENT_UNBOUNDED)
    return api_fail(err, SINEW_ERR_DIVERGED, "the derivative of the cost left the range of numbers on its way back");
  return SINEW_OK;
}

// An evaluation of a state alone; NULL arrays stand for the model's rest.
static SnEvaluateRequest evaluation_of(SinewPlanner *p, const SinewState *state) {
  SnPlanRequest s = sn_default_plan_request();
  take_state(p, state, &s);
  return (SnEvaluateRequest){.time = s.time,
                             .qpos = s.qpos ? s.qpos : p->rest,
                             .qvel = s.qvel ? s.qvel : p->rest + p->model->sizes.nq,
                             .act = s.act,
                             .mocap_pos = s.mocap_pos,
                             .mocap_quat = s.mocap_quat};
}

static SinewStatus evaluate(SinewPlanner *p, const SinewState *state, const double *ctrl, int steps, double *cost,
                            double *gradient, SinewError *err) {
  SnEvaluation e;
  SnError why = {0};
  if (!state || (!ctrl && steps > 0))
    return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_evaluate: %s is NULL", state ? "ctrl" : "state");
  if (steps < 0) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_evaluate: steps is %d", steps);
  SnEvaluateRequest request = evaluation_of(p, state);
  request.nstep = steps;
  request.ctrl = ctrl;
  request.gradient = gradient != NULL;
  const SnCode code = sn_planner_evaluate(p->planner, &request, api_interrupt_until(&p->interrupt), &e, &why);
  if (api_interrupt_look(&p->interrupt)) return api_interrupt_fail(err);
  if (code == SN_ERR_STATE && sn_backend_lost(p->backend->backend, NULL, 0)) return api_device_lost(p->backend, err);
  if (code != SN_OK) return api_hand_on(err, &why);
  if (cost) *cost = e.cost;
  const SinewStatus status = gradient ? take_gradient(p, &e, steps, gradient, err) : SINEW_OK;
  return status == SINEW_OK ? api_ok(err) : status;
}

SinewStatus sinew_planner_evaluate(SinewPlanner *planner, const SinewState *state, const double *ctrl, int steps,
                                   double *cost, double *gradient, SinewError *err) {
  const SinewStatus status = api_planner_enter(planner, "sinew_planner_evaluate", err);
  if (status != SINEW_OK) return status;
  return api_planner_leave(planner, evaluate(planner, state, ctrl, steps, cost, gradient, err));
}

static SinewStatus measure(SinewPlanner *p, const SinewState *state, double *value, int n, SinewError *err) {
  SnEvaluation e;
  SnError why = {0};
  if (!state || (!value && n > 0))
    return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_measure: %s is NULL", state ? "value" : "state");
  const SnEvaluateRequest request = evaluation_of(p, state);
  if (sn_planner_evaluate(p->planner, &request, INFINITY, &e, &why) != SN_OK) return api_hand_on(err, &why);
  if (n != e.nmeasure)
    return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_measure: n is %d, the task has %d measures", n, e.nmeasure);
  if (n > 0) memcpy(value, e.measure, (size_t)n * sizeof *value);
  return api_ok(err);
}

SinewStatus sinew_planner_measure(SinewPlanner *planner, const SinewState *state, double *value, int n,
                                  SinewError *err) {
  const SinewStatus status = api_planner_enter(planner, "sinew_planner_measure", err);
  if (status != SINEW_OK) return status;
  return api_planner_leave(planner, measure(planner, state, value, n, err));
}
