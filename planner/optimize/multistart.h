// A multistart: Adam on the controls of one plan, from one start or several. It is plain data for a thread or a block
// of a GPU. One iteration is
//
//   sn_multistart_init (the first of a plan) or _step, then _controls     each start for itself
//   a rollout of ctrl and its gradient ctrl_bar                           rollout.h, rollout_vjp.h
//   sn_multistart_evaluate                                                each start for itself
//   sn_multistart_select_best                                             all starts of the plan
//
// so n iterations make n - 1 steps, and the first one measures the warm start. A start whose rollout diverged goes half
// the way back to its best controls, as often as it takes. It forgets the mean direction that led it out. A start that
// has no finite controls yet goes half the way to the task's initial plan. A gradient that left the range of numbers
// counts as 0.
//
// sn_multistart_advance comes after each selection if the next plan shall go on from the last iterate. It steps start 0
// ahead: no gradient is without use, and the step of the next iteration, if there is one, is made.
#ifndef SINEW_PLANNER_OPTIMIZE_MULTISTART_H_
#define SINEW_PLANNER_OPTIMIZE_MULTISTART_H_

#include "planner/optimize/adam.h"
#include "planner/rollout/rollout_vjp.h"
#include "planner/optimize/noise.h"

enum { SN_MULTISTART_LISTED = 64 };

// Holds one start.
typedef struct SnMultistartStart {
  sn_real *base;           // (nstep, nu) controls that offsets are added to; without a finite iterate they move, too
  sn_real *offset, *best;  // (knots, nu) of the iterate; of the best one
  sn_real *gradient;       // (knots, nu) at the iterate, normalised, not limited
  SnAdamMoments moments;
  sn_real *ctrl, *ctrl_bar;  // (nstep, nu) of the iterate
  sn_real *term;             // (nterm) weighted parts of its cost: the rollout's sum
  sn_real cost;              // cost of the iterate
  sn_real norm;              // norm of its gradient; NaN where there is none. Before it is made: of the one before
  sn_real best_cost;         // infinity: none yet
  int diverged;              // 1: the iterate's rollout diverged
  int ahead;                 // 1: the iterate is a step ahead of the one that was measured
} SnMultistartStart;

typedef struct SnMultistart {
  // The request.
  SnAdamGrid grid;
  SnAdamRule rule;
  SnNoise noise;  // start i begins as the nominal with noise i, or that of the candidate in listed[i]
  int nlisted;    // starts that are listed; the others have their own number
  int listed[SN_MULTISTART_LISTED];
  const sn_real *initial_ctrl;  // (nu) the task's initial plan
  int keep;                     // on init: 1: start 0 keeps its moments, whose first `left` knots are gone
  int left;                     // counts base steps where every row of a time grid has a knot of its own
  SnGrid time;                  // time grid of the rows
  int starts;                   // number of starts
  // The results.
  sn_real *nominal;     // (nstep, nu) on init where starts begin; then the best controls measured
  int measured;         // 1: best_cost is that of the nominal under the weights in force
  sn_real cost_before;  // cost of the first nominal measured
  sn_real best_cost;
  sn_real gradient_norm;  // at the nominal
  sn_real *best_term;     // (nterm)
  sn_real *next;          // (nstep, nu) where the next plan shall begin; NULL: at the nominal
  int best_start;         // start whose iterate the nominal is; 0 also where none is
} SnMultistart;

// Returns the rows of knots that there can be over nstep base steps: capacity of offset, best, gradient and moments.
SN_INLINE int sn_multistart_knots(int nstep) { return nstep + 2; }

// All of these run on all lanes and end with a sync. Numbers of a start and of the multistart that are no arrays are
// written by one lane.

// Initialises start i from the nominal (candidate 0) or a noisy copy of it. `scratch` has room for
// sn_candidate_scratch(noise.knots, lanes) numbers.
SN_FUNC void sn_multistart_init(const SnModel *m, SnLane *lane, const SnMultistart *r, int i, SnMultistartStart *s,
                                sn_real *scratch);
// Steps from the iterate that was measured to the next.
SN_FUNC void sn_multistart_step(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s);
// Computes the controls of the iterate.
SN_FUNC void sn_multistart_controls(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s);
// Takes what was measured of the iterate: status an SnGradientStatus that is not pending, with ctrl_bar where it is
// done. An iterate that is rolled has a cost and no gradient: it is the last one of its plan.
SN_FUNC void sn_multistart_evaluate(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                    int status, sn_real cost);

// Do the same in parts, between which a thread may pause. sn_multistart_move and then sn_multistart_project of all
// knots is a step, sn_multistart_rows of all rows are the controls. sn_multistart_gradient of all knots, where the
// status is done, and then sn_multistart_take is the evaluation.
SN_FUNC void sn_multistart_move(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s);
SN_FUNC void sn_multistart_project(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                   SnPart knots);
SN_FUNC void sn_multistart_rows(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                SnPart rows);
SN_FUNC void sn_multistart_gradient(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s,
                                    SnPart knots);
SN_FUNC void sn_multistart_take(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *s, int status,
                                sn_real cost);

// Selects the best of the nominal and starts [0, count), in their order; at equal cost the earlier one.
SN_FUNC void sn_multistart_select_best(const SnModel *m, int nterm, SnLane *lane, SnMultistart *r,
                                       const SnMultistartStart *start, int count);
// Steps start 0 ahead if r->next is asked for, and writes its controls there, or the nominal if it is another start's.
SN_FUNC void sn_multistart_advance(const SnModel *m, SnLane *lane, const SnMultistart *r, SnMultistartStart *start);

#endif
