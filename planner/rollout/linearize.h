// Jacobians along rollouts: of every step, and of the sensors at its begin.
#ifndef SINEW_PLANNER_ROLLOUT_LINEARIZE_H_
#define SINEW_PLANNER_ROLLOUT_LINEARIZE_H_

#include "physics/step/step.h"
#include "planner/cost/cost_expand.h"
#include "planner/rollout/cfd.h"
#include "planner/rollout/rollout_vjp.h"

// Asks for the Jacobians of rollouts that are kept, at nstep states from `first` on. With n = sn_tangent_size rows are
// those of the next state (A, B, E) or of sensordata (C, D, F), columns the state, the controls and parameters of the
// model. Each of the six may be NULL. The last state of a rollout has sensors and no step: A, B, E are left alone
// there.
typedef struct SnLinearization {
  int count, nstep, first;
  SnCfdSettings cfd;  // contacts from distance in the steps, like SnGradientSettings.cfd
  sn_number *A;       // (count, nstep, n, n)
  sn_number *B;       // (count, nstep, n, nu)
  sn_number *C;       // (count, nstep, nsensordata, n)
  sn_number *D;       // (count, nstep, nsensordata, nu)
  sn_number *E;       // (count, nstep, n, parameters)
  sn_number *F;       // (count, nstep, nsensordata, parameters)
  // Memory for E and F of each thread, all by the same parameters; NULL without them. The CPU alone has them.
  const SnParameterRows *by;
  const sn_number *sensors;  // (nsensordata) where it is 0 the rows of C, D, F are 0; NULL: all are wanted
  // Arrays for quadratic models of the cost in all states, weighted as they are in the cost of the rollout. Leading
  // sizes are (count, nstep + 1), and (count, nstep) of lu, lux, luu and what is of the step before. NULL: none. With
  // it `first` is 0 and nstep that of the rollouts.
  const SnExpansion *cost;
  // Out (count): SN_GRADIENT_DONE; SN_GRADIENT_DIVERGED, with zeros from the first step that was not made;
  // SN_GRADIENT_UNBOUNDED, with zeros where a number was not finite.
  SnGradientStatus *status;
} SnLinearization;

// Says which Jacobians of sensordata are wanted, as in SnLinearization, of one state.
typedef struct SnSensorJacobian {
  sn_real *C, *D, *F;         // each NULL or wanted
  const SnParameterRows *by;  // for F
  const sn_number *sensors;
  sn_real *bar;  // (nsensordata) scratch
} SnSensorJacobian;

// Computes Jacobians of the sensors of a world whose stages have run: row by row the adjoint of one number. Positions
// and velocities of joints need none. Runs on the host.
void sn_sensor_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnSensorJacobian *x);

// Holds memory for the Jacobians of one state: scratch, but for what the caller takes of it.
typedef struct SnLinearizeScratch {
  SnWorld *world;
  SnAdjoint *adjoint;
  sn_real *A, *B;             // (n, n), (n, nu)
  sn_real *bar;               // (nsensordata)
  SnExpandInput expand;       // scratch for the model of the cost
  const SnParameterRows *by;  // memory of this thread; NULL without parameters
} SnLinearizeScratch;

// Returns how many states have work to do: a step each, and the last one where the cost is wanted.
SN_INLINE int sn_linearize_states(const SnLinearization *x) { return x->nstep + (x->cost ? 1 : 0); }

// Computes the Jacobians of state first + t of rollout i into place t, and the model of the cost there. `b` describes
// the rollout as for sn_rollout_vjp_recompute. Zeros where the rollout has not made the step.
// Returns false, with zeros, where a number is not finite. Runs on the host.
bool sn_linearize_step(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b,
                       const SnLinearization *x, int i, int t, SnLinearizeScratch at);
// Adds what models of the cost say of the controls of the step before to the models there, when all are done.
void sn_linearize_end(const SnModel *m, const SnLinearization *x);

#endif
