#include "clients/bench/bench_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clients/base/args.h"

enum { KEY_FOLDER = 512, KEY_DEVICE, KEY_CHAIN, KEY_THREADS, KEY_BLOCK_THREADS, KEY_BLOCK_SHARED };

static int parse(int key, char *arg, struct argp_state *state) {
  BenchBackendArgs *a = state->input;
  char *end;
  switch (key) {
    case 'b':
      a->name = arg;
      return 0;
    case KEY_FOLDER:
      a->options.folder = arg;
      return 0;
    case KEY_CHAIN:
      a->options.chain = arg;
      return 0;
    case KEY_DEVICE:
      a->options.device = (int)strtol(arg, &end, 10);
      if (end == arg || *end || a->options.device < 0 || a->options.device > 999)
        argp_error(state, "--device %s: a number from 0 to 999", arg);
      return 0;
    case KEY_BLOCK_THREADS:
      a->options.block_threads = sn_arg_count(state, "block-threads", arg, 256);
      return 0;
    case KEY_BLOCK_SHARED:
      a->options.block_shared = sn_arg_count(state, "block-shared", arg, 1 << 30);
      return 0;
    case KEY_THREADS:
      a->threads = sn_arg_count(state, "threads", arg, SN_MAX_THREADS);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"backend", 'b', "NAME", 0, "where it is computed: cpu, cuda or cuda_double (default cpu)", 0},
    {"backend-folder", KEY_FOLDER, "FOLDER", 0, "of libsinew_NAME.so (default: where the dynamic linker looks)", 0},
    {"device", KEY_DEVICE, "I", 0, "index among the devices of the backend (default 0)", 0},
    {"chain", KEY_CHAIN, "kernel|scan", 0,
     "how the backend multiplies Jacobians by the method products: in one block, or by a scan over time (default "
     "kernel)",
     0},
    {"block-threads", KEY_BLOCK_THREADS, "N", 0, "threads of a block of a device: 32 to 256 (default: by the body)", 0},
    {"block-shared", KEY_BLOCK_SHARED, "BYTES", 0,
     "most shared memory of a block of a device for worlds (default: by how many run at once)", 0},
    {"threads", KEY_THREADS, "N", 0, "of the backend cpu (default: one a core; gradient: 1)", 0},
    {0}};

const struct argp bench_backend_argp = {.options = options, .parser = parse};

const char *bench_backend_name(const BenchBackendArgs *args) { return args->name ? args->name : "cpu"; }

SnCode bench_backend_open(BenchBackend *b, const BenchBackendArgs *args, SnError *err) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const char *name = bench_backend_name(args);
  b->pool = sn_pool_create(args->threads > 0 ? args->threads : cores > 0 ? (int)cores : 1, err);
  if (!b->pool) return err->code;
  b->backend = sn_backend_open(name, b->pool, &args->options, err);
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

void bench_stage_print(const cJSON *shares) {
  const cJSON *x;
  printf("\n");
  cJSON_ArrayForEach(x, shares) printf("  %-22s %5.1f %%\n", x->string, 100 * x->valuedouble);
}

void bench_backend_close(BenchBackend *b) {
  sn_backend_free(b->backend);
  sn_pool_free(b->pool);
  *b = (BenchBackend){0};
}
