// Bodies on which a backend is compared with the cpu: the small models of the other tests and models of MyoSuite, each
// in several states and with a cost that looks at everything that the planner can see of a state, element by element.
#ifndef SINEW_TESTS_CUDA_AGREE_CASE_H_
#define SINEW_TESTS_CUDA_AGREE_CASE_H_

#include "planner/rollout/rollout_runner.h"
#include "tests/support/oracle.h"

// What the terms of the cost look at, and a name for each.
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

// A cost of the case, with what each of its terms looks at.
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
  SnStart start[AGREE_STATES];
  sn_real *ctrl[AGREE_STATES];  // (nu)
  sn_real *memory;              // what the states lie in
} AgreeCase;

// Case i; false at the end of the list. `real` counts models of MyoSuite: the list ends after so many of them, and a
// model that is not there is left out with a message.
bool agree_case_open(AgreeCase *c, int i, int real);
void agree_case_close(AgreeCase *c);

#endif
