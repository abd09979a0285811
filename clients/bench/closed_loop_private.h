// One closed loop in one process, as a user of the public header has it: our planner, and MuJoCo as the body. It runs
// in lockstep or with a latency that is simulated. mode_mpc.c makes one run, mode_compare.c (compare_*.c) many of them,
// planners side by side.
//   closed_loop.c         runs it
//   loop_plans.c          plans that are asked for and come into force later
//   closed_loop_report.c  the report
#ifndef SINEW_CLIENTS_BENCH_CLOSED_LOOP_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_CLOSED_LOOP_PRIVATE_H_

#include <cjson/cJSON.h>

#include "clients/bench/bench_task_args.h"
#include "clients/include/sinew.h"

// Holds what a run came to.
typedef struct ClosedLoopResult {
  PlantRecord record;   // samples with cost and measures; plans, and what each took [s] as its latency
  cJSON *settings;      // names and values
  double iterations;    // mean of a plan
  int candidates;       // in the last iteration of the last plan
  int stuck;            // plans without progress
  char last_stuck[80];  // remark of the last of them
  int unimproved;       // most plans in a row whose cost did not fall
  double wall;          // the whole loop [s]
  double processor;     // all plans, on all threads together [s]
  int threads, nq, nu;
  double plant_step;  // time step of the body [s]
  int stride;         // samples from one plan to the next
  double variation;   // change of the controls, per second and control (plant_record_variation)
} ClosedLoopResult;

// Runs the loop. Calls progress, which may be NULL, after each plan with the part that is done, from 0 to 1. On failure
// err says why, and the result holds nothing.
SinewStatus closed_loop_run(const BenchTaskArgs *args, ClosedLoopResult *result,
                            void (*progress)(void *user, double part), void *user, SinewError *err);
// Frees what the result holds.
void closed_loop_free(ClosedLoopResult *result);

// Returns the report of a run; the caller deletes it.
cJSON *closed_loop_report(const BenchTaskArgs *args, const ClosedLoopResult *result);

#endif
