// Multistarts of a task on a backend, as sessions of a daemon have them, without planners around them. The benchmark
// and checks of backends use them.
#ifndef SINEW_CLIENTS_BENCH_BENCH_MULTISTART_H_
#define SINEW_CLIENTS_BENCH_BENCH_MULTISTART_H_

#include "clients/bench/bench_task.h"

// Holds one multistart of a task's controls; a zeroed one is closed.
typedef struct BenchMultistart {
  const BenchTask *task;
  SnBackend *backend;
  SnBackendModel *device;  // this multistart's own copy of the model
  SnMultistartJob job;
  sn_real *first;       // (steps, nu) controls that it begins with
  sn_real *ctrl;        // (steps, nu) the best so far
  sn_real *initial;     // (nu) the task's initial plan
  double *term;         // (nterm) terms of the best cost
  unsigned char *pair;  // pairs with contacts from distance
} BenchMultistart;

// Opens session `number` of the task with so many starts in each iteration. Session 0 begins with the initial plan, the
// others with noise on it. On failure err says why, and the caller closes what was opened.
SnCode bench_multistart_open(BenchMultistart *x, const BenchTask *task, SnBackend *backend, int number, int starts,
                             SnError *err);
// Closes the session; accepts a closed one.
void bench_multistart_close(BenchMultistart *x);

// Begins all n sessions of one backend anew and makes so many iterations of each, together. Returns SN_ERR_LIMIT when
// the backend stopped; bench_backend_stopped says why.
SnCode bench_multistarts_run(BenchMultistart *x, int n, int iterations, SnError *err);

#endif
