// Runge-Kutta 4: four evaluations of sn_forward. Rotations are combined in the Lie algebra at the start of the step (H.
// Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999): the rate of u in q = q0 exp(u) is
//   dexpinv(u, w) = w + u x w / 2 + c u x (u x w),   c = (1 - |u|/2 cot(|u|/2)) / |u|^2
// with w in the body's frame.
//
// Adjoint: the same backwards. The stages are evaluated again, the last one first, each with the warm start that it
// had; the bars of RESULT are kept aside while sn_forward_vjp and sn_position_vjp of a stage use its place. Of the
// first stage, which is the start of the step itself, sn_forward_vjp and sn_position_vjp are left to the caller, so
// that it can add a cost there.
#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/step/integrate_private.h"
#include "physics/step/step.h"

// w <- dexpinv(u, w), see the head of this file; near u = 0 the coefficient by its series.
SN_LOCAL void integrate_dexpinv(const sn_real *u, sn_real *w) {
  sn_real slope;
  const sn_real c = sn_dexpinv_coefficient(sn_dot3(u, u), &slope);
  sn_real uw[3], uuw[3];
  sn_cross(uw, u, w);
  sn_cross(uuw, u, uw);
  for (int k = 0; k < 3; ++k) w[k] += SN_R(0.5) * uw[k] + c * uuw[k];
}

#if !defined(SN_PACK)
SN_FUNC void sn_stage_rate(const SnModel *m, SnLane *lane, sn_real *rate, const sn_real *v, const sn_real *last,
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
#endif

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

// Reach of a stage from the start and weight in the sum, in time steps.
SN_INLINE sn_real integrate_reach(int s) { return s == 0 ? SN_R(0.0) : (s == 3 ? SN_R(1.0) : SN_R(0.5)); }
SN_INLINE sn_real integrate_weight(int s) { return s == 0 || s == 3 ? SN_R(1.0) / 6 : SN_R(1.0) / 3; }

// Takes the world back to stage s, from the warm start that it had there (at the start of the step: its solution).
SN_LOCAL void integrate_return(const SnModel *m, SnWorld *w, SnLane *lane, int s) {
  const sn_real *warm = w->rk_a + sn_maxi(s - 1, 0) * m->nv;
  SN_FOR(i, m->nv) w->qacc_warmstart[i] = warm[i];
  integrate_set_stage(m, w, lane, s - 1, integrate_reach(s) * sn_timestep(m, w));
  sn_forward(m, w, lane);
}

// Evaluates all stages from the world's state, on which sn_forward has run, and sums them up: rk_*, int_qacc, rk_rate,
// act_dot. The world is at the last stage then.
SN_LOCAL void integrate_stages(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int nv = m->nv, na = m->na;
  SN_FOR(i, m->nq) w->rk_qpos[i] = w->qpos[i];
  SN_FOR(i, nv) w->rk_qvel[i] = w->rk_v[i] = w->qvel[i];
  SN_FOR(i, na) w->rk_act[i] = w->act[i];
  SN_FOR(i, m->nout) w->rk_speed[i] = w->actuator_velocity[i];
  SN_ONE(lane) w->rk_time[0] = w->time[0];
  integrate_keep_stage(m, w, lane, 0);
  for (int s = 1; s < 4; ++s) {
    const sn_real dt = integrate_reach(s) * sn_timestep(m, w);
    integrate_set_stage(m, w, lane, s - 1, dt);
    sn_forward(m, w, lane);
    sn_stage_rate(m, lane, w->rk_v + s * nv, w->qvel, w->rk_v + (s - 1) * nv, dt);
    integrate_keep_stage(m, w, lane, s);
  }
  SN_FOR(i, nv) {
    w->int_qacc[i] = w->rk_rate[i] = 0;
    for (int s = 0; s < 4; ++s) {
      w->int_qacc[i] += integrate_weight(s) * w->rk_a[s * nv + i];
      w->rk_rate[i] += integrate_weight(s) * w->rk_v[s * nv + i];
    }
  }
  SN_FOR(i, na) {
    w->act_dot[i] = 0;
    for (int s = 0; s < 4; ++s) w->act_dot[i] += integrate_weight(s) * w->rk_adot[s * na + i];
  }
}

#if !defined(SN_PACK)
// Exchanges velocities of actuators at the start of the step and at the last stage.
SN_LOCAL void integrate_swap_speeds(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nout) {
    const sn_real speed = w->actuator_velocity[i];
    w->actuator_velocity[i] = w->rk_speed[i];
    w->rk_speed[i] = speed;
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_integrate_rk4(const SnModel *m, SnWorld *w, SnLane *lane) {
  integrate_stages(m, w, lane);
  integrate_set_stage(m, w, lane, -1, 0);
  SN_SYNC(lane);
  integrate_swap_speeds(m, w, lane);  // those of the start move bristles of motors
  sn_advance(m, w, lane, w->int_qacc, w->rk_rate);
  integrate_swap_speeds(m, w, lane);  // those of the last stage are what a user sees
}
#endif

// x <- bar of w in dexpinv(u, w) from that of its value; u_bar += that of u. With v = value's bar and w as forward,
//   w: v - u x v / 2 + c u x (u x v),   u: w x v / 2 + c (w (u.v) + v (u.w) - 2 u (w.v)) + 2 c' u v.(u x (u x w))
// c' the derivative of c with respect to |u|^2.
SN_LOCAL void integrate_dexpinv_vjp(const sn_real *u, const sn_real *w, sn_bar *x, sn_bar *u_bar) {
  const sn_bar v[3] = {x[0], x[1], x[2]}, uv = sn_dot3(u, v), wv = sn_dot3(w, v);
  const sn_real uw = sn_dot3(u, w);
  sn_real slope;
  sn_bar t[3];
  const sn_real u2 = sn_dot3(u, u), c = sn_dexpinv_coefficient(u2, &slope);
  const sn_bar change = 2 * slope * (uv * uw - u2 * wv);
  sn_cross(t, w, v);
  for (int e = 0; e < 3; ++e)
    u_bar[e] += SN_R(0.5) * t[e] + c * (w[e] * uv + v[e] * uw - 2 * u[e] * wv) + change * u[e];
  sn_right_jacobian_inverse_transpose(x, u);
}

SN_FUNC void sn_stage_rate_vjp(const SnModel *m, SnLane *lane, const sn_real *v, const sn_real *last, sn_real dt,
                               const sn_bar *bar, sn_bar *v_bar, sn_bar *last_bar) {
  SN_FOR(j, m->njnt) {
    const int type = m->jnt_type[j], first = m->jnt_dofadr[j];
    const int turn = type == SN_JNT_BALL ? first : (type == SN_JNT_FREE ? first + 3 : -1);
    for (int i = first; i < (turn == first ? first : first + (turn < 0 ? 1 : 3)); ++i) v_bar[i] += bar[i];
    if (turn < 0) continue;
    const sn_real u[3] = {dt * last[turn], dt * last[turn + 1], dt * last[turn + 2]};
    sn_bar x[3] = {bar[turn], bar[turn + 1], bar[turn + 2]}, u_bar[3] = {0};
    integrate_dexpinv_vjp(u, v + turn, x, u_bar);
    sn_addto3(v_bar + turn, x);
    sn_addtoscl3(last_bar + turn, u_bar, dt);
  }
  SN_SYNC(lane);
}

// The bars of the sum: rk_*_bar of all stages and what goes directly to the start. The world's act and act_dot are
// those of the sum.
SN_LOCAL void integrate_sum_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int nv = m->nv, na = m->na;
  const sn_real h = sn_timestep(m, w);
  SN_FOR(i, nv) a->qacc_bar[i] = sn_bar_of(0);
  SN_SYNC(lane);
  sn_integrate_pos_vjp(m, lane, w->rk_rate, h, a->qpos_next_bar, a->qpos_bar, a->qacc_bar);
  sn_advance_activation_vjp(m, w, a, lane);
  SN_FOR(i, nv) {
    a->qvel_bar[i] += a->qvel_next_bar[i];
    for (int s = 0; s < 4; ++s) {
      a->rk_v_bar[s * nv + i] = integrate_weight(s) * a->qacc_bar[i];
      a->rk_a_bar[s * nv + i] = integrate_weight(s) * h * a->qvel_next_bar[i];
    }
  }
  SN_FOR(i, na)
  for (int s = 0; s < 4; ++s) a->rk_adot_bar[s * na + i] = integrate_weight(s) * a->act_dot_bar[i];
  SN_SYNC(lane);
}

// The bars of a stage's accelerations as those that sn_forward_vjp starts from.
SN_LOCAL void integrate_take_stage(const SnModel *m, SnAdjoint *a, SnLane *lane, int s) {
  SN_FOR(i, m->nv) {
    a->qacc_bar[i] = a->rk_a_bar[s * m->nv + i];
    a->motion[SN_Y * m->nv + i] = a->motion[SN_NEXT * m->nv + i] = sn_bar_of(0);
  }
  SN_FOR(i, m->na) a->act_dot_bar[i] = a->rk_adot_bar[s * m->na + i];
  SN_SYNC(lane);
}

// Stage s, at which the world is: its bars become those of the stage before and of the start.
SN_LOCAL void integrate_stage_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, int s) {
  const int nv = m->nv, na = m->na;
  const sn_real dt = integrate_reach(s) * sn_timestep(m, w);
  sn_adjoint_clear(m, a, lane);
  integrate_take_stage(m, a, lane, s);
  sn_forward_vjp(m, w, a, lane);
  sn_position_vjp(m, w, a, lane);
  sn_stage_rate_vjp(m, lane, w->qvel, w->rk_v + (s - 1) * nv, dt, a->rk_v_bar + s * nv, a->qvel_bar,
                    a->rk_v_bar + (s - 1) * nv);
  sn_integrate_pos_vjp(m, lane, w->rk_v + (s - 1) * nv, dt, a->qpos_bar, a->rk_qpos_bar, a->rk_v_bar + (s - 1) * nv);
  SN_FOR(i, nv) {
    a->rk_qvel_bar[i] += a->qvel_bar[i];
    a->rk_a_bar[(s - 1) * nv + i] += dt * a->qvel_bar[i];
  }
  SN_FOR(i, na) {
    a->rk_act_bar[i] += a->act_bar[i];
    a->rk_adot_bar[(s - 1) * na + i] += dt * a->act_bar[i];
  }
  SN_FOR(i, m->nu) a->rk_ctrl_bar[i] += a->ctrl_bar[i];
  SN_FOR(i, 6 * m->nmocap) a->rk_mocap_bar[i] += a->mocap_bar[i];
  SN_FOR(i, sn_past_size(m)) a->rk_past_bar[i] += a->past_bar[i];
  SN_SYNC(lane);
}

// RESULT to its place in RK4, or back.
SN_LOCAL void integrate_keep_result(const SnModel *m, SnAdjoint *a, SnLane *lane, bool back) {
  sn_bar *result[6] = {a->qpos_bar, a->qvel_bar, a->act_bar, a->ctrl_bar, a->mocap_bar, a->past_bar};
  sn_bar *kept[6] = {a->rk_qpos_bar, a->rk_qvel_bar, a->rk_act_bar, a->rk_ctrl_bar, a->rk_mocap_bar, a->rk_past_bar};
  const int n[6] = {m->nv, m->nv, m->na, m->nu, 6 * m->nmocap, sn_past_size(m)};
  (void)lane;
  for (int k = 0; k < 6; ++k) {
    sn_bar *from = back ? kept[k] : result[k], *to = back ? result[k] : kept[k];
    SN_FOR(i, n[k]) to[i] = from[i];
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_integrate_rk4_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_FOR(i, m->nv) a->rk_warm[i] = w->qacc_warmstart[i];
  SN_SYNC(lane);
  integrate_stages(m, w, lane);
  // the sum, at the activations of the start
  SN_FOR(i, m->na) w->act[i] = w->rk_act[i];
  SN_SYNC(lane);
  integrate_sum_vjp(m, w, a, lane);
  integrate_keep_result(m, a, lane, false);
  SN_FOR(i, m->na) w->act_dot[i] = w->rk_adot[3 * m->na + i];
  SN_FOR(i, m->na) w->act[i] = w->rk_act[i] + sn_timestep(m, w) * w->rk_adot[2 * m->na + i];
  SN_SYNC(lane);
  for (int s = 3; s > 0; --s) {
    if (s < 3) integrate_return(m, w, lane, s);
    integrate_stage_vjp(m, w, a, lane, s);
  }
  SN_FOR(i, m->nv) a->rk_qvel_bar[i] += a->rk_v_bar[i];
  SN_SYNC(lane);
  integrate_return(m, w, lane, 0);
  SN_FOR(i, m->nv) w->qacc_warmstart[i] = a->rk_warm[i];
  sn_adjoint_clear(m, a, lane);
  integrate_keep_result(m, a, lane, true);
  integrate_take_stage(m, a, lane, 0);
  sn_next_bristles_vjp(m, w, a, lane, sn_timestep(m, w));
}
