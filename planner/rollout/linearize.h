// Jacobians along rollouts: of every step, and of the sensors at its begin.
#ifndef SINEW_PLANNER_ROLLOUT_LINEARIZE_H_
#define SINEW_PLANNER_ROLLOUT_LINEARIZE_H_

#include "physics/world/adjoint.h"
#include "planner/cost/cost_expand.h"
#include "planner/rollout/cfd.h"
#include "planner/rollout/rollout_vjp.h"

// Asks for the Jacobians of rollouts of nstep steps that are kept. With n = sn_tangent_size rows are those of the next
// state (A, B) or of sensordata (C, D), columns the state and the controls. Each of the four may be NULL.
typedef struct SnLinearization {
  int count, nstep;
  SnCfdSettings cfd;  // contacts from distance in the steps, like SnGradientSettings.cfd
  sn_number *A;       // (count, nstep, n, n)
  sn_number *B;       // (count, nstep, n, nu)
  sn_number *C;       // (count, nstep, nsensordata, n)
  sn_number *D;       // (count, nstep, nsensordata, nu)
  // Arrays for quadratic models of the cost in all states, weighted as they are in the cost of the rollout. Leading
  // sizes are (count, nstep + 1), and (count, nstep) of lu, lux, luu and what is of the step before. NULL: none.
  const SnExpansion *cost;
  // Out (count): SN_GRADIENT_DONE; SN_GRADIENT_DIVERGED, with zeros from the first step that was not made;
  // SN_GRADIENT_UNBOUNDED, with zeros where a number was not finite.
  SnGradientStatus *status;
} SnLinearization;

// Computes C (nsensordata, n) and D (nsensordata, nu), each NULL or wanted, of a world whose stages have run: row by
// row the adjoint of one number. bar (nsensordata) is scratch. Runs on the host.
void sn_sensor_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *C, sn_real *D, sn_real *bar);

// Holds memory for the Jacobians of one state: scratch, but for what the caller takes of it.
typedef struct SnLinearizeScratch {
  SnWorld *world;
  SnAdjoint *adjoint;
  sn_real *A, *B;        // (n, n), (n, nu)
  sn_real *bar;          // (nsensordata)
  SnExpandInput expand;  // scratch for the model of the cost
} SnLinearizeScratch;

// Returns how many states have work to do: a step each, and the last one where the cost is wanted.
SN_INLINE int sn_linearize_states(const SnLinearization *x) { return x->nstep + (x->cost ? 1 : 0); }

// Computes the Jacobians of step t of rollout i into their places, and the model of the cost of state t. `b` describes
// the rollout as for sn_rollout_vjp_recompute. Zeros where the rollout has not made the step.
// Returns false, with zeros, where a number is not finite. Runs on the host.
bool sn_linearize_step(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b,
                       const SnLinearization *x, int i, int t, SnLinearizeScratch at);
// Adds what models of the cost say of the controls of the step before to the models there, when all are done.
void sn_linearize_end(const SnModel *m, const SnLinearization *x);

#endif
