// Between the files of the solver, and for the adjoint: the Hessian at the solution, and its solves.
#ifndef SINEW_PHYSICS_CONSTRAINT_SOLVER_PRIVATE_H_
#define SINEW_PHYSICS_CONSTRAINT_SOLVER_PRIVATE_H_

#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"

enum { SN_MAXSUPER = 8 };   // most rows of the factor of H that are eliminated together
enum { SN_MAXUPDATE = 8 };  // most rows for which updating the factor of H is cheaper than making it

// Returns the force (nv) that acts without constraints: (M + B) a = this + J' f.
SN_INLINE const sn_real *sn_free_force(const SnModel *m, const SnWorld *w) {
  return sn_has_metric(m) ? w->qfrc_metric : w->qfrc_smooth;
}

// ---- linesearch.c ----

// Returns the step length along solver_search that minimises the cost from qacc, to |slope| < gtol. `slope` (negative)
// is the derivative at 0. Returns 0 when no descent is left in the arithmetic. Reads efc_jar, efc_Jv, solver_Ma,
// solver_Mv. *gain gets the decrease of the cost.
SN_FUNC sn_real sn_line_search(const SnModel *m, SnWorld *w, SnLane *lane, sn_real slope, sn_real gtol, sn_real *gain);

// ---- hessian.c ----

// Says what hessian and hessian_inv hold.
typedef enum SnHessianStatus {
  SN_HESSIAN_NONE,     // nothing
  SN_HESSIAN_PATTERN,  // nothing, but the pattern is there
  SN_HESSIAN_UPDATED,  // the factor for hessian_state, by way of updates
  SN_HESSIAN_EXACT     // the factor for hessian_state, made in one go
} SnHessianStatus;

// Makes the factor of H = M + J' C J at efc_state and efc_jar unless hessian_status says that it is exact. Call it
// after sn_solve, which makes none when it needs none.
SN_FUNC void sn_hessian_factor(const SnModel *m, SnWorld *w, SnLane *lane);
// Makes the factor at less cost, by updates, when `changed` rows differ from hessian_state, `cones` of which are or
// were in a cone.
SN_FUNC void sn_hessian_refresh(const SnModel *m, SnWorld *w, SnLane *lane, int changed, int cones);
// Computes r = C x (nefc) with the C of H at efc_state and efc_jar. Needs a sync before, has one at the end.
SN_FUNC void sn_mul_curvature(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *r, const sn_bar *x);

// ---- hessian_factor.c ----

// Replaces x (nv) by H^-1 x. Needs the factor, and a sync before.
SN_FUNC void sn_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *x);

// Finds the pattern of the factor from the blocks of J.
SN_FUNC void sn_factor_pattern(const SnModel *m, SnWorld *w, SnLane *lane);
// Zeroes H on the pattern.
SN_FUNC void sn_factor_clear(const SnModel *m, SnWorld *w, SnLane *lane);
// Replaces the dense H by its factor.
SN_FUNC void sn_factor_eliminate(const SnModel *m, SnWorld *w, SnLane *lane);
// Updates the factor to that of H + s v v', v row `row` of J in `block`. Returns false, with the factor spoilt, where a
// pivot would lose most of its digits.
SN_FUNC bool sn_factor_update(const SnModel *m, SnWorld *w, SnLane *lane, SnBlock block, int row, sn_real s);

// Holds a supernode: its rows, its common columns and its block of values with row length n + size.
typedef struct SnSuper {
  int row, size, n, ld;
  const int *col;
  sn_real *value;
} SnSuper;
SN_INLINE SnSuper sn_super(const SnModel *m, const SnWorld *w, int s) {
  const int *d = w->hessian_super + 4 * s;
  const SnSuper u = {d[0], d[1], d[2], d[1] + d[2], w->hessian_col + s * m->nv, w->hessian_factor + d[3]};
  return u;
}

// ---- hessian_part.c: where lanes pass numbers by shuffles ----

// Returns true where each row of a supernode can have a lane.
SN_INLINE bool sn_has_lane_for_row(const SnLane *lane) {
  return sn_can_shuffle(lane) && sn_lane_count(lane) >= SN_MAXSUPER;
}
// Holds up to four rows of numbers and what they are multiplied by, 0 where there are fewer.
typedef struct SnFourRows {
  const sn_real *row[4];
  sn_real weight[4];
} SnFourRows;
// Adds to the lower triangle of H the products of four rows with themselves: H[col[p]][col[q]] += (weight[0] row[0][p])
// row[0][q] + .. for q <= p < n. Takes the first row alone where `one` says so. Needs a sync before and after.
SN_FUNC void sn_part_add_products(const SnModel *m, SnWorld *w, SnLane *lane, int n, const int *col, SnFourRows four,
                                  bool one);
// Enters the columns of each block of J in hessian_bits, where nv is at most 64. Ends with a sync.
SN_FUNC void sn_part_enter_blocks(SnWorld *w, SnLane *lane);
// Copies the rows of a supernode from the dense H and eliminates them among themselves, where each of them can have a
// lane. Ends with a sync.
SN_FUNC void sn_part_within(const SnModel *m, SnWorld *w, SnLane *lane, SnSuper u);
// Solves like sn_hessian_solve, where each row of a supernode can have a lane.
SN_FUNC void sn_part_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x);

// ---- hessian_warp.c: the same on the lanes of a warp (sn_is_warp), where nv is at most SN_WARP_ROWS * SN_WARP ----

// Finds hessian_bits, and first row and size of the supernodes. Ends with a sync, as do the next two.
SN_FUNC void sn_warp_pattern(const SnModel *m, SnWorld *w, SnLane *lane);
// Makes what sn_factor_eliminate makes.
SN_FUNC void sn_warp_eliminate(const SnModel *m, SnWorld *w, SnLane *lane);
// Solves like sn_hessian_solve.
SN_FUNC void sn_warp_hessian_solve(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x);

// Adds four rows: out[col[q]] += t[0] J[0][q] + .. + t[3] J[3][q] for q in [0, n), rows of J in `row`.
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

// Returns the zone of an elliptic contact. With U_0 = mu x_0, U_j = mu_j x_j of a residual x = J a - aref, N = U_0 and
// T = |U_1..|, the cost is
//   top     N >= mu T       0
//   bottom  mu N + T <= 0   quadratic
//   between                 Dm/2 (N - mu T)^2,    Dm = D_0 / (mu^2 (1 + mu^2))
SN_INLINE SnConstraintState sn_cone_zone(sn_real mu, sn_real N, sn_real T) {
  if (T <= 0) return N >= 0 ? SN_CSTATE_SATISFIED : SN_CSTATE_QUADRATIC;
  if (N >= mu * T) return SN_CSTATE_SATISFIED;
  return mu * N + T <= 0 ? SN_CSTATE_QUADRATIC : SN_CSTATE_CONE;
}

#endif
