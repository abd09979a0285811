// Cost of controls that a client has chosen, a slice at a time.
#include <stdlib.h>

#include "daemon/planning/serve_private.h"

struct SnEvaluationWork {
  SnScratch scratch;  // of the request
  SnEvaluateRequest request;
};

// Begins the session's first evaluation.
static SnCode begin(SnSession *session, SnError *err) {
  const Sinew__V1__EvaluateRequest *in = session->evaluations->request->evaluate;
  size_t rows = in->n_ctrl / (size_t)(session->nu > 0 ? session->nu : 1) + 1;
  SnEvaluationWork *work = session->evaluating = calloc(1, sizeof *work);
  if (!work) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  SnScratch *scratch = &work->scratch;
  SnEvaluateRequest *r = &work->request;
  r->time = in->state->time;
  r->nstep = (int)rows - 1;
  r->qpos = sn_unpack_reals(scratch, in->state->qpos, in->state->n_qpos);
  r->qvel = sn_unpack_reals(scratch, in->state->qvel, in->state->n_qvel);
  r->act = sn_unpack_reals(scratch, in->state->act, in->state->n_act);
  r->past = sn_unpack_reals(scratch, in->state->history, in->state->n_history);
  sn_unpack_mocap(scratch, in->state, &r->mocap_pos, &r->mocap_quat);
  r->ctrl = sn_unpack_reals(scratch, in->ctrl, in->n_ctrl);
  if (in->want_states && r->nstep > 0) {
    r->states.qpos = sn_scratch_alloc(scratch, rows * (size_t)session->nq * sizeof(sn_real));
    r->states.qvel = sn_scratch_alloc(scratch, rows * (size_t)session->nv * sizeof(sn_real));
    r->states.act = sn_scratch_alloc(scratch, rows * (size_t)session->na * sizeof(sn_real));
  }
  r->gradient = in->want_gradient;
  if (scratch->failed) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  return sn_planner_evaluate_begin(session->planner, r, err);
}

void sn_serve_drop_evaluation(SnSession *session) {
  if (session->evaluating) sn_scratch_free(&session->evaluating->scratch);
  free(session->evaluating);
  session->evaluating = NULL;
}

static void pack_measures(SnScratch *scratch, const SnTask *task, const SnEvaluation *result,
                          Sinew__V1__Evaluation *out) {
  size_t n = (size_t)result->nmeasure;
  Sinew__V1__MeasureValue **list = sn_scratch_alloc(scratch, (n + 1) * sizeof *list), *items;
  items = sn_scratch_alloc(scratch, (n + 1) * sizeof *items);
  if (!list || !items) return;
  for (size_t i = 0; i < n; i++) {
    sinew__v1__measure_value__init(&items[i]);
    items[i].name = task->measure[i].name;
    items[i].value = result->measure[i];
    items[i].met = result->met[i];
    list[i] = &items[i];
  }
  out->measures = list;
  out->n_measures = n;
}

static Sinew__V1__Gradient__Status gradient_status(SnGradientStatus status) {
  switch (status) {
    case SN_GRADIENT_DONE:
      return SINEW__V1__GRADIENT__STATUS__OK;
    case SN_GRADIENT_DIVERGED:
      return SINEW__V1__GRADIENT__STATUS__DIVERGED;
    case SN_GRADIENT_UNBOUNDED:
      return SINEW__V1__GRADIENT__STATUS__UNBOUNDED;
    case SN_GRADIENT_PENDING:
    case SN_GRADIENT_ROLLED:
      break;
  }
  return SINEW__V1__GRADIENT__STATUS__UNSPECIFIED;
}

// Of the rows of targets, those of each term.
static void pack_target_gradients(SnScratch *scratch, const SnCost *cost, const SnGradient *g,
                                  Sinew__V1__Gradient *out) {
  const size_t n = (size_t)cost->nterm, rows = (size_t)g->nstep + 1;
  Sinew__V1__TermGradient **list = sn_scratch_alloc(scratch, (n + 1) * sizeof *list), *items;
  items = sn_scratch_alloc(scratch, (n + 1) * sizeof *items);
  if (!list || !items) return;
  for (size_t i = 0; i < n; i++) {
    const size_t size = (size_t)sn_cost_target_size(cost, (int)i), at = (size_t)cost->term_target[i];
    sinew__v1__term_gradient__init(&items[i]);
    items[i].name = (char *)sn_cost_name(cost, (int)i);
    items[i].size = (uint32_t)size;
    if (!(items[i].target = sn_scratch_alloc(scratch, (rows * size + 1) * sizeof *items[i].target))) return;
    items[i].n_target = rows * size;
    for (size_t t = 0; t < rows; t++)
      for (size_t k = 0; k < size; k++)
        items[i].target[t * size + k] = (double)g->target_bar[t * (size_t)cost->ntarget + at + k];
    list[i] = &items[i];
  }
  out->targets = list;
  out->n_targets = n;
}

static Sinew__V1__Gradient *pack_gradient(SnScratch *scratch, const SnSession *session, const SnGradient *g) {
  Sinew__V1__Gradient *out = sn_scratch_alloc(scratch, sizeof *out);
  if (!out) return NULL;
  sinew__v1__gradient__init(out);
  out->status = gradient_status(g->status);
  out->norm = g->norm;
  out->ctrl = sn_pack_reals(scratch, g->ctrl_bar, (size_t)g->nstep * (size_t)session->nu, &out->n_ctrl);
  out->qpos = sn_pack_reals(scratch, g->qpos_bar, (size_t)session->nv, &out->n_qpos);
  out->qvel = sn_pack_reals(scratch, g->qvel_bar, (size_t)session->nv, &out->n_qvel);
  out->act = sn_pack_reals(scratch, g->act_bar, (size_t)session->na, &out->n_act);
  pack_target_gradients(scratch, sn_planner_cost(session->planner), g, out);
  return out;
}

// Packs the states along the controls, with the targets that they were judged by.
static Sinew__V1__Trajectory *pack_states(SnScratch *scratch, const SnSession *session,
                                          const SnEvaluateRequest *request, const SnEvaluation *result) {
  const size_t rows = (size_t)request->nstep + 1;
  const double step = (double)sn_planner_model(session->planner)->opt.timestep;
  Sinew__V1__Trajectory *out = sn_serve_trajectory(scratch, session, &request->states, request->time, step, rows);
  if (out) sn_pack_targets(scratch, sn_planner_cost(session->planner), result->target, rows, out);
  return out;
}

// Answers the evaluation that is done.
static SnCode answer(SnScheduler *s, SnSession *session, SnError *err) {
  SnEvaluation result;
  Sinew__V1__Evaluation out = SINEW__V1__EVALUATION__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  SnScratch *scratch = &session->evaluating->scratch;
  const SnEvaluateRequest *request = &session->evaluating->request;
  sn_planner_evaluate_finish(session->planner, &result);
  out.cost = result.cost;
  out.diverged = result.diverged;
  out.act_estimated = result.act_estimated;
  out.terms = sn_pack_terms(scratch, sn_planner_cost(session->planner), result.term, &out.n_terms);
  pack_measures(scratch, session->task, &result, &out);
  if (result.gradient) out.gradient = pack_gradient(scratch, session, result.gradient);
  if (request->states.qpos && !result.diverged) out.states = pack_states(scratch, session, request, &result);
  if (scratch->failed) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  reply.body_case = SINEW__V1__REPLY__BODY_EVALUATE;
  reply.evaluate = &out;
  sn_outbox_reply(s->outbox, &session->evaluations->route, &reply);
  return SN_OK;
}

void sn_serve_evaluation(SnScheduler *s, SnSession *session, double until) {
  SnJob *job = session->evaluations;
  SnError err = {0};
  SnCode code = session->evaluating ? SN_OK : begin(session, &err);
  if (code == SN_OK && !sn_planner_evaluate_slice(session->planner, until)) return;
  atomic_fetch_sub(&s->evaluations, 1);  // before the answer: its client may look at the statistics at once
  if (code == SN_OK) code = answer(s, session, &err);
  if (code != SN_OK) sn_outbox_error(s->outbox, &job->route, sn_wire_code(code), "%s", err.text);
  sn_serve_drop_evaluation(session);
  session->evaluations = job->next;
  if (!job->next) session->last_evaluation = &session->evaluations;
  sn_job_free(job);
}
