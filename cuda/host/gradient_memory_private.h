// Inside of gradients and multistarts: memory of gradient items, and the launches that take them forward and back.
// Shared by gradient_memory.c, gradient_launches.c, gradients.c, multistarts.c and multistart_iterations.c.
#ifndef SINEW_CUDA_HOST_GRADIENT_MEMORY_PRIVATE_H_
#define SINEW_CUDA_HOST_GRADIENT_MEMORY_PRIVATE_H_

#include "cuda/host/host.h"

// ---- gradient_memory.c: memory ----

// Holds device memory of one gradient item, kept from launch to launch. n is sn_tangent_size.
typedef struct SnGradientMemory {
  sn_real *time, *qpos, *qvel, *act, *qacc, *cfd_qacc;  // (max_step + 1, ...) states of its rollout
  sn_real *sum, *running, *terminal;                    // (nterm)
  sn_real *state_bar, *scratch;                         // (n)
  sn_real *target_bar;                                  // (ntarget) of one state
  int *cfd_steps;                                       // SnGradientItem.cfd_steps
} SnGradientMemory;

// Cuts the memory of an item of at most `max_step` steps off a buffer at p, from *used on, which it moves on. With p
// NULL it only counts.
void sn_gradient_memory_cut(const SnDeviceModel *d, int max_step, char *p, size_t *used, SnGradientMemory *memory);

// Returns a pending gradient item of a method (SnGradientMethod). It has no memory, initial state, controls, targets,
// weights and outputs yet, and is part of nothing.
SnGradientItem sn_gradient_item_make(int method, int nstep);
// Points an item to its memory.
void sn_gradient_item_use(SnGradientItem *x, const SnGradientMemory *memory);

// Holds memory of Jacobians of a number of states.
typedef struct SnProductMemory {
  sn_real *A, *B, *state_bar, *ctrl_bar, *before_bar, *target_bar;  // (states, ...)
} SnProductMemory;
// Cuts the memory of `states` states off at p. With p NULL it only counts. Returns the bytes.
size_t sn_product_cut(const SnDeviceModel *d, size_t states, char *p, SnProductMemory *memory);

// Holds what all gradients and multistarts of a model share. The pool has the worlds of a chunk of states of all items,
// or the Jacobians of all states of some items. One launch's follow another's.
typedef struct SnModelGradients {
  SnLayout world;  // layout of a state's world: no shared memory
  SnDeviceBuffer pool;
  int generation;                             // counts how often the pool was moved
  SnStaging staging;                          // staging buffer of multistarts
  struct SnMultistartIterations *iterations;  // multistart_iterations.c; NULL: no multistart yet
} SnModelGradients;

// Makes the memory that all sessions of the model share large enough for launches of `gradients` items of session x.
// The staging buffer of multistarts gets `staging` bytes. `own` bytes that the caller takes next, and `freed` that it
// then gives back, count in the budget, too. The text of an error names `what`, e.g. "64 gradients". Returns
// SN_ERR_LIMIT, SN_ERR_MEMORY or, on a lost device, SN_ERR_STATE: then there is room for as much as before.
SnCode sn_model_gradients_reserve(SnBackendModel *x, int gradients, size_t staging, size_t own, size_t freed,
                                  const char *what, SnError *err);

// ---- gradient_launches.c: launches ----

// Describes a launch: value and gradient of all its items.
typedef struct SnGradientLaunches {
  int ngradient, nmultistart;
  int states;           // most states of a rollout: nstep + 1
  int sweep, products;  // 1: some item's method
  int forward;          // 1: rollouts alone
  // by sn_gradient_launches_plan:
  int sweep_chunk;    // states of every item at once
  int product_items;  // items at once, with all their states
  SnProductMemory memory;
  // on the device, by the caller
  SnGradientItem *gradient;
  SnMultistartTurn *multistart;
} SnGradientLaunches;

// Plans how the launch goes in the pool that there is: fills in `sweep_chunk`, `product_items` and `memory`.
void sn_gradient_launches_plan(const SnDeviceModel *d, SnGradientLaunches *p);
// Puts the states of item r for its method into the staging buffer. Returns their place on the device.
SnRolloutVjpState *sn_gradient_launches_states(const SnDeviceModel *d, const SnGradientLaunches *p, int r,
                                               const SnGradientMemory *memory, int method, SnStaging *staging);
// Returns the number of groups of launches: forward and, but for rollouts alone, one chunk of states or of items after
// another, the end.
int sn_gradient_launches_count(const SnGradientLaunches *p);
// Puts the launches of a group into the model's stream, and does not wait. Call it for group 0, 1, ... in order.
// Others may use the pool between two groups.
void sn_gradient_launches_put(SnDeviceModel *d, const SnGradientLaunches *p, int group);

// ---- multistarts.c: a session's ----

// Holds a session's buffer, and how far its job is.
typedef struct SnMultistarts {
  SnDeviceBuffer buffer;
  int starts;
  SnGradientMemory *memory;  // (starts)
  SnMultistartStart *view;   // (starts) the pointers of those on the device
  SnMultistartStart *start;  // (starts) on the device
  // the job, and what has come back of it
  SnMultistartJob *job;  // NULL: none
  int done, warn;
  bool measured;
  double cost_before, best_cost, gradient_norm;
  int best_start;
  double *ctrl, *best_term, *next;  // (max_step, nu), (nterm), (max_step, nu)
  // place of the job in what multistart_iterations.c has packed
  int place;  // -1: it does not
  int first, packed_done;
  SnMultistart asked;
  const sn_real *nominal, *term, *ahead;  // results of the job, on the host; ahead, where the next plan begins: or NULL
} SnMultistarts;

// ---- multistart_iterations.c: those of a model that go on together ----

typedef struct SnMultistartIterations SnMultistartIterations;

// Makes the iterations of a model where there are none yet. Returns false when there is no memory.
bool sn_multistart_iterations_create(SnDeviceModel *d);
// Waits for what runs and frees the iterations of a model, whose gradients->iterations is NULL then.
void sn_multistart_iterations_free(SnDeviceModel *d);
// Returns the most bytes of a staging buffer that a job of session x takes beside jobs of at most `longest` steps. Do
// not call it while anything is packed.
size_t sn_multistart_iterations_staging(SnBackendModel *x, SnMultistarts *r, int longest);
// Tells that a job came: the next iteration takes it along. Does not wait.
void sn_multistart_iterations_add(SnDeviceModel *d);
// Waits for what runs and takes its results; the next iteration packs anew. Call it before a job goes, or memory moves.
void sn_multistart_iterations_change(SnDeviceModel *d);
// Runs iterations of all jobs of the model. Returns true when that of x is done. Returns false when the clock says no,
// at `until` [s] or the job's deadline, or the device is lost.
bool sn_multistart_iterations_run(SnBackendModel *x, const SnClock *clock, double until);

#endif
