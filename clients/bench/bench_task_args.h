// Which task, with which settings: what modes of the benchmark that work on tasks have in common.
#ifndef SINEW_CLIENTS_BENCH_BENCH_TASK_ARGS_H_
#define SINEW_CLIENTS_BENCH_BENCH_TASK_ARGS_H_

#include <argp.h>

#include "clients/bench/bench_backend.h"
#include "clients/plant/plant.h"
#include "planner/planner.h"

enum { BENCH_MODELS = 16, BENCH_SETTINGS = 40 };

typedef struct BenchTaskArgs {
  const char *task;                  // name, with or without .yaml, or path of a task file
  const char *tasks;                 // folder of task files; NULL: next to the program
  const char *models[BENCH_MODELS];  // "FOLDER" or "NAME=FOLDER"; none: sinewd's defaults
  int nmodels;
  const char *settings[BENCH_SETTINGS];  // of the planner, "name=value", on top of the task's
  int nsettings;
  double seconds;       // of motion
  double plan_seconds;  // of computing a plan; 0: as many iterations as the settings say, at least one
  int execute;          // steps between two plans
  BenchBackendArgs backend;
  uint64_t seed;
} BenchTaskArgs;

// Zeros, 16 steps executed, seed 1, 1 s, the cpu.
BenchTaskArgs bench_default_task_args(void);

// The arguments --task, --set, --tasks and --models, a child of a mode's own; its input is the BenchTaskArgs.
extern const struct argp bench_task_argp;

// Sets the setting "name=value" of s, or all that the case has. err names what is wrong.
SnCode bench_set(SnSettings *s, const char *assignment, SnError *err);
SnCode bench_set_all(const BenchTaskArgs *c, SnSettings *s, SnError *err);

// Its task, and the model of the task's body, ours and MuJoCo's.
SnTask *bench_load_task(const BenchTaskArgs *c, SnError *err);
SnCode bench_load_model(const BenchTaskArgs *c, const SnTask *task, PlantBody *body, SnModel **model, SnError *err);

#endif
