// How good a run was: the daemon says what states cost.
#include <math.h>
#include <string.h>

#include "clients/base/text.h"
#include "clients/libsinew_client/wire.h"
#include "clients/plant/plant.h"

SinewStatus plant_judge_begin(PlantRecord *r, SinewClient *client, const char *task, SinewError *err) {
  Sinew__V1__DescribeTaskRequest ask = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
  ask.task = (char *)(uintptr_t)task;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_DESCRIBE_TASK;
  request.describe_task = &ask;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(client, &request, &reply, err);
  if (status != SINEW_OK) return status;
  const Sinew__V1__TaskDescription *t = reply->describe_task;
  plant_record_init(r, (int)t->n_measures);
  for (int k = 0; k < r->nmeasure; ++k) {
    const Sinew__V1__MeasureDescription *m = t->measures[k];
    char name[256];  // fit to be printed
    sn_printable(name, sizeof name, m->name, false);
    plant_record_set_measure(r, k, name, m->below, m->during);
  }
  sn_free_reply(reply);
  return SINEW_OK;
}

// A request to evaluate a state, of parts that refer to each other.
typedef struct Asked {
  Sinew__V1__Request request;
  Sinew__V1__EvaluateRequest evaluate;
  Sinew__V1__State state;
} Asked;

static void fill_request(Asked *asked, const SinewState *state, const SinewSessionInfo *info) {
  Sinew__V1__State *s = &asked->state;
  *s = (Sinew__V1__State)SINEW__V1__STATE__INIT;
  s->time = state->time;
  s->n_qpos = (size_t)info->nq;
  s->qpos = (double *)(uintptr_t)state->qpos;
  s->n_qvel = (size_t)info->nv;
  s->qvel = (double *)(uintptr_t)state->qvel;
  s->n_act = (size_t)info->na;
  s->act = (double *)(uintptr_t)state->act;
  s->n_mocap = state->mocap ? 7 * (size_t)info->nmocap : 0;
  s->mocap = (double *)(uintptr_t)state->mocap;
  asked->evaluate = (Sinew__V1__EvaluateRequest)SINEW__V1__EVALUATE_REQUEST__INIT;
  asked->evaluate.session = info->id;
  asked->evaluate.state = s;
  asked->request = (Sinew__V1__Request)SINEW__V1__REQUEST__INIT;
  asked->request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  asked->request.evaluate = &asked->evaluate;
}

SinewStatus plant_judge_state(SinewClient *client, const SinewState *state, const SinewSessionInfo *info, double *cost,
                              double *measure, int nmeasure, SinewError *err) {
  Asked asked;
  Sinew__V1__Reply *reply;
  fill_request(&asked, state, info);
  const SinewStatus status = sn_request(client, &asked.request, &reply, err);
  if (status != SINEW_OK) return status;
  const Sinew__V1__Evaluation *e = reply->evaluate;
  const size_t n = e->n_measures;
  const bool complete = !measure || n == (size_t)nmeasure;
  *cost = e->cost;
  for (int i = 0; measure && complete && i < nmeasure; ++i) measure[i] = e->measures[i]->value;
  sn_free_reply(reply);
  return complete ? SINEW_OK : sn_wire_fail(err, SINEW_ERR_PROTOCOL, "%zu measures, the task has %d", n, nmeasure);
}

static SinewState state_of(const PlantSample *s, const SinewSessionInfo *info) {
  return (SinewState){s->time, s->qpos, s->qvel, s->act, info->nmocap ? s->mocap : NULL};
}

// Asks where the planner's model comes to under the rows of a hand-over.
static SinewStatus judge_prediction(PlantRecord *r, PlantHandover *h, SinewClient *client, const PlantBody *body,
                                    const SinewSessionInfo *info, SinewError *err) {
  const PlantSample *from = plant_record_sample_at(r, h->stamp);
  Asked asked;
  Sinew__V1__Reply *reply;
  if (!from || h->rows == 0) return SINEW_OK;
  const SinewState state = state_of(from, info);
  fill_request(&asked, &state, info);
  asked.evaluate.n_ctrl = (size_t)h->rows * (size_t)info->nu;
  asked.evaluate.ctrl = h->ctrl;
  asked.evaluate.want_states = true;
  const SinewStatus status = sn_request(client, &asked.request, &reply, err);
  if (status != SINEW_OK) return status;
  const Sinew__V1__Trajectory *t = reply->evaluate->states;
  const size_t last = (size_t)h->rows, nq = (size_t)info->nq, nv = (size_t)info->nv;
  if (t && t->n_qpos == (last + 1) * nq && t->n_qvel == (last + 1) * nv)
    plant_record_prediction(r, h, body, t->qpos + last * nq, t->qvel + last * nv);
  sn_free_reply(reply);
  return SINEW_OK;
}

SinewStatus plant_judge_record(PlantRecord *r, SinewClient *client, const PlantBody *body, const SinewSessionInfo *info,
                               SinewError *err) {
  SinewStatus status = SINEW_OK;
  for (int i = 0; status == SINEW_OK && i < r->nsample; ++i) {
    PlantSample *s = r->sample + i;
    const SinewState state = state_of(s, info);
    status = plant_judge_state(client, &state, info, &s->cost, s->measure, r->nmeasure, err);
  }
  for (int i = 0; status == SINEW_OK && i < r->nhandover; ++i)
    status = judge_prediction(r, r->handover + i, client, body, info, err);
  return status;
}
