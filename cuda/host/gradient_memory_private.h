// Inside of gradients and multistarts: memory of gradient items, and the launches that take them forward and back.
// Shared by gradient_memory.c, gradient_launches.c, gradients.c, multistarts.c and multistart_iterations.c.
#ifndef SINEW_CUDA_HOST_GRADIENT_MEMORY_PRIVATE_H_
#define SINEW_CUDA_HOST_GRADIENT_MEMORY_PRIVATE_H_

#include "cuda/host/host.h"

// Returns the larger of two sizes.
static inline size_t sn_larger(size_t a, size_t b) { return a > b ? a : b; }

// ---- gradient_memory.c: memory ----

// Holds a gradient item's memory on the device, kept from launch to launch: what of `item` is its memory points there.
typedef struct SnGradientMemory {
  SnGradientItem item;
  sn_real *target_bar;  // (ntarget) of one state
} SnGradientMemory;

// Cuts the memory of an item of at most `max_step` steps off a buffer at p, from *used on, which it moves on. With p
// NULL it only counts.
void sn_gradient_memory_cut(const SnDeviceModel *d, int max_step, char *p, size_t *used, SnGradientMemory *memory);
// Puts an initial state and targets of `nstep` steps into the staging buffer. Returns a pending gradient item from
// there on. It has no memory, controls, weights and outputs yet, and is part of nothing.
SnGradientItem sn_gradient_item_put(const SnDeviceModel *d, SnStaging *staging, const SnState *state,
                                    const double *target, int nstep);
// Points an item to its memory.
void sn_gradient_item_use(SnGradientItem *x, const SnGradientMemory *memory);

// Cuts the memory of `states` states off at p. With p NULL it only counts. Returns the bytes.
size_t sn_product_cut(const SnDeviceModel *d, size_t states, char *p, SnProductMemory *memory);

// Fills in what launches of `gradients` items of at most `max_step` steps need: in the request's `most` and `least`.
void sn_gradient_need(const SnDeviceModel *d, int gradients, int max_step, SnMemoryRequest *request);

// ---- gradient_launches.c: launches ----

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

// Holds a session's starts, and how far its job is.
typedef struct SnMultistarts {
  SnOwnMemory memory;
  int starts;
  SnGradientMemory *item;    // (starts)
  SnMultistartStart *view;   // (starts) the pointers of those on the device
  SnMultistartStart *start;  // (starts) on the device
  SnMultistartJob *job;      // NULL: none
  SnMultistartJob so_far;    // results of it that have come back, in arrays of our own
  // place of the job in what multistart_iterations.c has packed
  int place;  // -1: it is not
  int first;
  SnMultistart asked;
} SnMultistarts;

// ---- multistart_iterations.c: those of a model that go on together ----

// Returns the most bytes of a staging buffer that a job of session x takes beside jobs of at most `longest` steps. Do
// not call it while anything is packed.
size_t sn_multistart_iterations_staging(SnBackendModel *x, SnMultistarts *r, int longest);
// Runs iterations of all jobs of the model. Returns true when that of x is done. Returns false when the clock says no,
// at `until` [s] or the job's deadline, or the device is lost.
bool sn_multistart_iterations_run(SnBackendModel *x, const SnClock *clock, double until);

#endif
