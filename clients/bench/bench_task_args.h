// The arguments that say which task, with which settings of the planner.
#ifndef SINEW_CLIENTS_BENCH_BENCH_TASK_ARGS_H_
#define SINEW_CLIENTS_BENCH_BENCH_TASK_ARGS_H_

#include <argp.h>
#include <stdint.h>

#include "clients/bench/bench_backend_args.h"
#include "clients/body/body.h"

enum { BENCH_SETTINGS = 40 };  // most settings of a planner

// Holds the arguments that modes on tasks have in common. bench_default_task_args() fills it.
typedef struct BenchTaskArgs {
  const char *task;                      // name, with or without .yaml, or path of a task file
  const char *tasks;                     // folder of task files; NULL: next to the program
  PlantPlaces places;                    // folders of the model; none: sinewd's defaults
  const char *settings[BENCH_SETTINGS];  // (nsettings) "name=value", on top of the task's own
  int nsettings;
  const char *later[BENCH_SETTINGS];  // (nlater) the same, from the second plan of a closed loop on
  int nlater;
  double seconds;       // motion [s]
  double plan_seconds;  // time to compute a plan [s]; 0: as many iterations as the settings say, at least one
  int execute;          // steps of the planner between two plans
  // The body of a closed loop.
  bool model_contacts;  // it keeps the contacts of its file, whatever the task says
  double plant_step;    // time step of the body [s]; 0: the planner's
  double latency;       // a plan asked for at t comes into force at t + latency [s]
  double latency_told;  // latency that the planner is told [s]; < 0: the truth
  BenchBackendArgs backend;
  uint64_t seed;
} BenchTaskArgs;

// Returns zeros, but for 16 steps executed, seed 1, 1 s and the truth about the latency; the backend is the cpu.
BenchTaskArgs bench_default_task_args(void);

// Parses --task, --set, --tasks and --models. It is a child of a mode's own argp, and its input is the BenchTaskArgs.
extern const struct argp bench_task_argp;

enum { BENCH_PATH = 2200 };  // longest path of a task file
#define BENCH_NO_TASKS "cannot tell where the tasks lie; name their folder"

// Writes the path of the task's file: by its name, with or without the ending, in the folder of tasks, else as it is.
// Returns false when this program does not know the folder.
bool bench_task_path(const BenchTaskArgs *args, char path[BENCH_PATH]);

#endif
