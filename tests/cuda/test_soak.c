// Memory of a backend stays as it is: multistarts of a task one after the other, and sessions that come and go. Each
// multistart is the same, and so must be its cost, to the bit.
//
//   cuda_test_soak BACKEND FOLDER TASK COUNT [OUT]
//
// FOLDER: of libsinew_BACKEND.so. OUT: file that gets a line of JSON. Exit status 77, with the reason, where BACKEND is
// of CUDA and there is no device.
#include <cjson/cJSON.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench_multistart.h"
#include "tests/cuda/check_task.h"

enum { ITERATIONS = 2, STEPS = 32, TENTHS = 10 };

// Where memory may grow [bytes].
typedef struct Memory {
  size_t device;    // the backend's own count
  size_t heap;      // of the process, in use; 0 under a sanitizer
  size_t resident;  // of the process
} Memory;

static Memory memory_now(SnBackend *b) {
  Memory now = {.heap = mallinfo2().uordblks};
  now.device = sn_backend_memory(b).used;
  FILE *f = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  if (f && fscanf(f, "%*u %lu", &pages) == 1) now.resident = pages * (size_t)sysconf(_SC_PAGESIZE);
  if (f) fclose(f);
  return now;
}

// A second session of another number of starts that comes, works and goes.
static SnCode visit(const BenchTask *t, SnBackend *b, int i, SnError *err) {
  BenchMultistart job;
  SnCode code = bench_multistart_open(&job, t, b, 1 + i % 3, 1 + i % 4, err);
  if (code == SN_OK) code = bench_multistarts_run(&job, 1, 1, err);
  bench_multistart_close(&job);
  return code;
}

// The multistarts; memory after each tenth of them. *same: whether all had the first one's cost.
static SnCode soak(const BenchTask *t, SnBackend *b, int count, Memory *after, bool *same, SnError *err) {
  BenchMultistart job;
  double first = 0;
  SnCode code = bench_multistart_open(&job, t, b, 0, 1, err);
  *same = true;
  for (int tenth = 0, i = 0; tenth < TENTHS && code == SN_OK; ++tenth) {
    for (; i < (tenth + 1) * count / TENTHS && code == SN_OK; ++i) {
      sn_progress("%d of %d multistarts", i, count);
      code = bench_multistarts_run(&job, 1, ITERATIONS, err);
      if (i == 0) first = job.job.best_cost;
      *same = *same && memcmp(&first, &job.job.best_cost, sizeof first) == 0;
    }
    for (int k = 0; k < 12 && code == SN_OK; ++k) code = visit(t, b, k, err);
    after[tenth] = memory_now(b);
  }
  sn_progress_end();
  bench_multistart_close(&job);
  return code;
}

static void report(const char *backend, const char *task, int count, const Memory *after, double seconds, bool holds,
                   const char *out) {
  const Memory *a = after, *z = after + TENTHS - 1;
  printf("%s, %s: %d multistarts in %.1f s; device %zu bytes, then %zu; heap %zu, then %zu; resident %zu, then %zu\n",
         backend, task, count, seconds, a->device, z->device, a->heap, z->heap, a->resident, z->resident);
  FILE *file = out ? fopen(out, "a") : NULL;
  if (!file) return;
  fprintf(file,
          "{\"check\":\"soak\",\"backend\":\"%s\",\"task\":\"%s\",\"multistarts\":%d,\"seconds\":%.3f,"
          "\"device_first\":%zu,\"device_last\":%zu,\"heap_first\":%zu,\"heap_last\":%zu,\"resident_first\":%zu,"
          "\"resident_last\":%zu,\"holds\":%s}\n",
          backend, task, count, seconds, a->device, z->device, a->heap, z->heap, a->resident, z->resident,
          holds ? "true" : "false");
  fclose(file);
}

static bool holds(const Memory *after, bool same) {
  enum { HEAP = 64 << 10, RESIDENT = 16 << 20 };  // what the C library keeps for itself varies
  bool ok = same;
  if (!same) printf("multistarts of the same plan gave different costs\n");
  for (int i = 1; i < TENTHS; ++i) {
    if (after[i].device != after[0].device) {
      printf("memory of the device went from %zu to %zu bytes\n", after[0].device, after[i].device);
      ok = false;
    }
    if (after[i].heap > after[0].heap + HEAP) {
      printf("the heap went from %zu to %zu bytes\n", after[0].heap, after[i].heap);
      ok = false;
    }
#ifndef __SANITIZE_ADDRESS__  // keeps what was freed
    if (after[i].resident > after[0].resident + RESIDENT) {
      printf("resident memory went from %zu to %zu bytes\n", after[0].resident, after[i].resident);
      ok = false;
    }
#endif
  }
  return ok;
}

int main(int argc, char **argv) {
  if (argc < 5 || atoi(argv[4]) < TENTHS) {
    fprintf(stderr, "usage: %s BACKEND FOLDER TASK COUNT [OUT], COUNT at least %d\n", argv[0], TENTHS);
    return 2;
  }
  const char *backend = argv[1], *task = argv[3], *out = argc > 5 ? argv[5] : NULL;
  const int count = atoi(argv[4]);
  SnError err = {0};
  BenchTask t = {0};
  CheckBackends b;
  Memory after[TENTHS];
  bool same = false;
  int status = check_backends_open(&b, backend, argv[2], 0);
  if (status == 0 && !check_task_open(&t, task, STEPS, &err)) {
    printf("skipped: %s\n", err.text);
    status = CHECK_SKIPPED;
  }
  if (status == 0) {
    const double began = sn_now_us();
    const SnCode code = soak(&t, b.other, count, after, &same, &err);
    if (code != SN_OK) printf("%s: %s\n", task, err.text);
    status = code == SN_OK && holds(after, same) ? 0 : 1;
    if (code == SN_OK) report(backend, task, count, after, 1e-6 * (sn_now_us() - began), status == 0, out);
  }
  bench_task_close(&t);
  check_backends_close(&b);
  return status;
}
