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

SinewStatus plant_judge_state(SinewClient *client, const SinewState *state, const SinewSessionInfo *info, double *cost,
                              double *measure, int nmeasure, SinewError *err) {
  Sinew__V1__State s = SINEW__V1__STATE__INIT;
  s.time = state->time;
  s.n_qpos = (size_t)info->nq;
  s.qpos = (double *)(uintptr_t)state->qpos;
  s.n_qvel = (size_t)info->nv;
  s.qvel = (double *)(uintptr_t)state->qvel;
  s.n_act = (size_t)info->na;
  s.act = (double *)(uintptr_t)state->act;
  s.n_mocap = state->mocap ? 7 * (size_t)info->nmocap : 0;
  s.mocap = (double *)(uintptr_t)state->mocap;
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  evaluate.session = info->id;
  evaluate.state = &s;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  request.evaluate = &evaluate;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(client, &request, &reply, err);
  if (status != SINEW_OK) return status;
  const Sinew__V1__Evaluation *e = reply->evaluate;
  const size_t n = e->n_measures;
  const bool complete = !measure || n == (size_t)nmeasure;
  *cost = e->cost;
  for (int i = 0; measure && complete && i < nmeasure; ++i) measure[i] = e->measures[i]->value;
  sn_free_reply(reply);
  return complete ? SINEW_OK : sn_wire_fail(err, SINEW_ERR_PROTOCOL, "%zu measures, the task has %d", n, nmeasure);
}

SinewStatus plant_judge_record(PlantRecord *r, SinewClient *client, const SinewSessionInfo *info, SinewError *err) {
  for (int i = 0; i < r->nsample; ++i) {
    PlantSample *s = r->sample + i;
    const SinewState state = {s->time, s->qpos, s->qvel, s->act, info->nmocap ? s->mocap : NULL};
    const SinewStatus status = plant_judge_state(client, &state, info, &s->cost, s->measure, r->nmeasure, err);
    if (status != SINEW_OK) return status;
  }
  return SINEW_OK;
}
