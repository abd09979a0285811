// The noslip solver: after Newton's method the forces of friction alone are solved once more, without regularisation,
// so that contacts and joints with friction do not creep (manual, Computation, Constraint solver, NoSlip).
//
// With A = J M^-1 J' and b = J a_s - aref the forces f of friction minimise f' A f / 2 + f' b, where Newton's normal
// forces, limits and equalities stay as they are. They are found by sweeps over groups of rows, in the order of the
// rows, each solved exactly at the latest forces of all others:
//
//   friction loss     f = f - r / A_ii, cut off at the loss;  r = (A f + b)_i
//   pair of edges     of a pyramid, f_1 = s + y, f_2 = s - y: y of [-s, s] alone, s stays
//   elliptic contact  min f' A f / 2 + f' c over the ellipsoid |f_j / mu_j| <= f_n of its tangents
//
// r is taken as J a - aref, where a = a_s + M^-1 J' f follows the forces: so rows of M^-1 J' are kept, and no A but the
// block of each group. An island, trees that rows connect, ends with the sweep that gains less than the tolerance in
// units of 1 / trace(M); of the first sweep's gain are taken off the costs f R f / 2 that regularisation had. Where
// islands are switched off all trees are one.
#include "physics/constraint/noslip_private.h"

#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"

#define SLIP_FLAT SN_R(1e-10)    // least curvature
#define SLIP_GROWTH SN_R(1e-10)  // most by which an update may let the cost grow

// ---- setup: groups, islands, rows of M^-1 J' ----

SN_LOCAL void slip_groups(SnWorld *w) {
  const int ne = w->ne[0], nef = ne + w->nf[0];
  int num = 0;
  for (int row = ne; row < w->nefc[0]; ++row) {
    const int type = w->efc_type[row];
    if (row < nef) {
      w->slip_group[num++] = row;
    } else if (type == SN_CNSTR_CONTACT_PYRAMIDAL) {
      w->slip_group[num++] = row++;
    } else if (type == SN_CNSTR_CONTACT_ELLIPTIC) {
      w->slip_group[num++] = row + 1;
      row += w->contact[w->efc_id[row]].dim - 1;
    }
  }
  w->slip_num[0] = num;
}

// slip_root, slip_tree and slip_trace.
SN_LOCAL void slip_islands(const SnModel *m, SnWorld *w) {
  int *root = w->slip_root;
  sn_tree_roots(m, w, root);
  for (int t = 0; t < m->ntree; ++t) {
    if (m->opt.disableflags & SN_DSBL_ISLAND) root[t] = 0;
    w->slip_trace[t] = 0;
    w->slip_open[t] = 1;
  }
  for (int row = 0; row < w->nefc[0]; ++row)
    w->slip_tree[row] = sn_tree_root(root, m->dof_treeid[w->efc_J_colind[w->efc_J_rowadr[row]]]);
  for (int i = 0; i < m->nv; ++i)
    w->slip_trace[sn_tree_root(root, m->dof_treeid[i])] += w->M[m->M_rowadr[i] + m->M_rownnz[i] - 1];
}

// slip_row and slip_A of group k.
SN_LOCAL void slip_rows(const SnModel *m, SnWorld *w, int k) {
  const SnSlipGroup g = sn_slip_group(w, k);
  for (int j = 0; j < g.num; ++j) {
    const int row = g.row + j, adr = w->efc_J_rowadr[row];
    sn_real *x = w->slip_row + row * m->nv;
    sn_inverse_row(m, w, adr, w->efc_J_rownnz[row], x);
    for (int i = 0; i <= j; ++i) {
      const sn_real A = sn_slip_rate(w, g.row + i, x);
      w->slip_A[row * SN_MAXSLIP + i] = A;
      w->slip_A[(g.row + i) * SN_MAXSLIP + j] = A;
    }
    w->slip_A[row * SN_MAXSLIP + j] =
        sn_max(w->slip_A[row * SN_MAXSLIP + j], g.kind == SN_SLIP_LOSS ? SN_MINVAL : SLIP_FLAT);
  }
}

// ---- sweeps ----

SN_FUNC bool sn_slip_factor(const sn_real *A, sn_real shift, int n, sn_real *L) {
  sn_real det = 1, least = SN_R(1e30);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      sn_real sum = A[SN_MAXSLIP * i + j] + (i == j ? shift : 0);
      for (int k = 0; k < j; ++k) sum -= L[SN_MAXSLIP * i + k] * L[SN_MAXSLIP * j + k];
      if (i == j) {
        det *= sum;
        least = sn_min(least, sum);
        if (!(sum > 0)) return false;
        L[SN_MAXSLIP * i + i] = sn_sqrt(sum);
      } else {
        L[SN_MAXSLIP * i + j] = sum / L[SN_MAXSLIP * j + j];
      }
    }
  }
  return !((n <= 3 ? det : least) < SLIP_FLAT);
}

SN_FUNC void sn_slip_solve(const sn_real *L, const sn_real *b, int n, sn_real *x) {
  for (int i = 0; i < n; ++i) {
    x[i] = -b[i];
    for (int k = 0; k < i; ++k) x[i] -= L[SN_MAXSLIP * i + k] * x[k];
    x[i] /= L[SN_MAXSLIP * i + i];
  }
  for (int i = n - 1; i >= 0; --i) {
    for (int k = i + 1; k < n; ++k) x[i] -= L[SN_MAXSLIP * k + i] * x[k];
    x[i] /= L[SN_MAXSLIP * i + i];
  }
}

SN_FUNC SnSlipCode sn_slip_ball(const sn_real *A, const sn_real *b, sn_real r, int n, sn_real *x,
                                SnSlipShifts *shifts) {
  sn_real L[SN_MAXSLIP * SN_MAXSLIP], y[SN_MAXSLIP], minus[SN_MAXSLIP];
  shifts->shift[0] = 0;
  for (shifts->last = 0;; ++shifts->last) {
    const sn_real shift = shifts->shift[shifts->last];
    if (!sn_slip_factor(A, shift, n, L)) {
      sn_zero(x, n);
      return SN_SLIP_ZERO;
    }
    sn_slip_solve(L, b, n, x);
    const sn_real beyond = sn_dot(x, x, n) - r * r;
    if (beyond < SLIP_FLAT || shifts->last == SN_SLIP_NEWTON - 1) break;
    for (int i = 0; i < n; ++i) minus[i] = -x[i];
    sn_slip_solve(L, minus, n, y);
    const sn_real step = beyond / (2 * sn_dot(x, y, n));
    if (step < SLIP_FLAT) break;
    shifts->shift[shifts->last + 1] = shift + step;
  }
  return shifts->last == 0 ? SN_SLIP_FREE : SN_SLIP_EDGE;
}

// Forces f (num) of a cone for c, the residual without them: scaled by friction the ellipsoid is a ball.
SN_LOCAL SnSlipCode slip_cone(const SnWorld *w, const SnSlipGroup *g, const sn_real *c, sn_real *f) {
  const sn_real *mu = w->contact[w->efc_id[g->row]].friction, normal = w->efc_force[g->row - 1];
  sn_real A[SN_MAXSLIP * SN_MAXSLIP], b[SN_MAXSLIP];
  if (normal < SN_MINVAL) {
    sn_zero(f, g->num);
    return SN_SLIP_ZERO;
  }
  for (int i = 0; i < g->num; ++i) {
    b[i] = c[i] * mu[i];
    for (int j = 0; j < g->num; ++j) A[SN_MAXSLIP * i + j] = w->slip_A[(g->row + i) * SN_MAXSLIP + j] * mu[i] * mu[j];
  }
  SnSlipShifts shifts;
  const SnSlipCode code = sn_slip_ball(A, b, normal, g->num, f, &shifts);
  const sn_real scale = code == SN_SLIP_EDGE ? normal / sn_sqrt(sn_max(SN_MINVAL, sn_dot(f, f, g->num))) : 1;
  for (int i = 0; i < g->num; ++i) f[i] *= mu[i] * scale;
  return code;
}

// Forces f (2) of a pair for c.
SN_LOCAL SnSlipCode slip_pair(const SnWorld *w, int row, const sn_real *c, sn_real *f) {
  const sn_real *A = w->slip_A + row * SN_MAXSLIP, *B = A + SN_MAXSLIP, s = SN_R(0.5) * (f[0] + f[1]);
  const sn_real curve = A[0] + B[1] - A[1] - B[0], slope = s * (A[0] - B[1]) + c[0] - c[1], y = -slope / curve;
  if (curve < SN_MINVAL + 16 * SN_EPS * (A[0] + B[1])) {
    f[0] = f[1] = s;
    return SN_SLIP_MIDDLE;
  }
  f[0] = y < -s ? 0 : (y > s ? 2 * s : s + y);
  f[1] = y < -s ? 2 * s : (y > s ? 0 : s - y);
  return y < -s ? SN_SLIP_LOW : (y > s ? SN_SLIP_HIGH : SN_SLIP_FREE);
}

SN_LOCAL SnSlipCode slip_loss(const SnWorld *w, int row, const sn_real *r, sn_real *f) {
  const sn_real loss = w->efc_frictionloss[row], x = f[0] - r[0] / w->slip_A[row * SN_MAXSLIP];
  f[0] = x < -loss ? -loss : (x > loss ? loss : x);
  return x < -loss ? SN_SLIP_LOW : (x > loss ? SN_SLIP_HIGH : SN_SLIP_FREE);
}

// Solves a group at the latest forces and adds what the cost falls by to *gain.
SN_LOCAL SnSlipCode slip_update(const SnModel *m, SnWorld *w, const SnSlipGroup *g, sn_real *gain) {
  sn_real r[SN_MAXSLIP], c[SN_MAXSLIP], f[SN_MAXSLIP], d[SN_MAXSLIP], *force = w->efc_force + g->row, change = 0;
  for (int i = 0; i < g->num; ++i) {
    r[i] = c[i] = sn_slip_residual(w, g->row + i);
    for (int j = 0; j < g->num; ++j) c[i] -= w->slip_A[(g->row + i) * SN_MAXSLIP + j] * force[j];
    f[i] = force[i];
  }
  const SnSlipCode code = g->kind == SN_SLIP_LOSS   ? slip_loss(w, g->row, r, f)
                          : g->kind == SN_SLIP_PAIR ? slip_pair(w, g->row, c, f)
                                                    : slip_cone(w, g, c, f);
  for (int i = 0; i < g->num; ++i) {
    d[i] = f[i] - force[i];
    change += d[i] * r[i];
    for (int j = 0; j <= i; ++j)
      change += (i == j ? SN_R(0.5) : 1) * d[i] * d[j] * w->slip_A[(g->row + i) * SN_MAXSLIP + j];
  }
  // the forces stay where no friction would cost more, or, at the minimum, by rounding
  if (g->kind != SN_SLIP_LOSS && change > SLIP_GROWTH) {
    sn_real far = 0, size = 0;
    for (int i = 0; i < g->num; ++i) {
      far = sn_max(far, sn_abs(d[i]));
      size = sn_max(size, sn_abs(f[i]));
    }
    return code == SN_SLIP_ZERO || far > SN_R(1e-6) * size ? SN_SLIP_OVER : code;
  }
  *gain -= change;
  for (int i = 0; i < g->num; ++i) {
    const sn_real *x = w->slip_row + (g->row + i) * m->nv;
    force[i] = f[i];
    for (int q = 0; q < m->nv; ++q) w->slip_acc[q] += d[i] * x[q];
  }
  return code;
}

// One sweep over the islands that go on; returns how many go on behind it. code, before: of this sweep, or NULL.
SN_LOCAL int slip_sweep(const SnModel *m, SnWorld *w, bool first, int *code, sn_real *before) {
  int open = 0;
  sn_zero(w->slip_gain, m->ntree);
  for (int row = 0; first && row < w->nefc[0]; ++row)
    w->slip_gain[w->slip_tree[row]] += SN_R(0.5) * w->efc_force[row] * w->efc_force[row] * w->efc_R[row];
  for (int k = 0; k < w->slip_num[0]; ++k) {
    const SnSlipGroup g = sn_slip_group(w, k);
    const int tree = w->slip_tree[g.row];
    for (int j = 0; before && j < g.num; ++j) before[g.row + j] = w->efc_force[g.row + j];
    const SnSlipCode done = w->slip_open[tree] ? slip_update(m, w, &g, w->slip_gain + tree) : SN_SLIP_OVER;
    if (code) code[g.row] = (int)done;
  }
  for (int t = 0; t < m->ntree; ++t) {
    if (w->slip_root[t] != t || w->slip_gain[t] < m->opt.noslip_tolerance * sn_max(SN_MINVAL, w->slip_trace[t]))
      w->slip_open[t] = 0;
    open += w->slip_open[t];
  }
  return open;
}

// State of an elliptic contact by its force.
SN_LOCAL SnConstraintState slip_cone_state(const SnWorld *w, int row) {
  const SnContact *con = w->contact + w->efc_id[row];
  const sn_real mu = con->mu, N = w->efc_force[row] / mu;
  sn_real TT = 0;
  for (int j = 1; j < con->dim; ++j) {
    const sn_real f = w->efc_force[row + j] / con->friction[j - 1];
    TT += f * f;
  }
  const sn_real T = sn_sqrt(TT);
  if (mu * N >= T) return SN_CSTATE_SATISFIED;
  return N + mu * T <= 0 ? SN_CSTATE_QUADRATIC : SN_CSTATE_CONE;
}

// efc_state of row i by its force, as MuJoCo's dual solvers have it.
SN_LOCAL void slip_state(SnWorld *w, int i) {
  const int ne = w->ne[0], nef = ne + w->nf[0];
  const sn_real f = w->efc_force[i], loss = w->efc_frictionloss[i];
  int *state = w->efc_state + i;
  if (i < ne) {
    *state = SN_CSTATE_QUADRATIC;
  } else if (i < nef) {
    *state = f <= -loss ? SN_CSTATE_LINEARPOS : (f >= loss ? SN_CSTATE_LINEARNEG : SN_CSTATE_QUADRATIC);
  } else if (w->efc_type[i] == SN_CNSTR_CONTACT_ELLIPTIC) {
    if (sn_is_cone_tail(w, i)) return;
    const int dim = w->contact[w->efc_id[i]].dim, all = (int)slip_cone_state(w, i);
    for (int j = 0; j < dim; ++j) state[j] = all;
  } else {
    *state = f <= 0 ? SN_CSTATE_SATISFIED : SN_CSTATE_QUADRATIC;
  }
}

// x = qacc_smooth + M^-1 J' efc_force.
SN_LOCAL void slip_acceleration(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *x) {
  sn_mul_Jt(m, w, lane, x, w->efc_force);
  sn_solve_LD(m, lane, w->qLD, w->qLDiagInv, x);
  SN_FOR(i, m->nv) x[i] += w->qacc_smooth[i];
  SN_SYNC(lane);
}

SN_FUNC void sn_noslip_keep(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) w->slip_qacc[i] = w->qacc[i];
  SN_FOR(i, w->nefc[0]) {
    w->slip_force[i] = w->efc_force[i];
    w->slip_state[i] = w->efc_state[i];
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_noslip_exchange(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_SYNC(lane);
  SN_FOR(i, m->nv) {
    const sn_real qacc = w->qacc[i];
    w->qacc[i] = w->slip_qacc[i];
    w->slip_qacc[i] = qacc;
  }
  SN_FOR(i, w->nefc[0]) {
    const sn_real force = w->efc_force[i];
    const int state = w->efc_state[i];
    w->efc_force[i] = w->slip_force[i];
    w->efc_state[i] = w->slip_state[i];
    w->slip_force[i] = force;
    w->slip_state[i] = state;
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_noslip_run(const SnModel *m, SnWorld *w, SnLane *lane, const SnSlipRecord *record) {
  SN_ONE(lane) {
    slip_groups(w);
    slip_islands(m, w);
  }
  SN_SYNC(lane);
  SN_FOR(k, w->slip_num[0]) slip_rows(m, w, k);
  slip_acceleration(m, w, lane, w->slip_acc);
  SN_ONE(lane) {
    int sweep = 0, open = 1;
    for (; sweep < m->opt.noslip_iterations && open > 0; ++sweep)
      open = slip_sweep(m, w, sweep == 0, record ? record->code + sweep * m->nefcmax : NULL,
                        record ? record->before + sweep * m->nefcmax : NULL);
    if (record) record->sweeps[0] = sweep;
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_noslip(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_noslip_keep(m, w, lane);
  sn_noslip_run(m, w, lane, NULL);
  sn_mul_Jt(m, w, lane, w->qfrc_constraint, w->efc_force);
  slip_acceleration(m, w, lane, w->qacc);
  SN_FOR(i, w->nefc[0]) slip_state(w, i);
  SN_SYNC(lane);
}
