// Many gradients at once, for `sinew-bench gradient --items`.
#ifndef SINEW_CLIENTS_BENCH_GRADIENT_BATCH_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_GRADIENT_BATCH_PRIVATE_H_

#include "clients/bench/bench_backend.h"
#include "clients/bench/driven_model_private.h"

// Returns the name of an SnGradientMethod, one of the planner's setting `gradient`. It is valid until the next call.
const char *gradient_method_name(int method);
// Returns the method that option --method names; another name ends the program with argp's message.
int gradient_method_arg(const struct argp_state *state, const char *arg);

// Lists how many gradients are made at once, and in how many rounds.
typedef struct GradientBatchSizes {
  const int *item;  // (n)
  int n, rounds;
} GradientBatchSizes;

// Measures value and gradient of the driven rollout and of copies with noise in their controls, for each size and each
// method. Returns an array of rows, which the caller deletes; NULL with err filled on failure.
cJSON *gradient_batch_run(const DrivenModel *driven, BenchBackend *on, const SnGradientSettings *settings,
                          const GradientBatchSizes *sizes, SnError *err);
// Prints the rows as a table; NULL prints nothing.
void gradient_batch_print(const cJSON *rows);

#endif
