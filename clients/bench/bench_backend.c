#include "clients/bench/bench_backend.h"

SnCode bench_backend_open(BenchBackend *b, const BenchBackendArgs *args, SnError *err) {
  SnBackendOptions options = sn_default_backend_options();
  options.folder = args->folder;
  options.device = args->device;
  options.block_threads = args->block_threads;
  b->pool = sn_pool_create(bench_backend_threads(args), err);
  if (!b->pool) return err->code;
  b->backend = sn_backend_open(bench_backend_name(args), b->pool, &options, err);
  if (!b->backend) return err->code;
  sn_backend_describe(b->backend, b->text, sizeof b->text);
  return SN_OK;
}

SnCode bench_backend_stopped(const BenchBackend *b, SnError *err) {
  char text[300] = "it has no room";
  sn_backend_lost(b->backend, text, sizeof text);
  return sn_fail(err, SN_ERR_LIMIT, "%s stopped: %s", b->text, text);
}

cJSON *bench_stage_shares(const BenchBackend *b, SnBackendModel *model) {
  enum { STAGES = 100 };
  SnBackendStage stage[STAGES];
  const int n = sn_backend_profile(b->backend, model, stage, STAGES);
  if (n == 0) return NULL;
  cJSON *shares = cJSON_CreateObject();
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += stage[i].time;
  for (int i = 0; i < n; ++i)
    if (stage[i].time > 0) cJSON_AddNumberToObject(shares, stage[i].name, stage[i].time / sum);
  return shares;
}

void bench_backend_close(BenchBackend *b) {
  sn_backend_free(b->backend);
  sn_pool_free(b->pool);
  *b = (BenchBackend){0};
}
