// Many worlds at once on a backend, for `sinew-bench step --worlds`.
#ifndef SINEW_CLIENTS_BENCH_ROLLOUT_BATCH_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_ROLLOUT_BATCH_PRIVATE_H_

#include "clients/base/args.h"
#include "clients/bench/bench_backend_args.h"
#include "clients/bench/driven_args_private.h"

// Holds what the measurement is about.
typedef struct RolloutBatchArgs {
  DrivenArgs driven;
  BenchBackendArgs backend;
  int size[SN_ARG_LIST], n;  // (n) how many worlds at once
  bool profile;
} RolloutBatchArgs;

// Measures batches of rollouts from a driven state, with noise in their controls, and reports. MuJoCo's steps of the
// same rollout on one thread are the yardstick. Returns the exit status.
int rollout_batch_run(const RolloutBatchArgs *args);

#endif
