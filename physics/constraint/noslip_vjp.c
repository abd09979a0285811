// The adjoint of the noslip solver (noslip.c): the derivative of the sweeps that were made, as they were made.
//
// The sweeps u = 1 .. K leave forces f_u and accelerations a_u, M a_u = tau + J' f_u, from Newton's f_0 and a_0 on. An
// update of group g solves r_g(a_u) = J_g a_u - aref_g = 0, or that up to a bound that it stops at. Going back, a
// multiplier omega_u of this equation is found, A_g omega_u = -(bar of f_g) where the group is free, from the bar
//
//   bar of f_i = J_i L - p_i,    L = M^-1 a_bar + sum over later u of M^-1 J_g' omega_u,
//
// with p_i what J_i L was when the bar of f_i last began at zero, at first minus the bar of f_i itself, if there is
// one. So backwards, too, it is one motion L that goes through the sweeps, and no matrix. On the boundary of an
// ellipsoid the search for the force is gone back through (SlipEdge). It gives omega, what the normal force gets, and
// by the block A_g = J_g B_g more than omega f' says.
//
// The derivative of all of it, with delta_u the change of f_g and Lambda the last L, is that of
//
//   Lambda' tau + f_0' J Lambda + sum_u [ delta_u' J_g L_u + omega_u' (J_g a_u - aref_g) ]
//     - (M^-1 a_bar)' M a_K - sum_u omega_u' J_g M^-1 M a_u
//
// at fixed L_u, a_u, omega_u, delta_u, and of f_0. The latter gives Newton's multiplier lambda - Lambda: with p the
// last p_i,
//
//   (M + J' C J) lambda = M Lambda + J' C p,     c = C (J lambda - p) - sum_u omega_u,
//
// and G of adjoint.h with this lambda, a_0, f_0 and c has all but what noslip has changed:
//
//   - (M^-1 a_bar - y)' M (a_K - a_0) + sum_i [ J_i n_i - B_i' M (n_i - d_i) ],   B_i = M^-1 J_i',
//   d_i = sum_u delta_ui L_u,     n_i = d_i + sum_u omega_ui (a_u - a_0).
//
// Of each row i (of a pair of edges: of their difference) that is the term y' M (a - a+) and a row's rate for motions
// of its own: one more pass of the stages that turn rates into displacements (as in branched.c). They come last.
#include "physics/base/vec.h"
#include "physics/constraint/noslip_private.h"
#include "physics/constraint/solver_private.h"
#include "physics/dynamics/dynamics.h"

// What the way back knows of an update: forces after it, what it changed, bars of the forces, multipliers.
typedef struct SlipBack {
  SnSlipGroup g;
  SnSlipCode code;
  sn_real force[SN_MAXSLIP], delta[SN_MAXSLIP];
  sn_bar bar[SN_MAXSLIP], omega[SN_MAXSLIP];
  sn_bar by[SN_MAXSLIP * SN_MAXSLIP];  // of a cone on its boundary
} SlipBack;

// x = (L L')^-1 x, the factor of sn_slip_factor.
SN_LOCAL void back_solve(const sn_real *L, int n, sn_bar *x) {
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < i; ++k) x[i] -= L[SN_MAXSLIP * i + k] * x[k];
    x[i] /= L[SN_MAXSLIP * i + i];
  }
  for (int i = n - 1; i >= 0; --i) {
    for (int k = i + 1; k < n; ++k) x[i] -= L[SN_MAXSLIP * k + i] * x[k];
    x[i] /= L[SN_MAXSLIP * i + i];
  }
}

// The way back through the search for a force on the boundary of an ellipsoid, as it was made: x_k = -(A + s_k)^-1 c,
// s_k+1 = s_k + (|x_k|^2 - r^2) / 2 x_k' (A + s_k)^-1 x_k, and the force r x / |x| of the last one, scaled by friction.
// It ends before it has converged where coefficients of friction are far apart, so the optimum's own derivative is not
// that of what was computed.
typedef struct SlipEdge {
  sn_real A[SN_MAXSLIP * SN_MAXSLIP], c[SN_MAXSLIP], r;  // scaled; the radius is the normal force
  sn_bar A_bar[SN_MAXSLIP * SN_MAXSLIP], c_bar[SN_MAXSLIP], r_bar;
  sn_bar x_bar[SN_MAXSLIP], shift_bar;  // of the present iteration
} SlipEdge;

// Takes x_bar and adds what an x = -(A + shift)^-1 c leaves. L: the factor of A + shift.
SN_LOCAL void edge_solve_vjp(SlipEdge *e, const sn_real *L, int n, const sn_real *x) {
  sn_bar t[SN_MAXSLIP];
  for (int i = 0; i < n; ++i) t[i] = e->x_bar[i];
  back_solve(L, n, t);
  for (int i = 0; i < n; ++i) {
    e->c_bar[i] -= t[i];
    e->shift_bar -= t[i] * x[i];
    for (int j = 0; j < n; ++j) e->A_bar[SN_MAXSLIP * i + j] -= t[i] * x[j];
  }
}

// The bar of the next shift becomes that of this one and x_bar of this x.
SN_LOCAL void edge_newton_vjp(SlipEdge *e, const sn_real *L, int n, const sn_real *x) {
  sn_real y[SN_MAXSLIP], minus[SN_MAXSLIP];
  sn_bar t[SN_MAXSLIP];
  for (int i = 0; i < n; ++i) minus[i] = -x[i];
  sn_slip_solve(L, minus, n, y);
  const sn_real slope = 2 * sn_dot(x, y, n), step = (sn_dot(x, x, n) - e->r * e->r) / slope;
  const sn_bar beyond_bar = e->shift_bar / slope, slope_bar = -e->shift_bar * step / slope;
  for (int i = 0; i < n; ++i) {
    e->x_bar[i] = 2 * beyond_bar * x[i] + 2 * slope_bar * y[i];
    t[i] = 2 * slope_bar * x[i];
  }
  e->r_bar -= 2 * beyond_bar * e->r;
  back_solve(L, n, t);
  for (int i = 0; i < n; ++i) {
    e->x_bar[i] += t[i];
    e->shift_bar -= t[i] * y[i];
    for (int j = 0; j < n; ++j) e->A_bar[SN_MAXSLIP * i + j] -= t[i] * y[j];
  }
}

SN_LOCAL void edge_begin(const SnWorld *w, const SlipBack *b, const sn_real *mu, SlipEdge *e) {
  const int row = b->g.row, n = b->g.num;
  e->r = w->efc_force[row - 1];
  for (int i = 0; i < n; ++i) {
    e->c[i] = sn_slip_residual(w, row + i);
    e->c_bar[i] = sn_bar_of(0);
    for (int j = 0; j < n; ++j) {
      e->A[SN_MAXSLIP * i + j] = w->slip_A[(row + i) * SN_MAXSLIP + j] * mu[i] * mu[j];
      e->A_bar[SN_MAXSLIP * i + j] = sn_bar_of(0);
      e->c[i] -= w->slip_A[(row + i) * SN_MAXSLIP + j] * b->force[j];
    }
    e->c[i] *= mu[i];
  }
  e->r_bar = e->shift_bar = sn_bar_of(0);
}

#if defined(SN_MODEL_BARS)
// Bounds of an update by the model: the loss, coefficients of friction. Of a pyramid these are in J alone.
SN_LOCAL void back_model_loss(const SnWorld *w, SnAdjoint *a, const SlipBack *b) {
  const SnModelBar *to = sn_model_bar(a);
  const int row = b->g.row, id = w->efc_id[row];
  if (!to || b->g.kind != SN_SLIP_LOSS || (b->code != SN_SLIP_LOW && b->code != SN_SLIP_HIGH)) return;
  sn_bar *loss = w->efc_type[row] == SN_CNSTR_FRICTION_DOF ? to->dof_frictionloss : to->tendon_frictionloss;
  if (loss) loss[id] += b->code == SN_SLIP_LOW ? -b->bar[0] : b->bar[0];
}

// Of a cone on its boundary: f_i = mu_i r x_i / |x|, and x is that of mu_i A_ij mu_j and mu_i c_i.
SN_LOCAL void back_model_edge(const SnWorld *w, SnAdjoint *a, const SlipBack *b, const SlipEdge *e) {
  const SnContact *con = w->contact + w->efc_id[b->g.row];
  const int n = b->g.num;
  if (!sn_model_bar(a) || !sn_model_bar(a)->pair_conparam) return;
  for (int i = 0; i < n; ++i) {
    sn_bar bar = b->bar[i] * b->force[i] + e->c_bar[i] * e->c[i];
    for (int j = 0; j < n; ++j)
      bar += (e->A_bar[SN_MAXSLIP * i + j] + e->A_bar[SN_MAXSLIP * j + i]) * e->A[SN_MAXSLIP * i + j];
    sn_model_bar(a)->pair_conparam[SN_NCONPARAM * con->pair + 1 + i] += bar / con->friction[i];
  }
}
#endif

// Multipliers of a cone on its boundary, p of its normal, and `by`: the bar of A less omega f'.
SN_LOCAL void back_edge(const SnWorld *w, SnAdjoint *a, SlipBack *b) {
  const int row = b->g.row, n = b->g.num;
  const sn_real *mu = w->contact[w->efc_id[row]].friction;
  SlipEdge e;
  SnSlipShifts shifts;
  sn_real L[SN_MAXSLIP * SN_MAXSLIP], x[SN_MAXSLIP];
  edge_begin(w, b, mu, &e);
  sn_slip_ball(e.A, e.c, e.r, n, x, &shifts);
  const sn_real length = sn_sqrt(sn_max(SN_MINVAL, sn_dot(x, x, n)));
  for (int i = 0; i < n; ++i) e.r_bar += b->bar[i] * (mu[i] * x[i] / length);
  const sn_bar along = e.r_bar;
  for (int i = 0; i < n; ++i) e.x_bar[i] = (b->bar[i] * mu[i] - along * (x[i] / length)) * (e.r / length);
  for (int k = shifts.last; k >= 0; --k) {
    sn_slip_factor(e.A, shifts.shift[k], n, L);
    sn_slip_solve(L, e.c, n, x);
    if (k < shifts.last) edge_newton_vjp(&e, L, n, x);
    edge_solve_vjp(&e, L, n, x);
  }
  for (int i = 0; i < n; ++i) b->omega[i] = mu[i] * e.c_bar[i];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      b->by[SN_MAXSLIP * i + j] = mu[i] * mu[j] * e.A_bar[SN_MAXSLIP * i + j] - b->omega[i] * b->force[j];
  a->slip_p[row - 1] -= e.r_bar;
#if defined(SN_MODEL_BARS)
  back_model_edge(w, a, b, &e);
#endif
}

// Multipliers of a cone.
SN_LOCAL void back_cone(const SnWorld *w, SnAdjoint *a, SlipBack *b) {
  const int row = b->g.row, n = b->g.num;
  sn_real L[SN_MAXSLIP * SN_MAXSLIP];
  if (b->code == SN_SLIP_EDGE) {
    back_edge(w, a, b);
    return;
  }
  for (int i = 0; i < n; ++i) b->omega[i] = -b->bar[i];
  sn_slip_factor(w->slip_A + row * SN_MAXSLIP, 0, n, L);
  back_solve(L, n, b->omega);
}

// Hands the bar of a group's block of A on to its rows.
SN_LOCAL void back_block(const SnWorld *w, SnAdjoint *a, const SlipBack *b, int nv) {
  const int row = b->g.row, n = b->g.num;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const sn_bar S = SN_R(0.5) * (b->by[SN_MAXSLIP * i + j] + b->by[SN_MAXSLIP * j + i]);
      for (int q = 0; q < nv; ++q) {
        a->slip_next[(row + i) * nv + q] += S * w->slip_row[(row + j) * nv + q];
        a->slip_motion[(row + i) * nv + q] += 2 * S * w->slip_row[(row + j) * nv + q];
      }
    }
}

// Multipliers of an update.
SN_LOCAL void back_multipliers(const SnWorld *w, SnAdjoint *a, SlipBack *b) {
  const sn_real *A = w->slip_A + b->g.row * SN_MAXSLIP, *B = A + SN_MAXSLIP;
  for (int i = 0; i < b->g.num; ++i) b->omega[i] = sn_bar_of(0);
  if (b->g.kind == SN_SLIP_CONE) {
    if (b->code != SN_SLIP_ZERO) back_cone(w, a, b);
  } else if (b->code == SN_SLIP_FREE && b->g.kind == SN_SLIP_LOSS) {
    b->omega[0] = -b->bar[0] / A[0];
  } else if (b->code == SN_SLIP_FREE) {
    b->omega[0] = -(b->bar[0] - b->bar[1]) / (A[0] + B[1] - A[1] - B[0]);
    b->omega[1] = -b->omega[0];
  }
#if defined(SN_MODEL_BARS)
  back_model_loss(w, a, b);
#endif
}

// p of the rows of an update: their bars before it begin at zero, those of a pair at what its sum hands on.
SN_LOCAL void back_begin(const SnWorld *w, SnAdjoint *a, const SlipBack *b) {
  sn_bar rate[SN_MAXSLIP], *p = a->slip_p + b->g.row, share = {0};
  for (int i = 0; i < b->g.num; ++i) rate[i] = sn_slip_rate(w, b->g.row + i, a->slip_lambda);
  if (b->g.kind == SN_SLIP_PAIR) {
    share = SN_R(0.5) * (b->bar[0] + b->bar[1]);
    if (b->code == SN_SLIP_FREE) share = SN_R(0.5) * (rate[0] + rate[1] - p[0] - p[1]);
    if (b->code == SN_SLIP_LOW) share = b->bar[1];
    if (b->code == SN_SLIP_HIGH) share = b->bar[0];
  }
  for (int i = 0; i < b->g.num; ++i) p[i] = rate[i] - share;
}

// Takes the update of group k back: forces and acceleration become those before it. before: forces by row.
SN_LOCAL void back_update(const SnModel *m, SnWorld *w, SnAdjoint *a, int k, SnSlipCode code, const sn_real *before) {
  const int nv = m->nv;
  SlipBack b = {.g = sn_slip_group(w, k), .code = code};
  const int row = b.g.row;
  if (code == SN_SLIP_OVER) return;
  for (int i = 0; i < b.g.num; ++i) {
    b.force[i] = w->efc_force[row + i];
    b.delta[i] = b.force[i] - before[row + i];
    b.bar[i] = sn_slip_rate(w, row + i, a->slip_lambda) - a->slip_p[row + i];
  }
  back_multipliers(w, a, &b);
  for (int i = 0; i < b.g.num; ++i) {
    a->slip_omega[row + i] += b.omega[i];
    for (int q = 0; q < nv; ++q) a->slip_lambda[q] += b.omega[i] * w->slip_row[(row + i) * nv + q];
  }
  back_begin(w, a, &b);
  if (b.g.kind == SN_SLIP_CONE && code == SN_SLIP_EDGE) back_block(w, a, &b, nv);
  for (int i = 0; i < (b.g.kind == SN_SLIP_PAIR ? 1 : b.g.num); ++i) {
    sn_bar *d = a->slip_next + (row + i) * nv, *n = a->slip_motion + (row + i) * nv;
    for (int q = 0; q < nv; ++q) {
      const sn_bar by = b.delta[i] * a->slip_lambda[q];
      d[q] += by;
      n[q] += by + b.omega[i] * (w->slip_acc[q] - w->qacc[q]);
    }
  }
  for (int i = 0; i < b.g.num; ++i) {
    w->efc_force[row + i] = before[row + i];
    for (int q = 0; q < nv; ++q) w->slip_acc[q] -= b.delta[i] * w->slip_row[(row + i) * nv + q];
  }
}

// The sweeps once more, and back. The world has Newton's solution, before and behind.
SN_LOCAL void back_sweeps(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const SnSlipRecord record = {a->slip_code, a->slip_before, a->slip_sweeps};
  sn_noslip_run(m, w, lane, &record);
  SN_FOR(i, w->nefc[0]) a->slip_omega[i] = sn_bar_of(0);
  SN_FOR(i, w->nefc[0] * m->nv) a->slip_next[i] = a->slip_motion[i] = sn_bar_of(0);
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int sweep = a->slip_sweeps[0] - 1; sweep >= 0; --sweep)
      for (int k = w->slip_num[0] - 1; k >= 0; --k) {
        const int at = sweep * m->nefcmax;
        back_update(m, w, a, k, (SnSlipCode)a->slip_code[at + w->slip_group[k]], a->slip_before + at);
      }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_noslip_solve_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int nv = m->nv;
  sn_bar *lambda = a->motion + SN_LAMBDA * nv;
  SN_FOR(i, nv) a->slip_lambda[i] = a->qacc_bar[i];
  SN_SYNC(lane);
  sn_solve_LD(m, lane, w->qLD, w->qLDiagInv, a->slip_lambda);
  SN_FOR(i, nv) a->slip_first[i] = a->motion[SN_Y * nv + i] - a->slip_lambda[i];
  sn_noslip_exchange(m, w, lane);
  back_sweeps(m, w, a, lane);
  sn_mul_M(m, w, lane, lambda, a->slip_lambda);
  sn_mul_curvature(m, w, lane, a->row_c, a->slip_p);
  SN_ONE(lane) {
    for (int row = 0; row < w->nefc[0]; ++row)
      for (int k = w->efc_J_rowadr[row]; k < w->efc_J_rowadr[row] + w->efc_J_rownnz[row]; ++k)
        lambda[w->efc_J_colind[k]] += w->efc_J[k] * a->row_c[row];
    a->slip_on[0] = 1;
  }
  SN_SYNC(lane);
  sn_hessian_solve(m, w, lane, lambda);
  sn_mul_J(m, w, lane, a->row_lambda, lambda);
  SN_FOR(i, w->nefc[0]) a->row_lambda[i] -= a->slip_p[i];
  SN_SYNC(lane);
  sn_mul_curvature(m, w, lane, a->row_c, a->row_lambda);
  SN_FOR(i, w->nefc[0]) a->row_c[i] -= a->slip_omega[i];
  SN_FOR(i, nv) a->motion[SN_ACC * nv + i] = sn_bar_of(w->qacc[i]);
  SN_SYNC(lane);
}

// ---- what noslip has changed ----

// No row has a rate.
SN_LOCAL void pass_clear(const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  SN_FOR(i, 3 * w->nefc[0]) a->row_z[i] = sn_bar_of(0);
  SN_SYNC(lane);
}

// The motions of the whole change, which no row takes part in.
SN_LOCAL void pass_first(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int nv = m->nv;
  SN_ONE(lane) a->slip_on[0] = 0;
  SN_FOR(i, w->nefc[0]) a->row_pos[i] = a->row_lambda[i] = a->row_c[i] = sn_bar_of(0);
  SN_FOR(i, nv) {
    a->motion[SN_LAMBDA * nv + i] = a->motion[SN_VEL * nv + i] = a->motion[SN_NEXT * nv + i] = sn_bar_of(0);
    a->motion[SN_Y * nv + i] = a->slip_first[i];
    a->motion[SN_ACC * nv + i] = sn_bar_of(w->qacc[i] - w->slip_qacc[i]);
  }
  SN_SYNC(lane);
}

// The motions of row `row`, one edge of a pair standing for both. Returns false on all lanes where they are zero.
SN_LOCAL bool pass_motions(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, int row, bool pair) {
  const int nv = m->nv;
  const sn_real *B = w->slip_row + row * nv;
  const sn_bar *n = a->slip_motion + row * nv, *d = a->slip_next + row * nv;
  bool any = false;  // every lane looks at all
  for (int i = 0; i < nv; ++i) any = any || sn_any(n[i]) || sn_any(d[i]);
  if (!any) return false;
  SN_FOR(i, nv) {
    a->motion[SN_Y * nv + i] = sn_bar_of((pair ? B[nv + i] : 0) - B[i]);
    a->motion[SN_ACC * nv + i] = n[i];
    a->motion[SN_NEXT * nv + i] = d[i];
  }
  SN_ONE(lane) {
    a->row_z[3 * row + SN_ACC] = sn_bar_of(1);
    if (pair) a->row_z[3 * (row + 1) + SN_ACC] = sn_bar_of(-1);
  }
  SN_SYNC(lane);
  return true;
}

SN_FUNC int sn_noslip_pass(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, int pass) {
  if (pass == 0 && a->slip_on[0] == 0) return -1;
  pass_clear(w, a, lane);
  if (pass == 0) {
    pass_first(m, w, a, lane);
    return 1;
  }
  for (int k = 0; k < w->slip_num[0]; ++k) {
    const SnSlipGroup g = sn_slip_group(w, k);
    const bool pair = g.kind == SN_SLIP_PAIR;
    for (int row = g.row; row < g.row + (pair ? 1 : g.num); ++row)
      if (row >= pass - 1 && pass_motions(m, w, a, lane, row, pair)) return row + 2;
  }
  return -1;
}
