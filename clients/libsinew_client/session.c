// Sessions: opened, described, closed; and what acts where there is no plan.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/libsinew_client/accept_private.h"
#include "clients/libsinew_client/reflect.h"
#include "clients/libsinew_client/session_private.h"
#include "clients/libsinew_client/wire.h"

static const ApiStruct DEF = {"SinewSessionDef", "sinew_default_session", sizeof(SinewSessionDef),
                              API_END(SinewSessionDef, fallback_user)};

void sinew_session_fallback_zero(void *user, double now, const double *last, double *ctrl, int nu) {
  (void)user;
  (void)now;
  (void)last;
  for (int i = 0; i < nu; ++i) ctrl[i] = 0;
}

void sinew_session_fallback_hold(void *user, double now, const double *last, double *ctrl, int nu) {
  (void)user;
  (void)now;
  for (int i = 0; i < nu; ++i) ctrl[i] = last[i];
}

const SinewSessionInfo *sinew_session_info(const SinewSession *session) { return session ? &session->info : NULL; }

static SinewStatus send_open(SinewSession *session, const SinewSessionDef *def, Sinew__V1__PlannerSettings *planner,
                             SinewError *err) {
  char text[SN_MESSAGE_ERROR];
  for (const char *const *s = def->settings; s && *s; ++s)
    if (!sn_message_set(&planner->base, *s, text, sizeof text))
      return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "setting: %s", text);
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
  if (def->name) open.name = (char *)(uintptr_t)def->name;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  return sn_session_request(session, &request, &session->opened, err);
}

static SinewStatus describe(SinewSession *session, const char *task, SinewError *err) {
  Sinew__V1__DescribeTaskRequest ask = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
  ask.task = (char *)(uintptr_t)task;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_DESCRIBE_TASK;
  request.describe_task = &ask;
  return sn_session_request(session, &request, &session->described, err);
}

// Contacts of the simulated robot as the daemon describes them; numbers that it leaves out are the model's.
static SinewTaskPlant plant_of(const Sinew__V1__Plant *from) {
  SinewTaskPlant plant;
  const size_t nref = sizeof plant.solref / sizeof *plant.solref, nimp = sizeof plant.solimp / sizeof *plant.solimp;
  for (size_t i = 0; i < nref; ++i) plant.solref[i] = from && i < from->n_solref ? from->solref[i] : NAN;
  for (size_t i = 0; i < nimp; ++i) plant.solimp[i] = from && i < from->n_solimp ? from->solimp[i] : NAN;
  return plant;
}

static SinewStatus fill_info(SinewSession *session, SinewError *err) {
  const Sinew__V1__OpenReply *open = session->opened->open;
  const Sinew__V1__ModelDescription *model = session->described->describe_task->model;
  char why[400];
  if (!sn_accept_session(open, model, why, sizeof why)) return sn_wire_fail(err, SINEW_ERR_PROTOCOL, "%s", why);
  const Sinew__V1__State *s = open->initial;
  session->info = (SinewSessionInfo){
      .id = open->session,
      .model = model->model,
      .file = model->file,
      .timestep = model->timestep,
      .nq = (int)model->nq,
      .nv = (int)model->nv,
      .na = (int)model->na,
      .nu = (int)model->nu,
      .nmocap = (int)model->nmocap,
      .nhistory = (int)model->nhistory,
      .history = s->history,
      .restarts = open->restarts,
      .resumed = open->resumed,
      .initial = {.time = s->time, .qpos = s->qpos, .qvel = s->qvel, .act = s->act, .mocap = s->mocap},
      .plant = &session->plant};
  session->plant = plant_of(session->described->describe_task->plant);
  const size_t nu = model->nu ? model->nu : 1;
  session->ctrl_range = calloc(2 * nu, sizeof(double));
  session->last = calloc(nu, sizeof(double));
  session->history = calloc((size_t)model->nhistory + 1, sizeof(double));
  if (!session->ctrl_range || !session->last || !session->history)
    return api_fail(err, SINEW_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < model->nu; ++i) {
    const bool limited = model->ctrl[i]->limited;
    session->ctrl_range[2 * i] = limited ? model->ctrl[i]->min : -INFINITY;
    session->ctrl_range[2 * i + 1] = limited ? model->ctrl[i]->max : INFINITY;
  }
  session->info.ctrl_range = session->ctrl_range;
  return SINEW_OK;
}

SinewStatus sn_session_request(const SinewSession *session, Sinew__V1__Request *request, Sinew__V1__Reply **reply,
                               SinewError *err) {
  return sn_request_about(session->client, request, session->kept, reply, err);
}

bool sn_session_outlasts(const SinewSession *session, const Sinew__V1__Reply *reply) {
  return session->kept && sn_wire_stopping(reply);
}

static void free_session(SinewSession *session) {
  sn_free_reply(session->opened);
  sn_free_reply(session->described);
  sn_free_reply(session->planned);
  free(session->ctrl_range);
  free(session->last);
  free(session->history);
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

// Frees a session that could not be used. The daemon, if it opened it, is told; its answer is not waited for. One with
// a name may be somebody's for long, and stays.
static void abandon(SinewSession *session) {
  if (session->opened && !session->kept) {
    Sinew__V1__CloseRequest close;
    Sinew__V1__Request request = close_request(session, &close);
    sn_wire_send(session->client, &request, NULL, NULL);
  }
  free_session(session);
}

// Reads the caller's definition.
static SinewStatus take_def(const SinewSessionDef *caller, SinewSessionDef *def, SinewError *err) {
  *def = sinew_default_session();
  const SinewStatus status = api_take(&DEF, caller, def, err);
  if (status != SINEW_OK) return status;
  if (!def->task) return api_fail(err, SINEW_ERR_ARGUMENT, "SinewSessionDef.task is NULL; a name is needed");
  if (isnan(def->latency) || isnan(def->lease) || isnan(def->time_to_live))
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewSessionDef: latency, lease and time_to_live are %g, %g and %g s",
                    def->latency, def->lease, def->time_to_live);
  if (def->name && !*def->name)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewSessionDef.name is \"\"; allowed are a name, and NULL for none");
  if (def->gain_rows < 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewSessionDef.gain_rows is %d; allowed is at least 0", def->gain_rows);
  return SINEW_OK;
}

SinewSession *sinew_session_open(SinewClient *client, const SinewSessionDef *caller, SinewError *err) {
  SinewSessionDef def;
  if (!client) api_fail(err, SINEW_ERR_ARGUMENT, "client is NULL");
  if (!client || take_def(caller, &def, err) != SINEW_OK) return NULL;
  SinewSession *session = calloc(1, sizeof *session);
  if (!session) {
    api_fail(err, SINEW_ERR_MEMORY, "out of memory");
    return NULL;
  }
  session->client = client;
  session->latest = session->furthest = -INFINITY;
  session->fallback = def.fallback ? def.fallback : sinew_session_fallback_zero;
  session->fallback_user = def.fallback_user;
  session->gain_rows = def.gain_rows;
  session->kept = def.name != NULL;
  Sinew__V1__PlannerSettings planner = SINEW__V1__PLANNER_SETTINGS__INIT;
  SinewStatus status = send_open(session, &def, &planner, err);
  sn_message_clear(&planner.base);
  if (status == SINEW_OK) status = describe(session, def.task, err);
  if (status == SINEW_OK) status = fill_info(session, err);
  if (status == SINEW_OK) return session;
  abandon(session);
  return NULL;
}

void sinew_session_leave(SinewSession *session) {
  if (session) free_session(session);
}

SinewStatus sinew_session_close(SinewSession *session, SinewError *err) {
  if (!session) return api_ok(err);
  Sinew__V1__CloseRequest close;
  Sinew__V1__Request request = close_request(session, &close);
  Sinew__V1__Reply *reply;
  SinewStatus status = sn_wire_ask(session->client, &request, session->kept, &reply, err);
  if (status == SINEW_OK) status = sn_wire_check(reply, true, err);
  // No such session: it is closed. So says the answer, too, where the first one was lost and the request sent again.
  if (status == SINEW_ERR_NO_SESSION) status = SINEW_OK;
  sn_free_reply(reply);
  free_session(session);
  return status == SINEW_OK ? api_ok(err) : status;
}
