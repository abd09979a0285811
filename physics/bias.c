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
#include "physics/stages.h"
#include "physics/vec.h"

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
  for (int level = 0; level < m->nlevel; ++level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR(k, m->level_adr[level + 1] - m->level_adr[level]) bias_link(m, w, body[k]);
    SN_SYNC(lane);
  }
  SN_FOR(k, m->nwelded) {
    const int i = m->welded_body[k];
    sn_copy(w->cvel + 6 * i, w->cvel + 6 * m->body_base[i], 6);
  }
  SN_FOR(a, m->nactuator) bias_actuator(m, w, a);
  SN_SYNC(lane);
}

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

// Jdot qvel of spatial tendon t, a path of sites and pulleys.
SN_LOCAL sn_real bias_tendon_dot(const SnModel *m, const SnWorld *w, int t) {
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

SN_FUNC void sn_bias(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(k, m->nlink) bias_link_force(m, w, m->level_body[k]);
  SN_SYNC(lane);
  for (int level = m->nlevel - 2; level >= 0; --level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR(k, m->level_adr[level + 1] - m->level_adr[level]) {
      sn_real *force = w->cfrc + 6 * body[k];
      for (int c = m->child_adr[body[k]]; c < m->child_adr[body[k] + 1]; ++c)
        for (int e = 0; e < 6; ++e) force[e] += w->cfrc[6 * m->child_body[c] + e];
    }
    SN_SYNC(lane);
  }
  SN_FOR(i, m->nv) w->qfrc_bias[i] = sn_dot(w->cdof + 6 * i, w->cfrc + 6 * m->dof_bodyid[i], 6);
  SN_SYNC(lane);
  for (int t = 0; t < m->ntendon; ++t) {
    if (m->ten_arm[t] == 0 || m->tendon_type[t] != SN_TENDON_SPATIAL) continue;
    const sn_real pull = m->ten_arm[t] * bias_tendon_dot(m, w, t);
    const int adr = m->ten_J_rowadr[t];
    SN_FOR(k, m->ten_J_rownnz[t]) w->qfrc_bias[m->ten_J_colind[adr + k]] += pull * w->ten_J[adr + k];
    SN_SYNC(lane);
  }
}
