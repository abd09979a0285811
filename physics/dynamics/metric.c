// The effective inertia of the integrator `discrete` (MuJoCo manual, Computation, Numerical integration), by which the
// solver finds the step itself, constraints included:
//   (M + B) a = tau - h K v + J' f,    B = h D + h^2 K,    v+ = v + h a,  q+ = q (+) h v+
// D, K are the slopes of -tau by velocity and position, each term held at 0 where it would take energy from nowhere:
// of springs and dampers of joints, a diagonal; of those of tendons and of actuators, s J'J with the row J of their
// arms. Rotational springs count as their slope along the turn, the same about all axes. The arms of a row are constant
// there, and bias forces left out. Names are those of mjData: efm_diag = h D + h^2 K and efm_ck = h K of dofs, efm_ts
// and efm_tk of tendons, efm_as and efm_ak of the outputs of actuators.
//
// A free body that stands alone is moved by another acceleration a+ than a (free_body.c).
//
// Adjoint. G of adjoint.h has, for each term with rates r_z = J z of the motions, s and k of these names,
//   -s r_lambda r_a - k r_lambda r_v  [+ s r_y (r_a - r_+) for dofs of such a free body]
// s and k are functions of length, velocity and input, whose derivatives they hand on, and of stiffness, damping, rests
// and tables of the model. What the diagonal of B does to impedances is in metric_bar (constraint/metric_rows.c).
#include "physics/actuator/actuator.h"
#include "physics/base/polynomial.h"
#include "physics/dynamics/dynamics.h"

// Slope of the spring of tendon t, 0 where it is slack or would push away; *x its stretch. It is 0 at the rest itself,
// as in MuJoCo, whose lengths at qpos0 are rests to the last bit; ours differ by rounding. (There differences see the
// slope beside it.)
SN_LOCAL sn_real metric_tendon_spring(const SnModel *m, const SnWorld *w, int t, sn_real *x) {
  *x = sn_tendon_stretch(m, w, t);
  if ((m->opt.disableflags & SN_DSBL_SPRING) || sn_abs(*x) <= 16 * SN_EPS * sn_abs(w->ten_length[t])) return 0;
  return sn_max(0, sn_polynomial_slope(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t, *x));
}

// Slope of a damper with these coefficients.
SN_LOCAL sn_real metric_damper(const SnModel *m, const sn_real *damp, sn_real v) {
  return m->opt.disableflags & SN_DSBL_DAMPER ? 0 : sn_max(0, sn_damping_slope(damp, v));
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_metric_term(const SnModel *m, const SnWorld *w, int k, SnRow *row) {
  if (k < m->ntendon) {
    *row = sn_tendon_row(m, w, k);
    return row->n > 0 ? w->efm_ts[k] : 0;
  }
  *row = sn_output_row(m, w, k - m->ntendon);
  return row->n > 0 ? w->efm_as[k - m->ntendon] : 0;
}

// efm_ck of the dofs of joint j.
SN_LOCAL void metric_joint_spring(const SnModel *m, SnWorld *w, int j) {
  const sn_real linear = m->jnt_stiffness[j], *poly = m->jnt_stiffnesspoly + SN_NPOLY * j, h = sn_timestep(m, w);
  sn_real dif[6], *out = w->efm_ck + m->jnt_dofadr[j];
  const int n = sn_joint_stretch(m, w, j, dif);
  if (n == 1) out[0] = h * sn_max(0, sn_polynomial_slope(linear, poly, dif[0]));
  for (int k = 0; k + 3 <= n; k += 3)
    out[k] = out[k + 1] = out[k + 2] = h * sn_max(0, sn_polynomial_slope(linear, poly, sn_norm3(dif + k)));
}

// Terms of dofs, tendons and outputs.
SN_LOCAL void metric_terms(const SnModel *m, SnWorld *w, SnLane *lane) {
  const sn_real h = sn_timestep(m, w);
  SN_FOR(i, m->nv) w->efm_ck[i] = 0;
  SN_FOR(t, m->ntendon) w->efm_ts[t] = w->efm_tk[t] = 0;
  SN_FOR(o, m->nout) w->efm_as[o] = w->efm_ak[o] = 0;
  SN_SYNC(lane);
  if (!(m->opt.disableflags & SN_DSBL_SPRING)) SN_FOR(k, m->njntspring) metric_joint_spring(m, w, m->jntspring_list[k]);
  SN_SYNC(lane);
  SN_FOR(i, m->nv)
  w->efm_diag[i] = h * (metric_damper(m, m->dof_damp + (1 + SN_NPOLY) * i, w->qvel[i]) + w->efm_ck[i]);
  SN_FOR(k, m->ntenpassive) {
    const int t = m->tenpassive_list[k];
    sn_real x;
    w->efm_tk[t] = h * metric_tendon_spring(m, w, t, &x);
    w->efm_ts[t] = h * (w->efm_tk[t] + metric_damper(m, m->ten_damp + (1 + SN_NPOLY) * t, w->ten_velocity[t]));
  }
  if (!(m->opt.disableflags & SN_DSBL_ACTUATION)) {
    SN_FOR(i, m->nactuator) {
      const sn_real stiff = h * sn_max(0, -sn_actuator_stretch(m, w, i)), damp = sn_max(0, -sn_actuator_slope(m, w, i));
      for (int o = m->actuator_outadr[i]; o < m->actuator_outadr[i] + m->actuator_outnum[i]; ++o) {
        w->efm_ak[o] = stiff;
        w->efm_as[o] = h * (stiff + damp);
      }
    }
  }
  SN_SYNC(lane);
}

// Drag of a fluid, in the pattern of M.
SN_LOCAL void metric_fluid(const SnModel *m, SnWorld *w, SnLane *lane) {
  const sn_real h = sn_timestep(m, w);
  sn_velocity_slopes(m, w, lane);
  SN_FOR(i, m->nv) {
    for (int k = m->M_rowadr[i]; k < m->M_rowadr[i] + m->M_rownnz[i]; ++k)
      w->efm_fluid[k] = -h * sn_velocity_slope(m, w, i, m->M_colind[k]);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_metric(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool fluid = sn_in_fluid(m);
  metric_terms(m, w, lane);
  if (fluid) metric_fluid(m, w, lane);
  SN_FOR(i, m->nv) {
    w->efm_sdiag[i] = w->efm_diag[i];
    if (fluid) w->efm_sdiag[i] += w->efm_fluid[m->M_rowadr[i] + m->M_rownnz[i] - 1];
    w->qfrc_metric[i] = w->qfrc_smooth[i] - w->efm_ck[i] * w->qvel[i];
  }
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int k = 0; k < m->ntendon + m->nout; ++k) {
      SnRow row;
      const sn_real s = sn_metric_term(m, w, k, &row);
      const sn_real shift = k < m->ntendon ? w->efm_tk[k] * w->ten_velocity[k]
                                           : w->efm_ak[k - m->ntendon] * w->actuator_velocity[k - m->ntendon];
      for (int q = 0; s != 0 && q < row.n; ++q) {
        w->efm_sdiag[row.col[q]] += s * row.J[q] * row.J[q];
        w->qfrc_metric[row.col[q]] -= shift * row.J[q];
      }
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_mul_metric(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *r, const sn_real *x) {
  sn_mul_M(m, w, lane, r, x);
  if (!sn_has_metric(m)) return;
  SN_FOR(i, m->nv) r[i] += w->efm_diag[i] * x[i];
  SN_SYNC(lane);
  if (sn_in_fluid(m)) sn_add_product(m, lane, w->efm_fluid, r, x);
  SN_ONE(lane) {
    for (int k = 0; k < m->ntendon + m->nout; ++k) {
      SnRow row;
      sn_real rate = sn_metric_term(m, w, k, &row), sum = 0;
      if (rate == 0) continue;
      for (int q = 0; q < row.n; ++q) sum += row.J[q] * x[row.col[q]];
      rate *= sum;
      for (int q = 0; q < row.n; ++q) r[row.col[q]] += rate * row.J[q];
    }
  }
  SN_SYNC(lane);
}
#endif

// The slope of a spring has the bar `bar`, by its displacement dif (3). Of a turn that is the bar by the body's turn,
// too: it lies along the axis, and the Jacobian of rotation vectors leaves the axis as it is.
SN_LOCAL void metric_spring3_vjp(const sn_real *poly, const sn_real *dif, sn_bar bar, sn_bar *out) {
  const sn_real norm = sn_norm3(dif);
  sn_zero(out, 3);
  if (norm > SN_MINVAL) sn_addtoscl3(out, dif, bar * (sn_polynomial_curve(poly, norm) / norm));
}

#if defined(SN_MODEL_BARS)
// The slope of the spring of joint j, stretched by x, has the bar `bar`; dif: the bars of what it is stretched by (n
// numbers: 1, 3 of a free joint's place, none of a turn, whose rest is the compiler's). Rests that yield are the
// state's.
SN_LOCAL void metric_joint_model_vjp(const SnModel *m, SnModelBar *to, int j, sn_real x, sn_bar bar, const sn_bar *dif,
                                     int n) {
  sn_polynomial_slope_vjp(to->jnt_stiffness ? to->jnt_stiffness + j : NULL,
                          to->jnt_stiffnesspoly ? to->jnt_stiffnesspoly + SN_NPOLY * j : NULL, x, bar);
  if (!to->qpos_spring || m->jnt_plasticadr[j] >= 0) return;
  for (int e = 0; e < n; ++e) to->qpos_spring[m->jnt_qposadr[j] + e] -= dif[e];
}

// The slope of the spring of tendon t, stretched by x, has the bar `stiff`; x the bar x_bar.
SN_LOCAL void metric_tendon_model_vjp(const SnModel *m, SnModelBar *to, int t, sn_real x, sn_bar stiff, sn_bar x_bar) {
  sn_polynomial_slope_vjp(to->tendon_stiffness ? to->tendon_stiffness + t : NULL,
                          to->tendon_stiffnesspoly ? to->tendon_stiffnesspoly + SN_NPOLY * t : NULL, x, stiff);
  if (to->tendon_lengthspring && m->tendon_plasticadr[t] < 0) to->tendon_lengthspring[2 * t + (x > 0)] -= x_bar;
}
#endif

SN_LOCAL void metric_joint_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int j, const sn_bar *bar) {
  const sn_real linear = m->jnt_stiffness[j], *poly = m->jnt_stiffnesspoly + SN_NPOLY * j;
  const int dof = m->jnt_dofadr[j];
  sn_real dif[6];
  const int n = sn_joint_stretch(m, w, j, dif);
  const int plastic = m->jnt_plasticadr[j];
  if (n == 1 && sn_polynomial_slope(linear, poly, dif[0]) > 0) {
    const sn_bar x_bar = bar[0] * sn_polynomial_curve(poly, dif[0]);
    a->qpos_bar[dof] += x_bar;
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) metric_joint_model_vjp(m, sn_model_bar(a), j, dif[0], bar[0], &x_bar, 1);
#endif
    if (plastic >= 0) a->past_bar[m->nhistory + plastic] -= x_bar;
  }
  for (int k = 0; k + 3 <= n; k += 3) {
    sn_bar out[3];
    const sn_bar all = bar[k] + bar[k + 1] + bar[k + 2];
    if (!(sn_polynomial_slope(linear, poly, sn_norm3(dif + k)) > 0)) continue;
    metric_spring3_vjp(poly, dif + k, all, out);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) metric_joint_model_vjp(m, sn_model_bar(a), j, sn_norm3(dif + k), all, out, k + 3 < n ? 3 : 0);
#endif
#if !defined(SN_PACK)
    if (k + 3 == n && plastic >= 0)
      sn_ball_rest_vjp(sn_joint_rest(m, w->past, j) + k, dif + k, out, a->past_bar + m->nhistory + plastic);
#endif
    sn_addto3(a->qpos_bar + dof + k, out);
  }
}

// Bar of the slope of dof i that its spring has, and what velocities get.
SN_LOCAL sn_bar metric_dof_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const sn_bar *motion = a->motion + i;
  const int nv = m->nv;
  const sn_bar lambda = motion[SN_LAMBDA * nv], acc = motion[SN_ACC * nv], next = motion[SN_NEXT * nv];
  const sn_real h = sn_timestep(m, w), v = w->qvel[i], *damp = m->dof_damp + (1 + SN_NPOLY) * i;
  const sn_bar bar = a->metric_bar[i] + motion[SN_Y * nv] * (acc - next) - lambda * acc;
  a->qvel_bar[i] -= lambda * w->efm_ck[i];
  if (metric_damper(m, damp, v) > 0) {
    a->qvel_bar[i] += h * bar * sn_damping_curve(damp, v);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a) && sn_model_bar(a)->dof_damp)
      sn_damping_slope_vjp(sn_model_bar(a)->dof_damp + (1 + SN_NPOLY) * i, v, h * bar);
#endif
  }
  return h * (h * bar - lambda * v);
}

// Bar of the sum s of a term with the rates of the motions, and what rates get; k its shift.
SN_LOCAL sn_bar metric_row_vjp(const SnAdjoint *a, const SnRow *row, sn_real s, sn_real k, const sn_bar *rate,
                               sn_bar *rate_bar) {
  sn_bar bar = -rate[SN_LAMBDA] * rate[SN_ACC];
  rate_bar[SN_LAMBDA] -= s * rate[SN_ACC] + k * rate[SN_VEL];
  rate_bar[SN_ACC] -= s * rate[SN_LAMBDA];
  rate_bar[SN_VEL] -= k * rate[SN_LAMBDA];
  for (int q = 0; q < row->n; ++q) bar += a->metric_bar[row->col[q]] * (row->J[q] * row->J[q]);
  return bar;
}

SN_LOCAL void metric_tendon_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t) {
  const SnRow row = sn_tendon_row(m, w, t);
  const sn_bar *rate = a->ten_rate + SN_NMOTION * t;
  sn_bar *rate_bar = a->ten_rate_bar + SN_NMOTION * t;
  const sn_real h = sn_timestep(m, w), v = w->ten_velocity[t], *damp = m->ten_damp + (1 + SN_NPOLY) * t;
  if (row.n == 0) return;
  const sn_bar bar = metric_row_vjp(a, &row, w->efm_ts[t], w->efm_tk[t], rate, rate_bar);
  sn_real x;
  if (metric_tendon_spring(m, w, t, &x) > 0) {
    const sn_real curve = sn_polynomial_curve(m->tendon_stiffnesspoly + SN_NPOLY * t, x);
    const sn_bar stiff = h * (h * bar - rate[SN_LAMBDA] * rate[SN_VEL]), x_bar = stiff * curve;
    a->ten_length_bar[t] += x_bar;
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) metric_tendon_model_vjp(m, sn_model_bar(a), t, x, stiff, x_bar);
#endif
    if (m->tendon_plasticadr[t] >= 0) a->past_bar[m->nhistory + m->tendon_plasticadr[t] + (x > 0)] -= x_bar;
  }
  if (metric_damper(m, damp, v) > 0) {
    rate_bar[SN_VEL] += h * bar * sn_damping_curve(damp, v);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a) && sn_model_bar(a)->ten_damp)
      sn_damping_slope_vjp(sn_model_bar(a)->ten_damp + (1 + SN_NPOLY) * t, v, h * bar);
#endif
  }
}

SN_LOCAL void metric_actuator_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const sn_real h = sn_timestep(m, w);
  sn_bar stiff = {0}, damp = {0};
  for (int o = m->actuator_outadr[i]; o < m->actuator_outadr[i] + m->actuator_outnum[i]; ++o) {
    const SnRow row = sn_output_row(m, w, o);
    const sn_bar *rate = a->trn_rate + SN_NMOTION * o;
    const sn_bar bar = metric_row_vjp(a, &row, w->efm_as[o], w->efm_ak[o], rate, a->trn_rate_bar + SN_NMOTION * o);
    stiff += h * (h * bar - rate[SN_LAMBDA] * rate[SN_VEL]);
    damp += h * bar;
  }
  if (sn_actuator_stretch(m, w, i) < 0) sn_actuator_stretch_vjp(m, w, a, i, -stiff);
  if (sn_actuator_slope(m, w, i) < 0) sn_actuator_slope_vjp(m, w, a, i, -damp);
}

SN_FUNC void sn_metric_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_FOR(i, m->nv) a->metric_spring[i] = metric_dof_vjp(m, w, a, i);
  SN_SYNC(lane);
  if (!(m->opt.disableflags & SN_DSBL_SPRING)) SN_FOR(k, m->njntspring)
  metric_joint_vjp(m, w, a, m->jntspring_list[k], a->metric_spring + m->jnt_dofadr[m->jntspring_list[k]]);
  SN_FOR(k, m->ntenpassive) metric_tendon_vjp(m, w, a, m->tenpassive_list[k]);
  if (!(m->opt.disableflags & SN_DSBL_ACTUATION)) SN_FOR(i, m->nactuator) metric_actuator_vjp(m, w, a, i);
  SN_SYNC(lane);
}
