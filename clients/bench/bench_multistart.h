// Multistarts of a task on a backend, as sessions of a daemon have them, without planners around them: for the
// benchmark and for checks of backends.
#ifndef SINEW_CLIENTS_BENCH_BENCH_MULTISTART_H_
#define SINEW_CLIENTS_BENCH_BENCH_MULTISTART_H_

#include "clients/bench/bench_task.h"

typedef struct BenchMultistart {
  const BenchTask *task;
  SnBackend *backend;
  SnBackendModel *device;  // its own
  SnMultistartJob job;
  sn_real *first;       // (steps, nu) controls that it begins with
  sn_real *ctrl;        // (steps, nu) the best so far
  sn_real *initial;     // (nu) the task's initial plan
  double *term;         // (nterm)
  unsigned char *pair;  // contacts from distance
} BenchMultistart;

// Session `number` of the task: 0 begins with the initial plan, others with noise on it. starts: of each iteration.
SnCode bench_multistart_open(BenchMultistart *x, const BenchTask *task, SnBackend *backend, int number, int starts,
                             SnError *err);
// Zeroed is allowed.
void bench_multistart_close(BenchMultistart *x);

// Begins all n anew and makes `iterations` of each: those of one backend together. SN_ERR_LIMIT when the backend
// stopped; the caller asks it why.
SnCode bench_multistarts_run(BenchMultistart *x, int n, int iterations, SnError *err);

#endif
