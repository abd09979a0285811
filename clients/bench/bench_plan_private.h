// A planner's plan as a user has it, for `sinew-bench refine`.
#ifndef SINEW_CLIENTS_BENCH_BENCH_PLAN_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_BENCH_PLAN_PRIVATE_H_

#include "clients/bench/bench_task_args.h"
#include "clients/include/sinew.h"

// Says which plans: by Adam, always from the start of the task.
typedef struct BenchPlan {
  const BenchTaskArgs *args;
  const mjModel *body;  // MuJoCo's model of the task
  int steps, iterations, rounds;
} BenchPlan;

// Times the plans: ms (rounds), after one that does not count. *cost gets that of the last one.
SinewStatus bench_plan_measure(const BenchPlan *p, double *ms, double *cost, SinewError *err);

#endif
