#include "clients/bench/closed_loop_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clients/base/api.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench_user_private.h"
#include "clients/bench/loop_plans_private.h"
#include "clients/reference/mirror.h"

// All that a run holds, freed together.
typedef struct Loop {
  const BenchTaskArgs *args;
  PlantBody body;
  SinewModel *model;
  SinewTask *task;
  SinewBackend *backend;
  SinewPlanner *planner;
  LoopPlans plans;
  double step;   // of the planner [s]
  double *ctrl;  // (nu) in force
} Loop;

//------------------------------------------------------------------------------------ opening

enum { UNBOUNDED = 16 };  // settings of the kind at most

// Lists the settings that leave the time alone to bound the iterations of a plan, whoever makes it.
static void unbounded_settings(char text[UNBOUNDED][64], const char **settings) {
  const SinewSetting *setting;
  int n = 0;
  for (int i = 0; n < UNBOUNDED && (setting = sinew_setting(i)); ++i) {
    const size_t length = strlen(setting->name), end = strlen("iterations");
    const bool counts = length >= end && strcmp(setting->name + length - end, "iterations") == 0;
    if (!counts || setting->lowest > 0) continue;
    snprintf(text[n], sizeof text[n], "%s=0", setting->name);
    settings[n] = text[n];
    ++n;
  }
}

// Without a limit on time something else must bound a plan; with one, nothing else shall.
static SinewPlanner *make_planner(const Loop *l, SinewError *err) {
  const bool timed = l->args->plan_seconds > 0;
  const char *settings[BENCH_SETTINGS + UNBOUNDED + 1] = {NULL};
  char iterations[64], text[UNBOUNDED][64];
  memcpy(settings, l->args->settings, sizeof settings[0] * (size_t)l->args->nsettings);
  if (timed) unbounded_settings(text, settings + l->args->nsettings);
  SinewPlannerDef def = sinew_default_planner();
  def.model = l->model;
  def.task = l->task;
  def.backend = l->backend;
  def.settings = settings;
  def.seed = l->args->seed;
  SinewPlanner *p = sinew_planner_create(&def, err);
  if (!p || timed) return p;
  if (sinew_planner_get(p, "iterations", iterations, sizeof iterations, err) == SINEW_OK &&
      (strtod(iterations, NULL) > 0 || sinew_planner_set(p, "iterations=1", err) == SINEW_OK))
    return p;
  sinew_planner_free(p);
  return NULL;
}

// Lists the values of all settings.
static cJSON *list_settings(SinewPlanner *p) {
  cJSON *all = cJSON_CreateObject();
  const SinewSetting *setting;
  char text[64];
  for (int i = 0; (setting = sinew_setting(i)); ++i) {
    sinew_planner_get(p, setting->name, text, sizeof text, NULL);
    if (setting->choices || setting->text)
      cJSON_AddStringToObject(all, setting->name, text);
    else
      cJSON_AddNumberToObject(all, setting->name, strtod(text, NULL));
  }
  return all;
}

static SinewStatus open_loop(Loop *l, ClosedLoopResult *result, SinewError *err) {
  char text[4000];
  if (!(l->task = bench_user_task(l->args, err))) return err->status;
  if (!plant_body_open(&l->body, &l->args->places, NULL, sinew_task_model(l->task), text, sizeof text))
    return api_fail(err, SINEW_ERR_NOT_FOUND, "task %s: %s", l->args->task, text);
  if (!(l->model = sn_mirror_model(l->body.m, err)) || !(l->backend = bench_user_backend(&l->args->backend, err)) ||
      !(l->planner = make_planner(l, err)))
    return err->status;
  result->threads = bench_backend_threads(&l->args->backend);
  result->settings = list_settings(l->planner);
  l->ctrl = calloc((size_t)l->body.m->nu + 1, sizeof *l->ctrl);
  return l->ctrl ? SINEW_OK : api_fail(err, SINEW_ERR_MEMORY, "out of memory");
}

static void close_loop(Loop *l) {
  free(l->ctrl);
  loop_plans_free(&l->plans);
  sinew_planner_free(l->planner);
  sinew_backend_close(l->backend);
  sinew_model_free(l->model);
  sinew_task_free(l->task);
  plant_body_free(&l->body);
}

// The body at the planner's initial state.
static SinewStatus start_body(Loop *l, ClosedLoopResult *result, SinewError *err) {
  const SinewState s = sinew_planner_initial(l->planner);
  SinewOptions options = sinew_default_options();
  const SinewStatus status = sinew_model_get_options(sinew_planner_model(l->planner), &options, err);
  if (status != SINEW_OK) return status;
  l->step = options.timestep;
  result->plant_step = l->body.m->opt.timestep = l->args->plant_step > 0 ? l->args->plant_step : l->step;
  result->record.task_contacts =
      !l->args->model_contacts && plant_body_take_contacts(&l->body, sinew_task_plant(l->task));
  plant_body_reset(&l->body, &s);
  result->nq = (int)l->body.m->nq;
  result->nu = (int)l->body.m->nu;
  return SINEW_OK;
}

// Names and bounds of the measures.
static void start_record(const SinewTask *task, PlantRecord *r) {
  const SinewMeasure *m;
  int n = 0;
  while (sinew_task_measure(task, n)) ++n;
  plant_record_init(r, n);
  for (int k = 0; (m = sinew_task_measure(task, k)); ++k) plant_record_set_measure(r, k, m->name, m->below, m->during);
}

//------------------------------------------------------------------------------------ running

// Processor time of the program, all its threads together [s].
static double processor_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A plan for the present state, which comes into force once the latency has passed; the first at once, as the body
// waits for it.
static SinewStatus plan(Loop *l, ClosedLoopResult *result, SinewError *err) {
  const BenchTaskArgs *args = l->args;
  SinewPlanRequest r = sinew_default_plan_request();
  const SinewPlan *p;
  r.state = plant_body_state(&l->body, false);
  r.latency = args->latency_told >= 0 ? args->latency_told : args->latency;
  r.budget = args->plan_seconds;
  const double began = sn_now_us(), worked = processor_time();
  const SinewStatus status = sinew_planner_plan(l->planner, &r, &p, err);
  if (status != SINEW_OK && status != SINEW_ERR_DIVERGED) return status;
  plant_record_plan(&result->record, 1e-6 * (sn_now_us() - began), true);
  result->processor += processor_time() - worked;
  if (status == SINEW_ERR_DIVERGED) return SINEW_OK;  // the plan before goes on
  result->iterations += p->iterations;
  result->candidates = p->candidates;
  if (p->unimproved > result->unimproved) result->unimproved = p->unimproved;
  if (p->stuck) {
    ++result->stuck;
    snprintf(result->last_stuck, sizeof result->last_stuck, "%s", p->remark);
  }
  loop_plans_add(&l->plans, p, l->body.d->time + (result->record.nplan > 1 ? args->latency : 0), (int)l->body.m->nu);
  return SINEW_OK;
}

// Sets what holds from the second plan on.
static SinewStatus set_later(Loop *l, SinewError *err) {
  SinewStatus status = SINEW_OK;
  for (int i = 0; status == SINEW_OK && i < l->args->nlater; ++i)
    status = sinew_planner_set(l->planner, l->args->later[i], err);
  return status;
}

// Adds the present state to the record, with its cost and measures.
static SinewStatus record(Loop *l, ClosedLoopResult *result, SinewError *err) {
  PlantRecord *r = &result->record;
  const SinewState s = plant_body_state(&l->body, false);
  plant_record_sample(r, &l->body, l->ctrl);
  PlantSample *sample = &r->sample[r->nsample - 1];
  const SinewStatus status = sinew_planner_evaluate(l->planner, &s, NULL, 0, &sample->cost, NULL, err);
  return status == SINEW_OK ? sinew_planner_measure(l->planner, &s, sample->measure, r->nmeasure, err) : status;
}

// Controls for now: zero before the first plan.
static void control(Loop *l, PlantRecord *r) {
  const int nu = (int)l->body.m->nu;
  const double now = l->body.d->time;
  loop_plans_update(&l->plans, r, now, l->args->execute, nu);
  if (l->plans.in_force.steps > 0) mju_copy(l->ctrl, plant_plan_row(&l->plans.in_force, now, nu), nu);
}

static SinewStatus run(Loop *l, ClosedLoopResult *result, void (*progress)(void *, double), void *user,
                       SinewError *err) {
  const double step = l->body.m->opt.timestep, period = l->args->execute * l->step;
  const int steps = (int)lround(l->args->seconds / step);
  int plans = 0;
  SinewStatus status = SINEW_OK;
  for (int i = 0; status == SINEW_OK && i < steps && !result->record.diverged; ++i) {
    if (i * step >= plans * period - 1e-9) {
      status = plans++ == 1 ? set_later(l, err) : SINEW_OK;
      if (status == SINEW_OK) status = plan(l, result, err);
      if (progress) progress(user, (double)i / steps);
    }
    control(l, &result->record);
    if (status == SINEW_OK) status = record(l, result, err);
    result->record.diverged = !plant_body_step(&l->body, l->ctrl);
  }
  if (status == SINEW_OK && !result->record.diverged) status = record(l, result, err);
  result->record.simulated = l->body.d->time;
  return status;
}

// Steps the planner's model under the rows of a hand-over and notes where it comes to.
static SinewStatus predict(SinewData *d, PlantHandover *h, const Loop *l, const PlantRecord *r, SinewError *err) {
  const PlantSample *from = plant_record_sample_at(r, h->stamp);
  const int nu = (int)l->body.m->nu;
  if (!from) return SINEW_OK;
  SinewState state = {.time = h->stamp, .qpos = from->qpos, .qvel = from->qvel, .act = from->act, .mocap = from->mocap};
  SinewStatus status = sinew_data_set_state(d, &state, err);
  for (int i = 0; status == SINEW_OK && i < h->rows; ++i) {
    mju_copy(sinew_data_array(d, "ctrl", NULL, NULL), h->ctrl + (size_t)i * (size_t)nu, nu);
    status = sinew_step(d, 1, err);
  }
  if (status == SINEW_ERR_DIVERGED) return SINEW_OK;
  if (status != SINEW_OK) return status;
  state = sinew_data_state(d);
  plant_record_prediction(r, h, &l->body, state.qpos, state.qvel);
  return SINEW_OK;
}

// Compares what the planner believed with what came to pass, plan by plan.
static SinewStatus judge_predictions(const Loop *l, PlantRecord *r, SinewError *err) {
  SinewData *d = sinew_data_create(sinew_planner_model(l->planner), err);
  SinewStatus status = d ? SINEW_OK : err->status;
  for (int i = 0; status == SINEW_OK && i < r->nhandover; ++i) status = predict(d, r->handover + i, l, r, err);
  sinew_data_free(d);
  return status;
}

SinewStatus closed_loop_run(const BenchTaskArgs *args, ClosedLoopResult *result, void (*progress)(void *, double),
                            void *user, SinewError *err) {
  Loop l = {.args = args};
  SinewError local;
  if (!err) err = &local;
  memset(result, 0, sizeof *result);
  SinewStatus status = open_loop(&l, result, err);
  if (status == SINEW_OK) {
    start_record(l.task, &result->record);
    status = start_body(&l, result, err);
  }
  if (status == SINEW_OK) {
    const double began = 1e-6 * sn_now_us();
    status = run(&l, result, progress, user, err);
    result->stride = (int)fmax(1, lround(args->execute * l.step / result->plant_step));
    result->wall = result->record.wall = 1e-6 * sn_now_us() - began;
    if (result->record.nplan > 0) result->iterations /= result->record.nplan;
    result->variation = plant_record_variation(&result->record, (int)l.body.m->nu);
    if (status == SINEW_OK) status = judge_predictions(&l, &result->record, err);
  }
  close_loop(&l);
  if (status != SINEW_OK) closed_loop_free(result);
  return status;
}

void closed_loop_free(ClosedLoopResult *result) {
  plant_record_free(&result->record);
  cJSON_Delete(result->settings);
  memset(result, 0, sizeof *result);
}
