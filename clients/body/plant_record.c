#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"
#include "clients/body/body.h"

//------------------------------------------------------------------------------------ what happened

static void *allocate(size_t count, size_t size) {
  void *p = calloc(count ? count : 1, size);
  if (!p) abort();
  return p;
}

void plant_record_init(PlantRecord *r, int nmeasure) {
  *r = (PlantRecord){.nmeasure = nmeasure};
  r->measure_name = allocate((size_t)nmeasure, sizeof *r->measure_name);
  r->measure_below = allocate((size_t)nmeasure, sizeof *r->measure_below);
  r->measure_during = allocate((size_t)nmeasure, sizeof *r->measure_during);
}

void plant_record_set_measure(PlantRecord *r, int k, const char *name, double below, double during) {
  free(r->measure_name[k]);
  if (!(r->measure_name[k] = strdup(name))) abort();
  r->measure_below[k] = below;
  r->measure_during[k] = during;
}

static double *copy_array(const double *x, int n) {
  double *copy = allocate((size_t)n, sizeof(double));
  if (n) memcpy(copy, x, sizeof(double) * (size_t)n);
  return copy;
}

void plant_record_sample(PlantRecord *r, const PlantBody *body, const double *ctrl) {
  const mjModel *m = body->m;
  if (r->nsample == r->sample_capacity) {
    r->sample_capacity = r->sample_capacity ? 2 * r->sample_capacity : 1024;
    r->sample = realloc(r->sample, sizeof *r->sample * (size_t)r->sample_capacity);
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
  if (r->nplan == r->plan_capacity) {
    r->plan_capacity = r->plan_capacity ? 2 * r->plan_capacity : 1024;
    r->latency = realloc(r->latency, sizeof *r->latency * (size_t)r->plan_capacity);
    if (!r->latency) abort();
  }
  r->latency[r->nplan++] = latency;
  r->misses += !deadline_met;
}

void plant_record_handover(PlantRecord *r, const PlantPlan *from, const PlantPlan *to, double taken, int ahead,
                           int nu) {
  if (r->nhandover == r->handover_capacity) {
    r->handover_capacity = r->handover_capacity ? 2 * r->handover_capacity : 1024;
    r->handover = realloc(r->handover, sizeof *r->handover * (size_t)r->handover_capacity);
    if (!r->handover) abort();
  }
  const double planned = plant_plan_lead_end(to), parting = fmax(planned, taken);
  const double *a = plant_plan_row(from, parting, nu), *b = plant_plan_row(to, parting, nu);
  const int rows = to->lead > 0 ? to->lead : ahead < to->steps ? ahead : to->steps;
  double jump = 0;
  for (int i = 0; i < nu; ++i) jump = fmax(jump, fabs(a[i] - b[i]));
  r->handover[r->nhandover++] = (PlantHandover){.stamp = to->start,
                                                .age = taken - to->start,
                                                .late = fmax(taken - planned, 0),
                                                .jump = jump,
                                                .step = to->step,
                                                .rows = rows,
                                                .ctrl = copy_array(to->ctrl, rows * nu),
                                                .position = NAN,
                                                .velocity = NAN};
}

static double root_mean_square(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  return n > 0 ? sqrt(sum / n) : 0;
}

// Samples are equally far apart.
const PlantSample *plant_record_sample_at(const PlantRecord *r, double time) {
  if (r->nsample < 2) return NULL;
  const double step = r->sample[1].time - r->sample[0].time, at = (time - r->sample[0].time) / step;
  const long i = lround(at);
  return i >= 0 && i < r->nsample && fabs(at - (double)i) < 1e-3 ? r->sample + i : NULL;
}

double plant_record_variation(const PlantRecord *r, int nu) {
  double sum = 0;
  for (int i = 1; i < r->nsample; ++i)
    for (int k = 0; k < nu; ++k) sum += fabs(r->sample[i].ctrl[k] - r->sample[i - 1].ctrl[k]);
  return r->nsample > 1 && nu > 0 ? sum / nu / (r->sample[r->nsample - 1].time - r->sample[0].time) : 0;
}

void plant_record_prediction(const PlantRecord *r, PlantHandover *h, const PlantBody *body, const double *qpos,
                             const double *qvel) {
  const PlantSample *s = plant_record_sample_at(r, h->stamp + h->rows * h->step);
  const int nv = (int)body->m->nv;
  if (!s) return;
  double *off = allocate((size_t)nv, sizeof *off);
  mj_differentiatePos(body->m, off, 1, s->qpos, qpos);
  h->position = root_mean_square(off, nv);
  for (int i = 0; i < nv; ++i) off[i] = qvel[i] - s->qvel[i];
  h->velocity = root_mean_square(off, nv);
  free(off);
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double plant_record_quantile(const PlantRecord *r, size_t member, double q) {
  double *x = allocate((size_t)r->nhandover, sizeof *x);
  int n = 0;
  for (int i = 0; i < r->nhandover; ++i) {
    memcpy(x + n, (const char *)(r->handover + i) + member, sizeof *x);
    n += !isnan(x[n]);
  }
  qsort(x, (size_t)n, sizeof *x, compare_doubles);
  const double value = sn_quantile(x, n, q);
  free(x);
  return value;
}

double plant_record_miss_share(const PlantRecord *r) {
  return r->nplan > 0 ? (double)r->misses / r->nplan : (double)NAN;
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
  for (int i = 0; i < r->nhandover; ++i) free(r->handover[i].ctrl);
  free(r->latency);
  free(r->handover);
}

//------------------------------------------------------------------------------------ how good it was

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

double plant_record_score(const PlantRecord *r) {
  if (r->nsample == 0 || r->nmeasure == 0) return (double)NAN;
  int good = 0;
  for (int i = 0; i < r->nsample; ++i) {
    bool all = true;
    for (int k = 0; k < r->nmeasure; ++k) all = all && r->sample[i].measure[k] <= r->measure_below[k];
    good += all;
  }
  return (double)good / r->nsample;
}

bool plant_record_write(const PlantRecord *r, int nq, int nu, const char *path) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  fprintf(out, "time cost");
  for (int k = 0; k < r->nmeasure; ++k) fprintf(out, " \"%s\"", r->measure_name[k]);
  for (int i = 0; i < nu; ++i) fprintf(out, " ctrl%d", i);
  fprintf(out, " age jump");
  for (int i = 0; i < nq; ++i) fprintf(out, " qpos%d", i);
  for (int i = 0, plan = 0; i < r->nsample; ++i) {
    const PlantSample *s = r->sample + i;
    double jump = 0;
    for (; plan < r->nhandover && r->handover[plan].stamp + r->handover[plan].age <= s->time + 1e-9; ++plan)
      jump = fmax(jump, r->handover[plan].jump);
    fprintf(out, "\n%.6g %.9g", s->time, s->cost);
    for (int k = 0; k < r->nmeasure; ++k) fprintf(out, " %.9g", s->measure[k]);
    for (int k = 0; k < nu; ++k) fprintf(out, " %.6g", s->ctrl[k]);
    fprintf(out, " %.6g %.6g", s->time - (plan > 0 ? r->handover[plan - 1].stamp : 0), jump);
    for (int k = 0; k < nq; ++k) fprintf(out, " %.9g", s->qpos[k]);
  }
  fprintf(out, "\n");
  return fclose(out) == 0;
}
