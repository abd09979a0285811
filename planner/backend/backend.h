// Backends: where rollouts are computed. A table of coarse operations, so that cpu and cuda live in one
// program and tests compare them.
#ifndef SINEW_PLANNER_BACKEND_BACKEND_H_
#define SINEW_PLANNER_BACKEND_BACKEND_H_

#include "planner/rollout/gradient.h"
#include "planner/optimize/multistart.h"
#include "planner/rollout/rollout_runner.h"
#include "planner/optimize/sampling.h"
#include "planner/rollout/threads.h"

// A batch: candidates [first, first + count) of one iteration, from one state. Candidate c applies the
// base controls plus noise c (candidate 0: none); noise NULL: every candidate is the base.
typedef struct SnBatch {
  SnState state;
  const sn_real *ctrl;    // (nstep, nu) base controls
  const sn_real *target;  // (nstep + 1, ntarget)
  const SnNoise *noise;
  int nstep;
  int first, count;
  double max_velocity;
  double *cost;         // out (count): infinity when diverged
  double *term;         // out (count, nterm)
  unsigned char *done;  // out (count): 1 when computed; zeroed by the caller before the first call
  int *warn;            // out (count): SN_WARN_* bits of its steps (overflow of contacts or rows); or NULL
} SnBatch;

// Iterations of Adam on one plan (planner/optimize/multistart.h). What it remembers stays with the backend from job to
// job.
typedef struct SnMultistartJob {
  // What is asked for. Arrays must stay until the job is ended.
  SnState state;
  const sn_real *target;  // (nstep + 1, ntarget)
  int nstep;
  double max_velocity;
  SnGradientSettings settings;
  SnAdamGrid grid;
  SnAdamRule rule;
  SnNoise noise;                // of starts after the first
  const sn_real *initial_ctrl;  // (nu)
  int starts;                   // at most as many as there is room for
  int count;                    // starts that take part, 1 ... starts
  bool init;                    // begin anew, from `ctrl`; else go on from where the job before ended
  bool keep;                    // on init: start 0 keeps its moments
  int left;                     // whose first `left` knots are gone
  bool measured;                // best_cost is that of ctrl under the weights in force; in and out
  int iterations;               // 1 ... job_iterations of the backend
  double deadline;              // on the clock: where the whole plan ends; INFINITY: nowhere

  // What there is so far; in force after multistart_end.
  int done;              // iterations that count; in the last one of a job that was ended early maybe not all starts
  int used;              // starts of the latest of them that count
  sn_real *ctrl;         // (nstep, nu) in: where it begins, out: the best that was measured
  double cost_before;    // of the first controls measured; only where `measured` was false before
  double best_cost;      // in and out
  double gradient_norm;  // at ctrl; NaN where there is none. In and out
  double *best_term;     // (nterm) in and out
  int warn;              // SN_WARN_* bits of all rollouts of the job's iterations that count; zero on init
} SnMultistartJob;

// What a backend takes of its device's memory [bytes]; budget 0: no limit of its own.
typedef struct SnBackendMemory {
  size_t used, budget, total;
} SnBackendMemory;

// What a stage of the step or of its adjoint took, summed over worlds and steps, in a unit of the backend's own: only
// shares of the whole mean something.
typedef struct SnBackendStage {
  const char *name;  // static memory
  double time;
} SnBackendStage;

typedef struct SnBackend SnBackend;
typedef struct SnBackendModel SnBackendModel;  // a model and a cost on a device, with room to roll out

// One thread at a time; the CPU's load, unload and reserve_* from any thread at any time, for models that are not in
// use elsewhere. A device belongs to the thread that opened it: every call comes from there, and a program of several
// threads hands those of others over (sinewd: daemon/planning/device_proxy_private.h).
struct SnBackend {
  const char *name;    // "cpu"
  int job_iterations;  // most iterations that are worth asking for in one job of multistart
  // One line for people: device, number type, threads. Into text[size].
  void (*describe)(const SnBackend *b, char *text, int size);
  // Capacity for rollouts of at most max_step steps. Model and cost must outlive it. NULL and err on failure.
  SnBackendModel *(*load)(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err);
  void (*unload)(SnBackend *b, SnBackendModel *model);
  // The weights or targets of the cost have changed.
  void (*update)(SnBackend *b, SnBackendModel *model);
  // Optional (NULL): reserves capacity for batches of `count` candidates; without it there is capacity for a few at a
  // time.
  SnCode (*reserve_rollouts)(SnBackend *b, SnBackendModel *model, int count, SnError *err);
  // Computes candidates in the order of their index until all are done (returns true) or the clock
  // reaches `until` (false). Called again with the same batch it goes on where it stopped; abandon first
  // when the next call is for another batch.
  bool (*rollouts)(SnBackend *b, SnBackendModel *model, const SnBatch *batch, const SnClock *clock, double until);
  // Optional (NULL): the batch will be asked for soon; a device takes it along with the next launch of rollouts for the
  // same model, which another planner waits for. Any number of times for the same batch. The caller then calls rollouts
  // or abandon.
  void (*rollouts_submit)(SnBackend *b, SnBackendModel *model, const SnBatch *batch);
  // Reserves capacity for batches of at most `count` gradients; without it there is none. Not while a batch is under
  // way.
  SnCode (*reserve_gradients)(SnBackend *b, SnBackendModel *model, int count, SnError *err);
  // Value and gradient of every item that is pending, as sn_gradient_run. Returns true when all are done; called again
  // with the same batch it goes on where it stopped.
  bool (*gradients)(SnBackend *b, SnBackendModel *model, SnGradientBatch *batch, const SnClock *clock, double until);
  // Reserves capacity for multistarts of at most `starts` starts. Not while a job is under way. Where capacity grows,
  // what starts remember may be gone: the next job begins anew.
  SnCode (*reserve_multistart)(SnBackend *b, SnBackendModel *model, int starts, SnError *err);
  // Works on the job until its iterations are done (true) or the clock reaches `until` (false), which is not after
  // job->deadline; called again with the same job it goes on where it stopped. A backend whose job_iterations is 1
  // stops anywhere. Others work in whole iterations: the first of a call unless it is expected to end after
  // job->deadline, further ones as long as they are expected to end before `until`. Where no iteration was done they
  // return false: then none fits.
  bool (*multistart)(SnBackend *b, SnBackendModel *model, SnMultistartJob *job, const SnClock *clock, double until);
  // Ends a job, done or not: what counts of it is in the job's results from now on, the rest is dropped. After this the
  // next job may come.
  void (*multistart_end)(SnBackend *b, SnBackendModel *model, SnMultistartJob *job);
  // Optional (NULL): the job will be asked for soon; a device takes it along with the next launch for the same model,
  // which another planner waits for. Any number of times for the same job. The caller then calls multistart,
  // multistart_end or abandon.
  void (*multistart_submit)(SnBackend *b, SnBackendModel *model, SnMultistartJob *job);
  // Optional (NULL: never): true when the device is lost for this process; the reason into text[size]. All operations
  // return at once then: rollouts, gradients and multistart false, with nothing done. multistart_end leaves a job as it
  // was given, `done` 0; unload gives back what is not the device's.
  bool (*lost)(const SnBackend *b, char *text, int size);
  // Optional (NULL): what models and sessions take.
  void (*memory)(const SnBackend *b, SnBackendMemory *memory);
  // Optional (NULL): what each stage took since the last call, at most `capacity` of them into stage; returns how many
  // there are, 0 when the library was built without. The first call for a model begins to measure, which makes it
  // slower.
  int (*profile)(SnBackend *b, SnBackendModel *model, SnBackendStage *stage, int capacity);
  // Drops what is under way, of rollouts, gradients and multistarts.
  void (*abandon)(SnBackend *b, SnBackendModel *model);
  void (*destroy)(SnBackend *b);
};

// The CPU: candidates in parallel on the threads of a pool. The pool must outlive it.
SnBackend *sn_backend_cpu(SnPool *pool, SnError *err);
void sn_backend_free(SnBackend *b);

// Where a backend that lies in a library of its own is, and what it may take.
typedef struct SnBackendOptions {
  const char *folder;  // of libsinew_NAME.so; NULL or "": where the dynamic linker looks
  int device;          // index among the devices of its kind
  double memory;       // budget [bytes]; 0: what the device has
  const char *fault;   // emulator: when it shall fail, see cuda/device/device.h; NULL or "": never
  const char *chain;   // how a device multiplies Jacobians for gradient: products: "kernel", one block a gradient, or
                       // "scan", batched products in a scan over time; NULL or "": kernel
  // To measure what shape of a launch is best on a device; 0: what the library thinks.
  int block_threads;    // threads of a block: 32, 64, ..., 256
  double block_shared;  // most shared memory of a block for worlds [bytes]
} SnBackendOptions;
SnBackendOptions sn_default_backend_options(void);

// Opens a backend by its name: "cpu", "cuda" (float), "cuda_double", for tests "emulator", "emulator_double" and
// "fake_cuda"; the pool must outlive it. SN_ERR_NOT_FOUND when there is no such library, or no device answers: err says
// which.
SnBackend *sn_backend_open(const char *name, SnPool *pool, const SnBackendOptions *options, SnError *err);
// Names of the backends that this program can open, NULL at the end. Static memory.
const char *const *sn_backend_names(void);

#endif
