// From accelerations to the next state: the parts that integrators share, and semi-implicit Euler.
//
// Euler (MuJoCo manual, Computation, Numerical integration), B the damping of dofs with its slope:
//   (M + h B) a+ = tau + J' f,   v+ = v + h a+,   q+ = q (+) h v+,   act+ as sn_next_activation
// B is left out with flag eulerdamp or damper, then a+ = qacc, as under `discrete`, whose solver has found a step
// already (dynamics/metric.c). implicit, implicitfast and Runge-Kutta 4 have files of their own.
//
// Adjoint of Euler. A turn q exp(w), w = h v+ in the body's frame: a small turn e before it is exp(w)' e after it, and
// a change of w is a turn Jr(w) dw (vec.h), so that
//   q_bar += exp(w) q+_bar,   v+_bar += h Jr(w)' q+_bar;   elsewhere 1 and h.
// Then v_bar += v+_bar, y = (M + h B)^-1 h v+_bar, qacc_bar = M y, because a+ = (M + h B)^-1 M qacc; what y means for
// the derivatives of M is left to sn_bias_vjp, v_bar += -h y' (dB/dv) a+ (zero at v = 0, where |v| of B has its kink).
#include "physics/actuator/actuator.h"
#include "physics/base/polynomial.h"
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/integrate_private.h"
#include "physics/step/sense_private.h"
#include "physics/step/step.h"

#if !defined(SN_PACK)
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

SN_FUNC void sn_difference_pos(const SnModel *m, SnLane *lane, const sn_real *from, const sn_real *to,
                               sn_real *tangent) {
  SN_FOR(j, m->njnt) {
    const int type = m->jnt_type[j];
    const sn_real *a = from + m->jnt_qposadr[j], *b = to + m->jnt_qposadr[j];
    sn_real *d = tangent + m->jnt_dofadr[j], first[4], second[4], back[4], turn[4];
    if (type == SN_JNT_HINGE || type == SN_JNT_SLIDE) {
      d[0] = b[0] - a[0];
      continue;
    }
    if (type == SN_JNT_FREE) {
      sn_sub3(d, b, a);
      a += 3;
      b += 3;
      d += 3;
    }
    sn_copy4(first, a);
    sn_copy4(second, b);
    sn_normalize4(first);
    sn_normalize4(second);
    sn_negquat(back, first);
    sn_mulquat(turn, back, second);
    sn_quat2vel(d, turn);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_damped_M(const SnModel *m, SnWorld *w, SnLane *lane, bool damped) {
  SN_FOR(k, m->nC) w->qH[k] = w->M[k];
  SN_SYNC(lane);
  if (!damped) return;
  const sn_real h = sn_timestep(m, w);
  SN_FOR(i, m->nv)
  w->qH[m->M_rowadr[i] + m->M_rownnz[i] - 1] += h * sn_damping_slope(m->dof_damp + (1 + SN_NPOLY) * i, w->qvel[i]);
  SN_SYNC(lane);
}

SN_FUNC void sn_damped_solve(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) w->int_qacc[i] = w->qfrc_smooth[i] + w->qfrc_constraint[i];
  sn_factor_LD(m, w, lane, w->qH, w->qHDiagInv);
  sn_solve_LD(m, lane, w->qH, w->qHDiagInv, w->int_qacc);
}

SN_FUNC void sn_advance(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real *qacc, const sn_real *qvel) {
  const sn_real h = sn_timestep(m, w);
  if (m->nhistory > 0) sn_past_advance(m, w, lane);
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
  if (m->nplastic > 0) sn_plastic_advance(m, w, lane, qvel ? qvel : w->qvel);
  SN_ONE(lane) w->time[0] += h;
  SN_SYNC(lane);
}

SN_LOCAL void integrate_euler(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (sn_is_damped(m) && !sn_has_metric(m)) {
    sn_damped_M(m, w, lane, true);
    sn_damped_solve(m, w, lane);
    sn_advance(m, w, lane, w->int_qacc, NULL);
  } else {
    sn_advance(m, w, lane, w->qacc, NULL);
  }
}

SN_FUNC void sn_integrate(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool sleeps = sn_sleeps(m, w);
  if (sleeps) {
    sn_sleep_decide(m, w, lane);
    sn_sleep_hold(m, w, lane);
  }
  switch (m->opt.integrator) {
    case SN_INT_RK4:
      sn_integrate_rk4(m, w, lane);
      break;
    case SN_INT_IMPLICITFAST:
    case SN_INT_IMPLICIT:
      sn_integrate_implicitfast(m, w, lane);
      break;
    default:
      integrate_euler(m, w, lane);
      break;
  }
  if (sleeps) sn_sleep_end(m, w, lane);
}
#endif

SN_FUNC void sn_integrate_pos_vjp(const SnModel *m, SnLane *lane, const sn_real *rate, sn_real dt,
                                  const sn_bar *next_bar, sn_bar *qpos_bar, sn_bar *rate_bar) {
  SN_FOR(j, m->njnt) {
    const int type = m->jnt_type[j], first = m->jnt_dofadr[j];
    const int turn = type == SN_JNT_BALL ? first : (type == SN_JNT_FREE ? first + 3 : -1);
    for (int i = first; i < (turn == first ? first : first + (turn < 0 ? 1 : 3)); ++i) {
      qpos_bar[i] += next_bar[i];
      rate_bar[i] += dt * next_bar[i];
    }
    if (turn < 0) continue;
    sn_real r[3];
    sn_bar x[3];
    sn_scale3(r, rate + turn, dt);
    sn_copy3(x, next_bar + turn);
    sn_turn_vector(x, r);
    sn_addto3(qpos_bar + turn, x);
    sn_copy3(x, next_bar + turn);
    sn_right_jacobian_transpose(x, r);
    sn_addtoscl3(rate_bar + turn, x, dt);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_advance_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const sn_real *qacc) {
  const sn_real h = sn_timestep(m, w);
  const sn_bar *next_bar = a->qpos_next_bar;
  SN_FOR(i, m->nv) {
    w->rk_rate[i] = w->qvel[i] + h * qacc[i];
    a->qacc_bar[i] = a->qvel_next_bar[i];
  }
  SN_SYNC(lane);
#if !defined(SN_PACK)
  if (m->nplastic > 0) {
    sn_plastic_joints_vjp(m, w, a, lane);
    next_bar = a->plastic_next;
  }
#endif
  sn_integrate_pos_vjp(m, lane, w->rk_rate, h, next_bar, a->qpos_bar, a->qacc_bar);
  SN_FOR(i, m->nv) a->qvel_bar[i] += a->qacc_bar[i];
  SN_SYNC(lane);
#if !defined(SN_PACK)
  if (m->nplastic > 0) sn_plastic_tendons_vjp(m, w, a, lane);
#endif
}

SN_FUNC void sn_advance_activation_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_FOR(i, m->na) a->act_dot_bar[i] = sn_bar_of(0);
  SN_SYNC(lane);
  if (m->na == 0) return;
  if (!(m->opt.disableflags & SN_DSBL_ACTUATION)) {
    sn_next_activation_vjp(m, w, a, lane, sn_timestep(m, w));
    if (m->opt.integrator != SN_INT_RK4) sn_next_bristles_vjp(m, w, a, lane, sn_timestep(m, w));
    return;
  }
  SN_FOR(i, m->na) a->act_bar[i] += a->act_next_bar[i];
  SN_SYNC(lane);
}

SN_FUNC void sn_dof_damping_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const sn_bar *y = a->motion + SN_Y * m->nv, *next = a->motion + SN_NEXT * m->nv;
  const sn_real h = sn_timestep(m, w);
  SN_FOR(i, m->nv)
  a->qvel_bar[i] -= h * y[i] * sn_damping_curve(m->dof_damp + (1 + SN_NPOLY) * i, w->qvel[i]) * next[i];
#if defined(SN_MODEL_BARS)
  SN_FOR(i, m->nv)
  if (sn_model_bar(a) && sn_model_bar(a)->dof_damp)
    sn_damping_slope_vjp(sn_model_bar(a)->dof_damp + (1 + SN_NPOLY) * i, w->qvel[i], -h * y[i] * next[i]);
#endif
  SN_SYNC(lane);
}

SN_LOCAL void integrate_euler_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const sn_real h = sn_timestep(m, w);
  const bool damped = sn_is_damped(m) && !sn_has_metric(m);
  sn_bar *y = a->motion + SN_Y * m->nv, *next = a->motion + SN_NEXT * m->nv;
  if (damped) {
    sn_damped_M(m, w, lane, true);
    sn_damped_solve(m, w, lane);
  }
  sn_advance_vjp(m, w, a, lane, damped ? w->int_qacc : w->qacc);
  sn_advance_activation_vjp(m, w, a, lane);
  SN_FOR(i, m->nv) {
    a->qacc_bar[i] *= h;
    y[i] = damped ? a->qacc_bar[i] : sn_bar_of(0);
    next[i] = sn_bar_of(damped ? w->int_qacc[i] : 0);
  }
  SN_SYNC(lane);
  if (!damped) return;
  sn_solve_LD(m, lane, w->qH, w->qHDiagInv, y);
  sn_mul_M(m, w, lane, a->qacc_bar, y);
  sn_dof_damping_vjp(m, w, a, lane);
}

SN_FUNC void sn_integrate_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
#if !defined(SN_PACK)
  if (m->nhistory > 0) sn_past_advance_vjp(m, w, a, lane);
#endif
  switch (m->opt.integrator) {
    case SN_INT_RK4:
      sn_integrate_rk4_vjp(m, w, a, lane);
      break;
    case SN_INT_IMPLICITFAST:
    case SN_INT_IMPLICIT:
      sn_integrate_implicitfast_vjp(m, w, a, lane);
      break;
    default:
      integrate_euler_vjp(m, w, a, lane);
      break;
  }
}
