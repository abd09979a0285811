// A planner: one body, one task, one warm start. It belongs to one thread at a time (the daemon's planner thread);
// rollouts run on the threads of its backend. Different planners are independent.
//
// A plan is made in slices, so that a caller can serve several planners:
//
//   sn_planner_begin(p, &request, &err);
//   while (!sn_planner_slice(p, now + quantum)) serve_others();
//   sn_planner_finish(p, &plan);
#ifndef SINEW_PLANNER_PLANNER_H_
#define SINEW_PLANNER_PLANNER_H_

#include "planner/backend/backend.h"

typedef struct SnPlanner SnPlanner;

// Says what a planner is made of.
typedef struct SnPlannerDef {
  const SnModel *model;     // model from its file; the planner makes its own copy with the task's overrides
  const SnTask *task;       // must outlive the planner
  SnBackend *backend;       // must outlive the planner
  SnBackend *fallback;      // makes plans when the backend is lost, e.g. the CPU; NULL: then they are the shifted warm
                            // start. Must outlive the planner
  SnSettings settings;      // e.g. task->settings
  uint64_t seed;            // perturbs initial pose and initial plan (0: not) and keys the noise
  SnClock clock;            // deadlines are read on it
  double settle_until;      // when the body must have settled, on the clock [s]; INFINITY: it has all the time
  SnClock settle_clock;     // clock of settle_until; without `now` it is `clock`
  struct SnBudget *budget;  // memory that planners share (planner/base/budget.h); NULL: any. Must outlive the planner
} SnPlannerDef;

// Returns zeros with the default settings, the monotonic clock, and all the time to settle.
SnPlannerDef sn_default_planner_def(void);

// Checks everything, allocates, and settles the initial state, which takes as long as the task's settle time needs.
// Returns NULL and err on failure.
SnPlanner *sn_planner_create(const SnPlannerDef *def, SnError *err);
// Frees a planner; NULL is allowed.
void sn_planner_free(SnPlanner *p);

// Returns the memory that a planner has taken, as computed for its budget [bytes]. Settings that need more of it are
// refused with SN_ERR_LIMIT, which says how much is asked for and allowed, before anything is allocated.
double sn_planner_bytes(const SnPlanner *p);

// Returns the model with the task's overrides (time step!).
const SnModel *sn_planner_model(const SnPlanner *p);
// Returns the bound cost as it was set last. Weights and targets may be read; the functions below change them.
const SnCost *sn_planner_cost(const SnPlanner *p);
// Returns the task of the definition.
const SnTask *sn_planner_task(const SnPlanner *p);
// Returns the length of a plan without its lead [s]: the most that a request's latency may be.
double sn_planner_length(const SnPlanner *p);

// Returns the task's initial state with this planner's seed, in which the body shall start. It is valid until
// sn_planner_reset.
const SnState *sn_planner_initial(const SnPlanner *p);

// Goes back to the initial state and plan, with another seed if wanted, and forgets the warm start. The seed of before
// takes no time, another one as long as the task's settle time. SN_ERR_TIMEOUT: that was longer than settle_until; all
// but a plan in progress is as before then.
SnCode sn_planner_reset(SnPlanner *p, uint64_t seed, SnError *err);

// Holds controls that a body has applied: row i from time[i] until time[i + 1], the last one from then on.
typedef struct SnApplied {
  int n;
  const double *time;  // (n) ascending [s]
  const double *ctrl;  // (n, nu)
} SnApplied;

// Asks for a plan from a state. Arrays are read by sn_planner_begin only, but for those of `applied`: until
// sn_planner_finish or sn_planner_drop.
typedef struct SnPlanRequest {
  double time;                // stamp of the state [s]
  const sn_real *qpos;        // (nq) quaternions are normalised
  const sn_real *qvel;        // (nv)
  const sn_real *act;         // (na), or NULL: integrated from the controls since the last state
  const sn_real *mocap_pos;   // (nmocap, 3), or NULL: as in the last request, at first as in the task
  const sn_real *mocap_quat;  // (nmocap, 4), or NULL
  const SnApplied *applied;   // NULL: the plans that were made
  const sn_real *past;        // (sn_past_size), or NULL: from the controls since the last state, at first the task's
  double latency;             // time until the plan is in force [s]: the state is first rolled forward by it
  double deadline;            // on the planner's clock; INFINITY: none
  double margin;              // so much earlier the iterations stop [s], once they have tried something new
  bool want_states;
  bool trace_each;     // predicts states after each iteration too, for sn_planner_peek; an iteration that is under way
                       // when the plan is finished does not count then
  int max_iterations;  // 0: as the settings say
  int max_candidates;  // most candidates of the last iteration; 0: all
  int gain_rows;       // feedback gains are wanted for so many rows behind the lead, and with them the states; 0: none
} SnPlanRequest;

// Returns zeros, without a deadline.
SnPlanRequest sn_default_plan_request(void);

// Tells the outcome of planning. It is data, not an error.
typedef enum SnPlanStatus {
  SN_PLAN_OK,
  SN_PLAN_WARM_START,  // the deadline left no time: the shifted plan of before, not evaluated
  SN_PLAN_DIVERGED     // every candidate diverged: no controls
} SnPlanStatus;

// Describes a plan. Arrays belong to the planner and stay until its next call.
//
// Row k of ctrl holds from start + k * step; start is the stamp of the state that the plan answers. The first `lead`
// rows are those of the plan in force that was assumed to run while this one was made.
typedef struct SnPlan {
  SnPlanStatus status;
  uint64_t number;  // counts the planner's plans: 1, 2, ...
  double stamp;     // time of the state that the plan answers [s]
  double start;     // time of the first row of ctrl [s], = stamp
  double step;      // [s] between rows
  int lead;         // rows before the optimised ones
  int nstep;        // rows, lead included; 0 when diverged
  int nu, nq, nv, na, nterm;
  const sn_real *ctrl;  // (nstep, nu)
  const sn_real *qpos;  // (nstep + 1, nq) predicted states if asked and the time allowed, else NULL
  const sn_real *qvel;  // (nstep + 1, nv)
  const sn_real *act;   // (nstep + 1, na)
  // Feedback gains (gain_rows, nu, 2 nv + na) of rows from `lead` on, where they were asked for and there are some;
  // else NULL. At a state x the control of such a row is ctrl + gain (x (-) predicted state of the row), clamped to its
  // range. Differences are (qpos, qvel, act), those of quaternions rotation vectors in the frame of the body.
  const sn_number *gain;
  int gain_rows;
  const SnCost *cost;  // weights and targets of `version`
  uint64_t version;    // version of the settings, weights and targets that its costs belong to: sn_planner_set_version
  double cost_before;  // cost of the warm start; infinity when it diverged, NaN when not evaluated
  double cost_after;   // cost of this plan, at most cost_before
  const double *term;  // (nterm) weighted parts of cost_after; NaN when not evaluated
  double cost_now;     // sum of weight * norm in the state that was answered
  int iterations;      // begun and used: the last may be partial
  int candidates;      // used of the last iteration, from 0 on. Both together reproduce the plan.
  double gradient_norm;  // at ctrl, or, without time for that, at the iterate before; NaN: there is none
  bool deadline_met;     // finished before the deadline
  bool act_estimated;    // act was not given: integrated from the controls
  const char *backend;   // name of the one that made it: SnBackend.name, static memory
  bool device_lost;      // the planner's backend is lost: made by the fallback, or what there was of it
  int warn;              // SN_WARN_* bits of the rollouts that count (overflow of contacts or rows)
  const char *remark;  // says what a user should know of how it was made, e.g. that settings were refused; "": nothing
  double seconds;      // computing time from begin to finish, pauses between slices included
  bool from_policy;    // it began with the rollout of the task's policy, not with the shifted plan
  bool stuck;          // no better than its warm start, and its gradient is next to nothing: `remark` says so
  int unimproved;      // plans in a row, up to this one, whose cost did not fall; 0: that of this one did
  int ngate;           // gates of terms, in the order of these terms; in the state that was answered:
  const double *gate_number;  // (ngate) numbers that they look at
  const double *gate_factor;  // (ngate) what they multiply the norms of their terms by
} SnPlan;

// Starts a plan: checks the state, makes it the latest one and shifts the warm start. A slice does the latter two where
// much has to be estimated, once the estimate is there. A plan in progress is dropped. Returns SN_ERR_ARGUMENT
// when something of the request is not finite or not allowed; err names it. Returns SN_ERR_UNSUPPORTED when gains are
// asked of a planner that makes none. On error the planner is as before.
SnCode sn_planner_begin(SnPlanner *p, const SnPlanRequest *request, SnError *err);

// Returns SN_ERR_UNSUPPORTED when the planner that the settings name makes no gains.
SnCode sn_planner_check_gains(const SnPlanner *p, SnError *err);

// Estimates activations that were not given, rolls the state forward by the latency, then works for at most one
// iteration. It stops earlier when the clock reads `until` [s] or the deadline, and where an iteration counts before it
// ends. A device works for as many iterations as end before `until`, but for at least one that ends before the
// deadline. Returns true when the plan is ready for sn_planner_finish. Pausing does not change the plan.
bool sn_planner_slice(SnPlanner *p, double until);

// Announces that the plan in progress will be sliced soon. If another planner of this model is sliced first, a device
// takes what this plan needs next along with that launch. Does not wait for the device; where they come first,
// estimates activations and rolls the state forward, without a pause. May be called any number of times. Does nothing
// where there is no plan, or no device.
void sn_planner_submit(SnPlanner *p);

// Ends the plan and describes it; allowed before slice returned true (the best so far). The plan becomes the
// warm start of the next.
//
// Candidates are used in the order of their index: of an iteration, those before the first that was not completed. The
// best is the lowest cost, at equal cost the lowest index. So (seed, plan number, settings, state, iterations,
// candidates) determine the plan bit for bit, whatever the threads, the clock and the slices. Only the norm of the
// gradient depends on the deadline: Adam from one start needs no gradient of the last controls that it tries.
void sn_planner_finish(SnPlanner *p, SnPlan *plan);

// Begins no further iteration of the plan in progress, and gives up the one under way as a deadline does. Predicted
// states are left, where they are wanted.
void sn_planner_stop(SnPlanner *p);
// Returns the time that a plan wants after its last iteration, as far as it is known from those before [s].
double sn_planner_rest(const SnPlanner *p);

// Drops the plan in progress. The one before stays in force, and the next begins with the best controls so far.
void sn_planner_drop(SnPlanner *p);

// Returns the number of whole iterations of the plan in progress that were used; 0 when there is no plan.
int sn_planner_iterations(const SnPlanner *p);

// Returns whether the plan in progress has tried something new, or had all the iterations that it may have. One that
// begins by measuring the warm start takes 2; the second counts from when its cost is known.
bool sn_planner_is_refined(const SnPlanner *p);

// Returns the number of the latest plan that was begun, 0 before the first.
uint64_t sn_planner_number(const SnPlanner *p);

// Returns whether the best so far of a plan with SnPlanRequest.trace_each waits for its predicted states.
bool sn_planner_is_tracing(const SnPlanner *p);

// Describes the best so far of the plan in progress, without ending it. Returns false, with nothing written, until one
// iteration is complete. Predicted states are there with SnPlanRequest.trace_each, once sn_planner_is_tracing is false.
// The warm start and the plan in force stay as they are. The arrays of `plan` are valid until the next call.
bool sn_planner_peek(SnPlanner *p, SnPlan *plan);

// Returns the row (nu) that holds at `time` [s] of the plan in force, the latest one that did not diverge. It is at
// least the first row, at most the last. Returns NULL when there is no plan since the last reset. Valid until the next
// call.
const sn_real *sn_planner_control(const SnPlanner *p, double time);

// Makes a plan in one call: begin, slices until the deadline, finish. Returns the error of sn_planner_begin.
SnCode sn_planner_plan(SnPlanner *p, const SnPlanRequest *request, SnPlan *plan, SnError *err);

// ---- live tuning ----
//
// Settings, weights and targets take effect together at the begin of the next iteration; the one under way goes on with
// the old ones. The best so far is then measured anew under the new weights, and cost_before with it.

// Changes the settings. On error nothing is changed:
//
//   SN_ERR_ARGUMENT               a value is out of bounds
//   SN_ERR_STATE                  a setting that changes is not live
//   SN_ERR_UNSUPPORTED            the backend, or a term of the cost, has no gradient that the planner needs
//   SN_ERR_LIMIT, SN_ERR_MEMORY   there is no room
//
// While iterations are under way a lack of room shows when the next ones begin. Then all stays as it was, weights,
// targets and version too, and the plan's remark says so.
SnCode sn_planner_configure(SnPlanner *p, const SnSettings *settings, SnError *err);
// Returns the settings that were set last.
const SnSettings *sn_planner_settings(const SnPlanner *p);

// Writes what a user should know of such settings of this planner into text[size]; "" for nothing. Contacts from
// distance may make an impedance that jumps where bodies begin to touch: allowed, but gradients do not see the jump.
void sn_planner_remark(const SnPlanner *p, const SnSettings *settings, char *text, size_t size);
// Sets the target of a term or measure by name: sn_cost_set_target. Returns SN_ERR_NOT_FOUND when there is none.
SnCode sn_planner_set_target(SnPlanner *p, const char *term, const double *value, int n, SnError *err);
// Sets the weights of a term by name: sn_cost_set_weight. Returns SN_ERR_NOT_FOUND when there is none.
SnCode sn_planner_set_weight(SnPlanner *p, const char *term, double weight, double terminal, SnError *err);

// Names the configuration that has been set by now by a number, its version. Plans made with it carry the number
// (SnPlan.version). It is 0 at first.
void sn_planner_set_version(SnPlanner *p, uint64_t version);

// Copies settings, weights, targets and version as they are set at `from`, a planner of the same task and model. It
// serves a planner p that takes another one's place with a seed of its own. p must have no plan in progress.
void sn_planner_take_over(SnPlanner *p, SnPlanner *from);

// ---- snapshots ----

// Holds what Adam remembers from plan to plan.
typedef struct SnAdamSnapshot {
  bool used;                         // a planner by gradients has been in force; else the rest means nothing
  bool known;                        // moments and grid are those of the plan before
  int moved;                         // steps that the plan was shifted by since Adam's last one
  int phase;                         // steps from the first knot of its grid to the first row
  int knots, interpolation, starts;  // settings that it was made with
  SnGrid grid;                       // time grid that it was made with
  int capacity;                      // most starts so far
  SnMomentsView moments;             // moments, if known
} SnAdamSnapshot;

// Holds all that the next plan depends on beside its request, the seed, and settings, weights and targets. Arrays
// belong to the planner that it was taken of, and are valid until its next call.
typedef struct SnPlannerSnapshot {
  uint64_t number;             // counts plans
  SnState state;               // latest state, its activations estimated where they were not given; without the rest
  bool act_known;              // estimates go on from there; else from the task's initial activations
  bool begun;                  // a plan was begun: the warm start is its
  double warm_time;            // time of the first row [s]
  const sn_real *warm_ctrl;    // (horizon, nu) best controls so far
  int phase;                   // steps from the first knot of the noise to the first row
  double active_time;          // time of the first row [s]
  int active_rows;             // 0: no plan yet
  const sn_real *active_ctrl;  // (active_rows, nu) controls of the latest plan
  SnAdamSnapshot adam;
} SnPlannerSnapshot;

// Describes the planner between two plans; SN_ERR_STATE while one is in progress. On a backend without
// SN_BACKEND_MOMENTS what Adam remembers is not known.
SnCode sn_planner_snapshot(const SnPlanner *p, SnPlannerSnapshot *snapshot, SnError *err);

// Goes on from a snapshot of a planner with the same model, task, seed, settings, weights and targets. The next plans
// are the same as there, bit for bit. Sizes are the caller's care. A plan in progress is dropped. Nothing is changed on
// an error: SN_ERR_ARGUMENT names a value that is not allowed, SN_ERR_LIMIT and SN_ERR_MEMORY say that there is no
// room.
SnCode sn_planner_restore(SnPlanner *p, const SnPlannerSnapshot *snapshot, SnError *err);

// ---- evaluation ----

// Asks for the cost of given controls from a state; nstep 0 evaluates the state alone.
typedef struct SnEvaluateRequest {
  double time;
  const sn_real *qpos, *qvel, *act, *mocap_pos, *mocap_quat;  // see SnPlanRequest; act NULL: the estimate
  int nstep;
  const sn_real *ctrl;  // (nstep, nu)
  SnTrajectory states;  // filled where not NULL
  bool gradient;        // asks for that of the cost, too; nstep is at least 1 then
  const sn_real *past;  // see SnPlanRequest
} SnEvaluateRequest;

// Describes an evaluation.
typedef struct SnEvaluation {
  double cost;            // infinity when diverged; of nstep 0: sum of weight * norm
  const double *term;     // (nterm) weighted parts
  const double *measure;  // (nmeasure) norms in the last state
  const bool *met;        // (nmeasure) measure <= below
  int nterm, nmeasure;
  const sn_real *target;  // (nstep + 1, ntarget) targets at the states, see sn_cost_schedule
  bool diverged, act_estimated;
  bool device_lost;            // the backend is lost and there is no fallback: there are no gradients
  const SnGradient *gradient;  // if asked for: its *_bar are set, see planner/rollout/gradient.h; else NULL
} SnEvaluation;

// Evaluates; a gradient is computed on all threads of the backend. Arrays of the result stay until the next evaluation.
// Does not touch a plan in progress, nor the warm start. Stops at `deadline` [s] (on the clock) with SN_ERR_TIMEOUT.
SnCode sn_planner_evaluate(SnPlanner *p, const SnEvaluateRequest *request, double deadline, SnEvaluation *result,
                           SnError *err);

// Begins an evaluation in slices, for a caller that serves several planners: begin, slice until it returns true,
// finish. ctrl and the arrays of `states` must stay until then; the other arrays are copied. Plans of this planner may
// be begun, sliced and finished meanwhile. Weights and targets that change meanwhile count from then on: begin again to
// be exact. A new begin drops the evaluation in progress.
SnCode sn_planner_evaluate_begin(SnPlanner *p, const SnEvaluateRequest *request, SnError *err);
// Works until the clock reads `until` [s]. Returns true when the evaluation is ready for sn_planner_evaluate_finish.
// Pausing does not change the result.
bool sn_planner_evaluate_slice(SnPlanner *p, double until);
// Ends the evaluation and describes it. Arrays of the result stay until the next evaluation.
void sn_planner_evaluate_finish(SnPlanner *p, SnEvaluation *result);

#endif
