// The backend that the arguments choose, as a user of the public header opens it.
#ifndef SINEW_CLIENTS_BENCH_USER_BACKEND_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_USER_BACKEND_PRIVATE_H_

#include "clients/bench/bench_backend_args.h"
#include "clients/include/sinew.h"

// Opens it. Returns NULL and err on failure; the caller closes it.
SinewBackend *user_backend_open(const BenchBackendArgs *args, SinewError *err);

#endif
