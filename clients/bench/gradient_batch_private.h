// Many gradients at once, for `sinew-bench gradient --items`.
#ifndef SINEW_CLIENTS_BENCH_GRADIENT_BATCH_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_GRADIENT_BATCH_PRIVATE_H_

#include "clients/bench/bench_backend.h"
#include "clients/bench/driven_model_private.h"

// Lists how many gradients are made at once, and in how many rounds.
typedef struct GradientBatchSizes {
  const int *item;  // (n)
  int n, rounds;
} GradientBatchSizes;

// Measures value and gradient of the driven rollout and of copies with noise in their controls, for each size and each
// method. Returns an array of rows, which the caller deletes; NULL with err filled on failure.
cJSON *gradient_batch_run(const DrivenModel *driven, BenchBackend *on, const SnGradientSettings *settings,
                          const GradientBatchSizes *sizes, SnError *err);

#endif
