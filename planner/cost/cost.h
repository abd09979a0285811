// Costs: a task bound to a model. An SnCost holds flat arrays of numbers only, so that the functions
// which evaluate it compile for CPU and GPU.
//
// The cost of a plan u[0..H) from state x[0] at time t0, with time step h, is
//
//   J = 1/H sum_{t<H} sum_i weight_i n_i(r_i(x[t], u[t], t0 + t h)) + sum_i terminal_i n_i(r_i(x[H], t0 + H h))
//
// r_i is the residual of term i, n_i its norm. A running mean, so that J does not grow with the horizon and
// keeps the unit of the terms. At x[H] no control acts: terms on controls and terms on sensors that
// measure accelerations or forces have no terminal weight.
#ifndef SINEW_PLANNER_COST_COST_H_
#define SINEW_PLANNER_COST_COST_H_

#include "physics/world/adjoint.h"
#include "physics/model/model_view.h"
#include "planner/task/task.h"

// What an item compares: points (value and residual of 3 entries), rotations (4 and 3), scalars (1 and 1).
typedef enum SnItem {
  SN_ITEM_SITE_POS,
  SN_ITEM_BODY_POS,
  SN_ITEM_GEOM_POS,
  SN_ITEM_SENSOR_POINT,  // last of the points
  SN_ITEM_SITE_QUAT,
  SN_ITEM_BODY_QUAT,
  SN_ITEM_GEOM_QUAT,
  SN_ITEM_QPOS_QUAT,
  SN_ITEM_SENSOR_QUAT,  // last of the rotations
  SN_ITEM_DISTANCE,
  SN_ITEM_QPOS,
  SN_ITEM_QVEL,
  SN_ITEM_ACT,
  SN_ITEM_CTRL,
  SN_ITEM_TENDON,
  SN_ITEM_SENSOR
} SnItem;

// A task bound to a model. Terms [0, nterm) are the cost, [nterm, nall) the measures of success.
// Items are the scalars, points or rotations that a term compares with its target.
typedef struct SnCost {
#define SN_COST_SIZE(name) int name;
#define SN_COST_FIELD(type, name, rows, cols) type *name;
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

// View of a cost: memory of its parts (physics/model/model_view.h), which has no options; its arrays are the cost's
// own.
typedef struct SnCostView {
  SnParts parts;
  int size[SN_COST_NSIZE];
  const void *field[SN_COST_NFIELD];
} SnCostView;

// As sn_model_view.
SnCode sn_cost_view(const SnCost *cost, SnCostView *view, SnError *err);

// Options of the task applied to a private copy of the model: time step, solver, solref and solimp of all
// contacts. NULL and err on failure. The caller frees with
// sn_model_free.
SnModel *sn_task_model(const SnTask *task, const SnModel *model, SnError *err);

// Resolves all names of the task in the model. NULL and err (every mistake, with its place in the task's
// file) on failure. Free with sn_cost_free (NULL allowed). Targets captured at the start are zero until
// sn_cost_capture.
SnCost *sn_cost_create(const SnTask *task, const SnModel *m, SnError *err);
void sn_cost_free(SnCost *cost);

// SN_ERR_UNSUPPORTED, naming every term of the cost that looks at a sensor without gradient; SN_OK when there is none.
SnCode sn_cost_check_gradient(const SnCost *cost, const SnModel *m, SnError *err);

// Name of term or measure i, 0 <= i < nall; its place in the task is task->term[i] or task->measure[i - nterm].
const char *sn_cost_name(const SnCost *cost, int i);
// Index of a term or measure by name, or -1.
int sn_cost_find(const SnCost *cost, const char *name);

// Puts the world into the task's initial state: keyframe, named joints, change by the seed (0: none), settled under
// zero control for task->settle, time 0, controls 0. Host only; steps the world. SN_ERR_STATE when it diverges.
SnCode sn_task_reset(const SnTask *task, const SnModel *m, SnWorld *w, SnLane *lane, uint64_t seed, SnError *err);

// Controls of the task's initial plan, changed by the seed (0: none), into ctrl (nu).
void sn_task_initial_plan(const SnTask *task, const SnModel *m, uint64_t seed, sn_real *ctrl);

// Takes the targets that are fixed at the start from the world, which is in the initial state.
void sn_cost_capture(SnCost *cost, const SnModel *m, SnWorld *w, SnLane *lane);

// Changes the target of term i to a constant (n entries, in the target's frame), or back to the task's own
// with n = 0. SN_ERR_ARGUMENT names the size that is allowed. Not while a rollout runs.
SnCode sn_cost_set_target(SnCost *cost, int i, const double *value, int n, SnError *err);
// Whether term i has a target that was set so: it does not depend on the time then.
bool sn_cost_target_is_set(const SnCost *cost, int i);
// Whether sn_cost_set_target would take these values; nothing is changed.
SnCode sn_cost_check_target(const SnCost *cost, int i, const double *value, int n, SnError *err);
// Live values (weights, targets set live) of one cost to another of the same task and model.
void sn_cost_copy_live(SnCost *to, const SnCost *from);
// Changes the weights of term i < nterm; both must be finite and at least 0.
SnCode sn_cost_set_weight(SnCost *cost, int i, double weight, double terminal, SnError *err);
// Whether sn_cost_set_weight would take these values; nothing is changed.
SnCode sn_cost_check_weight(const SnCost *cost, int i, double weight, double terminal, SnError *err);

// Entries of a target row of term i (values, not residuals) and its current value at time t into value[].
int sn_cost_target_size(const SnCost *cost, int i);
void sn_cost_target(const SnCost *cost, int i, double t, double *value);

// Rows of targets for the times t0 + k h, 0 <= k < rows, into table (rows, ntarget). Host only: the one
// place where schedules are evaluated, in double precision whatever sn_real is.
void sn_cost_schedule(const SnCost *cost, double t0, double h, int rows, sn_real *table);

// Residuals of terms [first, last) of a world after sn_forward, with one row of targets, into res (nres).
// Ends with a sync.
SN_FUNC void sn_cost_residual(const SnCost *cost, const SnModel *m, const SnWorld *w, SnLane *lane,
                              const sn_real *target, int first, int last, sn_real *res);
// Norms of terms [first, last) of the residuals, without weights, into value (nall). Ends with a sync.
SN_FUNC void sn_cost_norm(const SnCost *cost, SnLane *lane, const sn_real *res, int first, int last, sn_real *value);
// One norm of r[n]: the scalar that sn_cost_norm writes.
SN_FUNC sn_real sn_norm_value(int norm, sn_real width, const sn_real *r, int n);

// What sn_cost_vjp reads beside a state, and where it writes beside the adjoint.
typedef struct SnCostVjp {
  const sn_real *target;  // (ntarget) the row of targets of the state
  const sn_real *weight;  // (nterm) running or terminal weights times the share of the state in the cost
  sn_real *res;           // (nres) scratch
  sn_real *target_bar;    // (ntarget) added to; or NULL
} SnCostVjp;

// Adds to the adjoint `a` of a state the derivative of sum_i weight[i] n_i(r_i), i < nterm, there: to wrench,
// twist_bar[SN_VEL], tendon and actuator bars, qpos_bar, qvel_bar, act_bar, ctrl_bar; and to target_bar that with
// respect to the row of targets. The world is as for sn_cost_residual; between sn_step_vjp (at the end of a horizon
// sn_motion_rest) and sn_position_vjp. Every sensor that is looked at must have a gradient (sn_cost_check_gradient). A
// term of weight 0 adds nothing, whatever its residual. Ends with a sync. Where it is not smooth: cost.c.
SN_FUNC void sn_cost_vjp(const SnCost *cost, const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, SnCostVjp v);

#endif
