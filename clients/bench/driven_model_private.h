// A model under seeded smooth controls, as input of rollouts. MuJoCo runs it for DRIVEN_LEAD steps with the
// model's own options. The rollouts start from there, under the controls that follow, with a cost that looks at all
// that a state has (probe_task.h).
#ifndef SINEW_CLIENTS_BENCH_DRIVEN_MODEL_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_DRIVEN_MODEL_PRIVATE_H_

#include "clients/bench/driven_args_private.h"
#include "clients/reference/mujoco_reference.h"
#include "planner/rollout/rollout_runner.h"

// Holds a driven model; a zeroed one is closed.
typedef struct DrivenModel {
  SnOracle o;  // both engines; our world is at the start
  SnTask *task;
  SnCost *cost;
  SnState initial;  // in the oracle's world
  sn_real *ctrl;    // (steps, nu)
  sn_real *target;  // (steps + 1, ntarget)
  mjtNum *state;    // MuJoCo's at the start
  int steps;
} DrivenModel;

// Opens the model and drives it to its start. On failure err says why, and the caller closes what was opened.
SnCode driven_model_open(DrivenModel *b, const DrivenArgs *args, SnError *err);
// Closes it; accepts a closed one.
void driven_model_close(DrivenModel *b);
// Runs MuJoCo's rollout on one thread and returns what it took [ms].
double driven_model_mujoco(DrivenModel *b);

#endif
