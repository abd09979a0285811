#include "clients/bench/closed_loop_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench_user_private.h"
#include "clients/reference/mirror.h"

// All that a run holds, freed together.
typedef struct Loop {
  const BenchTaskArgs *args;
  PlantBody body;
  SinewModel *model;
  SinewTask *task;
  SinewBackend *backend;
  SinewPlanner *planner;
  double *ctrl;  // (nu) in force
} Loop;

//------------------------------------------------------------------------------------ opening

// Without a limit on time something else must bound a plan; with one, nothing else shall.
static SinewPlanner *make_planner(const Loop *l, SinewError *err) {
  const bool timed = l->args->plan_seconds > 0;
  const char *settings[BENCH_SETTINGS + 3] = {NULL};
  char iterations[64];
  memcpy(settings, l->args->settings, sizeof settings[0] * (size_t)l->args->nsettings);
  if (timed) {
    settings[l->args->nsettings] = "iterations=0";
    settings[l->args->nsettings + 1] = "adam_iterations=0";
  }
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
    if (setting->choices)
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
    return api_fail(err, SINEW_ERR_NOT_FOUND, "%s", text);
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
  sinew_planner_free(l->planner);
  sinew_backend_close(l->backend);
  sinew_model_free(l->model);
  sinew_task_free(l->task);
  plant_body_free(&l->body);
}

// Writes x[n] over every row of a table, but for NaN.
static void set_rows(mjtNum *table, mjtSize rows, const double *x, int n) {
  for (int k = 0; k < n; ++k)
    for (mjtSize i = 0; i < rows && !isnan(x[k]); ++i) table[n * i + k] = x[k];
}

// The task's contacts for the simulated robot: of every geom, and every pair that the model names.
static void set_contacts(mjModel *m, const SinewTaskPlant *plant) {
  set_rows(m->geom_solref, m->ngeom, plant->solref, mjNREF);
  set_rows(m->pair_solref, m->npair, plant->solref, mjNREF);
  set_rows(m->geom_solimp, m->ngeom, plant->solimp, mjNIMP);
  set_rows(m->pair_solimp, m->npair, plant->solimp, mjNIMP);
}

// The body at the planner's initial state, with the planner's time step.
static SinewStatus start_body(Loop *l, SinewError *err) {
  const SinewState s = sinew_planner_initial(l->planner);
  SinewOptions options = sinew_default_options();
  mjModel *m = l->body.m;
  mjData *d = l->body.d;
  const SinewStatus status = sinew_model_get_options(sinew_planner_model(l->planner), &options, err);
  if (status != SINEW_OK) return status;
  m->opt.timestep = options.timestep;
  set_contacts(m, sinew_task_plant(l->task));
  mj_resetData(m, d);
  mju_copy(d->qpos, s.qpos, (int)m->nq);
  mju_copy(d->qvel, s.qvel, (int)m->nv);
  mju_copy(d->act, s.act, (int)m->na);
  for (int i = 0; i < m->nmocap; ++i) {
    mju_copy(d->mocap_pos + 3 * i, s.mocap + 7 * i, 3);
    mju_copy(d->mocap_quat + 4 * i, s.mocap + 7 * i + 3, 4);
  }
  mj_forward(m, d);
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

static SinewStatus plan(Loop *l, ClosedLoopResult *result, SinewError *err) {
  SinewPlanRequest r = sinew_default_plan_request();
  const SinewPlan *p;
  r.state = plant_body_state(&l->body, false);
  r.budget = l->args->plan_seconds;
  const double began = sn_now_us();
  const SinewStatus status = sinew_planner_plan(l->planner, &r, &p, err);
  if (status != SINEW_OK && status != SINEW_ERR_DIVERGED) return status;
  plant_record_plan(&result->record, 1e-6 * (sn_now_us() - began), true);
  if (status == SINEW_ERR_DIVERGED) return SINEW_OK;  // the plan before goes on
  result->iterations += p->iterations;
  result->candidates = p->candidates;
  return SINEW_OK;
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
static SinewStatus control(Loop *l, SinewError *err) {
  const SinewStatus status = sinew_planner_control(l->planner, l->body.d->time, l->ctrl, err);
  return status == SINEW_ERR_NO_PLAN ? SINEW_OK : status;
}

static SinewStatus run(Loop *l, ClosedLoopResult *result, void (*progress)(void *, double), void *user,
                       SinewError *err) {
  const int steps = (int)lround(l->args->seconds / l->body.m->opt.timestep);
  SinewStatus status = SINEW_OK;
  for (int i = 0; status == SINEW_OK && i < steps && !result->record.diverged; ++i) {
    if (i % l->args->execute == 0) {
      status = plan(l, result, err);
      if (progress) progress(user, (double)i / steps);
    }
    if (status == SINEW_OK) status = control(l, err);
    if (status == SINEW_OK) status = record(l, result, err);
    result->record.diverged = !plant_body_step(&l->body, l->ctrl);
  }
  if (status == SINEW_OK && !result->record.diverged) status = record(l, result, err);
  result->record.simulated = l->body.d->time;
  return status;
}

SinewStatus closed_loop_run(const BenchTaskArgs *args, ClosedLoopResult *result, void (*progress)(void *, double),
                            void *user, SinewError *err) {
  Loop l = {.args = args};
  SinewError local;
  if (!err) err = &local;
  memset(result, 0, sizeof *result);
  SinewStatus status = open_loop(&l, result, err);
  if (status == SINEW_OK) status = start_body(&l, err);
  if (status == SINEW_OK) {
    start_record(l.task, &result->record);
    const double began = 1e-6 * sn_now_us();
    status = run(&l, result, progress, user, err);
    result->wall = result->record.wall = 1e-6 * sn_now_us() - began;
    if (result->record.nplan > 0) result->iterations /= result->record.nplan;
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

//------------------------------------------------------------------------------------ reporting

// Returns the median of a list that keeps its order.
static double median_of(const double *x, int n) {
  double *copy = malloc(sizeof *copy * (size_t)(n + 1));
  if (!copy) abort();
  memcpy(copy, x, sizeof *copy * (size_t)n);
  const double m = sn_median(copy, n);
  free(copy);
  return m;
}

// Times and costs when plans were begun, and at the end.
static void add_costs(cJSON *o, const BenchTaskArgs *args, const PlantRecord *r) {
  cJSON *time = cJSON_AddArrayToObject(o, "time"), *cost = cJSON_AddArrayToObject(o, "cost");
  double sum = 0;
  for (int i = 0; i < r->nsample; ++i) {
    sum += r->sample[i].cost;
    if (i % args->execute && i != r->nsample - 1) continue;
    cJSON_AddItemToArray(time, cJSON_CreateNumber(r->sample[i].time));
    cJSON_AddItemToArray(cost, cJSON_CreateNumber(r->sample[i].cost));
  }
  cJSON_AddNumberToObject(o, "cost_mean", sum / r->nsample);
  cJSON_AddNumberToObject(o, "cost_end", r->sample[r->nsample - 1].cost);
}

static void add_measures(cJSON *o, const PlantRecord *r) {
  cJSON *measures = cJSON_AddObjectToObject(o, "measures");
  for (int k = 0; k < r->nmeasure; ++k) {
    cJSON *one = cJSON_AddObjectToObject(measures, r->measure_name[k]);
    cJSON_AddNumberToObject(one, "end", r->sample[r->nsample - 1].measure[k]);
    cJSON_AddNumberToObject(one, "worst", plant_record_worst(r, k));
    cJSON_AddNumberToObject(one, "below", r->measure_below[k]);
    cJSON_AddNumberToObject(one, "during", r->measure_during[k]);
  }
}

cJSON *closed_loop_report(const BenchTaskArgs *args, const ClosedLoopResult *result) {
  const PlantRecord *r = &result->record;
  cJSON *o = cJSON_CreateObject();
  if (!o || r->nsample == 0) return o;
  double total = 0;
  for (int i = 0; i < r->nplan; ++i) total += r->latency[i];
  cJSON_AddStringToObject(o, "task", args->task);
  cJSON_AddStringToObject(o, "backend", bench_backend_name(&args->backend));
  cJSON_AddNumberToObject(o, "seed", (double)args->seed);
  cJSON_AddNumberToObject(o, "seconds", args->seconds);
  cJSON_AddNumberToObject(o, "execute", args->execute);
  cJSON_AddNumberToObject(o, "plan_seconds", args->plan_seconds);
  cJSON_AddBoolToObject(o, "success", plant_record_success(r));
  cJSON_AddBoolToObject(o, "diverged", r->diverged);
  add_measures(o, r);
  cJSON_AddNumberToObject(o, "plans", r->nplan);
  cJSON_AddNumberToObject(o, "ms_per_plan", 1e3 * median_of(r->latency, r->nplan));
  cJSON_AddNumberToObject(o, "ms_per_plan_mean", 1e3 * total / r->nplan);
  cJSON_AddNumberToObject(o, "iterations", result->iterations);
  cJSON_AddNumberToObject(o, "candidates", result->candidates);
  cJSON_AddNumberToObject(o, "threads", result->threads);
  cJSON_AddNumberToObject(o, "wall", result->wall);
  add_costs(o, args, r);
  cJSON_AddItemToObject(o, "settings", cJSON_Duplicate(result->settings, true));
  return o;
}
