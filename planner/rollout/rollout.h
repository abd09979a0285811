// A rollout as plain data, in memory of whoever runs it, a thread or a block of a GPU. All that happens in its steps
// stands here and nowhere else; who steps when is the caller's business (rollout_runner.c, cuda/).
#ifndef SINEW_PLANNER_ROLLOUT_ROLLOUT_H_
#define SINEW_PLANNER_ROLLOUT_ROLLOUT_H_

#include "planner/base/grid.h"
#include "planner/cost/cost.h"

typedef enum SnRolloutStatus { SN_ROLLOUT_UNDER_WAY, SN_ROLLOUT_DONE, SN_ROLLOUT_DIVERGED } SnRolloutStatus;

// Corrects controls by how far the state is from a nominal one: u = ctrl + gain (x (-) nominal), within the ranges of
// the controls. States and their differences are counted as the tangent of rollout_vjp.h.
typedef struct SnFeedback {
  const sn_real *qpos;  // nominal states (nstep, nq)
  const sn_real *qvel;  // (nstep, nv)
  const sn_real *act;   // (nstep, na)
  const sn_real *gain;  // (nstep, nu, 2 nv + na)
  sn_real *difference;  // (2 nv + na) scratch
  sn_real *ctrl;        // (nstep, nu) out: controls that were applied
} SnFeedback;

typedef struct SnRollout {
  // The initial state and what acts on it; read only. Arrays as in SnState; NULL mocap poses: the model's; NULL warm
  // start: zero.
  sn_real time;
  const sn_real *qpos, *qvel, *act, *mocap_pos, *mocap_quat, *qacc_warmstart;
  SnCfd cfd;                   // contacts from distance in the steps themselves; cfd.on 0: none
  const sn_real *past;         // (sn_past_size); NULL: as after a reset
  const sn_real *before;       // (nu) controls in force before the first step; NULL or NaN: not known
  const sn_real *ctrl;         // (nstep, nu)
  const SnFeedback *feedback;  // NULL: the controls are those of `ctrl`
  const sn_real *target;       // (nstep + 1, ntarget); NULL without a cost
  const sn_real *running;      // (nterm) weights of the terms, as the cost has them
  const sn_real *terminal;     // (nterm)
  int nstep;
  SnGrid grid;  // how long its steps last; rows are the grid's, the horizon is where the last step ends
  sn_real max_velocity;

  // Written on the way, rows 0 ... nstep; each may be NULL.
  sn_real *out_time, *out_qpos, *out_qvel, *out_act, *out_past, *out_qacc, *out_cost, *out_sensordata;
  sn_real *out_qacc_warmstart;  // (nv) of the last state alone; NULL: not wanted

  // The results.
  sn_real *sum;   // (nterm) weighted parts of the cost so far
  sn_real total;  // cost: of a rollout that is done; infinity when diverged
  int t;          // steps done
  int status;     // SnRolloutStatus
  int warn;       // SN_WARN_* bits of all steps
  // 0: the model's steps lead from a state to the next. Else chosen ones (chosen_step.h): 1, and as many as were made
  // so far, rejected ones included.
  int chosen;
  // The state between two calls, where the world is given to others meanwhile; NULL: it is not.
  sn_real *saved;  // (sn_rollout_saved_size)
} SnRollout;

// Holds scratch of the cost in one state.
typedef struct SnRolloutScratch {
  sn_real *res;    // (nres)
  sn_real *value;  // (nall)
} SnRolloutScratch;

// Holds one state of a rollout, wherever it is kept.
typedef struct SnRolloutState {
  sn_real time;
  const sn_real *qpos, *qvel, *act;
  const sn_real *ctrl;            // (nu); NULL: zero
  const sn_real *qacc_warmstart;  // (nv); NULL: zero
  sn_real step;                   // duration of the step from there [s]; 0: the model's time step
  const sn_real *past;            // NULL: as after a reset
} SnRolloutState;

// Returns how many numbers sn_rollout_save saves: time, qpos, qvel, act, the solver's warm start, the past.
SN_INLINE int sn_rollout_saved_size(const SnModel *m) { return 1 + m->nq + 2 * m->nv + m->na + sn_past_size(m); }

// Returns the duration of step t [s] as SnWorld.step has it. The state at the end has that of the last step, whose
// controls still stand there. With chosen steps all that reads it goes on with the model's time step.
SN_INLINE sn_real sn_rollout_duration(const SnModel *m, const SnRollout *rollout, int t) {
  const int k = sn_grid_length(&rollout->grid, t < rollout->nstep ? t : t - 1);
  return k > 1 && !rollout->chosen ? (sn_real)k * m->opt.timestep : 0;
}

// Returns how long after state t the next one is [s].
SN_INLINE sn_real sn_rollout_seconds(const SnModel *m, const SnRollout *rollout, int t) {
  return (sn_real)sn_grid_length(&rollout->grid, t) * m->opt.timestep;
}

// Returns the share of a base step in the mean of the running cost: a step of k base steps has k of them.
SN_INLINE sn_real sn_rollout_share(const SnRollout *rollout) {
  return SN_R(1.0) / (sn_real)sn_grid_begin(&rollout->grid, rollout->nstep);
}

// Returns the part of a term in the cost of a state. A weight of 0 takes the term out, also where its norm is not
// finite.
SN_INLINE sn_real sn_weighted(sn_real weight, sn_real value) { return weight > 0 ? weight * value : 0; }

// All of these run on all lanes of a world, whose fields are bound and begun, and end with a sync. Fields of the
// rollout that they write are written by one lane.

// Puts the world into a state of the rollout, with its mocap poses and contacts from distance as in `cfd`. Leaves no
// warnings.
SN_FUNC void sn_rollout_set_state(const SnModel *m, SnWorld *w, SnLane *lane, const SnRollout *rollout,
                                  const SnRolloutState *state, const SnCfd *cfd);
// Puts the world into the rollout's initial state: zero controls, its CFD.
SN_FUNC void sn_rollout_set_initial(const SnModel *m, SnWorld *w, SnLane *lane, const SnRollout *rollout);
// Begins a rollout: as sn_rollout_set_initial, and the rollout is under way, with t = 0 and sums 0.
SN_FUNC void sn_rollout_begin(const SnModel *m, const SnCost *cost, SnWorld *w, SnLane *lane, SnRollout *rollout);
// Runs the stages of state t under its controls, measures and records it: a step without its integration, or the end of
// the rollout. Returns one status on all lanes.
SN_FUNC SnRolloutStatus sn_rollout_visit(const SnModel *m, const SnCost *cost, SnWorld *w, SnLane *lane,
                                         SnRollout *rollout, const SnRolloutScratch *scratch);
// Notes that the world has been integrated to state t, or, without `good`, that the rollout diverges before it.
SN_FUNC SnRolloutStatus sn_rollout_arrive(const SnWorld *w, SnLane *lane, SnRollout *rollout, int t, bool good);
// Makes one step, or the end of the rollout. Returns one status on all lanes.
SN_FUNC SnRolloutStatus sn_rollout_step(const SnModel *m, const SnCost *cost, SnWorld *w, SnLane *lane,
                                        SnRollout *rollout, const SnRolloutScratch *scratch);
// Measures the norms of terms [0, n) in the world's state, whose stages have run, into scratch->value.
SN_FUNC void sn_rollout_measure(const SnModel *m, const SnCost *cost, const SnWorld *w, SnLane *lane, SnCostInput in,
                                int n, const SnRolloutScratch *scratch);
// Returns what terms look at beside the world of state t.
SN_FUNC SnCostInput sn_rollout_cost_input(const SnModel *m, const SnCost *cost, const SnRollout *rollout, int t);
// Saves the world's state before the world is given to another rollout, and restores it after.
SN_FUNC void sn_rollout_save(const SnModel *m, const SnWorld *w, SnLane *lane, SnRollout *rollout);
SN_FUNC void sn_rollout_restore(const SnModel *m, SnWorld *w, SnLane *lane, const SnRollout *rollout);

#endif
