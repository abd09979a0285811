// What the checks of backends share: opening a backend beside the cpu, and a task of this repository.
#ifndef SINEW_TESTS_CUDA_CHECK_TASK_H_
#define SINEW_TESTS_CUDA_CHECK_TASK_H_

#include "clients/bench/bench_task.h"

enum { CHECK_SKIPPED = 77 };  // exit status of a check that needs a device, without one

typedef struct CheckBackends {
  SnPool *pool;
  SnBackend *cpu, *other;
  char text[300];  // the other about itself
} CheckBackends;

// name: of a backend, or NAME+scan: with products of Jacobians by a scan over time. 0, or the exit status of the
// program, which has said why: CHECK_SKIPPED where `name` is of CUDA and no device answers, or is that of the emulator
// with fused products (emulator_fma) and the processor has none.
int check_backends_open(CheckBackends *b, const char *name, const char *folder);
void check_backends_close(CheckBackends *b);

// A task of planner/tasks at its start. False and err where its model is not there; ends the program on any other
// failure.
bool check_task_open(BenchTask *t, const char *name, int steps, SnError *err);

#endif
