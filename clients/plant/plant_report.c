// Reports of a run: for people, as JSON, and as columns for a plot.
#include <cjson/cJSON.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"
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
  const double value = sn_quantile(sorted, r->nplan, q);
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

// A quantile of the hand-overs.
#define QUANTILE(r, member, q) plant_record_quantile(r, offsetof(PlantHandover, member), q)

// Plans that came into force after the first step of the body at or after their deadline. sinewd's own clock does not
// see their way, nor what kept the body from taking them. Only a body that waits for one plan after the other has them.
static int plans_at_body_late(const PlantRecord *r, const PlantOptions *opt) {
  const double h = opt->step, allowed = h > 0 ? (ceil(opt->deadline / h - 1e-6) + 0.5) * h : opt->deadline;
  int n = 0;
  for (int i = 0; opt->mode == PLANT_REALTIME && i < r->nhandover; ++i) n += r->handover[i].age > allowed;
  return n;
}

static double share_at_body_late(const PlantRecord *r, const PlantOptions *opt) {
  if (opt->mode != PLANT_REALTIME || r->nhandover == 0) return NAN;
  return plans_at_body_late(r, opt) / (double)r->nhandover;
}

// Plans, how they took over from each other, and where they believed the body to be.
static void print_plans(const PlantRecord *r, const PlantOptions *opt, FILE *out) {
  fprintf(out, "plans               %d\n", r->nplan);
  if (opt->mode == PLANT_CONTINUOUS) fprintf(out, "better ones         %d\n", r->better);
  fprintf(out, "plan latency        p50 %.1f ms, p99 %.1f ms\n", 1e3 * latency_quantile(r, 0.5),
          1e3 * latency_quantile(r, 0.99));
  fprintf(out, "plan age            p50 %.1f ms, p99 %.1f ms in force; %.1f ms late (p99)\n",
          1e3 * QUANTILE(r, age, 0.5), 1e3 * QUANTILE(r, age, 0.99), 1e3 * QUANTILE(r, late, 0.99));
  fprintf(out, "jump of controls    p50 %.3g, p99 %.3g\n", QUANTILE(r, jump, 0.5), QUANTILE(r, jump, 0.99));
  fprintf(out, "prediction error    p50 %.3g, p99 %.3g; of velocities %.3g, %.3g\n", QUANTILE(r, position, 0.5),
          QUANTILE(r, position, 0.99), QUANTILE(r, velocity, 0.5), QUANTILE(r, velocity, 0.99));
  fprintf(out, "deadline misses     %d (%.3g %%) by sinewd's clock\n", r->misses, 100 * plant_record_miss_share(r));
  if (opt->mode == PLANT_REALTIME)
    fprintf(out, "at the body late    %d (%.3g %%)\n", plans_at_body_late(r, opt), 100 * share_at_body_late(r, opt));
  fprintf(out, "steps without plan  %d of %d\n", r->expired, r->nsample - 1);
}

void plant_report_print(const PlantRecord *r, const PlantOptions *opt, FILE *out) {
  const PlantSample *first = r->sample, *last = r->sample + r->nsample - 1;
  fprintf(out, "task                %s, seed %llu\n", opt->task, (unsigned long long)opt->seed);
  fprintf(out, "mode                %s\n", controller_name(opt));
  fprintf(out, "contacts            the %s's\n", r->task_contacts ? "task" : "model");
  fprintf(out, "cost                %.5g at the start, %.5g at the end\n", first->cost, last->cost);
  for (int k = 0; k < r->nmeasure; ++k)
    fprintf(out, "%-19s %.4g at the end, %.4g at most over the last %g s (wanted %g)\n", r->measure_name[k],
            last->measure[k], plant_record_worst(r, k), r->measure_during[k], r->measure_below[k]);
  fprintf(out, "success             %s%s\n", plant_record_success(r) ? "yes" : "no",
          r->diverged ? ", the body diverged" : "");
  if (opt->controller == PLANT_SINEW) print_plans(r, opt, out);
  fprintf(out, "real-time factor    %.3g (%.3g s of motion in %.3g s)\n", r->simulated / r->wall, r->simulated,
          r->wall);
}

// As print_plans.
static void add_plans(cJSON *o, const PlantRecord *r, const PlantOptions *opt) {
  cJSON_AddNumberToObject(o, "plans", r->nplan);
  cJSON_AddNumberToObject(o, "better_plans", r->better);
  cJSON_AddNumberToObject(o, "latency_p50", latency_quantile(r, 0.5));
  cJSON_AddNumberToObject(o, "latency_p99", latency_quantile(r, 0.99));
  cJSON_AddNumberToObject(o, "age_p50", QUANTILE(r, age, 0.5));
  cJSON_AddNumberToObject(o, "age_p99", QUANTILE(r, age, 0.99));
  cJSON_AddNumberToObject(o, "late_p99", QUANTILE(r, late, 0.99));
  cJSON_AddNumberToObject(o, "jump_p50", QUANTILE(r, jump, 0.5));
  cJSON_AddNumberToObject(o, "jump_p99", QUANTILE(r, jump, 0.99));
  cJSON_AddNumberToObject(o, "prediction_position_p50", QUANTILE(r, position, 0.5));
  cJSON_AddNumberToObject(o, "prediction_position_p99", QUANTILE(r, position, 0.99));
  cJSON_AddNumberToObject(o, "prediction_velocity_p50", QUANTILE(r, velocity, 0.5));
  cJSON_AddNumberToObject(o, "prediction_velocity_p99", QUANTILE(r, velocity, 0.99));
  cJSON_AddNumberToObject(o, "deadline_misses", r->misses);
  cJSON_AddNumberToObject(o, "deadline_miss_share", plant_record_miss_share(r));
  cJSON_AddNumberToObject(o, "body_late", plans_at_body_late(r, opt));
  cJSON_AddNumberToObject(o, "body_late_share", share_at_body_late(r, opt));
}

void plant_report_print_json(const PlantRecord *r, const PlantOptions *opt, FILE *out) {
  const PlantSample *first = r->sample, *last = r->sample + r->nsample - 1;
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "task", opt->task);
  cJSON_AddNumberToObject(o, "seed", (double)opt->seed);
  cJSON_AddStringToObject(o, "mode", plant_mode_name(opt->mode));
  cJSON_AddStringToObject(o, "controller", controller_name(opt));
  cJSON_AddStringToObject(o, "contacts", r->task_contacts ? "task" : "model");
  cJSON_AddNumberToObject(o, "timestep", opt->step);
  cJSON_AddNumberToObject(o, "speed", opt->speed);
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
  cJSON_AddNumberToObject(o, "score", plant_record_score(r));
  cJSON_AddBoolToObject(o, "diverged", r->diverged);
  add_plans(o, r, opt);
  cJSON_AddNumberToObject(o, "steps", r->nsample - 1);
  cJSON_AddNumberToObject(o, "steps_without_plan", r->expired);
  cJSON_AddNumberToObject(o, "simulated", r->simulated);
  cJSON_AddNumberToObject(o, "real_time_factor", r->simulated / r->wall);
  char *text = cJSON_PrintUnformatted(o);
  fprintf(out, "%s\n", text);
  cJSON_free(text);
  cJSON_Delete(o);
}
