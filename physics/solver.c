// The constrained acceleration: Newton's method on the primal problem (manual, Computation, Constraint solver)
//
//   min_a  1/2 (a - a_s)' M (a - a_s) + sum_i s_i((J a - aref)_i)
//
// with s_i: D x^2 / 2 for equalities; Huber's function of width R*loss for friction loss; D x^2 / 2 where x < 0
// for limits, frictionless contacts and pyramid edges; the function of solver.h for an elliptic contact. The
// problem is strictly convex, so the solution does not depend on how it is found.
//
// An iteration: force = -ds/dx and state of every row; gradient M a - M a_s - J' force; H = M + J' C J with
// C = d2s/dx2, factored only if a state changed (or a cone is curved); exact line search along -H^-1 gradient.
// It ends when the scaled gain, gradient or predicted gain is below `tolerance`; the scale is 1 / trace(M). It
// starts from the better of the last acceleration and a_s, and makes no iteration at all where the gradient and
// the bound g' M^-1 g / 2 on the suboptimality are below tolerance already.
#include "physics/solver.h"

SN_FUNC sn_real sn_solver_dot(SnWorld *w, SnLane *lane, const sn_real *a, const sn_real *b, int n) {
  SN_FOR(k, SN_VLANES) {
    sn_real s = 0;
    for (int i = k; i < n; i += SN_VLANES) s += a[i] * b[i];
    w->solver_part[k] = s;
  }
  SN_SYNC(lane);
  return sn_sum(lane, w->solver_part, SN_VLANES);
}

// r = M x.
SN_LOCAL void mul_inertia(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *r, const sn_real *x) {
  SN_FOR(i, m->nv) r[i] = 0;
  SN_SYNC(lane);
  SN_ONE(lane)
  for (int i = 0; i < m->nv; ++i)
    for (int k = m->M_rowadr[i]; k < m->M_rowadr[i] + m->M_rownnz[i]; ++k) {
      const int j = m->M_colind[k];
      r[i] += w->M[k] * x[j];
      if (j != i) r[j] += w->M[k] * x[i];
    }
  SN_SYNC(lane);
}

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

// Force and state of the row for residual x; returns its cost. All rows but those of elliptic contacts.
SN_LOCAL sn_real row_force(const SnWorld *w, int row, sn_real x, sn_real *force, int *state) {
  const sn_real D = w->efc_D[row];
  if (row >= w->ne[0] + w->nf[0] && x >= 0) {
    *force = 0;
    *state = SN_CSTATE_SATISFIED;
    return 0;
  }
  if (row >= w->ne[0] && row < w->ne[0] + w->nf[0]) {
    const sn_real loss = w->efc_frictionloss[row], bound = w->efc_R[row] * loss;
    if (x <= -bound || x >= bound) {
      *force = x < 0 ? loss : -loss;
      *state = x < 0 ? SN_CSTATE_LINEARNEG : SN_CSTATE_LINEARPOS;
      return loss * (sn_abs(x) - SN_R(0.5) * bound);
    }
  }
  *force = -D * x;
  *state = SN_CSTATE_QUADRATIC;
  return SN_R(0.5) * D * x * x;
}

// Cost of the rows for residuals x (nefc).
SN_LOCAL sn_real rows_cost(SnWorld *w, SnLane *lane, const sn_real *x) {
  SN_FOR(k, SN_VLANES) {
    sn_real s = 0;
    for (int i = k; i < w->nefc[0]; i += SN_VLANES) {
      sn_real force[6];
      int state;
      if (w->efc_type[i] != SN_CNSTR_CONTACT_ELLIPTIC)
        s += row_force(w, i, x[i], force, &state);
      else if (!sn_is_cone_tail(w, i))
        s += cone_force(w, i, x + i, force, &state);
    }
    w->solver_part[k] = s;
  }
  SN_SYNC(lane);
  return sn_sum(lane, w->solver_part, SN_VLANES);
}

// efc_force and efc_state from efc_jar. Returns the number of rows whose second derivative may have changed.
SN_LOCAL int update_forces(SnWorld *w, SnLane *lane) {
  SN_FOR(k, SN_VLANES) {
    int changed = 0;
    for (int i = k; i < w->nefc[0]; i += SN_VLANES) {
      int state, num = 1;
      if (w->efc_type[i] != SN_CNSTR_CONTACT_ELLIPTIC) {
        row_force(w, i, w->efc_jar[i], w->efc_force + i, &state);
      } else {
        if (sn_is_cone_tail(w, i)) continue;
        cone_force(w, i, w->efc_jar + i, w->efc_force + i, &state);
        num = w->contact[w->efc_id[i]].dim;
      }
      changed += state != w->efc_state[i] || state == SN_CSTATE_CONE;
      for (int j = 0; j < num; ++j) w->efc_state[i + j] = state;
    }
    w->solver_part[k] = (sn_real)changed;
  }
  SN_SYNC(lane);
  return (int)sn_sum(lane, w->solver_part, SN_VLANES);
}

// Forces, states and gradient at qacc, from efc_jar and solver_Ma; marks the factor of H stale when it is.
SN_LOCAL void update_gradient(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int changed = update_forces(w, lane);
  SN_ONE(lane)
  if (changed > 0) w->hessian_valid[0] = 0;
  sn_mul_Jt(m, w, lane, w->qfrc_constraint, w->efc_force);
  SN_FOR(i, m->nv) w->solver_grad[i] = w->solver_Ma[i] - w->qfrc_smooth[i] - w->qfrc_constraint[i];
  SN_SYNC(lane);
}

// r = J a - aref.
SN_LOCAL void residual(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *r, const sn_real *a) {
  sn_mul_J(m, w, lane, r, a);
  SN_FOR(i, w->nefc[0]) r[i] -= w->efc_aref[i];
  SN_SYNC(lane);
}

// The distance from qacc_smooth that the cost counts, 1/2 (a - a_s)' M (a - a_s) with solver_Ma = M a.
SN_LOCAL sn_real gauss_cost(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real *a) {
  SN_FOR(k, SN_VLANES) {
    sn_real s = 0;
    for (int i = k; i < m->nv; i += SN_VLANES) s += (w->solver_Ma[i] - w->qfrc_smooth[i]) * (a[i] - w->qacc_smooth[i]);
    w->solver_part[k] = s;
  }
  SN_SYNC(lane);
  return SN_R(0.5) * sn_sum(lane, w->solver_part, SN_VLANES);
}

// qacc, solver_Ma and efc_jar of the cheaper of qacc_warmstart and qacc_smooth.
SN_LOCAL void start(const SnModel *m, SnWorld *w, SnLane *lane) {
  const sn_real *from = w->qacc_smooth;
  residual(m, w, lane, w->efc_jar, w->qacc_smooth);
  if (!(m->opt.disableflags & SN_DSBL_WARMSTART)) {
    residual(m, w, lane, w->efc_Jv, w->qacc_warmstart);
    mul_inertia(m, w, lane, w->solver_Ma, w->qacc_warmstart);
    const sn_real cost_smooth = rows_cost(w, lane, w->efc_jar);
    const sn_real cost_warm = rows_cost(w, lane, w->efc_Jv) + gauss_cost(m, w, lane, w->qacc_warmstart);
    if (cost_warm <= cost_smooth) from = w->qacc_warmstart;
  }
  SN_FOR(i, m->nv) w->qacc[i] = from[i];
  if (from == w->qacc_warmstart)
    SN_FOR(i, w->nefc[0]) w->efc_jar[i] = w->efc_Jv[i];
  else
    mul_inertia(m, w, lane, w->solver_Ma, w->qacc_smooth);
  SN_FOR(i, w->nefc[0]) w->efc_state[i] = -1;
  SN_ONE(lane) w->hessian_valid[0] = 0;
  SN_SYNC(lane);
}

// 1/2 g' A^-1 g for the metric A = M or H: gain that a quadratic model of that curvature predicts. The result of
// the solve is left in solver_search.
SN_LOCAL sn_real predicted_gain(const SnModel *m, SnWorld *w, SnLane *lane, bool newton) {
  SN_FOR(i, m->nv) w->solver_search[i] = w->solver_grad[i];
  SN_SYNC(lane);
  if (newton) {
    sn_hessian_factor(m, w, lane);
    sn_hessian_solve(m, w, lane, w->solver_search);
  } else {
    sn_solve_LD(m, lane, w->qLD, w->qLDiagInv, w->solver_search);
  }
  return SN_R(0.5) * sn_max(0, sn_solver_dot(w, lane, w->solver_grad, w->solver_search, m->nv));
}

SN_LOCAL sn_real gradient_norm(const SnModel *m, SnWorld *w, SnLane *lane) {
  return sn_sqrt(sn_solver_dot(w, lane, w->solver_grad, w->solver_grad, m->nv));
}

// 1 / trace(M), the unit in which gains and gradients are compared with the tolerance.
SN_LOCAL sn_real solver_scale(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(k, SN_VLANES) {
    sn_real s = 0;
    for (int i = k; i < m->nv; i += SN_VLANES) s += w->M[m->M_rowadr[i] + m->M_rownnz[i] - 1];
    w->solver_part[k] = s;
  }
  SN_SYNC(lane);
  return 1 / sn_max(SN_MINVAL, sn_sum(lane, w->solver_part, SN_VLANES));
}

// One step of the search along -solver_search; returns the gain, or 0 where no descent is left.
SN_LOCAL sn_real descend(const SnModel *m, SnWorld *w, SnLane *lane, sn_real scale) {
  SN_FOR(i, m->nv) w->solver_search[i] = -w->solver_search[i];
  SN_SYNC(lane);
  const sn_real norm = sn_sqrt(sn_solver_dot(w, lane, w->solver_search, w->solver_search, m->nv));
  if (norm < SN_MINVAL) return 0;
  mul_inertia(m, w, lane, w->solver_Mv, w->solver_search);
  sn_mul_J(m, w, lane, w->efc_Jv, w->solver_search);
  sn_real gain;
  const sn_real alpha = sn_line_search(m, w, lane, m->opt.tolerance * m->opt.ls_tolerance * norm / scale, &gain);
  if (alpha == 0) return 0;
  SN_FOR(i, m->nv) {
    w->qacc[i] += alpha * w->solver_search[i];
    w->solver_Ma[i] += alpha * w->solver_Mv[i];
  }
  SN_FOR(i, w->nefc[0]) w->efc_jar[i] += alpha * w->efc_Jv[i];
  SN_SYNC(lane);
  update_gradient(m, w, lane);
  return gain;
}

// Newton iterations from the start; returns their number, or -1 when they did not suffice.
SN_LOCAL int iterate(const SnModel *m, SnWorld *w, SnLane *lane) {
  const sn_real scale = solver_scale(m, w, lane), tol = m->opt.tolerance;
  const bool flat = scale * gradient_norm(m, w, lane) < tol;
  if (flat && scale * predicted_gain(m, w, lane, false) < tol) return 0;
  const sn_real first = predicted_gain(m, w, lane, true);
  if (flat && scale * first < tol) return 0;
  for (int iter = 0; iter < m->opt.iterations; ++iter) {
    const sn_real gain = scale * descend(m, w, lane, scale);
    if (gain == 0) return iter;
    if (gain < tol || scale * gradient_norm(m, w, lane) < tol) return iter + 1;
    if (scale * predicted_gain(m, w, lane, true) < tol) return iter + 1;
  }
  return -1;
}

// Without rows the smooth acceleration is the answer.
SN_LOCAL void solve_free(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) {
    w->qacc[i] = w->qacc_smooth[i];
    w->qfrc_constraint[i] = 0;
  }
  SN_ONE(lane) {
    w->solver_niter[0] = 0;
    w->hessian_valid[0] = 0;
  }
}

SN_FUNC void sn_solve(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (w->nefc[0] == 0) {
    solve_free(m, w, lane);
  } else {
    start(m, w, lane);
    update_gradient(m, w, lane);
    const int niter = iterate(m, w, lane);
    SN_ONE(lane) {
      w->solver_niter[0] = niter < 0 ? m->opt.iterations : niter;
      if (niter < 0) *w->warn |= SN_WARN_NOT_CONVERGED;
    }
  }
  SN_SYNC(lane);
  SN_FOR(i, m->nv) w->qacc_warmstart[i] = w->qacc[i];
  SN_SYNC(lane);
}
