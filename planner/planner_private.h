// Inside of a planner: shared by planner.c and planner_*.c.
#ifndef SINEW_PLANNER_PLANNER_PRIVATE_H_
#define SINEW_PLANNER_PLANNER_PRIVATE_H_

#include <stdlib.h>

#include "planner/optimize/controls.h"
#include "planner/planner.h"
#include "planner/rollout/cfd.h"
#include "planner/rollout/chosen_step.h"

// Holds copies of the arrays of an SnState.
typedef struct SnStateBuffer {
  double time;
  sn_real *qpos, *qvel, *act, *past, *mocap_pos, *mocap_quat, *qacc_warmstart;
} SnStateBuffer;

// Tells what became of iterations that were worked on.
typedef enum SnWorked {
  SN_WORKED_PAUSED,  // within one: the work goes on there
  SN_WORKED_ROLLED,  // within one whose cost is known since: ended now, it counts unless it is the plan's first
  SN_WORKED_PART,    // between two: those done count, the rest has to be begun anew
  SN_WORKED_ALL
} SnWorked;

// Improves the best controls so far, p->warm_start.ctrl, iteration by iteration: one table for each kind of planner.
typedef struct SnOptimizer {
  SnPlannerKind kind;
  bool descends;               // moves along gradients: every term of the task needs one
  int least;                   // iterations after which a plan has tried something new
  SnBackendFeature announces;  // feature of a backend that wants to know the next iterations
  // Checks that the backend has what iterations need. Returns SN_ERR_UNSUPPORTED when it has not. NULL: it always has.
  SnCode (*check)(const SnPlanner *p, SnError *err);
  // Reserves capacity for iterations with these settings; on failure all is as before. Not while iterations are under
  // way.
  SnCode (*reserve)(SnPlanner *p, const SnSettings *s, SnError *err);
  // Returns the memory that this capacity takes [bytes], the backend's included.
  double (*bytes)(const SnPlanner *p, const SnSettings *s);
  // Begins iteration p->iterations.next of a plan with p->in_force.settings and at most `most` candidates. Begins those
  // after it, too, that need no look from here: `iterations` at most in all.
  void (*begin)(SnPlanner *p, int most, int iterations);
  // Announces that they will be worked on soon, where the backend has the operation; any number of times. NULL: no
  // backend has one.
  void (*submit)(SnPlanner *p);
  // Works on them until the clock reaches `stop` [s].
  SnWorked (*work)(SnPlanner *p, double stop);
  // Returns whether an iteration that the deadline cuts before its cost is known counts for nothing. NULL: what is done
  // of it counts.
  bool (*whole)(const SnPlanner *p);
  // Takes what is complete of them into warm_start.ctrl, iterations.next and result, and drops the rest. Sets
  // result.cost_before, result.version and iterations.measured, too, where it was the first under the weights in force.
  void (*end)(SnPlanner *p);
  // Moves warm_start.ctrl from the plan that was described to where the next one shall begin. NULL: that is the same.
  void (*advance)(SnPlanner *p);
  // Returns feedback gains (horizon, nu, n) about the best controls so far, n as sn_tangent_size; NULL: there are none
  // yet. NULL itself: the planner makes none.
  const sn_number *(*gain)(const SnPlanner *p);
  // Returns the states along the best controls so far, where they are known. NULL itself: they never are.
  const SnTrajectory *(*states)(const SnPlanner *p);
  // Keep, move and drop what is kept from plan to plan; NULL, each: nothing is.
  void (*shift)(SnPlanner *p, int k);  // the plan moves by k steps
  void (*forget)(SnPlanner *p);        // drops the plan before
  void (*free)(SnPlanner *p);
} SnOptimizer;

extern const SnOptimizer sn_optimizer_sampling, sn_optimizer_adam, sn_optimizer_ilqg, sn_optimizer_lbfgs,
    sn_optimizer_mppi, sn_optimizer_cem, sn_optimizer_hybrid;

// Holds them by their kind, an SnPlannerKind.
extern const SnOptimizer *const sn_optimizers[SN_PLANNER_KINDS];

// Hold what planner_adam.c, planner_ilqg.c, planner_lbfgs.c, planner_population.c and planner_hybrid.c keep.
typedef struct SnAdamState SnAdamState;
typedef struct SnIlqgState SnIlqgState;
typedef struct SnLbfgsState SnLbfgsState;
typedef struct SnPopulation SnPopulation;
typedef struct SnHybrid SnHybrid;

// Holds what can be tuned live, all of one version.
typedef struct SnTuning {
  SnSettings settings;
  SnCost *cost;      // weights and targets
  uint64_t version;  // given by sn_planner_set_version
} SnTuning;

// Holds where rollouts are computed.
typedef struct SnPlannerDevice {
  SnBackend *backend;     // the definition's, or its fallback
  SnBackendModel *model;  // model and cost of this planner, loaded at the backend
  bool lost;              // the backend of the definition is lost
  bool stranded;          // no backend is left to go on with
} SnPlannerDevice;

// Holds worlds that the planner steps itself.
typedef struct SnPlannerRunners {
  SnRolloutRunner *scratch;    // for all that is done within one call
  SnRolloutRunner *tracer;     // goes on from slice to slice: the lead, then the predicted states
  SnRolloutRunner *evaluator;  // goes on from slice to slice: the evaluation
} SnPlannerRunners;

// Holds contacts from distance as the settings in force say.
typedef struct SnPlannerCfd {
  unsigned char *pair;     // (ncpair) pairs that take part, where the settings want any
  SnCfdSettings forward;   // in rollouts
  SnCfdSettings backward;  // in derivatives
} SnPlannerCfd;

// Holds the time grid that iterations work on: rollouts and what is improved have its rows.
typedef struct SnPlannerGrid {
  SnGrid grid;      // grid of the settings in force
  int steps;        // steps that the horizon has on it
  sn_real *ctrl;    // (horizon, nu) rows of the grid
  sn_real *target;  // (horizon + 1, ntarget)
} SnPlannerGrid;

// Holds where the task begins.
typedef struct SnInitial {
  SnStateBuffer state;
  SnState view;   // shows `state`
  sn_real *ctrl;  // (nu)
  bool settled;   // all of it is that of the seed of the definition
} SnInitial;

// Holds the state of the latest request.
typedef struct SnLatest {
  SnStateBuffer state;
  bool has_act;  // activations are known, given or estimated: the next estimate goes on from them
} SnLatest;

// Holds the best controls so far, which the next plan begins from, on the base step.
typedef struct SnWarmStart {
  sn_real *ctrl;  // (horizon, nu)
  double time;    // time of the first row [s]
  bool exists;    // a plan was begun since the reset
  int phase;      // base steps from the first noise knot to the first row
} SnWarmStart;

// Holds the controls of the latest plan that was finished, which the body is assumed to apply.
typedef struct SnActivePlan {
  sn_real *ctrl;  // (2 * horizon, nu), the lead first
  double time;    // time of the first row [s]
  int rows;       // 0: none yet
} SnActivePlan;

// Holds an estimate of what a state came without, computed step by step from the latest state that is known.
typedef struct SnEstimate {
  SnRolloutRunner *runner;  // in whose world
  SnStateBuffer *into;      // the state, all of it but the estimate
  bool act, past;           // tell whether activations, and buffers of controls, are estimated
  SnApplied applied;        // controls since, where they were reported
  long step, steps;         // steps that are done, of all
} SnEstimate;

// Counts steps of an estimate between two looks at the clock: more than pass between two states of a control loop.
enum { SN_ESTIMATE_ROUND = 64 };

// Tells how far the prediction of states along the best controls so far is.
typedef enum SnTrace { SN_TRACE_NONE, SN_TRACE_UNDER_WAY, SN_TRACE_DONE, SN_TRACE_FAILED } SnTrace;

// Tells how far the choice of where the plan in progress begins is.
typedef enum SnPolicyStage {
  SN_POLICY_ROLLOUT,  // the rollout of the policy comes next, or is under way
  SN_POLICY_SHIFTED,  // so is that of the shifted plan, for its cost
  SN_POLICY_DECIDED
} SnPolicyStage;

// Holds the policy of the task, whose rollout a plan may begin with.
typedef struct SnPlannerPolicy {
  SnPolicy *network;  // NULL: the task names none
  sn_real *ctrl;      // (horizon, nu) controls of its rollout
  float *scratch;
  SnPolicyStage stage;
  bool begun;   // the rollout of the stage is under way
  bool taken;   // the plan in progress begins with its rollout
  double cost;  // cost of that rollout
} SnPlannerPolicy;

// Holds how far the plan in progress is: estimating, rolling the state forward, iterations, tracing.
typedef struct SnPlanProgress {
  bool active;             // a plan was begun and not ended
  bool finished;           // there is nothing left to do for it
  SnPlanRequest request;   // without its arrays
  uint64_t number;         // counts plans, from 1
  double began;            // on the clock [s]
  int lead;                // steps that the latency takes
  bool estimating;         // `start` is the new state, which becomes the latest one once it is complete
  SnEstimate estimate;     // names the numbers that it came without
  bool rolling;            // the state is being rolled forward by them
  int rolled;              // steps of them that are done
  SnStateBuffer start;     // the state rolled forward: where the optimised rows begin
  sn_real *before;         // (nu) controls in force before it
  sn_real *target;         // (horizon + 1, ntarget) rows from there, on the base step
  bool optimized;          // the iterations are done
  SnTrace trace;           // states along the plan
  double trace_seconds;    // spent on them so far
  double rollout_seconds;  // time of one rollout when it was last measured
} SnPlanProgress;

// Holds the iterations of the plan in progress, whatever improves it.
typedef struct SnIterations {
  const SnOptimizer *optimizer;
  bool begun;         // the backend has been asked for some, which are not ended
  int next;           // number of the one that is under way or comes next; the first one of those begun
  bool measured;      // result.best_cost is that of the warm start under weights and targets in force
  uint64_t version;   // version of the tuning that those begun are made with
  double state_cost;  // cost of the state that is answered, under the weights of those begun
  double since;       // when those begun were begun, on the clock [s]
  double shortest;    // time of the shortest one of this plan [s]; 0: none has ended
  bool rolled;        // the one under way counts already: its cost is known, and it is not the first that is measured
  bool back;          // the way back of that one was begun
  double rolling;     // shortest time after which the cost of one was known [s]; 0: it was not before the end
  // NULL, each, until a plan is optimised by it.
  SnAdamState *adam;
  SnIlqgState *ilqg;
  SnLbfgsState *lbfgs;
  SnPopulation *population;
  SnHybrid *hybrid;
} SnIterations;

// Holds the candidates of an iteration of sampling.
typedef struct SnCandidates {
  SnBatch batch;
  SnState state;
  SnNoiseSettings noise;
  int count;
  int capacity;         // candidates that the arrays hold
  double *cost;         // (capacity)
  double *term;         // (capacity, nterm)
  unsigned char *done;  // (capacity)
  int *warn;            // (capacity)
  int *rank;            // (capacity) of those done, by their cost
  bool known;           // the cost of candidate 0 is known already
  sn_real *winner;      // (horizon, nu) scratch: controls of the best one
  sn_real *scratch;     // scratch of the noise
} SnCandidates;

// Holds what the plan in progress has come to: fields of SnPlan, and their memory.
typedef struct SnPlanResult {
  int iterations;        // number of those used
  int candidates;        // number of those used of the latest iteration
  uint64_t version;      // version of the tuning of the latest iteration that was used
  SnCost *cost;          // weights and targets of that version
  double best_cost;      // cost of the warm start's controls
  double *best_term;     // (nterm) weighted parts of best_cost
  double *gate_number;   // (ngate) numbers that gates look at in the state that is answered
  double *gate_factor;   // (ngate) gates there
  double gradient_norm;  // norm of the gradient, SnPlan.gradient_norm
  double cost_before, cost_now;
  int warn;  // SN_WARN_* bits of the rollouts that count
  char remark[256];
  char halt[64];  // remark of a plan that makes no progress, or of many that do not
  bool act_estimated;
  sn_real *ctrl;               // (2 * horizon, nu), the lead first: written when the plan begins
  sn_real *qpos, *qvel, *act;  // (2 * horizon + 1, ...)
} SnPlanResult;

// Holds the evaluation in progress.
typedef struct SnPlannerEvaluation {
  SnEvaluation result;
  SnStateBuffer state;  // state that it starts from
  SnCfdSettings cfd;    // contacts from distance in its rollout
  int steps;
  int capacity;                         // rows of its targets
  sn_real *target;                      // (capacity, ntarget)
  double *term;                         // (nterm)
  double *value;                        // (nall) norms of terms and measures
  bool *met;                            // (nall - nterm)
  bool rolled;                          // the rollout is done
  struct SnEvaluateGradient *gradient;  // memory of one; NULL: none was asked for yet
} SnPlannerEvaluation;

// Counts the parts of a planner's memory: those of its optimizers come first, by their kind.
enum { SN_MEMORY_OWN = SN_PLANNER_KINDS, SN_MEMORY_EVALUATION, SN_MEMORY_GRADIENT, SN_MEMORY_PARTS };

// Holds what a planner has taken of its budget [bytes].
typedef struct SnPlannerMemory {
  double part[SN_MEMORY_PARTS];  // bytes of each
  double taken;                  // bytes of all of them
} SnPlannerMemory;

// Holds a planner (planner/planner.h).
struct SnPlanner {
  SnPlannerDef def;
  SnModel *m;  // with the task's overrides
  double h;    // time step [s]
  int horizon;
  SnPlannerDevice device;
  SnPlannerRunners runners;
  SnTuning in_force;     // tuning of the iterations under way
  SnTuning pending;      // tuning from the next iteration on, and of evaluations
  bool cost_changed;     // weights or targets that are pending are not in force yet
  bool pending_refused;  // there is no memory for pending settings: not tried again until something is set
  SnPlannerCfd cfd;
  SnPlannerGrid grid;
  SnInitial initial;
  SnLatest latest;
  SnWarmStart warm_start;
  SnPlannerPolicy policy;
  SnActivePlan active_plan;
  SnPlanProgress progress;
  SnIterations iterations;
  SnCandidates candidates;
  SnPlanResult result;
  SnPlannerMemory memory;
  int unimproved;  // plans in a row whose cost did not fall, up to the latest one that was finished
  SnPlannerEvaluation evaluation;
};

// Returns the time of the planner's clock [s].
static inline double sn_planner_now(const SnPlanner *p) { return p->def.clock.now(p->def.clock.context); }

// Copies n numbers; either pointer may be NULL when n is 0.
static inline void sn_planner_copy(sn_real *to, const sn_real *from, size_t n) {
  if (n > 0) memcpy(to, from, sizeof *to * n);
}

// Allocates zeros, as calloc does, but never returns NULL for 0 bytes. Sets *ok to false on failure.
static inline void *sn_planner_calloc(size_t n, size_t size, bool *ok) {
  void *x = calloc(n + 1, size);
  *ok = *ok && x != NULL;
  return x;
}

// Returns the iterations after which a plan that an optimizer makes with these settings has tried something new.
int sn_planner_least_iterations_of(const SnOptimizer *optimizer, const SnSettings *s);
// Returns the optimizer that the settings name.
static inline const SnOptimizer *sn_planner_optimizer(const SnSettings *s) { return sn_optimizers[s->planner]; }

// planner_begin.c: puts the pending settings, and the optimizer that they name, in force. On failure nothing is
// changed.
SnCode sn_planner_take_settings(SnPlanner *p, SnError *err);
// planner_begin.c: puts in force what was tuned since the iteration before, all of it at once.
void sn_planner_take_changes(SnPlanner *p);
// planner_begin.c: estimates what the state came without and rolls it forward, until `stop` [s on the clock]. Returns
// whether it is where the optimised rows start.
bool sn_planner_reach_start(SnPlanner *p, double stop);
// planner_begin.c: goes on from the state with what is estimated of it by now.
void sn_planner_end_estimating(SnPlanner *p);
// planner_plan.c: takes what counts of the iterations under way, if there are any.
void sn_planner_end_iteration(SnPlanner *p);
// planner_result.c: returns the status of the plan as it stands.
SnPlanStatus sn_planner_status(const SnPlanner *p);
// planner_begin.c: notes that the costs of the result are now those under the weights and targets of the iterations
// that end.
void sn_planner_mark_version(SnPlanner *p);
// planner_plan.c: returns when iterations must stop [s on the clock] so that predicted states are still computed before
// the deadline.
double sn_planner_iteration_deadline(const SnPlanner *p);

// planner_grid.c: checks that a planner with these settings can have their time grid; writes it into `grid`, which may
// be NULL. Returns SN_ERR_ARGUMENT otherwise; err names what does not fit.
SnCode sn_planner_grid_check(const SnPlanner *p, const SnSettings *s, SnGrid *grid, SnError *err);
// planner_grid.c: puts the time grid of the settings in force in force. Returns whether it is another one.
bool sn_planner_grid_take(SnPlanner *p);
// planner_grid.c: writes the targets of the plan in progress, on the base step and on the grid.
void sn_planner_grid_schedule(SnPlanner *p);
// planner_grid.c: returns the targets (steps + 1, ntarget) of iterations.
const sn_real *sn_planner_grid_target(const SnPlanner *p);
// planner_grid.c: makes the rows that iterations begin with: means of the best controls so far on the base step.
void sn_planner_grid_gather(SnPlanner *p);
// planner_grid.c: makes what iterations have left there the best controls so far, held over each step.
void sn_planner_grid_keep(SnPlanner *p);
// Returns the best controls so far as iterations have them (steps, nu), for them to change in place when they end.
static inline sn_real *sn_planner_best(SnPlanner *p) {
  return p->grid.grid.parts == 0 ? p->warm_start.ctrl : p->grid.ctrl;
}
// Returns how many numbers those are.
static inline size_t sn_planner_rows(const SnPlanner *p) { return (size_t)p->grid.steps * (size_t)p->m->nu; }

// planner_policy.c: reads the policy that the task names, and its memory; frees both.
SnCode sn_planner_policy_load(SnPlanner *p, SnError *err);
void sn_planner_policy_free(SnPlanner *p);
// planner_policy.c: returns SN_ERR_UNSUPPORTED where settings want a policy and the task names none.
SnCode sn_planner_policy_check(const SnPlanner *p, const SnSettings *s, SnError *err);
// planner_policy.c: begins to choose where the plan in progress begins, as the settings in force say.
void sn_planner_policy_begin(SnPlanner *p);
// planner_policy.c: goes on with it until the clock reads `until`; makes the policy's controls the warm start where
// they are chosen. Returns false where there is more to do.
bool sn_planner_policy_choose(SnPlanner *p, double until);

// planner_memory.c: returns what so many rows of states, or tables of controls over the horizon, take [bytes].
double sn_planner_row_bytes(const SnPlanner *p, double rows);
double sn_planner_ctrl_bytes(const SnPlanner *p, double tables);
// planner_memory.c: returns what the backend takes of the program's memory for so much room [bytes].
double sn_planner_backend_bytes(const SnPlanner *p, int steps, int gradients, int starts);
// planner_memory.c: takes what a part of the planner needs in all, before it is allocated. Returns SN_ERR_LIMIT.
SnCode sn_planner_take(SnPlanner *p, int part, double bytes, SnError *err);
// planner_memory.c: takes what a planner needs itself of its budget, before it is allocated. Returns SN_ERR_LIMIT.
SnCode sn_planner_take_own(SnPlanner *p, SnError *err);
// planner_memory.c: takes what the capacity of an optimizer needs of the budget, and reserves it. On failure all is as
// before.
SnCode sn_planner_reserve(SnPlanner *p, const SnOptimizer *optimizer, const SnSettings *s, SnError *err);
// planner_memory.c: takes what these settings need of the budget, of the plan in progress too, which goes on by the
// optimizer that it began with. It is reserved, but for iterations under way, whose capacity stays as it is: then when
// the next ones begin. On failure all is as before.
SnCode sn_planner_make_room(SnPlanner *p, const SnSettings *s, SnError *err);
// planner_memory.c: hands what a planner has taken for its optimizers, beyond what its successor has, on to that one.
void sn_planner_hand_room(SnPlanner *from, SnPlanner *to);
// planner_memory.c: takes what an evaluation of so many steps needs, and its gradient; gives that of gradients, and all
// that the planner has taken, back.
SnCode sn_planner_take_evaluation(SnPlanner *p, int steps, bool gradient, SnError *err);
void sn_planner_give_gradient(SnPlanner *p);
void sn_planner_give_all(SnPlanner *p);

// planner_fallback.c: loads the planner on its backend, or on the fallback where that is lost.
SnCode sn_planner_load(SnPlanner *p, SnError *err);
// planner_fallback.c: looks whether the device is lost. Then plan and evaluation in progress go on at the fallback.
// Iterations under way are dropped, the best controls so far are measured anew. Returns false when there is nothing to
// go on with.
bool sn_planner_watch(SnPlanner *p);
// Makes every row of the warm start that of the initial plan.
void sn_planner_reset_nominal(SnPlanner *p);
// Drops the iterations under way.
void sn_planner_drop_batch(SnPlanner *p);
// Copies the state of a world into a buffer, except its time.
void sn_planner_store_world(SnPlanner *p, const SnWorld *w, SnStateBuffer *s);
// Tells every optimizer that the plan moves by k steps.
void sn_planner_shift_optimizers(SnPlanner *p, int k);
// Tells every optimizer to forget the plan before.
void sn_planner_forget_plan(SnPlanner *p);
// Checks that the backend has the feature that gradients of a planner need. Returns SN_ERR_UNSUPPORTED when it has not;
// err names both.
SnCode sn_planner_check_gradients(const SnPlanner *p, const char *planner, SnBackendFeature feature, SnError *err);

// planner_sampling.c: what planners by sampling share.

// Return the memory of the candidates of such settings, and of Adam from so many starts [bytes].
double sn_planner_candidates_bytes(const SnPlanner *p, const SnSettings *s);
double sn_planner_adam_bytes(const SnPlanner *p, int starts);
// Reserves capacity for the candidates of such settings.
SnCode sn_planner_candidates_reserve(SnPlanner *p, const SnSettings *s, SnError *err);
// Begins an iteration: candidates around `base` (horizon, nu), at most `most`. Cost and terms (nterm) of the base are
// known, or `term` is NULL.
void sn_planner_candidates_begin(SnPlanner *p, const sn_real *base, double cost, const double *term, int most);
void sn_planner_candidates_submit(SnPlanner *p);
SnWorked sn_planner_candidates_work(SnPlanner *p, double stop);
// Ends it, as SnOptimizer.end: the best candidate is the plan where it is better than the best so far. Returns the
// number of candidates that count; 0: the iteration does not.
int sn_planner_candidates_end(SnPlanner *p);

// planner_adam.c: jobs of Adam.

// Reserves capacity for jobs of so many starts.
SnCode sn_planner_adam_reserve(SnPlanner *p, int starts, SnError *err);
// Returns whether this capacity is newer than the latest job: the next one has to begin anew.
bool sn_planner_adam_is_fresh(const SnPlanner *p);
// Describes the next job of `iterations` iterations at most, the first `most` of its starts taking part. `init`: it
// begins anew, from the best controls so far. The caller may change the job before it is worked on.
SnMultistartJob *sn_planner_adam_job(SnPlanner *p, bool init, int starts, int most, int iterations);
void sn_planner_adam_submit(SnPlanner *p);
SnWorked sn_planner_adam_work(SnPlanner *p, double stop);
// Ends it and counts its iterations; what its best controls are worth is the caller's business. NULL: none counts.
const SnMultistartJob *sn_planner_adam_end(SnPlanner *p);

// planner_adam.c: describes what Adam remembers.
void sn_planner_adam_snapshot(const SnPlanner *p, SnAdamSnapshot *snapshot);
// planner_adam.c: puts it in force again, checked as by sn_planner_restore. On an error all is as before.
SnCode sn_planner_adam_restore(SnPlanner *p, const SnAdamSnapshot *snapshot, SnError *err);
// Returns the noise of the iteration under way.
SnNoiseSettings sn_planner_noise(const SnPlanner *p);
// Returns the base steps between knots of the noise: `knots` of them span the horizon.
int sn_planner_noise_spacing(const SnPlanner *p);

// Checks a state and copies it, with quaternions normalised. Mocap stays as before if it is not given. Begins to
// estimate act and past, if they are not given, from the controls since the latest state, in the runner's world.
// Buffers of sensors stay. Returns SN_ERR_ARGUMENT when something is wrong; err names it and nothing is changed then.
SnCode sn_planner_take_state(const SnPlanner *p, const SnPlanRequest *request, SnStateBuffer *into,
                             SnRolloutRunner *runner, SnEstimate *estimate, SnError *err);
// Estimates until the clock reads `until` [s], at least the first steps. Returns false where there is more to do.
bool sn_planner_estimate(const SnPlanner *p, SnEstimate *estimate, double until);
// Takes what was estimated, as far as that came, into the state.
void sn_planner_take_estimate(const SnPlanner *p, const SnEstimate *estimate);

// Returns the last row of reported controls that begins by `time` [s]; -1: none does.
int sn_planner_applied_until(const SnApplied *applied, double time);
// Copies a row of reported controls (nu).
void sn_planner_copy_applied(const SnPlanner *p, const SnApplied *applied, int row, sn_real *ctrl);

// Checks a state: finite, quaternions of about unit length.
SnCode sn_planner_check_state(const SnModel *m, const SnPlanRequest *request, SnError *err);
// Checks numbers; err names the first bad one.
SnCode sn_planner_check_finite(const char *what, const sn_real *x, size_t n, SnError *err);

// Returns the row (nu) of the plan in force at `time` [s], that of the initial plan where there is none.
const sn_real *sn_planner_force_row(const SnPlanner *p, double time);

// Returns the initial state of rollouts that belongs to a buffer: its arrays, with the acceleration there as the
// solver's warm start. This acceleration is a function of the state alone, so that a plan and an evaluation of its
// controls agree bit for bit.
SnState sn_planner_prepare(SnPlanner *p, SnStateBuffer *s);

// Frees the memory for gradients of evaluations.
void sn_planner_evaluate_free(SnPlanner *p);
// Begins the gradient of the evaluation in progress anew at p->device.backend. There is none where there is no room.
void sn_planner_evaluate_move(SnPlanner *p);

// Returns a view of a buffer for rollouts and gradients of iterations: CFD and time grid as the settings in force say.
SnState sn_planner_iteration_state(const SnPlanner *p, const SnStateBuffer *s);
// Returns a view of a buffer for rollouts on the base step: CFD as the settings in force say.
SnState sn_planner_rollout_state(const SnPlanner *p, const SnStateBuffer *s);

// Returns a view of a buffer.
SnState sn_state_view(const SnStateBuffer *s);

#endif
