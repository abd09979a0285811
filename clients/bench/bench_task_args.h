// Which task, with which settings: what modes of the benchmark that work on tasks have in common.
#ifndef SINEW_CLIENTS_BENCH_BENCH_TASK_ARGS_H_
#define SINEW_CLIENTS_BENCH_BENCH_TASK_ARGS_H_

#include <argp.h>

#include "clients/bench/bench_backend.h"
#include "clients/plant/plant.h"
#include "planner/planner.h"

enum { MPC_MODELS = 16, MPC_SETTINGS = 40 };

typedef struct MpcCase {
  const char *task;                // name, with or without .yaml, or path of a task file
  const char *tasks;               // folder of task files; NULL: next to the program
  const char *models[MPC_MODELS];  // "FOLDER" or "NAME=FOLDER"; none: sinewd's defaults
  int nmodels;
  const char *settings[MPC_SETTINGS];  // of the planner, "name=value", on top of the task's
  int nsettings;
  double seconds;       // of motion
  double plan_seconds;  // of computing a plan; 0: as many iterations as the settings say, at least one
  int execute;          // steps between two plans
  BenchBackendArgs backend;
  uint64_t seed;
} MpcCase;

// Zeros, 16 steps executed, seed 1, 1 s, the cpu.
MpcCase mpc_default_case(void);

// The arguments --task, --set, --tasks and --models, a child of a mode's own; its input is the MpcCase.
extern const struct argp mpc_case_argp;

// Sets the setting "name=value" of s, or all that the case has. err names what is wrong.
SnCode mpc_set(SnSettings *s, const char *assignment, SnError *err);
SnCode mpc_set_all(const MpcCase *c, SnSettings *s, SnError *err);

// Its task, and the model of the task's body, ours and MuJoCo's.
SnTask *mpc_load_task(const MpcCase *c, SnError *err);
SnCode mpc_load_model(const MpcCase *c, const SnTask *task, PlantBody *body, SnModel **model, SnError *err);

#endif
