// A model under seeded smooth controls, as input of rollouts: MuJoCo runs it for BENCH_LEAD steps with the model's own
// options; where it is then they start, under the controls that follow, and with a cost that looks at all that a state
// has (check_task.h).
#ifndef SINEW_CLIENTS_BENCH_DRIVEN_MODEL_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_DRIVEN_MODEL_PRIVATE_H_

#include "clients/base/args.h"
#include "clients/reference/mujoco_drive.h"
#include "planner/rollout/rollout_runner.h"

enum { BENCH_LEAD = 50, BENCH_STATE = mjSTATE_INTEGRATION };

typedef struct BenchDrive {
  SnOracle o;  // its world is at the start
  SnTask *task;
  SnCost *cost;
  SnStart start;    // in the oracle's world
  sn_real *ctrl;    // (steps, nu)
  sn_real *target;  // (steps + 1, ntarget)
  mjtNum *state;    // MuJoCo's at the start
  int steps;
} BenchDrive;

SnCode bench_drive_open(BenchDrive *b, const SnDriveArgs *args, SnError *err);
// Zeroed is allowed.
void bench_drive_close(BenchDrive *b);
// Puts MuJoCo to the start; its controls of step k.
void bench_drive_restart(BenchDrive *b);
void bench_drive_controls(BenchDrive *b, int k);
// MuJoCo's rollout, one thread [ms].
double bench_drive_mujoco(BenchDrive *b);

#endif
