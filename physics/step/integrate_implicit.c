// Implicit-in-velocity integration, "fast" and in full (MuJoCo manual, Computation, Numerical integration):
//   (M - h D) a+ = tau + J' f,   v+ = v + h a+,   q+ = q (+) h v+,   act+ as sn_next_activation
// D = d(passive + actuator forces)/dv within M's pattern: damping of dofs and tendons, slopes of fluid forces (fluid.c;
// their part of the adjoint is in fluid_vjp.c), and of each actuator moment' (d force / d velocity) moment unless its
// force is saturated. A free body that nothing is jointed to has equations of its own (dynamics/free_body.c).
//
// With `implicit` D has the derivative of the bias force for all, and the pattern of implicit_matrix.c, which solves.
//
// Adjoint, with B = -D: y = (M + h B)^-T h v+_bar and qacc_bar = M y as for Euler; y' dM (a - a+) is left to
// sn_bias_vjp, and of the bias force of `implicit` to sn_bias_slope_vjp. The derivative of -h y' B a+ is, for each
// slope b of a row J, with rates r_z = J z,
//   -h [db r_y r_+ + b (dr_y r_+ + r_y dr_+)]
// (of a row that branches, branched.c has the second part). A slope depends on the velocity of its tendon (zero at
// v = 0, where |v| has its kink), or on input, length and velocity of its actuator; saturated ones are
// constant, and beyond ctrlrange the input is its bound.
#include "physics/actuator/actuator.h"
#include "physics/base/muscle_curves.h"
#include "physics/base/polynomial.h"
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/integrate_private.h"

// Coefficients b of the terms b J'J of -D: act_slope of outputs, ten_slope of tendons.
SN_LOCAL void integrate_slopes(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool damped = !(m->opt.disableflags & SN_DSBL_DAMPER), driven = !(m->opt.disableflags & SN_DSBL_ACTUATION);
  sn_next_activation(m, w, lane, sn_timestep(m, w), w->int_act);
  SN_FOR(i, m->nactuator) {
    const int first = m->actuator_outadr[i];
    const sn_real slope = driven ? -sn_actuator_slope(m, w, i) : 0;
    for (int o = first; o < first + m->actuator_outnum[i]; ++o) w->act_slope[o] = slope;
  }
  SN_FOR(t, m->ntendon)
  w->ten_slope[t] = damped ? sn_damping_slope(m->ten_damp + (1 + SN_NPOLY) * t, w->ten_velocity[t]) : 0;
  SN_SYNC(lane);
}

#if !defined(SN_PACK)
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
  SN_FOR(k, m->nfreebody) sn_free_body(m, w, m->freebody_list[k], w->int_qacc);
  SN_SYNC(lane);
}

SN_FUNC void sn_integrate_implicitfast(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_implicit_acceleration(m, w, lane);
  sn_advance(m, w, lane, w->int_qacc, NULL);
}
#endif

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

// Actuator i.
SN_LOCAL void integrate_actuator_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const int out = m->actuator_outadr[i];
  sn_bar slope_bar = {0};
  if (!sn_actuator_gives(m, w, i)) return;
  for (int o = out; o < out + m->actuator_outnum[i]; ++o) {
    const SnRow row = sn_output_row(m, w, o);
    slope_bar +=
        sn_timestep(m, w) * integrate_row_vjp(m, w, a, &row, w->act_slope[o], a->trn_rate_bar + SN_NMOTION * o);
  }
  sn_actuator_slope_vjp(m, w, a, i, slope_bar);
}

SN_FUNC void sn_integrate_implicitfast_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const sn_real h = sn_timestep(m, w);
  sn_bar *y = a->motion + SN_Y * m->nv, *next = a->motion + SN_NEXT * m->nv;
  sn_implicit_acceleration(m, w, lane);
  sn_advance_vjp(m, w, a, lane, w->int_qacc);
  sn_advance_activation_vjp(m, w, a, lane);  // slopes add to act_dot_bar
  SN_FOR(i, m->nv) {
    y[i] = h * a->qacc_bar[i];
    next[i] = sn_bar_of(w->int_qacc[i]);
  }
  SN_SYNC(lane);
  if (m->opt.integrator == SN_INT_IMPLICIT) {
    sn_implicit_solve(m, w, lane, true, y);
  } else {
    sn_solve_LD(m, lane, w->qH, w->qHDiagInv, y);
    SN_FOR(k, m->nfreebody) sn_free_body_vjp(m, w, a, m->freebody_list[k], w->int_qacc, h, a->qacc_bar);
    SN_SYNC(lane);
  }
  sn_mul_M(m, w, lane, a->qacc_bar, y);
  if (!(m->opt.disableflags & SN_DSBL_DAMPER)) {
    sn_dof_damping_vjp(m, w, a, lane);
    SN_FOR(k, m->ntenpassive) integrate_tendon_slope_vjp(m, w, a, m->tenpassive_list[k]);
  }
  if (!(m->opt.disableflags & SN_DSBL_ACTUATION)) SN_FOR(i, m->nactuator) integrate_actuator_vjp(m, w, a, i);
  SN_SYNC(lane);
}
