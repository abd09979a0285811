// Backends: where rollouts are computed. A table of coarse operations, so that cpu and cuda live in one
// program and tests compare them.
#ifndef SINEW_PLANNER_BACKEND_H_
#define SINEW_PLANNER_BACKEND_H_

#include "planner/gradient.h"
#include "planner/rollout.h"
#include "planner/sampling.h"
#include "planner/threads.h"

// A batch: candidates [first, first + count) of one iteration, from one state. Candidate c applies the
// base controls plus noise c (candidate 0: none); noise NULL: every candidate is the base.
typedef struct SnBatch {
  SnStart start;
  const sn_real *ctrl;    // (nstep, nu) base controls
  const sn_real *target;  // (nstep + 1, ntarget)
  const SnNoise *noise;
  int nstep;
  int first, count;
  double max_velocity;
  double *cost;         // out (count): infinity when diverged
  double *term;         // out (count, nterm)
  unsigned char *done;  // out (count): 1 when computed; zeroed by the caller before the first call
} SnBatch;

typedef struct SnBackend SnBackend;
typedef struct SnBackendModel SnBackendModel;  // a model and a cost on a device, with room to roll out

struct SnBackend {
  const char *name;  // "cpu"
  // One line for people: device, number type, threads. Into text[size].
  void (*describe)(const SnBackend *b, char *text, int size);
  // Room for rollouts of at most max_step steps. Model and cost must outlive it. NULL and err on failure.
  SnBackendModel *(*load)(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err);
  void (*unload)(SnBackend *b, SnBackendModel *model);
  // The weights or targets of the cost have changed.
  void (*update)(SnBackend *b, SnBackendModel *model);
  // Computes candidates in the order of their index until all are done (returns true) or the clock
  // reaches `until` (false). Called again with the same batch it goes on where it stopped; sn_abandon first
  // when the next call is for another batch.
  bool (*rollouts)(SnBackend *b, SnBackendModel *model, const SnBatch *batch, const SnClock *clock, double until);
  // Makes room for batches of at most `count` gradients; without it there is none. Not while a batch is under way.
  SnCode (*need_gradients)(SnBackend *b, SnBackendModel *model, int count, SnError *err);
  // Value and gradient of every item that is pending, as sn_gradient_run. Returns true when all are done; called again
  // with the same batch it goes on where it stopped.
  bool (*gradients)(SnBackend *b, SnBackendModel *model, SnGradientBatch *batch, const SnClock *clock, double until);
  // Drops what is under way, of rollouts and of gradients.
  void (*abandon)(SnBackend *b, SnBackendModel *model);
  void (*destroy)(SnBackend *b);
};

// The CPU: candidates in parallel on the threads of a pool. The pool must outlive it.
SnBackend *sn_backend_cpu(SnPool *pool, SnError *err);
void sn_backend_free(SnBackend *b);
// Names of the backends that this build can open, NULL at the end. Static memory.
const char *const *sn_backend_names(void);

#endif
