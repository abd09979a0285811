// Between the files of the solver, and for the adjoint: the Hessian at the solution, and its solves.
#ifndef SINEW_PHYSICS_CONSTRAINT_SOLVER_PRIVATE_H_
#define SINEW_PHYSICS_CONSTRAINT_SOLVER_PRIVATE_H_

#include "physics/constraint/constraint_private.h"

enum { SN_MAXSUPER = 8 };   // most rows of the factor of H that are eliminated together
enum { SN_MAXUPDATE = 8 };  // most rows for which updating the factor of H is cheaper than making it

// linesearch.c. Step length along solver_search that minimises the cost from qacc, to |slope| < gtol; `slope`
// (negative) is the derivative at 0. Returns 0 when no descent is left in the arithmetic. Reads efc_jar, efc_Jv,
// solver_Ma, solver_Mv. *gain: decrease of the cost.
SN_FUNC sn_real sn_line_search(const SnModel *m, SnWorld *w, SnLane *lane, sn_real slope, sn_real gtol, sn_real *gain);

// What hessian, hessian_inv hold: nothing; nothing, but the pattern is there; the factor for hessian_state, by way of
// updates; the same, made in one go.
typedef enum SnHessianStatus {
  SN_HESSIAN_NONE,
  SN_HESSIAN_PATTERN,
  SN_HESSIAN_UPDATED,
  SN_HESSIAN_EXACT
} SnHessianStatus;

// hessian.c. Makes the factor of H = M + J' C J at efc_state and efc_jar unless hessian_status says that it is exact.
// Available after sn_solve, which makes none when it needed none.
SN_FUNC void sn_hessian_factor(const SnModel *m, SnWorld *w, SnLane *lane);
// hessian.c. The same at less cost, when `changed` rows differ from hessian_state, `cones` of which are or were in a
// cone.
SN_FUNC void sn_hessian_refresh(const SnModel *m, SnWorld *w, SnLane *lane, int changed, int cones);
// hessian.c. r = C x (nefc) with the C of H at efc_state and efc_jar. Needs a sync before, has one at the end.
SN_FUNC void sn_mul_curvature(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *r, const sn_real *x);
// hessian_factor.c. x <- H^-1 x, x (nv), in place. Needs the factor, and a sync before.
SN_FUNC void sn_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x);

// hessian_factor.c. The pattern of the factor from the blocks of J; zeroes of H on it; the factor of the dense H; the
// factor of H + s v v', v row `row` of J in `block` (false, with the factor spoilt, where a pivot would lose most of
// its digits).
SN_FUNC void sn_factor_pattern(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_factor_clear(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC void sn_factor_eliminate(const SnModel *m, SnWorld *w, SnLane *lane);
SN_FUNC bool sn_factor_update(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, int row, sn_real s);

// out[col[q]] += t[0] J[0][q] + .. + t[3] J[3][q] for q in [0, n), rows of J in `row`.
SN_INLINE void sn_add_rows(sn_real *SN_RESTRICT out, const int *SN_RESTRICT col, const sn_real *const row[4],
                           const sn_real t[4], int n) {
  const sn_real *SN_RESTRICT a = row[0], *SN_RESTRICT b = row[1], *SN_RESTRICT c = row[2], *SN_RESTRICT d = row[3];
  const sn_real t0 = t[0], t1 = t[1], t2 = t[2], t3 = t[3];
  int q = 0;
  for (; q + 4 <= n; q += 4) {
    sn_real s[4];
    for (int k = 0; k < 4; ++k) s[k] = (t0 * a[q + k] + t1 * b[q + k]) + (t2 * c[q + k] + t3 * d[q + k]);
    for (int k = 0; k < 4; ++k) out[col[q + k]] += s[k];
  }
  if (n & 2) {
    sn_real s[2];
    for (int k = 0; k < 2; ++k) s[k] = (t0 * a[q + k] + t1 * b[q + k]) + (t2 * c[q + k] + t3 * d[q + k]);
    for (int k = 0; k < 2; ++k) out[col[q + k]] += s[k];
    q += 2;
  }
  if (n & 1) out[col[q]] += (t0 * a[q] + t1 * b[q]) + (t2 * c[q] + t3 * d[q]);
}

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
