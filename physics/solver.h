// Between the files of the solver, and for the adjoint: the Hessian at the solution, and its solves.
#ifndef SINEW_PHYSICS_SOLVER_H_
#define SINEW_PHYSICS_SOLVER_H_

#include "physics/constraint.h"

// solver.c. Sum over i of a_i b_i; needs a sync before, the same value on all lanes.
SN_FUNC sn_real sn_solver_dot(SnWorld *w, SnLane *lane, const sn_real *a, const sn_real *b, int n);

// linesearch.c. Step length along solver_search that minimises the cost from qacc, to |slope| < gtol; 0 when no
// descent is left in the arithmetic. Reads efc_jar, efc_Jv, solver_Ma, solver_Mv. *gain: decrease of the cost.
SN_FUNC sn_real sn_line_search(const SnModel *m, SnWorld *w, SnLane *lane, sn_real gtol, sn_real *gain);

// hessian.c. Makes the factor of H = M + J' C J at efc_state and efc_jar if hessian_valid says that it is stale.
// Available after sn_solve (which leaves it stale when it needed none), and before it once rows exist.
SN_FUNC void sn_hessian_factor(const SnModel *m, SnWorld *w, SnLane *lane);
// hessian.c. x <- H^-1 x, x (nv), in place. Needs the factor, and a sync before.
SN_FUNC void sn_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x);

// Zones of an elliptic contact: with U_0 = mu x_0, U_j = mu_j x_j of a residual x = J a - aref,
// N = U_0 and T = |U_1..|, the cost is 0 on top (N >= mu T), quadratic at the bottom (mu N + T <= 0) and
// Dm/2 (N - mu T)^2 between, Dm = D_0 / (mu^2 (1 + mu^2)).
SN_INLINE SnConstraintState sn_cone_zone(sn_real mu, sn_real N, sn_real T) {
  if (T <= 0) return N >= 0 ? SN_CSTATE_SATISFIED : SN_CSTATE_QUADRATIC;
  if (N >= mu * T) return SN_CSTATE_SATISFIED;
  return mu * N + T <= 0 ? SN_CSTATE_QUADRATIC : SN_CSTATE_CONE;
}

// True on the rows of an elliptic contact after its first: they are treated with the first.
SN_INLINE bool sn_is_cone_tail(const SnWorld *w, int row) {
  return w->efc_type[row] == SN_CNSTR_CONTACT_ELLIPTIC && w->contact[w->efc_id[row]].efc_address != row;
}

#endif
