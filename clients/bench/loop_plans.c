#include "clients/bench/loop_plans_private.h"

#include <stdlib.h>
#include <string.h>

void loop_plans_add(LoopPlans *p, const SinewPlan *plan, double ready, int nu) {
  if (p->count == p->capacity) {
    const int capacity = 2 * p->capacity + 2;
    p->coming = realloc(p->coming, sizeof *p->coming * (size_t)capacity);
    p->ready = realloc(p->ready, sizeof *p->ready * (size_t)capacity);
    if (!p->coming || !p->ready) abort();
    memset(p->coming + p->capacity, 0, sizeof *p->coming * (size_t)(capacity - p->capacity));
    p->capacity = capacity;
  }
  const PlantPlan view = {.start = plan->start,
                          .step = plan->step,
                          .steps = plan->steps,
                          .lead = plan->lead,
                          .ctrl = (double *)(uintptr_t)plan->ctrl};
  plant_plan_copy(p->coming + p->count, &view, nu);
  p->ready[p->count++] = ready;
}

void loop_plans_update(LoopPlans *p, PlantRecord *r, double now, int ahead, int nu) {
  while (p->count > 0 && p->ready[0] <= now + 1e-9) {
    const PlantPlan before = p->in_force;
    if (before.steps > 0) plant_record_handover(r, &before, p->coming, now, ahead, nu);
    p->in_force = p->coming[0];
    --p->count;
    memmove(p->coming, p->coming + 1, sizeof *p->coming * (size_t)p->count);
    memmove(p->ready, p->ready + 1, sizeof *p->ready * (size_t)p->count);
    p->coming[p->count] = before;  // its memory is for a later one
  }
}

void loop_plans_free(LoopPlans *p) {
  for (int i = 0; i < p->capacity; ++i) plant_plan_free(p->coming + i);
  plant_plan_free(&p->in_force);
  free(p->coming);
  free(p->ready);
}
