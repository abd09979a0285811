// Springs that yield (MuJoCo manual, XMLreference, "springyield"): their rest follows where they are stretched beyond
// what they bear.
//
// The rests p lie in the state. A spring pulls by its stretch x from the rest before the step (dynamics/passive.c).
// After the step, with the new positions q and the threshold y,
//   |x| > y:  p = q -+ y,   x = q - p;   of a ball joint p exp(x) = q, |x| = angle:  p = q exp(-y x / |x|)
// A tendon's rest is a range [l, u] in which it is slack, x what its length L is beyond it; the length after the step
// is L + J dq with the lengths and moment arms J before it:
//   x > y:  u = L - y,  l = l + x - y,  but l stays where it is 0 and u is above 0;
//   x < -y: l = L + y,  u = u + x + y.
// Nothing yields where springs are switched off.
//
// Adjoint: a rest that yields has the derivatives of its formula, one that does not those of itself; at the threshold
// it does not yield. Of a ball joint, with n = x / |x|, s the bar of a small turn of the new rest in its frame, R, Jr
// as in vec.h:   q_bar = R(-y n) s + Jr^-1(x)' w,   p_bar = -Jr^-1(-x)' w,   w = -(y / |x|) (1 - n n') Jr(-y n)' s,
// y_bar = -n s. The bars of a rest's four numbers are g = 2 p (0, t) for those t of a small turn, t = vec(p^-1 g) / 2.
// Of L + J dq, dq = h (v + h a), the derivative by q goes through the rates of the motions v and a, that by v + h a to
// the bar of the acceleration.
#include "physics/base/vec.h"
#include "physics/step/integrate_private.h"

#if !defined(SN_PACK)
SN_LOCAL bool plastic_on(const SnModel *m) { return (m->opt.disableflags & SN_DSBL_SPRING) == 0; }

// Displacement of a ball joint from its rest, as its unit axis; returns the angle.
SN_LOCAL sn_real plastic_turn(const sn_real *rest, const sn_real *q, sn_real axis[3]) {
  sn_real back[4], turn[4], quat[4];
  sn_copy4(quat, q);
  sn_normalize4(quat);
  sn_negquat(back, rest);
  sn_mulquat(turn, back, quat);
  sn_quat2vel(axis, turn);
  return sn_normalize3(axis);
}

SN_LOCAL void plastic_joint(const SnModel *m, SnWorld *w, int j) {
  const sn_real yield = m->jnt_springyield[j], *q = w->qpos + m->jnt_qposadr[j];
  sn_real *rest = sn_plastic(m, w->past) + m->jnt_plasticadr[j], axis[3];
  if (m->jnt_type[j] == SN_JNT_BALL) {
    const sn_real angle = plastic_turn(rest, q, axis);
    if (angle > yield) sn_quatintegrate(rest, axis, angle - yield);
  } else if (sn_abs(q[0] - rest[0]) > yield) {
    rest[0] = q[0] > rest[0] ? q[0] - yield : q[0] + yield;
  }
}

// Length of tendon t after the step, along `rate` (nv).
SN_LOCAL sn_real plastic_length(const SnModel *m, const SnWorld *w, int t, const sn_real *rate) {
  sn_real sum = 0;
  for (int k = m->ten_J_rowadr[t]; k < m->ten_J_rowadr[t] + m->ten_J_rownnz[t]; ++k)
    sum += w->ten_J[k] * rate[m->ten_J_colind[k]];
  return w->ten_length[t] + sn_timestep(m, w) * sum;
}

SN_LOCAL void plastic_tendon(const SnModel *m, SnWorld *w, int t, const sn_real *rate) {
  const sn_real yield = m->tendon_springyield[t], length = plastic_length(m, w, t, rate);
  sn_real *range = sn_plastic(m, w->past) + m->tendon_plasticadr[t], shift;
  if (length > range[1] + yield) {
    shift = length - yield - range[1];
    if (!(range[0] == 0 && range[1] > 0)) range[0] += shift;
    range[1] = length - yield;
  } else if (length < range[0] - yield) {
    shift = length + yield - range[0];
    range[1] += shift;
    range[0] = length + yield;
  }
}

SN_FUNC void sn_plastic_advance(const SnModel *m, SnWorld *w, SnLane *lane, const sn_real *rate) {
  (void)lane;
  if (!plastic_on(m)) return;
  SN_FOR(j, m->njnt) {
    if (m->jnt_plasticadr[j] >= 0) plastic_joint(m, w, j);
  }
  SN_FOR(t, m->ntendon) {
    if (m->tendon_plasticadr[t] >= 0) plastic_tendon(m, w, t, rate);
  }
  SN_SYNC(lane);
}

// ---- the adjoint ----

// A ball joint: q after the step, `next` the bars of its four numbers, `rest_bar` those of before, q_bar of its turn.
SN_LOCAL void plastic_ball_vjp(const SnModel *m, SnAdjoint *a, int j, const sn_real *rest, const sn_real *q,
                               const sn_bar *next, sn_bar *rest_bar, sn_bar *q_bar) {
  const sn_real yield = m->jnt_springyield[j];
  sn_real axis[3], back[4], product[4], s[3], w[3], x[3], after[4];
  const sn_real angle = plastic_turn(rest, q, axis);
  (void)a;
  if (!(angle > yield)) {
    for (int k = 0; k < 4; ++k) rest_bar[k] += next[k];
    return;
  }
  sn_copy4(after, rest);
  sn_quatintegrate(after, axis, angle - yield);
  sn_negquat(back, after);
  sn_mulquat(product, back, next);
  sn_scale3(s, product + 1, SN_R(0.5));
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->jnt_springyield) sn_model_bar(a)->jnt_springyield[j] -= sn_dot3(axis, s);
#endif
  sn_scale3(x, axis, -yield);
  sn_copy3(w, s);
  sn_right_jacobian_transpose(w, x);
  sn_addtoscl3(w, axis, -sn_dot3(axis, w));
  sn_scale3(w, w, -yield / angle);
  sn_turn_vector(s, x);
  sn_addto3(q_bar, s);
  sn_scale3(x, axis, angle);
  sn_copy3(s, w);
  sn_right_jacobian_inverse_transpose(s, x);
  sn_addto3(q_bar, s);
  sn_scale3(x, axis, -angle);
  sn_right_jacobian_inverse_transpose(w, x);
  sn_scale3(w, w, -1);
  sn_plastic_turn_bar(rest, w, rest_bar);
}

SN_LOCAL void plastic_joint_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int j) {
  const int adr = m->nhistory + m->jnt_plasticadr[j], dof = m->jnt_dofadr[j];
  const bool ball = m->jnt_type[j] == SN_JNT_BALL;
  const sn_real h = sn_timestep(m, w), *rest = w->past + adr, *next = a->past_next_bar + adr;
  sn_real q[4];
  sn_copy(q, w->qpos + m->jnt_qposadr[j], ball ? 4 : 1);
  if (ball) {
    sn_quatintegrate(q, w->rk_rate + dof, h);
    plastic_ball_vjp(m, a, j, rest, q, next, a->past_bar + adr, a->plastic_next + dof);
    return;
  }
  q[0] += h * w->rk_rate[dof];
  if (!(sn_abs(q[0] - rest[0]) > m->jnt_springyield[j])) {
    a->past_bar[adr] += next[0];
    return;
  }
  a->plastic_next[dof] += next[0];
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->jnt_springyield)
    sn_model_bar(a)->jnt_springyield[j] += q[0] > rest[0] ? -next[0] : next[0];
#endif
}

SN_FUNC void sn_plastic_joints_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  (void)lane;
  SN_FOR(i, m->nv) a->plastic_next[i] = a->qpos_next_bar[i];
  SN_SYNC(lane);
  if (!plastic_on(m)) {
    SN_FOR(k, m->nplastic) a->past_bar[m->nhistory + k] += a->past_next_bar[m->nhistory + k];
  } else {
    SN_FOR(j, m->njnt) {
      if (m->jnt_plasticadr[j] >= 0) plastic_joint_vjp(m, w, a, j);
    }
  }
  SN_SYNC(lane);
}

// Bar of the length of tendon t after the step; what stays of its range goes to that of before.
SN_LOCAL sn_real plastic_tendon_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t) {
  const int adr = m->nhistory + m->tendon_plasticadr[t];
  const sn_real yield = m->tendon_springyield[t], length = plastic_length(m, w, t, w->rk_rate);
  const sn_real *range = w->past + adr, *next = a->past_next_bar + adr;
  sn_real *bar = a->past_bar + adr, all = next[0] + next[1];
  const bool pulled = length > range[1] + yield, pushed = length < range[0] - yield;
  bar[0] += pushed ? -next[1] : next[0];
  if (!pulled) bar[1] += next[1];
  if (!pulled && !pushed) return 0;
  if (pulled && range[0] == 0 && range[1] > 0)
    all = next[1];
  else if (pulled)
    bar[1] -= next[0];
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->tendon_springyield)
    sn_model_bar(a)->tendon_springyield[t] += pulled ? -all : all;
#endif
  return all;
}

SN_FUNC void sn_plastic_tendons_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const sn_real h = sn_timestep(m, w);
  const int motion = sn_is_damped(m) && !sn_has_metric(m) ? SN_NEXT : SN_ACC;
  SN_ONE(lane) {  // several add to one dof
    for (int t = 0; plastic_on(m) && t < m->ntendon; ++t) {
      const sn_real bar = m->tendon_plasticadr[t] < 0 ? 0 : plastic_tendon_vjp(m, w, a, t);
      if (bar == 0) continue;
      a->ten_length_bar[t] += bar;
      a->ten_rate_bar[SN_NMOTION * t + SN_VEL] += h * bar;
      a->ten_rate_bar[SN_NMOTION * t + motion] += h * h * bar;
      for (int k = m->ten_J_rowadr[t]; k < m->ten_J_rowadr[t] + m->ten_J_rownnz[t]; ++k)
        a->qacc_bar[m->ten_J_colind[k]] += h * bar * w->ten_J[k];
    }
  }
  SN_SYNC(lane);
}
#endif
