// Implicit-in-velocity integration, "fast" and in full (MuJoCo manual, Computation, Numerical integration):
//   (M - h D) a+ = tau + J' f,   v+ = v + h a+,   q+ = q (+) h v+,   act+ as sn_next_activation
// D = d(passive + actuator forces)/dv within M's pattern: damping of dofs and tendons, slopes of fluid forces (fluid.c,
// where their part of the adjoint is, too), and of each actuator moment' (d force / d velocity) moment unless its force
// is saturated. For a free body that nothing is jointed
// to, D also has the derivative of the bias force, and the six equations are solved apart by LU. With s the centre of
// mass from the joint, w the angular velocity, I the inertia about s (world axes), [x] the matrix of x cross:
//   force  m w x (w x s)                 -> K = [w x s] + [w][s],   d/dw = -m K
//   torque s x force + w x I w           -> -m [s] K + [w] I - [I w]
// columns through w = R v, rows of the torque through R'.
//
// With `implicit` D has the derivative of the bias force for all, and the pattern of implicit_matrix.c, which solves.
//
// Adjoint, with B = -D: y = (M + h B)^-T h v+_bar and qacc_bar = M y as for Euler; y' dM (a - a+) is left to
// sn_bias_vjp, and of the bias force of `implicit` to sn_bias_slope_vjp. The derivative of -h y' B a+ is, for each
// slope b of a row J, with rates r_z = J z,
//   -h [db r_y r_+ + b (dr_y r_+ + r_y dr_+)]
// (of a row that branches, branched.c has the second part). A slope depends on the velocity of its tendon (zero at
// v = 0, where |v| has its kink), or on input, length and velocity of its actuator; saturated ones are
// constant, and beyond ctrlrange the input is its bound. For a free body, K a = -(a x (w x s) + w x (a x s)) =: -k
// turns B's part into
//   m f . k + n . (w x I a + a x I w),    f = y_x + n x s
// with y_x, n the translations and the turn (world axes) of y, a the turn of a+. All but y_x turn with the body, so
// that a turn of the body has the derivative of turning y_x back: h m y_x x k.
#include "physics/actuator/actuator.h"
#include "physics/base/muscle_curves.h"
#include "physics/base/polynomial.h"
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/integrate_private.h"

// Whether the force of actuator i is at a limit of its own or of its tendon (within a relative 2e-10, as found in
// MuJoCo 4.0.0), also exactly at it, as in MuJoCo, whose next state this has to be. (Derivatives take that as inside:
// sn_joint_saturated.)
SN_LOCAL bool integrate_held(const SnModel *m, const SnWorld *w, int i) {
  const int trn = m->actuator_trntype[i], id = m->actuator_trnid[2 * i];
  const sn_real *range = m->actuator_forcerange + 2 * i;
  if (trn == SN_TRN_SO3)
    return m->actuator_forcelimited[i] && sn_norm3(w->actuator_force + m->actuator_outadr[i]) >= range[1];
  const sn_real force = sn_limited_force(m, w, i);
  if (m->actuator_forcelimited[i] && (force <= range[0] || force >= range[1])) return true;
  if (trn == SN_TRN_TENDON && m->tendon_actfrclimited[id]) {
    const sn_real slack = sn_max(SN_R(2e-10), 4 * SN_EPS);
    sn_real total = 0;
    for (int k = 0; k < m->nactuator; ++k)
      if (m->actuator_trntype[k] == SN_TRN_TENDON && m->actuator_trnid[2 * k] == id) total += sn_limited_force(m, w, k);
    range = m->tendon_actfrcrange + 2 * id;
    if (total <= range[0] + slack * sn_abs(range[0]) || total >= range[1] - slack * sn_abs(range[1])) return true;
  }
  return false;
}

// Whether actuator i is switched off, or its joint is at the limit of its actuators.
SN_LOCAL bool integrate_off(const SnModel *m, const SnWorld *w, int i) {
  const int trn = m->actuator_trntype[i], id = m->actuator_trnid[2 * i];
  if (sn_actuator_idle(m, w, i)) return true;
  if ((trn != SN_TRN_JOINT && trn != SN_TRN_JOINTINPARENT) || !m->jnt_actfrclimited[id]) return false;
  const sn_real total = w->qfrc_actuator[m->jnt_dofadr[id]], *range = m->jnt_actfrcrange + 2 * id;
  return total <= range[0] || total >= range[1];
}

// Slope of the force of actuator i by velocity. A limit holds all of it but the friction of a motor.
SN_LOCAL sn_real integrate_actuator_slope(const SnModel *m, const SnWorld *w, int i) {
  const int adr = m->actuator_actadr[i], out = m->actuator_outadr[i];
  sn_real bias = 0, gain = 0;
  if (integrate_off(m, w, i)) return 0;
  if (m->actuator_gaintype[i] == SN_GAIN_DCMOTOR) return sn_motor_slope(m, w, i, integrate_held(m, w, i));
  if (integrate_held(m, w, i)) return 0;
  if (m->actuator_biastype[i] == SN_BIAS_AFFINE || m->actuator_biastype[i] == SN_BIAS_SO3)
    bias = m->actuator_biasprm[SN_NBIAS * i + 2];
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE) gain = m->actuator_gainprm[SN_NGAIN * i + 2];
  if (m->actuator_gaintype[i] == SN_GAIN_MUSCLE)
    gain = sn_muscle_gain_slope(m->muscle_gain + SN_NMUSCLE * i, w->actuator_length[out], w->actuator_velocity[out]);
  if (gain == 0) return bias;
  if (adr < 0) return bias + gain * sn_clamped_ctrl(m, w, m->actuator_ctrladr[i]);
  const sn_real *act = m->actuator_actearly[i] ? w->int_act : w->act;
  return bias + gain * act[adr + m->actuator_actnum[i] - 1];
}

// Coefficients b of the terms b J'J of -D: act_slope of outputs, ten_slope of tendons.
SN_LOCAL void integrate_slopes(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool damped = !(m->opt.disableflags & SN_DSBL_DAMPER), driven = !(m->opt.disableflags & SN_DSBL_ACTUATION);
  sn_next_activation(m, w, lane, sn_timestep(m, w), w->int_act);
  SN_FOR(i, m->nactuator) {
    const int first = m->actuator_outadr[i];
    const sn_real slope = driven ? -integrate_actuator_slope(m, w, i) : 0;
    for (int o = first; o < first + m->actuator_outnum[i]; ++o) w->act_slope[o] = slope;
  }
  SN_FOR(t, m->ntendon)
  w->ten_slope[t] = damped ? sn_damping_slope(m->ten_damp + (1 + SN_NPOLY) * t, w->ten_velocity[t]) : 0;
  SN_SYNC(lane);
}

// block (6x6, of the dofs from `adr`) += b J'J for a sparse row.
SN_LOCAL void integrate_block_JtJ(sn_real *block, int adr, sn_real b, int nnz, const int *col, const sn_real *J) {
  for (int p = 0; p < nnz; ++p)
    for (int q = 0; q < nnz; ++q)
      if (col[p] >= adr && col[p] < adr + 6 && col[q] >= adr && col[q] < adr + 6)
        block[6 * (col[p] - adr) + col[q] - adr] += b * J[p] * J[q];
}

// block += h d qfrc_bias / d qvel of free body i: only the three columns of its angular velocity.
SN_LOCAL void integrate_block_bias(const SnModel *m, const SnWorld *w, int i, sn_real h, sn_real *block) {
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
SN_LOCAL bool integrate_solve6(sn_real *A, sn_bar *b, sn_bar *x) {
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

// The matrix M + h B of free body i, and the force on it.
SN_LOCAL void integrate_free_equations(const SnModel *m, const SnWorld *w, int i, sn_real *block, sn_real *b) {
  const int adr = m->body_dofadr[i];
  const sn_real h = sn_timestep(m, w);
  sn_zero(block, 36);
  for (int r = 0; r < 6; ++r) {
    const int row = m->M_rowadr[adr + r], n = m->M_rownnz[adr + r];
    for (int k = 0; k < n; ++k) {
      const int c = m->M_colind[row + k] - adr;
      block[6 * r + c] = block[6 * c + r] = w->M[row + k];
    }
    if (!(m->opt.disableflags & SN_DSBL_DAMPER))
      block[7 * r] += h * sn_damping_slope(m->dof_damp + (1 + SN_NPOLY) * (adr + r), w->qvel[adr + r]);
    b[r] = w->qfrc_smooth[adr + r] + w->qfrc_constraint[adr + r];
  }
  for (int t = 0; t < m->ntendon; ++t) {
    const int J = m->ten_J_rowadr[t];
    if (w->ten_slope[t] != 0)
      integrate_block_JtJ(block, adr, h * w->ten_slope[t], m->ten_J_rownnz[t], m->ten_J_colind + J, w->ten_J + J);
  }
  for (int a = 0; a < m->nout; ++a) {
    const int J = m->mom_rowadr[a];
    if (w->act_slope[a] != 0)
      integrate_block_JtJ(block, adr, h * w->act_slope[a], m->mom_rownnz[a], m->mom_colind + J, w->actuator_moment + J);
  }
  for (int k = 0; sn_in_fluid(m) && k < 36; ++k) block[k] -= h * sn_velocity_slope(m, w, adr + k / 6, adr + k % 6);
  integrate_block_bias(m, w, i, h, block);
}

#if !defined(SN_PACK)
// Replaces the acceleration of free body i by that of its own unsymmetric equations.
SN_LOCAL void integrate_free_body(const SnModel *m, SnWorld *w, int i) {
  sn_real block[36], b[6], x[6];
  integrate_free_equations(m, w, i, block, b);
  if (integrate_solve6(block, b, x)) sn_copy(w->int_qacc + m->body_dofadr[i], x, 6);
}

SN_FUNC void sn_implicit_acceleration(const SnModel *m, SnWorld *w, SnLane *lane) {
  const sn_real h = sn_timestep(m, w);
  integrate_slopes(m, w, lane);
  if (m->opt.integrator == SN_INT_IMPLICIT) {
    SN_FOR(i, m->nv) w->int_qacc[i] = w->qfrc_smooth[i] + w->qfrc_constraint[i];
    sn_implicit_factor(m, w, lane);
    sn_implicit_solve(m, w, lane, false, w->int_qacc);
    return;
  }
  sn_damped_M(m, w, lane, !(m->opt.disableflags & SN_DSBL_DAMPER));
  for (int t = 0; t < m->ntendon; ++t) {
    const int J = m->ten_J_rowadr[t];
    if (w->ten_slope[t] != 0)
      sn_add_JtJ(m, lane, w->qH, h * w->ten_slope[t], m->ten_J_rownnz[t], m->ten_J_colind + J, w->ten_J + J);
  }
  for (int a = 0; a < m->nout; ++a) {
    const int J = m->mom_rowadr[a];
    if (w->act_slope[a] != 0)
      sn_add_JtJ(m, lane, w->qH, h * w->act_slope[a], m->mom_rownnz[a], m->mom_colind + J, w->actuator_moment + J);
  }
  if (sn_in_fluid(m)) {
    sn_velocity_slopes(m, w, lane);
    SN_FOR(i, m->nv) {
      for (int k = m->M_rowadr[i]; k < m->M_rowadr[i] + m->M_rownnz[i]; ++k)
        w->qH[k] -= h * sn_velocity_slope(m, w, i, m->M_colind[k]);
    }
    SN_SYNC(lane);
  }
  sn_damped_solve(m, w, lane);
  SN_FOR(k, m->nfreebody) integrate_free_body(m, w, m->freebody_list[k]);
  SN_SYNC(lane);
}

SN_FUNC void sn_integrate_implicitfast(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_implicit_acceleration(m, w, lane);
  sn_advance(m, w, lane, w->int_qacc, NULL);
}
#endif

#if defined(SN_MODEL_BARS)
// What the part of a free body's bias force in -h y' B a+ is made of: the head of this file.
typedef struct IntegrateFree {
  const sn_real *omega, *turn, *k;
  const sn_bar *n, *f;
} IntegrateFree;

// The same part by mass, centre of mass and inertia: -h [m f . k + (n x w) . I a + (n x a) . I w].
SN_LOCAL void integrate_free_model_vjp(const SnWorld *w, SnModelBar *to, int i, sn_real mass, sn_real h,
                                       const IntegrateFree *b) {
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

// Replaces y of free body i, v_bar (nv) the bar of its new velocity; adds the derivative of its part of -h y' B a+.
// Where the equations are singular both are those of the symmetric matrix, as the acceleration is.
SN_LOCAL void integrate_free_body_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_bar *v_bar) {
  const int adr = m->body_dofadr[i];
  const sn_real h = sn_timestep(m, w), *R = w->xmat + 9 * i, *I = w->link_xinertia + 6 * i, mass = m->link_mass[i];
  const sn_real inertia[9] = {I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2]};
  sn_real block[36], transposed[36], force[6];
  sn_bar b[6], x[6], *y = a->motion + SN_Y * m->nv + adr;
  integrate_free_equations(m, w, i, block, force);
  sn_copy(b, force, 6);
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 6; ++c) transposed[6 * r + c] = block[6 * c + r];
  if (!integrate_solve6(block, b, x)) return;
  for (int r = 0; r < 6; ++r) b[r] = h * v_bar[adr + r];
  if (integrate_solve6(transposed, b, x)) sn_copy(y, x, 6);
  sn_real s[3], omega[3], turn[3], k[3], ws[3], as[3], spin[3], Ia[3];
  sn_bar n[3], f[3], t[3], u[3], local[3], bar[3];
  sn_sub3(s, w->link_xcom + 3 * i, w->xpos + 3 * i);
  sn_mulmatvec3(omega, R, w->qvel + adr + 3);
  sn_mulmatvec3(turn, R, w->int_qacc + adr + 3);
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
  const IntegrateFree free_body = {omega, turn, k, n, f};
  if (sn_model_bar(a)) integrate_free_model_vjp(w, sn_model_bar(a), i, mass, h, &free_body);
#endif
}

// r_y r_+ of a row, cut to the pattern; rates and their bars as far as the row does not branch.
SN_LOCAL sn_bar integrate_row_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const SnRow *row, sn_real b,
                                  sn_bar *bar) {
  const sn_bar *y = a->motion + SN_Y * m->nv, *next = a->motion + SN_NEXT * m->nv;
  const sn_real h = sn_timestep(m, w);
  if (!sn_row_is_chain(m, row, true)) return sn_row_form(m, row, true, y, next);
  sn_bar ry = {0}, rn = {0};
  for (int k = 0; k < row->n; ++k) {
    ry += row->J[k] * y[row->col[k]];
    rn += row->J[k] * next[row->col[k]];
  }
  bar[SN_Y] -= h * b * rn;
  bar[SN_NEXT] -= h * b * ry;
  return ry * rn;
}

// Damper of tendon t.
SN_LOCAL void integrate_tendon_slope_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t) {
  const SnRow row = sn_tendon_row(m, w, t);
  sn_bar *bar = a->ten_rate_bar + SN_NMOTION * t;
  const sn_bar product = integrate_row_vjp(m, w, a, &row, w->ten_slope[t], bar);
  bar[SN_VEL] -= sn_timestep(m, w) * product * sn_damping_curve(m->ten_damp + (1 + SN_NPOLY) * t, w->ten_velocity[t]);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->ten_damp)
    sn_damping_slope_vjp(sn_model_bar(a)->ten_damp + (1 + SN_NPOLY) * t, w->ten_velocity[t],
                         -sn_timestep(m, w) * product);
#endif
}

#if defined(SN_MODEL_BARS)
// The slope of actuator i by the model, with the bar `bar`.
SN_LOCAL void integrate_slope_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *to, int i, sn_real input,
                                        sn_bar bar) {
  const int out = m->actuator_outadr[i];
  const int type = m->actuator_biastype[i];
  if ((type == SN_BIAS_AFFINE || type == SN_BIAS_SO3) && to->actuator_biasprm)
    to->actuator_biasprm[SN_NBIAS * i + 2] += bar;
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE && to->actuator_gainprm)
    to->actuator_gainprm[SN_NGAIN * i + 2] += bar * input;
  if (m->actuator_gaintype[i] != SN_GAIN_MUSCLE || !to->muscle_gain || !to->muscle_moved[i]) return;
  const sn_real *table = m->muscle_gain + SN_NMUSCLE * i;
  sn_real moved[SN_NMUSCLE], end[2];
  sn_copy(moved, table, SN_NMUSCLE);
  for (int k = 0; k < SN_NMUSCLE; ++k) {
    const sn_real h = SN_DIFFERENCE * sn_max(sn_abs(table[k]), SN_R(1e-3));
    for (int e = 0; e < 2; ++e) {
      moved[k] = table[k] + (e == 0 ? h : -h);
      end[e] = sn_muscle_gain_slope(moved, w->actuator_length[out], w->actuator_velocity[out]);
    }
    moved[k] = table[k];
    to->muscle_gain[SN_NMUSCLE * i + k] += bar * input * (end[0] - end[1]) / (2 * h);
  }
}
#endif

// Actuator i; act_next_bar: where an input that is the next activation adds to.
SN_LOCAL void integrate_actuator_slope_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const int adr = m->actuator_actadr[i], out = m->actuator_outadr[i], last = adr + m->actuator_actnum[i] - 1;
  const bool motor = m->actuator_gaintype[i] == SN_GAIN_DCMOTOR, held = integrate_held(m, w, i);
  if (integrate_off(m, w, i) || (held && !motor)) return;
  sn_bar *bar = a->trn_rate_bar + SN_NMOTION * out, slope_bar = {0};
  sn_real gain = 0, input;
  for (int o = out; o < out + m->actuator_outnum[i]; ++o) {
    const SnRow row = sn_output_row(m, w, o);
    slope_bar +=
        sn_timestep(m, w) * integrate_row_vjp(m, w, a, &row, w->act_slope[o], a->trn_rate_bar + SN_NMOTION * o);
  }
  if (motor) {
    sn_motor_slope_vjp(m, w, a, i, held, slope_bar);
    return;
  }
  if (m->actuator_gaintype[i] == SN_GAIN_SO3) {
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) integrate_slope_model_vjp(m, w, sn_model_bar(a), i, 0, slope_bar);
#endif
    return;
  }
  const bool muscle = m->actuator_gaintype[i] == SN_GAIN_MUSCLE;
  const sn_real *table = m->muscle_gain + SN_NMUSCLE * i, length = w->actuator_length[out];
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE) gain = m->actuator_gainprm[SN_NGAIN * i + 2];
  if (muscle) gain = sn_muscle_gain_slope(table, length, w->actuator_velocity[out]);
  if (adr < 0) {
    const int k = m->actuator_ctrladr[i];
    input = sn_clamped_ctrl(m, w, k);
    sn_ctrl_vjp(m, w, a, k, false, slope_bar * gain);
  } else if (m->actuator_actearly[i]) {
    input = w->int_act[last];
    a->act_next_bar[last] += slope_bar * gain;
  } else {
    input = w->act[last];
    a->act_bar[last] += slope_bar * gain;
  }
  if (muscle)
    sn_muscle_gain_slope_vjp(table, length, w->actuator_velocity[out], slope_bar * input, a->trn_length_bar + out,
                             bar + SN_VEL);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) integrate_slope_model_vjp(m, w, sn_model_bar(a), i, input, slope_bar);
#endif
}

SN_FUNC void sn_integrate_implicitfast_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const sn_real h = sn_timestep(m, w);
  sn_bar *y = a->motion + SN_Y * m->nv, *next = a->motion + SN_NEXT * m->nv;
  sn_implicit_acceleration(m, w, lane);
  sn_advance_vjp(m, w, a, lane, w->int_qacc);
  SN_FOR(i, m->nv) {
    y[i] = h * a->qacc_bar[i];
    next[i] = sn_bar_of(w->int_qacc[i]);
  }
  SN_SYNC(lane);
  if (m->opt.integrator == SN_INT_IMPLICIT) {
    sn_implicit_solve(m, w, lane, true, y);
  } else {
    sn_solve_LD(m, lane, w->qH, w->qHDiagInv, y);
    SN_FOR(k, m->nfreebody) integrate_free_body_vjp(m, w, a, m->freebody_list[k], a->qacc_bar);
    SN_SYNC(lane);
  }
  sn_mul_M(m, w, lane, a->qacc_bar, y);
  if (!(m->opt.disableflags & SN_DSBL_DAMPER)) {
    sn_dof_damping_vjp(m, w, a, lane);
    SN_FOR(k, m->ntenpassive) integrate_tendon_slope_vjp(m, w, a, m->tenpassive_list[k]);
  }
  // slopes that read the next activation add to its bar, which is given back as it was
  SN_FOR(i, m->na) a->act_next_kept[i] = a->act_next_bar[i];
  SN_SYNC(lane);
  if (!(m->opt.disableflags & SN_DSBL_ACTUATION)) SN_FOR(i, m->nactuator) integrate_actuator_slope_vjp(m, w, a, i);
  SN_SYNC(lane);
  sn_advance_activation_vjp(m, w, a, lane);
  SN_FOR(i, m->na) a->act_next_bar[i] = a->act_next_kept[i];
  SN_SYNC(lane);
}
