// Free bodies to which nothing is jointed, under integrators that are implicit in velocity: their six equations have
// the derivative of the bias force in their matrix, and are solved apart by LU (MuJoCo manual, Computation, Numerical
// integration). With s the centre of mass from the joint, w the angular velocity, I the inertia about s (world axes),
// [x] the matrix of x cross:
//   force  m w x (w x s)                 -> K = [w x s] + [w][s],   d/dw = -m K
//   torque s x force + w x I w           -> -m [s] K + [w] I - [I w]
// columns through w = R v, rows of the torque through R'. Call that G = d qfrc_bias / d v. With implicitfast the matrix
// is M + h B + h G, B = -D of integrate_implicit.c. Under `discrete` only a body that stands alone has such equations,
//   (M + B + h G) a+ = (M + B) a,
// B of metric.c: no row of a constraint has its dofs, whether it acts or not, nor has a tendon or actuator of B. Its
// qacc is a+, and qacc_smooth the a that the solver has found for it.
//
// Adjoint: y = A^-T a+_bar for the matrix A, and a_bar = (M + B) y. For a turn a of a+, K a = -(a x (w x s) + w x (a x
// s)) =: -k makes of -h y' G a+
//   -h [m f . k + n . (w x I a + a x I w)],    f = y_x + n x s
// with y_x, n the translations and the turn (world axes) of y. All but y_x turn with the body, so that a turn of the
// body has the derivative of turning y_x back: h m y_x x k.
#include "physics/base/polynomial.h"
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

// block (6x6, of the dofs from `adr`) += b J'J for a sparse row.
SN_LOCAL void free_block_JtJ(sn_real *block, int adr, sn_real b, int nnz, const int *col, const sn_real *J) {
  for (int p = 0; p < nnz; ++p)
    for (int q = 0; q < nnz; ++q)
      if (col[p] >= adr && col[p] < adr + 6 && col[q] >= adr && col[q] < adr + 6)
        block[6 * (col[p] - adr) + col[q] - adr] += b * J[p] * J[q];
}

// block += h d qfrc_bias / d qvel of free body i: only the three columns of its angular velocity.
SN_LOCAL void free_block_bias(const SnModel *m, const SnWorld *w, int i, sn_real h, sn_real *block) {
  const sn_real *R = w->xmat + 9 * i, *I = w->link_xinertia + 6 * i, mass = m->link_mass[i];
  const sn_real inertia[9] = {I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2]};
  sn_real s[3], omega[3], ws[3], Iw[3];
  sn_sub3(s, w->link_xcom + 3 * i, w->xpos + 3 * i);
  sn_mulmatvec3(omega, R, w->qvel + m->body_dofadr[i] + 3);
  sn_cross(ws, omega, s);
  sn_mulmatvec3(Iw, inertia, omega);
  for (int c = 0; c < 3; ++c) {
    // along the c-th axis e of the body, K e = ws x e + w x (s x e), and the torque's change
    const sn_real e[3] = {R[c], R[3 + c], R[6 + c]};
    sn_real Ke[3], t[3], torque[3], local[3];
    sn_cross(t, s, e);
    sn_cross(Ke, omega, t);
    sn_cross(t, ws, e);
    sn_addto3(Ke, t);
    sn_cross(torque, s, Ke);
    sn_scale3(torque, torque, -mass);
    sn_mulmatvec3(local, inertia, e);
    sn_cross(t, omega, local);
    sn_addto3(torque, t);
    sn_cross(t, Iw, e);
    sn_subfrom3(torque, t);
    sn_mulmattvec3(local, R, torque);
    for (int r = 0; r < 3; ++r) {
      block[6 * r + 3 + c] -= h * mass * Ke[r];
      block[6 * (3 + r) + 3 + c] += h * local[r];
    }
  }
}

// Solves A x = b for 6 unknowns by elimination with row exchanges; A and b are destroyed. False when A is singular.
SN_LOCAL bool free_solve6(sn_real *A, sn_bar *b, sn_bar *x) {
  for (int k = 0; k < 6; ++k) {
    int best = k;
    for (int r = k + 1; r < 6; ++r)
      if (sn_abs(A[6 * r + k]) > sn_abs(A[6 * best + k])) best = r;
    if (!(sn_abs(A[6 * best + k]) >= SN_MINVAL)) return false;
    for (int c = 0; c < 6; ++c) {
      const sn_real t = A[6 * k + c];
      A[6 * k + c] = A[6 * best + c];
      A[6 * best + c] = t;
    }
    const sn_bar t = b[k];
    b[k] = b[best];
    b[best] = t;
    for (int r = k + 1; r < 6; ++r) {
      const sn_real f = A[6 * r + k] / A[6 * k + k];
      for (int c = k; c < 6; ++c) A[6 * r + c] -= f * A[6 * k + c];
      b[r] -= f * b[k];
    }
  }
  for (int k = 5; k >= 0; --k) {
    sn_bar s = b[k];
    for (int c = k + 1; c < 6; ++c) s -= A[6 * k + c] * x[c];
    x[k] = s / A[6 * k + k];
  }
  return true;
}

// Entry k of M, of `discrete` with the drag of a fluid.
SN_INLINE sn_real free_M(const SnModel *m, const SnWorld *w, int k) {
  return sn_has_metric(m) && sn_in_fluid(m) ? w->M[k] + w->efm_fluid[k] : w->M[k];
}

// The matrix of free body i, and the force on it: M + h B, of `discrete` M + B, each with h d qfrc_bias / d qvel.
SN_LOCAL void free_equations(const SnModel *m, const SnWorld *w, int i, sn_real *block, sn_real *b) {
  const int adr = m->body_dofadr[i];
  const sn_real h = sn_timestep(m, w);
  sn_zero(block, 36);
  for (int r = 0; r < 6; ++r) {
    const int row = m->M_rowadr[adr + r], n = m->M_rownnz[adr + r];
    for (int k = 0; k < n; ++k) {
      const int c = m->M_colind[row + k] - adr;
      block[6 * r + c] = block[6 * c + r] = free_M(m, w, row + k);
    }
    if (sn_has_metric(m))
      block[7 * r] += w->efm_diag[adr + r];
    else if (!(m->opt.disableflags & SN_DSBL_DAMPER))
      block[7 * r] += h * sn_damping_slope(m->dof_damp + (1 + SN_NPOLY) * (adr + r), w->qvel[adr + r]);
    b[r] = sn_has_metric(m) ? w->qfrc_metric[adr + r] : w->qfrc_smooth[adr + r] + w->qfrc_constraint[adr + r];
  }
  // under `discrete` no tendon or actuator moves such a body
  for (int t = 0; !sn_has_metric(m) && t < m->ntendon; ++t) {
    const int J = m->ten_J_rowadr[t];
    if (w->ten_slope[t] != 0)
      free_block_JtJ(block, adr, h * w->ten_slope[t], m->ten_J_rownnz[t], m->ten_J_colind + J, w->ten_J + J);
  }
  for (int a = 0; !sn_has_metric(m) && a < m->nout; ++a) {
    const int J = m->mom_rowadr[a];
    if (w->act_slope[a] != 0)
      free_block_JtJ(block, adr, h * w->act_slope[a], m->mom_rownnz[a], m->mom_colind + J, w->actuator_moment + J);
  }
  for (int k = 0; !sn_has_metric(m) && sn_in_fluid(m) && k < 36; ++k)
    block[k] -= h * sn_velocity_slope(m, w, adr + k / 6, adr + k % 6);
  free_block_bias(m, w, i, h, block);
}

#if !defined(SN_PACK)
SN_FUNC void sn_free_body(const SnModel *m, const SnWorld *w, int i, sn_real *acc) {
  sn_real block[36], b[6], x[6];
  free_equations(m, w, i, block, b);
  if (free_solve6(block, b, x)) sn_copy(acc + m->body_dofadr[i], x, 6);
}
#endif

#if defined(SN_MODEL_BARS)
// What the part of a free body's bias force in -h y' B a+ is made of: the head of this file.
typedef struct FreeBias {
  const sn_real *omega, *turn, *k;
  const sn_bar *n, *f;
} FreeBias;

// The same part by mass, centre of mass and inertia: -h [m f . k + (n x w) . I a + (n x a) . I w].
SN_LOCAL void free_model_vjp(const SnWorld *w, SnModelBar *to, int i, sn_real mass, sn_real h, const FreeBias *b) {
  const sn_real *R = w->xmat + 9 * i;
  sn_bar t[3], u[3], sum[3], local[3], along[3];
  if (to->link_mass) to->link_mass[i] -= h * sn_dot3(b->f, b->k);
  if (to->link_com) {
    sn_cross(sum, b->k, b->n);
    sn_cross(t, b->f, b->turn);
    sn_cross(u, t, b->omega);
    sn_addto3(sum, u);
    sn_cross(t, b->f, b->omega);
    sn_cross(u, t, b->turn);
    sn_addto3(sum, u);
    sn_mulmattvec3(local, R, sum);
    sn_addtoscl3(to->link_com + 3 * i, local, -h * mass);
  }
  if (!to->link_inertia) return;
  sn_cross(t, b->n, b->omega);
  sn_copy3(along, b->turn);
  sn_add_inertia_bar(to->link_inertia + 6 * i, R, t, along, -h);
  sn_cross(t, b->n, b->turn);
  sn_copy3(along, b->omega);
  sn_add_inertia_bar(to->link_inertia + 6 * i, R, t, along, -h);
}
#endif

SN_FUNC void sn_free_body_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *acc,
                              sn_real scale, const sn_bar *acc_bar) {
  const int adr = m->body_dofadr[i];
  const sn_real h = sn_timestep(m, w), *R = w->xmat + 9 * i, *I = w->link_xinertia + 6 * i, mass = m->link_mass[i];
  const sn_real inertia[9] = {I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2]};
  sn_real block[36], transposed[36], force[6];
  sn_bar b[6], x[6], *y = a->motion + SN_Y * m->nv + adr;
  free_equations(m, w, i, block, force);
  sn_copy(b, force, 6);
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 6; ++c) transposed[6 * r + c] = block[6 * c + r];
  if (!free_solve6(block, b, x)) return;
  for (int r = 0; r < 6; ++r) b[r] = scale * acc_bar[adr + r];
  if (free_solve6(transposed, b, x)) sn_copy(y, x, 6);
  sn_real s[3], omega[3], turn[3], k[3], ws[3], as[3], spin[3], Ia[3];
  sn_bar n[3], f[3], t[3], u[3], local[3], bar[3];
  sn_sub3(s, w->link_xcom + 3 * i, w->xpos + 3 * i);
  sn_mulmatvec3(omega, R, w->qvel + adr + 3);
  sn_mulmatvec3(turn, R, acc + adr + 3);
  sn_mulmatvec3(n, R, y + 3);
  sn_cross(f, n, s);
  sn_addto3(f, y);
  // a turn of the body
  sn_cross(ws, omega, s);
  sn_cross(as, turn, s);
  sn_cross(k, turn, ws);
  sn_cross(spin, omega, as);
  sn_addto3(k, spin);
  sn_cross(t, y, k);
  sn_mulmattvec3(local, R, t);
  sn_addtoscl3(a->qpos_bar + adr + 3, local, h * mass);
  // w: m (s x (f x a) + (a x s) x f) + I a x n + I (n x a)
  sn_cross(t, f, turn);
  sn_cross(bar, s, t);
  sn_cross(t, as, f);
  sn_addto3(bar, t);
  sn_scale3(bar, bar, mass);
  sn_mulmatvec3(Ia, inertia, turn);
  sn_cross(t, Ia, n);
  sn_addto3(bar, t);
  sn_cross(t, n, turn);
  sn_mulmatvec3(u, inertia, t);
  sn_addto3(bar, u);
  sn_mulmattvec3(local, R, bar);
  sn_addtoscl3(a->qvel_bar + adr + 3, local, -h);
#if defined(SN_MODEL_BARS)
  const FreeBias free_body = {omega, turn, k, n, f};
  if (sn_model_bar(a)) free_model_vjp(w, sn_model_bar(a), i, mass, h, &free_body);
#endif
}

#if !defined(SN_PACK)
SN_FUNC void sn_free_touch(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) w->efm_touched[i] = 0;
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int k = 0; k < m->ntendon + m->nout; ++k) {
      SnRow row;
      const sn_real s = sn_metric_term(m, w, k, &row);
      for (int q = 0; s != 0 && q < row.n; ++q) w->efm_touched[row.col[q]] = 1;
    }
    for (int row = 0; row < w->nefc[0]; ++row) {
      const int *col = w->efc_J_colind + w->efc_J_rowadr[row];
      for (int q = 0; q < w->efc_J_rownnz[row]; ++q) w->efm_touched[col[q]] = 1;
    }
  }
  SN_SYNC(lane);
}

SN_FUNC bool sn_free_is_alone(const SnModel *m, const SnWorld *w, int i) {
  const int first = m->body_dofadr[i];
  for (int k = first; k < first + 6; ++k)
    if (w->efm_touched[k]) return false;
  return true;
}
#endif

SN_FUNC void sn_free_alone_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_bar *y = a->motion + SN_Y * m->nv, *next = a->motion + SN_NEXT * m->nv;
  SN_FOR(k, m->nfreebody) {
    const int i = m->freebody_list[k], adr = m->body_dofadr[i];
    if (!sn_free_is_alone(m, w, i)) continue;
    for (int r = adr; r < adr + 6; ++r) next[r] = sn_bar_of(w->qacc[r]);
    sn_free_body_vjp(m, w, a, i, w->qacc, 1, a->qacc_bar);
    for (int r = adr; r < adr + 6; ++r) a->qacc_bar[r] = w->efm_diag[r] * y[r];
    for (int r = adr; r < adr + 6; ++r) {
      for (int p = m->M_rowadr[r]; p < m->M_rowadr[r] + m->M_rownnz[r]; ++p) {
        const int c = m->M_colind[p];
        a->qacc_bar[r] += free_M(m, w, p) * y[c];
        if (c != r) a->qacc_bar[c] += free_M(m, w, p) * y[r];
      }
    }
  }
  SN_SYNC(lane);
}
