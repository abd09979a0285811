// The constrained acceleration: Newton's method on the primal problem (manual, Computation, Constraint solver)
//
//   min_a  1/2 (a - a_s)' M (a - a_s) + sum_i s_i((J a - aref)_i)
//
// with s_i: D x^2 / 2 for equalities; Huber's function of width R*loss for friction loss; D x^2 / 2 where x < 0
// for limits, frictionless contacts and pyramid edges; the function of solver_private.h for an elliptic contact. The
// problem is strictly convex, so the solution does not depend on how it is found.
//
// An iteration: force = -ds/dx and state of every row; gradient M a - M a_s - J' force; H = M + J' C J with
// C = d2s/dx2, factored only if a state is not the one that it was factored with (or a cone is curved); a step
// along v = -H^-1 gradient. Where no state changes at a + v and no cone is curved, that is the minimum; elsewhere
// an exact line search finds the length. It ends when the scaled gain, gradient or predicted gain is below
// `tolerance`; the scale is 1 / trace(M). It starts from the better of the last acceleration and a_s, and makes no
// iteration at all where the gradient and the bound g' M^-1 g / 2 on the suboptimality are below tolerance already.
//
// Adjoint: the solution is differentiated, not the iteration. M (a - a_s) = J' F(J a - aref) holds for every value of
// its parameters, so da = H^-1 (..) with the H of the solution, and a_bar becomes the multiplier lambda = H^-1 a_bar of
// adjoint.h. That is meant for the exact solution: a Newton that stopped early is finished first. Where a row is about
// to change its state (J a = aref of a limit, the boundary of a cone or of a friction loss) the derivative is that of
// the state that the row is in.
//
// Where the scalar depends on f = F(J a - aref), too, with bars g, df = -C (J da + dJ a - daref) + .. adds -J' C g to
// a_bar; and where df stands, J lambda becomes J lambda + g.
#include "physics/constraint/solver_private.h"

#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"
#include "physics/dynamics/dynamics.h"

// Steps in a row on one and the same quadratic: the first finds its minimum, the others only take rounding away.
enum { SN_REFINEMENTS = 3 };
// Most steps with which sn_solve_finish ends an iteration that stopped early.
enum { SN_FINISH = 50 };

#if !defined(SN_PACK)
// Force and state of the elliptic contact at `row` for residual x (dim); returns its cost.
SN_LOCAL sn_real cone_force(const SnWorld *w, int row, const sn_real *x, sn_real *force, int *state) {
  const SnContact *con = w->contact + w->efc_id[row];
  const sn_real mu = con->mu, N = mu * x[0];
  sn_real U[6], TT = 0;
  for (int j = 1; j < con->dim; ++j) {
    U[j] = con->friction[j - 1] * x[j];
    TT += U[j] * U[j];
  }
  const sn_real T = sn_sqrt(TT);
  sn_real cost = 0;
  *state = (int)sn_cone_zone(mu, N, T);
  if (*state == SN_CSTATE_SATISFIED) {
    sn_zero(force, con->dim);
  } else if (*state == SN_CSTATE_QUADRATIC) {
    for (int j = 0; j < con->dim; ++j) {
      force[j] = -w->efc_D[row + j] * x[j];
      cost -= SN_R(0.5) * force[j] * x[j];
    }
  } else {
    const sn_real Dm = w->efc_D[row] / (mu * mu * (1 + mu * mu)), gap = N - mu * T;
    cost = SN_R(0.5) * Dm * gap * gap;
    force[0] = -Dm * gap * mu;
    for (int j = 1; j < con->dim; ++j) force[j] = -force[0] / T * U[j] * con->friction[j - 1];
  }
  return cost;
}

// Cost of friction loss row `row` at residual x, its force and state.
SN_LOCAL sn_real friction_force(const SnWorld *w, int row, sn_real x, sn_real *force, int *state) {
  const sn_real loss = w->efc_frictionloss[row], bound = w->efc_R[row] * loss;
  if (x <= -bound || x >= bound) {
    *force = x < 0 ? loss : -loss;
    *state = x < 0 ? SN_CSTATE_LINEARNEG : SN_CSTATE_LINEARPOS;
    return loss * (sn_abs(x) - SN_R(0.5) * bound);
  }
  *force = -w->efc_D[row] * x;
  *state = SN_CSTATE_QUADRATIC;
  return SN_R(-0.5) * *force * x;
}

SN_FUNC sn_real sn_row_boundary(const SnWorld *w, int row, const sn_real *jar, int state, int other) {
  const int ne = w->ne[0], nef = ne + w->nf[0];
  const bool stiff = state == SN_CSTATE_QUADRATIC || (state == SN_CSTATE_CONE && other == SN_CSTATE_SATISFIED);
  const sn_real scale = stiff ? 1 / (1 - w->efc_KBIP[4 * row + 2]) : 1;
  if (row >= ne && row < nef) return scale * (sn_abs(jar[row]) - w->efc_R[row] * w->efc_frictionloss[row]);
  if (w->efc_type[row] != SN_CNSTR_CONTACT_ELLIPTIC) return scale * jar[row];
  const SnContact *con = w->contact + w->efc_id[row];
  const sn_real mu = con->mu, N = mu * jar[row];
  sn_real TT = 0;
  for (int j = 1; j < con->dim; ++j) TT += con->friction[j - 1] * jar[row + j] * con->friction[j - 1] * jar[row + j];
  if (state == SN_CSTATE_SATISFIED || other == SN_CSTATE_SATISFIED) return scale * (N - mu * sn_sqrt(TT));
  return scale * (mu * N + sn_sqrt(TT));
}

// Cost of the row at residuals x (nefc); that of an elliptic contact on its first row.
SN_INLINE sn_real row_cost(const SnWorld *w, int row, const sn_real *x) {
  const int ne = w->ne[0], nef = ne + w->nf[0];
  sn_real force[6];
  int state;
  if (row >= ne && row < nef) return friction_force(w, row, x[row], force, &state);
  if (w->efc_type[row] == SN_CNSTR_CONTACT_ELLIPTIC)
    return sn_is_cone_tail(w, row) ? 0 : cone_force(w, row, x + row, force, &state);
  const sn_real pull = row < ne ? x[row] : sn_min(x[row], 0);
  return SN_R(0.5) * w->efc_D[row] * pull * pull;
}

// Rows whose state is not the one in the factor of H, and rows that are or were in a cone.
typedef struct StateChange {
  int changed, cones;
} StateChange;

// Enters the state of rows [row, row + num) and counts its change.
SN_INLINE void put_state(SnWorld *w, int row, int num, int state, StateChange *mine) {
  mine->changed += state != w->hessian_state[row] ? num : 0;
  mine->cones += state == SN_CSTATE_CONE || w->hessian_state[row] == SN_CSTATE_CONE;
  for (int j = 0; j < num; ++j) w->efc_state[row + j] = state;
}

// Force and state of row i, of an equality, a friction loss or, on its first row, an elliptic contact; or of a row that
// pushes where its residual is negative.
SN_LOCAL void update_row(SnWorld *w, int i, sn_real alpha, StateChange *mine) {
  const sn_real *jar = w->efc_jar, *Jv = w->efc_Jv, x = jar[i] + alpha * Jv[i];
  const int ne = w->ne[0], nef = ne + w->nf[0];
  if (i >= ne && i < nef) {
    int state;
    friction_force(w, i, x, w->efc_force + i, &state);
    put_state(w, i, 1, state, mine);
  } else if (w->efc_type[i] == SN_CNSTR_CONTACT_ELLIPTIC) {
    if (sn_is_cone_tail(w, i)) return;
    const int dim = w->contact[w->efc_id[i]].dim;
    sn_real y[6];
    int state;
    for (int j = 0; j < dim; ++j) y[j] = jar[i + j] + alpha * Jv[i + j];
    cone_force(w, i, y, w->efc_force + i, &state);
    put_state(w, i, dim, state, mine);
  } else {
    const bool pulls = i < ne || x < 0;
    w->efc_force[i] = pulls ? -w->efc_D[i] * x : 0;
    put_state(w, i, 1, pulls ? SN_CSTATE_QUADRATIC : SN_CSTATE_SATISFIED, mine);
  }
}

// The same of all rows behind `from`, which push one way, as vector units take them; returns how many changed.
SN_LOCAL int update_one_sided(SnWorld *w, SnLane *lane, int from, sn_real alpha) {
  const sn_real *SN_RESTRICT jar = w->efc_jar + from, *SN_RESTRICT Jv = w->efc_Jv + from;
  const sn_real *SN_RESTRICT D = w->efc_D + from;
  sn_real *SN_RESTRICT force = w->efc_force + from;
  const int *SN_RESTRICT old = w->hessian_state + from, n = w->nefc[0] - from;
  int *SN_RESTRICT state = w->efc_state + from, changed = 0;
  (void)lane;
  SN_FOR(i, n) {
    const sn_real x = jar[i] + alpha * Jv[i];
    force[i] = x < 0 ? -D[i] * x : 0;
    state[i] = x < 0 ? SN_CSTATE_QUADRATIC : SN_CSTATE_SATISFIED;
    changed += state[i] != old[i];
  }
  return changed;
}

// efc_force and efc_state at efc_jar + alpha efc_Jv.
SN_LOCAL StateChange update_forces(const SnModel *m, SnWorld *w, SnLane *lane, sn_real alpha) {
  const bool elliptic = m->opt.cone == SN_CONE_ELLIPTIC;
  const int mixed = elliptic ? w->nefc[0] : w->ne[0] + w->nf[0];
  StateChange mine = {0, 0};
  SN_FOR(i, mixed) update_row(w, i, alpha, &mine);
  mine.changed += update_one_sided(w, lane, mixed, alpha);
  SN_SYNC(lane);
  const StateChange change = {sn_count(lane, mine.changed), elliptic ? sn_count(lane, mine.cones) : 0};
  return change;
}

// solver_grad from solver_Ma and qfrc_constraint; adds its square to part.
SN_LOCAL void gradient_parts(SnWorld *w, SnLane *lane, int nv, const sn_real *smooth_force, sn_real *SN_RESTRICT part) {
  const sn_real *SN_RESTRICT Ma = w->solver_Ma, *SN_RESTRICT smooth = smooth_force;
  const sn_real *SN_RESTRICT constraint = w->qfrc_constraint;
  sn_real *SN_RESTRICT grad = w->solver_grad;
  (void)lane;
  SN_FOR_PARTS(k, i, nv) {
    const sn_real g = Ma[i] - smooth[i] - constraint[i];
    grad[i] = g;
    part[k] += g * g;
  }
}

// Gradient from forces and solver_Ma; returns its norm.
SN_LOCAL sn_real update_gradient(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_real *part = w->solver_part;
  sn_mul_Jt(m, w, lane, w->qfrc_constraint, w->efc_force);
  SN_FOR(k, SN_VLANES) part[k] = 0;
  gradient_parts(w, lane, m->nv, sn_free_force(m, w), part);
  SN_SYNC(lane);
  return sn_sqrt(sn_sum_parts(lane, part));
}

// r = J a - aref.
SN_LOCAL void row_residual(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *r, const sn_real *a) {
  sn_mul_J(m, w, lane, r, a);
  SN_FOR(i, w->nefc[0]) r[i] -= w->efc_aref[i];
  SN_SYNC(lane);
}

// Adds the costs at efc_Jv less those at efc_jar of all rows behind `from`, which push one way.
SN_LOCAL void one_sided_costs(const SnWorld *w, SnLane *lane, int from, sn_real *SN_RESTRICT part) {
  const sn_real *SN_RESTRICT x = w->efc_Jv, *SN_RESTRICT y = w->efc_jar, *SN_RESTRICT D = w->efc_D;
  const int nefc = w->nefc[0];
  (void)lane;
  SN_FOR_PARTS_FROM(k, i, from, nefc) {
    const sn_real px = sn_min(x[i], 0), py = sn_min(y[i], 0), half = SN_R(0.5) * D[i];
    part[k] += half * px * px - half * py * py;
  }
}

// True where qacc_warmstart costs no more than qacc_smooth; efc_Jv, efc_jar and solver_Ma are the residuals of the
// two and M qacc_warmstart.
SN_LOCAL bool is_warm_better(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_real *part = w->solver_part;
  SN_FOR(k, SN_VLANES) part[k] = 0;
  const int mixed = m->opt.cone == SN_CONE_ELLIPTIC ? w->nefc[0] : w->ne[0] + w->nf[0];
  SN_FOR_PARTS(k, i, mixed) part[k] += row_cost(w, i, w->efc_Jv) - row_cost(w, i, w->efc_jar);
  one_sided_costs(w, lane, mixed, part);
  const sn_real *smooth = sn_free_force(m, w);
  SN_FOR_PARTS(k, i, m->nv) {
    const sn_real force = w->solver_Ma[i] - smooth[i];
    part[k] += SN_R(0.5) * force * (w->qacc_warmstart[i] - w->qacc_smooth[i]);
  }
  SN_SYNC(lane);
  return sn_sum_parts(lane, part) <= 0;
}

// qacc, solver_Ma and efc_jar of the cheaper of qacc_warmstart and qacc_smooth. The factor of H stays if its states are
// those of the start, which only a factor made in one go is compared with.
SN_LOCAL StateChange newton_start(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int status = w->hessian_status[0];
  const bool factored = status == SN_HESSIAN_EXACT;
  bool warm = false;
  row_residual(m, w, lane, w->efc_jar, w->qacc_smooth);
  if (!(m->opt.disableflags & SN_DSBL_WARMSTART)) {
    row_residual(m, w, lane, w->efc_Jv, w->qacc_warmstart);
    sn_mul_metric(m, w, lane, w->solver_Ma, w->qacc_warmstart);
    warm = is_warm_better(m, w, lane);
  }
  if (!warm) sn_mul_metric(m, w, lane, w->solver_Ma, w->qacc_smooth);
  SN_FOR(i, m->nv) w->qacc[i] = warm ? w->qacc_warmstart[i] : w->qacc_smooth[i];
  SN_FOR(i, w->nefc[0]) {
    if (warm) w->efc_jar[i] = w->efc_Jv[i];
    w->efc_Jv[i] = 0;
    if (!factored) w->hessian_state[i] = -1;
  }
  SN_SYNC(lane);
  const StateChange change = update_forces(m, w, lane, 0);
  if (status != SN_HESSIAN_NONE && !(factored && change.changed + change.cones == 0))
    SN_ONE(lane) w->hessian_status[0] = SN_HESSIAN_PATTERN;
  SN_SYNC(lane);
  return change;
}

// 1 / trace(M), the unit in which gains and gradients are compared with the tolerance.
SN_LOCAL sn_real solver_scale(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_real *part = w->solver_part;
  SN_FOR(k, SN_VLANES) part[k] = 0;
  SN_FOR_PARTS(k, i, m->nv) part[k] += w->M[m->M_rowadr[i] + m->M_rownnz[i] - 1];
  SN_SYNC(lane);
  return 1 / sn_max(SN_MINVAL, sn_sum_parts(lane, part));
}

// g' M^-1 g / 2, which is at least the distance of the cost from its minimum.
SN_LOCAL sn_real gain_bound(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_real *part = w->solver_part;
  SN_FOR(i, m->nv) w->solver_search[i] = w->solver_grad[i];
  SN_SYNC(lane);
  sn_solve_LD(m, lane, w->qLD, w->qLDiagInv, w->solver_search);
  SN_FOR(k, SN_VLANES) part[k] = 0;
  SN_FOR_PARTS(k, i, m->nv) part[k] += w->solver_grad[i] * w->solver_search[i];
  SN_SYNC(lane);
  return SN_R(0.5) * sn_sum_parts(lane, part);
}

// Adds the slope along solver_search and the square of its length.
SN_LOCAL void direction_parts(const SnWorld *w, SnLane *lane, int nv, sn_real *SN_RESTRICT slope,
                              sn_real *SN_RESTRICT square) {
  const sn_real *SN_RESTRICT v = w->solver_search, *SN_RESTRICT grad = w->solver_grad;
  (void)lane;
  SN_FOR_PARTS(k, i, nv) {
    slope[k] += grad[i] * v[i];
    square[k] += v[i] * v[i];
  }
}

// solver_search = -H^-1 gradient. Returns the slope of the cost along it, minus twice the gain that the quadratic
// model predicts; *norm: its length.
SN_LOCAL sn_real newton_direction(const SnModel *m, SnWorld *w, SnLane *lane, StateChange change, sn_real *norm) {
  sn_real *part = w->solver_part;
  sn_hessian_refresh(m, w, lane, change.changed, change.cones);
  SN_FOR(i, m->nv) w->solver_search[i] = -w->solver_grad[i];
  SN_SYNC(lane);
  sn_hessian_solve(m, w, lane, w->solver_search);
  for (int j = 0; j < 2; ++j) SN_FOR(k, SN_VLANES) part[j * SN_VLANES + k] = 0;
  direction_parts(w, lane, m->nv, part, part + SN_VLANES);
  SN_SYNC(lane);
  *norm = sn_sqrt(sn_sum_parts(lane, part + SN_VLANES));
  return sn_min(0, sn_sum_parts(lane, part));
}

// True where the whole step along solver_search does not end at the bottom of the quadratic model: where rows that
// depend on each other are stiff, H has lost so many digits that its factor leads elsewhere. Needs the forces there.
SN_LOCAL bool step_misses(const SnModel *m, SnWorld *w, SnLane *lane, sn_real slope) {
  sn_real *part = w->solver_part, *size = part + SN_VLANES;
  const sn_real *smooth = sn_free_force(m, w);
  SN_FOR(k, SN_VLANES) part[k] = size[k] = 0;
  SN_FOR_PARTS(k, i, m->nv) {
    const sn_real term = w->solver_search[i] * (w->solver_Ma[i] + w->solver_Mv[i] - smooth[i]);
    part[k] += term;
    size[k] += sn_abs(term);
  }
  SN_FOR_PARTS(k, i, w->nefc[0]) {
    const sn_real term = w->efc_force[i] * w->efc_Jv[i];
    part[k] -= term;
    size[k] += sn_abs(term);
  }
  SN_SYNC(lane);
  const sn_real after = sn_sum_parts(lane, part), all = sn_sum_parts(lane, size);
  return !(sn_abs(after) <= SN_R(0.01) * sn_abs(slope) + SN_R(1e6) * SN_EPS * all);
}

// One step along solver_search, on which the cost has slope `slope` at first; returns the gain, or 0 where no
// descent is left. gtol: slope at which the line search stops.
SN_LOCAL sn_real newton_step(const SnModel *m, SnWorld *w, SnLane *lane, sn_real slope, sn_real gtol,
                             StateChange *change) {
  sn_mul_metric(m, w, lane, w->solver_Mv, w->solver_search);
  sn_mul_J(m, w, lane, w->efc_Jv, w->solver_search);
  sn_real gain = SN_R(-0.5) * slope, alpha = 1;
  *change = update_forces(m, w, lane, 1);
  if (change->changed + change->cones > 0 || step_misses(m, w, lane, slope)) {
    alpha = sn_line_search(m, w, lane, slope, gtol, &gain);
    if (alpha != 1) *change = update_forces(m, w, lane, alpha);
  }
  SN_FOR(i, m->nv) {
    w->qacc[i] += alpha * w->solver_search[i];
    w->solver_Ma[i] += alpha * w->solver_Mv[i];
  }
  SN_FOR(i, w->nefc[0]) w->efc_jar[i] += alpha * w->efc_Jv[i];
  SN_SYNC(lane);
  return gain;
}

// Newton iterations from the start; returns their number, or -1 when they did not suffice.
SN_LOCAL int newton_iterate(const SnModel *m, SnWorld *w, SnLane *lane, StateChange *change) {
  const sn_real scale = solver_scale(m, w, lane), tol = m->opt.tolerance;
  const bool flat = scale * update_gradient(m, w, lane) < tol;
  if (flat && scale * gain_bound(m, w, lane) < tol) return 0;
  sn_real norm, slope = newton_direction(m, w, lane, *change, &norm);
  if (flat && SN_R(-0.5) * scale * slope < tol) return 0;
  for (int iter = 0, steady = 0; iter < m->opt.iterations; ++iter) {
    if (norm < SN_MINVAL) return iter;
    const sn_real gain = scale * newton_step(m, w, lane, slope, tol * m->opt.ls_tolerance * norm / scale, change);
    const sn_real gradient = scale * update_gradient(m, w, lane);
    if (gain == 0) return iter;
    steady = change->changed + change->cones == 0 ? steady + 1 : 0;
    if (gain < tol || gradient < tol || steady == SN_REFINEMENTS) return iter + 1;
    slope = newton_direction(m, w, lane, *change, &norm);
    change->changed = change->cones = 0;
    if (SN_R(-0.5) * scale * slope < tol) return iter + 1;
  }
  return -1;
}

// Without rows the smooth acceleration is the answer.
SN_LOCAL void solve_free(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) {
    w->qacc[i] = w->qacc_smooth[i];
    w->qfrc_constraint[i] = 0;
  }
  SN_ONE(lane) w->solver_niter[0] = 0;
  SN_SYNC(lane);
  if (sn_has_metric(m)) sn_hessian_factor(m, w, lane);  // which the adjoint solves with
}

// Newton from the start, with its outcome; returns false where the iterations did not suffice.
SN_LOCAL bool solve_rows(const SnModel *m, SnWorld *w, SnLane *lane) {
  StateChange change = newton_start(m, w, lane);
  const int niter = newton_iterate(m, w, lane, &change);
  SN_ONE(lane) {
    w->solver_niter[0] = niter < 0 ? m->opt.iterations : niter;
    // the last step changed the rows that curve: the factor is that of another point
    if (change.changed + change.cones > 0 && w->hessian_status[0] != SN_HESSIAN_NONE)
      w->hessian_status[0] = SN_HESSIAN_PATTERN;
  }
  SN_SYNC(lane);
  return niter >= 0;
}

SN_FUNC void sn_solve_metric(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *x) {
  SN_FOR(i, w->nefc[0]) w->efc_state[i] = SN_CSTATE_SATISFIED;
  SN_ONE(lane) w->hessian_status[0] = SN_HESSIAN_NONE;
  SN_SYNC(lane);
  sn_hessian_factor(m, w, lane);
  sn_hessian_solve(m, w, lane, x);
}

// Says which acceleration a free body gets that stands alone.
typedef enum SolveAlone {
  ALONE_SMOOTH,  // the solver's
  ALONE_OWN,     // that of its own equations
  ALONE_KEPT     // the one that sn_solve has left in qacc_warmstart
} SolveAlone;

SN_LOCAL void solve_alone(const SnModel *m, SnWorld *w, SnLane *lane, SolveAlone which) {
  const sn_real *from = which == ALONE_KEPT ? w->qacc_warmstart : w->qacc_smooth;
  if (!sn_has_metric(m)) return;
  SN_FOR(k, m->nfreebody) {
    const int i = m->freebody_list[k], adr = m->body_dofadr[i];
    if (!sn_free_is_alone(m, w, i)) continue;
    for (int r = adr; r < adr + 6; ++r) w->qacc[r] = from[r];
    if (which == ALONE_OWN) sn_free_body(m, w, i, w->qacc);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_solve(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_ONE(lane) {
    w->hessian_status[0] = SN_HESSIAN_NONE;
    w->solver_exact[0] = 0;
  }
  SN_SYNC(lane);
  if (w->nefc[0] == 0)
    solve_free(m, w, lane);
  else if (!solve_rows(m, w, lane))
    SN_ONE(lane) *w->warn |= SN_WARN_NOT_CONVERGED;
  SN_SYNC(lane);
  if (sn_has_noslip(m) && w->nefc[0] > 0) sn_noslip(m, w, lane);
  solve_alone(m, w, lane, ALONE_OWN);
  int bad = 0;
  SN_FOR(i, m->nv) bad += sn_is_bad(w->qacc[i]);
  if (sn_count(lane, bad) == 0) SN_FOR(i, m->nv) w->qacc_warmstart[i] = w->qacc[i];
  SN_SYNC(lane);
}

// |qacc| + |qacc_smooth|, what an error of qacc is compared with.
SN_LOCAL sn_real acceleration_size(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_real *part = w->solver_part;
  for (int j = 0; j < 2; ++j) SN_FOR(k, SN_VLANES) part[j * SN_VLANES + k] = 0;
  SN_FOR_PARTS(k, i, m->nv) {
    part[k] += w->qacc[i] * w->qacc[i];
    part[SN_VLANES + k] += w->qacc_smooth[i] * w->qacc_smooth[i];
  }
  SN_SYNC(lane);
  const sn_real qacc = sn_sqrt(sn_sum_parts(lane, part));
  return qacc + sn_sqrt(sn_sum_parts(lane, part + SN_VLANES));
}

// Newton steps until they are as small as rounding; leaves the factor of H at the solution.
SN_LOCAL void newton_finish(const SnModel *m, SnWorld *w, SnLane *lane) {
  const sn_real tol = sn_min(SN_R(1e5) * SN_EPS, SN_R(1e-4)) * acceleration_size(m, w, lane);
  StateChange change = {0, 0};
  for (int iter = 0; iter < SN_FINISH; ++iter) {
    sn_real norm;
    const sn_real slope = newton_direction(m, w, lane, change, &norm);
    change.changed = change.cones = 0;
    if (!(norm > tol)) return;
    const sn_real gain = newton_step(m, w, lane, slope, SN_R(-0.01) * slope, &change);
    update_gradient(m, w, lane);
    // nothing curves and no state has changed: that was the minimum
    if (gain == 0 || change.changed + change.cones == 0) break;
  }
  sn_hessian_refresh(m, w, lane, change.changed, change.cones);
}

SN_FUNC void sn_solve_finish(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (w->solver_exact[0] == 1) return;
  const bool noslip = sn_has_noslip(m) && w->nefc[0] > 0;
  if (noslip) sn_noslip_exchange(m, w, lane);
  if (w->nefc[0] > 0) {
    solve_alone(m, w, lane, ALONE_SMOOTH);
    newton_finish(m, w, lane);
  }
  SN_SYNC(lane);
  solve_alone(m, w, lane, ALONE_OWN);
  if (noslip) sn_noslip(m, w, lane);
  SN_ONE(lane) w->solver_exact[0] = 1;
  SN_SYNC(lane);
}

SN_FUNC void sn_solve_again(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (w->nefc[0] > 0) solve_rows(m, w, lane);
  if (sn_has_noslip(m)) sn_noslip_keep(m, w, lane);
  sn_solve_finish(m, w, lane);
  solve_alone(m, w, lane, ALONE_KEPT);  // the velocity is that after the step already
}
#endif

// What lambda is made of, and the motions of the solution.
SN_LOCAL void solve_motions(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int nv = m->nv;
  SN_FOR(i, nv) {
    a->motion[SN_LAMBDA * nv + i] = a->qacc_bar[i];
    a->motion[SN_ACC * nv + i] = sn_bar_of(w->qacc[i]);
    a->motion[SN_VEL * nv + i] = sn_bar_of(w->qvel[i]);
  }
  SN_SYNC(lane);
  if (!sn_has_metric(m)) return;
  SN_FOR(k, m->nfreebody) {
    const int first = m->body_dofadr[m->freebody_list[k]];
    const bool alone = sn_free_is_alone(m, w, m->freebody_list[k]);
    for (int i = first; alone && i < first + 6; ++i) a->motion[SN_ACC * nv + i] = sn_bar_of(w->qacc_smooth[i]);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_solve_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_bar *lambda = a->motion + SN_LAMBDA * m->nv;
  sn_solve_finish(m, w, lane);
  if (sn_has_metric(m)) sn_free_alone_vjp(m, w, a, lane);
  solve_motions(m, w, a, lane);
  if (w->nefc[0] == 0) {
    if (sn_has_metric(m))
      sn_hessian_solve(m, w, lane, lambda);
    else
      sn_solve_LD(m, lane, w->qLD, w->qLDiagInv, lambda);
    return;
  }
  if (sn_has_noslip(m)) {
    SN_FOR(i, w->nefc[0]) a->slip_p[i] = sn_bar_of(0);
    SN_SYNC(lane);
    sn_noslip_solve_vjp(m, w, a, lane);
    return;
  }
  sn_hessian_solve(m, w, lane, lambda);
  sn_mul_J(m, w, lane, a->row_lambda, lambda);
  sn_mul_curvature(m, w, lane, a->row_c, a->row_lambda);
}

#if !defined(SN_PACK)
SN_FUNC void sn_solve_force_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_real *pull = a->motion + SN_LAMBDA * m->nv;
  sn_solve_finish(m, w, lane);
  SN_SYNC(lane);
  if (sn_has_noslip(m) && w->nefc[0] > 0) {
    solve_motions(m, w, a, lane);
    SN_FOR(r, w->nefc[0]) a->slip_p[r] = -a->row_pos[r];
    SN_SYNC(lane);
    sn_noslip_solve_vjp(m, w, a, lane);
    return;
  }
  if (w->nefc[0] > 0) {
    sn_mul_curvature(m, w, lane, a->row_c, a->row_pos);
    sn_mul_Jt(m, w, lane, pull, a->row_c);
    SN_FOR(i, m->nv) a->qacc_bar[i] -= pull[i];
    SN_SYNC(lane);
  }
  sn_solve_vjp(m, w, a, lane);
  if (w->nefc[0] == 0) return;
  SN_FOR(r, w->nefc[0]) a->row_lambda[r] += a->row_pos[r];
  SN_SYNC(lane);
  sn_mul_curvature(m, w, lane, a->row_c, a->row_lambda);
}
#endif
