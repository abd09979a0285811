// MuJoCo's rollouts on the threads of a pool, as its own module `rollout` makes them (python/mujoco/rollout.cc). A
// state is set, controls are applied; states and sensors are copied out behind every step.
#ifndef SINEW_CLIENTS_BENCH_MUJOCO_ROLLOUT_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_MUJOCO_ROLLOUT_PRIVATE_H_

#include <mujoco/mujoco.h>

#include "planner/base/pool.h"

// Says what is rolled out. State means mjSTATE_FULLPHYSICS, of `size` numbers.
typedef struct MujocoRollout {
  const mjModel *m;
  mjData *const *d;  // one for each thread of the pool
  int count, steps, size;
  const mjtNum *state0;  // (count, size)
  const mjtNum *ctrl;    // (count, steps, nu)
  mjtNum *state;         // (count, steps, size)
  mjtNum *sensordata;    // (count, steps, nsensordata)
} MujocoRollout;

// Computes all of them, in chunks as large as those of the module: a tenth of a thread's share, at least one.
void mujoco_rollout_run(const MujocoRollout *r, SnPool *pool);

#endif
