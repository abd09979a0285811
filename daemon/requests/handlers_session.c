// Requests to a session: what depends on its model is checked here, so that a bad state never reaches the planner
// thread.
#include <math.h>
#include <string.h>

#include "daemon/requests/handlers_private.h"
#include "daemon/requests/loader_private.h"
#include "daemon/requests/roles_private.h"
#include "physics/base/clock.h"

// An evaluation is wanted within so many seconds: behind the deadlines of controllers, before plans that may take long.
#define EVALUATION_TIME 1.0

static bool may_know(const SnPeer *peer, const SnPeer *owner) { return owner == peer || peer->role == SN_ROLE_ADMIN; }

// Whether a session is on its way to a peer who may use it.
static bool is_coming(SnDaemon *d, const SnPeer *peer, uint64_t id) {
  const SnPeer *owner;
  return sn_keeper_restoring(&d->keeper, id, &owner) && may_know(peer, owner);
}

// One of another key is none: whoever guesses ids is not told which are right.
SnSession *sn_find_session(SnDaemon *d, SnJob *job, uint64_t id, SnError *err) {
  SnSession *session = sn_sessions_find(&d->sessions, id);
  if (!session && is_coming(d, job->route.peer, id)) {
    sn_fail_coming(job, "is being restored", err);
    return NULL;
  }
  if (!session) session = sn_sessions_find(&d->sessions, id);  // it has come meanwhile
  if (session && !sn_may_use(job->route.peer, session)) session = NULL;
  if (session) return session;
  const SnPeer *owner;
  const bool refused = sn_keeper_refused(&d->keeper, id, &owner) && may_know(job->route.peer, owner);
  sn_fail_no_session(
      job, id,
      refused ? "it could not be restored after a restart of the daemon, whose log says why: open it anew" : NULL, err);
  return NULL;
}

// The session of a request, whose lease it renews.
static SnSession *find_session(SnDaemon *d, SnJob *job, uint64_t id, SnError *err) {
  SnSession *session = sn_find_session(d, job, id, err);
  if (!session) return NULL;
  const double now = sn_clock_now();
  job->route.session = id;
  session->heard = fmax(session->heard, now);
  if (session->left > 0) session->left = now;
  return session;
}

// The session of a request that controllers make: the connection that it came by is its client's.
static SnSession *find_own(SnDaemon *d, SnJob *job, uint64_t id, SnError *err) {
  SnSession *session = find_session(d, job, id, err);
  if (!session) return NULL;
  session->client = job->route.link;
  session->left = 0;
  return session;
}

static SnCode check_size(const char *what, size_t n, size_t expected, bool optional, SnError *err) {
  if (n == expected || (optional && n == 0)) return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT, "%s has %zu numbers; this session needs %zu%s", what, n, expected,
                 optional ? ", or none" : "");
}

// A quaternion of no length is no orientation.
static SnCode check_mocap(const Sinew__V1__State *state, SnError *err) {
  for (size_t i = 0; i + 7 <= state->n_mocap; i += 7) {
    const double *q = state->mocap + i + 3;
    if (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] < 1e-12)
      return sn_fail(err, SN_ERR_ARGUMENT, "state.mocap[%zu]: the quaternion is zero", i + 3);
  }
  return SN_OK;
}

static SnCode check_state(const SnSession *session, const Sinew__V1__State *state, SnError *err) {
  SnCode code = check_size("state.qpos", state->n_qpos, (size_t)session->nq, false, err);
  if (code == SN_OK) code = check_size("state.qvel", state->n_qvel, (size_t)session->nv, false, err);
  if (code == SN_OK) code = check_size("state.act", state->n_act, (size_t)session->na, true, err);
  if (code == SN_OK) code = check_size("state.mocap", state->n_mocap, (size_t)session->nmocap * 7, true, err);
  if (code == SN_OK) code = check_size("state.history", state->n_history, (size_t)session->nhistory, true, err);
  return code == SN_OK ? check_mocap(state, err) : code;
}

static SnCode check_applied(const SnSession *session, const Sinew__V1__Controls *applied, SnError *err) {
  if (!applied) return SN_OK;
  for (size_t i = 1; i < applied->n_time; i++)
    if (!(applied->time[i] > applied->time[i - 1]))
      return sn_fail(err, SN_ERR_ARGUMENT, "applied.time[%zu] is %g; it must be after the one before, %g", i,
                     applied->time[i], applied->time[i - 1]);
  return check_size("applied.ctrl", applied->n_ctrl, applied->n_time * (size_t)session->nu, false, err);
}

// Hands a job to the planner thread.
static SnCode command(SnDaemon *d, SnJob *job, SnError *err) {
  if (sn_scheduler_command(&d->scheduler, job)) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "%d requests are waiting for the planner already; try again later",
                 d->config.queue);
}

static SnCode open_new(SnDaemon *d, SnJob *job, SnError *err) {
  const SnCode code = sn_sessions_reserve(&d->sessions, &job->route, d->config.client_sessions, err);
  if (code != SN_OK && job->kept) {
    sn_keeper_close(job->kept, NULL);
    sn_keeper_release(job->kept);
  }
  if (code != SN_OK || sn_loader_push(d, job)) return code;
  sn_loader_unreserve(d, job);
  return sn_fail(err, SN_ERR_LIMIT, "%d requests are waiting to be loaded already; try again later", d->config.queue);
}

// A session that is there goes on with whoever asks for it by its name.
static SnCode resume(SnDaemon *d, SnJob *job, uint64_t id, SnError *err) {
  const Sinew__V1__OpenRequest *in = job->request->open;
  // Who asks to open one is not told that there is none.
  if (!sn_sessions_find(&d->sessions, id)) return sn_fail_coming(job, "is being closed", err);
  job->session = find_own(d, job, id, err);
  if (!job->session) return err->code;
  if (!strcmp(job->session->task->name, in->task)) return command(d, job, err);
  return sn_fail(err, SN_ERR_STATE, "the session '%s' has the task '%s'; it is not opened on '%s'", in->name,
                 job->session->task->name, in->task);
}

SnCode sn_handle_open(SnDaemon *d, SnJob *job, SnError *err) {
  const Sinew__V1__OpenRequest *in = job->request->open;
  if (!*in->name) return open_new(d, job, err);
  if (!d->keeper.running)
    return sn_fail(err, SN_ERR_STATE, "name: this daemon keeps no sessions; its setting `state` names no folder");
  SnKeptState state;
  uint64_t id;
  if (!sn_keeper_find(&d->keeper, in->name, job->route.peer, &state, &id)) {
    job->kept = sn_keeper_add(&d->keeper, in->name, job->route.peer);
    return job->kept ? open_new(d, job, err) : sn_fail(err, SN_ERR_MEMORY, "out of memory");
  }
  if (state == SN_KEPT_OPEN) return resume(d, job, id, err);
  return sn_fail_coming(job, state == SN_KEPT_OPENING ? "is being opened" : "is being restored", err);
}

// The answer leaves when the session cannot come back; NULL: nobody has asked.
static void close_session(SnDaemon *d, SnSession *session, SnReply *reply) {
  if (session->kept)
    sn_keeper_close(session->kept, reply);
  else
    sn_outbox_send(&d->outbox, reply);
  sn_sessions_remove(&d->sessions, session);
  sn_scheduler_close(&d->scheduler, session);
}

SnCode sn_handle_close(SnDaemon *d, SnJob *job, SnError *err) {
  SnSession *session = find_session(d, job, job->request->close->session, err);
  if (!session) return err->code;
  sn_log_about(&d->log, SN_LOG_INFO, (SnLogIds){.session = session->id, .request = job->route.id}, "closed");
  Sinew__V1__CloseReply out = SINEW__V1__CLOSE_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_CLOSE;
  reply.close = &out;
  close_session(d, session, sn_outbox_pack(&d->outbox, &job->route, &reply));
  sn_job_free(job);
  return SN_OK;
}

SnCode sn_handle_plan(SnDaemon *d, SnJob *job, SnError *err) {
  const Sinew__V1__PlanRequest *in = job->request->plan;
  SnSession *session = find_own(d, job, in->session, err);
  if (!session) return err->code;
  SnCode code = check_state(session, in->state, err);
  if (code == SN_OK) code = check_applied(session, in->applied, err);
  if (code != SN_OK) return code;
  job->session = session;
  if (in->deadline > 0) {
    job->due = job->route.arrived + in->deadline;
    session->heard = fmax(session->heard, job->due);
  }
  sn_scheduler_state(&d->scheduler, job);
  return SN_OK;
}

SnCode sn_handle_state(SnDaemon *d, SnJob *job, SnError *err) {
  const Sinew__V1__StreamState *in = job->request->stream_state;
  SnSession *session = find_own(d, job, in->session, err);
  if (!session) return err->code;
  SnCode code = check_state(session, in->state, err);
  if (code == SN_OK) code = check_applied(session, in->applied, err);
  if (code != SN_OK) return code;
  job->session = session;
  sn_scheduler_state(&d->scheduler, job);
  return SN_OK;
}

SnCode sn_handle_evaluate(SnDaemon *d, SnJob *job, SnError *err) {
  const Sinew__V1__EvaluateRequest *in = job->request->evaluate;
  SnSession *session = find_own(d, job, in->session, err);
  if (!session) return err->code;
  size_t nu = (size_t)session->nu, most = (size_t)d->config.horizon;
  SnCode code = check_state(session, in->state, err);
  if (code != SN_OK) return code;
  if (in->n_ctrl > most * nu || (nu > 0 && in->n_ctrl % nu))
    return sn_fail(err, SN_ERR_ARGUMENT, "ctrl has %zu numbers; this session needs rows of %zu, at most %zu rows",
                   in->n_ctrl, nu, most);
  if (in->want_gradient && in->n_ctrl == 0)
    return sn_fail(err, SN_ERR_ARGUMENT, "want_gradient: a gradient needs ctrl, at least one row of %zu", nu);
  job->session = session;
  job->due = job->route.arrived + EVALUATION_TIME;
  return command(d, job, err);
}

// A reset with a new seed, or from a snapshot, lets the body settle, which may take long: the loader's work.
static SnCode reset_by_loader(SnDaemon *d, SnJob *job, SnError *err) {
  atomic_fetch_add(&job->session->holds, 1);
  if (sn_loader_push(d, job)) return SN_OK;
  atomic_fetch_sub(&job->session->holds, 1);
  return sn_fail(err, SN_ERR_LIMIT, "%d requests are waiting to be loaded already; try again later", d->config.queue);
}

// The session of a request that goes to the planner thread as a command.
static uint64_t session_of(const Sinew__V1__Request *r) {
  switch (r->body_case) {
    case SINEW__V1__REQUEST__BODY_RESET:
      return r->reset->session;
    case SINEW__V1__REQUEST__BODY_SET_CONFIG:
      return r->set_config->session;
    case SINEW__V1__REQUEST__BODY_REVERT:
      return r->revert->session;
    case SINEW__V1__REQUEST__BODY_STREAM:
      return r->stream->session;
    case SINEW__V1__REQUEST__BODY_SNAPSHOT:
      return r->snapshot->session;
    default:
      return r->get_config->session;
  }
}

// Reset; get, set and revert configuration; begin and end of continuous mode; snapshots.
SnCode sn_handle_command(SnDaemon *d, SnJob *job, SnError *err) {
  const Sinew__V1__Request *r = job->request;
  const bool own = r->body_case == SINEW__V1__REQUEST__BODY_RESET || r->body_case == SINEW__V1__REQUEST__BODY_STREAM;
  job->session = own ? find_own(d, job, session_of(r), err) : find_session(d, job, session_of(r), err);
  if (!job->session) return err->code;
  bool anew = r->body_case == SINEW__V1__REQUEST__BODY_RESET && (r->reset->has_seed_case || r->reset->snapshot);
  return anew ? reset_by_loader(d, job, err) : command(d, job, err);
}

void sn_close_expired(SnDaemon *d, const SnWire *wire) {
  int n;
  const double now = sn_clock_now();
  SnSession *const *all = sn_sessions_all(&d->sessions, &n);
  for (int i = 0; i < n; i++) {
    SnSession *session = all[i];
    if (session->left == 0 && !sn_wire_connected(wire, session->client)) session->left = now;
    const double lease = atomic_load(&session->lease), since = session->left > 0 ? session->left : session->heard;
    const double idle = now - since;
    if (idle <= (session->left > 0 ? fmin(lease, d->config.orphan_seconds) : lease)) continue;
    sn_log_about(&d->log, SN_LOG_WARNING, (SnLogIds){.session = session->id}, "lease-expired: no request for %.1f s%s",
                 idle, session->left > 0 ? ", and its client is gone" : "");
    close_session(d, session, NULL);
  }
}

void sn_forgive_pause(SnDaemon *d, double seconds) {
  int n;
  SnSession *const *all = sn_sessions_all(&d->sessions, &n);
  for (int i = 0; i < n; i++) {
    SnSession *session = all[i];
    session->heard += seconds;
    if (session->left > 0) session->left += seconds;
  }
}

void sn_close_revoked(SnDaemon *d) {
  int n;
  SnSession *const *all = sn_sessions_all(&d->sessions, &n);
  for (int i = 0; i < n; i++) {
    SnSession *session = all[i];
    if (session->owner->role >= SN_ROLE_PLAN) continue;
    sn_log_about(&d->log, SN_LOG_WARNING, (SnLogIds){.session = session->id}, "closed: its key may have none any more");
    close_session(d, session, NULL);
  }
}
