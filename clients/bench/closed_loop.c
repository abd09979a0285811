#include "clients/bench/closed_loop_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"

// All that a run holds, freed together.
typedef struct Loop {
  const BenchTaskArgs *args;
  SnTask *task;
  SnModel *model;
  BenchBackend backend;
  SnPlanner *planner;
  PlantBody body;
  sn_real *state;  // qpos, qvel, act, mocap positions, mocap quaternions
  double *ctrl;    // (nu) in force
  double *plan;    // (rows, nu)
  int rows;
  double start, step;
} Loop;

//------------------------------------------------------------------------------------ opening

static SnCode make_settings(const BenchTaskArgs *args, SnSettings *s, SnError *err) {
  SnCode code = bench_set_all(args, s, err);
  // Without a limit on time something else must bound a plan.
  const int adam = sn_settings_find("adam_iterations");
  if (args->plan_seconds <= 0 && s->iterations == 0) s->iterations = 1;
  if (code == SN_OK && args->plan_seconds > 0) {
    s->iterations = 0;
    if (adam >= 0) code = sn_settings_set(s, adam, 0, err);
  }
  return code == SN_OK ? sn_settings_validate(s, err) : code;
}

static SnCode open_loop(Loop *l, ClosedLoopResult *result, SnError *err) {
  if (!(l->task = bench_load_task(l->args, err))) return err->code;
  SnCode code = bench_load_model(l->args, l->task, &l->body, &l->model, err);
  result->settings = l->task->settings;
  if (code == SN_OK) code = make_settings(l->args, &result->settings, err);
  if (code != SN_OK) return code;
  if ((code = bench_backend_open(&l->backend, &l->args->backend, err)) != SN_OK) return code;
  result->threads = sn_pool_size(l->backend.pool);
  SnPlannerDef def = sn_default_planner_def();
  def.model = l->model;
  def.task = l->task;
  def.backend = l->backend.backend;
  def.settings = result->settings;
  def.seed = l->args->seed;
  if (!(l->planner = sn_planner_create(&def, err))) return err->code;
  const SnModel *m = sn_planner_model(l->planner);
  l->state = calloc((size_t)(m->nq + m->nv + m->na + 7 * m->nmocap) + 1, sizeof *l->state);
  l->ctrl = calloc((size_t)m->nu + 1, sizeof *l->ctrl);
  l->plan = calloc(2 * (size_t)result->settings.horizon * (size_t)m->nu + 1, sizeof *l->plan);
  return l->state && l->ctrl && l->plan ? SN_OK : sn_fail(err, SN_ERR_MEMORY, "out of memory");
}

static void close_loop(Loop *l) {
  free(l->state);
  free(l->ctrl);
  free(l->plan);
  sn_planner_free(l->planner);
  bench_backend_close(&l->backend);
  sn_model_free(l->model);
  sn_task_free(l->task);
  plant_body_free(&l->body);
}

static void put(double *to, const sn_real *from, int n) {
  for (int i = 0; i < n; ++i) to[i] = (double)from[i];
}

// The task's contacts for the simulated robot: of every geom, and every pair that the model names.
static void set_contacts(mjModel *m, const SnTaskPlant *plant) {
  for (int k = 0; k < plant->nsolref; ++k) {
    for (int g = 0; g < m->ngeom; ++g) m->geom_solref[mjNREF * g + k] = plant->solref[k];
    for (int p = 0; p < m->npair; ++p) m->pair_solref[mjNREF * p + k] = plant->solref[k];
  }
  for (int k = 0; k < plant->nsolimp; ++k) {
    for (int g = 0; g < m->ngeom; ++g) m->geom_solimp[mjNIMP * g + k] = plant->solimp[k];
    for (int p = 0; p < m->npair; ++p) m->pair_solimp[mjNIMP * p + k] = plant->solimp[k];
  }
}

// The body at the planner's initial state, with the planner's time step.
static void start_body(Loop *l) {
  const SnModel *m = sn_planner_model(l->planner);
  const SnState *s = sn_planner_initial(l->planner);
  mjData *d = l->body.d;
  l->body.m->opt.timestep = (double)m->opt.timestep;
  set_contacts(l->body.m, &l->task->plant);
  mj_resetData(l->body.m, d);
  put(d->qpos, s->qpos, m->nq);
  put(d->qvel, s->qvel, m->nv);
  put(d->act, s->act, m->na);
  put(d->mocap_pos, s->mocap_pos, 3 * m->nmocap);
  put(d->mocap_quat, s->mocap_quat, 4 * m->nmocap);
  mj_forward(l->body.m, d);
}

// Names and bounds of the measures.
static void start_record(const SnTask *task, PlantRecord *r) {
  plant_record_init(r, task->nmeasure);
  for (int k = 0; k < task->nmeasure; ++k)
    plant_record_set_measure(r, k, task->measure[k].name, task->measure[k].below, task->measure[k].during);
}

//------------------------------------------------------------------------------------ running

typedef struct BodyState {
  const sn_real *qpos, *qvel, *act, *mocap_pos, *mocap_quat;
} BodyState;

static sn_real *take(sn_real *to, const double *from, int n) {
  for (int i = 0; i < n; ++i) to[i] = (sn_real)from[i];
  return to + n;
}

static BodyState read_body(Loop *l) {
  const mjData *d = l->body.d;
  const mjModel *m = l->body.m;
  BodyState s;
  sn_real *at = l->state;
  s.qpos = at, at = take(at, d->qpos, (int)m->nq);
  s.qvel = at, at = take(at, d->qvel, (int)m->nv);
  s.act = at, at = take(at, d->act, (int)m->na);
  s.mocap_pos = at, at = take(at, d->mocap_pos, 3 * (int)m->nmocap);
  s.mocap_quat = at, take(at, d->mocap_quat, 4 * (int)m->nmocap);
  return s;
}

static SnCode plan(Loop *l, ClosedLoopResult *result, SnError *err) {
  const BodyState s = read_body(l);
  SnPlanRequest r = sn_default_plan_request();
  SnPlan p;
  r.time = l->body.d->time;
  r.qpos = s.qpos;
  r.qvel = s.qvel;
  r.act = s.act;
  r.mocap_pos = s.mocap_pos;
  r.mocap_quat = s.mocap_quat;
  const double began = 1e-6 * sn_now_us();  // as the planner's clock
  if (l->args->plan_seconds > 0) r.deadline = began + l->args->plan_seconds;
  const SnCode code = sn_planner_plan(l->planner, &r, &p, err);
  if (code != SN_OK) return code;
  plant_record_plan(&result->record, 1e-6 * sn_now_us() - began, true);
  result->iterations += p.iterations;
  result->candidates = p.candidates;
  if (p.nstep == 0) return SN_OK;  // diverged: the plan before goes on
  put(l->plan, p.ctrl, p.nstep * p.nu);
  l->rows = p.nstep;
  l->start = p.start;
  l->step = p.step;
  return SN_OK;
}

// Cost and measures of the state that was recorded last.
static SnCode judge(Loop *l, PlantSample *sample, SnError *err) {
  const BodyState s = read_body(l);
  const SnEvaluateRequest r = {.time = l->body.d->time,
                               .qpos = s.qpos,
                               .qvel = s.qvel,
                               .act = s.act,
                               .mocap_pos = s.mocap_pos,
                               .mocap_quat = s.mocap_quat};
  SnEvaluation e;
  const SnCode code = sn_planner_evaluate(l->planner, &r, INFINITY, &e, err);
  if (code != SN_OK) return code;
  sample->cost = e.cost;
  for (int i = 0; i < e.nmeasure; ++i) sample->measure[i] = e.measure[i];
  return SN_OK;
}

static SnCode record(Loop *l, ClosedLoopResult *result, SnError *err) {
  PlantRecord *r = &result->record;
  plant_record_sample(r, &l->body, l->ctrl);
  return judge(l, &r->sample[r->nsample - 1], err);
}

// Controls for now: the plan's row, its last one beyond its end; zero before the first plan.
static void control(Loop *l) {
  if (l->rows == 0) return;
  const size_t nu = (size_t)l->body.m->nu;
  const double row = floor((l->body.d->time - l->start) / l->step + 1e-6);
  const size_t i = row < 0 ? 0 : row > l->rows - 1 ? (size_t)l->rows - 1 : (size_t)row;
  memcpy(l->ctrl, l->plan + i * nu, sizeof(double) * nu);
}

static SnCode run(Loop *l, ClosedLoopResult *result, void (*progress)(void *, double), void *user, SnError *err) {
  const int steps = (int)lround(l->args->seconds / l->body.m->opt.timestep);
  SnCode code = SN_OK;
  for (int i = 0; code == SN_OK && i < steps && !result->record.diverged; ++i) {
    if (i % l->args->execute == 0) {
      code = plan(l, result, err);
      if (progress) progress(user, (double)i / steps);
    }
    control(l);
    if (code == SN_OK) code = record(l, result, err);
    result->record.diverged = !plant_body_step(&l->body, l->ctrl);
  }
  if (code == SN_OK && !result->record.diverged) code = record(l, result, err);
  result->record.simulated = l->body.d->time;
  return code;
}

SnCode closed_loop_run(const BenchTaskArgs *args, ClosedLoopResult *result, void (*progress)(void *, double),
                       void *user, SnError *err) {
  Loop l = {.args = args};
  SnError local = {0};
  if (!err) err = &local;
  memset(result, 0, sizeof *result);
  SnCode code = open_loop(&l, result, err);
  if (code == SN_OK) {
    start_body(&l);
    start_record(l.task, &result->record);
    const double began = 1e-6 * sn_now_us();
    code = run(&l, result, progress, user, err);
    result->wall = result->record.wall = 1e-6 * sn_now_us() - began;
    if (result->record.nplan > 0) result->iterations /= result->record.nplan;
  }
  close_loop(&l);
  if (code != SN_OK) closed_loop_free(result);
  return code;
}

void closed_loop_free(ClosedLoopResult *result) {
  plant_record_free(&result->record);
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

static void add_settings(cJSON *o, const SnSettings *s) {
  cJSON *all = cJSON_AddObjectToObject(o, "settings");
  char text[64];
  for (int i = 0; i < sn_settings_count(); ++i) {
    const SnSettingInfo *info = sn_settings_info(i);
    const double x = sn_settings_get(s, i);
    if (info->type == SN_SETTING_TYPE_CHOICE)
      cJSON_AddStringToObject(all, info->name, sn_settings_choice_name(i, (int)x, text, sizeof text));
    else
      cJSON_AddNumberToObject(all, info->name, x);
  }
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
  add_settings(o, &result->settings);
  return o;
}
