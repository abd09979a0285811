// Inside of a planner: shared by planner.c and planner_*.c.
#ifndef SINEW_PLANNER_PLANNER_PRIVATE_H_
#define SINEW_PLANNER_PLANNER_PRIVATE_H_

#include <stdlib.h>

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

// An optimizer: a way to improve the best controls so far, p->nominal, iteration by iteration.
typedef struct SnOptimizer {
  // Reserves capacity for iterations with these settings; on failure all is as before. Not while iterations are under
  // way.
  SnCode (*reserve)(SnPlanner *p, const SnSettings *s, SnError *err);
  // Iterations of a plan that the settings ask for; 0: as many as the deadline allows.
  int (*iterations)(const SnSettings *s);
  // Begins iteration p->iteration of a plan with p->settings and at most `most` candidates, and those after it that
  // need no look from here: `iterations` at most.
  void (*begin)(SnPlanner *p, int most, int iterations);
  // They will be worked on soon; any number of times. Where the backend has the operation.
  void (*submit)(SnPlanner *p);
  // Works on them until the clock reaches `stop`.
  SnWorked (*work)(SnPlanner *p, double stop);
  // Takes what is complete of them and drops the rest: nominal, best_cost, best_term, gradient_norm, iteration (the
  // next one), iterations, candidates, warn; cost_before, measured and used, too, when it was the first under the
  // weights in force.
  void (*end)(SnPlanner *p);
} SnOptimizer;

extern const SnOptimizer sn_optimizer_sampling, sn_optimizer_adam;

// What planner_adam.c keeps.
typedef struct SnAdamState SnAdamState;

struct SnPlanner {
  SnPlannerDef def;
  SnModel *m;                           // with the task's overrides
  SnCost *cost;                         // of the plan in progress
  SnCost *wanted;                       // with live changes: the next plan's, and that of evaluations
  SnBackend *backend;                   // that of the definition, or its fallback
  SnBackendModel *device;               // there
  bool device_lost;                     // the backend of the definition is lost
  bool stranded;                        // and there is nothing to go on with
  SnRolloutRunner *runner;              // a world for all that is done at once
  SnRolloutRunner *tracer, *evaluator;  // that go on from slice to slice: the lead and predicted states; an evaluation
  double h;                             // time step [s]
  int horizon;

  SnSettings settings;      // in force
  SnSettings pending;       // from the next iteration on
  bool retuned;             // weights or targets of `wanted` have changed since `cost` took them over
  unsigned char *cfd_pair;  // (ncpair) pairs whose contacts act from a distance, where the settings want that
  SnCfd forward, backward;  // how, in rollouts and in derivatives, by the settings in force
  uint64_t version;         // of pending and wanted: sn_planner_set_version
  uint64_t taken;           // of settings and cost
  bool refused;             // there is no room for pending: it is not tried again until something is set

  SnStateBuffer initial, state;       // of the task; of the latest request
  SnStateBuffer rolled_state, probe;  // where the optimised part begins; of an evaluation
  SnState initial_view;
  bool settled;           // initial is that of def.seed
  sn_real *initial_ctrl;  // (nu)

  // Warm start and plan in force.
  sn_real *nominal;  // (horizon, nu) best controls so far, from nominal_time on
  double nominal_time;
  bool has_nominal;  // a plan was begun since the reset
  int phase;         // steps from the first noise knot to the first row
  sn_real *force;    // (2 * horizon, nu) rows of the latest plan, `lead` first
  double force_time;
  int force_rows;  // 0: none yet
  bool has_act;    // state.act at state.time is an estimate to go on from

  // Plan in progress.
  bool active, finished, act_estimated;
  SnPlanRequest request;  // without its arrays
  uint64_t number;
  double began;
  int lead;
  int rolled;       // steps of the lead that the state was rolled forward by
  bool rolling;     // there are more
  sn_real *target;  // (horizon + 1, ntarget) rows from the start of the optimised part
  SnNoise noise;
  SnBatch batch;
  const SnOptimizer *optimizer;  // of this plan
  bool batch_active;             // iterations are begun
  int iteration;                 // that is under way or comes next: the first of those begun
  int count;                     // its candidates
  int iterations, candidates;    // used so far: iterations, and candidates of the latest of them
  bool measured;                 // best_cost is that of the nominal under the weights and targets in force
  uint64_t trying, used;         // versions: of the iteration under way; of the latest one that was used
  int capacity;                  // candidates that the arrays hold
  double *candidate_cost;        // (capacity)
  double *candidate_term;        // (capacity, nterm)
  unsigned char *candidate_done;
  int *candidate_warn;
  SnAdamState *adam;  // NULL until a plan is improved by Adam
  double best_cost, cost_before, cost_now;
  double gradient_norm;    // at the best controls; NaN where there is no gradient
  double state_cost;       // cost of the state under the weights of the iteration under way
  double *best_term;       // (nterm)
  int warn;                // SN_WARN_* bits of the rollouts that count
  char remark[256];        // SnPlan.remark
  sn_real *winner;         // (horizon, nu) scratch: controls of the best candidate
  sn_real *scratch;        // of the noise
  double rollout_seconds;  // what one rollout takes, measured

  // Result: lead rows first, then the optimised ones. The lead is written when the plan begins.
  sn_real *plan_ctrl;                         // (2 * horizon, nu)
  sn_real *plan_qpos, *plan_qvel, *plan_act;  // (2 * horizon + 1, ...)

  bool optimized, tracing, traced;  // iterations are done; states are being predicted, and are
  double trace_seconds;             // spent on it so far

  // Evaluation.
  SnEvaluation evaluation;  // in progress
  SnCfd evaluate_cfd;       // its rollout's
  int evaluate_steps;
  int evaluate_capacity;  // rows of its target table
  sn_real *evaluate_target;
  double *evaluate_term;                         // (nterm)
  double *evaluate_value;                        // (nall) norms of terms and measures
  bool *evaluate_met;                            // (nall - nterm)
  bool evaluate_rolled;                          // its rollout is done
  struct SnEvaluateGradient *evaluate_gradient;  // room for one, or NULL: none was asked for yet
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

// planner_device.c. Loads the planner on its backend, or the fallback where that is lost.
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
SnNoise sn_planner_noise(SnPlanner *p);

// Checks a state and copies it: quaternions normalised, mocap as before where not given, act estimated where not given
// (from the controls since the state before). SN_ERR_ARGUMENT names what is wrong; nothing is changed then.
SnCode sn_planner_take_state(SnPlanner *p, const SnPlanRequest *request, SnStateBuffer *into, bool *act_estimated,
                             SnError *err);

// Activations at `time`, from the known ones at p->state.time on, into act (na).
void sn_planner_estimate_act(SnPlanner *p, const sn_real *qpos, const sn_real *qvel, double time,
                             const SnApplied *applied, sn_real *act);

// Row of the plan in force at a time: the initial plan where there is none.
const sn_real *sn_planner_force_row(const SnPlanner *p, double time);

// The initial state of rollouts that belongs to a buffer: its arrays, with the acceleration there as the solver's warm
// start (a function of the state alone, so that a plan and an evaluation of its controls agree bit for bit).
SnState sn_planner_prepare(SnPlanner *p, SnStateBuffer *s);

// Frees the memory for gradients of evaluations.
void sn_planner_evaluate_free(SnPlanner *p);
// The gradient of the evaluation in progress begins anew at p->backend, without one where there is no room.
void sn_planner_evaluate_move(SnPlanner *p);

// The same for rollouts and gradients of the plan in progress: CFD as the settings in force say.
SnState sn_planner_rollout_state(const SnPlanner *p, const SnStateBuffer *s);

// A view of a buffer.
SnState sn_state_view(const SnStateBuffer *s);

#endif
