// Reports of a run: for people, as JSON, and as columns for a plot.
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/plant/plant.h"

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double latency_quantile(const PlantRecord *r, double q) {
  if (r->nplan == 0) return NAN;
  double *sorted = malloc(sizeof *sorted * (size_t)r->nplan);
  if (!sorted) abort();
  memcpy(sorted, r->latency, sizeof *sorted * (size_t)r->nplan);
  qsort(sorted, (size_t)r->nplan, sizeof *sorted, compare_doubles);
  const double value = sorted[(int)fmin(r->nplan - 1, floor(q * r->nplan))];
  free(sorted);
  return value;
}

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

void plant_report_print(const PlantRecord *r, const PlantOptions *opt, FILE *out) {
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

void plant_report_print_json(const PlantRecord *r, const PlantOptions *opt, FILE *out) {
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

bool plant_report_write(const PlantRecord *r, const SinewSessionInfo *info, const char *path) {
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
