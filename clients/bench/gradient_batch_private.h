// Many gradients at once, for `sinew-bench gradient --items`.
#ifndef SINEW_CLIENTS_BENCH_GRADIENT_BATCH_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_GRADIENT_BATCH_PRIVATE_H_

#include "clients/bench/bench_backend.h"
#include "clients/bench/driven_model_private.h"
#include "clients/bench/bench_report.h"

// Names of SnGradientMethod, those of the planner's setting `gradient`.
const char *gradient_method_name(int method);
int gradient_method_arg(const struct argp_state *state, const char *arg);

typedef struct GradientBatchSizes {
  const int *item;  // (n) how many at once
  int n, rounds;
} GradientBatchSizes;

// Value and gradient of the driven rollout and of copies with noise in their controls, for each number of items and
// each method: an array of rows. NULL and err on failure.
cJSON *gradient_batch_run(const DrivenModel *driven, BenchBackend *on, const SnGradientSettings *settings,
                          const GradientBatchSizes *list, SnError *err);
// As a table; NULL: nothing.
void gradient_batch_print(const cJSON *rows);

#endif
