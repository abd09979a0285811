// Value and gradient of rollouts: the cost of controls applied from a state, and its derivative. A derivative is
// taken with respect to the controls, the initial state and the targets.
//
// A rollout runs forward once and keeps its states, controls and accelerations (the solver's warm start). It
// keeps what the way back reads of its worlds, too, as far as there is memory. Other worlds are computed again from the
// states. Nothing that comes later is needed, so threads do it ahead for several t at once. The derivative of the cost
// runs through them in order, last step first. Every number depends on the inputs alone: any number of threads, any
// pauses and any memory give the same bits.
//
// A rollout that the caller has made already is not made again (SnGradient.rolled). A batch can stop after its rollouts
// (SnGradientBatch.forward), for a caller who makes a cost of his own of their trajectories. He comes back with its
// derivative (SnTrajectoryBar), as often as he likes.
//
// A cost that is not smooth gets one of its one-sided derivatives, or the choice that the function concerned documents
// (physics/world/adjoint.h, planner/cost/cost.c). It is finite.
#ifndef SINEW_PLANNER_ROLLOUT_GRADIENT_H_
#define SINEW_PLANNER_ROLLOUT_GRADIENT_H_

#include "planner/rollout/linearize.h"
#include "planner/rollout/rollout_vjp.h"
#include "planner/rollout/rollout_runner.h"
#include "planner/base/pool.h"

// Says what a gradient is taken of, beside its inputs.
typedef struct SnGradientSettings {
  SnGradientMethod method;
  // Contacts from distance: the steps are differentiated as those of such worlds at the same states. The rollout itself
  // is that of the world as it is. Off: no difference.
  SnCfdSettings cfd;
} SnGradientSettings;

// Returns the faster method, with contacts as they are.
SnGradientSettings sn_default_gradient_settings(void);

// Holds the derivative of a cost of the caller's own with respect to the states of a rollout, at each of them. An array
// that is NULL stands for zeros.
typedef struct SnTrajectoryBar {
  double cost;                  // derivative with respect to the rollout's cost: 1 takes all of it along, 0 nothing
  const sn_number *qpos;        // (nstep + 1, nv) tangent as qvel
  const sn_number *qvel;        // (nstep + 1, nv)
  const sn_number *act;         // (nstep + 1, na)
  const sn_number *sensordata;  // (nstep + 1, nsensordata) of the numbers there, four of a quaternion
  const sn_number *ctrl;        // (nstep, nu) what the cost makes of the controls themselves
  const sn_number *past;        // (nstep + 1, sn_past_size) of samples of buffers; other numbers are not looked at
} SnTrajectoryBar;

// Checks the bars of a rollout of nstep steps. Returns SN_ERR_ARGUMENT where a number is not finite, SN_ERR_UNSUPPORTED
// where the bar of a sensor without a gradient is not 0; err names the place.
SnCode sn_trajectory_bar_check(const SnModel *m, const SnTrajectoryBar *bar, int nstep, SnError *err);

// Asks for one gradient. Outputs are overwritten; those that may be NULL are then not given. They hold what is half
// done until the batch is done. Bars are derivatives of `cost`, or of what `bar` says.
typedef struct SnGradient {
  // The model, whose worlds and adjoints have the layout of the one that the work was made for; NULL: this one. It must
  // stay until the item is done, and, once it is SN_GRADIENT_ROLLED, until nobody goes back along it any more.
  const SnModel *model;
  SnState state;
  const sn_number *ctrl;    // (nstep, nu)
  const sn_number *target;  // (nstep + 1, ntarget); NULL without a cost
  int nstep;                // at least 1
  double max_velocity;      // a faster dof means divergence
  // True: the item that was last computed in this place of a batch had nearly the same inputs. Worlds with CFD then
  // start their solver from its accelerations, and the last bits depend on it, too.
  bool continues;
  // The rollout of these inputs, where the caller has made it: done or diverged, time, qpos, qvel, act and qacc of all
  // its states kept. NULL: it is made here. A device does not look at it and makes its own, in its own numbers.
  const SnRollout *rolled;
  // Says what the gradient is of, after sn_trajectory_bar_check; NULL: of the rollout's cost.
  const SnTrajectoryBar *bar;

  // Set SN_GRADIENT_PENDING to begin. SN_GRADIENT_ROLLED goes back along the rollout that was last made in this place
  // of a batch, of these inputs; one that diverged stays one. Others are left as they are.
  SnGradientStatus status;
  double cost;              // infinity when diverged
  double *term;             // (nterm) weighted parts of it; or NULL
  const SnTrajectory *out;  // all states where the rollout is made here, NaN where it did not come; or NULL
  int steps;                // steps of the rollout, nstep where it did not diverge
  sn_number *ctrl_bar;      // (nstep, nu); may be NULL in a batch of rollouts alone
  sn_number *qpos_bar;      // (nv) of state.qpos, tangent as qvel; or NULL
  sn_number *qvel_bar;      // (nv) of state.qvel; or NULL
  sn_number *act_bar;       // (na) of state.act; or NULL
  sn_number *past_bar;      // (sn_past_size) of state.past; or NULL
  sn_number *target_bar;    // (nstep + 1, ntarget); or NULL
  // Gets added the derivative by the model: zeroed by the caller, of no use unless the item is done. Only sweeps have
  // it, on a backend with SN_BACKEND_PARAMETERS; NULL: nobody asks.
  struct SnModelBar *model_bar;
  double norm;  // Euclidean norm of ctrl_bar
  int warn;     // SN_WARN_* bits of the rollout's steps
} SnGradient;

// Holds gradients that are computed together, e.g. of several starts of an optimiser.
typedef struct SnGradientBatch {
  SnGradientSettings settings;
  SnGradient *item;  // (count)
  int count;
  // True: rollouts alone. Pending items end as SN_GRADIENT_ROLLED, others are left as they are.
  bool forward;
} SnGradientBatch;

// Computes gradients on the threads of a pool, one batch at a time. Backends use it; fields are private.
typedef struct SnGradientWork SnGradientWork;

// Says how many bytes of kept worlds backends ask for: those of 256 steps of a hand take 19 MiB.
#define SN_GRADIENT_KEEP ((size_t)256 << 20)

// Returns the memory of such work at most, of so many threads [bytes].
double sn_gradient_bytes(const SnModel *m, const SnCost *cost, int max_step, int count, size_t keep, int threads);
// Reserves capacity for `count` gradients of at most `max_step` steps at once. Model, cost (NULL: none) and pool must
// outlive it; nothing is allocated later. Up to `keep` bytes hold what the way back reads of the rollouts' worlds;
// worlds beyond are made again. Returns NULL and err when out of memory.
SnGradientWork *sn_gradient_create(const SnModel *m, const SnCost *cost, int max_step, int count, size_t keep,
                                   SnPool *pool, SnError *err);
void sn_gradient_free(SnGradientWork *g);
// Makes its rollouts move by chosen steps from now on: of the model that it was made for, and by sweeps alone. No batch
// is under way. Returns SN_ERR_MEMORY when there is no room, some threads then choose; err says so.
SnCode sn_gradient_choose(SnGradientWork *g, const SnHorizonSettings *settings, SnError *err);
// Works until all items are done (true) or the clock reaches `until` (false), tested before every step of any kind.
// Called again with the same batch it goes on where it stopped; sn_gradient_abandon first when the next call is for
// another batch. batch->count is at most the count that there is room for.
bool sn_gradient_run(SnGradientWork *g, SnGradientBatch *batch, const SnClock *clock, double until);
void sn_gradient_abandon(SnGradientWork *g);
// Computes Jacobians along the rollouts that were last made, or given, in the first x->count places. They are of a
// batch with `forward` that ended, whose items have the states asked for. All threads share these. No batch is under
// way. Returns false when the clock reaches `until` before the end. Called again with the same `x` it goes on where it
// stopped; sn_gradient_abandon comes before another one.
bool sn_gradient_linearize(SnGradientWork *g, const SnLinearization *x, const SnClock *clock, double until);

#endif
