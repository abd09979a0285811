// What kernels work on: plain data in the device's memory. One kernel launch has one SnWork, given by value, so that
// model and cost lie in constant memory; gradient items and multistarts are arrays in device memory that one copy
// fills.
#ifndef SINEW_CUDA_KERNELS_WORK_H_
#define SINEW_CUDA_KERNELS_WORK_H_

#include "physics/world/layout.h"
#include "planner/rollout/rollout_vjp.h"
#include "planner/optimize/multistart.h"

// Memory of worlds (and adjoints): layouts, and slots of global memory. Shared memory is the block's own (kernels.h),
// worlds first.
typedef struct SnSlots {
  SnLayout world, adjoint;
  unsigned char *global;  // (slots, stride): the world's part in global memory, then the adjoint's
  size_t stride;
} SnSlots;

// Candidates of a batch of rollouts: they differ in their noise alone. The launch with SnSampleTurn.from 0 begins them
// all; later ones go on where they stopped.
typedef struct SnSample {
  SnRollout rollout;    // what they share: initial state, cfd, target, weights, nstep, max_velocity; no outputs
  const sn_real *base;  // (nstep, nu) controls without noise
  int noisy;            // 1: candidate c has noise c
  SnNoise noise;
  int first, count;
  // each candidate's own (count, ...), written by the launches and kept from one to the next
  sn_real *ctrl;           // (count, nstep, nu) where noisy is 1
  sn_real *sum;            // (count, nterm)
  sn_real *total;          // (count)
  sn_real *saved;          // (count, sn_rollout_saved_size); NULL where one launch does all steps
  int *t, *status, *warn;  // (count)
} SnSample;

// What a launch does of a sample: steps [from, to) of each rollout, of nstep + 1: the last one is its end.
typedef struct SnSampleTurn {
  SnSample *sample;
  int from, to;
} SnSampleTurn;

// Samples of different sessions in one launch, at most.
enum { SN_SAMPLES = 32 };

// One gradient: a rollout, the way back, and whose it is.
typedef struct SnGradientItem {
  SnRollout rollout;
  SnRolloutVjp vjp;          // vjp.rollout and vjp.cfd_start are set by FORWARD
  int method;                // SnGradientMethod
  int active;                // 0: takes no part in this launch
  int status;                // SnGradientStatus: FORWARD begins it
  sn_real norm;              // of ctrl_bar
  SnRolloutVjpState *state;  // for SN_GRADIENT_PRODUCTS those of all states, as many as `to` of a launch may be; for
                             // the sweep one, target_bar alone
  // Steps of the last gradient in this place whose vjp.cfd_qacc is complete; 0: none. FORWARD sets vjp.cfd_start
  // where it is rollout.nstep, `continues` is set and `init` is not, and then makes it 0; EVALUATE makes it
  // rollout.nstep where the gradient is done with CFD on.
  int *cfd_steps;
  int continues;             // 1: the gradient before in this place had nearly the same inputs
  int multistart;            // index of its multistart, -1: none
  int index;                 // of its start there
  SnMultistartStart *start;  // NULL without a multistart
  int init;                  // 1: the multistart begins in this iteration
} SnGradientItem;

// One multistart of a launch: its starts are items [first, first + count), and SnGradientItem.start of the first is an
// array of theirs. So that iterations follow one another without the host, SELECT ends one: it makes `init` of its
// items 0, counts `todo` down, and at 0 makes the multistart and its items inactive.
typedef struct SnMultistartTurn {
  SnMultistart *data;
  int first, count, active;
  int todo;  // iterations that it still takes part in
  int warn;  // SN_WARN_* bits of its rollouts so far: SELECT adds them
} SnMultistartTurn;

// The arguments of every kernel. Not every kernel reads everything.
typedef struct SnWork {
  SnModel model;                  // arrays in device memory
  SnCost cost;                    // the same; weights and targets are those of the rollouts
  SnSampleTurn turn[SN_SAMPLES];  // ROLLOUT (nturn): candidates of the first sample, then of the next, are items
  int nturn;
  SnGradientItem *gradient;  // (ngradient) the others
  int ngradient;
  SnMultistartTurn *multistart;  // SELECT (nmultistart)
  int nmultistart;
  // MAKE, JACOBIAN, SWEEP, CHAIN, COLLECT: states [from, to); those beyond the end of a shorter rollout are left out,
  // but JACOBIAN makes A and B of states without a step zero, and the bars of states beyond the end.
  int from, to;
  SnSlots block;              // one slot a block: worlds and adjoints that end with the kernel
  SnSlots state;              // worlds of states: slot item * (to - from) + t - from; no shared memory
  sn_real *scratch;           // of a block: (blocks, scratch_size) residuals, norms of costs, noise
  int scratch_size;           // at least sn_kernel_scratch (launch_shape.h)
  unsigned long long *marks;  // (blocks, SN_NMARK) time of each stage [ticks], added to; NULL: not measured
} SnWork;

// The kernels: X(name, what one block does for an item). A launch of any number of blocks does all items:
// block b does b, b + blocks, ...
#define SN_KERNELS(X)                                                                                      \
  X(ROLLOUT, "a candidate: its controls where it begins, then steps of its turn")                          \
  X(ITERATE, "an item: its start begins or steps, then controls")                                          \
  X(FORWARD, "an item: its rollout from beginning to end, with all states; backward begins")               \
  X(MAKE, "a state t of an item: its world into slots `state`")                                            \
  X(JACOBIAN, "a state t of an item: its world in slots `block`, Jacobians; zeros where there is no step") \
  X(SWEEP, "an item: back through states [from, to) by their worlds")                                      \
  X(CHAIN, "an item: back through states [from, to) by their Jacobians")                                   \
  X(COLLECT, "an item: its derivatives from those of its states, which a scan has made and left there")    \
  X(EVALUATE, "an item: the end of its gradient; its start is evaluated")                                  \
  X(SELECT, "a multistart: the best of its starts")

typedef enum SnKernel {
#define SN_KERNEL_ENUM(name, text) SN_KERNEL_##name,
  SN_KERNELS(SN_KERNEL_ENUM)
#undef SN_KERNEL_ENUM
      SN_NKERNEL
} SnKernel;

#endif
