// Jacobians along rollouts: of every step, and of the sensors at its begin.
#ifndef SINEW_PLANNER_ROLLOUT_LINEARIZE_H_
#define SINEW_PLANNER_ROLLOUT_LINEARIZE_H_

#include "physics/world/adjoint.h"
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
  sn_real *A, *B;  // (n, n), (n, nu)
  sn_real *bar;    // (nsensordata)
} SnLinearizeScratch;

// Computes the Jacobians of step t of rollout i, which `b` describes as for sn_rollout_vjp_recompute, into their
// places. Zeros where the rollout has not made the step. Returns false, with zeros, where a number is not finite. Runs
// on the host.
bool sn_linearize_step(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, const SnLinearization *x, int i, int t,
                       SnLinearizeScratch at);

#endif
