// The data of kernels in host memory: gradient items of one body and task, a multistart of them, a sample, worlds. All
// numbers that kernels write are one array, so that two fixtures are compared at once.
#ifndef SINEW_TESTS_CUDA_KERNELS_KERNEL_FIXTURE_H_
#define SINEW_TESTS_CUDA_KERNELS_KERNEL_FIXTURE_H_

#include "cuda/kernels/kernels.h"
#include "tests/support/oracle.h"

enum { SN_FIXTURE_GRADIENTS = 3, SN_FIXTURE_LANES = 40 };

typedef struct SnFixtureSettings {
  const SnModel *m;
  const SnCost *cost;
  const SnWorld *at;  // state near which all items start
  int steps;          // steps of the first item; each other one has one less
  int candidates;     // candidates of the sample
  bool own;           // each candidate has a state, controls and outputs of its own
  int states;         // capacity of each item in worlds of states
  int blocks, lanes;
  SnCfd cfd;        // contacts from distance on the way back
  bool products;    // with memory for Jacobians
  bool bars;        // the items are of a cost of the caller's own, too
  bool multistart;  // the items are the starts of one multistart
  sn_real max_velocity;
} SnFixtureSettings;

typedef struct SnKernelFixture {
  SnFixtureSettings s;
  SnWork work;
  SnSample sample, part[2];  // the sample as one; as a launch has it: the first candidate, and the others
  SnRollout *begin;          // (candidates) SnSample.rollout
  SnGradientItem gradient[SN_FIXTURE_GRADIENTS];
  SnRolloutVjpState *state[SN_FIXTURE_GRADIENTS];
  int cfd_steps[SN_FIXTURE_GRADIENTS];
  SnMultistartTurn turn;
  SnMultistart multistart;
  SnMultistartStart start[SN_FIXTURE_GRADIENTS];
  sn_real *in, *out;
  size_t nin, nout;
  int *books;  // t, status, warn of the sample's candidates
  unsigned char *global, *worlds;
  size_t nglobal;
  sn_real *scratch;
  unsigned long long *marks;
} SnKernelFixture;

// Allocates the data, and fills the input with numbers that differ by item and place. Free it with sn_fixture_free.
void sn_fixture_make(SnKernelFixture *x, const SnFixtureSettings *settings);
void sn_fixture_free(SnKernelFixture *x);

// Runs one launch: all blocks, one after the other, each on all lanes. Fills the memory of blocks with NaN before.
void sn_fixture_launch(SnKernelFixture *x, SnKernel kernel, int from, int to);

// Names a method for the way back: by worlds, or by Jacobians, which the host multiplies.
typedef enum SnFixtureMethod { SN_FIXTURE_SWEEP, SN_FIXTURE_PRODUCTS } SnFixtureMethod;
// Runs FORWARD, the way back in chunks of settings.states, and EVALUATE.
void sn_fixture_gradient(SnKernelFixture *x, SnFixtureMethod method);
// Rolls out all candidates of the sample, `slice` steps a launch.
void sn_fixture_sample(SnKernelFixture *x, int slice);
// Runs iterations of the multistart, with gradients by sweeps.
void sn_fixture_multistart(SnKernelFixture *x, int iterations);

// Fails the test unless both fixtures have the same bits in all that kernels write.
void sn_fixture_same(const SnKernelFixture *a, const SnKernelFixture *b);

#endif
