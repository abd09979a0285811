// Reset and live tuning of a session, between two slices of its planner.
#include <string.h>

#include "daemon/planning/serve_private.h"

static SnCode no_version(const SnSession *session, uint64_t number, SnError *err) {
  return sn_fail(err, SN_ERR_NOT_FOUND, "no version %llu; versions %llu to %llu are kept", (unsigned long long)number,
                 (unsigned long long)sn_history_oldest(&session->history), (unsigned long long)session->history.newest);
}

// The configuration that is in force now becomes a version. One that the session had is named in reverted_to.
static void add_version(SnSession *session, SnVersion *version, uint64_t reverted_to) {
  version->reverted_to = reverted_to;
  sn_history_add(&session->history, version, session->planner);
  atomic_store(&session->lease, session->settings.lease);
  atomic_store(&session->config_version, version->number);
  sn_metrics_reset_best(&session->metrics);
}

// Puts the planner that the loader has made in the place of the old one.
static void replace_planner(SnScheduler *s, SnSession *session, SnJob *job, uint64_t seed) {
  if (session->on_device)
    sn_planner_free(session->planner);
  else
    sn_reaper_planner(&s->reaper, session->planner);
  session->planner = job->planner;
  session->seed = seed;
  job->planner = NULL;
}

// A planner that was restored has its settings; they become a version of this session.
static SnCode restore(SnScheduler *s, SnSession *session, SnJob *job, SnError *err) {
  const Sinew__V1__Snapshot *from = job->request->reset->snapshot;
  SnSessionSettings own = session->settings;
  SnCode code = sn_read_session_settings(from->session, job->planner, s->config->lease_seconds, &own, err);
  SnVersion *version = code == SN_OK ? sn_version_capture(job->planner, &own) : NULL;
  if (!version) {
    sn_planner_free(job->planner);
    return code == SN_OK ? sn_fail(err, SN_ERR_MEMORY, "out of memory") : code;
  }
  replace_planner(s, session, job, from->seed);
  session->settings = own;
  add_version(session, version, 0);
  session->audience.out_of_order = true;
  return SN_OK;
}

static SnCode reset(SnScheduler *s, SnSession *session, SnJob *job, SnError *err) {
  sn_serve_drop_evaluation(session);
  if (!job->planner) return sn_planner_reset(session->planner, session->seed, err);
  if (job->request->reset->snapshot) return restore(s, session, job, err);
  sn_planner_take_over(job->planner, session->planner);
  replace_planner(s, session, job, job->request->reset->seed);
  return SN_OK;
}

// All is checked before any of it is changed. *changed: the planner is not as it was, whatever comes back.
static SnCode set_config(const SnScheduler *s, SnSession *session, const Sinew__V1__SetConfigRequest *in, bool *changed,
                         SnError *err) {
  SnSettings settings = *sn_planner_settings(session->planner);
  SnSessionSettings own = session->settings;
  SnCode code = sn_read_settings(in->planner, s->config, &settings, err);
  if (code == SN_OK)
    code = sn_read_session_settings(in->settings, session->planner, s->config->lease_seconds, &own, err);
  if (code == SN_OK) code = sn_check_terms(session->planner, in->terms, in->n_terms, err);
  if (code == SN_OK) code = sn_planner_configure(session->planner, &settings, err);
  *changed = code == SN_OK;
  if (code == SN_OK) code = sn_apply_terms(session->planner, in->terms, in->n_terms, err);
  if (code == SN_OK) session->settings = own;
  return code;
}

// Puts the values of an earlier version in force.
static SnCode revert(SnSession *session, uint64_t number, bool *changed, SnError *err) {
  const SnVersion *version = sn_history_find(&session->history, number);
  if (!version) return no_version(session, number, err);
  *changed = true;
  SnCode code = sn_version_restore(version, session->planner, err);
  if (code == SN_OK) session->settings = version->session;
  return code;
}

// Carries out a change as a whole, or leaves all as it was.
static SnCode change_config(const SnScheduler *s, SnSession *session, const Sinew__V1__Request *in, SnError *err) {
  const uint64_t reverted_to = in->body_case == SINEW__V1__REQUEST__BODY_REVERT ? in->revert->version : 0;
  bool changed = false;
  SnCode code =
      reverted_to ? revert(session, reverted_to, &changed, err) : set_config(s, session, in->set_config, &changed, err);
  SnVersion *version = code == SN_OK ? sn_version_capture(session->planner, &session->settings) : NULL;
  if (version) {
    sn_serve_drop_evaluation(session);
    add_version(session, version, reverted_to);
    return SN_OK;
  }
  if (code == SN_OK) code = sn_fail(err, SN_ERR_MEMORY, "out of memory");
  if (changed) {
    const SnVersion *before = sn_history_find(&session->history, 0);
    SnError ignored;
    sn_serve_drop_evaluation(session);
    sn_version_restore(before, session->planner, &ignored);
    session->settings = before->session;
  }
  return code;
}

// Reads a version.
static SnCode get_config(SnScratch *scratch, const SnSession *session, uint64_t number, bool with_table,
                         Sinew__V1__Config **config, SnError *err) {
  const SnVersion *version = sn_history_find(&session->history, number);
  if (!version) return no_version(session, number, err);
  *config = sn_pack_config(scratch, session, version, with_table);
  return SN_OK;
}

// Whether a request changes what is kept of a session.
static bool changes(const Sinew__V1__Request *r) {
  return r->body_case == SINEW__V1__REQUEST__BODY_SET_CONFIG || r->body_case == SINEW__V1__REQUEST__BODY_REVERT ||
         r->body_case == SINEW__V1__REQUEST__BODY_RESET;
}

// Tells who asks for a session by its name what it is.
static SnCode resume(SnScratch *scratch, const SnSession *session, Sinew__V1__OpenReply *out, SnError *err) {
  out->session = session->id;
  out->initial = sn_pack_state(scratch, sn_planner_model(session->planner), sn_planner_initial(session->planner));
  out->resumed = true;
  out->restarts = session->kept->restarts;
  return get_config(scratch, session, 0, false, &out->config, err);
}

// Records what a command has changed, as its reply says it.
static void record(SnScheduler *s, SnSession *session, const Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_RESET) sn_record_reset(s, session, reply->reset);
  if (reply->body_case == SINEW__V1__REPLY__BODY_SET_CONFIG) sn_record_config(s, session, reply->set_config);
  if (reply->body_case == SINEW__V1__REPLY__BODY_REVERT) sn_record_config(s, session, reply->revert);
}

static void answer(SnScheduler *s, SnSession *session, const SnJob *job, Sinew__V1__Reply *reply) {
  if (session->kept && changes(job->request))
    sn_serve_keep(session, &job->route, reply);
  else
    sn_outbox_reply(s->outbox, &job->route, reply);
  record(s, session, reply);
}

// Keeps a request for a snapshot until the plan in progress has ended. False: there is nothing to wait for.
static bool wait_for_plan(SnScheduler *s, SnSession *session, SnJob *job) {
  enum { MOST = 16 };
  int n = 0;
  if (job->request->body_case != SINEW__V1__REQUEST__BODY_SNAPSHOT || !session->active) return false;
  SnJob **last = &session->snapshots;
  for (; *last; last = &(*last)->next) n++;
  if (n < MOST) {
    job->next = NULL;
    *last = job;
  } else {
    sn_outbox_error(s->outbox, &job->route, SINEW__V1__ERROR__CODE__LIMIT,
                    "%d requests wait for a snapshot of this session already", MOST);
    sn_job_free(job);
  }
  return true;
}

void sn_serve_snapshots(SnScheduler *s, SnSession *session) {
  for (SnJob *job; (job = session->snapshots);) {
    session->snapshots = job->next;
    sn_serve_command(s, job);
  }
}

void sn_serve_command(SnScheduler *s, SnJob *job) {
  SnSession *session = job->session;
  SnScratch scratch = {0};
  SnError err = {0};
  SnCode code = SN_OK;
  Sinew__V1__ResetReply initial = SINEW__V1__RESET_REPLY__INIT;
  Sinew__V1__Snapshot snapshot = SINEW__V1__SNAPSHOT__INIT;
  Sinew__V1__OpenReply opened = SINEW__V1__OPEN_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  if (wait_for_plan(s, session, job)) return;
  switch (job->request->body_case) {
    case SINEW__V1__REQUEST__BODY_RESET:
      if (session->active) sn_serve_finish(s, session);
      code = reset(s, session, job, &err);
      sn_metrics_reset_best(&session->metrics);
      initial.initial =
          sn_pack_state(&scratch, sn_planner_model(session->planner), sn_planner_initial(session->planner));
      initial.seed = session->seed;
      if (code == SN_OK && job->request->reset->snapshot)
        code = get_config(&scratch, session, 0, false, &initial.config, &err);
      reply.body_case = SINEW__V1__REPLY__BODY_RESET;
      reply.reset = &initial;
      break;
    case SINEW__V1__REQUEST__BODY_SET_CONFIG:
      code = change_config(s, session, job->request, &err);
      reply.body_case = SINEW__V1__REPLY__BODY_SET_CONFIG;
      if (code == SN_OK) code = get_config(&scratch, session, 0, false, &reply.set_config, &err);
      break;
    case SINEW__V1__REQUEST__BODY_REVERT:
      code = change_config(s, session, job->request, &err);
      reply.body_case = SINEW__V1__REPLY__BODY_REVERT;
      if (code == SN_OK) code = get_config(&scratch, session, 0, false, &reply.revert, &err);
      break;
    case SINEW__V1__REQUEST__BODY_GET_CONFIG:
      reply.body_case = SINEW__V1__REPLY__BODY_GET_CONFIG;
      code = get_config(&scratch, session, job->request->get_config->version, true, &reply.get_config, &err);
      break;
    case SINEW__V1__REQUEST__BODY_OPEN:  // of a session that is there, by its name
      reply.body_case = SINEW__V1__REPLY__BODY_OPEN;
      reply.open = &opened;
      code = resume(&scratch, session, &opened, &err);
      break;
    case SINEW__V1__REQUEST__BODY_SNAPSHOT:
      reply.body_case = SINEW__V1__REPLY__BODY_SNAPSHOT;
      reply.snapshot = &snapshot;
      code = sn_pack_snapshot(&scratch, session, &snapshot, &err);
      break;
    default:
      code = sn_fail(&err, SN_ERR_STATE, "a request that the planner does not serve");
  }
  if (scratch.failed) code = sn_fail(&err, SN_ERR_MEMORY, "out of memory");
  if (code == SN_OK)
    answer(s, session, job, &reply);
  else
    sn_outbox_error(s->outbox, &job->route, sn_wire_code(code), "%s", err.text);
  sn_scratch_free(&scratch);
  sn_job_free(job);
}
