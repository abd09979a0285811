// The quadratic model of a state's cost, for Gauss-Newton.
#ifndef SINEW_PLANNER_COST_COST_EXPAND_H_
#define SINEW_PLANNER_COST_COST_EXPAND_H_

#include "planner/cost/cost.h"

// Holds the model of the cost about a state and its controls:
//
//   lx'x + lu'u + x'lxx x / 2 + u'lux x + u'luu u / 2
//
// Differences to them are x, in n = 2 nv + na tangent coordinates, and u. Matrices are row-major and written whole.
typedef struct SnExpansion {
  sn_number *lx;   // (n)
  sn_number *lxx;  // (n, n) symmetric, positive semidefinite
  sn_number *lu;   // (nu); NULL at a state without controls, with lux and luu
  sn_number *lux;  // (nu, n)
  sn_number *luu;  // (nu, nu)
  // Parts that rates of controls add to the model of the step before: to lu, and to the diagonal of luu. NULL: the
  // controls of the step before are given.
  sn_number *before_lu;   // (nu)
  sn_number *before_luu;  // (nu)
} SnExpansion;

// Says what sn_cost_expand reads beside a state, and what it scratches.
typedef struct SnExpandInput {
  SnCostInput in;
  const sn_real *weight;  // (nterm) weights of the terms times the share of the state
  sn_real factor;         // multiplies all weights
  sn_real *res;           // (nres) scratch
  sn_real *bar;           // (nres) scratch
  sn_real *row;           // (n + nu) scratch
  sn_real *before;        // (nu) scratch
  int *at;                // (n + nu) scratch
} SnExpandInput;

// Computes the model in a world whose stages have run; of the adjoint, all is scratch. Residuals count as linear in
// state and controls, norms as the quadratic that touches them from above (cost_expand.c). Every sensor that is looked
// at must have a gradient. Runs on the host.
void sn_cost_expand(const SnCost *cost, const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, SnExpandInput in,
                    const SnExpansion *out);

#endif
