#include "clients/include/sinew_client.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew_client/accept_private.h"
#include "clients/libsinew_client/reflect.h"
#include "clients/libsinew_client/wire.h"
#include "physics/base/clock.h"

struct SinewSession {
  SinewClient *client;
  Sinew__V1__Reply *opened;  // owns the strings and arrays of `info`
  Sinew__V1__Reply *described;
  Sinew__V1__Reply *planned;  // owns the arrays of `plan`
  SinewSessionInfo info;
  SinewPlan plan;
  double *ctrl_range;
  double *last;  // latest controls given, (nu)
  // Ids of requests: of the latest state sent without waiting, and that up to which answers are of no use any more.
  uint64_t sent, taken;
  uint64_t read;  // stream_sequence of the latest plan of the stream that was read
  double latest;  // time stamp of the latest state sent [s]; -infinity before the first
  SinewFallback *fallback;
  void *fallback_user;
};

void sinew_fallback_zero(void *user, double now, const double *last, double *ctrl, int nu) {
  (void)user;
  (void)now;
  (void)last;
  for (int i = 0; i < nu; ++i) ctrl[i] = 0;
}

void sinew_fallback_hold(void *user, double now, const double *last, double *ctrl, int nu) {
  (void)user;
  (void)now;
  for (int i = 0; i < nu; ++i) ctrl[i] = last[i];
}

SinewSessionDef sinew_default_session(void) {
  return (SinewSessionDef){.task = NULL,
                           .seed = 0,
                           .settings = NULL,
                           .latency = -1,
                           .lease = 0,
                           .time_to_live = 0,
                           .fallback = NULL,
                           .fallback_user = NULL};
}

const SinewSessionInfo *sinew_session_info(const SinewSession *session) { return &session->info; }

const SinewPlan *sinew_current_plan(const SinewSession *session) { return session->planned ? &session->plan : NULL; }

//--------------------------------------------------------------------------------------------- open

static SinewStatus send_open(SinewSession *session, const SinewSessionDef *def, Sinew__V1__PlannerSettings *planner) {
  char error[1024];
  for (const char *const *s = def->settings; s && *s; ++s)
    if (!sn_message_set(&planner->base, *s, error, sizeof error))
      return sn_wire_fail(session->client, SINEW_ARGUMENT, "setting %s", error);
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  if (def->latency >= 0) {
    settings.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
    settings.latency = def->latency;
  }
  if (def->lease > 0) {
    settings.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
    settings.lease = def->lease;
  }
  if (def->time_to_live > 0) {
    settings.has_time_to_live_case = SINEW__V1__SESSION_SETTINGS__HAS_TIME_TO_LIVE_TIME_TO_LIVE;
    settings.time_to_live = def->time_to_live;
  }
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  open.task = (char *)(uintptr_t)def->task;
  open.seed = def->seed;
  open.planner = planner;
  open.session = &settings;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  return sn_request(session->client, &request, &session->opened);
}

static SinewStatus describe(SinewSession *session, const char *task) {
  Sinew__V1__DescribeTaskRequest ask = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
  ask.task = (char *)(uintptr_t)task;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_DESCRIBE_TASK;
  request.describe_task = &ask;
  return sn_request(session->client, &request, &session->described);
}

static SinewStatus fill_info(SinewSession *session) {
  const Sinew__V1__OpenReply *open = session->opened->open;
  const Sinew__V1__TaskDescription *task = session->described->describe_task;
  const Sinew__V1__ModelDescription *model = task->model;
  char why[400];
  if (!sn_accept_session(open, model, why, sizeof why)) return sn_wire_fail(session->client, SINEW_PROTOCOL, "%s", why);
  SinewSessionInfo *info = &session->info;
  *info = (SinewSessionInfo){.id = open->session,
                             .model = model->model,
                             .file = model->file,
                             .timestep = model->timestep,
                             .nq = (int)model->nq,
                             .nv = (int)model->nv,
                             .na = (int)model->na,
                             .nu = (int)model->nu,
                             .nmocap = (int)model->nmocap};
  const Sinew__V1__State *s = open->initial;
  info->qpos = s->qpos;
  info->qvel = s->qvel;
  info->act = s->act;
  info->mocap = s->mocap;
  const size_t nu = model->nu ? model->nu : 1;
  session->ctrl_range = calloc(2 * nu, sizeof(double));
  session->last = calloc(nu, sizeof(double));
  if (!session->ctrl_range || !session->last) return sn_wire_fail(session->client, SINEW_MEMORY, "out of memory");
  for (size_t i = 0; i < model->nu; ++i) {
    const bool limited = model->ctrl[i]->limited;
    session->ctrl_range[2 * i] = limited ? model->ctrl[i]->min : -INFINITY;
    session->ctrl_range[2 * i + 1] = limited ? model->ctrl[i]->max : INFINITY;
  }
  info->ctrl_range = session->ctrl_range;
  return SINEW_OK;
}

static void free_session(SinewSession *session) {
  sn_free_reply(session->opened);
  sn_free_reply(session->described);
  sn_free_reply(session->planned);
  free(session->ctrl_range);
  free(session->last);
  free(session);
}

static Sinew__V1__Request close_request(const SinewSession *session, Sinew__V1__CloseRequest *close) {
  *close = (Sinew__V1__CloseRequest)SINEW__V1__CLOSE_REQUEST__INIT;
  close->session = session->opened->open->session;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = close;
  return request;
}

// Frees a session that could not be used. The daemon, if it opened it, is told; its answer is not waited for, and
// the text of the failure stays.
static void abandon(SinewSession *session) {
  if (session->opened) {
    Sinew__V1__CloseRequest close;
    Sinew__V1__Request request = close_request(session, &close);
    char text[1000];
    snprintf(text, sizeof text, "%s", sinew_error(session->client));
    sn_wire_send(session->client, &request, NULL);
    sn_wire_fail(session->client, SINEW_OK, "%s", text);
  }
  free_session(session);
}

SinewStatus sinew_open(SinewClient *client, const SinewSessionDef *def, SinewSession **out) {
  *out = NULL;
  if (!def->task) return sn_wire_fail(client, SINEW_ARGUMENT, "task: a name is needed");
  SinewSession *session = calloc(1, sizeof *session);
  if (!session) return sn_wire_fail(client, SINEW_MEMORY, "out of memory");
  session->client = client;
  session->latest = -INFINITY;
  session->fallback = def->fallback ? def->fallback : sinew_fallback_zero;
  session->fallback_user = def->fallback_user;
  Sinew__V1__PlannerSettings planner = SINEW__V1__PLANNER_SETTINGS__INIT;
  SinewStatus status = send_open(session, def, &planner);
  sn_message_clear(&planner.base);
  if (status == SINEW_OK) status = describe(session, def->task);
  if (status == SINEW_OK) status = fill_info(session);
  if (status == SINEW_OK)
    *out = session;
  else
    abandon(session);
  return status;
}

SinewStatus sinew_close(SinewSession *session) {
  if (!session) return SINEW_OK;
  Sinew__V1__CloseRequest close;
  Sinew__V1__Request request = close_request(session, &close);
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(session->client, &request, &reply);
  sn_free_reply(reply);
  free_session(session);
  return status;
}

//--------------------------------------------------------------------------------------------- plan

// A state on the wire, which refers to the arrays of `state`.
static SinewStatus fill_state(const SinewSession *session, const SinewState *state, Sinew__V1__State *s) {
  const SinewSessionInfo *info = &session->info;
  if ((!state->qpos && info->nq) || (!state->qvel && info->nv))
    return sn_wire_fail(session->client, SINEW_ARGUMENT, "a state needs qpos and qvel");
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
  return SINEW_OK;
}

static SinewStatus fill_request(const SinewSession *session, const SinewState *state, double deadline,
                                Sinew__V1__Request *request, Sinew__V1__PlanRequest *plan, Sinew__V1__State *s) {
  const SinewStatus status = fill_state(session, state, s);
  if (status != SINEW_OK) return status;
  *plan = (Sinew__V1__PlanRequest)SINEW__V1__PLAN_REQUEST__INIT;
  plan->session = session->info.id;
  plan->state = s;
  plan->deadline = deadline;
  *request = (Sinew__V1__Request)SINEW__V1__REQUEST__INIT;
  request->body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request->plan = plan;
  return SINEW_OK;
}

// Whether a reply brings a plan that may be put in force; else what it is, with the client's error text.
static SinewStatus judge_plan(const SinewSession *session, const Sinew__V1__Reply *reply) {
  SinewClient *client = session->client;
  const SinewStatus status = sn_wire_check(client, reply);
  if (status != SINEW_OK) return status;
  if (reply->body_case != SINEW__V1__REPLY__BODY_PLAN)
    return sn_wire_fail(client, SINEW_PROTOCOL, "unexpected answer to a plan request");
  const Sinew__V1__Plan *p = reply->plan;
  const bool ours = p->session == session->info.id;
  if (ours && (p->status == SINEW__V1__PLAN__STATUS__REPLACED || p->status == SINEW__V1__PLAN__STATUS__DIVERGED))
    return sn_wire_fail(client, SINEW_NO_PLAN, "no plan for the state at %g s", p->state_time);
  char why[400];
  if (!sn_accept_plan(p, &session->info, session->latest, why, sizeof why))
    return sn_wire_fail(client, SINEW_BAD_PLAN, "a plan of the daemon is refused: %s", why);
  return SINEW_OK;
}

static int count(uint32_t n) { return n < INT_MAX ? (int)n : INT_MAX; }

// Takes over a reply: a usable plan becomes the one in force.
static SinewStatus take_plan(SinewSession *session, Sinew__V1__Reply *reply) {
  const SinewStatus status = judge_plan(session, reply);
  if (status != SINEW_OK) {
    sn_free_reply(reply);
    return status;
  }
  const Sinew__V1__Plan *p = reply->plan;
  sn_free_reply(session->planned);
  session->planned = reply;
  session->plan = (SinewPlan){.sequence = p->sequence,
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
                              .stream_sequence = p->stream_sequence,
                              .stream_misses = p->stream_misses,
                              .backend = p->backend,
                              .device_lost = p->device_lost};
  return SINEW_OK;
}

SinewStatus sinew_plan(SinewSession *session, const SinewState *state, double deadline) {
  Sinew__V1__Request request;
  Sinew__V1__PlanRequest plan;
  Sinew__V1__State s;
  Sinew__V1__Reply *reply;
  SinewStatus status = fill_request(session, state, deadline, &request, &plan, &s);
  if (status != SINEW_OK) return status;
  session->latest = state->time;
  status = sn_request(session->client, &request, &reply);
  session->taken = request.id;  // answers to earlier states are of no use from here on
  return status == SINEW_OK ? take_plan(session, reply) : status;
}

SinewStatus sinew_send_state(SinewSession *session, const SinewState *state, double deadline) {
  Sinew__V1__Request request;
  Sinew__V1__PlanRequest plan;
  Sinew__V1__State s;
  const SinewStatus status = fill_request(session, state, deadline, &request, &plan, &s);
  if (status != SINEW_OK) return status;
  session->latest = state->time;
  return sn_wire_send(session->client, &request, &session->sent);
}

// Is a reply of no use? It does not answer a state that this session sent without waiting, or one that is older than
// a state answered already, or it only says that a newer state took its place.
static bool is_stale(const SinewSession *session, const Sinew__V1__Reply *reply) {
  if (reply->id == 0) return false;  // the daemon could not read a request
  if (reply->id <= session->taken || reply->id > session->sent) return true;
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) return false;
  if (reply->body_case != SINEW__V1__REPLY__BODY_PLAN || reply->plan->session != session->info.id) return true;
  return reply->plan->status == SINEW__V1__PLAN__STATUS__REPLACED && reply->id != session->sent;
}

SinewStatus sinew_receive(SinewSession *session, double wait) {
  const double until = sn_clock_now() + wait;
  for (;;) {
    Sinew__V1__Reply *reply;
    const SinewStatus status = sn_wire_receive(session->client, until - sn_clock_now(), &reply);
    if (status != SINEW_OK) return status;
    if (is_stale(session, reply)) {
      sn_free_reply(reply);
      continue;
    }
    session->taken = reply->id ? reply->id : session->taken;
    return take_plan(session, reply);
  }
}

SinewStatus sinew_evaluate(SinewSession *session, const SinewState *state, const double *ctrl, int steps, double *cost,
                           double *gradient) {
  Sinew__V1__State s;
  SinewStatus status = fill_state(session, state, &s);
  if (status != SINEW_OK) return status;
  if (steps < 1 || !ctrl || !cost)
    return sn_wire_fail(session->client, SINEW_ARGUMENT, "evaluate needs controls of a step and room for the cost");
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
  status = sn_request(session->client, &request, &reply);
  if (status != SINEW_OK) return status;
  const Sinew__V1__Gradient *g = reply->evaluate->gradient;
  const size_t bad = gradient && g && g->n_ctrl == n ? sn_first_not_finite(g->ctrl, n) : n;
  if (isnan(reply->evaluate->cost))
    status = sn_wire_fail(session->client, SINEW_PROTOCOL, "the cost is nan");
  else if (gradient && (!g || g->n_ctrl != n))
    status = sn_wire_fail(session->client, SINEW_PROTOCOL, "the gradient has the wrong size");
  else if (bad < n)
    status = sn_wire_fail(session->client, SINEW_PROTOCOL, "gradient[%zu] is %g", bad, g->ctrl[bad]);
  else
    *cost = reply->evaluate->cost;
  if (status == SINEW_OK && gradient && n > 0) memcpy(gradient, g->ctrl, n * sizeof *gradient);
  sn_free_reply(reply);
  return status;
}

//--------------------------------------------------------------------------------------------- continuous mode

SinewStreamDef sinew_default_stream(void) {
  return (SinewStreamDef){.lease = 0.5, .deadline = 0.04, .period = 0, .iterations = 0};
}

static SinewStatus stream_request(SinewSession *session, const SinewStreamDef *def, bool stop) {
  Sinew__V1__StreamRequest in = SINEW__V1__STREAM_REQUEST__INIT;
  in.session = session->info.id;
  in.stop = stop;
  in.lease = def->lease;
  in.deadline = def->deadline;
  in.period = def->period;
  in.iterations = (uint32_t)(def->iterations > 0 ? def->iterations : 0);
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM;
  request.stream = &in;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(session->client, &request, &reply);
  if (status == SINEW_OK && reply->stream->states == 0) session->read = 0;  // it has just begun
  sn_free_reply(reply);
  return status;
}

SinewStatus sinew_stream_start(SinewSession *session, const SinewStreamDef *def) {
  return stream_request(session, def, false);
}

SinewStatus sinew_stream_stop(SinewSession *session) {
  const SinewStreamDef def = sinew_default_stream();
  const SinewStatus status = stream_request(session, &def, true);
  session->read = 0;
  return status;
}

SinewStatus sinew_stream_state(SinewSession *session, const SinewState *state) {
  Sinew__V1__State s;
  const SinewStatus status = fill_state(session, state, &s);
  if (status != SINEW_OK) return status;
  Sinew__V1__StreamState in = SINEW__V1__STREAM_STATE__INIT;
  in.session = session->info.id;
  in.state = &s;
  in.has_seen_case = SINEW__V1__STREAM_STATE__HAS_SEEN_SEEN;
  in.seen = session->read;
  session->latest = state->time;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM_STATE;
  request.stream_state = &in;
  return sn_wire_send(session->client, &request, NULL);
}

// Tells what a reply means for the stream; SINEW_TIMEOUT: nothing. Takes the reply over.
static SinewStatus take_streamed(SinewSession *session, Sinew__V1__Reply *reply) {
  SinewStatus status = SINEW_TIMEOUT;
  if (reply->body_case == SINEW__V1__REPLY__BODY_PLAN && reply->plan->session == session->info.id &&
      reply->plan->stream_sequence > session->read) {
    const uint64_t sequence = reply->plan->stream_sequence;
    status = take_plan(session, reply);
    if (status != SINEW_BAD_PLAN) session->read = sequence;  // the number of a plan that is refused is not believed
    return status;
  }
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) status = sn_wire_check(session->client, reply);
  if (reply->body_case == SINEW__V1__REPLY__BODY_STREAM && reply->stream->session == session->info.id &&
      reply->stream->end != SINEW__V1__STREAM_REPLY__END__RUNNING)
    status = sn_wire_fail(session->client, SINEW_ENDED, "%s",
                          reply->stream->end == SINEW__V1__STREAM_REPLY__END__LEASE
                              ? "continuous mode has ended: no state came within its lease"
                              : "continuous mode has ended: the session was closed");
  sn_free_reply(reply);
  return status;
}

SinewStatus sinew_stream_poll(SinewSession *session, double wait) {
  const double until = sn_clock_now() + wait;
  SinewStatus found = SINEW_TIMEOUT;
  for (;;) {
    Sinew__V1__Reply *reply;
    // Once something has come, only what lies there already is read too.
    const double left = found == SINEW_TIMEOUT ? until - sn_clock_now() : 0;
    SinewStatus status = sn_wire_receive(session->client, left, &reply);
    if (status == SINEW_TIMEOUT) return found;
    if (status == SINEW_OK) status = take_streamed(session, reply);
    if (status == SINEW_TIMEOUT) continue;
    if (status != SINEW_OK && status != SINEW_NO_PLAN) return status;
    found = status;
  }
}

//--------------------------------------------------------------------------------------------- control

// Limits controls to their range and notes them as the latest ones given. What is no number stays none.
static void limit(SinewSession *session, double *ctrl) {
  for (int i = 0; i < session->info.nu; ++i) {
    const double lo = session->ctrl_range[2 * i], hi = session->ctrl_range[2 * i + 1];
    ctrl[i] = ctrl[i] < lo ? lo : ctrl[i] > hi ? hi : ctrl[i];
    session->last[i] = ctrl[i];
  }
}

// Gives the fallback's controls and says why.
static SinewStatus fall_back(SinewSession *session, SinewStatus status, double now, double *ctrl) {
  session->fallback(session->fallback_user, now, session->last, ctrl, session->info.nu);
  limit(session, ctrl);
  return status;
}

SinewStatus sinew_control(SinewSession *session, double now, double *ctrl) {
  const SinewPlan *plan = sinew_current_plan(session);
  if (!plan) return fall_back(session, SINEW_NO_PLAN, now, ctrl);
  // As long before the state: the caller's clock has been set back since.
  if (!(fabs(now - plan->state_time) <= plan->time_to_live)) return fall_back(session, SINEW_EXPIRED, now, ctrl);
  // A stamp on the grid belongs to the row that starts there, whatever the rounding of the division.
  const double row = floor((now - plan->start) / plan->step + 1e-6);
  const int i = !(row > 0) ? 0 : (row > plan->steps - 1 ? plan->steps - 1 : (int)row);
  memcpy(ctrl, plan->ctrl + (size_t)i * (size_t)session->info.nu, sizeof(double) * (size_t)session->info.nu);
  limit(session, ctrl);
  return SINEW_OK;
}
