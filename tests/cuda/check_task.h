// Shared by the checks of backends: a backend beside the cpu, and a task of this repository.
#ifndef SINEW_TESTS_CUDA_CHECK_TASK_H_
#define SINEW_TESTS_CUDA_CHECK_TASK_H_

#include "clients/bench/bench_task.h"

enum { CHECK_SKIPPED = 77 };  // exit status of a check that needs a device, without one

typedef struct CheckBackends {
  SnPool *pool;
  SnBackend *cpu, *other;
  char text[300];  // the other about itself
} CheckBackends;

// Opens the backend `name` beside the cpu, with so many threads a world (0: as it thinks). Returns 0, or the exit
// status of the program, having said why. CHECK_SKIPPED stands for a backend of CUDA when no device answers, and for
// the emulator with fused products (emulator_fma) when the processor has none.
int check_backends_open(CheckBackends *b, const char *name, const char *folder, int threads);
void check_backends_close(CheckBackends *b);

// Fails the test, with the backend's words, where it has not ended `what` although it had all the time.
void check_ended(bool ended, const SnBackend *b, const char *what);
// Returns n zeroed entries, and memory where n is 0, too.
void *check_array(size_t n, size_t size);

// Opens a task of planner/tasks at its start. Returns false and sets err when its model is not there. Ends the program
// on any other failure.
bool check_task_open(BenchTask *t, const char *name, int steps, SnError *err);

#endif
