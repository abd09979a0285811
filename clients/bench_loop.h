// One closed loop in one process: our planner, and MuJoCo as the body, in lockstep. The benchmark's.
//   bench_loop.c      the loop and its report
//   bench_mpc.c       one run
//   bench_compare.c   many of them: planners side by side
#ifndef SINEW_CLIENTS_BENCH_LOOP_H_
#define SINEW_CLIENTS_BENCH_LOOP_H_

#include <cjson/cJSON.h>

#include "clients/plant.h"
#include "planner/planner.h"

// What is run.
typedef struct MpcCase {
  const char *task;        // name, or path of a task file
  const char *tasks;       // folder of task files; NULL: next to the program
  const char *models[16];  // "FOLDER" or "NAME=FOLDER"; none: the default folders of sinewd
  int nmodels;
  const char *settings[40];  // of the planner, "name=value", on top of the task's
  int nsettings;
  double seconds;       // of motion
  double plan_seconds;  // of computing a plan; 0: as many iterations as the settings say, at least one
  int execute;          // steps between two plans
  int threads;          // 0: one a core
  uint64_t seed;
} MpcCase;

// Zeros, 16 steps executed, seed 1, 1 s.
MpcCase mpc_default_case(void);

typedef struct MpcResult {
  PlantRecord record;  // samples with cost and measures; plans and what they took in seconds as `latency`
  SnSettings settings;
  double iterations;  // of a plan, mean
  int candidates;     // of the last plan's last iteration
  double wall;        // [s] of the whole loop
  int threads;
} MpcResult;

// Runs it. progress: called after each plan with the part that is done, or NULL. On failure err, and the result holds
// nothing.
SnCode mpc_run(const MpcCase *c, MpcResult *result, void (*progress)(void *user, double part), void *user,
               SnError *err);
void mpc_result_free(MpcResult *result);

// The report of a run; the caller deletes it.
cJSON *mpc_report(const MpcCase *c, const MpcResult *result);

// Its task, and the model of the task's body, ours and MuJoCo's. Also for other modes of the benchmark.
SnTask *mpc_load_task(const MpcCase *c, SnError *err);
SnCode mpc_load_model(const MpcCase *c, const SnTask *task, PlantBody *body, SnModel **model, SnError *err);

// Sets the settings "name=value" of s. err names what is wrong.
SnCode mpc_set(SnSettings *s, const char *assignment, SnError *err);

#endif
