// Plans: controls over a horizon on the model's time step, normalised controls, the shift of a plan
// in time, and the rollout of its controls as a result.
#ifndef SINEW_PLANNER_OPTIMIZE_CONTROLS_H_
#define SINEW_PLANNER_OPTIMIZE_CONTROLS_H_

#include "physics/model/model.h"
#include "planner/task/settings.h"

// Tells the outcome of planning. It is data, not an error.
typedef enum SnPlanStatus {
  SN_PLAN_OK,
  SN_PLAN_WARM_START,  // the deadline left no time: the shifted plan of before, not evaluated
  SN_PLAN_DIVERGED     // every candidate diverged: no controls
} SnPlanStatus;

// A finished plan. Arrays belong to the planner and stay until its next call.
//
// Row k of ctrl holds from start + k * step; start is the stamp of the state that the plan answers. The
// first `lead` rows are the plan in force that was assumed to run while this one was made.
typedef struct SnPlan {
  SnPlanStatus status;
  uint64_t number;  // of the planner, 1, 2, ...
  double stamp;     // time of the state that the plan answers [s]
  double start;     // time of the first row of ctrl [s], = stamp
  double step;      // [s] between rows
  int lead;         // rows before the optimised ones
  int nstep;        // rows, lead included; 0 when diverged
  int nu, nq, nv, na, nterm;
  const sn_real *ctrl;   // (nstep, nu)
  const sn_real *qpos;   // (nstep + 1, nq) predicted states if asked and the time allowed, else NULL
  const sn_real *qvel;   // (nstep + 1, nv)
  const sn_real *act;    // (nstep + 1, na)
  uint64_t version;      // of the settings, weights and targets that its costs belong to: sn_planner_set_version
  double cost_before;    // of the warm start; infinity when it diverged, NaN when not evaluated
  double cost_after;     // of this plan, at most cost_before
  const double *term;    // (nterm) weighted parts of cost_after; NaN when not evaluated
  double cost_now;       // sum of weight * norm in the state that was answered
  int iterations;        // begun and used: the last may be partial
  int candidates;        // used of the last iteration, from 0 on. Both together reproduce the plan.
  double gradient_norm;  // NaN where the planner has no gradient
  bool deadline_met;     // finished before the deadline
  bool act_estimated;    // act was not given: integrated from the controls
  const char *backend;   // that made it: SnBackend.name, static memory
  bool device_lost;      // the planner's backend is lost: made by the fallback, or what there was of it
  int warn;              // SN_WARN_* bits of the rollouts that count (overflow of contacts or rows)
  const char *remark;    // what a user should know of how it was made, e.g. that settings were refused; "": nothing
  double seconds;        // computing time from begin to finish, pauses between slices included
} SnPlan;

// Normalised controls run over [-1, 1] where a control is limited to [lo, hi], except that [0, 1] (muscles) stays as it
// is, and unlimited controls stay as they are.

// Physical units of control i in one normalised one: half its range; 1 for [0, 1] and for unlimited controls.
SN_INLINE sn_real sn_ctrl_unit(const SnModel *m, int i) {
  const sn_real lo = m->ctrl_range[2 * i], hi = m->ctrl_range[2 * i + 1];
  return !m->ctrl_limited[i] || (lo == 0 && hi == 1) ? SN_R(1.0) : SN_R(0.5) * (hi - lo);
}
// Half the range of control i; 1 when it is unlimited.
SN_INLINE sn_real sn_ctrl_half_range(const SnModel *m, int i) {
  return m->ctrl_limited[i] ? SN_R(0.5) * (m->ctrl_range[2 * i + 1] - m->ctrl_range[2 * i]) : SN_R(1.0);
}
// Control i in its range.
SN_INLINE sn_real sn_ctrl_clip(const SnModel *m, int i, sn_real u) {
  return m->ctrl_limited[i] ? sn_clip(u, m->ctrl_range[2 * i], m->ctrl_range[2 * i + 1]) : u;
}
// Clamps n rows of controls to their ranges, in place.
void sn_ctrl_clamp(const SnModel *m, sn_real *ctrl, int n);

// Shifts a plan of nstep rows by k >= 0 steps in place: row t becomes row t + k, and the rows that are
// left without one repeat the last row (SN_TAIL_HOLD) or take `initial` (nu).
void sn_controls_shift(sn_real *ctrl, int nstep, int nu, int k, SnTail tail, const sn_real *initial);

#endif
