// Passive forces: springs and dampers of joints and tendons, gravity compensation.
//
// Spring and damper laws are polynomials (MuJoCo manual, XMLreference, stiffness and damping of joint and tendon):
//   spring  -x (k0 + k1 x + k2 x^2),     damper  -v (b0 + b1 |v| + b2 v^2)
// x is the displacement from qpos_spring, or from a rest in the state where the spring yields (step/plastic.c); of a
// free joint's position and of rotations it is a vector, and its norm goes into the parentheses. A tendon's x is the
// distance of its length from the range lengthspring. Dampers include what actuators reflect (setup_tree.c). Gravity
// compensation is the force -g times the mass that a link lifts, summed from the leaves like the bias force; joints
// with actgravcomp receive it through the actuators. Forces of a fluid are fluid.c's. Those of contacts that pull are
// made of rows; their adjoint is constraint_contact.c's. Both flags, spring and damper, disabled together also disable
// gravity compensation and the fluid, as in mj_passive.
//
// Adjoint of lambda' qfrc_passive, with gravity compensation that goes through actuators. At the ends of
// lengthspring the derivative is that of the slack inside, if there is an inside. For rotations, dif = log(rest^-1 q)
// and d dif = Jr^-1(dif) w for a turn w in the body's frame, Jr^-1 as in vec.h; at half a turn, where log jumps,
// it is that of the side on which dif lies.
//   Gravity compensation of a link is a constant force f at a point p: lambda' S' (..) = f . (velocity of p under mu),
// mu = lambda but 0 for dofs that do not receive it: where actgravcomp has no actuation, or the force of the joint is
// beyond its limit actfrcrange (sn_joint_saturated). The links' wrenches f x w_mu take w_mu, and as the sweep displaces
// the axis S_k with lambda_k, what it would do for the others is taken back: S_k xx lift, times lambda_k, from all that
// moves the axis.
#include "physics/actuator/actuator.h"
#include "physics/base/polynomial.h"
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

// Vector spring: force -= dif k(|dif|).
SN_LOCAL void passive_spring3(sn_real *force, const sn_real *dif, sn_real linear, const sn_real *poly) {
  sn_scale3(force, dif, -sn_polynomial(linear, poly, sn_norm3(dif)));
}

#if !defined(SN_PACK)
SN_FUNC int sn_joint_stretch(const SnModel *m, const SnWorld *w, int j, sn_real dif[6]) {
  const int type = m->jnt_type[j];
  const sn_real *q = w->qpos + m->jnt_qposadr[j], *rest = sn_joint_rest(m, w->past, j);
  sn_zero(dif, 6);
  if (type == SN_JNT_HINGE || type == SN_JNT_SLIDE) {
    dif[0] = q[0] - rest[0];
    return 1;
  }
  sn_real quat[4], back[4], turn[4];
  const int place = type == SN_JNT_FREE ? 3 : 0;
  if (place) sn_sub3(dif, q, rest);
  sn_copy4(quat, q + place);
  sn_normalize4(quat);
  sn_negquat(back, rest + place);
  sn_mulquat(turn, back, quat);
  sn_quat2vel(dif + place, turn);
  return 3 + place;
}

SN_FUNC sn_real sn_tendon_stretch(const SnModel *m, const SnWorld *w, int t) {
  const sn_real length = w->ten_length[t], *range = sn_tendon_rest(m, w->past, t);
  return length > range[1] ? length - range[1] : (length < range[0] ? length - range[0] : 0);
}
#endif

SN_LOCAL void passive_joint_spring(const SnModel *m, SnWorld *w, int j) {
  const sn_real linear = m->jnt_stiffness[j], *poly = m->jnt_stiffnesspoly + SN_NPOLY * j;
  sn_real *force = w->qfrc_spring + m->jnt_dofadr[j], dif[6];
  const int n = sn_joint_stretch(m, w, j, dif);
  if (n == 1) force[0] = -dif[0] * sn_polynomial(linear, poly, dif[0]);
  for (int k = 0; k + 3 <= n; k += 3) passive_spring3(force + k, dif + k, linear, poly);
}

#if !defined(SN_PACK)
SN_FUNC void sn_tendon_passive(const SnModel *m, const SnWorld *w, int t, sn_real out[2]) {
  const bool springs = !(m->opt.disableflags & SN_DSBL_SPRING), dampers = !(m->opt.disableflags & SN_DSBL_DAMPER);
  const sn_real x = sn_tendon_stretch(m, w, t), v = w->ten_velocity[t], *damp = m->ten_damp + (1 + SN_NPOLY) * t;
  out[0] = springs ? -x * sn_polynomial(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t, x) : 0;
  out[1] = dampers ? -v * sn_polynomial(damp[0], damp + 1, sn_abs(v)) : 0;
}
#endif

// qfrc_spring and qfrc_damper of dof i from the tendons on the list of those that have either.
SN_LOCAL void passive_gather_tendons(const SnModel *m, SnWorld *w, int i) {
  for (int k = m->dof_tendon_adr[i]; k < m->dof_tendon_adr[i + 1]; ++k) {
    const sn_real J = w->ten_J[m->dof_tendon_J[k]], *force = w->ten_passive + 2 * m->dof_tendon_id[k];
    w->qfrc_spring[i] += J * force[0];
    w->qfrc_damper[i] += J * force[1];
  }
}

// Force that lifts link i, about the centre of its tree.
SN_LOCAL void passive_lift(const SnModel *m, SnWorld *w, int i) {
  sn_real *out = w->lift + 6 * i, p[3];
  sn_scale3(out + 3, m->opt.gravity, -m->link_lift[4 * i + 3]);
  sn_mulmatvec3(p, w->xmat + 9 * i, m->link_lift + 4 * i);
  sn_addto3(p, w->xpos + 3 * i);
  sn_subfrom3(p, w->subtree_com + 3 * m->body_rootid[i]);
  sn_cross(out, p, out + 3);
}

SN_LOCAL void passive_gravcomp(const SnModel *m, SnWorld *w, SnLane *lane) {
  for (int level = m->nlevel - 1; level >= 0; --level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR(k, m->level_adr[level + 1] - m->level_adr[level]) {
      const int i = body[k];
      passive_lift(m, w, i);
      for (int c = m->child_adr[i]; c < m->child_adr[i + 1]; ++c)
        for (int e = 0; e < 6; ++e) w->lift[6 * i + e] += w->lift[6 * m->child_body[c] + e];
    }
    SN_SYNC(lane);
  }
  SN_FOR(i, m->nv) w->qfrc_gravcomp[i] = sn_dot(w->cdof + 6 * i, w->lift + 6 * m->dof_bodyid[i], 6);
  SN_SYNC(lane);
}

#if !defined(SN_PACK)
// qfrc_adhesion: each contact that pulls does so along its normal, whose row of J follows from those of its block.
SN_LOCAL void passive_adhesion(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nv) w->qfrc_adhesion[i] = 0;
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int i = 0; i < w->ncon[0]; ++i) {
      const int row = w->contact[i].efc_address;
      if (w->contact[i].adhesion == 0 || row < 0) continue;
      const int adr = w->efc_J_rowadr[row], n = w->efc_J_rownnz[row];
      const bool edges = w->efc_type[row] == SN_CNSTR_CONTACT_PYRAMIDAL;
      for (int k = adr; k < adr + n; ++k) {
        const sn_real J = edges ? SN_R(0.5) * (w->efc_J[k] + w->efc_J[k + n]) : w->efc_J[k];
        w->qfrc_adhesion[w->efc_J_colind[k]] -= w->contact[i].adhesion * J;
      }
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_passive(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int off = m->opt.disableflags;
  const bool springs = !(off & SN_DSBL_SPRING), dampers = !(off & SN_DSBL_DAMPER), any = springs || dampers;
  const bool lifts = any && m->nlift > 0 && !(off & SN_DSBL_GRAVITY), fluid = sn_in_fluid(m);
  SN_FOR(i, m->nv) {
    const sn_real v = w->qvel[i], *damp = m->dof_damp + (1 + SN_NPOLY) * i;
    w->qfrc_damper[i] = dampers ? -v * sn_polynomial(damp[0], damp + 1, sn_abs(v)) : 0;
    w->qfrc_spring[i] = w->qfrc_gravcomp[i] = w->qfrc_fluid[i] = w->qfrc_adhesion[i] = 0;
  }
  SN_FOR(k, m->ntenpassive) {
    const int t = m->tenpassive_list[k];
    sn_tendon_passive(m, w, t, w->ten_passive + 2 * t);
  }
  SN_SYNC(lane);
  if (springs) {
    SN_FOR(k, m->njntspring) passive_joint_spring(m, w, m->jntspring_list[k]);
    SN_SYNC(lane);
  }
  if (lifts) passive_gravcomp(m, w, lane);
  if (fluid) sn_fluid(m, w, lane);
  if (any && m->nadhesive > 0) passive_adhesion(m, w, lane);
  SN_FOR(i, m->nv) {
    if (any) passive_gather_tendons(m, w, i);
    w->qfrc_passive[i] = w->qfrc_spring[i] + w->qfrc_damper[i];
    if (fluid) w->qfrc_passive[i] += w->qfrc_fluid[i];
    if (any && m->nadhesive > 0) w->qfrc_passive[i] += w->qfrc_adhesion[i];
    if (!m->jnt_actgravcomp[m->dof_jntid[i]]) w->qfrc_passive[i] += w->qfrc_gravcomp[i];
  }
  SN_SYNC(lane);
}
#endif

#if defined(SN_MODEL_BARS)
// Adds the bars of the coefficients of a polynomial, times `scale`: of the linear one and of the others at |x|.
SN_LOCAL void passive_polynomial_bar(sn_bar *linear, sn_bar *poly, sn_real x, sn_bar scale) {
  if (linear) linear[0] += scale;
  for (int p = 0; poly && p < SN_NPOLY; ++p) poly[p] += (scale = scale * x);
}

// Joint springs by the model. lambda: of its dofs; dif: displacement of n numbers, slope: -force' by it, for n = 1.
SN_LOCAL void passive_spring_model_vjp(SnModelBar *bar, int j, int n, const sn_bar *lambda, const sn_real *dif) {
  const sn_real x = n == 1 ? dif[0] : sn_norm3(dif);
  sn_bar along = {0};
  for (int e = 0; e < n; ++e) along += lambda[e] * dif[e];
  passive_polynomial_bar(bar->jnt_stiffness ? bar->jnt_stiffness + j : NULL,
                         bar->jnt_stiffnesspoly ? bar->jnt_stiffnesspoly + SN_NPOLY * j : NULL, x, -along);
}

// Damper of tendon t and its spring by the model; x: stretch beyond its slack range, pull: bar of their force.
SN_LOCAL void passive_tendon_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t, sn_real x,
                                       sn_bar pull) {
  const bool springs = !(m->opt.disableflags & SN_DSBL_SPRING), dampers = !(m->opt.disableflags & SN_DSBL_DAMPER);
  SnModelBar *bar = sn_model_bar(a);
  const sn_real v = w->ten_velocity[t];
  if (dampers && bar->ten_damp) {
    sn_bar *damp = bar->ten_damp + (1 + SN_NPOLY) * t;
    passive_polynomial_bar(damp, damp + 1, sn_abs(v), -pull * v);
  }
  if (!springs || x == 0) return;
  passive_polynomial_bar(bar->tendon_stiffness ? bar->tendon_stiffness + t : NULL,
                         bar->tendon_stiffnesspoly ? bar->tendon_stiffnesspoly + SN_NPOLY * t : NULL, x, -pull * x);
  if (bar->tendon_lengthspring && m->tendon_plasticadr[t] < 0)
    bar->tendon_lengthspring[2 * t + (x > 0)] +=
        pull * sn_polynomial_slope(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t, x);
}

// Gravity compensation by the model: vel is the velocity of the point p where a link is lifted, moved the force on it.
SN_LOCAL void passive_lift_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *bar, int i, const sn_bar *vel,
                                     const sn_bar *moved) {
  if (bar->gravity) sn_addtoscl3(bar->gravity, vel, -m->link_lift[4 * i + 3]);
  if (!bar->link_lift) return;
  sn_bar local[3];
  sn_mulmattvec3(local, w->xmat + 9 * i, moved);
  sn_addto3(bar->link_lift + 4 * i, local);
  bar->link_lift[4 * i + 3] -= sn_dot3(m->opt.gravity, vel);
}
#endif

// bar of dif from that of the force of a vector spring.
SN_LOCAL void passive_spring3_vjp(sn_bar *bar, const sn_bar *lambda, const sn_real *dif, sn_real linear,
                                  const sn_real *poly) {
  const sn_real norm = sn_norm3(dif);
  sn_scale3(bar, lambda, -sn_polynomial(linear, poly, norm));
  if (norm > SN_MINVAL) sn_addtoscl3(bar, dif, -sn_polynomial_change(poly, norm) * sn_dot3(dif, lambda) / norm);
}

#if !defined(SN_PACK)
SN_FUNC void sn_ball_rest_vjp(const sn_real *rest, const sn_real *dif, const sn_real *bar, sn_real *rest_bar) {
  sn_real turn[3], back[3];
  sn_scale3(turn, bar, -1);
  sn_scale3(back, dif, -1);
  sn_right_jacobian_inverse_transpose(turn, back);
  sn_plastic_turn_bar(rest, turn, rest_bar);
}
#endif

SN_LOCAL void passive_joint_spring_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int j) {
  const int type = m->jnt_type[j], dof = m->jnt_dofadr[j];
  const sn_real linear = m->jnt_stiffness[j], *poly = m->jnt_stiffnesspoly + SN_NPOLY * j;
  const sn_real *q = w->qpos + m->jnt_qposadr[j], *rest = sn_joint_rest(m, w->past, j);
  const int plastic = m->jnt_plasticadr[j];
  const sn_bar *lambda = a->motion + SN_LAMBDA * m->nv + dof;
  sn_bar *out = a->qpos_bar + dof;
  if (type == SN_JNT_HINGE || type == SN_JNT_SLIDE) {
    const sn_real x = q[0] - rest[0];
    const sn_bar bar = lambda[0] * sn_polynomial_slope(linear, poly, x);
    out[0] -= bar;
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) passive_spring_model_vjp(sn_model_bar(a), j, 1, lambda, &x);
    if (sn_model_bar(a) && sn_model_bar(a)->qpos_spring && plastic < 0)
      sn_model_bar(a)->qpos_spring[m->jnt_qposadr[j]] += bar;
#endif
    if (plastic >= 0) a->past_bar[m->nhistory + plastic] += bar;
    return;
  }
  sn_bar bar[3];
  sn_real dif[3], quat[4], back[4], turn[4];
  if (type == SN_JNT_FREE) {
    sn_sub3(dif, q, rest);
    passive_spring3_vjp(bar, lambda, dif, linear, poly);
    sn_addto3(out, bar);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) passive_spring_model_vjp(sn_model_bar(a), j, 3, lambda, dif);
    if (sn_model_bar(a) && sn_model_bar(a)->qpos_spring)
      sn_subfrom3(sn_model_bar(a)->qpos_spring + m->jnt_qposadr[j], bar);
#endif
    q += 3;
    rest += 3;
    lambda += 3;
    out += 3;
  }
  sn_copy4(quat, q);
  sn_normalize4(quat);
  sn_negquat(back, rest);
  sn_mulquat(turn, back, quat);
  sn_quat2vel(dif, turn);
  passive_spring3_vjp(bar, lambda, dif, linear, poly);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) passive_spring_model_vjp(sn_model_bar(a), j, 3, lambda, dif);
#endif
#if !defined(SN_PACK)
  if (plastic >= 0) sn_ball_rest_vjp(rest, dif, bar, a->past_bar + m->nhistory + plastic);
#endif
  sn_right_jacobian_inverse_transpose(bar, dif);
  sn_addto3(out, bar);
}

SN_FUNC void sn_tendon_passive_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t, sn_bar pull) {
  const bool springs = !(m->opt.disableflags & SN_DSBL_SPRING), dampers = !(m->opt.disableflags & SN_DSBL_DAMPER);
  const sn_real length = w->ten_length[t], *range = sn_tendon_rest(m, w->past, t);
  const sn_real x = length > range[1] ? length - range[1] : (length < range[0] ? length - range[0] : 0);
  const sn_real *damp = m->ten_damp + (1 + SN_NPOLY) * t;
  const bool slack = length >= range[0] && length <= range[1] && range[0] < range[1];
  if (springs && !slack) {
    const sn_bar bar = pull * sn_polynomial_slope(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t, x);
    a->ten_length_bar[t] -= bar;
    if (m->tendon_plasticadr[t] >= 0) a->past_bar[m->nhistory + m->tendon_plasticadr[t] + (x >= 0)] += bar;
  }
  if (dampers) a->ten_rate_bar[SN_NMOTION * t + SN_VEL] -= pull * sn_damping_slope(damp, w->ten_velocity[t]);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) passive_tendon_model_vjp(m, w, a, t, x, pull);
#endif
}

// Spring and damper of tendon t.
SN_LOCAL void passive_tendon_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t) {
  a->ten_rate_bar[SN_NMOTION * t + SN_LAMBDA] += w->ten_passive[2 * t] + w->ten_passive[2 * t + 1];
  sn_tendon_passive_vjp(m, w, a, t, a->ten_rate[SN_NMOTION * t + SN_LAMBDA]);
}

// Dof i does not receive gravity compensation.
SN_LOCAL bool passive_is_cut(const SnModel *m, const SnWorld *w, int i) {
  const int j = m->dof_jntid[i];
  if (!m->jnt_actgravcomp[j]) return false;
  if (m->nactuator == 0 || (m->opt.disableflags & SN_DSBL_ACTUATION)) return true;
  return m->jnt_dofadr[j] == i && sn_joint_saturated(m, w, j);
}

// Gravity compensation of link i alone: rates of lambda, and its displacement with what mu moves it.
SN_LOCAL void passive_lift_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool cuts) {
  const sn_real *origin = w->subtree_com + 3 * m->body_rootid[i];
  const sn_bar *twist = a->twist + 6 * (SN_NMOTION * i + SN_LAMBDA);
  sn_bar *bar = a->twist_bar + 6 * (SN_NMOTION * i + SN_LAMBDA), *wrench = a->wrench + 6 * i;
  sn_real force[3], p[3], lift[3];
  sn_bar turn[3], t[3], moved[3];
  if (m->link_lift[4 * i + 3] == 0) return;
  sn_scale3(force, m->opt.gravity, -m->link_lift[4 * i + 3]);
  sn_mulmatvec3(p, w->xmat + 9 * i, m->link_lift + 4 * i);
  sn_addto3(p, w->xpos + 3 * i);
  sn_subfrom3(p, origin);
  sn_cross(lift, p, force);
  sn_addto3(bar, lift);
  sn_addto3(bar + 3, force);
  sn_bar mu[6];
  sn_copy(mu, twist, 6);
  for (int link = i; cuts && link; link = m->body_base[link])
    for (int k = m->body_dofadr[link]; k < m->body_dofadr[link] + m->body_dofnum[link]; ++k)
      if (passive_is_cut(m, w, k))
        for (int e = 0; e < 6; ++e) mu[e] -= w->cdof[6 * k + e] * a->motion[SN_LAMBDA * m->nv + k];
  sn_copy3(turn, mu);
  sn_cross(moved, force, turn);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) {
    sn_cross(t, turn, p);
    sn_addto3(t, mu + 3);
    passive_lift_model_vjp(m, w, sn_model_bar(a), i, t, moved);
  }
#endif
  sn_cross(t, p, moved);
  sn_addto3(wrench, t);
  sn_addto3(wrench + 3, moved);
}

// Takes back, for dof k that is cut, what the sweep does with lift for its axis: from the dofs of its link before it
// (before and in its joint, for a ball or the turns of a free joint) and from the link below.
SN_LOCAL void passive_cut_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int k) {
  const int body = m->dof_bodyid[k], j = m->dof_jntid[k], type = m->jnt_type[j], first = m->jnt_dofadr[j];
  const sn_real *S = w->cdof + 6 * k, *lift = w->lift + 6 * body;
  const sn_bar lambda = a->motion[SN_LAMBDA * m->nv + k];
  sn_bar *base = a->wrench + 6 * m->body_base[body], back[6];
  sn_real moved[6];
  if (type == SN_JNT_FREE && k < first + 3) return;  // such an axis is moved by nothing
  const int end = type == SN_JNT_BALL ? first + 3 : (type == SN_JNT_FREE ? first + 6 : k);
  sn_crossforce(moved, S, lift);
  for (int e = 0; e < 6; ++e) back[e] = moved[e] * -lambda;
  for (int d = m->body_dofadr[body]; d < end; ++d) a->qpos_bar[d] += sn_dot(w->cdof + 6 * d, back, 6);
  for (int e = 0; e < 6; ++e) base[e] += back[e];
#if defined(SN_MODEL_BARS)
  for (int e = 0; sn_model_bar(a) && e < 6; ++e) sn_model_bar(a)->dof_own[6 * k + e] -= lambda * lift[e];
#endif
}

SN_LOCAL void passive_gravcomp_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  bool cuts = false;  // every lane looks at all
  for (int i = 0; m->ngravcomp > 0 && i < m->nv; ++i) cuts = cuts || passive_is_cut(m, w, i);
  SN_FOR(k, m->nlink) passive_lift_vjp(m, w, a, m->level_body[k], cuts);
  SN_SYNC(lane);
  if (!cuts) return;
  // several add to one link: in their order
  SN_ONE(lane) {
    for (int i = 0; i < m->nv; ++i)
      if (passive_is_cut(m, w, i)) passive_cut_vjp(m, w, a, i);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_passive_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int off = m->opt.disableflags;
  const bool springs = !(off & SN_DSBL_SPRING), dampers = !(off & SN_DSBL_DAMPER);
  if (!springs && !dampers) return;
  if (dampers) {
    SN_FOR(i, m->nv) {
      const sn_real *damp = m->dof_damp + (1 + SN_NPOLY) * i;
      a->qvel_bar[i] -= a->motion[SN_LAMBDA * m->nv + i] * sn_damping_slope(damp, w->qvel[i]);
#if defined(SN_MODEL_BARS)
      if (!sn_model_bar(a) || !sn_model_bar(a)->dof_damp) continue;
      sn_bar *bar = sn_model_bar(a)->dof_damp + (1 + SN_NPOLY) * i;
      passive_polynomial_bar(bar, bar + 1, sn_abs(w->qvel[i]), -a->motion[SN_LAMBDA * m->nv + i] * w->qvel[i]);
#endif
    }
  }
  SN_FOR(k, m->ntenpassive) passive_tendon_vjp(m, w, a, m->tenpassive_list[k]);
  if (springs) SN_FOR(k, m->njntspring) passive_joint_spring_vjp(m, w, a, m->jntspring_list[k]);
  SN_SYNC(lane);
  if (m->nlift > 0 && !(off & SN_DSBL_GRAVITY)) passive_gravcomp_vjp(m, w, a, lane);
  if (m->nfluid > 0) sn_fluid_vjp(m, w, a, lane);
}
