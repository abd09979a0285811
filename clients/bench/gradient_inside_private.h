// Gradients of a rollout by means of the engine beyond sinew.h: methods of going back, shares of stages, many by each
// method. For `sinew-bench gradient`.
#ifndef SINEW_CLIENTS_BENCH_GRADIENT_INSIDE_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_GRADIENT_INSIDE_PRIVATE_H_

#include <cjson/cJSON.h>

#include "clients/bench/bench_backend_args.h"
#include "clients/bench/driven_args_private.h"
#include "clients/include/sinew.h"

// Says which gradients.
typedef struct GradientInsideArgs {
  DrivenArgs driven;
  BenchBackendArgs backend;
  int method;  // index among the choices of the setting `gradient`
  bool cfd;    // contacts from distance: all pairs, within 1 m
} GradientInsideArgs;

// Holds the driven rollout, on a backend of its own.
typedef struct GradientInside GradientInside;

// Opens it. Returns NULL and err on failure. `args` must outlive it.
GradientInside *gradient_inside_open(const GradientInsideArgs *args, SinewError *err);
// Closes it. Accepts NULL.
void gradient_inside_close(GradientInside *x);

// Holds the outcome of a gradient.
typedef struct GradientOutcome {
  const char *status;  // "done", "diverged" or "unbounded"; static memory
  double norm, ms;     // Euclidean norm by the controls; time that it took
} GradientOutcome;

// Computes value and gradient by the method.
SinewStatus gradient_inside_pass(GradientInside *x, GradientOutcome *out, SinewError *err);
// Measures what the stages take in so many gradients. *shares, which the caller deletes, is NULL where the backend does
// not say.
SinewStatus gradient_inside_shares(GradientInside *x, int rounds, cJSON **shares, SinewError *err);
// Measures item[0 .. n) gradients at once by every method. Returns an array of rows, which the caller deletes; NULL and
// err on failure.
cJSON *gradient_inside_items(GradientInside *x, const int *item, int n, int rounds, SinewError *err);

#endif
