// Reset and live tuning of a session, between two slices of its planner.
#include <string.h>

#include "daemon/planning/serve_private.h"

// With a new seed, the loader has made the planner that takes the place of the old one.
static SnCode reset(SnSession *session, SnJob *job, SnError *err) {
  sn_serve_drop_evaluation(session);
  if (!job->planner) return sn_planner_reset(session->planner, session->seed, err);
  sn_planner_take_over(job->planner, session->planner);
  sn_planner_free(session->planner);
  session->planner = job->planner;
  session->seed = job->request->reset->seed;
  return SN_OK;
}

static SnCode no_version(const SnSession *session, uint64_t number, SnError *err) {
  return sn_fail(err, SN_ERR_NOT_FOUND, "no version %llu; versions %llu to %llu are kept", (unsigned long long)number,
                 (unsigned long long)sn_history_oldest(&session->history), (unsigned long long)session->history.newest);
}

// A term's weights after the change: absent ones stay.
static void wanted_weights(const SnCost *cost, int k, const Sinew__V1__TermSettings *t, double weights[2]) {
  weights[0] = t->has_weight_case ? t->weight : (double)cost->weight[k];
  weights[1] = t->has_terminal_weight_case ? t->terminal_weight : (double)cost->terminal[k];
}

static SnCode check_term(const SnCost *cost, const Sinew__V1__TermSettings *t, SnError *err) {
  double weights[2];
  int k = sn_cost_find(cost, t->name);
  if (k < 0 || k >= cost->nterm) return sn_fail(err, SN_ERR_NOT_FOUND, "the task has no term '%.80s'", t->name);
  if (t->n_target > 0 && t->has_own_target_case && t->own_target)
    return sn_fail(err, SN_ERR_ARGUMENT, "'%.80s': target and own_target exclude each other", t->name);
  wanted_weights(cost, k, t, weights);
  SnCode code = sn_cost_check_weight(cost, k, weights[0], weights[1], err);
  return code == SN_OK ? sn_cost_check_target(cost, k, t->target, (int)t->n_target, err) : code;
}

// Of a term that was checked.
static SnCode apply_term(SnSession *session, const Sinew__V1__TermSettings *t, SnError *err) {
  const SnCost *cost = sn_planner_cost(session->planner);
  double weights[2];
  wanted_weights(cost, sn_cost_find(cost, t->name), t, weights);
  SnCode code = sn_planner_set_weight(session->planner, t->name, weights[0], weights[1], err);
  bool own = t->has_own_target_case && t->own_target;
  if (code == SN_OK && (own || t->n_target > 0))
    code = sn_planner_set_target(session->planner, t->name, t->target, own ? 0 : (int)t->n_target, err);
  return code;
}

// The configuration that is in force now becomes a version. One that the session had is named in reverted_to.
static void add_version(SnSession *session, SnVersion *version, uint64_t reverted_to) {
  version->reverted_to = reverted_to;
  sn_history_add(&session->history, version, session->planner);
  atomic_store(&session->lease, session->settings.lease);
  atomic_store(&session->config_version, version->number);
  sn_metrics_reset_best(&session->metrics);
}

// All is checked before any of it is changed. *changed: the planner is not as it was, whatever comes back.
static SnCode set_config(const SnScheduler *s, SnSession *session, const Sinew__V1__SetConfigRequest *in, bool *changed,
                         SnError *err) {
  SnSettings settings = *sn_planner_settings(session->planner);
  SnSessionSettings own = session->settings;
  SnCode code = sn_read_settings(in->planner, s->config, &settings, err);
  if (code == SN_OK) code = sn_read_session_settings(in->settings, session->planner, &own, err);
  for (size_t i = 0; code == SN_OK && i < in->n_terms; i++)
    code = check_term(sn_planner_cost(session->planner), in->terms[i], err);
  if (code == SN_OK) code = sn_planner_configure(session->planner, &settings, err);
  *changed = code == SN_OK;
  for (size_t i = 0; code == SN_OK && i < in->n_terms; i++) code = apply_term(session, in->terms[i], err);
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

// Records what a command has changed, as its reply says it.
static void record(SnScheduler *s, SnSession *session, const Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_RESET) sn_record_reset(s, session, reply->reset);
  if (reply->body_case == SINEW__V1__REPLY__BODY_SET_CONFIG) sn_record_config(s, session, reply->set_config);
  if (reply->body_case == SINEW__V1__REPLY__BODY_REVERT) sn_record_config(s, session, reply->revert);
}

void sn_serve_command(SnScheduler *s, SnJob *job) {
  SnSession *session = job->session;
  SnScratch scratch = {0};
  SnError err = {0};
  SnCode code = SN_OK;
  Sinew__V1__ResetReply initial = SINEW__V1__RESET_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  switch (job->request->body_case) {
    case SINEW__V1__REQUEST__BODY_RESET:
      if (session->active) sn_serve_finish(s, session);
      code = reset(session, job, &err);
      sn_metrics_reset_best(&session->metrics);
      initial.initial =
          sn_pack_state(&scratch, sn_planner_model(session->planner), sn_planner_initial(session->planner));
      initial.seed = session->seed;
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
    default:
      code = sn_fail(&err, SN_ERR_STATE, "a request that the planner does not serve");
  }
  if (scratch.failed) code = sn_fail(&err, SN_ERR_MEMORY, "out of memory");
  if (code == SN_OK) {
    sn_outbox_reply(s->outbox, &job->route, &reply);
    record(s, session, &reply);
  } else {
    sn_outbox_error(s->outbox, &job->route, sn_wire_code(code), "%s", err.text);
  }
  sn_scratch_free(&scratch);
  sn_job_free(job);
}
