#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"
#include "clients/plant/plant.h"
#include "clients/base/text.h"

//------------------------------------------------------------------------------------ what happened

// A name of the daemon, as it may be printed.
static char *copy_name(const char *name) {
  char text[256];
  sn_printable(text, sizeof text, name, false);
  char *copy = strdup(text);
  if (!copy) abort();
  return copy;
}

static void *allocate(size_t count, size_t size) {
  void *p = calloc(count ? count : 1, size);
  if (!p) abort();
  return p;
}

bool plant_record_init(PlantRecord *r, SinewClient *client, const char *task, char *error, size_t size) {
  memset(r, 0, sizeof *r);
  Sinew__V1__DescribeTaskRequest ask = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
  ask.task = (char *)(uintptr_t)task;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_DESCRIBE_TASK;
  request.describe_task = &ask;
  Sinew__V1__Reply *reply;
  if (sn_request(client, &request, &reply) != SINEW_OK) {
    snprintf(error, size, "%s", sinew_error(client));
    return false;
  }
  const Sinew__V1__TaskDescription *t = reply->describe_task;
  r->nmeasure = (int)t->n_measures;
  r->measure_name = allocate(t->n_measures, sizeof(char *));
  r->measure_below = allocate(t->n_measures, sizeof(double));
  r->measure_during = allocate(t->n_measures, sizeof(double));
  for (size_t i = 0; i < t->n_measures; ++i) {
    r->measure_name[i] = copy_name(t->measures[i]->name);
    r->measure_below[i] = t->measures[i]->below;
    r->measure_during[i] = t->measures[i]->during;
  }
  sn_free_reply(reply);
  return true;
}

static double *copy_array(const double *x, int n) {
  double *copy = allocate((size_t)n, sizeof(double));
  if (n) memcpy(copy, x, sizeof(double) * (size_t)n);
  return copy;
}

void plant_record_sample(PlantRecord *r, const PlantBody *body, const double *ctrl) {
  const mjModel *m = body->m;
  if (r->nsample == r->capacity) {
    r->capacity = r->capacity ? 2 * r->capacity : 1024;
    r->sample = realloc(r->sample, sizeof *r->sample * (size_t)r->capacity);
    if (!r->sample) abort();
  }
  SinewState state = plant_body_state((PlantBody *)(uintptr_t)body, false);
  r->sample[r->nsample++] = (PlantSample){.time = state.time,
                                          .cost = NAN,
                                          .qpos = copy_array(state.qpos, (int)m->nq),
                                          .qvel = copy_array(state.qvel, (int)m->nv),
                                          .act = copy_array(state.act, (int)m->na),
                                          .mocap = copy_array(body->mocap, 7 * (int)m->nmocap),
                                          .ctrl = copy_array(ctrl, (int)m->nu),
                                          .measure = allocate((size_t)r->nmeasure, sizeof(double))};
}

void plant_record_plan(PlantRecord *r, double latency, bool deadline_met) {
  if (r->nplan == r->plan_room) {
    r->plan_room = r->plan_room ? 2 * r->plan_room : 1024;
    r->latency = realloc(r->latency, sizeof *r->latency * (size_t)r->plan_room);
    if (!r->latency) abort();
  }
  r->latency[r->nplan++] = latency;
  r->misses += !deadline_met;
}

void plant_record_free(PlantRecord *r) {
  for (int i = 0; i < r->nsample; ++i) {
    const PlantSample *s = r->sample + i;
    double *const owned[] = {s->qpos, s->qvel, s->act, s->mocap, s->ctrl, s->measure};
    for (size_t k = 0; k < sizeof owned / sizeof *owned; ++k) free(owned[k]);
  }
  for (int i = 0; i < r->nmeasure; ++i) free(r->measure_name[i]);
  free(r->sample);
  free(r->measure_name);
  free(r->measure_below);
  free(r->measure_during);
  free(r->latency);
}

//------------------------------------------------------------------------------------ how good it was

SinewStatus plant_judge_state(SinewClient *client, uint64_t session, const SinewState *state,
                              const SinewSessionInfo *info, double *cost, double *measure, int nmeasure) {
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
  evaluate.session = session;
  evaluate.state = &s;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  request.evaluate = &evaluate;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(client, &request, &reply);
  if (status != SINEW_OK) return status;
  const Sinew__V1__Evaluation *e = reply->evaluate;
  const size_t n = e->n_measures;
  const bool complete = !measure || n == (size_t)nmeasure;
  *cost = e->cost;
  for (int i = 0; measure && complete && i < nmeasure; ++i) measure[i] = e->measures[i]->value;
  sn_free_reply(reply);
  return complete ? SINEW_OK : sn_wire_fail(client, SINEW_PROTOCOL, "%zu measures, the task has %d", n, nmeasure);
}

SinewStatus plant_record_judge(PlantRecord *r, SinewClient *client, const SinewSessionInfo *info) {
  for (int i = 0; i < r->nsample; ++i) {
    PlantSample *s = r->sample + i;
    const SinewState state = {s->time, s->qpos, s->qvel, s->act, info->nmocap ? s->mocap : NULL};
    const SinewStatus status = plant_judge_state(client, info->id, &state, info, &s->cost, s->measure, r->nmeasure);
    if (status != SINEW_OK) return status;
  }
  return SINEW_OK;
}

bool plant_record_success(const PlantRecord *r) {
  if (r->nsample == 0 || r->nmeasure == 0 || r->diverged) return false;
  const double end = r->sample[r->nsample - 1].time;
  for (int k = 0; k < r->nmeasure; ++k) {
    if (end < r->measure_during[k]) return false;
    for (int i = 0; i < r->nsample; ++i)
      if (r->sample[i].time >= end - r->measure_during[k] - 1e-9 && !(r->sample[i].measure[k] <= r->measure_below[k]))
        return false;
  }
  return true;
}

double plant_record_worst(const PlantRecord *r, int k) {
  const double end = r->sample[r->nsample - 1].time;
  double worst = 0;
  for (int i = 0; i < r->nsample; ++i)
    if (r->sample[i].time >= end - r->measure_during[k] - 1e-9) worst = sn_larger(worst, r->sample[i].measure[k]);
  return worst;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double latency_quantile(const PlantRecord *r, double q) {
  if (r->nplan == 0) return NAN;
  double *sorted = copy_array(r->latency, r->nplan);
  qsort(sorted, (size_t)r->nplan, sizeof *sorted, compare_doubles);
  const double value = sorted[(int)fmin(r->nplan - 1, floor(q * r->nplan))];
  free(sorted);
  return value;
}

//------------------------------------------------------------------------------------ reports

const char *plant_mode_name(PlantMode mode) {
  switch (mode) {
    case PLANT_REALTIME:
      return "realtime";
    case PLANT_CONTINUOUS:
      return "continuous";
    case PLANT_LOCKSTEP:
      break;
  }
  return "lockstep";
}

static const char *controller_name(const PlantOptions *opt) {
  switch (opt->controller) {
    case PLANT_ZERO:
      return "zero control";
    case PLANT_RANDOM:
      return "best of random constant controls";
    case PLANT_SINEW:
      break;
  }
  return opt->mode == PLANT_LOCKSTEP   ? "sinewd, lockstep"
         : opt->mode == PLANT_REALTIME ? "sinewd, real time"
                                       : "sinewd, continuous";
}

void plant_record_print(const PlantRecord *r, const PlantOptions *opt, FILE *out) {
  const PlantSample *first = r->sample, *last = r->sample + r->nsample - 1;
  fprintf(out, "task                %s, seed %llu\n", opt->task, (unsigned long long)opt->seed);
  fprintf(out, "mode                %s\n", controller_name(opt));
  fprintf(out, "cost                %.5g at the start, %.5g at the end\n", first->cost, last->cost);
  for (int k = 0; k < r->nmeasure; ++k)
    fprintf(out, "%-19s %.4g at the end, %.4g at most over the last %g s (wanted %g)\n", r->measure_name[k],
            last->measure[k], plant_record_worst(r, k), r->measure_during[k], r->measure_below[k]);
  fprintf(out, "success             %s%s\n", plant_record_success(r) ? "yes" : "no",
          r->diverged ? ", the body diverged" : "");
  if (opt->controller == PLANT_SINEW) {
    fprintf(out, "plans               %d\n", r->nplan);
    if (opt->mode == PLANT_CONTINUOUS) fprintf(out, "better ones         %d\n", r->better);
    fprintf(out, "plan latency        p50 %.1f ms, p99 %.1f ms\n", 1e3 * latency_quantile(r, 0.5),
            1e3 * latency_quantile(r, 0.99));
    fprintf(out, "deadline misses     %d\n", r->misses);
    fprintf(out, "steps without plan  %d of %d\n", r->expired, r->nsample - 1);
  }
  fprintf(out, "real-time factor    %.3g (%.3g s of motion in %.3g s)\n", r->simulated / r->wall, r->simulated,
          r->wall);
}

void plant_record_print_json(const PlantRecord *r, const PlantOptions *opt, FILE *out) {
  const PlantSample *first = r->sample, *last = r->sample + r->nsample - 1;
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "task", opt->task);
  cJSON_AddNumberToObject(o, "seed", (double)opt->seed);
  cJSON_AddStringToObject(o, "mode", plant_mode_name(opt->mode));
  cJSON_AddStringToObject(o, "controller", controller_name(opt));
  cJSON_AddNumberToObject(o, "cost_start", first->cost);
  cJSON_AddNumberToObject(o, "cost_end", last->cost);
  cJSON *measures = cJSON_AddObjectToObject(o, "measures");
  for (int k = 0; k < r->nmeasure; ++k) {
    cJSON *one = cJSON_AddObjectToObject(measures, r->measure_name[k]);
    cJSON_AddNumberToObject(one, "end", last->measure[k]);
    cJSON_AddNumberToObject(one, "worst", plant_record_worst(r, k));
    cJSON_AddNumberToObject(one, "below", r->measure_below[k]);
    cJSON_AddNumberToObject(one, "during", r->measure_during[k]);
  }
  cJSON_AddBoolToObject(o, "success", plant_record_success(r));
  cJSON_AddBoolToObject(o, "diverged", r->diverged);
  cJSON_AddNumberToObject(o, "plans", r->nplan);
  cJSON_AddNumberToObject(o, "better_plans", r->better);
  cJSON_AddNumberToObject(o, "latency_p50", latency_quantile(r, 0.5));
  cJSON_AddNumberToObject(o, "latency_p99", latency_quantile(r, 0.99));
  cJSON_AddNumberToObject(o, "deadline_misses", r->misses);
  cJSON_AddNumberToObject(o, "steps", r->nsample - 1);
  cJSON_AddNumberToObject(o, "steps_without_plan", r->expired);
  cJSON_AddNumberToObject(o, "simulated", r->simulated);
  cJSON_AddNumberToObject(o, "real_time_factor", r->simulated / r->wall);
  char *text = cJSON_PrintUnformatted(o);
  fprintf(out, "%s\n", text);
  cJSON_free(text);
  cJSON_Delete(o);
}

bool plant_record_write(const PlantRecord *r, const SinewSessionInfo *info, const char *path) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  fprintf(out, "time cost");
  for (int k = 0; k < r->nmeasure; ++k) fprintf(out, " \"%s\"", r->measure_name[k]);
  for (int i = 0; i < info->nu; ++i) fprintf(out, " ctrl%d", i);
  fputc('\n', out);
  for (int i = 0; i < r->nsample; ++i) {
    const PlantSample *s = r->sample + i;
    fprintf(out, "%.6g %.9g", s->time, s->cost);
    for (int k = 0; k < r->nmeasure; ++k) fprintf(out, " %.9g", s->measure[k]);
    for (int k = 0; k < info->nu; ++k) fprintf(out, " %.6g", s->ctrl[k]);
    fputc('\n', out);
  }
  return fclose(out) == 0;
}
