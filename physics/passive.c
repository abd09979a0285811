// Passive forces: springs and dampers of joints and tendons, gravity compensation.
//
// Spring and damper laws are polynomials (MuJoCo manual, XMLreference, stiffness and damping of joint and tendon):
//   spring  -x (k0 + k1 x + k2 x^2),     damper  -v (b0 + b1 |v| + b2 v^2)
// x is the displacement from qpos_spring; of a free joint's position and of rotations it is a vector, and its norm
// goes into the parentheses. A tendon's x is the distance of its length from the range lengthspring. Dampers include
// what actuators reflect (derive_tree.c). Gravity compensation is the force -g times the mass that a link lifts,
// summed from the leaves like the bias force; joints with actgravcomp receive it through the actuators.
// Both flags, spring and damper, disabled together also disable gravity compensation, as in mj_passive.
#include "physics/stages.h"
#include "physics/vec.h"

// k0 + k1 x + k2 x^2 from a linear coefficient and SN_NPOLY others.
SN_LOCAL sn_real passive_poly(sn_real linear, const sn_real *poly, sn_real x) {
  sn_real s = 0;
  for (int p = SN_NPOLY - 1; p >= 0; --p) s = (s + poly[p]) * x;
  return linear + s;
}

// Vector spring: force -= dif k(|dif|).
SN_LOCAL void passive_spring3(sn_real *force, const sn_real *dif, sn_real linear, const sn_real *poly) {
  sn_scale3(force, dif, -passive_poly(linear, poly, sn_norm3(dif)));
}

SN_LOCAL void passive_joint_spring(const SnModel *m, SnWorld *w, int j) {
  const int type = m->jnt_type[j];
  const sn_real linear = m->jnt_stiffness[j], *poly = m->jnt_stiffnesspoly + SN_NPOLY * j;
  const sn_real *q = w->qpos + m->jnt_qposadr[j], *rest = m->qpos_spring + m->jnt_qposadr[j];
  sn_real *force = w->qfrc_spring + m->jnt_dofadr[j];
  if (type == SN_JNT_HINGE || type == SN_JNT_SLIDE) {
    const sn_real x = q[0] - rest[0];
    force[0] = -x * passive_poly(linear, poly, x);
    return;
  }
  sn_real dif[3], quat[4], back[4], turn[4];
  if (type == SN_JNT_FREE) {
    sn_sub3(dif, q, rest);
    passive_spring3(force, dif, linear, poly);
    q += 3;
    rest += 3;
    force += 3;
  }
  sn_copy4(quat, q);
  sn_normalize4(quat);
  sn_negquat(back, rest);
  sn_mulquat(turn, back, quat);
  sn_quat2vel(dif, turn);
  passive_spring3(force, dif, linear, poly);
}

// Forces of tendon t along its length: spring in out[0], damper in out[1].
SN_LOCAL void passive_tendon(const SnModel *m, SnWorld *w, int t, bool springs, bool dampers, sn_real *out) {
  const sn_real length = w->ten_length[t], *range = m->tendon_lengthspring + 2 * t;
  const sn_real x = length > range[1] ? length - range[1] : (length < range[0] ? length - range[0] : 0);
  const sn_real v = w->ten_velocity[t], *damp = m->ten_damp + (1 + SN_NPOLY) * t;
  out[0] = springs ? -x * passive_poly(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t, x) : 0;
  out[1] = dampers ? -v * passive_poly(damp[0], damp + 1, sn_abs(v)) : 0;
}

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

SN_FUNC void sn_passive(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int off = m->opt.disableflags;
  const bool springs = !(off & SN_DSBL_SPRING), dampers = !(off & SN_DSBL_DAMPER), any = springs || dampers;
  const bool lifts = any && m->nlift > 0 && !(off & SN_DSBL_GRAVITY);
  SN_FOR(i, m->nv) {
    const sn_real v = w->qvel[i], *damp = m->dof_damp + (1 + SN_NPOLY) * i;
    w->qfrc_damper[i] = dampers ? -v * passive_poly(damp[0], damp + 1, sn_abs(v)) : 0;
    w->qfrc_spring[i] = w->qfrc_gravcomp[i] = 0;
  }
  SN_FOR(k, m->ntenpassive) {
    const int t = m->tenpassive_list[k];
    passive_tendon(m, w, t, springs, dampers, w->ten_passive + 2 * t);
  }
  SN_SYNC(lane);
  if (springs) {
    SN_FOR(k, m->njntspring) passive_joint_spring(m, w, m->jntspring_list[k]);
    SN_SYNC(lane);
  }
  if (lifts) passive_gravcomp(m, w, lane);
  SN_FOR(i, m->nv) {
    if (any) passive_gather_tendons(m, w, i);
    w->qfrc_passive[i] = w->qfrc_spring[i] + w->qfrc_damper[i];
    if (!m->jnt_actgravcomp[m->dof_jntid[i]]) w->qfrc_passive[i] += w->qfrc_gravcomp[i];
  }
  SN_SYNC(lane);
}
