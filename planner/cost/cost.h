// Costs: a task bound to a model. An SnCost holds flat arrays of numbers only, so that the functions
// which evaluate it compile for CPU and GPU.
//
// The cost of a plan u[0..H) from state x[0] at time t0, with time step h, is
//
//   J = 1/H sum_{t<H} sum_i weight_i n_i(r_i(x[t], u[t], t0 + t h)) + sum_i terminal_i n_i(r_i(x[H], t0 + H h))
//
// r_i is the residual of term i, n_i its norm, times its gate where it has one (cost_norm.c). The first sum is a mean,
// so that J does not grow with the horizon and keeps the unit of the terms. At x[H] no control acts: terms on controls
// and terms on sensors that measure accelerations or forces have no terminal weight. The rate of a control at step t is
// (u[t] - u[t-1]) / h[t-1]. At the first step it is that from the controls in force before; where these are not known
// it is 0.
#ifndef SINEW_PLANNER_COST_COST_H_
#define SINEW_PLANNER_COST_COST_H_

#include "physics/world/adjoint.h"
#include "physics/model/model_view.h"
#include "planner/base/clock.h"
#include "planner/task/task.h"

// Names what an item compares: points (value and residual of 3 entries), rotations (4 and 3), scalars (1 and 1).
typedef enum SnItem {
  SN_ITEM_SITE_POS,
  SN_ITEM_BODY_POS,
  SN_ITEM_GEOM_POS,
  SN_ITEM_SITE_VEL,
  SN_ITEM_BODY_VEL,
  SN_ITEM_GEOM_VEL,
  SN_ITEM_SITE_ANGVEL,
  SN_ITEM_BODY_ANGVEL,
  SN_ITEM_GEOM_ANGVEL,
  SN_ITEM_MEAN,          // mean of several of the points above
  SN_ITEM_SENSOR_POINT,  // last of the points
  SN_ITEM_SITE_QUAT,
  SN_ITEM_BODY_QUAT,
  SN_ITEM_GEOM_QUAT,
  SN_ITEM_QPOS_QUAT,
  SN_ITEM_SENSOR_QUAT,  // last of the rotations
  SN_ITEM_DISTANCE,
  SN_ITEM_COMPONENT,  // one entry of a point
  SN_ITEM_QPOS,
  SN_ITEM_QVEL,
  SN_ITEM_ACT,
  SN_ITEM_CTRL,
  SN_ITEM_CTRL_RATE,
  SN_ITEM_TENDON,
  SN_ITEM_SENSOR
} SnItem;

// Holds a task bound to a model. Terms [0, nterm) are the cost, [nterm, nall) the measures of success. Behind them, in
// [nall, nall + ngate), stand the gates of terms: they have residuals, targets and norms as terms do, and no weights.
// Items are the scalars, points or rotations that a term compares with its target.
typedef struct SnCost {
#define SN_COST_SIZE(name) int name;
#define SN_COST_FIELD(type, name, rows, cols) SN_GLOBAL(type) name;
#include "planner/cost/cost_fields.inc"
  struct SnCostOwner *owner;  // names and schedules: host only
} SnCost;

enum {
  SN_COST_NSIZE = 0
#define SN_COST_SIZE(name) +1
#include "planner/cost/cost_fields.inc"
  ,
  SN_COST_NFIELD = 0
#define SN_COST_FIELD(type, name, rows, cols) +1
#include "planner/cost/cost_fields.inc"
};

// Shows a cost as parts of plain memory (physics/model/model_view.h). A cost has no options. The arrays are the cost's
// own.
typedef struct SnCostView {
  SnParts parts;
  int size[SN_COST_NSIZE];
  const void *field[SN_COST_NFIELD];
} SnCostView;

// Makes a view of a cost, for as long as cost and view stay where they are. Returns SN_ERR_UNSUPPORTED in a build whose
// sn_real is not double.
SnCode sn_cost_view(const SnCost *cost, SnCostView *view, SnError *err);

// Returns a copy of the model with the options of the task: time step, solver, solref and solimp of all contacts. The
// caller frees it with sn_model_free. Returns NULL and err on failure.
SnModel *sn_task_model(const SnTask *task, const SnModel *model, SnError *err);

// Resolves all names of the task in the model. Targets captured at the start are zero until sn_cost_capture. The task
// must outlive the cost. Returns NULL on failure; err then lists every mistake with its place in the task's file. Free
// the cost with sn_cost_free (NULL is allowed).
SnCost *sn_cost_create(const SnTask *task, const SnModel *m, SnError *err);
void sn_cost_free(SnCost *cost);

// Returns a cost without terms and targets, for rollouts that nobody measures. It is in static memory and has no names.
const SnCost *sn_cost_none(void);

// Returns SN_OK when every sensor that the cost looks at has a gradient. Returns SN_ERR_UNSUPPORTED otherwise; err
// names every term that looks at one without.
SnCode sn_cost_check_gradient(const SnCost *cost, const SnModel *m, SnError *err);

// Returns the name of term or measure i, 0 <= i < nall; its place in the task is task->term[i] or task->measure[i -
// nterm]. A gate, nall <= i < nall + ngate, has that of its term.
const char *sn_cost_name(const SnCost *cost, int i);
// Returns the index of the term or measure of this name, or -1.
int sn_cost_find(const SnCost *cost, const char *name);
// Returns SN_ERR_NOT_FOUND; err says that no term has this name, which terms there are, and which may be meant.
SnCode sn_cost_no_term(const SnCost *cost, const char *name, SnError *err);

// Puts the world into the task's initial state: keyframe, named joints, change by the seed (0: none). Then steps it
// for task->settle [s] under the controls of sn_ctrl_reset, which it leaves. At last sets joint velocities, puts free
// bodies in place, and sets the time to 0. Runs on the host only. Returns SN_ERR_STATE when it diverges, SN_ERR_TIMEOUT
// when the clock reaches `until` before (NULL: there is no end).
SnCode sn_task_reset(const SnTask *task, const SnModel *m, SnWorld *w, SnLane *lane, uint64_t seed,
                     const SnClock *clock, double until, SnError *err);

// Writes the controls of the task's initial plan, changed by the seed (0: not), into ctrl (nu).
void sn_task_initial_plan(const SnTask *task, const SnModel *m, uint64_t seed, sn_real *ctrl);

// Takes the targets that are fixed at the start from the world, which is in the initial state.
void sn_cost_capture(SnCost *cost, const SnModel *m, SnWorld *w, SnLane *lane);

// Changes the target of term i to a constant: value[n], in the target's frame. With n = 0 the task's own target holds
// again. Returns SN_ERR_ARGUMENT when the size is wrong; err names the one that is allowed. Do not call it while a
// rollout runs.
SnCode sn_cost_set_target(SnCost *cost, int i, const double *value, int n, SnError *err);
// Returns whether the target of term i was set by sn_cost_set_target: it does not depend on the time then.
bool sn_cost_target_is_set(const SnCost *cost, int i);
// Returns what sn_cost_set_target would return for these values, and changes nothing.
SnCode sn_cost_check_target(const SnCost *cost, int i, const double *value, int n, SnError *err);
// Copies live values (weights, targets set live) to another cost of the same task and model.
void sn_cost_copy_live(SnCost *to, const SnCost *from);
// Changes the weights of term i < nterm; both must be finite and at least 0.
SnCode sn_cost_set_weight(SnCost *cost, int i, double weight, double terminal, SnError *err);
// Returns what sn_cost_set_weight would return for these values, and changes nothing.
SnCode sn_cost_check_weight(const SnCost *cost, int i, double weight, double terminal, SnError *err);

// Returns the number of entries that term i has in a row of targets (values, not residuals).
int sn_cost_target_size(const SnCost *cost, int i);
// Writes the target of term i at time t [s] into value[sn_cost_target_size(cost, i)].
void sn_cost_target(const SnCost *cost, int i, double t, double *value);

// Writes the entries of a row of targets that the terms of the task give as numbers (a value, a sinusoid, keyframes, or
// what was taken at the start), in the order of the terms, into entry (ntarget). Returns how many these are. Measures,
// gates, terms without a target, and those that follow something have none.
int sn_cost_given_targets(const SnCost *cost, int *entry);

// Writes the targets at the times t0 + k h [s], 0 <= k < rows, into table (rows, ntarget). Runs on the host only. This
// is the one place where schedules are evaluated, in double precision whatever sn_real is.
void sn_cost_schedule(const SnCost *cost, double t0, double h, int rows, sn_real *table);

// Says what terms look at beside the world of a state.
typedef struct SnCostInput {
  const sn_real *target;  // (ntarget) the row of targets of the state
  const sn_real *before;  // (nu) controls of the step before; NULL or NaN: not known, rates are 0
  sn_real since;          // duration of that step [s]
} SnCostInput;

// Writes the residuals of terms [first, last) into res (nres), for a world after sn_forward, and those of all gates
// where first < nterm. Ends with a sync.
SN_FUNC void sn_cost_residual(const SnCost *cost, const SnModel *m, const SnWorld *w, SnLane *lane, SnCostInput in,
                              int first, int last, sn_real *res);
// Writes the norms of terms [first, last) of the residuals, without weights, into value (nall): times their gates. Ends
// with a sync.
SN_FUNC void sn_cost_norm(const SnCost *cost, SnLane *lane, const sn_real *res, int first, int last, sn_real *value);

// Says what a term makes of its residual.
typedef struct SnPenalty {
  int norm;             // SnNorm
  int side;             // 1: entries above 0 count, -1: below 0, 0: all
  sn_real width;        // width of the norm
  const sn_real *each;  // weights of the entries
} SnPenalty;

// Returns the penalty of term i, with the weights of the cost.
SN_FUNC SnPenalty sn_cost_penalty(const SnCost *cost, int i);
// Returns r, or 0 where it lies on the side that does not count.
SN_FUNC sn_real sn_side_value(int side, sn_real r);
// Returns the norm of r[n]: the scalar that sn_cost_norm writes.
SN_FUNC sn_real sn_norm_value(SnPenalty p, const sn_real *r, int n);

// Returns the gate of term i, from the residuals; 1 where it has none.
SN_FUNC sn_real sn_cost_gate(const SnCost *cost, int i, const sn_real *res);

// Says what sn_cost_vjp reads beside a state, and where it writes beside the adjoint.
typedef struct SnCostVjp {
  SnCostInput in;
  const sn_real *weight;  // (nterm) running or terminal weights times the share of the state in what is differentiated
  sn_real factor;         // multiplies all weights
  sn_real *res;           // (nres) scratch
  sn_real *target_bar;    // (ntarget) added to; or NULL
  sn_real *before_bar;    // (nu) of in.before, added to; or NULL
} SnCostVjp;

// Adds the derivative of a state's cost to the adjoint `a` of that state. The cost is
//
//   sum_i factor weight[i] n_i(r_i), i < nterm
//
// It adds to wrench, twist_bar[SN_VEL], tendon and actuator bars, qpos_bar, qvel_bar, act_bar and ctrl_bar. Derivatives
// with respect to its inputs are added to target_bar and before_bar. The world is as for sn_cost_residual. Call it
// between sn_step_vjp (at the end of a horizon sn_motion_rest) and sn_position_vjp. Every sensor that is looked at must
// have a gradient (sn_cost_check_gradient). A term of weight 0 adds nothing, whatever its residual. cost.c says which
// derivative holds where a term is not smooth. Ends with a sync.
SN_FUNC void sn_cost_vjp(const SnCost *cost, const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, SnCostVjp v);

#endif
