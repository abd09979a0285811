// Velocities, and the forces that motion and gravity cause: recursive Newton-Euler without accelerations.
//
// With the spatial conventions of inertia.c, from the root outwards (Featherstone, Rigid Body Dynamics Algorithms,
// chapter 5; MuJoCo's mj_comVel and mj_rne, with whose cvel, cdof_dot and qfrc_bias it is compared):
//   v = v_base + sum cdof qvel,    cdof_dot = v' x cdof,    a = a_base + sum cdof_dot qvel,    a_world = -gravity
// v' the velocity before the joint; the three turns of a ball share the one before all of them. The force on a link, by
// Newton and Euler at its centre of mass c (I about c, a_c the acceleration of that point), moved to the tree's centre:
//   f = m a_c,   n = I alpha + w x (I w) + c x f;   summed from the leaves,   qfrc_bias(i) = cdof_i' (n, f)(link of i)
//
// A tendon with armature b adds J' b (Jdot qvel). For a path of straight pieces between sites, with unit direction u,
// length l, and velocities and (at qacc = 0) accelerations of its ends, a piece contributes to Jdot qvel
//   u (a1 - a0) + |dv - u (u dv)|^2 / l,    dv = v1 - v0
// MuJoCo's compiler refuses armature of tendons that wrap around geoms.
//
// Adjoint of  G = -lambda' (qfrc_bias + M a) + y' M (a - a+), a sum over links. For motion z let w_z be the angular
// velocity of a link, u_z that of its centre of mass; alpha and a_c its accelerations at qacc = 0, I about the centre:
//   G_i = -m u_l . (a_c + u_a) - w_l . (I (alpha + w_a) + w_v x I w_v) + m u_y . (u_a - u_+) + w_y . I (w_a - w_+)
// Its derivatives F_z, N_z with respect to u_z, w_z, and F_c, N_c with respect to a_c, alpha, are (c x F + N, F) on the
// twists about the tree's centre; a_c contains w_v x u_v. A displacement of the link moves c and turns I: as G_i stays
// the same when all of its vectors turn together, the torque is sum N_z x w_z + N_c x alpha, the force at c
// sum F_z x w_z + F_c x alpha. Armature of dofs is constant. That of a tendon with rate r_z = J z adds
//   -b [r_l (r_a + Jdot qvel) - r_y (r_a - r_+)]
// where J'J is cut to M's pattern: for tendons that branch, branched.c has the products of rates instead.
// By the model: G_i is linear in m and I; a shift of the centre of mass in its link has the force that the displacement
// receives there. Gravity is a part of all a_c.
// Of -h y' (d bias/d v) a+, the part of the integrator `implicit`: the bias is a constant and a quadratic form of v, so
// that (d bias/d v) a+ = [bias(v + a+) - bias(v - a+)] / 2, whose derivative two passes with these velocities give.
// At a piece of length 0 the derivative of its direction and of the square term is taken as zero.
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

#if defined(SN_SERIAL)
// cvel, cdof_dot and cacc of link i; those of its base are done.
SN_LOCAL void bias_link(const SnModel *m, SnWorld *w, int i) {
  const int base = m->body_base[i], first = m->body_dofadr[i], n = m->body_dofnum[i];
  sn_real vel[6], acc[6];
  sn_copy(vel, w->cvel + 6 * base, 6);
  sn_copy(acc, w->cacc + 6 * base, 6);
  for (int d = first; d < first + n;) {
    const int type = m->jnt_type[m->dof_jntid[d]];
    int turns = 1;
    if (type == SN_JNT_FREE) {
      // the axes of the three slides are fixed in the world
      sn_zero(w->cdof_dot + 6 * d, 18);
      sn_addto3(vel + 3, w->qvel + d);
      d += 3;
    }
    if (type == SN_JNT_FREE || type == SN_JNT_BALL) turns = 3;
    for (int k = d; k < d + turns; ++k) sn_crossmotion(w->cdof_dot + 6 * k, vel, w->cdof + 6 * k);
    for (int k = d; k < d + turns; ++k) {
      const sn_real qvel = w->qvel[k];
      for (int e = 0; e < 6; ++e) {
        vel[e] += w->cdof[6 * k + e] * qvel;
        acc[e] += w->cdof_dot[6 * k + e] * qvel;
      }
    }
    d += turns;
  }
  sn_copy(w->cvel + 6 * i, vel, 6);
  sn_copy(w->cacc + 6 * i, acc, 6);
}

SN_LOCAL void bias_motions(const SnModel *m, SnWorld *w, SnLane *lane) {
  (void)lane;
  for (int k = 0; k < m->nlink; ++k) bias_link(m, w, m->level_body[k]);
}
#else
// True where the dofs of a link are those of a free joint: the axes of its three slides are fixed in the world.
SN_INLINE bool bias_is_free(const SnModel *m, int first, int n) {
  return n == 6 && m->jnt_type[m->dof_jntid[first]] == SN_JNT_FREE;
}

// cvel of the links of a level, or cacc (axes: cdof_dot), a lane an entry; those of their bases are done.
SN_LOCAL void bias_level(const SnModel *m, const SnWorld *w, SnLane *lane, int level, const sn_real *axes,
                         sn_real *motion) {
  const int *body = m->level_body + m->level_adr[level], *dofadr = m->body_dofadr, *dofnum = m->body_dofnum;
  const int *base = m->body_base, n = m->level_adr[level + 1] - m->level_adr[level];
  const sn_real *qvel = w->qvel;
  SN_FOR(item, 6 * n) {
    const int link = body[item / 6], e = item % 6, first = dofadr[link], num = dofnum[link];
    const bool free = bias_is_free(m, first, num);
    sn_real sum = motion[6 * base[link] + e];
    if (free && axes == w->cdof && e >= 3) sum += qvel[first + e - 3];
    for (int k = free ? first + 3 : first; k < first + num; ++k) sum += axes[6 * k + e] * qvel[k];
    motion[6 * link + e] = sum;
  }
  SN_SYNC(lane);
}

// cdof_dot of dof k; cvel is done.
SN_LOCAL void bias_dof(const SnModel *m, SnWorld *w, int k) {
  const int link = m->dof_bodyid[k], first = m->body_dofadr[link];
  const bool free = bias_is_free(m, first, m->body_dofnum[link]);
  const int start = free ? first + 3 : m->jnt_dofadr[m->dof_jntid[k]];
  const sn_real *cdof = w->cdof, *qvel = w->qvel;
  sn_real vel[6];
  if (k < start) {
    sn_zero(w->cdof_dot + 6 * k, 6);
    return;
  }
  sn_copy(vel, w->cvel + 6 * m->body_base[link], 6);
  if (free) sn_addto3(vel + 3, qvel + first);
  for (int d = first; d < start && !free; ++d)
    for (int e = 0; e < 6; ++e) vel[e] += cdof[6 * d + e] * qvel[d];
  sn_crossmotion(w->cdof_dot + 6 * k, vel, cdof + 6 * k);
}

// The same numbers as on one lane: velocities level by level, what the axes do at once, accelerations level by level.
SN_LOCAL void bias_motions(const SnModel *m, SnWorld *w, SnLane *lane) {
  for (int level = 0; level < m->nlevel; ++level) bias_level(m, w, lane, level, w->cdof, w->cvel);
  SN_FOR(k, m->nv) bias_dof(m, w, k);
  SN_SYNC(lane);
  for (int level = 0; level < m->nlevel; ++level) bias_level(m, w, lane, level, w->cdof_dot, w->cacc);
}
#endif

// actuator_velocity of the outputs of actuator a: that of its tendon times the gear, or moment times qvel.
SN_LOCAL void bias_actuator(const SnModel *m, SnWorld *w, int a) {
  const int first = m->actuator_outadr[a];
  if (m->actuator_trntype[a] == SN_TRN_TENDON) {
    w->actuator_velocity[first] = m->actuator_gear[6 * first] * w->ten_velocity[m->actuator_trnid[2 * a]];
    return;
  }
  for (int out = first; out < first + m->actuator_outnum[a]; ++out) {
    const int adr = m->mom_rowadr[out];
    sn_real s = 0;
    for (int k = adr; k < adr + m->mom_rownnz[out]; ++k) s += w->actuator_moment[k] * w->qvel[m->mom_colind[k]];
    w->actuator_velocity[out] = s;
  }
}

#if !defined(SN_PACK)
SN_FUNC void sn_velocity(const SnModel *m, SnWorld *w, SnLane *lane) {
  const sn_real pull = (m->opt.disableflags & SN_DSBL_GRAVITY) ? SN_R(0.0) : SN_R(-1.0);
  SN_ONE(lane) {
    sn_zero(w->cvel, 6);
    sn_zero(w->cacc, 3);
    sn_scale3(w->cacc + 3, m->opt.gravity, pull);
  }
  SN_FOR(t, m->ntendon) {
    const int adr = m->ten_J_rowadr[t];
    sn_real s = 0;
    for (int k = adr; k < adr + m->ten_J_rownnz[t]; ++k) s += w->ten_J[k] * w->qvel[m->ten_J_colind[k]];
    w->ten_velocity[t] = s;
  }
  SN_SYNC(lane);
  bias_motions(m, w, lane);
  SN_FOR(k, m->nwelded) {
    const int i = m->welded_body[k];
    sn_copy(w->cvel + 6 * i, w->cvel + 6 * m->body_base[i], 6);
  }
  // 0 where actuation is off, as MuJoCo's, though not where only the group of an actuator is
  if (m->opt.disableflags & SN_DSBL_ACTUATION)
    sn_lane_zero(lane, w->actuator_velocity, m->nout);
  else
    SN_FOR(a, m->nactuator) bias_actuator(m, w, a);
  SN_SYNC(lane);
}
#endif

// Velocity of the point p of a body, and its acceleration when qacc = 0 (without gravity).
SN_LOCAL void bias_point_motion(const SnModel *m, const SnWorld *w, int body, const sn_real *p, sn_real *vel,
                                sn_real *acc) {
  const int link = m->link_of_body[body];
  sn_set3(vel, 0, 0, 0);
  sn_set3(acc, 0, 0, 0);
  if (link == 0) return;
  const sn_real *V = w->cvel + 6 * link, *A = w->cacc + 6 * link;
  sn_real r[3], t[3];
  sn_sub3(r, p, w->subtree_com + 3 * m->body_rootid[link]);
  sn_cross(t, V, r);
  sn_add3(vel, V + 3, t);
  sn_sub3(acc, A + 3, w->cacc + 3);
  sn_cross(t, A, r);
  sn_addto3(acc, t);
  sn_cross(t, V, vel);
  sn_addto3(acc, t);
}

#if !defined(SN_PACK)
SN_FUNC sn_real sn_tendon_dot(const SnModel *m, const SnWorld *w, int t) {
  sn_real sum = 0, divisor = 1;
  for (int k = m->tendon_adr[t]; k < m->tendon_adr[t] + m->tendon_num[t] - 1; ++k) {
    if (m->wrap_type[k] == SN_WRAP_PULLEY) divisor = m->wrap_prm[k];
    if (m->wrap_type[k] != SN_WRAP_SITE || m->wrap_type[k + 1] != SN_WRAP_SITE) continue;
    const int s0 = m->wrap_objid[k], s1 = m->wrap_objid[k + 1];
    const sn_real *p0 = w->site_xpos + 3 * s0, *p1 = w->site_xpos + 3 * s1;
    if (m->link_of_site[s0] == m->link_of_site[s1]) continue;
    sn_real u[3], v0[3], v1[3], a0[3], a1[3];
    bias_point_motion(m, w, m->site_bodyid[s0], p0, v0, a0);
    bias_point_motion(m, w, m->site_bodyid[s1], p1, v1, a1);
    sn_sub3(u, p1, p0);
    const sn_real length = sn_normalize3(u);
    sn_subfrom3(v1, v0);
    sn_subfrom3(a1, a0);
    const sn_real along = sn_dot3(u, v1);
    sum += sn_dot3(u, a1) / divisor;
    if (length > SN_MINVAL) sum += (sn_dot3(v1, v1) - along * along) / (length * divisor);
  }
  return sum;
}
#endif

// cfrc of link i: the force on it alone.
SN_LOCAL void bias_link_force(const SnModel *m, SnWorld *w, int i) {
  const sn_real *V = w->cvel + 6 * i, *A = w->cacc + 6 * i, *G = w->link_xinertia + 6 * i, mass = m->link_mass[i];
  sn_real c[3], vel[3], t[3], Iw[3], *torque = w->cfrc + 6 * i, *force = torque + 3;
  sn_sub3(c, w->link_xcom + 3 * i, w->subtree_com + 3 * m->body_rootid[i]);
  sn_cross(t, V, c);
  sn_add3(vel, V + 3, t);
  sn_cross(force, V, vel);
  sn_cross(t, A, c);
  for (int e = 0; e < 3; ++e) force[e] = mass * (force[e] + t[e] + A[3 + e]);
  sn_set3(Iw, G[0] * V[0] + G[3] * V[1] + G[4] * V[2], G[3] * V[0] + G[1] * V[1] + G[5] * V[2],
          G[4] * V[0] + G[5] * V[1] + G[2] * V[2]);
  sn_cross(torque, V, Iw);
  sn_cross(t, c, force);
  torque[0] += t[0] + G[0] * A[0] + G[3] * A[1] + G[4] * A[2];
  torque[1] += t[1] + G[3] * A[0] + G[1] * A[1] + G[5] * A[2];
  torque[2] += t[2] + G[4] * A[0] + G[5] * A[1] + G[2] * A[2];
}

#if !defined(SN_PACK)
SN_FUNC void sn_bias(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(k, m->nlink) bias_link_force(m, w, m->level_body[k]);
  SN_SYNC(lane);
  for (int level = m->nlevel - 2; level >= 0; --level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR_ENTRIES(k, from, end, 6, m->level_adr[level + 1] - m->level_adr[level]) {
      sn_real *force = w->cfrc + 6 * body[k];
      for (int c = m->child_adr[body[k]]; c < m->child_adr[body[k] + 1]; ++c)
        for (int e = from; e < end; ++e) force[e] += w->cfrc[6 * m->child_body[c] + e];
    }
    SN_SYNC(lane);
  }
  SN_FOR(i, m->nv) w->qfrc_bias[i] = sn_dot(w->cdof + 6 * i, w->cfrc + 6 * m->dof_bodyid[i], 6);
  SN_SYNC(lane);
  for (int t = 0; t < m->ntendon; ++t) {
    if (m->ten_arm[t] == 0 || m->tendon_type[t] != SN_TENDON_SPATIAL) continue;
    const sn_real pull = m->ten_arm[t] * sn_tendon_dot(m, w, t);
    const int adr = m->ten_J_rowadr[t];
    SN_FOR(k, m->ten_J_rownnz[t]) w->qfrc_bias[m->ten_J_colind[adr + k]] += pull * w->ten_J[adr + k];
    SN_SYNC(lane);
  }
}
#endif

// The inertia of link i, and where its centre of mass is from the tree's.
typedef struct BiasLink {
  const sn_real *G;
  sn_real mass, c[3];
} BiasLink;

SN_INLINE void bias_inertia(const BiasLink *b, sn_bar *r, const sn_bar *x) {
  const sn_real *G = b->G;
  sn_set3(r, G[0] * x[0] + G[3] * x[1] + G[4] * x[2], G[3] * x[0] + G[1] * x[1] + G[5] * x[2],
          G[4] * x[0] + G[5] * x[1] + G[2] * x[2]);
}

// Velocity of the centre of mass in the field X.
SN_INLINE void bias_com_velocity(const BiasLink *b, sn_bar *u, const sn_bar *X) {
  sn_cross(u, X, b->c);
  sn_addto3(u, X + 3);
}

// Force F at the centre of mass and torque N: added to the bar of a field whose angular part is x, and to what the
// displacement of the link receives (force and torque at the centre of mass).
SN_INLINE void bias_add_bar(const BiasLink *b, sn_bar *bar, const sn_bar *F, const sn_bar *N, const sn_bar *x,
                            sn_bar *force, sn_bar *torque) {
  sn_addcross(bar, b->c, F);
  sn_addto3(bar, N);
  sn_addto3(bar + 3, F);
  sn_addcross(force, F, x);
  sn_addcross(torque, N, x);
}

// What the motions y and a+ of implicit damping add: y' M (a - a+).
SN_LOCAL void bias_link_damped(const BiasLink *b, const sn_bar *X, sn_bar *bar, sn_bar *force, sn_bar *torque) {
  const sn_bar *Xa = X + 6 * SN_ACC, *Xy = X + 6 * SN_Y, *Xn = X + 6 * SN_NEXT;
  sn_bar u[3], F[3], N[3], dX[6];
  // with respect to a, and the opposite to a+
  bias_com_velocity(b, u, Xy);
  sn_scale3(F, u, b->mass);
  bias_inertia(b, N, Xy);
  bias_add_bar(b, bar + 6 * SN_ACC, F, N, Xa, force, torque);
  sn_scale3(F, F, -1);
  sn_scale3(N, N, -1);
  bias_add_bar(b, bar + 6 * SN_NEXT, F, N, Xn, force, torque);
  // with respect to y
  for (int e = 0; e < 6; ++e) dX[e] = Xa[e] - Xn[e];
  bias_com_velocity(b, u, dX);
  sn_scale3(F, u, b->mass);
  bias_inertia(b, N, dX);
  bias_add_bar(b, bar + 6 * SN_Y, F, N, Xy, force, torque);
}

#if defined(SN_MODEL_BARS)
// Link i by the model. acc: acceleration of its centre of mass without gravity's end, force: on that centre.
SN_LOCAL void bias_link_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const BiasLink *b,
                                  const sn_bar *acc, const sn_bar *force) {
  SnModelBar *bar = sn_model_bar(a);
  const sn_real *R = w->xmat + 9 * i, *A = w->cacc + 6 * i;
  const sn_bar *X = a->twist + 6 * SN_NMOTION * i;
  const sn_bar *Xl = X + 6 * SN_LAMBDA, *Xa = X + 6 * SN_ACC, *Xv = X + 6 * SN_VEL, *Xy = X + 6 * SN_Y;
  sn_bar u[3], uy[3], d[6], turn[3], local[3];
  bias_com_velocity(b, u, Xl);
  bias_com_velocity(b, uy, Xy);
  for (int e = 0; e < 6; ++e) d[e] = Xa[e] - X[6 * SN_NEXT + e];
  if (bar->link_mass) {
    bias_com_velocity(b, local, d);
    bar->link_mass[i] += sn_dot3(uy, local) - sn_dot3(u, acc);
  }
  if (bar->link_com) {
    sn_mulmattvec3(local, R, force);
    sn_addto3(bar->link_com + 3 * i, local);
  }
  if (bar->link_inertia) {
    sn_bar *I = bar->link_inertia + 6 * i, alpha[3];
    sn_add3(alpha, A, Xa);
    sn_cross(turn, Xl, Xv);
    sn_add_inertia_bar(I, R, Xl, alpha, -1);
    sn_add_inertia_bar(I, R, turn, Xv, -1);
    sn_add_inertia_bar(I, R, Xy, d, 1);
  }
  if (bar->gravity && !(m->opt.disableflags & SN_DSBL_GRAVITY)) sn_addtoscl3(bar->gravity, u, b->mass);
}

// Armatures by the model.
SN_LOCAL void bias_armature_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a) {
  const sn_bar *l = a->motion + SN_LAMBDA * m->nv, *acc = a->motion + SN_ACC * m->nv, *y = a->motion + SN_Y * m->nv;
  const sn_bar *next = a->motion + SN_NEXT * m->nv;
  for (int i = 0; sn_model_bar(a)->dof_arm && i < m->nv; ++i)
    sn_model_bar(a)->dof_arm[i] += y[i] * (acc[i] - next[i]) - l[i] * acc[i];
  for (int t = 0; sn_model_bar(a)->ten_arm && t < m->ntendon; ++t) {
    const SnRow row = sn_tendon_row(m, w, t);
    const sn_real dot = m->tendon_type[t] == SN_TENDON_SPATIAL ? sn_tendon_dot(m, w, t) : 0;
    sn_model_bar(a)->ten_arm[t] += sn_row_form(m, &row, false, y, acc) - sn_row_form(m, &row, false, y, next) -
                                   sn_row_form(m, &row, false, l, acc) - a->ten_rate[SN_NMOTION * t + SN_LAMBDA] * dot;
  }
}
#endif

// Link i, see the head of this file. Derivatives with respect to lambda and a are read by nothing but the
// displacement of axes, as are those with respect to y and a+.
SN_LOCAL void bias_link_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, bool damped) {
  const sn_real *A = w->cacc + 6 * i;
  const sn_bar *X = a->twist + 6 * SN_NMOTION * i;
  const sn_bar *Xl = X + 6 * SN_LAMBDA, *Xa = X + 6 * SN_ACC, *Xv = X + 6 * SN_VEL;
  sn_bar *bar = a->twist_bar + 6 * SN_NMOTION * i, force[3] = {0}, torque[3] = {0};
  sn_bar u[3], uv[3], F[3], N[3], Iw[3], Il[3], t[3], sum[6];
  BiasLink b = {w->link_xinertia + 6 * i, m->link_mass[i], {0}};
  sn_sub3(b.c, w->link_xcom + 3 * i, w->subtree_com + 3 * m->body_rootid[i]);
  bias_com_velocity(&b, uv, Xv);
  bias_inertia(&b, Iw, Xv);
  // with respect to lambda: the link's force for the acceleration qacc, without gravity
  for (int e = 0; e < 6; ++e) sum[e] = A[e] + Xa[e];
  bias_com_velocity(&b, F, sum);
  sn_addcross(F, Xv, uv);
#if defined(SN_MODEL_BARS)
  sn_bar acc[3];
  sn_copy3(acc, F);
#endif
  sn_scale3(F, F, -b.mass);
  bias_inertia(&b, N, sum);
  sn_addcross(N, Xv, Iw);
  sn_scale3(N, N, -1);
  bias_add_bar(&b, bar + 6 * SN_LAMBDA, F, N, Xl, force, torque);
  // with respect to a and to the acceleration at qacc = 0, whose displacements go together
  bias_com_velocity(&b, u, Xl);
  sn_scale3(F, u, -b.mass);
  bias_inertia(&b, Il, Xl);
  sn_scale3(N, Il, -1);
  sn_bar P[6] = {0};
  bias_add_bar(&b, P, F, N, sum, force, torque);
  for (int e = 0; e < 6; ++e) {
    bar[6 * SN_ACC + e] += P[e];
    a->acc_bar[6 * i + e] += P[e];
  }
  // with respect to v: w_v x u_v in F . a_c, and the gyroscopic torque
  sn_cross(u, F, Xv);
  sn_cross(N, Xl, Iw);
  sn_cross(t, Xv, Xl);
  bias_inertia(&b, Il, t);
  sn_addto3(N, Il);
  bias_add_bar(&b, bar + 6 * SN_VEL, u, N, Xv, force, torque);
  sn_cross(t, uv, F);
  sn_addto3(bar + 6 * SN_VEL, t);
  if (damped) bias_link_damped(&b, X, bar, force, torque);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) bias_link_model_vjp(m, w, a, i, &b, acc, force);
#endif
  sn_bar *wrench = a->wrench + 6 * i;
  sn_addcross(wrench, b.c, force);
  sn_addto3(wrench, torque);
  sn_addto3(wrench + 3, force);
}

// Derivatives with respect to acceleration, velocity and place of a point.
typedef struct BiasPointBar {
  sn_bar acc[3], vel[3], pos[3];
} BiasPointBar;

// Adjoint of bias_point_motion; bar: the last two are added to and used up.
SN_LOCAL void bias_point_motion_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *pos,
                                    const sn_real *vel, BiasPointBar *bar) {
  const int link = m->link_of_body[body];
  if (link == 0) return;
  const sn_real *V = w->cvel + 6 * link, *A = w->cacc + 6 * link;
  sn_bar *acc_bar = a->acc_bar + 6 * link, *vel_bar = sn_twist_bar(m, a, body, SN_VEL), *wrench = a->wrench + 6 * link;
  sn_real r[3];
  sn_sub3(r, pos, w->subtree_com + 3 * m->body_rootid[link]);
  sn_addcross(acc_bar, r, bar->acc);
  sn_addto3(acc_bar + 3, bar->acc);
  sn_addcross(bar->vel, bar->acc, V);
  sn_addcross(vel_bar, vel, bar->acc);
  sn_addcross(vel_bar, r, bar->vel);
  sn_addto3(vel_bar + 3, bar->vel);
  sn_addcross(bar->pos, bar->acc, A);
  sn_addcross(bar->pos, bar->vel, V);
  sn_addcross(wrench, r, bar->pos);
  sn_addto3(wrench + 3, bar->pos);
}

// Adjoint of a piece between sites s0 and s1 in sn_tendon_dot; bar: derivative with respect to what it adds, over the
// divisor of its pulley.
SN_LOCAL void bias_piece_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int s0, int s1, sn_bar bar) {
  const int b0 = m->site_bodyid[s0], b1 = m->site_bodyid[s1];
  const sn_real *p0 = w->site_xpos + 3 * s0, *p1 = w->site_xpos + 3 * s1;
  sn_real u[3], v0[3], v1[3], a0[3], a1[3];
  BiasPointBar at1 = {0}, at0;
  bias_point_motion(m, w, b0, p0, v0, a0);
  bias_point_motion(m, w, b1, p1, v1, a1);
  sn_sub3(u, p1, p0);
  const sn_real length = sn_normalize3(u);
  sn_scale3(at1.acc, u, bar);
  if (length > SN_MINVAL) {
    sn_real dv[3], da[3];
    sn_bar ub[3];
    sn_sub3(dv, v1, v0);
    sn_sub3(da, a1, a0);
    const sn_real along = sn_dot3(u, dv), per = 1 / length, square = (sn_dot3(dv, dv) - along * along) * per;
    for (int e = 0; e < 3; ++e) at1.vel[e] = 2 * bar * per * (dv[e] - along * u[e]);
    for (int e = 0; e < 3; ++e) ub[e] = bar * per * (da[e] - 2 * along * per * dv[e]);
    const sn_bar back = sn_dot3(u, ub) + bar * square * per;
    sn_addscl3(at1.pos, ub, u, -back);
  }
  sn_scale3(at0.acc, at1.acc, -1);
  sn_scale3(at0.vel, at1.vel, -1);
  sn_scale3(at0.pos, at1.pos, -1);
  bias_point_motion_vjp(m, w, a, b1, p1, v1, &at1);
  bias_point_motion_vjp(m, w, a, b0, p0, v0, &at0);
#if defined(SN_MODEL_BARS)
  if (!sn_model_bar(a)) return;
  sn_addto3(sn_model_bar(a)->site_wrench + 6 * s0 + 3, at0.pos);
  sn_addto3(sn_model_bar(a)->site_wrench + 6 * s1 + 3, at1.pos);
#endif
}

// Armature of tendon t in M: bars of its rates where all of its columns are on one path, see branched.c.
SN_LOCAL void bias_tendon_mass_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t) {
  const sn_bar *rate = a->ten_rate + SN_NMOTION * t;
  sn_bar *bar = a->ten_rate_bar + SN_NMOTION * t;
  const sn_real b = m->ten_arm[t];
  const SnRow row = sn_tendon_row(m, w, t);
  if (!sn_row_is_chain(m, &row, false)) return;
  bar[SN_LAMBDA] -= b * rate[SN_ACC];
  bar[SN_ACC] -= b * (rate[SN_LAMBDA] - rate[SN_Y]);
  bar[SN_Y] += b * (rate[SN_ACC] - rate[SN_NEXT]);
  bar[SN_NEXT] -= b * rate[SN_Y];
}

SN_FUNC void sn_tendon_dot_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t, sn_bar bar) {
  sn_real divisor = 1;
  for (int k = m->tendon_adr[t]; k < m->tendon_adr[t] + m->tendon_num[t] - 1; ++k) {
    if (m->wrap_type[k] == SN_WRAP_PULLEY) divisor = m->wrap_prm[k];
    if (m->wrap_type[k] != SN_WRAP_SITE || m->wrap_type[k + 1] != SN_WRAP_SITE) continue;
    const int s0 = m->wrap_objid[k], s1 = m->wrap_objid[k + 1];
    if (m->link_of_site[s0] == m->link_of_site[s1]) continue;
    bias_piece_vjp(m, w, a, s0, s1, bar / divisor);
  }
}

// Armature of spatial tendon t.
SN_LOCAL void bias_tendon_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t) {
  const sn_real b = m->ten_arm[t];
  a->ten_rate_bar[SN_NMOTION * t + SN_LAMBDA] -= b * sn_tendon_dot(m, w, t);
  sn_tendon_dot_vjp(m, w, a, t, -b * a->ten_rate[SN_NMOTION * t + SN_LAMBDA]);
  bias_tendon_mass_vjp(m, w, a, t);
}

SN_FUNC void sn_bias_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const bool damped = sn_is_damped(m) || sn_has_noslip(m) || sn_has_exact_diagonal(m);
  SN_FOR(k, m->nlink) bias_link_vjp(m, w, a, m->level_body[k], damped);
  SN_SYNC(lane);
  // several tendons add to one link: in their order
  SN_ONE(lane) {
    for (int t = 0; t < m->ntendon; ++t) {
      if (m->ten_arm[t] == 0 || !sn_tendon_arms_move(m, a, t)) continue;
      if (m->tendon_type[t] == SN_TENDON_SPATIAL)
        bias_tendon_vjp(m, w, a, t);
      else
        bias_tendon_mass_vjp(m, w, a, t);
    }
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) bias_armature_model_vjp(m, w, a);
#endif
  }
  SN_SYNC(lane);
}

// Sets velocities of the world to v + side a+, v kept in rk_qvel, and the motions of the derivative of
// side h/2 y' bias at them. Ends with a sync.
SN_LOCAL void bias_slope_motions(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real side) {
  const sn_real scale = SN_R(0.5) * side * sn_timestep(m, w);
  SN_FOR(i, m->nv) {
    w->qvel[i] = w->rk_qvel[i] + side * w->int_qacc[i];
    for (int z = 0; z < SN_NMOTION; ++z) a->motion[z * m->nv + i] = sn_bar_of(0);
    a->motion[SN_LAMBDA * m->nv + i] = scale * a->motion_kept[SN_Y * m->nv + i];
    a->motion[SN_VEL * m->nv + i] = sn_bar_of(w->qvel[i]);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_bias_slope_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  bool any = false;  // every lane looks at all
  for (int i = 0; m->opt.integrator == SN_INT_IMPLICIT && i < m->nv; ++i)
    any = any || sn_any(a->motion[SN_Y * m->nv + i]);
  if (!any) return;
  SN_SYNC(lane);
  SN_FOR(i, SN_NMOTION * m->nv) a->motion_kept[i] = a->motion[i];
  SN_FOR(i, m->nv) w->rk_qvel[i] = w->qvel[i];
  SN_SYNC(lane);
  for (int side = 1; side >= -1; side -= 2) {
    bias_slope_motions(m, w, a, lane, (sn_real)side);
    sn_velocity(m, w, lane);
    sn_adjoint_clear_bars(m, a, lane);
    sn_motion_propagate(m, w, a, lane);
    SN_FOR(k, m->nlink) bias_link_vjp(m, w, a, m->level_body[k], false);
    SN_SYNC(lane);
    sn_kinematics_vjp(m, w, a, lane);
  }
  SN_FOR(i, SN_NMOTION * m->nv) a->motion[i] = a->motion_kept[i];
  SN_FOR(i, m->nv) w->qvel[i] = w->rk_qvel[i];
  SN_SYNC(lane);
  sn_velocity(m, w, lane);
}
