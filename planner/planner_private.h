// Inside of a planner: shared by planner.c and planner_*.c.
#ifndef SINEW_PLANNER_PLANNER_PRIVATE_H_
#define SINEW_PLANNER_PLANNER_PRIVATE_H_

#include <stdlib.h>

#include "planner/optimize/controls.h"
#include "planner/planner.h"
#include "planner/rollout/cfd.h"

// Copies of the arrays of an SnState.
typedef struct SnStateBuffer {
  double time;
  sn_real *qpos, *qvel, *act, *mocap_pos, *mocap_quat, *qacc_warmstart;
} SnStateBuffer;

// What became of iterations that were worked on.
typedef enum SnWorked {
  SN_WORKED_PAUSED,  // within one: the work goes on there
  SN_WORKED_PART,    // between two: those done count, the rest has to be begun anew
  SN_WORKED_ALL
} SnWorked;

// An optimizer: a way to improve the best controls so far, p->warm_start.ctrl, iteration by iteration.
typedef struct SnOptimizer {
  // Reserves capacity for iterations with these settings; on failure all is as before. Not while iterations are under
  // way.
  SnCode (*reserve)(SnPlanner *p, const SnSettings *s, SnError *err);
  // Iterations of a plan that the settings ask for; 0: as many as the deadline allows.
  int (*iterations)(const SnSettings *s);
  // Begins iteration p->iterations.next of a plan with p->in_force.settings and at most `most` candidates, and those
  // after it that need no look from here: `iterations` at most.
  void (*begin)(SnPlanner *p, int most, int iterations);
  // They will be worked on soon; any number of times. Where the backend has the operation.
  void (*submit)(SnPlanner *p);
  // Works on them until the clock reaches `stop`.
  SnWorked (*work)(SnPlanner *p, double stop);
  // Takes what is complete of them into warm_start.ctrl, iterations.next and result, and drops the rest. Sets
  // result.cost_before, result.version and iterations.measured, too, where it was the first under the weights in force.
  void (*end)(SnPlanner *p);
} SnOptimizer;

extern const SnOptimizer sn_optimizer_sampling, sn_optimizer_adam;

// What planner_adam.c keeps.
typedef struct SnAdamState SnAdamState;

// Holds what can be tuned live, all of one version.
typedef struct SnTuning {
  SnSettings settings;
  SnCost *cost;      // weights and targets
  uint64_t version;  // as sn_planner_set_version gave it
} SnTuning;

// Holds where rollouts are computed.
typedef struct SnPlannerDevice {
  SnBackend *backend;     // that of the definition, or its fallback
  SnBackendModel *model;  // of this planner, at the backend
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

// Holds where the task begins.
typedef struct SnInitial {
  SnStateBuffer state;
  SnState view;   // of `state`
  sn_real *ctrl;  // (nu)
  bool settled;   // all of it is that of the seed of the definition
} SnInitial;

// Holds the state of the latest request.
typedef struct SnLatest {
  SnStateBuffer state;
  bool has_act;  // its activations are an estimate to go on from
} SnLatest;

// Holds the best controls so far, which the next plan begins from.
typedef struct SnWarmStart {
  sn_real *ctrl;  // (horizon, nu)
  double time;    // of the first row [s]
  bool exists;    // a plan was begun since the reset
  int phase;      // steps from the first noise knot to the first row
} SnWarmStart;

// Holds the controls of the latest plan that was finished, which the body is assumed to apply.
typedef struct SnActivePlan {
  sn_real *ctrl;  // (2 * horizon, nu), the lead first
  double time;    // of the first row [s]
  int rows;       // 0: none yet
} SnActivePlan;

// Holds how far the plan in progress is: rolling the state forward, iterations, tracing.
typedef struct SnPlanProgress {
  bool active;             // a plan was begun and not ended
  bool finished;           // there is nothing left to do for it
  SnPlanRequest request;   // without its arrays
  uint64_t number;         // of the plan, from 1
  double began;            // on the clock [s]
  int lead;                // steps that the latency takes
  bool rolling;            // the state is being rolled forward by them
  int rolled;              // steps of them that are done
  SnStateBuffer start;     // the state rolled forward: where the optimised rows begin
  sn_real *target;         // (horizon + 1, ntarget) rows from there
  bool optimized;          // the iterations are done
  bool tracing, traced;    // states along the plan are being predicted; are there
  double trace_seconds;    // spent on them so far
  double rollout_seconds;  // that one rollout took when it was last measured
} SnPlanProgress;

// Holds the iterations of the plan in progress, whatever improves it.
typedef struct SnIterations {
  const SnOptimizer *optimizer;
  bool begun;         // the backend has been asked for some, which are not ended
  int next;           // number of the one that is under way or comes next; the first one of those begun
  bool measured;      // result.best_cost is that of the warm start under weights and targets in force
  uint64_t version;   // of the tuning that those begun are made with
  double state_cost;  // of the state that is answered, under the weights of those begun
  SnAdamState *adam;  // NULL until a plan is optimised by Adam
} SnIterations;

// Holds the candidates of an iteration of sampling.
typedef struct SnCandidates {
  SnBatch batch;
  SnNoiseSettings noise;
  int count;
  int capacity;         // that the arrays hold
  double *cost;         // (capacity)
  double *term;         // (capacity, nterm)
  unsigned char *done;  // (capacity)
  int *warn;            // (capacity)
  sn_real *winner;      // (horizon, nu) scratch: controls of the best one
  sn_real *scratch;     // of the noise
} SnCandidates;

// Holds what the plan in progress has come to: fields of SnPlan, and their memory.
typedef struct SnPlanResult {
  int iterations;        // that were used
  int candidates;        // that were used of the latest of them
  uint64_t version;      // of the tuning of the latest of them
  double best_cost;      // of the warm start's controls
  double *best_term;     // (nterm) of it
  double gradient_norm;  // at the best controls; NaN where there is no gradient
  double cost_before, cost_now;
  int warn;  // SN_WARN_* bits of the rollouts that count
  char remark[256];
  bool act_estimated;
  sn_real *ctrl;               // (2 * horizon, nu), the lead first: written when the plan begins
  sn_real *qpos, *qvel, *act;  // (2 * horizon + 1, ...)
} SnPlanResult;

// Holds the evaluation in progress.
typedef struct SnPlannerEvaluation {
  SnEvaluation result;
  SnStateBuffer state;  // that it starts from
  SnCfdSettings cfd;    // of its rollout
  int steps;
  int capacity;                         // rows of its targets
  sn_real *target;                      // (capacity, ntarget)
  double *term;                         // (nterm)
  double *value;                        // (nall) norms of terms and measures
  bool *met;                            // (nall - nterm)
  bool rolled;                          // its rollout is done
  struct SnEvaluateGradient *gradient;  // memory of one; NULL: none was asked for yet
} SnPlannerEvaluation;

struct SnPlanner {
  SnPlannerDef def;
  SnModel *m;  // with the task's overrides
  double h;    // time step [s]
  int horizon;
  SnPlannerDevice device;
  SnPlannerRunners runners;
  SnTuning in_force;     // of the iterations under way
  SnTuning pending;      // from the next iteration on; of evaluations
  bool cost_changed;     // weights or targets that are pending are not in force yet
  bool pending_refused;  // there is no memory for pending settings: not tried again until something is set
  SnPlannerCfd cfd;
  SnInitial initial;
  SnLatest latest;
  SnWarmStart warm_start;
  SnActivePlan active_plan;
  SnPlanProgress progress;
  SnIterations iterations;
  SnCandidates candidates;
  SnPlanResult result;
  SnPlannerEvaluation evaluation;
};

static inline double sn_planner_now(const SnPlanner *p) { return p->def.clock.now(p->def.clock.context); }

static inline void sn_planner_copy(sn_real *to, const sn_real *from, size_t n) {
  if (n > 0) memcpy(to, from, sizeof *to * n);
}

// calloc that never returns NULL for 0 bytes, and remembers a failure.
static inline void *sn_planner_calloc(size_t n, size_t size, bool *ok) {
  void *x = calloc(n + 1, size);
  *ok = *ok && x != NULL;
  return x;
}

// The optimizer that the settings name.
static inline const SnOptimizer *sn_planner_optimizer(const SnSettings *s) {
  return s->planner == SN_PLANNER_ADAM ? &sn_optimizer_adam : &sn_optimizer_sampling;
}

// The pending settings, and the optimizer that they name, are in force from now on. On failure nothing is changed.
SnCode sn_planner_take_settings(SnPlanner *p, SnError *err);
// When iterations must stop so that the predicted states are still computed before the deadline.
double sn_planner_iteration_deadline(const SnPlanner *p);

// planner_fallback.c. Loads the planner on its backend, or the fallback where that is lost.
SnCode sn_planner_load(SnPlanner *p, SnError *err);
// Looks whether the device is lost; then plan and evaluation in progress go on at the fallback: iterations under way
// are dropped, the best controls so far are measured anew. False when there is nothing to go on with.
bool sn_planner_watch(SnPlanner *p);
// Every row of the warm start becomes the initial plan.
void sn_planner_reset_nominal(SnPlanner *p);
void sn_planner_drop_batch(SnPlanner *p);
// The state of a world into a buffer; not its time.
void sn_planner_store_world(SnPlanner *p, const SnWorld *w, SnStateBuffer *s);
// planner_adam.c: whether the backend has what Adam needs; the plan moves by k steps; the plan before is forgotten; its
// memory is given back.
SnCode sn_planner_adam_check(const SnPlanner *p, SnError *err);
void sn_planner_adam_shift(SnPlanner *p, int k);
void sn_planner_adam_forget(SnPlanner *p);
void sn_planner_adam_free(SnPlanner *p);
// Noise of the iteration under way.
SnNoiseSettings sn_planner_noise(SnPlanner *p);

// Checks a state and copies it: quaternions normalised, mocap as before where not given, act estimated where not given
// (from the controls since the state before). SN_ERR_ARGUMENT names what is wrong; nothing is changed then.
SnCode sn_planner_take_state(SnPlanner *p, const SnPlanRequest *request, SnStateBuffer *into, bool *act_estimated,
                             SnError *err);

// Activations at `time`, from the known ones at p->latest.state.time on, into act (na).
void sn_planner_estimate_act(SnPlanner *p, const sn_real *qpos, const sn_real *qvel, double time,
                             const SnApplied *applied, sn_real *act);

// Row of the plan in force at a time: the initial plan where there is none.
const sn_real *sn_planner_force_row(const SnPlanner *p, double time);

// The initial state of rollouts that belongs to a buffer: its arrays, with the acceleration there as the solver's warm
// start (a function of the state alone, so that a plan and an evaluation of its controls agree bit for bit).
SnState sn_planner_prepare(SnPlanner *p, SnStateBuffer *s);

// Frees the memory for gradients of evaluations.
void sn_planner_evaluate_free(SnPlanner *p);
// The gradient of the evaluation in progress begins anew at p->device.backend, without one where there is no room.
void sn_planner_evaluate_move(SnPlanner *p);

// The same for rollouts and gradients of the plan in progress: CFD as the settings in force say.
SnState sn_planner_rollout_state(const SnPlanner *p, const SnStateBuffer *s);

// A view of a buffer.
SnState sn_state_view(const SnStateBuffer *s);

#endif
