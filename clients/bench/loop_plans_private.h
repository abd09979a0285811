// Plans of a closed loop with a latency: asked for, ready some time later, then in force.
#ifndef SINEW_CLIENTS_BENCH_LOOP_PLANS_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_LOOP_PLANS_PRIVATE_H_

#include "clients/body/body.h"
#include "clients/include/sinew.h"

// Holds the plan in force and those that follow it. A zeroed one is empty.
typedef struct LoopPlans {
  PlantPlan in_force;  // no rows: none yet
  PlantPlan *coming;   // (count) in their order
  double *ready;       // (count) when each comes into force [s]
  int count, capacity;
} LoopPlans;

// Adds a plan that comes into force at `ready` [s], not before those that were added before it. Ends the program when
// out of memory, as loop_plans_update does.
void loop_plans_add(LoopPlans *p, const SinewPlan *plan, double ready, int nu);
// Puts the plans in force that are ready `now` [s], and records how each took over; `ahead` as plant_record_handover
// has it.
void loop_plans_update(LoopPlans *p, PlantRecord *r, double now, int ahead, int nu);
// Frees what is held.
void loop_plans_free(LoopPlans *p);

#endif
