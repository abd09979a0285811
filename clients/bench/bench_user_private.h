// Backend and task that the arguments choose, as a user of the public header opens them.
#ifndef SINEW_CLIENTS_BENCH_BENCH_USER_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_BENCH_USER_PRIVATE_H_

#include "clients/bench/bench_task_args.h"
#include "clients/include/sinew.h"

// Opens the backend. Returns NULL and err on failure; the caller closes it.
SinewBackend *bench_user_backend(const BenchBackendArgs *args, SinewError *err);

// Loads the task. Returns NULL and err on failure; the caller frees it.
SinewTask *bench_user_task(const BenchTaskArgs *args, SinewError *err);

#endif
