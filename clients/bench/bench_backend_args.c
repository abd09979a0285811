#include "clients/bench/bench_backend_args.h"

#include <stdlib.h>
#include <unistd.h>

#include "clients/base/args.h"

enum { THREADS_MAX = 256 };
enum { KEY_FOLDER = 512, KEY_DEVICE, KEY_THREADS, KEY_BLOCK_THREADS };

static int parse(int key, char *arg, struct argp_state *state) {
  BenchBackendArgs *a = state->input;
  switch (key) {
    case 'b':
      a->name = arg;
      return 0;
    case KEY_FOLDER:
      a->folder = arg;
      return 0;
    case KEY_DEVICE:
      a->device = sn_arg_index(state, "device", arg, 999);
      return 0;
    case KEY_BLOCK_THREADS:
      a->block_threads = sn_arg_count(state, "block-threads", arg, 32);
      return 0;
    case KEY_THREADS:
      a->threads = sn_arg_count(state, "threads", arg, THREADS_MAX);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"backend", 'b', "NAME", 0, "where it is computed: cpu, cuda or cuda_double (default cpu; device: cuda)", 0},
    {"backend-folder", KEY_FOLDER, "FOLDER", 0, "of libsinew_NAME.so (default: where the dynamic linker looks)", 0},
    {"device", KEY_DEVICE, "I", 0, "index among the devices of the backend (default 0)", 0},
    {"block-threads", KEY_BLOCK_THREADS, "N", 0,
     "threads of a world of a rollout on a device: 32, 8, or 1 for tens of thousands of worlds "
     "(default: 32, where there are more worlds than then run at once 8)",
     0},
    {"threads", KEY_THREADS, "N", 0, "of the backend cpu (default: one a core; gradient: 1)", 0},
    {0}};

const struct argp bench_backend_argp = {.options = options, .parser = parse};

const char *bench_backend_name(const BenchBackendArgs *args) { return args->name ? args->name : "cpu"; }

int bench_backend_threads(const BenchBackendArgs *args) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return args->threads > 0 ? args->threads : cores > 0 ? (int)cores : 1;
}
