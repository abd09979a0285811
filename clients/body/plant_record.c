#include <math.h>
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
