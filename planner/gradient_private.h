// Inside of gradients: shared by gradient.c (memory, who does what) and gradient_step.c (what is done).
#ifndef SINEW_PLANNER_GRADIENT_PRIVATE_H_
#define SINEW_PLANNER_GRADIENT_PRIVATE_H_

#include <pthread.h>

#include "planner/gradient.h"

// The tangent of a state is (dqpos, dqvel, dact): 2 nv + na numbers.

// A world at one state of a rollout, and what of the way back does not depend on later states.
typedef struct SnGradientSlot {
  SnWorld world;
  void *memory;
  sn_real *A, *B;       // SN_GRADIENT_PRODUCTS: Jacobians of the step (n, n), (n, nu)
  sn_real *state_bar;   // of the cost of this state alone (n)
  sn_real *ctrl_bar;    // the same with respect to the controls (nu)
  sn_real *target_bar;  // and to its targets (ntarget)
} SnGradientSlot;

// What one thread works with.
typedef struct SnGradientThread {
  SnAdjoint adjoint;
  void *memory;
  SnLaneShared shared;
  SnLane lane;
  sn_real *res;  // residuals (nres)
} SnGradientThread;

typedef enum SnGradientPhase { SN_PHASE_FORWARD, SN_PHASE_BACK, SN_PHASE_DONE } SnGradientPhase;

// One gradient under way.
typedef struct SnGradientItem {
  SnGradient *out;
  SnRollout *rollout;
  SnTrajectory states;           // rows 0 ... nstep
  sn_real *soft_qacc;            // (max_step + 1, nv) accelerations of the softened worlds
  int soft_steps;                // of the last item whose soft_qacc is complete; 0: none
  bool soft_start;               // the solvers of softened worlds start from there
  sn_real *time;                 // of these states
  sn_real *running, *terminal;   // weights of the terms times the share of a state (nterm)
  sn_real *state_bar, *scratch;  // derivative of the cost of the states after the step at `sweep` (n)
  SnGradientPhase phase;
  bool busy;  // a thread runs it forward or goes back a step
  int make;   // next state to make a world of, going down; -1: none
  int sweep;  // next state to go back through
  int *slot;  // where the world of each state is, -1: nowhere (max_step + 1)
} SnGradientItem;

struct SnGradientWork {
  const SnModel *m;
  const SnCost *cost;
  SnPool *pool;
  int nthread, nslot, room;  // room: items
  SnGradientThread *thread;
  SnGradientSlot *slot;
  SnGradientItem *item;
  int *idle;  // slots that hold nothing, the one used last on top (nslot)
  // the batch
  SnGradientSettings settings;
  int count;
  const SnClock *clock;
  double until;
  bool active;
  // under lock:
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int nidle;
  bool stop;  // the clock has reached `until`
};

// Number of tangent coordinates of a state.
static inline size_t sn_state_size(const SnModel *m) { return 2 * (size_t)m->nv + (size_t)m->na; }

// The world of state t into a slot, with all that does not depend on what comes after: reads the item's states, writes
// its row of soft_qacc.
void sn_gradient_make(const SnGradientWork *g, SnGradientThread *thread, SnGradientItem *item, int t,
                      SnGradientSlot *slot);
// From the derivative with respect to state t + 1 to that with respect to state t and the controls there. False when it
// is not finite.
bool sn_gradient_back(const SnGradientWork *g, SnGradientThread *thread, SnGradientItem *item, int t,
                      SnGradientSlot *slot);

#endif
