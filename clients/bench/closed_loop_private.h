// One closed loop in one process: our planner, and MuJoCo as the body, in lockstep. The benchmark's.
//   bench_loop.c      the loop and its report
//   bench_mpc.c       one run
//   bench_compare.c   many of them: planners side by side
#ifndef SINEW_CLIENTS_BENCH_CLOSED_LOOP_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_CLOSED_LOOP_PRIVATE_H_

#include <cjson/cJSON.h>

#include "clients/bench/bench_task_args.h"

typedef struct ClosedLoopResult {
  PlantRecord record;  // samples with cost and measures; plans and what they took in seconds as `latency`
  SnSettings settings;
  double iterations;  // of a plan, mean
  int candidates;     // of the last plan's last iteration
  double wall;        // [s] of the whole loop
  int threads;
} ClosedLoopResult;

// Runs it. progress: called after each plan with the part that is done, or NULL. On failure err, and the result holds
// nothing.
SnCode closed_loop_run(const BenchTaskArgs *c, ClosedLoopResult *result, void (*progress)(void *user, double part),
                       void *user, SnError *err);
void closed_loop_free(ClosedLoopResult *result);

// The report of a run; the caller deletes it.
cJSON *closed_loop_report(const BenchTaskArgs *c, const ClosedLoopResult *result);

#endif
