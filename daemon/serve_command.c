// Reset and live tuning of a session, between two slices of its planner.
#include <string.h>

#include "daemon/pack.h"
#include "daemon/serve.h"

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

// Checks all terms before any is changed.
static SnCode check_terms(const SnSession *session, const Sinew__V1__SetConfigRequest *in, SnError *err) {
  const SnCost *cost = sn_planner_cost(session->planner);
  for (size_t i = 0; i < in->n_terms; i++) {
    const Sinew__V1__TermSettings *t = in->terms[i];
    int k = sn_cost_find(cost, t->name);
    if (k < 0 || k >= cost->nterm) return sn_fail(err, SN_ERR_NOT_FOUND, "the task has no term '%.80s'", t->name);
    int size = sn_cost_target_size(cost, k);
    if (t->n_target > 0 && t->n_target != (size_t)size)
      return sn_fail(err, SN_ERR_ARGUMENT, "the target of '%.80s' has %zu numbers; it must have %d", t->name,
                     t->n_target, size);
    if (t->n_target > 0 && t->has_own_target_case && t->own_target)
      return sn_fail(err, SN_ERR_ARGUMENT, "'%.80s': target and own_target exclude each other", t->name);
  }
  return SN_OK;
}

static SnCode apply_term(SnSession *session, const Sinew__V1__TermSettings *t, SnError *err) {
  const SnCost *cost = sn_planner_cost(session->planner);
  int k = sn_cost_find(cost, t->name);
  SnCode code = SN_OK;
  if (t->has_weight_case || t->has_terminal_weight_case) {
    double weight = t->has_weight_case ? t->weight : (double)cost->weight[k];
    double terminal = t->has_terminal_weight_case ? t->terminal_weight : (double)cost->terminal[k];
    code = sn_planner_set_weight(session->planner, t->name, weight, terminal, err);
  }
  bool own = t->has_own_target_case && t->own_target;
  if (code == SN_OK && (own || t->n_target > 0))
    code = sn_planner_set_target(session->planner, t->name, t->target, own ? 0 : (int)t->n_target, err);
  return code;
}

static SnCode set_config(const SnScheduler *s, SnSession *session, const Sinew__V1__SetConfigRequest *in,
                         SnError *err) {
  SnSettings settings = *sn_planner_settings(session->planner);
  SnCode code = sn_read_settings(in->planner, s->config, &settings, err);
  if (code == SN_OK) code = check_terms(session, in, err);
  if (code == SN_OK) code = sn_planner_configure(session->planner, &settings, err);
  for (size_t i = 0; code == SN_OK && i < in->n_terms; i++) code = apply_term(session, in->terms[i], err);
  if (code != SN_OK) return code;
  sn_serve_drop_evaluation(session);
  sn_read_session_settings(in->settings, &session->settings);
  atomic_store(&session->lease, session->settings.lease);
  atomic_fetch_add(&session->config_version, 1);
  return SN_OK;
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
      initial.initial =
          sn_pack_state(&scratch, sn_planner_model(session->planner), sn_planner_initial(session->planner));
      reply.body_case = SINEW__V1__REPLY__BODY_RESET;
      reply.reset = &initial;
      break;
    case SINEW__V1__REQUEST__BODY_SET_CONFIG:
      code = set_config(s, session, job->request->set_config, &err);
      reply.body_case = SINEW__V1__REPLY__BODY_SET_CONFIG;
      reply.set_config = sn_pack_config(&scratch, session, false);
      break;
    case SINEW__V1__REQUEST__BODY_GET_CONFIG:
      reply.body_case = SINEW__V1__REPLY__BODY_GET_CONFIG;
      reply.get_config = sn_pack_config(&scratch, session, true);
      break;
    default:
      code = sn_fail(&err, SN_ERR_STATE, "a request that the planner does not serve");
  }
  if (scratch.failed) code = sn_fail(&err, SN_ERR_MEMORY, "out of memory");
  if (code == SN_OK)
    sn_outbox_reply(s->outbox, &job->route, &reply);
  else
    sn_outbox_error(s->outbox, &job->route, sn_wire_code(code), "%s", err.text);
  sn_scratch_free(&scratch);
  sn_job_free(job);
}
