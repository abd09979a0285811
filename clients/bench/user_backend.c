#include "clients/bench/user_backend_private.h"

SinewBackend *user_backend_open(const BenchBackendArgs *args, SinewError *err) {
  SinewBackendOptions options = sinew_default_backend();
  options.threads = bench_backend_threads(args);
  options.device = args->device;
  options.folder = args->folder;
  options.chain = args->chain;
  options.block_threads = args->block_threads;
  options.block_shared = args->block_shared;
  return sinew_backend_open(bench_backend_name(args), &options, err);
}
