// A model under seeded smooth controls, as input of rollouts: MuJoCo runs it for DRIVEN_MODEL_LEAD steps with the
// model's own options; where it is then they start, under the controls that follow, and with a cost that looks at all
// that a state has (check_task.h).
#ifndef SINEW_CLIENTS_BENCH_DRIVEN_MODEL_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_DRIVEN_MODEL_PRIVATE_H_

#include "clients/base/args.h"
#include "clients/reference/mujoco_drive.h"
#include "planner/rollout/rollout_runner.h"

enum { DRIVEN_MODEL_LEAD = 50, DRIVEN_MODEL_STATE = mjSTATE_INTEGRATION };

typedef struct DrivenModel {
  SnOracle o;  // its world is at the start
  SnTask *task;
  SnCost *cost;
  SnState initial;  // in the oracle's world
  sn_real *ctrl;    // (steps, nu)
  sn_real *target;  // (steps + 1, ntarget)
  mjtNum *state;    // MuJoCo's at the start
  int steps;
} DrivenModel;

SnCode driven_model_open(DrivenModel *b, const DrivenModelArgs *args, SnError *err);
// Zeroed is allowed.
void driven_model_close(DrivenModel *b);
// Puts MuJoCo to the start; its controls of step k.
void driven_model_restart(DrivenModel *b);
void driven_model_controls(DrivenModel *b, int k);
// MuJoCo's rollout, one thread [ms].
double driven_model_mujoco(DrivenModel *b);

#endif
