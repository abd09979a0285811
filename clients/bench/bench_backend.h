// The backend that a benchmark runs on, as the engine has it.
#ifndef SINEW_CLIENTS_BENCH_BENCH_BACKEND_H_
#define SINEW_CLIENTS_BENCH_BENCH_BACKEND_H_

#include <cjson/cJSON.h>

#include "clients/bench/bench_backend_args.h"
#include "planner/backend/backend.h"

// Holds an open backend; a zeroed one is closed.
typedef struct BenchBackend {
  SnPool *pool;
  SnBackend *backend;
  char text[300];  // the backend about itself
} BenchBackend;

// Opens a backend. On failure err says why, and the caller closes what was opened.
SnCode bench_backend_open(BenchBackend *b, const BenchBackendArgs *args, SnError *err);
// Fills err and returns its code for a backend that stopped though it had all the time: it is lost, or has no memory.
SnCode bench_backend_stopped(const BenchBackend *b, SnError *err);
// Returns what each stage took since the last call, as shares of all of them, without those that took nothing. NULL
// when the backend does not say. The first call for a model starts to measure, and its result means nothing. The caller
// deletes the object.
cJSON *bench_stage_shares(const BenchBackend *b, SnBackendModel *model);
// Closes the backend; accepts a closed one.
void bench_backend_close(BenchBackend *b);

#endif
