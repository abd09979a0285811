// The adjoint of a rollout: its states are gone through from the last to the first to get the derivative of its cost.
// It is plain data, for a thread or a block of a GPU; the order of the work is the caller's (gradient.c, cuda/).
//
// The tangent of a state is (dqpos, dqvel, dact): n = 2 nv + na numbers.
#ifndef SINEW_PLANNER_ROLLOUT_ROLLOUT_VJP_H_
#define SINEW_PLANNER_ROLLOUT_ROLLOUT_VJP_H_

#include "physics/world/adjoint.h"
#include "planner/rollout/rollout.h"

// Says how the derivative runs back through the steps. Both give the same gradient up to rounding, each its own bits.
typedef enum SnGradientMethod {
  SN_GRADIENT_SWEEP,    // one adjoint of a step for each step, one after the other, on worlds made in parallel
  SN_GRADIENT_PRODUCTS  // Jacobians of all steps in parallel, then their products with the derivative
} SnGradientMethod;

typedef enum SnGradientStatus {
  SN_GRADIENT_PENDING,    // not yet done
  SN_GRADIENT_DONE,       // value and gradient
  SN_GRADIENT_DIVERGED,   // the rollout diverged: the cost is infinity, the gradient 0
  SN_GRADIENT_UNBOUNDED,  // the cost is right; its derivative left the range of numbers on its way back: it is 0 here
  SN_GRADIENT_ROLLED      // the rollout is made and kept in the item's place; there is no derivative yet
} SnGradientStatus;

// Holds the derivative of what the caller makes of a rollout's trajectory, and how much of the rollout's cost is in it.
// Zeroed, it stands for the cost alone.
typedef struct SnRolloutBar {
  int on;                     // 1: the rest is in force
  sn_real cost;               // derivative with respect to the rollout's cost
  const sn_real *qpos;        // (nstep + 1, nv) tangent; this and those below may be NULL: 0
  const sn_real *qvel;        // (nstep + 1, nv)
  const sn_real *act;         // (nstep + 1, na)
  const sn_real *sensordata;  // (nstep + 1, nsensordata) as sn_sensor_data_vjp
  const sn_real *ctrl;        // (nstep, nu)
  const sn_real *past;        // (nstep + 1, sn_past_size)
} SnRolloutBar;

typedef struct SnRolloutVjp {
  const SnRollout *rollout;  // done, with out_time, out_qpos, out_qvel, out_act, out_past, out_qacc
  SnCfd cfd;                 // how contacts act in what is differentiated; cfd.on 0: as they are
  sn_real *cfd_qacc;         // (nstep + 1, nv) accelerations of the worlds with CFD: written; read where cfd_start
  int cfd_start;             // 1: their solvers start from cfd_qacc, else from the rollout's accelerations
  SnRolloutBar bar;
  sn_real *running;   // (nterm) weights times the share of a base step and bar.cost: sn_rollout_vjp_begin writes them
  sn_real *terminal;  // (nterm)
  sn_real
      *state_bar;     // (sn_state_bar_size) derivative of the cost of all states from the one last gone back through on
  sn_real *scratch;   // (n)
  sn_real *ctrl_bar;  // (nstep, nu) out
  sn_real *target_bar;  // (nstep + 1, ntarget) out, or NULL
} SnRolloutVjp;

// Holds what of one state does not depend on later states, beside its world. Some may be NULL, by the caller's method.
typedef struct SnRolloutVjpState {
  sn_real *A, *B;       // Jacobians of the step (n, n), (n, nu)
  sn_real *state_bar;   // derivative of the cost of this state alone (n)
  sn_real *ctrl_bar;    // (nu)
  sn_real *before_bar;  // (nu) of the controls of the step before, where the cost looks at rates of controls
  sn_real *target_bar;  // (ntarget); NULL where SnRolloutVjp has none
} SnRolloutVjpState;

// Holds memory to go back through one state in.
typedef struct SnRolloutVjpScratch {
  SnWorld *world;  // world of the state, recomputed
  SnAdjoint *adjoint;
  sn_real *res;  // (nres)
} SnRolloutVjpScratch;

// Returns the number of tangent coordinates of a state.
SN_INLINE int sn_tangent_size(const SnModel *m) { return 2 * m->nv + m->na; }
// Returns the numbers of a derivative with respect to a state: the tangent, then the past. Jacobians know of no past,
// so sn_rollout_vjp_product is for models without one.
SN_INLINE int sn_state_bar_size(const SnModel *m) { return sn_tangent_size(m) + sn_past_size(m); }

// All of these run on all lanes and end with a sync.

// Sets the weights, and the bar of what comes after the last state to 0.
SN_FUNC void sn_rollout_vjp_begin(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b);
// Puts the world into state t, 0 <= t <= nstep, the start of its solver included.
SN_FUNC void sn_rollout_vjp_set_state(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnWorld *w);
// Finishes the solver of the world of state t, whose stages have run. With CFD its acceleration is kept.
SN_FUNC void sn_rollout_vjp_finish(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnWorld *w);
// Recomputes the world of state t: its stages, the solver finished.
SN_FUNC void sn_rollout_vjp_recompute(const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnWorld *w);
// Computes, from the world of state t, the Jacobians of the step from there (none at the last state). Computes the
// derivative of the cost of state t, too.
SN_FUNC void sn_rollout_vjp_jacobian(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                                     SnRolloutVjpScratch at, const SnRolloutVjpState *state);
// Goes back from the derivative with respect to state t + 1 to that with respect to state t and its controls. It takes
// the adjoint of the step. Returns false, on all lanes, when it is not finite. state->target_bar is scratch. A chosen
// step has been gone back through before: state_bar and ctrl_bar of `state` hold what came of it.
SN_FUNC bool sn_rollout_vjp_sweep(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                                  SnRolloutVjpScratch at, const SnRolloutVjpState *state);
// Goes back through state t as sn_rollout_vjp_sweep, by the Jacobians.
SN_FUNC bool sn_rollout_vjp_product(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                                    const SnRolloutVjpState *state);
// Computes what sn_rollout_vjp_product writes at state t, where products of all A have been added to the state_bar of
// all states: x_t += A_t' x_{t+1}. States are then independent of each other. `state` is that of t in an array of all.
SN_FUNC void sn_rollout_vjp_collect(const SnModel *m, const SnCost *cost, SnLane *lane, const SnRolloutVjp *b, int t,
                                    const SnRolloutVjpState *state);
// Returns, on all lanes, whether the derivatives with respect to all controls and the first state are finite.
SN_FUNC bool sn_rollout_vjp_finite(const SnModel *m, SnLane *lane, const SnRolloutVjp *b);

#endif
