// Kernels work on this: plain data in the device's memory. One launch has one SnWork, given by value, so that model and
// cost lie in constant memory. Gradient items and multistarts are arrays in device memory that one copy fills.
#ifndef SINEW_CUDA_KERNELS_WORK_H_
#define SINEW_CUDA_KERNELS_WORK_H_

#include "physics/world/layout.h"
#include "planner/rollout/rollout_vjp.h"
#include "planner/optimize/multistart.h"

// Describes slots of memory, each with a world and an adjoint, or one of them.
typedef struct SnSlots {
  SnLayout world, adjoint;  // bytes 0: none
  unsigned char *memory;    // (slots, stride)
  size_t stride;            // [bytes]
} SnSlots;

// Describes candidates of a batch of rollouts. They differ in their noise alone, or each has a rollout of its own to
// begin from. The launch with SnSampleTurn.from 0 begins them all; later ones go on where they stopped.
typedef struct SnSample {
  const SnRollout *rollout;  // (count, or 1) as it begins, with what it writes; ctrl: without noise; no sum, not saved
  int own;                   // 1: candidate c begins as rollout[c]; 0: all as rollout[0], which writes no states then
  int nstep;                 // steps of each of them
  int noisy;                 // 1: candidate c has noise c
  SnNoise noise;
  int first, count;
  int again;  // 1: of those that are done, who had more contacts or rows than fit is computed once more
  // each candidate's own (count, ...), written by the launches and kept from one to the next
  sn_real *ctrl;           // (count, nstep, nu) where noisy is 1
  sn_real *sum;            // (count, nterm)
  sn_real *total;          // (count)
  sn_real *saved;          // (count, sn_rollout_saved_size); NULL where one launch does all steps
  int *t, *status, *warn;  // (count)
} SnSample;

// Says which part of a sample a launch does: steps [from, to) of each rollout. There are nstep + 1 of them, since the
// last one is the rollout's end.
typedef struct SnSampleTurn {
  SnSample *sample;
  int from, to;
} SnSampleTurn;

// Limits how many samples, of different sessions, are in one launch.
enum { SN_SAMPLES = 32 };

// Describes one gradient: a rollout, the way back, and whose it is.
typedef struct SnGradientItem {
  SnRollout rollout;
  SnRolloutVjp vjp;          // vjp.rollout and vjp.cfd_start are set by FORWARD
  int method;                // SnGradientMethod
  int active;                // 0: takes no part in this launch
  int status;                // SnGradientStatus: FORWARD begins it
  sn_real norm;              // norm of ctrl_bar
  SnRolloutVjpState *state;  // for SN_GRADIENT_PRODUCTS those of all states, as many as `to` of a launch may be; for
                             // the sweep one, target_bar alone
  // Counts the steps of the last gradient in this place whose vjp.cfd_qacc is complete; 0: none. FORWARD sets
  // vjp.cfd_start where the count is rollout.nstep, `continues` is set and `init` is not. Then it makes the count 0.
  // EVALUATE makes it rollout.nstep where the gradient is done with CFD on.
  int *cfd_steps;
  int continues;             // 1: the gradient before in this place had nearly the same inputs
  int multistart;            // index of its multistart, -1: none
  int index;                 // index of its start there
  SnMultistartStart *start;  // NULL without a multistart
  int init;                  // 1: the multistart begins in this iteration
} SnGradientItem;

// Describes one multistart of a launch. The starts are items [first, first + count), and SnGradientItem.start of the
// first is an array of theirs. SELECT ends an iteration, so that the next follows without the host. It makes `init` of
// its items 0 and counts `todo` down; at 0 it makes the multistart and its items inactive.
typedef struct SnMultistartTurn {
  SnMultistart *data;
  int first, count, active;
  int todo;  // iterations that it still takes part in
  int warn;  // SN_WARN_* bits of its rollouts so far: SELECT adds them
} SnMultistartTurn;

// Holds the arguments of every kernel. Not every kernel reads everything.
typedef struct SnWork {
  SnModel model;                  // arrays in device memory
  SnCost cost;                    // arrays in device memory; weights and targets are those of the rollouts
  SnSampleTurn turn[SN_SAMPLES];  // ROLLOUT (nturn): candidates of the first sample, then of the next, are items
  int nturn;
  SnGradientItem *gradient;  // (ngradient) the others
  int ngradient;
  SnMultistartTurn *multistart;  // SELECT (nmultistart)
  int nmultistart;
  // MAKE, JACOBIAN, SWEEP, COLLECT do states [from, to). States beyond the end of a shorter rollout are
  // left out. JACOBIAN alone makes A and B of states without a step zero, and the bars of states beyond the end.
  int from, to;
  SnSlots block;              // one slot a block: its head (kernels.h), world and adjoint, which end with the kernel
  SnSlots state;              // worlds of states: slot item * (to - from) + t - from
  sn_real *scratch;           // (blocks, scratch_size) a block's residuals, norms of costs, noise
  int scratch_size;           // at least sn_kernel_scratch (launch_shape_private.h)
  unsigned long long *marks;  // (blocks, SN_NMARK) time of each stage [ticks], added to; NULL: not measured
  int blocks;  // number of them in the launch, which a GPU packs into thread blocks; the device fills it in
} SnWork;

// Gives the threads of a world where there are more of them than the device runs at once with a warp each. Four worlds
// share a warp then: most phases of a step have work for few lanes (cuda/MEASURED.md).
enum { SN_PART_OF_WARP = 8 };

// Lists the kernels: X(name, body, what one block does for an item). A launch of any number of blocks does all items:
// block b does b, b + blocks, ... Bodies are in kernels.h.
#define SN_KERNELS(X)                                                                                                  \
  X(ROLLOUT, sn_kernel_rollout, "a candidate: its controls where it begins, then steps of its turn")                   \
  X(ITERATE, sn_kernel_iterate, "an item: its start begins or steps, then controls")                                   \
  X(FORWARD, sn_kernel_forward, "an item: its rollout from beginning to end, with all states; backward begins")        \
  X(MAKE, sn_kernel_make, "a state t of an item: its world into slots `state`")                                        \
  X(JACOBIAN, sn_kernel_jacobian,                                                                                      \
    "a state t of an item: its world in slots `block`, Jacobians; zeros where there is no step")                       \
  X(SWEEP, sn_kernel_sweep, "an item: back through states [from, to) by their worlds")                                 \
  X(COLLECT, sn_kernel_collect, "a state t of an item: what its Jacobians, chained by products, make of the controls") \
  X(EVALUATE, sn_kernel_evaluate, "an item: the end of its gradient; its start is evaluated")                          \
  X(SELECT, sn_kernel_select, "a multistart: the best of its starts")

// Names the kernels: SN_KERNEL_ROLLOUT, ...
typedef enum SnKernel {
#define SN_KERNEL_ENUM(name, body, text) SN_KERNEL_##name,
  SN_KERNELS(SN_KERNEL_ENUM)
#undef SN_KERNEL_ENUM
      SN_NKERNEL
} SnKernel;

#endif
