// The backend that a benchmark runs on, and the arguments that choose it.
#ifndef SINEW_CLIENTS_BENCH_BENCH_BACKEND_H_
#define SINEW_CLIENTS_BENCH_BENCH_BACKEND_H_

#include <argp.h>
#include <cjson/cJSON.h>

#include "planner/backend/backend.h"

typedef struct BenchBackendArgs {
  const char *name;  // NULL: "cpu"
  SnBackendOptions options;
  int threads;  // of the cpu; 0: one a core
} BenchBackendArgs;

// The arguments --backend, --backend-folder, --device, --chain and --threads, a child of a mode's own; its input is
// BenchBackendArgs.
extern const struct argp bench_backend_argp;

const char *bench_backend_name(const BenchBackendArgs *args);

typedef struct BenchBackend {
  SnPool *pool;
  SnBackend *backend;
  char text[300];  // the backend about itself
} BenchBackend;

SnCode bench_backend_open(BenchBackend *b, const BenchBackendArgs *args, SnError *err);
// The error of a backend that stopped though it had all the time: it is lost, or has no room.
SnCode bench_backend_stopped(const BenchBackend *b, SnError *err);
// What each stage took since the last call, as shares of all of them; those that took nothing are left out. NULL where
// the backend does not say. The first call for a model begins to measure: its result means nothing.
cJSON *bench_stage_shares(const BenchBackend *b, SnBackendModel *model);
// As a table.
void bench_stage_print(const cJSON *shares);
// Zeroed is allowed.
void bench_backend_close(BenchBackend *b);

#endif
