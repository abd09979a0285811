// A task at its start, without a loop: model, cost, initial state, initial plan, targets.
#ifndef SINEW_CLIENTS_BENCH_BENCH_TASK_H_
#define SINEW_CLIENTS_BENCH_BENCH_TASK_H_

#include "clients/bench/bench_task_args.h"

typedef struct BenchTask {
  SnTask *task;  // with the settings of the case
  SnModel *m;    // with the task's overrides
  SnCost *cost;
  int steps;
  // initial state, and what acts from it on: (steps, nu), (steps + 1, ntarget)
  sn_real *qpos, *qvel, *act, *mocap_pos, *mocap_quat, *ctrl, *target;
  // what it comes from
  SnModel *loaded;
  PlantBody body;
} BenchTask;

// steps 0: the task's horizon.
SnCode bench_task_open(BenchTask *t, const BenchTaskArgs *c, int steps, SnError *err);
// Zeroed is allowed.
void bench_task_close(BenchTask *t);
// The initial state, in the task's arrays.
SnState bench_task_state(const BenchTask *t);

#endif
