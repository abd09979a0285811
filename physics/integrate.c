// From accelerations to the next state: semi-implicit Euler, implicit-in-velocity "fast", Runge-Kutta 4.
//
// Euler and implicitfast (MuJoCo manual, Computation, Numerical integration):
//   (M - h D) a = tau + J' f,   v+ = v + h a,   q+ = q (+) h v+,   act+ as sn_next_activation
// Euler: D = -(damping of dofs with its slope), diagonal; left out with flag eulerdamp or damper, then a = qacc.
// implicitfast: D = d(passive + actuator forces)/dv within M's pattern: damping of dofs and tendons, and of each
// actuator moment' (d force / d velocity) moment unless its force is saturated. For a free body that nothing is jointed
// to, D also has the derivative of the bias force, and the six equations are solved apart by LU. With s the centre of
// mass from the joint, w the angular velocity, I the inertia about s (world axes), [x] the matrix of x cross:
//   force  m w x (w x s)                 -> K = [w x s] + [w][s],   d/dw = -m K
//   torque s x force + w x I w           -> -m [s] K + [w] I - [I w]
// columns through w = R v, rows of the torque through R'.
//
// RK4: four evaluations of sn_forward. Rotations are combined in the Lie algebra at the start of the step (H.
// Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999): the rate of u in q = q0 exp(u) is
//   dexpinv(u, w) = w + u x w / 2 + c u x (u x w),   c = (1 - |u|/2 cot(|u|/2)) / |u|^2
// with w in the body's frame.
#include "physics/muscle.h"
#include "physics/stages.h"
#include "physics/vec.h"

SN_FUNC void sn_integrate_pos(const SnModel *m, SnLane *lane, sn_real *qpos, const sn_real *qvel, sn_real dt) {
  SN_FOR(j, m->njnt) {
    const int type = m->jnt_type[j];
    sn_real *q = qpos + m->jnt_qposadr[j];
    const sn_real *v = qvel + m->jnt_dofadr[j];
    if (type == SN_JNT_HINGE || type == SN_JNT_SLIDE) {
      q[0] += dt * v[0];
      continue;
    }
    if (type == SN_JNT_FREE) {
      sn_addtoscl3(q, v, dt);
      q += 3;
      v += 3;
    }
    sn_quatintegrate(q, v, dt);
  }
  SN_SYNC(lane);
}

// d(v p(|v|))/dv of a damper with coefficients damp[0] + damp[1] |v| + damp[2] v^2.
SN_LOCAL sn_real integrate_damping(const sn_real *damp, sn_real v) {
  sn_real s = 0;
  for (int p = SN_NPOLY; p > 0; --p) s = (s + (sn_real)(p + 1) * damp[p]) * sn_abs(v);
  return damp[0] + s;
}

// qH = M + h diag(damping); damping enters when `damped`.
SN_LOCAL void integrate_damped_M(const SnModel *m, SnWorld *w, SnLane *lane, bool damped) {
  SN_FOR(k, m->nC) w->qH[k] = w->M[k];
  SN_SYNC(lane);
  if (!damped) return;
  SN_FOR(i, m->nv)
  w->qH[m->M_rowadr[i] + m->M_rownnz[i] - 1] +=
      m->opt.timestep * integrate_damping(m->dof_damp + (1 + SN_NPOLY) * i, w->qvel[i]);
  SN_SYNC(lane);
}

// int_qacc = qH^-1 (qfrc_smooth + qfrc_constraint); qH becomes its factor.
SN_LOCAL void integrate_solve(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) w->int_qacc[i] = w->qfrc_smooth[i] + w->qfrc_constraint[i];
  sn_factor_LD(m, w, lane, w->qH, w->qHDiagInv);
  sn_solve_LD(m, lane, w->qH, w->qHDiagInv, w->int_qacc);
}

// Advances activations, velocities, positions and time, and keeps qacc for the next warm start. Positions move with
// `qvel`, or with the new velocity when it is NULL.
SN_LOCAL void integrate_advance(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real *qacc, const sn_real *qvel) {
  const sn_real h = m->opt.timestep;
  if (m->na > 0 && !(m->opt.disableflags & SN_DSBL_ACTUATION)) {
    sn_next_activation(m, w, lane, h, w->int_act);
    SN_FOR(i, m->na) w->act[i] = w->int_act[i];
  }
  SN_FOR(i, m->nv) {
    w->qvel[i] += h * qacc[i];
    w->qacc_warmstart[i] = w->qacc[i];
  }
  SN_SYNC(lane);
  sn_integrate_pos(m, lane, w->qpos, qvel ? qvel : w->qvel, h);
  SN_ONE(lane) w->time[0] += h;
  SN_SYNC(lane);
}

SN_LOCAL void integrate_euler(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (m->nimplicit > 0 && !(m->opt.disableflags & (SN_DSBL_EULERDAMP | SN_DSBL_DAMPER))) {
    integrate_damped_M(m, w, lane, true);
    integrate_solve(m, w, lane);
    integrate_advance(m, w, lane, w->int_qacc, NULL);
  } else {
    integrate_advance(m, w, lane, w->qacc, NULL);
  }
}

// d actuator_force / d actuator_velocity of actuator i at the input that made its force. Zero when it is disabled or
// its force is at a limit of its own, of its tendon (within a relative 2e-10, as found in MuJoCo 4.0.0) or of its
// joint.
SN_LOCAL bool integrate_saturated(const SnModel *m, const SnWorld *w, int i) {
  const int group = m->actuator_group[i], trn = m->actuator_trntype[i], id = m->actuator_trnid[2 * i];
  const sn_real force = w->actuator_force[m->actuator_outadr[i]], *range = m->actuator_forcerange + 2 * i;
  if (group >= 0 && group <= 30 && (m->opt.disableactuator & (1 << group))) return true;
  if (m->actuator_forcelimited[i] && (force <= range[0] || force >= range[1])) return true;
  if ((trn == SN_TRN_JOINT || trn == SN_TRN_JOINTINPARENT) && m->jnt_actfrclimited[id]) {
    const sn_real total = w->qfrc_actuator[m->jnt_dofadr[id]];
    range = m->jnt_actfrcrange + 2 * id;
    if (total <= range[0] || total >= range[1]) return true;
  }
  if (trn == SN_TRN_TENDON && m->tendon_actfrclimited[id]) {
    const sn_real slack = sn_max(SN_R(2e-10), 4 * SN_EPS);
    sn_real total = 0;
    for (int k = 0; k < m->nactuator; ++k)
      if (m->actuator_trntype[k] == SN_TRN_TENDON && m->actuator_trnid[2 * k] == id)
        total += w->actuator_force[m->actuator_outadr[k]];
    range = m->tendon_actfrcrange + 2 * id;
    if (total <= range[0] + slack * sn_abs(range[0]) || total >= range[1] - slack * sn_abs(range[1])) return true;
  }
  return false;
}

SN_LOCAL sn_real integrate_actuator_slope(const SnModel *m, const SnWorld *w, int i) {
  const int adr = m->actuator_actadr[i], out = m->actuator_outadr[i];
  sn_real bias = 0, gain = 0;
  if (m->actuator_biastype[i] == SN_BIAS_AFFINE) bias = m->actuator_biasprm[SN_NBIAS * i + 2];
  if (m->actuator_gaintype[i] == SN_GAIN_AFFINE) gain = m->actuator_gainprm[SN_NGAIN * i + 2];
  if (m->actuator_gaintype[i] == SN_GAIN_MUSCLE)
    gain = sn_muscle_gain_slope(m->muscle_gain + SN_NMUSCLE * i, w->actuator_length[out], w->actuator_velocity[out]);
  if (gain == 0) return bias;
  if (adr < 0) {
    const int k = m->actuator_ctrladr[i];
    const bool clamp = m->actuator_ctrllimited[k] && !(m->opt.disableflags & SN_DSBL_CLAMPCTRL);
    const sn_real u = w->ctrl[k], *range = m->actuator_ctrlrange + 2 * k;
    return bias + gain * (clamp ? sn_clip(u, range[0], range[1]) : u);
  }
  const sn_real *act = m->actuator_actearly[i] ? w->int_act : w->act;
  return bias + gain * act[adr + m->actuator_actnum[i] - 1];
}

// Coefficients b of the terms b J'J of -D: act_slope of outputs, ten_slope of tendons.
SN_LOCAL void integrate_slopes(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool damped = !(m->opt.disableflags & SN_DSBL_DAMPER), driven = !(m->opt.disableflags & SN_DSBL_ACTUATION);
  sn_next_activation(m, w, lane, m->opt.timestep, w->int_act);
  SN_FOR(i, m->nactuator)
  w->act_slope[m->actuator_outadr[i]] =
      driven && !integrate_saturated(m, w, i) ? -integrate_actuator_slope(m, w, i) : 0;
  SN_FOR(t, m->ntendon)
  w->ten_slope[t] = damped ? integrate_damping(m->ten_damp + (1 + SN_NPOLY) * t, w->ten_velocity[t]) : 0;
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
SN_LOCAL bool integrate_solve6(sn_real *A, sn_real *b, sn_real *x) {
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
    const sn_real t = b[k];
    b[k] = b[best];
    b[best] = t;
    for (int r = k + 1; r < 6; ++r) {
      const sn_real f = A[6 * r + k] / A[6 * k + k];
      for (int c = k; c < 6; ++c) A[6 * r + c] -= f * A[6 * k + c];
      b[r] -= f * b[k];
    }
  }
  for (int k = 5; k >= 0; --k) {
    sn_real s = b[k];
    for (int c = k + 1; c < 6; ++c) s -= A[6 * k + c] * x[c];
    x[k] = s / A[6 * k + k];
  }
  return true;
}

// Replaces the acceleration of free body i by that of its own unsymmetric equations.
SN_LOCAL void integrate_free_body(const SnModel *m, SnWorld *w, int i) {
  const int adr = m->body_dofadr[i];
  const sn_real h = m->opt.timestep;
  sn_real block[36] = {0}, b[6];
  for (int r = 0; r < 6; ++r) {
    const int row = m->M_rowadr[adr + r], n = m->M_rownnz[adr + r];
    for (int k = 0; k < n; ++k) {
      const int c = m->M_colind[row + k] - adr;
      block[6 * r + c] = block[6 * c + r] = w->M[row + k];
    }
    if (!(m->opt.disableflags & SN_DSBL_DAMPER))
      block[7 * r] += h * integrate_damping(m->dof_damp + (1 + SN_NPOLY) * (adr + r), w->qvel[adr + r]);
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
  integrate_block_bias(m, w, i, h, block);
  sn_real x[6];
  if (integrate_solve6(block, b, x)) sn_copy(w->int_qacc + adr, x, 6);
}

SN_LOCAL void integrate_implicitfast(const SnModel *m, SnWorld *w, SnLane *lane) {
  const sn_real h = m->opt.timestep;
  integrate_slopes(m, w, lane);
  integrate_damped_M(m, w, lane, !(m->opt.disableflags & SN_DSBL_DAMPER));
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
  integrate_solve(m, w, lane);
  SN_FOR(k, m->nfreebody) integrate_free_body(m, w, m->freebody_list[k]);
  SN_SYNC(lane);
  integrate_advance(m, w, lane, w->int_qacc, NULL);
}

// w <- dexpinv(u, w), see the head of this file; near u = 0 the coefficient by its series.
SN_LOCAL void integrate_dexpinv(const sn_real *u, sn_real *w) {
  const sn_real u2 = sn_dot3(u, u), half = SN_R(0.5) * sn_sqrt(u2);
  const sn_real c = u2 < SN_R(0.01) ? SN_R(1.0) / 12 + u2 / 720 + u2 * u2 / 30240 : (1 - half / sn_tan(half)) / u2;
  sn_real uw[3], uuw[3];
  sn_cross(uw, u, w);
  sn_cross(uuw, u, uw);
  for (int k = 0; k < 3; ++k) w[k] += SN_R(0.5) * uw[k] + c * uuw[k];
}

// The rates of the coordinates about the step's start for stage velocity `v` at displacement dt * last: rk_v of a
// stage.
SN_LOCAL void integrate_stage_rate(const SnModel *m, SnLane *lane, sn_real *rate, const sn_real *v, const sn_real *last,
                                   sn_real dt) {
  SN_FOR(i, m->nv) rate[i] = v[i];
  SN_SYNC(lane);
  SN_FOR(j, m->njnt) {
    const int type = m->jnt_type[j];
    if (type != SN_JNT_BALL && type != SN_JNT_FREE) continue;
    const int adr = m->jnt_dofadr[j] + (type == SN_JNT_FREE ? 3 : 0);
    const sn_real u[3] = {dt * last[adr], dt * last[adr + 1], dt * last[adr + 2]};
    integrate_dexpinv(u, rate + adr);
  }
  SN_SYNC(lane);
}

// Keeps the accelerations and activation rates of a stage.
SN_LOCAL void integrate_keep_stage(const SnModel *m, SnWorld *w, SnLane *lane, int stage) {
  SN_FOR(i, m->nv) w->rk_a[stage * m->nv + i] = w->qacc[i];
  SN_FOR(i, m->na) w->rk_adot[stage * m->na + i] = w->act_dot[i];
  SN_SYNC(lane);
}

// The state at the start of the step, moved by dt along stage `last`; -1: not moved.
SN_LOCAL void integrate_set_stage(const SnModel *m, SnWorld *w, SnLane *lane, int last, sn_real dt) {
  const int at = sn_maxi(last, 0);
  const sn_real h = last < 0 ? 0 : dt;
  SN_FOR(i, m->nq) w->qpos[i] = w->rk_qpos[i];
  SN_FOR(i, m->nv) w->qvel[i] = w->rk_qvel[i] + h * w->rk_a[at * m->nv + i];
  SN_FOR(i, m->na) w->act[i] = w->rk_act[i] + h * w->rk_adot[at * m->na + i];
  SN_ONE(lane) w->time[0] = w->rk_time[0] + h;
  SN_SYNC(lane);
  if (last >= 0) sn_integrate_pos(m, lane, w->qpos, w->rk_v + at * m->nv, h);
}

SN_LOCAL void integrate_rk4(const SnModel *m, SnWorld *w, SnLane *lane) {
  static const sn_real reach[4] = {SN_R(0.0), SN_R(0.5), SN_R(0.5), SN_R(1.0)};
  static const sn_real weight[4] = {SN_R(1.0) / 6, SN_R(1.0) / 3, SN_R(1.0) / 3, SN_R(1.0) / 6};
  const int nv = m->nv, na = m->na;
  SN_FOR(i, m->nq) w->rk_qpos[i] = w->qpos[i];
  SN_FOR(i, nv) w->rk_qvel[i] = w->rk_v[i] = w->qvel[i];
  SN_FOR(i, na) w->rk_act[i] = w->act[i];
  SN_ONE(lane) w->rk_time[0] = w->time[0];
  integrate_keep_stage(m, w, lane, 0);
  for (int s = 1; s < 4; ++s) {
    const sn_real dt = reach[s] * m->opt.timestep;
    integrate_set_stage(m, w, lane, s - 1, dt);
    sn_forward(m, w, lane);
    integrate_stage_rate(m, lane, w->rk_v + s * nv, w->qvel, w->rk_v + (s - 1) * nv, dt);
    integrate_keep_stage(m, w, lane, s);
  }
  SN_FOR(i, nv) {
    w->int_qacc[i] = w->rk_rate[i] = 0;
    for (int s = 0; s < 4; ++s) {
      w->int_qacc[i] += weight[s] * w->rk_a[s * nv + i];
      w->rk_rate[i] += weight[s] * w->rk_v[s * nv + i];
    }
  }
  SN_FOR(i, na) {
    w->act_dot[i] = 0;
    for (int s = 0; s < 4; ++s) w->act_dot[i] += weight[s] * w->rk_adot[s * na + i];
  }
  integrate_set_stage(m, w, lane, -1, 0);
  integrate_advance(m, w, lane, w->int_qacc, w->rk_rate);
}

SN_FUNC void sn_integrate(const SnModel *m, SnWorld *w, SnLane *lane) {
  switch (m->opt.integrator) {
    case SN_INT_RK4:
      integrate_rk4(m, w, lane);
      break;
    case SN_INT_IMPLICITFAST:
      integrate_implicitfast(m, w, lane);
      break;
    default:
      integrate_euler(m, w, lane);
      break;
  }
}
