// The state of gradients on the CPU, for the files that share it: gradient.c and gradient_work.c, its memory.
#ifndef SINEW_PLANNER_ROLLOUT_GRADIENT_PRIVATE_H_
#define SINEW_PLANNER_ROLLOUT_GRADIENT_PRIVATE_H_

#include <pthread.h>
#include <stdatomic.h>

#include "planner/rollout/gradient.h"

// Holds a world at one state of a rollout, and what of the way back does not depend on later states.
typedef struct SnGradientSlot {
  const SnModel *m;  // model of the world
  SnWorld own;       // all of it in `memory`
  SnWorld world;     // `own`, or a view of a kept one
  void *memory;
  SnRolloutVjpState state;
} SnGradientSlot;

// Holds what one thread works with.
typedef struct SnGradientThread {
  SnRolloutRunner *runner;          // runs items forward
  struct SnGradientProgress *item;  // item that it stays with; NULL: none. Under lock
  SnAdjoint adjoint;
  void *memory;
  SnLaneShared shared;
  SnLane lane;
  sn_real *res;          // residuals (nres)
  sn_real *bar;          // bar of sensors, for their Jacobians (nsensordata)
  SnExpandInput expand;  // scratch of models of the cost
} SnGradientThread;

typedef enum SnGradientPhase { SN_PHASE_FORWARD, SN_PHASE_BACK, SN_PHASE_DONE } SnGradientPhase;

// Holds kept worlds, of one rollout at a time.
typedef struct SnGradientStore {
  SnWorldStore *worlds;
  struct SnGradientProgress *item;  // item whose rollout it is; NULL: none
} SnGradientStore;

// Holds one gradient under way.
typedef struct SnGradientProgress {
  SnGradient *out;
  const SnModel *m;
  const SnModel *seen;  // the one of its worlds: sn_chosen_model
  SnRollout rollout;    // the last that was made in this place
  SnTrajectory states;  // rows 0 ... nstep
  sn_real *sum, *saved;
  SnRolloutVjp vjp;  // cfd_qacc: of the last item that was done, cfd_steps of them; 0: none
  int cfd_steps;
  SnGradientPhase phase;
  bool busy;               // a thread runs it forward or goes back
  int make;                // next state to make a world of, going down; -1: none
  int sweep;               // next state to go back through
  int *slot;               // place of the world of each state, -1: nowhere (max_step + 1)
  SnGradientStore *store;  // worlds of its states; NULL: none are kept
} SnGradientProgress;

struct SnGradientWork {
  const SnModel *m;
  const SnCost *cost;
  SnPool *pool;
  int nthread, nslot, capacity;  // capacity: items
  SnGradientThread *thread;
  SnGradientSlot *slot;
  SnGradientProgress *item;
  SnGradientStore *store;  // (nstore)
  int nstore;
  size_t keep;   // bytes for all of them
  int max_step;  // longest rollout
  int *idle;     // slots that hold nothing, the one used last on top (nslot)
  // the batch
  SnGradientSettings settings;
  int count;
  int begun;  // items of it that were begun
  bool forward;
  const SnClock *clock;
  double until;
  bool active;
  bool alone;  // the caller works without the others
  // under lock:
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int next;  // first item that no thread has taken
  int nidle;
  bool stop;  // the clock has reached `until`
  // Jacobians, while they are made:
  const SnLinearization *linearization;  // NULL: none are
  atomic_size_t step;                    // next of all states of all rollouts
};

#endif
