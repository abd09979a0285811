// Bodies on which a backend is compared with the cpu: the small models of the other tests and models of MyoSuite. Each
// has several states, and a cost that looks at all that the planner can see of a state, element by element.
#ifndef SINEW_TESTS_CUDA_AGREE_CASE_H_
#define SINEW_TESTS_CUDA_AGREE_CASE_H_

#include "planner/rollout/rollout_runner.h"
#include "tests/support/oracle.h"

// Lists the quantities that terms of the cost look at, with a name for each.
#define AGREE_KINDS(X)                      \
  X(POSITION, "joint positions")            \
  X(VELOCITY, "joint velocities")           \
  X(ACTIVATION, "activations")              \
  X(TENDON, "tendon lengths")               \
  X(POINT, "positions of bodies and sites") \
  X(TURN, "orientations of bodies") X(CONTROL, "controls") X(SENSOR, "sensors")
typedef enum AgreeKind {
#define AGREE_ENUM(name, text) AGREE_##name,
  AGREE_KINDS(AGREE_ENUM)
#undef AGREE_ENUM
      AGREE_NKIND
} AgreeKind;
extern const char *const agree_kind_name[AGREE_NKIND];

#ifdef __SANITIZE_ADDRESS__
enum { AGREE_STATES = 2 };  // it is slow
#else
enum { AGREE_STATES = 6 };
#endif
enum { AGREE_TERMS = 256 };

// Holds a cost of the case, and the kind of quantity of each of its terms.
typedef struct AgreeCost {
  SnTask *task;
  SnCost *cost;
  AgreeKind kind[AGREE_TERMS];
} AgreeCost;

typedef struct AgreeCase {
  char name[200];
  SnOracle o;
  AgreeCost all, smooth;  // every term; those that have a gradient
  int count;              // states
  SnState state[AGREE_STATES];
  sn_real *ctrl[AGREE_STATES];  // (nu)
  sn_real *memory;              // memory of start and ctrl
} AgreeCase;

// Opens case i; returns false at the end of the list. The list ends after `real` models of MyoSuite. Leaves out a model
// that is not there, with a message.
bool agree_case_open(AgreeCase *c, int i, int real);
void agree_case_close(AgreeCase *c);

#endif
