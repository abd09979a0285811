// The arguments that choose a backend.
#ifndef SINEW_CLIENTS_BENCH_BENCH_BACKEND_ARGS_H_
#define SINEW_CLIENTS_BENCH_BENCH_BACKEND_ARGS_H_

#include <argp.h>

// Holds the arguments that choose a backend; zeroed: the cpu.
typedef struct BenchBackendArgs {
  const char *name;    // NULL: "cpu"
  const char *folder;  // folder of libsinew_NAME.so; NULL: where the backend is looked for
  int device;          // index among the devices of its kind
  int block_threads;   // threads of a world of a rollout on a device: 1, 8, 32; 0: as the library thinks
  int threads;         // threads of the cpu; 0: one a core
} BenchBackendArgs;

// Parses --backend, --backend-folder, --device, --block-threads and --threads. It is a child
// of a mode's own argp, and its input is the BenchBackendArgs.
extern const struct argp bench_backend_argp;

// Returns the name of the backend that the arguments choose.
const char *bench_backend_name(const BenchBackendArgs *args);
// Returns how many threads the arguments ask for: of the cpu one a core where they do not say.
int bench_backend_threads(const BenchBackendArgs *args);

#endif
