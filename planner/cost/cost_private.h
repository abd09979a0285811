// The part of a cost that stays on the host: private to cost_*.c.
#ifndef SINEW_PLANNER_COST_COST_PRIVATE_H_
#define SINEW_PLANNER_COST_COST_PRIVATE_H_

#include <stdio.h>

#include "planner/base/arena.h"
#include "planner/cost/cost.h"

typedef struct SnCostOwner {
  const SnTask *task;
  SnArena arena;        // all arrays of the cost
  double *captured;     // targets taken at the start (ntarget)
  double *given;        // targets set live (ntarget)
  double *row;          // scratch: one row of targets (ntarget)
  const SnTerm **term;  // (nall + ngate) terms, measures, gates
  int *gated;           // (ngate) terms that have the gates
  bool *overridden;     // terms whose target is set live (nall + ngate)
  bool *running_only;   // terms that depend on the control, which does not act in the last state (nall)
} SnCostOwner;

// cost_check.c: returns the name in MJCF of the type of sensor i.
const char *sn_cost_sensor_type(const SnModel *m, int i);
// cost_check.c: adds the mistake of looking at sensor i, whose value has `dim` numbers; 0: it is not computed, or none
// is meant.
void sn_cost_refuse_sensor(const SnModel *m, int i, int dim, SnPlace place, SnIssues *issues);
// cost_check.c: adds an issue where the target of a term is an element of another unit or size than the residual.
void sn_cost_check_pair(const SnTerm *t, const SnModel *m, bool same_size, SnIssues *issues);
// cost_check.c: adds an issue for each list of a target that has not the size of the term's value. A frame that does
// not fit is an issue, too. Values of a rotation are quaternions.
void sn_cost_check_goal(const SnTerm *t, int size, bool rotation, SnIssues *issues);

// cost_norm.c: puts the bar of the norm of r[n], times a weight, in the place of r.
SN_FUNC void sn_norm_vjp(SnPenalty p, sn_real weight, sn_real *r, int n);
// cost_norm.c: puts the bar of the residual of term i's gate in the place of it. It is a weight times the term's norm
// times the derivative of the gate. `gate` is what sn_cost_gate returns.
SN_FUNC void sn_cost_gate_vjp(const SnCost *cost, int i, sn_real gate, sn_real weight, sn_real *res);

// Returns the entries of an item's value.
int sn_item_value_size(int type);
// Returns the entries of its residual.
int sn_item_residual_size(int type);
// Returns whether item i is the velocity of sites, bodies or geoms.
SN_FUNC bool sn_item_is_velocity(const SnCost *cost, int i);
// Computes the value of an item in the world after sn_forward, into value[sn_item_value_size(type)].
SN_FUNC void sn_item_value(const SnCost *cost, const SnModel *m, const SnWorld *w, int type, int id, const int end[4],
                           sn_real *value);
// Takes a bar of the residual of item i back to what it looks at and to its target. Adds to the adjoint and to the bars
// of `v`, and reads the inputs of `v`.
SN_FUNC void sn_cost_item_vjp(const SnCost *cost, const SnModel *m, const SnWorld *w, SnAdjoint *a, int i,
                              const SnCostVjp *v, const sn_real *bar);

#endif
