// A model under seeded smooth controls, as input of rollouts. MuJoCo runs it for DRIVEN_MODEL_LEAD steps with the
// model's own options. The rollouts start from there, under the controls that follow, with a cost that looks at all
// that a state has (probe_task.h).
#ifndef SINEW_CLIENTS_BENCH_DRIVEN_MODEL_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_DRIVEN_MODEL_PRIVATE_H_

#include <argp.h>

#include "clients/reference/mujoco_reference.h"
#include "planner/rollout/rollout_runner.h"

enum { DRIVEN_MODEL_LEAD = 50, DRIVEN_MODEL_STATE = mjSTATE_INTEGRATION };

// Holds the arguments that modes on a driven model have in common.
typedef struct DrivenModelArgs {
  const char *model;  // path of the MJCF
  int steps, rounds;  // rounds at most BENCH_ROUNDS
  long seed;
  bool json;
} DrivenModelArgs;

// Parses --model, --steps, --rounds, --seed and --json. It is a child of a mode's own argp, and its input is the
// DrivenModelArgs.
extern const struct argp driven_model_argp;

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
SnCode driven_model_open(DrivenModel *b, const DrivenModelArgs *args, SnError *err);
// Closes it; accepts a closed one.
void driven_model_close(DrivenModel *b);
// Puts MuJoCo back to the start.
void driven_model_restart(DrivenModel *b);
// Gives MuJoCo the controls of step k.
void driven_model_controls(DrivenModel *b, int k);
// Runs MuJoCo's rollout on one thread and returns what it took [ms].
double driven_model_mujoco(DrivenModel *b);

#endif
