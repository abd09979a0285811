#include "clients/bench/bench_user_private.h"

#include "clients/base/api.h"

SinewBackend *bench_user_backend(const BenchBackendArgs *args, SinewError *err) {
  SinewBackendOptions options = sinew_default_backend();
  options.threads = bench_backend_threads(args);
  options.device = args->device;
  options.folder = args->folder;
  options.block_threads = args->block_threads;
  return sinew_backend_open(bench_backend_name(args), &options, err);
}

SinewTask *bench_user_task(const BenchTaskArgs *args, SinewError *err) {
  char path[BENCH_PATH];
  if (bench_task_path(args, path)) return sinew_task_load(path, err);
  api_fail(err, SINEW_ERR_IO, BENCH_NO_TASKS);
  return NULL;
}
