// Plans by a deadline, and the controls of the plan in force.
#include "clients/include/sinew_client.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/libsinew_client/accept_private.h"
#include "clients/libsinew_client/feedback_private.h"
#include "clients/libsinew_client/session_private.h"
#include "clients/libsinew_client/wire.h"
#include "physics/base/clock.h"

const SinewSessionPlan *sinew_session_current_plan(const SinewSession *session) {
  return session && session->planned ? &session->plan : NULL;
}

//------------------------------------------------------------------------------------------- states

static SinewStatus check_numbers(const char *name, const double *x, size_t n, SinewError *err) {
  const size_t bad = x ? sn_first_not_finite(x, n) : n;
  if (bad == n) return SINEW_OK;
  return api_fail(err, SINEW_ERR_ARGUMENT, "the state has %s[%zu] = %g; allowed are finite numbers", name, bad, x[bad]);
}

SinewStatus sn_session_state(const SinewSession *session, const SinewState *state, Sinew__V1__State *s,
                             SinewError *err) {
  if (!session || !state) return api_fail(err, SINEW_ERR_ARGUMENT, "%s is NULL", session ? "state" : "session");
  const SinewSessionInfo *info = &session->info;
  if ((!state->qpos && info->nq) || (!state->qvel && info->nv))
    return api_fail(err, SINEW_ERR_ARGUMENT, "a measured state needs qpos and qvel; %s is NULL",
                    state->qpos || !info->nq ? "qvel" : "qpos");
  *s = (Sinew__V1__State)SINEW__V1__STATE__INIT;
  s->time = state->time;
  s->n_qpos = (size_t)info->nq;
  s->qpos = (double *)(uintptr_t)state->qpos;
  s->n_qvel = (size_t)info->nv;
  s->qvel = (double *)(uintptr_t)state->qvel;
  s->n_act = state->act ? (size_t)info->na : 0;
  s->act = (double *)(uintptr_t)state->act;
  s->n_mocap = state->mocap ? 7 * (size_t)info->nmocap : 0;
  s->mocap = (double *)(uintptr_t)state->mocap;
  s->n_history = session->has_history ? (size_t)info->nhistory : 0;
  s->history = session->history;
  if (!isfinite(s->time))
    return api_fail(err, SINEW_ERR_ARGUMENT, "the state has time = %g s; allowed are finite numbers", s->time);
  SinewStatus status = check_numbers("qpos", s->qpos, s->n_qpos, err);
  if (status == SINEW_OK) status = check_numbers("qvel", s->qvel, s->n_qvel, err);
  if (status == SINEW_OK) status = check_numbers("act", s->act, s->n_act, err);
  return status == SINEW_OK ? check_numbers("mocap", s->mocap, s->n_mocap, err) : status;
}

SinewStatus sinew_session_set_history(SinewSession *session, const double *history, int n, SinewError *err) {
  if (!session || !history) return api_fail(err, SINEW_ERR_ARGUMENT, "%s is NULL", session ? "history" : "session");
  if (n != session->info.nhistory)
    return api_fail(err, SINEW_ERR_ARGUMENT, "history has %d numbers, that of the model has %d", n,
                    session->info.nhistory);
  const SinewStatus status = check_numbers("history", history, (size_t)n, err);
  if (status != SINEW_OK) return status;
  memcpy(session->history, history, sizeof *history * (size_t)n);
  session->has_history = n > 0;
  return api_ok(err);
}

//-------------------------------------------------------------------------------------------- plans

// A request for a plan, of parts that refer to each other.
typedef struct Asked {
  Sinew__V1__Request request;
  Sinew__V1__PlanRequest plan;
  Sinew__V1__State state;
} Asked;

static SinewStatus fill_request(const SinewSession *session, const SinewState *state, double deadline, Asked *asked,
                                SinewError *err) {
  const SinewStatus status = sn_session_state(session, state, &asked->state, err);
  if (status != SINEW_OK) return status;
  asked->plan = (Sinew__V1__PlanRequest)SINEW__V1__PLAN_REQUEST__INIT;
  asked->plan.session = session->info.id;
  asked->plan.state = &asked->state;
  asked->plan.deadline = deadline;
  if (session->gain_rows > 0) {
    asked->plan.has_gain_rows_case = SINEW__V1__PLAN_REQUEST__HAS_GAIN_ROWS_GAIN_ROWS;
    asked->plan.gain_rows = (uint32_t)session->gain_rows;
  }
  asked->request = (Sinew__V1__Request)SINEW__V1__REQUEST__INIT;
  asked->request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  asked->request.plan = &asked->plan;
  return SINEW_OK;
}

void sn_session_stamp(SinewSession *session, double time) {
  if (time < session->latest) session->taken = session->sent;  // set back: what is on its way is of no use
  session->latest = time;
  session->furthest = fmax(session->furthest, time);
  session->has_history = false;
}

bool sn_session_outlived(const SinewSession *session, const Sinew__V1__Plan *plan) {
  return plan->state_time > session->latest && plan->state_time <= session->furthest;
}

// Whether a reply brings a plan that may be put in force; else what it is.
static SinewStatus judge_plan(const SinewSession *session, const Sinew__V1__Reply *reply, SinewError *err) {
  const SinewStatus status = sn_wire_check(reply, true, err);
  if (status != SINEW_OK) return status;
  if (reply->body_case != SINEW__V1__REPLY__BODY_PLAN)
    return sn_wire_fail(err, SINEW_ERR_PROTOCOL, "unexpected answer to a plan request");
  const Sinew__V1__Plan *p = reply->plan;
  const bool ours = p->session == session->info.id;
  if (ours && (p->status == SINEW__V1__PLAN__STATUS__REPLACED || p->status == SINEW__V1__PLAN__STATUS__DIVERGED))
    return sn_wire_fail(err, SINEW_ERR_NO_PLAN, "no plan for the state at %g s", p->state_time);
  char why[400];
  if (!sn_accept_plan(p, &session->info, session->latest, why, sizeof why))
    return sn_wire_fail(err, SINEW_ERR_BAD_PLAN, "a plan of the daemon is refused: %s", why);
  const char *fault = sn_gain_fault(session->described->describe_task->model, p);
  if (fault) return sn_wire_fail(err, SINEW_ERR_BAD_PLAN, "a plan of the daemon is refused: %s", fault);
  return SINEW_OK;
}

static int count(uint32_t n) { return n < INT_MAX ? (int)n : INT_MAX; }

SinewStatus sn_session_take_plan(SinewSession *session, Sinew__V1__Reply *reply, SinewError *err) {
  const SinewStatus status = judge_plan(session, reply, err);
  if (status != SINEW_OK) {
    sn_free_reply(reply);
    return status;
  }
  const Sinew__V1__Plan *p = reply->plan;
  sn_free_reply(session->planned);
  session->planned = reply;
  session->plan = (SinewSessionPlan){.number = p->sequence,
                                     .state_time = p->state_time,
                                     .age = p->age,
                                     .time_to_live = p->time_to_live,
                                     .start = p->start,
                                     .step = p->step,
                                     .steps = (int)p->steps,
                                     .ctrl = p->ctrl,
                                     .cost_before = p->cost_before,
                                     .cost_after = p->cost_after,
                                     .iterations = count(p->iterations),
                                     .candidates = count(p->candidates),
                                     .refined = p->status == SINEW__V1__PLAN__STATUS__OK,
                                     .deadline_met = p->deadline_met,
                                     .act_estimated = p->act_estimated,
                                     .gradient_norm = p->gradient_norm,
                                     .config_version = p->config_version,
                                     .stream_number = p->stream_sequence,
                                     .stream_misses = p->stream_misses,
                                     .backend = p->backend,
                                     .device_lost = p->device_lost,
                                     .lead = (int)p->lead,
                                     .gain = p->n_gain ? p->gain : NULL,
                                     .gain_rows = (int)p->gain_rows,
                                     .stuck = p->stuck,
                                     .unimproved = count(p->unimproved),
                                     .restarts = p->restarts,
                                     .from_policy = p->from_policy};
  return api_ok(err);
}

SinewStatus sinew_session_plan(SinewSession *session, const SinewState *state, double deadline, SinewError *err) {
  Asked asked;
  Sinew__V1__Reply *reply;
  SinewStatus status = fill_request(session, state, deadline, &asked, err);
  if (status != SINEW_OK) return status;
  sn_session_stamp(session, state->time);
  status = sn_session_request(session, &asked.request, &reply, err);
  session->taken = asked.request.id;  // answers to earlier states are of no use from here on
  return status == SINEW_OK ? sn_session_take_plan(session, reply, err) : status;
}

SinewStatus sinew_session_send(SinewSession *session, const SinewState *state, double deadline, SinewError *err) {
  Asked asked;
  const SinewStatus status = fill_request(session, state, deadline, &asked, err);
  if (status != SINEW_OK) return status;
  sn_session_stamp(session, state->time);
  return sn_wire_send(session->client, &asked.request, &session->sent, err);
}

// Is a reply of no use? It does not answer a state that this session sent without waiting, or one that is older than
// a state answered already or of before the clock was set back, or it only says that a newer state took its place.
static bool is_stale(const SinewSession *session, const Sinew__V1__Reply *reply) {
  if (reply->id == 0) return false;  // the daemon could not read a request
  if (reply->id <= session->taken || reply->id > session->sent || sn_wire_coming(reply)) return true;
  if (sn_session_outlasts(session, reply)) return true;
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) return false;
  if (reply->body_case != SINEW__V1__REPLY__BODY_PLAN || reply->plan->session != session->info.id) return true;
  if (sn_session_outlived(session, reply->plan)) return true;
  return reply->plan->status == SINEW__V1__PLAN__STATUS__REPLACED && reply->id != session->sent;
}

SinewStatus sinew_session_receive(SinewSession *session, double wait, SinewError *err) {
  if (!session) return api_fail(err, SINEW_ERR_ARGUMENT, "session is NULL");
  const double until = sn_clock_now() + wait;
  for (;;) {
    Sinew__V1__Reply *reply;
    const SinewStatus status = sn_wire_receive(session->client, until - sn_clock_now(), &reply, err);
    if (status == SINEW_ERR_TIMEOUT) return api_fail(err, status, "no plan has come within %g s", wait);
    if (status != SINEW_OK) return status;
    if (is_stale(session, reply)) {
      sn_free_reply(reply);
      continue;
    }
    session->taken = reply->id ? reply->id : session->taken;
    return sn_session_take_plan(session, reply, err);
  }
}

// Checks an evaluation with n controls and copies it to the caller.
static SinewStatus take_evaluation(const Sinew__V1__Evaluation *e, size_t n, double *cost, double *gradient,
                                   SinewError *err) {
  if (isnan(e->cost)) return sn_wire_fail(err, SINEW_ERR_PROTOCOL, "the cost is nan");
  if (gradient) {
    const Sinew__V1__Gradient *g = e->gradient;
    if (!g || g->n_ctrl != n) return sn_wire_fail(err, SINEW_ERR_PROTOCOL, "the gradient has the wrong size");
    const size_t bad = sn_first_not_finite(g->ctrl, n);
    if (bad < n) return sn_wire_fail(err, SINEW_ERR_PROTOCOL, "gradient[%zu] is %g", bad, g->ctrl[bad]);
    if (n > 0) memcpy(gradient, g->ctrl, n * sizeof *gradient);
  }
  *cost = e->cost;
  return api_ok(err);
}

SinewStatus sinew_session_evaluate(SinewSession *session, const SinewState *state, const double *ctrl, int steps,
                                   double *cost, double *gradient, SinewError *err) {
  Sinew__V1__State s;
  SinewStatus status = sn_session_state(session, state, &s, err);
  if (status != SINEW_OK) return status;
  if (steps < 1 || !ctrl || !cost)
    return api_fail(err, SINEW_ERR_ARGUMENT, "ctrl and cost must not be NULL, and steps, %d, at least 1", steps);
  const size_t n = (size_t)steps * (size_t)session->info.nu;
  Sinew__V1__EvaluateRequest in = SINEW__V1__EVALUATE_REQUEST__INIT;
  in.session = session->info.id;
  in.state = &s;
  in.n_ctrl = n;
  in.ctrl = (double *)(uintptr_t)ctrl;
  in.want_gradient = gradient != NULL;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  request.evaluate = &in;
  Sinew__V1__Reply *reply;
  status = sn_session_request(session, &request, &reply, err);
  if (status == SINEW_OK) status = take_evaluation(reply->evaluate, n, cost, gradient, err);
  sn_free_reply(reply);
  return status;
}

//----------------------------------------------------------------------------------------- controls

// Limits controls to their range and notes them as the latest ones given. What is no number stays none.
static void limit(SinewSession *session, double *ctrl) {
  for (int i = 0; i < session->info.nu; ++i) {
    const double lo = session->ctrl_range[2 * i], hi = session->ctrl_range[2 * i + 1];
    ctrl[i] = ctrl[i] < lo ? lo : ctrl[i] > hi ? hi : ctrl[i];
    session->last[i] = ctrl[i];
  }
}

// Gives the fallback's controls.
static void fall_back(SinewSession *session, double now, double *ctrl) {
  session->fallback(session->fallback_user, now, session->last, ctrl, session->info.nu);
  limit(session, ctrl);
}

// A stamp on the grid belongs to the row that starts there, whatever the rounding of the division.
static size_t row_at(const SinewSessionPlan *plan, double now) {
  const double row = floor((now - plan->start) / plan->step + 1e-6);
  return !(row > 0) ? 0 : (row > plan->steps - 1 ? (size_t)plan->steps - 1 : (size_t)row);
}

SinewStatus sinew_session_control(SinewSession *session, double now, double *ctrl, SinewError *err) {
  const SinewSessionPlan *plan = sinew_session_current_plan(session);
  if (!session || !ctrl) return api_fail(err, SINEW_ERR_ARGUMENT, "%s is NULL", session ? "ctrl" : "session");
  // As long before the state: the caller's clock has been set back since.
  if (!plan || !(fabs(now - plan->state_time) <= plan->time_to_live)) {
    fall_back(session, now, ctrl);
    if (!plan) return api_fail(err, SINEW_ERR_NO_PLAN, "no plan has come yet: the fallback acts");
    return api_fail(err, SINEW_ERR_EXPIRED,
                    "at %g s the plan of the state at %g s must not be used, it lives %g s: the fallback acts", now,
                    plan->state_time, plan->time_to_live);
  }
  const size_t nu = (size_t)session->info.nu;
  memcpy(ctrl, plan->ctrl + row_at(plan, now) * nu, sizeof(double) * nu);
  limit(session, ctrl);
  return api_ok(err);
}

SinewStatus sinew_session_feedback(SinewSession *session, const SinewState *state, double *ctrl, bool *corrected,
                                   SinewError *err) {
  Sinew__V1__State checked;
  if (corrected) *corrected = false;
  SinewStatus status = sn_session_state(session, state, &checked, err);
  if (status == SINEW_OK && !state->act && session->info.na > 0)
    status = api_fail(err, SINEW_ERR_ARGUMENT, "feedback needs the activations, and act is NULL");
  if (status == SINEW_OK) status = sinew_session_control(session, state->time, ctrl, err);
  if (status != SINEW_OK) return status;
  const size_t row = row_at(&session->plan, state->time);
  if (!sn_feedback(session->described->describe_task->model, session->planned->plan, row, state, ctrl)) return status;
  limit(session, ctrl);
  // Large gains, or a state far away, may come to no number: the row acts as it was planned.
  if (sn_accept_controls(ctrl, (size_t)session->info.nu) < (size_t)session->info.nu)
    return sinew_session_control(session, state->time, ctrl, err);
  if (corrected) *corrected = true;
  return api_ok(err);
}
