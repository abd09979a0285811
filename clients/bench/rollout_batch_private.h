// Many worlds at once on a backend, for `sinew-bench step --worlds`.
#ifndef SINEW_CLIENTS_BENCH_ROLLOUT_BATCH_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_ROLLOUT_BATCH_PRIVATE_H_

#include "clients/bench/bench_backend.h"
#include "clients/base/args.h"

typedef struct RolloutBatchArgs {
  DrivenModelArgs driven;
  BenchBackendArgs backend;
  int list[SN_ARG_LIST], n;  // how many worlds
  bool profile;
} RolloutBatchArgs;

// Candidates of one batch of rollouts from a driven state, with noise in their controls; MuJoCo's steps of the same
// rollout on one thread beside it. Reports. Returns the exit status.
int rollout_batch_run(const RolloutBatchArgs *x);

#endif
