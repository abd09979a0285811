// A runner of rollouts: controls applied from a state, the cost summed up on the way, on one thread. A rollout can be
// paused at every step, by the clock, and goes on later bit for bit as if it had not been.
#ifndef SINEW_PLANNER_ROLLOUT_ROLLOUT_RUNNER_H_
#define SINEW_PLANNER_ROLLOUT_ROLLOUT_RUNNER_H_

#include "physics/step/horizon.h"
#include "planner/base/clock.h"
#include "planner/policy/policy.h"
#include "planner/rollout/cfd.h"
#include "planner/rollout/world_store.h"

// Holds the initial state of a rollout. Arrays are read only; NULL mocap poses: the model's; NULL warm start: zero.
typedef struct SnState {
  double time;                      // [s]
  const sn_number *qpos;            // (nq)
  const sn_number *qvel;            // (nv)
  const sn_number *act;             // (na)
  const sn_number *mocap_pos;       // (nmocap, 3)
  const sn_number *mocap_quat;      // (nmocap, 4)
  const sn_number *qacc_warmstart;  // (nv) or NULL
  const SnCfdSettings *cfd;         // contacts from distance in the steps themselves; NULL: none
  const sn_number *before;          // (nu) controls in force before, for terms on their rates; NULL or NaN: not known
  const SnGrid *grid;               // how long the steps from there last; NULL: each a base step
  const sn_number *past;            // (sn_past_size) buffers, see physics/world/history.h; NULL: as after a reset
} SnState;

// Puts a world into that state; controls are zero.
void sn_world_set_state(const SnModel *m, SnWorld *w, const SnState *state);

// Returns the time grid of the steps from a state.
SN_INLINE SnGrid sn_state_grid(const SnState *state) { return state->grid ? *state->grid : (SnGrid){0}; }

// Says where the states of a rollout are written, rows 0 ... nstep; each may be NULL.
// At the last state the controls of the last step still stand.
typedef struct SnTrajectory {
  sn_number *qpos;        // (nstep + 1, nq)
  sn_number *qvel;        // (nstep + 1, nv)
  sn_number *act;         // (nstep + 1, na)
  sn_number *cost;        // (nstep + 1) sum of weight * norm in each state; terminal weights in the last
  sn_number *qacc;        // (nstep + 1, nv)
  sn_number *time;        // (nstep + 1) [s]
  sn_number *sensordata;  // (nstep + 1, nsensordata) as sn_sensor_data
  // (nv) The solver's start at the last state: with it as SnState.qacc_warmstart a rollout goes on bit for bit.
  sn_number *qacc_warmstart;
  sn_number *past;  // (nstep + 1, sn_past_size)
} SnTrajectory;

// Fills rows [from, nstep] with NaN, and what belongs to the last state.
void sn_trajectory_clear(const SnModel *m, const SnTrajectory *out, int from, int nstep);
// Copies rows [0, rows) of the arrays that both have, but for what belongs to the last state alone.
void sn_trajectory_copy(const SnModel *m, const SnTrajectory *to, const SnTrajectory *from, int rows);

// Returns a rollout that is about to begin, with the cost's weights. `out` (NULL: nothing) is where its states go.
// `sum` (nterm), and `saved` where it is to be paused, are the caller's to set. All arrays must stay until it is done.
SnRollout sn_rollout_make(const SnCost *cost, const SnState *state, const sn_real *ctrl, const sn_real *target,
                          int nstep, double max_velocity, const SnTrajectory *out);
// Returns the cost of a rollout that is done, infinity when it diverged; writes its weighted parts into term (nterm),
// which may be NULL.
double sn_rollout_cost(const SnCost *cost, const SnRollout *rollout, double *term);

// Runs one rollout after another on one thread, in memory of its own. Fields are private.
typedef struct SnRolloutRunner SnRolloutRunner;

// Makes a runner. The model and the cost (NULL: none) must outlive it; nothing is allocated later. Returns NULL when
// out of memory.
SnRolloutRunner *sn_rollout_runner_create(const SnModel *m, const SnCost *cost, SnError *err);
void sn_rollout_runner_free(SnRolloutRunner *r);
// Makes it run rollouts of another model from now on, which it does not look at later unless it runs one. Worlds of
// both models must have one layout. Drops the rollout under way, unless it is the model of before.
void sn_rollout_runner_use(SnRolloutRunner *r, const SnModel *m);

// Makes its rollouts move by chosen steps of the model that it was made for from now on. back: sn_rollout_runner_chosen
// can go back over them, too. On failure all is as before; err says why.
SnCode sn_rollout_runner_choose(SnRolloutRunner *r, const SnHorizonSettings *settings, bool back, SnError *err);
// Returns what it makes chosen steps with, whose run it may be given for between two calls; NULL: it makes none.
SnHorizon *sn_rollout_runner_chosen(const SnRolloutRunner *r);
// Moves its world by the model's time step under the world's controls, as its rollouts move. The model's step is made
// where chosen steps diverge or are too many.
void sn_rollout_runner_move(SnRolloutRunner *r);

// Begins a rollout of nstep steps of the state's grid. ctrl (nstep, nu) and target (nstep + 1, ntarget; from
// sn_cost_schedule; NULL without a cost) must stay until it is done. max_velocity: a faster dof means divergence. out
// may be NULL.
void sn_rollout_runner_begin(SnRolloutRunner *r, const SnState *state, const sn_real *ctrl, const sn_real *target,
                             int nstep, double max_velocity, const SnTrajectory *out);
// Gives the rollout that has just begun a feedback, which must stay until it is done; NULL: none.
void sn_rollout_runner_feed_back(SnRolloutRunner *r, const SnFeedback *feedback);
// Lets a policy choose the controls of the rollout that has just begun, in each state as it is reached. Writes them
// into ctrl (nstep, nu), which the rollout was begun with. Needs its targets, and `scratch` (sn_policy_scratch).
// Controls that are not finite are divergence. All must stay until it is done.
void sn_rollout_runner_follow(SnRolloutRunner *r, const SnPolicy *policy, float *scratch, sn_real *ctrl);
// Steps until the end, until divergence or until the clock reaches `until` (tested before every step; INFINITY:
// never): SN_ROLLOUT_UNDER_WAY then.
SnRolloutStatus sn_rollout_runner_run(SnRolloutRunner *r, const SnClock *clock, double until);
SnRolloutStatus sn_rollout_runner_status(const SnRolloutRunner *r);
// Returns the cost of a rollout that is done, infinity when it diverged; writes its weighted parts into term (nterm),
// which may be NULL.
double sn_rollout_runner_cost(const SnRolloutRunner *r, double *term);
// Evaluates the cost in the state of the runner's world, whose stages have run (sn_forward), with one row of targets.
// Returns the sum of weight * norm over the cost's terms; writes its parts into term (nterm) and norms without weights
// into value (nall). Each of the two may be NULL.
double sn_rollout_runner_evaluate(SnRolloutRunner *r, const sn_real *target, double *term, double *value);
// Reads the gates of terms, in the order of these terms, in the state that sn_rollout_runner_evaluate was called for
// last. Writes what each looks at into number (ngate), what it multiplies the norm by into factor (ngate).
void sn_rollout_runner_gates(const SnRolloutRunner *r, double *number, double *factor);
// Runs a rollout that somebody else keeps, with `saved`, in the runner's world, whose own rollout is gone then. Begins
// it where no step is done, else goes on. Stops as sn_rollout_runner_run; any runner may go on with it. Keeps the
// worlds of the states that it comes through in `worlds`; NULL: it does not.
SnRolloutStatus sn_rollout_runner_advance(SnRolloutRunner *r, SnRollout *rollout, SnWorldStore *worlds,
                                          const SnClock *clock, double until);
// Returns the rollout that it runs.
const SnRollout *sn_rollout_runner_rollout(const SnRolloutRunner *r);
// Returns the world of the runner, at the state that the rollout has reached; all stages have run when it is done.
SnWorld *sn_rollout_runner_world(SnRolloutRunner *r);
// Returns the lane of that world.
SnLane *sn_rollout_runner_lane(SnRolloutRunner *r);

#endif
