// A task at its start, without a loop, as the engine has it: model, cost, initial state, initial plan, targets.
#ifndef SINEW_CLIENTS_BENCH_BENCH_TASK_H_
#define SINEW_CLIENTS_BENCH_BENCH_TASK_H_

#include "clients/bench/bench_backend.h"
#include "clients/bench/bench_task_args.h"
#include "planner/planner.h"

// Holds a task at its start; a zeroed one is closed.
typedef struct BenchTask {
  SnTask *task;  // with the settings of the arguments
  SnModel *m;    // with the task's overrides
  SnCost *cost;
  int steps;
  sn_real *qpos, *qvel, *act, *mocap_pos, *mocap_quat;  // initial state
  sn_real *ctrl;                                        // (steps, nu) the initial plan
  sn_real *target;                                      // (steps + 1, ntarget)
  SnModel *loaded;                                      // without the task's overrides
  PlantBody body;
} BenchTask;

// Opens the task over so many steps; 0 takes its horizon. On failure err says why, and the caller closes what was
// opened.
SnCode bench_task_open(BenchTask *t, const BenchTaskArgs *args, int steps, SnError *err);
// Closes the task; accepts a closed one.
void bench_task_close(BenchTask *t);
// Returns the initial state; its arrays are those of the task.
SnState bench_task_state(const BenchTask *t);

#endif
