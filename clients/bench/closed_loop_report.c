// The report of a closed loop.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"
#include "clients/bench/closed_loop_private.h"

// Returns the median of a list that keeps its order.
static double median_of(const double *x, int n) {
  double *copy = malloc(sizeof *copy * (size_t)(n + 1));
  if (!copy) abort();
  if (n > 0) memcpy(copy, x, sizeof *copy * (size_t)n);
  const double m = sn_median(copy, n);
  free(copy);
  return m;
}

// Times and costs when plans were begun, and at the end.
static void add_costs(cJSON *o, int stride, const PlantRecord *r) {
  cJSON *time = cJSON_AddArrayToObject(o, "time"), *cost = cJSON_AddArrayToObject(o, "cost");
  double sum = 0;
  for (int i = 0; i < r->nsample; ++i) {
    sum += r->sample[i].cost;
    if (i % stride && i != r->nsample - 1) continue;
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

static void add_quantiles(cJSON *o, const char *name, const PlantRecord *r, size_t member) {
  cJSON *both = cJSON_AddObjectToObject(o, name);
  cJSON_AddNumberToObject(both, "p50", plant_record_quantile(r, member, 0.5));
  cJSON_AddNumberToObject(both, "p99", plant_record_quantile(r, member, 0.99));
}

// The body, and how plans took over from each other.
static void add_body(cJSON *o, const BenchTaskArgs *args, const ClosedLoopResult *result) {
  const PlantRecord *r = &result->record;
  cJSON_AddStringToObject(o, "contacts", r->task_contacts ? "task" : "model");
  cJSON_AddNumberToObject(o, "plant_timestep", result->plant_step);
  cJSON_AddNumberToObject(o, "latency", args->latency);
  cJSON_AddNumberToObject(o, "latency_told", args->latency_told >= 0 ? args->latency_told : args->latency);
  add_quantiles(o, "jump", r, offsetof(PlantHandover, jump));
  cJSON_AddNumberToObject(o, "variation", result->variation);
  add_quantiles(o, "prediction_position", r, offsetof(PlantHandover, position));
  add_quantiles(o, "prediction_velocity", r, offsetof(PlantHandover, velocity));
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
  add_body(o, args, result);
  cJSON_AddBoolToObject(o, "success", plant_record_success(r));
  cJSON_AddNumberToObject(o, "score", plant_record_score(r));
  cJSON_AddBoolToObject(o, "diverged", r->diverged);
  add_measures(o, r);
  cJSON_AddNumberToObject(o, "plans", r->nplan);
  cJSON_AddNumberToObject(o, "plans_without_progress", result->stuck);
  cJSON_AddNumberToObject(o, "plans_unimproved", result->unimproved);
  cJSON_AddNumberToObject(o, "ms_per_plan", 1e3 * median_of(r->latency, r->nplan));
  cJSON_AddNumberToObject(o, "ms_per_plan_mean", 1e3 * total / r->nplan);
  cJSON_AddNumberToObject(o, "cpu_ms_per_plan", 1e3 * result->processor / sn_larger(r->nplan, 1));
  cJSON_AddNumberToObject(o, "iterations", result->iterations);
  cJSON_AddNumberToObject(o, "candidates", result->candidates);
  cJSON_AddNumberToObject(o, "threads", result->threads);
  cJSON_AddNumberToObject(o, "wall", result->wall);
  add_costs(o, result->stride, r);
  cJSON *later = cJSON_AddArrayToObject(o, "later");
  for (int i = 0; i < args->nlater; ++i) cJSON_AddItemToArray(later, cJSON_CreateString(args->later[i]));
  cJSON_AddItemToObject(o, "settings", cJSON_Duplicate(result->settings, true));
  return o;
}
